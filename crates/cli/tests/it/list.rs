//! `bd list`: which beads, by every filter there is.

use gt_testkit::Sandbox;
use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, refusal, texts, town, town_with_rigs};

/// The ids that `bd list` gives with these flags, sorted.
#[track_caller]
fn listed(town: &Sandbox, flags: &[&str]) -> Vec<String> {
    let mut command = vec!["list", "--sort", "id"];
    command.extend(flags);
    town.ids(&command)
}

#[test]
fn closed_and_pinned_beads_templates_and_machinery_are_left_out() {
    let town = town();
    town.bead("hq-open", &[]);
    for status in ["closed", "pinned", "blocked", "deferred", "in_progress"] {
        let id = format!("hq-{status}");
        town.bead(&id, &[]);
        town.bd(["update", &id, "--status", status]).ok();
    }
    town.bead("hq-gate", &["-t", "gate"]);
    town.bead("hq-agent", &["-t", "agent"]);
    town.bead("hq-wisp-1", &["--ephemeral"]);
    town.import(concat!(
        r#"{"id":"hq-template","title":"t","is_template":true}"#,
        "\n",
        r#"{"id":"hq-flagged","title":"p","pinned":true}"#
    ));

    let plain = ["hq-blocked", "hq-deferred", "hq-in_progress", "hq-open"];
    assert_eq!(listed(&town, &[]), plain);
    assert_eq!(
        listed(&town, &["--all"]),
        [
            "hq-blocked",
            "hq-closed",
            "hq-deferred",
            "hq-flagged",
            "hq-in_progress",
            "hq-open",
            "hq-pinned"
        ]
    );
    for (flags, extra) in [
        (&["--include-templates"][..], &["hq-template"][..]),
        (&["--include-ephemeral"], &["hq-wisp-1"]),
        (&["--status", "closed"], &["hq-closed"]),
        (&["--pinned"], &["hq-flagged"]),
    ] {
        let found = listed(&town, flags);
        for id in extra {
            assert!(found.iter().any(|known| known == id), "{flags:?}: {found:?}");
        }
    }
    assert_eq!(listed(&town, &["--type", "gate"]), ["hq-gate"]);
    assert_eq!(listed(&town, &["--type", "agent"]), ["hq-agent"]);
    assert!(listed(&town, &["--include-gates"]).contains(&"hq-gate".to_owned()));
    assert!(listed(&town, &["--include-infra"]).contains(&"hq-agent".to_owned()));
}

#[test]
fn text_and_json_show_the_same_rows() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--ephemeral"]);
    town.bead("hq-c", &["-t", "gate"]);

    let text = town.bd(["list"]).ok();

    let ids: Vec<&str> = text.stdout.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(ids, town.ids(&["list"]));
}

#[test]
fn by_status_one_several_or_all() {
    let town = town();
    for status in ["open", "closed", "blocked"] {
        let id = format!("hq-{status}");
        town.bead(&id, &[]);
        town.bd(["update", &id, "--status", status]).ok();
    }
    assert_eq!(listed(&town, &["--status", "closed"]), ["hq-closed"]);
    assert_eq!(listed(&town, &["-s", "closed,open"]), ["hq-closed", "hq-open"]);
    assert_eq!(listed(&town, &["--state=blocked"]), ["hq-blocked"]);
    assert_eq!(listed(&town, &["--status=all"]).len(), 3);
    let error = refusal(&town.bd(["list", "--status", "No Such"]));
    assert_says(&error, &["is not a status"]);
}

#[test]
fn by_priority_type_and_assignee() {
    let town = town();
    town.bead("hq-a", &["-p", "0", "-t", "bug", "-a", "ann"]);
    town.bead("hq-b", &["-p", "1", "-t", "feature"]);
    town.bead("hq-c", &["-p", "3"]);

    for (flags, expected) in [
        (&["--priority", "1"][..], &["hq-b"][..]),
        (&["-p", "P0"], &["hq-a"]),
        (&["--priority-min", "1"], &["hq-b", "hq-c"]),
        (&["--priority-max", "1"], &["hq-a", "hq-b"]),
        (&["--type", "bug,task"], &["hq-a", "hq-c"]),
        (&["-t", "feat"], &["hq-b"]),
        (&["--exclude-type", "bug"], &["hq-b", "hq-c"]),
        (&["--assignee=ann"], &["hq-a"]),
        (&["--no-assignee"], &["hq-b", "hq-c"]),
        (&["--unassigned", "--priority-max", "2"], &["hq-b"]),
    ] {
        assert_eq!(listed(&town, flags), expected, "{flags:?}");
    }
}

#[test]
fn by_label() {
    let town = town();
    town.bead("hq-a", &["-l", "x,y"]);
    town.bead("hq-b", &["-l", "y"]);
    town.bead("hq-c", &[]);

    for (flags, expected) in [
        (&["--label", "y"][..], &["hq-a", "hq-b"][..]),
        (&["--label=x,y"], &["hq-a"]),
        (&["-l", "x", "-l", "y"], &["hq-a"]),
        (&["--label-any", "x,z"], &["hq-a"]),
        (&["--exclude-label", "x"], &["hq-b", "hq-c"]),
        (&["--no-labels"], &["hq-c"]),
    ] {
        assert_eq!(listed(&town, flags), expected, "{flags:?}");
    }
}

#[test]
fn by_words() {
    let town = town();
    town.bead("hq-a", &["-d", "Boil the WATER", "--notes", "100% hot"]);
    town.bead("hq-b", &["-d", "make tea"]);
    town.bead("hq-c", &[]);
    town.bd(["update", "hq-b", "--title", "Größe_1"]).ok();

    for (flags, expected) in [
        (&["--title", "größe"][..], &["hq-b"][..]),
        (&["--title-contains", "e_1"], &["hq-b"]),
        (&["--desc-contains", "water"], &["hq-a"]),
        (&["--notes-contains", "100%"], &["hq-a"]),
        (&["--notes-contains", "1%"], &[]),
        (&["--empty-description"], &["hq-c"]),
    ] {
        assert_eq!(listed(&town, flags), expected, "{flags:?}");
    }
}

#[test]
fn by_id_parent_rig_and_specification() {
    let town = town_with_rigs(&["web"]);
    town.bead("hq-p", &["--spec-id", "s-1"]);
    town.create("Part", &["--parent", "hq-p"]);
    town.create("Deeper", &["--parent", "hq-p.1"]);
    town.bead("we-a", &[]);

    for (flags, expected) in [
        (&["--id", "hq-p,we-a"][..], &["hq-p", "we-a"][..]),
        (&["--parent", "hq-p"], &["hq-p.1"]),
        (&["--filter-parent", "hq-p"], &["hq-p.1"]),
        (&["--no-parent"], &["hq-p", "we-a"]),
        (&["--rig", "web"], &["we-a"]),
        (&["--spec", "s-1"], &["hq-p"]),
    ] {
        assert_eq!(listed(&town, flags), expected, "{flags:?}");
    }
    refusal(&town.bd(["list", "--id", "hq-none"]));
    refusal(&town.bd(["list", "--parent", "hq-none"]));
    let error = refusal(&town.bd(["list", "--rig", "nope"]));
    assert_says(&error, &["known rigs: web"]);
}

#[test]
fn by_time() {
    let town = town();
    let lines = [
        json!({"id": "hq-a", "title": "a", "created_at": "2020-01-01T00:00:00Z",
            "updated_at": "2020-01-05T00:00:00Z", "due_at": "2020-02-01T00:00:00Z"}),
        json!({"id": "hq-b", "title": "b", "created_at": "2020-01-03T00:00:00Z",
            "updated_at": "2020-01-03T00:00:00Z", "defer_until": "2200-01-01T00:00:00Z"}),
        json!({"id": "hq-c", "title": "c", "created_at": "2020-01-02T00:00:00Z",
            "updated_at": "2020-01-04T00:00:00Z", "status": "closed",
            "closed_at": "2020-01-04T00:00:00Z"}),
    ];
    town.import(&lines.map(|line| line.to_string()).join("\n"));

    for (flags, expected) in [
        (&["--created-after", "2020-01-02"][..], &["hq-b"][..]),
        (&["--created-before", "2020-01-02", "--all"], &["hq-a"]),
        (&["--updated-after", "2020-01-04T12:00:00Z"], &["hq-a"]),
        (&["--updated-before", "2020-01-04"], &["hq-b"]),
        (&["--closed-after", "2020-01-01"], &["hq-c"]),
        (&["--closed-before", "2020-01-01"], &[]),
        (&["--due-before", "2020-03-01"], &["hq-a"]),
        (&["--due-after", "2020-03-01"], &[]),
        (&["--defer-after", "2020-03-01"], &["hq-b"]),
        (&["--defer-before", "2020-03-01"], &[]),
        (&["--overdue"], &["hq-a"]),
        (&["--deferred"], &["hq-b"]),
    ] {
        assert_eq!(listed(&town, flags), expected, "{flags:?}");
    }
    let error = refusal(&town.bd(["list", "--created-after", "lately"]));
    assert_says(&error, &["\"lately\" is not a time"]);
}

#[test]
fn by_metadata_and_outcome() {
    let town = town();
    town.bead("hq-a", &["--metadata", r#"{"n": 5, "s": "x", "a.b": true}"#]);
    town.bead("hq-b", &["--metadata", r#"{"n": 6, "nul": null}"#]);
    town.bead("hq-c", &[]);
    town.bd(["close", "hq-c", "--outcome", "failed"]).ok();

    for (flags, expected) in [
        (&["--metadata-field", "n=5"][..], &["hq-a"][..]),
        (&["--metadata-field", "s=x"], &["hq-a"]),
        (&["--metadata-field", "a.b=true"], &["hq-a"]),
        (&["--metadata-field", "n=7"], &[]),
        (&["--has-metadata-key", "n"], &["hq-a", "hq-b"]),
        (&["--has-metadata-key", "nul"], &["hq-b"]),
        (&["--outcome", "failed"], &["hq-c"]),
    ] {
        assert_eq!(listed(&town, flags), expected, "{flags:?}");
    }
    let error = refusal(&town.bd(["list", "--metadata-field", "n"]));
    assert_says(&error, &["key=value"]);
}

#[test]
fn only_what_is_ready() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);

    assert_eq!(listed(&town, &["--ready"]), ["hq-a"]);
}

#[test]
fn a_listed_bead_has_its_labels_edges_parent_and_counts() {
    let town = town();
    town.bead("hq-a", &["-l", "z,y"]);
    town.create("Part", &["--parent", "hq-a", "--no-inherit-labels"]);
    town.bd(["comments", "add", "hq-a.1", "hello"]).ok();

    let list = town.json(&["list", "--sort", "id"]);

    assert_eq!(list[0]["labels"], json!(["y", "z"]), "sorted");
    let part = &list[1];
    assert_eq!(part["parent"], "hq-a");
    assert_eq!(part["comment_count"], 1);
    assert_eq!(part.get("comments"), None);
    let edge = &part["dependencies"][0];
    assert_eq!(
        (&edge["issue_id"], &edge["depends_on_id"], &edge["type"]),
        (&json!("hq-a.1"), &json!("hq-a"), &json!("parent-child"))
    );
}

#[test]
fn nothing_to_list_is_said_and_is_an_empty_array() {
    let town = town();
    let said = town.bd(["list"]).ok();
    assert_eq!(said.stdout, "No issues found.\n");
    assert_eq!(town.bd(["list", "--json"]).ok().stdout, "[]\n");
}

#[test]
fn flags_of_other_implementations_are_accepted() {
    let town = town();
    town.bead("hq-a", &[]);
    let list = [
        "list",
        "--flat",
        "--long",
        "--pretty",
        "--no-pager",
        "--allow-stale",
        "--sandbox",
        "--readonly",
    ];
    assert_eq!(town.ids(&list), ["hq-a"]);
    let json = town.bd(["list", "--format", "json"]).ok().json();
    assert_eq!(texts(&json, "id"), ["hq-a"]);
}

#[test]
fn a_wrong_filter_is_an_error_in_json_too() {
    let town = town();
    for flags in [
        ["--priority", "9"],
        ["--priority", "high"],
        ["--created-after", "2020-99-01"],
        ["--status", "No Such"],
    ] {
        let list = town.start_bd(&["list", "--json"]).args(flags);
        json_refusal(&list.run());
    }
}

#[test]
fn an_unknown_status_is_refused() {
    let town = town();
    town.bead("hq-a", &[]);

    assert_says(&refusal(&town.bd(["list", "--status", "opne"])), &["unknown status", "opne"]);

    town.import(r#"{"id":"hq-b","title":"b","status":"odd"}"#);
    assert_eq!(listed(&town, &["--status", "odd"]), ["hq-b"]);
}

#[test]
fn statuses_of_a_team_that_mean_done_or_frozen_are_left_out() {
    let town = town();
    town.bd(["config", "set", "status.custom", "review,shipped:done,iced:frozen"]).ok();
    for status in ["review", "shipped", "iced"] {
        let id = format!("hq-{status}");
        town.bead(&id, &[]);
        town.bd(["update", &id, "--status", status]).ok();
    }

    assert_eq!(listed(&town, &[]), ["hq-review"]);
    assert_eq!(listed(&town, &["--status", "shipped"]), ["hq-shipped"]);
    assert_eq!(listed(&town, &["--all"]).len(), 3);
    assert_eq!(town.json(&["count"])["count"], 3);
}
