//! Whether somebody may still speak for a run.

use gt_core::BeadId;
use gt_core::schedule::{Run, RunId, RunState};
use gt_store::Reader;

use crate::runs::resolve_run;
use crate::{OperationError, Result, Town};

/// The run of this name, for its own worker: it must be the live run of its bead. Otherwise the worker is told to
/// stop, whatever it wanted: another may have its bead, and what it does is not heard any more.
pub(crate) fn current_run(reader: &Reader<'_>, id: &RunId) -> Result<Run> {
    let Some(run) = reader.run(id)? else {
        return Err(OperationError::rejected(format!(
            "GT_RUN says that you are the worker of {id}, but this town has no such run; if you are not, unset GT_RUN"
        )));
    };
    if run.state.is_live() {
        return Ok(run);
    }
    let stop = "stop working: leave everything as it is, and end your session";
    Err(OperationError::rejected(match reader.live_run(&id.bead)? {
        Some(live) => format!(
            "{id} is over, and {} has {} now as {}; nothing that you do counts any more, so {stop}",
            live.agent, id.bead, live.id
        ),
        None => {
            format!("{id} {}; nothing that you do counts any more, so {stop}", how_it_ended(&run))
        }
    }))
}

/// Refuses to let a worker end the work of another, and to let one whose run is over end any.
pub(crate) fn require_own_work(town: &Town, reader: &Reader<'_>, bead: &BeadId) -> Result<()> {
    let Some(own) = town.acting_run() else { return Ok(()) };
    let run = current_run(reader, own)?;
    if run.id.bead == *bead {
        return Ok(());
    }
    Err(OperationError::rejected(format!(
        "GT_RUN says that you are the worker of {}, and a worker gives back its own work only; say what you need with gt nudge \
         {bead} \"…\", or ask a person with gt escalate {bead} \"…\"",
        run.id
    )))
}

fn how_it_ended(run: &Run) -> String {
    let by = if run.ended_by.is_empty() { String::new() } else { format!(" by {}", run.ended_by) };
    match run.state {
        RunState::Done => "is done already".to_owned(),
        RunState::Cancelled => format!("was cancelled{by}"),
        RunState::Failed | RunState::Lost => {
            let why =
                if run.reason.is_empty() { String::new() } else { format!(": {}", run.reason) };
            format!("has ended as {}{why}", run.state.as_str())
        }
        RunState::Starting | RunState::Running | RunState::Blocked => "is live".to_owned(),
    }
}

/// The run that somebody means who asks about one: a worker means its own, and everybody else names it.
pub(super) fn chosen_run(town: &Town, reader: &Reader<'_>, asked: Option<&str>) -> Result<Run> {
    match (town.acting_run(), asked) {
        (Some(own), asked) => {
            let run = current_run(reader, own)?;
            match asked.map(|asked| resolve_run(town, reader, asked)).transpose()? {
                Some(other) if other.id != run.id => Err(OperationError::rejected(format!(
                    "GT_RUN says that you are the worker of {}, and a worker speaks for its own run only; leave \
                     --run out",
                    run.id
                ))),
                _ => Ok(run),
            }
        }
        (None, Some(asked)) => resolve_run(town, reader, asked),
        (None, None) => Err(OperationError::rejected(
            "GT_RUN names no run, so this is no worker; name a run with --run <run>, gt run list shows which there are",
        )),
    }
}
