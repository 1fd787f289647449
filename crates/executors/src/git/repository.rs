//! The shared repository of a rig.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::call::{GitCall, entries};
use super::commit::Commit;
use super::error::GitError;
use super::links::{link_back, link_tree, linked_tree};
use super::own_repository;
use super::repository_view::CommonDirectoryView;
use super::scratch::unique_name;
use super::tree::Tree;
use super::tree_view::TreeView;

/// The mapping of origin's branches, so that `refs/heads` has only branches of workers.
pub(super) const BRANCHES_OF_ORIGIN: &str = "+refs/heads/*:refs/remotes/origin/*";

/// Where they are then, and the reference that names the usual branch.
pub(super) const BRANCHES_HERE: &str = "refs/remotes/origin/";
pub(super) const HEAD_OF_ORIGIN: &str = "refs/remotes/origin/HEAD";

/// The fetched references that workers see. Tags that are gone at the origin stay.
const SHOWN_PREFIXES: [&str; 2] = [BRANCHES_HERE, "refs/tags/"];

/// The replacement of the URL for pushing. Git quotes it in its error, so it is written for the
/// reader; it has no colon, which would make it a host.
const PUSHING_IS_OFF: &str =
    "pushing is off here, only gt pushes - finish with `gt done` and it does";

/// Nothing that a worker made may disappear because git tidies up: not commits that only a reflog
/// knows, and not the data of a tree that was moved away. And git must not tidy up in the
/// background, where it would outlive its run.
pub(super) const SETTINGS: [(&str, &str); 7] = [
    ("gc.auto", "0"),
    ("gc.pruneExpire", "never"),
    ("gc.worktreePruneExpire", "never"),
    ("gc.reflogExpire", "never"),
    ("gc.reflogExpireUnreachable", "never"),
    ("core.logAllRefUpdates", "always"),
    // A plain `git push` then says that pushing is off, and not how to set an upstream.
    ("push.default", "current"),
];

/// The lock beside the repository of changes to the list of worktrees.
const REGISTRY: &str = "registry";

/// The shared repository of a rig: bare, with worktrees elsewhere.
///
/// Branches of the origin are in `refs/remotes/origin`, those of workers in `refs/heads`, rescued
/// work in `refs/gt`.
///
/// Workers write to it, so our git reads only its objects and references, through a view. The
/// caller says where its origin is ([`Self::of`]). Commits from and to the origin pass through a
/// repository of ours beside it ([`Self::own_path`]), which no worktree belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    path: PathBuf,
    origin: Option<String>,
    /// Whether the directory of ours beside it may be used. A worker chooses the files beside a
    /// repository in its tree.
    is_ours: bool,
}

/// The right to change which worktrees a repository has. Held by one at a time, over all processes: git
/// itself stumbles over worktrees that another one is just making.
pub(super) struct Registry {
    _lock: File,
}

impl Repository {
    /// The repository at a path, without anything outside of it. Whether there is one is not looked at.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: absolute(&path.into()), origin: None, is_ours: true }
    }

    /// A repository that a worker may have made.
    pub(super) fn of_others(path: PathBuf) -> Self {
        Self { is_ours: false, ..Self::at(path) }
    }

    /// The repository at a path whose origin (a URL or a path) is fetched from and pushed to.
    pub fn of(path: impl Into<PathBuf>, origin: &str) -> Self {
        // Git would look for a relative path from inside the repository.
        let local = Path::new(origin).is_dir().then(|| std::path::absolute(origin).ok()).flatten();
        let origin = match local {
            Some(absolute) => absolute.to_string_lossy().into_owned(),
            None => origin.to_owned(),
        };
        Self { origin: Some(origin), ..Self::at(path) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the repository of ours is that belongs to it.
    pub fn own_path(&self) -> PathBuf {
        self.beside("own")
    }

    /// Where the files are that git does not commit in any tree, in the form of `.gitignore`: for workers, and for us.
    pub fn exclude_paths(&self) -> [PathBuf; 2] {
        [self.path.join("info/exclude"), self.view_path().join("info/exclude")]
    }

    pub(super) fn view_path(&self) -> PathBuf {
        self.own_path().join("view")
    }

    /// A file or directory of ours next to the repository.
    pub(super) fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".");
        name.push(ending);
        self.path.with_file_name(name)
    }

    /// Whether it is there, with the one of ours.
    pub fn exists(&self) -> bool {
        self.path.join("HEAD").is_file() && self.own_path().join("HEAD").is_file()
    }

    /// Clones `origin` (a URL or a path). A repository that exists is repaired if it is damaged
    /// ([`Self::repair`]), and otherwise left as it is.
    ///
    /// Everything is made under another name beside `path` and renamed when it is whole. Fails with
    /// [`GitError::Empty`] if the origin has no commit.
    pub fn clone_from(origin: &str, path: impl Into<PathBuf>) -> Result<Self, GitError> {
        let repository = Self::of(path, origin);
        repository.repair()?;
        Ok(repository)
    }

    /// The view through which our git sees the repository.
    pub(super) fn view(&self) -> Result<Arc<CommonDirectoryView>, GitError> {
        let kept = self.is_ours.then(|| CommonDirectoryView::kept(&self.view_path())).flatten();
        if kept.is_some() {
            // The file that names the borrowed objects is in a directory that workers write to.
            self.keep_objects()?;
        }
        kept.map_or_else(|| CommonDirectoryView::temporary(&self.path), Ok).map(Arc::new)
    }

    /// Git on the objects and references of the repository.
    pub(super) fn call(&self, deed: impl Into<String>) -> Result<GitCall, GitError> {
        Ok(GitCall::through(self.view()?, deed))
    }

    /// Git on our own repository.
    pub(super) fn own_call(&self, deed: impl Into<String>) -> GitCall {
        GitCall::on(&self.own_path(), deed)
    }

    /// A call about the configuration of the repository, which is a file that others write to.
    fn settings_call(&self, deed: impl Into<String>) -> GitCall {
        GitCall::anywhere(deed).args(["config", "--file"]).arg(self.path.join("config"))
    }

    /// Writes a setting of the repository, and so of all its worktrees.
    pub(super) fn set(
        &self,
        name: &str,
        value: impl AsRef<std::ffi::OsStr>,
    ) -> Result<(), GitError> {
        self.settings_call(format!("set {name}"))
            .args(["--replace-all", name])
            .arg(value)
            .done()
            .map(drop)
    }

    /// Lets the settings of the repository end with this one.
    pub(super) fn set_last(&self, name: &str, value: &str) -> Result<(), GitError> {
        let call = || self.settings_call(format!("set {name}"));
        // Where there is none, there is nothing to take away.
        call().args(["--fixed-value", "--unset-all", name, value]).answer()?;
        call().args(["--add", name, value]).done().map(drop)
    }

    /// Where it is fetched from and pushed to.
    pub fn origin(&self) -> Result<String, GitError> {
        self.origin.clone().ok_or_else(|| GitError::Failed {
            deed: format!("find the origin of {}", self.path.display()),
            message: "no origin was given for this repository".to_owned(),
        })
    }

    /// Sets the remote `origin` as workers need it: they fetch from it, and pushing to it fails
    /// with a sentence that says what to do instead. Call it before each run: an earlier one may
    /// have changed, renamed or removed it. Our own calls ([`Self::fetch`], [`Self::push`]) do
    /// without it.
    pub fn keep_remote(&self) -> Result<(), GitError> {
        let origin = self.origin()?;
        let wanted =
            [("url", &*origin), ("fetch", BRANCHES_OF_ORIGIN), ("pushurl", PUSHING_IS_OFF)];
        let mut asked = self.settings_call("read the remote").args(["-z", "--get-regexp"]);
        asked = asked.arg(r"^remote\.origin\.");
        let answer = asked.answer()?;
        let present: Vec<String> =
            entries(&answer.output).map(|entry| String::from_utf8_lossy(entry).into()).collect();
        for (name, value) in wanted {
            let name = format!("remote.origin.{name}");
            let is_named = |entry: &&String| entry.split('\n').next() == Some(&name);
            let values: Vec<&String> = present.iter().filter(is_named).collect();
            if values != [&format!("{name}\n{value}")] {
                self.set(&name, value)?;
            }
        }
        Ok(())
    }

    /// Brings `refs/remotes/origin` to where the branches of the origin are.
    pub fn fetch(&self) -> Result<(), GitError> {
        if !self.exists() {
            self.repair()?;
        }
        let origin = self.origin()?;
        self.with_readable_objects(|| own_repository::fetch(&self.own_path(), &origin))?;
        // Workers look there, and landings do not.
        let _ = self.show_origin();
        Ok(())
    }

    /// Copies the fetched references of the origin to those that workers see.
    pub(super) fn show_origin(&self) -> Result<(), GitError> {
        let theirs = references_of(self.own_call("list what the origin has"), &SHOWN_PREFIXES)?;
        let shown = references_of(self.call("list what workers see")?, &SHOWN_PREFIXES)?;
        let mut changes = String::new();
        for (name, ReferenceTarget { commit, .. }) in &theirs {
            // Writing to a string does not fail.
            let _ = match shown.get(name) {
                Some(present) if present.commit == *commit && !present.is_symbolic => Ok(()),
                Some(present) if present.is_symbolic => {
                    writeln!(changes, "option no-deref\nupdate {name} {commit}")
                }
                Some(present) => writeln!(changes, "update {name} {commit} {}", present.commit),
                None => writeln!(changes, "create {name} {commit}"),
            };
        }
        let is_gone = |name: &String| name.starts_with(BRANCHES_HERE) && !theirs.contains_key(name);
        for (name, ReferenceTarget { commit, .. }) in shown.iter().filter(|(name, _)| is_gone(name))
        {
            let _ = writeln!(changes, "option no-deref\ndelete {name} {commit}");
        }
        if changes.is_empty() {
            return Ok(());
        }
        let mut call = self.call("show workers what the origin has")?;
        call = call.args(["update-ref", "-m", "gt", "--stdin"]).input(changes);
        let answer = call.answer_once()?;
        if answer.succeeded() { Ok(()) } else { Err(call.failed(&answer)) }
    }

    /// Where a branch of the origin is, as last fetched.
    pub fn tip(&self, branch: &str) -> Result<Option<Commit>, GitError> {
        self.own_call(format!("find the branch {branch} of the origin"))
            .args(["rev-parse", "--verify", "--quiet"])
            .arg(format!("{BRANCHES_HERE}{branch}^{{commit}}"))
            .optional_commit()
    }

    /// The commit that a name means: a reference, a branch, a hash.
    pub fn resolve(&self, reference: &str) -> Result<Option<Commit>, GitError> {
        if reference.starts_with('-') {
            return Ok(None);
        }
        self.call(format!("find {reference}"))?
            .args(["rev-parse", "--verify", "--quiet"])
            .arg(format!("{reference}^{{commit}}"))
            .optional_commit()
    }

    /// Whether `descendant` contains `ancestor`.
    pub fn is_ancestor(&self, ancestor: &Commit, descendant: &Commit) -> Result<bool, GitError> {
        self.call(format!("compare {ancestor} with {descendant}"))?
            .args(["merge-base", "--is-ancestor", ancestor.as_str(), descendant.as_str()])
            .holds()
    }

    /// The references that begin with a prefix of whole words (`refs/gt/rescue/`), in order of their names.
    pub fn references(&self, prefix: &str) -> Result<Vec<(String, Commit)>, GitError> {
        let output = self
            .call(format!("list {prefix}"))?
            .args(["for-each-ref", "--format=%(objectname) %(refname)", "--"])
            .arg(prefix)
            .done()?;
        let text = String::from_utf8_lossy(&output);
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs.filter_map(|(hash, name)| Some((name.to_owned(), Commit::parse(hash)?))).collect())
    }

    /// Deletes a branch if it is still at this commit, and says whether it is gone.
    pub fn delete_branch_if_at(&self, branch: &str, commit: &Commit) -> Result<bool, GitError> {
        let name = format!("refs/heads/{branch}");
        let mut call = self
            .call(format!("delete branch {branch}"))?
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
        let call = self
            .call(format!("write {reference}"))?
            .args(["update-ref", "-m", "gt"])
            .arg(reference)
            .arg(commit.as_str());
        let call = match expected {
            Some(expected) => call.arg(expected.as_str()),
            None => call,
        };
        call.done().map(drop)
    }

    /// Waits for the lock on the list of worktrees, and takes it.
    pub(super) fn registry(&self) -> Result<Registry, GitError> {
        let registry = Registry { _lock: self.lock(REGISTRY)? };
        self.forget_unreadable();
        Ok(registry)
    }

    /// Forgets worktrees that git died over before it had written `commondir`: it would refuse to
    /// make any other beside them. The caller holds the registry lock, so no other process is
    /// writing them.
    fn forget_unreadable(&self) {
        for data in self.worktree_data() {
            let is_readable = fs::metadata(data.join("commondir")).is_ok_and(|file| file.len() > 0);
            if !is_readable && !data.join("index").exists() {
                let _ = fs::remove_dir_all(&data);
            }
        }
    }

    /// Waits for the lock on a file of ours, and takes it.
    pub(super) fn lock(&self, name: &str) -> Result<File, GitError> {
        let (file, path) = self.lock_file(name)?;
        file.lock().map_err(GitError::file("lock", &path))?;
        Ok(file)
    }

    pub(super) fn lock_file(&self, name: &str) -> Result<(File, PathBuf), GitError> {
        let path = self.beside(&format!("{name}.lock"));
        let file = File::options().create(true).read(true).append(true).open(&path);
        Ok((file.map_err(GitError::file("open", &path))?, path))
    }

    /// The directories in which the repository keeps data about its worktrees.
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
    /// A file or directory at `path`, even half a tree that an earlier crash has left, is
    /// [`GitError::Exists`]. A branch that exists and is not at `base` is
    /// [`GitError::BranchExists`].
    pub fn add_worktree(&self, path: &Path, branch: &str, base: &Commit) -> Result<(), GitError> {
        self.make_worktree(path, |parent, path| self.register_worktree(parent, path, branch, base))
    }

    /// Makes a worktree at `path` that has `base` checked out and is on no branch. A file or
    /// directory at `path` is [`GitError::Exists`].
    pub fn add_detached_worktree(&self, path: &Path, base: &Commit) -> Result<(), GitError> {
        self.make_worktree(path, |parent, path| {
            let (name, first) = place_at_first(parent);
            let _registry = self.registry()?;
            self.call(format!("make a worktree at {}", path.display()))?
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
        let start = || -> Result<GitCall, GitError> {
            let call = self.call(deed.clone())?;
            Ok(call.args(["worktree", "add", "--quiet", "--no-checkout"]))
        };
        let _registry = self.registry()?;
        let mut call =
            start()?.args(["--no-track", "-b", branch, "--"]).arg(&first).arg(base.as_str());
        let mut answer = call.answer_once()?;
        if !answer.succeeded() {
            match self.resolve(&format!("refs/heads/{branch}"))? {
                Some(commit) if commit == *base => {
                    // It came as far as the branch, now or before a crash.
                    self.forget_half_made(branch);
                    call = start()?.arg("--").arg(&first).arg(branch);
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
        let data = self.path.join("worktrees").join(name);
        // Git has written the path that it saw it at.
        link_tree(first, &data)?;
        link_back(&data, path)?;
        fs::rename(first, path).map_err(GitError::file("make", path))
    }

    /// Makes a worktree with `register`, which is given the directory and the path of it, and fills it.
    fn make_worktree(
        &self,
        path: &Path,
        register: impl Fn(&Path, &Path) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        if path.symlink_metadata().is_ok() {
            return Err(GitError::Exists { path: path.to_owned() });
        }
        let parent = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(GitError::file("make", parent))?;
        let parent = parent.canonicalize().map_err(GitError::file("find", parent))?;
        let path = parent.join(path.file_name().unwrap_or_default());
        self.with_readable_objects(|| register(&parent, &path))?;
        let tree = Tree::of(&path, self);
        let view = TreeView::open(&tree)?;
        self.with_readable_objects(|| {
            let fill = view.call(format!("fill {}", path.display()));
            fill.args(["reset", "--quiet", "--hard"]).done()
        })?;
        view.give_index()
    }
}

/// The name under which git keeps what belongs to a new worktree in this directory, and where it is made at first.
fn place_at_first(parent: &Path) -> (String, PathBuf) {
    let name = unique_name(&parent.file_name().unwrap_or_default().to_string_lossy());
    let first = parent.join(&name);
    (name, first)
}

/// Where a reference leads.
struct ReferenceTarget {
    commit: String,
    is_symbolic: bool,
}

/// The references of a repository below some prefixes, without the one that only says which branch is the usual one.
fn references_of(
    call: GitCall,
    prefixes: &[&str],
) -> Result<BTreeMap<String, ReferenceTarget>, GitError> {
    let output = call
        .args(["for-each-ref", "--format=%(objectname) %(refname) %(symref)", "--"])
        .args(prefixes.iter().copied())
        .done()?;
    let text = String::from_utf8_lossy(&output);
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        if let (Some(commit), Some(name), symbolic) = (words.next(), words.next(), words.next())
            && name != HEAD_OF_ORIGIN
        {
            let is_symbolic = symbolic.is_some_and(|target| !target.is_empty());
            found.insert(
                name.to_owned(),
                ReferenceTarget { commit: commit.to_owned(), is_symbolic },
            );
        }
    }
    Ok(found)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
