//! Tokens: who may speak to the server.

use gt_core::Timestamp;
use gt_core::work::{Scopes, Token, TokenId, TokenSecret};

use crate::work::WorkResult;
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
pub fn create(_town: &Town, _new: NewToken) -> WorkResult<(Token, TokenSecret)> {
    Err(OperationError::rejected("not there yet").into())
}

/// Every token, oldest first, also those that are not valid any more.
pub fn list(_town: &Town) -> WorkResult<Vec<Token>> {
    Err(OperationError::rejected("not there yet").into())
}

/// Ends a token; `false` if it had ended already.
pub fn revoke(_town: &Town, _id: &TokenId) -> WorkResult<(Token, bool)> {
    Err(OperationError::rejected("not there yet").into())
}

/// The token that this secret belongs to, if it is valid.
pub fn authenticate(_town: &Town, _secret: &TokenSecret) -> WorkResult<Option<Token>> {
    Err(OperationError::rejected("not there yet").into())
}

/// Whether there is any valid token, so that a server knows whether to ask for one.
pub fn any(_town: &Town) -> WorkResult<bool> {
    Err(OperationError::rejected("not there yet").into())
}
