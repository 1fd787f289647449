//! The contents of commits, and trees that checks run in.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use gt_executors::git::{GitError, Tree, files_of_checkout};

use crate::support::{Rig, git, write};

fn check_tree(rig: &Rig) -> Tree {
    let path = rig.path("rig/checks/1/rig");
    rig.repository.add_detached_worktree(&path, &rig.base()).unwrap();
    Tree::of(path, &rig.repository)
}

#[test]
fn a_tree_is_put_at_a_commit_without_what_a_check_left() {
    let rig = Rig::new();
    rig.land_by_person(".gitignore", "target/\n");
    rig.repository.fetch().unwrap();
    let tree = check_tree(&rig);
    let first = rig.base();
    for moves_head in [false, true] {
        write(tree.path(), "target/cache", "warm");
        write(tree.path(), "left", "x");
        write(tree.path(), "deep/left", "x");
        write(tree.path(), "file.txt", "changed\n");
        git(tree.path(), ["init", "--quiet", "nested"]);
        write(tree.path(), "nested/file", "x");
        git(tree.path(), ["update-index", "--assume-unchanged", "file.txt"]);
        if moves_head {
            write(tree.path(), "committed", "x");
            git(tree.path(), ["add", "committed"]);
            git(tree.path(), ["commit", "--quiet", "--message", "by a check"]);
        }
        tree.reset_to(&first).unwrap();
        let status = tree.status().unwrap();
        assert!(status.is_clean(), "{status:?}");
        assert_eq!((status.head.as_ref(), status.branch), (Some(&first), None));
        assert_eq!(git(tree.path(), ["status", "--porcelain"]), "");
        assert_eq!(fs::read_to_string(tree.path().join("target/cache")).unwrap(), "warm");
        for gone in ["left", "deep", "nested", "committed"] {
            assert!(!tree.path().join(gone).exists(), "{gone}");
        }
    }
    // A file that is ignored in one commit is not in another.
    rig.land_by_person(".gitignore", "other/\n");
    rig.repository.fetch().unwrap();
    tree.reset_to(&rig.base()).unwrap();
    assert!(!tree.path().join("target").exists());
}

#[test]
fn a_broken_tree_is_told_and_can_be_made_anew() {
    let rig = Rig::new();
    let tree = check_tree(&rig);
    write(tree.path(), "target/read-only/file", "x");
    let closed = tree.path().join("target/read-only");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
    fs::remove_file(tree.path().join(".git")).unwrap();
    let error = tree.reset_to(&rig.base()).unwrap_err();
    assert!(matches!(error, GitError::Missing { .. }), "{error}");
    let known = || fs::read_dir(rig.repository.path().join("worktrees")).map_or(0, Iterator::count);
    assert_eq!(known(), 1);
    rig.repository.discard_check_tree(tree.path()).unwrap();
    assert_eq!((known(), tree.path().exists()), (0, false));
    rig.repository.discard_check_tree(tree.path()).unwrap();
    rig.repository.add_detached_worktree(tree.path(), &rig.base()).unwrap();
    tree.reset_to(&rig.base()).unwrap();
}

#[test]
fn contents_of_commits_are_listed_compared_and_read() {
    let rig = Rig::new();
    let first = rig.base();
    rig.land_by_person("deep/a\nb", "text\n");
    rig.repository.fetch().unwrap();
    let second = rig.base();
    let paths = |commit| -> Vec<String> {
        rig.repository.entries_of(commit).unwrap().into_iter().map(|entry| entry.path).collect()
    };
    assert_eq!(paths(&first), ["file.txt"]);
    assert_eq!(paths(&second), ["deep/a\nb", "file.txt"]);
    assert_ne!(rig.repository.tree_of(&first).unwrap(), rig.repository.tree_of(&second).unwrap());
    let changed = rig.repository.changed_paths(&first, &second).unwrap();
    assert_eq!(changed, [std::path::Path::new("deep/a\nb")]);
    let wanted = ["missing", "file.txt", "deep"];
    let expected = [("file.txt".to_owned(), "first\n".to_owned())];
    assert_eq!(rig.repository.files(&second, &wanted).unwrap(), expected);
    assert_eq!(
        files_of_checkout(&rig.path("person"), "refs/heads/main", &wanted).unwrap(),
        expected
    );
    assert!(files_of_checkout(&rig.path("person"), "refs/heads/none", &wanted).unwrap().is_empty());
}
