//! From a sling to a closed bead, over an in-memory town and a spawner that starts nothing.

use std::time::Duration;

use gt_beads::beads::{self, NewBead};
use gt_core::decide::{DispatchOrder, WaitReason};
use gt_core::schedule::{ContextOrigin, Run, RunEnd, RunId, RunState, SlingParameters, Workplace};
use gt_core::{BeadId, ExecutorKind, Outcome, Priority, Rig, RigSlug, Status, Timestamp};
use gt_execution::runs;
use gt_scheduling::dispatch::{Dispatcher, MemorySpawner};
use gt_scheduling::processes::{Alive, ProcessProbe};
use gt_scheduling::queue;
use gt_scheduling::run_transitions::{Claim, FinishEffect};
use gt_scheduling::schedule::{
    SlingOptions, SlingOutcome, SlingReport, SlingRequest, retry, sling,
};
use gt_store::{Authorship, NewContext, SettingScope, Store, StoreError};
use gt_town::rigs::RigChange;
use gt_town::scheduler_settings::Overrides;
use gt_town::{Town, rigs, settings};

use crate::town::{town, town_over};

/// A town with a rig that can run things, and a cap if one is given.
pub(crate) fn town_with_rig(cap: Option<u32>) -> Town {
    furnished(town(), cap)
}

fn furnished(town: Town, cap: Option<u32>) -> Town {
    let rig = rigs::NewRig {
        name: "web",
        repository: None,
        prefix: Some("web"),
        branch: None,
        executor: ExecutorKind::Process,
    };
    rigs::add(&town, &rig).unwrap();
    settings::set(
        &town,
        "rig.web.command",
        "/bin/true {bead}",
        gt_scheduling::runtimes::check_name,
    )
    .unwrap();
    if let Some(cap) = cap {
        settings::set(
            &town,
            "scheduler.max_polecats",
            &cap.to_string(),
            gt_scheduling::runtimes::check_name,
        )
        .unwrap();
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

pub(crate) fn shown(town: &Town, id: &str) -> beads::BeadDetails {
    beads::show(town, &[id.to_owned()]).unwrap().remove(0).unwrap()
}

#[test]
fn a_slung_bead_waits_for_a_slot_runs_and_closes() {
    let town = town_with_rig(Some(1));
    for id in ["web-1", "web-2"] {
        bead(&town, id);
    }
    let report = sling_all(&town, &["web-1", "web-2"]);
    assert!(
        report.entries.iter().all(|entry| matches!(entry.outcome, SlingOutcome::Scheduled(..)))
    );
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

    assert!(matches!(
        gt_scheduling::run_transitions::claim(&town, &run, &Workplace::default(), None).unwrap(),
        Claim::Granted(_)
    ));
    assert!(matches!(
        gt_scheduling::run_transitions::claim(&town, &run, &Workplace::default(), None).unwrap(),
        Claim::Refused(_)
    ));
    let end = RunEnd::without_status(RunState::Done, "done");
    assert_eq!(
        gt_scheduling::run_transitions::finish(&town, &run, &end).unwrap(),
        FinishEffect::Closed(Outcome::Success)
    );
    assert_eq!(
        gt_scheduling::run_transitions::finish(&town, &run, &end).unwrap(),
        FinishEffect::Already
    );
    assert_eq!(shown(&town, "web-1").row.bead.status, Status::Closed);

    let next = Dispatcher::new(&town, &spawner).dispatch().unwrap();
    assert_eq!(next.dispatched.len(), 1);
    assert_eq!(spawner.asked().last().map(ToString::to_string).as_deref(), Some("web-2#1"));
}

#[test]
fn a_rig_of_the_executor_ssh_starts_nothing_in_a_town_on_a_file() {
    let town = town_with_rig(None);
    bead(&town, "web-1");
    town.write(|writer| {
        let rig = writer.rig("web")?.unwrap();
        writer.change_rig(&rig, &Rig { executor: ExecutorKind::Ssh, ..rig.clone() })?;
        // A setting of an earlier program is no error.
        writer.put_setting(SettingScope::Town, "rig.web.ssh.host", Some("builder"))?;
        Ok(())
    })
    .unwrap();
    sling_all(&town, &["web-1"]);
    let spawner = MemorySpawner::default();
    let done = Dispatcher::new(&town, &spawner).dispatch().unwrap();
    assert_eq!((done.dispatched.len(), spawner.asked().len()), (0, 0));
    let why = queue::why(&town, "web-1").unwrap();
    assert_eq!(why.reasons.iter().map(WaitReason::code).collect::<Vec<_>>(), ["executor-removed"]);
    rigs::pin_ssh_rigs(&town).unwrap();
    assert_eq!(rigs::status(&town, "web").unwrap().0.executor, ExecutorKind::Ssh);

    let process = RigChange::parse("executor", "process").unwrap();
    rigs::change(&town, "web", &process).unwrap();
    let done = Dispatcher::new(&town, &spawner).dispatch().unwrap();
    assert_eq!(done.dispatched.len(), 1, "the wait is over with the executor");
}

/// A bead with a running run.
fn running(town: &Town, id: &str) -> RunId {
    bead(town, id);
    sling_all(town, &[id]);
    let done = Dispatcher::new(town, &MemorySpawner::default()).dispatch().unwrap();
    let run = done.dispatched[0].run.clone().unwrap().id;
    assert!(matches!(
        gt_scheduling::run_transitions::claim(town, &run, &Workplace::default(), None).unwrap(),
        Claim::Granted(_)
    ));
    run
}

#[test]
fn a_failed_bead_starts_again_when_retried() {
    let town = town_with_rig(Some(1));
    let run = running(&town, "web-1");
    let end = RunEnd::without_status(RunState::Failed, "no");
    assert_eq!(
        gt_scheduling::run_transitions::finish(&town, &run, &end).unwrap(),
        FinishEffect::Closed(Outcome::Failed)
    );

    let retried = retry(&town, &["web-1".to_owned()], false).unwrap().remove(0).unwrap();
    assert!(retried.reopened);
    assert_eq!(shown(&town, "web-1").row.bead.assignee, "");
    let done = Dispatcher::new(&town, &MemorySpawner::default()).dispatch().unwrap();
    assert_eq!(done.dispatched.len(), 1);
}

#[test]
fn retry_now_ends_the_cooldown_of_a_bead_that_was_lost_twice() {
    let town = town_with_rig(Some(1));
    let spawner = MemorySpawner::default();
    let mut run = running(&town, "web-1");
    let lost = RunEnd::without_status(RunState::Lost, "gone");
    assert_eq!(
        gt_scheduling::run_transitions::finish(&town, &run, &lost).unwrap(),
        FinishEffect::Rescheduled
    );
    // The first redispatch starts at once; the second waits for the end of the cooldown.
    run =
        Dispatcher::new(&town, &spawner).dispatch().unwrap().dispatched[0].run.clone().unwrap().id;
    assert!(matches!(
        gt_scheduling::run_transitions::claim(&town, &run, &Workplace::default(), None).unwrap(),
        Claim::Granted(_)
    ));
    assert_eq!(
        gt_scheduling::run_transitions::finish(&town, &run, &lost).unwrap(),
        FinishEffect::Rescheduled
    );
    assert_eq!(Dispatcher::new(&town, &spawner).dispatch().unwrap().dispatched.len(), 0);
    let names = ["web-1".to_owned()];
    assert!(retry(&town, &names, false).unwrap().remove(0).is_err());

    let retried = retry(&town, &names, true).unwrap().remove(0).unwrap();

    assert!(retried.hastened && !retried.reopened);
    assert_eq!(retried.context.unwrap().next_attempt_at, None);
    assert_eq!(Dispatcher::new(&town, &spawner).dispatch().unwrap().dispatched.len(), 1);
}

/// A probe in which recovery notices that a run is gone before the process that ended it can say so.
struct Noticed<'a>(&'a Town);

impl ProcessProbe for Noticed<'_> {
    fn host(&self) -> &'static str {
        ""
    }

    fn starter_of(&self, _: &Run) -> Alive {
        Alive::Yes
    }

    fn worker_of(&self, _: &Run) -> Alive {
        Alive::No
    }

    fn end_worker(&self, run: &Run, _: Duration) -> gt_town::Result<()> {
        assert_eq!(runs::recover(self.0, self)?.lost, std::slice::from_ref(&run.id));
        Ok(())
    }
}

#[test]
fn a_cancelled_bead_is_not_scheduled_again_when_recovery_notices_its_end() {
    let town = town_with_rig(Some(1));
    running(&town, "web-1");
    let cancelled = runs::cancel_with_processes(&town, &Noticed(&town), "web-1").unwrap();
    assert_eq!(cancelled.state, RunState::Cancelled);
    let why = queue::why(&town, "web-1").unwrap();
    assert_eq!(why.reasons.iter().map(WaitReason::code).collect::<Vec<_>>(), ["run-cancelled"]);
}

#[test]
fn a_cap_for_one_cycle_holds_for_everything_that_it_starts() {
    // Given direct mode, where nothing caps what was slung,
    let town = town_with_rig(None);
    for id in ["web-1", "web-2", "web-3"] {
        bead(&town, id);
    }
    sling_all(&town, &["web-1", "web-2", "web-3"]);
    let spawner = MemorySpawner::default();

    let overrides = Overrides { max_polecats: Some(1), ..Overrides::default() };
    let capped = Dispatcher::new(&town, &spawner).with_overrides(overrides).dispatch().unwrap();
    assert_eq!((capped.dispatched.len(), capped.skipped), (1, 2));

    let rest = Dispatcher::new(&town, &spawner).dispatch().unwrap();
    assert_eq!(rest.dispatched.len(), 2);
}

#[test]
fn starts_keep_their_distance_however_many_there_are() {
    let town = town_with_rig(None);
    settings::set(&town, "scheduler.spawn_delay", "2s", gt_scheduling::runtimes::check_name)
        .unwrap();
    let ids: Vec<String> = (0..70).map(|number| format!("web-{number}")).collect();
    for id in &ids {
        bead(&town, id);
    }
    sling_all(&town, &ids.iter().map(String::as_str).collect::<Vec<_>>());
    let spawner = MemorySpawner::default();
    let pauses = std::sync::atomic::AtomicUsize::new(0);
    let count = |_| {
        pauses.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };

    let done = Dispatcher::new(&town, &spawner).with_pause(count).dispatch().unwrap();

    assert_eq!(done.dispatched.len(), 70);
    assert_eq!(pauses.into_inner(), 69, "between all of them, and not after the last");
}

#[test]
fn a_bead_that_cannot_start_is_reported_before_the_cycle() {
    // Given a bead whose formula is not there any more,
    let store = Store::in_memory().unwrap();
    let town = furnished(town_over(store.clone()), None);
    let bead = bead(&town, "web-1");
    let new = NewContext {
        parameters: SlingParameters { formula: Some("mol-gone".to_owned()), ..Default::default() },
        ..NewContext::plain(
            bead,
            RigSlug::parse("web").unwrap(),
            Priority::default(),
            ContextOrigin::Sling,
        )
    };
    let by = Authorship { actor: "me".to_owned(), at: Timestamp::from_nanos(1), worker: None };
    let scheduled: Result<_, StoreError> =
        store.write(&by, |writer| writer.insert_contexts(vec![new]));
    scheduled.unwrap();

    // when a person asks before the cycle,
    let why = queue::why(&town, "web-1").unwrap();
    let spawner = MemorySpawner::default();
    let rehearsal = Dispatcher::new(&town, &spawner).with_dry_run(true).dispatch().unwrap();

    // then they hear what the cycle does.
    assert_eq!(codes(&why.reasons), ["cannot-start"]);
    assert_eq!((rehearsal.dispatched.len(), rehearsal.errors.len()), (0, 1));
    let done = Dispatcher::new(&town, &spawner).dispatch().unwrap();
    assert_eq!((done.dispatched.len(), done.errors.len()), (0, 1));
    assert_eq!(codes(&queue::why(&town, "web-1").unwrap().reasons), ["quarantined"]);
}

#[test]
fn a_review_only_bead_stays_open_when_it_is_done() {
    let town = town_with_rig(None);
    bead(&town, "web-1");
    let flags = SlingOptions { review_only: true, ..SlingOptions::default() };
    let arguments = vec!["web-1".to_owned()];
    sling(&town, &SlingRequest { arguments, flags, ..SlingRequest::default() }).unwrap();
    Dispatcher::new(&town, &MemorySpawner::default()).dispatch().unwrap();
    let run = RunId::parse("web-1#1").unwrap();
    gt_scheduling::run_transitions::claim(&town, &run, &Workplace::default(), None).unwrap();

    let end = RunEnd::without_status(RunState::Done, "done");
    assert_eq!(
        gt_scheduling::run_transitions::finish(&town, &run, &end).unwrap(),
        FinishEffect::Reopened
    );

    assert_eq!(shown(&town, "web-1").row.bead.status, Status::Open);
    assert_eq!(codes(&queue::why(&town, "web-1").unwrap().reasons), ["review"]);
    let again = Dispatcher::new(&town, &MemorySpawner::default()).dispatch().unwrap();
    assert_eq!(again.dispatched.len(), 0);
}

fn codes(reasons: &[WaitReason]) -> Vec<&'static str> {
    reasons.iter().map(WaitReason::code).collect()
}

#[test]
fn a_program_may_choose_who_goes_first() {
    let town = town_with_rig(Some(1));
    for (id, priority) in [("web-1", 3), ("web-2", 0)] {
        let priority = Priority::new(priority).unwrap();
        let new = NewBead {
            title: id.to_owned(),
            id: Some(id.to_owned()),
            priority,
            ..NewBead::default()
        };
        beads::create(&town, &new, false).unwrap();
    }
    sling_all(&town, &["web-1", "web-2"]);
    let spawner = MemorySpawner::default();
    let first = |dispatcher: Dispatcher<'_>| {
        let done = dispatcher.with_dry_run(true).dispatch().unwrap();
        done.dispatched.into_iter().map(|started| started.bead.to_string()).collect::<Vec<_>>()
    };

    assert_eq!(first(Dispatcher::new(&town, &spawner)), ["web-2"], "the setting says: by priority");
    let fifo = Dispatcher::new(&town, &spawner).with_order(DispatchOrder::Fifo);
    assert_eq!(first(fifo), ["web-1"]);
}
