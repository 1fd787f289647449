//! From a sling to a closed bead, over an in-memory town and a spawner that starts nothing.

use std::time::Duration;

use gt_core::decide::WaitReason;
use gt_core::schedule::{Run, RunEnd, RunId, RunState};
use gt_core::{BeadId, ExecutorKind, Outcome, Status};
use gt_operations::beads::{self, NewBead};
use gt_operations::dispatch::{Dispatcher, MemorySpawner};
use gt_operations::queue;
use gt_operations::runs::{self, Alive, Claim, Finished, World};
use gt_operations::schedule::{Fate, SlingReport, SlingRequest, retry, sling};
use gt_operations::{Town, rigs, settings};

use crate::town::town;

/// A town with a rig that can run things, and a cap if one is given.
pub(crate) fn town_with_rig(cap: Option<u32>) -> Town {
    let town = town();
    let rig = rigs::NewRig {
        name: "web",
        repository: None,
        prefix: Some("web"),
        branch: None,
        executor: ExecutorKind::Process,
    };
    rigs::add(&town, &rig).unwrap();
    settings::set(&town, "rig.web.command", "/bin/true {bead}").unwrap();
    if let Some(cap) = cap {
        settings::set(&town, "scheduler.max_polecats", &cap.to_string()).unwrap();
    }
    town
}

pub(crate) fn bead(town: &Town, id: &str) -> BeadId {
    let new = NewBead { title: id.to_owned(), id: Some(id.to_owned()), ..NewBead::default() };
    beads::create(town, &new, false).unwrap().bead.id
}

pub(crate) fn sling_all(town: &Town, ids: &[&str]) -> SlingReport {
    let arguments = ids.iter().map(|id| (*id).to_owned()).collect();
    sling(town, &SlingRequest { arguments, ..SlingRequest::default() }).unwrap()
}

pub(crate) fn shown(town: &Town, id: &str) -> beads::Shown {
    beads::show(town, &[id.to_owned()]).unwrap().remove(0).unwrap()
}

#[test]
fn what_is_slung_waits_for_a_slot_runs_and_closes() {
    let town = town_with_rig(Some(1));
    for id in ["web-1", "web-2"] {
        bead(&town, id);
    }
    let report = sling_all(&town, &["web-1", "web-2"]);
    assert!(report.entries.iter().all(|entry| matches!(entry.fate, Fate::Scheduled(..))));
    assert!(report.convoy.is_some());

    let spawner = MemorySpawner::default();
    let done = Dispatcher::new(&town, &spawner).dispatch().unwrap();
    assert_eq!((done.queued, done.ready, done.dispatched.len(), done.skipped), (2, 2, 1, 1));
    let run = RunId::parse("web-1#1").unwrap();
    assert_eq!(spawner.asked(), std::slice::from_ref(&run));
    assert_eq!(shown(&town, "web-1").row.bead.status, Status::Hooked);

    let again = Dispatcher::new(&town, &spawner).dispatch().unwrap();
    assert_eq!(again.dispatched.len(), 0);
    let why = queue::why(&town, "web-2").unwrap();
    assert_eq!(why.reasons.iter().map(WaitReason::code).collect::<Vec<_>>(), ["no-slot"]);
    assert_eq!(why.holders.len(), 1);

    assert!(matches!(runs::claim(&town, &run).unwrap(), Claim::Granted(_)));
    assert!(matches!(runs::claim(&town, &run).unwrap(), Claim::Refused(_)));
    let end = RunEnd::without_status(RunState::Done, "done");
    assert_eq!(runs::finish(&town, &run, &end).unwrap(), Finished::Closed(Outcome::Success));
    assert_eq!(runs::finish(&town, &run, &end).unwrap(), Finished::Already);
    assert_eq!(shown(&town, "web-1").row.bead.status, Status::Closed);

    let next = Dispatcher::new(&town, &spawner).dispatch().unwrap();
    assert_eq!(next.dispatched.len(), 1);
    assert_eq!(spawner.asked().last().map(ToString::to_string).as_deref(), Some("web-2#1"));
}

/// A bead with a running run.
fn running(town: &Town, id: &str) -> RunId {
    bead(town, id);
    sling_all(town, &[id]);
    let done = Dispatcher::new(town, &MemorySpawner::default()).dispatch().unwrap();
    let run = done.dispatched[0].run.clone().unwrap().id;
    assert!(matches!(runs::claim(town, &run).unwrap(), Claim::Granted(_)));
    run
}

#[test]
fn what_failed_and_is_retried_starts_again() {
    let town = town_with_rig(Some(1));
    let run = running(&town, "web-1");
    let end = RunEnd::without_status(RunState::Failed, "no");
    assert_eq!(runs::finish(&town, &run, &end).unwrap(), Finished::Closed(Outcome::Failed));

    let retried = retry(&town, &["web-1".to_owned()], false).unwrap().remove(0).unwrap();
    assert!(retried.reopened);
    assert_eq!(shown(&town, "web-1").row.bead.assignee, "");
    let done = Dispatcher::new(&town, &MemorySpawner::default()).dispatch().unwrap();
    assert_eq!(done.dispatched.len(), 1);
}

/// A world in which recovery notices that a run is gone before whoever ended it can say so.
struct Noticed<'a>(&'a Town);

impl World for Noticed<'_> {
    fn host(&self) -> &'static str {
        ""
    }

    fn starter_of(&self, _: &Run) -> Alive {
        Alive::Yes
    }

    fn worker_of(&self, _: &Run) -> Alive {
        Alive::No
    }

    fn end_worker(&self, run: &Run, _: Duration) -> gt_operations::Result<()> {
        assert_eq!(runs::recover(self.0, self)?.lost, std::slice::from_ref(&run.id));
        Ok(())
    }
}

#[test]
fn what_was_cancelled_is_not_scheduled_again_whoever_notices_its_end() {
    let town = town_with_rig(Some(1));
    running(&town, "web-1");
    let cancelled = runs::cancel_in_world(&town, &Noticed(&town), "web-1").unwrap();
    assert_eq!(cancelled.state, RunState::Cancelled);
    let why = queue::why(&town, "web-1").unwrap();
    assert_eq!(why.reasons.iter().map(WaitReason::code).collect::<Vec<_>>(), ["run-cancelled"]);
}
