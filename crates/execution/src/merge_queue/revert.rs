//! Undoing work that has landed: a commit that goes through the same queue.

use std::path::Path;

use gt_core::decide::{ConvoyState, integration_base};
use gt_core::merging::{
    Candidate, MergeMethod, MergeRequest, MergeRequestId, RequestPurpose, RequestState,
    convoy_of_branch, may_share_branch, revert_of,
};
use gt_core::{BeadChangeKind, BeadId, DependencyType, Rig, Status};
use gt_executors::git::{
    Commit, CommitTrailer, GitError, LandedRange, MemberOutcome, RevertCommit, Signature,
};
use gt_store::{Reader, Writer};

use super::commands::said;
use super::commit_lookup::{find, work_with_commit};
use super::local_machine::LocalMachine;
use super::machine::{MergeMachine, MergeRepository};
use crate::checks::protected_among;
use gt_beads::lookup::resolve_in;
use gt_beads::notes::add_in;
use gt_beads::review_rules::is_review_required;
use gt_beads::run_records::set_status_in;
use gt_town::settings::{file_layers, layers_over};
use gt_town::tree_paths::git_failed;
use gt_town::{OperationError, Result, Town};

/// The beginning of the name under which git keeps the commit that undoes the work of a bead, while it has not landed.
fn revert_name(bead: &BeadId) -> String {
    format!("revert-{bead}")
}

/// The whole name.
pub(super) fn kept_revert_name(bead: &BeadId, commit: &str) -> String {
    format!("{}-{commit}", revert_name(bead))
}

/// Makes a request that undoes the work of a landed one. Its bead is in progress until that has landed, and open then.
pub fn revert(town: &Town, program: &Path, input: &str, why: &str) -> Result<MergeRequest> {
    revert_on(town, &LocalMachine { program }, input, why)
}

/// The same on any machine.
pub fn revert_on(
    town: &Town,
    machine: &dyn MergeMachine,
    input: &str,
    why: &str,
) -> Result<MergeRequest> {
    let why = said(why, "why it is undone")?;
    let found = find(town, input)?;
    let found = match found.purpose {
        RequestPurpose::Integration => member_work(town, input, found)?,
        RequestPurpose::Work | RequestPurpose::Revert => found,
    };
    let (request, candidate, rig, title, (target, method)) = town.read(|reader| {
        let request = landed_work(town, reader, input, found.clone())?;
        require_idle(reader, &request.id.bead)?;
        let (target, method) = branch_with_work(reader, &request)?;
        let candidate = match request.candidate {
            Some(number) => reader.candidate(number)?,
            None => None,
        };
        let title = reader.bead(&request.id.bead)?.map(|bead| bead.title.to_string());
        let rig = gt_town::rig_names::require(reader, request.rig.as_str())?;
        Ok((request, candidate, rig, title.unwrap_or_default(), (target, method)))
    })?;
    let range = landed_range(&request, candidate.as_ref())?;
    let repository = machine.repository(town, &rig).ok_or_else(|| {
        OperationError::rejected(format!("the rig {} has no repository", rig.slug))
    })?;
    let repository = repository.as_ref();
    let unnamed = || Signature { name: "gt".to_owned(), email: "gt@gt.invalid".to_owned() };
    let how = RevertCommit {
        message: format!(
            "Revert \"{title}\"\n\nThis undoes {} ({}): {why}",
            request.id, range.after
        ),
        trailers: vec![CommitTrailer {
            key: "Bead".to_owned(),
            value: request.id.bead.to_string(),
        }],
        signature: machine.person(&rig).unwrap_or_else(unnamed),
    };
    let (tip, undoing) = build(repository, &rig, &request, &target, &range, &how)?;
    let changed = || repository.changed_paths(&tip, &undoing);
    let is_protected = !protected_among(town, &rig, changed)?.is_empty();
    let files = file_layers(town)?;
    town.write(|writer| {
        let bead = &request.id.bead;
        require_idle(writer, bead)?;
        let layers = layers_over(&files, writer)?;
        let context = writer.latest_context(bead)?;
        let review = is_protected
            || layers.rig_review(&rig.slug)? == "required"
            || is_review_required(writer, bead, context.as_ref())?;
        begin_undoing(writer, bead, &request, why)?;
        // A branch that takes work by pull requests alone takes it back in the same way.
        let method = match method {
            MergeMethod::PullRequest => MergeMethod::PullRequest,
            MergeMethod::Queue | MergeMethod::Direct => MergeMethod::Queue,
        };
        let (slug, target, now) = (rig.slug.clone(), target.clone(), writer.now());
        Ok(writer.insert_merge_request(MergeRequest {
            accepted: undoing.to_string(),
            base: tip.to_string(),
            method,
            review,
            detail: why.to_owned(),
            ..MergeRequest::new(bead.clone(), RequestPurpose::Revert, slug, target, now)
        })?)
    })
}

/// The landed work that `input` means: of a commit or a request the found one, of a bead its last work that is not undone.
fn landed_work(
    town: &Town,
    reader: &Reader<'_>,
    input: &str,
    found: MergeRequest,
) -> Result<MergeRequest> {
    let is_work = |request: &&MergeRequest| {
        request.state == RequestState::Landed && request.purpose == RequestPurpose::Work
    };
    let landed = landed_requests(reader, &found.id.bead)?;
    let works = || landed.iter().filter(is_work).rev();
    let is_there = |work: &&MergeRequest| revert_of(&landed, &work.id).is_none();
    let work = if resolve_in(town, reader, input).is_ok() {
        works().find(is_there).or_else(|| works().next()).cloned().unwrap_or(found)
    } else {
        found
    };
    if let Some(revert) = revert_of(&landed, &work.id) {
        return Err(OperationError::rejected(format!(
            "{} was undone by {}, so nothing is to be undone",
            work.id, revert.id
        )));
    }
    if work.state == RequestState::Landed && work.purpose == RequestPurpose::Revert {
        return Err(OperationError::rejected(format!(
            "{} has undone work itself; gt sling {} does that work again",
            work.id, work.id.bead
        )));
    }
    if !is_work(&&work) {
        return Err(OperationError::rejected(format!(
            "{} has not landed as work, so nothing is to be undone: {}",
            work.id,
            work.state_reason()
        )));
    }
    let is_later =
        |other: &&MergeRequest| other.id.number > work.id.number && may_share_branch(other, &work);
    if let Some(later) = works().filter(is_there).find(is_later) {
        return Err(OperationError::rejected(format!(
            "{} has landed after {}; undo that first: gt mq revert {} -m <why>",
            later.id, work.id, later.id
        )));
    }
    Ok(work)
}

/// The branch that has landed work now, and how it got there: its target, or the base of the convoy that has brought it from
/// there.
fn branch_with_work(reader: &Reader<'_>, work: &MergeRequest) -> Result<(String, MergeMethod)> {
    let as_landed = || (work.target.clone(), work.method);
    let Some(convoy) = convoy_of_branch(&work.target) else { return Ok(as_landed()) };
    let is_bringer = |request: &&MergeRequest| {
        request.state == RequestState::Landed
            && request.purpose == RequestPurpose::Integration
            && request.rig == work.rig
            && request.position > work.position
    };
    // The oldest one that came after it.
    if let Some(bringer) = reader.merge_requests_of(&convoy)?.iter().rev().find(is_bringer) {
        return Ok((bringer.target.clone(), bringer.method));
    }
    // Without a request, people have merged the branch before the convoy landed.
    let convoy = reader.bead(&convoy)?.filter(|bead| ConvoyState::of(bead) == ConvoyState::Landed);
    let Some(base) = convoy.as_ref().and_then(integration_base) else {
        return Ok(as_landed());
    };
    let rig = gt_town::rig_names::require(reader, work.rig.as_str())?;
    Ok((if base.is_empty() { rig.default_branch } else { base }, work.method))
}

/// The work of a member of a convoy that a commit belongs to. A convoy as a whole, or a commit that its members do not have as it
/// is, is refused: each bead is undone by itself.
fn member_work(town: &Town, input: &str, found: MergeRequest) -> Result<MergeRequest> {
    let (rig, works) = town.read(|reader| {
        let mut works = Vec::new();
        for edge in reader.edges_from(&found.id.bead)? {
            if edge.kind == DependencyType::Tracks {
                works.extend(landed_requests(reader, &edge.target)?.into_iter().filter(|work| {
                    work.purpose == RequestPurpose::Work
                        && (&work.rig, &work.target) == (&found.rig, &found.branch)
                }));
            }
        }
        works.sort_by_key(|work| std::cmp::Reverse(work.position));
        Ok((reader.rig(found.rig.as_str())?, works))
    })?;
    if let Some(rig) = rig
        && let Some(work) = work_with_commit(town, &rig, input, &works)?
    {
        return Ok(work);
    }
    let mut beads: Vec<String> = Vec::new();
    for work in works {
        let bead = work.id.bead.to_string();
        if !beads.contains(&bead) {
            beads.push(bead);
        }
    }
    if found.state != RequestState::Landed || beads.is_empty() {
        return Ok(found);
    }
    let commands: Vec<String> =
        beads.iter().map(|bead| format!("gt mq revert {bead} -m <why>")).collect();
    Err(OperationError::rejected(format!(
        "{} has brought the work of its convoy to {}, and each bead of it is undone by itself, the last first: {}",
        found.id,
        found.target,
        commands.join(", then ")
    )))
}

/// The request that undid a landed one.
pub(super) fn undoing_request(
    reader: &Reader<'_>,
    request: &MergeRequest,
) -> Result<Option<MergeRequestId>> {
    if request.state != RequestState::Landed || request.purpose == RequestPurpose::Revert {
        return Ok(None);
    }
    let landed = landed_requests(reader, &request.id.bead)?;
    Ok(revert_of(&landed, &request.id).map(|revert| revert.id.clone()))
}

/// The requests of a bead that have changed a branch, the oldest first.
fn landed_requests(reader: &Reader<'_>, bead: &BeadId) -> Result<Vec<MergeRequest>> {
    let mut landed = Vec::new();
    for request in reader.merge_requests_of(bead)?.into_iter().rev() {
        if request.state != RequestState::Landed {
            continue;
        }
        let candidate = match request.candidate {
            Some(number) => reader.candidate(number)?,
            None => None,
        };
        let range = landed_range(&request, candidate.as_ref());
        // The branch had all of it already.
        let is_empty = range.is_ok_and(|range| range.before == range.after);
        if !is_empty {
            landed.push(request);
        }
    }
    Ok(landed)
}

/// Refuses a bead that is worked on, or has another request that is not over.
fn require_idle(reader: &Reader<'_>, bead: &BeadId) -> Result<()> {
    if let Some(open) = reader.open_merge_request(bead)? {
        return Err(OperationError::rejected(format!(
            "{bead} has a merge request that is not over: {}; {}",
            open.state_reason(),
            open.next_step()
        )));
    }
    if let Some(run) = reader.live_run(bead)? {
        return Err(OperationError::rejected(format!(
            "{} works on {bead}; wait for it, or gt run cancel {}",
            run.id, run.id
        )));
    }
    if reader.open_context(bead)?.is_some() {
        return Err(OperationError::rejected(format!(
            "{bead} is scheduled again; gt unsling {bead} takes it out of the queue"
        )));
    }
    Ok(())
}

/// The commits of the target that a request became.
pub(super) fn landed_range(
    request: &MergeRequest,
    candidate: Option<&Candidate>,
) -> Result<LandedRange> {
    let unknown = || {
        OperationError::rejected(format!(
            "the commits of the target that {} became are not known; revert {} by hand",
            request.id, request.landed
        ))
    };
    let commit = |text: &str| Commit::parse(text).ok_or_else(unknown);
    let Some(candidate) = candidate else {
        // Others have merged the accepted commit.
        return Ok(LandedRange {
            before: commit(&request.base)?,
            after: commit(&request.accepted)?,
        });
    };
    let at = candidate.parts.iter().position(|part| part.request == request.id);
    let at = at.ok_or_else(unknown)?;
    let earlier = candidate.parts[..at].last();
    let before = earlier.map_or(candidate.base.as_str(), |part| part.after.as_str());
    Ok(LandedRange { before: commit(before)?, after: commit(&candidate.parts[at].after)? })
}

/// Builds the commit that undoes a range on the target as it is now; returns the tip of the target, and that commit.
fn build(
    repository: &dyn MergeRepository,
    rig: &Rig,
    request: &MergeRequest,
    target: &str,
    range: &LandedRange,
    how: &RevertCommit,
) -> Result<(Commit, Commit)> {
    let failed = git_failed(rig);
    match repository.fetch() {
        Ok(()) => {}
        Err(GitError::Unreachable { message, .. }) => {
            return Err(OperationError::rejected(format!(
                "the origin of {} cannot be reached: {message}",
                rig.slug
            )));
        }
        Err(error) => return Err(failed(error)),
    }
    let tip = repository.tip(target).map_err(&failed)?.ok_or_else(|| {
        OperationError::rejected(format!("the origin of {} has no branch {target}", rig.slug))
    })?;
    let name = revert_name(&request.id.bead);
    let built = repository.build_revert(&name, &tip, range, how).map_err(&failed)?;
    match built.members.into_iter().next() {
        Some(MemberOutcome::Applied { after, .. }) => Ok((tip, after)),
        Some(MemberOutcome::Conflict { paths, .. }) => {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            Err(OperationError::rejected(format!(
                "{} cannot be undone by itself: {target} has changed {} since; make a bead for it: bd create \"Revert {}\"",
                request.id,
                paths.join(", "),
                request.id.bead
            )))
        }
        Some(MemberOutcome::Unreadable(why)) => {
            Err(OperationError::rejected(format!("{} cannot be undone: {why}", request.id)))
        }
        Some(MemberOutcome::AlreadyThere) | None => Err(OperationError::rejected(format!(
            "{target} has nothing of {} any more, so nothing is to be undone; bd reopen {} opens it again",
            request.id, request.id.bead
        ))),
    }
}

/// The bead is in progress while its work is being undone, and a comment says why.
fn begin_undoing(
    writer: &mut Writer<'_>,
    bead: &BeadId,
    request: &MergeRequest,
    why: &str,
) -> Result<()> {
    let Some(old) = writer.bead(bead)? else {
        return Err(OperationError::NoBead(bead.to_string()));
    };
    let short: String = request.landed.chars().take(12).collect();
    add_in(writer, &old, &format!("Reverted: {} ({short}) is undone: {why}", request.id))?;
    set_status_in(writer, bead, Status::InProgress, "", BeadChangeKind::Reopened)
}
