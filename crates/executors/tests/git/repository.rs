use std::fs;
use std::path::Path;

use gt_executors::git::{Commit, GitError, LandedRange, Repository, Tree};

use crate::support::{Rig, commit_everything, git, git_fails, make_repository, write};

#[test]
fn a_clone_has_the_branches_of_the_origin_and_none_of_its_own() {
    let rig = Rig::new();
    assert!(rig.repository.exists());
    assert_eq!(rig.base().as_str(), rig.at_origin("main"));
    assert_eq!(rig.repository.references("refs/heads/").unwrap(), []);
    assert_eq!(rig.repository.tip("none").unwrap(), None);
    let head = git(rig.repository.path(), ["symbolic-ref", "refs/remotes/origin/HEAD"]);
    assert_eq!(head, "refs/remotes/origin/main");
}

#[test]
fn a_landed_commit_is_found_in_the_range_that_brought_it() {
    let rig = Rig::new();
    let base = rig.base();
    let [one, two, three] = ["one", "two", "three"].map(|file| rig.land_by_person(file, "x\n"));
    rig.repository.fetch().unwrap();
    let found = |digits: &str| rig.repository.find_commit(digits).unwrap();
    assert_eq!(found(&two.as_str()[..9]).as_ref(), Some(&two));
    assert_eq!(found(two.as_str()).as_ref(), Some(&two));
    assert_eq!((found(&"f".repeat(40)), found("main"), found("--all")), (None, None, None));
    assert_eq!(
        rig.repository.commits_from(&one).unwrap(),
        [one.clone(), two.clone(), three.clone()]
    );
    assert_eq!(rig.repository.commits_from(&three).unwrap(), [three]);
    let range = LandedRange { before: base.clone(), after: two.clone() };
    let has = |commit: &Commit| rig.repository.range_has(&range, commit).unwrap();
    assert_eq!((has(&base), has(&one), has(&two)), (false, true, true));
    let empty = LandedRange { before: two.clone(), after: two.clone() };
    assert!(!rig.repository.range_has(&empty, &two).unwrap());
}

#[test]
fn cloning_again_changes_nothing() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let again = Repository::clone_from("nowhere at all", rig.repository.path()).unwrap();
    assert_eq!(again.path(), rig.repository.path());
    assert!(tree.head().unwrap().is_some());
}

#[test]
fn an_origin_without_a_commit_is_an_error_and_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), ["init", "--quiet", "--bare", "empty.git"]);
    let origin = directory.path().join("empty.git");
    let path = directory.path().join("rig/.repo.git");
    let error = Repository::clone_from(origin.to_str().unwrap(), &path).unwrap_err();
    assert!(matches!(&error, GitError::Empty { .. }), "{error}");
    assert_eq!(fs::read_dir(directory.path().join("rig")).unwrap().count(), 0);
}

#[test]
fn an_origin_that_is_not_there_is_unreachable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rig/.repo.git");
    let nowhere = directory.path().join("nowhere");
    let error = Repository::clone_from(nowhere.to_str().unwrap(), &path).unwrap_err();
    assert!(matches!(&error, GitError::Unreachable { .. }), "{error:?}");
    assert!(!path.exists());

    let rig = Rig::new();
    fs::rename(rig.origin(), rig.path("elsewhere.git")).unwrap();
    let error = rig.repository.fetch().unwrap_err();
    assert!(matches!(&error, GitError::Unreachable { .. }), "{error:?}");
    assert!(rig.repository.tip("main").unwrap().is_some(), "what was fetched is still there");
}

#[test]
fn a_relative_origin_is_found_later_too() {
    let directory = tempfile::tempdir_in(".").unwrap();
    make_repository(&directory.path().join("person"), "a");
    let relative = directory.path().join("person");
    let relative = relative.strip_prefix(std::env::current_dir().unwrap()).unwrap_or(&relative);
    let path = directory.path().join("rig/.repo.git");
    let repository = Repository::clone_from(relative.to_str().unwrap(), path).unwrap();
    repository.fetch().unwrap();
}

#[test]
fn fetching_follows_the_origin_and_prunes_deleted_branches() {
    let rig = Rig::new();
    let person = rig.path("person");
    git(&person, ["push", "--quiet", "origin", "main:topic"]);
    rig.repository.fetch().unwrap();
    assert!(rig.repository.tip("topic").unwrap().is_some());
    let landed = rig.land_by_person("b", "b");
    git(&person, ["push", "--quiet", "origin", ":topic"]);
    rig.repository.fetch().unwrap();
    assert_eq!(rig.repository.tip("topic").unwrap(), None);
    assert_eq!(rig.repository.tip("main").unwrap(), Some(landed));
}

#[test]
fn a_worktree_is_on_its_branch_at_the_base_without_upstream() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    assert_eq!(tree.branch().unwrap().as_deref(), Some("polecat/nux/1"));
    assert_eq!(tree.head().unwrap(), Some(rig.base()));
    assert_eq!(fs::read_to_string(tree.path().join("file.txt")).unwrap(), "first\n");
    git_fails(tree.path(), ["rev-parse", "@{upstream}"]);
    assert_eq!(git(tree.path(), ["status", "--porcelain"]), "");
    assert!(git(tree.path(), ["worktree", "list"]).contains(tree.path().to_str().unwrap()));
}

#[test]
fn a_path_or_branch_in_the_way_of_a_worktree_is_named() {
    let rig = Rig::new();
    let path = rig.path("rig/polecats/nux/rig");
    fs::create_dir_all(&path).unwrap();
    let error = rig.repository.add_worktree(&path, "b", &rig.base()).unwrap_err();
    assert!(matches!(&error, GitError::Exists { .. }), "{error}");
    assert_eq!(rig.repository.references("refs/heads/").unwrap(), []);
}

#[test]
fn a_branch_that_is_left_from_a_crash_is_used_and_one_with_commits_is_not() {
    let rig = Rig::new();
    let base = rig.base();
    git(rig.repository.path(), ["branch", "left", base.as_str()]);
    let path = rig.path("rig/polecats/nux/rig");
    rig.repository.add_worktree(&path, "left", &base).unwrap();
    write(&path, "new", "x");
    commit_everything(&path, "work");
    git(&path, ["switch", "--quiet", "--detach"]);
    let other = rig.path("rig/polecats/slit/rig");
    let error = rig.repository.add_worktree(&other, "left", &base).unwrap_err();
    assert!(matches!(&error, GitError::BranchExists { .. }), "{error}");
}

#[test]
fn a_worktree_whose_making_was_interrupted_is_made_again() {
    let rig = Rig::new();
    let base = rig.base();
    let path = rig.path("rig/polecats/nux/rig");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // As far as git's part of it, under the first name.
    let first = rig.path("rig/polecats/nux/nux-1");
    let first = first.to_str().unwrap();
    let arguments = ["worktree", "add", "--quiet", "--no-checkout", "-b", "mine", first];
    git(rig.repository.path(), arguments.into_iter().chain([base.as_str()]));
    rig.repository.add_worktree(&path, "mine", &base).unwrap();
    assert!(Tree::at(&path).status().unwrap().is_clean());
    assert!(!Path::new(first).exists());
    assert_eq!(git(rig.repository.path(), ["worktree", "list"]).lines().count(), 2);
}

#[test]
fn files_of_a_killed_clone_are_not_in_the_way() {
    let rig = Rig::new();
    let path = rig.path("second/.repo.git");
    write(&rig.path("second/.repo.git.cloning"), "objects/half", "x");
    let origin = rig.origin();
    Repository::clone_from(origin.to_str().unwrap(), &path).unwrap();
    assert_eq!(fs::read_dir(rig.path("second")).unwrap().count(), 2);
}

#[test]
fn concurrent_clones_get_the_same_repository() {
    let rig = Rig::new();
    let path = rig.path("second/.repo.git");
    let origin = rig.origin();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| Repository::clone_from(origin.to_str().unwrap(), &path).unwrap());
        }
    });
    assert!(Repository::at(&path).tip("main").unwrap().is_some());
}

#[test]
fn concurrent_fetches_all_succeed() {
    let rig = Rig::new();
    let landed = rig.land_by_person("b", "b");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| rig.repository.fetch().unwrap());
        }
    });
    assert_eq!(rig.base(), landed);
}

#[test]
fn a_half_made_worktree_does_not_block_others() {
    let rig = Rig::new();
    let dead = rig.repository.path().join("worktrees/dead");
    fs::create_dir_all(&dead).unwrap();
    fs::write(dead.join("gitdir"), rig.path("dead/.git").display().to_string()).unwrap();
    fs::write(dead.join("commondir"), "").unwrap();
    let path = rig.path("trees/nux/rig");

    rig.repository.add_worktree(&path, "mine", &rig.base()).unwrap();

    assert!(!dead.exists());
    assert!(path.join("file.txt").exists());
}

#[test]
fn eight_concurrent_worktrees_are_all_made() {
    let rig = Rig::new();
    let base = rig.base();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (rig, base) = (&rig, &base);
            scope.spawn(move || {
                let path = rig.path(&format!("rig/polecats/p{number}/rig"));
                let branch = format!("polecat/p{number}/1");
                rig.repository.add_worktree(&path, &branch, base).unwrap();
                let status = Tree::at(&path).status().unwrap();
                assert!(status.is_clean());
                assert_eq!(status.branch.as_deref(), Some(branch.as_str()));
            });
        }
    });
    assert_eq!(rig.repository.references("refs/heads/polecat/").unwrap().len(), 8);
    let listed = git(rig.repository.path(), ["worktree", "list", "--porcelain"]);
    assert_eq!(listed.matches("branch refs/heads/").count(), 8, "{listed}");
    assert_eq!(listed.matches("prunable").count(), 0, "{listed}");
}

#[test]
fn a_lock_that_another_git_holds_is_waited_for() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let lock = rig.repository.path().join("refs/heads/polecat/nux/2.lock");
    fs::write(&lock, "").unwrap();
    let base = rig.base();
    std::thread::scope(|scope| {
        let recycled = scope.spawn(|| tree.recycle("polecat/nux/2", &base));
        scope.spawn(|| fs::remove_file(&lock).unwrap());
        recycled.join().unwrap().unwrap();
    });
    assert_eq!(tree.branch().unwrap().as_deref(), Some("polecat/nux/2"));
}

#[test]
fn a_branch_is_deleted_only_where_it_was_seen() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let base = rig.base();
    write(tree.path(), "new", "x");
    commit_everything(tree.path(), "work");
    let repository = &rig.repository;
    assert!(!repository.delete_branch_if_at("polecat/nux/1", &base).unwrap());
    let head = tree.head().unwrap().unwrap();
    assert!(repository.delete_branch_if_at("polecat/nux/1", &head).unwrap());
    assert!(repository.delete_branch_if_at("polecat/nux/1", &head).unwrap(), "it is gone");
    assert_eq!(repository.resolve("polecat/nux/1").unwrap(), None);
}

#[test]
fn names_mean_commits_or_nothing() {
    let rig = Rig::new();
    let repository = &rig.repository;
    let base = rig.base();
    let later = rig.land_by_person("b", "b");
    repository.fetch().unwrap();
    assert_eq!(repository.resolve("origin/main").unwrap(), Some(later.clone()));
    assert_eq!(repository.resolve(&"0".repeat(40)).unwrap(), None);
    assert_eq!(repository.resolve("--all").unwrap(), None);
    assert_eq!(repository.resolve("no such..thing").unwrap(), None);
    assert!(repository.is_ancestor(&base, &later).unwrap());
    assert!(!repository.is_ancestor(&later, &base).unwrap());
}
