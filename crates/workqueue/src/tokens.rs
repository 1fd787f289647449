//! Tokens: who may speak to the server. Login links and sessions of the flight deck are tokens, too.

use std::time::Duration;

use gt_core::bead::check_label;
use gt_core::work::{
    LOGIN_AGE_MAX, SESSION_AGE_MAX, Scopes, Token, TokenId, TokenScope, TokenSecret, TokenUse,
    check_agent,
};
use gt_core::{Invalid, Timestamp};

use crate::work::{MissingKind, WorkError, WorkResult};
use gt_town::{Actor, OperationError, Town};

/// A token to be made.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// The name of its holder.
    pub name: String,
    /// The scopes of its holder.
    pub scopes: Scopes,
    /// The one agent that its holder may take work for and report as. A token that may do work and is not an administrator's
    /// is bound to the agent of its own name if this names none.
    pub agent: Option<String>,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

/// Makes a token. The secret is known only here and now.
pub fn create(town: &Town, new: NewToken) -> WorkResult<(Token, TokenSecret)> {
    check_label("name", &new.name).map_err(|error| WorkError::invalid("name", &error))?;
    let agent = agent_of(&new)?;
    if new.expires_at.is_some_and(|until| until <= town.now()) {
        let why = Invalid::new("the token would have expired already; name a time in the future");
        return Err(WorkError::invalid("expires_at", &why));
    }
    let new = NewToken { agent, ..new };
    let (token, secret) = fresh(town, TokenUse::Bearer, new, &town.actor().name)?;
    town.write(|writer| Ok(writer.insert_token(&token)?))?;
    Ok((token, secret))
}

/// A token with a new secret, which is not stored yet.
fn fresh(
    town: &Town,
    shown_as: TokenUse,
    new: NewToken,
    created_by: &str,
) -> WorkResult<(Token, TokenSecret)> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        OperationError::rejected(format!("the system has no random numbers for a token: {error}"))
    })?;
    let secret = TokenSecret::from_random(bytes);
    let hash = secret.hash();
    let token = Token {
        id: hash.id(),
        shown_as,
        name: new.name,
        hash,
        scopes: new.scopes,
        agent: new.agent,
        created_at: town.now(),
        created_by: created_by.to_owned(),
        expires_at: new.expires_at,
        revoked_at: None,
        used_at: None,
    };
    Ok((token, secret))
}

/// How long login links and sessions that are over can still be listed.
const ENDED_SESSIONS_KEPT: Duration = Duration::from_hours(30 * 24);

/// Makes a login link for the actor of the town. It can be used once, and soon. A worker gets none: its decisions would
/// carry the name of a person.
pub fn create_login(town: &Town, scopes: Scopes) -> WorkResult<(Token, TokenSecret)> {
    if town.worker().is_some() {
        return Err(OperationError::rejected(
            "a worker or a check gets no login: decisions in the flight deck are those of a person",
        )
        .into());
    }
    let name = town.actor().name.clone();
    let expires_at = Some(town.now().plus(LOGIN_AGE_MAX));
    let new = NewToken { name: name.clone(), scopes, agent: None, expires_at };
    let (login, secret) = fresh(town, TokenUse::Login, new, &name)?;
    town.write(|writer| {
        writer.forget_sessions(town.now().minus(ENDED_SESSIONS_KEPT))?;
        Ok(writer.insert_token(&login)?)
    })?;
    Ok((login, secret))
}

/// Begins a session with a login link; nothing if the link is not valid, or was used before.
pub fn log_in(town: &Town, login: &TokenSecret) -> WorkResult<Option<(Token, TokenSecret)>> {
    let Some(login) = authenticate(town, login, TokenUse::Login)? else { return Ok(None) };
    let person = Actor { name: login.name.clone(), owner: String::new() };
    let town = town.clone().acting_as(person, None);
    let new = NewToken {
        name: login.name.clone(),
        scopes: login.scopes.clone(),
        agent: None,
        expires_at: Some(town.now().plus(SESSION_AGE_MAX)),
    };
    let (session, secret) = fresh(&town, TokenUse::Session, new, &login.created_by)?;
    let began = town.write(|writer| {
        let is_first = writer.use_login(&login)?;
        if is_first {
            writer.insert_token(&session)?;
        }
        Ok(is_first)
    })?;
    Ok(began.then_some((session, secret)))
}

/// How old the record of a session's use becomes before it is renewed.
pub const SESSION_USE_INTERVAL: Duration = Duration::from_mins(10);

/// Records that a session is in use.
pub fn record_use(town: &Town, session: &TokenId) -> WorkResult<()> {
    Ok(town.write(|writer| Ok(writer.use_session(session)?))?)
}

/// The agent that a new token is bound to.
fn agent_of(new: &NewToken) -> WorkResult<Option<String>> {
    let is_workers = new.scopes.allow(TokenScope::Work) && !new.scopes.allow(TokenScope::Admin);
    let agent = match &new.agent {
        Some(agent) if new.scopes.allow(TokenScope::Work) => agent,
        Some(_) => {
            let why = Invalid::new("only a token with the scope work acts for an agent");
            return Err(WorkError::invalid("agent", &why));
        }
        None if is_workers => &new.name,
        None => return Ok(None),
    };
    check_agent(agent).map_err(|error| {
        let why = Invalid(format!("{error}; name the agent of this token with --agent"));
        WorkError::invalid("agent", &why)
    })?;
    Ok(Some(agent.clone()))
}

/// Every token, oldest first, also those that are not valid any more.
pub fn list(town: &Town) -> WorkResult<Vec<Token>> {
    Ok(town.read(|reader| Ok(reader.tokens()?))?)
}

/// The id of the token that `text` names: an id, or the name of the holder of one valid token.
pub fn find(town: &Town, text: &str) -> WorkResult<TokenId> {
    let tokens = list(town)?;
    let id = TokenId::parse(text);
    if let Some(token) = tokens.iter().find(|token| Ok(&token.id) == id.as_ref()) {
        return Ok(token.id.clone());
    }
    let now = town.now();
    let named: Vec<&Token> =
        tokens.iter().filter(|token| token.name == text && token.is_valid(now)).collect();
    match named.as_slice() {
        [token] => Ok(token.id.clone()),
        // The text may be a secret: it is not repeated.
        [] => Err(match id {
            Ok(id) => WorkError::NotFound { what: MissingKind::Token, name: id.to_string() },
            Err(error) => WorkError::invalid("token", &error),
        }),
        several => {
            let ids: Vec<String> = several.iter().map(|token| token.id.to_string()).collect();
            let why = Invalid(format!(
                "{text} holds several tokens: {}; name one by its id",
                ids.join(", ")
            ));
            Err(WorkError::invalid("token", &why))
        }
    }
}

/// How long a server may go by its last look at a token. [`revoke`] takes at least this long.
pub const REMEMBERED_MAX: Duration = Duration::from_millis(250);

/// Ends a token; `false` if it had been ended already. When this returns, every server refuses the token: a server that has
/// looked at it before must look again by then.
pub fn revoke(town: &Town, id: &TokenId) -> WorkResult<(Token, bool)> {
    let id = id.clone();
    let revoked = town.submit(move |_, writer| {
        let missing = || WorkError::NotFound { what: MissingKind::Token, name: id.to_string() };
        let token = writer.token(&id)?.ok_or_else(missing)?;
        let ended = writer.revoke_token(&token)?;
        Ok::<_, WorkError>((writer.token(&id)?.unwrap_or(token), ended))
    })?;
    std::thread::sleep(REMEMBERED_MAX);
    Ok(revoked)
}

/// The token that this secret belongs to, if it is valid now and meant to be shown in this way.
pub fn authenticate(
    town: &Town,
    secret: &TokenSecret,
    shown_as: TokenUse,
) -> WorkResult<Option<Token>> {
    let hash = secret.hash();
    let token = town.read(|reader| Ok(reader.token(&hash.id())?))?;
    let now = town.now();
    let token = token.filter(|token| token.hash.matches(&hash) && token.shown_as == shown_as);
    Ok(token.filter(|token| token.is_valid(now)))
}

/// Whether there is any valid token, so that a server knows whether to ask for one.
pub fn any(town: &Town) -> WorkResult<bool> {
    let now = town.now();
    Ok(town.read(|reader| Ok(reader.any_token(now)?))?)
}
