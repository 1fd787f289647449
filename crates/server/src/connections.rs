//! Connections: taking them in, keeping slow ones from staying, and letting them go.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use gt_core::Networks;
use gt_execution::connections::worker_behind;
use gt_town::Town;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use crate::auth::TokenRules;
use crate::config::ServerLimits;
use crate::metrics::{GaugeGuard, Metrics};
use crate::service::SharedService;
use crate::unproven_connections::{UnprovenConnection, UnprovenConnections};

/// The pause before the next connection is accepted if the machine has no room for it.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// The most bytes of a request's first line and headers.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long a new connection waits for the place of one that was closed for it.
const FREED_PLACE_WAIT_MAX: Duration = Duration::from_millis(250);

/// The header in which proxies say whom they ask for, the nearest client last.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// How long, and for how many bytes, a client is listened to after the last answer. A client that is still sending would
/// lose the answer if the connection were cut.
const LAST_ANSWER_LISTEN_TIME: Duration = Duration::from_secs(5);
const LINGER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The answer to a connection when there is no place left. Nothing of the request was read.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
retry-after: 1\r\nconnection: close\r\ncontent-length: 122\r\n\r\n\
{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"too many connections; try again\",\
\"code\":\"busy\"}";

/// The client of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    /// Came in by a door that only this machine's own users can reach.
    pub(crate) is_local: bool,
    probation: Arc<UnprovenConnection>,
    /// The run or check that the connection belongs to, once it was looked for.
    worker: Arc<OnceCell<Option<String>>>,
}

impl Client {
    /// The run or check of the town that this connection belongs to; nothing for a person.
    pub(crate) async fn worker(&self, town: &Arc<Town>) -> Option<String> {
        if !self.is_local || !town.has_directory() {
            return None;
        }
        let looked = self.worker.get_or_init(|| async {
            let (town, address) = (Arc::clone(town), self.address);
            let look = move || worker_behind(&town, address);
            tokio::task::spawn_blocking(look).await.unwrap_or_default()
        });
        looked.await.clone()
    }

    /// The client that a trusted proxy asks for; the same if no such proxy asks.
    pub(crate) fn behind(self, proxies: &Networks, headers: &HeaderMap) -> Self {
        if !proxies.contain(self.address.ip()) {
            return self;
        }
        let lines = headers.get_all(FORWARDED_FOR).into_iter();
        let named: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
        let named = named.join(",");
        let mut addresses = named.rsplit(',').map(|text| text.trim().parse::<IpAddr>());
        // An address before one that is no trusted proxy is only a claim of that client.
        let client = addresses.find(|address| match address {
            Ok(address) => !proxies.contain(*address),
            Err(_) => true,
        });
        match client {
            Some(Ok(address)) => {
                let is_local = self.is_local && address.to_canonical().is_loopback();
                Self { address: SocketAddr::new(address, 0), is_local, ..self }
            }
            Some(Err(_)) => Self { is_local: self.is_local && named.is_empty(), ..self },
            None => self,
        }
    }

    /// Its connection is a client's.
    pub(crate) fn prove(&self) {
        self.probation.end();
    }
}

/// The state that all connections share.
#[derive(Clone)]
pub(crate) struct ConnectionState {
    pub(crate) router: Router,
    pub(crate) limits: ServerLimits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) unproven: Arc<UnprovenConnections>,
    pub(crate) service: SharedService,
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl ConnectionState {
    /// Takes connections in until the server stops.
    pub(crate) async fn receive(self, listener: TcpListener, is_local: bool) {
        loop {
            let accepted = tokio::select! {
                () = self.stopping.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) if is_of_one_connection(&error) => continue,
                // No file descriptors, most often: some will be free soon.
                Err(_) => {
                    sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            };
            let probation = self.probation(address.ip(), is_local);
            // An answer is one small packet; no client should wait for more to come.
            let _ = stream.set_nodelay(true);
            let reception = self.clone();
            self.tasks.spawn(async move {
                let Some(place) = reception.place(&probation).await else {
                    reception.metrics.refused.fetch_add(1, Ordering::Relaxed);
                    refuse(stream).await;
                    return;
                };
                reception
                    .serve(stream, Client { address, is_local, probation, worker: Arc::default() })
                    .await;
                drop(place);
            });
        }
    }

    /// Where no token is needed, the address does not identify the client; and a proxy asks for many clients.
    fn probation(&self, address: IpAddr, is_local: bool) -> Arc<UnprovenConnection> {
        let keys: &TokenRules = &self.service.keys;
        let is_counted =
            keys.are_required(is_local) && !self.service.trusted_proxies.contain(address);
        self.unproven.admit(is_counted.then_some(address))
    }

    /// A place among all connections; if there is none, that of an unproven one.
    async fn place(&self, probation: &UnprovenConnection) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        if !probation.make_room() {
            return None;
        }
        let place = Arc::clone(&self.places).acquire_owned();
        tokio::time::timeout(FREED_PLACE_WAIT_MAX, place).await.ok()?.ok()
    }

    async fn serve(&self, stream: TcpStream, client: Client) {
        let _counted = GaugeGuard::new(Arc::clone(&self.metrics), |metrics| &metrics.connections);
        let patient = TimedStream::new(stream, self.limits.stall, self.stopping.clone());
        let io = TokioIo::new(patient);
        let over = client.probation.over.clone();
        let router = &self.router;
        let service = service_fn(|mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(client.clone());
            router.clone().call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(io, service);
        let mut connection = std::pin::pin!(connection);
        // A connection that breaks concerns only its client.
        tokio::select! {
            _ = connection.as_mut() => return,
            () = over.cancelled() => return,
            () = self.stopping.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }
}

/// Whether only the connection that was about to come is concerned, and not the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

async fn refuse(mut stream: TcpStream) {
    // A client that does not read it is not waited for.
    let _ = tokio::time::timeout(ACCEPT_RETRY_DELAY, stream.write_all(FULL)).await;
}

/// Is ready when a connection has been listened to for long enough after its last answer.
type LingeringEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection whose other side must take what it is sent in time, and is listened to for a while after the last answer.
struct TimedStream<S> {
    stream: S,
    stall: Duration,
    stopping: CancellationToken,
    /// How many bytes may still come after the last answer, and until when, once that is sent.
    lingering: Option<(usize, LingeringEnd)>,
    /// When the other side will have taken nothing for too long, while it takes nothing.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedStream<S> {
    fn new(stream: S, stall: Duration, stopping: CancellationToken) -> Self {
        Self { stream, stall, stopping, lingering: None, until: None }
    }

    /// Handles the result of an attempt to write.
    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let stall = self.stall;
        let until = self.until.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + stall)));
        ready!(until.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Says that nothing more comes, and takes what the other side still sends until that ends, too.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.lingering.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        }
        let stopping = this.stopping.clone();
        let (left, until) = this.lingering.get_or_insert_with(|| {
            let until = async move {
                tokio::select! {
                    () = stopping.cancelled() => {}
                    () = sleep(LAST_ANSWER_LISTEN_TIME) => {}
                }
            };
            (LINGER_BYTES_MAX, Box::pin(until))
        });
        let mut bytes = [0; 8 * 1024];
        while *left > 0 && until.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                break;
            }
            *left = left.saturating_sub(buffer.filled().len());
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_connection_gets_a_whole_answer() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
