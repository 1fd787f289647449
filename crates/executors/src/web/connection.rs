//! The connection below `ureq`: a TCP socket whose every wait ends at a deadline, or when the caller interrupts it.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

use super::WebError;

/// How long it may take until the host accepts the connection.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(10);

/// When everything must be over. The copies of a deadline move together.
#[derive(Debug, Clone)]
pub(super) struct Deadline(Arc<Mutex<Instant>>);

impl Deadline {
    /// So much later.
    pub(super) fn after(limit: Duration) -> Self {
        Self(Arc::new(Mutex::new(Instant::now() + limit)))
    }

    /// Moves it to so much later than now.
    pub(super) fn restart(&self, limit: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + limit;
    }

    fn left(&self) -> io::Result<Duration> {
        let end = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// Finds the addresses of a host as `ureq` does, and names the host in the error.
#[derive(Debug)]
pub(super) struct NamedResolver;

impl Resolver for NamedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        DefaultResolver::default().resolve(uri, config, timeout).map_err(|error| {
            let why = match error {
                ureq::Error::Io(error) => error.to_string(),
                ureq::Error::Timeout(_) => "the system did not answer in time".to_owned(),
                other => other.to_string(),
            };
            let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            ureq::Error::Other(Box::new(WebError::Unknown { host, why }))
        })
    }
}

/// Connects to the first address of a host that accepts the connection.
#[derive(Debug)]
pub(super) struct TimedConnector {
    pub(super) origin: String,
    pub(super) connect_by: Deadline,
    pub(super) deadline: Deadline,
    pub(super) interrupt: Option<Arc<OwnedFd>>,
}

impl Connector for TimedConnector {
    type Out = TimedTransport;

    fn connect(
        &self,
        details: &ConnectionDetails,
        _chained: Option<()>,
    ) -> Result<Option<TimedTransport>, ureq::Error> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for place in &details.addrs {
            let left = self.connect_by.left();
            match left.and_then(|left| TcpStream::connect_timeout(place, left)) {
                Ok(stream) => {
                    // Head and body are written one after the other; delaying the second has no use.
                    let _ = stream.set_nodelay(true);
                    let config = details.config;
                    let buffers =
                        LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
                    let (deadline, interrupt) = (self.deadline.clone(), self.interrupt.clone());
                    let origin = self.origin.clone();
                    return Ok(Some(TimedTransport {
                        stream,
                        buffers,
                        origin,
                        deadline,
                        interrupt,
                    }));
                }
                Err(error) => last = error,
            }
        }
        let unreachable = WebError::Unreachable { origin: self.origin.clone(), source: last };
        Err(ureq::Error::Other(Box::new(unreachable)))
    }
}

/// A connection whose every step ends at the deadline, so that a service that trickles does not hold us.
#[derive(Debug)]
pub(super) struct TimedTransport {
    stream: TcpStream,
    buffers: LazyBuffers,
    origin: String,
    deadline: Deadline,
    interrupt: Option<Arc<OwnedFd>>,
}

impl TimedTransport {
    /// Waits until something can be read, if there is a descriptor that may interrupt the wait.
    fn wait(&self) -> Result<(), ureq::Error> {
        let Some(interrupt) = &self.interrupt else { return Ok(()) };
        let limit = Timespec::try_from(self.deadline.left()?).ok();
        let mut watched = [
            PollFd::from_borrowed_fd(interrupt.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN),
        ];
        retry_on_intr(|| poll(&mut watched, limit.as_ref())).map_err(io::Error::from)?;
        if watched[0].revents().is_empty() {
            return Ok(());
        }
        Err(ureq::Error::Other(Box::new(WebError::Interrupted(self.origin.clone()))))
    }

    fn send(&mut self, amount: usize) -> io::Result<()> {
        self.stream.set_write_timeout(Some(self.deadline.left()?))?;
        self.stream.write_all(&self.buffers.output()[..amount])
    }

    fn receive(&mut self) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.deadline.left()?))?;
        self.stream.read(self.buffers.input_append_buf())
    }
}

impl Transport for TimedTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), ureq::Error> {
        match self.send(amount) {
            // A service that refuses early has answered before it has read everything: the answer decides.
            Err(error) if is_cut(&error) => Ok(()),
            sent => Ok(sent.map_err(as_timeout)?),
        }
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, ureq::Error> {
        loop {
            self.wait()?;
            match self.receive() {
                Ok(count) => {
                    self.buffers.input_appended(count);
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(as_timeout(error).into()),
            }
        }
    }

    /// Each connection serves one request.
    fn is_open(&mut self) -> bool {
        false
    }
}

fn is_cut(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// A socket whose time is up says that it would block.
fn as_timeout(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}
