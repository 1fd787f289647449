//! Hearing that there is news.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, NoTls, Socket};

use super::address::PostgresAddress;
use super::tls;
use crate::bell::BellState;

/// How long to wait before a server that cannot be reached is asked again.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);

/// Listens on a connection of its own, and comes back when that is cut.
///
/// A ring is a hint: it may ring for nothing, and it rings after every reconnection, because
/// news may have been missed meanwhile. The caller looks at the event numbers.
#[derive(Debug)]
pub(crate) struct NotificationListener {
    rings: Receiver<()>,
    pub(crate) state: BellState,
    /// Dropped with the listener, which ends the thread.
    _stop: oneshot::Sender<()>,
}

impl NotificationListener {
    /// Begins to listen, in a thread of its own. Behind a pooler that changes connections, LISTEN does
    /// not last; then, and without a thread, there is nothing to hear.
    pub(crate) fn start(server: &Arc<PostgresAddress>) -> Option<Self> {
        if !server.keeps_sessions {
            return None;
        }
        let (ring, rings) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        let (server, state) = (Arc::clone(server), BellState::default());
        let announced = state.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let name = std::thread::Builder::new().name("gt-store-listener".to_owned());
        let thread = name.spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = listen(&server, &ring, &announced) => {}
                }
            });
        });
        thread.is_ok().then_some(Self { rings, state, _stop: stop })
    }

    /// Waits for news, at most so long; says whether there may be any.
    pub(crate) fn wait(&self, at_most: Duration) -> bool {
        match self.rings.recv_timeout(at_most) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(at_most);
                false
            }
        }
    }
}

async fn listen(server: &PostgresAddress, ring: &SyncSender<()>, state: &BellState) {
    let encrypted = server.config.get_ssl_mode() != SslMode::Disable;
    while !is_gone(ring) {
        match tls::connector(&server.identity) {
            Ok(tls) if encrypted => listen_once(server, tls, ring, state).await,
            _ => listen_once(server, NoTls, ring, state).await,
        }
        state.set_listening(false);
        tokio::time::sleep(RECONNECT_INTERVAL).await;
    }
}

/// Rings, and says whether the receiver is gone.
fn is_gone(ring: &SyncSender<()>) -> bool {
    matches!(ring.try_send(()), Err(TrySendError::Disconnected(())))
}

/// Listens until the connection ends.
async fn listen_once<T>(server: &PostgresAddress, tls: T, ring: &SyncSender<()>, state: &BellState)
where
    T: MakeTlsConnect<Socket>,
{
    let connecting = tokio::time::timeout(server.connect_patience(), server.config.connect(tls));
    let Ok(Ok((client, mut connection))) = connecting.await else {
        return;
    };
    let listen = format!("LISTEN {}", server.channel());
    let mut asked = Box::pin(client.batch_execute(&listen));
    let mut listening = false;
    poll_fn(|context| {
        loop {
            if !listening && asked.as_mut().poll(context).is_ready() {
                listening = true;
                state.set_listening(true);
                // Changes before the server knew that we listen must not be missed.
                let _ = ring.try_send(());
            }
            match connection.poll_message(context) {
                std::task::Poll::Ready(Some(Ok(AsyncMessage::Notification(_)))) => {
                    let _ = ring.try_send(());
                }
                std::task::Poll::Ready(Some(Ok(_))) => {}
                std::task::Poll::Ready(Some(Err(_)) | None) => return std::task::Poll::Ready(()),
                std::task::Poll::Pending => return std::task::Poll::Pending,
            }
        }
    })
    .await;
}
