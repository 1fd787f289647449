//! `gt done`: accepted and refused work, and the callers that may finish a run.

use std::fs;

use gt_testkit::wait_until;
use serde_json::json;

use crate::agents::{Stage as _, is_alive, town_with_agent};
use crate::projects::{
    Origin as _, STAYS, Sessions, Worker, town_with_project, town_with_project_by,
};
use crate::support::{Steps as _, assert_says, refusal};

#[test]
fn everything_in_the_tree_is_committed() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("kept", "one\n", "By the worker itself");
    worker.write("kept", "two\n");
    worker.write("new/and deep", "new\n");
    worker.write(".gitignore", "*.log\n");
    worker.write("noise.log", "noise\n");
    fs::remove_file(worker.tree.join("README.md")).unwrap();

    worker.gt(&["done", "-m", "The rest"]).ok();

    assert_eq!(town.landed("main"), ["First commit", "By the worker itself", "The rest"]);
    assert_eq!(town.landed_file("kept").as_deref(), Some("two\n"));
    assert_eq!(town.landed_file("new/and deep").as_deref(), Some("new\n"));
    assert_eq!((town.landed_file("README.md"), town.landed_file("noise.log")), (None, None));
}

#[test]
fn unacceptable_work_is_refused_with_a_hint() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    let before = worker.git(&["rev-parse", "HEAD"]).ok().stdout;
    let refuses = |parts: &[&str]| {
        let said = refusal(&worker.gt(&["done"]));
        assert_says(&said, parts);
        assert_says(&said, &["gt done again"]);
        assert_eq!(worker.state(), "running");
    };

    worker.write("torn", "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n");
    refuses(&["conflict markers", "torn", "resolve them"]);
    fs::remove_file(worker.tree.join("torn")).unwrap();

    let large = fs::File::create(worker.tree.join("large")).unwrap();
    large.set_len(101 * 1024 * 1024).unwrap();
    refuses(&["larger than", "large", ".gitignore"]);
    fs::remove_file(worker.tree.join("large")).unwrap();

    worker.write("nested/file", "x\n");
    worker.git(&["init", "--quiet", "nested"]).ok();
    refuses(&["nested", "a repository of its own"]);
    fs::remove_dir_all(worker.tree.join("nested")).unwrap();

    worker.git(&["switch", "--quiet", "--detach"]).ok();
    worker.commit("tea", "tea\n", "Tea");
    refuses(&["is on no branch", &format!("git switch {}", worker.branch), "git merge"]);
    assert_eq!(worker.git(&["rev-parse", &worker.branch]).ok().stdout, before, "nothing changed");

    // The commands of the hint work.
    let head = worker.git(&["rev-parse", "HEAD"]).ok();
    worker.git(&["switch", "--quiet", &worker.branch]).ok();
    worker.git(&["merge", "--quiet", head.line()]).ok();
    worker.gt(&["done"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Tea"]);
}

#[test]
fn reverted_staged_changes_are_nothing_to_commit() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.write("new", "new\n");
    worker.write("README.md", "changed\n");
    let readme = worker.git(&["show", "HEAD:README.md"]).ok().stdout;
    worker.git(&["add", "--all"]).ok();
    fs::remove_file(worker.tree.join("new")).unwrap();
    worker.write("README.md", &readme);

    assert_says(&refusal(&worker.gt(&["done"])), &["we-a#1 changed nothing"]);
    let why = ["done", "--no-changes", "-m", "It was right before"];
    assert_says(&worker.gt(&why).ok().stdout, &["we-a#1 is done: nothing had changed"]);

    assert_eq!(town.landed("main"), ["First commit"]);
    assert_eq!(town.show("we-a")["status"], "closed");
}

#[test]
fn commits_that_change_no_file_are_no_change() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.git(&["commit", "--quiet", "--allow-empty", "-m", "Nothing"]).ok();
    worker.commit("tea", "tea\n", "Tea");
    worker.git(&["revert", "--no-edit", "HEAD"]).ok();

    let told = refusal(&worker.gt(&["done"]));

    assert_says(&told, &["leave every file as it is in main", "gt done --no-changes -m"]);
    worker.gt(&["done", "--no-changes", "-m", "It was right before"]).ok();
    assert_eq!(town.show("we-a")["status"], "closed");
    assert_eq!(town.landed("main"), ["First commit"]);
}

#[test]
fn a_stuck_worker_can_always_escalate() {
    let town = town_with_project(STAYS);
    let stuck = Worker::begin(&town, "we-a", &[]);
    let later = Worker::begin(&town, "we-b", &[]);
    let broken = Worker::begin(&town, "we-c", &[]);
    // Given one in the middle of a rebase, with conflicts,
    stuck.commit("README.md", "ours\n", "Ours");
    town.person_lands("README.md", "theirs\n");
    stuck.git(&["fetch", "--quiet", "--refmap=", "--no-tags", "origin", "main"]).ok();
    assert_ne!(stuck.git(&["rebase", "FETCH_HEAD"]).code, 0);
    // one on no branch, with what would be refused,
    later.git(&["switch", "--quiet", "--detach"]).ok();
    later.commit("half", "half of it\n", "Half");
    later.write("torn", "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n");
    // and one whose tree git does not know any more,
    broken.write("tea", "tea\n");
    fs::remove_file(broken.tree.join(".git")).unwrap();

    // when they say so,
    let said = ["done", "--status", "escalated", "-m", "I cannot resolve this"];
    let asked = stuck.gt(&said).ok().stdout;
    let put_off =
        later.gt(&["done", "--status", "deferred", "-m", "not my day", "--json"]).ok().json();
    let helpless = broken.gt(&["done", "--status", "escalated"]).ok().stdout;

    // then they are heard, and what they have is saved and named.
    assert_says(&asked, &["a person is asked", "saved", "gt rescue show we-a#1", &stuck.branch]);
    assert_eq!(town.show("we-a")["status"], "blocked");
    let needed = town.why("we-a")["needs_you"][0].to_string();
    assert_says(&needed, &["I cannot resolve this", "gt rescue show we-a#1", "a rebase has begun"]);
    let saved = town.gt(["rescue", "show", "we-a", "--json"]).ok().json();
    let torn = format!("{}:README.md", saved["commit"].as_str().unwrap());
    assert_says(&stuck.git(&["show", &torn]).ok().stdout, &["<<<<<<<", "ours", "theirs"]);
    assert_eq!(stuck.git(&["log", "-1", "--format=%s", &stuck.branch]).ok().line(), "Ours");

    assert_eq!((&put_off["work"], &put_off["status"]), (&json!("saved"), &json!("deferred")));
    let saved = put_off["commit"].as_str().unwrap();
    assert_eq!(later.git(&["show", &format!("{saved}:half")]).ok().stdout, "half of it\n");
    assert_eq!(town.show("we-b")["status"], "deferred");
    assert_says(&town.run_of("we-b#1")["reason"].to_string(), &["put it off", "not my day"]);

    assert_says(&helpless, &["a person is asked", "not be saved", "stays in web/polecats/"]);
    assert_eq!(town.show("we-c")["status"], "blocked");
    assert_says(&town.why("we-c")["needs_you"][0].to_string(), &["stays in web/polecats/"]);
    for bead in ["we-a", "we-b", "we-c"] {
        assert_eq!(town.states(bead), ["cancelled"]);
    }
    assert_eq!(town.landed("main").len(), 2);
}

#[test]
fn another_branch_is_not_the_work_of_the_run() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    // A person can make one.
    let made = worker.command("git").args(["switch", "--quiet", "-c", "aside"]);
    made.env_remove("GT_RUN").env_remove("GT_RUN_TOKEN").run().ok();

    let refused = refusal(&worker.gt(&["done"]));

    let back = format!("git switch {}", worker.branch);
    assert_says(&refused, &["is on aside", &worker.branch, &back, "gt done again"]);
}

#[test]
fn a_rig_without_repository_has_nothing_to_land() {
    let town = town_with_agent("gt=$(cat $stage/gt); $gt done > $stage/said; wait_for never");
    fs::write(town.stage("gt"), town.gt_path().to_str().unwrap()).unwrap();
    town.bead("we-a", &[]);

    town.gt(["sling", "we-a"]).ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    let run = town.run_of("we-a");
    assert_eq!(
        (&run["state"], &run["reason"]),
        (&json!("done"), &json!("its worker said that it is done"))
    );
    let agent = town.agent_of("we-a");
    wait_until("the agent is ended", || !is_alive(&agent));
    let said = fs::read_to_string(town.stage("said")).unwrap();
    assert_says(&said, &["✓ we-a#1 is done: nothing had changed"]);
}

#[test]
fn an_agent_that_goes_on_after_gt_done_is_ended_and_its_place_is_free() {
    // It asks for more time than it gets.
    let stubborn = "trap 'echo asked >> $stage/asked' TERM\necho tea > tea\ngt done > $stage/said\n\
                    while [ -d \"$stage\" ]; do sleep 0.05; done";
    let town = town_with_project(stubborn);
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    let agent = town.agent_of("we-a");
    wait_until("the agent is ended", || !is_alive(&agent));
    wait_until("nothing of it is left", || town.run_of("we-a#1")["alive"] == json!(false));
    assert!(town.stage("asked").exists(), "it was asked first");
    assert_eq!(town.states("we-a"), ["done"]);
    assert_eq!(town.landed("main"), ["First commit", "we-a"]);
}

#[test]
fn no_run_waits_for_a_polecat_whose_agent_is_still_leaving() {
    // Given an agent that is done and takes its time,
    let town = town_with_project(
        "if [ $bead = we-a ]; then\n    echo tea > tea; gt done > $stage/said\n    wait_for leave\nelse\n    wait_for end\nfi",
    );
    town.gt(["config", "set", "worker.kill_grace", "10m"]).ok();
    for bead in ["we-a", "we-b", "we-c"] {
        town.bead(bead, &[]);
    }
    town.gt(["sling", "we-a"]).ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");
    let place = town.run_of("we-a#1")["agent"].as_str().unwrap().to_owned();

    // when others are slung,
    let other = town.gt(["sling", "we-b"]).ok();
    let same = town.gt(["sling", "we-c", &place]).ok();

    // then who needs no particular place gets another one, and who does waits without having failed.
    assert_says(&other.stdout, &["✓ Started we-b"]);
    assert_ne!(town.run_of("we-b")["agent"], json!(place));
    assert_eq!(town.states("we-b"), ["running"], "no other run of it was written");
    assert_says(&same.stdout, &["✓ Scheduled we-c", "waiting: backoff"]);
    assert_says(&same.stderr, &["uses the tree of"]);
    let context = town.why("we-c")["context"].clone();
    assert_eq!(
        (&context["failures"], &town.why("we-b")["context"]["failures"]),
        (&json!(0), &json!(0))
    );
    town.allow("leave");
    town.allow("end");
}

#[test]
fn an_agent_that_ends_by_itself_after_gt_done_has_the_time_to() {
    let town =
        town_with_project("echo tea > tea; gt done > $stage/said; echo goodbye > $stage/goodbye");
    town.gt(["config", "set", "worker.kill_grace", "10m"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();

    wait_until("it has ended", || town.story().contains(&"- we-a#1".to_owned()));

    assert!(town.stage("goodbye").exists());
    assert_says(&fs::read_to_string(town.stage("said")).unwrap(), &["landed on main as"]);
    assert_eq!(town.states("we-a"), ["done"]);
}

#[test]
fn in_a_session_the_agent_is_ended_too() {
    let script = "echo tea > tea; gt done > $stage/said; wait_for never";
    let town = town_with_project_by("tmux", script);
    let sessions = Sessions::of(&town);
    town.bead("we-a", &[]);

    sessions.gt(&["sling", "we-a"]).ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    let agent = town.agent_of("we-a");
    wait_until("the agent is ended", || !is_alive(&agent));
    wait_until("nothing of it is left", || town.run_of("we-a#1")["alive"] == json!(false));
    assert_eq!(town.landed("main"), ["First commit", "we-a"]);
}

#[test]
fn a_person_names_the_run_that_is_done() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    let other = Worker::begin(&town, "we-b", &[]);
    worker.write("tea", "tea\n");
    let person = |arguments: &[&str]| {
        let gt = worker.command(town.gt_path()).args(arguments);
        gt.env_remove("GT_RUN").env_remove("GT_RUN_TOKEN").run()
    };

    assert_says(&refusal(&person(&["done"])), &["GT_RUN names no run", "gt done --run"]);
    assert_says(
        &refusal(&other.gt(&["done", "--run", "we-a#1"])),
        &["this is the worker of we-b#1", "cannot finish we-a#1"],
    );
    assert_says(
        &refusal(&person(&["done", "--run", "we-a#7"])),
        &["we-a has no run 7", "gt run list we-a"],
    );
    // A bead is enough where its run is meant.
    let done = person(&["done", "--run", "we-a"]).ok();
    assert_says(&done.stderr, &["Acting for the worker of we-a#1"]);
    assert_eq!(town.landed("main"), ["First commit", "we-a"]);

    // At a terminal, standing in a tree is enough.
    other.write("more", "tea\n");
    let line = format!("'{}' done", town.gt_path().display());
    let at_terminal = town.command("script").args(["-qec", &line, "/dev/null"]);
    let done = at_terminal.dir(&other.tree).run().ok();
    assert_says(&done.stdout, &["Acting for the worker of we-b#1", "we-b#1 is done"]);
    let at_terminal = town.command("script").args(["-qec", &line, "/dev/null"]).run();
    assert_says(&at_terminal.stdout, &["this is not the tree of a run"]);
}

#[test]
fn a_run_that_is_done_cannot_be_done_again() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("tea", "tea\n", "Tea");
    worker.gt(&["done"]).ok();

    assert_says(&refusal(&worker.gt(&["done"])), &["we-a#1 is done already", "stop here"]);

    assert_eq!(town.landed("main"), ["First commit", "Tea"]);
}

#[test]
fn a_link_to_a_directory_is_accepted_like_any_other_file() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.write("src/tea", "tea\n");
    std::os::unix::fs::symlink("src", worker.tree.join("lib")).unwrap();

    worker.gt(&["done"]).ok();

    assert_eq!(town.landed_file("src/tea").as_deref(), Some("tea\n"));
    assert_eq!(town.landed_file("lib").as_deref(), Some("src"));
}
