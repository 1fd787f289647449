//! Reviews: what waits for a person, and what the person says. A decision carries the name of the token, which alone says
//! who the caller is: this process has the locks of live runs open and is none of them.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use gt_api::{
    ApprovalDocument, DecisionReasonDocument, MergeRequestDocument, NewCommentDocument,
    ReviewDocument,
};
use gt_core::bead::check_text;
use gt_core::merging::{RequestState, ReviewDecision};
use gt_core::message::MessageBody;
use gt_execution::merge_queue::{self, LineEntry, RequestReview};
use gt_town::Town;

use super::merge_queues::act;
use super::merge_requests::{existing, request_id};
use crate::answer::json;
use crate::auth::RequestCaller;
use crate::body::{BodyFields, ChangeRequest};
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::SharedService;

/// The longest name of a file.
const FILE_BYTES_MAX: usize = 4096;

/// List what waits for a review
#[utoipa::path(
    get,
    path = "/api/v1/reviews",
    tag = "reviews",
    responses(
        (status = 200, description = "The requests, the one that waits longest first.", body = Vec<MergeRequestDocument>),
        (status = 400, description = "There are no parameters."),
    )
)]
pub(super) async fn list(
    State(service): State<SharedService>,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    query.finish(&[])?;
    let (mut waiting, _) = service.ask(merge_queue::line).await?;
    waiting.retain(|entry| entry.request.state == RequestState::Review);
    waiting.sort_by_key(|entry| entry.request.changed_at);
    let documents: Vec<MergeRequestDocument> = waiting
        .iter()
        .map(|LineEntry { request, title, .. }| MergeRequestDocument::new(request, title, None))
        .collect();
    Ok(json(StatusCode::OK, &documents))
}

/// Comment on a merge request
///
/// Its worker reads it if the request is rejected.
#[utoipa::path(
    post,
    path = "/api/v1/reviews/{id}/comment",
    tag = "reviews",
    params(("id" = String, Path, pattern = "^.+@[1-9][0-9]*$", description = "A merge request such as gt-abc@1")),
    request_body = NewCommentDocument,
    responses(
        (status = 201, description = "The comment.", body = ReviewDocument),
        (status = 409, description = "The request is over."),
    )
)]
pub(super) async fn comment(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let id = request_id(&id)?;
    let mut fields = BodyFields::of(&body, "")?;
    let words = fields.required_words("message");
    let file = fields.text("file").unwrap_or_default();
    fields.read("file", check_text("file", &file));
    if file.len() > FILE_BYTES_MAX {
        fields.wrong("file", format!("this is longer than {FILE_BYTES_MAX} bytes"));
    }
    let number = fields.integer("line");
    let line = number.and_then(|line| u32::try_from(line).ok().filter(|line| *line > 0));
    if number.is_some() && line.is_none() {
        fields.wrong("line", "this is no number of a line");
    }
    if line.is_some() && file.is_empty() {
        fields.wrong("line", "a line needs its file");
    }
    fields.check()?;
    let comment = move |town: &Town| {
        existing(town, &id)?;
        let decision = ReviewDecision::Comment;
        let process = None;
        let review = RequestReview { decision, file: &file, line, body: &words, process };
        Ok::<_, Box<RequestProblem>>(merge_queue::comment(town, &id.to_string(), &review)?)
    };
    let made = service.change(&caller, comment).await?;
    Ok(json(StatusCode::CREATED, &ReviewDocument::from(&made)))
}

/// Let a merge request land
#[utoipa::path(
    post,
    path = "/api/v1/reviews/{id}/approve",
    tag = "reviews",
    params(("id" = String, Path, pattern = "^.+@[1-9][0-9]*$", description = "A merge request such as gt-abc@1")),
    request_body = ApprovalDocument,
    responses(
        (status = 200, description = "It is approved and in line to land.", body = MergeRequestDocument),
        (status = 409, description = "It does not wait for a review."),
    )
)]
pub(super) async fn approve(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let words = fields.text("message").unwrap_or_default();
    fields.read("message", MessageBody::parse(&words));
    fields.check()?;
    decide(&service, &caller, &id, ReviewDecision::Approved, words).await
}

/// Send a merge request back to a worker, with all comments
#[utoipa::path(
    post,
    path = "/api/v1/reviews/{id}/reject",
    tag = "reviews",
    params(("id" = String, Path, pattern = "^.+@[1-9][0-9]*$", description = "A merge request such as gt-abc@1")),
    request_body = DecisionReasonDocument,
    responses(
        (status = 200, description = "It is rejected and goes back to a worker.", body = MergeRequestDocument),
        (status = 409, description = "It does not wait for a review."),
    )
)]
pub(super) async fn reject(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let words = fields.required_words("message");
    fields.check()?;
    decide(&service, &caller, &id, ReviewDecision::Rejected, words).await
}

async fn decide(
    service: &SharedService,
    caller: &RequestCaller,
    id: &str,
    decision: ReviewDecision,
    words: String,
) -> Result<Response, PendingProblem> {
    act(service, caller, id, move |town, id| {
        let process = None;
        let review = RequestReview { decision, file: "", line: None, body: &words, process };
        merge_queue::review(town, id, &review)
    })
    .await
}
