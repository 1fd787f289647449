use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use gt_executors::git::{GitError, Tree, TreeMove, move_tree_away, move_tree_back};

use crate::support::{Rig, commit_everything, git, make_repository, write};

/// A tree with something of every kind in it.
fn full_tree(rig: &Rig) -> Tree {
    make_repository(&rig.path("library"), "lib.txt");
    let tree = rig.tree("nux");
    let library = rig.path("library");
    git(tree.path(), ["submodule", "--quiet", "add", library.to_str().unwrap(), "libs/one"]);
    write(tree.path(), ".gitignore", "ignored\n");
    commit_everything(tree.path(), "with a library");
    write(tree.path(), "ignored", "cache");
    write(tree.path(), "staged", "x");
    git(tree.path(), ["add", "staged"]);
    write(tree.path(), "untracked", "x");
    let lib = tree.path().join("libs/one");
    write(&lib, "lib.txt", "mine\n");
    commit_everything(&lib, "not pushed");
    make_repository(&tree.path().join("nested"), "a");
    tree
}

/// All that git says about a tree and what is inside.
fn seen(tree: &Path) -> Vec<String> {
    let status = ["status", "--porcelain=v2", "--branch", "--ignored"];
    let mut seen = Vec::new();
    for place in [tree.to_owned(), tree.join("libs/one"), tree.join("nested")] {
        seen.push(git(&place, status));
        seen.push(git(&place, ["log", "--format=%H"]));
        seen.push(git(&place, ["rev-parse", "--show-prefix"]));
    }
    seen.push(git(tree, ["submodule", "status"]));
    seen
}

fn trash(rig: &Rig) -> PathBuf {
    rig.path("rig/trash/nux-1")
}

#[test]
fn a_tree_comes_back_as_it_was() {
    let rig = Rig::new();
    let tree = full_tree(&rig);
    let before = seen(tree.path());
    move_tree_away(&rig.repository, tree.path(), &trash(&rig)).unwrap();
    assert!(!tree.path().exists());
    assert!(!git(rig.repository.path(), ["worktree", "list"]).contains("polecats"));
    git(rig.repository.path(), ["worktree", "prune", "--expire=now"]);
    move_tree_back(&rig.repository, &trash(&rig), tree.path()).unwrap();
    assert_eq!(seen(tree.path()), before);
    assert_eq!(fs::read_to_string(tree.path().join("ignored")).unwrap(), "cache");
    assert!(!trash(&rig).exists());
    let listed = git(rig.repository.path(), ["worktree", "list", "--porcelain"]);
    assert!(!listed.contains("locked") && !listed.contains("prunable"), "{listed}");
}

#[test]
fn another_tree_at_its_place_does_not_keep_it_from_coming_back_elsewhere() {
    let rig = Rig::new();
    let tree = full_tree(&rig);
    let before = seen(tree.path());
    move_tree_away(&rig.repository, tree.path(), &trash(&rig)).unwrap();
    rig.repository.add_worktree(tree.path(), "polecat/nux/2", &rig.base()).unwrap();
    let error = move_tree_back(&rig.repository, &trash(&rig), tree.path()).unwrap_err();
    assert!(matches!(&error, GitError::Exists { path } if path == tree.path()), "{error}");
    let elsewhere = rig.path("rig/polecats/slit/deeper/rig");
    move_tree_back(&rig.repository, &trash(&rig), &elsewhere).unwrap();
    assert_eq!(seen(&elsewhere), before);
    assert_eq!(tree.branch().unwrap().as_deref(), Some("polecat/nux/2"));
    assert!(tree.status().unwrap().is_clean());
}

#[test]
fn a_name_that_git_has_given_away_is_no_obstacle() {
    let rig = Rig::new();
    let path = rig.path("rig/polecats/nux/rig");
    let path = path.to_str().unwrap();
    // Made by git alone, so what it keeps about it is called `rig`.
    git(
        rig.repository.path(),
        ["worktree", "add", "--quiet", "-b", "one", path, rig.base().as_str()],
    );
    write(Path::new(path), "untracked", "x");
    move_tree_away(&rig.repository, Path::new(path), &trash(&rig)).unwrap();
    git(
        rig.repository.path(),
        ["worktree", "add", "--quiet", "-b", "two", path, rig.base().as_str()],
    );
    let elsewhere = rig.path("rig/polecats/slit/rig");
    move_tree_back(&rig.repository, &trash(&rig), &elsewhere).unwrap();
    let branch = |path: &Path| Tree::at(path).branch().unwrap().unwrap();
    assert_eq!((branch(&elsewhere), branch(Path::new(path))), ("one".to_owned(), "two".to_owned()));
    assert_eq!(
        Tree::at(&elsewhere).status().unwrap().changes.untracked,
        [PathBuf::from("untracked")]
    );
}

#[test]
fn an_interrupted_move_can_be_completed_or_undone_after_every_step() {
    for taken in 0..=3 {
        for undo in [false, true] {
            let rig = Rig::new();
            let tree = full_tree(&rig);
            let before = seen(tree.path());
            let step = TreeMove::new(&rig.repository, tree.path(), &trash(&rig));
            for step_taken in [TreeMove::lock, TreeMove::take_directory, TreeMove::take_git_data]
                .iter()
                .take(taken)
            {
                step_taken(&step).unwrap();
            }
            git(rig.repository.path(), ["worktree", "prune", "--expire=now"]);
            if !undo {
                move_tree_away(&rig.repository, tree.path(), &trash(&rig)).unwrap();
                move_tree_away(&rig.repository, tree.path(), &trash(&rig)).unwrap();
                assert!(!tree.path().exists());
            }
            move_tree_back(&rig.repository, &trash(&rig), tree.path()).unwrap();
            assert_eq!(seen(tree.path()), before, "after {taken} steps, undo {undo}");
            move_tree_back(&rig.repository, &trash(&rig), tree.path()).unwrap();
            let listed = git(rig.repository.path(), ["worktree", "list", "--porcelain"]);
            assert!(!listed.contains("locked"), "{listed}");
        }
    }
}

#[test]
fn a_way_back_that_was_interrupted_is_completed() {
    let rig = Rig::new();
    let tree = full_tree(&rig);
    let before = seen(tree.path());
    let data = git(tree.path(), ["rev-parse", "--absolute-git-dir"]);
    move_tree_away(&rig.repository, tree.path(), &trash(&rig)).unwrap();
    // As far as the first renaming.
    fs::rename(trash(&rig).join("git"), data).unwrap();
    move_tree_back(&rig.repository, &trash(&rig), tree.path()).unwrap();
    assert_eq!(seen(tree.path()), before);
}

#[test]
fn any_file_at_the_path_is_moved() {
    let rig = Rig::new();
    let place = rig.path("rig/polecats/nux/rig");
    let there_and_back = |number: u32| {
        let destination = rig.path(&format!("rig/trash/{number}"));
        move_tree_away(&rig.repository, &place, &destination).unwrap();
        assert!(place.symlink_metadata().is_err());
        assert!(destination.join("tree").symlink_metadata().is_ok());
        move_tree_back(&rig.repository, &destination, &place).unwrap();
    };
    // Half a tree without its link.
    write(&place, "file", "x");
    there_and_back(1);
    // A link to nowhere.
    write(&place, ".git", "gitdir: nowhere/at/all\n");
    there_and_back(2);
    fs::remove_dir_all(&place).unwrap();
    // A repository of its own.
    make_repository(&place, "a");
    there_and_back(3);
    assert_eq!(git(&place, ["status", "--porcelain"]), "");
    fs::remove_dir_all(&place).unwrap();
    symlink("nowhere", &place).unwrap();
    there_and_back(4);
    fs::remove_file(&place).unwrap();
    let error = move_tree_away(&rig.repository, &place, &rig.path("rig/trash/5")).unwrap_err();
    assert!(matches!(&error, GitError::Missing { .. }), "{error}");
}

#[test]
fn a_tree_whose_link_was_destroyed_keeps_its_git_data() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "staged", "x");
    git(tree.path(), ["add", "staged"]);
    fs::remove_file(tree.path().join(".git")).unwrap();
    move_tree_away(&rig.repository, tree.path(), &trash(&rig)).unwrap();
    move_tree_back(&rig.repository, &trash(&rig), tree.path()).unwrap();
    assert_eq!(git(tree.path(), ["status", "--porcelain"]), "A  staged");
}

#[test]
fn a_destination_that_is_taken_is_not_overwritten() {
    let rig = Rig::new();
    let (nux, slit) = (rig.tree("nux"), rig.tree("slit"));
    move_tree_away(&rig.repository, nux.path(), &trash(&rig)).unwrap();
    let error = move_tree_away(&rig.repository, slit.path(), &trash(&rig)).unwrap_err();
    assert!(matches!(&error, GitError::Exists { .. }), "{error}");
    assert!(slit.status().unwrap().is_clean());
}

#[test]
fn a_worktree_lock_of_a_person_stays() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    git(tree.path(), ["worktree", "lock", "--reason", "mine", "."]);
    move_tree_away(&rig.repository, tree.path(), &trash(&rig)).unwrap();
    move_tree_back(&rig.repository, &trash(&rig), tree.path()).unwrap();
    let listed = git(rig.repository.path(), ["worktree", "list", "--porcelain"]);
    assert!(listed.contains("locked mine"), "{listed}");
}

#[test]
fn a_tree_that_became_a_repository_of_its_own_comes_back_as_that() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    fs::remove_file(tree.path().join(".git")).unwrap();
    git(tree.path(), ["init", "--quiet"]);
    commit_everything(tree.path(), "my own history");
    let own = tree.head().unwrap();
    move_tree_away(&rig.repository, tree.path(), &trash(&rig)).unwrap();
    move_tree_back(&rig.repository, &trash(&rig), tree.path()).unwrap();
    assert_eq!(tree.head().unwrap(), own);
    assert!(trash(&rig).join("git/HEAD").exists(), "what it was before is kept");
}
