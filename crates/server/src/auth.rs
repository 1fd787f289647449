//! Tokens, and the requests that each allows.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use gt_core::schedule::Run;
use gt_core::work::{RunToken, Token, TokenScope, TokenSecret, TokenUse};
use gt_mcp::{McpCaller, McpRights, McpRole};
use gt_town::{Actor, Town};
use gt_workqueue::tokens::{self, REMEMBERED_MAX, SESSION_USE_INTERVAL};

use crate::connections::Client;
use crate::metrics::NO_ROUTE;
use crate::middleware::{
    DECK, DECK_FILE, DECK_LOGIN, DECK_ROOT, KEYS_END, MCP, NEXT, SESSION, TOWN_API,
};
use crate::problem::RequestProblem;
use crate::service::Service;

/// How long a listener waits before it looks at its token again when the store could not be read.
const UNREADABLE_PAUSE: Duration = Duration::from_secs(1);
/// How often the run of a listening worker is looked at.
const RUN_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The most tokens that are remembered.
const KNOWN_MAX: usize = 1024;

/// The routes that need no token: none of them says anything about the work.
const PUBLIC: [&str; 5] = ["/", "/docs", "/health", "/openapi.json", NO_ROUTE];

/// The routes of the deck's page. They need no token either, but a name of this server.
const DECK_PAGES: [&str; 4] = [DECK_ROOT, DECK, DECK_FILE, DECK_LOGIN];

/// The answer to a request that needs a token and shows none.
const TOKEN_MISSING: &str = "this needs a login (gt deck opens the page with one) or a token: gt token create makes one, and the header Authorization: Bearer <token> shows it";

/// The client behind a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestCaller {
    shown: Option<Arc<ShownToken>>,
    /// The run whose worker asks; only at the route of the Model Context Protocol.
    run: Option<Arc<Run>>,
}

/// A token that a caller has shown.
#[derive(Debug)]
struct ShownToken {
    secret: TokenSecret,
    token: Token,
    /// The one agent that this request may act for; any agent if there is none.
    only_agent: Option<String>,
}

impl RequestCaller {
    /// A client that showed no token.
    pub(crate) fn anonymous() -> Self {
        Self { shown: None, run: None }
    }

    /// The worker of a run.
    fn worker(run: Run) -> Self {
        Self { shown: None, run: Some(Arc::new(run)) }
    }

    /// The client for tools: the worker of its run, or an operator with the rights of its token.
    pub(crate) fn mcp_caller(&self, town: &Town) -> Option<McpCaller> {
        if let Some(run) = &self.run {
            let actor = Actor { name: run.agent.clone(), owner: String::new() };
            let town = Town::clone(town).acting_as(actor, Some(run.id.clone()));
            let (role, rights) = (McpRole::Worker, McpRights::ALL);
            return Some(McpCaller {
                role,
                town: Arc::new(town),
                rights,
                program: None,
                process: None,
                address: None,
            });
        }
        let scopes = &self.token()?.scopes;
        let rights = McpRights {
            operate: scopes.allow(TokenScope::Operate),
            review: scopes.allow(TokenScope::Review),
        };
        let (role, town) = (McpRole::Operator, Arc::new(self.town(town)?));
        Some(McpCaller { role, town, rights, program: None, process: None, address: None })
    }

    /// The client's actor in the store; nothing for a client that showed no token.
    pub(crate) fn actor(&self) -> Option<Actor> {
        let name = self.shown.as_ref()?.token.name.clone();
        Some(Actor { name, owner: String::new() })
    }

    /// The town as this caller may use it.
    pub(crate) fn town(&self, town: &Town) -> Option<Town> {
        let shown = self.shown.as_ref()?;
        let town = Town::clone(town).acting_as(self.actor()?, None);
        Some(town.only_for(shown.only_agent.clone()))
    }

    /// Whether a token was shown.
    pub(crate) fn is_known(&self) -> bool {
        self.shown.is_some() || self.run.is_some()
    }

    /// The name of the token that was shown, or of the worker; empty if there is none.
    pub(crate) fn name(&self) -> &str {
        let worker = self.run.as_ref().map(|run| run.agent.as_str());
        self.token().map(|token| token.name.as_str()).or(worker).unwrap_or_default()
    }

    /// The token that was shown.
    pub(crate) fn token(&self) -> Option<&Token> {
        self.shown.as_ref().map(|shown| &shown.token)
    }

    /// The secret of the session that the caller has, if its browser has logged in.
    pub(crate) fn session_secret(&self) -> Option<&TokenSecret> {
        let shown = self.shown.as_ref()?;
        (shown.token.shown_as == TokenUse::Session).then_some(&shown.secret)
    }
}

/// The rules for tokens.
#[derive(Debug)]
pub(crate) struct TokenRules {
    insecure: bool,
    require_token: bool,
    known: Mutex<TokenCache>,
}

/// Tokens that were looked up a moment ago.
#[derive(Debug, Default)]
struct TokenCache {
    /// How often tokens had changed when the first of these was looked up.
    changes: u64,
    tokens: HashMap<[u8; 32], (Instant, Token)>,
}

impl TokenRules {
    pub(crate) fn new(insecure: bool, require_token: bool) -> Self {
        Self { insecure, require_token, known: Mutex::default() }
    }

    /// The caller, if the request is allowed.
    pub(crate) async fn check(
        &self,
        service: &Service,
        route: &str,
        client: Option<&Client>,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<RequestCaller, Box<RequestProblem>> {
        if PUBLIC.contains(&route) {
            return Ok(RequestCaller::anonymous());
        }
        if DECK_PAGES.contains(&route) {
            return service.deck.check_host(headers).map(|()| RequestCaller::anonymous());
        }
        let Some(shown) = headers.get(header::AUTHORIZATION) else {
            if route.starts_with(TOWN_API) {
                let (token, secret) = self.session(service, method, headers).await?;
                return allowed(token, secret, method, route);
            }
            if route == MCP {
                return Err(unknown(TOKEN_MISSING));
            }
            self.without_token(client, headers)?;
            if !method.is_safe() {
                refuse_worker(service, client).await?;
            }
            return Ok(RequestCaller::anonymous());
        };
        if route == MCP
            && let Some(token) = shown_token(shown).and_then(RunToken::parse)
        {
            return worker_of(service, token).await;
        }
        let secret = bearer(shown)
            .ok_or_else(|| unknown("the header Authorization must be: Bearer <token>"))?;
        let token = self.look_up(service, &secret, TokenUse::Bearer).await?;
        allowed(token, secret, method, route)
    }

    /// The session of a browser. Its cookie alone is worth nothing: the request must also name this server, come from
    /// its page, and prove that if it changes something.
    async fn session(
        &self,
        service: &Service,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<(Token, TokenSecret), Box<RequestProblem>> {
        let mut problem = unknown(TOKEN_MISSING);
        for secret in service.deck.cookies(headers) {
            match self.look_up(service, &secret, TokenUse::Session).await {
                Ok(token) => {
                    service.deck.check_host(headers)?;
                    service.deck.check_page(method, headers, &secret)?;
                    let used_at = token.used_at.unwrap_or(token.created_at);
                    if service.now().since(used_at) >= SESSION_USE_INTERVAL {
                        let (town, id) = (Arc::clone(&service.town), token.id.clone());
                        // A use that could not be recorded is recorded with the next request.
                        tokio::task::spawn_blocking(move || tokens::record_use(&town, &id));
                    }
                    return Ok((token, secret));
                }
                Err(refused) => problem = refused,
            }
        }
        Err(problem)
    }

    /// Whether a client of this address must show a token.
    pub(crate) fn are_required(&self, is_local: bool) -> bool {
        !self.insecure && (self.require_token || !is_local)
    }

    /// Says whether the token of a caller is still valid; a caller without one needs none.
    pub(crate) async fn confirm(
        &self,
        service: &Service,
        caller: &RequestCaller,
    ) -> Result<(), Box<RequestProblem>> {
        match &caller.shown {
            None => Ok(()),
            Some(shown) => {
                self.look_up(service, &shown.secret, shown.token.shown_as).await.map(drop)
            }
        }
    }

    /// Waits until the token of a caller is revoked or expires.
    pub(crate) async fn ended(
        &self,
        service: &Service,
        caller: &RequestCaller,
    ) -> Box<RequestProblem> {
        let Some(shown) = &caller.shown else {
            return match &caller.run {
                Some(run) => run_over(service, run).await,
                None => std::future::pending().await,
            };
        };
        let mut changes = service.news.token_changes();
        loop {
            // First, so that no change is missed while the store is read.
            changes.borrow_and_update();
            let left = match self.look_up(service, &shown.secret, shown.token.shown_as).await {
                Ok(token) => token.ends_at().map(|until| until.since(service.now())),
                Err(problem) if problem.status == StatusCode::UNAUTHORIZED => return problem,
                Err(_) => Some(UNREADABLE_PAUSE),
            };
            let due = async {
                match left {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = changes.changed() => {
                    // The server stops, which everything that waits is told in another way.
                    if changed.is_err() {
                        return std::future::pending().await;
                    }
                }
                () = due => {}
            }
        }
    }

    fn without_token(
        &self,
        client: Option<&Client>,
        headers: &HeaderMap,
    ) -> Result<(), Box<RequestProblem>> {
        if self.insecure {
            return Ok(());
        }
        if self.are_required(client.is_some_and(|client| client.is_local)) {
            return Err(unknown(TOKEN_MISSING));
        }
        // A page of others could have its own name point here; then the browser would ask us in that name.
        let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
        if host.is_none_or(is_this_machine) {
            return Ok(());
        }
        Err(RequestProblem::new(
            StatusCode::FORBIDDEN,
            "wrong-host",
            "without a token this machine is called localhost or by its address, not by another name; show a token",
        ))
    }

    async fn look_up(
        &self,
        service: &Service,
        secret: &TokenSecret,
        shown_as: TokenUse,
    ) -> Result<Token, Box<RequestProblem>> {
        let changes = *service.news.token_changes().borrow();
        // A remembered token is as old as the beginning of the lookup.
        let looked_at = Instant::now();
        let hash = *secret.hash().as_bytes();
        if let Some(token) = self.remembered(changes, &hash)
            && token.is_valid(service.now())
            && token.shown_as == shown_as
        {
            return Ok(token);
        }
        let secret = secret.clone();
        let found =
            service.look_up(move |town| tokens::authenticate(town, &secret, shown_as)).await?;
        let token =
            found.ok_or_else(|| unknown("this token is not known, or not valid any more"))?;
        self.remember(changes, looked_at, hash, &token);
        Ok(token)
    }

    fn remembered(&self, changes: u64, hash: &[u8; 32]) -> Option<Token> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, token) = known.tokens.get(hash).filter(|_| known.changes == changes)?;
        (at.elapsed() < REMEMBERED_MAX).then(|| token.clone())
    }

    fn remember(&self, changes: u64, looked_at: Instant, hash: [u8; 32], token: &Token) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.changes != changes || known.tokens.len() >= KNOWN_MAX {
            *known = TokenCache { changes, tokens: HashMap::new() };
        }
        known.tokens.insert(hash, (looked_at, token.clone()));
    }
}

/// The caller with this token, if that allows the request.
/// Refuses a change without a token by a process of a run or a check: the commands of a worker know their run, and this would
/// be a way around it.
async fn refuse_worker(
    service: &Service,
    client: Option<&Client>,
) -> Result<(), Box<RequestProblem>> {
    let worker = match client {
        Some(client) => client.worker(&service.town).await,
        None => None,
    };
    let Some(worker) = worker else { return Ok(()) };
    Err(RequestProblem::new(
        StatusCode::FORBIDDEN,
        "forbidden",
        format!(
            "this comes from {worker}, and nothing was changed: a worker uses gt and bd, and another client of this server \
             a token of its own (gt token create)"
        ),
    ))
}

fn allowed(
    token: Token,
    secret: TokenSecret,
    method: &Method,
    route: &str,
) -> Result<RequestCaller, Box<RequestProblem>> {
    let wanted = scopes_for(method, route);
    if !wanted.iter().any(|scope| token.scopes.allow(*scope)) {
        let names: Vec<&str> = wanted.iter().map(|scope| scope.as_str()).collect();
        return Err(RequestProblem::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            format!(
                "the token {} may not do this: it needs the scope {}, and has {}; gt token create makes another",
                token.name,
                names.join(" or "),
                token.scopes
            ),
        ));
    }
    let only_agent = if is_for_dispatchers(method, route) && token.scopes.allow(TokenScope::Submit)
    {
        None
    } else {
        token.agent.clone()
    };
    let shown = Some(Arc::new(ShownToken { secret, token, only_agent }));
    Ok(RequestCaller { shown, run: None })
}

/// The worker that shows the token of its run. Whether the run is still live is decided with each change, as for a command.
async fn worker_of(
    service: &Service,
    token: RunToken,
) -> Result<RequestCaller, Box<RequestProblem>> {
    let found = service.look_up(move |town| {
        town.read(|reader| {
            let Some(id) = reader.run_of_token(&token.hash())? else { return Ok(None) };
            Ok(reader.run(&id)?)
        })
    });
    let run = found.await?.ok_or_else(|| unknown("this is the token of no run"))?;
    if !run.state.is_live() {
        let state = run.state.as_str();
        return Err(unknown(&format!("{} is {state}: its token is not valid any more", run.id)));
    }
    Ok(RequestCaller::worker(run))
}

/// Whether a dispatcher may do this, too.
fn is_for_dispatchers(method: &Method, route: &str) -> bool {
    scopes_for(method, route).contains(&TokenScope::Submit)
}

/// The scopes of which a token must have one.
fn scopes_for(method: &Method, route: &str) -> &'static [TokenScope] {
    if route == SESSION {
        return TokenScope::ALL;
    }
    if route == MCP {
        return &[TokenScope::View];
    }
    if let Some(route) = route.strip_prefix(TOWN_API) {
        return match method.as_str() {
            "GET" | "HEAD" => &[TokenScope::View],
            _ if route.starts_with("reviews/") => &[TokenScope::Review],
            _ if route.ends_with(KEYS_END) => &[TokenScope::Type],
            _ => &[TokenScope::Operate],
        };
    }
    match (method.as_str(), route) {
        ("GET" | "HEAD", _) => &[TokenScope::Read],
        (_, NEXT | "/work/{id}/heartbeat" | "/work/{id}/release") => &[TokenScope::Work],
        // Dispatchers and agents both move items.
        ("PATCH", "/work/{id}") => &[TokenScope::Submit, TokenScope::Work],
        _ => &[TokenScope::Submit],
    }
}

/// Waits until the run of a worker is over.
async fn run_over(service: &Service, run: &Run) -> Box<RequestProblem> {
    loop {
        tokio::time::sleep(RUN_POLL_INTERVAL).await;
        let id = run.id.clone();
        let found = service.look_up(move |town| town.read(|reader| Ok(reader.run(&id)?))).await;
        if let Ok(found) = found
            && !found.is_some_and(|run| run.state.is_live())
        {
            return unknown("this run is over");
        }
    }
}

fn bearer(shown: &HeaderValue) -> Option<TokenSecret> {
    shown_token(shown).and_then(TokenSecret::parse)
}

/// The text behind `Bearer`.
fn shown_token(shown: &HeaderValue) -> Option<&str> {
    let (scheme, token) = shown.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

pub(crate) fn unknown(detail: &str) -> Box<RequestProblem> {
    RequestProblem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
        .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

/// Whether a host, perhaps with a port, is written as an address or as a name that always means the machine itself.
pub(crate) fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reserved_names_and_addresses_are_this_machine() {
        for host in
            ["localhost", "LOCALHOST:8080", "127.0.0.1:80", "[::1]:8080", "a.localhost", "10.0.0.7"]
        {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn every_route_needs_its_scope() {
        for (method, route, wanted) in [
            ("GET", "/work", &[TokenScope::Read][..]),
            ("POST", "/work", &[TokenScope::Submit]),
            ("DELETE", "/work/{id}", &[TokenScope::Submit]),
            ("PATCH", "/work/{id}", &[TokenScope::Submit, TokenScope::Work]),
            ("POST", "/work/next", &[TokenScope::Work]),
            ("POST", "/work/{id}/heartbeat", &[TokenScope::Work]),
            ("POST", "/work/{id}/release", &[TokenScope::Work]),
            ("POST", "/work/stale-check", &[TokenScope::Submit]),
            ("PATCH", "/projects/{id}", &[TokenScope::Submit]),
            ("GET", "/api/v1/inbox", &[TokenScope::View]),
            ("GET", "/api/v1/reviews", &[TokenScope::View]),
            ("GET", "/api/v1/runs/{id}/transcript", &[TokenScope::View]),
            ("POST", "/api/v1/merge-requests/{id}/retry", &[TokenScope::Operate]),
            ("POST", "/api/v1/queues/{rig}/pause", &[TokenScope::Operate]),
            ("POST", "/api/v1/reviews/{id}/approve", &[TokenScope::Review]),
            ("GET", "/api/v1/runs/{id}/screen", &[TokenScope::View]),
            ("GET", "/api/v1/wall", &[TokenScope::View]),
            ("POST", "/api/v1/runs/{id}/keys", &[TokenScope::Type]),
            ("DELETE", "/api/v1/session", TokenScope::ALL),
            ("POST", "/mcp", &[TokenScope::View]),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(scopes_for(&method, route), wanted, "{method} {route}");
        }
    }

    #[test]
    fn a_token_is_shown_in_one_way() {
        let secret = TokenSecret::from_random([7; 32]).reveal();
        let shown = |text: &str| bearer(&HeaderValue::from_str(text).unwrap()).is_some();
        assert!(shown(&format!("Bearer {secret}")));
        assert!(shown(&format!("bearer  {secret}")));
        for wrong in [secret.clone(), format!("Basic {secret}"), "Bearer x".to_owned()] {
            assert!(!shown(&wrong));
        }
    }
}
