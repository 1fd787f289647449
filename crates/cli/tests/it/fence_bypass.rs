//! Ways around the fence: with plain git and any flags they are refused; past it they are found, put back and told.

use std::fs;

use gt_testkit::{FinishedProgram, Sandbox, SandboxCommand, wait_until};

use crate::agents::Stage as _;
use crate::projects::{Origin as _, Worker, town_with_project};
use crate::support::{Steps as _, assert_says, texts};

/// An agent that says where it works and what its environment is, and stays.
pub(crate) const TELLS: &str = r#"
env -0 > "$stage/$bead/environment"
says_where
wait_for "end-$bead"
"#;

/// A script of the shell with the whole environment of a worker, in its tree.
pub(crate) fn as_worker(town: &Sandbox, worker: &Worker<'_>, script: &str) -> FinishedProgram {
    start_as_worker(town, worker, script).run()
}

/// The same, before it is started.
pub(crate) fn start_as_worker(town: &Sandbox, worker: &Worker<'_>, script: &str) -> SandboxCommand {
    let bead = worker.run.split('#').next().unwrap();
    let told = fs::read_to_string(town.stage(bead).join("environment")).unwrap();
    let mut shell: SandboxCommand = town.command("/bin/sh").args(["-c", script]).dir(&worker.tree);
    for (name, value) in told.split('\0').filter_map(|entry| entry.split_once('=')) {
        shell = shell.env(name, value);
    }
    let origin = town.root().join("origin.git");
    shell.env("ORIGIN", origin).env("SCRATCH", town.root().join("scratch"))
}

/// Ways to push with the system's git, with flags and settings of all kinds.
const PUSHES: [&str; 27] = [
    "git push --no-verify \"$ORIGIN\" HEAD:main",
    "git push --no-verify \"file://$ORIGIN\" HEAD:main",
    "git push --no-verify origin HEAD:main",
    "git -c remote.origin.pushurl=\"$ORIGIN\" push --no-verify origin HEAD:main",
    "git -c remote.x.url=\"$ORIGIN\" push --no-verify x HEAD:main",
    "git -c url.\"$ORIGIN\".insteadOf=there push --no-verify there HEAD:main",
    "git send-pack \"$ORIGIN\" HEAD:refs/heads/main",
    "/usr/bin/env git send-pack --force \"$ORIGIN\" HEAD:refs/heads/main",
    "git -c core.hooksPath= push \"$ORIGIN\" HEAD:main",
    "git -c core.hooksPath=/dev/null -c protocol.file.allow=always push --no-verify \"$ORIGIN\" HEAD:main",
    "NOTHING= git --config-env=core.hooksPath=NOTHING push --no-verify \"$ORIGIN\" HEAD:main",
    "n=$GIT_CONFIG_COUNT; export GIT_CONFIG_KEY_$n=core.hooksPath GIT_CONFIG_VALUE_$n= GIT_CONFIG_COUNT=$((n + 1)); \
     git push \"$ORIGIN\" HEAD:main",
    "GIT_CONFIG_PARAMETERS=\"'core.hooksPath='\" git push \"$ORIGIN\" HEAD:main",
    "bash -lc 'git push --no-verify \"$ORIGIN\" HEAD:main'",
    "bash -c 'PATH=/usr/bin:/bin; git push --no-verify \"$ORIGIN\" HEAD:main'",
    "sh -lc 'git push --no-verify \"$ORIGIN\" HEAD:main'",
    "env -u PATH git push --no-verify \"$ORIGIN\" HEAD:main",
    "env -u GIT_CONFIG_COUNT git push --no-verify \"$ORIGIN\" HEAD:main",
    "env -u GIT_ALLOW_PROTOCOL git push --no-verify \"$ORIGIN\" HEAD:main",
    "git -c alias.up='push --no-verify' up \"$ORIGIN\" HEAD:main",
    "git -c alias.up='!git push --no-verify' up \"$ORIGIN\" HEAD:main",
    "git -C . --git-dir=\"$(git rev-parse --git-dir)\" push --no-verify \"$ORIGIN\" HEAD:main",
    "git --exec-path=\"$(git --exec-path)\" push --no-verify \"$ORIGIN\" HEAD:main",
    "git push --no-verify --receive-pack=\"$(git --exec-path)/git-receive-pack\" \"$ORIGIN\" HEAD:main",
    "git rebase --quiet --exec 'git push --no-verify \"$ORIGIN\" HEAD:main' HEAD^; code=$?; git rebase --abort; exit $code",
    "rm -rf \"$SCRATCH\"; git clone --quiet . \"$SCRATCH\" && cd \"$SCRATCH\" && git push --no-verify \"$ORIGIN\" HEAD:main",
    "here=$PWD; git --git-dir=\"$ORIGIN\" fetch \"$here\" HEAD:evil",
];

fn tries_every_push(town: &Sandbox, worker: &Worker<'_>) {
    let before = town.origin_git(&["for-each-ref"]).ok().stdout;
    for push in PUSHES {
        let ran = as_worker(town, worker, push);
        assert_ne!(ran.code, 0, "{push}\n{ran}");
        assert_eq!(town.origin_git(&["for-each-ref"]).ok().stdout, before, "{push}\n{ran}");
    }
}

#[test]
fn git_with_any_flags_pushes_nothing_for_a_live_run() {
    let town = town_with_project(TELLS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("tea", "tea\n", "Tea");

    tries_every_push(&town, &worker);

    let said = as_worker(&town, &worker, "git push --no-verify \"$ORIGIN\" HEAD:main").stderr;
    assert_says(&said, &["workers do not push", "gt done"]);
    as_worker(&town, &worker, "gt done").ok();
    assert_eq!(town.landed("main"), ["First commit", "Tea"]);
}

#[test]
fn git_with_any_flags_pushes_nothing_for_a_run_that_is_over() {
    let town = town_with_project(TELLS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("tea", "tea\n", "Tea");
    town.gt(["run", "cancel", "we-a#1"]).ok();

    tries_every_push(&town, &worker);

    assert_eq!(town.landed("main"), ["First commit"]);
}

/// Ways to let a git that reads from other repositories start a program, `$SCRATCH/chosen`.
const CHOSEN_PROGRAMS: [&str; 26] = [
    "git -c remote.origin.uploadpack=\"$SCRATCH/chosen\" fetch origin",
    "git -c core.sshCommand=\"$SCRATCH/chosen\" ls-remote ssh://nowhere.invalid/x",
    "GIT_SSH_COMMAND=\"$SCRATCH/chosen\" git ls-remote ssh://nowhere.invalid/x",
    "GIT_SSH=\"$SCRATCH/chosen\" git ls-remote ssh://nowhere.invalid/x",
    "git -c core.gitProxy=\"$SCRATCH/chosen\" ls-remote git://nowhere.invalid/x",
    "GIT_PROXY_COMMAND=\"$SCRATCH/chosen\" git ls-remote git://nowhere.invalid/x",
    "git -c protocol.ext.allow=always ls-remote \"ext::$SCRATCH/chosen\"",
    "git -c core.fsmonitor=\"$SCRATCH/chosen\" pull origin main; false",
    "git -c core.alternateRefsCommand=\"$SCRATCH/chosen\" fetch --refmap= origin main; false",
    "git clone --quiet --templ=\"$SCRATCH/template\" \"$ORIGIN\" \"$SCRATCH/one\"; false",
    "git clone --quiet -c core.hooksPath=\"$SCRATCH/template/hooks\" \"$ORIGIN\" \"$SCRATCH/two\"; false",
    "HOME=\"$SCRATCH\" git ls-remote ssh://nowhere.invalid/x",
    "PATH=\"$SCRATCH/bin:$PATH\" git ls-remote ssh://nowhere.invalid/x",
    "git clone --quiet \"$ORIGIN\" \"$SCRATCH/three\" && cd \"$SCRATCH/three\" && mkdir -p .git/hooks && \
     ln -s \"$SCRATCH/chosen\" .git/hooks/post-merge && git reset --quiet --hard HEAD && git pull origin main; false",
    "git clone --quiet --u \"$SCRATCH/chosen\" \"$ORIGIN\" \"$SCRATCH/four\"",
    "git clone -qu \"$SCRATCH/chosen\" \"$ORIGIN\" \"$SCRATCH/five\"",
    "git clone -qccore.sshCommand=\"$SCRATCH/chosen\" ssh://nowhere.invalid/x \"$SCRATCH/six\"",
    "git clone --con core.sshCommand=\"$SCRATCH/chosen\" ssh://nowhere.invalid/x \"$SCRATCH/seven\"",
    "git -c init.templateDir=\"$SCRATCH/template\" clone ssh://nowhere.invalid/x \"$SCRATCH/eight\"",
    "git -c includeIf.gitdir:\"$SCRATCH/nine/.git\".path=\"$SCRATCH/.gitconfig\" clone ssh://nowhere.invalid/x \"$SCRATCH/nine\"",
    "GIT_SEQUENCE_EDITOR=\"$SCRATCH/chosen\" git pull --refmap= --no-tags --rebase=interactive origin main; \
     git rebase --abort; false",
    "git clone --quiet \"$ORIGIN\" \"$SCRATCH/ten\" && cd \"$SCRATCH/ten\" && git switch --quiet --create other && \
     git commit --quiet --allow-empty -m A && git switch --quiet main && git commit --quiet --allow-empty -m B && \
     git -c commit.gpgSign=true -c gpg.format=ssh -c gpg.ssh.defaultKeyCommand=\"$SCRATCH/chosen\" pull --no-rebase . other; false",
    "hooks=$(git rev-parse --git-path hooks); ln -sf \"$SCRATCH/chosen\" \"$hooks/post-merge\"; \
     later=$(git commit-tree -p HEAD -m Later HEAD:); git pull --refmap= --no-tags --no-rebase . $later; rm \"$hooks/post-merge\"; false",
    "git clone --quiet \"$ORIGIN\" \"$SCRATCH/p\" && cd \"$SCRATCH/p\" && \
     git -c protocol.file.allow=always submodule --quiet add \"$ORIGIN\" below && \
     git config --file .git/modules/below/config remote.origin.uploadpack \"$SCRATCH/chosen\" && git fetch --recurse-submodules=yes",
    "git clone --quiet \"$ORIGIN\" \"$SCRATCH/q\" && cd \"$SCRATCH/q\" && \
     git -c protocol.file.allow=always submodule --quiet add \"$ORIGIN\" below && mv .git/modules/below \"$SCRATCH/elsewhere\" && \
     echo \"gitdir: $SCRATCH/elsewhere\" > below/.git && git config --file \"$SCRATCH/elsewhere/config\" --unset core.worktree; \
     git config --file \"$SCRATCH/elsewhere/config\" remote.origin.uploadpack \"$SCRATCH/chosen\" && git submodule update --remote",
    "script -qec \"git -c pager.ls-remote='$SCRATCH/chosen' ls-remote origin\" /dev/null; false",
];

/// Makes the program, as a hook and as `ssh`, too. It tells what it may do, and pushes.
const MAKE_CHOSEN_PROGRAM: &str = r#"
rm -rf "$SCRATCH"; mkdir -p "$SCRATCH/template/hooks" "$SCRATCH/bin"
printf '#!/bin/sh\nenv >> "%s/ran"\nunset GIT_DIR; cd "%s" && git push --no-verify "%s" HEAD:main\nexit 1\n' \
    "$SCRATCH" "$PWD" "$ORIGIN" > "$SCRATCH/chosen"
chmod +x "$SCRATCH/chosen"
ln -s ../../chosen "$SCRATCH/template/hooks/post-checkout"
printf '[core]\n\tsshCommand = %s/chosen\n' "$SCRATCH" > "$SCRATCH/template/config"
ln -s ../chosen "$SCRATCH/bin/ssh"
printf '[core]\n\tsshCommand = %s/chosen\n' "$SCRATCH" > "$SCRATCH/.gitconfig"
"#;

#[test]
fn a_program_that_a_worker_lets_git_start_has_neither_leave_to_push_nor_credentials() {
    let town = town_with_project(TELLS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("tea", "tea\n", "Tea");
    let tries_all = || {
        for chosen in CHOSEN_PROGRAMS {
            as_worker(&town, &worker, MAKE_CHOSEN_PROGRAM).ok();
            let ran = as_worker(&town, &worker, chosen);
            assert_ne!(ran.code, 0, "{chosen}\n{ran}");
            let ran_with = fs::read_to_string(town.root().join("scratch/ran")).unwrap_or_default();
            for line in ran_with.lines().filter(|line| line.starts_with("GIT_ALLOW_PROTOCOL=")) {
                assert_says(line, &["none-because-gt-done-lands"]);
            }
            assert_eq!(town.landed("main"), ["First commit"], "{chosen}\n{ran}");
        }
    };
    tries_all();
    town.gt(["run", "cancel", "we-a#1"]).ok();
    tries_all();
}

/// Ways to change what others share with the hooks switched off.
const CHANGES: [&str; 5] = [
    "git -c core.hooksPath= branch evil",
    "git -c core.hooksPath=/dev/null update-ref refs/heads/evil HEAD",
    "n=$GIT_CONFIG_COUNT; export GIT_CONFIG_KEY_$n=core.hooksPath GIT_CONFIG_VALUE_$n= GIT_CONFIG_COUNT=$((n + 1)); \
     git branch evil",
    "bash -lc 'git -c core.hooksPath= branch evil'",
    "GIT_CONFIG_PARAMETERS=\"'core.hooksPath=/dev/null'\" git branch evil",
];

#[test]
fn hooks_that_a_worker_switches_off_stay_on() {
    let town = town_with_project(TELLS);
    let worker = Worker::begin(&town, "we-a", &[]);
    let refused = |parts: &[&str]| {
        for change in CHANGES {
            let ran = as_worker(&town, &worker, change);
            assert_ne!(ran.code, 0, "{change}\n{ran}");
            assert_says(&ran.stderr, parts);
        }
    };
    refused(&["may not change refs/heads/evil"]);
    let nameless = as_worker(&town, &worker, "env -u GT_RUN git branch evil");
    assert_ne!(nameless.code, 0, "{nameless}");
    town.gt(["run", "cancel", "we-a#1"]).ok();
    refused(&["nothing that it does counts any more"]);
}

#[test]
fn a_worker_reads_from_other_repositories_and_pushes_between_its_own() {
    let town = town_with_project(TELLS);
    let worker = Worker::begin(&town, "we-a", &[]);
    for deed in [
        "git fetch --refmap= --no-tags origin main",
        "git ls-remote origin",
        "git clone --quiet \"$ORIGIN\" \"$SCRATCH/clone\"",
        "bash -lc 'git ls-remote origin'",
        "mkdir -p \"$SCRATCH\" && cd \"$SCRATCH\" && git init --quiet --bare there.git && git init --quiet here && cd here \
         && git commit --quiet --allow-empty -m One && git push --quiet ../there.git HEAD:main \
         && git --git-dir=../there.git rev-parse main",
    ] {
        as_worker(&town, &worker, deed).ok();
    }
}

#[test]
fn a_login_shell_that_sets_path_anew_finds_gt_and_git() {
    let town = town_with_project(TELLS);
    let worker = Worker::begin(&town, "we-a", &[]);
    let home = town.root().join("home");
    fs::write(home.join(".bash_profile"), "PATH=/usr/local/bin:/usr/bin:/bin; export PATH\n")
        .unwrap();

    let found = as_worker(&town, &worker, "bash -lc 'command -v gt bd git'").ok().stdout;

    let bin = town.cwd().join(".gt/bin");
    let wanted: Vec<String> =
        ["gt", "bd", "git"].iter().map(|name| bin.join(name).display().to_string()).collect();
    assert_eq!(found.lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn a_worker_has_no_credential_of_the_origin_and_gt_done_has() {
    let town = town_with_project(TELLS);
    town.bead("we-a", &[]);
    let sling = town.start_gt(&["sling", "we-a"]);
    sling.env("SSH_AUTH_SOCK", "/run/agent").env("GH_TOKEN", "secret").run().ok();
    let worker = Worker::of(&town, "we-a#1");
    let told = as_worker(&town, &worker, "echo \"<$SSH_AUTH_SOCK$GH_TOKEN>\"").ok();
    assert_eq!(told.line(), "<>");
    // The hook of the origin is a child of our git, and has its environment.
    town.origin_hook("pre-receive", "echo \"$SSH_AUTH_SOCK $GH_TOKEN\" > \"$stage/seen\"");
    worker.write("tea", "tea\n");

    as_worker(&town, &worker, "export HOME=/nowhere GIT_CONFIG_GLOBAL=/dev/null; gt done").ok();

    assert_eq!(fs::read_to_string(town.stage("seen")).unwrap(), "/run/agent secret\n");
    // They are not kept longer than the run.
    let kept = town.cwd().join(".gt/runs/we-a#1.environment");
    wait_until("the environment is forgotten", || !kept.exists());
}

#[test]
fn an_agent_starts_with_the_directory_of_its_tree_and_nothing_of_its_callers() {
    let town = town_with_project(TELLS);
    town.gt(["config", "set", "rig.web.command", "env"]).ok();
    town.bead("we-a", &[]);
    let sling = town.start_gt(&["sling", "we-a"]);
    sling.env("PWD", "/somewhere/else").env("OLDPWD", "/before").run().ok();
    wait_until("it has ended", || town.run_of("we-a#1")["alive"] == false);

    let log = town.gt(["run", "log", "we-a#1"]).ok().stdout;

    let tree = town.run_of("we-a#1")["tree"].as_str().unwrap().to_owned();
    let place = log.lines().find_map(|line| line.strip_prefix("PWD=")).unwrap();
    assert!(place.ends_with(&tree), "{place} {tree}");
    assert!(!log.contains("OLDPWD"), "{log}");
}

/// The items under *Needs you*, as one text.
fn needs(town: &Sandbox) -> String {
    town.gt_json(&["status"])["needs_you"].to_string()
}

#[test]
fn commits_that_a_worker_pushes_with_an_environment_of_its_own_are_told() {
    // The settings of a person, and no other.
    let pushes = r#"
says_where
echo tea > tea; git add tea; git commit --quiet -m "Tea past the fence"
env -i PATH=/usr/bin:/bin git push --quiet --no-verify "$GT_TOWN_ROOT/../origin.git" HEAD:main
"#;
    let town = town_with_project(pushes);
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("a person is told", || needs(&town).contains("no landing brought there"));

    let told = needs(&town);
    assert_says(&told, &["main at the origin of web", "we-a#1", "Tea past the fence"]);
    // It is told once.
    town.gt(["mail", "inbox"]).ok();
    crate::projects::project_agent(&town, "echo b > b");
    town.bead("we-b", &[]);
    town.gt(["sling", "we-b"]).ok();
    wait_until("it is closed", || town.show("we-b")["status"] == "closed");
    let rows = town.gt_json(&["inbox"]);
    let is_told = |row: &&serde_json::Value| row["body"].to_string().contains("no landing");
    let told: Vec<_> = rows.as_array().unwrap().iter().filter(is_told).collect();
    assert_eq!((told.len(), &told[0]["code"]), (1, &serde_json::json!("foreign-commits")));
    let read = told[0]["commands"][0].as_str().unwrap().strip_prefix("gt ").unwrap().to_owned();
    town.gt(read.split(' ')).ok();
    assert!(!texts(&town.gt_json(&["inbox"]), "code").contains(&"foreign-commits".to_owned()));
}

#[test]
fn landed_commits_that_a_push_takes_away_are_told() {
    let town = town_with_project("says_where\necho \"$bead\" > \"$bead\"");
    let first = town.origin_git(&["rev-parse", "main"]).ok().line().to_owned();
    let lands = |bead: &str| {
        town.bead(bead, &[]);
        town.gt(["sling", bead]).ok();
        wait_until("it is closed", || town.show(bead)["status"] == "closed");
    };
    lands("we-a");

    town.origin_git(&["update-ref", "refs/heads/main", &first]).ok();
    lands("we-b");

    wait_until("a person is told", || needs(&town).contains("no longer has commits"));
    assert_says(&needs(&town), &["main at the origin of web", "that gt landed", "we-a"]);
}

#[test]
fn commits_of_people_raise_nothing_even_if_a_worker_takes_them() {
    let town = town_with_project(TELLS);
    let worker = Worker::begin(&town, "we-a", &[]);
    town.person_lands("theirs", "1\n");
    as_worker(
        &town,
        &worker,
        "git fetch --quiet --refmap= --no-tags origin main && git merge --quiet FETCH_HEAD && echo mine > mine && gt done",
    )
    .ok();
    town.person_lands("theirs", "2\n");
    wait_until("it has ended", || town.run_of("we-a#1")["alive"] == false);
    crate::projects::project_agent(&town, "echo b > b");
    town.bead("we-b", &[]);
    town.gt(["sling", "we-b"]).ok();
    wait_until("it is closed", || town.show("we-b")["status"] == "closed");

    assert_eq!(needs(&town), "[]");
}

#[test]
fn changes_of_the_shared_repository_past_the_fence_are_undone_and_told() {
    let meddles = r#"
says_where
past() { env -i PATH=/usr/bin:/bin HOME=/nowhere GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b git -c core.hooksPath=/dev/null "$@"; }
past tag evil
past branch evil
past update-ref refs/replace/0123456789012345678901234567890123456789 HEAD
past config url.elsewhere.insteadOf "$GT_TOWN_ROOT"
past config core.excludesFile everything
past config core.hooksPath .husky
echo "$bead" > "$bead"
"#;
    let town = town_with_project(meddles);
    let repository = town.cwd().join("web/.repo.git");
    let git = |arguments: &[&str]| {
        town.command("git").arg("--git-dir").arg(&repository).args(arguments).run()
    };
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("a person is told", || needs(&town).contains("past gt, and is put back"));

    assert_says(
        &needs(&town),
        &[
            "refs/tags/evil",
            "refs/heads/evil",
            "refs/replace/",
            "url.elsewhere.insteadof",
            "we-a#1",
        ],
    );
    let left = git(&["for-each-ref", "refs/tags", "refs/replace", "refs/heads/evil"]).ok();
    assert_eq!(left.stdout, "");
    let file = repository.join("config");
    let setting = |name: &str| git(&["config", "--file", file.to_str().unwrap(), name]);
    setting("core.excludesFile").fails(1);
    // Where a project has its hooks is its own.
    assert_eq!(setting("core.hooksPath").ok().line(), ".husky");
    git(&["rev-parse", "--verify", "refs/gt/outside/we-a/1/heads/evil"]).ok();
}

#[test]
fn a_branch_of_another_run_that_a_worker_moves_is_put_back() {
    let town = town_with_project(TELLS);
    let other = Worker::begin(&town, "we-b", &[]);
    other.commit("tea", "tea\n", "Tea");
    let before = other.git(&["rev-parse", "HEAD"]).ok().stdout;
    let worker = Worker::begin(&town, "we-a", &[]);
    let moved = format!(
        "/usr/bin/git -c core.hooksPath=/dev/null update-ref refs/heads/{} HEAD && echo a > a && gt done",
        other.branch
    );
    as_worker(&town, &worker, &moved).ok();
    wait_until("a person is told", || needs(&town).contains(&other.branch));

    assert_eq!(other.git(&["rev-parse", "HEAD"]).ok().stdout, before);
}

#[test]
fn settings_with_which_git_fails_are_put_back_before_the_next_worker_and_told_once() {
    let town = town_with_project(TELLS);
    let other = Worker::begin(&town, "we-b", &[]);
    for setting in [
        ["extensions.worktreeConfig", "true"],
        ["core.repositoryFormatVersion", "99"],
        ["commit.gpgSign", "true"],
    ] {
        let file = town.cwd().join("web/.repo.git/config");
        other.git(&["config", "--file", file.to_str().unwrap(), setting[0], setting[1]]).ok();
    }

    let worker = Worker::begin(&town, "we-a", &[]);
    as_worker(&town, &worker, "echo a > a && git add a && git commit --quiet -m A && gt done").ok();

    wait_until("it is closed", || town.show("we-a")["status"] == "closed");
    wait_until("it has ended", || town.run_of("we-a#1")["alive"] == false);
    let told = needs(&town);
    let names = ["extensions.worktreeconfig", "core.repositoryformatversion", "commit.gpgsign"];
    assert_says(&told, &names);
    assert_says(&told, &["At work then: we-b#1"]);
    let rows = town.gt_json(&["status"])["needs_you"].as_array().map_or(0, Vec::len);
    assert_eq!(rows, 1, "{told}");
}
