//! Logging in to the flight deck, and the session that this begins.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use gt_api::SessionDocument;
use gt_core::work::TokenSecret;
use gt_workqueue::tokens;

use super::deck::{redirect, secure};
use crate::answer::json;
use crate::auth::RequestCaller;
use crate::connections::Client;
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::{Service, SharedService};

/// The header in which proxies say how the client speaks to them.
const FORWARDED_PROTOCOL: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The text for a person whose link does not work.
const LINK_OVER: &str = "This login link is not valid any more: it can be used once, within a minute.\n\nMake another with: gt deck\n";

/// Begins a session with a login link, and leads to the deck.
pub(super) async fn log_in(
    State(service): State<SharedService>,
    client: Option<Extension<Client>>,
    method: Method,
    headers: HeaderMap,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    // A program that only looks at the link must not use it up.
    if method != Method::GET {
        let detail = "a login is a GET request";
        let status = StatusCode::METHOD_NOT_ALLOWED;
        return Err(RequestProblem::new(status, "method-not-allowed", detail).into());
    }
    service.deck.check_origin(&headers)?;
    let code = query.take("code")?.unwrap_or_default();
    query.finish(&["code"])?;
    let begun = match TokenSecret::parse(&code) {
        None => None,
        Some(secret) => service.ask(move |town| tokens::log_in(town, &secret)).await?,
    };
    let Some((_, secret)) = begun else {
        let mut response = (StatusCode::FORBIDDEN, LINK_OVER).into_response();
        secure(response.headers_mut());
        return Ok(response);
    };
    service.news.ring();
    let mut response = redirect("./");
    let is_encrypted = is_encrypted(&service, client.as_deref(), &headers);
    if let Some(cookie) = service.deck.cookie_of(&secret, is_encrypted) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Whether a trusted proxy says that the client speaks to it by https.
fn is_encrypted(service: &Service, client: Option<&Client>, headers: &HeaderMap) -> bool {
    let is_trusted =
        client.is_some_and(|client| service.trusted_proxies.contain(client.address.ip()));
    let protocol = headers.get(FORWARDED_PROTOCOL).and_then(|protocol| protocol.to_str().ok());
    is_trusted && protocol.is_some_and(|protocol| protocol.eq_ignore_ascii_case("https"))
}

/// Show the caller's own session
///
/// A page sends `csrf` in the header `X-GT-CSRF` of each request that changes something. A token needs none and has none.
#[utoipa::path(
    get,
    path = "/api/v1/session",
    tag = "session",
    responses(
        (status = 200, description = "The session, or the token that was shown.", body = SessionDocument),
        (status = 400, description = "There are no parameters."),
    )
)]
pub(super) async fn show(
    State(service): State<SharedService>,
    Extension(caller): Extension<RequestCaller>,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    query.finish(&[])?;
    let token = caller.token().ok_or_else(|| RequestProblem::not_found("there is no session"))?;
    let csrf = caller.session_secret().map(|secret| secret.page_proof().digits());
    let town = &service.town;
    let name = town.root().file_name().map(|name| name.to_string_lossy().into_owned());
    let document = SessionDocument::of(token, csrf, name.unwrap_or_default(), town.id().to_owned());
    let mut response = json(StatusCode::OK, &document);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Log out
///
/// Ends the session and all its streams. A token is ended by `gt token revoke`.
#[utoipa::path(
    delete,
    path = "/api/v1/session",
    tag = "session",
    responses(
        (status = 204, description = "The session is over."),
        (status = 409, description = "A token was shown, and not the cookie of a session."),
    )
)]
pub(super) async fn log_out(
    State(service): State<SharedService>,
    Extension(caller): Extension<RequestCaller>,
    client: Option<Extension<Client>>,
    headers: HeaderMap,
) -> Result<Response, PendingProblem> {
    let session = caller.session_secret().and(caller.token());
    let Some(session) = session.map(|token| token.id.clone()) else {
        let detail = "this is a token and no session; gt token revoke ends it";
        return Err(RequestProblem::conflict(detail).into());
    };
    service.change(&caller, move |town| tokens::revoke(town, &session)).await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    let is_encrypted = is_encrypted(&service, client.as_deref(), &headers);
    if let Some(cookie) = service.deck.no_cookie(is_encrypted) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
