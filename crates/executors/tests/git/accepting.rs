use std::fs;

use gt_executors::git::{CommitLimits, GitError};

use crate::support::{
    MEBIBYTE, Rig, commit_everything, files, git, limits, make_repository, nux, try_git, write,
};

const TORN: &str = "<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> origin\n";

#[test]
fn everything_is_committed_under_the_name_of_the_worker() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "file.txt", "changed\n");
    write(tree.path(), "deep/new file", "x");
    write(tree.path(), "two\nlines", "x");
    let commit = tree.commit_all("# Boil water\n\nAll of it", &nux(), &limits()).unwrap().unwrap();
    assert_eq!(tree.head().unwrap(), Some(commit.clone()));
    assert!(tree.status().unwrap().is_clean());
    assert_eq!(files(&rig.repository, &commit).len(), 3);
    let said = git(tree.path(), ["log", "-1", "--format=%an <%ae> %cn|%B"]);
    assert_eq!(said, "nux <nux@rig> nux|# Boil water\n\nAll of it");
    assert_eq!(tree.commit_all("again", &nux(), &limits()).unwrap(), None);
}

#[test]
fn a_staged_change_that_was_reverted_is_no_change() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "new", "x");
    write(tree.path(), "file.txt", "changed\n");
    git(tree.path(), ["add", "--all"]);
    fs::remove_file(tree.path().join("new")).unwrap();
    write(tree.path(), "file.txt", "first\n");
    assert_eq!(tree.commit_all("x", &nux(), &limits()).unwrap(), None);
    assert_eq!(tree.head().unwrap(), Some(rig.base()));
    assert!(tree.status().unwrap().is_clean());
}

#[test]
fn conflict_markers_are_refused_unless_they_were_there_before() {
    let rig = Rig::new();
    rig.land_by_person("manual.txt", &format!("An example:\n{TORN}"));
    rig.repository.fetch().unwrap();
    let tree = rig.tree("nux");
    write(tree.path(), "manual.txt", &format!("A better example:\n{TORN}"));
    write(tree.path(), "torn", TORN);
    let error = tree.commit_all("x", &nux(), &limits()).unwrap_err();
    let GitError::ConflictMarkers { paths } = &error else { panic!("{error}") };
    assert_eq!(paths, &[std::path::PathBuf::from("torn")]);
    assert_eq!(tree.head().unwrap(), Some(rig.base()), "nothing was committed");
    write(tree.path(), "torn", "whole\n");
    tree.commit_all("x", &nux(), &limits()).unwrap().unwrap();
}

#[test]
fn commits_of_the_worker_are_checked_too() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "torn", TORN);
    commit_everything(tree.path(), "oops");
    assert_eq!(tree.commit_all("x", &nux(), &limits()).unwrap(), None);
    let since = CommitLimits { base: Some(rig.base()), ..limits() };
    let error = tree.commit_all("x", &nux(), &since).unwrap_err();
    assert!(matches!(&error, GitError::ConflictMarkers { .. }), "{error}");
}

#[test]
fn large_files_are_refused_by_name() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let file = fs::File::create(tree.path().join("core dump")).unwrap();
    file.set_len(MEBIBYTE + 1).unwrap();
    let error = tree.commit_all("x", &nux(), &limits()).unwrap_err();
    assert!(error.to_string().contains("core dump"), "{error}");
    assert!(matches!(error, GitError::Oversize { bytes_max: MEBIBYTE, .. }));
    file.set_len(MEBIBYTE).unwrap();
    tree.commit_all("x", &nux(), &limits()).unwrap().unwrap();
}

#[test]
fn a_merge_is_completed_and_a_rebase_is_not() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "file.txt", "mine\n");
    commit_everything(tree.path(), "mine");
    let landed = rig.land_by_person("file.txt", "theirs\n");
    rig.repository.fetch().unwrap();
    assert!(!try_git(tree.path(), ["rebase", "origin/main"]).status.success());
    let error = tree.commit_all("x", &nux(), &limits()).unwrap_err();
    assert!(matches!(error, GitError::Unfinished { operation: "rebase" }));
    git(tree.path(), ["rebase", "--abort"]);

    assert!(!try_git(tree.path(), ["merge", "origin/main"]).status.success());
    let error = tree.commit_all("x", &nux(), &limits()).unwrap_err();
    assert!(matches!(&error, GitError::ConflictMarkers { .. }), "{error}");
    write(tree.path(), "file.txt", "both\n");
    let commit = tree.commit_all("merged", &nux(), &limits()).unwrap().unwrap();
    assert!(rig.repository.is_ancestor(&landed, &commit).unwrap());
}

#[test]
fn repositories_inside_are_refused_because_their_commits_would_be_missing() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    make_repository(&tree.path().join("vendor/thing"), "a");
    let error = tree.commit_all("x", &nux(), &limits()).unwrap_err();
    assert!(matches!(&error, GitError::Nested { .. }), "{error}");
    assert!(error.to_string().contains("vendor/thing"), "{error}");
}

#[test]
fn a_submodule_must_be_published_before_it_is_named() {
    let rig = Rig::new();
    make_repository(&rig.path("library"), "lib.txt");
    let tree = rig.tree("nux");
    let library = rig.path("library");
    git(tree.path(), ["submodule", "--quiet", "add", library.to_str().unwrap(), "lib"]);
    tree.commit_all("with a library", &nux(), &limits()).unwrap().unwrap();
    let lib = tree.path().join("lib");
    write(&lib, "lib.txt", "better\n");
    let error = tree.commit_all("x", &nux(), &limits()).unwrap_err();
    assert!(matches!(&error, GitError::Submodules { .. }), "{error}");
    commit_everything(&lib, "better");
    let error = tree.commit_all("x", &nux(), &limits()).unwrap_err();
    assert!(matches!(&error, GitError::Submodules { .. }), "{error}");
    git(&lib, ["push", "--quiet", "origin", "HEAD:refs/heads/better"]);
    tree.commit_all("x", &nux(), &limits()).unwrap().unwrap();
}

#[test]
fn hooks_of_the_project_do_not_stop_it() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let hooks = rig.path("hooks");
    fs::create_dir(&hooks).unwrap();
    gt_testkit::write_program(hooks.join("pre-commit"), "#!/bin/sh\nexit 1\n");
    git(tree.path(), ["config", "core.hooksPath", hooks.to_str().unwrap()]);
    write(tree.path(), "new", "x");
    tree.commit_all("x", &nux(), &limits()).unwrap().unwrap();
}
