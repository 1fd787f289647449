//! Output: data on one stream, everything else on the other; JSON that programs can trust.

use gt_testkit::Sandbox;
use serde_json::{Value, json};

use crate::agents::town_with_agent;
use crate::support::{
    Steps as _, assert_says, error_line, json_refusal, keys, nowhere, printed_keys, refusal, town,
};

#[test]
fn json_is_indented_by_two_and_escaped_for_pages() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bd(["update", "hq-a", "--title", "<b> & \u{2028} \"q\" é"]).ok();

    let shown = town.bd(["show", "hq-a", "--json"]).ok();

    assert!(shown.stdout.starts_with("[\n  {\n    \"id\": \"hq-a\",\n"));
    assert!(shown.stdout.ends_with("\n  }\n]\n"));
    assert_says(&shown.stdout, &[r#""title": "\u003cb\u003e \u0026 \u2028 \"q\" é""#]);
}

#[test]
fn objects_are_sorted_and_carry_the_version_of_the_schema() {
    let town = town();
    town.gt(["rig", "add", "web"]).ok();
    for command in [
        &["bd", "create", "A task"][..],
        &["bd", "stats"],
        &["bd", "count", "--by-type"],
        &["bd", "config", "list"],
        &["bd", "kv", "list"],
        &["bd", "prime"],
        &["bd", "info"],
        &["bd", "version"],
        &["bd", "query", "ready", "--parse-only"],
        &["status"],
        &["rig", "status", "web"],
        &["config", "get", "queue.enabled"],
    ] {
        let gt = town.command(town.gt_path()).args(command);
        let printed = gt.arg("--json").run().ok();
        let keys = printed_keys(&printed.stdout, 2);
        assert!(keys.is_sorted(), "{command:?}: {keys:?}");
        assert_eq!(printed.json()["schema_version"], 1, "{command:?}");
    }
}

#[test]
fn an_envelope_can_be_asked_for() {
    let town = town();
    town.bead("hq-a", &["-l", "x"]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    for command in [
        &["show", "hq-a"][..],
        &["list"],
        &["list", "--status", "closed"],
        &["ready"],
        &["ready", "--explain"],
        &["label", "list", "hq-a"],
        &["activity"],
        &["stats"],
        &["query", "label=x"],
        &["children", "hq-a"],
        &["stale", "--days", "1"],
        &["prime"],
        &["show", "hq-a", "--refs"],
        &["show", "hq-a", "--children"],
        &["defer", "hq-a"],
        &["create", "--dry-run", "x", "--id", "hq-x"],
    ] {
        let run = |envelope: &str| {
            let bd = town.start_bd(command).arg("--json");
            bd.env("BD_JSON_ENVELOPE", envelope).run().ok().json()
        };
        let (plain, mut wrapped) = (run("0"), run("1"));
        assert_eq!(keys(&wrapped), ["data", "schema_version"], "{command:?}");
        let mut data = wrapped["data"].take();
        if let Some(object) = data.as_object_mut() {
            object.insert("schema_version".to_owned(), json!(1));
            // Two dry runs are made at two moments.
            object.retain(|key, _| !key.ends_with("_at"));
        }
        let mut plain = plain;
        if let Some(object) = plain.as_object_mut() {
            object.retain(|key, _| !key.ends_with("_at"));
        }
        assert_eq!(data, plain, "{command:?}");
    }
    let failed = town.bd_with("BD_JSON_ENVELOPE", "1", &["show", "hq-none", "--json"]);
    let failed = failed.fails(1).json();
    assert_says(failed["data"]["error"].as_str().unwrap(), &["no issues found"]);
}

#[test]
fn every_failure_is_an_object_with_an_error_too() {
    let town = town();
    for command in [
        &["create", ""][..],
        &["create", "x", "--priority", "9"],
        &["show", "hq-none"],
        &["update", "hq-none", "--title", "x"],
        &["close", "hq-none"],
        &["reopen", "hq-none"],
        &["delete", "hq-none"],
        &["list", "--rig", "nope"],
        &["dep", "add", "hq-none", "hq-none"],
        &["label", "add", "hq-none", "x"],
        &["comments", "hq-none"],
        &["import", "missing"],
        &["activity", "--since", "x"],
    ] {
        let bd = town.start_bd(command).arg("--json").run();
        let error = json_refusal(&bd);
        assert!(!error.is_empty());
        assert_eq!(keys(&bd.json()), ["error", "schema_version"], "{command:?}");
    }
}

#[test]
fn a_wrong_flag_is_1_in_bd_and_2_in_gt() {
    let town = town();
    for command in ["list", "create", "show", "update", "import"] {
        let wrong = town.bd([command, "--no-such-flag"]).fails(1);
        assert_says(&wrong.stderr, &["Error: unknown flag: --no-such-flag\n"]);
        assert_eq!(wrong.stdout, "");
    }
    for command in ["status", "install", "feed"] {
        let wrong = town.gt([command, "--no-such-flag"]).fails(2);
        assert_says(&wrong.stderr, &["Error: unknown flag: --no-such-flag\n"]);
    }
    town.gt(["bd", "list", "--no-such-flag"]).fails(1);
}

#[test]
fn a_wrong_flag_is_an_object_too_when_json_was_asked_for() {
    let town = town();
    let wrong = town.bd(["list", "--no-such-flag", "--json"]).fails(1);
    assert_eq!(wrong.json()["error"], "unknown flag: --no-such-flag");
    let wrong = town.gt(["status", "--no-such-flag", "--json"]).fails(2);
    assert_eq!(wrong.json()["error"], "unknown flag: --no-such-flag");
    let wrong = town.bd(["list", "--limit", "x", "--json"]).fails(1);
    assert_says(wrong.json()["error"].as_str().unwrap(), &["invalid value 'x'"]);
}

#[test]
fn an_unknown_command_gets_a_suggestion() {
    let town = town();
    let wrong = town.bd(["lst"]).fails(1);
    assert_says(&wrong.stderr, &["Error: ", "lst", "'list'"]);
    let wrong = town.gt(["statsu"]).fails(2);
    assert_says(&wrong.stderr, &["Error: ", "statsu", "'status'"]);
}

#[test]
fn help_is_data_and_has_examples() {
    let sandbox = nowhere();
    for command in [
        "init", "create", "show", "update", "close", "reopen", "delete", "list", "ready",
        "blocked", "dep", "label", "comments", "search", "stats", "count", "activity", "import",
        "export", "config",
    ] {
        let help = sandbox.bd([command, "--help"]).ok();
        assert_says(&help.stdout, &["Usage: bd", command, "Example"]);
        assert_eq!(help.stderr, "");
    }
    for command in ["install", "rig", "config", "status", "feed", "doctor", "completions"] {
        let help = sandbox.gt([command, "--help"]).ok();
        assert_says(&help.stdout, &["Usage: gt", command, "Example"]);
    }
    let help = sandbox.gt(["bd", "list", "--help"]).ok();
    assert_says(&help.stdout, &["Usage: gt bd list"]);
    assert_says(&sandbox.gt(["--version"]).ok().stdout, &["gt "]);
    assert_says(&sandbox.bd(["--version"]).ok().stdout, &["bd "]);
}

#[test]
fn a_command_without_its_verb_shows_what_there_is() {
    let sandbox = nowhere();
    for (gt, code) in [(&[][..], 2), (&["rig"], 2), (&["config"], 2), (&["bd"], 1)] {
        let shown = sandbox.gt(gt).fails(code);
        assert_eq!(shown.stdout, "");
        assert_says(&shown.stderr, &["Usage: gt"]);
        assert!(!shown.stderr.starts_with("Error: "), "help is no error\n{shown}");
    }
}

#[test]
fn quiet_prints_only_what_was_asked_for() {
    let town = town();
    town.bead("hq-a", &[]);

    assert_eq!(town.bd(["update", "hq-a", "--title", "b", "-q"]).ok().stdout, "");
    assert_eq!(town.bd(["close", "hq-a", "--quiet"]).ok().stdout, "");
    assert_says(&town.bd(["show", "hq-a", "-q"]).ok().stdout, &["hq-a"]);
    assert_eq!(town.gt(["install", ".", "-q"]).ok().stdout, "");
    assert_says(&error_line(&town.bd(["show", "hq-x", "-q"])), &["hq-x"]);
}

#[test]
fn without_a_terminal_there_is_no_colour_and_nothing_is_cut() {
    let town = town();
    let title = "long ".repeat(90);
    let id = town.create(&title, &["-p", "0", "-l", "x"]);
    for command in [&["list"][..], &["show", &id], &["ready"], &["ready", "--explain"], &["stats"]]
    {
        let printed = town.bd(command).ok();
        assert!(!printed.stdout.contains('\u{1b}'), "{printed}");
    }
    assert_says(&town.bd(["list"]).ok().stdout, &[title.trim_end()]);
    for command in [&["status"][..], &["doctor"], &["config", "list"]] {
        assert!(!town.gt(command).ok().stdout.contains('\u{1b}'));
    }
}

/// The output of a command on a terminal of this width.
fn on_terminal(town: &Sandbox, columns: usize, environment: &str, command: &str) -> String {
    let (program, command) = match command.strip_prefix("gt ") {
        Some(rest) => (town.gt_path().to_owned(), rest),
        None => (town.bd_path(), command),
    };
    let command =
        format!("stty cols {columns} rows 20; {environment} '{}' {command}", program.display());
    let script = town.command("script").args(["-qec", &command, "/dev/null"]);
    script.env("TERM", "xterm").run().ok().stdout.replace("\r\n", "\n")
}

/// The text without escape sequences.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[test]
fn on_a_terminal_a_table_fits_its_width_and_has_colour() {
    let town = town();
    town.create(&"wide ".repeat(40), &[]);
    town.create(&"🫖 ".repeat(40), &[]);

    // Titles that have no room are below their rows.
    for (columns, lines) in [(40, 4), (60, 2), (100, 2)] {
        let printed = on_terminal(&town, columns, "", "list");
        assert!(printed.contains('\u{1b}'), "{printed}");
        let printed = plain(&printed);
        assert_eq!(printed.lines().count(), lines, "{printed}");
        for line in printed.lines() {
            // Every emoji here takes two columns.
            let width: usize = line.chars().map(|c| if c == '🫖' { 2 } else { 1 }).sum();
            assert!(width <= columns, "{width}: {line}");
        }
    }
}

#[test]
fn on_a_terminal_the_counts_of_a_town_break_between_words() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bd(["defer", "hq-a"]).ok();

    let printed = plain(&on_terminal(&town, 50, "", "gt status"));

    let counts: Vec<&str> = printed
        .lines()
        .skip_while(|line| !line.starts_with("1 bead: "))
        .take_while(|line| line.starts_with("1 bead: ") || line.starts_with("    "))
        .collect();
    assert!(counts.iter().all(|line| line.len() <= 50), "{printed}");
    let said: Vec<&str> = counts.iter().flat_map(|line| line.split_whitespace()).collect();
    assert!(said.join(" ").ends_with("1 deferred, held or no work"), "{printed}");
}

#[test]
fn on_a_terminal_the_blockers_of_a_past_bead_are_not_cut() {
    let town = town_with_agent("true");
    town.gt(["config", "set", "scheduler.max_polecats", "5"]).ok();
    for bead in ["we-first-blocker", "we-second-blocker", "we-blocked"] {
        town.bead(bead, &[]);
    }
    for blocker in ["we-first-blocker", "we-second-blocker"] {
        town.bd(["dep", "add", "we-blocked", blocker]).ok();
    }
    let made = town.gt_json(&["convoy", "create", "Past", "we-blocked"]);
    let (convoy, last) = (made["convoy"].as_str().unwrap(), town.last_event());

    let command = format!("gt convoy status {convoy} --at {last}");
    let printed = plain(&on_terminal(&town, 60, "", &command));

    assert_says(&printed, &["blocked by we-first-blocker, we-second-blocker"]);
}

#[test]
fn on_a_terminal_colour_can_be_declined() {
    let town = town();
    town.bead("hq-a", &[]);
    for (environment, command) in [
        ("NO_COLOR=1", "list"),
        ("NO_COLOR=1", "show hq-a"),
        ("TERM=dumb", "list"),
        ("TERM=dumb", "show hq-a"),
        ("", "list --json"),
    ] {
        let printed = on_terminal(&town, 80, environment, command);
        assert!(!printed.contains('\u{1b}'), "{environment} {command}\n{printed}");
        assert_says(&printed, &["hq-a"]);
    }
}

/// A bead whose texts would take over a terminal.
fn hostile() -> Sandbox {
    let town = town();
    let evil = "one\ntwo\u{1b}]0;owned\u{7}\u{1b}[31mred\u{9b}2J\r\u{8}\u{7f}";
    let line = json!({
        "id": "hq-evil", "title": evil, "labels": [evil], "assignee": evil, "created_by": evil,
        "description": evil, "comments": [{"author": evil, "text": evil}],
        "status": "closed", "close_reason": evil,
    });
    town.import(&line.to_string());
    town.bead("hq-b", &["--deps", "hq-evil"]);
    town
}

#[test]
fn text_of_others_cannot_reach_the_terminal() {
    let town = hostile();
    for command in [
        "show hq-evil",
        "list --all",
        "activity",
        "comments hq-evil",
        "label list hq-evil",
        "label list-all",
        "dep list hq-b",
        "dep tree hq-b",
        "dep tree hq-b --format mermaid",
        "search two --status all",
        "count --by-assignee",
        "delete hq-evil",
        "ready --explain",
    ] {
        let printed = on_terminal(&town, 120, "NO_COLOR=1", command);
        let control = printed.chars().find(|c| c.is_control() && !['\n', '\t'].contains(c));
        assert_eq!(control, None, "{command}\n{printed:?}");
        assert!(!printed.contains("]0;owned\u{7}"), "{command}");
    }
}

#[test]
fn a_title_with_a_line_break_takes_one_line() {
    let town = hostile();
    let listed = town.bd(["list", "--all"]).ok();
    assert_eq!(listed.stdout.lines().count(), 2, "{listed}");
    let activity = town.bd(["activity"]).ok();
    assert_eq!(activity.stdout.lines().count(), 3, "{activity}");
    let tree = town.bd(["dep", "tree", "hq-b"]).ok();
    assert_eq!(tree.stdout.lines().count(), 2, "{tree}");
}

/// A town whose lists are longer than a pipe holds.
fn crowded() -> Sandbox {
    let town = town();
    let lines: Vec<String> = (0..2000)
        .map(|number| {
            format!(r#"{{"id":"hq-{number}","title":"Task {number} {}"}}"#, "x".repeat(80))
        })
        .collect();
    town.import(&lines.join("\n"));
    town
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let town = crowded();
    for command in [
        "list --all",
        "list --all --json",
        "ready --limit 0 --json",
        "ready --explain",
        "ready --explain --json",
        "export",
        "activity --limit 0",
        "activity --limit 0 --json",
        "activity --follow --limit 0",
        "search Task --limit 0",
    ] {
        let script =
            format!("set -o pipefail; '{}' {command} | head -n 1", town.bd_path().display());
        let ended = town.command("bash").args(["-c", &script]).run().ok();
        assert_eq!(ended.stderr, "", "{command}");
        assert_eq!(ended.stdout.lines().count(), 1, "{command}");
    }
}

#[test]
fn help_into_a_closed_pipe_is_no_failure() {
    let sandbox = nowhere();
    let script = format!("set -o pipefail; '{}' --help | true", sandbox.bd_path().display());
    let ended = sandbox.command("bash").args(["-c", &script]).run().ok();
    assert_eq!(ended.stderr, "");
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let town = crowded();
    for command in ["list --all", "export", "list --all --json"] {
        let script = format!("'{}' {command} > /dev/full", town.bd_path().display());
        let ended = town.command("bash").args(["-c", &script]).run();
        assert_says(&refusal(&ended), &["cannot write the output"]);
    }
}

#[test]
fn even_a_short_answer_that_cannot_be_written_is_a_failure() {
    let town = town();
    for command in ["list", "list --json", "stats", "create x --silent"] {
        let script = format!("'{}' {command} > /dev/full", town.bd_path().display());
        let ended = town.command("bash").args(["-c", &script]).run();
        assert_says(&refusal(&ended), &["cannot write the output"]);
    }
}

#[test]
fn everything_that_reads_has_json() {
    let town = town();
    town.gt(["rig", "add", "web"]).ok();
    town.bead("hq-a", &[]);
    for command in [
        &["bd", "list"][..],
        &["bd", "show", "hq-a"],
        &["bd", "ready"],
        &["bd", "blocked"],
        &["bd", "dep", "list", "hq-a"],
        &["bd", "dep", "tree", "hq-a"],
        &["bd", "dep", "cycles"],
        &["bd", "label", "list", "hq-a"],
        &["bd", "label", "list-all"],
        &["bd", "comments", "hq-a"],
        &["bd", "search", "x"],
        &["bd", "stats"],
        &["bd", "count"],
        &["bd", "activity"],
        &["bd", "config", "get", "x"],
        &["bd", "config", "list"],
        &["bd", "delete", "hq-a"],
        &["status"],
        &["doctor"],
        &["feed"],
        &["rig", "list"],
        &["rig", "status", "web"],
        &["config", "list"],
        &["config", "get", "queue.enabled"],
    ] {
        let gt = town.command(town.gt_path()).args(command);
        let printed = gt.arg("--json").run().ok();
        assert!(matches!(printed.json(), Value::Array(_) | Value::Object(_)));
        assert_eq!(printed.stderr, "", "{command:?}");
    }
}
