//! `gt convoy`: how far beads are that travel together, and when they have landed.

use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::{Stage as _, town_with_agent};
use crate::support::{Steps as _, assert_says, refusal, texts};

/// Slings these new beads together; their convoy.
#[track_caller]
fn sling(town: &Sandbox, beads: &[&str], flags: &[&str]) -> String {
    for bead in beads {
        town.bead(bead, &[]);
    }
    let slung = town.gt_json(&[&["sling", "--no-boot"], beads, flags].concat());
    slung["convoy"].as_str().expect("they travel together").to_owned()
}

fn statuses(town: &Sandbox, flags: &[&str]) -> Vec<String> {
    let listed = town.gt_json(&[&["convoy", "list"], flags].concat());
    let of = |one: &Value| {
        format!("{} {}", one["id"].as_str().unwrap(), one["status"].as_str().unwrap())
    };
    listed.as_array().unwrap().iter().map(of).collect()
}

/// A town in which nothing starts.
fn town_at_rest() -> Sandbox {
    let town = town_with_agent("true");
    town.gt(["scheduler", "pause"]).ok();
    town
}

#[test]
fn beads_slung_together_land_together_with_one_notice() {
    let town = town_with_agent("true");
    let program = town.write_script("tell", "cat >> told; echo >> told");
    town.gt(["config", "set", "notify.command", &format!("'{}'", program.display())]).ok();
    let convoy = sling(&town, &["we-a", "we-b"], &[]);
    town.cycle().ok();
    for bead in ["we-a", "we-b"] {
        town.gt(["wait", bead]).ok();
    }

    assert_eq!(town.gt_json(&["convoy", "list"]), json!([]));
    assert_eq!(statuses(&town, &["--all"]), [format!("{convoy} closed")]);
    let shown = town.gt(["convoy", "status", &convoy]).ok().stdout;
    assert_says(&shown, &["landed", "after it was made: 2/2 done", "we-a", "success"]);
    let told = || std::fs::read_to_string(town.cwd().join("told")).unwrap_or_default();
    wait_until("people are told", || told().contains("convoy-landed"));
    let notices: Vec<Value> =
        told().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let landed: Vec<&Value> =
        notices.iter().filter(|notice| notice["kind"] == "convoy-landed").collect();
    assert_eq!(landed.len(), 1, "{landed:?}");
    assert_eq!(landed[0]["key"], format!("convoy-landed:{convoy}:1"));
    assert_says(
        landed[0]["message"].as_str().unwrap(),
        &["\"Batch: 2 beads\" has landed after", "2 of 2 beads are done, none failed"],
    );
}

#[test]
fn the_status_of_a_convoy_names_all_tracked_beads() {
    let town = town_at_rest();
    town.bead("we-first", &[]);
    let convoy = sling(&town, &["we-a", "we-b"], &["--merge", "mr"]);
    town.bd(["dep", "add", "we-b", "we-first"]).ok();
    town.bd(["close", "we-a"]).ok();

    let shown = town.gt_json(&["convoy", "status", &convoy]);

    assert_eq!(
        (&shown["id"], &shown["status"], &shown["owned"], &shown["lifecycle"]),
        (&json!(convoy), &json!("open"), &json!(false), &json!("system-managed"))
    );
    assert_eq!(
        (&shown["completed"], &shown["failed"], &shown["total"], &shown["merge_strategy"]),
        (&json!(1), &json!(0), &json!(2), &json!("mr"))
    );
    assert_eq!(texts(&shown["tracked"], "id"), ["we-a", "we-b"]);
    let second = &shown["tracked"][1];
    assert_eq!(
        (&second["dependency_type"], &second["issue_type"], &second["blocked"]),
        (&json!("tracks"), &json!("task"), &json!(true))
    );
    let said = town.gt(["convoy", "status", &convoy]).ok().stdout;
    assert_says(&said, &["open: 1/2 done", "we-b", "blocked by we-first"]);
    assert_says(&town.gt(["convoy", "list"]).ok().stdout, &[&convoy, "1/2"]);
}

#[test]
fn a_failed_bead_keeps_a_convoy_open_and_a_reopened_one_reopens_it() {
    let town = town_at_rest();
    let convoy = sling(&town, &["we-a", "we-b"], &[]);
    town.bd(["close", "we-a", "--outcome", "failed"]).ok();
    town.bd(["close", "we-b"]).ok();
    assert_eq!(statuses(&town, &[]), [format!("{convoy} open")]);
    assert_says(&town.gt(["convoy", "list"]).ok().stdout, &["1/2, failed: 1"]);

    town.bd(["close", "we-a", "--outcome", "success"]).ok();
    assert_eq!(statuses(&town, &["--status", "closed"]), [format!("{convoy} closed")]);
    town.bd(["reopen", "we-b"]).ok();
    assert_eq!(statuses(&town, &[]), [format!("{convoy} open")]);
    town.bd(["close", "we-b"]).ok();
    assert_eq!(town.gt_json(&["convoy", "status", &convoy])["landings"], 2);
}

#[test]
fn an_owned_convoy_waits_for_its_owner() {
    let town = town_at_rest();
    let convoy = sling(&town, &["we-a"], &["--owned"]);
    town.bd(["close", "we-a"]).ok();
    let shown = town.gt_json(&["convoy", "status", &convoy]);
    assert_eq!((&shown["status"], &shown["owned"]), (&json!("open"), &json!(true)));
    assert_says(&town.gt(["convoy", "status", &convoy]).ok().stdout, &["its owner lands it"]);
    assert_says(&town.gt(["convoy", "check"]).ok().stdout, &["Nothing to land"]);
}

#[test]
fn an_imported_convoy_of_closed_beads_lands_at_the_next_check() {
    let town = town_at_rest();
    let bead = |id: &str, more: &str| {
        format!(
            "{{\"id\":\"{id}\",\"title\":\"{id}\",\"created_at\":\"2026-01-01T00:00:00Z\",\
             \"updated_at\":\"2026-01-01T00:00:00Z\",{more}}}\n"
        )
    };
    let tracks = "\"status\":\"open\",\"issue_type\":\"convoy\",\"dependencies\":[{\"issue_id\":\"hq-cv-old01\",\
        \"depends_on_id\":\"we-a\",\"type\":\"tracks\",\"created_at\":\"2026-01-01T00:00:00Z\"}]";
    let done = "\"status\":\"closed\",\"closed_at\":\"2026-01-02T00:00:00Z\"";
    town.import(&(bead("hq-cv-old01", tracks) + &bead("we-a", done)));
    assert_eq!(statuses(&town, &[]), ["hq-cv-old01 open"], "it is as it was elsewhere");

    let said = town.gt(["convoy", "check", "--dry-run"]).ok().stdout;
    assert_says(&said, &["Would land hq-cv-old01: hq-cv-old01 (1 bead)"]);
    assert_eq!(statuses(&town, &[]), ["hq-cv-old01 open"]);
    assert_says(
        &town.gt(["convoy", "check", "hq-cv-old01"]).ok().stdout,
        &["✓ Landed hq-cv-old01"],
    );
    assert_eq!(town.show("hq-cv-old01")["close_reason"], "landed");
    town.gt(["doctor"]).ok();
}

#[test]
fn a_bead_that_is_no_convoy_is_refused() {
    let town = town_at_rest();
    town.bead("we-a", &[]);
    assert_says(
        &refusal(&town.gt(["convoy", "status", "we-a"])),
        &["we-a is a task, and no convoy"],
    );
    assert_says(&refusal(&town.gt(["convoy", "status", "hq-cv-nope1"])), &["hq-cv-nope1"]);
    assert_says(&town.gt(["convoy", "list"]).ok().stdout, &["No convoys"]);
}

#[test]
fn adding_or_removing_a_tracks_edge_opens_or_lands_a_convoy_at_once() {
    let town = town_at_rest();
    let convoy = sling(&town, &["we-a", "we-b"], &[]);
    town.bd(["close", "we-a"]).ok();
    let reason = || town.show(&convoy)["close_reason"].clone();

    town.bd(["dep", "remove", &convoy, "we-b"]).ok();
    assert_eq!(reason(), "landed");
    town.bd(["dep", "add", &convoy, "we-b", "--type", "tracks"]).ok();
    assert_eq!(town.show(&convoy)["status"], "open");
    town.bd(["delete", "we-b", "--force"]).ok();
    assert_eq!(reason(), "landed");
    assert_eq!(town.gt_json(&["convoy", "status", &convoy])["landings"], 2);
}

#[test]
fn a_convoy_landed_by_its_owner_stays_landed_while_the_rest_is_done() {
    let town = town_at_rest();
    let convoy = sling(&town, &["we-a", "we-b", "we-c"], &["--owned"]);
    town.gt(["convoy", "land", &convoy, "--force"]).ok();

    town.bd(["close", "we-a"]).ok();
    town.bd(["dep", "remove", &convoy, "we-b"]).ok();
    assert_eq!(town.show(&convoy)["close_reason"], "landed");

    town.bd(["reopen", "we-a"]).ok();
    assert_eq!(town.show(&convoy)["status"], "open");
}

#[test]
fn a_convoy_of_one_slung_bead_is_listed_only_on_request_and_ends_with_its_bead() {
    let town = town_with_agent("wait_for never");
    let cleared = sling(&town, &["we-a"], &["--queue"]);
    let unslung = sling(&town, &["we-b"], &["--queue"]);
    let batch = sling(&town, &["we-c", "we-d"], &["--queue"]);
    let deleted = sling(&town, &["we-f"], &["--queue"]);
    let cancelled = sling(&town, &["we-e"], &[]);
    town.wait_for_agent("we-e#1");
    assert_eq!(statuses(&town, &[]), [format!("{batch} open")]);
    assert_eq!(statuses(&town, &["--all"]).len(), 5);
    assert_eq!(town.gt_json(&["convoy", "status", &cleared])["status"], "open");

    town.gt(["scheduler", "clear", "--bead", "we-a"]).ok();
    town.gt(["unsling", "we-b"]).ok();
    town.gt(["run", "cancel", "we-e"]).ok();
    town.bd(["delete", "we-f", "--force"]).ok();
    town.gt(["scheduler", "clear"]).ok();

    for (convoy, why) in [
        (&cleared, "we-a was taken out of the queue"),
        (&unslung, "we-b was taken out of the queue"),
        (&deleted, "we-f was deleted"),
        (&cancelled, "we-e was cancelled"),
    ] {
        let shown = town.gt_json(&["convoy", "status", convoy]);
        assert_eq!((&shown["status"], &shown["close_reason"]), (&json!("closed"), &json!(why)));
    }
    // One that a person sees in the list is the person's to end.
    assert_eq!(statuses(&town, &[]), [format!("{batch} open")]);
    // Slung again, the bead has another convoy.
    let again = town.gt_json(&["sling", "we-a", "--queue", "--no-boot"]);
    assert_ne!(again["convoy"], json!(cleared));
    town.assert_quiet();
}

#[test]
fn the_list_of_convoys_is_printed_before_the_question() {
    let town = town_at_rest();
    sling(&town, &["we-a", "we-b"], &[]);
    // The answer is only written when the question was read.
    let script = format!(
        "mkfifo answers && exec 3<> answers && '{}' convoy -i <&3 | while read -r line; do \
         echo \"$line\"; case $line in *'Which one'*) echo q >&3;; esac; done",
        town.gt_path().display()
    );
    let said = town.command("sh").args(["-c", &script]).run().ok().stdout;
    assert_says(&said, &["0/2  Batch: 2 beads", "Which one?"]);
}
