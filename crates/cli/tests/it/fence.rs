//! The fence: a worker changes its own branch while its run is live, and nothing else; only the town pushes.

use std::fs;

use gt_testkit::{FinishedProgram, Sandbox, wait_until};

use crate::agents::Stage as _;
use crate::projects::{Origin as _, STAYS, Worker, project_agent, town_with_project};
use crate::support::{Steps as _, assert_says, refusal};

#[test]
fn a_worker_does_as_it_likes_on_its_own_branch() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("one", "1\n", "One");
    worker.commit("two", "2\n", "Two");
    worker.git(&["commit", "--quiet", "--amend", "--message", "Second"]).ok();
    worker.git(&["reset", "--quiet", "--hard", "HEAD^"]).ok();
    worker.git(&["reset", "--quiet", "--hard", "HEAD@{1}"]).ok();
    worker.git(&["rebase", "--quiet", "--force-rebase", "origin/main"]).ok();
    worker.git(&["switch", "--quiet", "--detach"]).ok();
    worker.git(&["switch", "--quiet", &worker.branch]).ok();

    worker.gt(&["done"]).ok();

    assert_eq!(town.landed("main"), ["First commit", "One", "Second"]);
}

#[test]
fn a_worker_touches_nothing_that_others_share() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    let other = Worker::begin(&town, "we-b", &[]);
    worker.commit("tea", "tea\n", "Tea");
    let others = other.git(&["rev-parse", "HEAD"]).ok().stdout;
    let refused = |arguments: &[&str], parts: &[&str]| {
        let ran = worker.git(arguments);
        assert_ne!(ran.code, 0, "{arguments:?}\n{ran}");
        assert_says(&ran.stderr, parts);
    };
    let own = format!("only {} is its branch", worker.branch);
    let of_other = format!("refs/heads/{}", other.branch);

    refused(&["branch", "-f", "main", "HEAD"], &["may not change refs/heads/main", &own]);
    refused(&["branch", "aside"], &["may not change refs/heads/aside"]);
    refused(&["update-ref", &of_other, "HEAD"], &["may not change", &other.branch]);
    refused(&["tag", "v1"], &["refs/tags/v1", "ask a person to change them"]);
    refused(&["update-ref", "refs/remotes/origin/main", "HEAD"], &["gt itself keeps"]);
    refused(&["update-ref", "refs/gt/rescue/we-a/1", "HEAD"], &["gt rescue list"]);
    refused(&["push"], &["gt done"]);
    refused(&["push", "origin", "HEAD:main"], &["finish with `gt done`"]);
    let path = town.root().join("origin.git");
    refused(&["push", path.to_str().unwrap(), "HEAD:main"], &["finish with `gt done`"]);

    assert_eq!(town.origin_references(), ["refs/heads/main"]);
    assert_eq!(town.landed("main"), ["First commit"]);
    assert_eq!(other.git(&["rev-parse", "HEAD"]).ok().stdout, others);
}

#[test]
fn the_stash_is_refused_because_another_worker_could_pop_it() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("tea", "tea\n", "Tea");
    worker.write("tea", "more tea\n");

    let ran = worker.git(&["stash"]);

    assert_ne!(ran.code, 0, "{ran}");
    assert_says(&ran.stderr, &["refs/stash", "shared by all workers", "git commit -m wip"]);
    assert_eq!(fs::read_to_string(worker.tree.join("tea")).unwrap(), "more tea\n");
    // To put something aside, there is the own branch.
    worker.git(&["commit", "--quiet", "--all", "-m", "wip"]).ok();
    worker.git(&["reset", "--quiet", "HEAD^"]).ok();
    worker.gt(&["done"]).ok();
    assert_eq!(town.landed_file("tea").as_deref(), Some("more tea\n"));
}

/// A project whose agent moves the hooks away, as husky does when its packages are installed, in this way; then it tries
/// what it should not.
fn project_with_hooks_by(setting: &str) -> Sandbox {
    let script = format!(
        r#"
says_where
mkdir -p .husky
printf '#!/bin/sh\necho "$0" >> "%s/hooks"\n' "$stage" > .husky/pre-commit
chmod +x .husky/pre-commit
{setting}
(
    git branch evil; echo "branch $?"
    git update-ref refs/remotes/origin/main HEAD; echo "remote $?"
    git push "$GT_TOWN_ROOT/../origin.git" HEAD:evil; echo "push $?"
    git init --quiet ../fixture && cd ../fixture
    git commit --quiet --allow-empty -m One && git branch other; echo "elsewhere $?"
) > "$stage/tried" 2>&1
git add --all
git commit --quiet -m Hooks
"#
    );
    let town = town_with_project(&script);
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("it is closed", || town.show("we-a")["status"] == "closed");
    town
}

#[test]
fn the_fence_holds_after_a_worker_changes_the_shared_configuration() {
    for setting in [
        "git config core.hooksPath .husky",
        "git config --add core.hooksPath .husky; git config include.path ../elsewhere",
        "git sparse-checkout set --no-cone '/*'; git config --worktree core.hooksPath .husky",
    ] {
        let town = project_with_hooks_by(setting);

        let tried = fs::read_to_string(town.stage("tried")).unwrap();
        assert_says(&tried, &["branch 128", "remote 128", "push 1", "elsewhere 0"]);
        assert_says(&tried, &["may not change refs/heads/evil", "gt itself keeps"]);
        assert_eq!(town.landed("main"), ["First commit", "Hooks"]);
        // The hooks of the project are called all the same.
        let called = fs::read_to_string(town.stage("hooks")).unwrap();
        assert_eq!(called, ".husky/pre-commit\n", "{setting}");
    }
}

#[test]
fn hooks_that_a_project_puts_where_git_looks_for_them_are_called() {
    let town = project_with_hooks_by("cp .husky/pre-commit \"$GT_TOWN_ROOT/web/.repo.git/hooks/\"");

    let called = fs::read_to_string(town.stage("hooks")).unwrap();
    assert!(called.ends_with(".repo.git/hooks/pre-commit\n"), "{called}");
    let tried = fs::read_to_string(town.stage("tried")).unwrap();
    assert_says(&tried, &["branch 128", "remote 128", "push 1", "elsewhere 0"]);
}

#[test]
fn a_hook_that_a_project_puts_beside_ours_stays_there() {
    let install = "cp .husky/pre-commit \"$(git rev-parse --git-path hooks)/\"";
    let town = project_with_hooks_by(install);
    fs::remove_file(town.stage("hooks")).unwrap();
    project_agent(&town, "echo b > b; git add --all; git commit --quiet -m B");
    town.bead("we-b", &[]);
    town.gt(["sling", "we-b"]).ok();
    wait_until("it is closed", || town.show("we-b")["status"] == "closed");

    assert_eq!(town.landed("main"), ["First commit", "Hooks", "B"]);
    assert!(town.stage("hooks").exists());
}

#[test]
fn work_lands_at_the_origin_of_the_rig_after_a_worker_changes_the_remote() {
    for (remote, fetched) in [
        ("git remote set-url origin \"$GT_TOWN_ROOT/../fork.git\"", "0"),
        ("git remote set-url --push origin \"$GT_TOWN_ROOT/../fork.git\"", "0"),
        ("git config --unset-all remote.origin.url", "128"),
        // The fence keeps its branches, and so git keeps the remote.
        ("git remote remove origin", "0"),
        ("git remote rename origin \"from-$bead\"", "128"),
    ] {
        let script = format!(
            "says_where\necho \"$bead\" > \"$bead.txt\"\n\
             git fetch --refmap= --no-tags origin main; echo $? > \"$stage/$bead/before\"\n\
             {remote}\ngit fetch --refmap= --no-tags origin main; echo $? > \"$stage/$bead/after\""
        );
        let town = town_with_project(&script);
        let fork = town.root().join("fork.git");
        let clone = ["clone", "--quiet", "--bare", "../origin.git"];
        town.command("git").args(clone).arg(&fork).run().ok();
        for bead in ["we-a", "we-b"] {
            town.bead(bead, &[]);
            town.gt(["sling", bead]).ok();
            wait_until("it is closed", || town.show(bead)["status"] == "closed");
            // Each worker finds the right remote, although the one before it changed that.
            let said = |name: &str| fs::read_to_string(town.stage(bead).join(name)).unwrap();
            assert_eq!((said("before").trim(), said("after").trim()), ("0", fetched), "{remote}");
        }

        assert_eq!(town.landed("main"), ["First commit", "we-a", "we-b"], "{remote}");
        let log = ["log", "--format=%s", "main"];
        let forked = town.command("git").arg("--git-dir").arg(&fork).args(log).run().ok();
        assert_eq!(forked.stdout, "First commit\n", "{remote}");
    }
}

#[test]
fn a_worker_still_cannot_push_after_another_made_the_remote_new() {
    let town = town_with_project(STAYS);
    let first = Worker::begin(&town, "we-a", &[]);
    first.git(&["config", "--unset-all", "remote.origin.pushurl"]).ok();
    let second = Worker::begin(&town, "we-b", &[]);

    let ran = second.git(&["push", "--no-verify", "origin", "HEAD:main"]);

    assert_ne!(ran.code, 0, "{ran}");
    assert_says(&ran.stderr, &["pushing is off here"]);
    assert_eq!(town.landed("main"), ["First commit"]);
}

/// Everything that a zombie tries, and that nothing of it is left behind.
fn zombie_tries_everything(town: &Sandbox, zombie: &Worker<'_>) {
    let before = town.origin_git(&["for-each-ref"]).ok().stdout;
    let branch = zombie.git(&["rev-parse", &zombie.branch]).ok().stdout;
    let refused = |ran: FinishedProgram, parts: &[&str]| {
        assert_ne!(ran.code, 0, "{ran}");
        assert_says(&ran.stderr, parts);
    };
    let counts_no_more = &[zombie.run.as_str(), "nothing that it does counts any more"][..];

    zombie.write("zombie", "brains\n");
    zombie.git(&["add", "--all"]).ok();
    refused(zombie.git(&["commit", "--quiet", "--message", "Brains"]), counts_no_more);
    refused(zombie.git(&["branch", "-f", "main", "HEAD"]), counts_no_more);
    refused(zombie.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]), counts_no_more);
    refused(zombie.git(&["tag", "brains"]), counts_no_more);
    refused(zombie.git(&["push", "origin", "HEAD:main"]), &["gt done"]);
    let path = town.root().join("origin.git");
    refused(zombie.git(&["push", path.to_str().unwrap(), "HEAD:main"]), &["gt done"]);
    assert_says(
        &refusal(&zombie.gt(&["done"])),
        &[&zombie.run, "is cancelled already", "nothing that you do in it counts any more"],
    );

    assert_eq!(town.origin_git(&["for-each-ref"]).ok().stdout, before);
    assert_eq!(zombie.git(&["rev-parse", &zombie.branch]).ok().stdout, branch);
}

/// Begins a run, and ends it for the town while a process that left its group lives on in its tree.
fn superseded(town: &Sandbox) -> Worker<'_> {
    let zombie = Worker::begin(town, "we-a", &[]);
    zombie.commit("half", "half\n", "Half of it");
    town.gt(["run", "cancel", "we-a#1"]).ok();
    zombie
}

#[test]
fn a_zombie_changes_nothing_while_the_next_run_works() {
    let town = town_with_project(STAYS);
    let zombie = superseded(&town);
    zombie_tries_everything(&town, &zombie);
    zombie.git(&["rm", "--quiet", "-f", "zombie"]).ok();

    town.gt(["sling", "we-a"]).ok();
    let next = Worker::of(&town, "we-a#2");
    assert_ne!(next.branch, zombie.branch);
    next.write("tea", "tea\n");
    // The zombie knows where the others work, and has only its own name.
    for arguments in [&["done"][..], &["done", "--run", "we-a#2"]] {
        assert_says(&refusal(&zombie.gt(arguments)), &["we-a#1"]);
    }
    let as_zombie =
        |arguments: &[&str]| next.command("git").env("GT_RUN", "we-a#1").args(arguments).run();
    let moved = as_zombie(&["branch", "-f", &next.branch, "HEAD^"]);
    assert_ne!(moved.code, 0, "{moved}");
    assert_ne!(as_zombie(&["commit", "--quiet", "--allow-empty", "-m", "Brains"]).code, 0);

    next.gt(&["done"]).ok();

    assert_eq!(town.landed("main"), ["First commit", "we-a"]);
    assert_eq!(town.states("we-a"), ["done", "cancelled"]);
    assert_eq!(town.origin_references(), ["refs/heads/main"]);
}

#[test]
fn an_agent_that_cannot_be_ended_is_fenced_off() {
    // Its child process has left its group, closed all inherited files, ignores TERM, and was started without GT_RUN.
    let leaves = r#"
says_where
echo started > work
(
    named=$GT_RUN env --unset=GT_RUN setsid bash -c '
        trap "" TERM
        export GT_RUN=$named
        for fd in /proc/self/fd/*; do n=${fd##*/}; [ "$n" -gt 2 ] && eval "exec $n>&-"; done
        echo $$ > "$0/zombie"
        while [ -d "$0" ] && [ ! -e "$0/rise" ]; do sleep 0.02; done
        {
            echo brains > zombie
            git add --all
            git commit -m Brains; echo "commit $?"
            git branch -f main HEAD; echo "branch $?"
            git push origin HEAD:main; echo "push $?"
            gt done; echo "done $?"
        } > "$0/tried.new" 2>&1
        mv "$0/tried.new" "$0/tried"
    ' "$stage" > /dev/null 2>&1 < /dev/null &
)
wait_for "end-$bead"
"#;
    let town = town_with_project(leaves);
    // With a control group it would be ended.
    town.gt(["config", "set", "worker.control_groups", "false"]).ok();
    let first = Worker::begin(&town, "we-a", &[]);
    wait_until("it has left", || town.stage("zombie").exists());
    // Its supervisor cannot end it, because it is gone.
    town.signal("KILL", &town.supervisor_of("we-a#1"));
    town.gt(["run", "cancel", "we-a#1", "--force"]).ok();
    assert_eq!(first.state(), "cancelled");

    town.allow("rise");
    wait_until("it has tried everything", || town.stage("tried").exists());

    let tried = fs::read_to_string(town.stage("tried")).unwrap();
    assert_says(&tried, &["commit 1", "branch 128", "push 1", "done 1", "counts any more"]);
    assert_eq!(town.landed("main"), ["First commit"]);
    assert_eq!(town.origin_references(), ["refs/heads/main"]);
}

#[test]
fn work_that_is_reported_while_its_run_is_cancelled_lands_or_is_refused() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.write("tea", "tea\n");
    let done = worker.command(town.gt_path()).arg("done").start();
    wait_until("its work is committed", || {
        worker.git(&["log", "-1", "--format=%s"]).stdout.starts_with("we-a")
    });

    let cancelled = town.gt(["run", "cancel", "we-a#1"]);
    let done = done.wait();

    let (landed, status) = (town.landed("main"), town.show("we-a")["status"].clone());
    if worker.state() == "done" {
        assert_says(&cancelled.to_string(), &["we-a#1", "done"]);
        assert_eq!(landed, ["First commit", "we-a"], "{done}");
        assert_eq!(status, "closed");
    } else {
        cancelled.ok();
        assert_says(&refusal(&done), &["we-a#1", "stop"]);
        assert_eq!(landed, ["First commit"]);
        assert_eq!(status, "open");
    }
}
