//! Sling contexts as beads, the labels that follow from them, and the adoption of older queues.

use gt_testkit::Sandbox;
use serde_json::json;

use crate::support::{Steps, assert_says, town_with_rigs};

const QUEUED: &str = r#"{"id":"we-a","title":"a","created_by":"ann","labels":["gt:queued","mine"],"description":"Mine.\n---gt:queue:v1---\ntarget_rig: web\nformula: mol-review\nvar: a=1\nenqueued_at: 2026-01-15T10:00:00Z"}"#;

/// A town with the rig web, in which we-a is scheduled and we-b is not.
fn scheduled() -> Sandbox {
    let town = town_with_rigs(&["web"]);
    town.import(&[QUEUED, r#"{"id":"we-b","title":"b"}"#].join("\n"));
    town.gt(["scheduler", "adopt"]).ok();
    town
}

#[test]
fn an_import_names_the_command_that_adopts_older_queues() {
    let town = town_with_rigs(&["web"]);
    town.write("in.jsonl", QUEUED);
    let said = town.bd(["import", "in.jsonl"]).ok();
    assert_says(
        &said.stdout,
        &["1 bead carries the state of an older queue", "gt scheduler adopt"],
    );
    assert_eq!(town.show("we-a")["labels"], json!(["gt:queued", "mine"]));
}

#[test]
fn a_context_is_shown_as_the_bead_that_scripts_look_for() {
    let town = scheduled();

    let context = town.show("hq-ctx-00001");

    assert_eq!(context["title"], "sling context for we-a");
    assert_eq!(context["status"], "open");
    assert_eq!(context["issue_type"], "sling-context");
    assert_eq!(context["ephemeral"], true);
    assert_eq!(context["labels"], json!(["gt:sling-context"]));
    assert_eq!(context["created_at"], "2026-01-15T10:00:00Z");
    assert_eq!(context["dependencies"][0]["id"], "we-a");
    assert_eq!(context["dependencies"][0]["dependency_type"], "tracks");
    assert_eq!(
        context["description"],
        r#"{"version":1,"work_bead_id":"we-a","target_rig":"web","formula":"mol-review","vars":"a=1","enqueued_at":"2026-01-15T10:00:00Z"}"#
    );
    let text = town.bd(["show", "ctx-00001"]).ok();
    assert_says(&text.stdout, &["hq-ctx-00001", "sling context for we-a", "gt:sling-context"]);
}

#[test]
fn contexts_are_listed_only_when_asked_for() {
    let town = scheduled();
    for asked in [
        &["list", "--label", "gt:sling-context"][..],
        &["list", "--label=gt:sling-context", "--status=open"],
        &["list", "--type", "sling-context"],
        &["list", "--id", "hq-ctx-00001"],
        &["query", "label=gt:sling-context"],
        &["query", "type=sling-context AND status=open"],
    ] {
        assert_eq!(town.ids(asked), ["hq-ctx-00001"], "{asked:?}");
    }
    let mut all = town.ids(&["list", "--include-ephemeral"]);
    all.sort();
    assert_eq!(all, ["hq-ctx-00001", "we-a", "we-b"]);
    assert_eq!(town.json(&["count", "--label", "gt:sling-context"])["count"], 1);
    assert!(town.ids(&["list", "--type", "sling-context", "--status", "closed"]).is_empty());
    assert!(town.ids(&["list", "--type", "sling-context", "--assignee", "ann"]).is_empty());

    for others in
        [&["list", "--all"][..], &["ready"], &["search", "sling"], &["list", "--label", "queued"]]
    {
        assert!(!town.ids(others).contains(&"hq-ctx-00001".to_owned()), "{others:?}");
    }
    assert_eq!(town.json(&["stats"])["summary"]["total_issues"], 2);
    let exported = town.export();
    assert!(!exported.contains("ctx") && !exported.contains("gt:queued"), "{exported}");
}

#[test]
fn labels_follow_from_the_queue_in_every_filter() {
    let town = scheduled();
    assert_eq!(town.show("we-a")["labels"], json!(["gt:queued", "mine", "queued"]));
    assert_eq!(town.ids(&["list", "--label", "gt:queued"]), ["we-a"]);
    assert_eq!(town.ids(&["ready", "--label", "gt:queued"]), ["we-a"]);
    assert_eq!(town.ids(&["list", "--exclude-label", "queued"]), ["we-b"]);
    assert_eq!(town.ids(&["list", "--no-labels"]), ["we-b"]);
    let listed = town.bd(["label", "list", "we-a"]).ok();
    assert_eq!(
        listed.stdout,
        "gt:queued  (follows from the queue)\nmine\nqueued  (follows from the queue)\n"
    );
    assert_eq!(town.json(&["label", "list", "we-a"]), json!(["gt:queued", "mine", "queued"]));
}

#[test]
fn labels_of_the_queue_are_refused_by_hand() {
    let town = scheduled();
    for arguments in [
        &["label", "add", "we-b", "gt:queued"][..],
        &["label", "remove", "we-a", "queued"],
        &["update", "we-b", "--add-label", "gt:dispatch-failed"],
        &["update", "we-a", "--remove-label", "gt:queued"],
        &["update", "we-b", "--set-labels", "gt:queue-dispatched"],
        &["create", "x", "--labels", "queued"],
    ] {
        let refused = town.bd(arguments).fails(1);
        assert_says(&refused.stderr, &["gt queue <id>", "gt scheduler clear"]);
    }
    let batch = town.start_bd(&["batch"]).stdin("label add we-b gt:queued\n").run().fails(1);
    assert_says(&batch.stderr, &["gt scheduler clear"]);
}

#[test]
fn closing_a_context_takes_its_bead_out_of_the_queue() {
    let town = scheduled();
    let said = town.bd(["close", "hq-ctx-00001"]).ok();
    assert_says(&said.stdout, &["Closed hq-ctx-00001: cleared"]);
    assert_eq!(town.show("hq-ctx-00001")["close_reason"], "cleared");
    assert_eq!(town.show("we-a")["labels"], json!(["mine"]));
    assert!(town.ids(&["list", "--label", "gt:sling-context"]).is_empty());
}

#[test]
fn other_changes_of_a_context_are_refused_with_a_hint() {
    let town = scheduled();
    for arguments in [
        &["update", "hq-ctx-00001", "--title", "x"][..],
        &["update", "hq-ctx-00001", "--status", "closed"],
        &["reopen", "hq-ctx-00001"],
        &["delete", "hq-ctx-00001", "--force"],
        &["label", "add", "hq-ctx-00001", "x"],
        &["dep", "add", "hq-ctx-00001", "we-b"],
        &["dep", "add", "we-b", "hq-ctx-00001"],
        &["comments", "add", "hq-ctx-00001", "hello"],
    ] {
        let refused = town.bd(arguments).fails(1);
        assert_says(&refused.stderr, &["sling context of we-a", "gt scheduler clear --bead we-a"]);
    }
}

#[test]
fn a_healthy_town_stays_healthy_through_all_of_it() {
    let town = scheduled();
    town.gt(["store", "check"]).ok();
    town.bd(["close", "hq-ctx-00001"]).ok();
    town.bd(["delete", "we-a", "--force"]).ok();
    town.gt(["store", "check"]).ok();
    assert!(town.ids(&["list", "--type", "sling-context", "--all"]).is_empty());
}
