//! `gt convoy create`, `add`, `remove`, `pause`, `cap`, `retry`, `close`, `land`, `watch`, `stranded`, and `gt deacon
//! feed-stranded`: a convoy that is open is live.

use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::{Stage as _, town_with_agent};
use crate::support::{Steps as _, assert_says, refusal, strings, texts};

/// A town in which everything that is slung waits for a cycle.
fn town() -> Sandbox {
    let town = town_with_agent("true");
    town.gt(["config", "set", "scheduler.max_polecats", "5"]).ok();
    for bead in ["we-a", "we-b", "we-c"] {
        town.bead(bead, &[]);
    }
    town
}

/// Makes a convoy; its id.
#[track_caller]
fn create(town: &Sandbox, arguments: &[&str]) -> String {
    let made = town.gt_json(&[&["convoy", "create", "Search"], arguments].concat());
    made["convoy"].as_str().expect("a convoy was made").to_owned()
}

fn status(town: &Sandbox, convoy: &str) -> Value {
    town.gt_json(&["convoy", "status", convoy])
}

/// The beads that are scheduled, sorted.
fn queued(town: &Sandbox) -> Vec<String> {
    let listed = town.gt_json(&["scheduler", "list"]);
    let mut ids = texts(&listed, "id");
    ids.sort();
    ids
}

#[test]
fn a_created_convoy_is_open_and_its_beads_are_scheduled_at_once() {
    let town = town();
    town.bd(["dep", "add", "we-b", "we-a"]).ok();
    town.bd(["close", "we-c"]).ok();
    let before = town.last_event();

    let made = town.gt_json(&[
        "convoy",
        "create",
        "Search",
        "we-a",
        "we-b",
        "we-c",
        "--owner",
        "ann",
        "--notify",
        "--notify=web/crew/max",
        "--merge",
        "mr",
        "--base-branch",
        "main",
    ]);

    let of = |id: &str| {
        made["entries"].as_array().unwrap().iter().find(|entry| entry["id"] == id).unwrap().clone()
    };
    assert_eq!(of("we-a")["status"], "scheduled");
    assert_eq!(of("we-b")["reasons"][0]["code"], "blocked");
    assert_eq!(of("we-c")["reasons"][0]["code"], "closed");
    assert!(town.last_event() > before);
    assert_eq!(queued(&town), ["we-a", "we-b"]);
    let convoy = made["convoy"].as_str().unwrap();
    let shown = status(&town, convoy);
    assert_eq!((&shown["status"], &shown["total"]), (&json!("open"), &json!(3)));
    assert_eq!((&shown["owner"], &shown["merge_strategy"]), (&json!("ann"), &json!("mr")));
    assert_eq!(strings(&shown["watchers"]), ["mayor", "web/crew/max"]);
    assert_eq!(shown["base_branch"], "main");
    town.gt(["doctor"]).ok();
}

#[test]
fn a_convoy_of_an_epic_tracks_what_has_to_be_done_of_it() {
    let town = town();
    town.bead("we-epic", &["--type", "epic"]);
    town.bead("we-sub", &["--type", "epic"]);
    for (part, whole) in [("we-sub", "we-epic"), ("we-a", "we-sub"), ("we-b", "we-epic")] {
        town.bd(["dep", "add", part, whole, "--type", "parent-child"]).ok();
    }

    let convoy = create(&town, &["--from-epic", "we-epic"]);

    assert_eq!(texts(&status(&town, &convoy)["tracked"], "id"), ["we-a", "we-b"]);
    assert_eq!(queued(&town), ["we-a", "we-b"]);
}

#[test]
fn a_convoy_of_unsuitable_beads_is_refused_as_a_whole() {
    let town = town();
    town.bead("we-epic", &["--type", "epic"]);
    let convoy = create(&town, &["we-a"]);
    let before = town.last_event();
    for (arguments, says) in [
        (vec!["we-b", "we-nope"], "we-nope"),
        (vec!["we-b", "we-epic"], "--from-epic we-epic"),
        (vec!["we-b", &convoy], "convoys do not travel in others"),
        (vec!["we-b", "--notify=we-a"], "may be gone when the convoy lands"),
        (vec!["we-b", "--notify=nowhere/crew/x"], "nowhere"),
        (vec!["--from-epic", "we-a"], "we-a is a task, and no epic"),
        (vec!["--from-epic", "we-epic"], "has no parts"),
    ] {
        let ran = town.gt([&["convoy", "create", "Other"], arguments.as_slice()].concat());
        assert_says(&refusal(&ran), &[says]);
    }
    assert_says(&refusal(&town.gt(["convoy", "create", " "])), &["needs a name"]);
    assert_eq!(town.last_event(), before);
    let staged = town.gt_json(&["convoy", "stage", "we-c"]);
    let staged = staged["convoy_id"].as_str().unwrap();
    let tracked = town.bd(["dep", "add", &convoy, staged, "--type", "tracks"]);
    assert_says(&refusal(&tracked), &["convoys do not travel in others"]);
    town.bd(["delete", staged, "--force"]).ok();
    let before = town.last_event();
    assert_says(&refusal(&town.gt(["convoy", "add", &convoy, &convoy])), &["do not travel"]);
    assert_says(&refusal(&town.gt(["convoy", "add", "we-a", "we-b"])), &["no convoy"]);
    assert_eq!(town.last_event(), before);
    assert_eq!(queued(&town), ["we-a"]);
}

#[test]
fn a_convoy_is_shown_as_it_was_after_an_event() {
    let town = town();
    let convoy = create(&town, &["we-a", "we-b"]);
    let before = town.last_event().to_string();
    town.bd(["close", "we-a"]).ok();

    let then = town.gt_json(&["convoy", "status", &convoy, "--at", &before]);
    assert_eq!(texts(&then["tracked"], "state"), ["queued", "queued"]);
    assert_eq!(then["as_of"]["number"].to_string(), before);
    let last = town.last_event().to_string();
    let now = town.gt_json(&["convoy", "status", &convoy, "--at", &last]);
    assert_eq!(texts(&now["tracked"], "state"), texts(&status(&town, &convoy)["tracked"], "state"));
    let said = town.gt(["convoy", "status", &convoy, "--at", &before]).ok().stdout;
    assert_says(&said, &[&format!("As of event {before}"), "open: 0/2 done, queued: 2", "we-b"]);
    let earlier = town.gt(["convoy", "status", &convoy, "--at", "1"]).ok().stdout;
    assert_says(&earlier, &["As of event 1,", "It had not been made yet"]);
    let refused = refusal(&town.gt(["convoy", "status", &convoy, "--at", "2001-01-01T00:00:00Z"]));
    assert_says(&refused, &["not kept", "events.keep"]);
    let refused = refusal(&town.gt(["convoy", "status", &convoy, "--at", "soon"]));
    assert_says(&refused, &["neither the number of an event nor an instant"]);
}

#[test]
fn one_without_beads_never_lands_and_takes_some_later() {
    let town = town();
    let convoy = create(&town, &[]);
    assert_says(&town.gt(["convoy", "status", &convoy]).ok().stdout, &["tracks nothing"]);
    assert_says(&town.gt(["convoy", "check"]).ok().stdout, &["Nothing to land"]);

    let said = town.gt(["convoy", "add", &convoy, "we-a", "we-b"]).ok().stdout;

    assert_says(&said, &[&format!("✓ {convoy} tracks we-a, we-b"), "✓ Scheduled we-a"]);
    assert_eq!(queued(&town), ["we-a", "we-b"]);
    let again = town.gt(["convoy", "add", &convoy, "we-a"]).ok().stdout;
    assert_says(&again, &["tracks them already; nothing to do"]);
}

#[test]
fn adding_a_bead_to_a_landed_convoy_reopens_it() {
    let town = town();
    let convoy = create(&town, &["we-a"]);
    town.bd(["close", "we-a"]).ok();
    assert_eq!(status(&town, &convoy)["status"], "closed");

    town.gt(["convoy", "add", &convoy, "we-b"]).ok();

    let shown = status(&town, &convoy);
    assert_eq!((&shown["status"], &shown["total"]), (&json!("open"), &json!(2)));
    assert_eq!(queued(&town), ["we-b"]);
    town.bd(["close", "we-b"]).ok();
    assert_eq!(status(&town, &convoy)["landings"], 2);
    // A convoy of closed beads lands at once.
    let done = create(&town, &["we-a", "we-b"]);
    assert_eq!(status(&town, &done)["close_reason"], "landed");
}

#[test]
fn a_bead_added_to_a_staged_convoy_waits_for_its_launch() {
    let town = town();
    let staged = town.gt_json(&["convoy", "stage", "we-a"]);
    let convoy = staged["convoy_id"].as_str().unwrap();
    town.gt(["convoy", "watch", convoy]).ok();

    town.gt(["convoy", "add", convoy, "we-b"]).ok();

    assert_eq!(queued(&town), Vec::<String>::new());
    let again = town.gt_json(&["convoy", "stage", convoy]);
    assert_eq!((&again["restaged"], &again["added"]), (&json!(true), &json!([])));
    assert_eq!(strings(&status(&town, convoy)["watchers"]), ["mayor"], "who watches goes on");
    town.gt(["convoy", "launch", convoy]).ok();
    assert_eq!(queued(&town), ["we-a", "we-b"]);
}

#[test]
fn removing_the_last_open_bead_lands_the_convoy() {
    let town = town();
    let convoy = create(&town, &["we-a", "we-b"]);
    town.bd(["close", "we-a"]).ok();

    let said = town.gt(["convoy", "remove", &convoy, "we-b", "we-c"]).ok().stdout;

    assert_says(&said, &["does not track we-b any more", "does not track we-c; nothing to do"]);
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
    assert_eq!(queued(&town), ["we-b"], "it goes on");
    assert_eq!(status(&town, &convoy)["landings"], 1);
}

#[test]
fn a_bead_that_was_only_slung_or_queued_is_not_scheduled_when_it_is_reopened() {
    let town = town();
    for verb in ["sling", "queue"] {
        town.gt([verb, "we-a", "we-b"]).ok();
        assert_eq!(queued(&town), ["we-a", "we-b"]);
        for bead in ["we-a", "we-b"] {
            town.bd(["close", bead]).ok();
        }

        let said = town.bd(["reopen", "we-a", "we-b"]).ok();

        assert!(!said.stderr.contains("scheduled again"), "{said}");
        assert_eq!(queued(&town), Vec::<String>::new());
        town.cycle().ok();
        town.gt(["deacon", "feed-stranded"]).ok();
        assert_eq!(queued(&town), Vec::<String>::new(), "nor by the scan");
        assert_says(&town.reasons("we-a").join(" "), &["not-scheduled"]);
    }
    // A convoy that a person made is under way with all that it tracks.
    create(&town, &["we-a"]);
    assert_eq!(queued(&town), ["we-a"]);
    town.bd(["close", "we-a"]).ok();
    town.bd(["reopen", "we-a"]).ok();
    assert_eq!(queued(&town), ["we-a"]);
}

#[test]
fn a_reopened_bead_of_a_convoy_is_scheduled_at_once() {
    let town = town();
    let convoy = create(&town, &["we-a", "we-b"]);
    for bead in ["we-a", "we-b"] {
        town.bd(["close", bead]).ok();
    }
    town.cycle().ok();
    assert_eq!(queued(&town), Vec::<String>::new());

    let said = town.bd(["reopen", "we-a"]).ok();

    assert_says(&said.stderr, &["we-a is scheduled again", &convoy, "gt scheduler clear"]);
    assert_eq!(queued(&town), ["we-a"]);
    assert_eq!(status(&town, &convoy)["status"], "open");
    // A reopened convoy schedules its beads too; one that was closed by hand is not reopened by its beads.
    town.bd(["close", "we-a"]).ok();
    town.gt(["convoy", "add", &convoy, "we-c"]).ok();
    town.gt(["scheduler", "clear", "--bead", "we-c"]).ok();
    town.gt(["convoy", "close", &convoy, "--force", "--reason", "enough"]).ok();
    town.bd(["reopen", "we-b"]).ok();
    assert_eq!(status(&town, &convoy)["close_reason"], "enough");
    assert_eq!(queued(&town), Vec::<String>::new());
    town.bd(["reopen", &convoy]).ok();
    assert_eq!(queued(&town), ["we-b"], "a person took we-c out of the queue");
    assert_says(&town.reasons("we-c").join(" "), &["cleared"]);
}

#[test]
fn beads_of_a_docked_rig_are_scheduled_when_it_is_undocked() {
    let town = town();
    town.gt(["rig", "dock", "web"]).ok();
    let convoy = create(&town, &["we-a", "we-b"]);
    assert_eq!(queued(&town), Vec::<String>::new());
    assert_says(&town.reasons("we-a").join(" "), &["rig-docked"]);
    assert_eq!(town.gt_json(&["convoy", "stranded"]), json!([]), "there is a reason");

    town.gt(["rig", "undock", "web"]).ok();

    assert_eq!(queued(&town), ["we-a", "we-b"]);
    assert_eq!(status(&town, &convoy)["total"], 2);
}

#[test]
fn nothing_of_a_convoy_that_is_paused_starts() {
    let town = town();
    let convoy = create(&town, &["we-a"]);
    town.gt(["sling", "we-b"]).ok();

    assert_says(
        &town.gt(["convoy", "pause", &convoy]).ok().stdout,
        &["✓ Paused", "gt convoy resume"],
    );

    town.cycle().ok();
    assert_eq!(town.states("we-a"), Vec::<String>::new());
    assert_eq!(town.reasons("we-a"), ["convoy-paused"]);
    town.gt(["wait", "we-b"]).ok();
    assert_says(&town.gt(["why", "we-a"]).ok().stdout, &[&format!("gt convoy resume {convoy}")]);
    assert_says(&town.gt(["convoy", "list"]).ok().stdout, &["paused"]);
    let again = town.gt(["convoy", "pause", &convoy]).ok().stdout;
    assert_says(&again, &["paused already by"]);
    town.gt(["doctor"]).ok();

    town.gt(["convoy", "resume", &convoy]).ok();

    town.cycle().ok();
    town.gt(["wait", "we-a"]).ok();
    assert_says(&refusal(&town.gt(["convoy", "pause", &convoy])), &["is over"]);
}

#[test]
fn no_more_of_a_convoy_runs_than_its_cap_says() {
    let town = town_with_agent("wait_for go");
    town.gt(["config", "set", "scheduler.max_polecats", "5"]).ok();
    for bead in ["we-a", "we-b", "we-c", "we-d"] {
        town.bead(bead, &[]);
    }
    let convoy = create(&town, &["we-a", "we-b", "we-c"]);
    town.gt(["convoy", "cap", &convoy, "2"]).ok();
    town.gt(["sling", "we-d"]).ok();

    town.cycle().ok();

    assert_eq!(town.reasons("we-c"), ["no-slot"]);
    assert_says(
        &town.gt(["why", "we-c"]).ok().stdout,
        &[&format!("the cap of 2 of the convoy {convoy} is reached"), "gt convoy cap"],
    );
    let live = || texts(&town.gt_json(&["run", "list"]), "bead").len();
    assert_eq!(live(), 3, "others are not held up");
    // A lower cap ends no run, and without a cap the rest starts.
    town.gt(["convoy", "cap", &convoy, "1"]).ok();
    town.cycle().ok();
    assert_eq!(live(), 3);
    town.gt(["convoy", "cap", &convoy, "0"]).ok();
    town.cycle().ok();
    assert_eq!(live(), 4);
    town.allow("go");
    for bead in ["we-a", "we-b", "we-c", "we-d"] {
        town.gt(["wait", bead]).ok();
    }
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
    town.gt(["doctor"]).ok();
}

#[test]
fn a_failed_bead_stops_only_its_dependents_and_can_be_retried() {
    let town = town_with_agent("[ $bead != we-a ] || [ -e \"$stage/better\" ] || exit 1");
    town.gt(["config", "set", "scheduler.max_polecats", "5"]).ok();
    for bead in ["we-a", "we-b", "we-c", "we-d"] {
        town.bead(bead, &[]);
    }
    town.bd(["dep", "add", "we-b", "we-a"]).ok();
    town.bd(["dep", "add", "we-d", "we-c"]).ok();
    let convoy = create(&town, &["we-a", "we-b", "we-c", "we-d"]);
    town.cycle().ok();
    assert_eq!(town.gt(["wait", "we-a"]).code, 1);
    town.gt(["wait", "we-c"]).ok();
    town.cycle().ok();
    town.gt(["wait", "we-d"]).ok();

    assert_eq!(town.reasons("we-b"), ["blocker-failed"]);
    let shown = status(&town, &convoy);
    assert_eq!((&shown["failed"], &shown["completed"]), (&json!(1), &json!(2)));
    let fed = town.gt_json(&["deacon", "feed-stranded"]);
    assert_eq!((&fed["fed"], &fed["errors"]), (&json!(0), &json!(0)));

    town.allow("better");
    assert_says(
        &town.gt(["convoy", "retry", &convoy]).ok().stdout,
        &["✓ Scheduled we-a", "open again"],
    );

    town.cycle().ok();
    town.gt(["wait", "we-a"]).ok();
    town.cycle().ok();
    town.gt(["wait", "we-b"]).ok();
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
    let nothing = town.gt(["convoy", "retry", &convoy]).ok().stdout;
    assert_says(&nothing, &["Nothing of", "has failed; nothing to do"]);
}

#[test]
fn an_owner_lands_a_convoy_and_its_watchers_are_told() {
    let town = town();
    let convoy = create(&town, &["we-a", "we-b", "--owned"]);
    assert_says(&town.gt(["convoy", "watch", &convoy]).ok().stdout, &["✓ mayor is told when"]);
    town.gt(["convoy", "watch", &convoy, "--for", "web/crew/max"]).ok();
    assert_says(
        &town.gt(["convoy", "unwatch", &convoy, "--for", "web/crew/max"]).ok().stdout,
        &["is not told"],
    );
    town.bd(["close", "we-a"]).ok();
    assert_says(
        &refusal(&town.gt(["convoy", "land", &convoy])),
        &["1 of 2 beads are open", "--force"],
    );
    town.bd(["close", "we-b"]).ok();
    let before = town.last_event();
    assert_says(&town.gt(["convoy", "land", &convoy, "--dry-run"]).ok().stdout, &["Would land"]);
    assert_eq!(town.last_event(), before);

    assert_says(&town.gt(["convoy", "land", &convoy]).ok().stdout, &["✓ Landed", "2/2 done"]);

    let inbox = town.gt_json(&["mail", "inbox"]);
    assert_eq!(inbox.as_array().map_or(0, Vec::len), 1, "{inbox}");
    let said = inbox.to_string();
    assert_says(&said, &[&convoy, "2 of 2 beads are done, none failed", "gt convoy status"]);
    let other = create(&town, &["we-c"]);
    assert_says(&refusal(&town.gt(["convoy", "land", &other])), &["lands by itself"]);
}

#[test]
fn an_unfinished_convoy_is_closed_only_with_force() {
    let town = town();
    let convoy = create(&town, &["we-a", "--notify"]);
    assert_says(&refusal(&town.gt(["convoy", "close", &convoy])), &["is not done", "--force"]);

    let closed =
        town.gt(["convoy", "close", &convoy, "--force", "--reason", "not needed", "--notify"]).ok();

    assert_says(&closed.stdout, &["✓ Closed", "not needed"]);
    assert_says(&closed.stderr, &["go on without it"]);
    assert_eq!(queued(&town), ["we-a"]);
    assert_eq!(status(&town, &convoy)["close_reason"], "not needed");
    assert_says(&town.gt_json(&["mail", "inbox"]).to_string(), &["is closed: not needed"]);
    let again = town.gt(["convoy", "close", &convoy]).ok().stdout;
    assert_says(&again, &["closed already; nothing to do"]);
    assert_says(&refusal(&town.gt(["convoy", "cap", &convoy, "2"])), &["is over"]);
}

#[test]
fn stranded_beads_are_found_and_scheduled_once_within_limits() {
    let town = town();
    let convoys = ["we-a", "we-b", "we-c"].map(|bead| {
        let convoy = create(&town, &[]);
        // A bead that is tracked without `gt convoy add` is not scheduled.
        town.bd(["dep", "add", &convoy, bead, "--type", "tracks"]).ok();
        convoy
    });
    let stranded = town.gt_json(&["convoy", "stranded"]);
    let mut sorted = convoys.to_vec();
    sorted.sort();
    assert_eq!(texts(&stranded, "id"), sorted);
    let first = &stranded[0];
    assert_eq!((&first["tracked_count"], &first["ready_count"]), (&json!(1), &json!(1)));
    assert_eq!(strings(&first["ready_issues"]).len(), 1);
    assert!(first["created_at"].is_string());

    let fed = town.gt_json(&["deacon", "feed-stranded", "--max-feeds", "2"]);

    assert_eq!((&fed["fed"], &fed["skipped"], &fed["closed"]), (&json!(2), &json!(1), &json!(0)));
    assert_eq!(fed["details"][0]["convoy_id"], sorted[0].as_str());
    assert_eq!(texts(&fed["details"], "action"), ["fed", "fed", "skipped"]);
    assert_eq!(queued(&town).len(), 2);
    let fed = town.gt_json(&["deacon", "feed-stranded"]);
    assert_eq!((&fed["fed"], &fed["skipped"]), (&json!(1), &json!(0)));
    assert_eq!(queued(&town), ["we-a", "we-b", "we-c"]);
    assert_says(&town.gt(["deacon", "feed-stranded"]).ok().stdout, &["Nothing is stranded"]);

    // One that was fed is left alone for a while, and what a person took out is left to people.
    town.bead("we-d", &[]);
    town.bd(["dep", "add", &sorted[0], "we-d", "--type", "tracks"]).ok();
    let fed = town.gt_json(&["deacon", "feed-stranded"]);
    assert_eq!((&fed["fed"], &fed["skipped"]), (&json!(0), &json!(1)));
    assert_says(fed["details"][0]["message"].as_str().unwrap(), &["may be again in"]);
    let fed = town.gt_json(&["deacon", "feed-stranded", "--cooldown", "0s"]);
    assert_eq!(fed["fed"], 1);
    town.gt(["scheduler", "clear", "--bead", "we-d"]).ok();
    let fed = town.gt_json(&["deacon", "feed-stranded", "--cooldown", "0s"]);
    assert_eq!((&fed["fed"], &fed["needs_attention"]), (&json!(0), &json!(1)));
    assert_says(fed["details"][0]["message"].as_str().unwrap(), &["we-d: cleared"]);
}

#[test]
fn a_convoy_is_staged_open_or_closed_and_begins_with_its_launch() {
    let town = town();
    let staged = town.gt_json(&["convoy", "stage", "we-a"]);
    let convoy = staged["convoy_id"].as_str().unwrap();
    let set = |status: &str| town.bd(["update", convoy, "--status", status]);
    assert_says(&refusal(&set("open")), &["gt convoy launch"]);
    assert_says(&refusal(&set("in_progress")), &["staged, open or closed"]);
    assert_eq!(queued(&town), Vec::<String>::new());
    // As older scripts write it.
    let listed = town.gt_json(&["convoy", "list", "--status", "staged:ready"]);
    assert_eq!(texts(&listed, "id"), [convoy]);
    town.gt(["convoy", "launch", convoy]).ok();
    assert_says(&refusal(&town.bd(["update", convoy, "--claim"])), &["staged, open or closed"]);
    for status in ["staged_ready", "staged:warnings"] {
        assert_says(&refusal(&set(status)), &["it is under way", "gt convoy pause"]);
    }
    town.bd(["close", convoy, "--force"]).ok();
    assert_says(&refusal(&set("staged_ready")), &["closed", "bd reopen"]);
    town.bd(["reopen", convoy]).ok();
    assert_eq!(status(&town, convoy)["status"], "open");
}

#[test]
fn people_hear_of_a_landing_and_of_what_is_done_after_all() {
    let town = town_with_agent("[ -e \"$stage/better\" ] || exit 1");
    let program = town.write_script("tell", "cat >> told; echo >> told");
    town.gt(["config", "set", "notify.command", &format!("'{}'", program.display())]).ok();
    town.bead("we-a", &[]);
    let convoy = create(&town, &["we-a"]);
    assert_eq!(town.gt(["wait", "we-a"]).code, 1);
    town.allow("better");
    town.gt(["convoy", "retry", &convoy]).ok();
    town.cycle().ok();
    town.gt(["wait", "we-a"]).ok();

    let told = || -> Vec<Value> {
        let told = std::fs::read_to_string(town.cwd().join("told")).unwrap_or_default();
        told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let of = |kind: &str| told().iter().filter(|notice| notice["kind"] == kind).count();
    wait_until("people are told of everything", || {
        ["failed", "recovered", "convoy-landed"].iter().all(|kind| of(kind) > 0)
    });
    for kind in ["failed", "recovered", "convoy-landed"] {
        assert_eq!(of(kind), 1, "{kind}");
    }
    let landed = told().into_iter().find(|notice| notice["kind"] == "convoy-landed").unwrap();
    assert_says(
        landed["message"].as_str().unwrap(),
        &["has landed after", "1 of 1 beads are done, none failed", "gt convoy status"],
    );
    assert_eq!(
        (&landed["details"]["members"], &landed["details"]["failed"]),
        (&json!(1), &json!(0))
    );
}

#[test]
fn a_cycle_by_hand_looks_after_convoys_too() {
    let town = town();
    let convoy = create(&town, &[]);
    town.bd(["dep", "add", &convoy, "we-a", "--type", "tracks"]).ok();

    town.cycle().ok();

    town.gt(["wait", "we-a"]).ok();
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
}

#[test]
fn work_items_can_be_in_a_convoy() {
    let town = town();
    let item = town.gt_json(&["work", "add", "chore", "Paint it"]);
    let item = item["id"].as_str().unwrap();
    let convoy = create(&town, &["we-a", item]);
    town.gt(["convoy", "pause", &convoy]).ok();
    let next = |agent: &str| town.gt(["work", "next", "--agent", agent, "--json"]);
    assert!(!next("ann").stdout.contains("Paint it"), "its convoy is paused");
    town.gt(["convoy", "resume", &convoy]).ok();

    assert!(next("ann").stdout.contains("Paint it"));

    town.gt(["work", "update", item, "--status", "completed"]).ok();
    town.cycle().ok();
    town.gt(["wait", "we-a"]).ok();
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
}

#[test]
fn a_list_can_be_a_tree_and_one_can_be_chosen() {
    let town = town();
    let convoy = create(&town, &["we-a"]);
    assert_says(&town.gt(["convoy", "list", "--tree"]).ok().stdout, &[&convoy, "we-a"]);
    let tree = town.gt_json(&["convoy", "list", "--tree"]);
    assert_eq!(texts(&tree[0]["tracked"], "id"), ["we-a"]);
    let choose = town.command(town.gt_path()).args(["convoy", "-i"]).stdin("7\n1\nq\n");
    let chosen = choose.run().ok().stdout;
    assert_says(&chosen, &["There is no 7", "0/1 done", "we-a"]);
}
