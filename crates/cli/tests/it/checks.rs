//! `gt rig check`: what must pass before work lands, and how it is run.

use std::fs;

use gt_testkit::{FinishedProgram, Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::{Stage as _, is_alive};
use crate::support::{Steps as _, assert_says, keys, refusal, texts, town};
use crate::trees::{Trees as _, WAIT, git, town_with_trees};

/// Steps of tests with checks.
trait Checks {
    /// Adds a check to `web` with these flags.
    fn add_check(&self, name: &str, command: &str, flags: &[&str]);
    /// Runs the checks of `web` on this commit.
    fn check(&self, commit: &str) -> FinishedProgram;
    /// The same as JSON, with the exit status.
    fn check_json(&self, commit: &str, code: i32) -> Value;
    /// One more commit on the main branch of the origin, with these files; its id.
    fn commit(&self, files: &[(&str, &str)]) -> String;
    /// The lines that checks have written to the file `seen` in the town.
    fn seen(&self) -> Vec<String>;
}

impl Checks for Sandbox {
    #[track_caller]
    fn add_check(&self, name: &str, command: &str, flags: &[&str]) {
        self.start_gt(&["rig", "check", "add", "web", name, command]).args(flags).run().ok();
    }

    fn check(&self, commit: &str) -> FinishedProgram {
        self.gt(["rig", "check", "run", commit, "--rig", "web"])
    }

    #[track_caller]
    fn check_json(&self, commit: &str, code: i32) -> Value {
        let ran = self.gt(["rig", "check", "run", commit, "--rig", "web", "--json"]);
        if code == 0 { ran.ok().json() } else { ran.fails(code).json() }
    }

    #[track_caller]
    fn commit(&self, files: &[(&str, &str)]) -> String {
        let seed = self.root().join("seed");
        for (name, text) in files {
            fs::create_dir_all(seed.join(name).parent().unwrap()).unwrap();
            fs::write(seed.join(name), text).unwrap();
        }
        git(self, &seed, &["add", "--all"]);
        git(self, &seed, &["commit", "--quiet", "--message", "More"]);
        let origin = self.root().join("origin.git").display().to_string();
        git(self, &seed, &["push", "--quiet", &origin, "HEAD:main"]);
        git(self, &seed, &["rev-parse", "HEAD"])
    }

    fn seen(&self) -> Vec<String> {
        let text = fs::read_to_string(self.cwd().join("seen")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
fn checks_are_added_listed_and_removed_in_their_order() {
    let town = town_with_trees("process");
    let none = town.gt(["rig", "check", "list", "web"]).ok();
    assert_says(&none.stdout, &["No checks yet", "gt rig check add web"]);

    town.add_check("lint", "npm run lint", &["--timeout", "90s", "--paths", "src/**"]);
    let added = town.gt(["rig", "check", "add", "web", "test", "npm test", "--retry", "1"]).ok();
    assert_says(&added.stdout, &["test passes: npm test"]);
    let again = town.gt(["rig", "check", "add", "web", "test", "npm test", "--retry", "1"]).ok();
    assert_says(&again.stdout, &["nothing to do"]);
    let other = town.gt(["rig", "check", "add", "web", "test", "npm run other"]);
    assert_says(&refusal(&other), &["gt rig check remove web test"]);

    let listed = town.gt_json(&["rig", "check", "list", "web"]);
    assert_eq!(texts(&listed, "name"), ["lint", "test"]);
    let lint = &listed[0];
    assert_eq!(keys(lint), ["command", "definition", "name", "paths", "retry", "rig", "timeout"]);
    assert_eq!(lint["timeout"], "1m30s");
    assert_eq!(lint["paths"], json!(["src/**"]));
    assert_eq!((&listed[1]["retry"], &listed[1]["timeout"]), (&json!(1), &json!("10m")));
    assert_says(&town.gt(["rig", "check", "list"]).ok().stdout, &["npm run lint", "1m30s"]);

    town.gt(["rig", "check", "remove", "web", "lint"]).ok();
    assert_eq!(texts(&town.gt_json(&["rig", "check", "list"]), "name"), ["test"]);
    let gone = refusal(&town.gt(["rig", "check", "remove", "web", "lint"]));
    assert_says(&gone, &["no check \"lint\"", "its checks: test"]);
    town.gt(["rig", "check", "remove", "web", "test"]).ok();
    assert_eq!(town.gt_json(&["config", "get", "rig.web.checks"])["value"], "");
}

#[test]
fn wrong_checks_are_refused() {
    let town = town_with_trees("process");
    town.gt(["rig", "add", "errands"]).ok();
    for (words, says) in [
        (vec!["web", "a b", "true"], "not the name of a check"),
        (vec!["web", "test", " "], "needs a command"),
        (vec!["web", "test", "true", "--timeout", "1ms"], "time limit"),
        (vec!["web", "test", "true", "--retry", "4"], "0..=3"),
        (vec!["web", "test", "true", "--paths", "[a]"], "not a pattern of paths"),
        (vec!["errands", "test", "true"], "no repository"),
        (vec!["nothing", "test", "true"], "not found"),
    ] {
        let said = town.start_gt(&["rig", "check", "add"]).args(&words).run();
        assert_ne!(said.code, 0, "{words:?}");
        assert_says(&said.stderr, &[says]);
    }
    let said = refusal(&town.gt(["config", "set", "rig.web.checks", "npm test"]));
    assert_says(&said, &["not a list of checks", "gt rig check add"]);
    let said = refusal(&town.gt(["rig", "check", "run", "main", "--rig", "web"]));
    assert_says(&said, &["has no checks", "gt rig check add web"]);
}

#[test]
fn a_new_rig_is_told_the_checks_that_its_files_suggest() {
    let town = town();
    let project = town.git_repository("project");
    fs::write(project.join("package.json"), r#"{"scripts": {"test": "jest", "lint": "x"}}"#)
        .unwrap();
    fs::write(project.join("Cargo.toml"), "[package]").unwrap();
    git(&town, &project, &["add", "--all"]);
    git(&town, &project, &["commit", "--quiet", "--message", "Tests"]);
    let path = project.display().to_string();

    let told = town.gt(["rig", "add", "web", &path]).ok().stdout;
    let lines = [
        "gt rig check add web lint \"npm run lint\"",
        "gt rig check add web test \"npm test\"",
        "gt rig check add web cargo-test \"cargo test\"",
    ];
    assert_says(&told, &["lands unchecked"]);
    assert_says(&told, &lines);
    assert_eq!(town.gt_json(&["rig", "check", "list", "web"]), json!([]));
    let advice = town.gt(["doctor", "--json"]);
    let advice: Value = advice.json();
    let advice = advice.as_array().unwrap().iter().find(|one| one["check"] == "checks").unwrap();
    assert_eq!(advice["grade"], "good");
    assert_says(advice["fix"].as_str().unwrap(), &lines);

    town.gt(["rig", "add", "taken", &path, "--prefix", "ta", "--checks", "auto"]).ok();
    let taken = town.gt_json(&["rig", "check", "list", "taken"]);
    assert_eq!(texts(&taken, "command"), ["npm run lint", "npm test", "cargo test"]);
}

#[test]
fn checks_pass_or_fail_on_the_commit_that_is_named() {
    let town = town_with_trees("process");
    let good = town.commit(&[("answer", "42")]);
    let bad = town.commit(&[("answer", "41")]);
    town.add_check("first", "true", &[]);
    town.add_check(
        "answer",
        "echo looking; grep -q 42 answer || { echo wrong answer; exit 7; }",
        &[],
    );
    town.add_check("last", "true", &[]);

    let passed = town.check(&good).ok().stdout;
    assert_says(&passed, &["✓ first passed", "✓ answer passed", "✓ last passed", &good[..12]]);

    let failed = town.check(&bad).fails(1).stdout;
    assert_says(&failed, &["✗ answer failed", "exit status 7", "wrong answer", "log: "]);
    assert!(!failed.contains("last"), "{failed}");
    let log = failed.lines().find_map(|line| line.trim().strip_prefix("log: ")).unwrap();
    assert_eq!(fs::read_to_string(log).unwrap(), "looking\nwrong answer\n");

    let report = town.check_json("main", 1);
    let answer = &report[1];
    assert_eq!((&answer["result"], &answer["exit_code"]), (&json!("failed"), &json!(7)));
    assert_eq!(answer["commit"], bad);
    assert_eq!(answer["last_lines"], json!(["looking", "wrong answer"]));

    // The name of a branch means the commit that the origin has now.
    let mended = town.commit(&[("answer", "42 again")]);
    assert_eq!(town.check_json("main", 0)[1]["commit"], mended);
}

#[test]
fn a_pass_on_the_same_contents_runs_nothing_again() {
    let town = town_with_trees("process");
    let first = town.commit(&[("src/a", "1"), ("docs/b", "1")]);
    town.add_check("all", "echo all >> \"$GT_TOWN_ROOT/seen\"", &[]);
    town.add_check("part", "echo part >> \"$GT_TOWN_ROOT/seen\"", &["--paths", "src/**"]);
    town.check(&first).ok();
    assert_eq!(town.seen(), ["all", "part"]);

    let again = town.check_json(&first, 0);
    assert_eq!(texts(&again, "result"), ["passed", "passed"]);
    assert!(again.as_array().unwrap().iter().all(|report| report["cached"] == true));
    assert_eq!(town.seen().len(), 2, "a cached pass runs nothing");

    // The tree is another one, the files of the second check are not.
    let docs = town.commit(&[("docs/b", "2")]);
    assert_says(&town.check(&docs).ok().stdout, &["✓ all passed on", "✓ part passed before"]);
    assert_eq!(town.seen(), ["all", "part", "all"]);
    let source = town.commit(&[("src/a", "2")]);
    town.check(&source).ok();
    assert_eq!(town.seen(), ["all", "part", "all", "all", "part"]);
    // The first tree again, in another commit.
    let back = town.commit(&[("src/a", "1"), ("docs/b", "1")]);
    town.check(&back).ok();
    assert_eq!(town.seen().len(), 5);

    // Another definition, setup or overlay is another check.
    town.gt(["config", "set", "rig.web.setup", "true"]).ok();
    town.check(&first).ok();
    assert_eq!(town.seen().len(), 7);
    town.make_dir("over");
    town.write("over/settings.local", "one");
    town.gt(["config", "set", "rig.web.overlay", "over"]).ok();
    town.check(&first).ok();
    assert_eq!(town.seen().len(), 9);
    town.write("over/settings.local", "two");
    town.check(&first).ok();
    assert_eq!(town.seen().len(), 11);
    town.gt(["rig", "check", "remove", "web", "part"]).ok();
    town.add_check("part", "echo part >> \"$GT_TOWN_ROOT/seen\"", &["--paths", "docs/**"]);
    town.check(&first).ok();
    assert_eq!(town.seen().len(), 12);
}

#[test]
fn failures_and_errors_are_not_cached() {
    let town = town_with_trees("process");
    town.add_check(
        "once",
        "echo try >> \"$GT_TOWN_ROOT/seen\"; test -e \"$GT_TOWN_ROOT/mended\"",
        &[],
    );
    town.check("main").fails(1);
    town.check("main").fails(1);
    assert_eq!(town.seen().len(), 2);
    town.write("mended", "");
    town.check("main").ok();
    town.check("main").ok();
    assert_eq!(town.seen().len(), 3);
}

#[test]
fn a_check_over_its_time_limit_is_ended_with_everything_that_it_started() {
    let town = town_with_trees("process");
    let command = "setsid sleep 600 & echo $! > \"$GT_TOWN_ROOT/child\"; sleep 600";
    town.add_check("hangs", command, &["--timeout", "1s"]);
    let said = town.check("main").fails(3).stdout;
    assert_says(&said, &["! hangs says nothing", "time limit of 1s"]);
    assert_eq!(town.check_json("main", 3)[0]["error"], "timeout");
    let child = fs::read_to_string(town.cwd().join("child")).unwrap();
    wait_until("the child is gone", || !is_alive(child.trim()));
}

#[test]
fn a_process_that_a_passing_check_leaves_is_ended() {
    let town = town_with_trees("process");
    let command = "trap '' HUP; setsid sleep 600 & echo $! > \"$GT_TOWN_ROOT/child\"; exit 0";
    town.add_check("leaves", command, &[]);
    town.check("main").ok();
    let child = fs::read_to_string(town.cwd().join("child")).unwrap();
    assert!(!is_alive(child.trim()));
}

#[test]
fn what_a_check_leaves_is_gone_before_the_next_but_ignored_files_stay() {
    let town = town_with_trees("process");
    town.commit(&[("kept", "as committed")]);
    let leaves = "echo x > left; mkdir -p deep/in; echo x > deep/in/left; git init -q nested; echo x > nested/file; \
                  echo changed > kept; git config core.hooksPath /nowhere; echo cache > build.log; chmod -R a-w deep";
    town.add_check("leaves", leaves, &[]);
    let sees = "git status --porcelain; ls -A > \"$GT_TOWN_ROOT/files\"; test ! -e left && test ! -e deep && \
                test ! -e nested && grep -q committed kept && grep -q cache build.log && test -z \"$(git status --porcelain)\"";
    town.add_check("sees", sees, &[]);
    town.check("main").ok();
}

#[test]
fn a_tree_that_a_check_has_broken_is_made_anew() {
    let town = town_with_trees("process");
    town.add_check("breaks", "rm -rf .git; echo x > left", &[]);
    town.add_check("works", "test ! -e left && git rev-parse HEAD", &[]);
    town.check("main").ok();
    let next = town.commit(&[("more", "x")]);
    town.check(&next).ok();
}

#[test]
fn missing_programs_signals_and_full_disks_are_errors() {
    let town = town_with_trees("process");
    for (name, command, error) in [
        ("missing", "no-such-program-anywhere", "missing_program"),
        ("not-executable", "./README.md", "missing_program"),
        ("killed", "kill -9 $$", "killed"),
        ("child-killed", "sh -c 'kill -9 $$'; exit $?", "killed"),
        ("full", "echo 'write error: No space left on device' >&2; exit 1", "disk_full"),
    ] {
        town.add_check(name, command, &[]);
        let report = town.check_json("main", 3);
        assert_eq!(
            (&report[0]["result"], &report[0]["error"]),
            (&json!("error"), &json!(error)),
            "{name}"
        );
        town.gt(["rig", "check", "remove", "web", name]).ok();
    }
    town.add_check("crash", "kill -SEGV $$", &[]);
    assert_eq!(town.check_json("main", 1)[0]["result"], "failed");
}

#[test]
fn a_setup_that_fails_is_an_error_of_the_check() {
    let town = town_with_trees("process");
    town.add_check("test", "test -e ready.log", &[]);
    town.gt(["config", "set", "rig.web.setup", "echo no registry; exit 4"]).ok();
    let report = town.check_json("main", 3);
    assert_eq!(report[0]["error"], "setup");
    assert_says(&report[0]["last_lines"].to_string(), &["rig.web.setup failed", "no registry"]);
    town.gt(["config", "set", "rig.web.setup", "echo $GT_CHECK >> ready.log"]).ok();
    town.check("main").ok();
}

#[test]
fn a_check_that_fails_and_then_passes_is_flaky() {
    let town = town_with_trees("process");
    let flaky = "echo try >> \"$GT_TOWN_ROOT/seen\"; test $(wc -l < \"$GT_TOWN_ROOT/seen\") -ge 2";
    town.add_check("flaky", flaky, &["--retry", "2"]);
    let report = town.check_json("main", 0);
    assert_eq!((&report[0]["flaky"], &report[0]["attempt"]), (&json!(true), &json!(2)));
    assert_eq!(town.seen().len(), 2);
    town.add_check("red", "echo red >> \"$GT_TOWN_ROOT/seen\"; exit 1", &["--retry", "1"]);
    assert_eq!(town.check_json("main", 1)[1]["attempt"], 2);
    assert_eq!(town.seen().len(), 4);
}

#[test]
fn a_check_has_no_credentials_and_its_own_directory() {
    let town = town_with_trees("process");
    let origin = town.root().join("origin.git").display().to_string();
    git(
        &town,
        &town.root().join("seed"),
        &["config", "--global", "credential.helper", "!echo password=secret"],
    );
    let command = format!(
        "env | sort; echo \"helper $(git credential fill < /dev/null 2>&1; printf 'protocol=https\\nhost=x\\n\\n' | git credential fill 2>&1)\"; \
         git push -q '{origin}' HEAD:refs/heads/stolen; pwd; exit 1"
    );
    town.add_check("env", &command, &[]);
    let withheld = [
        "SSH_AUTH_SOCK",
        "GH_TOKEN",
        "GITHUB_TOKEN",
        "GITLAB_TOKEN",
        "GIT_ASKPASS",
        "PGPASSWORD",
        "GT_WORK_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "NPM_TOKEN",
    ];
    let mut gt = town.start_gt(&["rig", "check", "run", "main", "--rig", "web", "--json"]);
    for name in withheld {
        gt = gt.env(name, "s3cret-value");
    }
    let gt = gt.env("OLDPWD", "/elsewhere").env("GIT_AUTHOR_NAME", "Ada");
    let report = gt.run().fails(1).json();
    let log = fs::read_to_string(town.cwd().join(report[0]["log"].as_str().unwrap())).unwrap();
    for name in withheld {
        assert!(!log.contains(&format!("{name}=")), "{name}: {log}");
    }
    assert!(!log.contains("s3cret-value") && !log.contains("secret"), "{log}");
    let tree = town.cwd().join("web/checks/1/rig");
    assert_says(
        &log,
        &[
            &format!("PWD={}", tree.display()),
            "GT_CHECK=web/env",
            "GT_RIG=web",
            "GIT_AUTHOR_NAME=Ada",
        ],
    );
    assert!(!git(&town, &town.root().join("origin.git"), &["branch"]).contains("stolen"));
}

#[test]
fn gt_inside_a_check_reads_and_cannot_write() {
    let town = town_with_trees("process");
    town.bead("we-1", &[]);
    for (name, command) in [
        ("close", "bd close we-1"),
        ("create", "bd create New"),
        ("setting", "gt config set checks.max 2"),
        ("check", "gt rig check remove web check"),
        ("sling", "gt sling we-1"),
        ("daemon", "gt up"),
        ("mail", "gt mail send mayor -s Hello -m there"),
        ("nested", "gt rig check run main --rig web"),
        ("branch", "git update-ref refs/heads/mine HEAD"),
    ] {
        town.add_check(name, &format!("bd show we-1 > /dev/null || exit 9; {command}"), &[]);
        let report = town.check_json("main", 1);
        let said = report[0]["last_lines"].to_string();
        assert_ne!(report[0]["exit_code"], 9, "{name} can read: {said}");
        assert!(said.contains("may only read") || said.contains("gt-check#1"), "{name}: {said}");
        town.gt(["rig", "check", "remove", "web", name]).ok();
    }
    assert_eq!(town.show("we-1")["status"], "open");
}

#[test]
fn a_worker_has_its_own_branch_checked_and_may_not_change_checks() {
    let town = town_with_trees("process");
    town.add_check("answer", "test -z \"$SNEAKY\" && grep -q 42 answer", &[]);
    let script = "
mkdir -p \"$GT_TOWN_ROOT/fake\"
printf '#!/bin/sh\\nexit 0\\n' > \"$GT_TOWN_ROOT/fake/grep\"; chmod +x \"$GT_TOWN_ROOT/fake/grep\"
export PATH=\"$GT_TOWN_ROOT/fake:$PATH\" SNEAKY=1
echo 41 > answer
gt rig check run > \"$GT_TOWN_ROOT/dirty\" 2>&1; echo $? >> \"$GT_TOWN_ROOT/dirty\"
git add answer && git commit -qm one
gt rig check run > \"$GT_TOWN_ROOT/red\" 2>&1; echo $? >> \"$GT_TOWN_ROOT/red\"
echo 42 > answer
git commit -qam two
gt rig check run > \"$GT_TOWN_ROOT/green\" 2>&1; echo $? >> \"$GT_TOWN_ROOT/green\"
gt rig check run main > \"$GT_TOWN_ROOT/main\" 2>&1; echo $? >> \"$GT_TOWN_ROOT/main\"
gt rig check add web easy true > \"$GT_TOWN_ROOT/add\" 2>&1; echo $? >> \"$GT_TOWN_ROOT/add\"
gt rig check remove web answer > \"$GT_TOWN_ROOT/remove\" 2>&1; echo $? >> \"$GT_TOWN_ROOT/remove\"
gt prime > \"$GT_TOWN_ROOT/prime\"
";
    town.script("we-1", script);
    town.work("we-1", &[]);
    let told = |name: &str| fs::read_to_string(town.cwd().join(name)).unwrap();
    assert_says(&told("dirty"), &["commit first", "answer"]);
    assert!(told("red").ends_with("1\n"), "{}", told("red"));
    assert_says(&told("red"), &["✗ answer failed"]);
    assert!(told("green").ends_with("0\n"), "{}", told("green"));
    assert_says(&told("green"), &["✓ answer passed"]);
    assert_says(&told("main"), &["own branch"]);
    for name in ["add", "remove"] {
        assert_says(&told(name), &["is not allowed to the worker of we-1#1"]);
    }
    assert_says(&told("prime"), &["grep -q 42 answer", "gt rig check run"]);
    assert_eq!(texts(&town.gt_json(&["rig", "check", "list"]), "name"), ["answer"]);
}

#[test]
fn a_bead_is_checked_at_its_branch() {
    let town = town_with_trees("process");
    town.add_check("answer", "grep -q 42 answer", &[]);
    town.script("we-1", &format!("echo 42 > answer; git add answer; git commit -qm work; {WAIT}"));
    town.begin("we-1");
    let report = town.gt(["rig", "check", "run", "we-1", "--json"]).ok().json();
    assert_eq!(report[0]["result"], "passed");
    town.write("go", "");
    wait_until("the run has ended", || town.run_of("we-1")["state"] != "running");
}

#[test]
fn as_many_checks_run_at_once_as_there_are_trees_for() {
    let town = town_with_trees("process");
    let one = town.commit(&[("a", "1")]);
    let two = town.commit(&[("a", "2")]);
    let wait = "echo $PWD >> \"$GT_TOWN_ROOT/seen\"; while [ -e \"$GT_TOWN_ROOT/.gt\" ] && [ ! -e \"$GT_TOWN_ROOT/go\" ]; do sleep 0.02; done";
    town.add_check("waits", wait, &[]);
    town.gt(["config", "set", "checks.max", "2"]).ok();
    let start =
        |commit: &str| town.start_gt(&["rig", "check", "run", commit, "--rig", "web"]).start();
    let (first, second) = (start(&one), start(&two));
    wait_until("both are at work", || town.seen().len() == 2);
    let mut trees = town.seen();
    trees.sort();
    assert!(trees[0].ends_with("checks/1/rig") && trees[1].ends_with("checks/2/rig"), "{trees:?}");
    let three = town.commit(&[("a", "3")]);
    let third = start(&three);
    town.write("go", "");
    for running in [first, second, third] {
        running.wait().ok();
    }
    assert_eq!(town.seen().len(), 3);
}

#[test]
fn processes_of_a_killed_runner_are_gone_before_the_tree_is_used_again() {
    let town = town_with_trees("process");
    let hangs =
        "trap '' TERM; echo $$ > \"$GT_TOWN_ROOT/child\"; echo x > left; sleep 600; sleep 600";
    town.add_check("hangs", hangs, &["--timeout", "5m"]);
    let running = town.start_gt(&["rig", "check", "run", "main", "--rig", "web"]).start();
    wait_until("it is at work", || town.cwd().join("web/checks/1/rig/left").exists());
    let child = fs::read_to_string(town.cwd().join("child")).unwrap();
    running.kill();
    town.gt(["rig", "check", "remove", "web", "hangs"]).ok();
    town.add_check("next", "test ! -e left", &[]);
    town.check("main").ok();
    assert!(!is_alive(child.trim()));
}
