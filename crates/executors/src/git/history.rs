//! The messages of commits.

use std::path::Path;

use super::call::GitCall;
use super::error::GitError;

/// A commit and its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitMessage {
    /// Its hash, abbreviated.
    pub commit: String,
    /// The first line.
    pub subject: String,
    /// The whole message.
    pub message: String,
}

/// The messages of at most so many commits of the current branch, the latest first. A repository without a commit has none.
pub fn commit_messages(checkout: &Path, limit: u32) -> Result<Vec<CommitMessage>, GitError> {
    let call = || GitCall::in_checkout(checkout, format!("read commits of {}", checkout.display()));
    if call().args(["rev-parse", "--quiet", "--verify", "HEAD"]).done().is_err() {
        return Ok(Vec::new());
    }
    let count = format!("--max-count={limit}");
    let output = call().args(["log", "-z", &count, "--format=%h%n%B"]).done()?;
    let text = String::from_utf8_lossy(&output);
    let commits = text.split('\0').filter_map(|commit| {
        let (hash, message) = commit.split_once('\n')?;
        Some(CommitMessage {
            commit: hash.to_owned(),
            subject: message.lines().next().unwrap_or_default().to_owned(),
            message: message.to_owned(),
        })
    });
    Ok(commits.collect())
}
