//! The shared repository of a rig.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::call::Call;
use super::commit::Commit;
use super::error::GitError;
use super::links::{link_back, linked_tree};
use super::networking::without_secrets;
use super::references;
use super::scratch::unique_name;

/// What origin's branches become here, so that `refs/heads` has only what workers made.
const BRANCHES_OF_ORIGIN: &str = "+refs/heads/*:refs/remotes/origin/*";

/// What the URL for pushing is replaced by. Git quotes it in its error, so it is written for the reader; it
/// has no colon, which would make it a host.
const PUSHING_IS_OFF: &str =
    "pushing is off here, only gt pushes - finish with `gt done` and it does";

/// Nothing that a worker made may disappear because git tidies up: not commits that only a reflog knows,
/// and not what belongs to a tree that was moved away. And git must not tidy up in the background, where it
/// would outlive the run that it belongs to.
const SETTINGS: [(&str, &str); 7] = [
    ("gc.auto", "0"),
    ("gc.pruneExpire", "never"),
    ("gc.worktreePruneExpire", "never"),
    ("gc.reflogExpire", "never"),
    ("gc.reflogExpireUnreachable", "never"),
    ("core.logAllRefUpdates", "always"),
    // Whoever just says `git push` is told that pushing is off, and not how to set an upstream.
    ("push.default", "current"),
];

/// How often fetching is tried again when others fetch at the same time.
const FETCH_TRIES_MAX: u32 = 8;

/// The file that whoever lands has locked.
const LANDING: &str = "gt-landing.lock";

/// The shared repository of a rig: bare, with worktrees elsewhere.
///
/// Branches of the origin are in `refs/remotes/origin`, those of workers in `refs/heads`, what was rescued
/// in `refs/gt`.
///
/// Where its origin is, is said by whoever opens it ([`Self::of`]), and not read from its configuration: every worker
/// writes there, and `git remote set-url` in one tree would send the work of all of them elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    path: PathBuf,
    origin: Option<String>,
}

/// The right to change which worktrees a repository has. Held by one at a time, over all processes: git
/// itself stumbles over worktrees that another one is just making.
pub(super) struct Registry {
    _lock: File,
}

/// The turn to bring something to the origin: see [`Repository::turn`].
#[derive(Debug)]
pub struct Turn {
    _lock: File,
}

impl Repository {
    /// The repository at a path, without anything outside of it. Whether there is one is not looked at.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), origin: None }
    }

    /// The repository at a path whose origin (a URL or a path) is fetched from and pushed to.
    pub fn of(path: impl Into<PathBuf>, origin: &str) -> Self {
        // Git would look for a relative path from inside the repository.
        let local = Path::new(origin).is_dir().then(|| std::path::absolute(origin).ok()).flatten();
        let origin = match local {
            Some(absolute) => absolute.to_string_lossy().into_owned(),
            None => origin.to_owned(),
        };
        Self { path: path.into(), origin: Some(origin) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is there.
    pub fn exists(&self) -> bool {
        self.path.join("HEAD").is_file()
    }

    /// Clones `origin` (a URL or a path). If the repository is there already, nothing happens.
    ///
    /// It is made under another name beside `path` and renamed when it is whole. Fails with
    /// [`GitError::Empty`] if the origin has no commit.
    pub fn clone_from(origin: &str, path: impl Into<PathBuf>) -> Result<Self, GitError> {
        let repository = Self::of(path, origin);
        if repository.exists() {
            return Ok(repository);
        }
        let path = &repository.path;
        let parent = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(GitError::file("make", parent))?;
        // One at a time: whoever waited finds it made, and what is half made was left by a crash.
        let turn = File::open(parent).map_err(GitError::file("open", parent))?;
        turn.lock().map_err(GitError::file("lock", parent))?;
        if repository.exists() {
            return Ok(repository);
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".cloning");
        let half = Self::of(parent.join(name), origin);
        half.discard()?;
        let made = half
            .fill()
            .and_then(|()| fs::rename(&half.path, path).map_err(GitError::file("make", path)));
        if made.is_err() {
            half.discard()?;
        }
        made.map(|()| repository)
    }

    fn discard(&self) -> Result<(), GitError> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(GitError::file("remove", &self.path)),
        }
    }

    fn fill(&self) -> Result<(), GitError> {
        Call::anywhere(format!("make {}", self.path.display()))
            .args(["init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--"])
            .arg(&self.path)
            .done()?;
        self.keep_remote()?;
        for (name, value) in SETTINGS {
            self.set(name, value)?;
        }
        self.fetch()?;
        let origin = self.origin()?;
        if self.references("refs/remotes/origin/")?.is_empty() {
            return Err(GitError::Empty { origin: without_secrets(&origin) });
        }
        // So that `origin/HEAD` means something to those who work here. An origin whose HEAD names no
        // branch has none.
        Call::over_network(&self.path, &origin, "ask for the default branch")?
            .args(["remote", "set-head", "origin", "--auto"])
            .answer()?;
        Ok(())
    }

    /// Writes a setting of the repository, and so of all its worktrees.
    pub(super) fn set(
        &self,
        name: &str,
        value: impl AsRef<std::ffi::OsStr>,
    ) -> Result<(), GitError> {
        Call::on(&self.path, format!("set {name}"))
            .args(["config", "--replace-all", name])
            .arg(value)
            .done()
            .map(drop)
    }

    /// Lets the settings of the repository end with this one.
    pub(super) fn set_last(&self, name: &str, value: &str) -> Result<(), GitError> {
        let call = || Call::on(&self.path, format!("set {name}")).args(["config"]);
        // Where there is none, there is nothing to take away.
        call().args(["--fixed-value", "--unset-all", name, value]).answer()?;
        call().args(["--add", name, value]).done().map(drop)
    }

    /// Where it is fetched from and pushed to.
    pub fn origin(&self) -> Result<String, GitError> {
        self.origin.clone().ok_or_else(|| GitError::Failed {
            deed: format!("find the origin of {}", self.path.display()),
            message: "nobody has said where it is".to_owned(),
        })
    }

    /// Makes the remote `origin` what workers expect it to be: they fetch from it, and pushing to it fails with a
    /// sentence that says what to do instead. Call it before each run: one of those before may have set it to something
    /// else, renamed it or taken it away. Ours ([`Self::fetch`], [`Self::push`]) do without it.
    pub fn keep_remote(&self) -> Result<(), GitError> {
        let origin = self.origin()?;
        let wanted =
            [("url", &*origin), ("fetch", BRANCHES_OF_ORIGIN), ("pushurl", PUSHING_IS_OFF)];
        let configuration = fs::read_to_string(self.path.join("config")).unwrap_or_default();
        let present = references::settings_of_origin(&configuration);
        for (name, value) in wanted {
            let mut present = present.iter().filter(|(present, _)| *present == name);
            let is_kept = present.next().is_some_and(|(_, present)| *present == value);
            if !is_kept || present.next().is_some() {
                self.set(&format!("remote.origin.{name}"), value)?;
            }
        }
        Ok(())
    }

    /// Whether the origin is a directory of this machine and everything that it has is here. What is merely not known is
    /// no.
    fn has_all_of_origin(&self) -> bool {
        let theirs = || {
            let origin = self.origin.as_ref().filter(|origin| origin.starts_with('/'))?;
            references::references_below(
                &references::plain_repository(Path::new(origin))?,
                "refs/heads/",
            )
        };
        let ours = || references::references_below(&self.path, "refs/remotes/origin/");
        // In this order: what is fetched meanwhile is then not taken for what was there.
        ours().is_some_and(|ours| theirs().is_some_and(|theirs| theirs == ours))
    }

    /// Brings `refs/remotes/origin` to where the branches of the origin are.
    pub fn fetch(&self) -> Result<(), GitError> {
        if self.has_all_of_origin() {
            return Ok(());
        }
        let origin = self.origin()?;
        let mut call = Call::over_network(&self.path, &origin, "fetch")?
            .args(["fetch", "--quiet", "--prune", "--no-write-fetch-head", "--"])
            .arg(&origin)
            .arg(BRANCHES_OF_ORIGIN);
        let mut answer = call.answer()?;
        for _ in 0..FETCH_TRIES_MAX {
            // Somebody else fetches the same.
            if answer.succeeded() || !answer.complaint.contains("cannot lock ref") {
                break;
            }
            answer = call.answer()?;
        }
        if answer.succeeded() {
            Ok(())
        } else if answer.is_unreachable() {
            Err(answer.unreachable(&origin))
        } else {
            Err(call.failed(&answer))
        }
    }

    /// Where a branch of the origin is, as last fetched.
    pub fn tip(&self, branch: &str) -> Result<Option<Commit>, GitError> {
        let name = format!("refs/remotes/origin/{branch}");
        match references::reference(&self.path, &name).filter(|_| is_plain(branch)) {
            Some(commit) => Ok(Some(commit)),
            None => self.resolve(&name),
        }
    }

    /// Where a branch of a worker is, if that can be read without asking git.
    pub fn branch_in_files(&self, branch: &str) -> Option<Commit> {
        let found = references::reference(&self.path, &format!("refs/heads/{branch}"));
        found.filter(|_| is_plain(branch))
    }

    /// The commit that a name means: a reference, a branch, a hash.
    pub fn resolve(&self, reference: &str) -> Result<Option<Commit>, GitError> {
        if reference.starts_with('-') {
            return Ok(None);
        }
        Call::on(&self.path, format!("find {reference}"))
            .args(["rev-parse", "--verify", "--quiet"])
            .arg(format!("{reference}^{{commit}}"))
            .optional_commit()
    }

    /// Whether `descendant` contains `ancestor`.
    pub fn is_ancestor(&self, ancestor: &Commit, descendant: &Commit) -> Result<bool, GitError> {
        Call::on(&self.path, format!("compare {ancestor} with {descendant}"))
            .args(["merge-base", "--is-ancestor", ancestor.as_str(), descendant.as_str()])
            .holds()
    }

    /// The references that begin with a prefix of whole words (`refs/gt/rescue/`), in order of their names.
    pub fn references(&self, prefix: &str) -> Result<Vec<(String, Commit)>, GitError> {
        let output = Call::on(&self.path, format!("list {prefix}"))
            .args(["for-each-ref", "--format=%(objectname) %(refname)", "--"])
            .arg(prefix)
            .done()?;
        let text = String::from_utf8_lossy(&output);
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs.filter_map(|(hash, name)| Some((name.to_owned(), Commit::parse(hash)?))).collect())
    }

    /// The branches of workers that begin with a prefix of whole words (`polecat/nux/`).
    pub fn branches_of(&self, prefix: &str) -> Result<Vec<(String, Commit)>, GitError> {
        let found = self.references(&format!("refs/heads/{prefix}"))?;
        let short = |name: String| name.trim_start_matches("refs/heads/").to_owned();
        Ok(found.into_iter().map(|(name, commit)| (short(name), commit)).collect())
    }

    /// Deletes a branch if it is still at this commit, and says whether it is gone.
    pub fn delete_branch_if_at(&self, branch: &str, commit: &Commit) -> Result<bool, GitError> {
        let name = format!("refs/heads/{branch}");
        let mut call = Call::on(&self.path, format!("delete branch {branch}"))
            .args(["update-ref", "-d"])
            .arg(&name)
            .arg(commit.as_str());
        let answer = call.answer_once()?;
        if answer.succeeded() {
            return Ok(true);
        }
        match self.resolve(&name)? {
            None => Ok(true),
            Some(now) if now != *commit => Ok(false),
            // It is where it should be, so something else was wrong, perhaps a lock.
            Some(_) => call.done().map(|_| true),
        }
    }

    /// Makes a reference point to a commit. With `expected`, only if it points there now.
    pub fn set_reference(
        &self,
        reference: &str,
        commit: &Commit,
        expected: Option<&Commit>,
    ) -> Result<(), GitError> {
        let call = Call::on(&self.path, format!("write {reference}"))
            .args(["update-ref", "-m", "gt"])
            .arg(reference)
            .arg(commit.as_str());
        let call = match expected {
            Some(expected) => call.arg(expected.as_str()),
            None => call,
        };
        call.done().map(drop)
    }

    /// Takes the right to change which worktrees there are, when nobody else has it.
    pub(super) fn registry(&self) -> Result<Registry, GitError> {
        let registry = Registry { _lock: self.lock("gt-registry.lock")? };
        self.forget_unreadable();
        Ok(registry)
    }

    /// Forgets worktrees that git died over before it had written what it looks for first: it would refuse to make any other
    /// beside them. Whoever calls this has the registry, so nobody is just writing it.
    fn forget_unreadable(&self) {
        for data in self.worktree_data() {
            let is_readable = fs::metadata(data.join("commondir")).is_ok_and(|file| file.len() > 0);
            if !is_readable && !data.join("index").exists() {
                let _ = fs::remove_dir_all(&data);
            }
        }
    }

    /// Waits for the turn to bring something to the origin. Those who land on one machine do so one after the other:
    /// all of them rebasing at once, for one of them to be first, would be a lot of work for nothing.
    pub fn turn(&self) -> Result<Turn, GitError> {
        Ok(Turn { _lock: self.lock(LANDING)? })
    }

    /// The same, if nobody else has it.
    pub fn turn_if_free(&self) -> Result<Option<Turn>, GitError> {
        let (file, path) = self.lock_file(LANDING)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Turn { _lock: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(GitError::file("lock", &path)(error)),
        }
    }

    /// Locks a file of ours, when nobody else has it.
    fn lock(&self, name: &str) -> Result<File, GitError> {
        let (file, path) = self.lock_file(name)?;
        file.lock().map_err(GitError::file("lock", &path))?;
        Ok(file)
    }

    fn lock_file(&self, name: &str) -> Result<(File, PathBuf), GitError> {
        let path = self.path.join(name);
        let file = File::options().create(true).append(true).open(&path);
        Ok((file.map_err(GitError::file("open", &path))?, path))
    }

    /// What the repository keeps about each of its worktrees.
    pub(super) fn worktree_data(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path.join("worktrees")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Forgets worktrees on a branch that a crash has left before they had any file.
    fn forget_half_made(&self, branch: &str) {
        let head = format!("ref: refs/heads/{branch}\n");
        for data in self.worktree_data() {
            let is_on_branch = fs::read_to_string(data.join("HEAD")).is_ok_and(|text| text == head);
            let Some(tree) = linked_tree(&data).filter(|_| is_on_branch) else { continue };
            let is_bare_link = fs::read_dir(&tree).map_or(0, Iterator::count) <= 1;
            if is_bare_link && !data.join("index").exists() {
                let _ = fs::remove_file(tree.join(".git"));
                // Only if nothing else is in it.
                let _ = fs::remove_dir(&tree);
                let _ = fs::remove_dir_all(&data);
            }
        }
    }

    /// Makes a worktree at `path`, on a new branch that begins at `base` and has no upstream.
    ///
    /// Whatever is at `path` already, be it half a tree that an earlier crash has left, is
    /// [`GitError::Exists`]. A branch that is there already and not at `base` is
    /// [`GitError::BranchExists`].
    pub fn add_worktree(&self, path: &Path, branch: &str, base: &Commit) -> Result<(), GitError> {
        make_worktree(path, |parent, path| self.register_worktree(parent, path, branch, base))
    }

    /// Makes a worktree at `path` that has `base` checked out and is on no branch. Whatever is at `path` already is
    /// [`GitError::Exists`].
    pub fn add_detached_worktree(&self, path: &Path, base: &Commit) -> Result<(), GitError> {
        make_worktree(path, |parent, path| {
            let (name, first) = place_at_first(parent);
            let _registry = self.registry()?;
            Call::on(&self.path, format!("make a worktree at {}", path.display()))
                .args(["worktree", "add", "--quiet", "--no-checkout", "--detach", "--"])
                .arg(&first)
                .arg(base.as_str())
                .done()?;
            self.give_place(&name, &first, path)
        })
    }

    /// Makes the worktree without its files.
    ///
    /// Git names what it keeps about a worktree after the last word of its path, and gives the name to
    /// another one when it is free. A tree that was moved away must be able to come back under its own name,
    /// so every one gets a name of its own: it is made at a path with such a last word, and then moved.
    fn register_worktree(
        &self,
        parent: &Path,
        path: &Path,
        branch: &str,
        base: &Commit,
    ) -> Result<(), GitError> {
        let (name, first) = place_at_first(parent);
        let deed = format!("make a worktree at {}", path.display());
        let start = || {
            Call::on(&self.path, deed.clone()).args(["worktree", "add", "--quiet", "--no-checkout"])
        };
        let _registry = self.registry()?;
        let mut call =
            start().args(["--no-track", "-b", branch, "--"]).arg(&first).arg(base.as_str());
        let mut answer = call.answer_once()?;
        if !answer.succeeded() {
            match self.resolve(&format!("refs/heads/{branch}"))? {
                Some(commit) if commit == *base => {
                    // It came as far as the branch, now or before a crash.
                    self.forget_half_made(branch);
                    call = start().arg("--").arg(&first).arg(branch);
                    answer = call.answer()?;
                }
                Some(_) => return Err(GitError::BranchExists { branch: branch.to_owned() }),
                None if answer.found_a_lock() => answer = call.answer()?,
                None => {}
            }
        }
        if !answer.succeeded() {
            return Err(call.failed(&answer));
        }
        self.give_place(&name, &first, path)
    }

    /// Takes a worktree that was just made to where it belongs.
    fn give_place(&self, name: &str, first: &Path, path: &Path) -> Result<(), GitError> {
        link_back(&self.path.join("worktrees").join(name), path)?;
        fs::rename(first, path).map_err(GitError::file("make", path))
    }
}

/// Makes a worktree with `register`, which is given the directory and the path of it, and fills it.
fn make_worktree(
    path: &Path,
    register: impl FnOnce(&Path, &Path) -> Result<(), GitError>,
) -> Result<(), GitError> {
    if path.symlink_metadata().is_ok() {
        return Err(GitError::Exists { path: path.to_owned() });
    }
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(GitError::file("make", parent))?;
    let parent = parent.canonicalize().map_err(GitError::file("find", parent))?;
    let path = parent.join(path.file_name().unwrap_or_default());
    register(&parent, &path)?;
    Call::within(&path, format!("fill {}", path.display()))
        .args(["reset", "--quiet", "--hard"])
        .done()
        .map(drop)
}

/// The name under which git keeps what belongs to a new worktree in this directory, and where it is made at first.
fn place_at_first(parent: &Path) -> (String, PathBuf) {
    let name = unique_name(&parent.file_name().unwrap_or_default().to_string_lossy());
    let first = parent.join(&name);
    (name, first)
}

/// Whether the name of a branch leads to no other file than its own.
fn is_plain(branch: &str) -> bool {
    branch.split('/').all(|word| !matches!(word, "" | "." | ".."))
}
