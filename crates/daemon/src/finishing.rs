//! The end of a run that its worker reports, and the landing of its work.

use std::path::Path;

use gt_core::merging::{RequestHold, RequestState};
use gt_execution::landing::{self, DoneRequest, DoneResult, WorkDelivery};
use gt_execution::merge_queue::{self, QueueName};
use gt_town::{Result, Town};

use crate::daemon;

/// Ends a run as its worker reports. With a program its work is also landed, if it does not wait for its turn or no daemon would
/// do it; without one the supervisor lands it, or the daemon.
pub fn finish_run(
    town: &Town,
    request: &DoneRequest<'_>,
    program: Option<&Path>,
) -> Result<DoneResult> {
    let mut done = landing::done(town, request)?;
    if let Some(program) = program {
        land_now(town, program, &mut done);
    }
    landing::tell_supervisor(town, &done.run);
    Ok(done)
}

/// Lands the work of a run that is done. What does not land now stays in the merge queue, so an error is for the next pass.
fn land_now(town: &Town, program: &Path, done: &mut DoneResult) {
    let WorkDelivery::Merging(request) = &done.delivery else { return };
    let (id, queue) = (request.id.clone(), QueueName::of(request));
    let is_attended = daemon::is_running(town);
    if merge_queue::land_own(town, program, &queue, is_attended).is_err() {
        return;
    }
    let Ok(Some(request)) = town.read(|reader| Ok(reader.merge_request(&id)?)) else { return };
    done.delivery = match request.state {
        RequestState::Landed => {
            WorkDelivery::Landed { branch: request.target, commit: request.landed }
        }
        RequestState::Held(RequestHold::Unmerged) if request.retry_at.is_none() => {
            WorkDelivery::Kept { branch: request.branch, pushed: true }
        }
        _ => WorkDelivery::Merging(Box::new(request)),
    };
}
