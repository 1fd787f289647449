//! The last step of a convoy with an integration branch: one request brings the branch to its base.
//!
//! The request belongs to the convoy and has no run. It is made when everything that the convoy tracks is done, and the
//! convoy lands when the base has the branch, in each rig that has work of the convoy.

use std::collections::BTreeSet;
use std::time::Duration;

use gt_core::decide::{ContainerChange, ConvoyState, convoy_change, integration_base};
use gt_core::merging::{
    MergeMethod, MergeRequest, OriginAnswer, PullRequestName, RequestAction, RequestHold,
    RequestPurpose, RequestState, integration_branch,
};
use gt_core::schedule::Merge;
use gt_core::settings::Layers;
use gt_core::{Bead, DependencyType, Json, Rig, RigSlug};
use gt_executors::git::{Commit, GitError};
use gt_store::{Reader, Writer};

use super::branch_work::BranchWork;
use super::commands::merge_of_rig;
use super::machine::{MergeMachine, MergeRepository};
use super::pass::{ERROR_DELAY, PassReport, TARGET_GONE_DELAY, UNREACHABLE_DELAY};
use super::queue_name::QueueName;
use crate::checks::protected_among;
use gt_beads::containers::land_integrated;
use gt_beads::merge_requests::{RequestNote, act_in};
use gt_beads::review_rules::metadata_requires_review;
use gt_town::hosts::other_host_of;
use gt_town::settings::{file_layers, layers_over};
use gt_town::tree_paths::git_failed;
use gt_town::{OperationError, Result, Town, with_causes};

/// The work left to do for a convoy in one rig.
enum RigStep {
    /// The base has everything.
    Nothing,
    /// A request was made for it.
    Opened(QueueName),
    /// A request, or a person, has to come to an end first.
    Waits,
}

/// Makes the last request of each convoy whose work is done, and lands the convoys whose branches have arrived. Returns the
/// queues that have a new request.
pub(super) fn integrate_convoys(
    town: &Town,
    machine: &dyn MergeMachine,
    report: &mut PassReport,
) -> Result<Vec<QueueName>> {
    let town = &town.as_system();
    let host = &machine.host(town)?;
    let mut opened = Vec::new();
    for (convoy, rigs) in town.read(complete_convoys)? {
        let mut is_over = true;
        for rig in &rigs {
            let brought = match other_host_of(town, &rig.slug, host)? {
                Some(_) => Ok(RigStep::Waits),
                None => match machine.repository(town, rig) {
                    Some(repository) => bring(town, repository.as_ref(), &convoy, rig),
                    None => Ok(RigStep::Nothing),
                },
            };
            match brought {
                Ok(RigStep::Nothing) => continue,
                Ok(RigStep::Opened(queue)) => opened.push(queue),
                Ok(RigStep::Waits) => {}
                Err(error) if error.is_of_store() => return Err(error),
                Err(error) => {
                    let why = with_causes(&error);
                    hold_broken(town, &convoy, rig, &why)?;
                    let target = integration_branch(&convoy.id);
                    let queue = QueueName { rig: rig.slug.clone(), target };
                    report.problems.push((queue, why));
                }
            }
            is_over = false;
            break;
        }
        if is_over {
            // Before the convoy has landed, so that a pass that is cut off here is made again.
            for rig in &rigs {
                if let Some(repository) = machine.repository(town, rig) {
                    delete_branch(town, repository.as_ref(), &convoy, rig)?;
                }
            }
            town.write(|writer| land_integrated(writer, &convoy.id))?;
        }
    }
    Ok(opened)
}

/// Whether something of the convoy of a request is open: its branch does not land before that is done.
pub(super) fn has_open_work(reader: &Reader<'_>, request: &MergeRequest) -> Result<bool> {
    if request.purpose != RequestPurpose::Integration {
        return Ok(false);
    }
    let convoy = reader.bead(&request.id.bead)?;
    Ok(convoy
        .map(|convoy| reader.count_members(&convoy))
        .transpose()?
        .is_some_and(|it| it.open > 0))
}

/// Withdraws the requests of convoys that have open work again. Another one is made when that is done; one that was sent back
/// waits for its repair, which is such work.
pub(super) fn withdraw_incomplete(town: &Town, open: &[MergeRequest]) -> Result<()> {
    let may_land = |request: &MergeRequest| {
        request.purpose == RequestPurpose::Integration
            && !matches!(request.state, RequestState::Conflict | RequestState::Failed)
    };
    for request in open.iter().filter(|request| may_land(request)) {
        if !town.read(|reader| has_open_work(reader, request))? {
            continue;
        }
        town.as_system().write(|writer| {
            let current = writer.merge_request(&request.id)?.filter(may_land);
            if current.is_none() || !has_open_work(writer, request)? {
                return Ok(());
            }
            let words = RequestNote::words("its convoy has open work again");
            let (action, origin) = (RequestAction::Supersede, OriginAnswer::Unknown);
            act_in(writer, &request.id, action, origin, words).map(drop)
        })?;
    }
    Ok(())
}

/// The convoys with an integration branch of which everything is done, each with the rigs of its work.
pub(super) fn complete_convoys(reader: &Reader<'_>) -> Result<Vec<(Bead, Vec<Rig>)>> {
    let mut complete = Vec::new();
    for tally in reader.convoys_without_open_members()? {
        let Some(convoy) = reader.bead(&tally.convoy)? else { continue };
        let change = convoy_change(ConvoyState::of(&convoy), false, tally.members);
        if integration_base(&convoy).is_none() || change != Some(ContainerChange::Lands) {
            continue;
        }
        let branch = integration_branch(&convoy.id);
        let mut slugs: BTreeSet<RigSlug> = BTreeSet::new();
        for edge in reader.edges_from(&convoy.id)? {
            if edge.kind != DependencyType::Tracks {
                continue;
            }
            slugs.extend(reader.bead(&edge.target)?.and_then(|bead| bead.rig));
        }
        // What is not a member any more has landed on the branch all the same.
        let landed = reader.merge_requests_landed_on(&branch)?;
        slugs.extend(landed.into_iter().map(|request| request.rig));
        let own = reader.merge_requests_of(&convoy.id)?;
        let mut rigs = Vec::new();
        let mut is_stuck = false;
        for slug in slugs {
            let rig = reader.rig(slug.as_str())?;
            // The branch in a rig that was removed arrives nowhere any more; a person closes the convoy.
            let has_landed =
                |one: &MergeRequest| one.rig == slug && one.state == RequestState::Landed;
            is_stuck |= rig.is_none() && !own.iter().any(has_landed);
            rigs.extend(rig);
        }
        if !is_stuck {
            complete.push((convoy, rigs));
        }
    }
    Ok(complete)
}

/// The last request of a convoy in a rig, as it is to be made.
struct LastRequest {
    target: String,
    /// The commit that it brings.
    accepted: String,
    /// The newest commit that the target has of it; nothing if that is not known, and then it cannot be built.
    start: Option<Commit>,
    /// Whether it touches protected paths.
    is_protected: bool,
    /// What is in the way of it.
    hold: Option<LastHold>,
}

/// Something that is in the way of the last request of a convoy.
struct LastHold {
    reason: RequestHold,
    words: String,
    /// When it is tried again without a person.
    delay: Option<Duration>,
}

/// The branch to which the work of a convoy goes in a rig.
fn target_of(convoy: &Bead, rig: &Rig) -> String {
    let base = integration_base(convoy).filter(|base| !base.is_empty());
    base.unwrap_or_else(|| rig.default_branch.clone())
}

/// Brings the integration branch of a convoy to its base in one rig.
fn bring(
    town: &Town,
    repository: &dyn MergeRepository,
    convoy: &Bead,
    rig: &Rig,
) -> Result<RigStep> {
    let failed = git_failed(rig);
    let branch = integration_branch(&convoy.id);
    let target = target_of(convoy, rig);
    let work = town.read(|reader| BranchWork::of(reader, convoy, rig, &target))?;
    let tip = match repository.find_branch(&branch) {
        Err(GitError::Unreachable { message, .. }) => {
            let Some(accepted) = work.last_commit() else { return Ok(RigStep::Waits) };
            let (reason, delay) = (RequestHold::OriginUnreachable, Some(UNREACHABLE_DELAY));
            let hold = Some(LastHold { reason, words: message, delay });
            let last = LastRequest { target, accepted, start: None, is_protected: false, hold };
            return open_last(town, convoy, rig, last);
        }
        found => found.map_err(&failed)?,
    };
    if tip.is_none() && work.landed.is_empty() {
        return Ok(RigStep::Nothing);
    }
    let target_tip = match &tip {
        Some(_) => repository.tip(&target),
        // This machine may not have the repository yet.
        None => repository.find_branch(&target),
    };
    let Some(target_tip) = target_tip.map_err(&failed)? else {
        let accepted = tip.map(|tip| tip.to_string()).or_else(|| work.last_commit());
        let Some(accepted) = accepted else { return Ok(RigStep::Waits) };
        let words = format!("the origin has no branch {target}");
        let (reason, delay) = (RequestHold::TargetGone, Some(TARGET_GONE_DELAY));
        let hold = Some(LastHold { reason, words, delay });
        let last = LastRequest { target, accepted, start: None, is_protected: false, hold };
        return open_last(town, convoy, rig, last);
    };
    let is_in_target =
        |commit: &Commit| repository.origin_has(&target, commit).map_err(git_failed(rig));
    if let Some(tip) = &tip
        && !is_in_target(tip)?
        && let Some(step) = town.read(|reader| known_step(reader, convoy, &rig.slug, tip))?
    {
        return Ok(step);
    }
    let lost = work.lost(repository, tip.as_ref())?;
    let hold = (!lost.is_empty()).then(|| LastHold {
        reason: RequestHold::WorkMissing,
        words: work.words_of_lost(&lost, tip.is_some()),
        delay: None,
    });
    let has_branch = tip.is_some();
    let accepted = match tip {
        // A branch that was made anew and has nothing yet says less than what is gone.
        Some(tip) if hold.is_none() || !is_in_target(&tip)? => tip,
        _ => match work.newest(repository)? {
            Some(newest) => newest,
            None => return Ok(RigStep::Nothing),
        },
    };
    if hold.is_none() {
        if is_in_target(&accepted)? {
            return arrived(town, repository, convoy, rig, (&target, &accepted));
        }
        if !has_branch {
            // The branch is gone, and a request of the convoy has all of it, or has brought it.
            return Ok(if work.has_open() { RigStep::Waits } else { RigStep::Nothing });
        }
    }
    let start = if repository.has(&accepted).map_err(&failed)? {
        let start = repository.merge_base(&accepted, &target_tip).map_err(&failed)?;
        Some(start.ok_or_else(|| {
            OperationError::rejected(format!(
                "{branch} and {target} of {} have no common commit",
                rig.slug
            ))
        })?)
    } else {
        None
    };
    let is_protected = match &start {
        Some(start) => {
            let changed = || repository.changed_paths(start, &accepted);
            !protected_among(town, rig, changed)?.is_empty()
        }
        None => false,
    };
    let accepted = accepted.to_string();
    open_last(town, convoy, rig, LastRequest { target, accepted, start, is_protected, hold })
}

/// The step that follows when the base of a convoy has its branch.
fn arrived(
    town: &Town,
    repository: &dyn MergeRepository,
    convoy: &Bead,
    rig: &Rig,
    (target, tip): (&str, &Commit),
) -> Result<RigStep> {
    let open = town.read(|reader| Ok(reader.open_merge_request(&convoy.id)?))?;
    if open.is_none_or(|open| open.rig != rig.slug) {
        return Ok(RigStep::Nothing);
    }
    // The look at its pull request records the merge, and deletes the branch of that.
    if town
        .read(|reader| published_tips(reader, convoy, &rig.slug))?
        .iter()
        .any(|published| repository.origin_has(target, published).unwrap_or(false))
    {
        return Ok(RigStep::Waits);
    }
    // People have merged the branch.
    town.write(|writer| confirm_in(writer, convoy, &rig.slug, tip))
}

/// Holds the last request of a convoy because of an error of this machine, so that people see why it does not land. Nothing is
/// held if nothing of it has landed on the branch yet.
fn hold_broken(town: &Town, convoy: &Bead, rig: &Rig, why: &str) -> Result<()> {
    let target = target_of(convoy, rig);
    let work = town.read(|reader| BranchWork::of(reader, convoy, rig, &target))?;
    let Some(accepted) = work.last_commit() else { return Ok(()) };
    let (reason, delay) = (RequestHold::QueueError, Some(ERROR_DELAY));
    let hold = Some(LastHold { reason, words: why.to_owned(), delay });
    let last = LastRequest { target, accepted, start: None, is_protected: false, hold };
    open_last(town, convoy, rig, last).map(drop)
}

/// Makes the last request of a convoy in a rig, in the place of a former one.
fn open_last(town: &Town, convoy: &Bead, rig: &Rig, last: LastRequest) -> Result<RigStep> {
    let LastRequest { target, accepted, start, is_protected, hold } = last;
    let branch = integration_branch(&convoy.id);
    let files = file_layers(town)?;
    town.write(|writer| {
        let layers = layers_over(&files, writer)?;
        let is_required = layers.rig_review(&rig.slug)? == "required";
        let review = is_protected || is_required || metadata_requires_review(convoy);
        let now = writer.now();
        let retry_at = hold.as_ref().and_then(|hold| Some(now.plus(hold.delay?)));
        if let Some(hold) = &hold {
            let known = writer.merge_requests_of(&convoy.id)?.into_iter().find(|known| {
                known.rig == rig.slug
                    && known.accepted == accepted
                    && known.state != RequestState::Superseded
            });
            match known {
                // It has arrived, or a person let it land without the rest.
                Some(known) if known.state == RequestState::Landed => return Ok(RigStep::Nothing),
                // A person gave it up.
                Some(known) if !known.state.is_open() => return Ok(RigStep::Waits),
                _ => {}
            }
            match writer.open_merge_request(&convoy.id)? {
                Some(open)
                    if open.rig == rig.slug
                        && !is_buildable(&open)
                        && open.state != RequestState::Held(hold.reason) =>
                {
                    let note = RequestNote { retry_at, ..RequestNote::words(&hold.words) };
                    let action = RequestAction::Hold(hold.reason);
                    act_in(writer, &open.id, action, OriginAnswer::Unknown, note)?;
                    return Ok(RigStep::Waits);
                }
                Some(_) => return Ok(RigStep::Waits),
                None => {}
            }
        }
        if let Some(former) = writer.open_merge_request(&convoy.id)? {
            let words = RequestNote::words(format!("{branch} has changed"));
            let (action, origin) = (RequestAction::Supersede, OriginAnswer::Unknown);
            if act_in(writer, &former.id, action, origin, words)?.is_none() {
                return Ok(RigStep::Waits);
            }
        }
        // Also one that was withdrawn.
        let last = writer.merge_requests_of(&convoy.id)?.into_iter().find(|it| it.rig == rig.slug);
        let former = last.filter(|last| last.state == RequestState::Superseded);
        let (tries, top, pull_request) = former.map_or_else(Default::default, |former| {
            (former.tries, former.top, former.pull_request)
        });
        // A pull request that is open already is gone on with.
        let method = match pull_request.branch.as_str() {
            "" => method_of_convoy(&layers, convoy, &rig.slug)?,
            _ => MergeMethod::PullRequest,
        };
        let is_held = hold.is_some();
        let (state, detail) = match hold {
            Some(hold) => (RequestState::Held(hold.reason), hold.words),
            None => (RequestState::Queued, String::new()),
        };
        writer.insert_merge_request(MergeRequest {
            branch,
            accepted,
            base: start.map(|start| start.to_string()).unwrap_or_default(),
            method,
            review,
            state,
            detail,
            retry_at,
            top,
            tries,
            pull_request,
            ..MergeRequest::new(
                convoy.id.clone(),
                RequestPurpose::Integration,
                rig.slug.clone(),
                target.clone(),
                now,
            )
        })?;
        if is_held {
            return Ok(RigStep::Waits);
        }
        Ok(RigStep::Opened(QueueName { rig: rig.slug.clone(), target }))
    })
}

/// Whether a request can be put on its target. The last request of a convoy cannot before its commits are known: another one
/// takes its place then.
pub(super) fn is_buildable(request: &MergeRequest) -> bool {
    request.purpose != RequestPurpose::Integration || !request.base.is_empty()
}

/// How the branch of a convoy gets to its base: as the convoy says, or else as its rig does. Work that no person is to merge goes
/// through the queue, and is checked as a whole.
pub(super) fn method_of_convoy(
    layers: &Layers,
    convoy: &Bead,
    rig: &RigSlug,
) -> Result<MergeMethod> {
    let said = convoy.metadata.as_ref().and_then(|it| Json::string_field(it, "merge"));
    let merge = match said {
        Some(said) => Merge::parse(&said)?,
        None => merge_of_rig(layers, rig)?,
    };
    Ok(match merge {
        Merge::Pr => MergeMethod::PullRequest,
        Merge::Mr | Merge::Direct | Merge::Local => MergeMethod::Queue,
    })
}

/// The commits that were pushed for the pull request of a convoy's open request in a rig.
fn published_tips(reader: &Reader<'_>, convoy: &Bead, rig: &RigSlug) -> Result<Vec<Commit>> {
    let open = reader.open_merge_request(&convoy.id)?.filter(|open| open.rig == *rig);
    let Some(PullRequestName { branch, number: Some(_), .. }) = open.map(|it| it.pull_request)
    else {
        return Ok(Vec::new());
    };
    let tips = reader.pull_request_tips(&convoy.id, &branch)?;
    Ok(tips
        .iter()
        .filter(|tip| tip.is_ours())
        .filter_map(|tip| Commit::parse(&tip.commit))
        .collect())
}

/// Deletes the integration branch of a convoy that has arrived, if we moved it to where it is. One that cannot be deleted, or
/// has commits of others, stays.
fn delete_branch(
    town: &Town,
    repository: &dyn MergeRepository,
    convoy: &Bead,
    rig: &Rig,
) -> Result<()> {
    let branch = integration_branch(&convoy.id);
    let Ok(Some(tip)) = repository.tip(&branch) else { return Ok(()) };
    let landed = town.read(|reader| Ok(reader.merge_requests_landed_as(tip.as_str())?))?;
    if landed.iter().any(|request| request.rig == rig.slug && request.target == branch) {
        let _ = repository.delete_pushed(&branch, &tip);
    }
    Ok(())
}

/// The step that follows from requests that there are for this commit of the branch; nothing if a new one is needed.
fn known_step(
    reader: &Reader<'_>,
    convoy: &Bead,
    rig: &RigSlug,
    tip: &Commit,
) -> Result<Option<RigStep>> {
    let requests = reader.merge_requests_of(&convoy.id)?;
    let of_tip =
        requests.iter().find(|request| request.rig == *rig && request.accepted == tip.as_str());
    let Some(of_tip) = of_tip else { return Ok(None) };
    Ok(match of_tip.state {
        RequestState::Landed => Some(RigStep::Nothing),
        RequestState::Superseded | RequestState::Held(RequestHold::WorkMissing) => None,
        state if state.is_open() && !is_buildable(of_tip) => None,
        // A person gave it up, or it is on its way.
        _ => Some(RigStep::Waits),
    })
}

fn confirm_in(
    writer: &mut Writer<'_>,
    convoy: &Bead,
    rig: &RigSlug,
    tip: &Commit,
) -> Result<RigStep> {
    let open = writer.open_merge_request(&convoy.id)?;
    if let Some(open) = open.filter(|open| open.rig == *rig) {
        let note = RequestNote { landed: Some(tip.to_string()), ..RequestNote::default() };
        act_in(writer, &open.id, RequestAction::Confirm, OriginAnswer::Unknown, note)?;
    }
    Ok(RigStep::Nothing)
}
