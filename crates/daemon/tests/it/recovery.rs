//! Recovery with different answers of the process probe.

use std::time::Duration;

use gt_core::Status;
use gt_core::schedule::{Run, RunEnd, RunId, RunState, Workplace};
use gt_execution::runs::{self, Recovered};
use gt_scheduling::dispatch::{Dispatcher, MemorySpawner};
use gt_scheduling::processes::{Alive, ProcessProbe};
use gt_town::{OperationError, Result, Town};

use crate::scheduling::{bead, shown, sling_all, town_with_rig};

/// A world in which no process is left of anything, and `end` was seen of some.
struct Over<F>(F);

impl<F: Fn(&str) -> Option<RunEnd> + Sync> ProcessProbe for Over<F> {
    fn host(&self) -> &'static str {
        ""
    }

    fn starter_of(&self, _: &Run) -> Alive {
        Alive::No
    }

    fn worker_of(&self, _: &Run) -> Alive {
        Alive::No
    }

    fn end_worker(&self, _: &Run, _: Duration) -> Result<()> {
        Ok(())
    }

    fn end_of(&self, run: &Run) -> Option<RunEnd> {
        (self.0)(run.id.bead.as_str())
    }
}

/// A town in which these beads have runs that were taken.
fn running(ids: &[&str]) -> Town {
    let town = town_with_rig(None);
    for id in ids {
        bead(&town, id);
    }
    sling_all(&town, ids);
    Dispatcher::new(&town, &MemorySpawner::default()).dispatch().unwrap();
    for id in ids {
        assert!(matches!(
            gt_scheduling::run_transitions::claim(&town, &first(id), &Workplace::default(), None)
                .unwrap(),
            gt_scheduling::run_transitions::Claim::Granted(_)
        ));
    }
    town
}

fn first(bead: &str) -> RunId {
    RunId::parse(&format!("{bead}#1")).unwrap()
}

fn end(state: RunState) -> RunEnd {
    RunEnd::without_status(state, "it was seen")
}

#[test]
fn a_run_ends_as_its_supervisor_saw_it_and_else_is_lost() {
    let town = running(&["web-1", "web-2", "web-3", "web-4"]);
    let processes = Over(|bead: &str| match bead {
        "web-1" => Some(end(RunState::Done)),
        "web-2" => Some(end(RunState::Failed)),
        "web-3" => Some(end(RunState::Lost)),
        _ => None,
    });

    let recovered = runs::recover(&town, &processes).unwrap();

    assert_eq!(recovered.finished, [first("web-1"), first("web-2")]);
    assert_eq!(recovered.lost, [first("web-3"), first("web-4")]);
    assert_eq!(shown(&town, "web-1").row.bead.status, Status::Closed);
    assert_eq!(shown(&town, "web-3").row.bead.status, Status::Open);
    assert_eq!(runs::recover(&town, &processes).unwrap(), Recovered::default());
}

#[test]
fn a_run_whose_end_is_written_down_while_recovery_looks_was_not_recovered() {
    let town = running(&["web-1"]);
    // Its supervisor is faster by a moment.
    let processes = Over(|bead: &str| {
        gt_scheduling::run_transitions::finish(&town, &first(bead), &end(RunState::Done)).unwrap();
        Some(end(RunState::Done))
    });

    assert_eq!(runs::recover(&town, &processes).unwrap(), Recovered::default());
    assert_eq!(gt_beads::run_records::resolve(&town, "web-1").unwrap().state, RunState::Done);
}

#[test]
fn a_run_that_cannot_be_put_right_does_not_keep_the_others() {
    let town = running(&["web-1", "web-2"]);
    // The store refuses to end a run as one that is live.
    let processes = Over(|bead: &str| (bead == "web-1").then(|| end(RunState::Running)));

    let recovered = runs::recover(&town, &processes).unwrap();

    assert_eq!(recovered.lost, [first("web-2")]);
    let runs: Vec<&RunId> = recovered.errors.iter().map(|(run, _)| run).collect();
    assert_eq!(runs, [&first("web-1")]);
    assert_eq!(gt_beads::run_records::resolve(&town, "web-1").unwrap().state, RunState::Running);
    let again = runs::recover(&town, &processes).unwrap();
    assert_eq!((again.lost.len(), again.errors.len()), (0, 1));
}

#[test]
fn a_machine_is_known_by_its_identity_and_not_by_its_name() {
    let town = running(&["web-1"]);
    let mut run = gt_beads::run_records::resolve(&town, "web-1").unwrap();
    run.host = "old-name/0123456789abcdef".to_owned();
    assert!(run.is_on("new-name/0123456789abcdef"));
    assert!(!run.is_on("old-name/fedcba9876543210") && !run.is_on("old-name"));
    assert_eq!(run.host_name(), "old-name");
    // One without identity is known by its name.
    run.host = "name".to_owned();
    assert!(run.is_on("name") && !run.is_on("other"));
    assert_eq!(run.host_name(), "name");
}

/// A world that cannot say anything about processes.
struct Blind(bool);

impl ProcessProbe for Blind {
    fn host(&self) -> &'static str {
        if self.0 { "" } else { "elsewhere" }
    }

    fn starter_of(&self, _: &Run) -> Alive {
        Alive::Unknown
    }

    fn worker_of(&self, _: &Run) -> Alive {
        Alive::Unknown
    }

    fn end_worker(&self, run: &Run, _: Duration) -> Result<()> {
        Err(OperationError::rejected(format!("{} cannot be ended", run.id)))
    }
}

#[test]
fn a_run_that_cannot_be_probed_is_neither_lost_nor_cancelled() {
    let town = running(&["web-1"]);
    let before = gt_beads::run_records::resolve(&town, "web-1").unwrap();
    for is_here in [true, false] {
        assert_eq!(runs::recover(&town, &Blind(is_here)).unwrap(), Recovered::default());
        let refused = runs::cancel_with_processes(&town, &Blind(is_here), "web-1").unwrap_err();
        assert!(refused.to_string().contains("gt run cancel web-1#1 --force"), "{refused}");
    }
    assert_eq!(gt_beads::run_records::resolve(&town, "web-1").unwrap(), before);
}
