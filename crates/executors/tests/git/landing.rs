use std::fs;
use std::path::PathBuf;

use gt_executors::git::{Commit, GitError, Push, Rebased, Tree};

use crate::support::{
    Rig, commit_everything, git, limits, nux, shown, try_git, write, write_program,
};

fn work(tree: &Tree, file: &str, content: &str) -> Commit {
    write(tree.path(), file, content);
    tree.commit_all("work", &nux(), &limits()).unwrap().unwrap()
}

/// What is left of temporary trees.
fn scratch(rig: &Rig) -> usize {
    let registered = git(rig.repository.path(), ["worktree", "list"]).matches("scratch").count();
    let directory = fs::read_dir(rig.repository.path().join("gt-scratch"));
    registered + directory.map_or(0, Iterator::count)
}

#[test]
fn work_on_top_of_the_tip_is_pushed_as_it_is() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let base = rig.base();
    let commit = work(&tree, "new", "x");
    let rebased = rig.repository.rebase_onto(&commit, &base, &nux()).unwrap();
    assert_eq!(rebased, Rebased::Clean(commit.clone()));
    assert_eq!(rig.repository.push(&commit, "main", Some(&base)).unwrap(), Push::Done);
    assert_eq!(rig.at_origin("main"), commit.as_str());
    assert_eq!(rig.repository.tip("main").unwrap(), Some(commit));
}

#[test]
fn work_is_rebased_without_touching_the_tree_of_the_worker() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let first = work(&tree, "a", "a");
    let commit = work(&tree, "b", "b");
    let landed = rig.land_by_person("c", "c");
    rig.repository.fetch().unwrap();
    let rebased = rig.repository.rebase_onto(&commit, &landed, &nux()).unwrap();
    let Rebased::Clean(rebased) = rebased else { panic!("{rebased:?}") };
    assert!(rig.repository.is_ancestor(&landed, &rebased).unwrap());
    assert!(!rig.repository.is_ancestor(&first, &rebased).unwrap());
    for file in ["a", "b", "c"] {
        assert_eq!(shown(&rig.repository, &rebased, file), file);
    }
    assert_eq!(tree.head().unwrap(), Some(commit));
    assert!(tree.status().unwrap().is_clean());
    assert_eq!(scratch(&rig), 0);
    assert_eq!(rig.repository.push(&rebased, "main", Some(&landed)).unwrap(), Push::Done);
}

#[test]
fn a_conflict_names_the_files_and_leaves_nothing_behind() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let commit = work(&tree, "file.txt", "mine\n");
    let landed = rig.land_by_person("file.txt", "theirs\n");
    rig.repository.fetch().unwrap();
    let rebased = rig.repository.rebase_onto(&commit, &landed, &nux()).unwrap();
    assert_eq!(rebased, Rebased::Conflict(vec![PathBuf::from("file.txt")]));
    assert_eq!(tree.head().unwrap(), Some(commit));
    assert_eq!(scratch(&rig), 0);
}

#[test]
fn a_conflict_that_a_worker_has_resolved_in_a_merge_stays_resolved() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    work(&tree, "file.txt", "mine\n");
    rig.land_by_person("file.txt", "theirs\n");
    rig.repository.fetch().unwrap();
    assert!(!try_git(tree.path(), ["merge", "origin/main"]).status.success());
    let commit = work(&tree, "file.txt", "both\n");
    let landed = rig.land_by_person("other", "x");
    rig.repository.fetch().unwrap();
    let rebased = rig.repository.rebase_onto(&commit, &landed, &nux()).unwrap();
    let Rebased::Clean(rebased) = rebased else { panic!("{rebased:?}") };
    assert!(rig.repository.is_ancestor(&landed, &rebased).unwrap());
    assert_eq!(shown(&rig.repository, &rebased, "file.txt"), "both");
    assert_eq!(scratch(&rig), 0);
}

#[test]
fn work_that_is_in_the_target_already_needs_nothing() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let commit = work(&tree, "new", "x");
    let landed = rig.land_by_person("new", "x");
    rig.repository.fetch().unwrap();
    // The same change by somebody else: nothing is left of ours.
    let rebased = rig.repository.rebase_onto(&commit, &landed, &nux()).unwrap();
    assert_eq!(rebased, Rebased::Clean(landed.clone()));
    let rebased = rig.repository.rebase_onto(&rig.base(), &landed, &nux()).unwrap();
    assert_eq!(rebased, Rebased::Clean(landed));
}

#[test]
fn what_a_killed_rebase_has_left_is_swept_by_the_next() {
    let rig = Rig::new();
    let left = rig.repository.path().join("gt-scratch/scratch-dead/tree");
    let left = left.to_str().unwrap();
    let base = rig.base();
    git(rig.repository.path(), ["worktree", "add", "--quiet", "--detach", left, base.as_str()]);
    fs::write(rig.repository.path().join("gt-scratch/scratch-dead.lock"), "").unwrap();
    let tree = rig.tree("nux");
    let commit = work(&tree, "a", "a");
    let landed = rig.land_by_person("c", "c");
    rig.repository.fetch().unwrap();
    rig.repository.rebase_onto(&commit, &landed, &nux()).unwrap();
    assert_eq!(scratch(&rig), 0);
}

#[test]
fn whoever_comes_second_is_told_and_changes_nothing() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let base = rig.base();
    let commit = work(&tree, "new", "x");
    let landed = rig.land_by_person("c", "c");
    assert_eq!(rig.repository.push(&commit, "main", Some(&base)).unwrap(), Push::LostRace);
    assert_eq!(rig.repository.push(&commit, "main", None).unwrap(), Push::LostRace);
    assert_eq!(rig.at_origin("main"), landed.as_str());
}

#[test]
fn a_branch_of_a_worker_is_pushed_for_review() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let commit = work(&tree, "new", "x");
    assert_eq!(rig.repository.push(&commit, "polecat/nux/1", None).unwrap(), Push::Done);
    assert_eq!(rig.repository.push(&commit, "polecat/nux/1", None).unwrap(), Push::Done, "again");
    assert_eq!(rig.at_origin("polecat/nux/1"), commit.as_str());
    assert_eq!(rig.at_origin("main"), rig.base().as_str());
}

#[test]
fn nothing_of_the_branch_is_ever_forgotten() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let commit = work(&tree, "new", "x");
    let landed = rig.land_by_person("c", "c");
    rig.repository.fetch().unwrap();
    let error = rig.repository.push(&commit, "main", Some(&landed)).unwrap_err();
    assert!(matches!(&error, GitError::NotForward { .. }), "{error}");
}

#[test]
fn a_refusal_of_the_origin_comes_with_its_words() {
    let rig = Rig::new();
    let hook = rig.origin().join("hooks/pre-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    write_program(&hook, "#!/bin/sh\necho 'main is frozen until Monday' >&2\nexit 1\n");
    let tree = rig.tree("nux");
    let base = rig.base();
    let commit = work(&tree, "new", "x");
    let pushed = rig.repository.push(&commit, "main", Some(&base)).unwrap();
    let Push::Rejected(reason) = pushed else { panic!("{pushed:?}") };
    assert!(reason.contains("main is frozen until Monday"), "{reason}");
    assert_eq!(rig.repository.tip("main").unwrap(), Some(base));
}

#[test]
fn an_origin_that_does_not_answer_is_unreachable() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let base = rig.base();
    let commit = work(&tree, "new", "x");
    fs::rename(rig.origin(), rig.path("elsewhere.git")).unwrap();
    let pushed = rig.repository.push(&commit, "main", Some(&base)).unwrap();
    assert!(matches!(pushed, Push::Unreachable(_)), "{pushed:?}");
}

#[test]
fn the_author_of_rebased_work_stays_the_author() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "a", "a");
    commit_everything(tree.path(), "by the agent");
    let commit = tree.head().unwrap().unwrap();
    let landed = rig.land_by_person("c", "c");
    rig.repository.fetch().unwrap();
    let rebased = rig.repository.rebase_onto(&commit, &landed, &nux()).unwrap();
    let Rebased::Clean(rebased) = rebased else { panic!("{rebased:?}") };
    let said = git(rig.repository.path(), ["log", "-1", "--format=%an %cn", rebased.as_str()]);
    assert_eq!(said, "agent nux");
}
