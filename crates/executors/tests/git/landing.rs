use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use gt_executors::git::{
    Commit, GitError, PUSH_TIME_MAX, Push, Rebased, RefusalKind, Tree, WorkToRebase,
};
use gt_testkit::write_program;

use crate::support::{Rig, commit_everything, files, git, limits, nux, shown, try_git, write};

fn work(tree: &Tree, file: &str, content: &str) -> Commit {
    write(tree.path(), file, content);
    tree.commit_all("work", &nux(), &limits()).unwrap().unwrap()
}

/// Work that began at the origin as it was fetched last, or before, on top of something else.
fn rebase(rig: &Rig, commit: &Commit, onto: &Commit) -> Rebased {
    rig.repository.rebase_onto(WorkToRebase { commit, base: None }, onto, &nux()).unwrap()
}

fn clean(rig: &Rig, commit: &Commit, onto: &Commit) -> Commit {
    match rebase(rig, commit, onto) {
        Rebased::Clean(rebased) => rebased,
        Rebased::Conflict { paths, .. } => panic!("conflicts in {paths:?}"),
    }
}

/// The same for work of which is known where it began.
fn clean_since(rig: &Rig, base: &Commit, commit: &Commit, onto: &Commit) -> Commit {
    let work = WorkToRebase { commit, base: Some(base) };
    let rebased = rig.repository.rebase_onto(work, onto, &nux()).unwrap();
    let Rebased::Clean(rebased) = rebased else { panic!("{rebased:?}") };
    rebased
}

/// The first lines of the commits since the first, oldest first.
fn history(rig: &Rig, commit: &Commit) -> Vec<String> {
    let log = git(rig.repository.path(), ["log", "--reverse", "--format=%s", commit.as_str()]);
    log.lines().skip(1).map(str::to_owned).collect()
}

/// The number of temporary trees that are left.
fn scratch(rig: &Rig) -> usize {
    let directory = fs::read_dir(rig.repository.own_path().join("scratch"));
    directory.map_or(0, Iterator::count)
}

#[test]
fn work_on_top_of_the_tip_is_pushed_as_it_is() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let base = rig.base();
    let commit = work(&tree, "new", "x");
    let rebased = rebase(&rig, &commit, &base);
    assert_eq!(rebased, Rebased::Clean(commit.clone()));
    assert_eq!(
        rig.repository.push(&commit, "main", Some(&base), PUSH_TIME_MAX).unwrap(),
        Push::Done
    );
    assert_eq!(rig.at_origin("main"), commit.as_str());
    rig.repository.fetch().unwrap();
    assert!(rig.repository.origin_has("main", &commit).unwrap());
}

#[test]
fn work_is_rebased_without_touching_the_tree_of_the_worker() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let first = work(&tree, "a", "a");
    let commit = work(&tree, "b", "b");
    let landed = rig.land_by_person("c", "c");
    rig.repository.fetch().unwrap();
    let rebased = clean(&rig, &commit, &landed);
    assert!(rig.repository.is_ancestor(&landed, &rebased).unwrap());
    assert!(!rig.repository.is_ancestor(&first, &rebased).unwrap());
    for file in ["a", "b", "c"] {
        assert_eq!(shown(&rig.repository, &rebased, file), file);
    }
    assert_eq!(tree.head().unwrap(), Some(commit));
    assert!(tree.status().unwrap().is_clean());
    assert_eq!(scratch(&rig), 0);
    assert_eq!(
        rig.repository.push(&rebased, "main", Some(&landed), PUSH_TIME_MAX).unwrap(),
        Push::Done
    );
}

#[test]
fn a_conflict_names_the_files_and_leaves_nothing_behind() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let commit = work(&tree, "file.txt", "mine\n");
    let landed = rig.land_by_person("file.txt", "theirs\n");
    rig.repository.fetch().unwrap();
    let rebased = rebase(&rig, &commit, &landed);
    let paths = vec![PathBuf::from("file.txt")];
    assert_eq!(rebased, Rebased::Conflict { paths, since: None, has_merges: false });
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
    let rebased = clean(&rig, &commit, &landed);
    assert!(rig.repository.is_ancestor(&landed, &rebased).unwrap());
    assert_eq!(shown(&rig.repository, &rebased, "file.txt"), "both");
    assert_eq!(scratch(&rig), 0);
}

#[test]
fn changes_made_in_a_merge_are_kept() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    rig.land_by_person("theirs", "x");
    rig.repository.fetch().unwrap();
    git(tree.path(), ["merge", "--quiet", "--no-ff", "--no-commit", "origin/main"]);
    let commit = work(&tree, "precious", "precious");
    let landed = rig.land_by_person("other", "x");
    rig.repository.fetch().unwrap();
    let rebased = clean(&rig, &commit, &landed);
    assert_eq!(shown(&rig.repository, &rebased, "precious"), "precious");
    assert_eq!(shown(&rig.repository, &rebased, "other"), "x");
    let first_parent = git(rig.repository.path(), ["rev-parse", &format!("{rebased}^1")]);
    assert_eq!(first_parent, landed.as_str());
    assert_eq!(scratch(&rig), 0);
}

#[test]
fn a_conflict_says_whether_there_are_merges() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    work(&tree, "file.txt", "mine\n");
    rig.land_by_person("theirs", "x");
    rig.repository.fetch().unwrap();
    git(tree.path(), ["merge", "--quiet", "--no-edit", "origin/main"]);
    let commit = tree.head().unwrap().unwrap();
    let landed = rig.land_by_person("file.txt", "theirs\n");
    rig.repository.fetch().unwrap();
    let paths = vec![PathBuf::from("file.txt")];
    let expected = Rebased::Conflict { paths, since: None, has_merges: true };
    assert_eq!(rebase(&rig, &commit, &landed), expected);
    assert_eq!(scratch(&rig), 0);
}

#[test]
fn a_change_that_others_landed_and_reverted_is_still_work() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let commit = work(&tree, "new", "x");
    rig.land_by_person("new", "x");
    git(&rig.path("person"), ["revert", "--no-edit", "HEAD"]);
    let landed = rig.land_by_person("other", "y");
    rig.repository.fetch().unwrap();
    let rebased = clean(&rig, &commit, &landed);
    assert_eq!(shown(&rig.repository, &rebased, "new"), "x");
}

#[test]
fn a_replay_that_misses_something_is_a_merge_instead() {
    // Given work that adds a line and takes it away again, and others who wanted that line:
    let rig = Rig::new();
    let tree = rig.tree("nux");
    work(&tree, "wanted", "x");
    fs::remove_file(tree.path().join("wanted")).unwrap();
    let commit = work(&tree, "new", "y");
    let landed = rig.land_by_person("wanted", "x");
    rig.repository.fetch().unwrap();
    // one commit after the other, theirs would be gone.
    let rebased = clean(&rig, &commit, &landed);
    assert_eq!(shown(&rig.repository, &rebased, "wanted"), "x");
    assert_eq!(shown(&rig.repository, &rebased, "new"), "y");
    assert!(rig.repository.is_ancestor(&commit, &rebased).unwrap());
}

/// The origin goes back to where it was before the last commit.
fn take_back(rig: &Rig) -> Commit {
    git(&rig.origin(), ["update-ref", "refs/heads/main", "main~1"]);
    rig.repository.fetch().unwrap();
    git(&rig.path("person"), ["reset", "--quiet", "--hard", "HEAD~1"]);
    rig.base()
}

#[test]
fn a_base_that_was_taken_back_is_no_part_of_the_work() {
    let rig = Rig::new();
    let base = rig.land_by_person("secret", "secret");
    rig.repository.fetch().unwrap();
    let tree = rig.tree("nux");
    let commit = work(&tree, "new", "x");

    let before = take_back(&rig);
    let rebased = clean_since(&rig, &base, &commit, &before);
    assert_eq!(history(&rig, &rebased), ["work"]);
    assert_eq!(files(&rig.repository, &rebased), ["file.txt", "new"]);

    git(&rig.path("person"), ["push", "--quiet", "--force", "origin", "main"]);
    let landed = rig.land_by_person("other", "y");
    rig.repository.fetch().unwrap();
    let rebased = clean_since(&rig, &base, &commit, &landed);
    assert_eq!(history(&rig, &rebased), ["by a person", "work"]);
    assert_eq!(files(&rig.repository, &rebased), ["file.txt", "new", "other"]);
}

#[test]
fn merges_that_would_bring_back_reverted_commits_become_one_commit() {
    let rig = Rig::new();
    let base = rig.land_by_person("secret", "secret");
    rig.repository.fetch().unwrap();
    let tree = rig.tree("nux");
    let before = take_back(&rig);
    let landed = rig.land_by_person("other", "y");
    rig.repository.fetch().unwrap();
    work(&tree, "new", "x");
    git(tree.path(), ["merge", "--quiet", "--no-commit", "origin/main"]);
    let commit = work(&tree, "precious", "z");
    assert!(rig.repository.is_ancestor(&landed, &commit).unwrap());
    for onto in [&landed, &before] {
        let rebased = clean_since(&rig, &base, &commit, onto);
        assert_eq!(files(&rig.repository, &rebased), ["file.txt", "new", "other", "precious"]);
        assert!(!rig.repository.is_ancestor(&base, &rebased).unwrap());
        assert!(rig.repository.is_ancestor(onto, &rebased).unwrap());
        let said = git(rig.repository.path(), ["log", "-1", "--format=%B", rebased.as_str()]);
        assert!(said.starts_with("The work of nux\n\n") && said.contains("\nwork"), "{said}");
        // Once it is there, there is nothing left to do.
        assert_eq!(clean_since(&rig, &base, &commit, &rebased), rebased);
    }
    assert_eq!(scratch(&rig), 0);
}

#[test]
fn a_conflict_with_reverted_commits_says_where_to_begin() {
    let rig = Rig::new();
    let base = rig.land_by_person("secret", "secret");
    rig.repository.fetch().unwrap();
    let tree = rig.tree("nux");
    let commit = work(&tree, "file.txt", "mine\n");
    take_back(&rig);
    let landed = rig.land_by_person("file.txt", "theirs\n");
    rig.repository.fetch().unwrap();
    let work = WorkToRebase { commit: &commit, base: Some(&base) };
    let rebased = rig.repository.rebase_onto(work, &landed, &nux()).unwrap();
    let paths = vec![PathBuf::from("file.txt")];
    assert_eq!(rebased, Rebased::Conflict { paths, since: Some(base), has_merges: false });
}

#[test]
fn work_that_is_in_the_target_already_needs_no_rebase() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let commit = work(&tree, "new", "x");
    let landed = rig.land_by_person("new", "x");
    rig.repository.fetch().unwrap();
    // The same change by another person: nothing is left of ours.
    let rebased = rebase(&rig, &commit, &landed);
    assert_eq!(rebased, Rebased::Clean(landed.clone()));
    let rebased = rebase(&rig, &rig.base(), &landed);
    assert_eq!(rebased, Rebased::Clean(landed));
}

#[test]
fn files_of_a_killed_rebase_are_removed_by_the_next() {
    let rig = Rig::new();
    let scratch_root = rig.repository.own_path().join("scratch");
    write(&scratch_root.join("scratch-dead"), "tree/half", "x");
    fs::write(scratch_root.join("scratch-dead.lock"), "").unwrap();
    let tree = rig.tree("nux");
    let commit = work(&tree, "a", "a");
    let landed = rig.land_by_person("c", "c");
    rig.repository.fetch().unwrap();
    rebase(&rig, &commit, &landed);
    assert_eq!(scratch(&rig), 0);
}

#[test]
fn a_push_that_lost_the_race_changes_nothing() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let base = rig.base();
    let commit = work(&tree, "new", "x");
    let landed = rig.land_by_person("c", "c");
    for expected in [Some(&base), None] {
        let pushed = rig.repository.push(&commit, "main", expected, PUSH_TIME_MAX).unwrap();
        assert!(matches!(pushed, Push::LostRace(_)), "{pushed:?}");
    }
    assert_eq!(rig.at_origin("main"), landed.as_str());
}

#[test]
fn a_branch_of_a_worker_is_pushed_for_review() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let commit = work(&tree, "new", "x");
    assert_eq!(
        rig.repository.push(&commit, "polecat/nux/1", None, PUSH_TIME_MAX).unwrap(),
        Push::Done
    );
    assert_eq!(
        rig.repository.push(&commit, "polecat/nux/1", None, PUSH_TIME_MAX).unwrap(),
        Push::Done,
        "again"
    );
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
    let error = rig.repository.push(&commit, "main", Some(&landed), PUSH_TIME_MAX).unwrap_err();
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
    let pushed = rig.repository.push(&commit, "main", Some(&base), PUSH_TIME_MAX).unwrap();
    let Push::Rejected(refusal) = pushed else { panic!("{pushed:?}") };
    assert_eq!(refusal.kind, RefusalKind::Hook);
    assert!(refusal.words.contains("main is frozen until Monday"), "{refusal}");
    assert_eq!(rig.repository.tip("main").unwrap(), Some(base));
}

#[test]
fn a_push_is_ended_at_its_limit() {
    let rig = Rig::new();
    // No process ever writes to the pipe.
    let hook = rig.origin().join("hooks/pre-receive");
    write_program(&hook, "#!/bin/sh\nmkfifo \"$0.pipe\"\nexec cat \"$0.pipe\"\n");
    let commit = work(&rig.tree("nux"), "new", "x");
    let base = rig.base();
    let limit = Duration::from_millis(300);
    let pushed = rig.repository.push(&commit, "main", Some(&base), limit).unwrap();
    let Push::Unreachable(why) = &pushed else { panic!("{pushed:?}") };
    assert!(why.contains("it was ended after"), "{why}");
    assert_eq!(rig.at_origin("main"), base.as_str());
}

#[test]
fn an_origin_that_does_not_answer_is_unreachable() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let base = rig.base();
    let commit = work(&tree, "new", "x");
    fs::rename(rig.origin(), rig.path("elsewhere.git")).unwrap();
    let pushed = rig.repository.push(&commit, "main", Some(&base), PUSH_TIME_MAX).unwrap();
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
    let rebased = clean(&rig, &commit, &landed);
    let said = git(rig.repository.path(), ["log", "-1", "--format=%an %cn", rebased.as_str()]);
    assert_eq!(said, "agent nux");
}
