//! Status, priority and outcome.

use std::fmt;

use crate::{Invalid, limits};

/// The status of a bead.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Status {
    /// No agent works on it.
    Open,
    /// An agent or a person works on it.
    InProgress,
    /// Handed to a worker that has not picked it up yet.
    Hooked,
    /// Held up by something outside the dependency graph.
    Blocked,
    /// Put off.
    Deferred,
    /// A fixed reference, never work.
    Pinned,
    /// Over.
    Closed,
    /// A status of a team's own, such as `staged_ready`.
    Custom(CustomStatus),
}

/// The name of a status that is not built in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CustomStatus(String);

impl Status {
    /// The statuses that every store knows.
    pub const BUILT_IN: [Self; 7] = [
        Self::Open,
        Self::InProgress,
        Self::Hooked,
        Self::Blocked,
        Self::Deferred,
        Self::Pinned,
        Self::Closed,
    ];

    /// Reads a status name; `staged:ready` is another spelling of `staged_ready`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if let Some(known) = Self::BUILT_IN.iter().find(|status| status.as_str() == text) {
            return Ok(known.clone());
        }
        let name = match text {
            "staged:ready" => "staged_ready",
            "staged:warnings" => "staged_warnings",
            other => other,
        };
        let well_formed = name.len() <= limits::NAME_BYTES_MAX
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b));
        if !well_formed {
            let shown: String = text.chars().take(60).collect();
            return Err(Invalid(format!(
                "invalid status: \"{}\" is not a status; known: {}",
                shown.escape_debug(),
                Self::BUILT_IN.map(|status| status.as_str().to_owned()).join(", ")
            )));
        }
        Ok(Self::Custom(CustomStatus(name.to_owned())))
    }

    /// Whether it is that of a convoy that is planned and not launched.
    pub fn is_staged(&self) -> bool {
        matches!(self, Self::Custom(CustomStatus(name)) if name.starts_with("staged_"))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Open => "open",
            Self::InProgress => "in_progress",
            Self::Hooked => "hooked",
            Self::Blocked => "blocked",
            Self::Deferred => "deferred",
            Self::Pinned => "pinned",
            Self::Closed => "closed",
            Self::Custom(CustomStatus(name)) => name,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The outcome of a closed bead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was done.
    Success,
    /// It was tried and did not work; its dependents keep waiting.
    Failed,
    /// It was called off.
    Cancelled,
}

impl Outcome {
    /// Reads an outcome.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match text {
            "success" => Ok(Self::Success),
            "failed" => Ok(Self::Failed),
            "cancelled" => Ok(Self::Cancelled),
            other => Err(Invalid(format!(
                "\"{}\" is not an outcome; write success, failed or cancelled",
                other.escape_debug()
            ))),
        }
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// 0 (highest) to 4 (lowest).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// The most urgent priority, which a record without one has.
    pub const HIGHEST: Self = Self(0);

    /// A priority by its number.
    pub fn new(number: i64) -> Result<Self, Invalid> {
        match u8::try_from(number) {
            Ok(number @ 0..=4) => Ok(Self(number)),
            _ => Err(Invalid(format!("priority {number} is not between 0 (highest) and 4"))),
        }
    }

    /// Reads `2` or `P2`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let digits = text.strip_prefix(['P', 'p']).unwrap_or(text);
        match digits.parse::<i64>() {
            Ok(number) => Self::new(number),
            Err(_) => Err(Invalid(format!(
                "\"{}\" is not a priority; write 0 (highest) to 4, or P0 to P4",
                text.chars().take(60).collect::<String>().escape_debug()
            ))),
        }
    }

    /// The number.
    pub fn number(self) -> i64 {
        i64::from(self.0)
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(2)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_built_in_status_reads_back() {
        for status in Status::BUILT_IN {
            assert_eq!(Status::parse(status.as_str()).unwrap(), status);
        }
        let staged = Status::parse("staged:ready").unwrap();
        assert_eq!(staged.as_str(), "staged_ready");
        assert!(staged.is_staged());
        assert!(!Status::parse("stagedive").unwrap().is_staged());
        assert!(!Status::Open.is_staged());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in ".{0,80}") {
            let _ = Status::parse(&text);
            let _ = Outcome::parse(&text);
            let _ = Priority::parse(&text);
        }
    }
}
