//! Whether a process may still report for a run.

use gt_core::BeadId;
use gt_core::schedule::Run;
use gt_store::{Reader, Worker};

use crate::run_records::resolve_run;
use gt_town::{OperationError, Result, Town};

/// The run of a worker: it must be the live run of its bead, and the worker must prove that it is its own. Otherwise
/// the worker is told to stop: another worker may have its bead.
pub fn current_run(reader: &Reader<'_>, worker: &Worker) -> Result<Run> {
    Ok(reader.worker_run(worker)?)
}

/// Refuses a worker: this starts a program outside of its sandbox, in a directory that it can write.
pub(crate) fn refuse_worker(town: &Town, deed: &str) -> Result<()> {
    match town.worker() {
        None => Ok(()),
        Some(_) => Err(OperationError::rejected(format!(
            "{deed} is not for workers; ask a person with gt escalate \"…\""
        ))),
    }
}

/// Refuses a worker that would end the work of another, or whose own run is over.
pub fn require_own_work(town: &Town, reader: &Reader<'_>, bead: &BeadId) -> Result<()> {
    let Some(own) = town.worker() else { return Ok(()) };
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

/// The run that the caller means: a worker means its own, and every other caller names it.
pub fn chosen_run(town: &Town, reader: &Reader<'_>, asked: Option<&str>) -> Result<Run> {
    match (town.worker(), asked) {
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
