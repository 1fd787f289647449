//! Tokens: who may speak to the server.

use gt_core::bead::check_label;
use gt_core::work::{Scopes, Token, TokenId, TokenSecret};
use gt_core::{Invalid, Timestamp};

use crate::work::{Thing, WorkError, WorkResult};
use crate::{OperationError, Town};

/// A token to be made.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Who holds it.
    pub name: String,
    /// What its holder may do.
    pub scopes: Scopes,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

/// Makes a token. The secret is known only here and now.
pub fn create(town: &Town, new: NewToken) -> WorkResult<(Token, TokenSecret)> {
    check_label("name", &new.name).map_err(|error| WorkError::invalid("name", &error))?;
    if new.expires_at.is_some_and(|until| until <= town.now()) {
        let why = Invalid::new("a token that has expired already is of no use to anybody");
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
        created_at: town.now(),
        created_by: town.actor().name.clone(),
        expires_at: new.expires_at,
        revoked_at: None,
    };
    town.write(|writer| Ok(writer.insert_token(&token)?))?;
    Ok((token, secret))
}

/// Every token, oldest first, also those that are not valid any more.
pub fn list(town: &Town) -> WorkResult<Vec<Token>> {
    Ok(town.read(|reader| Ok(reader.tokens()?))?)
}

/// Ends a token; `false` if it had been ended already.
pub fn revoke(town: &Town, id: &TokenId) -> WorkResult<(Token, bool)> {
    let id = id.clone();
    town.submit(move |_, writer| {
        let missing = || WorkError::NotFound { what: Thing::Token, name: id.to_string() };
        let token = writer.token(&id)?.ok_or_else(missing)?;
        let ended = writer.revoke_token(&token)?;
        Ok((writer.token(&id)?.unwrap_or(token), ended))
    })
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
