//! Convoys: how far each is, and its beads as a graph.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use gt_api::{
    ConvoyDocument, ConvoyGraphDocument, ConvoyStatusDocument, ConvoyTimelineDocument, ListDocument,
};
use gt_beads::convoys::{self, ConvoyFilter};
use gt_core::Status;
use gt_daemon::views;
use gt_scheduling::convoy_planning::{self, LogMoment, PastConvoy, Recalled};
use gt_town::{OperationError, Town};

use crate::answer::json;
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::SharedService;

/// List convoys
///
/// The newest first. Those that are not closed leave out the ones that a sling made for a single bead.
#[utoipa::path(
    get,
    path = "/api/v1/convoys",
    tag = "convoys",
    params(
        ("state" = Option<String>, Query, description = "`open` (unless said otherwise: all that are not closed), `closed` or `all`"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "The most convoys; 100 unless said"),
    ),
    responses(
        (status = 200, description = "The convoys.", body = ListDocument<ConvoyDocument>),
        (status = 400, description = "A parameter is wrong."),
    )
)]
pub(super) async fn list(
    State(service): State<SharedService>,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let filter = match query.take("state")?.as_deref() {
        None | Some("open") => ConvoyFilter::default(),
        Some("closed") => ConvoyFilter { all: false, status: Some(Status::Closed) },
        Some("all") => ConvoyFilter { all: true, status: None },
        Some(other) => {
            let detail = format!("\"{other}\" is neither open nor closed nor all");
            return Err(RequestProblem::malformed_field("state", detail).into());
        }
    };
    let limit = query.take_limit()?;
    query.finish(&["state", "limit"])?;
    let convoys = service.ask(move |town: &Town| convoys::list(town, &filter)).await?;
    let total = convoys.len() as u64;
    let items = convoys.iter().take(limit).map(views::convoy_document).collect();
    Ok(json(StatusCode::OK, &ListDocument { items, total, next: None }))
}

/// The moment that is asked for; nothing for the present.
fn moment(mut query: QueryParameters) -> Result<Option<LogMoment>, Box<RequestProblem>> {
    let at = query.take("at")?;
    query.finish(&["at"])?;
    let wrong = |wrong: gt_core::Invalid| RequestProblem::malformed_field("at", wrong.to_string());
    at.map(|text| LogMoment::parse(&text).map_err(wrong)).transpose()
}

/// A convoy as it was, if the events of that time are kept.
fn recalled(answer: Recalled<PastConvoy>) -> Result<PastConvoy, Box<RequestProblem>> {
    match answer {
        Recalled::Known(past) => Ok(past),
        Recalled::NotKept(log) => {
            let (number, at) = (log.first.number, log.first.at.floor_to_second());
            let detail = format!(
                "the events of that time are not kept (events.keep); the oldest is {number}, of {at}"
            );
            Err(RequestProblem::new(StatusCode::GONE, "not-kept", detail))
        }
    }
}

/// Show how far a convoy is, or was
///
/// As `gt convoy status --json`. With `at`, as the event log tells: without waves, estimates, reasons, labels and money.
#[utoipa::path(
    get,
    path = "/api/v1/convoys/{id}",
    tag = "convoys",
    params(
        ("id" = String, Path, description = "A convoy such as hq-cv-x7k2p"),
        ("at" = Option<String>, Query, description = "How it stood after the event of this number, or at this instant (RFC 3339)"),
    ),
    responses(
        (status = 200, description = "The convoy and everything that it tracks.", body = ConvoyStatusDocument),
        (status = 409, description = "There is no such event yet."),
        (status = 410, description = "The events of that time are not kept (`not-kept`)."),
        (status = 422, description = "The id is malformed."),
    )
)]
pub(super) async fn get(
    State(service): State<SharedService>,
    Path(id): Path<String>,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let Some(moment) = moment(query)? else {
        let status = service.ask(move |town: &Town| views::current_convoy(town, &id)).await?;
        return Ok(json(StatusCode::OK, &views::convoy_status_document(&status)));
    };
    let read = move |town: &Town| convoy_planning::convoy_at(town, &id, moment);
    let past = recalled(service.ask(read).await?)?;
    Ok(json(StatusCode::OK, &views::past_convoy_document(&past)))
}

/// Show the beads of a convoy as a graph
///
/// As `gt convoy graph --json`.
#[utoipa::path(
    get,
    path = "/api/v1/convoys/{id}/graph",
    tag = "convoys",
    params(
        ("id" = String, Path, description = "A convoy such as hq-cv-x7k2p"),
        ("at" = Option<String>, Query, description = "How it stood after the event of this number, or at this instant (RFC 3339)"),
    ),
    responses(
        (status = 200, description = "The beads at their places, and the lines between them.", body = ConvoyGraphDocument),
        (status = 409, description = "There is no such event yet."),
        (status = 410, description = "The events of that time are not kept (`not-kept`)."),
        (status = 422, description = "The id is malformed."),
    )
)]
pub(super) async fn graph(
    State(service): State<SharedService>,
    Path(id): Path<String>,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    if let Some(moment) = moment(query)? {
        let read = move |town: &Town| convoy_planning::convoy_at(town, &id, moment);
        let past = recalled(service.ask(read).await?)?;
        return Ok(json(StatusCode::OK, &views::past_graph_document(&past)));
    }
    let read = move |town: &Town| convoy_planning::graph(town, &id);
    let (status, graph) = service.ask(read).await?;
    let convoy = &status.convoy.bead;
    let (id, title) = (convoy.id.to_string(), convoy.title.to_string());
    Ok(json(StatusCode::OK, &ConvoyGraphDocument::of(id, title, &graph)))
}

/// Show how long each bead of a convoy waited for what, and was worked on
///
/// From the kept events. Time for which a bead was scheduled and nothing else held it is `waiting`: for capacity.
#[utoipa::path(
    get,
    path = "/api/v1/convoys/{id}/timeline",
    tag = "convoys",
    params(("id" = String, Path, description = "A convoy such as hq-cv-x7k2p")),
    responses(
        (status = 200, description = "The spans of each bead.", body = ConvoyTimelineDocument),
        (status = 422, description = "The id is malformed."),
    )
)]
pub(super) async fn timeline(
    State(service): State<SharedService>,
    Path(id): Path<String>,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    query.finish(&[])?;
    let read = move |town: &Town| {
        let timeline = convoy_planning::convoy_timeline(town, &id)?;
        Ok::<_, OperationError>(views::timeline_document(&timeline))
    };
    let document = service.ask(read).await?;
    Ok(json(StatusCode::OK, &document))
}
