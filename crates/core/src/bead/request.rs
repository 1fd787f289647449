//! The name that a caller gives a request so that repeating it does no harm.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::hexadecimal::digits_of;
use crate::{Invalid, limits};

/// 1 to 200 bytes without control characters, told apart byte by byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey(String);

impl RequestKey {
    /// Checks `text`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let fits = (1..=limits::REQUEST_KEY_BYTES_MAX).contains(&text.len());
        if !fits || text.trim().is_empty() || text.chars().any(char::is_control) {
            let shown: String = text.chars().take(60).collect();
            return Err(Invalid(format!(
                "\"{}\" is not a valid idempotency key; use 1 to {} bytes of printable characters",
                shown.escape_debug(),
                limits::REQUEST_KEY_BYTES_MAX
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// The key under which the thing at this place is remembered, of several that one request made; the first has the
    /// key itself.
    #[must_use]
    pub fn nth(&self, at: usize) -> Self {
        if at == 0 {
            return self.clone();
        }
        Self(format!("{} {at}", digits_of(&Sha256::digest(self.0.as_bytes()))))
    }

    /// A hash of everything that a request says. Two requests with the same name ask for the same if these are equal.
    pub fn fingerprint<T: AsRef<str>>(said: &[T]) -> String {
        let mut hash = Sha256::new();
        for part in said {
            hash.update((part.as_ref().len() as u64).to_le_bytes());
            hash.update(part.as_ref().as_bytes());
        }
        digits_of(&hash.finalize())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_has_a_key_of_its_own() {
        let key = RequestKey::parse("job").unwrap();
        assert_eq!(key.nth(0), key);
        let keys: std::collections::HashSet<String> =
            (0..100).map(|at| key.nth(at).to_string()).collect();
        assert_eq!(keys.len(), 100);
        assert!(keys.iter().all(|key| RequestKey::parse(key).is_ok()));
        assert_ne!(RequestKey::fingerprint(&["ab", "c"]), RequestKey::fingerprint(&["a", "bc"]));
    }

    #[test]
    fn a_key_is_short_and_printable() {
        for good in ["a", "job 7", "0190-ü", &"x".repeat(200)] {
            assert_eq!(RequestKey::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "  ", "a\nb", "a\0b", &"x".repeat(201)] {
            assert!(RequestKey::parse(bad).is_err(), "{bad:?}");
        }
    }
}
