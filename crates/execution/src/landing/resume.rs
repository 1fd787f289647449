//! Work that was on its way when its process died.

use std::collections::HashMap;

use gt_core::message::{MessageBody, Severity};
use gt_core::schedule::{DoneStatus, Merge, OriginDelay, Run, RunId};
use gt_core::{Outcome, RigSlug, Sender, Status};
use gt_executors::git::Commit;
use gt_store::Writer;

use super::checkout::forget_candidate;
use super::delivery_mode::DeliveryMode;
use super::end::{EndReport, close, end_into_queue};
use super::land::{AcceptedWork, LandResult, LandingWait, OriginCheck};
use super::waiting::note_waiting;
use crate::trees::{NotPrepared, occupy};
use gt_beads::beads::{Close, close_in};
use gt_beads::messages::escalate_in;
use gt_scheduling::processes::{Alive, ProcessProbe};
use gt_town::error::with_causes;
use gt_town::tree_paths::Trees;
use gt_town::{Result, Town};

/// The outcome for work that was on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResumeOutcome {
    /// The origin has it, and that is recorded; its run is over.
    Landed,
    /// It is not known yet: the origin does not answer, for this reason.
    Unknown(String),
    /// It is still on its way: the checkout that it lands in cannot take it.
    Held,
    /// The origin does not have it, and it is not on its way any more.
    Stays,
}

/// Asks the origin about every push without a recorded end whose worker is gone. Work that is there is confirmed, and
/// work that is not there is pushed again, unless another process is landing there. Returns the runs for which that
/// failed, and why.
pub fn resume(town: &Town, processes: &dyn ProcessProbe) -> Result<Vec<(RunId, String)>> {
    let mut problems = Vec::new();
    let mut unreachable: HashMap<RigSlug, String> = HashMap::new();
    for run in town.read(|reader| Ok(reader.landing_runs()?))? {
        if !run.is_on(processes.host()) || processes.worker_of(&run) != Alive::No {
            continue;
        }
        let is_wanted = run.state.is_live() && run.ended_by.is_empty();
        // An origin that does not answer is not asked again and again.
        if let Some(why) = unreachable.get(&run.rig) {
            if is_wanted {
                note_waiting(town, &run, OriginDelay::Unreachable, why)?;
            }
            continue;
        }
        match in_its_tree(town, &run, || complete(town, &run, is_wanted, LandingWait::Never)) {
            None | Some(Ok(ResumeOutcome::Landed | ResumeOutcome::Held | ResumeOutcome::Stays)) => {
            }
            Some(Ok(ResumeOutcome::Unknown(why))) => {
                unreachable.insert(run.rig, why);
            }
            // A store that is away is away for all of them.
            Some(Err(error)) if error.may_pass() => return Err(error),
            Some(Err(error)) => {
                if is_wanted {
                    note_waiting(town, &run, OriginDelay::Unreachable, &with_causes(&error))?;
                }
                problems.push((run.id, error.to_string()));
            }
        }
    }
    Ok(problems)
}

/// Acts on a run while holding its tree: a process that ends a live run holds it too. Nothing if another process has
/// it.
fn in_its_tree<T>(town: &Town, run: &Run, act: impl FnOnce() -> Result<T>) -> Option<Result<T>> {
    if !run.state.is_live() {
        return Some(act());
    }
    let rig = match town.read(|reader| Ok(reader.rig(run.rig.as_str())?)) {
        Ok(rig) => rig,
        Err(error) => return Some(Err(error)),
    };
    match rig.map(|rig| occupy(town, &rig, run)).transpose() {
        Ok(_lock) => Some(act()),
        Err(NotPrepared::Busy(_) | NotPrepared::Away(_)) => None,
        Err(NotPrepared::Failed(error)) => Some(Err(error)),
    }
}

/// Asks about one, whose worker can do nothing any more. It is pushed again only if it is still wanted; if that has to
/// wait, that is written down.
pub(crate) fn complete(
    town: &Town,
    run: &Run,
    is_wanted: bool,
    patience: LandingWait,
) -> Result<ResumeOutcome> {
    let (rig, context) = town.read(|reader| {
        Ok((reader.rig(run.rig.as_str())?, reader.context_by_number(run.context)?))
    })?;
    let said = run.said.unwrap_or(DoneStatus::Completed);
    let way =
        DeliveryMode::of(said, context.as_ref().map(|context| &context.parameters), Merge::Direct);
    let trees = rig.as_ref().and_then(|rig| Trees::of(town, rig).map(|trees| (rig, trees)));
    let accepted = Commit::parse(&run.landing.accepted);
    let (Some((rig, trees)), Some(accepted), Some(branch)) = (trees, accepted, way.branch(run))
    else {
        town.write(|writer| Ok(writer.give_up_landing(run)?))?;
        return Ok(ResumeOutcome::Stays);
    };
    let repository = &trees.repository();
    let accepted = &accepted;
    let delivery = AcceptedWork { town, rig, run, said, way, accepted, branch, repository };
    let landed = if is_wanted {
        delivery.land(patience)?
    } else {
        match delivery.arrived()? {
            OriginCheck::Yes(commit) => LandResult::There(commit),
            OriginCheck::Unknown(why) => LandResult::Unreachable(why),
            OriginCheck::No => {
                delivery.give_up()?;
                LandResult::Over
            }
        }
    };
    match landed {
        LandResult::There(commit) => {
            town.write(|writer| {
                writer.confirm_landing(run, branch, commit.as_str())?;
                let is_over = match way {
                    DeliveryMode::PushBranch => !end_into_queue(
                        writer,
                        run,
                        &EndReport::only(said),
                        accepted.as_str(),
                        way,
                        false,
                    )?,
                    DeliveryMode::Land | DeliveryMode::Keep | DeliveryMode::Queue => {
                        !close(writer, town, run, &EndReport::only(said))?
                    }
                };
                if is_over {
                    landed_after_all(writer, run, branch, commit.as_str())?;
                }
                Ok(())
            })?;
            forget_candidate(repository, run, branch);
            Ok(ResumeOutcome::Landed)
        }
        LandResult::Held(held) => {
            note_waiting(town, run, OriginDelay::CheckoutInTheWay, &held.to_string())?;
            Ok(ResumeOutcome::Held)
        }
        LandResult::Unreachable(why) | LandResult::Stuck(why) => {
            if is_wanted {
                note_waiting(town, run, OriginDelay::Unreachable, &why)?;
            }
            Ok(ResumeOutcome::Unknown(why))
        }
        // The run is lost like any other, and its work is saved.
        LandResult::Conflict { .. }
        | LandResult::Gone
        | LandResult::Rejected(_)
        | LandResult::Over => Ok(ResumeOutcome::Stays),
    }
}

/// Closes the bead of a run that was ended while the origin did not answer, and whose work turns out to have arrived:
/// doing it again would be doing it twice.
fn landed_after_all(writer: &mut Writer<'_>, run: &Run, branch: &str, commit: &str) -> Result<()> {
    let Some(bead) = writer.bead(&run.id.bead)? else { return Ok(()) };
    if bead.status == Status::Closed {
        return Ok(());
    }
    let short: String = commit.chars().take(12).collect();
    let landed = format!("{} had landed on {branch} as {short} before it was ended", run.id);
    let newer = writer.runs_of(&run.id.bead)?.into_iter().find(|other| other.state.is_live());
    let Some(newer) = newer else {
        let how = Close {
            reasons: vec![landed],
            outcome: Some(Outcome::Success),
            force: true,
            session: None,
        };
        close_in(writer, &run.id.bead, &how, 0, None)?;
        return Ok(());
    };
    let body = MessageBody::parse(&format!(
        "{landed}, and {} is at the same; gt run cancel {} ends it, if what has landed is enough",
        newer.id, newer.id
    ))?;
    let from = Sender::Worker(run.id.clone());
    escalate_in(writer, from, Some(run.id.bead.clone()), body, Severity::Medium)?;
    Ok(())
}
