//! The picture of a convoy: waves, places in line, who is at what, what keeps the others, and when all would be done.

use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::{Stage as _, town_with_agent};
use crate::support::{Steps as _, assert_says, strings, texts};

/// Slings these beads, which are there, together; their convoy.
#[track_caller]
fn sling(town: &Sandbox, beads: &[&str]) -> String {
    let slung = town.gt_json(&[&["sling", "--no-boot"], beads].concat());
    slung["convoy"].as_str().expect("they travel together").to_owned()
}

fn picture(town: &Sandbox, convoy: &str) -> Value {
    town.gt_json(&["convoy", "status", convoy])
}

/// The entry of one bead in the status of a convoy.
#[track_caller]
fn tracked<'p>(picture: &'p Value, bead: &str) -> &'p Value {
    let tracked = picture["tracked"].as_array().unwrap();
    tracked.iter().find(|one| one["id"] == bead).expect("it is tracked")
}

fn state(picture: &Value, bead: &str) -> String {
    tracked(picture, bead)["state"].as_str().unwrap().to_owned()
}

fn waves(picture: &Value) -> Vec<Vec<&str>> {
    picture["waves"].as_array().unwrap().iter().map(|wave| strings(&wave["beads"])).collect()
}

/// A town whose agents wait for the name of their bead, of which two have room.
fn town_with_two_slots() -> Sandbox {
    let town = town_with_agent("wait_for go-$bead");
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    town
}

/// `we-b` and `we-c` wait for `we-a`, `we-d` for both of them; `we-x`, `we-y` and `we-z` stand alone.
fn convoy_with_everything(town: &Sandbox) -> String {
    let beads = ["we-a", "we-b", "we-c", "we-d", "we-x", "we-y", "we-z"];
    for bead in beads {
        town.bead(bead, &[]);
    }
    for (bead, needs) in [("we-b", "we-a"), ("we-c", "we-a"), ("we-d", "we-b"), ("we-d", "we-c")] {
        town.bd(["dep", "add", bead, needs]).ok();
    }
    sling(town, &beads)
}

#[test]
fn everything_that_is_left_is_shown_with_what_keeps_it() {
    let town = town_with_two_slots();
    let convoy = convoy_with_everything(&town);
    town.cycle().ok();
    for run in ["we-a#1", "we-x#1"] {
        town.wait_for_agent(run);
    }

    let shown = picture(&town, &convoy);

    assert_eq!(
        waves(&shown),
        [vec!["we-a", "we-x", "we-y", "we-z"], vec!["we-b", "we-c"], vec!["we-d"]]
    );
    assert_eq!(
        shown["states"],
        json!({"done": 0, "failed": 0, "running": 2, "landing": 0, "starting": 0, "queued": 2,
            "blocked": 3, "waiting": 0, "idle": 0})
    );
    assert_eq!(strings(&shown["critical_path"]).len(), 3);
    assert_eq!((&shown["eta"], &shown["remaining_seconds"]), (&Value::Null, &Value::Null));
    let first = tracked(&shown, "we-a");
    assert_eq!((&first["state"], &first["run"]), (&json!("running"), &json!("we-a#1")));
    assert_eq!((&first["wave"], &first["place"]), (&json!(1), &Value::Null));
    assert!(first["worker"].is_string() && first["worker_age"].is_string(), "{first}");
    for (bead, place) in [("we-y", 1), ("we-z", 2)] {
        let one = tracked(&shown, bead);
        assert_eq!((&one["state"], &one["place"]), (&json!("queued"), &json!(place)));
        assert_eq!(texts(&one["reasons"], "code"), ["no-slot"]);
    }
    let last = tracked(&shown, "we-d");
    assert_eq!((&last["state"], &last["wave"]), (&json!("blocked"), &json!(3)));
    assert_eq!(strings(&last["blocked_by"]), ["we-b", "we-c"]);
    assert_eq!(texts(&last["reasons"], "text"), ["blocked by we-b, we-c"]);

    let said = town.gt(["convoy", "status", &convoy]).ok().stdout;
    assert_says(
        &said,
        &[
            "open: 0/7 done, running: 2, queued: 2, blocked: 3",
            "Waves: 4, 2, 1",
            "Longest chain: we-a → we-",
            "(3 beads)",
            "queued, place 2",
            "no slot: ",
            "blocked by we-b, we-c",
        ],
    );
    for bead in ["we-a", "we-b", "we-c", "we-d", "we-x", "we-y", "we-z"] {
        town.allow(&format!("go-{bead}"));
    }
    town.assert_quiet();
}

#[test]
fn the_convoy_status_agrees_with_why_and_the_queue() {
    let town = town_with_two_slots();
    let convoy = convoy_with_everything(&town);
    for (bead, priority) in [("we-p", "0"), ("we-q", "4")] {
        town.bead(bead, &["--priority", priority]);
        town.gt(["sling", "--no-boot", bead]).ok();
    }
    town.bead("we-date", &["--defer", "+2d"]);
    town.bead("we-mine", &[]);
    let other = sling(&town, &["we-date", "we-mine"]);
    town.bd(["update", "we-mine", "--claim"]).ok();
    town.bd(["update", "we-z", "--priority", "1"]).ok();
    town.bead("we-idle", &[]);
    town.bd(["dep", "add", &convoy, "we-idle", "--type", "tracks"]).ok();

    // As it is, paused, and with two at work.
    for step in 0..3 {
        match step {
            1 => town.gt(["scheduler", "pause"]).ok(),
            2 => {
                town.gt(["scheduler", "resume"]).ok();
                town.cycle().ok()
            }
            _ => town.gt(["scheduler", "status"]).ok(),
        };
        for convoy in [&convoy, &other] {
            for one in picture(&town, convoy)["tracked"].as_array().unwrap() {
                let bead = one["id"].as_str().unwrap();
                let why = town.why(bead);
                assert_eq!(
                    one.get("place"),
                    why.pointer("/line/position"),
                    "{step} {bead}\n{one}\n{why}"
                );
                let is_live = ["running", "starting"].contains(&one["state"].as_str().unwrap());
                if !is_live {
                    let said = one.get("reasons").cloned().unwrap_or_else(|| json!([]));
                    assert_eq!(
                        texts(&said, "text"),
                        texts(&why["reasons"], "text"),
                        "{step} {bead}"
                    );
                }
            }
        }
    }
    for bead in ["we-p", "we-q", "we-a", "we-x", "we-y", "we-z"] {
        town.allow(&format!("go-{bead}"));
    }
}

#[test]
fn a_failed_bead_is_shown_with_its_reason_and_its_dependents() {
    let town = town_with_agent("[ $bead != we-a ] || exit 3");
    for bead in ["we-a", "we-b", "we-c"] {
        town.bead(bead, &[]);
    }
    town.bd(["dep", "add", "we-b", "we-a"]).ok();
    town.gt(["config", "set", "scheduler.max_polecats", "3"]).ok();
    let convoy = sling(&town, &["we-a", "we-b", "we-c"]);
    town.cycle().ok();
    town.gt(["wait", "we-a"]).fails(1);
    town.gt(["wait", "we-c"]).ok();

    let shown = picture(&town, &convoy);

    assert_eq!(
        ["we-a", "we-b", "we-c"].map(|bead| state(&shown, bead)),
        ["failed", "blocked", "done"]
    );
    assert_says(tracked(&shown, "we-a")["failure"].as_str().unwrap(), &["exit status 3"]);
    let second = tracked(&shown, "we-b");
    assert_eq!(texts(&second["reasons"], "code"), ["blocker-failed"]);
    assert_eq!((strings(&second["blocked_by"]), &second["wave"]), (vec!["we-a"], &Value::Null));
    assert_eq!((&shown["failed"], &shown["completed"]), (&json!(1), &json!(1)));
    assert_eq!(shown["eta"], Value::Null, "nothing of it goes on by itself");
    let said = town.gt(["convoy", "status", &convoy]).ok().stdout;
    assert_says(
        &said,
        &["1/3 done, failed: 1, blocked: 1", "exit status 3", "blocker failed: we-a", "success"],
    );
}

#[test]
fn past_runs_say_when_it_is_done() {
    let town = town_with_agent("[ $bead = we-past ] || wait_for go-$bead");
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    for bead in ["we-past", "we-a", "we-b", "we-c"] {
        town.bead(bead, &[]);
    }
    town.bd(["dep", "add", "we-b", "we-a"]).ok();
    let staged = town.gt_json(&["convoy", "stage", "we-a", "we-b", "we-c"]);
    assert_eq!(
        staged["estimate_seconds"],
        Value::Null,
        "no run has ended yet, so there is no estimate"
    );
    town.gt(["sling", "--no-boot", "we-past"]).ok();
    town.cycle().ok();
    town.gt(["wait", "we-past"]).ok();

    let convoy = staged["convoy_id"].as_str().unwrap();
    let said = town.gt(["convoy", "stage", convoy]).ok().stdout;
    assert_says(&said, &["Estimated: about ", " with 1 at a time"]);
    let staged = town.gt_json(&["convoy", "stage", convoy]);
    assert!(staged["estimate_seconds"].is_u64(), "{staged}");
    let shown = picture(&town, convoy);
    assert_eq!(shown["states"]["blocked"], 1);
    assert_eq!(state(&shown, "we-a"), "idle");
    assert_eq!(texts(&tracked(&shown, "we-a")["reasons"], "code"), ["convoy-staged"]);
    assert!(shown["eta"].is_string(), "{shown}");
    town.gt(["convoy", "launch", convoy, "--force"]).ok();
    // Without a daemon nothing starts, so no estimate would be true.
    assert_eq!(picture(&town, convoy)["eta"], Value::Null);
    let said = town.gt(["convoy", "status", convoy]).ok().stdout;
    assert!(said.starts_with("No daemon is running and 2 beads are ready; "), "{said}");
    town.gt(["up"]).ok();
    town.wait_for_agent("we-a#1");
    let shown = picture(&town, convoy);
    assert!(shown["eta"].is_string() && shown["remaining_seconds"].is_u64(), "{shown}");
    assert_eq!(shown["left_out"], 0);
    assert_says(
        &town.gt(["convoy", "status", convoy]).ok().stdout,
        &["At today's pace: done in about "],
    );
    // A bead that is not scheduled is not counted.
    town.gt(["scheduler", "clear", "--bead", "we-c"]).ok();
    let shown = picture(&town, convoy);
    assert_eq!((state(&shown, "we-c").as_str(), &shown["left_out"]), ("idle", &json!(1)));
    let status = town.gt_json(&["status"]);
    let one = &status["convoys"][0];
    assert_eq!((&one["id"], &one["left_out"]), (&json!(convoy), &json!(1)));
    // It is not done before the last bead may begin.
    town.bd(["defer", "we-b", "--until", "+10d"]).ok();
    let left = picture(&town, convoy)["remaining_seconds"].as_u64().unwrap();
    assert!(left > 9 * 24 * 60 * 60, "{left}");
    town.gt(["down"]).ok();
    for bead in ["we-a", "we-b", "we-c"] {
        town.allow(&format!("go-{bead}"));
    }
}

#[test]
fn the_status_of_the_town_counts_the_convoys_that_are_under_way() {
    let town = town_with_two_slots();
    assert_eq!(town.gt_json(&["status"])["convoys"], json!([]));
    let convoy = convoy_with_everything(&town);
    town.cycle().ok();
    for run in ["we-a#1", "we-x#1"] {
        town.wait_for_agent(run);
    }
    town.bd(["close", "we-z"]).ok();

    let status = town.gt_json(&["status"]);

    assert_eq!(
        status["convoys"],
        json!([{"id": convoy, "title": status["convoys"][0]["title"], "completed": 1, "total": 7,
            "failed": 0, "running": 2, "queued": 1, "blocked": 3}])
    );
    let shown = picture(&town, &convoy);
    for count in ["running", "queued", "blocked", "failed"] {
        assert_eq!(status["convoys"][0][count], shown["states"][count], "{count}");
    }
    let said = town.gt(["status"]).ok().stdout;
    assert_says(&said, &["Convoys", &convoy, "1/7 done", "running: 2, queued: 1, blocked: 3"]);
    for bead in ["we-a", "we-b", "we-c", "we-d", "we-x", "we-y"] {
        town.allow(&format!("go-{bead}"));
    }
}

#[test]
fn a_watch_of_a_convoy_shows_each_change_until_it_has_landed() {
    let town = town_with_agent("true");
    town.gt(["scheduler", "pause"]).ok();
    for bead in ["we-a", "we-b"] {
        town.bead(bead, &[]);
    }
    let convoy = sling(&town, &["we-a", "we-b"]);
    let watching = town.start_gt(&["convoy", "status", &convoy, "--watch", "--json"]).start();
    let reading = town.start_gt(&["convoy", "status", &convoy, "--watch"]).start();
    let lines = || watching.stdout().lines().count();
    wait_until("it is shown", || lines() == 1 && reading.stdout().contains("0/2 done"));
    // An unrelated bead changes nothing.
    town.bead("we-other", &[]);
    town.bd(["close", "we-a"]).ok();
    wait_until("the change is shown", || lines() == 2 && reading.stdout().contains("1/2 done"));
    town.bd(["close", "we-b"]).ok();

    let watched = watching.wait().ok();
    let seen: Vec<Value> = watched.json_lines();
    let done: Vec<&Value> = seen.iter().map(|one| &one["completed"]).collect();
    assert_eq!(done, [&json!(0), &json!(1), &json!(2)]);
    assert_eq!(seen[2]["status"], "closed");
    assert_eq!(tracked(&seen[1], "we-a")["state"], "done");
    let read = reading.wait().ok();
    assert_says(&read.stdout, &["landed", "2/2 done"]);
    assert!(!read.stdout.contains('\u{1b}'), "only a terminal is drawn on");
}

#[test]
fn a_watch_of_the_town_shows_it_again_after_each_event() {
    let town = town_with_agent("true");
    let watching = town.start_gt(&["status", "--watch", "--json"]).start();
    let seen = || -> Vec<Value> {
        let out = watching.stdout();
        out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    wait_until("it is shown", || seen().len() == 1);
    town.bead("we-a", &[]);
    wait_until("the new bead is counted", || {
        seen().last().is_some_and(|one| one["beads"]["total"] == 1)
    });
    watching.kill();
}

#[test]
fn on_a_terminal_it_is_drawn_in_place() {
    let town = town_with_agent("true");
    town.gt(["scheduler", "pause"]).ok();
    town.bead("we-a", &[]);
    town.bead("we-b", &[]);
    let convoy = sling(&town, &["we-a", "we-b"]);
    let command = format!("'{}' convoy status {convoy} --watch", town.gt_path().display());
    let drawing = town.command("script").args(["-qec", &command, "/dev/null"]).start();
    wait_until("it is drawn", || drawing.stdout().contains("0/2 done"));
    town.bd(["close", "we-a", "we-b"]).ok();
    let drawn = drawing.wait().ok();
    assert_says(&drawn.stdout, &["\u{1b}[H\u{1b}[2J", "landed", "2/2 done"]);
}

#[test]
fn staging_a_large_set_shows_how_far_it_is_on_a_terminal() {
    let town = town_with_agent("true");
    let date = "2026-01-01T00:00:00Z";
    let line = |number: usize| {
        let id = format!("we-{number}");
        let bead = json!({"id": id, "title": id, "created_at": date, "updated_at": date,
            "dependencies": [{"issue_id": id, "depends_on_id": "we-epic", "type": "parent-child",
                "created_at": date}]});
        format!("{bead}\n")
    };
    let lines: Vec<String> = (0..5_000).map(line).collect();
    town.bead("we-epic", &["--type", "epic"]);
    town.import(&lines.concat());
    let command = format!("'{}' convoy stage we-epic --json", town.gt_path().display());
    let script = town.command("script").args(["-qec", &command, "/dev/null"]);
    let drawn = script.env("TERM", "xterm").run().ok();
    assert_says(&drawn.stdout, &["staging ", "%", "\"convoy_id\""]);

    let staged = town.gt(["convoy", "stage", "we-epic", "--json"]).ok();
    assert_eq!(staged.stderr, "", "no progress bar without a terminal");
    assert_eq!(waves_of_plan(&staged.json()), [5_000]);
}

/// How many beads each wave of a plan has.
fn waves_of_plan(staged: &Value) -> Vec<usize> {
    let waves = staged["waves"].as_array().unwrap();
    waves.iter().map(|wave| wave["tasks"].as_array().unwrap().len()).collect()
}

#[test]
fn a_convoy_is_drawn_with_what_is_done_and_what_is_left() {
    let town = town_with_two_slots();
    let convoy = convoy_with_everything(&town);
    town.cycle().ok();
    town.wait_for_agent("we-a#1");
    town.allow("go-we-a");
    wait_until("we-a is done", || town.show("we-a")["status"] == "closed");
    town.bd(["update", "we-d", "--title", "<b>Last</b> & least"]).ok();

    let graph = town.gt_json(&["convoy", "graph", &convoy]);

    let place = |bead: &str| {
        let nodes = graph["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|node| node["id"] == bead).expect("it is drawn");
        (node["layer"].as_u64().unwrap(), node["state"].as_str().unwrap().to_owned())
    };
    assert_eq!(place("we-a"), (0, "done".to_owned()), "what is done keeps its place");
    assert_eq!((place("we-b").0, place("we-c").0, place("we-d").0), (1, 1, 2));
    assert_eq!(place("we-x").0, 0);
    assert_eq!(graph["edges"].as_array().unwrap().len(), 4);

    let drawn = town.gt(["convoy", "graph", &convoy]).ok().stdout;
    assert_says(&drawn, &["<svg xmlns=", "✓ we-a", "&lt;b&gt;Last&lt;/b&gt; &amp; least"]);
    let said = town.gt(["convoy", "graph", &convoy, "--output", "convoy.svg"]).ok().stdout;
    assert_says(&said, &["Drew", "convoy.svg"]);
    assert_eq!(std::fs::read_to_string(town.cwd().join("convoy.svg")).unwrap(), drawn);
    for bead in ["we-b", "we-c", "we-d", "we-x", "we-y", "we-z"] {
        town.allow(&format!("go-{bead}"));
    }
    wait_until("all is done", || {
        town.cycle().ok();
        town.show("we-d")["status"] == "closed" && town.show("we-z")["status"] == "closed"
    });
    town.assert_quiet();
}
