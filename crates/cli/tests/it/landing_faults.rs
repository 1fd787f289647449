//! Faults during a landing: the daemon dies at any step, or the origin changes under the queue. Real git throughout.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gt_testkit::{Cluster, RunningProgram, Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::{Stage as _, has_supervisor};
use crate::daemon::process;
use crate::projects::{Origin as _, project_agent, town_with_project};
use crate::support::{Steps as _, assert_says, nowhere, refusal};
use crate::tree_faults::SmallDisk;

/// Passes unless the tree has a file `broken`.
const NOT_BROKEN: &str = "test ! -e broken";

/// Adds a file that is named like its bead; beads from `we-bad` on break the check.
const ADDS_A_FILE: &str =
    "case $bead in we-bad*) echo oops > broken ;; *) echo $bead > $bead ;; esac";

/// A town whose origin remembers every tip of its branches, and whose check fails with a file `broken`.
fn town_with_check(script: &str) -> Sandbox {
    let town = town_with_project(script);
    town.origin_git(&["config", "core.logAllRefUpdates", "always"]).ok();
    town.gt(["rig", "check", "add", "web", "whole", NOT_BROKEN]).ok();
    town
}

/// Lets an agent do each bead, and waits until all of them have a request in the paused queue.
fn queue_up(town: &Sandbox, beads: &[String]) {
    town.gt(["mq", "pause", "web"]).ok();
    for bead in beads {
        town.bead(bead, &[]);
    }
    town.start_gt(&["sling"]).args(beads).run().ok();
    wait_until("everything is queued", || {
        let _ = town.cycle();
        // A supervisor that is still there would land them itself.
        requests(town).len() == beads.len()
            && beads.iter().all(|bead| {
                let run = town.run_of(bead);
                run["alive"] == false && !has_supervisor(town, run["id"].as_str().unwrap())
            })
    });
    town.gt(["mq", "resume", "web"]).ok();
}

/// The open requests.
fn requests(town: &Sandbox) -> Vec<Value> {
    town.gt_json(&["mq", "list"]).as_array().unwrap().clone()
}

fn state(town: &Sandbox, request: &str) -> String {
    let request = town.gt_json(&["mq", "show", request]);
    match request["held"].as_str() {
        Some(held) => format!("held: {held}"),
        None => request["state"].as_str().unwrap().to_owned(),
    }
}

/// Where the origin remembers the tips of its target.
fn tips_of(town: &Sandbox) -> PathBuf {
    town.root().join("origin.git/logs/refs/heads/main")
}

/// Expects what must be true of a queue at every moment: no tip of the target was ever red, each open request has a state, a
/// reason and a next step, and its accepted commit is in a branch.
#[track_caller]
fn assert_sound(town: &Sandbox) {
    let tips = fs::read_to_string(tips_of(town)).unwrap_or_default();
    for tip in tips.lines().filter_map(|line| line.split(' ').nth(1)) {
        let files = town.origin_git(&["ls-tree", "--name-only", tip]).ok().stdout;
        assert!(!files.lines().any(|file| file == "broken"), "the target was at {tip}:\n{files}");
    }
    let shared = town.cwd().join("web/.repo.git");
    for request in requests(town) {
        for field in ["state", "reason", "next"] {
            assert!(request[field].as_str().is_some_and(|text| !text.is_empty()), "{request}");
        }
        let accepted = request["accepted"].as_str().unwrap();
        let refs = ["for-each-ref", "--contains", accepted, "refs/heads"];
        let kept = town.command("git").arg("--git-dir").arg(&shared).args(refs).run().ok();
        assert!(!kept.stdout.is_empty(), "{accepted} is in no branch: {request}");
    }
}

/// Expects that each of these beads has landed once, and is closed because of that.
#[track_caller]
fn assert_landed_once(town: &Sandbox, beads: &[String]) {
    let trailers = town.origin_git(&["log", "--format=%(trailers:key=Bead,valueonly)", "main"]);
    let trailers = trailers.ok().stdout;
    for bead in beads {
        let times = trailers.lines().filter(|line| *line == bead).count();
        assert_eq!(times, 1, "commits of {bead}:\n{trailers}");
        let shown = town.show(bead);
        assert_eq!((&shown["status"], &shown["outcome"]), (&json!("closed"), &json!("success")));
        let landed = town.gt_json(&["mq", "show", bead])["landed"].as_str().unwrap().to_owned();
        town.origin_git(&["merge-base", "--is-ancestor", &landed, "main"]).ok();
    }
}

/// The moment at which a call of git kills the daemon that makes it.
#[derive(Debug, Clone, Copy)]
enum Kill {
    /// Before git does anything, and it never does.
    Before,
    /// When git has done its part, and the daemon has not heard of it.
    After,
    /// While git goes on by itself.
    During,
}

/// A `git` that stands before the real one on the path of a daemon, and kills the daemon at one of its calls.
struct DeadlyGit<'t> {
    town: &'t Sandbox,
    path: String,
}

impl<'t> DeadlyGit<'t> {
    fn of(town: &'t Sandbox) -> Self {
        let line = |script: &str| town.command("sh").args(["-c", script]).run().ok();
        let real = line("command -v git").line().to_owned();
        let path = line("echo $PATH").line().to_owned();
        let script = format!(
            "stage='{stage}'\n\
             read -r caller < /proc/$PPID/cmdline\n\
             case $caller in *daemonrun*) ;; *) exec '{real}' \"$@\" ;; esac\n\
             n=1; while ! mkdir \"$stage/calls/$n\" 2>/dev/null; do n=$((n + 1)); done\n\
             read -r at how < \"$stage/kill-at\"\n\
             [ $n = $at ] || exec '{real}' \"$@\"\n\
             echo \"$how $*\" >> \"$stage/kills\"\n\
             case $how in\n\
             Before) kill -9 $PPID; exit 1 ;;\n\
             During) kill -9 $PPID; exec '{real}' \"$@\" ;;\n\
             After) '{real}' \"$@\"; code=$?; kill -9 $PPID; exit $code ;;\n\
             esac",
            stage = town.stage("").display(),
        );
        town.make_dir("bin");
        town.write_script("bin/git", &script);
        Self { town, path: format!("{}:{path}", town.cwd().join("bin").display()) }
    }

    /// Starts a daemon that is killed at its call of git with this number.
    fn start(&self, at: usize, how: Kill) -> RunningProgram {
        let calls = self.town.stage("calls");
        let _ = fs::remove_dir_all(&calls);
        fs::create_dir(&calls).unwrap();
        fs::write(self.town.stage("kill-at"), format!("{at} {how:?}\n")).unwrap();
        self.town.start_gt(&["daemon", "run"]).env("PATH", &self.path).start()
    }
}

fn is_alive(program: &RunningProgram) -> bool {
    crate::agents::is_alive(&program.id().to_string())
}

/// Whether the target has a file of each of these beads.
fn has_all(town: &Sandbox, beads: &[String]) -> bool {
    let files = town.origin_git(&["ls-tree", "--name-only", "main"]).ok().stdout;
    beads.iter().all(|bead| files.lines().any(|file| file == bead))
}

#[test]
fn a_daemon_that_is_killed_at_any_call_of_git_lands_everything_once() {
    #[expect(clippy::disallowed_methods, reason = "the product does not look at it")]
    let is_whole = std::env::var("GT_TEST_ALL_KILL_POINTS").is_ok();
    if is_whole {
        // Each call is the last of a daemon in each of the three ways.
        (0..3).for_each(|first_way| kill_at_calls(1, first_way));
    } else {
        kill_at_calls(7, 0);
    }
}

/// Lets a town land its work with daemons that are killed at every `step`th call of git, in turn in each way.
fn kill_at_calls(step: usize, first_way: usize) {
    let town = town_with_check(ADDS_A_FILE);
    town.gt(["config", "set", "mq.batch", "2"]).ok();
    town.gt(["config", "set", "mq.repairs", "0"]).ok();
    let good = ["we-1", "we-2", "we-3", "we-4"].map(str::to_owned);
    let bad = "we-bad".to_owned();
    queue_up(&town, &[&good[..1], std::slice::from_ref(&bad), &good[1..]].concat());
    let git = DeadlyGit::of(&town);

    let hows = [Kill::Before, Kill::During, Kill::After];
    let mut kills = 0;
    let mut at = 1;
    // Each daemon lives longer than the one before, so that each step is the last of one of them.
    let is_over = || requests(&town).iter().all(|request| request["state"] == "failed");
    while !is_over() {
        let daemon = git.start(at, hows[(first_way + at) % hows.len()]);
        let (mut seen, mut has_landed) = (None, false);
        wait_until("the daemon was killed, or has landed everything", || {
            let tips = fs::read_to_string(tips_of(&town)).ok().map(|log| log.len());
            if tips != seen {
                (seen, has_landed) = (tips, has_all(&town, &good));
            }
            !is_alive(&daemon) || has_landed && is_over()
        });
        kills += usize::from(!is_alive(&daemon));
        daemon.kill();
        assert_sound(&town);
        at += step;
    }

    assert_landed_once(&town, &good);
    assert_eq!(state(&town, &bad), "failed");
    let calls = fs::read_to_string(town.stage("kills")).unwrap();
    assert!(kills >= 5, "only {kills} daemons were killed:\n{calls}");
}

/// A command that kills the daemon of a town, once for each name.
fn kills_the_daemon(town: &Sandbox, name: &str) -> String {
    let (stage, lock) = (town.stage(name), town.cwd().join(".gt/daemon.lock"));
    let (stage, lock) = (stage.display(), lock.display());
    format!("if mkdir '{stage}' 2>/dev/null; then kill -9 $(cut -d ' ' -f 1 '{lock}'); fi")
}

#[test]
fn a_daemon_that_a_check_or_a_hook_of_the_origin_kills_lands_everything_once() {
    let town = town_with_check(ADDS_A_FILE);
    let check = format!("{}; sleep 0.2; {NOT_BROKEN}", kills_the_daemon(&town, "by-check"));
    town.gt(["rig", "check", "add", "web", "kills", &check]).ok();
    let mut beads = Vec::new();
    for by in ["check", "pre-receive", "update", "post-receive"] {
        if by != "check" {
            town.origin_hook(by, &kills_the_daemon(&town, &format!("by-{by}")));
        }
        town.gt(["up"]).ok();
        let daemon = process(&town);
        let bead = format!("we-{by}");
        town.bead(&bead, &[]);
        town.gt(["sling", &bead]).ok();
        wait_until("the daemon is killed", || !crate::agents::is_alive(&daemon));
        assert_sound(&town);

        town.gt(["up"]).ok();
        wait_until("it has landed", || town.show(&bead)["status"] == "closed");
        beads.push(bead);
    }
    assert_sound(&town);
    assert_landed_once(&town, &beads);
    town.assert_quiet();
}

/// A hook that says that it was asked, and waits until it may go on.
const HOOK_WAITS: &str = "touch \"$stage/asked\"; while [ -d \"$stage\" ] && [ ! -e \"$stage/go\" ]; do sleep 0.02; done";

#[test]
fn a_push_that_outlives_its_daemon_keeps_its_request_in_landing() {
    let town = town_with_check(ADDS_A_FILE);
    town.origin_hook("pre-receive", HOOK_WAITS);
    town.gt(["up"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("the origin is asked", || town.stage("asked").exists());
    // Otherwise the next daemon would push it once more.
    town.gt(["mq", "pause", "web"]).ok();
    let daemon = process(&town);
    town.signal("KILL", &daemon);
    wait_until("the daemon is gone", || !crate::agents::is_alive(&daemon));

    // The next daemon has asked the queue once when it says that it is ready.
    town.gt(["up"]).ok();

    assert_eq!(state(&town, "we-a"), "landing");
    assert_says(&town.gt(["mq", "cancel", "we-a"]).fails(1).stderr, &["cannot be cancelled now"]);
    town.allow("go");
    wait_until("it has landed", || town.show("we-a")["status"] == "closed");
    assert_landed_once(&town, &["we-a".to_owned()]);
    town.assert_quiet();
}

#[test]
fn a_damaged_repository_is_repaired_by_the_pass_that_needs_it() {
    let town = town_with_check(ADDS_A_FILE);
    let beads = ["we-a".to_owned()];
    queue_up(&town, &beads);
    fs::write(town.cwd().join("web/.repo.git.own/HEAD"), "garbage\n").unwrap();
    town.gt(["mq", "resume", "web"]).ok();

    town.gt(["mq", "run"]).ok();

    assert_landed_once(&town, &beads);
}

#[test]
fn an_error_of_a_pass_is_the_reason_of_the_requests_that_it_stops() {
    let town = town_with_check(ADDS_A_FILE);
    let beads = ["we-a", "we-b"].map(str::to_owned);
    queue_up(&town, &beads);
    let checks = town.cwd().join("web/checks");
    fs::write(&checks, "in the way\n").unwrap();
    town.gt(["mq", "resume", "web"]).ok();

    town.gt(["mq", "run"]).ok();

    for bead in &beads {
        assert_eq!(state(&town, bead), "held: queue_error");
    }
    let inbox = town.gt(["inbox"]).ok().stdout;
    assert_says(&inbox, &["queue-error", "main of web", "2 merge requests wait", "checks"]);
    fs::remove_file(&checks).unwrap();
    for bead in &beads {
        town.gt(["mq", "retry", bead]).ok();
    }
    town.gt(["mq", "run"]).ok();
    assert_landed_once(&town, &beads);
}

#[test]
fn requests_for_a_branch_that_was_renamed_land_on_the_new_one() {
    let town = town_with_check(ADDS_A_FILE);
    let beads = ["we-a", "we-b"].map(str::to_owned);
    queue_up(&town, &beads);
    town.origin_git(&["branch", "-m", "main", "trunk"]).ok();

    town.gt(["mq", "run"]).ok();

    for bead in &beads {
        assert_eq!(state(&town, bead), "held: target_gone");
        assert_eq!(town.states(bead), ["done"]);
    }
    let told = town.gt(["mq", "show", "we-a"]).ok().stdout;
    assert_says(&told, &["the origin has no branch main", "gt rig set web branch"]);
    assert_says(
        &town.gt(["inbox"]).ok().stdout,
        &["target-gone", "gt rig set web branch <branch>"],
    );
    town.bead("we-c", &[]);
    let said = town.gt(["sling", "we-c"]).fails(1).stderr;
    assert_says(&said, &["has no branch main", "gt rig set web branch <branch>"]);
    town.gt(["unsling", "we-c"]).ok();

    town.gt(["rig", "set", "web", "branch", "trunk"]).ok();
    town.gt(["mq", "run"]).ok();

    let mut landed = town.landed("trunk");
    landed.sort();
    assert_eq!(landed, ["First commit", "we-a", "we-b"]);
    for bead in &beads {
        assert_eq!(town.show(bead)["status"], "closed");
    }
    let references = town.origin_references();
    assert_eq!(references, ["refs/heads/trunk"], "the old branch is not made again");
}

#[test]
fn a_request_that_is_checked_while_its_branch_is_renamed_lands_on_the_new_one() {
    let town = town_with_check(ADDS_A_FILE);
    queue_up(&town, &["we-a".to_owned()]);
    let stage = town.stage("").display().to_string();
    let waits = format!(
        "touch '{stage}/checked'; while [ -d '{stage}' ] && [ ! -e '{stage}/go' ]; do sleep 0.02; done"
    );
    town.gt(["rig", "check", "add", "web", "slow", &waits]).ok();
    let pass = town.start_gt(&["mq", "run"]).start();
    wait_until("it is being checked", || town.stage("checked").exists());
    town.origin_git(&["branch", "-m", "main", "trunk"]).ok();
    town.gt(["rig", "set", "web", "branch", "trunk"]).ok();
    assert_eq!(state(&town, "we-a"), "checking");

    town.allow("go");
    pass.wait().ok();

    assert_eq!(town.landed("trunk"), ["First commit", "we-a"]);
    assert_eq!(town.show("we-a")["status"], "closed");
    assert_eq!(town.origin_references(), ["refs/heads/trunk"]);
}

/// A commit of a repository that a person works in, pushed to where it came from; its id.
fn person_commits(town: &Sandbox, place: &Path, file: &str, contents: &str) -> String {
    let git = |arguments: &[&str]| town.command("git").args(arguments).dir(place).run().ok();
    fs::write(place.join(file), contents).unwrap();
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", &format!("Write {file}")]);
    git(&["push", "--quiet", "origin", "HEAD:main"]);
    git(&["rev-parse", "HEAD"]).line().to_owned()
}

/// A bare repository `<name>.git` and a clone of it, in which a person works.
fn bare_and_clone(town: &Sandbox, name: &str) -> PathBuf {
    let seed = town.git_repository(&format!("{name}-seed"));
    let (bare, clone) = (town.root().join(format!("{name}.git")), town.root().join(name));
    let git = |arguments: &[&str]| town.command("git").args(arguments);
    git(&["clone", "--quiet", "--bare"]).arg(&seed).arg(&bare).run().ok();
    git(&["clone", "--quiet"]).arg(&bare).arg(&clone).run().ok();
    clone
}

#[test]
fn a_change_of_a_submodule_is_checked_with_the_files_of_its_commit() {
    // The file `next` says which commit of the library the next worker takes.
    let update = "git -c protocol.file.allow=always submodule update --init --quiet";
    let town = town_with_project("git -C lib checkout --quiet $(cat \"$stage/next\")");
    let library = bare_and_clone(&town, "library");
    person_commits(&town, &library, "version", "one\n");
    let person = town.root().join("person");
    let clone = town.command("git").args(["clone", "--quiet"]);
    clone.arg(town.root().join("origin.git")).arg(&person).run().ok();
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    let url = town.root().join("library.git");
    let add = town.command("git").args(add).arg(&url).arg("lib");
    add.dir(&person).run().ok();
    person_commits(&town, &person, "uses", "the library\n");
    town.gt(["config", "set", "rig.web.setup", update]).ok();
    let check = "cat lib/version >> \"$GT_TOWN_ROOT/seen\"";
    town.gt(["rig", "check", "add", "web", "library", check]).ok();
    let seen = || fs::read_to_string(town.cwd().join("seen")).unwrap_or_default();

    // Its worker and the check see the new files.
    let two = person_commits(&town, &library, "version", "two\n");
    fs::write(town.stage("next"), &two).unwrap();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("it has landed", || town.show("we-a")["status"] == "closed");
    let landed = |tree: &str| town.origin_git(&["rev-parse", &format!("{tree}:lib")]).ok();
    assert_eq!(landed("main").line(), two);
    assert_eq!(seen(), "two\n");

    // The library is away when the check needs its next commit: that is no failure of the work.
    let three = person_commits(&town, &library, "version", "three\n");
    fs::write(town.stage("next"), &three).unwrap();
    project_agent(&town, &format!("git -C lib fetch --quiet; git -C lib checkout --quiet {three}"));
    town.gt(["mq", "pause", "web"]).ok();
    town.bead("we-b", &[]);
    town.gt(["sling", "we-b"]).ok();
    wait_until("it is queued", || requests(&town).len() == 1);
    fs::rename(&url, town.root().join("away")).unwrap();
    town.gt(["mq", "resume", "web"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(state(&town, "we-b"), "held: check_error");
    town.cycle().ok();
    assert_eq!(town.states("we-b"), ["done"], "no repair is made for it");
    let told = town.gt(["mq", "show", "we-b"]).ok().stdout;
    assert_says(&told, &["setup", "gt mq retry we-b@1"]);

    fs::rename(town.root().join("away"), &url).unwrap();
    town.gt(["mq", "retry", "we-b"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(landed("main").line(), three);
    assert_eq!(seen(), "two\nthree\n");
}

/// The number of files in a large project.
const FILES_OF_LARGE_PROJECT: usize = 20_000;

#[test]
fn a_project_of_twenty_thousand_files_lands_and_keeps_its_tree_for_checks() {
    let town = town_with_project(ADDS_A_FILE);
    let mut stream = String::from(
        "blob\nmark :1\ndata 2\nx\n\ncommit refs/heads/main\ncommitter A <a@example.org> 0 +0000\ndata 4\nMany\n\
         from refs/heads/main^0\n",
    );
    for number in 0..FILES_OF_LARGE_PROJECT {
        writeln!(stream, "M 100644 :1 many/{}/{number}", number % 100).unwrap();
    }
    let import = town.command("git").arg("--git-dir").arg(town.root().join("origin.git"));
    import.args(["fast-import", "--quiet"]).stdin(stream).run().ok();
    // The number of a file on the disk stays as long as it is not written again.
    let check =
        "stat -c %i many/7/7 >> \"$GT_TOWN_ROOT/seen\"; find many -type f | wc -l | grep -qx 20000";
    town.gt(["rig", "check", "add", "web", "all", check]).ok();

    for bead in ["we-a", "we-b"] {
        town.bead(bead, &[]);
        town.gt(["sling", bead]).ok();
        wait_until("it has landed", || town.show(bead)["status"] == "closed");
    }

    let seen = fs::read_to_string(town.cwd().join("seen")).unwrap();
    let seen: Vec<&str> = seen.lines().collect();
    assert_eq!((seen.len(), seen[0]), (2, seen[1]), "the tree was made anew");
    assert_landed_once(&town, &["we-a".to_owned(), "we-b".to_owned()]);
}

#[test]
fn a_check_that_does_not_come_to_an_end_holds_its_request_and_costs_no_repair() {
    let town = town_with_project(ADDS_A_FILE);
    town.person_lands(".gitignore", "*.log\n");
    queue_up(&town, &["we-a".to_owned()]);
    town.make_dir("web/checks");
    let disk = SmallDisk::at(&town, town.cwd().join("web/checks"), 6);
    let full = "head -c 30000000 /dev/zero > fill.log";
    for (name, command, flags, error) in [
        ("hangs", "setsid sleep 600 & sleep 600", ["--timeout", "1s"].as_slice(), "timeout"),
        ("killed", "kill -9 $$", &[], "killed"),
        (
            "full",
            if disk.is_some() { full } else { "echo no space left on device; exit 1" },
            &[],
            "disk full",
        ),
        ("missing", "no-such-program-anywhere", &[], "missing program"),
    ] {
        town.start_gt(&["rig", "check", "add", "web", name, command]).args(flags).run().ok();
        // The first time it waits for its turn.
        let _ = town.gt(["mq", "retry", "we-a"]);
        town.gt(["mq", "run"]).ok();
        let request = town.gt_json(&["mq", "show", "we-a"]);
        let held = (&request["state"], &request["held"], &request["tries"]);
        assert_eq!(held, (&json!("held"), &json!("check_error"), &json!(0)), "{name}");
        assert_says(request["reason"].as_str().unwrap(), &[name, error]);
        assert_says(request["next"].as_str().unwrap(), &["gt mq retry we-a@1"]);
        town.cycle().ok();
        assert_eq!(town.states("we-a"), ["done"], "{name}: no repair is made");
        town.gt(["rig", "check", "remove", "web", name]).ok();
    }

    // What they have left does not keep the next one.
    let leaves = "echo x > untracked; echo x > more.log; setsid sleep 600 & true";
    town.gt(["rig", "check", "add", "web", "leaves", leaves]).ok();
    let sees = "test ! -e untracked && test -z \"$(git status --porcelain)\" && test -e more.log";
    town.gt(["rig", "check", "add", "web", "sees", sees]).ok();
    town.gt(["mq", "retry", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_landed_once(&town, &["we-a".to_owned()]);
}

/// A check that says that it runs, and waits until it may end.
fn waiting_check(town: &Sandbox) -> String {
    let stage = town.stage("");
    let stage = stage.display();
    format!(
        "touch '{stage}/checking'; while [ -d '{stage}' ] && [ ! -e '{stage}/go' ]; do sleep 0.02; done; {NOT_BROKEN}"
    )
}

#[test]
fn an_origin_that_changes_while_a_check_runs_gets_the_work_once() {
    let town = town_with_check(ADDS_A_FILE);
    town.gt(["rig", "check", "add", "web", "waits", &waiting_check(&town)]).ok();
    let is_checking = || town.stage("checking").exists();
    let begin = |bead: &str| {
        queue_up(&town, &[bead.to_owned()]);
        for file in ["checking", "go"] {
            let _ = fs::remove_file(town.stage(file));
        }
        let pass = town.start_gt(&["mq", "run"]).start();
        wait_until("the check runs", is_checking);
        pass
    };

    // Others push by force: what they took back does not come again.
    town.person_lands("secret", "secret\n");
    let pass = begin("we-a");
    town.origin_git(&["update-ref", "refs/heads/main", "main~1"]).ok();
    let _ = fs::remove_dir_all(town.root().join("person"));
    town.person_lands("other", "other\n");
    town.allow("go");
    pass.wait().ok();
    assert_eq!(town.landed("main"), ["First commit", "A person changes other", "we-a"]);
    assert_eq!(town.landed_file("secret"), None);

    // The origin goes away, and comes back.
    let pass = begin("we-b");
    town.origin_is_there(false);
    town.allow("go");
    pass.wait().ok();
    assert_eq!(town.states("we-b"), ["done"]);
    assert_ne!(town.show("we-b")["status"], "closed");
    town.origin_is_there(true);
    assert_sound(&town);
    let _ = town.gt(["mq", "retry", "we-b"]);
    town.gt(["mq", "run"]).ok();

    // The branch of the worker is deleted here, though its request needs it.
    let pass = begin("we-c");
    let branch = town.gt_json(&["mq", "show", "we-c"])["branch"].as_str().unwrap().to_owned();
    town.command("git")
        .arg("--git-dir")
        .arg(town.cwd().join("web/.repo.git"))
        .args(["update-ref", "-d", &format!("refs/heads/{branch}")])
        .run()
        .ok();
    town.allow("go");
    pass.wait().ok();

    assert_landed_once(&town, &["we-a", "we-b", "we-c"].map(str::to_owned));
}

/// Two hosts of one town, whose store is on a server.
fn two_hosts() -> [Sandbox; 2] {
    let (sandbox, url) = (nowhere(), Cluster::shared().fresh_database());
    let hosts = ["one", "two"].map(|name| {
        let install = sandbox.start_gt(&["install", name]).env("DATABASE_URL", &url);
        install.run().ok();
        sandbox.in_dir(name)
    });
    let project = sandbox.git_repository("project");
    let clone = sandbox.command("git").args(["clone", "--quiet", "--bare"]);
    clone.arg(&project).arg(sandbox.root().join("origin.git")).run().ok();
    let origin = sandbox.root().join("origin.git").display().to_string();
    hosts[0].gt(["rig", "add", "web", &origin, "--executor", "process"]).ok();
    project_agent(&hosts[0], ADDS_A_FILE);
    hosts
}

#[test]
fn only_the_host_of_a_directory_works_on_its_rig() {
    let [one, two] = two_hosts();
    let name = one.gt_json(&["host", "show"])["host"].as_str().unwrap().to_owned();
    one.bead("we-a", &[]);

    two.gt(["sling", "we-a"]).ok();
    two.cycle().ok();

    let why = two.why("we-a");
    // The host of the rig has no daemon, and so no lease.
    assert_eq!(why["reasons"][0]["code"], "no-host");
    let (short, _) = name.split_once('/').unwrap();
    let only = format!("is not {short}, which alone works on the rig");
    let said = two.gt(["why", "we-a"]).ok().stdout;
    assert_says(&said, &[&only, "gt config unset rig.web.host"]);
    let refused = refusal(&two.gt(["rig", "check", "run", "main", "--rig", "web"]));
    assert_says(&refused, &["only the host", &name]);

    one.gt(["mq", "pause", "web"]).ok();
    one.cycle().ok();
    // Its supervisor would land it after the queue goes on.
    wait_until("it waits to land", || {
        let line = one.gt_json(&["mq", "list"]);
        line.as_array().is_some_and(|line| line.len() == 1) && !has_supervisor(&one, "we-a#1")
    });
    one.gt(["mq", "resume", "web"]).ok();
    assert_says(&two.gt(["mq", "run"]).ok().stderr, &["nothing lands on main", &name]);
    assert_says(&two.gt(["why", "we-a"]).ok().stdout, &["waits for its turn", &name]);
    assert!(one.landed_file("we-a").is_none());

    one.gt(["mq", "run"]).ok();

    assert_landed_once(&one, &["we-a".to_owned()]);
}

#[test]
fn a_host_without_the_repository_does_not_land_a_convoy_for_another() {
    let [one, two] = two_hosts();
    one.gt(["config", "unset", "rig.web.host"]).ok();
    one.gt(["mq", "pause", "web"]).ok();
    one.bead("we-a", &[]);
    one.gt(["convoy", "create", "Breakfast", "we-a", "--integration"]).ok();
    wait_until("its part is on the branch of the convoy", || {
        one.cycle().ok();
        one.show("we-a")["status"] == "closed"
    });
    assert!(one.landed_file("we-a").is_none());

    two.gt(["mq", "run"]).ok();
    assert!(one.landed_file("we-a").is_none());
    two.gt(["mq", "resume", "web"]).ok();
    two.gt(["mq", "run"]).ok();

    assert_eq!(one.landed_file("we-a").as_deref(), Some("we-a\n"));
}

#[test]
fn work_of_two_hosts_with_one_origin_lands_once() {
    let hosts = two_hosts();
    let [one, two] = &hosts;
    // Both hosts have the directory.
    one.gt(["config", "unset", "rig.web.host"]).ok();
    one.origin_git(&["config", "core.logAllRefUpdates", "always"]).ok();
    one.gt(["rig", "check", "add", "web", "whole", NOT_BROKEN]).ok();
    for host in &hosts {
        host.gt(["up"]).ok();
    }
    let second = one.start_gt(&["daemon", "run"]).run();
    assert_says(&second.fails(1).stderr, &["already"]);

    let mut beads = Vec::new();
    for round in 1..=3 {
        for (host, name) in [(one, "one"), (two, "two")] {
            let bead = format!("we-{name}{round}");
            host.bead(&bead, &[]);
            host.gt(["sling", &bead]).ok();
            beads.push(bead);
        }
    }
    wait_until("everything has landed", || {
        beads.iter().all(|bead| one.show(bead)["status"] == "closed")
    });

    assert_landed_once(one, &beads);
    assert_sound(one);
    let host_of = |bead: &str| one.run_of(bead)["host"].clone();
    assert_ne!(host_of("we-one1"), host_of("we-two1"));
    for host in &hosts {
        host.gt(["down"]).ok();
    }
}

#[test]
fn a_repair_that_is_lost_too_often_is_made_again_on_request() {
    let dies = "[ -e \"$stage/mended\" ] || kill -9 $$; rm -f broken; echo tea > tea";
    let town =
        town_with_check(&format!("case $run in *#1) echo oops > broken ;; *) {dies} ;; esac"));
    town.gt(["config", "set", "recovery.max_attempts", "1"]).ok();
    town.gt(["config", "set", "recovery.cooldown", "0s"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("the repair is given up", || {
        town.cycle().ok();
        town.show("we-a")["status"] == "blocked"
    });
    assert_sound(&town);

    town.allow("mended");
    town.gt(["scheduler", "retry", "we-a"]).ok();

    wait_until("it has landed", || {
        town.cycle().ok();
        town.show("we-a")["status"] == "closed"
    });
    assert_eq!(state(&town, "we-a@1"), "superseded");
    assert_sound(&town);
}
