//! The steps of every request: an id, a place, the caller, a time limit, and a line in the log.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use uuid::Uuid;

use crate::access_log::AccessLogEntry;
use crate::auth::RequestCaller;
use crate::connections::Client;
use crate::metrics::{GaugeGuard, NO_ROUTE};
use crate::problem::{PendingProblem, RequestProblem};
use crate::service::{RoomKind, Service, SharedService};

/// The header that a request is told apart by.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id that we take over from a client.
const REQUEST_ID_BYTES_MAX: usize = 64;
/// The longest that `wait_s` can be, and so how much longer such an answer may take.
pub(crate) const LONG_POLL_MAX: Duration = Duration::from_mins(1);

/// The route of the events, which go on for as long as a client listens.
const EVENTS: &str = "/events";
/// The same for the views of a town.
const TOWN_EVENTS: &str = "/api/v1/events";
/// The route of the next item, which may be waited for.
pub(crate) const NEXT: &str = "/work/next";

/// The start of the routes of a town, which need a token always.
pub(crate) const TOWN_API: &str = "/api/v1/";

/// The routes of the flight deck's page: without a slash at the end, the page, and its files.
pub(crate) const DECK_ROOT: &str = "/deck";
pub(crate) const DECK: &str = "/deck/";
pub(crate) const DECK_FILE: &str = "/deck/{*path}";
pub(crate) const DECK_LOGIN: &str = "/deck/login";

/// The route of the Model Context Protocol.
pub(crate) const MCP: &str = "/mcp";

/// The route of the caller's own session.
pub(crate) const SESSION: &str = "/api/v1/session";
/// The end of the route by which keys are typed.
pub(crate) const KEYS_END: &str = "/keys";

/// The routes for monitoring the server.
const HEALTH: &str = "/health";
const METRICS: &str = "/metrics";

/// Passes a request on and its answer back.
pub(crate) async fn gate(
    State(service): State<SharedService>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let id = request_id(request.headers());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    let client = request.extensions().get::<Client>().cloned();
    let client = client.map(|client| client.behind(&service.trusted_proxies, request.headers()));
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let counted = GaugeGuard::new(Arc::clone(&service.metrics), |metrics| &metrics.in_flight);

    let mut caller = RequestCaller::anonymous();
    let admitted = match check_host(&request) {
        Err(problem) => Err(problem),
        Ok(()) => {
            admit(&service, route, client.as_ref(), request.method(), request.headers()).await
        }
    };
    let answered = match admitted {
        Err(problem) => Err(problem),
        Ok((found, place)) => {
            caller = found;
            if let Some(client) = &client
                && (caller.is_known() || !service.keys.are_required(client.is_local))
            {
                client.prove();
            }
            request.extensions_mut().insert(caller.clone());
            let answer = within(time_limit(&service, route), next.run(request)).await;
            drop(place);
            answer
        }
    };
    let mut error = None;
    let mut response = match answered {
        Ok(response) => response,
        Err(problem) => PendingProblem(problem).into_response(),
    };
    if let Some(PendingProblem(problem)) = response.extensions_mut().remove::<PendingProblem>() {
        response = problem.render(&id);
        let said = problem.cause.as_ref().unwrap_or(&problem.detail);
        error = problem.status.is_server_error().then(|| said.clone());
    }
    drop(counted);
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    let (time, status) = (began.elapsed(), response.status().as_u16());
    service.metrics.answered(route, method.as_str(), status, time);
    let entry = AccessLogEntry {
        at: service.now(),
        request_id: &id,
        client: client.as_ref().map(|client| client.address),
        caller: caller.name(),
        method: method.as_str(),
        path: &path,
        status,
        time,
        error: error.as_deref(),
    };
    if !service.log.write(&entry) {
        service.metrics.unlogged.fetch_add(1, Ordering::Relaxed);
    }
    response
}

/// Refuses a request that does not say whom it is for, as every client of this protocol must.
fn check_host(request: &Request) -> Result<(), Box<RequestProblem>> {
    if request.version() == Version::HTTP_11 && !request.headers().contains_key(header::HOST) {
        return Err(RequestProblem::malformed_field("Host", "this header is missing").closing());
    }
    Ok(())
}

type GatePermit = Option<tokio::sync::OwnedSemaphorePermit>;

async fn admit(
    service: &Service,
    route: &str,
    client: Option<&Client>,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(RequestCaller, GatePermit), Box<RequestProblem>> {
    let caller = service.keys.check(service, route, client, method, headers).await?;
    let place = match route {
        // Event streams and waiting requests are counted by limits of their own. A monitor is answered when the server is
        // full, too.
        EVENTS | TOWN_EVENTS | NEXT | HEALTH | METRICS => None,
        _ => Some(service.rooms.enter(RoomKind::Request)?),
    };
    Ok((caller, place))
}

fn time_limit(service: &Service, route: &str) -> Duration {
    match route {
        NEXT | MCP => service.limits.answer + LONG_POLL_MAX,
        _ => service.limits.answer,
    }
}

/// The answer, if there is one in time and nothing panics on the way.
async fn within(
    limit: Duration,
    answer: impl Future<Output = Response>,
) -> Result<Response, Box<RequestProblem>> {
    match tokio::time::timeout(limit, AssertUnwindSafe(answer).catch_unwind()).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(_)) => Err(RequestProblem::broken(
            "something went wrong here that should not have; the log of the server says more",
        )),
        Err(_) => Err(RequestProblem::busy(format!(
            "this took longer than {} s, and whether it was done is not known; ask for the state, or repeat it with \
             the same Idempotency-Key",
            limit.as_secs()
        ))),
    }
}

/// The id that the client gave its request, if it can be printed, or a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|given| given.to_str().ok());
    let is_fine = |text: &&str| {
        (1..=REQUEST_ID_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_graphic())
    };
    given.filter(is_fine).map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_keeps_the_id_that_its_client_gave_it_if_that_is_harmless() {
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_static(value));
            request_id(&headers)
        };
        assert_eq!(with("run-17"), "run-17");
        for (name, value) in [("empty", ""), ("two words", "a b")] {
            assert_ne!(with(value), value, "{name}");
        }
        let long = HeaderValue::from_str(&"x".repeat(65)).unwrap();
        assert_eq!(request_id(&HeaderMap::from_iter([(REQUEST_ID, long)])).len(), 36);
    }
}
