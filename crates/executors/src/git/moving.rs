//! Moving trees: nothing is deleted.
//!
//! A tree that was moved away is a directory with `tree`, which is the tree with everything that is in it,
//! and `git`, which is the repository's data about it (its `HEAD`, its index, its submodules). Every step
//! is one renaming, and each may be the last one before a crash: both directions can be called again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::call::{GitCall, path_of};
use super::error::GitError;
use super::links::{canonical, git_directory, link_back, link_tree, linked_tree, normal, replace};
use super::repository::Repository;
use super::scratch::unique_name;

/// Why a worktree is locked while it is away. Git does not prune locked worktrees.
const LOCK_REASON: &str = "moved away by gt\n";

/// A tree on its way to a place where it is kept, step by step.
///
/// [`move_tree_away`] takes all steps. Each does nothing if it was taken already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeMove {
    repository: Repository,
    tree: PathBuf,
    destination: PathBuf,
}

impl TreeMove {
    /// The move of a tree to a destination.
    pub fn new(repository: &Repository, tree: &Path, destination: &Path) -> Self {
        Self {
            repository: Repository::at(canonical(repository.path())),
            tree: canonical(tree.parent().unwrap_or(Path::new(".")))
                .join(tree.file_name().unwrap_or_default()),
            destination: destination.to_owned(),
        }
    }

    fn kept_tree(&self) -> PathBuf {
        self.destination.join("tree")
    }

    fn kept_data(&self) -> PathBuf {
        self.destination.join("git")
    }

    /// The data that the repository keeps about this tree, if the tree at `place` is a worktree of
    /// it.
    fn data_of(&self, place: &Path) -> Option<PathBuf> {
        let registry = self.repository.path().join("worktrees");
        let is_ours =
            |data: &PathBuf| linked_tree(data).is_some_and(|tree| canonical(&tree) == self.tree);
        let named = git_directory(place).ok().map(|named| canonical(&named));
        let named = named.filter(|named| named.parent() == Some(&registry)).filter(is_ours);
        // A worker may have broken the link in its tree; the repository still knows where the tree was.
        named.or_else(|| self.repository.worktree_data().into_iter().find(is_ours))
    }

    /// First: git does not prune the tree while it is in between.
    pub fn lock(&self) -> Result<(), GitError> {
        let Some(data) = self.data_of(&self.tree) else { return Ok(()) };
        let lock = data.join("locked");
        // A lock that another program made protects the tree as well, and stays.
        if lock.exists() { Ok(()) } else { replace(&lock, LOCK_REASON.as_bytes()) }
    }

    /// Second: the directory goes, with all that is in it. It need not be a whole tree, or one at all.
    pub fn take_directory(&self) -> Result<(), GitError> {
        let kept = self.kept_tree();
        match (exists(&self.tree), exists(&kept)) {
            (true, true) => Err(GitError::Exists { path: kept }),
            (false, true) => Ok(()),
            (false, false) => Err(GitError::Missing { path: self.tree.clone() }),
            (true, false) => {
                make_directory(&self.destination)?;
                rename(&self.tree, &kept)
            }
        }
    }

    /// Third: the repository's data about the tree is moved along.
    pub fn take_git_data(&self) -> Result<(), GitError> {
        let kept = self.kept_data();
        if exists(&kept) {
            return Ok(());
        }
        let Some(data) = self.data_of(&self.kept_tree()) else { return Ok(()) };
        rename(&data, &kept)
    }
}

/// Moves a tree, or any other file at its path, to a destination on the same file system, with
/// everything that belongs to it. Nothing is read, changed or left behind.
///
/// The destination must not have a tree yet. If a call was interrupted, the same call completes it.
pub fn move_tree_away(
    repository: &Repository,
    tree: &Path,
    destination: &Path,
) -> Result<(), GitError> {
    let step = TreeMove::new(repository, tree, destination);
    let _registry = repository.exists().then(|| repository.registry()).transpose()?;
    step.lock()?;
    step.take_directory()?;
    step.take_git_data()
}

/// Moves a tree back from where [`move_tree_away`] has put it, to the same path or another: ignored files,
/// submodules, nested repositories, index and `HEAD` are as they were.
///
/// If a call was interrupted, of this or of the way there, this call completes it.
pub fn move_tree_back(
    repository: &Repository,
    destination: &Path,
    tree: &Path,
) -> Result<(), GitError> {
    let step = TreeMove::new(repository, tree, destination);
    let (kept, kept_data) = (step.kept_tree(), step.kept_data());
    let registry = step.repository.path().join("worktrees");
    let _registry = repository.exists().then(|| repository.registry()).transpose()?;
    match (exists(&kept), exists(&step.tree)) {
        (true, true) => return Err(GitError::Exists { path: step.tree }),
        (false, false) => return Err(GitError::Missing { path: kept }),
        (false, true) => {}
        (true, false) => {
            // A worker may have made a repository of its own out of the tree. Then what was known about the
            // tree before stays where it is kept.
            if exists(&kept_data) && !kept.join(".git").is_dir() {
                make_directory(&registry)?;
                let place = place_for_data(&registry, &kept)?;
                rename(&kept_data, &place)?;
            }
            make_directory(step.tree.parent().unwrap_or(Path::new(".")))?;
            rename(&kept, &step.tree)?;
        }
    }
    if let Ok(data) = git_directory(&step.tree).map(|data| canonical(&data))
        && data.parent() == Some(&registry)
        && data.is_dir()
    {
        relink_tree(&data, &step.tree)?;
    }
    // It is empty, unless another program has put a file there.
    let _ = fs::remove_dir(destination);
    Ok(())
}

/// Where the data of a tree goes that comes back: to the name it had, or another if that is taken. The tree
/// names it before it is there, so that nothing has to be remembered.
fn place_for_data(registry: &Path, kept: &Path) -> Result<PathBuf, GitError> {
    let named = git_directory(kept).ok().map(|named| canonical(&named));
    match named {
        Some(named) if named.parent() == Some(registry) && !exists(&named) => Ok(named),
        _ => {
            let fresh = registry.join(unique_name("returned"));
            link_tree(kept, &fresh)?;
            Ok(fresh)
        }
    }
}

/// Makes a tree and its data know each other at their present places, and takes our lock away.
fn relink_tree(data: &Path, tree: &Path) -> Result<(), GitError> {
    let before = linked_tree(data).unwrap_or_else(|| tree.to_owned());
    let is_of_another =
        before != tree && git_directory(&before).is_ok_and(|at| canonical(&at) == data);
    if is_of_another {
        return Ok(());
    }
    // The data is told last, because it says where the tree was.
    relink_submodules(&data.join("modules"), &before, tree)?;
    link_back(data, tree)?;
    let lock = data.join("locked");
    if fs::read(&lock).is_ok_and(|reason| reason == LOCK_REASON.as_bytes()) {
        fs::remove_file(&lock).map_err(GitError::file("remove", &lock))?;
    }
    Ok(())
}

/// Repositories of submodules lie inside the data of the tree, at any depth, and have relative paths to
/// their directories in the tree.
fn relink_submodules(modules: &Path, before: &Path, tree: &Path) -> Result<(), GitError> {
    for entry in fs::read_dir(modules).into_iter().flatten().flatten() {
        let module = entry.path();
        if !module.is_dir() || module.is_symlink() {
            continue;
        }
        if !module.join("HEAD").is_file() {
            // The name of a submodule may have slashes.
            relink_submodules(&module, before, tree)?;
            continue;
        }
        relink_submodules(&module.join("modules"), before, tree)?;
        let config = module.join("config");
        let setting = || {
            GitCall::anywhere("read the place of a submodule")
                .args(["config", "-z", "--file"])
                .arg(&config)
        };
        let answer = setting().args(["--get", "core.worktree"]).answer()?;
        let named = path_of(answer.output.strip_suffix(b"\0").unwrap_or_default());
        let was = normal(&module.join(named));
        let Some(inside) = was.strip_prefix(before).ok().filter(|_| answer.succeeded()) else {
            continue;
        };
        let now = tree.join(inside);
        setting().args(["--replace-all", "core.worktree"]).arg(&now).done()?;
        if now.is_dir() {
            link_tree(&now, &module)?;
        }
    }
    Ok(())
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn make_directory(path: &Path) -> Result<(), GitError> {
    fs::create_dir_all(path).map_err(GitError::file("make", path))
}

fn rename(from: &Path, to: &Path) -> Result<(), GitError> {
    fs::rename(from, to).map_err(|source| match source.kind() {
        io::ErrorKind::CrossesDevices => {
            GitError::OtherFileSystem { from: from.to_owned(), to: to.to_owned() }
        }
        _ => GitError::file("move", from)(source),
    })
}
