//! Speaking to a web service: one request, one answer, a limited time.
//!
//! `ureq` writes requests, reads answers and encrypts. Redirects, cookies, proxies, compression and reuse of connections
//! are switched off. Waits are ours (`connection`): they end at a deadline, or when the caller interrupts them.

mod connection;

use std::io::{self, Read as _};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use gt_core::WebAddress;
use gt_core::hexadecimal::digits_of;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use sha2::Sha256;
use ureq::http::HeaderMap;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::transport::{Connector as _, RustlsConnector};
use ureq::{Agent, BodyReader, RequestBuilder};

use self::connection::{CONNECT_MAX, Deadline, NamedResolver, TimedConnector};

/// Longest head of an answer that is read, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How many bytes of the body of an answer to a notification are kept.
const WORDS_BYTES_MAX: usize = 200;

/// The HTTP method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads data.
    Get,
    /// Sends data.
    Post,
    /// Changes data.
    Patch,
}

/// The body of a request and its type.
#[derive(Debug, Clone, Copy)]
pub struct RequestBody<'a> {
    /// Its media type.
    pub kind: &'a str,
    /// All of its bytes.
    pub body: &'a [u8],
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct WebRequest<'a> {
    /// The method.
    pub method: Method,
    /// Where it goes.
    pub address: &'a WebAddress,
    /// Further fields of the head; a value that cannot stand there is refused.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, if there is one.
    pub content: Option<RequestBody<'a>>,
    /// How long everything together may take.
    pub limit: Duration,
    /// Waiting for the answer stops when this becomes readable.
    pub interrupt: Option<BorrowedFd<'a>>,
}

/// The status and the fields of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerHead {
    /// The status.
    pub status: u16,
    fields: HeaderMap,
}

impl AnswerHead {
    /// The value of a field, if it is text.
    pub fn field(&self, name: &str) -> Option<&str> {
        str::from_utf8(self.fields.get(name)?.as_bytes()).ok()
    }
}

/// The answer of a web service to a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAnswer {
    /// The status.
    pub status: u16,
    /// Where it would rather be asked.
    pub location: Option<String>,
    /// The beginning of its text, on one line.
    pub words: String,
}

/// The answer of a web service to a request for data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status and the fields.
    pub head: AnswerHead,
    /// All that was asked for.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The request cannot be written down.
    #[error("the field {0} of the request has a line break in it")]
    Field(String),
    /// The host name cannot be resolved.
    #[error("the host {host} is not known: {why}")]
    Unknown {
        /// The host.
        host: String,
        /// The message of the system.
        why: String,
    },
    /// The host cannot be reached.
    #[error("cannot reach {origin}")]
    Unreachable {
        /// The service.
        origin: String,
        /// The error of the system.
        source: io::Error,
    },
    /// It cannot be checked that it is the right host.
    #[error("cannot trust {origin}: {why}")]
    Untrusted {
        /// The service.
        origin: String,
        /// The reason.
        why: String,
    },
    /// The conversation ended early.
    #[error("{origin} did not answer")]
    Silent {
        /// The service.
        origin: String,
        /// The error of the connection.
        source: io::Error,
    },
    /// The answer is not HTTP.
    #[error("{0} does not answer as a web service does")]
    Strange(String),
    /// The answer is longer than the limit of the request.
    #[error("the answer of {origin} is longer than {bytes_max} bytes")]
    TooLong {
        /// The service.
        origin: String,
        /// How long it may be.
        bytes_max: usize,
    },
    /// The caller interrupted the wait.
    #[error("{0} was not waited for any longer")]
    Interrupted(String),
}

/// An answer of which only the head has been read.
struct UnreadAnswer {
    head: AnswerHead,
    body: BodyReader<'static>,
    deadline: Deadline,
}

impl WebRequest<'_> {
    /// Sends the request and waits for the answer, of which only the beginning matters. Redirects are told, not
    /// followed.
    pub fn tell(&self) -> Result<WebAnswer, WebError> {
        self.tell_trusting(system_roots)
    }

    fn tell_trusting(
        &self,
        roots: impl FnOnce() -> Vec<CertificateDer<'static>>,
    ) -> Result<WebAnswer, WebError> {
        let UnreadAnswer { head, mut body, .. } = self.begin(roots)?;
        let location = head.field("location").map(|place| one_line(place.as_bytes()));
        let mut words = [0; WORDS_BYTES_MAX];
        // The status is the answer; its text may be missing.
        let count = body.read(&mut words).unwrap_or(0);
        Ok(WebAnswer { status: head.status, location, words: one_line(&words[..count]) })
    }

    /// Sends the request and waits for all of the answer. Redirects are told, not followed.
    pub fn ask(&self, bytes_max: usize) -> Result<Reply, WebError> {
        let UnreadAnswer { head, body, .. } = self.begin(system_roots)?;
        self.read_all(head, body, bytes_max)
    }

    /// Sends the request and waits for the head of an answer that has no end. If it does not begin well, the answer is
    /// read like any other. How long to wait for what follows is said each time.
    pub fn listen(&self, bytes_max: usize) -> Result<Listening, WebError> {
        let UnreadAnswer { head, body, deadline } = self.begin(system_roots)?;
        if head.status == 200 {
            let stream = AnswerStream { body, deadline, origin: self.address.origin() };
            return Ok(Listening::Begun(Box::new(stream)));
        }
        Ok(Listening::Refused(self.read_all(head, body, bytes_max)?))
    }

    fn read_all(
        &self,
        head: AnswerHead,
        stream: BodyReader<'_>,
        bytes_max: usize,
    ) -> Result<Reply, WebError> {
        let origin = || self.address.origin();
        let mut body = Vec::new();
        let read = stream.take(bytes_max as u64 + 1).read_to_end(&mut body);
        read.map_err(|error| failed(origin(), error.into()))?;
        if body.len() > bytes_max {
            return Err(WebError::TooLong { origin: origin(), bytes_max });
        }
        Ok(Reply { head, body })
    }

    fn begin(
        &self,
        roots: impl FnOnce() -> Vec<CertificateDer<'static>>,
    ) -> Result<UnreadAnswer, WebError> {
        let deadline = Deadline::after(self.limit);
        let agent = self.agent(&deadline, roots)?;
        let address = encoded(self.address);
        let body = self.content.map_or(&[][..], |content| content.body);
        let answered = match self.method {
            Method::Get => self.with_fields(agent.get(address))?.call(),
            Method::Post => self.with_fields(agent.post(address))?.send(body),
            Method::Patch => self.with_fields(agent.patch(address))?.send(body),
        };
        let answered = answered.map_err(|error| failed(self.address.origin(), error))?;
        let (head, body) = answered.into_parts();
        let head = AnswerHead { status: head.status.as_u16(), fields: head.headers };
        Ok(UnreadAnswer { head, body: body.into_reader(), deadline })
    }

    fn with_fields<Any>(
        &self,
        mut request: RequestBuilder<Any>,
    ) -> Result<RequestBuilder<Any>, WebError> {
        let kind = self.content.map(|content| ("Content-Type", content.kind));
        for (name, value) in self.headers.iter().copied().chain(kind) {
            // A line break would let the value begin another field, or another request.
            if value.chars().any(char::is_control) {
                return Err(WebError::Field(name.to_owned()));
            }
            request = request.header_raw(name, value.as_bytes());
        }
        Ok(request.header_raw("Connection", b"close"))
    }

    fn agent(
        &self,
        deadline: &Deadline,
        roots: impl FnOnce() -> Vec<CertificateDer<'static>>,
    ) -> Result<Agent, WebError> {
        let origin = self.address.origin();
        let connect_max = CONNECT_MAX.min(self.limit);
        let interrupt = self.interrupt.map(|interrupt| interrupt.try_clone_to_owned());
        let interrupt = interrupt.transpose();
        let interrupt =
            interrupt.map_err(|source| WebError::Unreachable { origin: origin.clone(), source })?;
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent("gt")
            .max_idle_connections(0)
            .max_response_header_size(HEAD_BYTES_MAX)
            .timeout_resolve(Some(connect_max));
        if self.address.is_secure() {
            let roots = roots();
            if roots.is_empty() {
                let why = "the system has no certificates".to_owned();
                return Err(WebError::Untrusted { origin, why });
            }
            let roots = roots.iter().map(|root| Certificate::from_der(root).to_owned());
            config = config.tls_config(
                TlsConfig::builder()
                    .root_certs(RootCerts::from(roots))
                    .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
                    .build(),
            );
        }
        let connector = TimedConnector {
            origin,
            connect_by: Deadline::after(connect_max),
            deadline: deadline.clone(),
            interrupt: interrupt.map(Arc::new),
        };
        let connector = connector.chain(RustlsConnector::default());
        Ok(Agent::with_parts(config.build(), connector, NamedResolver))
    }
}

/// The address with the characters encoded that `ureq` refuses.
fn encoded(address: &WebAddress) -> String {
    let mut text = address.to_string();
    for (character, code) in [("\"", "%22"), ("<", "%3C"), (">", "%3E"), ("`", "%60")] {
        text = text.replace(character, code);
    }
    text
}

/// The certificates that this machine trusts.
fn system_roots() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

/// Text of others on one line, without anything that a terminal would obey.
fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn failed(origin: String, error: ureq::Error) -> WebError {
    let error = match error {
        ureq::Error::Other(error) => match error.downcast() {
            Ok(error) => return *error,
            Err(other) => io::Error::other(other),
        },
        ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => {
            return WebError::Strange(origin);
        }
        ureq::Error::Tls(why) => return WebError::Untrusted { origin, why: why.to_owned() },
        error => error.into_io(),
    };
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            WebError::Untrusted { origin, why: format!("its certificate: {why}") }
        }
        _ => WebError::Silent { origin, source: error },
    }
}

/// The result of an attempt to listen.
#[derive(Debug)]
pub enum Listening {
    /// The service speaks.
    Begun(Box<AnswerStream>),
    /// It said something else instead.
    Refused(Reply),
}

/// An answer that comes bit by bit, and may have no end.
pub struct AnswerStream {
    body: BodyReader<'static>,
    deadline: Deadline,
    origin: String,
}

/// The part of a stream that came within some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamPart {
    /// These bytes.
    Bytes(Vec<u8>),
    /// No bytes.
    Nothing,
    /// The end of the stream.
    End,
}

impl std::fmt::Debug for AnswerStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl AnswerStream {
    /// Waits for the service to say something, but no longer than this.
    pub fn next_within(&mut self, limit: Duration) -> Result<StreamPart, WebError> {
        self.deadline.restart(limit);
        let mut bytes = vec![0; 16 * 1024];
        match self.body.read(&mut bytes) {
            Ok(0) => Ok(StreamPart::End),
            Ok(count) => {
                bytes.truncate(count);
                Ok(StreamPart::Bytes(bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(StreamPart::Nothing),
            // The connection ended before the stream did.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(StreamPart::End),
            Err(error) => Err(failed(self.origin.clone(), error.into())),
        }
    }
}

/// The HMAC-SHA256 of a text, in hexadecimal digits: proof that its sender knows the secret.
pub fn signature(secret: &str, text: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(text);
    digits_of(&mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests;
