//! `bd stale`, `bd children`, `bd lint`: beads that need a person's attention.

use serde_json::json;

use crate::support::{
    Steps as _, assert_says, json_refusal, keys, refusal, texts, town, town_with_rigs,
};

/// A town with beads that were last changed on these days.
fn neglected() -> gt_testkit::Sandbox {
    let town = town();
    let line = |id: &str, day: &str, status: &str| {
        format!(
            "{{\"id\":\"{id}\",\"title\":\"{id}\",\"priority\":2,\"status\":\"{status}\",\
             \"created_at\":\"2020-01-01T00:00:00Z\",\"updated_at\":\"{day}T00:00:00Z\"}}\n"
        )
    };
    let closed = "{\"id\":\"hq-done\",\"title\":\"done\",\"priority\":2,\"status\":\"closed\",\
                  \"created_at\":\"2020-01-01T00:00:00Z\",\"updated_at\":\"2020-01-02T00:00:00Z\",\
                  \"closed_at\":\"2020-01-02T00:00:00Z\"}\n";
    let lines = [
        line("hq-b", "2021-01-01", "open"),
        line("hq-a", "2020-06-01", "in_progress"),
        line("hq-c", "2022-01-01", "deferred"),
        closed.to_owned(),
    ];
    town.import(&lines.concat());
    town.bead("hq-fresh", &[]);
    town
}

#[test]
fn the_stalest_bead_comes_first_and_closed_beads_are_left_out() {
    let town = neglected();

    assert_eq!(town.ids(&["stale"]), ["hq-a", "hq-b", "hq-c"]);
    assert_eq!(town.ids(&["stale", "-d", "100000"]), Vec::<String>::new());
    let said = town.bd(["stale"]).ok();
    assert_says(said.stdout.lines().next().unwrap_or_default(), &["hq-a", "in_progress", "d ago"]);
    assert_eq!(town.bd(["stale", "-d", "100000"]).ok().line(), "No issues found.");
}

#[test]
fn stale_beads_can_be_narrowed_and_look_like_listed_ones() {
    let town = neglected();

    assert_eq!(town.ids(&["stale", "-s", "open,deferred"]), ["hq-b", "hq-c"]);
    let two = town.bd(["stale", "-n", "2", "--json"]).ok();
    assert_eq!(texts(&two.json(), "id"), ["hq-a", "hq-b"]);
    assert_says(&two.stderr, &["--limit 0"]);
    let listed = town.json(&["list", "--id", "hq-a"]);
    assert_eq!(town.json(&["stale", "-n", "1"]), listed);
    assert_says(&refusal(&town.bd(["stale", "-s", "opne"])), &["unknown status"]);
    assert_says(&refusal(&town.bd(["stale", "--rig", "nope"])), &["not found"]);
    town.bd(["stale", "--days", "-1"]).fails(1);
}

#[test]
fn stale_beads_of_one_rig() {
    let town = town_with_rigs(&["web"]);
    let old = "\"created_at\":\"2020-01-01T00:00:00Z\",\"updated_at\":\"2020-01-01T00:00:00Z\"";
    town.import(&format!(
        "{{\"id\":\"we-a\",\"title\":\"Mine\",{old}}}\n{{\"id\":\"hq-a\",\"title\":\"Other\",{old}}}\n"
    ));

    assert_eq!(town.ids(&["stale", "--rig", "web"]), ["we-a"]);
}

#[test]
fn children_are_the_direct_parts_closed_ones_included() {
    let town = town();
    town.bead("hq-e", &["-t", "epic"]);
    for _ in 0..10 {
        town.create("Part", &["--parent", "hq-e"]);
    }
    town.create("Part of a part", &["--parent", "hq-e.1"]);
    town.bead("hq-other", &["--deps", "hq-e.1"]);
    town.bd(["close", "hq-e.2"]).ok();

    let ids = town.ids(&["children", "hq-e"]);

    let expected: Vec<String> = (1..=10).map(|number| format!("hq-e.{number}")).collect();
    assert_eq!(ids, expected, "in their natural order");
    assert_says(&town.bd(["children", "e"]).ok().stdout, &["hq-e.2", "closed"]);
    assert_eq!(town.ids(&["children", "hq-e", "--status", "closed"]), ["hq-e.2"]);
    assert_eq!(town.ids(&["children", "hq-e", "-n", "2"]), ["hq-e.1", "hq-e.2"]);
    assert_eq!(town.json(&["children", "hq-other"]), json!([]));
    assert_says(&refusal(&town.bd(["children", "nope"])), &["no issue found matching \"nope\""]);
}

#[test]
fn lint_finds_what_a_bead_of_its_type_should_have() {
    let town = town();
    town.bead("hq-bug", &["-t", "bug", "-d", "It breaks\n\n## Steps to Reproduce\nrun it"]);
    town.bead("hq-task", &["-d", "Do it", "--acceptance", "it is done"]);
    town.bead("hq-epic", &["-t", "epic"]);
    town.bead("hq-chore", &["-t", "chore", "-d", "Sweep"]);
    town.bead("hq-gate", &["-t", "gate"]);

    let ran = town.bd(["lint", "--json"]).ok();

    let found = ran.json();
    assert_eq!(keys(&found), ["issues", "results", "schema_version", "total"]);
    assert_eq!((&found["total"], &found["issues"]), (&json!(3), &json!(2)));
    let of = |id: &str| {
        let results = found["results"].as_array().unwrap();
        results.iter().find(|result| result["id"] == id).expect("a finding").clone()
    };
    assert_eq!(
        of("hq-bug"),
        json!({"id": "hq-bug", "title": "hq-bug", "type": "bug",
               "missing": ["Acceptance Criteria"], "warnings": 1})
    );
    assert_eq!(of("hq-epic")["missing"], json!(["Description", "Success Criteria"]));
    let said = town.bd(["lint"]).fails(1);
    assert_says(&said.stderr, &["Error: 2 beads lack something"]);
    assert_says(&said.stdout, &["hq-epic", "lacks Description, Success Criteria"]);
}

#[test]
fn lint_looks_where_it_is_told_to() {
    let town = town();
    town.bead("hq-good", &["-d", "Do it", "--acceptance", "done"]);
    town.bead("hq-bad", &[]);
    town.bead("hq-closed", &[]);
    town.bd(["close", "hq-closed"]).ok();

    assert_eq!(town.bd(["lint", "hq-good"]).ok().line(), "✓ Nothing is missing in 1 bead");
    town.bd(["lint", "--type", "bug"]).ok();
    let ids = |arguments: &[&str]| {
        let found = town.start_bd(arguments).arg("--json").run().ok().json();
        let mut ids = texts(&found["results"], "id");
        ids.sort();
        ids
    };
    assert_eq!(ids(&["lint"]), ["hq-bad"]);
    assert_eq!(ids(&["lint", "--status", "all"]), ["hq-bad", "hq-closed"]);
    assert_eq!(ids(&["lint", "hq-closed", "hq-good"]), ["hq-closed"]);
    assert_says(&json_refusal(&town.bd(["lint", "nope", "--json"])), &["no issue found"]);
    assert_eq!(town.json(&["lint", "good"])["total"], 0);
}
