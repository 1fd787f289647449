//! The server about itself.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gt_api::HealthDocument;
use gt_beads::events::last_number;

use super::description::description as described_as_json;
use crate::answer::json;
use crate::problem::{PendingProblem, RequestProblem};
use crate::service::SharedService;

/// The page to try things; it needs nothing but this server.
const PAGE: &str = include_str!("../page.html");
/// The rights of the page: it may ask only this server.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The pages that only people look at, and so are not described.
pub(super) fn pages() -> Router<SharedService> {
    Router::new()
        .route("/openapi.json", get(description))
        .route("/docs", get(page))
        .route("/", get(|| async { axum::response::Redirect::temporary("/docs") }))
}

async fn description(State(service): State<SharedService>) -> Response {
    let text = described_as_json(service.serves_town);
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

async fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, PAGE).into_response()
}

/// Whether the server can do its work.
///
/// Needs no token. It has read the store when it says ok.
#[utoipa::path(
    get,
    path = "/health",
    tag = "server",
    responses(
        (status = 200, description = "It can.", body = HealthDocument),
        (status = 503, description = "The store cannot be read."),
    )
)]
pub(super) async fn health(
    State(service): State<SharedService>,
) -> Result<Response, PendingProblem> {
    let last = service.ask(|town| last_number(town).map_err(|_| unreadable())).await?;
    let health = HealthDocument {
        status: "ok".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        last_event: last,
    };
    Ok(json(StatusCode::OK, &health))
}

pub(super) fn unreadable() -> Box<RequestProblem> {
    RequestProblem::busy("the store cannot be read at the moment; try again")
}

/// Numbers for monitoring the server, in the text format of Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "server",
    responses((status = 200, description = "The numbers.", content_type = "text/plain"))
)]
pub(super) async fn metrics(State(service): State<SharedService>) -> Response {
    let kept = Arc::clone(&service.sample);
    let sample = service.ask(move |town| kept.get(town).map_err(|_| unreadable())).await;
    let mut text = service.metrics.render(service.news.reached());
    // While the store does not answer, the numbers are left out: a counter never goes down.
    if let Ok(sample) = sample {
        sample.render(&mut text);
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
