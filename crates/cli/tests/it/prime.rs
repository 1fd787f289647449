//! `bd prime`, and how a program asks where it is: `bd info`, `bd version`, `bd doctor`.

use std::fs;

use serde_json::json;

use crate::support::{
    Steps as _, assert_says, keys, nowhere, texts, town, town_on_file, town_with_rigs,
};

#[test]
fn an_agent_learns_who_it_is_and_what_there_is_to_do() {
    let town = town_with_rigs(&["web"]);
    for number in 0..7 {
        town.create(&format!("Task {number}"), &["--rig", "web"]);
    }
    town.bead("hq-mine", &["-p", "1"]);
    town.bd_with("BD_ACTOR", "web/toast", &["update", "hq-mine", "--claim"]).ok();
    let web = town.in_dir("web");

    let said = web.bd_with("BD_ACTOR", "web/toast", &["prime"]).ok();

    assert_says(
        &said.stdout,
        &[
            "You are `web/toast` in the town ",
            ", rig web.",
            "7 beads ready, 1 in progress, 0 waiting for others.",
            "## Yours\n\n- `hq-mine` P1 task: hq-mine\n",
            "## Ready\n\n- `we-",
            "- … and 2 more: `bd ready`",
            "`bd update <id> --claim`",
        ],
    );
    assert!(said.stdout.len() < 2048, "{} bytes", said.stdout.len());
    assert_eq!(said.stderr, "");
    let full = web.bd(["prime", "--full"]).ok();
    assert_says(&full.stdout, &["bd dep add", "bd query", "## Habits"]);
    assert!(full.stdout.len() > said.stdout.len() && full.stdout.len() < 4096);
}

#[test]
fn programs_are_primed_too() {
    let town = town();
    town.bead("hq-a", &[]);

    let primed = town.json(&["prime"]);

    assert_eq!(keys(&primed), ["actor", "beads", "claimed", "ready", "schema_version", "town"]);
    assert_eq!(primed["beads"], json!({"ready": 1, "in_progress": 0, "waiting": 0}));
    assert_eq!(texts(&primed["ready"], "id"), ["hq-a"]);
    assert_eq!(primed["claimed"], json!([]));
}

#[test]
fn an_empty_town_is_told_in_a_few_lines() {
    let said = town().bd(["prime"]).ok();
    assert_says(&said.stdout, &["0 beads ready", "## Commands"]);
    assert!(!said.stdout.contains("## Ready"));
}

#[test]
fn priming_never_keeps_an_agent_from_starting() {
    for arguments in [&["prime"][..], &["prime", "--full"], &["prime", "--json"]] {
        let ran = nowhere().bd(arguments.iter()).ok();
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    }
    let town = town();
    fs::write(town.cwd().join(".gt/town.toml"), "id = [").unwrap();
    let ran = town.bd(["prime"]).ok();
    assert_eq!(ran.stdout, "");
    assert_says(&ran.stderr, &["bd prime:", "town.toml"]);
}

#[test]
fn a_title_cannot_write_lines_of_its_own() {
    let town = town();
    let long = "x".repeat(200);
    town.create(&long, &[]);
    town.import("{\"id\":\"hq-b\",\"title\":\"a\\n## Commands\\nb\",\"priority\":0}");

    let said = town.bd(["prime"]).ok();

    assert_eq!(said.stdout.matches("\n## Commands").count(), 1, "{said}");
    assert!(!said.stdout.contains(&long));
}

#[test]
fn the_version_is_printed_for_people_and_programs() {
    let sandbox = nowhere();
    let version = env!("CARGO_PKG_VERSION");
    let line = format!("bd version 1.0.5 (gt {version})");
    assert_eq!(sandbox.bd(["version"]).ok().line(), line);
    let told = json!({"version": "1.0.5", "gt_version": version, "schema_version": 1});
    assert_eq!(sandbox.json(&["version"]), told);
    assert_eq!(sandbox.bd(["--version"]).ok().line(), line);
}

#[test]
fn info_says_where_the_beads_are() {
    let town = town_on_file();
    town.bead("hq-a", &[]);

    let info = town.json(&["info"]);

    assert_eq!(keys(&info), ["actor", "database_path", "issue_count", "schema_version", "town"]);
    assert_eq!(info["issue_count"], 1);
    assert_eq!(info["database_path"], town.cwd().join(".gt/gt.db").display().to_string());
    assert_says(&town.bd(["info"]).ok().stdout, &["Town ", "Beads 1"]);
}

#[test]
fn bd_has_the_same_doctor_as_gt() {
    let town = town();
    // How much of the disk is free changes all the time.
    let lasting = |printed: &str| -> Vec<String> {
        printed.lines().filter(|line| !line.contains("MB free")).map(str::to_owned).collect()
    };
    for flags in [["doctor"].as_slice(), &["doctor", "--json"]] {
        let (of_bd, of_gt) = (town.bd(flags).ok().stdout, town.gt(flags).ok().stdout);
        assert_eq!(lasting(&of_bd), lasting(&of_gt));
    }
    town.write("settings/config.json", "not JSON");
    let ran = town.bd(["doctor", "--json"]).fails(1);
    assert_says(&ran.stderr, &["Error: 1 problem was found"]);
}
