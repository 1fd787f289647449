//! `gt work`: submitting, taking, reporting and watching work.

use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::support::{
    Steps as _, assert_says, json_refusal, keys, printed_keys, refusal, texts, town, town_with_rigs,
};

/// A new item; as JSON.
#[track_caller]
fn add(town: &Sandbox, description: &str, flags: &[&str]) -> Value {
    let fixed = ["work", "add", "code_review", description];
    town.gt_json(&[&fixed, flags].concat())
}

fn bead(item: &Value) -> &str {
    item["bead"].as_str().expect("an item has a bead")
}

#[track_caller]
fn show(town: &Sandbox, item: &str) -> Value {
    town.gt_json(&["work", "show", item])
}

#[track_caller]
fn update(town: &Sandbox, item: &str, flags: &[&str]) -> Value {
    town.gt_json(&[&["work", "update", item], flags].concat())
}

#[track_caller]
fn listed(town: &Sandbox, flags: &[&str]) -> Vec<String> {
    texts(&town.gt_json(&[&["work", "list"], flags].concat()), "bead")
}

#[test]
fn an_item_has_the_fields_of_the_specification() {
    let town = town();
    let flags = ["--payload", r#"{"pr":3}"#, "--priority", "2", "--agent", "steve-w"];
    let item = add(&town, "Review PR #3\nof the shop", &flags);
    assert_eq!(
        keys(&item),
        [
            "assigned_agent",
            "bead",
            "completed_at",
            "created_at",
            "created_by",
            "description",
            "id",
            "lease_expires_at",
            "notes",
            "outcome",
            "payload",
            "priority",
            "project_id",
            "reason",
            "run_id",
            "schema_version",
            "status",
            "type",
            "updated_at",
        ]
    );
    assert_eq!(item["status"], "queued");
    assert_eq!(item["payload"], json!({"pr": 3}));
    assert_eq!((&item["priority"], &item["assigned_agent"]), (&json!(2), &json!("steve-w")));
    assert_eq!((&item["project_id"], &item["notes"]), (&Value::Null, &Value::Null));
    assert!(bead(&item).starts_with("wq-"));
    assert_eq!(town.show(bead(&item))["priority"], 1);

    let shown = town.gt(["work", "show", bead(&item), "--json"]).ok();
    assert!(printed_keys(&shown.stdout, 2).contains(&"dispatch_log"));
    let id = item["id"].as_str().unwrap();
    assert_eq!(show(&town, id)["bead"], item["bead"], "by its id as well");
    assert_says(&town.gt(["work", "show", id]).ok().stdout, &["Review PR #3", "queued", "steve-w"]);
    assert_says(&town.gt(["work", "list"]).ok().stdout, &["STATUS", "code_review", "Review PR #3"]);
}

#[test]
fn a_dispatcher_dispatches_and_an_agent_reports() {
    let town = town();
    let item = add(&town, "Review it", &[]);
    let item = bead(&item);
    assert_says(&refusal(&town.gt(["work", "dispatch", item])), &["name the agent"]);
    let given = town.gt_json(&["work", "dispatch", item, "steve-w", "--no-start"]);
    assert_eq!(given["status"], "dispatched");
    assert_eq!(listed(&town, &["--agent", "steve-w", "--status", "dispatched"]), [item]);
    town.gt(["work", "dispatch", item]).ok();
    assert_eq!(show(&town, item)["status"], "in_progress");

    let done = update(&town, item, &["--status", "completed", "--notes", "merged"]);
    assert_eq!((&done["status"], &done["outcome"]), (&json!("completed"), &json!("success")));
    let log = show(&town, item)["dispatch_log"].clone();
    assert_eq!(log.as_array().unwrap().len(), 1);
    assert_eq!((&log[0]["agent"], &log[0]["outcome"]), (&json!("steve-w"), &json!("success")));
    assert_eq!(log[0]["work_item_id"], show(&town, item)["id"]);
    let again = town.gt(["work", "update", item, "--status", "in_progress", "--json"]);
    assert_says(&json_refusal(&again), &["completed cannot become in_progress", "bd reopen"]);
}

#[test]
fn an_agent_takes_what_is_next_and_has_one_thing_at_a_time() {
    let town = town();
    let nothing = town.gt_json(&["work", "next", "--agent", "ann"]);
    assert_eq!((&nothing["item"], &nothing["code"]), (&Value::Null, &json!("empty")));
    add(&town, "Usual", &[]);
    let urgent = add(&town, "Urgent", &["--priority", "1"]);
    let taken = town.gt_json(&["work", "next", "--agent", "ann", "--lease", "10m"]);
    assert_eq!(taken["item"]["bead"], urgent["bead"]);
    assert_eq!(taken["item"]["status"], "in_progress");
    assert_eq!(taken["item"]["run_id"], taken["run_id"]);
    assert_eq!(keys(&taken), ["item", "lease_expires_at", "run_id", "schema_version"]);
    let busy = town.gt(["work", "next", "--agent", "ann"]);
    assert_says(&refusal(&busy), &["ann has", bead(&urgent), "in progress"]);

    let run = taken["run_id"].as_str().unwrap();
    let beat = town.gt_json(&["work", "heartbeat", bead(&urgent), "--run-id", run]);
    assert!(beat["lease_expires_at"].as_str() >= taken["lease_expires_at"].as_str());
    update(&town, bead(&urgent), &["--status", "failed", "--run-id", run]);
    let late = town.gt(["work", "heartbeat", bead(&urgent), "--run-id", run]);
    assert_says(&refusal(&late), &["does not have", "your work on it is over"]);
    assert_says(&town.gt(["work", "next", "--agent", "ann"]).ok().stdout, &["Usual", "#1"]);
}

#[test]
fn one_that_waits_for_work_gets_it_when_it_comes() {
    let town = town();
    add(&town, "Only for bob", &["--agent", "bob"]);
    let asks = ["work", "next", "--agent", "ann", "--wait", "60s", "--json"];
    let waiting = town.command(town.gt_path()).args(asks).start();
    let item = add(&town, "For any agent", &[]);
    let taken = waiting.wait().ok().json();
    assert_eq!(taken["item"]["bead"], item["bead"]);
}

#[test]
fn a_bad_request_names_what_is_wrong_and_changes_nothing() {
    let town = town();
    let item = add(&town, "Fix it", &[]);
    let before = town.last_event();
    for (arguments, code, reason) in [
        (&["add", "epic", "x"][..], 1, "not work items"),
        (&["add", "bug", ""], 1, "description"),
        (&["add", "bug", "x", "--priority", "6"], 2, "not between 1 (highest) and 5"),
        (&["add", "bug", "x", "--payload", "{"], 1, "metadata"),
        (&["add", "bug", "x", "--project", "nowhere"], 1, "there is no project nowhere"),
        (&["add", "bug", "x", "--depends-on", "wq-none"], 1, "there is no work item wq-none"),
        (&["update", bead(&item), "--status", "open"], 2, "is not a status"),
        (&["update", bead(&item), "--status", "completed"], 1, "dispatched, cancelled"),
        (&["update", bead(&item), "--outcome", "success"], 1, "outcome"),
        (&["update", bead(&item), "--run-id", "x"], 2, "does not name a run"),
        (&["update", bead(&item), "--run-id", "wq-x#1"], 1, "does not have"),
        (&["update", bead(&item), "--if-match", "0000000000000000"], 1, "read it again"),
        (&["list", "--status", "nope"], 1, "is not a status"),
        (&["list", "--limit", "1", "--cursor", "abc"], 2, "is not a cursor"),
        (&["next", "--agent", ""], 1, "agent"),
        (&["next", "--agent", "ann", "--lease", "5s"], 2, "not between 30 and 3600"),
        (&["show", "wq-none"], 1, "there is no work item wq-none"),
        (&["show", "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"], 1, "there is no work item"),
    ] {
        let ran = town.gt(["work"].iter().chain(arguments));
        assert_eq!(ran.code, code, "{arguments:?}\n{ran}");
        assert_says(&ran.stderr, &[reason]);
    }
    assert_eq!(town.last_event(), before);
}

#[test]
fn an_item_of_a_worker_is_changed_through_its_run_only() {
    let town = crate::support::gastown_that_takes_time();
    let id = town.create("Fix it", &["--rig", "gastown"]);
    town.gt(["sling", &id]).ok();
    crate::support::wait_for_status(&town, &id, "in_progress");
    for status in ["completed", "blocked", "queued", "cancelled"] {
        let refused = town.gt(["work", "update", &id, "--status", status]);
        assert_says(&refusal(&refused), &[&format!("{id}#1"), "gt "]);
    }
    let noted = update(&town, &id, &["--notes", "look at the log"]);
    assert_eq!(
        (&noted["notes"], &noted["status"]),
        (&json!("look at the log"), &json!("in_progress"))
    );
    crate::support::let_work_end(&town);
    crate::support::wait_for_status(&town, &id, "closed");
    assert_eq!(show(&town, &id)["status"], "completed");
}

#[test]
fn silent_work_is_blocked_and_told() {
    let town = town();
    let told = town.write("told", "");
    let program = town.write_script("tell.sh", &format!("cat >> '{}'", told.display()));
    town.gt(["config", "set", "notify.command", program.to_str().unwrap()]).ok();
    let item = add(&town, "Fix it", &[]);
    town.gt(["work", "dispatch", bead(&item), "steve-w"]).ok();
    let calm = town.gt(["work", "stale-check"]).ok();
    assert_says(&calm.stdout, &["Nothing is stale"]);
    town.gt(["config", "set", "work.stale_after", "1ns"]).ok();
    let found = town.gt_json(&["work", "stale-check"]);
    assert_eq!(found["stale"][0]["bead"], item["bead"]);
    assert_eq!(town.gt_json(&["work", "stale-check"])["stale"], json!([]));
    let blocked = show(&town, bead(&item));
    assert_eq!(blocked["status"], "blocked");
    assert_says(blocked["notes"].as_str().unwrap(), &["Stale: steve-w has said nothing since"]);
    wait_until("the notice is sent", || {
        std::fs::read_to_string(&told).is_ok_and(|text| text.contains("is blocked: Stale"))
    });
    let queued = update(&town, bead(&item), &["--status", "queued"]);
    assert_eq!((&queued["status"], &queued["assigned_agent"]), (&json!("queued"), &Value::Null));
}

#[test]
fn items_are_listed_as_asked_and_part_by_part() {
    let town = town_with_rigs(&["web"]);
    let first = add(&town, "First", &["--priority", "5", "--created-by", "gitea-watcher"]);
    let second = add(&town, "Second", &["--project", "web", "--priority", "1"]);
    let third = add(&town, "Third", &["--agent", "ann"]);
    let all = [bead(&second), bead(&third), bead(&first)];
    assert_eq!(listed(&town, &[]), all);
    assert_eq!(listed(&town, &["--project", "web"]), [bead(&second)]);
    assert_eq!(listed(&town, &["--created-by", "gitea-watcher"]), [bead(&first)]);
    assert_eq!(listed(&town, &["--search", "tHIRd"]), [bead(&third)]);
    assert_eq!(listed(&town, &["--executor", "pull"]), [bead(&third), bead(&first)]);
    let since = first["created_at"].as_str().unwrap();
    assert_eq!(listed(&town, &["--since", since]), [bead(&second), bead(&third)], "by age");

    let part = town.gt(["work", "list", "--limit", "2"]).ok();
    let cursor = part.stderr.split("--cursor ").nth(1).expect("it goes on").trim().to_owned();
    assert_eq!(listed(&town, &["--limit", "2", "--cursor", &cursor]), [bead(&first)]);
    let other =
        town.gt(["work", "list", "--status", "queued", "--limit", "2", "--cursor", &cursor]);
    assert_says(&refusal(&other), &["a list with other filters"]);
}

#[test]
fn a_repeated_request_makes_one_item() {
    let town = town();
    let once = || add(&town, "Renew it", &["--idempotency-key", "renew-7"]);
    assert_eq!(once()["id"], once()["id"]);
    let other = ["work", "add", "code_review", "Another", "--idempotency-key", "renew-7"];
    assert_says(&refusal(&town.gt(other)), &["asked for something else"]);
    assert_eq!(listed(&town, &[]).len(), 1);
}

#[test]
fn changes_can_be_watched() {
    let town = town();
    let watch = ["work", "watch", "--status", "in_progress,completed", "--json"];
    let watching = town.command(town.gt_path()).args(watch).start();
    wait_until("it watches", || watching.stderr().contains("watching"));
    let item = add(&town, "Fix it", &[]);
    town.gt(["work", "dispatch", bead(&item), "ann"]).ok();
    wait_until("it is seen", || watching.stdout().lines().count() == 1);
    update(&town, bead(&item), &["--status", "completed"]);
    wait_until("its end is seen", || watching.stdout().lines().count() == 2);
    let seen = watching.kill().json_lines();
    let statuses: Vec<&str> = seen.iter().filter_map(|item| item["status"].as_str()).collect();
    assert_eq!(statuses, ["in_progress", "completed"]);
}

#[test]
fn why_and_doctor_know_items() {
    let town = town();
    let item = add(&town, "Fix it", &[]);
    assert_says(&town.gt(["why", bead(&item)]).ok().stdout, &["waits for an agent to ask for it"]);
    town.gt(["work", "next", "--agent", "ann"]).ok();
    assert_says(&town.gt(["why", bead(&item)]).ok().stdout, &["is running as"]);
    town.gt(["rig", "check", "list"]).ok();
    town.gt(["rig", "status", "inbox"]).ok();
    let doctor = town.gt(["doctor"]).ok();
    assert_says(&doctor.stdout, &["inbox (active)", "all as they should be"]);
    assert_says(&town.gt(["run", "list"]).ok().stdout, &["ann"]);
}
