//! `gt store migrate`: a town moves to PostgreSQL and back, whole or not at all.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use gt_testkit::{Cluster, Sandbox, wait_until};

use crate::support::{
    Steps as _, assert_says, gastown_that_takes_time, let_work_end, refusal, town_on_file,
    wait_for_status,
};

fn town_file(town: &Sandbox) -> String {
    std::fs::read_to_string(town.cwd().join(".gt/town.toml")).expect("the town has a file")
}

fn ids(town: &Sandbox) -> Vec<String> {
    let mut ids = town.ids(&["list"]);
    ids.sort();
    ids
}

fn mode_of(path: &Path) -> u32 {
    std::fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
}

#[test]
fn a_town_moves_to_a_server_and_back() {
    let town = town_on_file();
    town.bead("hq-a", &[]);
    let url = Cluster::shared().fresh_database();

    let moved = town.gt(["store", "migrate", &url]).ok();

    assert_says(&moved.stdout, &["✓ Moved", "to postgres://", "counts and checksums agree"]);
    assert_says(&moved.stderr, &["The former store is kept", ".gt/gt.db"]);
    assert_says(&town_file(&town), &["postgres://"]);
    assert_eq!(mode_of(&town.cwd().join(".gt/town.toml")), 0o600);
    assert!(!town.cwd().join(".gt/town.toml.next").exists());
    town.bead("hq-b", &[]);
    assert_eq!(ids(&town), ["hq-a", "hq-b"]);
    assert_says(&town.gt(["store", "migrate", &url]).ok().stdout, &["already; nothing to do"]);
    town.gt(["doctor"]).ok();
    town.gt(["scheduler", "run"]).ok();
    assert_eq!(town.gt_json(&["host", "list"])[0]["state"], "active");

    let back = town.gt(["store", "migrate", "sqlite", "--json"]).ok().json();

    assert_eq!(back["changed"], true);
    assert_says(&town_file(&town), &["sqlite:.gt/gt.db"]);
    assert_eq!(ids(&town), ["hq-a", "hq-b"]);
    town.bead("hq-c", &[]);
    // The lease of its time on the server says nothing any more.
    assert_says(&town.gt(["host", "list"]).ok().stdout, &["This town has one host"]);
    town.gt(["store", "check"]).ok();
}

#[test]
fn a_move_whose_last_step_is_missing_is_finished_by_the_next_command() {
    // Given a town whose former store says that it moved, and whose file does not say so yet,
    let town = town_on_file();
    town.bead("hq-a", &[]);
    let before = town_file(&town);
    town.gt(["store", "migrate", &Cluster::shared().fresh_database()]).ok();
    let file = |name: &str| town.cwd().join(".gt").join(name);
    std::fs::rename(file("town.toml"), file("town.toml.next")).expect("the file can be renamed");
    std::fs::write(file("town.toml"), &before).expect("the file can be written");

    town.bead("hq-b", &[]);

    assert_says(&town_file(&town), &["postgres://"]);
    assert_eq!(ids(&town), ["hq-a", "hq-b"]);

    // Without the file of the move, the former store is refused.
    std::fs::write(file("town.toml"), &before).expect("the file can be written");
    assert_says(
        &refusal(&town.bd(["create", "Late"])),
        &["has moved to postgres://", "database_url"],
    );
}

#[test]
fn a_killed_move_leaves_a_town_that_works_and_a_second_call_finishes_it() {
    let town = town_on_file();
    let lines = (0..400).map(|n| format!("{{\"id\":\"hq-{n}\",\"title\":\"T\"}}"));
    let many = lines.collect::<Vec<_>>().join("\n");
    town.command(town.bd_path()).args(["import", "-"]).stdin(many).run().ok();
    let url = Cluster::shared().fresh_database();

    for (round, pause_ms) in [1_u64, 40, 90, 160].into_iter().enumerate() {
        let moving = town.command(town.gt_path()).args(["store", "migrate", &url]).start();
        let since = std::time::Instant::now();
        wait_until("the moment of the kill", || since.elapsed() > Duration::from_millis(pause_ms));
        moving.kill();
        town.bd(["create", &format!("After kill {round}")]).ok();
    }

    town.gt(["store", "migrate", &url]).ok();
    assert_says(&town_file(&town), &["postgres://"]);
    assert_eq!(town.bd(["count"]).ok().line(), "404");
    town.gt(["store", "check"]).ok();
}

#[test]
fn a_town_at_work_is_not_moved() {
    let town = gastown_that_takes_time();
    let url = Cluster::shared().fresh_database();
    town.bead("gt-a", &[]);
    town.gt(["sling", "gt-a", "gastown"]).ok();
    wait_for_status(&town, "gt-a", "in_progress");

    let error = refusal(&town.gt(["store", "migrate", &url]));

    assert_says(&error, &["gt-a#1", "gt scheduler drain", "gt scheduler resume"]);
    let_work_end(&town);
    wait_for_status(&town, "gt-a", "closed");
    for (address, says) in [
        ("mysql://db/town", "is not the address of a store"),
        ("postgres://me:secret@127.0.0.1:1/town", "cannot reach postgres://me@127.0.0.1:1/town"),
    ] {
        let error = refusal(&town.gt(["store", "migrate", address]));
        assert_says(&error, &[says]);
        assert!(!error.contains("secret"), "{error}");
    }
    town.gt(["up"]).ok();
    assert_says(
        &refusal(&town.gt(["store", "migrate", &url])),
        &["the daemon", "gt down", "gt up"],
    );
    town.gt(["down"]).ok();
    assert!(!town.cwd().join(".gt/town.toml.next").exists());
}
