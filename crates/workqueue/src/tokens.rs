//! Tokens: who may speak to the server.

use std::time::Duration;

use gt_core::bead::check_label;
use gt_core::work::{Scopes, Token, TokenId, TokenScope, TokenSecret, check_agent};
use gt_core::{Invalid, Timestamp};

use crate::work::{MissingKind, WorkError, WorkResult};
use gt_town::{OperationError, Town};

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
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        OperationError::rejected(format!("the system has no random numbers for a token: {error}"))
    })?;
    let secret = TokenSecret::from_random(bytes);
    let hash = secret.hash();
    let token = Token {
        id: hash.id(),
        name: new.name,
        hash,
        scopes: new.scopes,
        agent,
        created_at: town.now(),
        created_by: town.actor().name.clone(),
        expires_at: new.expires_at,
        revoked_at: None,
    };
    town.write(|writer| Ok(writer.insert_token(&token)?))?;
    Ok((token, secret))
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

/// The token that this secret belongs to, if it is valid now.
pub fn authenticate(town: &Town, secret: &TokenSecret) -> WorkResult<Option<Token>> {
    let hash = secret.hash();
    let token = town.read(|reader| Ok(reader.token(&hash.id())?))?;
    let now = town.now();
    Ok(token.filter(|token| token.hash.matches(&hash) && token.is_valid(now)))
}

/// Whether there is any valid token, so that a server knows whether to ask for one.
pub fn any(town: &Town) -> WorkResult<bool> {
    let now = town.now();
    Ok(town.read(|reader| Ok(reader.any_token(now)?))?)
}
