//! One call of git.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use gt_core::time::format_duration;
use rustix::process::{Pid, Signal, kill_process_group};

use super::commit::{Commit, Signature};
use super::error::GitError;
use super::git;
use super::repository_view::CommonDirectoryView;

/// How often a call is made again that found a lock of git taken. With pauses that double from the first
/// to the longest, that is about eight seconds.
const LOCK_TRIES_MAX: u32 = 24;
const LOCK_PAUSE_FIRST: Duration = Duration::from_millis(5);
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(400);

/// The message for a call that took too long.
pub(super) const TOO_LATE: &str = "it was ended";

/// Settings that must not depend on the configuration that git reads. Hooks of a project belong to
/// the people and agents who work in it; ours would be stopped by the fence.
const SETTINGS: [&str; 14] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "push.followTags=false",
    "push.recurseSubmodules=no",
    "fetch.recurseSubmodules=no",
    "submodule.recurse=false",
    "rerere.enabled=false",
    // Workers can write these files beside the objects, and git would believe them.
    "core.commitGraph=false",
    "core.multiPackIndex=false",
];

/// A call of git that is about to be made.
#[derive(Debug)]
pub(super) struct GitCall {
    command: Command,
    /// The action, as the end of "git cannot …".
    deed: String,
    input: Vec<u8>,
    /// How long it may take, if that is limited.
    limit: Option<Duration>,
    /// A lock that stays held until the call has ended, also if our process ends before it.
    lock: Option<File>,
    /// The view that it looks through, which must exist until the call is over.
    view: Option<Arc<CommonDirectoryView>>,
}

/// The answer of git.
#[derive(Debug)]
pub(super) struct GitOutput {
    /// Its exit status, unless it was killed.
    pub(super) code: Option<i32>,
    /// Its standard output.
    pub(super) output: Vec<u8>,
    /// Its standard error.
    pub(super) complaint: String,
}

impl GitCall {
    /// Git on a repository whose configuration only gt writes.
    pub(super) fn on(repository: &Path, deed: impl Into<String>) -> Self {
        Self::anywhere(deed).arg("--git-dir").arg(repository)
    }

    /// Git in a checkout of the user, whose own configuration counts there.
    pub(super) fn in_checkout(directory: &Path, deed: impl Into<String>) -> Self {
        Self::anywhere(deed).arg("-C").arg(directory)
    }

    /// Git on a repository that others write to, with our configuration.
    pub(super) fn through(view: Arc<CommonDirectoryView>, deed: impl Into<String>) -> Self {
        let call = Self::on(view.path(), deed);
        // Otherwise the processes that git starts for a worktree would find the repository of the workers.
        let mut call = call.env("GIT_COMMON_DIR", view.path());
        call.view = Some(view);
        call
    }

    /// Git in a worktree, with the files that belong to this worktree in `git_directory`, and everything else in `common`.
    pub(super) fn in_tree(
        tree: &Path,
        git_directory: &Path,
        common: &Path,
        deed: impl Into<String>,
    ) -> Self {
        let mut call = Self::anywhere(deed);
        call.command.arg("-C").arg(tree);
        call.env("GIT_DIR", git_directory).env("GIT_COMMON_DIR", common).env("GIT_WORK_TREE", tree)
    }

    /// The same through a view.
    pub(super) fn in_tree_through(
        tree: &Path,
        git_directory: &Path,
        view: Arc<CommonDirectoryView>,
        deed: impl Into<String>,
    ) -> Self {
        let mut call = Self::in_tree(tree, git_directory, view.path(), deed);
        call.view = Some(view);
        call
    }

    /// Git without a repository. The directory that we are in may be a worker's, so git does not look there.
    pub(super) fn anywhere(deed: impl Into<String>) -> Self {
        let mut command = git();
        command.args(["-C", "/"]);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        // A commit is what its hash says, even if `refs/replace` shows another one in its place.
        command.env("GIT_NO_REPLACE_OBJECTS", "1");
        Self { command, deed: deed.into(), input: Vec::new(), limit: None, lock: None, view: None }
    }

    pub(super) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub(super) fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(super) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets the author and committer of the commits of this call.
    pub(super) fn signed(self, signature: &Signature) -> Self {
        self.env("GIT_AUTHOR_NAME", &signature.name)
            .env("GIT_AUTHOR_EMAIL", &signature.email)
            .committed(signature)
    }

    /// Sets the committer of this call, whose commits have their authors already.
    pub(super) fn committed(self, signature: &Signature) -> Self {
        self.env("GIT_COMMITTER_NAME", &signature.name).env("GIT_COMMITTER_EMAIL", &signature.email)
    }

    pub(super) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Ends the call, with everything that it started, when it takes longer than this.
    pub(super) fn limited(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self.command.process_group(0);
        self
    }

    /// Lets the call hold a lock, too: as its standard input, which calls without input do not read.
    pub(super) fn holding(mut self, lock: &File) -> Result<Self, GitError> {
        self.lock = Some(lock.try_clone().map_err(|source| GitError::Start { source })?);
        Ok(self)
    }

    /// Starts a process that answers as long as its input goes on.
    pub(super) fn start(mut self) -> Result<Child, GitError> {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command.spawn().map_err(|source| GitError::Start { source })
    }

    /// Makes the call once, and gives the answer even if git failed.
    pub(super) fn answer_once(&mut self) -> Result<GitOutput, GitError> {
        let held = self.lock.as_ref().map(File::try_clone).transpose();
        let feed = match held.map_err(|source| GitError::Start { source })? {
            Some(lock) => Stdio::from(lock),
            None if self.input.is_empty() => Stdio::null(),
            None => Stdio::piped(),
        };
        self.command.stdin(feed).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().map_err(|source| GitError::Start { source })?;
        let stdin = child.stdin.take();
        let input = &self.input;
        let (limit, group) = (self.limit, Pid::from_child(&child));
        let (ended, end) = mpsc::channel::<()>();
        // Git may answer before it has read everything, so its output is read while we write.
        let (output, is_late) = std::thread::scope(|scope| {
            if let Some(mut stdin) = stdin {
                scope.spawn(move || {
                    // It ended without reading all; its exit status says why.
                    let _ = stdin.write_all(input);
                });
            }
            let watch = limit.map(|limit| {
                scope.spawn(move || {
                    let is_late = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
                    if is_late {
                        // A process that it started may hold the pipe that we read from.
                        let _ = kill_process_group(group, Signal::KILL);
                    }
                    is_late
                })
            });
            let output = child.wait_with_output();
            drop(ended);
            (output, watch.is_some_and(|watch| watch.join().unwrap_or(false)))
        });
        let output = output.map_err(|source| GitError::Start { source })?;
        let mut complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        if let Some(limit) = limit.filter(|_| is_late) {
            complaint = format!("fatal: {TOO_LATE} after {}\n{complaint}", format_duration(limit));
        }
        Ok(GitOutput { code: output.status.code(), output: output.stdout, complaint })
    }

    /// Makes the call, again if something else had taken a lock that it needs.
    pub(super) fn answer(&mut self) -> Result<GitOutput, GitError> {
        let mut pause = LOCK_PAUSE_FIRST;
        for _ in 1..LOCK_TRIES_MAX {
            let answer = self.answer_once()?;
            if answer.succeeded() || !answer.found_a_lock() {
                return Ok(answer);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LOCK_PAUSE_MAX);
        }
        self.answer_once()
    }

    /// Makes the call and gives its output; fails unless it succeeded.
    pub(super) fn done(mut self) -> Result<Vec<u8>, GitError> {
        let answer = self.answer()?;
        if answer.succeeded() { Ok(answer.output) } else { Err(self.failed(&answer)) }
    }

    /// Makes a call that answers by its exit status: 0 is yes, 1 is no.
    pub(super) fn holds(mut self) -> Result<bool, GitError> {
        let answer = self.answer()?;
        match answer.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(self.failed(&answer)),
        }
    }

    /// Makes a call that prints the hash of a commit.
    pub(super) fn commit(self) -> Result<Commit, GitError> {
        let deed = self.deed.clone();
        let output = self.done()?;
        let text = String::from_utf8_lossy(&output);
        Commit::parse(text.trim()).ok_or_else(|| GitError::Failed {
            deed,
            message: format!("it answered {:?} where a commit was expected", text.trim()),
        })
    }

    /// Makes a call that prints the hash of a commit, or fails with 1 if there is none.
    pub(super) fn optional_commit(mut self) -> Result<Option<Commit>, GitError> {
        let answer = self.answer()?;
        match answer.code {
            Some(0) => Ok(Commit::parse(String::from_utf8_lossy(&answer.output).trim())),
            Some(1) => Ok(None),
            _ => Err(self.failed(&answer)),
        }
    }

    /// The error of an answer that was not wanted.
    pub(super) fn failed(&self, answer: &GitOutput) -> GitError {
        let deed = self.deed.clone();
        if answer.lacks_lfs() {
            return GitError::NoLfs { deed };
        }
        match answer.lock() {
            Some(lock) => GitError::Locked { deed, lock: lock.to_owned() },
            None => GitError::Failed { deed, message: answer.reason() },
        }
    }
}

impl GitOutput {
    pub(super) fn succeeded(&self) -> bool {
        self.code == Some(0)
    }

    /// The lock because of which it failed: another process changes the same thing.
    pub(super) fn lock(&self) -> Option<&str> {
        let (before, _) = self.complaint.split_once(".lock': File exists")?;
        let begin = before.rfind('\'')? + 1;
        self.complaint.get(begin..before.len() + ".lock".len())
    }

    /// Whether it failed because git is set up to use git-lfs, and there is none. It ends in the middle of a talk with
    /// git, which then only knows that the talk has ended.
    fn lacks_lfs(&self) -> bool {
        let mut lines = self.complaint.lines();
        lines.any(|line| line.contains("git-lfs") && line.contains("not found"))
    }

    /// Whether it failed because another process was changing the same thing.
    pub(super) fn found_a_lock(&self) -> bool {
        self.lock().is_some()
            || self.complaint.contains("could not lock config file")
            // A worktree that is being made has no commit for a moment.
            || self.complaint.contains("bad object worktrees/")
    }

    /// The last line that it printed: some refusals are no errors for git, and stand where its answers do.
    fn last_line(&self) -> Option<String> {
        let output = String::from_utf8_lossy(&self.output);
        output.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
    }

    /// The line that names the cause.
    pub(super) fn reason(&self) -> String {
        let spoken = || self.complaint.lines().map(str::trim).filter(|line| !line.is_empty());
        let marked = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
        let telling = spoken().find(marked).or_else(|| spoken().next_back());
        let telling = telling.map(str::to_owned).or_else(|| self.last_line());
        match (telling, self.code) {
            (Some(line), _) => line,
            (None, Some(code)) => format!("it ended with exit status {code}"),
            (None, None) => "it was killed".to_owned(),
        }
    }
}

/// The entries of `-z` output.
pub(super) fn entries(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
}

/// A path as git printed it.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_takes_too_long_is_ended_with_everything_it_started() {
        let limit = Duration::from_millis(50);
        let mut call = GitCall::anywhere("push").limited(limit);
        call.command.args(["-c", "alias.hang=!sleep 600 & sleep 600", "hang"]);

        // A process that hangs would hold its standard error, which is read to its end.
        let answer = call.answer_once().unwrap();

        assert_eq!(answer.code, None);
        assert!(answer.is_unreachable());
        assert_eq!(answer.reason(), "fatal: it was ended after 50ms");
    }

    #[test]
    fn a_call_in_time_has_its_own_answer() {
        let mut call = GitCall::anywhere("say its version").limited(Duration::from_mins(10));
        call.command.arg("--version");
        assert!(call.answer_once().unwrap().succeeded());
    }

    #[test]
    fn a_missing_git_lfs_is_reported_instead_of_the_failure() {
        let complaint =
            "git-lfs filter-process: 1: git-lfs: not found\nfatal: the remote end hung up";
        let answer =
            GitOutput { code: Some(128), output: Vec::new(), complaint: complaint.to_owned() };
        let error = GitCall::anywhere("look at a tree").failed(&answer).to_string();
        assert!(
            error.starts_with("git cannot look at a tree: git-lfs is not installed"),
            "{error}"
        );
    }

    #[test]
    fn a_lock_is_reported_with_its_path() {
        let complaint = "fatal: Unable to create 'somewhere/.git/index.lock': File exists.\n\n\
                         Another git process seems to be running";
        let answer =
            GitOutput { code: Some(128), output: Vec::new(), complaint: complaint.to_owned() };
        let error = GitCall::anywhere("commit").failed(&answer).to_string();
        assert_eq!(
            error,
            "git cannot commit: somewhere/.git/index.lock is there; if no git is running, remove it"
        );
    }
}
