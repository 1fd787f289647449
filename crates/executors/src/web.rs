//! Telling a web service something: one request, one answer, a limited time.
//!
//! A client of our own, because all we need is one request without redirects, cookies, proxies or reuse of
//! connections, over the TLS that is there for PostgreSQL anyway.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use gt_core::WebAddress;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use sha2::Sha256;

/// Longest head of an answer that is read, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How much of the text of an answer is kept, in bytes.
const WORDS_BYTES_MAX: usize = 200;

/// A request that brings something.
#[derive(Debug, Clone, Copy)]
pub struct Post<'a> {
    /// Where it goes.
    pub address: &'a WebAddress,
    /// What the body is.
    pub content_type: &'a str,
    /// Further fields of the head; what cannot stand there is refused.
    pub headers: &'a [(&'a str, &'a str)],
    /// What is brought.
    pub body: &'a [u8],
    /// How long everything together may take.
    pub limit: Duration,
}

/// What a web service said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Where it would rather be asked.
    pub location: Option<String>,
    /// The beginning of its text, on one line.
    pub words: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The request cannot be written down.
    #[error("the field {0} of the request has a line break in it")]
    Field(String),
    /// Nobody knows the host.
    #[error("the host {host} is not known: {why}")]
    Unknown {
        /// Which host.
        host: String,
        /// What the system said.
        why: String,
    },
    /// The host cannot be reached.
    #[error("cannot reach {origin}")]
    Unreachable {
        /// Where.
        origin: String,
        /// Why not.
        source: io::Error,
    },
    /// Nobody can tell whether it is the right host.
    #[error("cannot trust {origin}: {why}")]
    Untrusted {
        /// Where.
        origin: String,
        /// Why not.
        why: String,
    },
    /// The conversation ended early.
    #[error("{origin} did not answer")]
    Silent {
        /// Where.
        origin: String,
        /// What happened instead.
        source: io::Error,
    },
    /// What came back is not HTTP.
    #[error("{0} does not answer as a web service does")]
    Strange(String),
}

impl Post<'_> {
    /// Sends the request and waits for the answer. Redirects are told, not followed.
    pub fn send(&self) -> Result<Answer, WebError> {
        self.send_trusting(system_roots)
    }

    fn send_trusting(&self, roots: impl FnOnce() -> RootCertStore) -> Result<Answer, WebError> {
        let head = self.head()?;
        let deadline = Deadline(Instant::now() + self.limit);
        let stream = Timed { stream: self.connect(deadline)?, deadline };
        if self.address.is_secure() {
            let stream = self.encrypt(stream, roots())?;
            self.converse(stream, &head)
        } else {
            self.converse(stream, &head)
        }
    }

    fn head(&self) -> Result<String, WebError> {
        let mut head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: gt\r\nContent-Type: {}\r\n\
             Content-Length: {}\r\nAccept: */*\r\nConnection: close\r\n",
            self.address.target(),
            self.address.authority(),
            self.content_type,
            self.body.len()
        );
        for (name, value) in self.headers {
            // A line break would begin a field, or a request, of somebody else's making.
            if value.chars().any(char::is_control) {
                return Err(WebError::Field((*name).to_owned()));
            }
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        Ok(head)
    }

    fn connect(&self, deadline: Deadline) -> Result<TcpStream, WebError> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in self.resolve(deadline)? {
            let connected =
                deadline.left().and_then(|left| TcpStream::connect_timeout(&address, left));
            match connected {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(WebError::Unreachable { origin: self.address.origin(), source: last })
    }

    /// The addresses of the host. The system cannot be told how long it may take, so it is asked by a
    /// thread that we need not wait for.
    fn resolve(&self, deadline: Deadline) -> Result<Vec<SocketAddr>, WebError> {
        let (host, port) = (self.address.host().to_owned(), self.address.port());
        let unknown = |why: String| WebError::Unknown { host: self.address.host().to_owned(), why };
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
            // Nobody listens when the time was up first.
            let _ = tell.send(found);
        });
        let left = deadline.left().map_err(|error| unknown(error.to_string()))?;
        match told.recv_timeout(left) {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(unknown(error.to_string())),
            Err(_) => Err(unknown("the system did not answer in time".to_owned())),
        }
    }

    fn encrypt(
        &self,
        stream: Timed,
        roots: RootCertStore,
    ) -> Result<StreamOwned<ClientConnection, Timed>, WebError> {
        let untrusted = |why: String| WebError::Untrusted { origin: self.address.origin(), why };
        if roots.is_empty() {
            return Err(untrusted("the system has no certificates".to_owned()));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| untrusted(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(self.address.host().to_owned())
            .map_err(|error| untrusted(error.to_string()))?;
        let connection = ClientConnection::new(Arc::new(config), name)
            .map_err(|error| untrusted(error.to_string()))?;
        Ok(StreamOwned::new(connection, stream))
    }

    fn converse(&self, mut stream: impl Read + Write, head: &str) -> Result<Answer, WebError> {
        let origin = || self.address.origin();
        let failed = |error: io::Error| match error.get_ref().and_then(|e| e.downcast_ref()) {
            Some(rustls::Error::InvalidCertificate(why)) => {
                WebError::Untrusted { origin: origin(), why: format!("its certificate: {why}") }
            }
            _ => WebError::Silent { origin: origin(), source: error },
        };
        let asked = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(self.body))
            .and_then(|()| stream.flush());
        let answered = match &asked {
            // A service that refuses early has answered before it has read everything.
            Err(error) if !is_cut(error) => Ok(None),
            Ok(()) | Err(_) => read_answer(&mut stream),
        };
        match (answered, asked) {
            (Ok(Some(answer)), _) => Ok(answer),
            (_, Err(error)) | (Err(error), Ok(())) => Err(failed(error)),
            (Ok(None), Ok(())) => Err(WebError::Strange(origin())),
        }
    }
}

fn is_cut(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Reads an answer up to the end of its head, and what came with it; nothing if it is none.
fn read_answer(stream: &mut impl Read) -> io::Result<Option<Answer>> {
    let mut seen = Vec::new();
    loop {
        if let Some(end) = find(&seen, b"\r\n\r\n") {
            let rest = seen.split_off(end + 4);
            let head = String::from_utf8_lossy(&seen).into_owned();
            let Some(status) = status_of(&head) else { return Ok(None) };
            // What comes before the answer is no answer.
            if (100..200).contains(&status) {
                seen = rest;
                continue;
            }
            return Ok(Some(Answer { status, location: location(&head), words: words(&rest) }));
        }
        if seen.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk) {
            Ok(0) if seen.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(0) => return Ok(None),
            Ok(count) => seen.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// The number in `HTTP/1.1 204 No Content`.
fn status_of(head: &str) -> Option<u16> {
    let mut words = head.lines().next()?.split(' ');
    let version = words.next()?;
    let status = words.next()?;
    let plain = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
    if version.starts_with("HTTP/1.") && plain { status.parse().ok() } else { None }
}

fn location(head: &str) -> Option<String> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut found = fields.filter(|(name, _)| name.eq_ignore_ascii_case("location"));
    found.next().map(|(_, value)| one_line(value.as_bytes()))
}

fn words(bytes: &[u8]) -> String {
    one_line(&bytes[..bytes.len().min(WORDS_BYTES_MAX)])
}

fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// When everything must be over.
#[derive(Debug, Clone, Copy)]
struct Deadline(Instant);

impl Deadline {
    fn left(self) -> io::Result<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// A connection whose every step ends at the deadline, so that a service that trickles does not hold us.
#[derive(Debug)]
struct Timed {
    stream: TcpStream,
    deadline: Deadline,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.deadline.left()?))?;
        self.stream.read(buffer).map_err(as_timeout)
    }
}

impl Write for Timed {
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

/// The HMAC-SHA256 of a text, in hexadecimal digits: proof that whoever sent it knows the secret.
pub fn signature(secret: &str, text: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(text);
    let mut digits = String::new();
    for byte in mac.finalize().into_bytes() {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests;
