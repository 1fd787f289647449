//! Claims: one bead, one owner.

use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, refusal, texts, town};

#[test]
fn a_claim_makes_the_bead_mine_and_starts_it() {
    let town = town();
    town.bead("hq-a", &[]);

    let claimed = town.json(&["update", "hq-a", "--claim", "--actor", "ann"]);

    assert_eq!(claimed[0]["assignee"], "ann");
    assert_eq!(claimed[0]["status"], "in_progress");
    assert!(claimed[0]["started_at"].is_string());
    assert_eq!(town.events().last().unwrap()["event_type"], "claimed");
}

#[test]
fn the_second_claimer_is_refused() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bd(["update", "hq-a", "--claim", "--actor", "ann"]).ok();
    let before = (town.show("hq-a"), town.last_event());

    let error = refusal(&town.bd(["update", "hq-a", "--claim", "--actor", "bob"]));
    assert_eq!(error, "claiming hq-a: issue already claimed by ann");
    let error = json_refusal(&town.bd(["update", "hq-a", "--claim", "--actor", "bob", "--json"]));
    assert_eq!(error, "claiming hq-a: issue already claimed by ann");

    assert_eq!((town.show("hq-a"), town.last_event()), before);
}

#[test]
fn claiming_again_is_fine_and_changes_nothing() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bd(["update", "hq-a", "--claim", "--actor", "ann"]).ok();
    let before = (town.show("hq-a"), town.last_event());

    town.bd(["update", "hq-a", "--claim", "--actor", "ann"]).ok();

    assert_eq!((town.show("hq-a"), town.last_event()), before);
}

#[test]
fn an_assigned_bead_is_claimed_by_its_assignee_only() {
    let town = town();
    town.bead("hq-a", &["-a", "ann"]);

    let error = refusal(&town.bd(["update", "hq-a", "--claim", "--actor", "bob"]));
    assert_says(&error, &["already claimed by ann"]);
    town.bd(["update", "hq-a", "--claim", "--actor", "ann"]).ok();
}

#[test]
fn only_open_beads_can_be_claimed() {
    let town = town();
    for status in ["blocked", "deferred", "pinned", "closed"] {
        let id = format!("hq-{status}");
        town.bead(&id, &[]);
        town.bd(["update", &id, "--status", status]).ok();
        let error = refusal(&town.bd(["update", &id, "--claim"]));
        let reason = format!("claiming {id}: issue not claimable: status {status}");
        assert_eq!(error, reason);
    }
}

#[test]
fn a_claim_and_other_changes_are_one() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["-a", "ann"]);

    let update = ["update", "hq-a", "hq-b", "--claim", "--actor", "bob"];
    let updated = town.start_bd(&update).args(["--add-label", "mine", "--json"]).run().ok();

    assert_eq!(texts(&updated.json(), "id"), ["hq-a"]);
    assert_says(&updated.stderr, &["claiming hq-b: issue already claimed by ann"]);
    assert_eq!(town.show("hq-a")["labels"], json!(["mine"]));
    assert_eq!(town.show("hq-b").get("labels"), None);
}

#[test]
fn the_first_ready_bead_can_be_claimed_in_one_step() {
    let town = town();
    town.bead("hq-low", &["-p", "3"]);
    town.bead("hq-high", &["-p", "0"]);
    town.bead("hq-taken", &["-p", "0", "-a", "zed"]);
    town.bead("hq-later", &["-p", "0", "--deps", "hq-high"]);
    let claim = || town.json(&["ready", "--claim", "--actor", "ann"]);

    let first = claim();
    assert_eq!(texts(&first, "id"), ["hq-high"]);
    assert_eq!(first[0]["assignee"], "ann");
    assert_eq!(first[0]["status"], "in_progress");
    assert_eq!(texts(&claim(), "id"), ["hq-low"]);
    assert_eq!(claim(), json!([]));
    let said = town.bd(["ready", "--claim"]).ok();
    assert_says(&said.stdout, &["Nothing is ready"]);
}

#[test]
fn the_claim_obeys_the_filters_of_ready() {
    let town = town();
    town.bead("hq-a", &["-p", "0"]);
    town.bead("hq-b", &["-l", "backend"]);

    let claimed = town.json(&["ready", "--claim", "--label", "backend"]);

    assert_eq!(texts(&claimed, "id"), ["hq-b"]);
}

#[test]
fn a_closed_bead_can_lead_to_the_next_claim() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);

    let closed = town.json(&["close", "hq-a", "--claim-next", "--actor", "ann"]);

    assert_eq!(texts(&closed["closed"], "id"), ["hq-a"]);
    assert_eq!(closed["claimed"]["id"], "hq-b");
    assert_eq!(closed["claimed"]["assignee"], "ann");
    let none = town.json(&["close", "hq-b", "--claim-next"]);
    assert_eq!(none["claimed"], json!(null));
}

#[test]
fn a_deferred_bead_whose_date_has_passed_can_be_claimed() {
    let town = town();
    town.import(
        r#"{"id":"hq-a","title":"Woken","status":"deferred","defer_until":"2001-01-01T00:00:00Z"}"#,
    );

    town.bd(["update", "hq-a", "--claim"]).ok();

    assert_eq!(town.show("hq-a")["status"], "in_progress");
}

#[test]
fn a_claim_without_an_actor_name_is_made_as_unknown() {
    let town = town();
    town.bead("hq-a", &[]);
    let without_name = |words: &[&str]| {
        let bare = town.start_bd(words).env("GIT_CONFIG_GLOBAL", "/dev/null");
        bare.env_remove("USER").env_remove("LOGNAME").run()
    };

    without_name(&["update", "hq-a", "--claim"]).ok();

    assert_eq!(town.show("hq-a")["assignee"], "unknown");
    without_name(&["update", "hq-a", "--claim", "--actor", "ada"]).fails(1);
}
