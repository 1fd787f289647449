//! A limit of the sessions that the server keeps at a time.

use std::cell::Cell;

use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::Mutex;

tokio::task_local! {
    /// Whether the request that this task answers was refused a session. The library answers any failure to make one as an
    /// internal error.
    static IS_REFUSED: Cell<bool>;
}

/// Awaits the answer to a request, unless the request needs a session and there are too many.
pub async fn within_session_limit<T>(
    answer: impl Future<Output = T>,
) -> Result<T, TooManySessions> {
    IS_REFUSED
        .scope(Cell::new(false), async {
            let answered = answer.await;
            if IS_REFUSED.with(Cell::get) { Err(TooManySessions) } else { Ok(answered) }
        })
        .await
}

/// Why a client gets no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this server has as many sessions as it keeps; end one with DELETE /mcp and its mcp-session-id, or ask again later: \
     a session that is not used for 5 minutes ends by itself"
)]
pub struct TooManySessions;

/// Why a session could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum SessionProblem {
    /// There are too many.
    #[error(transparent)]
    TooMany(#[from] TooManySessions),
    /// The library refuses.
    #[error(transparent)]
    Library(#[from] LocalSessionManagerError),
}

/// The sessions of the library, of which there are at most so many.
pub struct LimitedSessions {
    sessions: LocalSessionManager,
    max: usize,
    /// Held while a session is counted and made, so that two clients do not take the last one.
    making: Mutex<()>,
}

impl LimitedSessions {
    pub(crate) fn new(sessions: LocalSessionManager, max: usize) -> Self {
        Self { sessions, max, making: Mutex::new(()) }
    }
}

impl SessionManager for LimitedSessions {
    type Error = SessionProblem;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let _making = self.making.lock().await;
        if self.sessions.sessions.read().await.len() >= self.max {
            // Outside of a request there is no answer to change.
            let _ = IS_REFUSED.try_with(|refused: &Cell<bool>| refused.set(true));
            return Err(TooManySessions.into());
        }
        Ok(self.sessions.create_session().await?)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.sessions.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.sessions.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        Ok(self.sessions.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<
        impl futures_util::Stream<Item = ServerSseMessage> + Send + Sync + 'static,
        Self::Error,
    > {
        Ok(self.sessions.create_stream(id, message).await?)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        Ok(self.sessions.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<
        impl futures_util::Stream<Item = ServerSseMessage> + Send + Sync + 'static,
        Self::Error,
    > {
        Ok(self.sessions.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<
        impl futures_util::Stream<Item = ServerSseMessage> + Send + Sync + 'static,
        Self::Error,
    > {
        Ok(self.sessions.resume(id, last_event_id).await?)
    }
}
