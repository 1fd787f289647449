//! Names of commits and of people.

use std::fmt;

/// A commit, by its full hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Commit(String);

impl Commit {
    /// A full hash (SHA-1 or SHA-256, in hexadecimal), or nothing if the text is not one.
    ///
    /// ```
    /// use gt_executors::git::Commit;
    /// assert!(Commit::parse("9877271").is_none());
    /// assert!(Commit::parse(&"a".repeat(40)).is_some());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let hexadecimal = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (hexadecimal && matches!(text.len(), 40 | 64)).then(|| Self(text.to_owned()))
    }

    /// The hash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Commits as the input of git, one in each line.
pub(super) fn one_per_line<'a>(commits: impl IntoIterator<Item = &'a Commit>) -> String {
    commits.into_iter().flat_map(|commit| [commit.as_str(), "\n"]).collect()
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The author or committer of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// A name. Git refuses an empty one.
    pub name: String,
    /// An e-mail address; it may be empty.
    pub email: String,
}
