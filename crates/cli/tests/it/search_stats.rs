//! `bd search`, `bd stats`, `bd count`.

use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, keys, refusal, town};

#[test]
fn titles_and_ids_are_searched_in_any_case() {
    let town = town();
    town.bead("hq-kettle", &["-d", "holds water"]);
    town.bead("hq-b", &[]);
    town.bd(["update", "hq-b", "--title", "Boil WATER, 100%_sure"]).ok();

    for (text, expected) in [
        ("water", &["hq-b"][..]),
        ("KETTLE", &["hq-kettle"]),
        ("100%_", &["hq-b"]),
        ("%", &["hq-b"]),
        ("_", &["hq-b"]),
        ("\\", &[]),
        ("nothing", &[]),
    ] {
        assert_eq!(town.ids(&["search", text]), expected, "{text}");
    }
    assert_eq!(town.ids(&["search", "kettle", "--desc-contains", "water"]), ["hq-kettle"]);
}

#[test]
fn any_script_is_found_as_it_is_written() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bd(["update", "hq-a", "--title", "ÜBER Straße שלום 🫖"]).ok();

    for text in ["ÜBER", "straße", "שלום", "🫖"] {
        assert_eq!(town.ids(&["search", text]), ["hq-a"], "{text}");
    }
}

#[test]
fn closed_beads_are_found_when_asked_for() {
    let town = town();
    town.bead("hq-kettle", &[]);
    town.bd(["close", "hq-kettle"]).ok();

    assert_eq!(town.json(&["search", "kettle"]), json!([]));
    assert_eq!(town.ids(&["search", "kettle", "--status", "all"]), ["hq-kettle"]);
    assert_eq!(town.ids(&["search", "kettle", "--status", "closed"]), ["hq-kettle"]);
}

#[test]
fn search_takes_the_filters_orders_and_limits_of_list() {
    let town = town();
    for number in 0..4 {
        let label = if number % 2 == 0 { "even" } else { "odd" };
        town.bead(&format!("hq-tea{number}"), &["-l", label]);
    }

    let search = ["search", "tea", "--label", "odd", "--sort", "id"];
    assert_eq!(town.ids(&search), ["hq-tea1", "hq-tea3"]);
    let turned = ["search", "tea", "--sort", "id", "--reverse", "--limit", "1"];
    let found = town.start_bd(&turned).arg("--json").run().ok();
    assert_eq!(found.json()[0]["id"], "hq-tea3");
    assert_says(&found.stderr, &["--limit 0"]);
    let said = town.bd(["search", "coffee"]).ok();
    assert_eq!(said.line(), "No issues found.");
    town.bd(["search"]).fails(1);
}

#[test]
fn a_found_bead_looks_like_a_listed_one() {
    let town = town();
    town.bead("hq-a", &["-l", "x", "--deps", "other-1"]);

    assert_eq!(town.json(&["search", "hq-a"]), town.json(&["list"]));
}

#[test]
fn statistics_have_every_number() {
    let town = town();
    town.bead("hq-open", &[]);
    town.bead("hq-waits", &["--deps", "hq-open"]);
    for status in ["in_progress", "hooked", "deferred", "pinned", "closed"] {
        let id = format!("hq-{status}");
        town.bead(&id, &[]);
        town.bd(["update", &id, "--status", status]).ok();
    }
    town.bead("hq-wisp-1", &["--ephemeral"]);

    let stats = town.json(&["stats"]);

    assert_eq!(keys(&stats), ["schema_version", "summary"]);
    let mut summary = stats["summary"].clone();
    assert!(summary["average_lead_time_hours"].take().is_number());
    assert_eq!(
        summary,
        json!({
            "total_issues": 7, "open_issues": 2, "in_progress_issues": 1, "hooked_issues": 1,
            "closed_issues": 1, "blocked_issues": 1, "deferred_issues": 1, "ready_issues": 1,
            "pinned_issues": 1, "epics_eligible_for_closure": 0, "average_lead_time_hours": null,
        })
    );
    assert_eq!(town.json(&["status"]), stats, "by its other name");
    let said = town.bd(["stats"]).ok();
    assert_says(&said.stdout, &["Total Issues:", "In Progress:", "Average Lead Time:"]);
}

#[test]
fn statistics_count_as_ready_what_ready_lists() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-later", &["--defer", "+2d"]);
    town.bead("hq-woken", &[]);
    town.bd(["update", "hq-woken", "--status", "deferred"]).ok();
    town.bd(["update", "hq-woken", "--defer", "2020-01-01"]).ok();
    town.bead("hq-gate", &["--type", "gate"]);
    town.bead("hq-letter", &["--type", "message"]);
    town.bead("hq-epic", &["--type", "epic"]);
    town.bead("hq-put-off", &["--defer", "+2d"]);
    town.bead("hq-part", &[]);
    town.bd(["dep", "add", "hq-part", "hq-put-off", "--type", "parent-child"]).ok();
    town.bead("hq-waits", &["--deps", "hq-a"]);
    town.bead("hq-pinned", &[]);
    town.bd(["update", "hq-pinned", "--status", "pinned"]).ok();

    let ready = town.ids(&["ready", "--limit", "0"]);

    assert_eq!(town.json(&["stats"])["summary"]["ready_issues"], ready.len(), "{ready:?}");
    assert!(ready.iter().any(|id| id == "hq-a") && ready.len() < 6, "{ready:?}");
}

#[test]
fn statistics_of_nothing_are_zeros() {
    let stats = town().json(&["stats"]);
    for (name, number) in stats["summary"].as_object().unwrap() {
        assert_eq!(number.as_f64(), Some(0.0), "{name}");
    }
}

#[test]
fn beads_are_counted_with_the_filters_of_list() {
    let town = town();
    town.bead("hq-a", &["-p", "0", "-l", "x"]);
    town.bead("hq-b", &["-p", "1", "-l", "x,y", "-a", "ann"]);
    town.bead("hq-c", &["-p", "1", "-t", "bug"]);
    town.bd(["close", "hq-c"]).ok();

    assert_eq!(town.bd(["count"]).ok().line(), "3");
    assert_eq!(town.json(&["count"]), json!({"count": 3, "schema_version": 1}));
    assert_eq!(town.bd(["count", "--status", "open"]).ok().line(), "2");
    assert_eq!(town.bd(["count", "--label", "y"]).ok().line(), "1");
    let error = json_refusal(&town.bd(["count", "--json", "--priority", "x"]));
    assert_says(&error, &["is not a priority"]);
    refusal(&town.bd(["count", "--rig", "nope"]));
}

#[test]
fn beads_are_counted_in_groups() {
    let town = town();
    town.bead("hq-a", &["-p", "0", "-l", "x"]);
    town.bead("hq-b", &["-p", "1", "-l", "x,y", "-a", "ann"]);
    town.bead("hq-c", &["-p", "1", "-t", "bug"]);
    town.bd(["close", "hq-c"]).ok();

    for (flag, groups) in [
        ("--by-status", json!([["closed", 1], ["open", 2]])),
        ("--by-priority", json!([["P0", 1], ["P1", 2]])),
        ("--by-type", json!([["bug", 1], ["task", 2]])),
        ("--by-assignee", json!([["(unassigned)", 2], ["ann", 1]])),
        ("--by-label", json!([["x", 2], ["y", 1]])),
    ] {
        let counted = town.json(&["count", flag]);
        assert_eq!(keys(&counted), ["groups", "schema_version", "total"]);
        assert_eq!(counted["total"], 3, "{flag}");
        let found: Vec<_> = counted["groups"]
            .as_array()
            .unwrap()
            .iter()
            .map(|group| json!([group["group"], group["count"]]))
            .collect();
        assert_eq!(json!(found), groups, "{flag}");
    }
    let said = town.bd(["count", "--by-status"]).ok();
    assert_says(&said.stdout, &["closed", "open", "total"]);
    town.bd(["count", "--by-status", "--by-type"]).fails(1);
}
