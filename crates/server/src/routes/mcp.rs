//! `/mcp`: the Model Context Protocol for agents that ask over HTTP.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use axum::{Extension, Router};
use futures_util::StreamExt as _;
use gt_mcp::{McpHttpService, http_service};
use tower::ServiceExt as _;

use crate::auth::{RequestCaller, unknown};
use crate::config::AllowedOrigin;
use crate::middleware::MCP;
use crate::problem::PendingProblem;
use crate::service::SharedService;

/// The route, with its sessions.
pub(super) fn routes(service: &SharedService, cors: &[AllowedOrigin]) -> Router<SharedService> {
    let exactly = |origin: &AllowedOrigin| match origin {
        AllowedOrigin::Any => None,
        AllowedOrigin::Exactly(origin) => Some(origin.clone()),
    };
    let is_any = cors.contains(&AllowedOrigin::Any);
    let origins = (!is_any).then(|| cors.iter().filter_map(exactly).collect());
    let tools = http_service(service.stopping.clone(), origins);
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
    let answered = match tools.oneshot(request).await {
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
