//! `gt demo`: a whole town, from nothing to everything landed, with nothing left behind.

use std::fs;

use crate::agents::Stage as _;
use crate::support::{assert_says, nowhere};

#[test]
fn everything_lands_although_workers_crash_reach_limits_conflict_and_break_checks() {
    let sandbox = nowhere();
    let temporary = sandbox.root().join("temporary");
    fs::create_dir(&temporary).unwrap();

    let demo = sandbox.start_gt(&["demo", "--json"]).env("TMPDIR", &temporary).run().ok();

    let told = demo.json();
    assert_eq!((&told["beads"], &told["landed"]), (&11.into(), &11.into()), "{told}");
    // Four of them needed a second worker: one crashed, one reached a limit, one broke a check, one of two conflicted.
    assert!(told["runs"].as_u64() >= Some(15), "{told}");
    assert_eq!((&told["convoy_landed"], &told["waves"]), (&true.into(), &vec![1, 8, 1, 1].into()));
    assert!(told["most_at_once"].as_u64() <= told["cap"].as_u64(), "{told}");
    let recovered = told["recovered_ms"].as_object().unwrap();
    assert!(["api-search", "web-cart"].iter().all(|bead| recovered.contains_key(*bead)), "{told}");
    let left: Vec<_> = fs::read_dir(&temporary).unwrap().flatten().map(|e| e.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_town_that_is_kept_can_be_looked_at() {
    let sandbox = nowhere();
    let temporary = sandbox.root().join("temporary");
    fs::create_dir(&temporary).unwrap();
    // Another program's database is not drawn into it.
    let demo = sandbox
        .start_gt(&["demo", "--keep"])
        .env("TMPDIR", &temporary)
        .env("DATABASE_URL", "postgres://absent@127.0.0.1:1/nothing")
        .run()
        .ok();

    assert_says(
        &demo.stdout,
        &[
            "in 4 waves: 1, then 8, then 1, then 1",
            "11 of 11 beads landed",
            "has landed, in 4 waves",
            "api-search stumbled",
            "a check fails with it: whole",
            "a person reviews it",
            "approved by demo",
            "Look around: cd ",
        ],
    );
    let root = demo.stdout.lines().find_map(|line| line.strip_prefix("Look around: cd ")).unwrap();
    let status =
        sandbox.start_gt(&["-C", root, "run", "list", "--all", "--json"]).run().ok().json();
    assert!(status.as_array().unwrap().len() >= 15, "{status}");
    let daemon = sandbox.start_gt(&["-C", root, "daemon", "status"]).run();
    assert_says(&daemon.stdout, &["The daemon is not running"]);
}
