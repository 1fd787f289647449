//! The branch of a pull request: in the origin, or in a fork of it.

use std::time::{Duration, Instant};

use super::call::GitCall;
use super::candidate::escaped_reference;
use super::commit::Commit;
use super::error::GitError;
use super::landing::{Push, read_push, time_until};
use super::large_files::Uploaded;
use super::networking::PUSH_TIME_MAX;
use super::repository::Repository;

/// Where our own repository keeps the tips of these branches.
const PULLS: &str = "refs/gt/pulls/";

impl Repository {
    /// Asks a remote (a URL or a path) where a branch is now, and fetches it. Nothing if there is no such branch.
    pub fn hosted_tip(&self, remote: &str, branch: &str) -> Result<Option<Commit>, GitError> {
        let asked = format!("refs/heads/{branch}");
        let mut call =
            GitCall::over_network(Some(&self.own_path()), remote, format!("ask for {branch}"))?
                .args(["ls-remote", "--"])
                .arg(remote)
                .arg(&asked);
        let answer = call.answer_once()?;
        if !answer.succeeded() {
            return Err(if answer.is_unreachable() {
                answer.unreachable(remote)
            } else {
                call.failed(&answer)
            });
        }
        let text = String::from_utf8_lossy(&answer.output);
        let is_it = |line: &&str| line.split_once('\t').is_some_and(|(_, name)| name == asked);
        if !text.lines().any(|line| is_it(&line)) {
            return Ok(None);
        }
        let kept = escaped_reference(PULLS, branch);
        let mut call =
            GitCall::over_network(Some(&self.own_path()), remote, format!("fetch {branch}"))?
                .args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--"])
                .arg(remote)
                .arg(format!("+{asked}:{kept}"));
        let answer = call.answer_once()?;
        if !answer.succeeded() {
            return Err(if answer.is_unreachable() {
                answer.unreachable(remote)
            } else {
                call.failed(&answer)
            });
        }
        self.own_call(format!("find {branch}"))
            .args(["rev-parse", "--verify", "--quiet"])
            .arg(format!("{kept}^{{commit}}"))
            .optional_commit()
    }

    /// Pushes a commit to a branch that is ours alone, also where that takes commits back. Only if the branch is at
    /// `expected`; without, only if there is no such branch.
    pub fn push_hosted(
        &self,
        remote: &str,
        commit: &Commit,
        branch: &str,
        expected: Option<&Commit>,
        limit: Duration,
    ) -> Result<Push, GitError> {
        let deadline = Instant::now() + limit.min(PUSH_TIME_MAX);
        self.import(commit)?;
        match self.upload_large_files(commit, branch, expected, deadline)? {
            Uploaded::All => {}
            Uploaded::Refused(why) => return Ok(Push::Incomplete(why)),
            Uploaded::Unreachable(why) => return Ok(Push::Unreachable(why)),
            Uploaded::NotInstalled(why) => return Ok(Push::Unable(why)),
        }
        self.change_hosted(remote, branch, &format!("{commit}:"), expected, deadline)
    }

    /// Deletes a branch, if it is still at this commit.
    pub fn delete_hosted(
        &self,
        remote: &str,
        branch: &str,
        expected: &Commit,
        limit: Duration,
    ) -> Result<Push, GitError> {
        let deadline = Instant::now() + limit.min(PUSH_TIME_MAX);
        self.change_hosted(remote, branch, ":", Some(expected), deadline)
    }

    fn change_hosted(
        &self,
        remote: &str,
        branch: &str,
        source: &str,
        expected: Option<&Commit>,
        deadline: Instant,
    ) -> Result<Push, GitError> {
        let lease = expected.map(Commit::as_str).unwrap_or_default();
        let mut call =
            GitCall::over_network(Some(&self.own_path()), remote, format!("push to {branch}"))?
                .args(["push", "--porcelain", "--no-verify", "--no-tags"])
                .arg(format!("--force-with-lease=refs/heads/{branch}:{lease}"))
                .arg("--")
                .arg(remote)
                .arg(format!("{source}refs/heads/{branch}"))
                .limited(time_until(deadline));
        Ok(read_push(&call.answer_once()?))
    }

    /// Whether `descendant` contains `ancestor`. Commits of workers and of the origin may be compared.
    pub fn has_in_history(&self, descendant: &Commit, ancestor: &Commit) -> Result<bool, GitError> {
        self.import(descendant)?;
        Ok(self.owns(ancestor)? && self.own_contains(descendant, ancestor)?)
    }
}
