//! One bead: everything about it, and what is done to it.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use gt_api::{
    BeadChangeDocument, BeadCloseDocument, BeadPageDocument, BeadRetryDocument, BeadSlingDocument,
    NothingDocument,
};
use gt_beads::beads::{self, BeadChanges, Close};
use gt_core::{Bead, Priority, Status, Title};
use gt_daemon::views;
use gt_execution::runs::{self, Unslung};
use gt_scheduling::schedule::{self, SlingOutcome, SlingRequest};
use gt_town::{OperationError, Town};

use crate::answer::json;
use crate::auth::RequestCaller;
use crate::body::{BodyFields, ChangeRequest};
use crate::problem::{PendingProblem, RequestProblem};
use crate::service::SharedService;

/// Show a bead, and why it is where it is
#[utoipa::path(
    get,
    path = "/api/v1/beads/{id}",
    tag = "beads",
    params(("id" = String, Path, description = "A bead such as gt-abc")),
    responses(
        (status = 200, description = "The bead, its reasons, its runs and its merge requests.", body = BeadPageDocument),
        (status = 422, description = "The id is malformed."),
    )
)]
pub(super) async fn get(
    State(service): State<SharedService>,
    Path(id): Path<String>,
) -> Result<Response, PendingProblem> {
    let page = service.ask(move |town: &Town| views::bead_page(town, &id)).await?;
    Ok(json(StatusCode::OK, &page))
}

/// Does something to a bead in the name of the caller; answers with the bead as it is now.
async fn act(
    service: &SharedService,
    caller: &RequestCaller,
    id: String,
    action: impl FnOnce(&Town, &Bead) -> Result<(), Box<RequestProblem>> + Send + 'static,
) -> Result<Response, PendingProblem> {
    let act = move |town: &Town| {
        let bead = town.read(|reader| gt_beads::lookup::require(town, reader, &id))?;
        action(town, &bead)?;
        Ok::<_, Box<RequestProblem>>(views::bead_page(town, bead.id.as_str())?)
    };
    let page = service.change(caller, act).await?;
    Ok(json(StatusCode::OK, &page))
}

/// The only answer to one bead.
fn only<T>(answers: Vec<Result<T, OperationError>>) -> Result<T, Box<RequestProblem>> {
    let first = answers.into_iter().next();
    Ok(first.ok_or_else(|| RequestProblem::conflict("nothing was done"))??)
}

/// A bead that was closed before the request came.
fn refuse_closed(bead: &Bead) -> Result<(), Box<RequestProblem>> {
    if bead.status != Status::Closed {
        return Ok(());
    }
    let at = bead.closed_at.map(|at| format!(" at {}", at.floor_to_second())).unwrap_or_default();
    let why = &bead.close_reason;
    Err(RequestProblem::conflict(format!("{} is closed already{at}: {why}", bead.id)))
}

/// Change a bead
#[utoipa::path(
    patch,
    path = "/api/v1/beads/{id}",
    tag = "beads",
    params(("id" = String, Path, description = "A bead such as gt-abc")),
    request_body = BeadChangeDocument,
    responses(
        (status = 200, description = "It is changed.", body = BeadPageDocument),
        (status = 409, description = "It was changed since `if_updated_at`, or cannot be changed."),
    )
)]
pub(super) async fn change(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let title = fields.text("title");
    if let Some(title) = &title {
        fields.read("title", Title::parse(title));
    }
    let description = fields.text("description");
    let priority = fields.integer("priority");
    let priority = priority.and_then(|number| fields.read("priority", Priority::new(number)));
    let seen = fields.text("if_updated_at");
    fields.check()?;
    act(&service, &caller, id, move |town, bead| {
        if seen.is_some_and(|seen| seen != bead.updated_at.to_string()) {
            let at = bead.updated_at.floor_to_second();
            let detail = format!("{} was changed meanwhile, at {at}; look at it again", bead.id);
            return Err(RequestProblem::conflict(detail));
        }
        let changes = BeadChanges { title, description, priority, ..BeadChanges::default() };
        only(beads::update(town, &[bead.id.to_string()], &changes)?).map(drop)
    })
    .await
}

/// Schedule a bead again that failed or was given up
#[utoipa::path(
    post,
    path = "/api/v1/beads/{id}/retry",
    tag = "beads",
    params(("id" = String, Path, description = "A bead such as gt-abc")),
    request_body = BeadRetryDocument,
    responses(
        (status = 200, description = "It is scheduled.", body = BeadPageDocument),
        (status = 409, description = "It cannot start, or there is nothing to retry."),
    )
)]
pub(super) async fn retry(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let now = fields.flag("now");
    fields.check()?;
    act(&service, &caller, id, move |town, bead| {
        only(schedule::retry(town, &[bead.id.to_string()], now)?).map(drop)
    })
    .await
}

/// Schedule a bead
#[utoipa::path(
    post,
    path = "/api/v1/beads/{id}/sling",
    tag = "beads",
    params(("id" = String, Path, description = "A bead such as gt-abc")),
    request_body = BeadSlingDocument,
    responses(
        (status = 200, description = "It is scheduled.", body = BeadPageDocument),
        (status = 409, description = "It is scheduled or running already, or cannot be scheduled."),
    )
)]
pub(super) async fn sling(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let target = fields.text("target");
    fields.check()?;
    act(&service, &caller, id, move |town, bead| {
        refuse_closed(bead)?;
        let arguments = std::iter::once(bead.id.to_string()).chain(target).collect();
        let request = SlingRequest { arguments, ..SlingRequest::default() };
        let report = schedule::sling(town, &request)?;
        for entry in report.entries {
            match entry.outcome {
                SlingOutcome::Scheduled(..) | SlingOutcome::Started(_) => {}
                SlingOutcome::NotStarted(_, why)
                | SlingOutcome::Nothing(why)
                | SlingOutcome::Skipped(_, why) => {
                    return Err(RequestProblem::conflict(format!("{}: {why}", entry.name)));
                }
                SlingOutcome::Refused(error) => return Err(error.into()),
            }
        }
        Ok(())
    })
    .await
}

/// Close a bead
#[utoipa::path(
    post,
    path = "/api/v1/beads/{id}/close",
    tag = "beads",
    params(("id" = String, Path, description = "A bead such as gt-abc")),
    request_body = BeadCloseDocument,
    responses(
        (status = 200, description = "It is closed.", body = BeadPageDocument),
        (status = 409, description = "It is closed already, or may not be closed now."),
    )
)]
pub(super) async fn close(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let reason = fields.required_words("reason");
    fields.check()?;
    act(&service, &caller, id, move |town, bead| {
        refuse_closed(bead)?;
        let how = Close { reasons: vec![reason], ..Close::default() };
        let closed = only(beads::close(town, &[bead.id.to_string()], &how)?)?;
        runs::end_processes_of(town, closed.cancelled.as_ref());
        Ok(())
    })
    .await
}

/// Take a bead back
///
/// A running bead is stopped, a scheduled one leaves the queue, and a merge request is given up.
#[utoipa::path(
    post,
    path = "/api/v1/beads/{id}/cancel",
    tag = "beads",
    params(("id" = String, Path, description = "A bead such as gt-abc")),
    request_body = NothingDocument,
    responses(
        (status = 200, description = "It is neither scheduled nor running.", body = BeadPageDocument),
        (status = 409, description = "It was neither scheduled nor running, or is over."),
    )
)]
pub(super) async fn cancel(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    BodyFields::of(&body, "")?.check()?;
    act(&service, &caller, id, move |town, bead| {
        refuse_closed(bead)?;
        match runs::unsling(town, bead.id.as_str())? {
            Unslung::Cancelled(_) | Unslung::Cleared(..) | Unslung::GivenUp(_) => Ok(()),
            Unslung::Nothing(bead) => {
                let detail = format!("{bead} is neither scheduled nor running any more");
                Err(RequestProblem::conflict(detail))
            }
        }
    })
    .await
}
