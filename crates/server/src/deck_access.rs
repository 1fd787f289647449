//! The browsers that have logged in to the flight deck: their cookie, and the proof that a request comes from its page.
//!
//! A cookie is sent with every request to this machine, on any port and from any page. So it identifies a session and
//! allows nothing by itself: the request must name a host that is known here, must not come from a page of another
//! origin, and must carry a proof that only the deck's own page can read if it changes something.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use gt_core::WebAddress;
use gt_core::work::{SESSION_AGE_MAX, TokenSecret};
use gt_town::deck::DeckSettings;
use gt_town::{Result, Town};

use crate::auth::is_this_machine;
use crate::problem::RequestProblem;

/// The header with the proof that a request comes from the page.
pub(crate) const PAGE_PROOF: HeaderName = HeaderName::from_static("x-gt-csrf");
/// The header in which browsers say where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// How many cookies of our name are looked at: another program on this machine may have set some.
const COOKIES_MAX: usize = 4;

/// The rules for browsers.
#[derive(Debug)]
pub(crate) struct DeckAccess {
    /// The name of the cookie. It has the id of the town in it, because cookies do not tell ports apart.
    cookie: String,
    /// The address by which people reach the deck, if it is not one of this machine.
    url: Option<WebAddress>,
}

impl DeckAccess {
    /// The rules of this town.
    pub(crate) fn of(town: &Town) -> Result<Self> {
        Ok(Self::new(town.id(), DeckSettings::of(town)?.url))
    }

    fn new(town_id: &str, url: Option<WebAddress>) -> Self {
        let id: String = town_id.chars().filter(char::is_ascii_alphanumeric).collect();
        Self { cookie: format!("gt_deck_{id}"), url }
    }

    /// The secrets in the cookies of this town.
    pub(crate) fn cookies(&self, headers: &HeaderMap) -> Vec<TokenSecret> {
        let lines = headers.get_all(header::COOKIE).into_iter();
        let pairs = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(';'));
        let named = pairs.filter_map(|pair| pair.trim().split_once('='));
        let ours = named.filter(|(name, _)| *name == self.cookie);
        ours.filter_map(|(_, value)| TokenSecret::parse(value)).take(COOKIES_MAX).collect()
    }

    /// Refuses a request to a host that is not known here: a page of others could have its own name point to this
    /// machine.
    pub(crate) fn check_host(&self, headers: &HeaderMap) -> Result<(), Box<RequestProblem>> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let is_ours = |host: &str| {
            is_this_machine(host)
                || self.url.as_ref().is_some_and(|url| host.eq_ignore_ascii_case(&url.authority()))
        };
        match host {
            Some(host) if is_ours(host) => Ok(()),
            _ => Err(RequestProblem::new(
                StatusCode::FORBIDDEN,
                "wrong-host",
                "the flight deck does not have this name; ask for localhost or an address, or make the name known: gt config set \
                 deck.url https://<name>/deck/",
            )),
        }
    }

    /// Refuses a request with a cookie that a page of others has sent, or may have sent.
    pub(crate) fn check_page(
        &self,
        method: &Method,
        headers: &HeaderMap,
        secret: &TokenSecret,
    ) -> Result<(), Box<RequestProblem>> {
        self.check_origin(headers)?;
        if matches!(*method, Method::GET | Method::HEAD) {
            return Ok(());
        }
        let proof = headers.get(PAGE_PROOF).and_then(|proof| proof.to_str().ok());
        if proof.is_some_and(|proof| secret.page_proof().matches(proof)) {
            return Ok(());
        }
        Err(RequestProblem::new(
            StatusCode::FORBIDDEN,
            "csrf",
            "the header X-GT-CSRF is missing or wrong; GET /api/v1/session says what it must be",
        ))
    }

    /// Refuses a request that a browser says comes from a page of another origin.
    pub(crate) fn check_origin(&self, headers: &HeaderMap) -> Result<(), Box<RequestProblem>> {
        let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let is_from_elsewhere =
            text(FETCH_SITE).is_some_and(|site| matches!(site, "cross-site" | "same-site"));
        let host = text(header::HOST).unwrap_or_default();
        let is_ours = |origin: &str| {
            let (_, authority) = origin.split_once("://").unwrap_or_default();
            (!authority.is_empty() && authority.eq_ignore_ascii_case(host))
                || self.url.as_ref().is_some_and(|url| origin.eq_ignore_ascii_case(&url.origin()))
        };
        if is_from_elsewhere || text(header::ORIGIN).is_some_and(|origin| !is_ours(origin)) {
            return Err(RequestProblem::new(
                StatusCode::FORBIDDEN,
                "wrong-origin",
                "a page of another origin may not use a login of the flight deck",
            ));
        }
        Ok(())
    }

    /// The header that gives a browser its session.
    pub(crate) fn cookie_of(
        &self,
        secret: &TokenSecret,
        is_encrypted: bool,
    ) -> Option<HeaderValue> {
        self.cookie_with(&secret.reveal(), SESSION_AGE_MAX.as_secs(), is_encrypted)
    }

    /// The header that takes it away again.
    pub(crate) fn no_cookie(&self, is_encrypted: bool) -> Option<HeaderValue> {
        self.cookie_with("", 0, is_encrypted)
    }

    fn cookie_with(&self, value: &str, seconds: u64, is_encrypted: bool) -> Option<HeaderValue> {
        let secure = if is_encrypted { "; Secure" } else { "" };
        let text = format!(
            "{}={value}; Path={}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}",
            self.cookie,
            self.path()
        );
        HeaderValue::from_str(&text).ok()
    }

    /// The path below which the cookie is sent: the deck and its data are both there.
    fn path(&self) -> &str {
        let path = self.url.as_ref().map_or("/", |url| url.target());
        let path = path.split(['?', ';']).next().unwrap_or_default();
        let above = path.trim_end_matches('/').strip_suffix("/deck").unwrap_or_default();
        if above.is_empty() { "/" } else { above }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        lines.iter().map(line).collect()
    }

    fn behind(url: &str) -> DeckAccess {
        DeckAccess::new("0b-7", Some(WebAddress::parse(url).unwrap()))
    }

    #[test]
    fn only_known_hosts_are_ours() {
        let (plain, named) =
            (DeckAccess::new("0b-7", None), behind("https://town.example/gt/deck/"));
        let fits = |access: &DeckAccess, host: &str| {
            access.check_host(&headers(&[("host", host)])).is_ok()
        };
        for host in ["localhost:28400", "127.0.0.1:28400", "[::1]:28400", "10.0.0.7"] {
            assert!(fits(&plain, host) && fits(&named, host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example"] {
            assert!(!fits(&plain, host) && !fits(&named, host), "{host}");
        }
        assert!(fits(&named, "Town.Example") && !fits(&plain, "town.example"));
        assert!(!fits(&named, "town.example:8443"), "another port is another server");
        assert!(plain.check_host(&HeaderMap::new()).is_err());
    }

    #[test]
    fn a_request_of_a_session_comes_from_its_page() {
        let access = behind("https://town.example/gt/deck/");
        let secret = TokenSecret::from_random([3; 32]);
        let proof = secret.page_proof().digits();
        let code = |method: Method, lines: &[(&'static str, &str)]| {
            let lines = [&[("host", "localhost:1")], lines].concat();
            let checked = access.check_page(&method, &headers(&lines), &secret);
            checked.map_or_else(|problem| problem.code, |()| "fine")
        };
        assert_eq!(code(Method::GET, &[]), "fine");
        assert_eq!(code(Method::GET, &[("origin", "http://localhost:1")]), "fine");
        assert_eq!(code(Method::GET, &[("origin", "https://town.example")]), "fine");
        for origin in ["http://localhost:2", "https://evil.example", "null", "", "localhost:1"] {
            assert_eq!(code(Method::GET, &[("origin", origin)]), "wrong-origin", "{origin}");
        }
        for site in ["cross-site", "same-site"] {
            assert_eq!(code(Method::GET, &[("sec-fetch-site", site)]), "wrong-origin");
        }
        for method in [Method::POST, Method::PATCH, Method::DELETE, Method::PUT] {
            assert_eq!(code(method.clone(), &[]), "csrf");
            assert_eq!(code(method.clone(), &[("x-gt-csrf", "1")]), "csrf");
            assert_eq!(code(method, &[("x-gt-csrf", &proof)]), "fine");
        }
        let foreign = [("x-gt-csrf", proof.as_str()), ("origin", "https://evil.example")];
        assert_eq!(code(Method::POST, &foreign), "wrong-origin");
    }

    #[test]
    fn a_cookie_is_for_one_town_and_for_no_script() {
        let secret = TokenSecret::from_random([3; 32]);
        let access = DeckAccess::new("0b-7", None);
        let cookie = access.cookie_of(&secret, false).unwrap();
        let text = cookie.to_str().unwrap();
        assert!(text.starts_with("gt_deck_0b7=gtw_0303"), "{text}");
        assert!(text.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict"), "{text}");
        let behind = behind("https://town.example/gt/deck/").cookie_of(&secret, true).unwrap();
        let text = behind.to_str().unwrap();
        assert!(text.contains("; Path=/gt;") && text.ends_with("; Secure"), "{text}");

        let shown = format!("a=1; gt_deck_0b7=junk; gt_deck_0b7={}; x", secret.reveal());
        let found = access.cookies(&headers(&[("cookie", &shown)]));
        assert_eq!(found.len(), 1);
        let other = format!("gt_deck_0b8={}", secret.reveal());
        assert!(access.cookies(&headers(&[("cookie", &other)])).is_empty());
    }
}
