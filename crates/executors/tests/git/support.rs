//! An origin, its shared repository, and trees of it, in a directory that goes with the test.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gt_executors::git::{Commit, CommitLimits, Repository, Signature, Tree};
use tempfile::TempDir;

/// A rig with an origin that has one commit on `main`.
pub(crate) struct Rig {
    directory: TempDir,
    pub(crate) repository: Repository,
}

pub(crate) const MEBIBYTE: u64 = 1024 * 1024;

pub(crate) fn nux() -> Signature {
    Signature { name: "nux".to_owned(), email: "nux@rig".to_owned() }
}

pub(crate) fn limits() -> CommitLimits {
    CommitLimits { file_bytes_max: MEBIBYTE, base: None }
}

/// Git as a person or an agent calls it, without any configuration of this machine.
#[expect(clippy::disallowed_methods, reason = "tests call git as an agent does")]
pub(crate) fn git_command(directory: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_COUNT", "3")
        .env("GIT_CONFIG_KEY_0", "user.name")
        .env("GIT_CONFIG_VALUE_0", "agent")
        .env("GIT_CONFIG_KEY_1", "user.email")
        .env("GIT_CONFIG_VALUE_1", "agent@rig")
        .env("GIT_CONFIG_KEY_2", "protocol.file.allow")
        .env("GIT_CONFIG_VALUE_2", "always");
    git
}

pub(crate) fn try_git<I: AsRef<OsStr>>(
    directory: &Path,
    arguments: impl IntoIterator<Item = I>,
) -> Output {
    git_command(directory).args(arguments).output().unwrap()
}

/// The output of git; fails if git does.
pub(crate) fn git<I: AsRef<OsStr>>(
    directory: &Path,
    arguments: impl IntoIterator<Item = I>,
) -> String {
    let output = try_git(directory, arguments);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git failed: {complaint}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The error output of git; fails if git succeeds.
pub(crate) fn git_fails<I: AsRef<OsStr>>(
    directory: &Path,
    arguments: impl IntoIterator<Item = I>,
) -> String {
    let output = try_git(directory, arguments);
    assert!(!output.status.success(), "git should have refused");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn write(directory: &Path, file: &str, content: &str) {
    let path = directory.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A repository with one commit, as a person has it.
pub(crate) fn make_repository(path: &Path, file: &str) {
    fs::create_dir_all(path).unwrap();
    git(path, ["init", "--quiet", "--initial-branch=main"]);
    write(path, file, "first\n");
    commit_everything(path, "first");
}

pub(crate) fn commit_everything(path: &Path, message: &str) {
    git(path, ["add", "--all"]);
    git(path, ["commit", "--quiet", "--message", message]);
}

impl Rig {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        make_repository(&directory.path().join("person"), "file.txt");
        git(directory.path(), ["clone", "--quiet", "--bare", "person", "origin.git"]);
        let origin = directory.path().join("origin.git");
        git(
            &directory.path().join("person"),
            [OsStr::new("remote"), "add".as_ref(), "origin".as_ref(), origin.as_os_str()],
        );
        let path = directory.path().join("rig/.repo.git");
        let repository = Repository::clone_from(origin.to_str().unwrap(), path).unwrap();
        Self { directory, repository }
    }

    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(inside)
    }

    pub(crate) fn origin(&self) -> PathBuf {
        self.path("origin.git")
    }

    pub(crate) fn base(&self) -> Commit {
        self.repository.tip("main").unwrap().unwrap()
    }

    /// The tree of a worker, on the branch `polecat/<name>/1`.
    pub(crate) fn tree(&self, name: &str) -> Tree {
        let path = self.path(&format!("rig/polecats/{name}/rig"));
        let branch = format!("polecat/{name}/1");
        self.repository.add_worktree(&path, &branch, &self.base()).unwrap();
        Tree::at(path)
    }

    /// Another person lands a change on the main branch of the origin.
    pub(crate) fn land_by_person(&self, file: &str, content: &str) -> Commit {
        let person = self.path("person");
        git(&person, ["pull", "--quiet", "--rebase", "origin", "main"]);
        write(&person, file, content);
        commit_everything(&person, "by a person");
        git(&person, ["push", "--quiet", "origin", "main"]);
        Commit::parse(&git(&person, ["rev-parse", "HEAD"])).unwrap()
    }

    pub(crate) fn at_origin(&self, reference: &str) -> String {
        git(&self.origin(), ["rev-parse", reference])
    }
}

/// The content of a file in a commit.
pub(crate) fn shown(repository: &Repository, commit: &Commit, file: &str) -> String {
    git(repository.path(), ["show", &format!("{commit}:{file}")])
}

/// The files of a commit.
pub(crate) fn files(repository: &Repository, commit: &Commit) -> Vec<String> {
    let output = git(repository.path(), ["ls-tree", "-r", "--name-only", commit.as_str()]);
    output.lines().map(str::to_owned).collect()
}

/// Whether two ranges make the same changes in the same order.
pub(crate) fn same_patches(
    repository: &Repository,
    (one_base, one): (&Commit, &Commit),
    (other_base, other): (&Commit, &Commit),
) -> bool {
    let ids = |base, commit| repository.patch_ids(base, commit).unwrap();
    ids(one_base, one) == ids(other_base, other)
}
