//! Every command line gets an answer or one line of error, never a panic.

use gt_testkit::{FinishedProgram, Sandbox};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::support::{Steps as _, town};

/// Each case starts a few processes, so there are few cases.
const CASES: u32 = 24;

/// Text as it may stand in an argument: anything but NUL.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[^\0]{0,40}",
        "[-a-z0-9:,.=@+_ ]{0,20}",
        Just("hq-a".to_owned()),
        Just("hq-b".to_owned()),
        Just(String::new()),
    ]
}

/// Expects an answer or a refusal in good order.
fn check(ran: &FinishedProgram) -> Result<(), TestCaseError> {
    prop_assert!([0, 1].contains(&ran.code), "{}", ran);
    prop_assert!(!ran.stderr.contains("panicked"), "{}", ran);
    if ran.code == 1 {
        prop_assert!(ran.stderr.starts_with("Error: "), "{}", ran);
    }
    let json: Result<serde_json::Value, _> = serde_json::from_str(&ran.stdout);
    prop_assert!(json.is_ok(), "{}", ran);
    Ok(())
}

fn furnished() -> Sandbox {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);
    town
}

/// Runs `property` on few cases with nothing written to disk about failures.
fn with_few_cases<S: Strategy>(
    strategy: &S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: CASES,
        max_shrink_iters: 50,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner.run(strategy, property).unwrap();
}

#[test]
fn create_takes_or_refuses_any_words() {
    let town = furnished();
    let flag = prop::sample::select(vec![
        "--type",
        "--priority",
        "--description",
        "--labels",
        "--id",
        "--parent",
        "--deps",
        "--waits-for",
        "--due",
        "--defer",
        "--metadata",
        "--assignee",
        "--rig",
        "--external-ref",
        "--actor",
    ]);
    with_few_cases(&(text(), flag, text()), |(title, flag, value)| {
        let flag = format!("{flag}={value}");
        check(&town.bd(["create", "--json", &flag, "--", &title]))
    });
    town.gt(["doctor"]).ok();
}

#[test]
fn update_takes_or_refuses_any_words() {
    let town = furnished();
    let flag = prop::sample::select(vec![
        "--title",
        "--status",
        "--priority",
        "--type",
        "--assignee",
        "--add-label",
        "--set-labels",
        "--remove-label",
        "--parent",
        "--due",
        "--defer",
        "--metadata",
        "--set-metadata",
        "--unset-metadata",
        "--notes",
        "--append-notes",
    ]);
    with_few_cases(&(flag, text()), |(flag, value)| {
        let flag = format!("{flag}={value}");
        check(&town.bd(["update", "hq-a", "--json", &flag]))
    });
    town.gt(["doctor"]).ok();
}

#[test]
fn dependencies_take_or_refuse_any_words() {
    let town = furnished();
    let verb = prop::sample::select(vec!["add", "remove"]);
    with_few_cases(&(verb, text(), text(), text()), |(verb, kind, issue, target)| {
        let kind = format!("--type={kind}");
        check(&town.bd(["dep", verb, "--json", &kind, "--", &issue, &target]))
    });
    town.gt(["doctor"]).ok();
}

#[test]
fn search_and_filters_take_or_refuse_any_words() {
    let town = furnished();
    let flag = prop::sample::select(vec![
        "--status",
        "--priority",
        "--type",
        "--label",
        "--label-any",
        "--title",
        "--id",
        "--parent",
        "--created-after",
        "--metadata-field",
        "--has-metadata-key",
        "--rig",
    ]);
    with_few_cases(&(text(), flag, text()), |(words, flag, value)| {
        let flag = format!("{flag}={value}");
        check(&town.bd(["search", "--json", &flag, "--", &words]))
    });
}

#[test]
fn the_help_of_gt_knows_bd() {
    let town = town();

    assert!(town.gt(["--help"]).ok().stdout.contains("\n  bd "));
    assert!(town.gt(["help", "bd"]).ok().stdout.contains("Track work as beads"));
}

#[test]
fn bd_is_found_behind_flags_in_every_spelling() {
    let town = town();
    let here = town.cwd().display().to_string();
    for flags in [
        &[format!("-C{here}")][..],
        &["-q".into(), format!("-C={here}")],
        &["--json".to_owned(), format!("--directory={here}")],
    ] {
        let mut words: Vec<String> = flags.to_vec();
        words.extend(["bd".to_owned(), "count".to_owned()]);
        town.gt(&words).ok();
    }
}
