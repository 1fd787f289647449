//! Decisions of people about merge requests and queues.

use gt_core::RigSlug;
use gt_core::decide::Right;
use gt_core::merging::{
    MergeMethod, MergeRequest, MergeRequestId, OriginAnswer, PullRequestName, RequestAction,
    RequestHold, RequestPurpose, RequestState, Review, ReviewDecision, next_state,
};
use gt_core::schedule::{CloseReason, Merge, Run};
use gt_core::settings::Layers;
use gt_core::{BeadChangeKind, BeadId, Outcome, Status};
use gt_executors::runs::{ProcessOwner, owner_of_this_process};
use gt_store::{Reader, Writer};

use super::integrate::method_of_convoy;
use super::integration_repair::{close_idle_repairs_in, end_repairs_in};
use super::repair::schedule_repair_in;
use super::views::compared;
use crate::run_processes::end_processes_of;
use gt_beads::beads::{Close, close_in};
use gt_beads::convoys::end_bookkeeping;
use gt_beads::merge_requests::{RequestNote, act_in, cancel_request_in, resolve_request};
use gt_beads::run_records::{cancel_in, release_in, set_status_in};
use gt_town::settings::{file_layers, layers_over};
use gt_town::tree_paths::git_failed;
use gt_town::{OperationError, Result, Town};

/// A review of a person.
#[derive(Debug, Clone)]
pub struct RequestReview<'a> {
    /// Whether it approves, rejects or comments.
    pub decision: ReviewDecision,
    /// The file that it is about; empty for the whole request.
    pub file: &'a str,
    /// The line of the file.
    pub line: Option<u32>,
    /// The words.
    pub body: &'a str,
    /// The run or check that the process of a command comes from, also if its environment says nothing about it. Nothing for
    /// a caller whose token says who it is.
    pub process: Option<&'a ProcessOwner>,
}

/// The run or check that this process comes from. Only a command of this process may ask: the daemon and a server have the
/// locks of other runs open, and their callers are other processes.
pub fn owner_of_caller(town: &Town) -> Option<ProcessOwner> {
    owner_of_this_process(town.root(), &town.runs_directory())
}

/// Stops or resumes the line of a target branch. `false` if it is so already.
pub fn pause(town: &Town, rig: &RigSlug, target: &str, is_paused: bool) -> Result<bool> {
    town.write(|writer| {
        if gt_town::rig_names::require(writer, rig.as_str())?.repo.is_empty() {
            return Err(OperationError::rejected(format!(
                "the rig {rig} has no repository, so it has no merge queue; gt rig list shows the repositories"
            )));
        }
        let by = writer.actor().to_owned();
        Ok(writer.pause_queue(rig, target, is_paused.then_some(by.as_str()))?)
    })
}

/// Tries a request again now, whatever holds it.
pub fn retry(town: &Town, input: &str) -> Result<MergeRequest> {
    let files = file_layers(town)?;
    town.write(|writer| {
        let request = resolve_request(town, writer, input)?;
        if let Some(run) = writer.live_run(&request.id.bead)? {
            return Err(OperationError::rejected(format!("{} repairs it; wait for it", run.id)));
        }
        // A check of the target may have failed by chance: it is run again.
        let queue = writer.merge_queue(&request.rig, &request.target)?;
        let is_red = queue.is_some_and(|queue| queue.red.is_some());
        if is_red {
            writer.set_red_target(&request.rig, &request.target, None)?;
        }
        if request.state == RequestState::Queued && (is_red || request.retry_at.is_some()) {
            let now = MergeRequest { retry_at: None, detail: String::new(), ..request.clone() };
            writer.save_merge_request(request.state, &now)?;
            return Ok(now);
        }
        let note = RequestNote::default();
        let action = RequestAction::Requeue;
        let request = with_method_of_rig(writer, &files, request)?;
        next_state(&request, action, OriginAnswer::Unknown).map_err(|refusal| {
            OperationError::rejected(format!("{} cannot be tried again: {refusal}", request.id))
        })?;
        if let Some(context) = writer.open_context(&request.id.bead)? {
            let reason = CloseReason::Cleared;
            writer.close_context(&context, reason, "its merge request is tried again")?;
        }
        close_idle_repairs_in(writer, &request)?;
        hold_bead_in(writer, &request)?;
        if request.state == RequestState::Held(RequestHold::PullRequestChanged) {
            // The one that a person has closed or changed stays as it is; a new one is opened for the same branch.
            let pull_request = PullRequestName {
                branch: request.pull_request.branch.clone(),
                ..PullRequestName::default()
            };
            let without = MergeRequest { pull_request, ..request.clone() };
            writer.save_merge_request(request.state, &without)?;
        }
        let acted = act_in(writer, &request.id, action, OriginAnswer::Unknown, note)?;
        acted.ok_or_else(|| OperationError::rejected(format!("{} has changed", request.id)))
    })
}

/// How the work of a rig lands, unless its sling says otherwise.
pub(crate) fn merge_of_rig(layers: &Layers, rig: &RigSlug) -> Result<Merge> {
    let of_rig = layers.rig_merge(rig)?;
    let merge = if of_rig.is_empty() { layers.mq_merge()? } else { of_rig };
    Ok(Merge::parse(&merge)?)
}

/// As long as nothing of it was published, a request lands as its rig says now, unless its sling said otherwise: a person who
/// is told that the rig has no hosting service can choose the merge queue.
fn with_method_of_rig(
    writer: &mut Writer<'_>,
    files: &Layers,
    request: MergeRequest,
) -> Result<MergeRequest> {
    if request.pull_request != PullRequestName::default() {
        return Ok(request);
    }
    let layers = layers_over(files, writer)?;
    if request.purpose == RequestPurpose::Integration {
        let Some(convoy) = writer.bead(&request.id.bead)? else { return Ok(request) };
        let method = method_of_convoy(&layers, &convoy, &request.rig)?;
        return with_method(writer, request, method);
    }
    let run = match request.run() {
        Some(run) => writer.run(&run)?,
        None => None,
    };
    let context = match run {
        Some(run) => writer.context_by_number(run.context)?,
        None => None,
    };
    if context.is_none_or(|context| context.parameters.merge.is_some()) {
        return Ok(request);
    }
    let method = match merge_of_rig(&layers, &request.rig)? {
        Merge::Pr => MergeMethod::PullRequest,
        Merge::Direct if !request.review => MergeMethod::Direct,
        Merge::Direct | Merge::Mr | Merge::Local => MergeMethod::Queue,
    };
    with_method(writer, request, method)
}

fn with_method(
    writer: &mut Writer<'_>,
    request: MergeRequest,
    method: MergeMethod,
) -> Result<MergeRequest> {
    let request = MergeRequest { method, ..request };
    writer.save_merge_request(request.state, &request)?;
    Ok(request)
}

/// The bead of a request that is in line is in progress.
fn hold_bead_in(writer: &mut Writer<'_>, request: &MergeRequest) -> Result<()> {
    let Some(old) = writer.bead(&request.id.bead)? else { return Ok(()) };
    let is_held = matches!(old.status, Status::InProgress | Status::Closed);
    if is_held || old.issue_type.is_convoy() {
        return Ok(());
    }
    let run = match request.run() {
        Some(run) => writer.run(&run)?,
        None => None,
    };
    let agent = run.map(|run| run.agent).unwrap_or_default();
    set_status_in(writer, &old.id, Status::InProgress, &agent, BeadChangeKind::StatusChanged)
}

/// Gives a request up: its bead is open again, and its branch stays. A repair that is scheduled or runs ends with it. The bead
/// of work that was to be undone is closed again.
pub fn cancel_request(town: &Town, input: &str) -> Result<MergeRequest> {
    let (request, repairs) = town.write(|writer| {
        let request = resolve_request(town, writer, input)?;
        if !request.state.is_open() {
            return Err(OperationError::rejected(format!(
                "{} is {}",
                request.id,
                request.state.as_str()
            )));
        }
        give_up_in(writer, &request)
    })?;
    end_processes_of(town, &repairs);
    Ok(request)
}

/// The same for an open request, as a part of something larger. Returns the repair runs that were ended with it, whose processes
/// the caller ends.
pub(super) fn give_up_in(
    writer: &mut Writer<'_>,
    request: &MergeRequest,
) -> Result<(MergeRequest, Vec<Run>)> {
    let bead = &request.id.bead;
    let words = format!("cancelled by {}", writer.actor());
    let cancelled = cancel_request_in(writer, bead, &words)?;
    let mut repairs = end_repairs_in(writer, request)?;
    repairs.extend(end_repair_in(writer, bead)?);
    if request.purpose == RequestPurpose::Revert {
        let how = Close {
            reasons: vec![format!("{} was cancelled, so its work stays", request.id)],
            outcome: Some(Outcome::Success),
            force: true,
            session: None,
        };
        close_in(writer, bead, &how, 0, None)?;
    } else {
        release_in(writer, bead)?;
        end_bookkeeping(writer, bead, "was cancelled")?;
    }
    let cancelled =
        cancelled.ok_or_else(|| OperationError::rejected(format!("{} has changed", request.id)))?;
    Ok((cancelled, repairs))
}

/// Ends the repair of a request that is given up, whether it runs or waits for its start: its `gt done` would land the work.
fn end_repair_in(writer: &mut Writer<'_>, bead: &BeadId) -> Result<Option<Run>> {
    let live = writer.live_run(bead)?;
    if let Some(run) = &live {
        cancel_in(writer, run)?;
    }
    if let Some(context) = writer.open_context(bead)? {
        writer.close_context(&context, CloseReason::Cleared, "its merge request was cancelled")?;
    }
    Ok(live)
}

/// Puts a request before all others; with `fix`, also while the target is red.
pub fn put_on_top(town: &Town, input: &str, fix: bool) -> Result<MergeRequest> {
    town.write(|writer| {
        let request = resolve_request(town, writer, input)?;
        if !request.state.is_open() {
            return Err(OperationError::rejected(format!(
                "{} is {}",
                request.id,
                request.state.as_str()
            )));
        }
        // The last one that was put there goes first.
        for other in writer.merge_line(&request.rig, &request.target)? {
            if other.top && other.id != request.id {
                let state = other.state;
                writer.save_merge_request(state, &MergeRequest { top: false, ..other })?;
            }
        }
        let top = MergeRequest { top: true, fix: fix || request.fix, ..request.clone() };
        if writer.save_merge_request(request.state, &top)? {
            return Ok(top);
        }
        Err(OperationError::rejected(format!("{} has changed; say it again", request.id)))
    })
}

/// Closes the bead of a request that people have merged, or do not want merged.
pub fn close_unmerged(town: &Town, input: &str, why: &str) -> Result<MergeRequest> {
    let why = said(why, "why it is closed")?;
    town.write(|writer| {
        let request = resolve_request(town, writer, input)?;
        let is_left_to_people = matches!(
            request.state,
            RequestState::Held(RequestHold::Unmerged | RequestHold::PullRequestChanged)
        );
        if !is_left_to_people {
            let next = request.next_step();
            let next = if next.is_empty() { next } else { format!("; {next}") };
            return Err(OperationError::rejected(format!(
                "{} is {}; only one that was pushed and is not to be merged by gt can be closed so{next}",
                request.id, request.state
            )));
        }
        let cancelled = cancel_request_in(writer, &request.id.bead, why)?;
        let how = Close {
            reasons: vec![why.to_owned()],
            outcome: Some(Outcome::Success),
            force: true,
            session: None,
        };
        close_in(writer, &request.id.bead, &how, 0, None)?;
        cancelled.ok_or_else(|| OperationError::rejected(format!("{} has changed", request.id)))
    })
}

/// The words of a person; refused if there are none.
pub(super) fn said<'a>(words: &'a str, what: &str) -> Result<&'a str> {
    let words = words.trim();
    if words.is_empty() {
        return Err(OperationError::rejected(format!("say {what}: -m \"<text>\"")));
    }
    Ok(words)
}

/// Comments on a request; nothing else changes.
pub fn comment(town: &Town, input: &str, review: &RequestReview<'_>) -> Result<Review> {
    let review = &RequestReview {
        body: said(review.body, "what is to be said about it")?,
        ..review.clone()
    };
    require_reviewer(town, input, review.process)?;
    refuse_unknown_place(town, input, review.file, review.line)?;
    town.write(|writer| {
        let request = open_for_review(town, writer, input, review.process)?;
        insert(writer, &request, review)
    })
}

/// Refuses a comment on a file or a line that neither the accepted commit nor its base has. Where the commits are not here,
/// nothing is known of their files.
fn refuse_unknown_place(town: &Town, input: &str, file: &str, line: Option<u32>) -> Result<()> {
    if file.is_empty() {
        return Ok(());
    }
    let request = town.read(|reader| resolve_request(town, reader, input))?;
    let Ok((rig, repository, base, accepted)) = compared(town, &request) else { return Ok(()) };
    let mut lines = None;
    for commit in [&accepted, &base] {
        for (_, text) in repository.files(commit, &[file]).map_err(git_failed(&rig))? {
            lines = lines.max(Some(text.lines().count()));
        }
    }
    let is_there = |line: u32| usize::try_from(line).is_ok_and(|it| it > 0 && Some(it) <= lines);
    let wrong = match (lines, line) {
        (None, _) => format!("no file {file}"),
        (Some(lines), Some(line)) if !is_there(line) => {
            format!("no line {line} in {file}, which has {lines}")
        }
        (Some(_), _) => return Ok(()),
    };
    Err(OperationError::rejected(format!(
        "{} has {wrong}; gt review diff {} --stat lists what it changes",
        request.id, request.id
    )))
}

/// Approves or rejects a request that waits for a review. An approved one is in line again; a rejected one goes back to its
/// author with all comments.
pub fn review(town: &Town, input: &str, review: &RequestReview<'_>) -> Result<MergeRequest> {
    let body = match review.decision {
        ReviewDecision::Approved => review.body.trim(),
        ReviewDecision::Rejected | ReviewDecision::Comment => {
            said(review.body, "what is to be changed")?
        }
    };
    let review = &RequestReview { body, ..review.clone() };
    let files = file_layers(town)?;
    require_reviewer(town, input, review.process)?;
    town.write(|writer| {
        let request = open_for_review(town, writer, input, review.process)?;
        if request.state != RequestState::Review {
            return Err(OperationError::rejected(format!(
                "{} does not wait for a review: {}",
                request.id,
                request.state_reason()
            )));
        }
        insert(writer, &request, review)?;
        let (action, note) = match review.decision {
            ReviewDecision::Approved => (RequestAction::Requeue, RequestNote::default()),
            ReviewDecision::Rejected => {
                let words = format!("rejected by {}: {}", writer.actor(), review.body);
                let note = RequestNote { counts_as_try: true, ..RequestNote::words(words) };
                (RequestAction::FailCheck, note)
            }
            ReviewDecision::Comment => return Ok(request),
        };
        let acted = act_in(writer, &request.id, action, OriginAnswer::Unknown, note)?;
        let acted =
            acted.ok_or_else(|| OperationError::rejected(format!("{} has changed", request.id)))?;
        if acted.state == RequestState::Failed {
            let repairs = layers_over(&files, writer)?.mq_repairs()?;
            schedule_repair_in(town, writer, &acted, u32::try_from(repairs).unwrap_or(0))?;
        }
        Ok(acted)
    })
}

/// Refuses a worker that made the request, or lacks the right to review. This reads the store, so it comes before the
/// transaction that writes.
fn require_reviewer(town: &Town, input: &str, process: Option<&ProcessOwner>) -> Result<()> {
    if town.acting_run().is_none() {
        return Ok(());
    }
    town.read(|reader| open_for_review(town, reader, input, process))?;
    town.require_right(Right::Reviews, "a review")
}

/// The request, if it is open and the caller did not make it: no run approves its own work.
fn open_for_review(
    town: &Town,
    reader: &Reader<'_>,
    input: &str,
    process: Option<&ProcessOwner>,
) -> Result<MergeRequest> {
    let request = resolve_request(town, reader, input)?;
    if !request.state.is_open() {
        let mut later = reader.merge_requests_of(&request.id.bead)?.into_iter();
        let later = later.find(|later| later.id.number > request.id.number);
        let later = later.map(|later| format!("; its last successor is {}", later.id));
        return Err(OperationError::rejected(format!(
            "{} is {}{}",
            request.id,
            request.state.as_str(),
            later.unwrap_or_default()
        )));
    }
    refuse_disguised_worker(town, &request, process)?;
    if let Some(run) = town.acting_run().filter(|run| run.bead == request.id.bead) {
        return Err(OperationError::rejected(format!(
            "{run} made {}, and no worker reviews its own work",
            request.id
        )));
    }
    Ok(request)
}

/// Refuses a process of a run or a check that does not say so: it is that run, whatever its environment says.
fn refuse_disguised_worker(
    town: &Town,
    request: &MergeRequest,
    process: Option<&ProcessOwner>,
) -> Result<()> {
    let said = town.acting_run().map(ToString::to_string);
    let owner = match process {
        None => return Ok(()),
        // A check is refused every write, whatever it is about.
        Some(ProcessOwner::Check(check)) => format!("the check {check}"),
        Some(ProcessOwner::Run(Some(run))) if said.as_ref() == Some(run) => return Ok(()),
        Some(ProcessOwner::Run(Some(run))) => run.clone(),
        Some(ProcessOwner::Run(None)) if said.is_some() => return Ok(()),
        Some(ProcessOwner::Run(None)) => "a run of this town".to_owned(),
    };
    Err(OperationError::rejected(format!(
        "this command comes from {owner}, and a worker reviews nothing under another name; a person reviews {}: gt review \
         show {}",
        request.id, request.id
    )))
}

fn insert(
    writer: &mut Writer<'_>,
    request: &MergeRequest,
    review: &RequestReview<'_>,
) -> Result<Review> {
    let new = Review {
        number: 0,
        request: MergeRequestId::clone(&request.id),
        actor: writer.actor().to_owned(),
        decision: review.decision,
        accepted: request.accepted.clone(),
        base: request.base.clone(),
        file: review.file.to_owned(),
        line: review.line,
        body: review.body.to_owned(),
        created_at: writer.now(),
    };
    Ok(writer.insert_review(new, &request.rig)?)
}
