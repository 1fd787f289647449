use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use gt_executors::git::{GitError, Tree, Unfinished, Vigil};

use crate::support::{Rig, commit_everything, git, git_fails, try_git, write};

#[test]
fn the_status_tells_what_is_not_committed_and_not_pushed() {
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
fn a_clean_tree_is_used_again_and_keeps_what_is_ignored() {
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
    assert_eq!(status.unfinished, Some(Unfinished::Rebase));
    assert_eq!(status.changes.conflicts, [PathBuf::from("file.txt")]);
    let error = tree.recycle("polecat/nux/2", &rig.base()).unwrap_err();
    assert!(error.to_string().contains("git rebase --abort"), "{error}");
}

#[test]
fn a_worker_cannot_push_and_is_told_what_to_do() {
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
        assert_eq!(tree.head_quickly().unwrap(), head);
    }
    git(tree.path(), ["switch", "--quiet", "--detach"]);
    assert_eq!(tree.branch().unwrap(), None);
    assert_eq!(tree.head_quickly().unwrap(), head);
    git(tree.path(), ["switch", "--quiet", "--orphan", "unborn"]);
    assert_eq!(tree.branch().unwrap().as_deref(), Some("unborn"));
    assert_eq!(tree.head_quickly().unwrap(), None);
}

/// Has everything in a tree be older than its index, as it is a moment after it was made.
fn let_time_pass(tree: &Tree) {
    let index = PathBuf::from(git(tree.path(), ["rev-parse", "--git-path", "index"]));
    let index = fs::File::options().append(true).open(tree.path().join(index)).unwrap();
    let later = index.metadata().unwrap().modified().unwrap() + Duration::from_mins(1);
    index.set_modified(later).unwrap();
}

#[test]
fn whoever_watched_over_a_tree_knows_that_nothing_happened_to_it() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let_time_pass(&tree);
    let vigil = Vigil::begin(&tree).unwrap();

    assert!(vigil.holds(&rig.base()));
    // Who only reads disturbs nobody.
    fs::read(tree.path().join("file.txt")).unwrap();
    assert!(vigil.holds(&rig.base()));
    tree.recycle_watched("polecat/nux/2", &rig.base(), Some(&vigil)).unwrap();
    assert_eq!(tree.branch().unwrap().as_deref(), Some("polecat/nux/2"));

    // Of another commit it knows nothing.
    rig.land_by_person("later.txt", "x");
    rig.repository.fetch().unwrap();
    assert!(!vigil.holds(&rig.base()));
}

#[test]
fn a_tree_that_is_not_clean_is_not_watched_over() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "file.txt", "changed\n");
    let_time_pass(&tree);
    assert!(Vigil::begin(&tree).is_none());
}

#[test]
fn whatever_happens_to_a_tree_disturbs_the_vigil_over_it() {
    type Deed = fn(&Tree);
    let deeds: [(&str, Deed); 7] = [
        ("a change", |tree| write(tree.path(), "file.txt", "changed\n")),
        ("a new file", |tree| write(tree.path(), "new", "x")),
        ("a new file in a new folder", |tree| write(tree.path(), "deep/inside", "x")),
        ("a file that is gone", |tree| fs::remove_file(tree.path().join("file.txt")).unwrap()),
        ("another mode", |tree| {
            let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
            fs::set_permissions(tree.path().join("file.txt"), all).unwrap();
        }),
        ("something staged", |tree| {
            git(tree.path(), ["rm", "--quiet", "--cached", "file.txt"]);
        }),
        ("another tree in its place", |tree| {
            let aside = tree.path().with_file_name("aside");
            fs::rename(tree.path(), &aside).unwrap();
            fs::create_dir(tree.path()).unwrap();
            fs::copy(aside.join(".git"), tree.path().join(".git")).unwrap();
        }),
    ];
    for (what, happens) in deeds {
        let rig = Rig::new();
        let tree = rig.tree("nux");
        let_time_pass(&tree);
        let vigil = Vigil::begin(&tree).unwrap();
        happens(&tree);
        assert!(!vigil.holds(&rig.base()), "{what}");
        // It stays so, whoever has asked.
        assert!(!vigil.holds(&rig.base()), "{what}");
        tree.recycle_watched("polecat/nux/2", &rig.base(), Some(&vigil)).unwrap_err();
    }
}
