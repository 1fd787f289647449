//! Work that people merge by hand: its branch is at the origin, and its target is looked at for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gt_core::hosting::TrackedPullRequest;
use gt_core::merging::{MergeRequest, MergeRequestId, RequestHold, RequestPurpose, RequestState};
use gt_core::{Rig, RigSlug, Timestamp};
use gt_executors::git::Commit;
use gt_store::Reader;

use super::machine::{BuilderWait, MergeMachine};
use super::pass::{PassReport, PassScope, QueueBuilder, work_on};
use super::pull_requests::poll_setting;
use super::queue_name::QueueName;
use gt_town::hosts::other_host_of;
use gt_town::{Result, Town, with_causes};

/// Whether people are to merge a request, and its branch is at the origin.
pub(super) fn is_left_to_people(request: &MergeRequest) -> bool {
    request.state == RequestState::Held(RequestHold::Unmerged) && request.retry_at.is_none()
}

/// A queue with work that people are to merge.
struct UnmergedWork {
    queue: QueueName,
    rig: Rig,
    requests: Vec<MergeRequest>,
}

impl UnmergedWork {
    /// When the origin is asked about it next.
    fn next_look(&self, reader: &Reader<'_>, now: Timestamp, poll: Duration) -> Result<Timestamp> {
        let mut next = now.plus(poll);
        for request in &self.requests {
            let look = reader.pull_request(&request.id.bead, &request.branch)?;
            next = next.min(look.map_or(now, |look| look.next_look(now, poll)));
        }
        Ok(next)
    }
}

/// The work that people are to merge, by queue. That of other hosts is left out.
fn left_to_people(
    town: &Town,
    machine: &dyn MergeMachine,
    only: Option<&RigSlug>,
) -> Result<Vec<UnmergedWork>> {
    let mut requests: BTreeMap<QueueName, Vec<MergeRequest>> = BTreeMap::new();
    for request in town.read(|reader| Ok(reader.open_merge_requests()?))? {
        if is_left_to_people(&request) && only.is_none_or(|only| request.rig == *only) {
            requests.entry(QueueName::of(&request)).or_default().push(request);
        }
    }
    let mut found = Vec::new();
    for (queue, requests) in requests {
        let rig = town.read(|reader| Ok(reader.rig(queue.rig.as_str())?))?;
        let Some(rig) = rig else { continue };
        if other_host_of(town, &rig.slug, &machine.host(town)?)?.is_none() {
            found.push(UnmergedWork { queue, rig, requests });
        }
    }
    Ok(found)
}

/// The queues whose target has work that people were to merge, as it was fetched last: by a pass, for a run, or by `gt done`.
pub(super) fn queues_with_merged(
    town: &Town,
    machine: &dyn MergeMachine,
    only: Option<&RigSlug>,
) -> Result<BTreeSet<QueueName>> {
    let mut found = BTreeSet::new();
    for UnmergedWork { queue, rig, requests } in left_to_people(town, machine, only)? {
        let Some(repository) = machine.repository(town, &rig) else { continue };
        let mut accepted = requests.iter().filter_map(|it| Commit::parse(&it.accepted));
        // One that cannot be read is told by the next pass over its queue.
        if accepted.any(|it| repository.origin_has(&queue.target, &it).unwrap_or(false)) {
            found.insert(queue);
        }
    }
    Ok(found)
}

/// Asks the origins about work that people are to merge, and records what they have merged.
pub(super) fn look_at_unmerged(
    town: &Town,
    machine: &dyn MergeMachine,
    only: Option<&RigSlug>,
    wait: BuilderWait,
    report: &mut PassReport,
) -> Result<()> {
    for UnmergedWork { queue, rig, .. } in left_to_people(town, machine, only)? {
        let Some(repository) = machine.repository(town, &rig) else { continue };
        if let Err(error) = repository.fetch() {
            report.problems.push((queue, with_causes(&error)));
        }
    }
    for name in queues_with_merged(town, machine, only)? {
        work_on(town, machine, &name, PassScope::Everything(wait), report)?;
    }
    Ok(())
}

/// Asks the origins about it where that is due. Of several hosts one asks, and an origin that does not answer is asked again.
pub(super) fn fetch_due_unmerged(town: &Town, machine: &dyn MergeMachine) -> Result<()> {
    let (town, poll) = (&town.as_system(), poll_setting(town)?);
    for work in left_to_people(town, machine, None)? {
        let now = town.now();
        let is_mine = town.write(|writer| {
            if work.next_look(writer, now, poll)? > now {
                return Ok(false);
            }
            for request in &work.requests {
                writer.save_pull_request(&TrackedPullRequest {
                    bead: request.id.bead.clone(),
                    branch: request.branch.clone(),
                    fingerprint: String::new(),
                    due_at: now.plus(poll),
                    repaired_head: String::new(),
                    waits_for: String::new(),
                })?;
            }
            Ok(true)
        })?;
        if let Some(repository) = machine.repository(town, &work.rig).filter(|_| is_mine) {
            // One that does not answer, or cannot be read, is told by a command that asks it.
            let _ = repository.fetch();
        }
    }
    Ok(())
}

/// When an origin is asked next about work that people are to merge; nothing if there is none.
pub(super) fn next_look_at_unmerged(
    town: &Town,
    machine: &dyn MergeMachine,
) -> Result<Option<Timestamp>> {
    let (now, poll) = (town.now(), poll_setting(town)?);
    let works = left_to_people(town, machine, None)?;
    town.read(|reader| {
        let looks = works.iter().map(|work| work.next_look(reader, now, poll));
        Ok(looks.collect::<Result<Vec<_>>>()?.into_iter().min())
    })
}

impl QueueBuilder<'_> {
    /// Deletes the branch that was pushed for people to merge, once the target has the work. One that cannot be deleted, or has
    /// commits of others, stays.
    pub(super) fn delete_pushed_branch(&self, id: &MergeRequestId) -> Result<()> {
        let (request, requests, is_pushed) = self.town.read(|reader| {
            let requests = reader.merge_requests_of(&id.bead)?;
            let request = requests.iter().find(|request| request.id == *id).cloned();
            let run = match request.as_ref().and_then(MergeRequest::run) {
                Some(run) => reader.run(&run)?,
                None => None,
            };
            let context = match run {
                Some(run) => reader.context_by_number(run.context)?,
                None => None,
            };
            let is_pushed = context.is_some_and(|context| context.parameters.no_merge);
            Ok((request, requests, is_pushed))
        })?;
        let is_work = |request: &MergeRequest| request.purpose == RequestPurpose::Work;
        let Some(request) = request.filter(|request| is_pushed && is_work(request)) else {
            return Ok(());
        };
        let Ok(Some(tip)) = self.repository.tip(&request.branch) else { return Ok(()) };
        let is_ours =
            |known: &MergeRequest| known.branch == request.branch && known.accepted == tip.as_str();
        if requests.iter().any(is_ours) {
            let _ = self.repository.delete_pushed(&request.branch, &tip);
        }
        Ok(())
    }
}
