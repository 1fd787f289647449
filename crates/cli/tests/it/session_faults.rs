//! The same faults with worktrees and sessions: after the death of any process nothing is lost, doubled, or waits for ever.

use std::fs;
use std::path::{Path, PathBuf};

use gt_testkit::{Sandbox, wait_until};

use crate::agents::{Stage as _, is_alive};
use crate::projects::{Origin as _, STAYS, Worker, project_agent, town_with_project_by};
use crate::support::{Steps as _, assert_says, files_in, refusal, texts};
use crate::trees::{Trees as _, WAIT, git, town_with_trees};

/// A town whose workers have trees and sessions, and are this script.
fn town_with_sessions(script: &str) -> Sandbox {
    town_with_project_by("tmux", script)
}

/// The sockets of the servers that were started below a directory.
fn sockets(place: &Path) -> Vec<PathBuf> {
    let users = fs::read_dir(place).unwrap().flatten();
    let sockets = users.flat_map(|user| fs::read_dir(user.path()).unwrap().flatten());
    sockets.map(|socket| socket.path()).collect()
}

/// The process of the server that has the sessions of a town.
#[track_caller]
fn server_of(town: &Sandbox) -> String {
    let socket = sockets(&town.root().join("tmux")).pop().expect("a server was started");
    let asked = town.command("tmux").arg("-S").arg(socket).args(["display", "-p", "#{pid}"]);
    asked.run().ok().line().to_owned()
}

/// Kills the server of the sessions, and waits until it is gone.
#[track_caller]
fn kill_server(town: &Sandbox) {
    let server = server_of(town);
    town.signal("KILL", &server);
    wait_until("the server is gone", || !is_alive(&server));
}

/// The record of a run, which a later pass reads when the supervisor is gone.
fn record_of(town: &Sandbox, run: &str) -> String {
    fs::read_to_string(town.cwd().join(format!(".gt/runs/{run}.lock"))).unwrap()
}

#[test]
fn an_agent_in_a_session_whose_supervisor_was_killed_is_never_joined_by_another() {
    let town = town_with_sessions(STAYS);
    town.gt(["config", "set", "recovery.cooldown", "0s"]).ok();
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.write("precious", "precious\n");
    town.signal("KILL", &town.supervisor_of("we-a#1"));
    for _ in 0..3 {
        town.cycle().ok();
    }
    assert_eq!(town.states("we-a"), ["running"]);
    assert_eq!(town.run_of("we-a")["alive"], true);

    // No process sees how it ends: its work is saved, the run is lost, and a new run does it again.
    town.signal("KILL", &town.agent_of("we-a"));
    worker.wait_until_gone();
    town.cycle().ok();
    let second = Worker::of(&town, "we-a#2");
    assert_eq!(town.states("we-a"), ["running", "lost"]);
    assert_eq!(town.run_of("we-a#2")["attempt"], 2);
    assert!(!second.tree.join("precious").exists());
    assert_eq!(town.rescued("we-a#1", "precious"), "precious");
    second.commit("tea", "tea\n", "Tea");
    second.gt(&["done"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Tea"]);
    town.assert_quiet();
}

#[test]
fn an_agent_in_a_session_that_is_killed_costs_an_attempt_and_no_work() {
    let town = town_with_sessions(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.write("precious", "precious\n");
    town.signal("KILL", &town.agent_of("we-a"));
    wait_until("the run is lost", || worker.state() == "lost");
    assert_eq!(town.run_of("we-a#1")["exit_signal"], 9);
    assert_eq!(town.rescued("we-a#1", "precious"), "precious");
    wait_until("its session is gone", || town.polecats()[0]["session_alive"] == false);
    town.cycle().ok();
    Worker::of(&town, "we-a#2");
    assert_eq!(town.run_of("we-a#2")["attempt"], 2);
    town.gt(["run", "cancel", "we-a"]).ok();
    town.assert_quiet();
}

/// Tmux, as the server of the sessions of a town understands it.
pub(crate) fn tmux(town: &Sandbox, arguments: &[&str]) -> gt_testkit::FinishedProgram {
    let socket = sockets(&town.root().join("tmux")).pop().expect("a server was started");
    town.command("tmux").arg("-S").arg(socket).args(arguments).run()
}

/// Waits until the supervisor of a run has opened another session for it than the one that this process holds.
#[track_caller]
pub(crate) fn wait_for_session(town: &Sandbox, run: &str, before: &str) -> String {
    let holder = || {
        let record = record_of(town, run);
        record.lines().find_map(|line| line.strip_prefix("session of ")).map(str::to_owned)
    };
    wait_until("another session is open", || holder().is_some_and(|holder| holder != before));
    wait_until("it is listed", || town.polecats()[0]["session_alive"] == true);
    holder().unwrap()
}

#[test]
fn a_worker_whose_session_is_killed_gets_another_one_and_goes_on() {
    let town = town_with_sessions("says_where; wait_for go; echo tea > tea");
    let worker = Worker::begin(&town, "we-a", &[]);
    let agent = town.agent_of("we-a");
    kill_server(&town);
    let first = wait_for_session(&town, "we-a#1", "");
    tmux(&town, &["kill-session", "-t", "we-furiosa"]).ok();
    let second = wait_for_session(&town, "we-a#1", &first);
    // A person who has a window in it does not keep the name.
    tmux(&town, &["new-window", "-d", "-t", "we-furiosa", "sleep 300"]).ok();
    town.signal("KILL", &second);
    wait_for_session(&town, "we-a#1", &second);
    town.cycle().ok();

    assert_eq!(town.states("we-a"), ["running"]);
    assert!(is_alive(&agent), "it is the same agent");
    let polecat = &town.polecats()[0];
    assert_eq!((&polecat["state"], &polecat["session"]), (&"working".into(), &"we-furiosa".into()));
    assert!(!record_of(&town, "we-a#1").contains("without session"));
    // Others get sessions of the same server meanwhile.
    Worker::begin(&town, "we-b", &[]);

    town.allow("go");
    for bead in ["we-a", "we-b"] {
        wait_until("the work has landed", || town.show(bead)["status"] == "closed");
        assert_eq!(town.states(bead), ["done"]);
    }
    assert_eq!(town.run_of("we-a")["attempt"], 1);
    assert_eq!(town.landed_file("tea").as_deref(), Some("tea\n"));
    assert!(worker.tree.exists());
    wait_until("its session ends with it", || {
        !tmux(&town, &["list-sessions", "-F", "#{session_name}"]).stdout.contains("we-furiosa\n")
    });
    tmux(&town, &["kill-server"]);
    town.assert_quiet();
}

#[test]
fn a_worker_without_session_can_be_cancelled() {
    let town = town_with_sessions("trap '' TERM HUP; says_where; wait_for never");
    let worker = Worker::begin(&town, "we-a", &[]);
    kill_server(&town);
    town.gt(["run", "cancel", "we-a", "--actor", "ann"]).ok();
    assert_eq!(worker.state(), "cancelled");
    assert!(!is_alive(&town.agent_of("we-a")));
    town.assert_quiet();
}

#[test]
fn a_run_that_goes_down_with_the_server_of_its_session_costs_no_attempt() {
    let town = town_with_sessions(STAYS);
    town.gt(["config", "set", "recovery.cooldown", "0s"]).ok();
    town.gt(["config", "set", "recovery.max_attempts", "1"]).ok();
    // Its supervisor finds a tmux that opens no session from then on.
    let real = town.command("sh").args(["-c", "command -v tmux"]).run().ok().line().to_owned();
    let broken = town.root().join("broken");
    let script = format!("[ ! -e '{}' ] || exit 1; exec '{real}' \"$@\"", broken.display());
    town.write_script("bin/tmux", &script);
    let path = town.command("sh").args(["-c", "echo $PATH"]).run().ok().line().to_owned();
    let path = format!("{}:{path}", town.cwd().join("bin").display());
    town.bead("we-a", &[]);
    town.start_gt(&["sling", "we-a"]).env("PATH", &path).run().ok();
    let worker = Worker::of(&town, "we-a#1");
    worker.write("precious", "precious\n");
    let supervisor = town.supervisor_of("we-a#1");
    fs::write(&broken, "").unwrap();
    kill_server(&town);
    wait_until("its supervisor has noticed", || {
        record_of(&town, "we-a#1").contains("without session")
    });
    town.signal("KILL", &format!("{supervisor} {}", town.agent_of("we-a")));
    worker.wait_until_gone();

    town.cycle().ok();

    Worker::of(&town, "we-a#2");
    assert_eq!(town.run_of("we-a#1")["reason"], "the server of its session went down");
    assert_eq!(town.run_of("we-a#2")["attempt"], 1);
    assert_eq!(town.rescued("we-a#1", "precious"), "precious");
    town.gt(["run", "cancel", "we-a"]).ok();
    town.assert_quiet();
}

#[test]
fn a_worker_in_a_session_that_does_not_listen_is_killed_and_its_place_is_free() {
    let town = town_with_sessions("trap '' TERM; says_where; wait_for never");
    let worker = Worker::begin(&town, "we-a", &[]);
    town.gt(["run", "cancel", "we-a"]).ok();
    assert_eq!(worker.state(), "cancelled");
    assert!(!is_alive(&town.agent_of("we-a")));
    wait_until("its session is gone", || town.polecats()[0]["session_alive"] == false);

    // So is one whose bead is closed by force.
    Worker::begin(&town, "we-b", &[]);
    let agent = town.agent_of("we-b");
    town.bd(["close", "we-b", "--force"]).ok();
    wait_until("its agent has ended", || !is_alive(&agent));
    assert_eq!(town.states("we-b"), ["cancelled"]);
    project_agent(&town, "says_where");
    Worker::begin(&town, "we-c", &[]);
    wait_until("the next one is done", || town.states("we-c") == ["done"]);
    assert_eq!(texts(&town.polecats(), "name"), ["furiosa"]);
    town.assert_quiet();
}

#[test]
fn git_that_dies_while_a_session_gets_its_tree_costs_a_try_and_no_work() {
    let town = town_with_trees("tmux");
    let real = town.command("sh").args(["-c", "command -v git"]).run().ok().line().to_owned();
    let path = town.command("sh").args(["-c", "echo $PATH"]).run().ok().line().to_owned();
    let path = format!("{}:{path}", town.cwd().join("bin").display());
    for (number, word) in ["worktree", "reset"].into_iter().enumerate() {
        let bead = format!("we-{number}");
        let once = town.root().join(format!("killed-{word}"));
        let script = format!(
            "case \" $* \" in *' {word} '*) if mkdir '{}' 2>/dev/null; then\n\
             '{real}' \"$@\" & pid=$!; sleep 0.01; kill -9 $pid 2>/dev/null; kill -9 $PPID $$; fi;; esac\n\
             exec '{real}' \"$@\"",
            once.display()
        );
        town.write_script("bin/git", &script);
        town.script(&bead, &format!("echo precious-{number} > work-{number}.txt"));
        let with_path = |arguments: &[&str]| town.start_gt(arguments).env("PATH", &path).run();
        let ran = with_path(&["sling", &bead]);
        wait_until(&format!("{bead} has landed ({word})\n{ran}"), || {
            let _ = town.gt(["scheduler", "retry", &bead]);
            let _ = with_path(&["scheduler", "run"]);
            town.show(&bead)["status"] == "closed"
        });
        assert!(once.exists(), "git {word} was never called");
        if word == "worktree" {
            // The next one makes a new tree too.
            town.gt(["polecat", "nuke", "web/furiosa"]).ok();
        }
    }
    let origin = town.root().join("origin.git");
    let landed = git(&town, &origin, &["ls-tree", "--name-only", "main"]);
    assert_says(&landed, &["work-0.txt", "work-1.txt"]);
    assert_eq!(git(&town, &origin, &["rev-list", "--count", "main"]), "4");
}

#[test]
fn a_session_begins_and_waits_to_land_while_the_origin_is_away() {
    let town = town_with_sessions("says_where; wait_for \"go-$bead\"; echo \"$bead\" > \"$bead\"");
    Worker::begin(&town, "we-a", &[]);
    town.origin_is_there(false);
    // Work begins from what is known.
    Worker::begin(&town, "we-b", &[]);
    for bead in ["we-a", "we-b"] {
        let supervisor = town.supervisor_of(&format!("{bead}#1"));
        town.allow(&format!("go-{bead}"));
        wait_until("its supervisor has ended", || !is_alive(&supervisor));
        assert_eq!(town.reasons(bead), ["held"]);
    }
    town.cycle().ok();
    town.origin_is_there(true);
    for bead in ["we-a", "we-b"] {
        town.gt(["mq", "retry", bead]).ok();
    }
    town.gt(["mq", "run"]).ok();
    for bead in ["we-a", "we-b"] {
        assert_eq!(town.states(bead), ["done"]);
        assert_eq!(town.landed_file(bead).as_deref(), Some(format!("{bead}\n").as_str()));
    }
    assert_eq!(town.landed("main").len(), 3);
    town.assert_quiet();
}

#[test]
fn work_that_the_origin_rejects_is_kept_and_told() {
    let town = town_with_sessions("says_where; echo tea > tea");
    town.origin_hook("pre-receive", "echo 'sign the agreement first'; exit 1");
    Worker::begin(&town, "we-a", &[]);
    wait_until("it is held", || town.reasons("we-a") == ["held"]);
    assert_eq!(town.states("we-a"), ["done"]);
    let told = town.gt(["status"]).ok().stdout;
    assert_says(&told, &["we-a@1", "origin refused", "sign the agreement first"]);
    assert_eq!(town.landed("main"), ["First commit"]);
    town.assert_quiet();
}

#[test]
fn a_clock_that_jumps_loses_nothing_doubles_nothing_and_delays_no_run() {
    for days in [2, -2] {
        let town =
            town_with_sessions("says_where; wait_for \"go-$bead\"; echo \"$bead\" > \"$bead\"");
        let jump = days * 24 * 60 * 60;
        let cycle = || town.start_gt_later(&["scheduler", "run"], jump).run().ok();
        // One works, one could not be started and backs off, one was lost twice and cools down.
        Worker::begin(&town, "we-works", &[]);
        Worker::begin(&town, "we-lost", &[]);
        for epoch in 1..=2 {
            let run = format!("we-lost#{epoch}");
            Worker::of(&town, &run);
            town.signal("KILL", &town.agent_of("we-lost"));
            wait_until("the run is lost", || town.run_of(&run)["state"] == "lost");
            town.cycle().ok();
        }
        assert_eq!(town.reasons("we-lost"), ["backoff"]);
        town.gt(["config", "set", "rig.web.setup", "exit 7"]).ok();
        town.bead("we-back", &[]);
        town.gt(["sling", "we-back"]).fails(1);
        assert_eq!(town.reasons("we-back"), ["backoff"]);
        town.gt(["config", "set", "rig.web.setup", ""]).ok();

        cycle();

        assert_eq!(town.states("we-works"), ["running"], "{days} days");
        for (bead, epoch) in [("we-lost", 3), ("we-back", 2)] {
            Worker::of(&town, &format!("{bead}#{epoch}"));
        }
        for bead in ["we-works", "we-lost", "we-back"] {
            town.allow(&format!("go-{bead}"));
            wait_until("the work has landed", || {
                cycle();
                town.show(bead)["status"] == "closed"
            });
            assert_eq!(town.states(bead)[0], "done", "{days} days");
            assert_eq!(town.states(bead).iter().filter(|state| *state == "done").count(), 1);
        }
        assert_eq!(town.landed("main").len(), 4);
        // And back to where it was.
        town.cycle().ok();
        Worker::begin(&town, "we-after", &[]);
        town.allow("go-we-after");
        wait_until("the work has landed", || town.show("we-after")["status"] == "closed");
        town.assert_quiet();
    }
}

/// How much a worker prints. A run by hand used 1024; this keeps the suite fast.
const FLOOD_MEGABYTES: u64 = 64;
/// How much memory a supervisor may take for that, in kilobytes: less than what was printed.
const MEMORY_KB_MAX: u64 = 40_000;

/// The most memory that a process has taken, in kilobytes. The pages of its program file are left out: a program that was
/// built for tests has 200 MB of them, and the kernel maps as many as it likes.
#[track_caller]
fn peak_memory_kb(process: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let kilobytes = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    kilobytes("VmHWM:").saturating_sub(kilobytes("RssFile:"))
}

/// A runtime that follows scripts on a terminal.
const ON_A_TERMINAL: &str = r#"extends = "scripted"
prompt = "file"
command = """sh -c 'exec "$0" scripted' {gt} {prompt_file}"""
"#;

#[test]
fn a_worker_that_floods_its_session_is_kept_whole_in_little_memory() {
    let town = town_with_sessions("");
    town.write(".gt/runtimes/screen.toml", ON_A_TERMINAL);
    let script = format!(
        "```gt-script\nflood {FLOOD_MEGABYTES}\nsay the end\ntouch flooded\nwait-for go\nedit {{run}}.txt {{run}}\ndone\n```"
    );
    // A terminal ends each line of a kilobyte with one more byte.
    for (runtime, line_bytes) in [("scripted", 1024), ("screen", 1025)] {
        town.gt(["config", "set", "rig.web.runtime", runtime]).ok();
        let bead = town.create("Flood", &["--rig", "web", "--description", &script]);
        town.gt(["sling", &bead]).ok();
        // While a session still shows the last flood, the next worker may have gone elsewhere.
        let run = town.run_of(&bead);
        let (run, polecat) = (run["id"].as_str().unwrap(), run["agent"].as_str().unwrap());
        let polecat = polecat.rsplit('/').next().unwrap();
        let supervisor = town.supervisor_of(run);
        let flooded = town.tree(polecat).join("flooded");
        wait_until("everything was printed", || flooded.exists());

        let peak = peak_memory_kb(&supervisor);
        assert!(peak < MEMORY_KB_MAX, "the supervisor took {peak} kB ({runtime})");

        fs::remove_file(flooded).unwrap();
        fs::write(town.tree(polecat).join("go"), "").unwrap();
        wait_until("the work is done", || town.states(&bead)[0] == "done");
        let log = town.cwd().join(format!(".gt/runs/{run}.log"));
        let printed = FLOOD_MEGABYTES * 1024 * line_bytes;
        let kept = log.metadata().unwrap().len();
        assert!(kept >= printed && kept < printed + 10_000, "{kept} of {printed} ({runtime})");
        assert_says(&town.gt(["polecat", "peek", &bead, "-n", "9"]).ok().stdout, &["the end"]);
    }
    town.assert_quiet();
}

/// A gigabyte that takes no room.
const GIGABYTE: u64 = 1_000_000_000;

#[test]
fn an_uncommitted_gigabyte_is_moved_and_not_copied() {
    let town = town_with_trees("tmux");
    let huge = format!("truncate -s {GIGABYTE} huge.bin; echo small > small.txt; exit 1");
    town.script("we-1", &huge);
    town.script("we-2", "ls");
    assert_eq!(town.work("we-1", &[]), "failed");
    let rescue = town.gt_json(&["rescue", "show", "we-1"]);
    assert_says(rescue["left_out"][0].as_str().unwrap(), &["huge.bin: too large"]);
    assert_eq!(town.rescued("we-1", "small.txt"), "small");

    assert_eq!(town.work("we-2", &[]), "done");
    town.gt(["polecat", "nuke", "web/furiosa"]).ok();
    town.gt(["polecat", "undelete", "#1"]).ok();

    assert_eq!(town.tree("furiosa").join("huge.bin").metadata().unwrap().len(), GIGABYTE);
    let kilobytes = town.command("du").args(["-sk"]).arg(town.cwd().join("web")).run().ok();
    let kilobytes: u64 = kilobytes.line().split_whitespace().next().unwrap().parse().unwrap();
    assert!(kilobytes < 10_000, "{kilobytes} kB were written");
}

#[test]
fn two_towns_that_share_everything_but_their_directories_do_not_meet() {
    let (one, other) = (town_with_trees("tmux"), town_with_trees("tmux"));
    // One user has one place for sockets.
    let place = one.root().join("tmux");
    let gt = |town: &Sandbox, arguments: &[&str]| {
        town.start_gt(arguments).env("TMUX_TMPDIR", &place).run()
    };
    let polecats = |town: &Sandbox| gt(town, &["polecat", "list", "--json"]).ok().json();
    for town in [&one, &other] {
        for bead in ["we-1", "we-2"] {
            town.script(bead, &format!("echo {} > whose.txt{WAIT}", town.root().display()));
            gt(town, &["sling", bead]).ok();
        }
    }
    assert_eq!(sockets(&place).len(), 2);
    let names = |town: &Sandbox| texts(&polecats(town), "session");
    assert_eq!(names(&one), ["we-furiosa", "we-nux"]);
    assert_eq!(names(&one), names(&other));

    gt(&one, &["run", "cancel", "we-1"]).ok();
    gt(&one, &["polecat", "nuke", "web/furiosa"]).ok();
    assert_eq!(texts(&polecats(&one), "name"), ["nux"]);
    assert_eq!(texts(&polecats(&other), "name"), ["furiosa", "nux"]);
    let alive = |town: &Sandbox| -> Vec<bool> {
        let all = polecats(town);
        let all = all.as_array().unwrap().iter();
        all.map(|polecat| polecat["session_alive"] == true).collect()
    };
    assert_eq!((alive(&one), alive(&other)), (vec![true], vec![true, true]));
    let whose = other.tree("furiosa").join("whose.txt");
    assert_says(&fs::read_to_string(whose).unwrap(), &[&other.root().display().to_string()]);
    let message = refusal(&gt(&one, &["polecat", "attach", "we-1"]));
    assert_says(&message, &["no session we-furiosa"]);

    // The end of one server is not that of the other.
    let mine: Vec<PathBuf> = sockets(&place)
        .into_iter()
        .filter(|socket| {
            let ask = one.command("tmux").arg("-S").arg(socket).args(["list-panes", "-a", "-F"]);
            ask.arg("#{pane_current_path}").run().stdout.contains(&one.root().display().to_string())
        })
        .collect();
    assert_eq!(mine.len(), 1);
    one.command("tmux").arg("-S").arg(&mine[0]).arg("kill-server").run().ok();
    assert_eq!(alive(&other), [true, true]);
    wait_until("the run of the first gets another session", || alive(&one) == [true]);
    for town in [&one, &other] {
        town.write("go", "");
        wait_until("we-2 is done", || town.run_of("we-2")["state"] == "done");
    }
    assert_eq!(files_in(one.cwd().join("web/.trash")).len(), 2);
}
