//! The name that a caller gives a request so that repeating it does no harm.

use std::fmt;

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
    fn a_key_is_short_and_printable() {
        for good in ["a", "job 7", "0190-ü", &"x".repeat(200)] {
            assert_eq!(RequestKey::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "  ", "a\nb", "a\0b", &"x".repeat(201)] {
            assert!(RequestKey::parse(bad).is_err(), "{bad:?}");
        }
    }
}
