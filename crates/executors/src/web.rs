//! Speaking to a web service: one request, one answer, a limited time.
//!
//! A client of our own, because all we need is one request at a time without redirects, cookies, proxies or reuse of
//! connections, over the TLS that is there for PostgreSQL anyway.

mod answer;
mod body;
mod connection;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use gt_core::WebAddress;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rustls::RootCertStore;
use sha2::Sha256;

pub use self::answer::Head;
use self::answer::{one_line, read_head};
use self::body::Decoder;
use self::connection::{Channel, Deadline, Interrupted, system_roots};

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

impl Method {
    fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
        }
    }
}

/// The body of a request and its type.
#[derive(Debug, Clone, Copy)]
pub struct Content<'a> {
    /// Its media type.
    pub kind: &'a str,
    /// All of its bytes.
    pub body: &'a [u8],
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// Where it goes.
    pub address: &'a WebAddress,
    /// Further fields of the head; a value that cannot stand there is refused.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, if there is one.
    pub content: Option<Content<'a>>,
    /// How long everything together may take.
    pub limit: Duration,
    /// Waiting for the answer stops when this becomes readable.
    pub interrupt: Option<BorrowedFd<'a>>,
}

/// The answer of a web service to a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
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
    pub head: Head,
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
struct Begun<'a> {
    channel: Channel<'a>,
    head: Head,
    /// Bytes of the body that came with the head.
    rest: Vec<u8>,
}

impl Request<'_> {
    /// Sends the request and waits for the answer, of which only the beginning matters. Redirects are told, not
    /// followed.
    pub fn tell(&self) -> Result<Answer, WebError> {
        self.tell_trusting(system_roots)
    }

    fn tell_trusting(&self, roots: impl FnOnce() -> RootCertStore) -> Result<Answer, WebError> {
        let Begun { head, rest, .. } = self.begin(self.interrupt, roots)?;
        let location = head.field("location").map(|place| one_line(place.as_bytes()));
        let words = one_line(&rest[..rest.len().min(WORDS_BYTES_MAX)]);
        Ok(Answer { status: head.status, location, words })
    }

    /// Sends the request and waits for all of the answer. Redirects are told, not followed.
    pub fn ask(&self, bytes_max: usize) -> Result<Reply, WebError> {
        let Begun { mut channel, head, rest } = self.begin(self.interrupt, system_roots)?;
        let mut decoder = Decoder::of(&head);
        let mut body = Vec::new();
        let mut part = rest;
        loop {
            decoder.feed(&part, &mut body).map_err(|_| self.strange())?;
            if body.len() > bytes_max {
                return Err(WebError::TooLong { origin: self.address.origin(), bytes_max });
            }
            if decoder.is_over() {
                return Ok(Reply { head, body });
            }
            part = match channel.read_some() {
                Ok(part) if part.is_empty() && decoder.may_end() => {
                    return Ok(Reply { head, body });
                }
                Ok(part) if part.is_empty() => {
                    return Err(self.failed(io::ErrorKind::UnexpectedEof.into()));
                }
                Ok(part) => part,
                Err(error) => return Err(self.failed(error)),
            };
        }
    }

    /// Sends the request and waits for the head of an answer that has no end. If it does not begin well, the answer is
    /// read like any other. Nothing interrupts this; how long to wait for what follows is said each time.
    pub fn listen(&self, bytes_max: usize) -> Result<Listening, WebError> {
        let Begun { mut channel, head, rest } = self.begin(None, system_roots)?;
        let mut decoder = Decoder::of(&head);
        let mut heard = Vec::new();
        decoder.feed(&rest, &mut heard).map_err(|_| self.strange())?;
        if head.status == 200 {
            let stream = Stream { channel, decoder, heard, origin: self.address.origin() };
            return Ok(Listening::Begun(Box::new(stream)));
        }
        while !decoder.is_over() && heard.len() <= bytes_max {
            match channel.read_some() {
                Ok(part) if part.is_empty() => break,
                Ok(part) => decoder.feed(&part, &mut heard).map_err(|_| self.strange())?,
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(Listening::Refused(Reply { head, body: heard }))
    }

    fn begin<'i>(
        &self,
        interrupt: Option<BorrowedFd<'i>>,
        roots: impl FnOnce() -> RootCertStore,
    ) -> Result<Begun<'i>, WebError> {
        let text = self.head()?;
        let deadline = Deadline::after(self.limit);
        let mut channel = Channel::open(self.address, deadline, interrupt, roots)?;
        let body = self.content.map_or(&[][..], |content| content.body);
        let asked = channel
            .write_all(text.as_bytes())
            .and_then(|()| channel.write_all(body))
            .and_then(|()| channel.flush());
        let answered = match &asked {
            // A service that refuses early has answered before it has read everything.
            Err(error) if !is_cut(error) => Ok(None),
            Ok(()) | Err(_) => read_head(&mut channel),
        };
        match (answered, asked) {
            (Ok(Some((head, rest))), _) => Ok(Begun { channel, head, rest }),
            (_, Err(error)) | (Err(error), Ok(())) => Err(self.failed(error)),
            (Ok(None), Ok(())) => Err(self.strange()),
        }
    }

    fn head(&self) -> Result<String, WebError> {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: gt\r\nAccept: */*\r\nConnection: close\r\n",
            self.method.as_str(),
            self.address.target(),
            self.address.authority(),
        );
        if let Some(Content { kind, body }) = self.content {
            let _ = write!(head, "Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
        }
        for (name, value) in self.headers {
            // A line break would let the value begin another field, or another request.
            if value.chars().any(char::is_control) {
                return Err(WebError::Field((*name).to_owned()));
            }
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        Ok(head)
    }

    fn strange(&self) -> WebError {
        WebError::Strange(self.address.origin())
    }

    fn failed(&self, error: io::Error) -> WebError {
        failed(self.address.origin(), error)
    }
}

fn is_cut(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

fn failed(origin: String, error: io::Error) -> WebError {
    let inner = error.get_ref();
    let interrupted: Option<&Interrupted> = inner.and_then(|inner| inner.downcast_ref());
    if interrupted.is_some() {
        return WebError::Interrupted(origin);
    }
    match inner.and_then(|inner| inner.downcast_ref()) {
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
    Begun(Box<Stream>),
    /// It said something else instead.
    Refused(Reply),
}

/// An answer that comes bit by bit, and may have no end.
#[derive(Debug)]
pub struct Stream {
    channel: Channel<'static>,
    decoder: Decoder,
    /// Bytes that have come and were not handed out.
    heard: Vec<u8>,
    origin: String,
}

/// The part of a stream that came within some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// These bytes.
    Bytes(Vec<u8>),
    /// No bytes.
    Nothing,
    /// The end of the stream.
    End,
}

impl Stream {
    /// Waits for the service to say something, but no longer than this.
    pub fn next_within(&mut self, limit: Duration) -> Result<Heard, WebError> {
        self.channel.set_deadline(Deadline::after(limit));
        loop {
            if !self.heard.is_empty() {
                return Ok(Heard::Bytes(std::mem::take(&mut self.heard)));
            }
            if self.decoder.is_over() {
                return Ok(Heard::End);
            }
            match self.channel.read_some() {
                Ok(part) if part.is_empty() => return Ok(Heard::End),
                Ok(part) => {
                    let fed = self.decoder.feed(&part, &mut self.heard);
                    fed.map_err(|_| WebError::Strange(self.origin.clone()))?;
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(Heard::Nothing),
                Err(error) => return Err(failed(self.origin.clone(), error)),
            }
        }
    }
}

/// The HMAC-SHA256 of a text, in hexadecimal digits: proof that its sender knows the secret.
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
