//! `bd create --idempotency-key`: a repeated request makes one bead.

use gt_testkit::{Cluster, Sandbox};
use serde_json::json;

use crate::support::{Steps as _, assert_says, refusal, town, town_on};

/// A town on each engine.
fn towns() -> [Sandbox; 2] {
    [town(), town_on(&Cluster::shared().fresh_database())]
}

#[test]
fn a_repeated_request_gives_the_same_bead_and_changes_nothing() {
    for town in towns() {
        let ask = ["create", "Build is red", "-l", "ci", "--idempotency-key", "build 7"];
        let first = town.json(&ask);
        let events = town.last_event();

        let second = town.json(&ask);

        assert_eq!(second, first);
        assert_eq!(town.last_event(), events);
        let said = town.bd(ask).ok();
        let id = first["id"].as_str().unwrap();
        assert_eq!(said.line(), format!("✓ Already created issue: {id} — Build is red"));
        assert_eq!(said.stderr, "");
        assert_eq!(town.create("Build is red", &["--idempotency-key", "build 7"]), id);
        assert_ne!(town.create("Build is red", &["--idempotency-key", "build 8"]), id);
        assert_ne!(town.create("Build is red", &[]), id);
    }
}

#[test]
fn a_key_that_is_used_for_something_else_gives_the_first_bead_and_a_note() {
    let town = town();
    let first = town.create("One thing", &["--idempotency-key", "k"]);

    let other = town.bd(["create", "Another", "--idempotency-key", "k", "--silent"]).ok();

    assert_eq!(other.line(), first);
    assert_says(&other.stderr, &["note: this key has made", &first, "One thing", "another key"]);
    assert_eq!(town.ids(&["list"]), [first]);
}

#[test]
fn many_who_ask_at_once_get_one_bead() {
    for town in towns() {
        let ask = ["create", "Build is red", "--silent", "--idempotency-key", "build 7"];
        let before = town.last_event();
        let running: Vec<_> = (0..6).map(|_| town.start_bd(&ask).start()).collect();
        let ids: Vec<String> =
            running.into_iter().map(|one| one.wait().ok().line().to_owned()).collect();

        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert_eq!(town.ids(&["list"]), [ids[0].clone()]);
        assert_eq!(town.last_event(), before + 1);
    }
}

#[test]
fn a_dry_run_remembers_nothing_and_a_refused_request_neither() {
    let town = town();
    let key = ["--idempotency-key", "k"];
    let dry = town.start_bd(&["create", "First", "--dry-run"]).args(key).run().ok();
    assert_says(&dry.stdout, &["Would create"]);
    town.start_bd(&["create", "First", "--parent", "hq-none"]).args(key).run().fails(1);
    assert_eq!(town.last_event(), 0);

    let made = town.create("Second", &key);

    let dry = town.start_bd(&["create", "Second", "--dry-run"]).args(key).run().ok();
    assert_eq!(dry.line(), format!("✓ Already created issue: {made} — Second"));
}

#[test]
fn the_bead_is_shown_as_it_is_now_and_a_deleted_one_is_forgotten() {
    for town in towns() {
        let key = ["--idempotency-key", "k"];
        let first = town.create("Task", &key);
        town.bd(["close", &first]).ok();
        let again = town.start_bd(&["create", "Task", "--json"]).args(key).run().ok().json();
        assert_eq!((&again["id"], &again["status"]), (&json!(first), &json!("closed")));

        town.bd(["delete", &first, "--force"]).ok();
        let second = town.create("Task", &key);
        assert_eq!(town.show(&second)["status"], "open");
    }
}

#[test]
fn a_key_is_not_empty_and_not_too_long() {
    let town = town();
    for key in ["", " ", "a\nb", &"x".repeat(201)] {
        let said = refusal(&town.bd(["create", "Task", "--idempotency-key", key]));
        assert_says(&said, &["idempotency key", "1 to 200"]);
    }
    town.create("Task", &["--idempotency-key", &"x".repeat(200)]);
}
