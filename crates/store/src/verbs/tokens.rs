//! Tokens of the clients of the server.

use gt_core::event::TokenChange;
use gt_core::work::{Scopes, Token, TokenHash, TokenId, TokenUse};
use gt_core::{EventPayload, Timestamp};

use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

/// The columns of a token, in the order [`token_from`] reads them.
macro_rules! token_columns {
    () => {
        "id, name, hash, scopes, created_at, created_by, expires_at, revoked_at, agent, shown_as, used_at"
    };
}

statements! {
    ALL = concat!("SELECT ", token_columns!(), " FROM tokens ORDER BY created_at, id");
    ONE = concat!("SELECT ", token_columns!(), " FROM tokens WHERE id = ?1");
    ANY = "SELECT 1 FROM tokens WHERE shown_as = 'token' AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?1) LIMIT 1";
    INSERT = concat!("INSERT INTO tokens (", token_columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)");
    REVOKE = "UPDATE tokens SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
    USE = "UPDATE tokens SET used_at = ?2 WHERE id = ?1 AND revoked_at IS NULL AND (used_at IS NULL OR used_at < ?2)";
    FORGET = "DELETE FROM tokens WHERE shown_as <> 'token' AND (expires_at < ?1 OR revoked_at < ?1)";
}

impl Reader<'_> {
    /// Every token, oldest first.
    pub fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.rows(ALL, &[], token_from)
    }

    /// The token of this name.
    pub fn token(&self, id: &TokenId) -> Result<Option<Token>, StoreError> {
        self.first(ONE, &[id.as_str().into()], token_from)
    }

    /// Whether any token that programs show is valid now.
    pub fn any_token(&self, now: Timestamp) -> Result<bool, StoreError> {
        self.any(ANY, &[now.into()])
    }
}

impl Writer<'_> {
    /// Adds a token.
    pub fn insert_token(&mut self, token: &Token) -> Result<(), StoreError> {
        let scopes = token.scopes.to_string();
        let params = [
            token.id.as_str().into(),
            (&token.name).into(),
            Param::Blob(token.hash.as_bytes()),
            (&scopes).into(),
            token.created_at.into(),
            (&token.created_by).into(),
            token.expires_at.into(),
            token.revoked_at.into(),
            token.agent.as_deref().into(),
            token.shown_as.as_str().into(),
            token.used_at.into(),
        ];
        self.execute(INSERT, &params)?;
        let change = match token.shown_as {
            TokenUse::Bearer => "created",
            TokenUse::Login => "login link made",
            TokenUse::Session => "logged in",
        };
        self.record_token(token, change);
        Ok(())
    }

    /// Ends a login link because it is used; `false` if it had ended already, so that it is used once.
    pub fn use_login(&mut self, login: &Token) -> Result<bool, StoreError> {
        Ok(self.execute(REVOKE, &[login.id.as_str().into(), self.now().into()])? > 0)
    }

    /// Records that a session is in use. That is no event.
    pub fn use_session(&mut self, id: &TokenId) -> Result<(), StoreError> {
        self.execute(USE, &[id.as_str().into(), self.now().into()])?;
        Ok(())
    }

    /// Forgets the login links and sessions that ended before this time.
    pub fn forget_sessions(&mut self, before: Timestamp) -> Result<u64, StoreError> {
        self.execute(FORGET, &[before.into()])
    }

    /// Ends a token; `false` if it had ended already.
    pub fn revoke_token(&mut self, token: &Token) -> Result<bool, StoreError> {
        if self.execute(REVOKE, &[token.id.as_str().into(), self.now().into()])? == 0 {
            return Ok(false);
        }
        self.record_token(token, "revoked");
        Ok(true)
    }

    /// Records a change of a token, but nothing of its hash.
    fn record_token(&mut self, token: &Token, change: &str) {
        self.record_of_town(EventPayload::TokenChanged(TokenChange {
            token: token.id.as_str().to_owned(),
            name: token.name.clone(),
            scopes: token.scopes.to_string(),
            change: change.to_owned(),
        }));
    }
}

fn token_from(row: &dyn Row) -> Result<Token, StoreError> {
    let instant = |column| -> Result<Option<Timestamp>, StoreError> {
        Ok(row.int_or_null(column)?.map(Timestamp::from_nanos))
    };
    let hash = row
        .blob(2)?
        .try_into()
        .map_err(|_| StoreError::Corrupt("the hash of a token is not 32 bytes long".to_owned()))?;
    Ok(Token {
        id: TokenId::parse(row.text(0)?)?,
        name: row.text(1)?.to_owned(),
        hash: TokenHash::from_bytes(hash),
        scopes: Scopes::parse(row.text(3)?)?,
        created_at: Timestamp::from_nanos(row.int(4)?),
        created_by: row.text(5)?.to_owned(),
        expires_at: instant(6)?,
        revoked_at: instant(7)?,
        agent: row.text_or_null(8)?.map(str::to_owned),
        shown_as: TokenUse::parse(row.text(9)?)?,
        used_at: instant(10)?,
    })
}
