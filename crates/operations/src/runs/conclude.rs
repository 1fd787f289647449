//! What the end of an agent means for its run.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use gt_core::Rig;
use gt_core::runtime::{ExitZero, Runtime};
use gt_core::schedule::{Context, LandingState, Run, RunEnd, RunState, Said, WorkerPlace};
use gt_executors::runs::AgentEnd;

use super::finish::finish;
use super::sessions::BETWEEN;
use super::show::log_path;
use super::spawner::with_causes;
use super::workbench::fails_by_itself;
use crate::landing::{Refused, Sequel, complete, finish_work};
use crate::recovery::limited;
use crate::runtimes::limit_in;
use crate::trees::{Trees, git_failed, save};
use crate::{Result, Town};

/// Writes down how a run ended: what its worker said stays; what nobody said is read from the end of its program and from
/// what is in its tree. What was not accepted is saved.
pub(super) fn conclude(
    town: &Town,
    rig: &Rig,
    run: &Run,
    context: &Context,
    runtime: &Runtime,
    end: AgentEnd,
) -> Result<()> {
    let written = run_end(end);
    if run.workplace.tree.is_empty() {
        return finish(town, &run.id, &written).map(drop);
    }
    let Some(run) = town.read(|reader| Ok(reader.run(&run.id)?))?.filter(|run| run.state.is_live())
    else {
        return Ok(());
    };
    let run = &run;
    if run.landing.state == Some(LandingState::Intended) {
        // Its `gt done` did not live to see the end, or the origin did not answer it.
        let is_wanted = end != AgentEnd::Cancelled && run.ended_by.is_empty();
        match complete(town, run, is_wanted)? {
            Sequel::Landed => return Ok(()),
            // Whoever makes the next pass asks again.
            Sequel::Unknown if is_wanted => return Ok(()),
            Sequel::Unknown | Sequel::Stays => {}
        }
    }
    let end = match (end, runtime.exit_zero) {
        (AgentEnd::Exited(0), ExitZero::Done) => deliver(town, rig, run, context)?,
        (AgentEnd::Exited(0), ExitZero::DoneIfCommitted) if has_clean_work(town, rig, run)? => {
            deliver(town, rig, run, context)?
        }
        (AgentEnd::Exited(0), ExitZero::DoneIfCommitted | ExitZero::Ask) => Some(RunEnd {
            state: RunState::Lost,
            reason: "it ended without gt done".to_owned(),
            ..written
        }),
        (AgentEnd::Exited(_), _) if !fails_by_itself(run, runtime) => {
            Some(RunEnd { state: RunState::Lost, ..written })
        }
        _ => Some(written),
    };
    let Some(end) = end else { return Ok(()) };
    // A tree that cannot be saved now is saved before anybody else gets it.
    let saved = save(town, rig, run);
    if end.state != RunState::Cancelled
        && let Some(limit) = limit_in(runtime, &last_words(town, run), town.now())
    {
        return limited(town, &run.id, limit.at, &limit.said).map(drop);
    }
    let committed = matches!(saved, Ok(Some(_)));
    finish(town, &run.id, &RunEnd { committed, ..end }).map(drop)
}

/// Writes down that a run is lost because no agent could go on with it.
pub(super) fn not_continued(town: &Town, rig: &Rig, run: &Run, why: &str) -> Result<()> {
    let saved = if run.workplace.tree.is_empty() { Ok(None) } else { save(town, rig, run) };
    let reason = format!("no fresh session could go on with it: {why}");
    let end = RunEnd::without_status(RunState::Lost, reason);
    let committed = matches!(saved, Ok(Some(_)));
    finish(town, &run.id, &RunEnd { committed, ..end }).map(drop)
}

/// How much of the end of an output is looked at for a usage limit.
const LAST_BYTES: u64 = 16 * 1024;

/// The end of what the last agent printed; nothing if it cannot be read.
fn last_words(town: &Town, run: &Run) -> String {
    let read = || -> std::io::Result<String> {
        let mut log = File::open(log_path(town, &run.id))?;
        let length = log.metadata()?.len();
        log.seek(SeekFrom::Start(length.saturating_sub(LAST_BYTES)))?;
        let mut words = Vec::new();
        log.read_to_end(&mut words)?;
        let words = String::from_utf8_lossy(&words);
        let last = words.rfind(BETWEEN).map_or(words.as_ref(), |begins| &words[begins..]);
        Ok(last.to_owned())
    };
    read().unwrap_or_default()
}

/// Does for an agent what it did not do itself. Nothing is left to be done if that worked.
fn deliver(town: &Town, rig: &Rig, run: &Run, context: &Context) -> Result<Option<RunEnd>> {
    let end = |state, why: String| {
        let reason = format!("it ended with exit status 0, and its work was not accepted: {why}");
        Ok(Some(RunEnd { exit_code: Some(0), ..RunEnd::without_status(state, reason) }))
    };
    match finish_work(town, rig, run, Some(context), Said::Completed, None) {
        // Perhaps it is still on its way: then its run ends when it has arrived.
        Ok(_) | Err(Refused::Later(_)) => Ok(None),
        // Once more from where the others are now.
        Err(Refused::Conflict(why)) => end(RunState::Lost, why),
        Err(Refused::Work(why)) => end(RunState::Failed, why),
        Err(Refused::Elsewhere(error)) if error.may_pass() => Err(error),
        Err(Refused::Elsewhere(error)) => end(RunState::Lost, with_causes(&error)),
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

/// What the end of an agent means for its run, when nothing else is known.
pub(super) fn run_end(end: AgentEnd) -> RunEnd {
    match end {
        AgentEnd::Exited(0) => RunEnd {
            exit_code: Some(0),
            ..RunEnd::without_status(RunState::Done, "it ended with exit status 0")
        },
        AgentEnd::Exited(code) => RunEnd {
            exit_code: Some(code),
            ..RunEnd::without_status(RunState::Failed, format!("it ended with exit status {code}"))
        },
        AgentEnd::Signalled(signal) => RunEnd {
            exit_signal: Some(signal),
            ..RunEnd::without_status(RunState::Lost, format!("it was killed by signal {signal}"))
        },
        AgentEnd::Cancelled => RunEnd::without_status(RunState::Cancelled, "it was cancelled"),
    }
}
