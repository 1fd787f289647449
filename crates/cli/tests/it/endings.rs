//! The end of a worker means the same for its run, in the supervisor and in a later pass, and no work is lost by it.

use std::fs;
use std::path::PathBuf;

use gt_testkit::{Sandbox, wait_until};

use crate::agents::{Stage as _, is_alive};
use crate::landing::cut_off;
use crate::projects::{Origin as _, STAYS, Worker, town_with_project, town_with_project_by};
use crate::support::{Steps as _, assert_says, files_in, refusal, texts};
use crate::trees::{Trees as _, git};

/// A supervisor that saw its agent end like this, and died before it could say so.
pub(crate) fn supervisor_died_after(town: &Sandbox, worker: &Worker<'_>, end: &str) {
    worker.kill_all();
    let lock = town.cwd().join(format!(".gt/runs/{}.lock", worker.run));
    fs::write(lock, format!("{end}\n")).unwrap();
}

/// A town whose workers follow the scripts of their beads.
fn town_with_scripts(executor: &str) -> Sandbox {
    let town = town_with_project_by(executor, STAYS);
    town.gt(["config", "set", "rig.web.runtime", "scripted"]).ok();
    town
}

/// A bead whose worker follows this script.
fn scripted(town: &Sandbox, lines: &str) -> String {
    let script = format!("```gt-script\n{lines}\n```");
    town.create("Scripted", &["--rig", "web", "--description", &script])
}

#[test]
fn work_whose_supervisor_dies_before_it_lands_is_landed_by_the_next_pass() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.write("tea", "tea\n");
    supervisor_died_after(&town, &worker, "exited 0");

    town.cycle().ok();

    assert_eq!(town.landed_file("tea").as_deref(), Some("tea\n"));
    assert_eq!(town.states("we-a"), ["done"]);
    assert_eq!(town.show("we-a")["status"], "closed");
}

#[test]
fn work_that_cannot_land_is_no_success_in_the_next_pass() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("README", "mine\n", "Mine");
    supervisor_died_after(&town, &worker, "exited 0");
    town.person_lands("README", "theirs\n");

    town.cycle().ok();

    assert_eq!(town.states("we-a"), ["running", "lost"]);
    assert_eq!(town.rescued("we-a#1", "README"), "mine");
    assert_eq!(town.show("we-a")["status"], "in_progress");
}

#[test]
fn an_agent_that_ended_without_gt_done_is_lost_in_every_pass() {
    let town = town_with_scripts("process");
    for (number, end) in ["exited 0", "exited 3"].into_iter().enumerate() {
        let bead = scripted(&town, "edit tea tea\nhang");
        town.gt(["sling", &bead]).ok();
        let run = format!("{bead}#1");
        let tea = town.tree("furiosa").join("tea");
        let is_written = || fs::read_to_string(&tea).is_ok_and(|text| text.trim() == "tea");
        wait_until("the worker has written", is_written);
        let lock = town.cwd().join(format!(".gt/runs/{run}.lock"));
        let record = fs::read_to_string(&lock).unwrap();
        let victims: Vec<&str> = record.split_whitespace().take(2).collect();
        town.signal("KILL", &victims.join(" "));
        wait_until("nothing of the run is left", || town.run_of(&run)["alive"] == false);
        fs::write(&lock, format!("{end}\n")).unwrap();
        town.gt(["scheduler", "pause"]).ok();

        town.cycle().ok();

        assert_eq!(town.states(&bead), ["lost"], "{end}");
        assert_eq!(town.show(&bead)["status"], "open", "{end}");
        assert_eq!(town.rescued(&run, "tea"), "tea", "{end}");
        assert_eq!(town.gt_json(&["rescue", "list"]).as_array().unwrap().len(), number + 1);
        town.gt(["scheduler", "clear"]).ok();
        town.gt(["scheduler", "resume"]).ok();
    }
}

#[test]
fn a_tree_that_git_cannot_read_any_more_is_lost_and_kept() {
    let town = town_with_scripts("process");
    town.gt(["config", "set", "recovery.cooldown", "1h"]).ok();
    let bead = scripted(&town, "edit tea precious\nrun rm .git");
    town.gt(["sling", &bead]).ok();

    wait_until("the run is lost", || town.states(&bead) == ["lost"]);

    assert_eq!(town.show(&bead)["status"], "open");
    assert_says(town.run_of(&bead)["reason"].as_str().unwrap(), &["exit status 0", "git"]);
    let tea = town.tree("furiosa").join("tea");
    assert_eq!(fs::read_to_string(tea).unwrap(), "precious\n");
    // The next run in the worktree does not take it along.
    let next = scripted(&town, "edit milk milk\ndone");
    town.gt(["sling", &next]).ok();
    wait_until("the next one is done", || town.states(&next) == ["done"]);
    let kept = town.cwd().join(town.trash()[0]["path"].as_str().unwrap()).join("tree/tea");
    assert_eq!(fs::read_to_string(kept).unwrap(), "precious\n");
}

#[test]
fn cancelling_a_run_whose_worker_has_ended_keeps_its_work_and_opens_its_bead() {
    for end in ["exited 0", "exited 1"] {
        let town = town_with_project(STAYS);
        let worker = Worker::begin(&town, "we-a", &[]);
        worker.commit("tea", "tea\n", "Tea");
        supervisor_died_after(&town, &worker, end);

        town.gt(["run", "cancel", "we-a"]).ok();

        assert_eq!(town.states("we-a"), ["cancelled"], "{end}");
        assert_eq!(town.show("we-a")["status"], "open", "{end}");
        assert_eq!(town.rescued("we-a#1", "tea"), "tea", "{end}");
        assert_eq!(town.landed("main"), ["First commit"], "{end}");
    }
}

#[test]
fn cancelling_what_waits_for_the_origin_keeps_it_and_opens_its_bead() {
    for command in [["run", "cancel"], ["mq", "cancel"]] {
        let town = town_with_project(STAYS);
        let worker = Worker::begin(&town, "we-a", &[]);
        worker.commit("tea", "tea\n", "Tea");
        town.origin_is_there(false);
        assert_says(&worker.gt(&["done"]).ok().stdout, &["origin unreachable"]);

        let cancelled = town.gt([command[0], command[1], "we-a"]).ok().stdout;

        assert_says(&cancelled, &["we-a@1", "cancelled"]);
        assert_eq!(town.show("we-a")["status"], "open");
        let kept = git(&town, &town.shared(), &["show", &format!("{}:tea", worker.branch)]);
        assert_eq!(kept, "tea");
        town.origin_is_there(true);
        town.cycle().ok();
        assert_eq!(town.landed("main"), ["First commit"]);
    }
}

#[test]
fn taking_back_a_bead_gives_up_its_merge_request() {
    let town = town_with_project(STAYS);
    town.gt(["mq", "pause", "web"]).ok();
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("tea", "tea\n", "Tea");
    worker.gt(&["done"]).ok();

    assert_says(&town.gt(["unsling", "we-a"]).ok().stdout, &["we-a@1 is cancelled"]);

    assert_eq!(town.show("we-a")["status"], "open");
    assert_eq!(town.gt_json(&["mq", "show", "we-a"])["state"], "cancelled");
    assert_says(&refusal(&town.gt(["run", "cancel", "we-a@1"])), &["we-a@1"]);
}

#[test]
fn work_that_may_have_arrived_is_not_cancelled_before_the_origin_answers() {
    // Given work that the origin has, whose arrival no process has seen,
    let town = town_with_project(STAYS);
    cut_off(&town, "post-receive", "").kill_all();
    assert_eq!(town.landed("main").len(), 3);

    // when it is cancelled, or slung again, while the origin cannot be asked, that is refused;
    town.origin_is_there(false);
    for command in [["run", "cancel"], ["mq", "cancel"]] {
        let refused = refusal(&town.gt([command[0], command[1], "we-a"]));
        assert_says(&refused, &["we-a@1", "only the origin knows", "gt mq run"]);
    }
    assert_says(&refusal(&town.gt(["sling", "we-a"])), &["we-a@1"]);

    // and its bead is closed as soon as the origin says so.
    town.origin_is_there(true);
    town.cycle().ok();
    let bead = town.show("we-a");
    assert_eq!(bead["status"], "closed");
    assert_says(bead["close_reason"].as_str().unwrap(), &["we-a#1", "landed on main"]);
    assert_eq!(town.landed("main").len(), 3);
}

#[test]
fn files_of_a_run_are_saved_before_its_polecat_is_nuked() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("tea", "tea\n", "Tea");
    town.gt(["run", "cancel", "we-a"]).ok();
    // A person looks at it, and leaves another file.
    worker.write("milk", "milk\n");

    town.gt(["polecat", "nuke", "web/furiosa"]).ok();

    assert_eq!(town.rescued("we-a#1", "tea"), "tea");
    assert_eq!(town.rescued("we-a#1", "milk"), "milk");
}

#[test]
fn work_of_a_lost_run_is_saved_at_once() {
    let town = town_with_project(STAYS);
    town.gt(["config", "set", "recovery.cooldown", "1h"]).ok();
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.write("precious", "precious\n");
    worker.kill_all();
    town.gt(["scheduler", "pause"]).ok();

    town.cycle().ok();

    assert_eq!(worker.state(), "lost");
    assert_eq!(town.rescued("we-a#1", "precious"), "precious");
}

/// A process in the tree of a worker that holds nothing of it, like any daemon.
fn daemon_in_tree_of(
    worker: &Worker<'_>,
    root: &std::path::Path,
    run: &str,
) -> gt_testkit::RunningProgram {
    let script = "echo $$ > daemon.pid; while [ -d . ]; do echo late >> late.txt; sleep 0.05; done";
    let daemon = worker.command("/bin/sh").args(["-c", script]);
    let daemon = daemon.env("GT_RUN", run).env("GT_TOWN_ROOT", root).start();
    let path = worker.tree.join("daemon.pid");
    wait_until("the daemon has begun", || fs::read_to_string(&path).is_ok_and(|t| !t.is_empty()));
    daemon
}

#[test]
fn a_daemon_that_outlives_its_run_does_not_write_into_the_tree_of_the_next() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    let daemon = daemon_in_tree_of(&worker, town.cwd(), &worker.run);
    let number = fs::read_to_string(worker.tree.join("daemon.pid")).unwrap();
    worker.kill_all();

    town.cycle().ok();

    assert_eq!(town.states("we-a"), ["running", "lost"]);
    assert!(!is_alive(number.trim()));
    let _ = daemon.wait();
    let next = Worker::of(&town, "we-a#2");
    assert!(!next.tree.join("late.txt").exists());
    // The late file belongs to the lost run.
    assert!(town.rescued("we-a#1", "late.txt").starts_with("late"));
}

#[test]
fn a_worktree_with_a_foreign_process_is_not_reused_after_a_crash() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    let other = daemon_in_tree_of(&worker, town.cwd(), "we-zzz#9");
    let number = fs::read_to_string(worker.tree.join("daemon.pid")).unwrap();
    worker.kill_all();

    town.cycle().ok();
    wait_until("another run has begun", || {
        town.cycle().ok();
        town.states("we-a").first().is_some_and(|state| state == "running")
    });

    // The process belongs to no known run, so it is left alone.
    assert!(is_alive(number.trim()));
    let runs = town.gt_json(&["run", "list", "we-a"]);
    let last = runs[0]["id"].as_str().unwrap().to_owned();
    assert_ne!(Worker::of(&town, &last).tree, worker.tree);
    town.signal("KILL", number.trim());
    let _ = other.wait();
}

#[test]
fn work_after_a_refused_done_is_saved() {
    let town = town_with_project(STAYS);
    town.gt(["config", "set", "recovery.cooldown", "0s"]).ok();
    let worker = Worker::begin(&town, "we-a", &[]);
    town.person_lands("one", "theirs\n");
    worker.write("one", "one\n");
    assert_says(&refusal(&worker.gt(&["done"])), &["others have changed one"]);
    worker.git(&["checkout", "--quiet", "--detach"]).ok();
    worker.commit("two", "two\n", "Two");
    worker.kill_all();

    town.cycle().ok();

    Worker::of(&town, "we-a#2");
    assert_eq!(town.rescued("we-a#1", "two"), "two");
    assert_eq!(town.rescued("we-a#1", "one"), "one");
}

#[test]
fn work_on_an_older_branch_of_the_polecat_is_saved() {
    let town = town_with_project(STAYS);
    let first = Worker::begin(&town, "we-a", &[]);
    first.commit("first", "first\n", "First");
    town.gt(["run", "cancel", "we-a"]).ok();
    let second = Worker::begin(&town, "we-b", &[]);
    assert_eq!(first.tree, second.tree);
    second.git(&["switch", "--quiet", &first.branch]).ok();
    second.write("mine", "mine\n");

    town.gt(["run", "cancel", "we-b"]).ok();

    assert_eq!(town.rescued("we-b#1", "mine"), "mine");
    assert_eq!(town.rescued("we-b#1", "first"), "first");
}

#[test]
fn commits_on_the_branch_of_a_run_are_saved_wherever_its_head_is() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("tea", "tea\n", "Tea");
    let tea = worker.git(&["rev-parse", "HEAD"]).ok().line().to_owned();
    worker.git(&["checkout", "--quiet", "--detach", "HEAD~1"]).ok();

    town.gt(["run", "cancel", "we-a"]).ok();

    let rescue = town.gt_json(&["rescue", "show", "we-a#1"]);
    let reference = rescue["reference"].as_str().unwrap();
    git(&town, &town.shared(), &["merge-base", "--is-ancestor", &tea, reference]);
    // It is found from there, also when a person deletes the branch.
    git(&town, &town.shared(), &["update-ref", "-d", &format!("refs/heads/{}", worker.branch)]);
    let log = git(&town, &town.shared(), &["log", "--format=%s", reference]);
    assert_says(&log, &["Tea"]);
}

#[test]
fn work_that_waits_for_the_origin_says_so_and_holds_no_slot() {
    let town = town_with_project("says_where; wait_for \"end-$bead\"; exit 1");
    let worker = Worker::begin(&town, "we-a", &[]);
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    worker.commit("tea", "tea\n", "Tea");
    town.origin_is_there(false);
    assert_says(&worker.gt(&["done"]).ok().stdout, &["origin unreachable", "origin.git"]);
    worker.wait_until_gone();

    assert_says(&town.gt(["why", "we-a"]).ok().stdout, &["has not landed", "origin unreachable"]);
    assert_says(&town.gt(["mq", "list"]).ok().stdout, &["we-a@1", "origin unreachable"]);
    let cycle = town.gt_json(&["scheduler", "run"]);
    assert_eq!(cycle["waiting_for_origin"][0]["run"], "we-a#1");
    assert_says(cycle["waiting_for_origin"][0]["why"].as_str().unwrap(), &["origin.git"]);
    // The origin of a new run has to answer, too.
    town.origin_is_there(true);
    town.bead("we-b", &[]);
    town.gt(["sling", "we-b"]).ok();
    town.cycle().ok();
    // Its slot is free.
    Worker::of(&town, "we-b#1");
    town.gt(["mq", "retry", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Tea"]);
    assert_eq!(town.states("we-a"), ["done"]);
    town.allow("end-we-b");
}

/// Tmux, as the server of the sessions of a town understands it.
fn tmux(town: &Sandbox, arguments: &[&str]) -> gt_testkit::FinishedProgram {
    let place = town.root().join("tmux");
    let user = place.join(files_in(&place).pop().unwrap());
    let socket: PathBuf = user.join(files_in(&user).pop().unwrap());
    town.command("tmux").arg("-S").arg(socket).args(arguments).run()
}

#[test]
fn closing_by_force_ends_a_worker_in_a_session() {
    let town = town_with_project_by("tmux", STAYS);
    Worker::begin(&town, "we-a", &[]);
    let agent = town.agent_of("we-a");
    town.bd(["close", "we-a", "--force"]).ok();
    wait_until("the agent is gone", || !is_alive(&agent));
    wait_until("its session is gone", || town.polecats()[0]["session_alive"] == false);
    let next = Worker::begin(&town, "we-b", &[]);
    assert_eq!(town.polecats()[0]["name"], "furiosa");
    assert_says(&next.tree.display().to_string(), &["furiosa"]);
    town.gt(["run", "cancel", "we-b"]).ok();
}

#[test]
fn a_session_with_an_extra_window_keeps_no_run_from_starting() {
    let town = town_with_project_by("tmux", STAYS);
    Worker::begin(&town, "we-a", &[]);
    tmux(&town, &["new-window", "-d", "-t", "we-furiosa", "sleep 300"]).ok();
    town.gt(["run", "cancel", "we-a"]).ok();
    assert_eq!(town.polecats()[0]["session_alive"], true);

    let next = Worker::begin(&town, "we-b", &[]);

    assert_eq!(town.states("we-b"), ["running"]);
    assert_says(&next.tree.display().to_string(), &["furiosa"]);
    let sessions = tmux(&town, &["list-sessions", "-F", "#{session_name}"]).ok();
    assert_says(&sessions.stdout, &["we-furiosa\n", "we-furiosa-left-1\n"]);
    town.gt(["run", "cancel", "we-b"]).ok();
    assert_eq!(texts(&town.polecats(), "name"), ["furiosa"]);
    tmux(&town, &["kill-session", "-t", "we-furiosa-left-1"]).ok();
}

#[test]
fn an_agent_that_ends_well_and_has_done_nothing_is_not_started_again_and_a_person_is_told() {
    let town = town_with_project("echo 'I looked and found nothing'; echo; exit 0");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("a person is asked", || town.show("we-a")["status"] == "blocked");

    assert_eq!(town.states("we-a"), ["failed"]);
    let needs = town.gt_json(&["status"])["needs_you"].to_string();
    assert_says(
        &needs,
        &["we-a#1", "exit status 0", "without a change", "I looked and found nothing"],
    );
    town.cycle().ok();
    assert_eq!(town.states("we-a"), ["failed"], "nothing starts it again by itself");

    // A retry lifts the status that the end of the run has set, and the bead starts,
    town.bd(["update", "we-a", "--title", "Find more"]).ok();
    town.gt(["scheduler", "retry", "we-a"]).ok();
    town.cycle().ok();
    wait_until("it has run again", || town.states("we-a") == ["failed", "failed"]);
    wait_until("a person is asked again", || town.show("we-a")["status"] == "blocked");
    // but not the status that a person has set.
    town.bd(["update", "we-a", "--status", "open"]).ok();
    town.bd(["update", "we-a", "--status", "blocked"]).ok();
    let refused = refusal(&town.gt(["scheduler", "retry", "we-a"]));
    assert_says(&refused, &["its status is blocked", "bd update we-a --status open"]);
}

#[test]
fn an_agent_that_is_killed_before_it_has_done_anything_is_lost() {
    let town = town_with_project("says_where\n[ \"${run##*#}\" = 1 ] || exit 1\nkill -9 $$");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("it is lost", || town.states("we-a").contains(&"lost".to_owned()));
    assert_ne!(town.show("we-a")["status"], "blocked");
}
