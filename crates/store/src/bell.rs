//! Waiting for news.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::postgres::{NotificationListener, PostgresAddress};

/// Says when there may be news. It is a hint, never a promise: the caller looks at the event
/// numbers when it rings, and from time to time without it.
#[derive(Debug)]
pub struct Bell(Option<NotificationListener>);

impl Bell {
    pub(crate) fn of_server(server: &Arc<PostgresAddress>) -> Self {
        Self(NotificationListener::start(server))
    }

    pub(crate) fn silent() -> Self {
        Self(None)
    }

    /// Whether it can ring at all. If not, one has to look often.
    pub fn rings(&self) -> bool {
        self.0.is_some()
    }

    /// Waits until it rings, at most so long; says whether it did.
    pub fn wait(&self, at_most: Duration) -> bool {
        if let Some(listener) = &self.0 {
            return listener.wait(at_most);
        }
        std::thread::sleep(at_most);
        false
    }
}
