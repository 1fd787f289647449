//! Numbers about a town for monitoring.

use gt_core::schedule::RunState;

use super::EngineUnderTest;
use super::contexts::{new, schedule};
use super::kit::{CheckedStore, at, rig};
use super::runs::{begin, end};
use gt_store::{QueueNumbers, RunNumbers, TownNumbers};

pub(super) fn a_town_is_counted_by_rig_host_and_state(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    assert_eq!(town.read(|reader| reader.town_numbers()), TownNumbers::default());
    town.write(|writer| writer.insert_rig(&rig("gear", "gr")));
    town.add_open(&["gr-a", "gr-b", "gr-c"]);
    let waiting = schedule(&town, new("gr-c"));
    begin(&town, "gr-a", |run| run.state = RunState::Running);
    let over = begin(&town, "gr-b", |run| run.state = RunState::Running);
    assert!(end(&town, &over, RunState::Failed));

    let numbers = town.read(|reader| reader.town_numbers());

    let count = |state: &str| RunNumbers {
        rig: "gear".to_owned(),
        host: "here".to_owned(),
        state: state.to_owned(),
        runs: 1,
    };
    assert_eq!(numbers.runs, [count("failed"), count("running")]);
    let queue = QueueNumbers { rig: "gear".to_owned(), open: 1, oldest: waiting.enqueued_at };
    assert_eq!(numbers.queue, [queue]);
    assert!(numbers.queue[0].oldest >= at(0));
    assert!(numbers.landings.is_empty() && numbers.checks.is_empty());
}
