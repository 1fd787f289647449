//! Merge requests that a pass would move, while no process makes one.

use gt_core::BeadId;
use gt_core::merging::{MergeRequest, MergeRequestId, RequestHold, RequestState};
use gt_executors::runs::{Liveness, RunFiles};
use gt_store::MergeQueueRow;

use super::integrate::complete_convoys;
use super::local_machine::is_queue_locked;
use super::pass::is_actionable;
use super::queue_name::QueueName;
use gt_town::hosts::{host_of, other_host_of};
use gt_town::{Result, Town};

/// The requests that a pass on this host could move now, and that no process works on: the builder of their queue is dead, its
/// lease is over, or there is none. A daemon that runs makes its passes by itself, and is not looked for here.
pub fn unattended_requests(town: &Town) -> Result<Vec<MergeRequestId>> {
    let now = town.now();
    let (requests, queues) =
        town.read(|reader| Ok((reader.open_merge_requests()?, reader.merge_queues()?)))?;
    let waits = |request: &MergeRequest| {
        is_actionable(request)
            && request.waits_until(now).is_none()
            && request.waits_for_resume().is_none()
            && request.waits_for_target().is_none()
            && request.queue_stop.blocker.is_none()
    };
    let waiting: Vec<MergeRequest> = requests.into_iter().filter(waits).collect();
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    // A host that cannot be named has no lease.
    let host = host_of(town).unwrap_or_default();
    let mut unattended = Vec::new();
    for request in waiting {
        let queue =
            queues.iter().find(|queue| queue.rig == request.rig && queue.target == request.target);
        let is_built = match queue {
            Some(queue) => has_builder(town, queue, &host)?,
            None => false,
        };
        if !is_built
            && !has_supervisor(town, &request)
            && other_host_of(town, &request.rig, &host)?.is_none()
        {
            unattended.push(request.id);
        }
    }
    Ok(unattended)
}

/// The convoys whose work is done and whose last request a pass on this host would make now. One whose last request a person
/// gave up waits for that person.
pub fn unattended_convoys(town: &Town) -> Result<Vec<BeadId>> {
    let complete = town.read(|reader| {
        let mut complete = Vec::new();
        for (convoy, rigs) in complete_convoys(reader)? {
            let last = reader.merge_requests_of(&convoy.id)?.into_iter().next();
            let waits = last
                .is_some_and(|last| last.state.is_open() || last.state == RequestState::Cancelled);
            if !waits {
                complete.push((convoy.id, rigs));
            }
        }
        Ok(complete)
    })?;
    if complete.is_empty() {
        return Ok(Vec::new());
    }
    let host = host_of(town).unwrap_or_default();
    let mut unattended = Vec::new();
    for (convoy, rigs) in complete {
        let mut is_ours = true;
        for rig in &rigs {
            is_ours &= other_host_of(town, &rig.slug, &host)?.is_none();
        }
        if is_ours {
            unattended.push(convoy);
        }
    }
    Ok(unattended)
}

/// How many requests wait for people to merge their pull requests, which only a daemon on this host notices.
pub fn followed_pull_requests(town: &Town) -> Result<u64> {
    let mut requests = town.read(|reader| Ok(reader.open_merge_requests()?))?;
    requests.retain(|request| request.state == RequestState::Held(RequestHold::PullRequestOpen));
    let host = host_of(town).unwrap_or_default();
    let mut count = 0;
    for request in requests {
        count += u64::from(other_host_of(town, &request.rig, &host)?.is_none());
    }
    Ok(count)
}

/// Whether a live process works on a queue. On this host the lock of the queue says so, on others the lease.
fn has_builder(town: &Town, queue: &MergeQueueRow, host: &str) -> Result<bool> {
    if queue.builder.is_empty() {
        return Ok(false);
    }
    if queue.builder == host && town.has_directory() {
        let name = QueueName { rig: queue.rig.clone(), target: queue.target.clone() };
        return Ok(is_queue_locked(town, &name));
    }
    let (rig, target) = (&queue.rig, queue.target.as_str());
    town.read(|reader| Ok(reader.has_queue_lease(rig, target, &queue.builder)?))
}

/// Whether the supervisor of the run that made a request is there: it makes a pass before it exits.
fn has_supervisor(town: &Town, request: &MergeRequest) -> bool {
    let Some(run) = request.run().filter(|_| town.has_directory()) else { return false };
    let files = RunFiles::of(&town.runs_directory(), &run.to_string());
    files.liveness().is_ok_and(|liveness| liveness == Liveness::Held)
}
