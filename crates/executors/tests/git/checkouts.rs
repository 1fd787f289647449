//! Landing in an ordinary clone that has the target branch checked out.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use gt_executors::git::{
    CandidateMember, CheckoutInTheWay, CheckoutObstacle, Commit, CommitTrailer, LandMethod,
    PUSH_TIME_MAX, Push, Repository, Tree, checkouts_of,
};
use gt_testkit::write_program;
use tempfile::TempDir;

use crate::support::{
    commit_everything, git, git_fails, limits, make_repository, nux, try_git, write,
};

/// A clone of a person as the origin of a rig.
struct Own {
    directory: TempDir,
    /// The clone; `main` is checked out in it.
    checkout: PathBuf,
    repository: Repository,
}

impl Own {
    fn new() -> Self {
        Self::named("web")
    }

    fn named(name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let checkout = directory.path().canonicalize().unwrap().join(name);
        make_repository(&checkout, "file.txt");
        write(&checkout, "other.txt", "first\n");
        write(&checkout, ".gitignore", "*.log\n");
        commit_everything(&checkout, "second");
        Self::with_origin(directory, &checkout, &checkout)
    }

    fn with_origin(directory: TempDir, checkout: &Path, origin: &Path) -> Self {
        let path = directory.path().join("rig/.repo.git");
        let repository = Repository::clone_from(origin.to_str().unwrap(), path).unwrap();
        Self { directory, checkout: checkout.to_owned(), repository }
    }

    fn base(&self) -> Commit {
        self.repository.tip("main").unwrap().unwrap()
    }

    /// The tree of a worker.
    fn tree(&self) -> Tree {
        let path = self.directory.path().join("rig/nux");
        self.repository.add_worktree(&path, "polecat/nux/1", &self.base()).unwrap();
        Tree::at(path)
    }

    /// A commit that changes `file.txt` and adds another file.
    fn candidate(&self) -> Commit {
        let tree = self.tree();
        write(tree.path(), "file.txt", "landed\n");
        write(tree.path(), "new.txt", "new\n");
        tree.commit_all("work", &nux(), &limits()).unwrap().unwrap()
    }

    fn deliver(&self, commit: &Commit) -> Push {
        self.repository
            .deliver(commit, "main", Some(&self.base()), "we-1#1", PUSH_TIME_MAX)
            .unwrap()
    }

    #[track_caller]
    fn lands(&self, commit: &Commit) {
        assert_eq!(self.deliver(commit), Push::Done);
        assert_eq!(self.head(), commit.as_str());
        assert_eq!(self.read("file.txt"), "landed\n");
        assert_eq!(self.read("new.txt"), "new\n");
        self.repository.fetch().unwrap();
        assert_eq!(self.repository.tip("main").unwrap().as_ref(), Some(commit));
        self.repository.forget_candidate("main", "we-1#1").unwrap();
        assert_eq!(self.candidates(), "");
    }

    #[track_caller]
    fn is_held(&self, commit: &Commit) -> CheckoutInTheWay {
        let before = self.state();
        let pushed = self.deliver(commit);
        let Push::Held(held) = pushed else { panic!("{pushed:?}") };
        assert_eq!(self.state(), before, "{held}");
        held
    }

    /// Everything that a user sees of the checkout.
    fn state(&self) -> (String, String, String, Vec<(PathBuf, Vec<u8>)>) {
        let mut files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(&self.checkout)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        files.sort();
        let index = git(&self.checkout, ["ls-files", "--stage"]);
        let status = git(&self.checkout, ["status", "--porcelain=v2", "--branch", "--ignored"]);
        (self.head(), index, status, files)
    }

    fn head(&self) -> String {
        git(&self.checkout, ["rev-parse", "main"])
    }

    fn status(&self) -> String {
        git(&self.checkout, ["status", "--porcelain"])
    }

    fn candidates(&self) -> String {
        git(&self.checkout, ["for-each-ref", "--format=%(refname)", "refs/gt"])
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.checkout.join(file)).unwrap()
    }

    fn git<const N: usize>(&self, arguments: [&str; N]) -> String {
        git(&self.checkout, arguments)
    }
}

#[test]
fn checkout_takes_a_landing_and_is_clean_afterwards() {
    let own = Own::new();
    own.lands(&own.candidate());
    assert_eq!(own.status(), "");
    assert!(own.git(["reflog", "-1", "main"]).contains("gt"), "{}", own.git(["reflog", "main"]));
}

#[test]
fn unrelated_uncommitted_changes_stay() {
    let own = Own::new();
    let commit = own.candidate();
    write(&own.checkout, "other.txt", "edited\n");
    write(&own.checkout, "staged.txt", "staged\n");
    own.git(["add", "staged.txt"]);
    write(&own.checkout, "untracked.txt", "untracked\n");
    write(&own.checkout, "build.log", "ignored\n");
    own.lands(&commit);
    assert_eq!(own.status(), "M other.txt\nA  staged.txt\n?? untracked.txt");
    assert_eq!(own.read("other.txt"), "edited\n");
    assert_eq!(own.read("build.log"), "ignored\n");
}

#[test]
fn colliding_files_hold_the_landing_and_nothing_changes() {
    type Collide = fn(&Own);
    let collisions: [(&str, Collide); 4] = [
        ("file.txt", |own| write(&own.checkout, "file.txt", "edited\n")),
        ("file.txt", |own| {
            write(&own.checkout, "file.txt", "staged\n");
            own.git(["add", "file.txt"]);
        }),
        ("new.txt", |own| write(&own.checkout, "new.txt", "untracked\n")),
        ("new.txt", |own| {
            write(&own.checkout, ".git/info/exclude", "new.txt\n");
            write(&own.checkout, "new.txt", "ignored\n");
        }),
    ];
    for (file, collide) in collisions {
        let own = Own::new();
        let commit = own.candidate();
        collide(&own);
        let held = own.is_held(&commit);
        let CheckoutObstacle::Files { words, .. } = &held.obstacle else { panic!("{held:?}") };
        assert!(words.contains("overwritten by merge") && words.contains(file), "{words}");
        let said = held.to_string();
        assert!(!said.contains("merge --ff-only"), "it would fail as well: {said}");
        // The user pastes the command that moves the file away, and the landing goes on.
        let line = said.split('`').nth(1).unwrap();
        let shell = format!("alias.pasted=!{line}");
        assert!(try_git(Path::new("/"), ["-c", &shell, "pasted"]).status.success(), "{line}");
        own.lands(&commit);
    }
}

#[test]
fn commands_of_a_held_landing_can_be_pasted() {
    let own = Own::named("mein Prüfstück's");
    let commit = own.candidate();
    write(&own.checkout, "file.txt", "edited\n");
    let held = own.is_held(&commit);
    own.git(["checkout", "file.txt"]);
    let pasted = |line: &str| {
        let shell = format!("alias.pasted=!{line}");
        try_git(Path::new("/"), ["-c", &shell, "pasted"]).status.success()
    };
    assert!(pasted(&held.land_command()), "{}", held.land_command());
    assert_eq!(own.head(), commit.as_str());
    own.git(["update-ref", "refs/heads/main", "main~1"]);
    assert!(pasted(&held.undo_command()), "{}", held.undo_command());
    assert_eq!(own.status(), "");
}

#[test]
fn operations_under_way_hold_the_landing() {
    type Begin = fn(&Own);
    let operations: [(&str, Begin); 7] = [
        ("merge", |own| {
            git_fails(&own.checkout, ["merge", "side"]);
        }),
        ("cherry-pick", |own| {
            git_fails(&own.checkout, ["cherry-pick", "side"]);
        }),
        ("revert", |own| {
            git_fails(&own.checkout, ["revert", "--no-edit", "HEAD~1"]);
        }),
        ("rebase", |own| {
            git_fails(&own.checkout, ["rebase", "side"]);
        }),
        ("resolution of conflicts", |own| {
            git_fails(&own.checkout, ["merge", "--squash", "side"]);
        }),
        // Before the first good commit `HEAD` stays on the branch, afterwards it is detached.
        ("bisect", |own| {
            own.git(["bisect", "start"]);
        }),
        ("bisect", |own| {
            own.git(["bisect", "start", "HEAD", "HEAD~2"]);
        }),
    ];
    for (operation, begin) in operations {
        let own = Own::new();
        own.git(["switch", "--quiet", "--create", "side"]);
        write(&own.checkout, "clash.txt", "side\n");
        commit_everything(&own.checkout, "side");
        own.git(["switch", "--quiet", "main"]);
        for content in ["main\n", "again\n"] {
            write(&own.checkout, "clash.txt", content);
            commit_everything(&own.checkout, "main");
        }
        own.repository.fetch().unwrap();
        let commit = own.candidate();
        begin(&own);
        let held = own.is_held(&commit);
        assert_eq!(held.obstacle, CheckoutObstacle::Operation(operation));
        match operation {
            "bisect" => own.git(["bisect", "reset"]),
            "resolution of conflicts" => own.git(["reset", "--quiet", "--hard"]),
            _ => own.git([operation, "--abort"]),
        };
        own.lands(&commit);
    }
}

#[test]
fn branch_that_is_not_checked_out_is_pushed() {
    let own = Own::new();
    let commit = own.candidate();
    own.git(["checkout", "--quiet", "--detach"]);
    assert_eq!(checkouts_of(own.checkout.to_str().unwrap(), "main").unwrap(), [] as [PathBuf; 0]);
    assert_eq!(own.deliver(&commit), Push::Done);
    assert_eq!(own.head(), commit.as_str());
    assert_eq!((own.read("file.txt"), own.status()), ("first\n".to_owned(), String::new()));
    assert_eq!(own.candidates(), "");
}

#[test]
fn linked_worktree_takes_the_landing() {
    let own = Own::new();
    let commit = own.candidate();
    let linked = own.directory.path().canonicalize().unwrap().join("linked wörk tree");
    own.git(["switch", "--quiet", "--create", "side"]);
    own.git(["worktree", "add", "--quiet", linked.to_str().unwrap(), "main"]);
    write(&linked, "other.txt", "edited\n");
    for origin in [&own.checkout, &linked, &own.checkout.join(".git")] {
        assert_eq!(
            checkouts_of(origin.to_str().unwrap(), "main").unwrap(),
            std::slice::from_ref(&linked)
        );
    }
    assert_eq!(own.deliver(&commit), Push::Done);
    assert_eq!(own.head(), commit.as_str());
    assert_eq!(git(&linked, ["status", "--porcelain"]), "M other.txt");
    assert_eq!(fs::read_to_string(linked.join("file.txt")).unwrap(), "landed\n");
    assert_eq!((own.read("file.txt"), own.status()), ("first\n".to_owned(), String::new()));
}

#[test]
fn worktrees_of_a_bare_origin_and_separate_git_directories_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().canonicalize().unwrap();
    make_repository(&at.join("person"), "file.txt");
    git(&at, ["clone", "--quiet", "--bare", "person", "bare.git"]);
    let checkouts = |origin: &str| checkouts_of(at.join(origin).to_str().unwrap(), "main").unwrap();
    assert_eq!(checkouts("bare.git"), [] as [PathBuf; 0]);
    assert_eq!(checkouts_of("ssh://host/bare.git", "main").unwrap(), [] as [PathBuf; 0]);
    git(&at.join("bare.git"), ["worktree", "add", "--quiet", "../tree", "main"]);
    assert_eq!(checkouts("bare.git"), [at.join("tree")]);
    assert_eq!(checkouts("bare"), [at.join("tree")]);
    git(&at, ["clone", "--quiet", "--separate-git-dir", "elsewhere", "person", "separate"]);
    assert_eq!(checkouts("separate"), [at.join("separate")]);
    let own = Own::with_origin(directory, &at.join("separate"), &at.join("separate"));
    own.lands(&own.candidate());
}

#[test]
fn second_checkout_and_missing_directory_hold_the_landing() {
    let own = Own::new();
    let commit = own.candidate();
    let linked = own.directory.path().join("linked");
    let linked_path = linked.to_str().unwrap();
    own.git(["worktree", "add", "--quiet", "--force", linked_path, "main"]);
    let held = own.is_held(&commit);
    assert!(matches!(held.obstacle, CheckoutObstacle::SecondCheckout(_)), "{held}");
    own.git(["switch", "--quiet", "--create", "side"]);
    fs::remove_dir_all(&linked).unwrap();
    assert_eq!(own.is_held(&commit).obstacle, CheckoutObstacle::Missing);
    own.git(["worktree", "prune"]);
    assert_eq!(own.deliver(&commit), Push::Done);
}

#[test]
fn index_lock_holds_the_landing_until_it_is_gone() {
    let own = Own::new();
    let commit = own.candidate();
    let lock = own.checkout.join(".git/index.lock");
    File::create(&lock).unwrap();
    let pushed = own.deliver(&commit);
    let Push::Held(held) = pushed else { panic!("{pushed:?}") };
    assert_eq!(held.obstacle, CheckoutObstacle::Lock(lock.clone()));
    fs::remove_file(&lock).unwrap();
    own.lands(&commit);
}

#[test]
fn locked_branch_leaves_the_files_as_they_were() {
    let own = Own::new();
    let commit = own.candidate();
    write(&own.checkout, "other.txt", "edited\n");
    let lock = own.checkout.join(".git/refs/heads/main.lock");
    File::create(&lock).unwrap();
    let held = own.is_held(&commit);
    assert!(matches!(held.obstacle, CheckoutObstacle::Lock(_)), "{held}");
    fs::remove_file(&lock).unwrap();
    own.lands(&commit);
    assert_eq!(own.status(), "M other.txt");
}

/// The checkout as a landing leaves it that is killed after git has moved the files and before it moves the branch.
fn interrupt(own: &Own, commit: &Commit, reference: &str) {
    let repository = own.repository.path().to_str().unwrap();
    own.git(["fetch", "--quiet", repository, &format!("{commit}:{reference}")]);
    own.git(["read-tree", "-m", "-u", "HEAD", commit.as_str()]);
    assert_ne!(own.head(), commit.as_str());
    assert_eq!(own.read("file.txt"), "landed\n");
}

#[test]
fn interrupted_landing_is_put_back_before_the_next_one() {
    let own = Own::new();
    let commit = own.candidate();
    write(&own.checkout, "other.txt", "edited\n");
    interrupt(&own, &commit, "refs/gt/landing/we-0%231");
    // Another landing of the same rig, which does not have these files.
    let other = Tree::at(own.directory.path().join("rig/slit"));
    own.repository.add_worktree(other.path(), "polecat/slit/1", &own.base()).unwrap();
    write(other.path(), "third.txt", "third\n");
    let third = other.commit_all("third", &nux(), &limits()).unwrap().unwrap();
    assert_eq!(own.deliver(&third), Push::Done);
    assert_eq!((own.head(), own.status()), (third.to_string(), "M other.txt".to_owned()));
    assert_eq!((own.read("file.txt"), own.read("third.txt")), ("first\n".into(), "third\n".into()));
    assert!(!own.checkout.join("new.txt").exists());
}

#[test]
fn interrupted_landing_lands_when_it_is_repeated() {
    let own = Own::new();
    let commit = own.candidate();
    interrupt(&own, &commit, "refs/gt/landing/we-1%231");
    own.lands(&commit);
    assert_eq!(own.status(), "");
}

#[test]
fn files_edited_after_an_interrupted_landing_hold_it() {
    let own = Own::new();
    let commit = own.candidate();
    interrupt(&own, &commit, "refs/gt/landing/we-1%231");
    write(&own.checkout, "file.txt", "edited since\n");
    assert_eq!(own.is_held(&commit).obstacle, CheckoutObstacle::Interrupted);
    own.git(["checkout", "file.txt"]);
    own.lands(&commit);
}

#[test]
fn landing_that_is_given_up_puts_its_files_back() {
    let own = Own::new();
    let commit = own.candidate();
    interrupt(&own, &commit, "refs/gt/landing/we-0%231");
    own.repository.forget_candidate("main", "we-0#1").unwrap();
    assert_eq!((own.status(), own.candidates()), (String::new(), String::new()));
    assert_eq!(own.read("file.txt"), "first\n");
}

#[test]
fn user_who_commits_first_wins_the_race() {
    let own = Own::new();
    let commit = own.candidate();
    write(&own.checkout, "other.txt", "committed\n");
    commit_everything(&own.checkout, "by a person");
    let pushed = own.deliver(&commit);
    assert!(matches!(pushed, Push::LostRace(_)), "{pushed:?}");
    assert_eq!((own.read("file.txt"), own.status()), ("first\n".to_owned(), String::new()));
}

#[test]
fn candidates_that_have_landed_are_deleted_by_the_next_landing() {
    let own = Own::new();
    own.git(["update-ref", "refs/gt/landing/we-0%231", "HEAD~1"]);
    let commit = own.candidate();
    assert_eq!(own.deliver(&commit), Push::Done);
    assert_eq!(own.candidates(), "refs/gt/landing/we-1%231");
}

#[test]
fn a_built_candidate_lands_under_the_name_of_its_merge_request() {
    let own = Own::new();
    let member = CandidateMember {
        commit: own.candidate(),
        base: None,
        name: "we-1".to_owned(),
        message: None,
        trailers: vec![CommitTrailer { key: "Bead".to_owned(), value: "we-1".to_owned() }],
        signature: nux(),
        replaced_author: None,
    };
    let base = own.base();
    for name in ["we-1@1", "we-1.2@3#4", "@", "@{u}"] {
        let built = own.repository.build_candidate(
            name,
            &base,
            std::slice::from_ref(&member),
            LandMethod::Rebase,
        );
        assert_ne!(built.unwrap().tip, member.commit);
        own.repository.drop_candidate(name).unwrap();
    }
    let built = own.repository.build_candidate("1", &base, &[member], LandMethod::Squash).unwrap();
    let landed =
        own.repository.deliver(&built.tip, "main", Some(&base), "we-1@1", PUSH_TIME_MAX).unwrap();
    assert_eq!(landed, Push::Done);
    assert_eq!(own.head(), built.tip.as_str());
    assert_eq!(own.candidates(), "refs/gt/landing/we-1%401");
    own.repository.forget_candidate("main", "we-1@1").unwrap();
    assert_eq!(own.candidates(), "");
}

#[test]
fn configuration_of_the_user_counts_and_hooks_do_not_run() {
    let own = Own::new();
    let commit = own.candidate();
    own.git(["config", "core.autocrlf", "true"]);
    own.git(["config", "merge.autoStash", "true"]);
    own.git(["config", "branch.main.mergeOptions", "--squash --no-ff"]);
    own.git(["config", "receive.denyCurrentBranch", "updateInstead"]);
    let ran = own.directory.path().join("ran");
    let hook = format!("#!/bin/sh\ntouch {}\n", ran.display());
    for name in ["post-merge", "post-checkout", "post-receive", "reference-transaction"] {
        fs::create_dir_all(own.checkout.join(".git/hooks")).unwrap();
        write_program(own.checkout.join(".git/hooks").join(name), &hook);
    }
    assert_eq!(own.deliver(&commit), Push::Done);
    assert_eq!(own.head(), commit.as_str());
    assert_eq!(own.read("file.txt"), "landed\r\n");
    assert!(!ran.exists(), "a hook has run");
    assert_eq!(own.status(), "");
}

/// A clone with a submodule `lib`, and a candidate that moves it to another commit.
fn with_submodule() -> (Own, Commit) {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().canonicalize().unwrap();
    make_repository(&at.join("library"), "lib.txt");
    make_repository(&at.join("web"), "file.txt");
    git(&at.join("web"), ["submodule", "--quiet", "add", "../library", "lib"]);
    commit_everything(&at.join("web"), "with a library");
    write(&at.join("library"), "lib.txt", "second\n");
    commit_everything(&at.join("library"), "second");
    let second = git(&at.join("library"), ["rev-parse", "HEAD"]);
    let own = Own::with_origin(directory, &at.join("web"), &at.join("web"));
    let tree = own.tree();
    let entry = format!("160000,{second},lib");
    git(tree.path(), ["update-index", "--cacheinfo", &entry]);
    git(tree.path(), ["commit", "--quiet", "--message", "newer library"]);
    let commit = tree.head().unwrap().unwrap();
    (own, commit)
}

#[test]
fn changed_submodule_is_updated_with_the_landing() {
    let (own, commit) = with_submodule();
    // The commit is there already, so that nothing has to be fetched.
    git(&own.checkout.join("lib"), ["fetch", "--quiet"]);
    assert_eq!(own.deliver(&commit), Push::Done);
    assert_eq!((own.head(), own.status()), (commit.to_string(), String::new()));
    assert_eq!(own.read("lib/lib.txt"), "second\n");
}

#[test]
fn submodule_that_cannot_be_updated_holds_the_landing() {
    let (own, commit) = with_submodule();
    fs::rename(own.checkout.with_file_name("library"), own.checkout.with_file_name("away"))
        .unwrap();
    let held = own.is_held(&commit);
    assert!(matches!(held.obstacle, CheckoutObstacle::Submodules(_)), "{held}");
    assert_eq!(own.read("lib/lib.txt"), "first\n");
    // One that the user has changed is not touched either.
    write(&own.checkout, "lib/lib.txt", "edited\n");
    let held = own.is_held(&commit);
    assert!(held.to_string().contains("lib has changes of its own"), "{held}");
}
