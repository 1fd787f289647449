//! The flight deck: its page. What the page shows it asks for under `/api/v1`.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use gt_deck::page_file;

use super::sessions::log_in;
use crate::middleware::{DECK, DECK_FILE, DECK_LOGIN, DECK_ROOT};
use crate::problem::{PendingProblem, RequestProblem};
use crate::service::SharedService;

/// The rights of the page: everything comes from this server, and nothing that is written into the page runs.
const DECK_POLICY: &str = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; \
frame-ancestors 'none'";

/// The headers of everything under `/deck/`.
const DECK_HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, DECK_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The routes of the page. They need no login, because they say nothing about the town.
pub(super) fn pages() -> Router<SharedService> {
    Router::new()
        // Relative, so that it stays below the prefix of a reverse proxy.
        .route(DECK_ROOT, get(|| async { redirect("deck/") }))
        .route(DECK, get(|headers: HeaderMap| async move { file("", &headers) }))
        .route(DECK_LOGIN, get(log_in))
        .route(
            DECK_FILE,
            get(|Path(path): Path<String>, headers: HeaderMap| async move { file(&path, &headers) }),
        )
}

/// A redirect to an address that is relative to the one that was asked for.
pub(super) fn redirect(to: &'static str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    secure(response.headers_mut());
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(to));
    response
}

/// Adds the headers of the deck.
pub(super) fn secure(headers: &mut HeaderMap) {
    for (name, value) in DECK_HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

fn file(path: &str, asked: &HeaderMap) -> Response {
    let Some((file, tag)) = page_file(path) else {
        let detail = "the deck has no such file; it begins at /deck/";
        return PendingProblem(RequestProblem::not_found(detail)).into_response();
    };
    // Weak, because the answer may be compressed.
    let tag = format!("W/\"{tag}\"");
    let known = asked.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let is_known = known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag));
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let mut response = file.bytes.into_response();
        if let Some(kind) = file.content_type() {
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        response
    };
    let headers = response.headers_mut();
    secure(headers);
    // A browser asks each time whether its copy is that of this program.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}
