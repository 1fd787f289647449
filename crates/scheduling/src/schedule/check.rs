//! The checks that every bead passes before it is scheduled, in their order.

use gt_core::merging::MergeRequest;
use gt_core::schedule::{Context, Run, WorkerPlace};
use gt_core::{Bead, ExecutorKind, Prefix, Rig, RigState, Status};

use super::expand::SlingTarget;
use super::request::SlingOptions;
use crate::dispatch::SchedulingSnapshot;
use gt_town::{OperationError, Result};

/// The result of the checks of a bead.
#[derive(Debug)]
pub(super) enum ScheduleVerdict {
    /// It goes to this rig.
    Go(Box<Rig>),
    /// It is that way already.
    Nothing(String),
}

/// The rig a bead goes to: it exists, it is known, and it is the bead's own unless `--force` is given.
pub(super) fn rig<'s>(
    snapshot: &'s SchedulingSnapshot,
    bead: &Bead,
    target: Option<&'s SlingTarget>,
    flags: &SlingOptions,
) -> Result<&'s Rig> {
    if bead.rig.is_none() && bead.id.has_prefix(Prefix::TOWN) {
        return Err(OperationError::rejected(format!(
            "{} is a town-level bead, which is not dispatched; move it to a rig with bd update {} --rig <rig>",
            bead.id, bead.id
        )));
    }
    let own = bead.rig.as_ref().and_then(|slug| snapshot.rig(slug));
    match (target.and_then(SlingTarget::rig), own) {
        (None, Some(own)) => Ok(own),
        (None, None) => Err(OperationError::rejected(format!(
            "{} belongs to no rig; name one, as in gt sling {} <rig>, or add the rig of its prefix",
            bead.id, bead.id
        ))),
        (Some(wanted), Some(own)) if wanted.slug != own.slug && !flags.force => {
            Err(OperationError::rejected(format!(
                "{} belongs to the rig {}, not to {}; leave the target out, or use --force",
                bead.id, own.slug, wanted.slug
            )))
        }
        (Some(wanted), None) if !flags.force => Err(OperationError::rejected(format!(
            "{} belongs to no rig, and its prefix is not that of {}; use --force to send it there",
            bead.id, wanted.slug
        ))),
        (Some(wanted), _) => Ok(wanted),
    }
}

/// Whether a bead may be scheduled for `rig`, as far as its status and the rig go. It may have an open context already,
/// or a run whose work waits to be merged.
pub(super) fn check_bead(
    snapshot: &SchedulingSnapshot,
    bead: &Bead,
    rig: &Rig,
    target: Option<&SlingTarget>,
    (open, merging): (Option<&Context>, Option<&MergeRequest>),
    flags: &SlingOptions,
) -> Result<ScheduleVerdict> {
    if let Some(context) = open {
        return Ok(ScheduleVerdict::Nothing(format!("already scheduled ({})", context.id)));
    }
    let place = target.and_then(SlingTarget::place);
    if bead.status == Status::Closed {
        return Err(OperationError::rejected(format!(
            "{} is closed; open it again first with bd reopen {}",
            bead.id, bead.id
        )));
    }
    if let Some(run) = snapshot.run_of(&bead.id) {
        return running(bead, run, target);
    }
    let verdict = match merging {
        Some(request) => done_already(bead, request, flags)?,
        None => taken(bead, target, place, flags)?,
    };
    if let Some(verdict) = verdict {
        return Ok(verdict);
    }
    takes(snapshot, bead, rig, place)?;
    Ok(ScheduleVerdict::Go(Box::new(rig.clone())))
}

/// Whether a rig takes a bead, and can do anything with it.
pub(super) fn takes(
    snapshot: &SchedulingSnapshot,
    bead: &Bead,
    rig: &Rig,
    place: Option<&WorkerPlace>,
) -> Result<()> {
    if !bead.issue_type.is_slingable(rig.executor) {
        let said = match rig.executor {
            ExecutorKind::Pull => "which agents that ask for work are not given",
            ExecutorKind::Tmux | ExecutorKind::Process | ExecutorKind::Ssh | ExecutorKind::None => {
                "which is not dispatched; task, bug, feature and chore are"
            }
        };
        return Err(OperationError::rejected(format!(
            "{} is of type {}, {said}; change it with bd update {} --type task if it is work",
            bead.id, bead.issue_type, bead.id
        )));
    }
    can_run(snapshot, rig, place)
}

/// A live run is never overridden.
fn running(bead: &Bead, run: &Run, target: Option<&SlingTarget>) -> Result<ScheduleVerdict> {
    let same = target.is_some_and(|target| {
        target.rig().is_none_or(|rig| rig.slug == run.rig)
            && target.place().is_none_or(|place| place.as_str() == run.agent)
    });
    if same {
        return Ok(ScheduleVerdict::Nothing(format!("already with {} ({})", run.agent, run.id)));
    }
    Err(OperationError::rejected(format!(
        "{} is with {} ({}); end that first with gt unsling {} or gt run cancel {}",
        bead.id, run.agent, run.id, bead.id, run.id
    )))
}

/// The work of the bead waits to be merged: to have it done again is to give that up.
fn done_already(
    bead: &Bead,
    request: &MergeRequest,
    flags: &SlingOptions,
) -> Result<Option<ScheduleVerdict>> {
    if flags.force {
        return Ok(None);
    }
    let id = &bead.id;
    Err(OperationError::rejected(format!(
        "{id} is done: {}; gt mq show {} says more, and gt sling {id} --force has it done again without that work",
        request.state_reason(),
        request.id
    )))
}

/// The message about work that waits to be merged when its bead is slung all the same.
pub(super) fn left_out(request: &MergeRequest) -> String {
    format!(
        "{} does not land any more: {} stays, and the new run begins without it",
        request.id, request.branch
    )
}

/// Whether the holder of a bead is the target that it was slung to.
fn is_with(holder: &str, target: &SlingTarget) -> bool {
    match target {
        SlingTarget::Place(_, place) | SlingTarget::Agent(place) => place.as_str() == holder,
        SlingTarget::Rig(rig) => holder.split('/').next() == Some(rig.slug.as_str()),
    }
}

/// Refuses a bead that has a holder, but no run.
fn taken(
    bead: &Bead,
    target: Option<&SlingTarget>,
    place: Option<&WorkerPlace>,
    flags: &SlingOptions,
) -> Result<Option<ScheduleVerdict>> {
    let holder = bead.assignee.as_str();
    let same = !holder.is_empty() && target.is_some_and(|target| is_with(holder, target));
    let by = if holder.is_empty() { String::new() } else { format!(" by {holder}") };
    match &bead.status {
        Status::Hooked | Status::InProgress | Status::Pinned if same => {
            Ok(Some(ScheduleVerdict::Nothing(format!("already with {holder}"))))
        }
        Status::Pinned => Err(OperationError::rejected(format!(
            "{} is pinned, a reference and no work; open it first with bd update {} --status open",
            bead.id, bead.id
        ))),
        status @ (Status::Hooked | Status::InProgress) if !flags.force => {
            Err(OperationError::rejected(format!(
                "{} is {status}{by}, without a run; use --force to sling it anyway",
                bead.id
            )))
        }
        _ if !holder.is_empty()
            && !flags.force
            && place.is_none_or(|place| place.as_str() != holder) =>
        {
            Err(OperationError::rejected(format!(
                "{} is assigned to {holder}; use --force to sling it anyway",
                bead.id
            )))
        }
        _ => Ok(None),
    }
}

/// Whether anything can be run in a rig at all.
fn can_run(snapshot: &SchedulingSnapshot, rig: &Rig, place: Option<&WorkerPlace>) -> Result<()> {
    if rig.state == RigState::Docked {
        return Err(OperationError::rejected(format!(
            "the rig {} is docked; take it back into service with gt rig undock {}",
            rig.slug, rig.slug
        )));
    }
    if place.is_some_and(WorkerPlace::is_crew) {
        return Ok(());
    }
    if let Some(agent) = place.filter(|place| place.is_agent())
        && rig.executor != ExecutorKind::Pull
    {
        return Err(OperationError::rejected(format!(
            "{agent} is an agent that asks for work, and the rig {} starts its workers itself; leave {agent} out",
            rig.slug
        )));
    }
    match rig.executor {
        ExecutorKind::Pull | ExecutorKind::None => Ok(()),
        ExecutorKind::Process | ExecutorKind::Tmux | ExecutorKind::Ssh => {
            if let Some(command) = snapshot.settings.commands.get(&rig.slug) {
                let sample = [("bead", "x-1"), ("run", "x-1#1"), ("title", "x")];
                gt_core::command_template::expand(command, &sample).map_err(|why| {
                    OperationError::rejected(format!("rig.{}.command: {why}", rig.slug))
                })?;
            }
            if snapshot.settings.knows_how(rig) {
                return Ok(());
            }
            Err(OperationError::rejected(format!(
                "the rig {} does not know how to run anything; say how with \
                 gt config set rig.{}.command '<program> {{bead}}'",
                rig.slug, rig.slug
            )))
        }
    }
}
