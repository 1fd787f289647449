//! Whether somebody may still speak for a run.

use gt_core::BeadId;
use gt_core::schedule::Run;
use gt_store::{Reader, Worker};

use crate::runs::resolve_run;
use crate::{OperationError, Result, Town};

/// The run of a worker: it must be the live run of its bead, and the worker must prove that it is its own. Otherwise the
/// worker is told to stop: another may have its bead, and nothing that it does is heard any more.
pub(crate) fn current_run(reader: &Reader<'_>, worker: &Worker) -> Result<Run> {
    Ok(reader.worker_run(worker)?)
}

/// Refuses to let a worker end the work of another, and to let one whose run is over end any.
pub(crate) fn require_own_work(town: &Town, reader: &Reader<'_>, bead: &BeadId) -> Result<()> {
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

/// The run that somebody means who asks about one: a worker means its own, and everybody else names it.
pub(super) fn chosen_run(town: &Town, reader: &Reader<'_>, asked: Option<&str>) -> Result<Run> {
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
