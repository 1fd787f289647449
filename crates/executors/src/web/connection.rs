//! A connection to a web service, encrypted or not, with a limit for every wait.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use gt_core::WebAddress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::WebError;

/// How long it may take until the host accepts the connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// The caller interrupted the wait.
#[derive(Debug, thiserror::Error)]
#[error("called away")]
pub(super) struct Interrupted;

/// When everything must be over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// So much later.
    pub(super) fn after(limit: Duration) -> Self {
        Self(Instant::now() + limit)
    }

    fn left(self) -> io::Result<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) enum Channel<'a> {
    /// As it is.
    Plain(Timed<'a>),
    /// Encrypted.
    Secure(Box<StreamOwned<ClientConnection, Timed<'a>>>),
}

impl<'a> Channel<'a> {
    /// Connects to the host of an address.
    pub(super) fn open(
        address: &WebAddress,
        deadline: Deadline,
        interrupt: Option<BorrowedFd<'a>>,
        roots: impl FnOnce() -> RootCertStore,
    ) -> Result<Self, WebError> {
        let stream = Timed { stream: connect(address, deadline)?, deadline, interrupt };
        if address.is_secure() {
            Ok(Self::Secure(Box::new(encrypt(address, stream, roots())?)))
        } else {
            Ok(Self::Plain(stream))
        }
    }

    /// From now on everything must be over then.
    pub(super) fn set_deadline(&mut self, deadline: Deadline) {
        match self {
            Self::Plain(timed) => timed.deadline = deadline,
            Self::Secure(stream) => stream.sock.deadline = deadline,
        }
    }

    /// Waits for the next bytes; none when the connection has ended.
    pub(super) fn read_some(&mut self) -> io::Result<Vec<u8>> {
        let mut chunk = vec![0; 16 * 1024];
        loop {
            match self.read(&mut chunk) {
                Ok(count) => {
                    chunk.truncate(count);
                    return Ok(chunk);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Read for Channel<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(timed) => timed.read(buffer),
            Self::Secure(stream) => stream.read(buffer),
        }
    }
}

impl Write for Channel<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(timed) => timed.write(buffer),
            Self::Secure(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(timed) => timed.flush(),
            Self::Secure(stream) => stream.flush(),
        }
    }
}

fn connect(address: &WebAddress, deadline: Deadline) -> Result<TcpStream, WebError> {
    let deadline = Deadline(deadline.0.min(Instant::now() + CONNECT_MAX));
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for place in resolve(address, deadline)? {
        let connected = deadline.left().and_then(|left| TcpStream::connect_timeout(&place, left));
        match connected {
            Ok(stream) => {
                // Head and body are written one after the other; delaying the second has no use.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(WebError::Unreachable { origin: address.origin(), source: last })
}

/// The addresses of the host. The system cannot be told how long it may take, so it is asked by a
/// thread that we need not wait for.
fn resolve(address: &WebAddress, deadline: Deadline) -> Result<Vec<SocketAddr>, WebError> {
    let (host, port) = (address.host().to_owned(), address.port());
    let unknown = |why: String| WebError::Unknown { host: address.host().to_owned(), why };
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
        // The receiver is gone when the time was up first.
        let _ = tell.send(found);
    });
    let left = deadline.left().map_err(|error| unknown(error.to_string()))?;
    match told.recv_timeout(left) {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => Err(unknown(error.to_string())),
        Err(_) => Err(unknown("the system did not answer in time".to_owned())),
    }
}

fn encrypt<'a>(
    address: &WebAddress,
    stream: Timed<'a>,
    roots: RootCertStore,
) -> Result<StreamOwned<ClientConnection, Timed<'a>>, WebError> {
    let untrusted = |why: String| WebError::Untrusted { origin: address.origin(), why };
    if roots.is_empty() {
        return Err(untrusted("the system has no certificates".to_owned()));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| untrusted(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(address.host().to_owned())
        .map_err(|error| untrusted(error.to_string()))?;
    let connection = ClientConnection::new(Arc::new(config), name)
        .map_err(|error| untrusted(error.to_string()))?;
    Ok(StreamOwned::new(connection, stream))
}

/// The certificates that this machine trusts.
pub(super) fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// A connection whose every step ends at the deadline, so that a service that trickles does not hold us.
#[derive(Debug)]
pub(super) struct Timed<'a> {
    stream: TcpStream,
    deadline: Deadline,
    interrupt: Option<BorrowedFd<'a>>,
}

impl Timed<'_> {
    /// Waits until something can be read, if there is a descriptor that may interrupt us meanwhile.
    fn wait(&self) -> io::Result<()> {
        let Some(interrupt) = self.interrupt else { return Ok(()) };
        let limit = Timespec::try_from(self.deadline.left()?).ok();
        let mut watched = [
            PollFd::from_borrowed_fd(interrupt, PollFlags::IN),
            PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN),
        ];
        poll(&mut watched, limit.as_ref())?;
        if watched[0].revents().is_empty() { Ok(()) } else { Err(io::Error::other(Interrupted)) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.stream.set_read_timeout(Some(self.deadline.left()?))?;
        self.stream.read(buffer).map_err(as_timeout)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.deadline.left()?))?;
        self.stream.write(buffer).map_err(as_timeout)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A socket whose time is up says that it would block.
fn as_timeout(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}
