use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use gt_executors::git::{GitError, Tree, UnfinishedOperation};

use crate::support::{Rig, commit_everything, git, git_fails, try_git, write};

#[test]
fn the_status_has_uncommitted_and_unpushed_work() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "committed", "x");
    commit_everything(tree.path(), "work");
    write(tree.path(), "file.txt", "changed\n");
    write(tree.path(), "two\nlines", "x");
    let odd = PathBuf::from(OsStr::from_bytes(b"not \xff utf-8"));
    fs::write(tree.path().join(&odd), "x").unwrap();
    write(tree.path(), "deep/inside", "x");
    let status = tree.status().unwrap();
    assert_eq!(status.changes.tracked, [PathBuf::from("file.txt")]);
    let wanted = [PathBuf::from("deep/inside"), odd, PathBuf::from("two\nlines")];
    assert_eq!(status.changes.untracked, wanted);
    assert_eq!(status.unpushed, 1);
    assert!(!status.is_clean());
    assert_eq!(status.head, tree.head().unwrap());
}

#[test]
fn a_directory_without_a_repository_is_not_taken_for_the_one_around_it() {
    let rig = Rig::new();
    let inside = rig.path("person/inside");
    fs::create_dir(&inside).unwrap();
    let error = Tree::at(inside).status().unwrap_err();
    assert!(matches!(&error, GitError::Missing { .. }), "{error}");
}

#[test]
fn a_clean_tree_is_reused_and_keeps_ignored_files() {
    let rig = Rig::new();
    rig.land_by_person(".gitignore", "target/\n");
    rig.repository.fetch().unwrap();
    let tree = rig.tree("nux");
    write(tree.path(), "target/cache", "warm");
    write(tree.path(), "work", "x");
    commit_everything(tree.path(), "work");
    let worked = tree.head().unwrap();
    tree.recycle("polecat/nux/2", &rig.base()).unwrap();
    let status = tree.status().unwrap();
    assert!(status.is_clean());
    assert_eq!(status.branch.as_deref(), Some("polecat/nux/2"));
    assert_eq!(status.head, Some(rig.base()));
    assert!(!tree.path().join("work").exists());
    assert_eq!(fs::read_to_string(tree.path().join("target/cache")).unwrap(), "warm");
    assert_eq!(rig.repository.resolve("polecat/nux/1").unwrap(), worked, "the work is still there");
    tree.recycle("polecat/nux/2", &rig.base()).unwrap();
}

#[test]
fn settings_of_a_worker_for_its_tree_alone_end_with_it() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    git(tree.path(), ["sparse-checkout", "set", "--no-cone", "/*"]);
    git(tree.path(), ["config", "--worktree", "commit.gpgSign", "true"]);

    tree.recycle("polecat/nux/2", &rig.base()).unwrap();

    git_fails(tree.path(), ["config", "commit.gpgSign"]);
}

#[test]
fn a_tree_that_is_not_clean_is_not_used_again_and_stays_as_it_was() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "precious", "x");
    write(tree.path(), "file.txt", "changed\n");
    let error = tree.recycle("polecat/nux/2", &rig.base()).unwrap_err();
    assert!(matches!(&error, GitError::NotClean { left, .. } if left.len() == 2), "{error}");
    assert_eq!(tree.branch().unwrap().as_deref(), Some("polecat/nux/1"));
    assert_eq!(rig.repository.resolve("polecat/nux/2").unwrap(), None);
    assert_eq!(fs::read_to_string(tree.path().join("file.txt")).unwrap(), "changed\n");
    assert_eq!(fs::read_to_string(tree.path().join("precious")).unwrap(), "x");
}

#[test]
fn ignored_files_that_the_base_would_show_or_overwrite_are_not_lost() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    // Ignored on this branch only; then the base gets a file of the same name.
    write(tree.path(), ".gitignore", ".env\nsecret\n");
    commit_everything(tree.path(), "ignore");
    write(tree.path(), ".env", "KEY=1");
    let error = tree.recycle("polecat/nux/2", &rig.base()).unwrap_err();
    assert!(matches!(&error, GitError::NotClean { .. }), "{error}");
    write(tree.path(), "secret", "mine");
    rig.land_by_person("secret", "theirs");
    rig.repository.fetch().unwrap();
    tree.recycle("polecat/nux/2", &rig.base()).unwrap_err();
    assert_eq!(fs::read_to_string(tree.path().join(".env")).unwrap(), "KEY=1");
    assert_eq!(fs::read_to_string(tree.path().join("secret")).unwrap(), "mine");
    assert_eq!(tree.branch().unwrap().as_deref(), Some("polecat/nux/1"));
}

#[test]
fn a_tree_in_the_middle_of_a_rebase_is_not_used_again() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "file.txt", "mine\n");
    commit_everything(tree.path(), "mine");
    rig.land_by_person("file.txt", "theirs\n");
    rig.repository.fetch().unwrap();
    assert!(!try_git(tree.path(), ["rebase", "origin/main"]).status.success());
    let status = tree.status().unwrap();
    assert_eq!(status.unfinished, Some(UnfinishedOperation::Rebase));
    assert_eq!(status.changes.conflicts, [PathBuf::from("file.txt")]);
    let error = tree.recycle("polecat/nux/2", &rig.base()).unwrap_err();
    assert!(error.to_string().contains("git rebase --abort"), "{error}");
}

#[test]
fn a_worker_cannot_push_and_gets_advice() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "work", "x");
    commit_everything(tree.path(), "work");
    let said = git_fails(tree.path(), ["push", "origin", "HEAD:main"]);
    assert!(said.contains("finish with `gt done`"), "{said}");
    assert_eq!(rig.at_origin("main"), rig.base().as_str());
    git(tree.path(), ["fetch", "origin"]);
}

#[test]
fn the_branch_and_the_commit_of_a_tree_are_known_wherever_git_keeps_them() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let head = tree.head().unwrap();
    for packed in [false, true] {
        if packed {
            git(tree.path(), ["pack-refs", "--all"]);
        }
        assert_eq!(tree.branch().unwrap().as_deref(), Some("polecat/nux/1"));
        assert_eq!(tree.head().unwrap(), head);
    }
    git(tree.path(), ["switch", "--quiet", "--detach"]);
    assert_eq!(tree.branch().unwrap(), None);
    assert_eq!(tree.head().unwrap(), head);
    git(tree.path(), ["switch", "--quiet", "--orphan", "unborn"]);
    assert_eq!(tree.branch().unwrap().as_deref(), Some("unborn"));
    assert_eq!(tree.head().unwrap(), None);
}
