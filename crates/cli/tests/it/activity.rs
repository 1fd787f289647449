//! `bd activity` and `gt feed`: past and new events.

use gt_testkit::wait_until;
use serde_json::{Value, json};

use crate::support::{
    Steps as _, assert_says, json_refusal, keys, refusal, texts, town, town_with_rigs,
};

/// The numbers of these events.
fn numbers(events: &Value) -> Vec<u64> {
    let events = events.as_array().unwrap();
    let number = |event: &Value| event["number"].as_u64().unwrap();
    events.iter().map(number).collect()
}

#[test]
fn events_tell_what_happened_to_what_by_whom_and_when() {
    let town = town_with_rigs(&["web"]);
    let id = town.create("Boil water", &["--rig", "web", "--actor", "ann"]);

    let events = town.json(&["activity"]);

    let event = &events[1];
    assert_eq!(
        keys(event),
        ["actor", "created_at", "event_type", "issue_id", "number", "payload", "rig"]
    );
    assert_eq!(
        (&event["number"], &event["event_type"], &event["issue_id"]),
        (&json!(2), &json!("created"), &json!(id))
    );
    assert_eq!((&event["actor"], &event["rig"]), (&json!("ann"), &json!("web")));
    assert_eq!(event["payload"]["title"], "Boil water");
    assert_eq!(event["created_at"], town.show(&id)["created_at"]);
    let said = town.bd(["activity"]).ok();
    let line = format!("+ {id} created · Boil water (ann)");
    assert_says(&said.stdout, &[&line, "web rig added"]);
}

#[test]
fn the_last_fifty_oldest_first_unless_told_otherwise() {
    let town = town();
    let lines: Vec<String> = (0..60)
        .map(|number| format!(r#"{{"id":"hq-{number}","title":"Task {number}"}}"#))
        .collect();
    town.import(&lines.join("\n"));

    let all = |from: u64| (from..=60).collect::<Vec<u64>>();
    assert_eq!(numbers(&town.json(&["activity"])), all(11));
    assert_eq!(numbers(&town.json(&["activity", "--limit", "3"])), all(58));
    assert_eq!(numbers(&town.json(&["activity", "-n", "0"])), all(1));
    assert_eq!(numbers(&town.json(&["activity", "--since", "1h"])), all(1));
}

#[test]
fn a_script_goes_on_where_it_stopped() {
    let town = town();
    for id in ["hq-a", "hq-b", "hq-c"] {
        town.bead(id, &[]);
    }

    assert_eq!(numbers(&town.json(&["activity", "--after", "1"])), [2, 3]);
    let few = town.json(&["activity", "--after", "1", "--limit", "1"]);
    assert_eq!(numbers(&few), [2], "as many as it can handle at a time");
    assert_eq!(numbers(&town.json(&["activity", "--after", "0"])), [1, 2, 3]);
    assert_eq!(numbers(&town.json(&["activity", "--after", "3"])), [0; 0]);
    assert_eq!(numbers(&town.json(&["activity", "--after", "99"])), [0; 0]);
}

#[test]
fn events_are_filtered_by_bead_type_and_time() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bd(["close", "hq-a"]).ok();

    for (flags, expected) in [
        (&["--bead", "hq-a"][..], &["created", "closed"][..]),
        (&["--issue", "hq-b", "-t", "created"], &["created"]),
        (&["--type", "closed,unblocked"], &["closed", "unblocked"]),
        (&["--since", "+1h"], &[]),
        (&["--since", "2200-01-01"], &[]),
        (&["--since", "2001-01-01", "--type", "closed"], &["closed"]),
        (&["--after", "2", "--type", "closed"], &["closed"]),
    ] {
        let activity = town.start_bd(&["activity", "--json"]).args(flags).run();
        assert_eq!(texts(&activity.ok().json(), "event_type"), expected, "{flags:?}");
    }
    let error = refusal(&town.bd(["activity", "--type", "nonsense"]));
    assert_says(&error, &["nonsense", "created", "label_added"]);
    let error = json_refusal(&town.bd(["activity", "--json", "--since", "lately"]));
    assert_says(&error, &["lately"]);
    town.bd(["activity", "--after", "1", "--since", "1h"]).fails(1);
}

#[test]
fn the_feed_of_the_town_is_filtered_by_rig() {
    let town = town_with_rigs(&["web", "api"]);
    town.bead("we-a", &[]);
    town.bead("ap-a", &[]);
    town.bead("hq-a", &[]);

    let feed = town.gt_json(&["feed", "--rig", "web"]);
    assert_eq!(texts(&feed, "event_type"), ["rig_added", "created"]);
    let created = town.gt_json(&["feed", "--type", "created"]);
    assert_eq!(texts(&created, "issue_id"), ["we-a", "ap-a", "hq-a"]);
    let said = town.gt(["feed", "--rig", "web"]).ok();
    assert_eq!(said.stdout.lines().count(), 2);
    let error = refusal(&town.gt(["feed", "--rig", "nope"]));
    assert_says(&error, &["known rigs: api, web"]);
}

#[test]
fn nothing_happened_yet() {
    let town = town();
    assert_eq!(town.bd(["activity"]).ok().line(), "Nothing to show");
    assert_eq!(town.bd(["activity", "--json"]).ok().stdout, "[]\n");
}

#[test]
fn a_follower_sees_the_past_and_then_every_later_write() {
    let town = town();
    town.bead("hq-a", &[]);
    let follower = town.start_bd(&["activity", "--follow", "--json"]).start();
    wait_until("the past is shown", || follower.stdout().lines().count() == 1);

    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bd(["close", "hq-a", "hq-b"]).ok();
    let expected = town.last_event();

    wait_until("everything is shown", || follower.stdout().lines().count() as u64 >= expected);
    let events = json!(follower.kill().json_lines());
    assert_eq!(numbers(&events), (1..=expected).collect::<Vec<_>>());
    assert_eq!(events, json!(town.events()), "the same as in the log");
}

#[test]
fn a_follower_begins_where_it_is_told_and_filters() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);
    let flags = ["feed", "--follow", "--json", "--after", "1", "--type", "created"];
    let follower = town.command(town.gt_path()).args(flags).start();
    wait_until("the past is shown", || follower.stdout().lines().count() == 1);

    town.bd(["close", "hq-a"]).ok();
    town.bead("hq-c", &[]);

    wait_until("the next is shown", || follower.stdout().lines().count() >= 2);
    let events = json!(follower.kill().json_lines());
    assert_eq!(texts(&events, "issue_id"), ["hq-b", "hq-c"]);
}

#[test]
fn a_follower_for_people_prints_lines() {
    let town = town();
    let follower = town.start_bd(&["activity", "-f"]).start();

    town.bead("hq-a", &[]);

    wait_until("it is shown", || follower.stdout().contains("hq-a created"));
    let shown = follower.kill();
    assert_eq!(shown.stdout.lines().count(), 1);
    assert_eq!(shown.stderr, "");
}

#[test]
fn a_follower_ends_when_its_output_is_closed() {
    let town = town();
    town.bead("hq-a", &[]);

    // No further event comes, so only the closed pipe can end it.
    let script = "\"$0\" activity --follow --json | head -1; exit ${PIPESTATUS[0]}";
    let ran = town.command("bash").args(["-c", script]).args([town.bd_path()]).run();

    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran}");
}
