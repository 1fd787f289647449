//! The town as a whole: its head line, the board, and the pause of the scheduler.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use gt_api::{
    BoardDocument, NothingDocument, ParkedNameDocument, PauseDocument, ResumedDocument,
    TownHeadDocument,
};
use gt_core::schedule::{ParkSubject, ParkSubjectKind};
use gt_daemon::views;
use gt_scheduling::board::BoardRequest;
use gt_scheduling::{dispatch, queue};
use gt_town::{OperationError, Town};

use crate::answer::json;
use crate::body::{BodyFields, ChangeRequest};
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::SharedService;

/// Show the head line of the town
///
/// Its counts, its daemon, and everything that makes it unhealthy.
#[utoipa::path(
    get,
    path = "/api/v1/town",
    tag = "town",
    responses(
        (status = 200, description = "The head line.", body = TownHeadDocument),
        (status = 400, description = "There are no parameters."),
    )
)]
pub(super) async fn head(
    State(service): State<SharedService>,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    query.finish(&[])?;
    let head = service.ask(|town: &Town| views::town_head(town, env!("CARGO_PKG_VERSION"))).await?;
    Ok(json(StatusCode::OK, &head))
}

/// Show the board
///
/// The first beads of each lane from blocked to landed, with the reason why each does not go on. Beads are in the lane
/// `landed` for 7 days.
#[utoipa::path(
    get,
    path = "/api/v1/board",
    tag = "town",
    params(
        ("rig" = Option<String>, Query, description = "Only the beads of this rig"),
        ("convoy" = Option<String>, Query, description = "Only the beads that this convoy tracks"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "The most beads of a lane; 100 unless said"),
    ),
    responses(
        (status = 200, description = "The lanes.", body = BoardDocument),
        (status = 400, description = "A parameter is wrong."),
        (status = 404, description = "There is no such rig or convoy."),
        (status = 422, description = "The id of the convoy is malformed."),
    )
)]
pub(super) async fn board(
    State(service): State<SharedService>,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let (rig, convoy) = (query.take("rig")?, query.take("convoy")?);
    let limit = query.take_limit()?;
    query.finish(&["rig", "convoy", "limit"])?;
    let read = move |town: &Town| {
        let (rig, convoy) = town.read(|reader| {
            let rig = rig.map(|name| gt_town::rig_names::require(reader, &name)).transpose()?;
            let convoy = convoy.map(|id| gt_beads::convoys::require(town, reader, &id));
            Ok((rig.map(|rig| rig.slug), convoy.transpose()?.map(|bead| bead.id)))
        })?;
        views::board_document(town, &BoardRequest { rig, convoy, limit })
    };
    let board = service.ask(read).await?;
    Ok(json(StatusCode::OK, &board))
}

/// Start nothing until the scheduler is resumed
///
/// Live runs go on.
#[utoipa::path(
    post,
    path = "/api/v1/scheduler/pause",
    tag = "town",
    request_body = NothingDocument,
    responses(
        (status = 200, description = "It is paused.", body = PauseDocument),
        (status = 409, description = "It is paused already; the detail says by whom and since when."),
    )
)]
pub(super) async fn pause(
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    BodyFields::of(&body, "")?.check()?;
    let pause = |town: &Town| {
        let (pause, changed) = queue::pause(town)?;
        if !changed {
            let (by, at) = (pause.by, pause.at.floor_to_second());
            let detail = format!("the scheduler is paused already, by {by} since {at}");
            return Err(RequestProblem::conflict(detail));
        }
        Ok(PauseDocument {
            changed,
            paused: true,
            paused_by: Some(pause.by),
            paused_at: Some(pause.at.into()),
        })
    };
    let document = service.change(&caller, pause).await?;
    Ok(json(StatusCode::OK, &document))
}

/// Let work start again
#[utoipa::path(
    post,
    path = "/api/v1/scheduler/resume",
    tag = "town",
    request_body = NothingDocument,
    responses(
        (status = 200, description = "Work starts again.", body = PauseDocument),
        (status = 409, description = "It is not paused."),
    )
)]
pub(super) async fn resume(
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    BodyFields::of(&body, "")?.check()?;
    let resume = |town: &Town| {
        let was = queue::resume(town)?;
        if was.is_none() {
            return Err(RequestProblem::conflict("the scheduler is not paused any more"));
        }
        Ok::<_, Box<RequestProblem>>(PauseDocument {
            changed: true,
            paused: false,
            paused_by: None,
            paused_at: None,
        })
    };
    let document = service.change(&caller, resume).await?;
    Ok(json(StatusCode::OK, &document))
}

/// Let runs start again with a runtime or an account that is parked
#[utoipa::path(
    post,
    path = "/api/v1/parked/resume",
    tag = "town",
    request_body = ParkedNameDocument,
    responses(
        (status = 200, description = "Work starts with it again.", body = ResumedDocument),
        (status = 400, description = "That is no kind of thing that is parked."),
        (status = 409, description = "It is not parked."),
    )
)]
pub(super) async fn resume_parked(
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let kind = fields.required("kind");
    let kind = fields.read("kind", ParkSubjectKind::parse(&kind));
    let name = fields.required_words("name");
    fields.check()?;
    let Some(kind) = kind else {
        return Err(RequestProblem::malformed_field("kind", "runtime or account").into());
    };
    let means = ParkSubject { kind, name };
    let resume = move |town: &Town| {
        if !dispatch::resume(town, &means)? {
            return Err(RequestProblem::conflict(format!("the {means} is not parked any more")));
        }
        let ParkSubject { kind, name } = means;
        Ok(ResumedDocument { kind: kind.as_str().to_owned(), name, changed: true })
    };
    let document = service.change(&caller, resume).await?;
    Ok(json(StatusCode::OK, &document))
}

/// The answer if what an address names is not there.
pub(super) fn missing(error: &OperationError) -> Box<RequestProblem> {
    RequestProblem::not_found(error.to_string())
}
