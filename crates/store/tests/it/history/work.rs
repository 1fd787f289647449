//! The operations of the scheduler in a random history: contexts come and go, runs begin and end.

use gt_core::decide::START_FAILURES_MAX;
use gt_core::schedule::{
    CloseReason, ContextOrigin, Run, RunEnd, RunState, SlingParameters, WorkerPlace, Workplace,
};
use gt_core::{BeadChangeKind, BeadId, ExecutorKind, RigSlug, Status, Uid};
use gt_store::{NewContext, StoreError, Writer};
use proptest::prelude::*;

use super::model::Standing;
use super::step::{Deferral, Place, deferral, id, place, save};
use crate::subjects::NOW;

#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// A bead that is not scheduled is scheduled.
    Schedule(Place, Manner),
    /// An open context is closed.
    Unschedule(Place, CloseReason),
    /// A start failed.
    Postpone(Place, Deferral),
    /// The beads whose date has passed are woken.
    Wake,
    /// A run of an open bead is begun.
    Start(Place),
    /// A worker takes a run that is being started.
    Claim(Place),
    /// A run is over, and its bead too, or open again.
    End(Place, bool),
}

/// How something is scheduled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    rig: &'static str,
    worker: Option<&'static str>,
    account: Option<&'static str>,
    gated: bool,
    forced: bool,
    until: Deferral,
}

impl Manner {
    pub(crate) const PLAIN: Self = Self {
        rig: "gear",
        worker: None,
        account: None,
        gated: false,
        forced: false,
        until: Deferral::None,
    };
}

fn manner() -> impl Strategy<Value = Manner> {
    let rig = prop::sample::select(vec!["gear", "other"]);
    let worker = prop::option::weighted(0.2, prop::sample::select(vec!["ann", "Bob"]));
    let account = prop::option::weighted(0.2, Just("work"));
    (rig, worker, account, any::<bool>(), any::<bool>(), deferral()).prop_map(
        |(rig, worker, account, gated, forced, until)| Manner {
            rig,
            worker,
            account,
            gated,
            forced,
            until,
        },
    )
}

pub(crate) fn work() -> impl Strategy<Value = Work> {
    let reason = prop::sample::select(CloseReason::ALL.to_vec());
    prop_oneof![
        6 => (place(), manner()).prop_map(|(place, manner)| Work::Schedule(place, manner)),
        2 => (place(), reason).prop_map(|(place, reason)| Work::Unschedule(place, reason)),
        1 => (place(), deferral()).prop_map(|(place, until)| Work::Postpone(place, until)),
        1 => Just(Work::Wake),
        3 => place().prop_map(Work::Start),
        2 => place().prop_map(Work::Claim),
        2 => (place(), any::<bool>()).prop_map(|(place, done)| Work::End(place, done)),
    ]
}

impl Work {
    pub(super) fn perform(&self, writer: &mut Writer<'_>) -> Result<(), StoreError> {
        match self {
            Self::Schedule(place, manner) => schedule(writer, &id(*place), *manner),
            Self::Unschedule(place, reason) => match writer.open_context(&id(*place))? {
                Some(context) => writer.close_context(&context, *reason, ""),
                None => Ok(()),
            },
            Self::Postpone(place, until) => match writer.open_context(&id(*place))? {
                Some(context) if !context.starting => {
                    let failures = (context.failures + 1) % START_FAILURES_MAX;
                    writer.postpone_context(&context, failures, "no room", until.instant())
                }
                _ => Ok(()),
            },
            Self::Wake => writer.wake_contexts(NOW),
            Self::Start(place) => start(writer, *place),
            Self::Claim(place) => {
                let Some(run) = writer.live_run(&id(*place))? else { return Ok(()) };
                if !writer.claim_run(&run, &Workplace::default())? {
                    return Ok(());
                }
                if let Some(context) = writer.open_context(&id(*place))? {
                    writer.close_context(&context, CloseReason::Dispatched, "")?;
                }
                let status = Status::InProgress;
                save(writer, *place, BeadChangeKind::StatusChanged, |bead| bead.status = status)
            }
            Self::End(place, done) => {
                if !release(writer, *place)? {
                    return Ok(());
                }
                save(writer, *place, BeadChangeKind::StatusChanged, |bead| {
                    let status = if *done { Standing::CLOSED } else { Standing::OPEN };
                    bead.status = status.status();
                    bead.closed_at = done.then_some(NOW);
                })
            }
        }
    }
}

fn schedule(writer: &mut Writer<'_>, bead: &BeadId, manner: Manner) -> Result<(), StoreError> {
    let Some(found) = writer.bead(bead)? else { return Ok(()) };
    if writer.open_context(bead)?.is_some() {
        return Ok(());
    }
    let new = NewContext {
        bead: bead.clone(),
        rig: RigSlug::trusted(manner.rig.to_owned()),
        place: manner.worker.map(|name| WorkerPlace::trusted(name.to_owned())),
        account: manner.account.map(str::to_owned),
        gated: manner.gated,
        forced: manner.forced,
        priority: found.priority,
        origin: ContextOrigin::Sling,
        parameters: SlingParameters::default(),
        enqueued_at: None,
        enqueued_by: None,
        next_attempt_at: manner.until.instant(),
        failures: 0,
        attempts: 0,
    };
    writer.insert_contexts(vec![new]).map(drop)
}

fn start(writer: &mut Writer<'_>, place: Place) -> Result<(), StoreError> {
    let bead = id(place);
    if writer.bead(&bead)?.is_none_or(|bead| bead.status != Status::Open) {
        return Ok(());
    }
    let context = writer.open_context(&bead)?;
    if let Some(context) = &context {
        writer.set_starting(context, true)?;
    }
    let run = writer.next_run_id(&bead)?;
    let uid = Uid::of_bead(&BeadId::trusted(run.to_string()), NOW);
    writer.insert_run(&Run {
        agent: "gear/polecats/toast".to_owned(),
        host: "here".to_owned(),
        starter: "lock".to_owned(),
        created_by: writer.actor().to_owned(),
        ..Run::begun(
            run,
            uid,
            context.map_or(0, |context| context.number),
            RigSlug::trusted("gear".to_owned()),
            ExecutorKind::Process,
            writer.now(),
        )
    })?;
    save(writer, place, BeadChangeKind::StatusChanged, |bead| bead.status = Status::Hooked)
}

/// Ends the live run of a bead, which is necessary before another takes the bead; says whether there was one.
pub(super) fn release(writer: &mut Writer<'_>, place: Place) -> Result<bool, StoreError> {
    let Some(run) = writer.live_run(&id(place))? else { return Ok(false) };
    let end = RunEnd::without_status(RunState::Cancelled, "another agent took it");
    writer.end_run(&run, &end, "another agent")?;
    if let Some(context) = writer.open_context(&id(place))? {
        writer.set_starting(&context, false)?;
    }
    Ok(true)
}
