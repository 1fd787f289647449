//! `gt status`, `gt doctor`, `gt completions`: how the town stands.

use std::fs;

use gt_testkit::{Cluster, Sandbox};
use serde_json::{Value, json};

use crate::support::{Steps as _, assert_says, keys, town, town_on, town_with_rigs};

#[test]
fn status_counts_beads_and_rigs() {
    let town = town_with_rigs(&["web"]);
    let first = town.create("First", &["--rig", "web"]);
    town.create("Second", &["--rig", "web", "--deps", &first]);
    town.bead("hq-mine", &[]);
    town.bead("hq-done", &[]);
    town.bd(["close", "hq-done"]).ok();
    town.bd(["update", &first, "--claim"]).ok();

    let status = town.gt_json(&["status"]);

    assert_eq!(status["town"], town.cwd().display().to_string());
    assert_eq!(status["beads"], json!({"total": 4, "open": 2, "in_progress": 1, "closed": 1}));
    assert_eq!(
        (&status["ready"], &status["waiting"], &status["active"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(
        status["rigs"],
        json!([{
            "name": "web", "prefix": "we", "state": "active",
            "beads": {"in_progress": 1, "open": 1},
        }])
    );
    assert_eq!(status["recent_events"].as_array().unwrap().len(), 5);
}

#[test]
fn status_is_readable() {
    let town = town_with_rigs(&["web"]);
    let id = town.create("Boil water", &["--rig", "web"]);

    let status = town.gt(["status"]).ok();

    assert_says(
        &status.stdout,
        &[
            "1 bead: 1 ready, 0 in progress, 0 waiting, 0 closed",
            "web",
            "active",
            "Recent events",
            &format!("{id} created · Boil water"),
        ],
    );
    assert_eq!(status.stderr, "");
}

#[test]
fn status_of_an_empty_town_says_what_comes_next() {
    let status = town().gt(["status"]).ok();
    assert_says(&status.stdout, &["0 beads", "gt rig add"]);
}

/// The grade the doctor gives to what this check looks at.
#[track_caller]
fn grade<'a>(examined: &'a Value, check: &str) -> &'a str {
    let checks = examined.as_array().unwrap();
    let found = checks.iter().find(|found| found["check"] == check);
    found.expect("such a check")["grade"].as_str().unwrap()
}

#[test]
fn a_healthy_town_gets_a_clean_bill() {
    let town = town_with_rigs(&["web"]);
    let first = town.create("First", &[]);
    town.create("Second", &["--deps", &first]);

    let examined = town.gt_json(&["doctor"]);

    // The servers of the tests run without fsync.
    let is_of_town = |check: &&Value| check["check"] != "database";
    for check in examined.as_array().unwrap().iter().filter(is_of_town) {
        assert_eq!(check["grade"], "good", "{check}");
        assert_eq!(keys(check), ["check", "detail", "grade"]);
    }
    let said = town.gt(["doctor"]).ok();
    assert_says(&said.stdout, &["✓", "store", "derived values", "rig", "git"]);
}

#[test]
fn a_server_that_may_lose_commits_is_a_warning() {
    let town = town_on(&Cluster::shared().fresh_database());
    let examined = town.gt(["doctor", "--json"]).ok().json();
    assert_eq!(grade(&examined, "database"), "warning");
    let said = town.gt(["doctor"]).ok();
    assert_says(&said.stdout, &["fsync = off", "full_page_writes = off"]);
}

#[test]
fn doctor_says_what_a_review_is_worth_where_workers_are_the_same_user() {
    let town = town_with_rigs(&["web", "api"]);
    let review = |examined: &Value| {
        let checks = examined.as_array().unwrap().clone();
        checks.into_iter().find(|check| check["check"] == "review")
    };
    assert_eq!(review(&town.gt_json(&["doctor"])), None);
    town.gt(["config", "set", "rig.web.review", "required"]).ok();
    let found = review(&town.gt_json(&["doctor"])).unwrap();
    assert_eq!(found["grade"], "good", "it is no problem");
    assert_says(found["detail"].as_str().unwrap(), &["web: ", "stops mistakes, not attackers"]);
    town.gt(["config", "set", "rig.api.protect", "ci/**"]).ok();
    let found = review(&town.gt_json(&["doctor"])).unwrap();
    assert_says(found["detail"].as_str().unwrap(), &["api, web: "]);
}

#[test]
fn a_missing_rig_directory_is_a_warning() {
    let town = town_with_rigs(&["web"]);
    fs::remove_dir(town.cwd().join("web")).unwrap();

    let examined = town.gt(["doctor", "--json"]).ok().json();

    assert_eq!(grade(&examined, "rig"), "warning");
    let said = town.gt(["doctor"]).ok();
    assert_says(&said.stdout, &["its directory", "is gone", "mkdir"]);
}

#[test]
fn a_problem_makes_the_doctor_fail() {
    let town = town();
    let repository = town.git_repository("project");
    town.gt(["rig", "add", "web", repository.to_str().unwrap()]).ok();
    town.gt(["config", "set", "rig.web.command", "sh -c true"]).ok();
    fs::remove_dir_all(&repository).unwrap();

    let examined = town.gt(["doctor", "--json"]).fails(1);

    assert_eq!(grade(&examined.json(), "rig"), "problem");
    assert_says(&examined.stderr, &["Error: 1 problem was found"]);
    let said = town.gt(["doctor"]).fails(1);
    assert_says(&said.stdout, &["✗", "is gone", "gt rig dock web"]);
}

#[test]
fn an_unreadable_settings_file_is_a_problem() {
    let town = town();
    town.write("settings/config.json", "not JSON");

    let examined = town.gt(["doctor", "--json"]).fails(1);

    assert_eq!(grade(&examined.json(), "settings"), "problem");
}

#[test]
fn completions_are_made_for_every_shell_and_both_programs() {
    let town = town();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let gt = town.gt(["completions", shell]).ok();
        assert_says(&gt.stdout, &["GT_COMPLETE", "gt"]);
        let bd = town.gt(["completions", shell, "--program", "bd"]).ok();
        assert_says(&bd.stdout, &["GT_COMPLETE", "bd"]);
    }
}

/// The completions that bash offers for these words, of which the last is being typed.
fn completed(town: &Sandbox, words: &[&str]) -> Vec<String> {
    let program = words[0];
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "source <(gt completions bash --program {program}); COMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9; \
         _clap_complete_{program} {program} {}; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len() - 1,
        quoted.last().unwrap(),
    );
    let programs = town.bd_path().parent().map(std::path::Path::to_owned).unwrap();
    let bash = town.command("bash").args(["-c", &script]).path_first(programs);
    let offered = bash.run().ok().stdout;
    let values = offered.lines().filter(|line| !line.starts_with('-'));
    values.map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn bash_completes_ids_rigs_settings_and_values() {
    let town = town();
    town.gt(["rig", "add", "web", "--prefix", "we"]).ok();
    town.bead("we-tea", &[]);
    town.bead("we-milk", &[]);
    town.bd(["close", "we-milk"]).ok();

    assert_eq!(completed(&town, &["gt", "why", "we-"]), ["we-tea"]);
    assert_eq!(completed(&town, &["bd", "show", "we-t"]), ["we-tea"]);
    assert_eq!(completed(&town, &["gt", "inbox", "--rig", ""]), ["web"]);
    let keys = completed(&town, &["gt", "config", "set", "rig.web.max"]);
    assert_eq!(keys, ["rig.web.max_polecats"]);
    let values = completed(&town, &["gt", "config", "set", "scheduler.order", ""]);
    assert_eq!(values, ["priority", "fifo"]);
    assert!(completed(&town, &["gt", "conv"]).contains(&"convoy".to_owned()));
}

#[test]
fn completions_need_no_town() {
    let sandbox = crate::support::nowhere();
    sandbox.gt(["completions", "bash"]).ok();
}

#[test]
fn a_town_that_does_not_open_is_a_finding() {
    let town = town();
    std::fs::write(town.cwd().join(".gt/town.toml"), "id = [").unwrap();

    let ran = town.gt(["doctor"]).fails(1);

    assert!(ran.stdout.contains("town.toml is damaged"), "{ran}");
}

#[test]
fn doctor_fails_for_a_missing_agent_program_and_names_the_rig() {
    let town = town();
    let repository = town.git_repository("project");
    town.gt(["rig", "add", "web", repository.to_str().unwrap(), "--executor", "process"]).ok();
    town.gt(["config", "set", "rig.web.command", "no-such-agent {bead}"]).ok();

    let examined = town.gt(["doctor", "--json"]).fails(1);

    assert_eq!(grade(&examined.json(), "agent"), "problem");
    let said = town.gt(["doctor"]).fails(1);
    let mends = "gt config set rig.web.command";
    assert_says(&said.stdout, &["no-such-agent is not installed here", "web", mends]);
    town.gt(["config", "agent", "set", "mine", "command", "no-such-agent"]).ok();
    for (key, other) in [("worker.runtime", "mine"), ("rig.web.runtime", "mine")] {
        town.gt(["config", "set", key, other]).ok();
        let said = town.gt(["doctor"]).fails(1);
        assert_says(&said.stdout, &[&format!("gt config set {key} <name>")]);
        town.gt(["config", "unset", key]).ok();
    }
    town.gt(["config", "set", "rig.web.command", "sh -c true"]).ok();
    assert_eq!(grade(&town.gt_json(&["doctor"]), "agent"), "good");
}

#[test]
fn doctor_fails_for_an_origin_that_does_not_answer() {
    let town = town();
    let repository = town.git_repository("project");
    town.gt(["rig", "add", "web", repository.to_str().unwrap(), "--executor", "process"]).ok();
    town.gt(["config", "set", "rig.web.command", "sh -c true"]).ok();
    fs::write(repository.join(".git/HEAD"), "damaged").unwrap();

    let examined = town.gt(["doctor", "--json"]).fails(1);

    assert_eq!(grade(&examined.json(), "origin"), "problem");
}

#[test]
fn doctor_fails_for_an_origin_without_the_branch_of_the_rig() {
    let town = town();
    let repository = town.git_repository("project");
    town.gt(["rig", "add", "web", repository.to_str().unwrap(), "--executor", "process"]).ok();
    town.gt(["config", "set", "rig.web.command", "sh -c true"]).ok();
    assert_eq!(grade(&town.gt_json(&["doctor"]), "origin"), "good");
    crate::trees::git(&town, &repository, &["branch", "-m", "trunk"]);

    let examined = town.gt(["doctor", "--json"]).fails(1);

    assert_eq!(grade(&examined.json(), "origin"), "problem");
    let said = town.gt(["doctor"]).fails(1);
    assert_says(&said.stdout, &["the origin has no branch", "gt rig set web branch <branch>"]);
    town.gt(["rig", "set", "web", "branch", "trunk"]).ok();
    assert_eq!(grade(&town.gt_json(&["doctor"]), "origin"), "good");
}

#[test]
fn doctor_fails_for_beads_that_wait_for_each_other_through_their_parents() {
    let town = town_with_rigs(&["web"]);
    let [one, two] =
        ["One", "Two"].map(|title| town.create(title, &["--type", "epic", "--rig", "web"]));
    let record = |id: &str, parent: &str, awaited: &str| {
        json!({"id": id, "title": id, "status": "open", "priority": 2, "issue_type": "task", "dependencies": [
            {"issue_id": id, "depends_on_id": parent, "type": "parent-child"},
            {"issue_id": id, "depends_on_id": awaited, "type": "waits-for"},
        ]})
    };
    let lines = format!("{}\n{}\n", record("we-a", &one, &two), record("we-b", &two, &one));
    town.write("tangle.jsonl", &lines);
    town.bd(["import", "tangle.jsonl"]).ok();

    let examined = town.gt(["doctor", "--json"]).fails(1);

    assert_eq!(grade(&examined.json(), "dependencies"), "problem");
    assert_says(&town.gt(["doctor"]).fails(1).stdout, &["we-a", "we-b", "bd dep cycles"]);
}

#[test]
fn doctor_fails_for_formulas_that_cannot_be_used() {
    let town = town();
    let empty = town.write(".gt/formulas/mol-review.formula.toml", "");
    town.write(".gt/formulas/broken.formula.toml", "formula = [");
    town.write(
        ".gt/formulas/mol-release.formula.toml",
        "# Nothing yet\nformula = \"mol-release\"\n",
    );

    let examined = town.gt(["doctor", "--json"]).fails(1);

    assert_eq!(grade(&examined.json(), "formulas"), "problem");
    let said = town.gt(["doctor"]).fails(1).stdout;
    let empty = empty.display().to_string();
    assert_says(&said.replace('\n', " "), &["is empty", "broken.formula.toml", "it has no step"]);
    let shown = town.bd(["formula", "show", "mol-review"]).fails(1);
    assert_says(&shown.stderr, &[&format!("{empty} is empty")]);
}

#[test]
fn doctor_fails_for_a_docked_rig_with_scheduled_work() {
    let town = town_with_rigs(&["web"]);
    town.gt(["config", "set", "rig.web.command", "sh -c true"]).ok();
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    let bead = town.create("Boil water", &["--rig", "web"]);
    town.gt(["sling", &bead]).ok();
    town.gt(["rig", "dock", "web"]).ok();

    let examined = town.gt(["doctor", "--json"]).fails(1);

    assert_eq!(grade(&examined.json(), "docked"), "problem");
    let said = town.gt(["doctor"]).fails(1);
    assert_says(&said.stdout, &["web is docked", "gt rig undock web"]);
}

#[test]
fn a_rig_that_no_host_of_the_town_works_on_is_a_problem() {
    let town = town_with_rigs(&["web"]);
    town.gt(["config", "set", "rig.web.host", "builder"]).ok();

    let found = town.gt(["doctor"]).fails(1);

    let told = "web: only builder works on it, and the town has no such host";
    assert_says(&found.stdout, &["✗", told, "gt config unset rig.web.host"]);
}
