//! How a server is started.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use gt_town::OperationError;
use gt_workqueue::work::WorkError;

/// The port that is listened on when none is named.
pub const DEFAULT_PORT: u16 = 8080;

/// Where lines of the access log go. It is called on a thread of its own, with one or more whole lines.
pub type LogSink = Box<dyn FnMut(&str) + Send>;

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The configuration is not allowed.
    #[error("{0}")]
    Rejected(String),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}; name another with --bind or PORT")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The machine does not give what a server needs.
    #[error("cannot start a server")]
    Begin(#[source] std::io::Error),
    /// The store or the town cannot be used.
    #[error(transparent)]
    Operation(#[from] OperationError),
}

impl From<WorkError> for ServeError {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::Operation(error) => Self::Operation(error),
            other => Self::Rejected(other.to_string()),
        }
    }
}

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bind(SocketAddr);

impl Bind {
    /// Only this machine.
    pub fn loopback(port: u16) -> Self {
        Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    /// Reads `host`, `host:port`, `:port`, an address or `[address]:port`; what is missing is loopback and `port`. A
    /// name must be one of this machine.
    pub fn parse(text: &str, port: u16) -> Result<Self, ServeError> {
        let wrong = || {
            ServeError::Rejected(format!(
                "\"{text}\" is no address to listen on; write one like 127.0.0.1:{port}, 0.0.0.0 or [::1]:{port}"
            ))
        };
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self(address));
        }
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Self(SocketAddr::new(address, port)));
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
            None => (text, port),
        };
        if host.is_empty() {
            return if text.is_empty() { Err(wrong()) } else { Ok(Self::loopback(port)) };
        }
        let mut found = (host, port).to_socket_addrs().map_err(|_| wrong())?;
        found.next().map(Self).ok_or_else(wrong)
    }

    /// The address.
    pub fn address(self) -> SocketAddr {
        self.0
    }

    /// Whether only this machine can connect to it.
    pub fn is_loopback(self) -> bool {
        self.0.ip().to_canonical().is_loopback()
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Pages of others that may ask from a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedOrigin {
    /// Pages of every origin.
    Any,
    /// Those that come from there: scheme, host and perhaps port.
    Exactly(String),
}

impl AllowedOrigin {
    /// Reads `*` or an origin like `https://board.example`.
    pub fn parse(text: &str) -> Result<Self, ServeError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        match host {
            Some(host) if !host.is_empty() && host.bytes().all(is_host_byte) => {
                Ok(Self::Exactly(text.to_owned()))
            }
            _ => Err(ServeError::Rejected(format!(
                "\"{text}\" is no origin of a page; write one like https://board.example, without a path, or *"
            ))),
        }
    }
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']')
}

/// The limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections at a time, idle ones included.
    pub connections: usize,
    /// Requests that are worked on at a time.
    pub requests: usize,
    /// Requests that wait for work at a time.
    pub waiting: usize,
    /// Listeners to the events at a time.
    pub listeners: usize,
    /// The size of a request's body, in bytes.
    pub body_bytes: usize,
    /// How long a client may take until its request has begun, and idle connections stay.
    pub head: Duration,
    /// How long a client may take to send the body.
    pub body: Duration,
    /// How long an answer may take.
    pub answer: Duration,
    /// How long a client may take none of an answer that is there.
    pub stall: Duration,
    /// How long requests at work have to end when the server stops.
    pub stop: Duration,
    /// How often listeners hear that the connection is alive.
    pub keep_alive: Duration,
}

impl ServerLimits {
    /// The same with as many connections as this process can have. The other half of its files is for the store, for logs and
    /// for programs that it starts.
    pub(crate) fn within(self, open_files_max: Option<usize>) -> Self {
        let most = open_files_max.map_or(self.connections, |files| (files / 2).max(1));
        Self { connections: self.connections.min(most), ..self }
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            requests: 512,
            waiting: 4096,
            listeners: 4096,
            body_bytes: 4 * 1024 * 1024,
            head: Duration::from_secs(75),
            body: Duration::from_secs(20),
            answer: Duration::from_secs(30),
            stall: Duration::from_mins(1),
            stop: Duration::from_secs(10),
            keep_alive: Duration::from_secs(5),
        }
    }
}

/// How a server is to serve.
pub struct ServerConfig {
    /// Where it listens.
    pub bind: Vec<Bind>,
    /// Answers every client without a token, from every address.
    pub insecure: bool,
    /// Wants a token of every client, also of this machine's own users.
    pub require_token: bool,
    /// Serves the flight deck beside a daemon: every request needs a login or a token, and there need not be a token yet.
    pub is_deck: bool,
    /// Pages of others that may ask from a browser.
    pub cors: Vec<AllowedOrigin>,
    /// The limits.
    pub limits: ServerLimits,
    /// Where requests are logged, if they are.
    pub log: Option<LogSink>,
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving")
            .field("bind", &self.bind)
            .field("insecure", &self.insecure)
            .field("cors", &self.cors)
            .finish_non_exhaustive()
    }
}

impl ServerConfig {
    /// Serves there, to this machine's own users or to clients with a token.
    pub fn on(bind: Vec<Bind>) -> Self {
        Self {
            bind,
            insecure: false,
            require_token: false,
            is_deck: false,
            cors: Vec::new(),
            limits: ServerLimits::default(),
            log: None,
        }
    }

    /// Serves the flight deck to this machine.
    pub fn deck(port: u16) -> Self {
        Self { require_token: true, is_deck: true, ..Self::on(vec![Bind::loopback(port)]) }
    }

    /// Whether a client on another machine could connect.
    pub fn is_exposed(&self) -> bool {
        self.bind.iter().any(|bind| !bind.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_everything_else() {
        let connections = |files| ServerLimits::default().within(files).connections;
        assert_eq!(connections(Some(1024)), 512);
        assert_eq!(connections(Some(65_536)), 10_000);
        assert_eq!(connections(Some(0)), 1);
        assert_eq!(connections(None), 10_000);
    }

    #[test]
    fn an_address_can_be_written_in_many_ways() {
        for (text, address) in [
            ("127.0.0.1:9000", "127.0.0.1:9000"),
            ("0.0.0.0", "0.0.0.0:8080"),
            ("::1", "[::1]:8080"),
            ("[::1]", "[::1]:8080"),
            ("[::]:90", "[::]:90"),
            (":90", "127.0.0.1:90"),
        ] {
            let bind = Bind::parse(text, DEFAULT_PORT).unwrap();
            assert_eq!(bind.to_string(), address, "{text}");
        }
        for text in ["", "127.0.0.1:99999", "no such host", ":x"] {
            assert!(Bind::parse(text, DEFAULT_PORT).is_err(), "{text}");
        }
    }

    #[test]
    fn only_loopback_is_this_machine_alone() {
        for (text, is_loopback) in [
            ("127.0.0.1", true),
            ("127.8.8.8", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("192.168.1.5", false),
        ] {
            assert_eq!(Bind::parse(text, 1).unwrap().is_loopback(), is_loopback, "{text}");
        }
    }

    #[test]
    fn an_origin_has_no_path() {
        assert_eq!(AllowedOrigin::parse("*").unwrap(), AllowedOrigin::Any);
        assert!(AllowedOrigin::parse("https://board.example:8443").is_ok());
        for text in ["", "board.example", "https://", "https://a/b", "null", "http://a b"] {
            assert!(AllowedOrigin::parse(text).is_err(), "{text}");
        }
    }
}
