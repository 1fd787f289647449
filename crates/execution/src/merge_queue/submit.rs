//! Making a merge request of the accepted commit of a run.

use gt_core::merging::{
    MergeMethod, MergeRequest, OriginAnswer, PullRequestName, RequestAction, RequestHold,
    RequestPurpose, RequestState,
};
use gt_core::message::{MessageBody, MessageKind, NewMessage};
use gt_core::schedule::Run;
use gt_core::{DependencyType, MessageAddress, Sender};
use gt_store::Writer;

use gt_beads::merge_requests::{RequestNote, act_in};
use gt_town::Result;

/// Accepted work, and how it is to land.
#[derive(Debug, Clone)]
pub(crate) struct AcceptedSubmission<'a> {
    /// The run that made it.
    pub(crate) run: &'a Run,
    /// The accepted commit.
    pub(crate) accepted: &'a str,
    /// The commit after which everything in it is its own.
    pub(crate) base: &'a str,
    /// How it is to land.
    pub(crate) method: MergeMethod,
    /// Whether a person has to approve it.
    pub(crate) review: bool,
    /// Whether it is pushed under its own name, and people merge it.
    pub(crate) is_unmerged: bool,
}

/// Makes the request, in the transaction that ends the run. An open request of the bead is superseded: this one is its repair,
/// and keeps its tries, its place at the top and its pull request.
pub(crate) fn submit_in(
    writer: &mut Writer<'_>,
    submission: &AcceptedSubmission<'_>,
) -> Result<MergeRequest> {
    let AcceptedSubmission { run, accepted, base, method, review, is_unmerged } = *submission;
    let bead = run.id.bead.clone();
    let former = writer.open_merge_request(&bead)?;
    if let Some(former) = &former {
        let words = RequestNote::words(format!("{} has made a later one", run.id));
        act_in(writer, &former.id, RequestAction::Supersede, OriginAnswer::Unknown, words)?;
        tell_dependents_in(writer, former, accepted)?;
    }
    let (tries, top, fix) =
        former.as_ref().map_or((0, false, false), |former| (former.tries, former.top, former.fix));
    // Only a request that a person gave to the queue after all is sent back: its repair lands as well.
    let is_unmerged = is_unmerged && former.is_none();
    let state =
        if is_unmerged { RequestState::Held(RequestHold::Unmerged) } else { RequestState::Queued };
    let has_pull_request = |former: &MergeRequest| !former.pull_request.branch.is_empty();
    let method = match &former {
        Some(former) if has_pull_request(former) => former.method,
        _ => method,
    };
    let now = writer.now();
    Ok(writer.insert_merge_request(MergeRequest {
        epoch: Some(run.id.epoch),
        branch: run.workplace.branch.clone(),
        accepted: accepted.to_owned(),
        base: base.to_owned(),
        method,
        review,
        state,
        top,
        fix,
        tries,
        // Its branch is not at the origin yet.
        retry_at: is_unmerged.then_some(now),
        pull_request: former.map_or_else(PullRequestName::default, |former| former.pull_request),
        ..MergeRequest::new(
            bead,
            RequestPurpose::Work,
            run.rig.clone(),
            run.workplace.base.clone(),
            now,
        )
    })?)
}

/// Tells the workers that began from an accepted commit that a repair has replaced it. Their requests in the queue need
/// nothing: only their own commits are put on the target.
fn tell_dependents_in(
    writer: &mut Writer<'_>,
    former: &MergeRequest,
    accepted: &str,
) -> Result<()> {
    let bead = &former.id.bead;
    for edge in writer.edges_to(bead)? {
        let run = match edge.kind {
            DependencyType::Blocks => writer.live_run(&edge.issue)?,
            _ => None,
        };
        // A run that began while the request was open began from its commit, alone or merged with others.
        let began_from = |run: &Run| run.rig == former.rig && run.created_at >= former.created_at;
        let Some(run) = run.filter(began_from) else { continue };
        let combine = if run.workplace.base_commit == former.accepted {
            format!(
                "Put your commits on top of it: git rebase --onto {accepted} {}",
                former.accepted
            )
        } else {
            format!("Combine your work with it: git merge {accepted}")
        };
        let body = MessageBody::parse(&format!(
            "{bead}, which your work began from, was repaired: its commit is {accepted} now, and was {}. {combine}",
            former.accepted
        ))?;
        writer.send_message(NewMessage {
            kind: MessageKind::Mail,
            from: Sender::Standing(MessageAddress::Refinery(former.rig.clone())),
            to: MessageAddress::Work(run.id.bead.clone()),
            subject: None,
            body,
            bead: Some(run.id.bead),
            topic: None,
            reply_to: None,
        })?;
    }
    Ok(())
}
