//! Addresses of web services that are told something.

use std::fmt;

use crate::Invalid;

/// Longest address, in bytes.
const ADDRESS_BYTES_MAX: usize = 2_000;

/// Where a request goes: `http` or `https`, a host, a port, a path and a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAddress {
    secure: bool,
    host: String,
    port: Option<u16>,
    target: String,
}

impl WebAddress {
    /// Reads an address. User names and passwords are refused, because they would be shown wherever the
    /// address is; so is an address that only a browser would correct.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let refused = |why: &str| Err(Invalid(format!("this is no web address: {why}")));
        if text.len() > ADDRESS_BYTES_MAX {
            return refused(&format!("it is longer than {ADDRESS_BYTES_MAX} bytes"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refused("it may have printable ASCII characters only; encode others as %XX");
        }
        let (secure, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            _ => return refused("write it like https://example.com/path"),
        };
        if rest.contains('#') {
            return refused("leave out the # and what follows it");
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return refused("leave out the user name and password");
        }
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, after)) => (host, after),
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let is_ipv6 = authority.starts_with('[');
        let well_formed =
            if is_ipv6 { host.parse::<std::net::Ipv6Addr>().is_ok() } else { is_host_name(host) };
        if !well_formed {
            return refused("its host is not a name, an IPv4 address or an IPv6 address in [ ]");
        }
        let port = match port {
            "" => None,
            port => match port.strip_prefix(':').map(parse_port) {
                Some(Some(port)) => Some(port),
                _ => return refused("its port is not a number from 1 to 65535"),
            },
        };
        let target = match target {
            "" => "/".to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_owned(),
        };
        let host = host.to_ascii_lowercase();
        let port = port.filter(|port| *port != default_port(secure));
        Ok(Self { secure, host, port, target })
    }

    /// Whether the connection is encrypted and the server's identity checked.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host and, where it is not the usual one, the port, as requests name them.
    pub fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        self.port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"))
    }

    /// The path and the query.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The address of something below this one: a path, which begins with a slash, and perhaps a query.
    pub fn below(&self, target: &str) -> Result<Self, Invalid> {
        let base = self.target.split('?').next().unwrap_or_default().trim_end_matches('/');
        Self::parse(&format!("{}{base}{target}", self.origin()))
    }

    /// The part that is not secret: many services put a key into the path.
    pub fn origin(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.target)
    }
}

fn default_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

fn parse_port(text: &str) -> Option<u16> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| plain && *port > 0)
}

fn is_host_name(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    !host.is_empty() && host.len() <= 253 && host.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_has_one_spelling() {
        for (given, kept) in [
            ("https://example.com", "https://example.com/"),
            ("HTTPS://Example.COM:443/Path?q=1", "https://example.com/Path?q=1"),
            ("http://127.0.0.1:8080/hook", "http://127.0.0.1:8080/hook"),
            ("http://[::1]:81?a=b", "http://[::1]:81/?a=b"),
            ("http://web_1.local:80/", "http://web_1.local/"),
        ] {
            assert_eq!(WebAddress::parse(given).unwrap().to_string(), kept, "{given}");
        }
        let address = WebAddress::parse("https://[::1]/x").unwrap();
        assert_eq!((address.authority().as_str(), address.is_secure()), ("[::1]", true));
        assert_eq!((address.target(), address.origin().as_str()), ("/x", "https://[::1]"));
    }

    #[test]
    fn something_below_an_address_is_at_the_same_host() {
        for (base, below) in [
            ("http://a:81", "http://a:81/work?x=1"),
            ("https://a/queue/", "https://a/queue/work?x=1"),
            ("https://[::1]/queue?old=1", "https://[::1]/queue/work?x=1"),
        ] {
            let base = WebAddress::parse(base).unwrap();
            assert_eq!(base.below("/work?x=1").unwrap().to_string(), below);
            assert!(base.below("/work\r\n").is_err());
        }
    }

    #[test]
    fn an_invalid_address_is_refused_with_a_reason() {
        for (given, reason) in [
            ("", "write it like"),
            ("nonsense", "write it like"),
            ("ftp://example.com/", "write it like"),
            ("https://", "host"),
            ("https:///path", "host"),
            ("https://a..b/", "host"),
            ("https://-a/", "host"),
            ("https://[::1/", "host"),
            ("https://[1.2.3.4]/", "host"),
            ("https://a:/", "port"),
            ("https://a:0/", "port"),
            ("https://a:65536/", "port"),
            ("https://a:+80/", "port"),
            ("https://[::1]80/", "port"),
            ("https://me:secret@a/", "user name"),
            ("https://a/b#c", "#"),
            ("https://a/b c", "ASCII"),
            ("https://bücher.example/", "ASCII"),
            ("https://a/\r\nX: y", "ASCII"),
        ] {
            let Invalid(why) = WebAddress::parse(given).unwrap_err();
            assert!(why.contains(reason), "{given}: {why}");
            assert!(!why.contains("secret"), "{why}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_address_reads_back_as_the_same(
            text in "(http|https)://([a-z0-9.:@\\[\\]#-]{0,12})(:[0-9]{0,6})?[/?]?.{0,12}",
        ) {
            if let Ok(address) = WebAddress::parse(&text) {
                prop_assert_eq!(WebAddress::parse(&address.to_string()), Ok(address));
            }
        }

        #[test]
        fn nothing_makes_it_panic(text in any::<String>()) {
            let _ = WebAddress::parse(&text);
        }
    }
}
