//! Merging trees without a worktree.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::call::{GitCall, entries, path_of};
use super::commit::Commit;
use super::commit_object::CommitObject;
use super::error::GitError;
use super::links::replace;
use super::object_writer::CommitObjectWriter;
use super::repository::Repository;
use super::scratch::Scratch;

/// The files that tell git how to merge others, in all directories.
pub(super) const ATTRIBUTE_FILES: &str = ":(top,glob)**/.gitattributes";

/// The exit status of git for a command line that it does not understand.
const USAGE: i32 = 129;

/// The author and committer of commits that only exist for one merge.
const TEMPORARY_PERSON: &[u8] = b"gt <> 0 +0000";

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TreeMerge {
    /// The merged tree.
    Clean(Commit),
    /// Both sides have changed the same, in these files.
    Conflict(Vec<PathBuf>),
}

/// Merges trees in our own repository. The merged trees are objects there; everything else is temporary.
pub(super) struct TreeMerger<'a> {
    repository: &'a Repository,
    scratch: Scratch,
    /// The tree whose attribute files are in the worktree.
    attributes: Option<Commit>,
    /// Writes the commits that only exist for one merge, to a directory that goes with the merger.
    temporary: Option<CommitObjectWriter>,
    /// Whether git is older than 2.38 and merges only in a worktree.
    needs_worktree: bool,
}

/// The tree without a file, in the hash function of a commit.
pub(super) fn empty_tree(like: &Commit) -> &'static str {
    if like.as_str().len() == 64 {
        "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
    } else {
        "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    }
}

impl<'a> TreeMerger<'a> {
    pub(super) fn new(repository: &'a Repository, head: &Commit) -> Result<Self, GitError> {
        let scratch = Scratch::new(repository)?;
        for directory in ["tree", "git", "objects", "input"] {
            let path = scratch.path().join(directory);
            fs::create_dir(&path).map_err(GitError::file("make", &path))?;
        }
        replace(&scratch.path().join("git/HEAD"), format!("{head}\n").as_bytes())?;
        let (attributes, temporary, needs_worktree) = (None, None, false);
        Ok(Self { repository, scratch, attributes, temporary, needs_worktree })
    }

    /// A directory for files that are removed with the merger.
    pub(super) fn input_directory(&self) -> PathBuf {
        self.scratch.path().join("input")
    }

    fn call(&self, deed: &str) -> GitCall {
        let (tree, git) = (self.scratch.path().join("tree"), self.scratch.path().join("git"));
        GitCall::in_tree(&tree, &git, &self.repository.own_path(), deed)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.scratch.path().join("objects"))
            // Contents that git-lfs keeps need not be here to be merged.
            .env("GIT_LFS_SKIP_SMUDGE", "1")
    }

    /// Merges two commits by their common history. The attribute files of `tree`, the tree of `ours`, count.
    pub(super) fn merge(
        &mut self,
        ours: &Commit,
        tree: &Commit,
        theirs: &Commit,
    ) -> Result<TreeMerge, GitError> {
        if self.needs_worktree {
            return self.merge_in_worktree(ours, theirs);
        }
        self.place_attributes(tree)?;
        let mut call = self.call("merge").args([
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
            "--allow-unrelated-histories",
            ours.as_str(),
            theirs.as_str(),
        ]);
        let answer = call.answer()?;
        match answer.code {
            Some(0 | 1) => {
                let mut fields = entries(&answer.output);
                let merged = fields.next().and_then(|hash| std::str::from_utf8(hash).ok());
                let merged = merged.and_then(Commit::parse).ok_or_else(|| call.failed(&answer))?;
                Ok(match answer.code {
                    Some(0) => TreeMerge::Clean(merged),
                    _ => TreeMerge::Conflict(fields.map(path_of).collect()),
                })
            }
            Some(USAGE) => {
                self.needs_worktree = true;
                self.merge_in_worktree(ours, theirs)
            }
            _ => Err(call.failed(&answer)),
        }
    }

    /// Merges two trees that have come from a third one.
    pub(super) fn merge_trees(
        &mut self,
        base: &Commit,
        ours: &Commit,
        theirs: &Commit,
    ) -> Result<TreeMerge, GitError> {
        if base == ours || base == theirs {
            let changed = if base == ours { theirs } else { ours };
            return Ok(TreeMerge::Clean(changed.clone()));
        }
        let base = self.temporary_commit(base, None)?;
        let left = self.temporary_commit(ours, Some(&base))?;
        let right = self.temporary_commit(theirs, Some(&base))?;
        self.merge(&left, ours, &right)
    }

    fn temporary_commit(
        &mut self,
        tree: &Commit,
        parent: Option<&Commit>,
    ) -> Result<Commit, GitError> {
        let commit = CommitObject {
            tree: tree.clone(),
            parents: parent.into_iter().cloned().collect(),
            author: TEMPORARY_PERSON.to_vec(),
            encoding: None,
            message: Vec::new(),
        };
        let writer = if let Some(writer) = &mut self.temporary {
            writer
        } else {
            let objects = self.repository.own_path().join("objects");
            let call = self
                .repository
                .own_call("write a temporary commit")
                .env("GIT_OBJECT_DIRECTORY", self.scratch.path().join("objects"))
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
            self.temporary
                .insert(CommitObjectWriter::start(call, self.scratch.path().join("input"))?)
        };
        let written = writer.write(&commit.content(TEMPORARY_PERSON));
        if written.is_err() {
            // The process has ended with its error.
            self.temporary = None;
        }
        written
    }

    /// Writes the attribute files of a tree to where git looks for them, and removes others.
    fn place_attributes(&mut self, tree: &Commit) -> Result<(), GitError> {
        if self.attributes.as_ref() == Some(tree) {
            return Ok(());
        }
        let output = self
            .repository
            .own_call("look for attributes")
            .args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"])
            .args([empty_tree(tree), tree.as_str(), "--", ATTRIBUTE_FILES])
            .done()?;
        let root = self.scratch.path().join("tree");
        if self.attributes.is_some() {
            fs::remove_dir_all(&root).map_err(GitError::file("remove", &root))?;
            fs::create_dir(&root).map_err(GitError::file("make", &root))?;
        }
        // The modes and objects before and after, and the kind of the change; then the path.
        let fields: Vec<&[u8]> = entries(&output).collect();
        for field in fields.chunks_exact(2) {
            let (change, path) = (String::from_utf8_lossy(field[0]), path_of(field[1]));
            let words: Vec<&str> = change.split(' ').collect();
            let [_, mode, _, blob, _] = words[..] else { continue };
            if mode.starts_with("100") && is_inside(&path) {
                self.place(&root.join(path), blob)?;
            }
        }
        self.attributes = Some(tree.clone());
        Ok(())
    }

    fn place(&self, path: &Path, blob: &str) -> Result<(), GitError> {
        let content =
            self.repository.own_call("read attributes").args(["cat-file", "blob", blob]).done()?;
        let parent = path.parent().unwrap_or(path);
        fs::create_dir_all(parent).map_err(GitError::file("make", parent))?;
        fs::write(path, content).map_err(GitError::file("write", path))
    }

    /// Says that two trees have the same attribute files.
    pub(super) fn note_same_attributes(&mut self, one: &Commit, other: &Commit) {
        if self.attributes.as_ref() == Some(one) {
            self.attributes = Some(other.clone());
        }
    }

    /// The same for git before 2.38.
    fn merge_in_worktree(&mut self, ours: &Commit, theirs: &Commit) -> Result<TreeMerge, GitError> {
        self.attributes = None;
        let mut bases = self.call("find a common commit").args([
            "merge-base",
            "--all",
            ours.as_str(),
            theirs.as_str(),
        ]);
        let bases = bases.answer()?;
        self.call("fill a worktree").args(["read-tree", "--reset", "-u", ours.as_str()]).done()?;
        let mut call = self
            .call("merge")
            .arg("merge-recursive")
            .args(String::from_utf8_lossy(&bases.output).split_whitespace())
            .args(["--", ours.as_str(), theirs.as_str()]);
        let answer = call.answer()?;
        if answer.succeeded() {
            return self.call("write a tree").arg("write-tree").commit().map(TreeMerge::Clean);
        }
        let listed = ["diff", "--name-only", "--diff-filter=U", "-z"];
        let output = self.call("list conflicts").args(listed).done()?;
        let paths: Vec<PathBuf> = entries(&output).map(path_of).collect();
        if paths.is_empty() { Err(call.failed(&answer)) } else { Ok(TreeMerge::Conflict(paths)) }
    }
}

/// Whether a path stays in the directory that it is joined to. A worker can write trees in which it does not.
fn is_inside(path: &Path) -> bool {
    path.components().all(|component| matches!(component, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::commit::Signature;
    use crate::git::own_repository::init;

    fn commit(repository: &Repository, content: &str, parent: Option<&Commit>) -> Commit {
        let call = || repository.own_call("write").env("GIT_AUTHOR_DATE", "@1 +0000");
        let blob = call().args(["hash-object", "-w", "--stdin"]).input(content).commit().unwrap();
        let entry = format!("100644 blob {blob}\tfile\n100644 blob {blob}\tother\n");
        let tree = call().arg("mktree").input(entry).commit().unwrap();
        let parent = parent.map(|parent| ["-p", parent.as_str()]);
        call()
            .args(["commit-tree", tree.as_str(), "-m", content])
            .args(parent.into_iter().flatten())
            .signed(&Signature { name: "a".to_owned(), email: "b".to_owned() })
            .commit()
            .unwrap()
    }

    #[test]
    fn old_git_merges_the_same_in_a_worktree() {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::at(directory.path().join("repo.git"));
        init(&repository.own_path(), "sha1").unwrap();
        let base = commit(&repository, "1\n2\n3\n4\n5\n", None);
        let first = commit(&repository, "one\n2\n3\n4\n5\n", Some(&base));
        let last = commit(&repository, "1\n2\n3\n4\nfive\n", Some(&base));
        let other = commit(&repository, "eins\n2\n3\n4\n5\n", Some(&base));
        let both = commit(&repository, "one\n2\n3\n4\nfive\n", None);
        let tree = |commit: &Commit| repository.tree_of(commit).unwrap();
        for needs_worktree in [false, true] {
            let mut merger = TreeMerger::new(&repository, &base).unwrap();
            merger.needs_worktree = needs_worktree;
            let mut merge = |theirs: &Commit| merger.merge(&first, &tree(&first), theirs).unwrap();
            let paths = vec![PathBuf::from("file"), PathBuf::from("other")];
            assert_eq!(merge(&other), TreeMerge::Conflict(paths));
            assert_eq!(merge(&last), TreeMerge::Clean(tree(&both)));
            let merged = merger.merge_trees(&tree(&base), &tree(&first), &tree(&last)).unwrap();
            assert_eq!(merged, TreeMerge::Clean(tree(&both)));
            assert_eq!(merger.needs_worktree, needs_worktree);
        }
    }

    #[test]
    fn paths_that_leave_the_directory_are_recognised() {
        assert!(is_inside(Path::new("a/.gitattributes")));
        assert!(!is_inside(Path::new("../.gitattributes")));
        assert!(!is_inside(Path::new("/a/.gitattributes")));
    }
}
