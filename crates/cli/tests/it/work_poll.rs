//! `gt work poll`: a command that does one item after the other.

use std::fs;

use gt_testkit::{FinishedProgram, RunningProgram, Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::{Stage as _, is_alive};
use crate::serving::{Served, text};
use crate::support::{Steps as _, assert_says, files_in, nowhere, refusal, town};

/// A poller: in a town, or with the address of a server.
struct Poller {
    sandbox: Sandbox,
    url: Option<String>,
}

impl Poller {
    /// In this town.
    fn here(town: &Sandbox) -> Self {
        Self { sandbox: town.clone(), url: None }
    }

    /// On another machine.
    fn away(server: &Served) -> Self {
        Self { sandbox: nowhere(), url: Some(format!("http://{}", server.address)) }
    }

    #[track_caller]
    fn start(&self, flags: &[&str], script: &str) -> RunningProgram {
        let fixed = ["work", "poll", "--agent", "steve-w", "--json"];
        let polling = self.sandbox.start_gt(&[&fixed, flags].concat());
        let polling = polling.args(["--", "sh", "-c", script, "poll", "{}"]);
        match &self.url {
            Some(url) => polling.env("GT_WORK_URL", url).start(),
            None => polling.start(),
        }
    }

    #[track_caller]
    fn run(&self, flags: &[&str], script: &str) -> FinishedProgram {
        self.start(flags, script).wait()
    }
}

/// The events that a poller has printed so far.
fn told(lines: &str) -> Vec<String> {
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| text(&line["event"])).collect()
}

fn add(town: &Sandbox, description: &str, flags: &[&str]) -> String {
    text(&town.gt_json(&[&["work", "add", "task", description], flags].concat())["bead"])
}

fn shown(town: &Sandbox, item: &str) -> Value {
    town.gt_json(&["work", "show", item])
}

const ONCE: [&str; 3] = ["--once", "--wait", "0"];

#[test]
fn a_command_does_the_work_and_its_exit_status_is_the_outcome() {
    let server = Served::new();
    let town = &server.town;
    for poller in [Poller::here(town), Poller::away(&server)] {
        let good = add(town, "Good", &["--payload", r#"{"pr":3}"#, "--notes", "from Marcus"]);
        let script = "cat > item; echo \"$GT_WORK_ITEM\" | cmp - item && \
                      echo \"did $1 for $GT_WORK_AGENT\"; test \"$1\" = \"$GT_WORK_ID\"";
        let ran = poller.run(&ONCE, script).ok();
        assert_eq!(told(&ran.stdout), ["began", "completed"]);
        let item = shown(town, &good);
        assert_eq!((&item["status"], &item["outcome"]), (&json!("completed"), &json!("success")));
        let id = text(&item["id"]);
        assert_eq!(item["notes"], format!("did {id} for steve-w\n\nfrom Marcus"));
        let given: Value =
            serde_json::from_slice(&fs::read(poller.sandbox.cwd().join("item")).unwrap()).unwrap();
        assert_eq!((&given["id"], &given["payload"]), (&item["id"], &json!({"pr": 3})));
        let began: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
        let kept = fs::read_to_string(text(&began["output"])).unwrap();
        assert_eq!(kept, format!("did {id} for steve-w\n"));

        let bad = add(town, "Bad", &[]);
        let ran = poller.run(&ONCE, "echo one; echo two >&2; exit 3").ok();
        assert_eq!(told(&ran.stdout), ["began", "failed"]);
        let item = shown(town, &bad);
        assert_eq!((&item["status"], &item["outcome"]), (&json!("failed"), &json!("failed")));
        assert_eq!(item["notes"], "the command failed with exit status 3\none\ntwo");
        let ran = poller.run(&ONCE, "true").ok();
        assert_eq!(told(&ran.stdout), ["nothing"]);
    }
    // The default directory for output.
    assert_eq!(files_in(town.cwd().join(".gt/work")).len(), 2);
}

#[test]
fn a_poller_without_a_town_keeps_output_in_the_state_directory_of_its_user() {
    let place = nowhere();
    let url = "data/work_queue.db";
    let running = place.start_gt(&["serve", "--json", "--bind", "127.0.0.1:0"]);
    let server = Served::once_it_listens(place, running.env("DATABASE_URL", url).start());
    server.submit("Water the plants");
    let place = server.stop();
    let gt = |arguments: &[&str]| {
        let call = place.start_gt(arguments).env("DATABASE_URL", url);
        call.env("XDG_STATE_HOME", place.root().join("state")).run().ok()
    };
    let flags = ["work", "poll", "--agent", "steve-w", "--json", "--once", "--wait", "0"];
    let ran = gt(&[&flags[..], &["--", "echo", "watered"]].concat());
    assert_eq!(told(&ran.stdout), ["began", "completed"]);
    assert_eq!(files_in(place.root().join("state/gt/work")).len(), 1);
    assert!(!std::path::Path::new("/nonexistent").exists());
}

#[test]
fn everything_that_fits_is_done_one_after_the_other() {
    let server = Served::new();
    for poller in [Poller::here(&server.town), Poller::away(&server)] {
        let items: Vec<String> = (0..3).map(|n| add(&server.town, &n.to_string(), &[])).collect();
        let other = text(&server.town.gt_json(&["work", "add", "other", "x"])["bead"]);
        let flags = ["--type", "task", "--max", "3", "--output", "kept"];
        let ran = poller.run(&flags, "echo \"$GT_WORK_BEAD\" >> done").ok();
        assert_eq!(told(&ran.stdout), ["began", "completed"].repeat(3));
        let done = fs::read_to_string(poller.sandbox.cwd().join("done")).unwrap();
        assert_eq!(done.lines().collect::<Vec<_>>(), items);
        assert_eq!(files_in(poller.sandbox.cwd().join("kept")).len(), 3);
        assert_eq!(shown(&server.town, &other)["status"], "queued");
        fs::remove_file(poller.sandbox.cwd().join("done")).unwrap();
        fs::remove_dir_all(poller.sandbox.cwd().join("kept")).unwrap();
        server.town.gt(["work", "update", &other, "--status", "cancelled"]).ok();
    }
}

#[test]
fn a_command_may_report_itself() {
    let server = Served::new();
    let poller = Poller::away(&server);
    let gt = server.town.gt_path().display().to_string();
    let done = add(&server.town, "Done", &[]);
    let report = |status: &str| {
        format!("{gt} work update \"$1\" --status {status} --notes mine --run-id \"$GT_RUN_ID\"")
    };
    let ran = poller.run(&ONCE, &format!("{}; exit 7", report("completed"))).ok();
    assert_eq!(told(&ran.stdout), ["began", "reported"]);
    let item = shown(&server.town, &done);
    assert_eq!((&item["status"], &item["notes"]), (&json!("completed"), &json!("mine")));

    let blocked = add(&server.town, "Blocked", &[]);
    let ran = poller.run(&ONCE, &report("blocked")).ok();
    assert_eq!(told(&ran.stdout), ["began", "reported"]);
    assert_eq!(shown(&server.town, &blocked)["status"], "blocked");
}

#[test]
fn a_poll_takes_dispatched_items_and_items_in_progress_without_a_holder() {
    let server = Served::new();
    for poller in [Poller::here(&server.town), Poller::away(&server)] {
        let begun = add(&server.town, "Begun", &[]);
        server.town.gt(["work", "dispatch", &begun, "steve-w"]).ok();
        let given = add(&server.town, "Given", &[]);
        server.town.gt(["work", "dispatch", &given, "steve-w", "--no-start"]).ok();
        let ran = poller.run(&["--max", "2"], "echo $GT_WORK_BEAD").ok();
        assert_eq!(told(&ran.stdout), ["began", "completed", "began", "completed"]);
        for item in [begun, given] {
            let item = shown(&server.town, &item);
            assert_eq!((&item["status"], &item["notes"]), (&json!("completed"), &item["bead"]));
        }
    }
}

#[test]
fn an_item_of_another_poller_with_the_same_name_is_left_alone() {
    let server = Served::new();
    let town = &server.town;
    let item = add(town, "Mine", &[]);
    let first = Poller::here(town).start(&["--max", "1"], "until [ -e go ]; do sleep 0.05; done");
    wait_until("the first has it", || told(&first.stdout()) == ["began"]);
    let other = Poller::away(&server);
    let second = other.start(&["--wait", "1s"], "false");
    wait_until("the second says so", || second.stderr().contains("in progress"));
    let refused = other.run(&ONCE, "false");
    assert_says(&refused.fails(1).stderr, &["steve-w has", &item]);
    town.write("go", "");
    assert_eq!(told(&first.wait().ok().stdout), ["began", "completed"]);
    assert_eq!(shown(town, &item)["status"], "completed");
    assert_eq!(second.kill().stdout, "");
}

#[test]
fn a_poller_that_is_asked_to_stop_ends_its_command_and_gives_the_item_back() {
    let server = Served::new();
    for (poller, signal) in [(Poller::here(&server.town), "TERM"), (Poller::away(&server), "INT")] {
        let item = add(&server.town, "Long", &[]);
        let polite = "trap 'echo bye; exit 0' TERM; echo $$ > pid; while :; do sleep 0.05; done";
        let running = poller.start(&[], polite);
        let pid = poller.sandbox.cwd().join("pid");
        wait_until("the command is at work", || {
            fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n'))
        });
        server.town.signal(signal, &running.id().to_string());
        let ran = running.wait().ok();
        assert_eq!(told(&ran.stdout), ["began", "given-back"]);
        let began: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
        assert_says(&fs::read_to_string(text(&began["output"])).unwrap(), &["bye"]);
        let now = shown(&server.town, &item);
        assert_eq!((&now["status"], &now["assigned_agent"]), (&json!("queued"), &Value::Null));
        let again = poller.run(&ONCE, "true").ok();
        assert_eq!(told(&again.stdout), ["began", "completed"], "it need not wait for a lease");
        fs::remove_file(pid).unwrap();
    }
    // One that waits for work ends as well.
    let poller = Poller::away(&server);
    let waiting = poller.start(&[], "true");
    let waits = || server.get("/metrics").text().contains("gt_http_waiting_for_work 1");
    wait_until("it waits", waits);
    server.town.signal("TERM", &waiting.id().to_string());
    assert_eq!(waiting.wait().ok().stdout, "");
}

#[test]
fn a_command_whose_item_another_agent_gets_is_ended() {
    let server = Served::new();
    let item = add(&server.town, "Taken away", &[]);
    let poller = Poller::away(&server);
    // The shortest lease there is; it is renewed at a third of that.
    let running = poller.start(&["--lease", "30s", "--max", "1"], "while :; do sleep 0.05; done");
    wait_until("the command is at work", || told(&running.stdout()) == ["began"]);
    let run = text(&shown(&server.town, &item)["dispatch_log"][0]["run"]);
    server.town.gt(["run", "cancel", &run]).ok();
    let ran = running.wait().ok();
    assert_eq!(told(&ran.stdout), ["began", "lost"]);
    assert_eq!(shown(&server.town, &item)["status"], "queued");
}

#[test]
fn a_command_that_cannot_be_started_costs_no_item() {
    let town = town();
    let items = [add(&town, "One", &[]), add(&town, "Two", &[])];
    let ran = town.gt(["work", "poll", "--agent", "steve-w", "--", "./nothing", "{}"]);
    assert_says(&refusal(&ran), &["cannot start ./nothing"]);
    for item in items {
        assert_eq!(shown(&town, &item)["status"], "queued");
    }
    assert_eq!(town.gt(["work", "poll", "--agent", "steve-w"]).code, 2, "there is no command");
}

#[test]
fn a_server_that_is_away_is_waited_for_and_told_of_once() {
    let server = Served::new();
    let item = add(&server.town, "Through it all", &[]);
    let poller = Poller::away(&server);
    let running = poller.start(&["--max", "2"], "until [ -e go ]; do sleep 0.05; done; echo done");
    wait_until("the command is at work", || told(&running.stdout()) == ["began"]);
    let (address, town) = (server.address.clone(), server.town.clone());
    server.running.kill();
    // The command ends while the server is away.
    poller.sandbox.write("go", "");
    wait_until("it is told", || running.stderr().contains("waiting for the queue"));
    let again = town.start_gt(&["serve", "--bind", &address, "--json"]).start();
    let server = Served::once_it_listens(town, again);
    wait_until("it is completed", || shown(&server.town, &item)["status"] == "completed");
    add(&server.town, "After", &[]);
    let ran = running.wait().ok();
    assert_eq!(told(&ran.stdout), ["began", "completed"].repeat(2));
    assert_eq!(ran.stderr.matches("waiting for the queue").count(), 1, "{ran}");
    assert_eq!(ran.stderr.matches("the queue is back").count(), 1, "{ran}");
}

/// A command that writes down its own number and that of a child which has left its session, and hears no question.
const HIDES: &str = "trap '' TERM
    setsid env -i sh -c 'trap \"\" TERM; echo $$ > \"$0/child\"; while [ -d \"$0\" ]; do sleep 0.05; done' \"$PWD\" &
    echo $$ > pid
    while [ -d . ]; do sleep 0.05; done";

/// Waits until such a command is at work; its number and that of its child.
#[track_caller]
fn at_work(poller: &Poller) -> [String; 2] {
    ["pid", "child"].map(|name| {
        let path = poller.sandbox.cwd().join(name);
        let read = || fs::read_to_string(&path).unwrap_or_default();
        wait_until("the command is at work", || read().ends_with('\n'));
        let number = read().trim().to_owned();
        fs::remove_file(&path).unwrap();
        number
    })
}

/// The number of the attendant of a command.
fn attendant_of(process: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent.unwrap().trim().to_owned()
}

#[test]
fn a_command_ends_with_the_poller_that_was_killed_and_before_its_lease() {
    let server = Served::new();
    for poller in [Poller::here(&server.town), Poller::away(&server)] {
        let item = add(&server.town, "Long", &[]);
        let running = poller.start(&["--grace", "300ms", "--lease", "30s"], HIDES);
        let processes = at_work(&poller);
        running.kill();
        for process in &processes {
            wait_until("the command and its child are gone", || !is_alive(process));
        }
        // The lease is still held, so that no other poller has got the item meanwhile.
        assert_eq!(shown(&server.town, &item)["status"], "in_progress");
        server.town.gt(["work", "update", &item, "--status", "failed"]).ok();
    }
}

#[test]
fn a_command_whose_attendant_was_killed_is_ended_by_the_poller() {
    let server = Served::new();
    let poller = Poller::away(&server);
    let item = add(&server.town, "Long", &[]);
    let running = poller.start(&["--grace", "300ms", "--max", "1"], HIDES);
    let processes = at_work(&poller);
    let attendant = attendant_of(&processes[0]);
    assert_ne!(attendant, running.id().to_string());
    server.town.signal("KILL", &attendant);
    let ran = running.wait().ok();
    assert_eq!(told(&ran.stdout), ["began", "failed"]);
    for process in &processes {
        assert!(!is_alive(process));
    }
    assert_eq!(shown(&server.town, &item)["status"], "failed");
}

#[test]
fn a_command_that_outlived_its_poller_and_attendant_is_ended_before_the_item_is_done_again() {
    let server = Served::new();
    for poller in [Poller::here(&server.town), Poller::away(&server)] {
        let item = add(&server.town, "Long", &[]);
        let running = poller.start(&["--lease", "30s"], HIDES);
        let processes = at_work(&poller);
        let attendant = attendant_of(&processes[0]);
        // One that is stopped does not notice the end of its poller.
        server.town.signal("STOP", &attendant);
        running.kill();
        server.town.signal("KILL", &attendant);
        let run = text(&shown(&server.town, &item)["dispatch_log"][0]["run"]);
        server.town.gt(["run", "cancel", &run]).ok();
        assert!(processes.iter().all(|process| is_alive(process)));

        // A process that is killed and not collected yet has no command line.
        let is_over = format!("test -z \"$(cat /proc/{}/cmdline)\"", processes[0]);
        let again = poller.run(&["--max", "1", "--grace", "300ms"], &is_over).ok();

        assert_eq!(told(&again.stdout), ["began", "completed"]);
        wait_until("its child is gone, too", || !is_alive(&processes[1]));
    }
}
