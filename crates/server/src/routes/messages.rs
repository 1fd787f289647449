//! Messages that ask for a person.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use gt_api::{MessageDocument, NothingDocument, WordsDocument};
use gt_beads::messages::{self, MessageToSend};
use gt_core::{Message, MessageId};
use gt_town::Town;

use super::town::missing;
use crate::answer::json;
use crate::body::{BodyFields, ChangeRequest};
use crate::problem::{PendingProblem, RequestProblem};

/// The message of this name, if it has not been read.
fn unread(town: &Town, id: &str) -> Result<Message, Box<RequestProblem>> {
    MessageId::parse(id)
        .map_err(|wrong| RequestProblem::malformed_field("id", wrong.to_string()))?;
    let message = messages::show(town, id).map_err(|error| missing(&error))?;
    messages::refuse_read(&message)?;
    Ok(message)
}

/// Answer a message
///
/// The message counts as read.
#[utoipa::path(
    post,
    path = "/api/v1/messages/{id}/reply",
    tag = "messages",
    params(("id" = String, Path, description = "A message such as msg-17")),
    request_body = WordsDocument,
    responses(
        (status = 201, description = "The answer.", body = MessageDocument),
        (status = 409, description = "It was answered or read already."),
    )
)]
pub(super) async fn reply(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let text = fields.required_words("text");
    fields.check()?;
    let reply = move |town: &Town| {
        unread(town, &id)?;
        let letter = MessageToSend { subject: None, body: text, nudge: false };
        Ok::<_, Box<RequestProblem>>(messages::reply_to_unread(town, &id, &letter)?)
    };
    let sent = service.change(&caller, reply).await?;
    Ok(json(StatusCode::CREATED, &MessageDocument::from(&sent)))
}

/// Mark a message as read
#[utoipa::path(
    post,
    path = "/api/v1/messages/{id}/read",
    tag = "messages",
    params(("id" = String, Path, description = "A message such as msg-17")),
    request_body = NothingDocument,
    responses(
        (status = 200, description = "It counts as read.", body = MessageDocument),
        (status = 409, description = "It was answered or read already, or is not for people."),
    )
)]
pub(super) async fn read(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    BodyFields::of(&body, "")?.check()?;
    let read = move |town: &Town| {
        let message = unread(town, &id)?;
        messages::mark_seen(town, None, std::slice::from_ref(&message))?;
        let now = messages::show(town, &id)?;
        if now.seen_at.is_none() {
            let detail = format!("{} is for {}, who has not read it", now.id, now.to);
            return Err(RequestProblem::conflict(detail));
        }
        Ok(now)
    };
    let message = service.change(&caller, read).await?;
    Ok(json(StatusCode::OK, &MessageDocument::from(&message)))
}
