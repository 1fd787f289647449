//! Landing in a checkout of the user: the origin is a repository on this machine, and the target branch is checked out
//! there or in a linked worktree.
//!
//! A push would move the branch and leave the files of the checkout behind, so git refuses it. Instead the candidate is
//! pushed to a reference beside the branches, and git merges it in the checkout, as its user would. Uncommitted changes to
//! other files stay. In the checkout the user's own git configuration counts; hooks do not run.
//!
//! Git moves the files and the index first and the branch last. A landing that was interrupted between the two is
//! recognised by the reference of its candidate, and its files are put back before anything else happens.

use std::collections::HashSet;
use std::fmt;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::call::{GitCall, GitOutput, entries, path_of};
use super::candidate::escaped_reference;
use super::commit::Commit;
use super::error::GitError;
use super::landing::{Push, PushDestination, time_until};
use super::networking::PUSH_TIME_MAX;
use super::repository::Repository;

/// Where candidates are pushed to in the origin.
const CANDIDATES: &str = "refs/gt/landing/";

/// The files in a git directory that tell of an operation of several steps, and its command.
const OPERATIONS: [(&str, &str); 7] = [
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer/todo", "cherry-pick or revert"),
    ("BISECT_LOG", "bisect"),
];

/// The files in a git directory that name the branch which an operation with a detached `HEAD` goes back to.
const BRANCH_OF_OPERATION: [&str; 3] =
    ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"];

/// The pauses before a landing tries again that found a lock of git.
const LOCK_PAUSES: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
];

/// A call in a checkout is ended after this time: a filter or a server of a submodule may hang.
const CHECKOUT_CALL_TIME_MAX: Duration = Duration::from_mins(15);

/// A checkout that cannot take a candidate now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckoutInTheWay {
    /// The directory of the checkout.
    pub checkout: PathBuf,
    /// The reason.
    pub obstacle: CheckoutObstacle,
    /// The commit that is to land.
    pub candidate: Commit,
}

/// The reason why a checkout cannot take a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckoutObstacle {
    /// This git operation is under way.
    Operation(&'static str),
    /// This lock file exists.
    Lock(PathBuf),
    /// Git refuses to change these files, which are not committed, in these words.
    Files {
        /// The reason, with the files.
        words: String,
        /// The files; none if git does not name them plainly.
        files: Vec<String>,
    },
    /// An interrupted landing has changed files, and they were changed again since.
    Interrupted,
    /// Submodules cannot be updated, for this reason.
    Submodules(String),
    /// The branch is checked out in this other worktree, too.
    SecondCheckout(PathBuf),
    /// The directory of the checkout does not exist.
    Missing,
    /// Another landing is at work there.
    Busy,
}

impl fmt::Display for CheckoutObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(operation) => write!(f, "a {operation} is under way"),
            Self::Lock(lock) => write!(
                f,
                "the lock {} exists (remove it if no git command is running there)",
                lock.display()
            ),
            Self::Files { words, .. } => f.write_str(words),
            Self::Interrupted => {
                f.write_str("an interrupted landing changed files, and they were changed again since")
            }
            Self::Submodules(why) => write!(f, "a submodule cannot be updated: {why}"),
            Self::SecondCheckout(other) => {
                write!(f, "the branch is checked out in {}, too", other.display())
            }
            Self::Missing => f.write_str(
                "git lists this worktree, and its directory does not exist (git worktree prune forgets it)",
            ),
            Self::Busy => f.write_str("another landing is at work"),
        }
    }
}

impl CheckoutInTheWay {
    /// The command that lands the candidate by hand.
    pub fn land_command(&self) -> String {
        let Self { checkout, candidate, .. } = self;
        format!("git -C {} merge --ff-only --no-overwrite-ignore {candidate}", quoted(checkout))
    }

    /// The command that puts files aside that are not committed.
    fn stash_command(&self, files: &[String]) -> String {
        let stash = format!("git -C {} stash push", quoted(&self.checkout));
        if files.is_empty() {
            return format!("{stash} --include-untracked");
        }
        // Also those that git ignores, but no other ones.
        let files: Vec<String> = files.iter().map(|file| quoted(Path::new(file))).collect();
        format!("{stash} --all -- {}", files.join(" "))
    }

    /// The command that puts back the files which an interrupted landing has changed.
    pub fn undo_command(&self) -> String {
        let Self { checkout, candidate, .. } = self;
        format!("git -C {} read-tree -m -u {candidate} HEAD", quoted(checkout))
    }
}

impl fmt::Display for CheckoutInTheWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.obstacle, self.checkout.display())?;
        // Only a command that works while the obstacle is there is told.
        match &self.obstacle {
            CheckoutObstacle::Files { files, .. } => {
                let stash = self.stash_command(files);
                write!(f, "; commit these files there, or put them aside: `{stash}`")
            }
            CheckoutObstacle::Interrupted => {
                write!(
                    f,
                    "; `{}` removes the files of the interrupted landing",
                    self.undo_command()
                )
            }
            CheckoutObstacle::SecondCheckout(_) => {
                write!(f, "; by hand, `{}` lands it", self.land_command())
            }
            CheckoutObstacle::Operation(_)
            | CheckoutObstacle::Lock(_)
            | CheckoutObstacle::Submodules(_)
            | CheckoutObstacle::Missing
            | CheckoutObstacle::Busy => Ok(()),
        }
    }
}

/// A path as one word of a shell.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%,:=".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The worktrees of an origin (a URL or a path) in which a branch is checked out. None unless the origin is on this
/// machine.
pub fn checkouts_of(origin: &str, branch: &str) -> Result<Vec<PathBuf>, GitError> {
    let Some(directory) =
        git_directory_of(origin).filter(|directory| may_have_checkouts(directory))
    else {
        return Ok(Vec::new());
    };
    let found = GitCall::on(&directory, "list worktrees")
        .args(["worktree", "list", "--porcelain", "-z"])
        .done()?;
    let wanted = format!("refs/heads/{branch}");
    let mut checkouts = Vec::new();
    let (mut path, mut is_detached) = (PathBuf::new(), false);
    // A worktree ends with an empty entry.
    for line in found.split(|byte| *byte == 0) {
        if let Some(begins) = line.strip_prefix(b"worktree ") {
            (path, is_detached) = (path_of(begins), false);
        } else if let Some(on) = line.strip_prefix(b"branch ") {
            if on == wanted.as_bytes() {
                checkouts.push(with_files(&path, origin));
            }
        } else if line == b"detached" {
            is_detached = true;
        } else if line.is_empty() && is_detached && goes_back_to(&path, branch) {
            checkouts.push(path.clone());
            is_detached = false;
        }
    }
    Ok(checkouts)
}

/// The git directory of an origin on this machine, found as git finds it when it fetches from there.
fn git_directory_of(origin: &str) -> Option<PathBuf> {
    let path = origin.strip_prefix("file://").unwrap_or(origin);
    if !path.starts_with('/') {
        return None;
    }
    let candidates = [format!("{path}/.git"), path.to_owned(), format!("{path}.git")];
    candidates.into_iter().map(PathBuf::from).find(|directory| {
        // In a linked worktree, and beside a separate git directory, it is a file that names the directory.
        directory.join("HEAD").is_file() || (directory.ends_with(".git") && directory.is_file())
    })
}

/// A bare repository without linked worktrees has none, and nothing has to be asked.
fn may_have_checkouts(directory: &Path) -> bool {
    directory.file_name().is_some_and(|name| name == ".git") || directory.join("worktrees").is_dir()
}

/// The directory of a worktree. For a separate git directory, git names that one instead.
fn with_files(listed: &Path, origin: &str) -> PathBuf {
    let is_git_directory = listed.join("HEAD").is_file() && listed.join("objects").is_dir();
    let origin = Path::new(origin);
    let origin_has_files = origin.join(".git").symlink_metadata().is_ok();
    if is_git_directory && origin_has_files { origin.into() } else { listed.into() }
}

/// Whether a worktree with a detached `HEAD` is in the middle of an operation on this branch.
fn goes_back_to(path: &Path, branch: &str) -> bool {
    let asked = GitCall::in_checkout(path, "find its git directory")
        .args(["rev-parse", "--absolute-git-dir"])
        .answer_once();
    let Some(answer) = asked.ok().filter(GitOutput::succeeded) else { return false };
    let directory = path_of(answer.output.trim_ascii_end());
    BRANCH_OF_OPERATION.iter().any(|file| {
        let named = std::fs::read_to_string(directory.join(file)).unwrap_or_default();
        let named = named.trim();
        named.strip_prefix("refs/heads/").unwrap_or(named) == branch
    })
}

impl Repository {
    /// Brings a commit to a branch of the origin: by a push or, if the branch is checked out on this machine, through
    /// that checkout. `landing` names this landing among all others. It is ended after `limit`.
    ///
    /// The reference of a candidate stays until [`Self::forget_candidate`].
    pub fn deliver(
        &self,
        commit: &Commit,
        branch: &str,
        expected: Option<&Commit>,
        landing: &str,
        limit: Duration,
    ) -> Result<Push, GitError> {
        let deadline = Instant::now() + limit.min(PUSH_TIME_MAX);
        let checkouts = checkouts_of(&self.origin()?, branch)?;
        let (Some(expected), Some((path, others))) = (expected, checkouts.split_first()) else {
            return self.send(commit, branch, expected, PushDestination::Target, deadline);
        };
        let held = |obstacle| {
            let (checkout, candidate) = (path.clone(), commit.clone());
            Ok(Push::Held(CheckoutInTheWay { checkout, obstacle, candidate }))
        };
        if let Some(other) = others.first() {
            return held(CheckoutObstacle::SecondCheckout(other.clone()));
        }
        if !path.is_dir() {
            return held(CheckoutObstacle::Missing);
        }
        let mut pauses = LOCK_PAUSES.iter();
        let checkout = loop {
            match (Checkout::lock(path, branch)?, pauses.next()) {
                (Some(checkout), _) => break checkout,
                (None, Some(pause)) => std::thread::sleep(*pause),
                (None, None) => return held(CheckoutObstacle::Busy),
            }
        };
        let mut pauses = LOCK_PAUSES.iter();
        loop {
            match self.land_in(&checkout, commit, expected, landing, deadline)? {
                LandingAttempt::Landed => return Ok(Push::Done),
                LandingAttempt::Push(push) => return Ok(push),
                LandingAttempt::Held(obstacle) => return held(obstacle),
                LandingAttempt::Locked(lock) => match pauses.next() {
                    Some(pause) => std::thread::sleep(*pause),
                    None => return held(CheckoutObstacle::Lock(lock)),
                },
            }
        }
    }

    /// Deletes the reference of a candidate that has landed, or does not land any more. Files of an interrupted
    /// landing are put back first; while that is not possible the reference stays.
    pub fn forget_candidate(&self, branch: &str, landing: &str) -> Result<(), GitError> {
        let checkouts = checkouts_of(&self.origin()?, branch)?;
        let Some(path) = checkouts.first().filter(|path| path.is_dir()) else { return Ok(()) };
        // A landing that holds the lock deletes the candidates that have landed.
        let Some(checkout) = Checkout::lock(path, branch)? else { return Ok(()) };
        let reference = escaped_reference(CANDIDATES, landing);
        let candidates = checkout.candidates()?;
        let Some((_, commit)) = candidates.iter().find(|(name, _)| *name == reference) else {
            return Ok(());
        };
        match checkout.put_back(commit)? {
            PutBackResult::Nothing | PutBackResult::Done => checkout.forget(&reference, commit),
            PutBackResult::Refused | PutBackResult::Locked(_) => Ok(()),
        }
    }

    fn land_in(
        &self,
        checkout: &Checkout,
        commit: &Commit,
        expected: &Commit,
        landing: &str,
        deadline: Instant,
    ) -> Result<LandingAttempt, GitError> {
        let head = checkout.head()?;
        let underway = OPERATIONS.iter().find(|(sign, _)| head.directory.join(sign).exists());
        if let Some((_, operation)) = underway {
            return Ok(LandingAttempt::Held(CheckoutObstacle::Operation(operation)));
        }
        let lock = head.directory.join("index.lock");
        if lock.symlink_metadata().is_ok() {
            return Ok(LandingAttempt::Locked(lock));
        }
        for (reference, candidate) in checkout.candidates()? {
            if self.is_known_in(&candidate, &head.commit)? {
                checkout.forget(&reference, &candidate)?;
                continue;
            }
            match checkout.put_back(&candidate)? {
                PutBackResult::Nothing | PutBackResult::Done => {}
                PutBackResult::Refused => {
                    return Ok(LandingAttempt::Held(CheckoutObstacle::Interrupted));
                }
                PutBackResult::Locked(lock) => return Ok(LandingAttempt::Locked(lock)),
            }
        }
        if head.reference != checkout.reference() || head.commit != *expected {
            let now = format!("{} is at {} now", head.reference, head.commit);
            return Ok(LandingAttempt::Push(Push::LostRace(now)));
        }
        let submodules = self.changed_submodules(expected, commit)?;
        if let Some(changed) = checkout.own_changes(&submodules)? {
            let why = format!("{} has changes of its own", changed.display());
            return Ok(LandingAttempt::Held(CheckoutObstacle::Submodules(why)));
        }
        let reference = escaped_reference(CANDIDATES, landing);
        let candidate = PushDestination::Candidate(&reference);
        match self.send(commit, &checkout.branch, Some(expected), candidate, deadline)? {
            Push::Done => {}
            other => return Ok(LandingAttempt::Push(other)),
        }
        match checkout.merge(commit, deadline)? {
            LandingAttempt::Landed => checkout.update_submodules(&submodules, commit, expected),
            other => Ok(other),
        }
    }

    /// Whether a commit, which need not be here, is in the history of another one.
    fn is_known_in(&self, ancestor: &Commit, descendant: &Commit) -> Result<bool, GitError> {
        let is_here = |commit: &Commit| Ok(self.resolve(commit.as_str())?.is_some());
        Ok(is_here(ancestor)? && is_here(descendant)? && self.is_ancestor(ancestor, descendant)?)
    }

    /// The submodules whose commits differ between two commits.
    fn changed_submodules(&self, from: &Commit, to: &Commit) -> Result<Vec<PathBuf>, GitError> {
        let output = self
            .call("look for changed submodules")?
            .args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--diff-filter=AMT"])
            .args([from.as_str(), to.as_str()])
            .done()?;
        let fields: Vec<&[u8]> = entries(&output).collect();
        // The modes before and after, the objects and the kind of the change; then the path.
        let is_submodule = |change: &[u8]| change.get(8..14) == Some(b"160000");
        let changed = fields.chunks_exact(2).filter(|field| is_submodule(field[0]));
        Ok(changed.map(|field| path_of(field[1])).collect())
    }
}

/// The end of one attempt to land in a checkout.
enum LandingAttempt {
    Landed,
    /// As a push would have ended.
    Push(Push),
    Held(CheckoutObstacle),
    /// This lock was taken.
    Locked(PathBuf),
}

/// The end of an attempt to put back the files of an interrupted landing.
enum PutBackResult {
    /// The index is not that of the candidate: there is nothing to put back.
    Nothing,
    Done,
    /// Files were changed since.
    Refused,
    Locked(PathBuf),
}

/// `HEAD` of a checkout.
struct CheckoutHead {
    /// The git directory of the worktree.
    directory: PathBuf,
    commit: Commit,
    /// The branch, in full; `HEAD` if there is none.
    reference: String,
}

/// A worktree that has a branch checked out, for as long as one landing is at work in it.
struct Checkout {
    path: PathBuf,
    branch: String,
    /// Held by us and by every git command that changes the checkout, so that no landing takes one that is still under
    /// way for one that was interrupted.
    lock: File,
}

impl Checkout {
    /// The checkout, unless another landing is at work in it.
    fn lock(path: &Path, branch: &str) -> Result<Option<Self>, GitError> {
        let lock = File::open(path).map_err(GitError::file("open", path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { path: path.to_owned(), branch: branch.to_owned(), lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(GitError::file("lock", path)(error)),
        }
    }

    fn reference(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    fn call(&self, deed: &str) -> GitCall {
        GitCall::in_checkout(&self.path, format!("{deed} in {}", self.path.display()))
    }

    /// A call that changes the checkout.
    fn change(&self, deed: &str) -> Result<GitCall, GitError> {
        let call = self.call(deed).env("GIT_REFLOG_ACTION", "gt").limited(CHECKOUT_CALL_TIME_MAX);
        call.holding(&self.lock)
    }

    fn head(&self) -> Result<CheckoutHead, GitError> {
        let output = self
            .call("find HEAD")
            .args(["rev-parse", "--absolute-git-dir", "HEAD", "--symbolic-full-name", "HEAD"])
            .done()?;
        let mut lines = output.trim_ascii_end().rsplitn(3, |byte| *byte == b'\n');
        let mut text = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
        let (reference, commit) = (text(), text());
        let directory = path_of(lines.next().unwrap_or_default());
        let commit = Commit::parse(&commit).ok_or_else(|| GitError::Failed {
            deed: format!("find HEAD in {}", self.path.display()),
            message: format!("it answered {commit:?} where a commit was expected"),
        })?;
        Ok(CheckoutHead { directory, commit, reference })
    }

    /// The candidates of landings that are not over.
    fn candidates(&self) -> Result<Vec<(String, Commit)>, GitError> {
        let output = self
            .call("list candidates")
            .args(["for-each-ref", "--format=%(objectname) %(refname)", "--", CANDIDATES])
            .done()?;
        let text = String::from_utf8_lossy(&output);
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs.filter_map(|(hash, name)| Some((name.to_owned(), Commit::parse(hash)?))).collect())
    }

    fn forget(&self, reference: &str, commit: &Commit) -> Result<(), GitError> {
        let call = self.change("delete a candidate")?;
        call.args(["update-ref", "-d", reference, commit.as_str()]).done().map(drop)
    }

    /// The paths that `git diff` names with these arguments.
    fn differences(&self, arguments: &[&str]) -> Result<HashSet<PathBuf>, GitError> {
        let output = self
            .call("compare files")
            .args(["diff", "--no-ext-diff", "--name-only", "-z", "--no-renames", "--no-relative"])
            .args(arguments.iter().copied())
            .done()?;
        Ok(entries(&output).map(path_of).collect())
    }

    /// Puts files and index back to `HEAD` where a landing of this candidate has moved them and did not come to move the
    /// branch.
    fn put_back(&self, candidate: &Commit) -> Result<PutBackResult, GitError> {
        let moved = self.differences(&["HEAD", candidate.as_str()])?;
        let staged_otherwise = self.differences(&["--cached", candidate.as_str()])?;
        if moved.is_empty() || !moved.is_disjoint(&staged_otherwise) {
            return Ok(PutBackResult::Nothing);
        }
        // A submodule is never updated before the branch has moved.
        let edited = self.differences(&["--ignore-submodules=all"])?;
        if !moved.is_disjoint(&edited) {
            return Ok(PutBackResult::Refused);
        }
        let answer = self
            .change("put files back")?
            .args(["read-tree", "-m", "-u", candidate.as_str(), "HEAD"])
            .answer_once()?;
        Ok(if answer.succeeded() {
            PutBackResult::Done
        } else if answer.found_a_lock() {
            PutBackResult::Locked(self.lock_named(&answer))
        } else {
            PutBackResult::Refused
        })
    }

    fn lock_named(&self, answer: &GitOutput) -> PathBuf {
        answer.lock().map_or_else(|| self.path.join(".git/index.lock"), PathBuf::from)
    }

    /// Ends a merge that is not done at `deadline`, as if it had been interrupted.
    fn merge(&self, commit: &Commit, deadline: Instant) -> Result<LandingAttempt, GitError> {
        let answer = self
            .change("land")?
            .limited(time_until(deadline))
            .args(["merge", "--ff-only", "--no-overwrite-ignore"])
            // The user's configuration may ask for these, and they would do something else.
            .args(["--no-squash", "--no-autostash", "--quiet", commit.as_str()])
            .answer_once()?;
        let head = self.head()?;
        if head.commit == *commit {
            return Ok(LandingAttempt::Landed);
        }
        Ok(match self.put_back(commit)? {
            PutBackResult::Refused => LandingAttempt::Held(CheckoutObstacle::Interrupted),
            PutBackResult::Locked(lock) => LandingAttempt::Locked(lock),
            // The files had moved, so only the branch did not: it is locked, or another command has moved it.
            PutBackResult::Done if answer.lock().is_none() => {
                LandingAttempt::Push(Push::LostRace(answer.reason()))
            }
            PutBackResult::Nothing | PutBackResult::Done if answer.found_a_lock() => {
                LandingAttempt::Locked(self.lock_named(&answer))
            }
            PutBackResult::Nothing | PutBackResult::Done
                if answer.complaint.contains("fast-forward") =>
            {
                LandingAttempt::Push(Push::LostRace(answer.reason()))
            }
            PutBackResult::Nothing | PutBackResult::Done => LandingAttempt::Held(refusal(&answer)),
        })
    }

    /// One of these submodules that the user has moved or changed.
    fn own_changes(&self, submodules: &[PathBuf]) -> Result<Option<PathBuf>, GitError> {
        if submodules.is_empty() {
            return Ok(None);
        }
        let changed = self.differences(&["--ignore-submodules=untracked", "HEAD"])?;
        Ok(submodules.iter().find(|path| changed.contains(*path)).cloned())
    }

    /// Brings submodules to the commits that have just landed. If that fails, the landing is taken back.
    fn update_submodules(
        &self,
        submodules: &[PathBuf],
        commit: &Commit,
        expected: &Commit,
    ) -> Result<LandingAttempt, GitError> {
        if submodules.is_empty() {
            return Ok(LandingAttempt::Landed);
        }
        let update = || {
            let call = self.change("update submodules")?.args(["submodule", "--quiet", "update"]);
            submodules.iter().fold(call.arg("--"), GitCall::arg).answer_once()
        };
        let answer = update()?;
        if answer.succeeded() {
            return Ok(LandingAttempt::Landed);
        }
        // In this order: a landing that is interrupted in between has the form that is put back.
        let mut branch = self
            .change("take the branch back")?
            .args(["update-ref", "-m", "gt", &self.reference(), expected.as_str()])
            .arg(commit.as_str());
        if !branch.answer()?.succeeded() {
            // Another command has moved the branch on: the landing stands.
            return Ok(LandingAttempt::Landed);
        }
        match self.put_back(commit)? {
            PutBackResult::Nothing | PutBackResult::Done => {
                update()?;
                Ok(LandingAttempt::Held(CheckoutObstacle::Submodules(answer.reason())))
            }
            PutBackResult::Refused => Ok(LandingAttempt::Held(CheckoutObstacle::Interrupted)),
            PutBackResult::Locked(lock) => Ok(LandingAttempt::Locked(lock)),
        }
    }
}

/// The sentence with which git refuses to change files, and the files that it names.
fn refusal(answer: &GitOutput) -> CheckoutObstacle {
    // A stash that was applied leaves conflicts without an operation, and they cannot be put aside.
    if answer.complaint.contains("unmerged files") {
        return CheckoutObstacle::Operation("resolution of conflicts");
    }
    let named = answer.complaint.lines().filter_map(|line| line.strip_prefix('\t'));
    let named: Vec<&str> = named.map(str::trim).collect();
    let reason = answer.reason();
    let reason = reason.trim_start_matches("error: ").trim_end_matches(':');
    if named.is_empty() {
        return CheckoutObstacle::Files { words: reason.to_owned(), files: Vec::new() };
    }
    let is_plain = named.iter().all(|file| !file.starts_with('"'));
    let files =
        if is_plain { named.iter().map(|file| (*file).to_owned()).collect() } else { Vec::new() };
    CheckoutObstacle::Files { words: format!("{reason}: {}", named.join(", ")), files }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidate_reference_is_a_valid_name_for_every_landing() {
        assert_eq!(escaped_reference(CANDIDATES, "we-abc#1"), "refs/gt/landing/we-abc%231");
        assert_eq!(escaped_reference(CANDIDATES, "we-1.2@3"), "refs/gt/landing/we-1%2E2%403");
        assert_eq!(
            escaped_reference(CANDIDATES, "a b/..lock"),
            "refs/gt/landing/a%20b%2F%2E%2Elock"
        );
    }

    #[test]
    fn commands_quote_the_path_of_the_checkout() {
        assert_eq!(quoted(Path::new("/src/web")), "/src/web");
        assert_eq!(quoted(Path::new("/src/it's mine")), r"'/src/it'\''s mine'");
    }
}
