//! Tokens of the HTTP service.

use gt_core::Timestamp;
use gt_core::work::Token;
use serde::Serialize;

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
            expires_at: token.expires_at.map(UtcTime),
            revoked_at: token.revoked_at.map(UtcTime),
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
