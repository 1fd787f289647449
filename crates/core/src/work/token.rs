//! Tokens and their scopes: the rights of clients.

use std::fmt;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::hexadecimal::{bytes_of, digits_of};
use crate::schedule::names;
use crate::{Invalid, Timestamp};

names! {
    /// A right of the holder of a token.
    TokenScope, "a scope; write read, submit, work, view, operate, review, type or admin" {
        /// Look at everything.
        Read = "read",
        /// Submit work, change and cancel it, and give it to agents.
        Submit = "submit",
        /// Take work, and report on it.
        Work = "work",
        /// Look at merge requests, reviews and the inbox.
        View = "view",
        /// Steer the merge queues.
        Operate = "operate",
        /// Comment, approve and reject finished work.
        Review = "review",
        /// Type into the sessions of workers.
        Type = "type",
        /// Everything.
        Admin = "admin",
    }
}

names! {
    /// How the secret of a token is shown, and for how long.
    TokenUse, "a use of a token; write token, login or session" {
        /// In a header, by a program.
        Bearer = "token",
        /// Once, in the address of a login.
        Login = "login",
        /// In a cookie, by a browser that has logged in.
        Session = "session",
    }
}

/// How long a login link can be used.
pub const LOGIN_AGE_MAX: Duration = Duration::from_mins(1);
/// How long a session lasts in which nothing is asked for.
pub const SESSION_IDLE_MAX: Duration = Duration::from_hours(12);
/// How long a session lasts at most.
pub const SESSION_AGE_MAX: Duration = Duration::from_hours(7 * 24);

/// The rights of the holder of a token, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes(Vec<TokenScope>);

impl Scopes {
    /// These, each once; an error if there are none.
    pub fn of(scopes: &[TokenScope]) -> Result<Self, Invalid> {
        let given = |scope: &&TokenScope| scopes.contains(scope);
        let scopes: Vec<TokenScope> = TokenScope::ALL.iter().filter(given).copied().collect();
        if scopes.is_empty() {
            return Err(Invalid::new(
                "a token needs a scope: read, submit, work, view, operate, review, type or admin",
            ));
        }
        Ok(Self(scopes))
    }

    /// Reads names that are separated by commas or blanks.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let names = text.split([',', ' ']).filter(|name| !name.is_empty());
        Self::of(&names.map(TokenScope::parse).collect::<Result<Vec<_>, _>>()?)
    }

    /// Whether the holder may do this. A holder that may submit or do work may also read, and one that may operate,
    /// review or type may also view; an administrator may do everything.
    pub fn allow(&self, wanted: TokenScope) -> bool {
        self.0.iter().any(|scope| match scope {
            TokenScope::Admin => true,
            TokenScope::Submit | TokenScope::Work => *scope == wanted || wanted == TokenScope::Read,
            TokenScope::Operate | TokenScope::Review | TokenScope::Type => {
                *scope == wanted || wanted == TokenScope::View
            }
            TokenScope::Read | TokenScope::View => *scope == wanted,
        })
    }

    /// Each of them.
    pub fn each(&self) -> impl Iterator<Item = TokenScope> {
        self.0.iter().copied()
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|scope| scope.as_str()).collect();
        f.write_str(&names.join(","))
    }
}

/// The prefix of every token, so that people and scanners recognise a leaked one.
const PREFIX: &str = "gtw_";

/// The text that its holder shows: 256 random bits. It is shown once and never stored or printed by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret([u8; 32]);

impl TokenSecret {
    /// A secret of these bytes, which cannot be guessed.
    pub fn from_random(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads the text that a holder shows. The error is not explained, because the text may be nearly right.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = bytes_of(text.strip_prefix(PREFIX)?)?;
        bytes.try_into().ok().map(Self)
    }

    /// The text, to be shown to its holder.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", digits_of(&self.0))
    }

    /// The part of it that is stored.
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0).into())
    }

    /// The text that a page must send along with its cookie. Only a page of the same origin can have read it. It says
    /// nothing about the secret.
    pub fn page_proof(&self) -> PageProof {
        let hash = Sha256::new().chain_update(PAGE_PROOF_PURPOSE).chain_update(self.0).finalize();
        PageProof(TokenHash(hash.into()))
    }
}

/// Hashed before a secret, so that the result has one use.
const PAGE_PROOF_PURPOSE: &[u8] = b"gt page proof";

/// The proof that a request of a session comes from a page of the deck.
#[derive(Debug, Clone, Copy)]
pub struct PageProof(TokenHash);

impl PageProof {
    /// The text that the page sends.
    pub fn digits(&self) -> String {
        self.0.digits()
    }

    /// Whether this text is the proof, in a time that does not depend on its contents.
    pub fn matches(&self, text: &str) -> bool {
        TokenHash::from_digits(text).is_some_and(|shown| shown.matches(&self.0))
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSecret(…)")
    }
}

/// The prefix of every token of a run.
const RUN_PREFIX: &str = "gtr_";

/// The secret that proves to be the worker of a run: 256 random bits in its environment. The store keeps its hash alone.
#[derive(Clone, PartialEq, Eq)]
pub struct RunToken([u8; 32]);

impl RunToken {
    /// A token of these random bytes.
    pub fn from_random(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads the value of the variable.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = bytes_of(text.strip_prefix(RUN_PREFIX)?)?;
        bytes.try_into().ok().map(Self)
    }

    /// The value of the variable.
    pub fn reveal(&self) -> String {
        format!("{RUN_PREFIX}{}", digits_of(&self.0))
    }

    /// The part of it that is stored.
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0).into())
    }
}

impl fmt::Debug for RunToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunToken(…)")
    }
}

/// The SHA-256 of a token, which is stored in place of the token.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// A hash by its bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The public id of the token. It says nothing about the secret.
    pub fn id(&self) -> TokenId {
        TokenId(digits_of(&self.0[..6]))
    }

    /// The bytes as hexadecimal digits.
    pub fn digits(&self) -> String {
        digits_of(&self.0)
    }

    /// Reads the text of [`TokenHash::digits`].
    pub fn from_digits(digits: &str) -> Option<Self> {
        bytes_of(digits)?.try_into().ok().map(Self)
    }

    /// Whether both are the same, in a time that does not depend on their contents.
    pub fn matches(&self, other: &Self) -> bool {
        let differences = self.0.iter().zip(&other.0).fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(differences) == 0
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenHash({})", self.id())
    }
}

/// The public id of a token: the head of its hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenId(String);

impl TokenId {
    /// Reads twelve hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let is_one = text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_one {
            return Ok(Self(text.to_ascii_lowercase()));
        }
        // If the caller gave the secret instead, the secret must not appear in a log.
        Err(Invalid::new(
            "that is not the id of a token, and no valid token has that name; gt token list shows them",
        ))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A token, as it is stored.
#[derive(Debug, Clone)]
pub struct Token {
    /// The public id.
    pub id: TokenId,
    /// How its secret is shown.
    pub shown_as: TokenUse,
    /// The holder.
    pub name: String,
    /// The hash of its secret.
    pub hash: TokenHash,
    /// The rights of its holder.
    pub scopes: Scopes,
    /// The one agent that its holder may take work for and report as; any agent if there is none.
    pub agent: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The actor that made it.
    pub created_by: String,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked, or used if it can be used once.
    pub revoked_at: Option<Timestamp>,
    /// When a session was last seen in use, to within some minutes.
    pub used_at: Option<Timestamp>,
}

impl Token {
    /// Whether its holder may still use it.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.ends_at().is_none_or(|until| now < until)
    }

    /// When it ends by itself if it is not used any more.
    pub fn ends_at(&self) -> Option<Timestamp> {
        let idle_until = (self.shown_as == TokenUse::Session)
            .then(|| self.used_at.unwrap_or(self.created_at).plus(SESSION_IDLE_MAX));
        match (self.expires_at, idle_until) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_scope_of_work_items_includes_one_of_merge_requests() {
        let table = [
            ("read", [true, false, false, false, false, false, false, false]),
            ("submit", [true, true, false, false, false, false, false, false]),
            ("work", [true, false, true, false, false, false, false, false]),
            ("submit,work", [true, true, true, false, false, false, false, false]),
            ("view", [false, false, false, true, false, false, false, false]),
            ("operate", [false, false, false, true, true, false, false, false]),
            ("review", [false, false, false, true, false, true, false, false]),
            ("type", [false, false, false, true, false, false, true, false]),
            ("admin", [true, true, true, true, true, true, true, true]),
        ];
        for (text, allowed) in table {
            let scopes = Scopes::parse(text).unwrap();
            assert_eq!(scopes.to_string(), text);
            let found: Vec<bool> =
                TokenScope::ALL.iter().map(|scope| scopes.allow(*scope)).collect();
            assert_eq!(found, allowed, "{text}");
        }
        assert_eq!(Scopes::parse("work read work").unwrap().to_string(), "read,work");
        for wrong in ["", ",", "write", "read,write"] {
            assert!(Scopes::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_not_printed_by_accident() {
        let secret = TokenSecret::from_random([7; 32]);
        assert!(!format!("{secret:?} {:?}", secret.hash()).contains("0707"));
        assert!(!secret.reveal().contains(secret.hash().id().as_str()));
        let error = TokenId::parse(&secret.reveal()).unwrap_err();
        assert!(!error.to_string().contains("0707"));
    }

    #[test]
    fn the_proof_of_a_page_belongs_to_one_secret_and_does_not_reveal_it() {
        let (one, other) = (TokenSecret::from_random([1; 32]), TokenSecret::from_random([2; 32]));
        let proof = one.page_proof().digits();
        assert!(one.page_proof().matches(&proof) && !other.page_proof().matches(&proof));
        assert!(!one.page_proof().matches("") && !one.page_proof().matches(&one.reveal()));
        assert_ne!(proof, one.hash().digits());
    }

    #[test]
    fn a_token_is_valid_until_it_expires_or_is_revoked() {
        let at = Timestamp::from_nanos;
        let secret = TokenSecret::from_random([1; 32]);
        let token = Token {
            agent: None,
            shown_as: TokenUse::Bearer,
            used_at: None,
            id: secret.hash().id(),
            name: "ci".to_owned(),
            hash: secret.hash(),
            scopes: Scopes::parse("read").unwrap(),
            created_at: at(1),
            created_by: "me".to_owned(),
            expires_at: Some(at(10)),
            revoked_at: None,
        };
        assert!(token.is_valid(at(9)));
        assert!(!token.is_valid(at(10)));
        assert!(!Token { revoked_at: Some(at(2)), ..token.clone() }.is_valid(at(9)));
        let hours = |hours: u64| at(1).plus(Duration::from_hours(hours));
        let session = Token {
            shown_as: TokenUse::Session,
            expires_at: Some(at(1).plus(SESSION_AGE_MAX)),
            ..token
        };
        assert!(session.is_valid(hours(11)));
        assert!(!session.is_valid(hours(12)), "it was not used for too long");
        let used = Token { used_at: Some(hours(10)), ..session.clone() };
        assert!(used.is_valid(hours(21)) && !used.is_valid(hours(22)));
        let busy = Token { used_at: Some(hours(7 * 24)), ..session };
        assert!(!busy.is_valid(hours(7 * 24)), "no use makes it last longer than that");
    }

    proptest! {
        #[test]
        fn a_printed_token_reads_back(bytes in any::<[u8; 32]>(), other in any::<[u8; 32]>()) {
            let secret = TokenSecret::from_random(bytes);
            let read = TokenSecret::parse(&secret.reveal()).unwrap();
            prop_assert!(read.hash().matches(&secret.hash()));
            let differs = !TokenSecret::from_random(other).hash().matches(&secret.hash());
            prop_assert_eq!(differs, bytes != other);
        }

        #[test]
        fn no_text_makes_the_parsers_panic(text in "(gtw_)?[0-9a-f]{0,70}|.{0,80}") {
            if let Some(secret) = TokenSecret::parse(&text) {
                prop_assert_eq!(secret.reveal(), text.clone());
            }
            let _ = Scopes::parse(&text);
            let _ = TokenId::parse(&text);
        }
    }
}
