//! Sessions of a run: one after the other in the same tree, and what is typed into them.

use std::fs;

use gt_testkit::{Sandbox, wait_until};
use serde_json::Value;

use crate::agents::{Stage as _, town_with_agent};
use crate::session_faults::{tmux, wait_for_session};
use crate::support::{Steps as _, assert_says, refusal, texts};
use crate::trees::{Trees as _, WAIT, town_with_trees};

const RECIPE: &str = "formula = \"tea\"\n\
    [[steps]]\nid = \"boil\"\ntitle = \"Boil water\"\ndescription = \"In the kettle.\"\n\
    [[steps]]\nid = \"steep\"\ntitle = \"Steep the leaves\"\nneeds = [\"boil\"]\n\
    [[steps]]\nid = \"serve\"\ntitle = \"Serve it\"\nneeds = [\"steep\"]\n";

/// Everything of this kind that has happened.
fn happened(town: &Sandbox, kind: &str) -> Vec<Value> {
    town.events().into_iter().filter(|event| event["event_type"] == kind).collect()
}

/// The output of a run.
fn log(town: &Sandbox, run: &str) -> String {
    fs::read_to_string(town.cwd().join(".gt/runs").join(format!("{run}.log"))).unwrap()
}

/// A town whose polecats are this program, at a screen of their own.
fn town_with_screens(executor: &str, program: &str, place: &str, prompt: &str) -> Sandbox {
    let town = town_with_trees(executor);
    town.gt(["config", "unset", "rig.web.command"]).ok();
    let program = town.write_script("screen.sh", program);
    let command = format!("command = \"'{}' {place}\"", program.display());
    let runtime = format!("{command}\n{prompt}\ninteractive = true\nexit_zero = \"ask\"\n");
    town.write(".gt/runtimes/screen.toml", runtime);
    town.gt(["config", "set", "rig.web.runtime", "screen"]).ok();
    town
}

/// A town whose polecats follow the script in their bead, at a screen of their own.
pub(crate) fn town_with_scripted_screens() -> Sandbox {
    town_with_screens("tmux", "exec gt scripted", "{prompt}", "prompt = \"argument\"")
}

pub(crate) fn script_bead(town: &Sandbox, id: &str, script: &str) {
    town.bead(id, &["-d", &format!("```gt-script\n{script}\n```")]);
}

#[test]
fn a_run_that_is_only_handed_over_is_for_a_person() {
    let town = town_with_agent("wait_for \"go-$bead\"");
    town.gt(["config", "set", "worker.max_handoffs", "2"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let sessions = || town.story().iter().filter(|line| *line == "+ we-a#1").count();
    for count in 1..=2 {
        wait_until("a session has begun", || sessions() == count);
        wait_until("it can be handed over", || town.gt(["handoff", "--run", "we-a"]).code == 0);
    }
    wait_until("the last session has begun", || sessions() == 3);

    for _ in 0..2 {
        let refused = refusal(&town.gt(["handoff", "--run", "we-a"]));
        assert_says(&refused, &["we-a#1 was handed over 2 times", "a person is asked"]);
    }

    let needs = town.gt_json(&["status"])["needs_you"].clone();
    assert_eq!(texts(&needs, "code"), ["help-wanted"]);
    assert_eq!(town.states("we-a"), ["running"]);
    town.allow("go-we-a");
    town.assert_quiet();
}

#[test]
fn a_fresh_session_goes_on_in_the_same_tree_and_run() {
    for executor in ["process", "tmux"] {
        let town = town_with_trees(executor);
        town.script(
            "we-1",
            &format!(
                "if [ ! -e first.log ]; then\n  echo this is the first; pwd > first.log\n  \
                 git branch --show-current >> first.log\n  sleep 600 &\n  \
                 touch \"$(git rev-parse --git-dir)/index.lock\"\n  \
                 gt handoff -s 'Half way' -m 'The lid is stuck'\n  sleep 600\nfi\n\
                 git commit --quiet --allow-empty --message second || exit 7\n\
                 echo this is the second; cat > told.log\n\
                 (pwd; git branch --show-current) > second.log{WAIT}"
            ),
        );
        town.begin("we-1");

        let read = |name: &str| fs::read_to_string(town.tree("furiosa").join(name)).unwrap();
        assert_eq!(read("first.log"), read("second.log"));
        let told = read("told.log");
        assert_says(&told, &["You are session 2 of this run", "## Handed over"]);
        assert_says(&told, &["msg-1 from we-1#1: Handoff: Half way\n      The lid is stuck"]);
        // Nothing was used up, and nothing was freed.
        assert_eq!(town.states("we-1"), ["running"]);
        assert_eq!(town.run_of("we-1")["id"], "we-1#1");
        assert_eq!(town.gt_json(&["scheduler", "status"])["active_polecats"], 1);
        let handed_over = happened(&town, "handed_over");
        assert_eq!(handed_over.len(), 1, "{handed_over:?}");
        assert_eq!(handed_over[0]["payload"]["session"], 2);
        assert_eq!(happened(&town, "dispatched").len(), 1);
        let log = log(&town, "we-1#1");
        let at = |part: &str| log.find(part).unwrap_or_else(|| panic!("{part} in {log}"));
        assert!(at("this is the first") < at("--- gt: session 2 of we-1#1 begins"));
        assert!(at("--- gt: session 2") < at("this is the second"));
        let note = town.gt_json(&["mail", "show", "1"]);
        assert_eq!((&note["kind"], &note["to"]), (&"mail".into(), &"we-1".into()));

        town.write("go", "");
        wait_until("we-1 is done", || town.run_of("we-1")["state"] == "done");
        assert_eq!(town.states("we-1"), ["done"]);
    }
}

#[test]
fn a_person_can_begin_a_fresh_session_too() {
    let town = town_with_trees("process");
    town.script("we-1", &format!("echo x >> sessions.log{WAIT}"));
    town.begin("we-1");
    let sessions = || {
        let text = fs::read_to_string(town.tree("furiosa").join("sessions.log"));
        text.unwrap_or_default().lines().count()
    };

    let said = town.gt(["handoff", "--run", "we-1", "-m", "Begin again"]).ok().stdout;
    assert_says(&said, &["✓ A fresh session goes on with we-1#1, and begins with msg-1"]);
    wait_until("the second session has begun", || sessions() == 2);
    let handed_off = town.gt_json(&["handoff", "--run", "we-1#1"]);
    assert_eq!((&handed_off["run"], &handed_off["note"]), (&"we-1#1".into(), &Value::Null));
    wait_until("the third session has begun", || sessions() == 3);

    town.write("go", "");
    wait_until("we-1 is done", || town.run_of("we-1")["state"] == "done");
    let message = refusal(&town.gt(["handoff", "--run", "we-1"]));
    assert_says(&message, &["we-1#1 is done", "only a live run can be handed over"]);
}

#[test]
fn a_run_without_a_session_is_not_handed_over() {
    let town = town_with_agent("exit 0");
    town.bead("we-1", &[]);
    assert_says(&refusal(&town.gt(["handoff"])), &["GT_RUN names no run", "--run"]);
    town.gt(["sling", "we-1", "web/crew/max"]).ok();
    let message = refusal(&town.gt(["handoff", "--run", "we-1", "-m", "x"]));
    assert_says(&message, &["we-1#1 has no session of ours", "bd comments add we-1"]);
    assert_eq!(happened(&town, "message_sent").len(), 0);
}

#[test]
fn a_supervisor_that_is_killed_while_it_hands_over_leaves_one_agent_or_none() {
    // Given an agent that takes its time to end.
    let town = town_with_agent("exit 1");
    let script = format!(
        "if [ ! -e \"$stage/asked\" ]; then\n  trap '' TERM\n  '{}' handoff -m 'Go on' && touch \"$stage/asked\"\n  \
         wait_for let-go\nfi",
        town.gt_path().display()
    );
    crate::agents::set_agent(&town, &script);
    town.gt(["config", "set", "worker.kill_grace", "10m"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("it is being handed over", || town.stage("asked").exists());

    // When its supervisor dies.
    let supervisor = town.supervisor_of("we-a#1");
    town.signal("KILL", &supervisor);
    wait_until("the supervisor is gone", || !crate::agents::is_alive(&supervisor));

    // Then no second run works on the bead while the agent is there,
    town.cycle().ok();
    assert_eq!(town.states("we-a"), ["running"]);
    let message = refusal(&town.gt(["handoff", "--run", "we-a"]));
    assert_says(&message, &["we-a#1 has no supervisor", "gt run show we-a#1"]);
    // and when it is gone, the next run begins with what it left.
    town.allow("let-go");
    wait_until("the next run is done", || {
        town.cycle().ok();
        town.states("we-a") == ["done", "lost"]
    });
    assert_eq!(happened(&town, "handed_over").len(), 0);
    assert_eq!(town.gt_json(&["mail", "show", "1"])["to"], "we-a");
    town.assert_quiet();
}

#[test]
fn whenever_a_supervisor_is_killed_no_bead_has_two_agents() {
    // Given an agent that hands over as soon as it has begun.
    let town = town_with_agent("exit 1");
    let script =
        format!("[ -e \"$stage/stop\" ] || '{}' handoff; wait_for stop", town.gt_path().display());
    crate::agents::set_agent(&town, &script);
    let beads = ["we-a", "we-b", "we-c", "we-d"];
    for bead in beads {
        town.bead(bead, &[]);
        town.gt(["sling", bead]).ok();
    }
    for (at, bead) in beads.into_iter().enumerate() {
        let sessions = || {
            let mine = |line: &&String| **line == format!("+ {bead}#1");
            town.story().iter().filter(mine).count()
        };
        wait_until("it was handed over", || sessions() > at + 1);
        town.signal("KILL", &town.supervisor_of(&format!("{bead}#1")));
    }

    town.allow("stop");
    wait_until("all is done", || {
        // So many losses at once are taken for a runtime that does not work.
        town.gt(["config", "agent", "resume", "web/command"]).ok();
        town.cycle().ok();
        beads.iter().all(|bead| town.states(bead) == ["done", "lost"])
    });
    town.assert_quiet();
}

#[test]
fn a_run_that_is_cancelled_while_it_is_handed_over_is_cancelled() {
    let town = town_with_trees("process");
    town.script("we-1", &format!("echo x >> sessions.log; trap '' TERM{WAIT}"));
    town.begin("we-1");
    town.gt(["handoff", "--run", "we-1"]).ok();
    town.gt(["run", "cancel", "we-1#1"]).ok();
    assert_eq!(town.states("we-1"), ["cancelled"]);
    assert_eq!(town.show("we-1")["status"], "open");
}

/// A worker that does one step and says so in this way.
fn step_worker(town: &Sandbox, say_done: &str) {
    town.write(".beads/formulas/tea.formula.toml", RECIPE);
    town.script(
        "we-1",
        &format!(
            "cat > prompt.log\nnext=$(gt step list --json | sed -n 's/.*\"next\": \"\\(.*\\)\".*/\\1/p')\n\
             echo \"$next $(sed -n '/^## Your step/,$p' prompt.log | sed -n 3p)\" >> sessions.log\n{say_done}"
        ),
    );
}

fn sessions(town: &Sandbox) -> Vec<String> {
    let path = town.tree("furiosa").join("sessions.log");
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

const STEPS: [&str; 3] =
    ["boil boil: Boil water", "steep steep: Steep the leaves", "serve serve: Serve it"];

#[test]
fn with_ralph_each_step_has_a_session_of_its_own() {
    for executor in ["process", "tmux"] {
        let town = town_with_trees(executor);
        step_worker(&town, "gt step done $next\n[ $next = serve ] || sleep 600");
        assert_eq!(town.work("we-1", &["--ralph", "--formula", "tea"]), "done");

        assert_eq!(sessions(&town), STEPS);
        assert_eq!(town.states("we-1"), ["done"]);
        assert_eq!(happened(&town, "handed_over").len(), 2);
        // The session may end before it has printed the answer to its last step.
        assert_says(&log(&town, "we-1#1"), &["session 2 of we-1#1 begins", "it was handed over"]);
        let prompt = fs::read_to_string(town.tree("furiosa").join("prompt.log")).unwrap();
        assert_says(&prompt, &["You are session 3 of this run", "steps are done: boil, steep"]);
        assert_says(&prompt, &["When it is done: gt step done serve, and gt done"]);
    }
}

#[test]
fn with_ralph_an_agent_that_ends_after_a_step_is_followed_by_another() {
    let town = town_with_trees("process");
    // As a person, whose word does not end the session.
    step_worker(
        &town,
        "echo $next > $next.txt; env -u GT_RUN -u GT_RUN_TOKEN gt step done $next --run we-1\nexit 0",
    );
    assert_eq!(town.work("we-1", &["--ralph", "--formula", "tea"]), "done");
    assert_eq!(sessions(&town), STEPS);
    assert_eq!(happened(&town, "handed_over").len(), 2);
}

#[test]
fn with_ralph_an_agent_that_does_no_step_is_not_followed_for_ever() {
    let town = town_with_trees("process");
    town.gt(["config", "unset", "rig.web.command"]).ok();
    town.gt(["config", "set", "rig.web.runtime", "scripted"]).ok();
    town.write(".beads/formulas/tea.formula.toml", RECIPE);
    script_bead(&town, "we-1", "say I do not know how");
    assert_eq!(town.work("we-1", &["--ralph", "--formula", "tea"]), "failed");
    assert_eq!(happened(&town, "handed_over").len(), 0);
    assert_says(town.run_of("we-1#1")["reason"].as_str().unwrap(), &["without gt done"]);
}

#[test]
fn without_steps_and_without_ralph_nothing_is_handed_over() {
    let town = town_with_trees("process");
    step_worker(&town, "gt step done boil\ngt step done steep\necho tea > tea\nexit 0");
    assert_eq!(town.work("we-1", &["--formula", "tea"]), "done");
    town.script("we-2", "");
    assert_eq!(town.work("we-2", &["--ralph", "--hook-raw-bead"]), "done");
    assert_eq!(happened(&town, "handed_over").len(), 0);
}

#[test]
fn a_nudge_is_typed_into_a_session_and_seen_there() {
    let town = town_with_scripted_screens();
    script_bead(
        &town,
        "we-1",
        "touch begun\nread typed.log\nread typed.log\nwait-for go.log\ndone",
    );
    town.begin("we-1");

    let nudged = town.gt_json(&["nudge", "we-1#1", "The fixture moved"]);
    assert_eq!(
        (&nudged["receipt"], &nudged["session"]),
        (&"delivered".into(), &"we-furiosa".into())
    );
    let typed = || fs::read_to_string(town.tree("furiosa").join("typed.log")).unwrap_or_default();
    let first = "[msg-1 from Test Person] The fixture moved\n";
    wait_until("the agent has read it", || typed() == first);
    let said = town.gt(["nudge", "web/furiosa", "Two lines:\nthis one too"]).ok().stdout;
    assert_says(&said, &["✓ msg-2 is delivered into the session we-furiosa", "gt mail show msg-2"]);
    wait_until("the agent has read the other", || {
        typed()
            == format!(
                "{first}[msg-2 from Test Person] Two lines:… (the rest: gt mail read msg-2)\n"
            )
    });

    town.write("web/polecats/furiosa/rig/go.log", "");
    wait_until("we-1 is done", || town.run_of("we-1")["state"] == "done");
    let message = refusal(&town.gt(["nudge", "we-1#1", "Too late"]));
    assert_says(&message, &["we-1#1 has ended (done)", "bd comments add we-1"]);
}

#[test]
fn an_agent_whose_session_was_killed_is_shown_and_spoken_to_in_another_one() {
    let town = town_with_scripted_screens();
    script_bead(&town, "we-1", "say I began\ntouch begun\nread typed.log\nwait-for go.log\ndone");
    town.begin("we-1");
    tmux(&town, &["kill-session", "-t", "we-furiosa"]).ok();
    wait_for_session(&town, "we-1#1", "");

    wait_until("it is shown", || {
        let pane = tmux(&town, &["capture-pane", "-p", "-t", "we-furiosa"]).stdout;
        pane.contains("I began") && town.gt(["peek", "we-1"]).ok().stdout.contains("I began")
    });
    let nudged = town.gt_json(&["nudge", "we-1#1", "The fixture moved"]);
    assert_eq!(
        (&nudged["receipt"], &nudged["session"]),
        (&"delivered".into(), &"we-furiosa".into())
    );
    let typed = || fs::read_to_string(town.tree("furiosa").join("typed.log")).unwrap_or_default();
    wait_until("the agent has read it", || typed().contains("The fixture moved"));

    // The next agent of the same run is in the new session too, and not in the first one.
    town.gt(["handoff", "--run", "we-1"]).ok();
    wait_until("the next agent is there", || {
        let log = town.gt(["run", "log", "we-1#1"]).ok().stdout;
        log.contains("session 2") && log.matches("I began").count() == 2
    });
    wait_until("it is shown", || {
        tmux(&town, &["capture-pane", "-p", "-t", "we-furiosa"]).stdout.contains("I began")
    });
    town.gt(["run", "cancel", "we-1"]).ok();
    wait_until("its session ends with it", || {
        !tmux(&town, &["list-sessions", "-F", "#{session_name}"]).stdout.contains("we-furiosa\n")
    });
}

#[test]
fn a_nudge_that_cannot_be_typed_now_is_typed_later() {
    let town = town_with_scripted_screens();
    script_bead(&town, "we-1", "touch begun\nread typed.log\nwait-for go.log\ndone");
    town.begin("we-1");
    // While another process types,
    let typing = town.cwd().join(".gt/runs/we-1#1.typing");
    let file = fs::File::options().write(true).create(true).truncate(false).open(typing).unwrap();
    file.lock().unwrap();
    let nudged = town.gt(["nudge", "we-1", "Hurry"]).ok().stdout;
    assert_says(
        &nudged,
        &["✓ msg-1 is queued for we-1", "at the next gt hook", "another process is typing"],
    );
    assert_eq!(town.gt_json(&["mail", "show", "1"])["receipt"], "queued");
    // it waits, and the next pass does it.
    drop(file);
    town.cycle().ok();
    assert_eq!(town.gt_json(&["mail", "show", "1"])["receipt"], "delivered");
    let typed = || fs::read_to_string(town.tree("furiosa").join("typed.log")).unwrap_or_default();
    wait_until("the agent has read it", || typed() == "[msg-1 from Test Person] Hurry\n");
    town.cycle().ok();
    town.gt(["run", "cancel", "we-1#1"]).ok();
}

#[test]
fn a_nudge_to_a_worker_without_input_stays_queued() {
    for (executor, why) in
        [("process", "its worker has no session"), ("tmux", "takes nothing while it works")]
    {
        let town = town_with_trees(executor);
        town.script("we-1", WAIT);
        town.begin("we-1");
        let nudged = town.gt_json(&["nudge", "we-1", "Hurry"]);
        assert_eq!(nudged["receipt"], "queued");
        assert_says(nudged["waits_because"].as_str().unwrap(), &[why]);
        town.cycle().ok();
        assert_eq!(town.gt_json(&["mail", "show", "1"])["receipt"], "queued");
        town.write("go", "");
        wait_until("we-1 is done", || town.run_of("we-1")["state"] == "done");
    }
}

const PASTED: &str = "prompt = \"paste\"\npaste = { ready = '^>', confirm = 'pasted \\d+ bytes', bytes_max = 100000 }";

#[test]
fn a_long_prompt_is_pasted_exactly_once() {
    let town = town_with_screens("tmux", "exec gt scripted", "", PASTED);
    let lines: Vec<String> = (0..300)
        .map(|n| format!("{n}: naïve café, 茶を淹れる, 🫖 'quoted' \"twice\" $HOME `x` {{y}}"))
        .collect();
    let script = "read got.log\ntouch begun\nwait-for go.log\ndone";
    let description = format!("{}\n```gt-script\n{script}\n```", lines.join("\n"));
    assert!(description.len() > 20_000);
    town.bead("we-1", &["-d", &description]);
    town.begin("we-1");

    let got = fs::read_to_string(town.tree("furiosa").join("got.log")).unwrap();
    let told = town.gt(["prime", "--run", "we-1"]).ok().stdout;
    assert_eq!(got, format!("{told}\n"));
    // The next session gets its own.
    town.gt(["handoff", "--run", "we-1", "-m", "Again"]).ok();
    wait_until("the second session has its prompt", || {
        let both = fs::read_to_string(town.tree("furiosa").join("got.log")).unwrap();
        both.matches("You are session 2 of this run").count() == 1
            && both.matches("299: naïve café").count() == 2
    });
    town.write("web/polecats/furiosa/rig/go.log", "");
    wait_until("we-1 is done", || town.run_of("we-1")["state"] == "done");
}

#[test]
fn a_prompt_that_does_not_arrive_is_a_failed_start() {
    for (program, why) in [
        ("echo '> '; exit 3", "it ended before it had its prompt"),
        ("echo '> '; cat > /dev/null", "nothing on its screen looks like"),
    ] {
        let town = town_with_screens("tmux", program, "", PASTED);
        town.bead("we-1", &[]);
        let said = town.gt(["sling", "we-1"]);
        assert_says(&format!("{}{}", said.stdout, said.stderr), &[why]);
        assert_eq!(town.states("we-1"), ["failed"]);
        assert_eq!(town.show("we-1")["status"], "open");
        assert_eq!(happened(&town, "start_failed").len(), 1);
        assert_eq!(happened(&town, "run_lost").len(), 0);
    }
}

#[test]
fn without_a_session_nothing_can_be_pasted() {
    let town = town_with_screens("process", "exec gt scripted", "", PASTED);
    town.bead("we-1", &[]);
    let said = town.gt(["sling", "we-1"]);
    let said = format!("{}{}", said.stdout, said.stderr);
    assert_says(
        &said,
        &["the prompt of the runtime screen is pasted", "gt rig add … --executor tmux"],
    );
    assert_eq!(town.show("we-1")["status"], "open");
}
