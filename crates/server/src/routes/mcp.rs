//! `/mcp`: the Model Context Protocol for agents that ask over HTTP.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use axum::{Extension, Router};
use futures_util::StreamExt as _;
use gt_core::limits::MCP_SESSIONS_MAX;
use gt_mcp::{McpHttpService, http_service, within_session_limit};
use tower::ServiceExt as _;

use crate::auth::{RequestCaller, unknown};
use crate::config::AllowedOrigin;
use crate::middleware::MCP;
use crate::problem::{PendingProblem, RequestProblem};
use crate::service::SharedService;

/// The route, with its sessions.
pub(super) fn routes(service: &SharedService, cors: &[AllowedOrigin]) -> Router<SharedService> {
    let exactly = |origin: &AllowedOrigin| match origin {
        AllowedOrigin::Any => None,
        AllowedOrigin::Exactly(origin) => Some(origin.clone()),
    };
    let is_any = cors.contains(&AllowedOrigin::Any);
    let origins = (!is_any).then(|| cors.iter().filter_map(exactly).collect());
    let tools = http_service(service.stopping.clone(), origins, MCP_SESSIONS_MAX);
    Router::new().route(MCP, any(answer)).layer(Extension(tools))
}

/// Passes a request on with its client. A stream of messages ends with the token of its client, and with the server.
async fn answer(
    State(service): State<SharedService>,
    Extension(caller): Extension<RequestCaller>,
    Extension(tools): Extension<McpHttpService>,
    mut request: Request,
) -> Result<Response, PendingProblem> {
    let Some(client) = caller.mcp_caller(&service.town) else {
        return Err(unknown("this needs a token: gt token create makes one").into());
    };
    request.extensions_mut().insert(client);
    let answered = within_session_limit(tools.oneshot(request)).await;
    let answered = match answered.map_err(|refused| RequestProblem::busy(refused.to_string()))? {
        Ok(answered) => answered,
        Err(never) => match never {},
    };
    service.news.ring();
    let over = async move {
        let stopping = service.stopping.clone();
        let keys = Arc::clone(&service);
        tokio::select! {
            _ = keys.keys.ended(&keys, &caller) => {}
            () = stopping.cancelled() => {}
        }
    };
    Ok(answered.map(|body| {
        let stream = Body::new(body).into_data_stream();
        Body::from_stream(stream.take_until(Box::pin(over)))
    }))
}
