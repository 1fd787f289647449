//! `bd create`: a bead and everything one can say about it.

use gt_core::Timestamp;
use gt_core::time::parse_duration;
use serde_json::{Value, json};

use crate::support::{
    Steps as _, assert_says, json_refusal, printed_keys, refusal, town, town_with_rigs,
};

#[test]
fn a_title_is_enough() {
    let town = town();

    let created = town.bd(["create", "Boil water"]).ok();

    let id = town.ids(&["list"])[0].clone();
    assert_eq!(created.line(), format!("✓ Created issue: {id} — Boil water"));
    let bead = town.show(&id);
    assert_eq!(bead["title"], "Boil water");
    assert_eq!(bead["status"], "open");
    assert_eq!(bead["priority"], 2);
    assert_eq!(bead["issue_type"], "task");
    assert_eq!(bead["created_by"], "Test Person");
    assert_eq!(bead["owner"], "test@example.com");
    assert_eq!(bead["created_at"], bead["updated_at"]);
    assert_eq!(bead.get("assignee"), None);
}

#[test]
fn ids_are_the_prefix_and_three_letters_or_digits() {
    let town = town();
    for number in 0..20 {
        let id = town.create(&format!("Task {number}"), &[]);
        let (prefix, rest) = id.split_once('-').unwrap();
        assert_eq!(prefix, "hq");
        assert_eq!(rest.len(), 3, "{id}");
        assert!(
            rest.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase()),
            "{id}"
        );
    }
}

#[test]
fn one_create_can_set_every_field() {
    let town = town();

    let created = town
        .bd([
            "create",
            "Full",
            "-t",
            "bug",
            "-p",
            "P0",
            "-d",
            "what",
            "--design",
            "how",
            "--acceptance",
            "when",
            "--notes",
            "more",
            "-a",
            "ann",
            "-l",
            "b,a",
            "-l",
            "c",
            "--external-ref",
            "gh-9",
            "--spec-id",
            "s-1",
            "-e",
            "30",
            "--due",
            "2030-01-01",
            "--metadata",
            r#"{"b": 1, "a": [1.50, null]}"#,
            "--json",
        ])
        .ok();

    let bead = created.json();
    for (field, value) in [
        ("title", json!("Full")),
        ("issue_type", json!("bug")),
        ("priority", json!(0)),
        ("description", json!("what")),
        ("design", json!("how")),
        ("acceptance_criteria", json!("when")),
        ("notes", json!("more")),
        ("assignee", json!("ann")),
        ("external_ref", json!("gh-9")),
        ("spec_id", json!("s-1")),
        ("estimated_minutes", json!(30)),
        ("due_at", json!("2030-01-01T00:00:00Z")),
        ("schema_version", json!(1)),
    ] {
        assert_eq!(bead[field], value, "{field}");
    }
    let shown = town.show(bead["id"].as_str().unwrap());
    assert_eq!(shown["labels"], json!(["a", "b", "c"]));
    let export = town.export();
    assert_says(&export, &[r#""metadata":{"b":1,"a":[1.50,null]}"#, r#""labels":["b","a","c"]"#]);
}

#[test]
fn the_answer_is_one_object_with_sorted_keys_and_no_counts() {
    let town = town();

    let created = town.bd(["create", "A task", "-d", "x", "-l", "y", "--json"]).ok();

    let keys = printed_keys(&created.stdout, 2);
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    assert_eq!(keys, sorted);
    assert!(keys.contains(&"schema_version"));
    assert!(!keys.contains(&"dependency_count"));
}

#[test]
fn silent_prints_only_the_id() {
    let town = town();

    let created = town.bd(["create", "A task", "--silent"]).ok();

    assert_eq!(created.stdout, format!("{}\n", town.ids(&["list"])[0]));
    assert_eq!(created.stderr, "");
}

#[test]
fn the_title_can_be_a_flag_but_not_both() {
    let town = town();

    let id = town.bd(["create", "--title", "By flag", "--silent"]).ok().line().to_owned();

    assert_eq!(town.show(&id)["title"], "By flag");
    town.bd(["create", "One", "--title", "Two"]).fails(1);
    assert_eq!(town.ids(&["list"]).len(), 1);
}

#[test]
fn without_a_title_the_command_says_how_to_give_one() {
    let town = town();
    let error = refusal(&town.bd(["create"]));
    assert_says(&error, &["title", "bd create"]);
    let error = json_refusal(&town.bd(["create", "--json"]));
    assert_says(&error, &["title"]);
}

#[test]
fn a_title_may_begin_with_a_dash_and_spaces_around_it_do_not_count() {
    let town = town();
    town.bd(["create", "--", "-v is not a flag"]).ok();
    let id = town.create("  spacious\n", &[]);
    assert_eq!(town.show(&id)["title"], "spacious");
    let found = town.bd(["search", "--json", "--", "-v is"]).ok();
    assert_eq!(found.json()[0]["title"], "-v is not a flag");
}

#[test]
fn the_description_comes_from_a_flag_a_file_or_standard_input() {
    let town = town();
    town.write("body.txt", "From a file\n");
    let text = |ran: gt_testkit::FinishedProgram| town.show(ran.ok().line())["description"].clone();

    for (flags, input, expected) in [
        (&["-d", "Short"][..], "", "Short"),
        (&["--body", "Body"], "", "Body"),
        (&["-m", "Message"], "", "Message"),
        (&["--body-file", "body.txt"], "", "From a file\n"),
        (&["--body-file", "-"], "From input", "From input"),
        (&["--stdin"], "From input too", "From input too"),
    ] {
        let create = town.start_bd(&["create", "A task", "--silent"]);
        let created = create.args(flags).stdin(input).run();
        assert_eq!(text(created), expected, "{flags:?}");
    }
    town.bd(["create", "A task", "-d", "x", "--stdin"]).fails(1);
}

#[test]
fn the_design_and_the_metadata_come_from_files_too() {
    let town = town();
    town.write("design.md", "# How\n");
    town.write("metadata.json", "{\"k\": 1}\n");

    let id = town.create("A task", &["--design-file", "design.md", "--metadata", "@metadata.json"]);

    let bead = town.show(&id);
    assert_eq!(bead["design"], "# How\n");
    assert_eq!(bead["metadata"], json!({"k": 1}));
}

#[test]
fn types_have_other_names() {
    let town = town();
    for (given, kept) in [
        ("feat", "feature"),
        ("enhancement", "feature"),
        ("adr", "decision"),
        ("investigation", "spike"),
        ("user-story", "story"),
        ("ms", "milestone"),
        ("mr", "merge-request"),
        ("mol", "molecule"),
        ("my-own", "my-own"),
    ] {
        town.bd(["config", "set", "types.custom", "my-own"]).ok();
        let id = town.create("A task", &["-t", given]);
        assert_eq!(town.show(&id)["issue_type"], kept);
    }
}

#[test]
fn priorities_are_written_with_or_without_a_p() {
    let town = town();
    for (given, kept) in [("0", 0), ("4", 4), ("P3", 3), ("p1", 1)] {
        let id = town.create("A task", &["-p", given]);
        assert_eq!(town.show(&id)["priority"], kept);
    }
}

#[test]
fn ephemeral_beads_have_ids_of_their_own_kind() {
    let town = town();

    let wisp = town.create("A wisp", &["--ephemeral", "--wisp-type", "patrol"]);
    let message = town.create("A message", &["-t", "message"]);
    let plain = town.create("Unrecorded", &["--no-history"]);

    assert!(wisp.starts_with("hq-wisp-"), "{wisp}");
    assert!(message.starts_with("hq-wisp-"), "{message}");
    assert!(!plain.contains("wisp"), "{plain}");
    let bead = town.show(&wisp);
    assert_eq!((&bead["ephemeral"], &bead["wisp_type"]), (&json!(true), &json!("patrol")));
    assert_eq!(town.show(&message)["ephemeral"], true, "machinery always is");
    assert_eq!(town.show(&plain)["no_history"], true);
    let error = refusal(&town.bd(["create", "Both", "--ephemeral", "--no-history"]));
    assert_says(&error, &["either ephemeral or"]);
}

#[test]
fn an_id_may_be_chosen_within_the_known_prefixes() {
    let town = town();
    town.gt(["rig", "add", "web"]).ok();

    town.bd(["create", "Mine", "--id", "we-custom"]).ok();
    assert_eq!(town.show("we-custom")["title"], "Mine");
    assert_eq!(town.ids(&["list", "--rig", "web"]), ["we-custom"]);

    let error = refusal(&town.bd(["create", "Again", "--id", "we-custom"]));
    assert_says(&error, &["we-custom already exists"]);
    let error = refusal(&town.bd(["create", "Foreign", "--id", "zz-1"]));
    assert_says(&error, &["zz-1", "known prefixes", "--force"]);
    town.bd(["create", "Foreign", "--id", "zz-1", "--force"]).ok();
    assert_eq!(town.show("zz-1")["title"], "Foreign");
}

/// The instant in a field.
#[track_caller]
fn instant(bead: &Value, field: &str) -> Timestamp {
    Timestamp::parse(bead[field].as_str().unwrap()).unwrap()
}

#[test]
fn times_can_be_relative() {
    let town = town();
    let before = town.show(&town.create("Before", &[]));
    let bead = town.show(&town.create("Soon", &["--due", "+2d", "--defer", "+1h30m"]));
    let after = town.show(&town.create("After", &[]));

    for (field, distance) in [("due_at", "2d"), ("defer_until", "1h30m")] {
        let distance = parse_duration(distance).unwrap();
        let at = instant(&bead, field);
        assert!(instant(&before, "created_at").plus(distance) <= at, "{field}");
        assert!(at <= instant(&after, "created_at").plus(distance), "{field}");
    }
}

#[test]
fn times_are_dates_timestamps_or_words() {
    let town = town();
    for (given, kept) in [
        ("2031-02-03", "2031-02-03T00:00:00Z"),
        ("2031-02-03T04:05:06.7Z", "2031-02-03T04:05:06.7Z"),
        ("2031-02-03T04:05:06+02:00", "2031-02-03T02:05:06Z"),
    ] {
        let id = town.create("A task", &["--due", given]);
        assert_eq!(town.show(&id)["due_at"], kept);
    }
    let id = town.create("A task", &["--due", "tomorrow"]);
    assert_says(town.show(&id)["due_at"].as_str().unwrap(), &["T00:00:00Z"]);
}

#[test]
fn a_bead_deferred_to_the_future_is_deferred_one_to_the_past_is_not() {
    let town = town();

    let later = town.create("Later", &["--defer", "2200-01-01"]);
    let past = town.create("Past", &["--defer", "2001-01-01"]);

    assert_eq!(town.show(&later)["status"], "deferred");
    assert_eq!(town.show(&past)["status"], "open");
    assert_eq!(town.ready(), [past]);
}

#[test]
fn a_dry_run_makes_nothing() {
    let town = town();

    let said = town.bd(["create", "Maybe", "--dry-run"]).ok();
    let json = town.json(&["create", "Maybe", "--dry-run"]);

    assert_says(&said.stdout, &["Would create issue: hq-", " — Maybe"]);
    assert_eq!(json["title"], "Maybe");
    assert_eq!(town.ids(&["list"]), [""; 0]);
    assert_eq!(town.last_event(), 0);
}

#[test]
fn a_dry_run_says_what_a_run_would_say() {
    let town = town();
    town.bead("hq-p", &[]);
    town.bead("hq-p.1", &["-l", "x"]);

    let part = town.json(&["create", "Part", "--parent", "hq-p", "--dry-run"]);
    assert_eq!(part["id"], "hq-p.2");
    for flags in [["--parent", "hq-none"], ["--deps", "hq-none"], ["--id", "hq-p"]] {
        let create = town.start_bd(&["create", "Wrong", "--dry-run"]);
        refusal(&create.args(flags).run());
    }
}

#[test]
fn the_actor_is_named_by_flag_variable_or_git() {
    let town = town();
    let creator = |create: gt_testkit::SandboxCommand| {
        let id = create.run().ok().line().to_owned();
        town.show(&id)["created_by"].as_str().unwrap().to_owned()
    };
    let create = || town.start_bd(&["create", "A task", "--silent"]);

    assert_eq!(creator(create()), "Test Person");
    assert_eq!(creator(create().env("BD_ACTOR", "bd")), "bd");
    let both = create().env("BD_ACTOR", "bd").env("BEADS_ACTOR", "beads");
    assert_eq!(creator(both.clone()), "beads");
    assert_eq!(creator(both.args(["--actor", "flag"])), "flag");
    let no_git = create().env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert_eq!(creator(no_git.clone().env("USER", "user")), "user");
    assert_eq!(creator(no_git), "unknown");
}

#[test]
fn an_actor_must_be_a_name() {
    let town = town();
    for actor in ["", "  ", "a\nb"] {
        let error = refusal(&town.bd(["create", "A task", "--actor", actor]));
        assert_says(&error, &["is not a valid actor"]);
    }
    assert_eq!(town.last_event(), 0);
}

#[test]
fn a_rig_may_be_named_by_its_directory() {
    let town = town_with_rigs(&["web"]);

    let id = town.create("By path", &["--repo", "web/"]);

    assert!(id.starts_with("we-"), "{id}");
}

#[test]
fn an_unknown_type_is_refused_with_what_was_perhaps_meant() {
    let town = town();
    town.bead("hq-a", &[]);
    for command in
        [&["create", "Slip", "--type", "bugg"][..], &["update", "hq-a", "--type", "bugg"]]
    {
        let error = refusal(&town.bd(command));
        assert_says(
            &error,
            &["unknown type \"bugg\"", "did you mean bug?", "bd config set types.custom bugg"],
        );
    }
    assert_eq!(town.ids(&["list", "--all"]), ["hq-a"]);

    // Types of Gas Town, aliases, and the types of a team.
    for known in ["molecule", "gate", "MR", "Feat", "convoy"] {
        town.bd(["create", "Known", "--type", known]).ok();
    }
    town.bd(["config", "set", "types.custom", "incident, runbook"]).ok();
    town.bd(["create", "Outage", "--type", "incident"]).ok();
    town.bd(["update", "hq-a", "--type", "runbook"]).ok();
    let error = refusal(&town.bd(["create", "Slip", "--type", "incidnt"]));
    assert_says(&error, &["did you mean incident?"]);

    // An import keeps what it brings, and such a bead can still be changed.
    town.write("odd.jsonl", "{\"id\":\"hq-odd\",\"title\":\"Odd\",\"issue_type\":\"oddity\",\"status\":\"open\",\"priority\":2}\n");
    town.bd(["import", "odd.jsonl"]).ok();
    town.bd(["update", "hq-odd", "--priority", "1", "--type", "oddity"]).ok();
    assert_eq!(town.show("hq-odd")["issue_type"], "oddity");
}

#[test]
fn parts_are_listed_by_their_numbers_everywhere() {
    let town = town();
    let epic = town.create("Epic", &["-t", "epic"]);
    for number in 1..=11 {
        town.create(&format!("Part {number}"), &["--parent", &epic]);
    }
    let expected: Vec<String> = (1..=11).map(|number| format!("{epic}.{number}")).collect();

    assert_eq!(town.ids(&["children", &epic]), expected);
    let shown = town.json(&["show", &epic, "--include-dependents"]);
    assert_eq!(crate::support::texts(&shown[0]["dependents"], "id"), expected);
    let tree = town.json(&["dep", "tree", &epic, "--direction", "up"]);
    let below: Vec<String> =
        crate::support::texts(&tree, "id").into_iter().filter(|id| *id != epic).collect();
    assert_eq!(below, expected);
}
