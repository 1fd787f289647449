//! Histories in which everything must stay true.

use gt_simulator::{SeedOutcome, Stores, measure_fleet, simulate};
use gt_town::parallel;

/// The result of each of these seeds.
fn outcomes(stores: &Stores, seeds: std::ops::RangeInclusive<u64>) -> Vec<SeedOutcome> {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let live = |seed: &u64| stores.with_store(|store| simulate(*seed, store, None));
    let done = parallel::execute(seeds.collect(), at_once, live);
    done.into_iter().map(|done| done.outcome.expect("the store can be made")).collect()
}

fn assert_nothing_violated(outcomes: &[SeedOutcome]) {
    for outcome in outcomes {
        if let Some(violation) = &outcome.violation {
            panic!("{violation}");
        }
    }
}

#[test]
fn all_invariants_hold_in_memory() {
    assert_nothing_violated(&outcomes(&Stores::Memory, 1..=32));
}

#[test]
fn all_invariants_hold_with_pull_requests_reverts_and_branches_of_convoys() {
    assert_nothing_violated(&outcomes(&Stores::Memory, 1_000_000..=1_000_003));
}

#[test]
fn all_invariants_hold_with_several_hosts() {
    assert_nothing_violated(&outcomes(&Stores::Memory, 2_000_000..=2_000_003));
    assert_nothing_violated(&outcomes(&Stores::postgres(), 2_000_004..=2_000_004));
}

#[test]
fn all_invariants_hold_on_postgresql() {
    assert_nothing_violated(&outcomes(&Stores::postgres(), 81..=88));
}

#[test]
fn the_same_seed_is_the_same_history_on_either_engine() {
    let digests = |stores: &Stores| {
        let outcomes = outcomes(stores, 1..=2).into_iter();
        outcomes.map(|outcome| (outcome.steps, outcome.digest)).collect::<Vec<_>>()
    };
    let first = digests(&Stores::Memory);
    assert_eq!(first, digests(&Stores::Memory));
    assert_eq!(first, digests(&Stores::postgres()));
}

#[test]
fn a_lost_host_of_a_fleet_that_is_measured_loses_its_runs() {
    let times = Stores::Memory.with_store(|store| measure_fleet(3, 6, store));
    let times = times.expect("the store can be made").expect("everything is found");
    assert_eq!((times.hosts, times.runs, times.lost), (3, 6, 2));
}
