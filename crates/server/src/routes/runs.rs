//! Runs: what workers do, and what is done to them.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use gt_api::{
    ListDocument, MessageDocument, NothingDocument, NudgeDocument, RunRowDocument, WordsDocument,
};
use gt_beads::messages::{self, MessageToSend};
use gt_daemon::views::{self, RunRowsRequest};
use gt_execution::runs;
use gt_execution::runs::message_delivery::{NudgeDelivery, deliver};
use gt_town::Town;

use super::town::missing;
use crate::answer::json;
use crate::body::{BodyFields, ChangeRequest};
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::SharedService;

const PARAMETERS: &[&str] = &["state", "rig", "bead", "limit", "cursor"];

/// List runs
///
/// The newest first.
#[utoipa::path(
    get,
    path = "/api/v1/runs",
    tag = "runs",
    params(
        ("state" = Option<String>, Query, description = "`live` (unless said otherwise), `ended` or `all`"),
        ("rig" = Option<String>, Query, description = "Only those of this rig"),
        ("bead" = Option<String>, Query, description = "Only those of this bead, on one page"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "The most runs of a page; 100 unless said"),
        ("cursor" = Option<String>, Query, description = "The `next` of the page before"),
    ),
    responses(
        (status = 200, description = "A page of runs.", body = ListDocument<RunRowDocument>),
        (status = 400, description = "A parameter is wrong."),
        (status = 404, description = "There is no such rig or bead."),
        (status = 422, description = "That is no cursor."),
    )
)]
pub(super) async fn list(
    State(service): State<SharedService>,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let state = query.take("state")?;
    let live = match state.as_deref() {
        None | Some("live") => Some(true),
        Some("ended") => Some(false),
        Some("all") => None,
        Some(other) => {
            let detail = format!("\"{other}\" is neither live nor ended nor all");
            return Err(RequestProblem::malformed_field("state", detail).into());
        }
    };
    let (rig, bead, cursor) = (query.take("rig")?, query.take("bead")?, query.take("cursor")?);
    let live = if bead.is_some() && state.is_none() { None } else { live };
    let limit = query.take_limit()?;
    query.finish(PARAMETERS)?;
    let read = move |town: &Town| {
        let rig = rig.map(|name| town.read(|reader| gt_town::rig_names::require(reader, &name)));
        let rig = rig.transpose()?.map(|rig| rig.slug);
        views::run_rows(town, &RunRowsRequest { live, rig, bead, cursor, limit })
    };
    let page = service.ask(read).await?;
    Ok(json(StatusCode::OK, &page))
}

/// Show a run
#[utoipa::path(
    get,
    path = "/api/v1/runs/{id}",
    tag = "runs",
    params(("id" = String, Path, description = "A run such as gt-abc%232, or a bead for its live or last one")),
    responses((status = 200, description = "The run.", body = RunRowDocument))
)]
pub(super) async fn get(
    State(service): State<SharedService>,
    Path(id): Path<String>,
) -> Result<Response, PendingProblem> {
    let read = move |town: &Town| views::run_row(town, &id).map_err(|error| missing(&error));
    let row = service.ask(read).await?;
    Ok(json(StatusCode::OK, &row))
}

/// End a run
///
/// Everything that it started is asked to end, and killed after a grace. Its bead is open afterwards, and nothing starts it
/// again by itself.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{id}/cancel",
    tag = "runs",
    params(("id" = String, Path, description = "A run such as gt-abc%232")),
    request_body = NothingDocument,
    responses(
        (status = 200, description = "It is cancelled.", body = RunRowDocument),
        (status = 409, description = "It has ended already, or its processes are out of reach."),
    )
)]
pub(super) async fn cancel(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    BodyFields::of(&body, "")?.check()?;
    let cancel = move |town: &Town| {
        let before = gt_beads::run_records::resolve(town, &id).map_err(|error| missing(&error))?;
        if !before.state.is_live() {
            return Err(over(&before));
        }
        let done = runs::cancel(town, &before.id.to_string())?;
        if done.already {
            let now = gt_beads::run_records::resolve(town, &done.run.to_string())?;
            return Err(over(&now));
        }
        Ok(views::run_row(town, &done.run.to_string())?)
    };
    let row = service.change(&caller, cancel).await?;
    Ok(json(StatusCode::OK, &row))
}

/// A run that ended before the request came.
fn over(run: &gt_core::schedule::Run) -> Box<RequestProblem> {
    let by = if run.ended_by.is_empty() { String::new() } else { format!(" by {}", run.ended_by) };
    let at = run.ended_at.map(|at| format!(" at {}", at.floor_to_second())).unwrap_or_default();
    let reason = run.explanation();
    let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
    let detail = format!("{} has ended already, {}{by}{at}{reason}", run.id, run.state.as_str());
    RequestProblem::conflict(detail)
}

/// Send a message to the worker of a run while it works
#[utoipa::path(
    post,
    path = "/api/v1/runs/{id}/nudge",
    tag = "runs",
    params(("id" = String, Path, description = "A run such as gt-abc%232")),
    request_body = WordsDocument,
    responses(
        (status = 200, description = "The message, and how far it has come.", body = NudgeDocument),
        (status = 409, description = "The run has ended."),
    )
)]
pub(super) async fn nudge(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let text = fields.required_words("text");
    fields.check()?;
    let nudge = move |town: &Town| {
        let run = gt_beads::run_records::resolve(town, &id).map_err(|error| missing(&error))?;
        if !run.state.is_live() {
            return Err(over(&run));
        }
        let letter = MessageToSend { subject: None, body: text, nudge: true };
        let sent = messages::send(town, None, &run.id.to_string(), &letter)?;
        let (session, waits_because) = match deliver(town, &sent)? {
            NudgeDelivery::Session(session) => (Some(session), None),
            NudgeDelivery::Waits(why) => (None, Some(why)),
        };
        let message = MessageDocument::from(&messages::show(town, &sent.id.to_string())?);
        Ok(NudgeDocument { message, session, waits_because })
    };
    let document = service.change(&caller, nudge).await?;
    Ok(json(StatusCode::OK, &document))
}
