//! The rows of merge requests as operations change them. Nothing here touches git.

use gt_core::merging::{
    MergeRequest, MergeRequestId, OriginAnswer, RequestAction, RequestHold, RequestPurpose,
    RequestState, next_state,
};
use gt_core::{BeadId, MessageAddress, Sender};
use gt_store::{Reader, Writer};

use crate::lookup::resolve_in;
use gt_town::{OperationError, Result, Town};

/// The merge request that `input` means: `gt-abc@2`, or a bead, whose open or last request it is.
pub fn resolve_request(town: &Town, reader: &Reader<'_>, input: &str) -> Result<MergeRequest> {
    if let Ok(id) = MergeRequestId::parse(input)
        && let Some(request) = reader.merge_request(&id)?
    {
        return Ok(request);
    }
    let parts =
        input.rsplit_once('@').and_then(|(bead, number)| Some((bead, number.parse().ok()?)));
    let (bead, number): (&str, Option<u32>) =
        parts.map_or((input, None), |(bead, number)| (bead, Some(number)));
    let bead = resolve_in(town, reader, bead)?;
    let mut requests = reader.merge_requests_of(&bead)?.into_iter();
    let found = requests.find(|request| number.is_none_or(|number| request.id.number == number));
    found.ok_or_else(|| match number {
        Some(number) => OperationError::rejected(format!(
            "{bead} has no merge request {number}; gt mq show {bead} shows the last one"
        )),
        None => OperationError::rejected(format!(
            "{bead} has no merge request; gt why {bead} says what it waits for"
        )),
    })
}

/// The words and counts that come with a new state. What is not said stays.
#[derive(Debug, Clone, Default)]
pub struct RequestNote {
    /// The words of git, of a check or of the origin.
    pub detail: String,
    /// It failed for a reason of its own.
    pub counts_as_try: bool,
    /// It is built again because the target moved.
    pub counts_as_rebuild: bool,
    /// Not to be tried again before this.
    pub retry_at: Option<gt_core::Timestamp>,
    /// The commit of the target that has it.
    pub landed: Option<String>,
    /// The run of the check that failed with it.
    pub check_run: Option<u64>,
}

impl RequestNote {
    /// A note of these words.
    pub fn words(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..Self::default() }
    }
}

/// Lets something happen to a request as it is now. `None` if it does not follow from its state any more.
pub fn act_in(
    writer: &mut Writer<'_>,
    id: &MergeRequestId,
    action: RequestAction,
    origin: OriginAnswer,
    note: RequestNote,
) -> Result<Option<MergeRequest>> {
    let Some(request) = writer.merge_request(id)? else { return Ok(None) };
    let Ok(state) = next_state(&request, action, origin) else { return Ok(None) };
    let changed = MergeRequest {
        state,
        detail: note.detail,
        tries: request.tries.saturating_add(u32::from(note.counts_as_try)),
        rebuilds: match state {
            RequestState::Queued if note.counts_as_rebuild => request.rebuilds.saturating_add(1),
            RequestState::Held(_) => 0,
            _ => request.rebuilds,
        },
        retry_at: note.retry_at,
        landed: note.landed.unwrap_or_default(),
        check_run: note.check_run.or(request.check_run.filter(|_| {
            // Its output stays readable after the repair; and a request that a check error held is tried without the others.
            state == RequestState::Superseded
                || (request.state == RequestState::Held(RequestHold::CheckError)
                    && state == RequestState::Queued)
        })),
        candidate: request.candidate.filter(|_| state == RequestState::Landed),
        changed_at: if state == request.state { request.changed_at } else { writer.now() },
        ..request.clone()
    };
    if !writer.save_merge_request(request.state, &changed)? {
        return Ok(None);
    }
    if state != request.state {
        answer_questions_in(writer, &request)?;
    }
    Ok(Some(changed))
}

/// Takes off the list what the merge queue asked about a request: its state has changed, so the question is answered.
fn answer_questions_in(writer: &mut Writer<'_>, request: &MergeRequest) -> Result<()> {
    use RequestState::{Conflict, Failed, Held};
    if !matches!(request.state, Conflict | Failed | Held(_)) {
        return Ok(());
    }
    let queue = Sender::Standing(MessageAddress::Refinery(request.rig.clone()));
    for question in writer.unseen_escalations()? {
        if question.from == queue && question.bead.as_ref() == Some(&request.id.bead) {
            writer.message_seen(&question)?;
        }
    }
    Ok(())
}

/// Gives up the open request of a bead, if it has one. Refused while it is being pushed.
pub fn cancel_request_in(
    writer: &mut Writer<'_>,
    bead: &BeadId,
    why: &str,
) -> Result<Option<MergeRequest>> {
    let Some(request) = writer.open_merge_request(bead)? else { return Ok(None) };
    next_state(&request, RequestAction::Cancel, OriginAnswer::Unknown).map_err(|refusal| {
        OperationError::rejected(format!("{} cannot be cancelled now: {refusal}", request.id))
    })?;
    act_in(
        writer,
        &request.id,
        RequestAction::Cancel,
        OriginAnswer::Unknown,
        RequestNote::words(why),
    )
}

/// The request by which the target has the work of a bead. Nothing if none landed, or if it was reverted since.
pub fn landed_request_in(reader: &Reader<'_>, bead: &BeadId) -> Result<Option<MergeRequest>> {
    let requests = reader.merge_requests_of(bead)?;
    let last = requests.into_iter().find(|request| request.state == RequestState::Landed);
    Ok(last.filter(|request| request.purpose == RequestPurpose::Work))
}
