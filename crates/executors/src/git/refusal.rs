//! The reasons for which an origin refuses a push.
//!
//! Git only tells that a push was refused; the reason is in the words of the hosting service. What they say is kept in
//! `tests/git/refusals`, a directory for each kind.

use std::fmt;

/// The kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The branch takes changes only through pull requests, or from others.
    ProtectedBranch,
    /// A hook or a rule of the origin does not want these commits.
    Hook,
    /// A file or the repository is too large, or there is no space left.
    Quota,
    /// The repository takes no changes: it is archived, or is being moved.
    Locked,
    /// Another reason.
    Unknown,
}

/// A refusal of an origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginRefusal {
    /// The kind.
    pub kind: RefusalKind,
    /// The words of git and of the origin.
    pub words: String,
}

impl fmt::Display for OriginRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// The signs of each kind, in lower case. The first kind with a sign counts: what a protected branch demands can name
/// anything, and a hook declines for any reason.
const SIGNS: [(RefusalKind, &[&str]); 5] = [
    (RefusalKind::Hook, &["cannot contain secrets"]),
    (
        RefusalKind::ProtectedBranch,
        &[
            "gh006",
            "gh013",
            "protected branch",
            "permission denied to update branch",
            "through pull requests",
            "through a pull request",
            "must use a pull request",
            "prohibited by gerrit",
        ],
    ),
    (
        RefusalKind::Quota,
        &[
            "gh001",
            "size limit",
            "storage limit",
            "exceeds maximum allowed size",
            "quota exceeded",
            "no space left",
        ],
    ),
    (RefusalKind::Locked, &["read-only", "read only", "was archived", "is archived"]),
    (RefusalKind::Hook, &["hook declined"]),
];

impl OriginRefusal {
    /// Reads the words of an origin.
    pub(super) fn read(words: String) -> Self {
        let lower = words.to_lowercase();
        let is_sign =
            |(_, signs): &&(RefusalKind, &[&str])| signs.iter().any(|sign| lower.contains(sign));
        let kind = SIGNS.iter().find(is_sign).map_or(RefusalKind::Unknown, |(kind, _)| *kind);
        Self { kind, words }
    }
}
