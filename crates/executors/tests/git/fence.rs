use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use gt_executors::git::{PUSH_TIME_MAX, Push, Tree, fence};
use gt_testkit::write_program;

use crate::support::{
    Rig, commit_everything, git, git_command, git_fails, limits, make_repository, nux, write,
};

/// Stands in for `gt worker fence`: writes down its input, and lets only one branch pass.
fn program(rig: &Rig, own_branch: &str) -> PathBuf {
    let directory = rig.path("it's a program");
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join("gt");
    let script = format!(
        "#!/bin/sh
echo \"$*\" >> '{asked}'
status=0
while read -r old new reference; do
    echo \"$old $new $reference\" >> '{asked}.updates'
    case \"$new\" in
    *[!0]*) ;;
    *) [ \"$reference\" = 'refs/heads/{own_branch}' ] && status=1 ;;
    esac
    case \"$reference\" in
    refs/heads/{own_branch}) ;;
    refs/*) echo \"gt: $reference is not yours\" >&2; status=1 ;;
    esac
done
exit $status
",
        asked = rig.path("asked").display(),
    );
    write_program(&path, &script);
    path
}

/// A worker behind the fence, and one whose branch it might touch.
fn fenced() -> (Rig, Tree, Tree) {
    let rig = Rig::new();
    let (own, other) = (rig.tree("nux"), rig.tree("slit"));
    let program = program(&rig, "polecat/nux/1");
    rig.repository.install_fence(&program).unwrap();
    (rig, own, other)
}

fn branches(rig: &Rig) -> String {
    git(
        rig.repository.path(),
        ["for-each-ref", "refs/heads", "refs/remotes", "refs/gt", "refs/tags", "refs/stash"],
    )
}

#[test]
fn a_worker_works_on_its_own_branch_as_always() {
    let (rig, own, _) = fenced();
    write(own.path(), "a", "1");
    commit_everything(own.path(), "one");
    write(own.path(), "a", "2");
    commit_everything(own.path(), "two");
    git(own.path(), ["commit", "--quiet", "--amend", "--message", "better"]);
    git(own.path(), ["rebase", "--quiet", "--force-rebase", "origin/main"]);
    git(own.path(), ["reset", "--quiet", "--hard", "HEAD~1"]);
    git(own.path(), ["switch", "--quiet", "--detach"]);
    git(own.path(), ["switch", "--quiet", "polecat/nux/1"]);
    let asked = fs::read_to_string(rig.path("asked")).unwrap();
    assert!(asked.lines().all(|line| line == "worker fence prepared"), "{asked}");
    let updates = fs::read(rig.path("asked.updates")).unwrap();
    let updates = fence::parse(&updates).unwrap();
    fence::allow(&updates, "polecat/nux/1").unwrap();
    fence::allow(&updates, "polecat/nux/2").unwrap_err();
}

#[test]
fn a_zombie_can_neither_commit_on_nor_move_nor_delete_the_branch_of_another() {
    let (rig, own, other) = fenced();
    let base = rig.base();
    write(own.path(), "a", "1");
    commit_everything(own.path(), "one");
    write(own.path(), "a", "2");
    let before = branches(&rig);
    let attempts: [&[&str]; 13] = [
        &["stash", "--include-untracked"],
        &["branch", "--force", "polecat/slit/2", "HEAD"],
        &["update-ref", "refs/heads/polecat/slit/1", "HEAD"],
        &["update-ref", "-d", "refs/heads/polecat/slit/1"],
        &["branch", "--move", "polecat/nux/1", "polecat/nux/9"],
        &["branch", "--move", "--force", "polecat/nux/1", "polecat/slit/1"],
        &["switch", "--create", "mine"],
        &["tag", "v1"],
        &["update-ref", "refs/remotes/origin/main", "HEAD"],
        &["update-ref", "refs/gt/rescue/gt-abc/1", "HEAD"],
        &["branch", "--delete", "--force", "polecat/slit/1"],
        &["push", "--force", ".", "HEAD:refs/heads/polecat/slit/1"],
        &["fetch", ".", "HEAD:refs/heads/stolen"],
    ];
    for attempt in attempts {
        git_fails(own.path(), attempt);
        assert_eq!(branches(&rig), before, "{attempt:?}");
    }
    assert_eq!(fs::read_to_string(own.path().join("a")).unwrap(), "2");
    // In the tree of the other one too, where the zombie believes to be at home.
    write(other.path(), "b", "1");
    git(other.path(), ["add", "--all"]);
    let said = git_fails(other.path(), ["commit", "--message", "zombie"]);
    assert!(said.contains("refs/heads/polecat/slit/1 is not yours"), "{said}");
    git_fails(other.path(), ["reset", "--hard", "polecat/nux/1"]);
    assert_eq!(other.head().unwrap(), Some(base));
    assert_eq!(branches(&rig), before);
}

#[test]
fn a_zombie_cannot_push_to_any_url() {
    let (rig, own, _) = fenced();
    write(own.path(), "a", "1");
    commit_everything(own.path(), "one");
    let origin = rig.origin();
    let said = git_fails(own.path(), ["push", origin.to_str().unwrap(), "HEAD:main"]);
    assert!(said.contains("gt done"), "{said}");
    let said = git_fails(own.path(), ["push", "origin", "HEAD:main"]);
    assert!(said.contains("gt done"), "{said}");
    assert_eq!(rig.at_origin("main"), rig.base().as_str());
}

#[test]
fn git_commands_of_gt_pass_the_fence() {
    let (rig, own, other) = fenced();
    let base = rig.base();
    write(other.path(), "b", "1");
    let commit = other.commit_all("work", &nux(), &limits()).unwrap().unwrap();
    write(own.path(), "untracked", "x");
    own.rescue(&rig.repository, "refs/gt/rescue/gt-abc/1", "lost", &nux(), 1000, None).unwrap();
    assert_eq!(
        rig.repository.push(&commit, "main", Some(&base), PUSH_TIME_MAX).unwrap(),
        Push::Done
    );
    rig.land_by_person("c", "c");
    rig.repository.fetch().unwrap();
    rig.tree("toast");
    other.recycle("polecat/slit/2", &rig.base()).unwrap();
    assert!(rig.repository.delete_branch_if_at("polecat/slit/1", &commit).unwrap());
    assert!(!rig.path("asked").exists(), "the program was called");
}

#[test]
fn without_the_program_nothing_that_is_shared_changes() {
    let (rig, own, _) = fenced();
    fs::remove_dir_all(rig.path("it's a program")).unwrap();
    write(own.path(), "a", "1");
    git(own.path(), ["add", "--all"]);
    let said = git_fails(own.path(), ["commit", "--message", "one"]);
    assert!(said.contains("it's a program/gt is missing"), "{said}");
    assert_eq!(own.head().unwrap(), Some(rig.base()));
    git(own.path(), ["switch", "--quiet", "--detach"]);
    rig.repository.install_fence(&program(&rig, "polecat/nux/1")).unwrap();
    git(own.path(), ["switch", "--quiet", "polecat/nux/1"]);
    commit_everything(own.path(), "one");
}

#[test]
fn a_project_that_brings_its_own_hooks_is_fenced_and_keeps_them() {
    let (rig, own, _) = fenced();
    let hook = own.path().join(".husky/pre-commit");
    write(own.path(), ".husky/pre-commit", "");
    let noted = rig.path("noted");
    write_program(&hook, format!("#!/bin/sh\necho ran >> '{}'\n", noted.display()));
    git(own.path(), ["config", "core.hooksPath", ".husky"]);
    rig.repository.install_fence(&program(&rig, "polecat/nux/1")).unwrap();
    // Again, as it is installed again and again.
    git(own.path(), ["config", "core.hooksPath", ".husky"]);
    rig.repository.install_fence(&program(&rig, "polecat/nux/1")).unwrap();
    git_fails(own.path(), ["branch", "stolen"]);
    write(own.path(), "a", "1");
    commit_everything(own.path(), "one");
    assert_eq!(fs::read_to_string(&noted).unwrap(), "ran\n");
    git_fails(own.path(), ["push", rig.origin().to_str().unwrap(), "HEAD:main"]);
}

#[test]
fn fence_variables_override_all_settings_in_this_repository_and_its_origin_only() {
    let (rig, own, _) = fenced();
    // Those that `git_command` brings.
    let present = ["user.name", "user.email", "protocol.file.allow"].map(str::to_owned);
    let variables = rig.repository.fence_variables(&present);
    git(own.path(), ["config", "core.hooksPath", "nowhere"]);
    let within = |directory: &Path, arguments: &[&str]| {
        let is_done = |git: &mut Command| git.args(arguments).output().unwrap().status.success();
        let fenced = variables.iter().map(|(name, value)| (name, value));
        (is_done(&mut git_command(directory)), is_done(git_command(directory).envs(fenced)))
    };
    for directory in [own.path(), rig.repository.path()] {
        let tag = ["tag", "--force", "stolen", "origin/main"];
        assert_eq!(within(directory, &tag), (true, false), "{}", directory.display());
    }
    for attempt in [
        &["branch", "--force", "stolen", "main"][..],
        &["update-ref", "refs/heads/main", "HEAD"],
        &["tag", "--force", "stolen"],
    ] {
        assert_eq!(within(&rig.origin(), attempt), (true, false), "{attempt:?}");
    }
    let elsewhere: &Path = &rig.path("fixture");
    make_repository(elsewhere, "a");
    assert_eq!(within(elsewhere, &["tag", "--force", "mine"]), (true, true));
}

#[test]
fn the_remote_is_restored_before_each_run() {
    let (rig, own, _) = fenced();
    let remote = || {
        let printed = git(own.path(), ["config", "--get-regexp", "^remote[.]"]);
        let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let before = remote();
    for change in [
        &["remote", "set-url", "origin", "elsewhere"][..],
        &["remote", "set-url", "--add", "origin", "elsewhere"],
        &["remote", "set-url", "--push", "origin", "elsewhere"],
        &["config", "remote.origin.fetch", "+refs/heads/*:refs/heads/*"],
        &["config", "--unset-all", "remote.origin.url"],
    ] {
        git(own.path(), change);
        assert_ne!(remote(), before, "{change:?}");
        rig.repository.fetch().unwrap();
        rig.repository.keep_remote().unwrap();
        assert_eq!(remote(), before, "{change:?}");
    }
}

/// A lock that a killed git has left a long time ago.
fn leave_old_lock(path: &Path) {
    let lock = fs::File::create(path).unwrap();
    lock.set_modified(SystemTime::UNIX_EPOCH).unwrap();
}

#[test]
fn settings_are_put_back_although_a_killed_git_has_left_its_lock() {
    let (rig, own, _) = fenced();
    let repository = &rig.repository;
    let before = repository.settings_file().unwrap();
    let lock = repository.path().join("config.lock");
    git(own.path(), ["config", "url.elsewhere.insteadOf", "/"]);
    fs::write(&lock, "").unwrap();

    let restored = repository.put_back_settings(&before).unwrap();

    assert_eq!(restored.names, ["url.elsewhere.insteadof"]);
    assert_eq!(restored.file, before);
    assert_eq!(repository.settings_file().unwrap(), before);
    // A git that works now keeps its lock.
    repository.free_settings();
    assert!(lock.exists());
    leave_old_lock(&lock);
    let mut at_work = git_command(own.path());
    at_work.args(["cat-file", "--batch-check"]);
    let mut at_work = at_work.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    at_work.stdin.as_ref().unwrap().write_all(b"HEAD\n").unwrap();
    let mut answer = [0];
    at_work.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
    repository.free_settings();
    assert!(lock.exists(), "the clock may have jumped");
    at_work.kill().unwrap();
    at_work.wait().unwrap();
    repository.free_settings();
    assert!(!lock.exists());
}

#[test]
fn a_reference_is_put_back_although_killed_gits_have_left_their_locks() {
    let (rig, own, _) = fenced();
    git(own.path(), ["-c", "core.hooksPath=/dev/null", "tag", "evil"]);
    for lock in ["packed-refs.lock", "refs/tags/evil.lock"] {
        leave_old_lock(&rig.repository.path().join(lock));
    }
    let tip = own.head().unwrap().unwrap();

    let kept = "refs/gt/outside/we-a/1/tags/evil";
    rig.repository.put_back_reference("refs/tags/evil", (None, Some(&tip)), kept).unwrap();

    let left =
        git(rig.repository.path(), ["for-each-ref", "--format=%(refname)", "refs/tags", "refs/gt"]);
    assert_eq!(left, kept);
}

#[test]
fn repositories_of_others_are_not_fenced() {
    let (rig, own, _) = fenced();
    let inside: &Path = &own.path().join("test-fixture");
    make_repository(inside, "a");
    git(inside, ["branch", "anything"]);
    assert!(!rig.path("asked").exists());
}

#[test]
fn a_worker_gets_newer_work_of_others_as_it_is_told_to() {
    let (rig, own, _) = fenced();
    let landed = rig.land_by_person("b", "b");
    git_fails(own.path(), ["fetch", "origin"]);
    git(own.path(), ["fetch", "--refmap=", "--no-tags", "origin", "main"]);
    git(own.path(), ["rebase", "--quiet", "FETCH_HEAD"]);
    assert_eq!(own.head().unwrap(), Some(landed));
}
