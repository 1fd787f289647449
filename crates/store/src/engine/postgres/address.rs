//! Which server, which database, which schema, and how to speak to it.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::CertificateCheck;
use crate::engine::LongWaitCallback;
use crate::{LeaseClock, Options, StoreError};

/// A store on a PostgreSQL server, named by a URL.
///
/// Beside PostgreSQL's own options, the URL may have `schema` (whose tables; `gt` unless said),
/// `pool_max` (how many connections for reading), `pooler=transaction` (there is one in between that
/// gives each transaction another connection), and how long to be patient: `pool_wait` (until a
/// connection is free), `reconnect_wait` (until a server that went away is back), `lock_timeout`
/// (until another process has written), `idle_timeout` (with a client that went silent inside a
/// transaction) and `answer_timeout` (with a server that did).
#[derive(Clone)]
pub struct PostgresAddress {
    pub(super) config: Config,
    pub(super) identity: CertificateCheck,
    pub(super) schema: String,
    pub(super) keeps_sessions: bool,
    pub(crate) connections_max: usize,
    pub(crate) pool_wait: Duration,
    pub(super) reconnect_wait: Duration,
    pub(super) lock_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) answer_timeout: Duration,
    pub(super) on_wait: Option<LongWaitCallback>,
    pub(super) lease_clock: LeaseClock,
    shown: String,
}

const SCHEMA: &str = "gt";
const CONNECTIONS_MAX: usize = 8;
const POOL_WAIT: Duration = Duration::from_secs(30);
/// Long enough for a server to restart.
const RECONNECT_WAIT: Duration = Duration::from_secs(15);
/// A write holds the lock for milliseconds, a large import for a minute.
const LOCK_TIMEOUT: Duration = Duration::from_mins(2);
/// A laptop that goes to sleep must not hold the town.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// Longer than any one statement takes. A server that is gone is noticed earlier; this is for one
/// whose machine still answers.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);
/// The longest timeout that PostgreSQL can count in milliseconds.
const TIMEOUT_MAX: Duration = Duration::from_hours(24);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
// A host that has gone to sleep, or whose cable was pulled, is noticed within about a minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;
const UNACKNOWLEDGED_MAX: Duration = Duration::from_mins(1);

/// Lets the server notice within about ten seconds that the machine of a client with the town's lock is gone. A client that
/// is only slow keeps the lock, because its machine still answers.
const NOTICE_DEAD_CLIENT: &str = "SELECT set_config('tcp_keepalives_idle', '4', true), \
    set_config('tcp_keepalives_interval', '2', true), set_config('tcp_keepalives_count', '3', true), \
    set_config('tcp_user_timeout', '10000', true)";

impl PostgresAddress {
    /// Reads a URL. The password may come separately, so that it need not be written down in it.
    pub fn parse(url: &str, password: Option<&str>) -> Result<Self, StoreError> {
        check_form(url)?;
        let bad = |why: String| StoreError::BadAddress { url: without_password(url), why };
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut foreign = Vec::new();
        let mut server = Self {
            config: Config::new(),
            identity: CertificateCheck::Unchecked,
            schema: SCHEMA.to_owned(),
            keeps_sessions: true,
            connections_max: CONNECTIONS_MAX,
            pool_wait: POOL_WAIT,
            reconnect_wait: RECONNECT_WAIT,
            lock_timeout: LOCK_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
            answer_timeout: ANSWER_TIMEOUT,
            on_wait: None,
            lease_clock: LeaseClock::Caller,
            shown: String::new(),
        };
        let (mut mode, mut roots) = ("prefer".to_owned(), None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value).ok_or_else(|| bad(format!("{name} is not valid UTF-8")))?;
            match name {
                "schema" => server.schema = checked_schema(&value).map_err(bad)?,
                "pool_max" => server.connections_max = checked_limit(&value).map_err(bad)?,
                "pool_wait" => server.pool_wait = checked_wait(name, &value).map_err(bad)?,
                "reconnect_wait" => {
                    server.reconnect_wait = checked_wait(name, &value).map_err(bad)?;
                }
                "lock_timeout" => server.lock_timeout = checked_wait(name, &value).map_err(bad)?,
                "idle_timeout" => server.idle_timeout = checked_wait(name, &value).map_err(bad)?,
                "answer_timeout" => {
                    server.answer_timeout = checked_wait(name, &value).map_err(bad)?;
                }
                "pooler" => server.keeps_sessions = checked_pooler(&value).map_err(bad)?,
                "sslmode" => mode = value,
                "sslrootcert" => roots = Some(value),
                _ => foreign.push(pair),
            }
        }
        let query = foreign.join("&");
        let plain = if query.is_empty() { base.to_owned() } else { format!("{base}?{query}") };
        server.config = Config::from_str(&plain).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            let why = format!("{error}{}", cause.unwrap_or_default());
            bad(why.replace(char::is_control, " "))
        })?;
        if server.config.get_hosts().is_empty() && server.config.get_hostaddrs().is_empty() {
            return Err(bad("it names no host".to_owned()));
        }
        if server.config.get_dbname().is_none() {
            return Err(bad("it names no database".to_owned()));
        }
        if let (Some(password), None) = (password, server.config.get_password()) {
            server.config.password(password);
        }
        let ssl;
        (ssl, server.identity) = security(&mode, roots).map_err(bad)?;
        server.config.ssl_mode(if server.is_local() { SslMode::Disable } else { ssl });
        server.shown = format!("{} (schema {})", without_password(base), server.schema);
        server.set_defaults();
        Ok(server)
    }

    /// A URL without its password, and the password, if it has one.
    pub fn split_password(url: &str) -> (String, Option<String>) {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut base, mut password) = (base.to_owned(), None);
        if let Some((scheme, rest)) = base.split_once("://")
            && let Some((login, host)) = rest.rsplit_once('@')
            && let Some((user, secret)) = login.split_once(':')
        {
            password = decode(secret);
            base = format!("{scheme}://{user}@{host}");
        }
        let mut options = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("password", secret)) => password = decode(secret),
                _ => options.push(pair),
            }
        }
        let query = options.join("&");
        (if query.is_empty() { base } else { format!("{base}?{query}") }, password)
    }

    /// The same URL with this password. [`PostgresAddress::split_password`] takes them apart again.
    pub fn with_password(url: &str, password: &str) -> String {
        let mut text = format!("{url}{}password=", if url.contains('?') { '&' } else { '?' });
        for byte in password.bytes() {
            // Writing to a string does not fail.
            let _ = match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => write!(text, "{}", char::from(byte)),
                _ => write!(text, "%{byte:02X}"),
            };
        }
        text
    }

    fn set_defaults(&mut self) {
        let config = &mut self.config;
        if config.get_application_name().is_none() {
            config.application_name("gt");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_keepalives_interval().is_none() {
            config.keepalives_idle(KEEPALIVE_IDLE);
            config.keepalives_interval(KEEPALIVE_INTERVAL);
            config.keepalives_retries(KEEPALIVE_RETRIES);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNACKNOWLEDGED_MAX);
        }
    }

    /// How long a connection may take to be made, over all the hosts the URL names.
    pub(super) fn connect_patience(&self) -> Duration {
        let hosts = self.config.get_hosts().len().max(self.config.get_hostaddrs().len());
        let each = self.config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        each.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX).max(1))
    }

    /// Sockets of this machine need no encryption, and PostgreSQL offers none on them.
    fn is_local(&self) -> bool {
        self.config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)))
    }

    pub(crate) fn with_options(mut self, options: Options) -> Self {
        self.on_wait = options.on_wait;
        self.lease_clock = options.lease_clock;
        self
    }

    /// The channel on which this store says that there is news.
    pub(super) fn channel(&self) -> String {
        format!("gt_{}", self.schema)
    }

    /// The statements that wait for the town's lock, which a transaction holds to its end.
    pub(super) fn take_town_lock(&self) -> String {
        format!(
            "{NOTICE_DEAD_CLIENT}; SELECT pg_advisory_xact_lock(hashtextextended('gt town {}', 0))",
            self.schema
        )
    }

    /// Whether all transactions of a connection reach the same session of the server.
    pub(crate) fn keeps_sessions(&self) -> bool {
        self.keeps_sessions
    }

    /// Whether the URL names several hosts, so that a client goes on with another one.
    pub(super) fn names_several_hosts(&self) -> bool {
        self.config.get_hosts().len().max(self.config.get_hostaddrs().len()) > 1
    }

    /// The store for people, without the password.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.shown).finish()
    }
}

/// How `sslmode` and `sslrootcert` are meant by PostgreSQL's own programs: encryption with or without
/// a check of the server's identity.
fn security(mode: &str, roots: Option<String>) -> Result<(SslMode, CertificateCheck), String> {
    match mode {
        "disable" => Ok((SslMode::Disable, CertificateCheck::Unchecked)),
        "allow" | "prefer" => Ok((SslMode::Prefer, CertificateCheck::Unchecked)),
        "require" => Ok((SslMode::Require, CertificateCheck::Unchecked)),
        "verify-ca" => Ok((SslMode::Require, CertificateCheck::SignedBy(roots))),
        "verify-full" => Ok((SslMode::Require, CertificateCheck::NamedAndSignedBy(roots))),
        other => Err(format!(
            "sslmode is \"{}\"; it may be disable, prefer, require, verify-ca or verify-full",
            other.escape_debug()
        )),
    }
}

fn checked_schema(name: &str) -> Result<String, String> {
    let fits = name.len() <= 48
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if fits && !name.starts_with("pg_") {
        Ok(name.to_owned())
    } else {
        let shown = name.escape_debug();
        Err(format!(
            "schema \"{shown}\" must be a short name of a-z, 0-9 and _, not beginning with pg_"
        ))
    }
}

fn checked_limit(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|limit| (1..=1000).contains(limit)).ok_or_else(|| {
        let shown = text.escape_debug();
        format!("pool_max is \"{shown}\"; it must be a number between 1 and 1000")
    })
}

fn checked_wait(name: &str, text: &str) -> Result<Duration, String> {
    gt_core::time::parse_duration(text)
        .ok()
        .filter(|wait| (Duration::from_millis(1)..=TIMEOUT_MAX).contains(wait))
        .ok_or_else(|| format!("{name} is \"{text}\"; it must be a time like 500ms, 30s or 2m"))
}

fn checked_pooler(text: &str) -> Result<bool, String> {
    match text {
        "transaction" => Ok(false),
        "session" | "none" => Ok(true),
        other => Err(format!(
            "pooler is \"{}\"; it may be none, session or transaction",
            other.escape_debug()
        )),
    }
}

/// The prefixes of URLs.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Refuses a text that is not of the form of a URL. Where it is unclear which part is the password, nothing of
/// it is shown.
fn check_form(url: &str) -> Result<(), StoreError> {
    let bad = |why: &str| {
        Err(StoreError::BadAddress { url: "postgres://…".to_owned(), why: why.to_owned() })
    };
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    if !SCHEMES.iter().any(|scheme| url.starts_with(scheme)) {
        bad("it must be a URL such as postgres://user@host/database")
    } else if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        bad("there is white space in it; write a space as %20")
    } else if base.matches('@').count() > 1 || query.contains('@') {
        bad("there is one @ too many in it; within a password write @ as %40, ? as %3F, / as %2F")
    } else {
        Ok(())
    }
}

/// The options of a URL that are never secret.
const SHOWN: [&str; 7] = [
    "schema",
    "pool_max",
    "pooler",
    "sslmode",
    "sslrootcert",
    "application_name",
    "connect_timeout",
];

/// A URL as it may be shown. Of its options only those that are known to be harmless: a password may have
/// been put under any name.
fn without_password(url: &str) -> String {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let shown = match (base.split_once("://"), base.rsplit_once('@')) {
        (Some((scheme, rest)), Some((_, host))) => {
            let user = rest.split([':', '@']).next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        _ => base.to_owned(),
    };
    let is_harmless =
        |pair: &&str| pair.split('=').next().is_some_and(|name| SHOWN.contains(&name));
    let harmless: Vec<&str> = query.split('&').filter(is_harmless).collect();
    if harmless.is_empty() { shown } else { format!("{shown}?{}", harmless.join("&")) }
}

/// Undoes `%41`.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = (*first == b'%')
            .then(|| std::str::from_utf8(after.get(..2)?).ok())
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_taken_out_of_a_url() {
        for (url, plain, password) in [
            ("postgres://me@db/t", "postgres://me@db/t", None),
            ("postgres://me:a%40b@db/t?schema=x", "postgres://me@db/t?schema=x", Some("a@b")),
            ("postgres://me@db/t?password=s&schema=x", "postgres://me@db/t?schema=x", Some("s")),
            ("postgres://db:5432/t", "postgres://db:5432/t", None),
            ("postgres://me:secret@db:5432/t", "postgres://me@db:5432/t", Some("secret")),
        ] {
            let (found, secret) = PostgresAddress::split_password(url);
            assert_eq!((found.as_str(), secret.as_deref()), (plain, password), "{url}");
            let whole = PostgresAddress::parse(url, None).unwrap();
            let joined = PostgresAddress::parse(&found, secret.as_deref()).unwrap();
            assert_eq!(whole.config.get_password(), joined.config.get_password(), "{url}");
        }
    }

    fn refused(url: &str) -> String {
        match PostgresAddress::parse(url, None) {
            Err(StoreError::BadAddress { why, url }) => {
                assert!(!url.contains("secret"), "{url}");
                why
            }
            other => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn our_options_in_a_url_are_understood_and_the_rest_is_passed_on() {
        let url = "postgres://me:secret@db.example:6543/town?schema=second&pool_max=3\
                   &pool_wait=5s&reconnect_wait=1m&lock_timeout=500ms&idle_timeout=1m30s&answer_timeout=2m\
                   &application_name=mine&pooler=transaction&sslmode=verify-full&sslrootcert=%2Fca.pem";
        let server = PostgresAddress::parse(url, None).unwrap();
        assert_eq!(server.schema, "second");
        assert_eq!(server.connections_max, 3);
        assert_eq!(server.pool_wait, Duration::from_secs(5));
        assert_eq!(server.reconnect_wait, Duration::from_mins(1));
        assert_eq!(server.lock_timeout, Duration::from_millis(500));
        assert_eq!(server.idle_timeout, Duration::from_secs(90));
        assert_eq!(server.answer_timeout, Duration::from_mins(2));
        assert!(!server.keeps_sessions);
        assert_eq!(server.identity, CertificateCheck::NamedAndSignedBy(Some("/ca.pem".to_owned())));
        assert_eq!(server.config.get_application_name(), Some("mine"));
        assert_eq!(server.config.get_ports(), [6543]);
        assert_eq!(server.shown(), "postgres://me@db.example:6543/town (schema second)");
        assert!(!format!("{server:?}").contains("secret"));
    }

    #[test]
    fn a_password_may_come_separately_and_the_one_in_the_url_wins() {
        let of = |url: &str| {
            let server = PostgresAddress::parse(url, Some("separate")).unwrap();
            server.config.get_password().map(<[u8]>::to_vec)
        };
        assert_eq!(of("postgres://me@db/town").as_deref(), Some(&b"separate"[..]));
        assert_eq!(of("postgres://me:own@db/town").as_deref(), Some(&b"own"[..]));
    }

    #[test]
    fn a_url_that_cannot_work_says_why() {
        for (url, part) in [
            ("postgres://me:secret@db/town?schema=Big", "schema"),
            ("postgres://me:secret@db/town?schema=x;drop", "schema"),
            ("postgres://me:secret@db/town?schema=pg_catalog", "schema"),
            ("postgres://me:secret@db/town?pool_max=0", "pool_max"),
            ("postgres://me:secret@db/town?pooler=statement", "pooler"),
            ("postgres://me:secret@db/town?pool_wait=soon", "pool_wait"),
            ("postgres://me:secret@db/town?lock_timeout=0", "lock_timeout"),
            ("postgres://me:secret@db/town?idle_timeout=60", "idle_timeout"),
            ("postgres://me:secret@db/town?answer_timeout=9w", "answer_timeout"),
            ("postgres://me:secret@db/town?sslmode=always", "sslmode"),
            ("postgres://me:secret@db:port/town", "port"),
            ("postgres://me:secret@db", "database"),
            ("postgres://", "host"),
        ] {
            let why = refused(url);
            assert!(why.contains(part), "{url}: {why}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "postgres://me:secret@db/town",
            "postgres://db/town?password=secret&schema=x",
            "postgres://db/town?p%61ssword=secret",
            "postgres://db/town?passwd=secret",
        ] {
            let shown = without_password(url);
            assert!(!shown.contains("secret"), "{shown}");
        }
        for url in [
            "postgres://me:secret@stays@db/town",
            "postgres://me:secret?stays@db/town",
            "postgres://me:secret?schema=stays@db/town",
            "postgres://me:secret stays@db/town",
            "postgres:host=db password=secret",
            "host=db password=secret",
        ] {
            let error = PostgresAddress::parse(url, None).unwrap_err();
            for shown in [error.to_string(), format!("{error:?}")] {
                assert!(!shown.contains("secret") && !shown.contains("stays"), "{shown}");
            }
        }
    }
}
