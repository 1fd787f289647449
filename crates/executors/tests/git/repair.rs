//! A shared repository that is damaged or missing is put right, and nothing in it is lost.

use std::fs::{self, File};
use std::path::Path;

use gt_executors::git::{Commit, PUSH_TIME_MAX, Push, Repository, Tree};

use crate::support::{MEBIBYTE, Rig, commit_everything, git, limits, nux, try_git, write};

type Damage = fn(&Path);

const DAMAGES: &[(&str, Damage)] = &[
    ("an empty configuration", |shared| fs::write(shared.join("config"), "").unwrap()),
    ("half a configuration", |shared| fs::write(shared.join("config"), "[core]\n\tba").unwrap()),
    ("no configuration", |shared| fs::remove_file(shared.join("config")).unwrap()),
    ("an empty HEAD", |shared| fs::write(shared.join("HEAD"), "").unwrap()),
    ("no HEAD", |shared| fs::remove_file(shared.join("HEAD")).unwrap()),
    ("packed references that are none", |shared| {
        git(shared, ["pack-refs", "--all"]);
        let packed = fs::read_to_string(shared.join("packed-refs")).unwrap();
        let packed = format!("{packed}nonsense\n");
        fs::write(shared.join("packed-refs"), packed).unwrap();
    }),
    ("no borrowed objects", |shared| {
        fs::remove_file(shared.join("objects/info/alternates")).unwrap();
    }),
];

fn repaired(rig: &Rig) -> Repository {
    Repository::clone_from(rig.origin().to_str().unwrap(), rig.repository.path()).unwrap()
}

#[test]
fn a_repository_that_is_being_made_has_no_problem() {
    let rig = Rig::new();
    // The middle of a clone: the one of ours is there, and the one of workers not yet.
    fs::remove_dir_all(rig.repository.path()).unwrap();
    let directory = File::open(rig.repository.path().parent().unwrap()).unwrap();

    directory.lock().unwrap();
    assert_eq!(rig.repository.problem(), None, "the lock says that a process makes it");
    directory.unlock().unwrap();

    assert!(rig.repository.problem().is_some());
}

fn begin_next(rig: &Rig, repository: &Repository) {
    let path = rig.path("rig/polecats/slit/rig");
    repository.fetch().unwrap();
    let base = repository.tip("main").unwrap().unwrap();
    repository.add_worktree(&path, "polecat/slit/1", &base).unwrap();
    write(&path, "slit.txt", "x");
    let commit = Tree::of(&path, repository).commit_all("work", &nux(), &limits());
    let commit = commit.unwrap().unwrap();
    assert_eq!(repository.push(&commit, "main", Some(&base), PUSH_TIME_MAX).unwrap(), Push::Done);
    assert_eq!(git(&path, ["status", "--porcelain"]), "", "the worker's git works");
}

#[test]
fn damaged_parts_are_replaced_and_the_rest_stays() {
    for (what, damage) in DAMAGES {
        let rig = Rig::new();
        let tree = rig.tree("nux");
        write(tree.path(), "work.txt", "x");
        commit_everything(tree.path(), "work");
        let worked = Commit::parse(&git(tree.path(), ["rev-parse", "HEAD"])).unwrap();
        write(tree.path(), "later.txt", "x");

        damage(rig.repository.path());
        let repository = repaired(&rig);

        assert_eq!(repository.problem(), None, "{what}");
        assert_eq!(repository.resolve("polecat/nux/1").unwrap(), Some(worked), "{what}");
        let status = Tree::of(tree.path(), &repository).status().unwrap();
        assert_eq!(status.changes.untracked, [Path::new("later.txt")], "{what}");
        begin_next(&rig, &repository);
    }
}

/// Makes every file of an object in a repository a file with these contents.
fn spoil_objects(repository: &Path, contents: &[u8]) {
    let directories = fs::read_dir(repository.join("objects")).unwrap();
    for directory in directories.map(|entry| entry.unwrap().path()) {
        if directory.ends_with("info") {
            continue;
        }
        for file in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            fs::remove_file(&file).unwrap();
            fs::write(&file, contents).unwrap();
        }
    }
}

#[test]
fn objects_that_a_power_failure_left_empty_come_from_the_origin_again() {
    for contents in [&b""[..], &[0; 4096]] {
        for spoiled in [".repo.git", ".repo.git.own"] {
            let rig = Rig::new();
            let tree = rig.tree("nux");
            let base = rig.repository.tip("main").unwrap().unwrap();
            write(tree.path(), "work.txt", "x");
            commit_everything(tree.path(), "work");
            let worked = Commit::parse(&git(tree.path(), ["rev-parse", "HEAD"])).unwrap();
            rig.repository.import(&worked).unwrap();
            assert_eq!(
                rig.repository.push(&worked, "main", Some(&base), PUSH_TIME_MAX).unwrap(),
                Push::Done
            );

            spoil_objects(&rig.repository.path().with_file_name(spoiled), contents);
            let problem = rig.repository.problem().unwrap_or_default();
            assert!(problem.contains("cannot be read"), "{spoiled}: {problem}");

            begin_next(&rig, &repaired(&rig));
            assert_eq!(rig.repository.problem(), None, "{spoiled}");
        }
    }
}

#[test]
fn a_deleted_repository_is_made_again_with_saved_commits() {
    let rig = Rig::new();
    let tree = Tree::of(rig.tree("nux").path(), &rig.repository);
    write(tree.path(), "work.txt", "precious");
    let rescue = tree
        .rescue(&rig.repository, "refs/gt/rescue/we-1/1", "saved", &nux(), MEBIBYTE, None)
        .unwrap();

    fs::remove_dir_all(rig.repository.path()).unwrap();
    assert!(rig.repository.problem().is_some_and(|problem| problem.contains(".repo.git")));
    let repository = repaired(&rig);

    assert_eq!(repository.resolve("refs/gt/rescue/we-1/1").unwrap(), Some(rescue.commit));
    let saved = git(repository.path(), ["show", "refs/gt/rescue/we-1/1:work.txt"]);
    assert_eq!(saved, "precious");
    begin_next(&rig, &repository);
}

#[test]
fn our_own_repository_is_made_again_when_it_is_lost_or_damaged() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        ("deleted", |own| fs::remove_dir_all(own).unwrap()),
        ("without HEAD", |own| fs::remove_file(own.join("HEAD")).unwrap()),
        ("without objects", |own| fs::remove_dir_all(own.join("objects")).unwrap()),
    ];
    for (what, damage) in damages {
        let rig = Rig::new();
        let tree = rig.tree("nux");
        write(tree.path(), "work.txt", "x");
        commit_everything(tree.path(), "work");
        damage(&rig.repository.own_path());
        let repository = repaired(&rig);
        assert_eq!(repository.problem(), None, "{what}");
        assert_eq!(repository.resolve("polecat/nux/1").unwrap(), tree.head().unwrap(), "{what}");
        begin_next(&rig, &repository);
    }
}

#[test]
fn a_branch_without_its_commit_is_named() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "work.txt", "x");
    commit_everything(tree.path(), "work");
    let head = git(tree.path(), ["rev-parse", "HEAD"]);
    let object = rig.repository.path().join("objects").join(&head[..2]).join(&head[2..]);
    fs::remove_file(object).unwrap();
    let problem = rig.repository.problem().unwrap();
    assert!(problem.contains("refs/heads/polecat/nux/1"), "{problem}");
    begin_next(&rig, &repaired(&rig));
}

#[test]
fn a_repository_with_long_hashes_is_worked_in_and_landed_on() {
    let directory = tempfile::tempdir().unwrap();
    let person = directory.path().join("person");
    fs::create_dir(&person).unwrap();
    git(&person, ["init", "--quiet", "--initial-branch=main", "--object-format=sha256"]);
    write(&person, "file.txt", "first\n");
    commit_everything(&person, "first");
    git(directory.path(), ["clone", "--quiet", "--bare", "person", "origin.git"]);
    let origin = directory.path().join("origin.git");
    let path = directory.path().join("rig/.repo.git");
    let repository = Repository::clone_from(origin.to_str().unwrap(), &path).unwrap();
    let base = repository.tip("main").unwrap().unwrap();
    assert_eq!(base.as_str().len(), 64);
    let tree = directory.path().join("rig/polecats/nux/rig");
    repository.add_worktree(&tree, "polecat/nux/1", &base).unwrap();
    write(&tree, "new.txt", "x");
    let tree = Tree::of(&tree, &repository);
    let commit = tree.commit_all("work", &nux(), &limits()).unwrap().unwrap();
    assert_eq!(repository.push(&commit, "main", Some(&base), PUSH_TIME_MAX).unwrap(), Push::Done);
    assert_eq!(git(&origin, ["rev-parse", "main"]), commit.as_str());
    tree.recycle("polecat/nux/2", &commit).unwrap();
    assert!(try_git(tree.path(), ["fsck"]).status.success());
}
