//! `gt config account`: the accounts that runs are charged to.

use std::fs;

use gt_testkit::wait_until;
use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, keys, refusal, strings, texts, town};
use crate::trees::{Trees as _, town_with_trees};

#[test]
fn accounts_are_added_listed_and_removed() {
    let town = town();
    assert_says(&town.gt(["config", "account", "list"]).ok().stdout, &["No accounts yet"]);

    let added = town
        .gt(["config", "account", "add", "work", "--config-dir", "claude", "--max-runs", "5"])
        .ok();
    assert_says(&added.stdout, &["Added the account work", "gt sling --account work"]);
    town.gt(["config", "account", "add", "ann@lab", "--env", "B=2=3", "--env", "A="]).ok();

    let list = town.gt_json(&["config", "account", "list"]);
    assert_eq!(texts(&list, "handle"), ["ann@lab", "work"]);
    assert_eq!(strings(&list[0]["environment"]), ["B", "A"]);
    assert_eq!(list[0]["max_runs"], 0);
    assert_eq!(list[1]["max_runs"], 5);
    assert_eq!(list[1]["config_dir"], json!(town.cwd().join("claude")));
    let expected = ["config_dir", "created_at", "default", "environment", "handle", "max_runs"];
    assert_eq!(keys(&list[0]), expected);
    assert_says(&town.gt(["config", "account", "list"]).ok().stdout, &["ann@lab", "no limit"]);

    town.gt(["config", "account", "remove", "work"]).ok();
    let list = town.gt_json(&["config", "account", "list"]);
    assert_eq!(texts(&list, "handle"), ["ann@lab"]);
}

#[test]
fn one_account_is_the_default_or_none() {
    let town = town();
    for handle in ["one", "two"] {
        town.gt(["config", "account", "add", handle]).ok();
    }
    let defaults = || {
        let list = town.gt_json(&["config", "account", "list"]);
        let list = list.as_array().unwrap().clone();
        let defaults = list.into_iter().filter(|account| account["default"] == true);
        defaults.map(|account| account["handle"].clone()).collect::<Vec<_>>()
    };
    assert!(defaults().is_empty(), "no account is charged unless a default is set");

    let set = town.gt(["config", "account", "default", "one"]).ok();
    assert_says(&set.stdout, &["The default account is one"]);
    let again = town.gt(["config", "account", "default", "one"]).ok();
    assert_says(&again.stdout, &["already"]);
    town.gt(["config", "account", "default", "two"]).ok();
    assert_eq!(defaults(), ["two"]);

    let none = town.gt_json(&["config", "account", "default", "--none"]);
    assert_eq!(none["default"], json!(null));
    assert_eq!(none["changed"], true);
    assert!(defaults().is_empty());

    town.gt(["config", "account", "default", "one"]).ok();
    let removed = town.gt(["config", "account", "remove", "one"]).ok();
    assert_says(&removed.stdout, &["no default account now"]);
}

#[test]
fn an_unknown_account_is_refused_with_the_known_ones() {
    let town = town();
    for handle in ["work", "lab"] {
        town.gt(["config", "account", "add", handle]).ok();
    }
    for command in [["remove", "wrok"], ["default", "wrok"]] {
        let refused = town.gt(["config", "account"].into_iter().chain(command));
        assert_says(&refusal(&refused), &["account \"wrok\" not found", "lab, work"]);
    }
}

#[test]
fn wrong_accounts_are_refused_and_change_nothing() {
    let town = town();
    town.gt(["config", "account", "add", "work"]).ok();
    let before = town.last_event();
    for (arguments, reason) in [
        (&["-work"][..], ""),
        (&["a b"], "not a name for an account"),
        (&[""], "not a name for an account"),
        (&["work"], "there is an account work already"),
        (&["x", "--env", "s3cret"], "--env wants NAME=VALUE"),
        (&["x", "--env", "1A=s3cret"], "not the name of a variable"),
        (&["x", "--env", "A=s3cret", "--env", "A=s3cret"], "given twice"),
        (&["x", "--max-runs", "-1"], ""),
        (&["x", "--max-runs", "many"], ""),
    ] {
        let all = ["config", "account", "add"].iter().chain(arguments);
        let ran = town.gt(all);
        assert_ne!(ran.code, 0, "{ran}");
        assert_says(&ran.stderr, &[reason]);
        assert!(!ran.stderr.contains("s3cret"), "{ran}");
    }
    let ran = town.gt(["config", "account", "add", "a b", "--json"]);
    assert_says(&json_refusal(&ran), &["not a name for an account"]);
    assert_eq!(town.last_event(), before);
    assert_eq!(texts(&town.gt_json(&["config", "account", "list"]), "handle"), ["work"]);
}

#[test]
fn keys_in_the_environment_are_shown_nowhere() {
    let town = town();
    let added = town.gt(["config", "account", "add", "lab", "--env", "API_KEY=s3cret"]).ok();
    let shown = [
        added.stdout,
        town.gt(["config", "account", "list"]).ok().stdout,
        town.gt_json(&["config", "account", "list"]).to_string(),
        town.gt(["feed", "--json"]).ok().stdout,
        town.gt(["status", "--json"]).ok().stdout,
        town.export(),
    ];
    for text in &shown {
        assert!(!text.contains("s3cret"), "{text}");
    }
    assert_says(&shown[1], &["API_KEY"]);
    assert_says(&shown[3], &["account_changed", "lab"]);
}

#[test]
fn accounts_that_came_with_a_gas_town_are_taken_over_when_asked() {
    let town = town();
    town.write("old/mayor/town.json", "{}");
    town.write(
        "old/mayor/accounts.json",
        r#"{"version": 1, "default": "work", "accounts": {
            "work": {"email": "a@example.com", "config_dir": "~/.claude-accounts/work"},
            "lab": {"config_dir": "/srv/lab"}, "not a handle": {}}}"#,
    );
    let nothing = town.gt(["config", "account", "import"]);
    assert_says(&refusal(&nothing), &["gt import"]);
    town.gt(["import", "old"]).ok();
    town.gt(["config", "account", "add", "lab", "--max-runs", "2"]).ok();

    let hint = town.gt(["config", "account", "list"]).ok().stdout;
    assert_says(&hint, &["work", "gt config account import"]);
    let imported = town.gt(["config", "account", "import"]).ok().stdout;
    assert_says(&imported, &["Added the account work", "lab: it is here already", "not a handle"]);

    let list = town.gt_json(&["config", "account", "list"]);
    assert_eq!(texts(&list, "handle"), ["lab", "work"]);
    assert_eq!(list[0]["config_dir"], "", "what is here stays");
    let directory = list[1]["config_dir"].as_str().unwrap();
    assert!(directory.starts_with(town.root().to_str().unwrap()), "{directory}");
    assert!(directory.ends_with(".claude-accounts/work"), "{directory}");
    assert_eq!(list[1]["default"], true);
}

#[test]
fn keys_of_accounts_are_masked_where_text_is_shown_or_sent() {
    const KEY: &str = "sk-test-0123456789";
    let town = town_with_trees("process");
    let told = town.cwd().join("told.txt");
    let program = town.write_script("tell.sh", &format!("cat >> '{}'\n", told.display()));
    town.gt(["config", "set", "notify.command", &program.display().to_string()]).ok();
    let environment = format!("API_KEY={KEY}");
    let address = "BASE_URL=https://example.com/v1";
    let variables = ["--env", &environment, "--env", "MODE=fast", "--env", address];
    town.gt([&["config", "account", "add", "work"][..], &variables].concat()).ok();
    town.script(
        "we-1",
        "gt mail send mayor -s \"The key is $API_KEY\"; gt escalate \"What is $API_KEY for?\"; \
         echo \"fast $API_KEY at $BASE_URL\" | tee key.txt; exit 3",
    );
    assert_eq!(town.work("we-1", &["--account", "work"]), "failed");
    wait_until("a person was told", || {
        // The process that tells ends with the run, if the run is over first; a daemon would try again.
        let _ = town.gt(["outbox", "retry"]);
        fs::read_to_string(&told).is_ok_and(|told| told.contains("What is"))
    });
    let shown = [
        town.gt(["run", "log", "we-1"]).ok().stdout,
        town.gt(["run", "log", "we-1", "--raw"]).ok().stdout,
        town.gt(["run", "log", "we-1", "--json"]).ok().stdout,
        town.gt(["run", "log", "we-1", "--raw", "--json"]).ok().stdout,
        town.gt(["peek", "we-1"]).ok().stdout,
        town.gt(["run", "show", "we-1"]).ok().stdout,
        town.gt_json(&["mail", "inbox", "mayor"]).to_string(),
        fs::read_to_string(&told).unwrap(),
    ];
    for text in &shown {
        assert!(!text.contains(KEY), "{text}");
    }
    for text in &shown[..6] {
        assert_says(text, &["fast [masked] at https://example.com/v1"]);
    }
    assert_says(&shown[6], &["The key is [masked]"]);
    assert_says(&shown[7], &["What is [masked] for?"]);
    // All other places: what the town keeps, and what it tells others.
    for command in [["feed", "--json"], ["inbox", "--json"], ["why", "we-1"], ["status", "--json"]]
    {
        let printed = town.gt(command).ok().stdout;
        assert!(!printed.contains(KEY), "{printed}");
    }
    // A key that was taken away stands in the logs as before.
    town.gt(["config", "account", "remove", "work"]).ok();
    let log = town.gt(["run", "log", "we-1"]).ok().stdout;
    assert_says(&log, &["fast [masked] at https://example.com/v1"]);
}
