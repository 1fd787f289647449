//! Waiting for news.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::engine::postgres::{NotificationListener, PostgresAddress};

/// How often to look at the event numbers while the server announces each commit. Keepalives notice within about a minute that
/// the connection was cut without a word, and a renewal of the host's lease says the number of the last event as well.
const LISTENING_POLL_INTERVAL: Duration = Duration::from_mins(5);

/// Whether a bell rings for each commit at the moment. It can be asked by other threads than the one that waits.
#[derive(Debug, Clone, Default)]
pub struct BellState(Arc<AtomicBool>);

impl BellState {
    pub(crate) fn set_listening(&self, listening: bool) {
        self.0.store(listening, Ordering::Release);
    }

    /// Whether the server announces each commit at the moment.
    pub fn is_listening(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// How often to look without a ring: `silent` if no ring can come, rarely while the server announces each commit.
    pub fn poll_interval(&self, silent: Duration) -> Duration {
        if self.is_listening() { silent.max(LISTENING_POLL_INTERVAL) } else { silent }
    }
}

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

    /// Whether it rings at the moment.
    pub fn state(&self) -> BellState {
        self.0.as_ref().map_or_else(BellState::default, |listener| listener.state.clone())
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
