//! Files that git-lfs keeps: a commit only has a pointer to each, so their contents must be at the origin before it.
//!
//! Usually the hook `pre-push` of git-lfs sees to that. Our own git runs without hooks, so we do what that hook does.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Instant;

use super::call::{GitCall, GitOutput, TOO_LATE, entries, path_of};
use super::commit::Commit;
use super::error::GitError;
use super::landing::time_until;
use super::networking::PUSH_TIME_MAX;
use super::repository::Repository;
use super::scratch::Scratch;
use super::tree::Tree;

/// The messages of git-lfs when the server does not answer, or does not let us in.
const UNREACHABLE: [&str; 10] = [
    TOO_LATE,
    "dial tcp",
    "connection refused",
    "connection reset",
    "no such host",
    "timeout",
    "missing protocol",
    "Authentication required",
    "Authorization error",
    "Server error",
];

/// Where a project says itself how git-lfs reaches its server.
const PROJECT_SETTINGS: &str = ".lfsconfig";

/// The remote side of a new reference, as the hook `pre-push` is given it.
fn zero_hash(like: &Commit) -> String {
    "0".repeat(like.as_str().len())
}

/// The result of uploading large files to the origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Uploaded {
    /// All that a commit points to is there, as far as we know.
    All,
    /// Something is missing or unwanted. Trying again does not help.
    Refused(String),
    /// The place where they are kept did not answer.
    Unreachable(String),
    /// git-lfs is not installed.
    NotInstalled(String),
}

/// Whether git can deal with the files of a project that git-lfs keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LargeFiles {
    /// The project has no such files.
    None,
    /// Git can deal with them.
    Ready,
    /// git-lfs is not installed.
    NotInstalled,
    /// It is installed, but git was never told to use it: `git lfs install`.
    NotSetUp,
}

impl Repository {
    /// Whether git can deal with the large files of a commit that came from the origin.
    pub fn large_files(&self, commit: &Commit) -> Result<LargeFiles, GitError> {
        if !self.has_large_files(commit)? {
            return Ok(LargeFiles::None);
        }
        let mut version = self.own_call("look for git-lfs").args(["lfs", "version"]);
        if !version.answer_once()?.succeeded() {
            return Ok(LargeFiles::NotInstalled);
        }
        let is_set_up = is_set_up(self.own_call("read its settings"))?;
        Ok(if is_set_up { LargeFiles::Ready } else { LargeFiles::NotSetUp })
    }

    /// Whether files of a commit are kept by git-lfs, as its attributes say.
    fn has_large_files(&self, commit: &Commit) -> Result<bool, GitError> {
        self.own_call("read the attributes of files")
            .args(["grep", "--quiet", "--fixed-strings", "filter=lfs", commit.as_str(), "--"])
            .arg(":(glob)**/.gitattributes")
            .holds()
    }

    /// Uploads the large files of a commit before it is delivered to a branch; the reason if one of them is missing or
    /// unwanted. A place that does not answer is left to the delivery.
    pub fn missing_large_files(
        &self,
        commit: &Commit,
        branch: &str,
        expected: &Commit,
    ) -> Result<Option<String>, GitError> {
        let deadline = Instant::now() + PUSH_TIME_MAX;
        match self.upload_large_files(commit, branch, Some(expected), deadline)? {
            Uploaded::Refused(why) => Ok(Some(why)),
            Uploaded::All | Uploaded::Unreachable(_) | Uploaded::NotInstalled(_) => Ok(None),
        }
    }

    /// Uploads the large files to which the commit points and which the origin lacks: those that
    /// came after `expected`, and after all that was fetched.
    pub(super) fn upload_large_files(
        &self,
        commit: &Commit,
        branch: &str,
        expected: Option<&Commit>,
        deadline: Instant,
    ) -> Result<Uploaded, GitError> {
        if !self.has_large_files(commit)? {
            return Ok(Uploaded::All);
        }
        // Git-lfs looks for the settings of a project where its files are.
        let scratch = Scratch::new(self)?;
        self.place_settings(commit, &scratch)?;
        let origin = self.origin()?;
        let deed = format!("bring large files to {branch}");
        let before = expected.map_or_else(|| zero_hash(commit), Commit::to_string);
        let mut call = GitCall::over_network(Some(&self.own_path()), &origin, deed)?
            .arg("--work-tree")
            .arg(scratch.path())
            // The settings of the shared repository are every worker's, and its remote does not push.
            .args(["-c", &format!("remote.origin.url={origin}")])
            .args(["-c", &format!("remote.origin.pushurl={origin}")])
            .args(["lfs", "pre-push", "origin", &origin])
            .input(format!("{commit} {commit} refs/heads/{branch} {before}\n"))
            .limited(time_until(deadline));
        let answer = call.answer_once()?;
        Ok(if answer.succeeded() {
            Uploaded::All
        } else if !answer.complaint.contains("'lfs' is not a git command") {
            read_upload(&answer)
        } else if self.brings_pointers(commit, expected)? {
            Uploaded::NotInstalled(
                "it has files that git-lfs keeps, and git-lfs is not installed on this machine; install it (apt \
                 install git-lfs, brew install git-lfs)"
                    .to_owned(),
            )
        } else {
            Uploaded::All
        })
    }

    fn place_settings(&self, commit: &Commit, scratch: &Scratch) -> Result<(), GitError> {
        let mut call = self
            .own_call(format!("read {PROJECT_SETTINGS}"))
            .args(["cat-file", "blob"])
            .arg(format!("{commit}:{PROJECT_SETTINGS}"));
        let answer = call.answer_once()?;
        if !answer.succeeded() {
            // Few projects have any.
            return Ok(());
        }
        let place = scratch.path().join(PROJECT_SETTINGS);
        fs::write(&place, answer.output).map_err(GitError::file("write", &place))
    }

    /// Whether commits that the origin does not have bring new pointers along.
    fn brings_pointers(
        &self,
        commit: &Commit,
        expected: Option<&Commit>,
    ) -> Result<bool, GitError> {
        let output = self
            .own_call("look for files that git-lfs keeps")
            .args(["log", "--max-count=1", "--format=%H", "--diff-filter=d", "--extended-regexp"])
            .args(["-G^oid sha256:[0-9a-f]{64}$", commit.as_str(), "--not", "--remotes=origin"])
            .args(expected.map(Commit::as_str))
            .done()?;
        Ok(!output.is_empty())
    }
}

impl Tree {
    /// Those of the paths whose contents git-lfs takes out of the commit. How large they are is its business.
    pub(super) fn kept_by_lfs(&self, paths: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
        if paths.is_empty() || !is_set_up(self.call("read its settings")?)? {
            return Ok(Vec::new());
        }
        let asked = paths.iter().flat_map(|path| path.as_os_str().as_bytes().iter().chain(&[0]));
        let output = self
            .call("read the attributes of files")?
            .args(["check-attr", "-z", "--stdin", "filter"])
            .input(asked.copied().collect::<Vec<u8>>())
            .done()?;
        // A path, the name of the attribute, its value.
        let fields: Vec<&[u8]> = entries(&output).collect();
        let kept = fields.chunks_exact(3).filter(|field| field[2] == b"lfs");
        Ok(kept.map(|field| path_of(field[0])).collect())
    }
}

/// Whether git gives files to git-lfs. `call` is one of git in the place that is meant.
fn is_set_up(call: GitCall) -> Result<bool, GitError> {
    let mut call = call.args(["config", "--get-regexp", r"^filter\.lfs\.(process|clean)$"]);
    Ok(call.answer_once()?.succeeded())
}

/// Classifies the output of a failed `git lfs pre-push`.
fn read_upload(answer: &GitOutput) -> Uploaded {
    // Progress, and hints about locks that a server does not know, are not the reason of the
    // failure.
    let is_aside = |line: &&str| {
        ["hint:", "Remote ", "$ git config", "Uploading LFS objects"]
            .iter()
            .any(|beginning| line.starts_with(beginning))
    };
    // git-lfs names missing files on its standard output.
    let output = String::from_utf8_lossy(&answer.output);
    let lines = output
        .lines()
        .chain(answer.complaint.lines())
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let telling: Vec<&str> = lines.filter(|line| !is_aside(line)).collect();
    let why = if telling.is_empty() { answer.reason() } else { telling.join(" ") };
    if UNREACHABLE.iter().any(|phrase| why.contains(phrase)) {
        Uploaded::Unreachable(why)
    } else {
        Uploaded::Refused(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(output: &str, complaint: &str) -> Uploaded {
        read_upload(&GitOutput {
            code: Some(2),
            output: output.into(),
            complaint: complaint.to_owned(),
        })
    }

    #[test]
    fn messages_of_git_lfs_are_classified() {
        let missing = "Git LFS upload failed:\n  (missing) a.bin (e025)\n";
        assert_eq!(
            failed(missing, "hint: Your push was rejected\n"),
            Uploaded::Refused("Git LFS upload failed: (missing) a.bin (e025)".to_owned())
        );
        let away = "Remote \"origin\" does not support the Git LFS locking API. Consider disabling it with:\n  \
                    $ git config lfs.x.locksverify false\nbatch response: Post \"x\": dial tcp: no such host\n";
        assert_eq!(
            failed("Uploading LFS objects: 0%\n", away),
            Uploaded::Unreachable("batch response: Post \"x\": dial tcp: no such host".to_owned())
        );
        assert_eq!(failed("", ""), Uploaded::Refused("it ended with exit status 2".to_owned()));
    }
}
