//! Runs of checks.

use gt_core::checks::{CheckError, CheckPurpose, CheckResult, CheckRun};

use super::EngineUnderTest;
use super::kit::{CheckedStore, at, slug};

fn run(name: &str, key: &str, result: CheckResult) -> CheckRun {
    CheckRun {
        id: 0,
        rig: slug("gear"),
        name: name.to_owned(),
        definition: "d1".to_owned(),
        cache_key: key.to_owned(),
        commit: "c0ffee".to_owned(),
        tree: "7ree".to_owned(),
        purpose: CheckPurpose::Candidate,
        result,
        error: (result == CheckResult::Error).then_some(CheckError::DiskFull),
        exit_code: (result != CheckResult::Error).then_some(1),
        attempt: 2,
        flaky: false,
        started_at: at(7),
        duration_ms: 1_234,
        host: "forge".to_owned(),
        log: ".gt/checks/gear/test.log".to_owned(),
    }
}

fn put(town: &CheckedStore, run: &CheckRun) -> CheckRun {
    town.write(|writer| writer.insert_check_run(run))
}

pub(super) fn a_run_of_a_check_reads_back_as_it_was_written(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let made: Vec<CheckRun> =
        CheckResult::ALL.iter().map(|result| put(&town, &run("test", "k", *result))).collect();
    assert_eq!(made.iter().map(|run| run.id).collect::<Vec<_>>(), [1, 2, 3]);
    for run in &made {
        assert_eq!(town.read(|reader| reader.check_run(run.id)).as_ref(), Some(run));
    }
    assert_eq!(town.read(|reader| reader.check_runs_on("c0ffee")), made);
    assert!(town.read(|reader| reader.check_runs_on("c0ffe")).is_empty());
    assert_eq!(town.read(|reader| reader.check_run(4)), None);
}

pub(super) fn only_a_pass_of_the_same_check_and_key_is_found(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let passed = |name: &str, key: &str| {
        town.read(|reader| reader.passed_check(&slug("gear"), name, key)).map(|run| run.id)
    };
    put(&town, &run("test", "k", CheckResult::Failed));
    put(&town, &run("test", "k", CheckResult::Error));
    assert_eq!(passed("test", "k"), None);
    put(&town, &run("test", "k", CheckResult::Passed));
    assert_eq!(passed("test", "k"), Some(3));
    put(&town, &run("test", "k", CheckResult::Passed));
    assert_eq!(passed("test", "k"), Some(4));
    assert_eq!(passed("test", "other"), None);
    assert_eq!(passed("lint", "k"), None);
    assert_eq!(town.read(|reader| reader.passed_check(&slug("wheel"), "test", "k")), None);
}

pub(super) fn flaky_runs_are_found_newest_first(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    put(&town, &run("test", "a", CheckResult::Passed));
    for key in ["b", "c"] {
        put(&town, &CheckRun { flaky: true, ..run("test", key, CheckResult::Passed) });
    }
    let found = |limit| {
        let runs = town.read(|reader| reader.flaky_check_runs(limit));
        runs.into_iter().map(|run| run.cache_key).collect::<Vec<_>>()
    };
    assert_eq!(found(10), ["c", "b"]);
    assert_eq!(found(1), ["c"]);
}
