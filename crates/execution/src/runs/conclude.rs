//! The meaning of the end of an agent for its run.

use gt_core::Rig;
use gt_core::runtime::{ExitZero, Runtime};
use gt_core::schedule::{
    Context, DoneStatus, Run, RunEnd, RunLimit, RunLoss, RunState, WorkerPlace,
};
use gt_executors::runs::{AgentEnd, RunFiles};

use super::spawner::with_causes;
use super::worker_calls::void_token;
use crate::landing::{DoneRefusal, DoneReport, end_empty_handed, finish_work, is_untouched};
use crate::trees::save;
use gt_scheduling::processes::run_end;
use gt_scheduling::run_transitions::limited;
use gt_scheduling::run_transitions::{FinishEffect, finish};
use gt_scheduling::run_transitions::{last_output, last_words_of};
use gt_scheduling::runtimes::limit_in;
use gt_town::tree_paths::{Trees, git_failed};
use gt_town::{Result, Town};

/// The facts that are known when the worker of a run has ended.
pub(super) struct EndFacts<'a> {
    /// The rig of the run.
    pub(super) rig: &'a Rig,
    /// How it was scheduled, if that is known.
    pub(super) context: Option<&'a Context>,
    /// The runtime of its worker, if that can still be found out.
    pub(super) runtime: Option<&'a Runtime>,
    /// How its agent ended, if a supervisor saw it.
    pub(super) end: Option<AgentEnd>,
    /// The cause of the loss, if no supervisor saw the end.
    pub(super) loss: RunLoss,
}

/// The process that recorded the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndRecorded {
    /// The caller, as far as the end could be recorded.
    Here,
    /// Another process, before.
    Already,
}

impl EndRecorded {
    fn of(finished: &FinishEffect) -> Self {
        match finished {
            FinishEffect::Already => Self::Already,
            FinishEffect::Closed(_)
            | FinishEffect::Rescheduled
            | FinishEffect::Escalated
            | FinishEffect::Reopened => Self::Here,
        }
    }
}

/// Records the end of a run whose supervisor saw it; `loss` is its cause, if it is a loss.
pub(super) fn conclude(
    town: &Town,
    rig: &Rig,
    run: &Run,
    context: &Context,
    runtime: &Runtime,
    (end, loss): (AgentEnd, RunLoss),
) -> Result<()> {
    if run.workplace.tree.is_empty() {
        let Some(run) = &live(town, run)? else { return Ok(()) };
        if let Some(limit) = over_limit(run, Some(end)) {
            return finish(town, &run.id, &ended_over(limit, Some(end))).map(drop);
        }
        let end = RunEnd { loss, ..run_end(end) };
        if matches!(end.state, RunState::Failed | RunState::Lost)
            && let Some(limit) = limit_in(runtime, &last_output(town, &run.id), town.now())
        {
            return limited(town, &run.id, limit.at, &limit.said).map(drop);
        }
        return finish(town, &run.id, &end).map(drop);
    }
    let (context, runtime) = (Some(context), Some(runtime));
    conclude_in_tree(town, run, &EndFacts { rig, context, runtime, end: Some(end), loss }).map(drop)
}

/// Records how a run with a tree ended. A result that its worker reported stays; otherwise the exit of its program
/// and the content of its tree decide. Work that was not accepted is saved. Only the holder of the tree calls this,
/// when no process of the run is left that could change anything.
///
/// Even if git fails, the run ends: as lost, with its tree kept as it is.
pub(super) fn conclude_in_tree(
    town: &Town,
    run: &Run,
    ending: &EndFacts<'_>,
) -> Result<EndRecorded> {
    // No process of the run can land anything now, so the credentials of the origin are not kept longer.
    let files = RunFiles::of(&town.runs_directory(), &run.id.to_string());
    let _ = std::fs::remove_file(files.environment_path());
    void_token(&files);
    let Some(run) = live(town, run)? else { return Ok(EndRecorded::Already) };
    let is_wanted = ending.end != Some(AgentEnd::Cancelled) && run.ended_by.is_empty();
    let run = &run;
    let meaning = if let Some(limit) = over_limit(run, ending.end) {
        EndMeaning::Ends(ended_over(limit, ending.end))
    } else if is_wanted {
        meaning(town, run, ending)?
    } else {
        EndMeaning::Ends(cancelled(ending.end))
    };
    let (end, is_empty_handed) = match meaning {
        EndMeaning::Accepted => return Ok(EndRecorded::Here),
        EndMeaning::Ends(end) => (end, false),
        EndMeaning::EmptyHanded(end) => (end, true),
    };
    // A tree that cannot be saved now is saved before another run gets it.
    let saved = save(town, ending.rig, run);
    if end.state != RunState::Cancelled
        && run.over_limit.is_none()
        && let Some(runtime) = ending.runtime
        && let Some(limit) = limit_in(runtime, &last_output(town, &run.id), town.now())
    {
        return limited(town, &run.id, limit.at, &limit.said)
            .map(|finished| EndRecorded::of(&finished));
    }
    if is_empty_handed {
        let last = last_words_of(town, run).unwrap_or_default();
        let is_here = end_empty_handed(town, run, &end, &last)?;
        return Ok(if is_here { EndRecorded::Here } else { EndRecorded::Already });
    }
    let committed = matches!(saved, Ok(Some(_)));
    let end = RunEnd { committed, loss: ending.loss, ..end };
    finish(town, &run.id, &end).map(|finished| EndRecorded::of(&finished))
}

/// A run as it is now, if it is live.
fn live(town: &Town, run: &Run) -> Result<Option<Run>> {
    let run = town.read(|reader| Ok(reader.run(&run.id)?))?;
    Ok(run.filter(|run| run.state.is_live()))
}

/// The meaning of an agent's end for its run.
enum EndMeaning {
    /// Its work is accepted, and nothing else is to be recorded.
    Accepted,
    /// The run ends like this.
    Ends(RunEnd),
    /// The agent ended well and has done nothing: the run ends like this, and a person is asked.
    EmptyHanded(RunEnd),
}

impl EndMeaning {
    fn of(end: Option<RunEnd>) -> Self {
        end.map_or(Self::Accepted, Self::Ends)
    }
}

/// How a run ends that was not cancelled.
fn meaning(town: &Town, run: &Run, ending: &EndFacts<'_>) -> Result<EndMeaning> {
    let Some(end) = ending.end else {
        let end = RunEnd::without_status(RunState::Lost, taken_by(ending.loss));
        return Ok(EndMeaning::Ends(end));
    };
    let is_review = ending.context.is_some_and(|context| context.parameters.review_only);
    // If git cannot answer, the arms below say what is wrong.
    if end == AgentEnd::Exited(0)
        && !is_review
        && is_untouched(town, ending.rig, run).unwrap_or(false)
    {
        let reason = "it ended with exit status 0, without gt done and without a change";
        let end = RunEnd { state: RunState::Failed, reason: reason.to_owned(), ..run_end(end) };
        return Ok(EndMeaning::EmptyHanded(end));
    }
    let lost = |reason: String| {
        Ok(EndMeaning::Ends(RunEnd { state: RunState::Lost, reason, ..run_end(end) }))
    };
    let deliver = |town, ending, run| deliver(town, ending, run).map(EndMeaning::of);
    let exit_zero = ending.runtime.map_or(ExitZero::Ask, |runtime| runtime.exit_zero);
    match (end, exit_zero) {
        (AgentEnd::Exited(0), ExitZero::Done) => deliver(town, ending, run),
        (AgentEnd::Exited(0), ExitZero::DoneIfCommitted) => {
            match has_clean_work(town, ending.rig, run) {
                Ok(true) => deliver(town, ending, run),
                Ok(false) => lost("it ended without gt done".to_owned()),
                Err(error) => lost(format!(
                    "it ended with exit status 0, and its tree cannot be read: {}",
                    with_causes(&error)
                )),
            }
        }
        (AgentEnd::Exited(0), ExitZero::Ask) => lost("it ended without gt done".to_owned()),
        (AgentEnd::Exited(_), ExitZero::Ask | ExitZero::DoneIfCommitted) => {
            lost(run_end(end).reason)
        }
        (AgentEnd::Exited(_), ExitZero::Done)
        | (AgentEnd::Signalled(_) | AgentEnd::Cancelled, _) => Ok(EndMeaning::Ends(run_end(end))),
    }
}

/// The limit that ended a run: it was over it, and its agent was ended for that, or handed over. An agent that ended by
/// itself may have finished the work.
fn over_limit(run: &Run, end: Option<AgentEnd>) -> Option<RunLimit> {
    let is_ended = end == Some(AgentEnd::Cancelled) && run.ended_by.is_empty();
    run.over_limit.filter(|_| is_ended)
}

/// The end of a run that was over a limit of its own.
fn ended_over(limit: RunLimit, end: Option<AgentEnd>) -> RunEnd {
    let reason = format!("it was over its limit of {} and was ended", limit.as_str());
    RunEnd { state: RunState::Lost, reason, loss: RunLoss::Budget, ..cancelled(end) }
}

/// The end of a run that was cancelled, however its agent ended.
fn cancelled(end: Option<AgentEnd>) -> RunEnd {
    let cancelled = run_end(AgentEnd::Cancelled);
    match end.map(run_end) {
        Some(RunEnd { exit_code, exit_signal, .. }) => {
            RunEnd { exit_code, exit_signal, ..cancelled }
        }
        None => cancelled,
    }
}

/// The cause of a loss, in words.
pub(super) fn taken_by(loss: RunLoss) -> &'static str {
    match loss {
        RunLoss::Agent | RunLoss::Limit | RunLoss::Budget => {
            "none of its processes is left, and none said how it ended"
        }
        RunLoss::Host => "the machine it ran on went down",
        RunLoss::Session => "the server of its session went down",
    }
}

/// Records that a run is lost because no agent could go on with it.
pub(super) fn not_continued(town: &Town, rig: &Rig, run: &Run, why: &str) -> Result<()> {
    let saved = if run.workplace.tree.is_empty() { Ok(None) } else { save(town, rig, run) };
    let reason = format!("no fresh session could go on with it: {why}");
    let end = RunEnd::without_status(RunState::Lost, reason);
    let committed = matches!(saved, Ok(Some(_)));
    finish(town, &run.id, &RunEnd { committed, ..end }).map(drop)
}

/// Runs `gt done` for an agent that did not. Returns no end if that worked.
fn deliver(town: &Town, ending: &EndFacts<'_>, run: &Run) -> Result<Option<RunEnd>> {
    let end = |state, why: String| {
        let reason = format!("it ended with exit status 0, and its work was not accepted: {why}");
        Ok(Some(RunEnd { exit_code: Some(0), ..RunEnd::without_status(state, reason) }))
    };
    let statement = DoneReport::plain(DoneStatus::Completed, None);
    match finish_work(town, ending.rig, run, ending.context, statement) {
        Ok(_) => Ok(None),
        // Once more from where the others are now.
        Err(DoneRefusal::Conflict(why)) => end(RunState::Lost, why),
        // Neither this worker nor another can do anything about it.
        Err(DoneRefusal::Gone(why)) => ask_where_it_belongs(town, ending, run, &why),
        // Once more by an agent that may do better; the command of a rig would do the same.
        Err(DoneRefusal::Work(why) | DoneRefusal::Unchanged(why)) => {
            let is_command =
                ending.runtime.is_some_and(|runtime| runtime.exit_zero == ExitZero::Done);
            end(if is_command { RunState::Failed } else { RunState::Lost }, why)
        }
        Err(DoneRefusal::Elsewhere(error)) if error.is_of_store() => Err(error),
        Err(DoneRefusal::Elsewhere(error)) => end(RunState::Lost, with_causes(&error)),
    }
}

/// Keeps the work of a run whose branch the origin does not have any more, and asks a person.
fn ask_where_it_belongs(
    town: &Town,
    ending: &EndFacts<'_>,
    run: &Run,
    why: &str,
) -> Result<Option<RunEnd>> {
    let (bead, rig) = (&run.id.bead, &ending.rig.slug);
    let message = format!(
        "{why}. Make the branch again at the origin, or choose another with gt rig set {rig} branch <branch>; then \
         bd update {bead} --status open and gt sling {bead} do it again from there, or merge what is kept by hand \
         and close it with bd close {bead}"
    );
    let statement = DoneReport::plain(DoneStatus::Escalated, Some(message.as_str()));
    match finish_work(town, ending.rig, run, ending.context, statement) {
        Ok(_) => Ok(None),
        Err(DoneRefusal::Elsewhere(error)) if error.is_of_store() => Err(error),
        // If that cannot be recorded, its work is saved, and the run is not done.
        Err(_) => {
            Ok(Some(RunEnd { exit_code: Some(0), ..RunEnd::without_status(RunState::Lost, why) }))
        }
    }
}

fn has_clean_work(town: &Town, rig: &Rig, run: &Run) -> Result<bool> {
    let name = run.place.as_ref().and_then(WorkerPlace::polecat_name);
    let (Some(trees), Some(name)) = (Trees::of(town, rig), name) else { return Ok(false) };
    let (tree, failed) = (trees.tree(name), git_failed(rig));
    let head = tree.head().map_err(&failed)?;
    let is_new = head.is_some_and(|head| head.as_str() != run.workplace.base_commit);
    Ok(is_new && tree.status().map_err(&failed)?.is_clean())
}
