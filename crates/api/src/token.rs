//! Tokens of the HTTP service.

use gt_core::Timestamp;
use gt_core::work::{Token, TokenScope};
use serde::Serialize;
use utoipa::ToSchema;

use crate::UtcTime;

/// A token, without anything of its secret.
#[derive(Debug, Clone, Serialize)]
pub struct TokenDocument {
    pub id: String,
    pub name: String,
    pub scopes: Vec<String>,
    pub agent: Option<String>,
    pub valid: bool,
    pub created_at: UtcTime,
    pub created_by: String,
    pub expires_at: Option<UtcTime>,
    pub revoked_at: Option<UtcTime>,
    /// `token`, or `login` and `session` for the flight deck.
    pub shown_as: String,
    pub used_at: Option<UtcTime>,
}

impl TokenDocument {
    /// The token as it is at this time.
    pub fn at(token: &Token, now: Timestamp) -> Self {
        Self {
            id: token.id.as_str().to_owned(),
            name: token.name.clone(),
            scopes: token.scopes.each().map(|scope| scope.as_str().to_owned()).collect(),
            agent: token.agent.clone(),
            valid: token.is_valid(now),
            created_at: token.created_at.into(),
            created_by: token.created_by.clone(),
            expires_at: token.ends_at().map(UtcTime),
            revoked_at: token.revoked_at.map(UtcTime),
            shown_as: token.shown_as.as_str().to_owned(),
            used_at: token.used_at.map(UtcTime),
        }
    }
}

/// A token that was just made, with its secret.
#[derive(Debug, Clone, Serialize)]
pub struct NewTokenDocument {
    #[serde(flatten)]
    pub token: TokenDocument,
    /// The secret, which is shown this once.
    #[serde(rename = "token")]
    pub secret: String,
}

/// The session of a browser, or the token of a program, as its holder sees it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SessionDocument {
    /// The person or program whose name decisions carry.
    pub actor: String,
    /// Everything that the holder may do.
    pub scopes: Vec<String>,
    /// The text that a page sends in the header `X-GT-CSRF`; only for a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csrf: Option<String>,
    /// When it ends by itself if it is not used any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<UtcTime>,
    /// The name of the town.
    pub town: String,
    /// The id of the town.
    pub town_id: String,
}

impl SessionDocument {
    /// The session or token in this town.
    pub fn of(token: &Token, csrf: Option<String>, town: String, town_id: String) -> Self {
        let allowed = TokenScope::ALL.iter().filter(|scope| token.scopes.allow(**scope));
        Self {
            actor: token.name.clone(),
            scopes: allowed.map(|scope| scope.as_str().to_owned()).collect(),
            csrf,
            expires_at: token.ends_at().map(UtcTime),
            town,
            town_id,
        }
    }
}

/// A login link that was just made.
#[derive(Debug, Clone, Serialize)]
pub struct DeckLoginDocument {
    /// The link, which can be used once.
    pub url: String,
    /// Whether a browser was asked to open it.
    pub opened: bool,
    /// The person whose name decisions carry.
    pub actor: String,
    pub scopes: Vec<String>,
    pub expires_at: UtcTime,
}

/// Where the flight deck is.
#[derive(Debug, Clone, Serialize)]
pub struct DeckDocument {
    pub enabled: bool,
    pub url: Option<String>,
    /// Whether the daemon of this host serves it.
    pub serving: bool,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
