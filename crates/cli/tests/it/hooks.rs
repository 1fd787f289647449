//! Hooks: programs that run after a bead was made, changed or closed.

use std::fs;

use gt_testkit::{Sandbox, wait_until};
use serde_json::Value;

use crate::agents::{Stage as _, is_alive, set_agent, town_with_agent};
use crate::support::{Steps as _, assert_says, refusal, town};

/// A hook that writes what it was told into a file of that name, a line per call.
fn noting(file: &str) -> String {
    // One write, because hooks of different commands run side by side.
    format!("line=\"$(basename \"$0\") $1 $2 $(cat)\"\necho \"$line\" >> {file}")
}

/// A town where every hook notes its calls in `calls`.
fn town_with_hooks(directory: &str) -> Sandbox {
    let town = town();
    for name in ["on_create", "on_update", "on_close"] {
        town.write_script(&format!("{directory}/{name}"), &noting("calls"));
    }
    town
}

/// The calls of hooks so far, without the JSON.
fn calls(town: &Sandbox) -> Vec<String> {
    let text = fs::read_to_string(town.cwd().join("calls")).unwrap_or_default();
    text.lines().map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect()
}

/// Waits until there are this many calls, and forgets them.
fn next_calls(town: &Sandbox, count: usize) -> Vec<String> {
    wait_until("the hooks have run", || calls(town).len() >= count);
    let found = calls(town);
    fs::remove_file(town.cwd().join("calls")).unwrap();
    found
}

fn log(town: &Sandbox) -> String {
    fs::read_to_string(town.cwd().join(".gt/hooks.log")).unwrap_or_default()
}

#[test]
fn every_change_calls_its_hook() {
    let town = town_with_hooks(".gt/hooks");
    town.bead("hq-a", &[]);
    assert_eq!(next_calls(&town, 1), ["on_create hq-a create"]);
    town.bead("hq-b", &["-l", "x", "--deps", "blocks:hq-a"]);
    assert_eq!(next_calls(&town, 2), ["on_create hq-b create", "on_update hq-a update"]);
    for (arguments, call) in [
        (&["update", "hq-b", "--priority", "1", "--add-label", "y"][..], "on_update hq-b update"),
        (&["update", "hq-b", "--claim"], "on_update hq-b update"),
        (&["label", "add", "hq-b", "z"], "on_update hq-b update"),
        (&["comments", "add", "hq-b", "text"], "on_update hq-b update"),
        (&["dep", "remove", "hq-a", "hq-b"], "on_update hq-a update"),
        (&["close", "hq-b"], "on_close hq-b close"),
        (&["reopen", "hq-b", "--reason", "again"], "on_update hq-b update"),
        (&["update", "hq-b", "--status", "closed"], "on_close hq-b close"),
    ] {
        town.start_bd(arguments).run().ok();
        assert_eq!(next_calls(&town, 1), [call], "{arguments:?}");
    }
    assert_eq!(log(&town), "");
}

#[test]
fn a_hook_reads_the_bead() {
    let town = town();
    town.write_script(".gt/hooks/on_create", "cat > told.new; pwd >> told.new; mv told.new told");

    town.bead("hq-a", &["-l", "x", "-p", "1", "-d", "two\nlines"]);

    wait_until("the hook has run", || town.cwd().join("told").exists());
    let told = fs::read_to_string(town.cwd().join("told")).unwrap();
    let (json, directory) = told.trim_end().split_once('\n').unwrap();
    let told: Value = serde_json::from_str(json).unwrap();
    let mut listed = town.json(&["list"])[0].take();
    assert_eq!(told, listed.take());
    assert_eq!(directory, town.cwd().canonicalize().unwrap().to_str().unwrap());
}

#[test]
fn hooks_of_other_tools_run_where_ours_are_missing() {
    let town = town_with_hooks(".beads/hooks");
    town.write_script(".gt/hooks/on_close", &noting("calls").replace("basename", "echo ours"));

    town.bead("hq-a", &[]);
    assert_eq!(next_calls(&town, 1), ["on_create hq-a create"]);
    town.bd(["close", "hq-a"]).ok();

    assert!(next_calls(&town, 1)[0].starts_with("ours "));
}

#[test]
fn one_transaction_calls_each_hook_once_per_bead() {
    let town = town_with_hooks(".gt/hooks");
    town.bead("hq-old", &[]);
    next_calls(&town, 1);
    let lines = "create New --id hq-new\nupdate hq-new priority=0\nlabel add hq-new x\n\
                 update hq-old notes=a\nlabel add hq-old y\nclose hq-new\n";

    town.start_bd(&["batch"]).stdin(lines).run().ok();

    let expected = ["on_create hq-new create", "on_close hq-new close", "on_update hq-old update"];
    assert_eq!(next_calls(&town, 3), expected);
    town.bead("hq-other", &[]);
    next_calls(&town, 1);
    town.bd(["close", "hq-old", "hq-other"]).ok();
    assert_eq!(next_calls(&town, 2), ["on_close hq-old close", "on_close hq-other close"]);
}

#[test]
fn changes_that_are_not_committed_call_no_hook() {
    let town = town_with_hooks(".gt/hooks");

    town.bd(["create", "Dry", "--dry-run"]).ok();
    refusal(&town.bd(["create", "Refused", "--deps", "hq-none"]));
    refusal(&town.start_bd(&["batch"]).stdin("create x\nclose hq-none\n").run());
    town.import("{\"id\":\"hq-a\",\"title\":\"Imported\",\"labels\":[\"x\"]}\n");
    town.bd_with("BD_NO_HOOKS", "1", &["create", "Unheard"]).ok();
    town.gt(["config", "set", "hooks.enabled", "no"]).ok();
    town.bd(["create", "Unheard too"]).ok();
    town.gt(["config", "unset", "hooks.enabled"]).ok();
    town.bd(["label", "remove", "hq-a", "absent"]).ok();
    // Had one of those called a hook, there would be more than this one line.
    town.bead("hq-z", &[]);

    assert_eq!(next_calls(&town, 1), ["on_create hq-z create"]);
    assert_eq!(log(&town), "");
}

#[test]
fn failures_are_in_the_log_and_nowhere_else() {
    let town = town();
    town.write_script(".gt/hooks/on_create", "echo 'no key for' $1 >&2; exit 3");
    town.write(".gt/hooks/on_update", "not executable");

    let made = town.bd(["create", "One", "--id", "hq-a"]).ok();
    assert_eq!(made.stderr, "");
    wait_until("the failure is told", || log(&town).contains("hq-a"));
    town.bd(["label", "add", "hq-a", "x"]).ok();
    wait_until("the other failure is told", || log(&town).lines().count() == 2);

    let log = log(&town);
    let lines: Vec<&str> = log.lines().collect();
    assert_says(lines[0], &[".gt/hooks/on_create hq-a create: exit status: 3: no key for hq-a"]);
    assert_says(lines[1], &[".gt/hooks/on_update hq-a update: cannot start", "ermission denied"]);
    let time = lines[0].split(' ').next().unwrap();
    assert!(time.ends_with('Z') && time.contains('T'), "{time}");
}

#[test]
fn a_hook_of_a_workers_last_command_is_not_ended_with_the_run() {
    let town = town_with_agent("");
    let create = format!("'{}' bd create Found --rig web > /dev/null", town.gt_path().display());
    set_agent(&town, &create);
    let stage = town.stage("").display().to_string();
    town.write_script(
        ".gt/hooks/on_create",
        &format!(
            "case $1 in we-*) ;; *) exit 0;; esac
cd '{stage}' && echo > begun && until [ -e go ]; do sleep 0.01; done && echo > over"
        ),
    );
    town.start_bd(&["create", "Work", "--id", "we-a"]).env("BD_NO_HOOKS", "1").run().ok();
    town.gt(["sling", "we-a"]).ok();
    wait_until("the hook has begun", || town.stage("begun").exists());

    town.allow("go");

    wait_until("the run is over", || town.states("we-a") == ["done"]);
    // Another program may be running hooks at that moment, and then runs this one as well.
    wait_until("the hook is over", || town.stage("over").exists());
    assert_eq!(log(&town), "");
}

#[test]
fn a_hook_that_takes_too_long_is_ended() {
    let town = town();
    town.gt(["config", "set", "hooks.timeout", "1s"]).ok();
    town.write_script(".gt/hooks/on_create", "sleep 600");

    town.bead("hq-a", &[]);

    wait_until("it was ended", || log(&town).contains("hq-a"));
    assert_says(&log(&town), &["on_create hq-a create: ended because it took longer than 1s"]);
}

#[test]
fn a_detached_child_of_a_hook_ends_with_the_time_of_the_hook() {
    let detached = "setsid env -i /bin/sh -c 'cd /; echo $$ > \"$0/child-$1\"; sleep 600; sleep 600' \"$PWD\" ";
    for (name, rest) in [("late", "sleep 600"), ("early", "exit 0")] {
        let town = town();
        town.gt(["config", "set", "hooks.timeout", "1s"]).ok();
        let hook = format!("{detached} {name} > /dev/null 2>&1 < /dev/null &\n{rest}");
        town.write_script(".gt/hooks/on_create", &hook);

        town.bead("hq-a", &[]);

        let path = town.cwd().join(format!("child-{name}"));
        let child = || fs::read_to_string(&path).unwrap_or_default();
        wait_until("the child is there", || child().ends_with('\n'));
        wait_until("the child is ended", || !is_alive(child().trim()));
        assert_eq!(log(&town).contains("took longer than 1s"), name == "late");
    }
}

#[test]
fn a_command_does_not_wait_for_its_hook() {
    let town = town();
    // It ends when the test says so, which is after the command has ended.
    let hook = "while [ ! -e go ]; do sleep 0.05; done; echo done > calls";
    town.write_script(".gt/hooks/on_create", hook);

    let ran = town.bd(["create", "One", "--silent"]).ok();

    assert!(ran.line().starts_with("hq-"));
    assert_eq!(calls(&town), Vec::<String>::new());
    town.write("go", "");
    assert_eq!(next_calls(&town, 1), ["done"]);
}

#[test]
fn changes_by_a_hook_call_no_hook() {
    let town = town_with_hooks(".gt/hooks");
    let bd = town.bd_path();
    let script = format!("{} label add $1 seen && echo labelled >> calls", bd.display());
    town.write_script(".gt/hooks/on_create", &script);

    town.bead("hq-a", &[]);

    assert_eq!(next_calls(&town, 1), ["labelled"]);
    town.bd(["close", "hq-a"]).ok();
    assert_eq!(next_calls(&town, 1), ["on_close hq-a close"]);
}
