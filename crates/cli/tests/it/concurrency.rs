//! Many commands at once: nothing is lost, nothing is done twice, no command is refused.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};

use gt_testkit::{FinishedProgram, RunningProgram, Sandbox, wait_until};
use serde_json::Value;

use crate::agents::Stage as _;
use crate::support::{Steps as _, assert_says, files_in, refusal, town, town_on_file};

/// Starts this many commands before it waits for the first.
pub(crate) fn at_once(
    count: usize,
    start: impl FnMut(usize) -> RunningProgram,
) -> Vec<FinishedProgram> {
    let running: Vec<RunningProgram> = (0..count).map(start).collect();
    running.into_iter().map(RunningProgram::wait).collect()
}

/// Expects that the log has every number from 1 on, once, in order.
#[track_caller]
pub(crate) fn assert_gapless(town: &Sandbox) {
    let events = town.events();
    let number = |event: &Value| event["number"].as_u64().unwrap();
    let numbers: Vec<u64> = events.iter().map(number).collect();
    let expected: Vec<u64> = (1..=events.len() as u64).collect();
    assert_eq!(numbers, expected);
}

/// A file with this many beads, each waiting for an earlier one.
fn beads(count: usize, prefix: &str) -> String {
    let line = |number: usize| {
        format!(
            r#"{{"id":"{prefix}-{number}","title":"Task {number}","labels":["imported"],"dependencies":[{{"depends_on_id":"{prefix}-{}"}}]}}"#,
            number / 2
        )
    };
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn sixteen_creates_at_once_all_succeed() {
    let town = town();

    let created = at_once(16, |number| {
        let title = format!("Task {number}");
        let gt = town.command(town.gt_path());
        gt.args(["bd", "create", &title, "--silent"]).start()
    });

    let ids: HashSet<String> = created.into_iter().map(|ran| ran.ok().line().to_owned()).collect();
    assert_eq!(ids.len(), 16);
    let listed: HashSet<String> = town.ids(&["list"]).into_iter().collect();
    assert_eq!(listed, ids);
    assert_gapless(&town);
}

#[test]
fn sixteen_creates_beside_a_saturated_writer_all_succeed() {
    let town = town();
    town.write("in.jsonl", beads(600, "im"));
    let script = format!(
        "while [ ! -e stop ]; do '{0}' delete --from-file ids --force --quiet && '{0}' import in.jsonl --quiet || exit 1; done",
        town.bd_path().display()
    );
    let ids: Vec<String> = (0..600).map(|number| format!("im-{number}")).collect();
    town.write("ids", ids.join("\n"));
    town.bd(["import", "in.jsonl"]).ok();
    let writer = town.command("bash").args(["-c", &script]).start();
    let start = town.last_event();
    wait_until("the writer is at it", || town.last_event() > start);

    for round in 0..2 {
        let created = at_once(16, |number| {
            let title = format!("Task {round}/{number}");
            let gt = town.command(town.gt_path());
            gt.args(["bd", "create", &title, "--silent", "--label", "created"]).start()
        });
        for ran in created {
            let ran = ran.ok();
            assert!(!ran.stderr.contains("locked"), "{ran}");
        }
    }

    town.write("stop", "");
    writer.wait().ok();
    assert_eq!(town.ids(&["list", "--label", "created", "-n", "0"]).len(), 32);
    assert_eq!(town.ids(&["list", "--label", "imported", "-n", "0"]).len(), 600);
    assert_gapless(&town);
    town.gt(["doctor"]).ok();
}

#[test]
fn of_two_that_claim_the_same_bead_one_wins() {
    let town = town();
    for round in 0..20 {
        let id = format!("hq-{round}");
        town.bead(&id, &[]);

        let claims = at_once(2, |number| {
            let actor = ["ann", "bob"][number];
            town.start_bd(&["update", &id, "--claim", "--actor", actor]).start()
        });

        let winners: Vec<usize> = (0..2).filter(|number| claims[*number].code == 0).collect();
        assert_eq!(winners.len(), 1, "round {round}\n{}\n{}", claims[0], claims[1]);
        let winner = ["ann", "bob"][winners[0]];
        let error = refusal(&claims[1 - winners[0]]);
        assert_says(&error, &[&format!("issue already claimed by {winner}")]);
        assert_eq!(town.show(&id)["assignee"], winner);
    }
    assert_gapless(&town);
}

#[test]
fn of_eight_that_take_what_is_ready_each_gets_another() {
    let town = town();
    for number in 0..8 {
        town.bead(&format!("hq-{number}"), &[]);
    }

    let claimed = at_once(8, |number| {
        let actor = format!("worker {number}");
        town.start_bd(&["ready", "--claim", "--json", "--actor", &actor]).start()
    });

    let ids: HashSet<String> = claimed
        .into_iter()
        .map(|ran| ran.ok().json()[0]["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 8);
    assert_eq!(town.ready(), [""; 0]);
}

#[test]
fn crossing_dependencies_never_make_a_circle() {
    let town = town();
    for round in 0..8 {
        let (a, b) = (format!("hq-{round}a"), format!("hq-{round}b"));
        town.bead(&a, &[]);
        town.bead(&b, &[]);

        let added = at_once(2, |number| {
            let (issue, target) = if number == 0 { (&a, &b) } else { (&b, &a) };
            town.start_bd(&["dep", "add", issue, target]).start()
        });

        let codes: Vec<i32> = added.iter().map(|ran| ran.code).collect();
        assert!(codes == [0, 1] || codes == [1, 0], "{codes:?}");
        assert_eq!(town.ready().len(), round + 1);
    }
    town.gt(["doctor"]).ok();
}

#[test]
fn parts_made_at_once_get_numbers_of_their_own() {
    let town = town();
    town.bead("hq-e", &["-t", "epic"]);

    let created =
        at_once(8, |_| town.start_bd(&["create", "Part", "--parent", "hq-e", "--silent"]).start());

    let mut ids: Vec<String> = created.into_iter().map(|ran| ran.ok().line().to_owned()).collect();
    ids.sort();
    let expected: Vec<String> = (1..=8).map(|number| format!("hq-e.{number}")).collect();
    assert_eq!(ids, expected);
}

#[test]
fn eight_concurrent_installs_of_one_town_agree() {
    let sandbox = crate::support::nowhere();

    let installed =
        at_once(8, |_| sandbox.command(sandbox.gt_path()).args(["install", "town"]).start());

    for ran in installed {
        ran.ok();
    }
    let town = sandbox.in_dir("town");
    town.create("A task", &[]);
    town.gt(["doctor"]).ok();
    let files = files_in(town.cwd().join(".gt"));
    assert!(!files.iter().any(|file| file.contains("new")), "{files:?}");
}

#[test]
fn eight_that_init_the_same_store_agree() {
    let sandbox = crate::support::nowhere();
    let project = sandbox.in_dir(sandbox.make_dir("kitchen"));

    let made = at_once(8, |_| project.start_bd(&["init"]).start());

    for ran in made {
        ran.ok();
    }
    assert!(project.create("A task", &[]).starts_with("ki-"));
    assert_eq!(project.gt_json(&["rig", "list"]).as_array().unwrap().len(), 1);
    assert_gapless(&project);
}

#[test]
fn eight_that_add_the_same_rig_add_one() {
    let town = town();

    let added = at_once(8, |_| town.command(town.gt_path()).args(["rig", "add", "web"]).start());

    let won = added.iter().filter(|ran| ran.code == 0).count();
    assert_eq!(won, 1);
    for ran in added.iter().filter(|ran| ran.code != 0) {
        assert_says(&refusal(ran), &["exists already"]);
    }
    assert_eq!(town.gt_json(&["rig", "list"]).as_array().unwrap().len(), 1);
    assert!(town.cwd().join("web").is_dir());
    assert_gapless(&town);
}

/// Whether a process is inside a write transaction.
fn is_writing(town: &Sandbox) -> bool {
    let lock = File::open(town.cwd().join(".gt/write.lock")).unwrap();
    matches!(lock.try_lock(), Err(TryLockError::WouldBlock))
}

#[test]
fn an_import_that_is_killed_leaves_nothing_of_it() {
    let town = town_on_file();
    town.bead("hq-a", &[]);
    let before = (town.export(), town.last_event());
    town.write("in.jsonl", beads(10_000, "im"));

    let import = town.start_bd(&["import", "in.jsonl"]).start();
    wait_until("it is writing", || is_writing(&town));
    import.kill().fails(128 + 9);

    assert_eq!((town.export(), town.last_event()), before);
    town.gt(["doctor"]).ok();
    town.bead("hq-b", &[]);
    assert_eq!(town.last_event(), before.1 + 1);
    assert_gapless(&town);
}

#[test]
fn a_stopped_writer_is_named_and_waited_for_only_so_long() {
    // Given a writer that is stopped in the middle,
    let town = town_on_file();
    town.gt(["config", "set", "store.lock_timeout", "2s"]).ok();
    town.write("in.jsonl", beads(10_000, "im"));
    let import = town.start_bd(&["import", "in.jsonl"]).start();
    wait_until("it is writing", || is_writing(&town));
    let process = import.id().to_string();
    town.signal("STOP", &process);

    // when another one wants to write,
    let refused = town.bd(["create", "Late", "--id", "hq-late"]).fails(1);

    // then it names the writer while it waits and when it gives up, reading goes on, and so does the writer later.
    let holder = format!("bd import (process {process}, since ");
    assert!(refused.stderr.contains(&format!("waiting for {holder}")), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("{holder}2")), "{}", refused.stderr);
    assert!(refused.stderr.contains("keeps the store locked"), "{}", refused.stderr);
    town.bd(["list"]).ok();
    town.signal("CONT", &process);
    import.wait().ok();
    town.bd(["create", "On time", "--id", "hq-late"]).ok();
    assert_gapless(&town);
}

#[test]
fn an_import_that_is_killed_while_it_commits_is_there_whole_or_not_at_all() {
    let town = town_on_file();
    town.bead("hq-a", &[]);
    town.write("in.jsonl", beads(5_000, "im"));
    let log = town.cwd().join(".gt/gt.db-wal");
    let size = || fs::metadata(&log).map_or(0, |file| file.len());
    let at_first = size();

    let import = town.start_bd(&["import", "in.jsonl"]).start();
    wait_until("it commits", || size() > at_first);
    import.kill();

    let count = town.bd(["count"]).ok().line().to_owned();
    assert!(["1", "5001"].contains(&count.as_str()), "{count}");
    assert_eq!(town.last_event().to_string(), count);
    town.gt(["doctor"]).ok();
    town.bead("hq-b", &[]);
    assert_gapless(&town);
}

#[test]
fn readers_see_all_of_an_import_or_none() {
    let town = town();
    town.write("in.jsonl", beads(3000, "im"));
    let import = town.start_bd(&["import", "in.jsonl"]).start();

    let mut counts = HashSet::new();
    wait_until("the import is there", || {
        let count = town.bd(["count"]).ok().line().to_owned();
        counts.insert(count.clone());
        count == "3000"
    });

    import.wait().ok();
    let partial: Vec<&String> =
        counts.iter().filter(|c| !["0", "3000"].contains(&c.as_str())).collect();
    assert!(partial.is_empty(), "{partial:?}");
}
