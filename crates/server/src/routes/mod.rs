//! The routes.

mod about;
mod beads;
mod convoys;
mod deck;
mod description;
mod events;
mod inbox;
mod mcp;
mod merge_queues;
mod merge_requests;
mod messages;
mod money;
mod next;
mod projects;
mod reviews;
mod runs;
mod screens;
mod sessions;
mod town;
mod transcripts;
mod work;

use axum::Router;
use axum::http::{HeaderName, Method, header};
use axum::middleware::from_fn_with_state;
use gt_api::ProblemDocument;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};
use tower_http::cors::{AllowOrigin, CorsLayer};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::config::AllowedOrigin;
use crate::middleware::{REQUEST_ID, gate};
use crate::problem::{PendingProblem, RequestProblem};
use crate::service::SharedService;

pub use description::openapi_json;

/// Smaller answers are sent as they are: compressing them costs more than sending them.
const COMPRESSED_BYTES_MIN: u64 = 1024;

/// The head of the description; its paths come from the routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "gt work queue",
        description = "Submit, pull, report and monitor work. Every error is application/problem+json (RFC 9457).",
    ),
    components(schemas(ProblemDocument))
)]
struct ApiDescription;

fn described() -> OpenApiRouter<SharedService> {
    OpenApiRouter::with_openapi(ApiDescription::openapi())
        .routes(routes!(projects::create, projects::list))
        .routes(routes!(projects::get, projects::change))
        .routes(routes!(work::submit, work::list))
        .routes(routes!(next::next))
        .routes(routes!(next::stale_check))
        .routes(routes!(work::get, work::change, work::cancel))
        .routes(routes!(next::heartbeat))
        .routes(routes!(next::release))
        .routes(routes!(work::why))
        .routes(routes!(about::health))
        .routes(routes!(about::metrics))
        .routes(routes!(events::events))
}

/// The routes of a town, which a work queue without one does not have.
fn described_of_town() -> OpenApiRouter<SharedService> {
    described()
        .routes(routes!(inbox::list))
        .routes(routes!(town::head))
        .routes(routes!(town::board))
        .routes(routes!(town::pause))
        .routes(routes!(town::resume))
        .routes(routes!(town::resume_parked))
        .routes(routes!(runs::list))
        .routes(routes!(runs::get))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::nudge))
        .routes(routes!(beads::get, beads::change))
        .routes(routes!(beads::retry))
        .routes(routes!(beads::sling))
        .routes(routes!(beads::close))
        .routes(routes!(beads::cancel))
        .routes(routes!(convoys::list))
        .routes(routes!(convoys::get))
        .routes(routes!(convoys::graph))
        .routes(routes!(convoys::timeline))
        .routes(routes!(money::cost))
        .routes(routes!(money::budgets))
        .routes(routes!(money::change_budget))
        .routes(routes!(money::accounts))
        .routes(routes!(money::burn))
        .routes(routes!(money::flaky_checks))
        .routes(routes!(money::landings))
        .routes(routes!(money::search))
        .routes(routes!(events::town_events))
        .routes(routes!(messages::reply))
        .routes(routes!(messages::read))
        .routes(routes!(transcripts::transcript))
        .routes(routes!(merge_requests::list))
        .routes(routes!(merge_requests::get))
        .routes(routes!(merge_requests::log))
        .routes(routes!(merge_requests::diff))
        .routes(routes!(merge_queues::retry))
        .routes(routes!(merge_queues::cancel))
        .routes(routes!(merge_queues::top))
        .routes(routes!(merge_queues::close))
        .routes(routes!(merge_queues::list))
        .routes(routes!(merge_queues::pause))
        .routes(routes!(merge_queues::resume))
        .routes(routes!(reviews::list))
        .routes(routes!(reviews::comment))
        .routes(routes!(reviews::approve))
        .routes(routes!(reviews::reject))
        .routes(routes!(sessions::show, sessions::log_out))
        .routes(routes!(screens::screen))
        .routes(routes!(screens::wall))
        .routes(routes!(screens::keys))
}

/// All routes, behind the gate.
pub(crate) fn router(service: SharedService, cors: &[AllowedOrigin]) -> Router {
    let described = if service.serves_town { described_of_town() } else { described() };
    let (router, _) = described.split_for_parts();
    let deck = if service.serves_town { deck::pages() } else { Router::new() };
    let tools = if service.serves_town { mcp::routes(&service, cors) } else { Router::new() };
    let router = router
        .merge(about::pages())
        .merge(deck)
        .merge(tools)
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(service.clone(), gate))
        .layer(compression())
        .with_state(service);
    if cors.is_empty() { router } else { router.layer(allow(cors)) }
}

async fn no_route() -> PendingProblem {
    PendingProblem(RequestProblem::not_found(
        "there is nothing here; GET /openapi.json lists what there is",
    ))
}

async fn no_method(method: Method) -> PendingProblem {
    PendingProblem(RequestProblem::new(
        axum::http::StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        format!("{method} is not possible here; the header Allow says what is"),
    ))
}

fn compression() -> CompressionLayer<impl tower_http::compression::Predicate> {
    // Events must not wait in a compressor.
    let worthwhile = SizeAbove::new(COMPRESSED_BYTES_MIN)
        .and(NotForContentType::const_new("text/event-stream"))
        .and(NotForContentType::const_new("application/x-ndjson"));
    CompressionLayer::new().compress_when(worthwhile)
}

fn allow(cors: &[AllowedOrigin]) -> CorsLayer {
    let origins = if cors.contains(&AllowedOrigin::Any) {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(cors.iter().filter_map(|origin| match origin {
            AllowedOrigin::Any => None,
            AllowedOrigin::Exactly(origin) => origin.parse().ok(),
        }))
    };
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::IF_MATCH,
            header::IF_NONE_MATCH,
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("last-event-id"),
            REQUEST_ID,
        ])
        .expose_headers([header::ETAG, header::LINK, header::LOCATION, REQUEST_ID])
}
