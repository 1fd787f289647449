//! Sessions over HTTP.

use std::sync::Arc;

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::server::McpServer;
use crate::session_limit::LimitedSessions;

/// The largest request, in bytes.
const REQUEST_BYTES_MAX: usize = 1024 * 1024;

/// The service behind `/mcp`. A request without an [`crate::McpCaller`] among its extensions is refused. Each answer is
/// awaited with [`crate::within_session_limit`].
pub type McpHttpService = StreamableHttpService<McpServer, LimitedSessions>;

/// The service behind `/mcp`, until it is stopped, with at most so many sessions at a time. Pages of these origins may ask; none
/// if the list is empty, and all without a list.
pub fn http_service(
    stopping: CancellationToken,
    origins: Option<Vec<String>>,
    sessions_max: usize,
) -> McpHttpService {
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(stopping)
        .with_max_request_body_bytes(REQUEST_BYTES_MAX)
        // Each request needs a token, which a page of others does not have; the name of the server says nothing.
        .disable_allowed_hosts();
    let config = match origins {
        Some(origins) => config.with_allowed_origins(origins).enforce_origin_validation(),
        None => config.disable_allowed_origins(),
    };
    let sessions = Arc::new(LimitedSessions::new(LocalSessionManager::default(), sessions_max));
    StreamableHttpService::new(|| Ok(McpServer::over_http()), sessions, config)
}
