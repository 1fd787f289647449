//! Runs on another machine, which is this one behind a real sshd.

use std::fs;
use std::path::PathBuf;

use gt_testkit::{Sandbox, Sshd, wait_until};
use serde_json::json;

use crate::agents::{Stage as _, is_alive, set_agent};
use crate::support::{Steps as _, assert_says, refusal, texts, town};

/// A town whose rig `web` works on another machine.
struct Elsewhere {
    town: Sandbox,
    sshd: Sshd,
}

impl std::ops::Deref for Elsewhere {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.town
    }
}

impl Elsewhere {
    /// Has the agents of `web` be this script, over there.
    #[track_caller]
    fn with_agent(script: &str) -> Self {
        let (town, sshd) = (town(), Sshd::start(&[]));
        town.gt(["rig", "add", "web", "--executor", "ssh", "--host", sshd.host()]).ok();
        set_agent(&town, script);
        let there = Self { town, sshd };
        there.use_config(&there.sshd.client_config());
        for (name, value) in [
            ("worker.kill_grace", "300ms"),
            ("rig.web.ssh.gt", there.gt_path().to_str().unwrap()),
            ("rig.web.ssh.directory", there.directory().to_str().unwrap()),
        ] {
            there.gt(["config", "set", name, value]).ok();
        }
        there
    }

    fn use_config(&self, config: &std::path::Path) {
        let command = format!("ssh -T -F {} -oBatchMode=yes -oConnectTimeout=10", config.display());
        self.gt(["config", "set", "rig.web.ssh.command", &command]).ok();
    }

    /// Where it works over there.
    fn directory(&self) -> PathBuf {
        self.root().join("there")
    }

    /// Kills who stays with the agent of a run over there.
    #[track_caller]
    fn kill_keeper(&self, run: &str) {
        let towns = fs::read_dir(self.directory().join(".gt/runs")).unwrap();
        let lock = towns.flatten().next().unwrap().path().join(format!("{run}.lock"));
        let written = || fs::read_to_string(&lock).unwrap();
        wait_until("the agent is written down", || {
            written().lines().next().is_some_and(|line| line.split_whitespace().count() == 3)
        });
        let keeper = written().split_whitespace().next().unwrap().to_owned();
        self.signal("KILL", &keeper);
        wait_until("the keeper is gone", || !is_alive(&keeper));
    }

    /// The processes on this machine that supervise a run.
    #[track_caller]
    fn supervisors(&self, run: &str) -> Vec<String> {
        let root = format!("-C {} ", self.cwd().display());
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let numbers = processes.filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse::<u32>().ok()?.to_string();
            let words = fs::read_to_string(format!("/proc/{number}/cmdline")).ok()?;
            let words = words.replace('\0', " ");
            let is_one = words.contains(&root) && words.contains(&format!("worker exec {run} "));
            (is_one && is_alive(&number)).then_some(number)
        });
        numbers.collect()
    }
}

#[test]
fn a_bead_is_done_on_another_machine() {
    let there =
        Elsewhere::with_agent("cat > $stage/prompt; env > $stage/env; pwd; echo done with $bead");
    there.bead("we-a", &[]);

    there.gt(["sling", "we-a"]).ok();

    wait_until("the bead is closed", || there.show("we-a")["status"] == "closed");
    let run = there.run_of("we-a");
    assert_eq!(
        (&run["state"], &run["exit_code"], &run["executor"], &run["agent"]),
        (&json!("done"), &json!(0), &json!("ssh"), &json!("web/ssh"))
    );
    // Its output is here, and it was started there.
    let output = format!("{}\ndone with we-a\n", there.directory().display());
    assert_eq!(there.gt(["run", "log", "we-a"]).ok().stdout, output);
    let environment = fs::read_to_string(there.stage("env")).unwrap();
    assert_says(&environment, &["GT_RUN=we-a#1\n", "BD_ACTOR=web/ssh\n", "GT_SOCKET="]);
    assert!(!environment.contains("GT_TOWN_ROOT"), "{environment}");
    assert!(!environment.contains("DATABASE_URL"), "{environment}");
    assert_says(&fs::read_to_string(there.stage("prompt")).unwrap(), &["This is the run we-a#1."]);
    there.assert_quiet();
}

#[test]
fn a_silent_remote_worker_is_reported_while_its_machine_answers() {
    let there = Elsewhere::with_agent("wait_for speak; echo hello; wait_for go");
    there.bead("we-a", &[]);
    there.gt(["sling", "we-a"]).ok();
    there.wait_for_agent("we-a#1");
    let needs = || texts(&there.gt_json(&["status"])["needs_you"], "code");
    there.cycle().ok();
    assert_eq!(needs(), [] as [&str; 0]);

    there.gt(["config", "set", "worker.stall_after", "1s"]).ok();
    wait_until("it is told", || {
        there.cycle().ok();
        needs() == ["stalled"]
    });

    there.gt(["config", "set", "worker.stall_after", "1h"]).ok();
    there.allow("speak");
    wait_until("it goes on", || {
        there.cycle().ok();
        needs().is_empty()
    });
    there.allow("go");
    wait_until("the bead is closed", || there.show("we-a")["status"] == "closed");
    there.assert_quiet();
}

#[test]
fn a_remote_agent_has_a_terminal_and_a_prompt_file_if_it_needs_them() {
    let there = Elsewhere::with_agent("true");
    let stage = there.stage("").display().to_string();
    let agent = there.write_script(
        "terminal-agent",
        &format!(
            "cat \"$1\" > {stage}/prompt; test -t 0 && test -t 1 && echo on a terminal; gt done"
        ),
    );
    let command = format!("'{}' {{prompt_file}}", agent.display());
    for (key, value) in [("command", &*command), ("prompt", "file"), ("interactive", "true")] {
        there.gt(["config", "agent", "set", "visible", key, value]).ok();
    }
    there.bead("we-a", &[]);

    there.gt(["sling", "we-a", "--agent", "visible"]).ok();

    wait_until("it is done", || there.states("we-a") == ["done"]);
    // The run is done before its agent prints that.
    wait_until("its output is there", || {
        let output = there.gt(["run", "log", "we-a"]).ok().stdout;
        output.contains("on a terminal") && output.contains('✓')
    });
    assert_says(&fs::read_to_string(there.stage("prompt")).unwrap(), &["we-a", "gt done"]);
    there.assert_quiet();
}

#[test]
fn a_remote_worker_that_fails_or_is_killed_ends_its_run_the_same_way() {
    let there =
        Elsewhere::with_agent("case $bead in we-a) echo no; exit 3;; we-b) kill -9 $$;; esac");
    for bead in ["we-a", "we-b"] {
        there.bead(bead, &[]);
        there.gt(["sling", bead]).ok();
    }

    wait_until("the first has failed", || there.states("we-a") == ["failed"]);
    wait_until("the second is lost", || there.states("we-b").last().unwrap() == "lost");
    let [failed, lost] = ["we-a#1", "we-b#1"].map(|run| there.run_of(run));
    assert_eq!(
        (&failed["exit_code"], &failed["reason"]),
        (&json!(3), &json!("it ended with exit status 3; last output: no"))
    );
    assert_eq!(lost["reason"], "it was killed by signal 9");
    assert_eq!(there.gt(["run", "log", "we-a"]).ok().stdout, "no\n");
    there.assert_quiet();
}

#[test]
fn a_program_that_is_not_there_is_a_start_that_failed() {
    let there = Elsewhere::with_agent("true");
    there.gt(["config", "set", "rig.web.command", "no-such-program {bead}"]).ok();
    there.bead("we-a", &[]);

    let refused = there.gt(["sling", "we-a"]).fails(1);

    assert_says(&refused.stderr, &["cannot start no-such-program"]);
    there.assert_quiet();
}

#[test]
fn a_machine_that_does_not_let_us_in_or_has_no_gt_is_a_start_that_failed() {
    let there = Elsewhere::with_agent("true");
    for bead in ["we-a", "we-b", "we-c"] {
        there.bead(bead, &[]);
    }

    there.gt(["config", "set", "rig.web.ssh.gt", "no-such-gt"]).ok();
    let refused = there.gt(["sling", "we-a"]).fails(1);
    assert_says(&refused.stderr, &["builder cannot be reached", "no-such-gt"]);

    there.use_config(&there.sshd.wrong_client_config());
    let refused = there.gt(["sling", "we-b"]).fails(1);
    assert_says(&refused.stderr, &["builder cannot be reached", "Permission denied"]);

    there.gt(["config", "unset", "rig.web.ssh.host"]).ok();
    let refused = refusal(&there.gt(["sling", "we-c"]));
    assert_says(&refused, &["gt config set rig.web.ssh.host <machine>"]);
    assert_eq!(there.story(), [] as [String; 0]);
}

#[test]
fn a_gt_that_speaks_another_protocol_is_refused_in_a_sentence() {
    let there = Elsewhere::with_agent("true");
    let stranger = r#"echo 'gt-remote {"protocol":99,"version":"9.9.9"}'; cat > /dev/null"#;
    there.gt(["config", "set", "rig.web.ssh.gt", &format!("{stranger}; true")]).ok();
    there.bead("we-a", &[]);

    let refused = there.gt(["sling", "we-a"]).fails(1);

    assert_says(
        &refused.stderr,
        &["gt 9.9.9 on builder speaks protocol 99", "install the same gt"],
    );
}

#[test]
fn the_greeting_of_a_remote_shell_is_skipped() {
    let there = Elsewhere::with_agent("echo here");
    let gt = format!("echo Welcome; echo 'gt-remote is fun'; {}", there.gt_path().display());
    there.gt(["config", "set", "rig.web.ssh.gt", &gt]).ok();
    there.bead("we-a", &[]);

    there.gt(["sling", "we-a"]).ok();

    wait_until("it is done", || there.states("we-a") == ["done"]);
    assert_eq!(there.gt(["run", "log", "we-a"]).ok().stdout, "here\n");
    there.assert_quiet();
}

/// A line that breaks off in the second thing that home says, the first time it is used.
fn brittle(there: &Elsewhere) -> String {
    let ssh = format!("ssh -T -F {} -oBatchMode=yes", there.sshd.client_config().display());
    let mark = there.stage("used");
    let script = format!(
        "if mkdir '{}' 2>/dev/null; then {{ head -n 1; head -c 9 > /dev/null; true; }} | {ssh} \"$@\"; else exec {ssh} \"$@\"; fi",
        mark.display()
    );
    let script = there.write_script("brittle-ssh", &script);
    format!("'{}'", script.display())
}

#[test]
fn a_line_that_breaks_before_the_order_arrives_starts_nothing() {
    let there = Elsewhere::with_agent("true");
    there.gt(["config", "set", "rig.web.ssh.command", &brittle(&there)]).ok();
    there.bead("we-a", &[]);

    let refused = there.gt(["sling", "we-a"]).fails(1);

    assert_says(&refused.stderr, &["the line broke before its agent was there"]);
    assert_eq!(there.story(), [] as [String; 0]);
    there.assert_quiet();

    // The next one is better.
    wait_until("it is done", || {
        there.cycle().ok();
        there.states("we-a").first().unwrap() == "done"
    });
    assert_eq!(there.story().len(), 2);
}

#[test]
fn a_rig_elsewhere_needs_a_machine_and_no_repository() {
    let town = town();
    let refused = refusal(&town.gt(["rig", "add", "web", "--executor", "ssh"]));
    assert_says(&refused, &["--host"]);
    let refused = refusal(&town.gt(["rig", "add", "web", "--executor", "process", "--host", "x"]));
    assert_says(&refused, &["--host is for the executor ssh"]);
    let repository = town.git_repository("code");
    let repository = repository.to_str().unwrap();
    let refused =
        refusal(&town.gt(["rig", "add", "web", repository, "--executor", "ssh", "--host", "x"]));
    assert_says(&refused, &["trees on other machines are not there yet"]);
    assert_says(&town.gt(["rig", "list"]).ok().stdout, &["No rigs yet"]);
}

#[test]
fn two_beads_of_one_rig_are_worked_on_side_by_side() {
    let there = Elsewhere::with_agent("echo $bead; wait_for go");
    for bead in ["we-a", "we-b"] {
        there.bead(bead, &[]);
        there.gt(["sling", bead]).ok();
    }
    for run in ["we-a#1", "we-b#1"] {
        there.wait_for_agent(run);
    }
    wait_until("what they print is shown while they work", || {
        ["we-a", "we-b"]
            .iter()
            .all(|bead| there.gt(["run", "log", bead]).ok().stdout == format!("{bead}\n"))
    });
    assert_eq!(there.run_of("we-a")["alive"], true);

    there.allow("go");

    wait_until("both are done", || {
        ["we-a", "we-b"].iter().all(|bead| there.states(bead) == ["done"])
    });
    there.assert_quiet();
}

#[test]
fn cancelling_ends_all_remote_processes() {
    let there = Elsewhere::with_agent(
        "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > '$stage'/child; sleep 600' & wait_for never",
    );
    there.bead("we-a", &[]);
    there.gt(["sling", "we-a"]).ok();
    wait_until("its child is there", || there.stage("child").exists());
    let child = fs::read_to_string(there.stage("child")).unwrap().trim().to_owned();

    there.gt(["run", "cancel", "we-a"]).ok();

    assert_eq!(there.states("we-a"), ["cancelled"]);
    assert!(!is_alive(&child) && !is_alive(&there.agent_of("we-a")));
    assert_eq!(there.show("we-a")["status"], "open");
    there.assert_quiet();
}

#[test]
fn a_line_that_breaks_says_nothing_about_a_run() {
    let mut there = Elsewhere::with_agent("echo before; wait_for go; echo after");
    there.bead("we-a", &[]);
    there.gt(["sling", "we-a"]).ok();
    there.wait_for_agent("we-a#1");

    there.sshd.stop();

    wait_until("it is unknown whether it lives", || there.run_of("we-a")["alive"].is_null());
    there.cycle().ok();
    assert_eq!(there.states("we-a"), ["running"]);
    assert_says(&there.gt(["run", "show", "we-a"]).ok().stdout, &["builder cannot be reached"]);

    // It ends while the machine cannot be reached.
    there.allow("go");
    wait_until("the agent is gone", || !is_alive(&there.agent_of("we-a")));
    there.cycle().ok();
    assert_eq!(there.states("we-a"), ["running"]);

    there.sshd.resume();

    wait_until("its end is noticed", || there.states("we-a") == ["done"]);
    assert_eq!(there.gt(["run", "log", "we-a"]).ok().stdout, "before\nafter\n");
    assert_eq!(there.story(), ["+ we-a#1", "- we-a#1"]);
    there.assert_quiet();
}

#[test]
fn a_run_that_was_to_end_while_its_machine_was_away_ends_when_it_is_back() {
    let mut there = Elsewhere::with_agent("wait_for never");
    there.bead("we-a", &[]);
    there.gt(["sling", "we-a"]).ok();
    there.wait_for_agent("we-a#1");
    there.sshd.stop();
    wait_until("it is away", || there.run_of("we-a")["alive"].is_null());
    let refused = refusal(&there.gt(["run", "cancel", "we-a"]));
    assert_says(&refused, &["on another machine", "as soon as that can be reached", "--force"]);
    assert!(is_alive(&there.agent_of("we-a")));

    there.sshd.resume();

    wait_until("it is cancelled", || there.states("we-a") == ["cancelled"]);
    assert!(!is_alive(&there.agent_of("we-a")));
    there.assert_quiet();
}

#[test]
fn a_remote_run_ends_with_the_directory_of_its_town() {
    for is_reachable in [true, false] {
        let mut there = Elsewhere::with_agent("wait_for go");
        there.bead("we-a", &[]);
        there.gt(["sling", "we-a"]).ok();
        there.wait_for_agent("we-a#1");
        let [supervisor] = there.supervisors("we-a#1").try_into().unwrap();
        let agent = there.agent_of("we-a");
        if !is_reachable {
            there.sshd.stop();
            wait_until("it is away", || there.run_of("we-a")["alive"].is_null());
        }

        // The supervisor may write a file meanwhile.
        wait_until("the town is gone", || {
            let _ = fs::remove_dir_all(there.cwd());
            !there.cwd().exists()
        });

        wait_until("its supervisor has ended", || !is_alive(&supervisor));
        assert!(!there.cwd().exists(), "the town was made again");
        assert!(!is_reachable || !is_alive(&agent));
        there.allow("go");
        wait_until("the agent has ended", || !is_alive(&agent));
    }
}

#[test]
fn a_remote_run_gets_a_new_supervisor_when_its_supervisor_was_killed() {
    let there = Elsewhere::with_agent("echo before; wait_for go; echo after");
    there.bead("we-a", &[]);
    there.gt(["sling", "we-a"]).ok();
    there.wait_for_agent("we-a#1");
    let [first] = there.supervisors("we-a#1").try_into().unwrap();

    there.signal("KILL", &first);
    wait_until("it is gone", || !is_alive(&first));
    assert!(there.run_of("we-a")["alive"].is_null());
    there.cycle().ok();

    wait_until("a supervisor attends it", || there.run_of("we-a")["alive"] == true);
    assert_eq!(there.states("we-a"), ["running"]);
    there.cycle().ok();
    assert_eq!(there.supervisors("we-a#1").len(), 1);

    there.allow("go");

    wait_until("it is done", || there.states("we-a") == ["done"]);
    assert_eq!(there.gt(["run", "log", "we-a"]).ok().stdout, "before\nafter\n");
    assert_eq!(there.story(), ["+ we-a#1", "- we-a#1"]);
    there.assert_quiet();
}

#[test]
fn a_run_that_ended_without_its_supervisor_is_found_and_nothing_is_done_twice() {
    let there = Elsewhere::with_agent("wait_for go; exit 4");
    there.bead("we-a", &[]);
    there.gt(["sling", "we-a"]).ok();
    there.wait_for_agent("we-a#1");
    let [first] = there.supervisors("we-a#1").try_into().unwrap();
    there.signal("KILL", &first);
    there.allow("go");
    wait_until("the agent is gone", || !is_alive(&there.agent_of("we-a")));

    there.cycle().ok();

    wait_until("its end is known", || there.states("we-a") == ["failed"]);
    assert_eq!(there.run_of("we-a")["exit_code"], 4);
    there.assert_quiet();
}

#[test]
fn a_run_that_is_cancelled_without_its_supervisor_ends_on_the_other_machine() {
    let there = Elsewhere::with_agent("wait_for never");
    there.bead("we-a", &[]);
    there.gt(["sling", "we-a"]).ok();
    there.wait_for_agent("we-a#1");
    let [first] = there.supervisors("we-a#1").try_into().unwrap();
    there.signal("KILL", &first);
    wait_until("it is gone", || !is_alive(&first));

    there.gt(["run", "cancel", "we-a"]).ok();

    assert_eq!(there.states("we-a"), ["cancelled"]);
    assert!(!is_alive(&there.agent_of("we-a")));
    there.assert_quiet();
}

#[test]
fn a_remote_agent_that_outlives_its_keeper_is_waited_for() {
    let there = Elsewhere::with_agent("wait_for go");
    there.bead("we-a", &[]);
    there.gt(["sling", "we-a"]).ok();
    there.wait_for_agent("we-a#1");

    there.kill_keeper("we-a#1");

    assert_eq!(there.run_of("we-a")["alive"], true);
    there.allow("go");
    // Its exit code was not recorded.
    wait_until("it is lost", || there.states("we-a").last().unwrap() == "lost");
    assert_says(there.run_of("we-a#1")["reason"].as_str().unwrap(), &["left on builder"]);
}

#[test]
fn a_remote_agent_that_outlives_its_keeper_can_be_cancelled() {
    let there = Elsewhere::with_agent("wait_for never");
    there.bead("we-a", &[]);
    there.gt(["sling", "we-a"]).ok();
    there.wait_for_agent("we-a#1");
    there.kill_keeper("we-a#1");

    there.gt(["run", "cancel", "we-a"]).ok();

    assert_eq!(there.states("we-a"), ["cancelled"]);
    assert!(!is_alive(&there.agent_of("we-a")));
}

#[test]
fn a_remote_agent_of_a_cancelled_run_ends_before_the_next_run_begins() {
    let mut there = Elsewhere::with_agent("[ $run != we-a#1 ] || wait_for never");
    there.bead("we-a", &[]);
    there.gt(["sling", "we-a"]).ok();
    there.wait_for_agent("we-a#1");
    let [supervisor] = there.supervisors("we-a#1").try_into().unwrap();
    there.sshd.stop();
    wait_until("it is away", || there.run_of("we-a")["alive"].is_null());

    there.gt(["run", "cancel", "we-a", "--force"]).ok();
    // No process is left to end it when the machine is back.
    there.signal("KILL", &supervisor);
    wait_until("it is gone", || !is_alive(&supervisor));
    there.sshd.resume();
    let first = there.agent_of("we-a");
    assert!(is_alive(&first));
    // Whether it starts at once depends on how long the first one takes to end.
    let _ = there.gt(["sling", "we-a"]);

    wait_until("the next is done", || {
        there.cycle().ok();
        there.states("we-a").first().unwrap() == "done"
    });
    assert!(!is_alive(&first));
    there.assert_quiet();
}

#[test]
fn a_remote_agent_reaches_the_town() {
    let there = Elsewhere::with_agent(
        "gt hook > $stage/hook; bd show $bead --json > $stage/bead
         echo 'from there' | bd comments add $bead --file - && bd create 'Found over there' --silent > $stage/new
         gt config set rig.web.command x 2> $stage/refused; echo $? > $stage/status
         bd show no-such-bead > /dev/null 2>&1; echo $? >> $stage/status
         gt handoff 2> $stage/one-session
         gt done; wait_for never",
    );
    there.bead("we-a", &[]);
    let refused = refusal(&there.gt(["sling", "we-a", "--ralph"]));
    assert_says(&refused, &["has one session", "leave --ralph out"]);

    there.gt(["sling", "we-a"]).ok();

    wait_until("the bead is closed", || there.show("we-a")["status"] == "closed");
    there.assert_quiet();
    let staged = |name: &str| fs::read_to_string(there.stage(name)).unwrap();
    assert_says(&staged("hook"), &["we-a"]);
    assert_says(&staged("bead"), &["\"id\": \"we-a\""]);
    assert_says(&staged("refused"), &["gt config is not for workers on other machines"]);
    assert_eq!(staged("status"), "1\n1\n");
    assert_says(&staged("one-session"), &["where a run has one session", "bd comments add"]);
    let found = there.show(staged("new").trim());
    assert_eq!(
        (&found["title"], &found["created_by"]),
        (&json!("Found over there"), &json!("web/ssh"))
    );
    assert_says(&there.bd(["comments", "we-a"]).ok().stdout, &["from there", "web/ssh"]);
    // Its work was done, and it did not leave by itself.
    wait_until("the agent is gone", || !is_alive(&there.agent_of("we-a")));
    assert_eq!(there.states("we-a"), ["done"]);
}

#[test]
fn no_bead_gets_two_workers_when_supervisors_and_connections_die() {
    let mut there = Elsewhere::with_agent("echo one; wait_for go; echo two");
    let beads = ["we-a", "we-b", "we-c"];
    for bead in beads {
        there.bead(bead, &[]);
        there.gt(["sling", bead]).ok();
        there.wait_for_agent(&format!("{bead}#1"));
    }

    for round in 0..4 {
        for bead in &beads[..=round % 3] {
            for supervisor in there.supervisors(&format!("{bead}#1")) {
                there.signal("KILL", &supervisor);
            }
        }
        if round % 2 == 1 {
            there.sshd.stop();
            there.cycle().ok();
            there.sshd.resume();
        }
        there.cycle().ok();
    }
    there.allow("go");

    wait_until("all are done", || {
        there.cycle().ok();
        beads.iter().all(|bead| there.states(bead) == ["done"])
    });
    assert_eq!(there.story().len(), 2 * beads.len(), "{:?}", there.story());
    for bead in beads {
        assert_eq!(there.gt(["run", "log", bead]).ok().stdout, "one\ntwo\n");
    }
    there.assert_quiet();
}

#[test]
fn a_flood_of_output_arrives_whole() {
    let there = Elsewhere::with_agent("yes 0123456789abcde | head -n 1000000; echo the end");
    there.bead("we-a", &[]);

    there.gt(["sling", "we-a"]).ok();

    wait_until("it is done", || there.states("we-a") == ["done"]);
    let log = fs::metadata(there.cwd().join(".gt/runs/we-a#1.log")).unwrap();
    assert_eq!(log.len(), 16_000_000 + 8);
    let end = there.gt(["run", "log", "we-a", "--tail", "1"]).ok().stdout;
    assert_eq!(end, "the end\n");
}
