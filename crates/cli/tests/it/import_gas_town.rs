//! `gt import`: a whole Gas Town directory.

use std::fs;

use gt_testkit::Sandbox;
use serde_json::{Value, json};

use crate::support::{
    Steps as _, assert_says, copy_fixture, files_in, fixture, json_refusal, refusal, strings,
    texts, town, town_with_rigs,
};

fn import(town: &Sandbox) -> Value {
    town.gt_json(&["import", fixture("gas-town").to_str().unwrap()])
}

/// A town, and a copy of the Gas Town beside it that may be changed.
fn with_copy() -> Sandbox {
    let town = town();
    copy_fixture(&town, "gas-town", "old");
    town
}

fn setting(town: &Sandbox, name: &str) -> String {
    town.gt(["config", "get", name]).ok().line().to_owned()
}

#[test]
fn rigs_settings_and_beads_of_all_stores_come() {
    let town = town();

    let summary = import(&town);

    assert_eq!(summary["source"], "gas-town");
    assert_eq!(summary["created"], 6);
    assert_eq!(summary["rigs"], json!(["api", "web"]));
    assert_eq!(summary["conflicts"], json!([]));
    assert_eq!(summary["old_queue_state"], 1);
    let web = town.gt_json(&["rig", "status", "web"]);
    for (field, value) in [
        ("prefix", "we"),
        ("repo", "https://example.com/web.git"),
        ("default_branch", "trunk"),
        ("created_at", "2026-02-01T00:00:00Z"),
    ] {
        assert_eq!(web[field], value, "{field}");
    }
    let api = town.gt_json(&["rig", "status", "api"]);
    assert_eq!((&api["prefix"], &api["default_branch"]), (&json!("ap"), &json!("main")));
    assert!(town.cwd().join("web").is_dir());
    for (name, value) in [
        ("scheduler.max_polecats", "5"),
        ("scheduler.batch_size", "2"),
        ("scheduler.spawn_delay", "2s"),
        ("queue.max_polecats", "10"),
        ("rig.web.max_polecats", "3"),
    ] {
        assert_eq!(setting(&town, name), value, "{name}");
    }
    assert_eq!(town.ids(&["list", "--rig", "web"]), ["we-1", "we-2"]);
    assert_eq!(town.ids(&["list", "--rig", "api"]), ["ap-1"]);
    assert_eq!(town.ready(), ["ap-1", "we-1", "zz-1"], "we-2 waits across rigs");
    town.gt(["store", "check"]).ok();
}

#[test]
fn unsupported_settings_are_kept_or_told() {
    let town = town();

    let summary = import(&town);

    assert_eq!(
        summary["kept"],
        json!({"accounts": "home, work", "pause": "paused by mayor/ since 2026-02-19T10:00:00Z"})
    );
    let left_out = strings(&summary["left_out"]).join("\n");
    assert_says(
        &left_out,
        &[
            "the route of zz- leads to gone/mayor/rig, and there is no rig gone",
            "\nsettings/config.json: no setting here is called default_agent, role_agents\n",
            "mayor/town-settings.json: no setting here is called scheduler.colour",
            "web/settings/config.json: no setting here is called theme",
            "mayor/daemon.json",
            ".runtime/queue-state.json",
        ],
    );
    // The event names the setting without its value: it may hold keys, and the log is read by many.
    let events = town.events();
    let accounts = events.iter().find(|event| event["payload"]["key"] == "accounts");
    assert_eq!(accounts.unwrap()["payload"]["new"], "…");
}

#[test]
fn people_are_told_what_came_and_what_comes_next() {
    let town = town();
    let path = fixture("gas-town");
    let said = town.gt(["import", path.to_str().unwrap()]).ok().stdout;
    assert_says(
        &said,
        &[
            "This is a Gas Town directory",
            "web/mayor/rig/.beads/issues.jsonl",
            "✓ Imported 6 issues: 6 created, 0 updated",
            "added the rig web",
            "set scheduler.max_polecats = 5",
            "kept accounts for later: home, work",
            "1 bead carries the state of an older queue",
            "gt scheduler adopt",
        ],
    );
}

#[test]
fn a_rehearsal_says_exactly_what_happens_and_leaves_nothing() {
    let town = town();
    let path = fixture("gas-town");
    let path = path.to_str().unwrap();
    let before = files_in(town.cwd());

    let would = town.gt_json(&["import", path, "--dry-run"]);
    let told = town.gt(["import", path, "--dry-run"]).ok().stdout;

    assert_eq!((town.export(), town.last_event()), (String::new(), 0));
    assert_eq!(files_in(town.cwd()), before);
    assert_says(
        &told,
        &["Would import 6 issues: 6 created", "would add the rig web", "would set scheduler"],
    );
    let did = town.gt(["import", path]).ok().stdout;
    let now = |text: &str| {
        let words = [
            ("Would import", "✓ Imported"),
            ("Would mend", "Mended"),
            ("would add", "added"),
            ("would set", "set"),
            ("would keep", "kept"),
        ];
        words.iter().fold(text.to_owned(), |text, (would, did)| text.replace(would, did))
    };
    assert_eq!(now(&told), did);
    assert_eq!(would["created"], 6);
}

#[test]
fn the_second_time_nothing_is_left_to_do() {
    let town = town();
    import(&town);
    let before = (town.export(), town.last_event());

    let summary = import(&town);

    for (field, count) in [
        ("created", 0),
        ("updated", 0),
        ("unchanged", 6),
        ("rigs_unchanged", 2),
        ("settings_unchanged", 9),
    ] {
        assert_eq!(summary[field], count, "{field}");
    }
    for empty in ["rigs", "conflicts"] {
        assert_eq!(summary[empty], json!([]), "{empty}");
    }
    assert_eq!((&summary["settings"], &summary["kept"]), (&json!({}), &json!({})));
    assert_eq!((town.export(), town.last_event()), before);
}

#[test]
fn a_town_in_the_same_directory_takes_it_over() {
    let town = with_copy();
    let old = town.in_dir("old");
    // Away from the town above it, as a user would have it.
    let place = town.root().join("gas");
    fs::rename(old.cwd(), &place).unwrap();
    town.in_dir(town.root()).gt(["install", place.to_str().unwrap()]).ok();
    let here = town.in_dir(&place);

    let summary = here.gt_json(&["import", "."]);

    assert_eq!((&summary["created"], &summary["rigs"]), (&json!(6), &json!(["api", "web"])));
    assert_eq!(here.gt_json(&["import", "."])["unchanged"], 6);
    assert_eq!(here.in_dir("web").json(&["list", "--rig", "web"]).as_array().unwrap().len(), 2);
    here.gt(["store", "check"]).ok();
}

#[test]
fn a_town_named_by_the_environment_receives_it() {
    let town = town();
    let elsewhere = town.in_dir(town.root().join("work"));
    let import = elsewhere.command(elsewhere.gt_path()).args(["import", "--json"]);
    let ran = import.arg(fixture("gas-town")).env("GT_TOWN_ROOT", town.cwd()).run();
    assert_eq!(ran.ok().json()["created"], 6);
    assert_eq!(town.ids(&["list", "--rig", "api"]), ["ap-1"]);
}

#[test]
fn gt_import_takes_the_same_sources_as_bd_import() {
    for (name, source) in
        [("everything.jsonl", "jsonl"), ("dump", "table-dump"), ("project", "beads-directory")]
    {
        let (by_gt, by_bd) = (town(), town());
        let path = fixture(name);
        let path = path.to_str().unwrap();
        let summary = by_gt.gt_json(&["import", path]);
        assert_eq!(summary["source"], source);
        assert_eq!(summary, by_bd.json(&["import", path]), "{name}");
        assert_eq!(by_gt.export(), by_bd.export());
    }
    let town = town();
    let piped = town.command(town.gt_path()).args(["import", "-", "--json"]);
    assert_eq!(piped.stdin(r#"{"id":"hq-a","title":"a"}"#).run().ok().json()["created"], 1);
}

#[test]
fn bd_names_the_command_for_a_whole_town() {
    let town = town();
    let path = fixture("gas-town");
    let error = refusal(&town.bd(["import", path.to_str().unwrap()]));
    assert_says(&error, &["is a Gas Town directory", "gt import", "gas-town/.beads"]);
    assert_eq!(town.export(), "");
}

#[test]
fn a_rig_that_is_here_with_other_words_is_listed_and_stays() {
    let town = town();
    town.gt(["rig", "add", "web", "--prefix", "wb"]).ok();
    town.gt(["rig", "add", "apex", "--prefix", "ap"]).ok();

    let summary = import(&town);

    let conflicts = strings(&summary["conflicts"]).join("\n");
    assert_says(
        &conflicts,
        &[
            "rig web: its prefix is \"wb\" here, and \"we\" there",
            "its repository is \"\" here, and \"https://example.com/web.git\" there",
            "rig api: the prefix ap belongs to the rig apex here",
        ],
    );
    assert_eq!(summary["rigs"], json!([]));
    assert_eq!(summary["created"], 6, "the beads come all the same");
    assert_eq!(town.gt_json(&["rig", "status", "web"])["prefix"], "wb");
    assert_eq!(town.ids(&["list", "--rig", "apex"]), ["ap-1"]);
}

#[test]
fn a_setting_that_is_here_with_another_value_is_listed_and_stays() {
    let town = town_with_rigs(&["other"]);
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    town.gt(["config", "set", "scheduler.batch_size", "2"]).ok();

    let summary = import(&town);

    let conflicts = strings(&summary["conflicts"]);
    assert_eq!(conflicts.len(), 1);
    assert_says(
        conflicts[0],
        &[
            "scheduler.max_polecats: it is 2 here, and 5 in mayor/town-settings.json",
            "gt config set",
        ],
    );
    assert_eq!(setting(&town, "scheduler.max_polecats"), "2");
    assert_eq!(summary["settings_unchanged"], 2, "batch_size, and what two stores say alike");
}

#[test]
fn a_bead_that_is_newer_here_is_listed_and_stays() {
    let town = town();
    import(&town);
    town.bd(["update", "we-1", "--title", "Changed here"]).ok();

    let summary = import(&town);

    assert_eq!((&summary["skipped"], &summary["unchanged"]), (&json!(1), &json!(5)));
    let skipped = &summary["skipped_details"][0];
    assert_eq!(skipped["id"], "we-1");
    assert_says(skipped["file"].as_str().unwrap(), &["web/mayor/rig/.beads/issues.jsonl"]);
    assert_says(skipped["reason"].as_str().unwrap(), &["older"]);
    assert_eq!(town.show("we-1")["title"], "Changed here");
}

#[test]
fn a_name_or_route_that_cannot_be_is_listed() {
    let town = with_copy();
    town.write(
        "old/mayor/rigs.json",
        r#"{"rigs":{"mayor":{},"a b":{},"../up":{},"web":{"beads":{"prefix":"we"}},"api":{}}}"#,
    );
    town.write("old/.beads/routes.jsonl", "{\"prefix\":\"w2-\",\"path\":\"web\"}\n# c\n\n");

    let summary = town.gt_json(&["import", "old"]);

    assert_says(
        &strings(&summary["conflicts"]).join("\n"),
        &[
            "rig mayor: the rig name \"mayor\" is reserved",
            "rig a b: ",
            "rig ../up: ",
            "the route of w2-",
        ],
    );
    assert_eq!(summary["rigs"], json!(["api", "web"]));
    assert_eq!(town.gt_json(&["rig", "status", "api"])["prefix"], "ap", "derived from its name");
}

#[test]
fn a_rig_learns_its_prefix_from_its_own_store() {
    let town = with_copy();
    town.write("old/.beads/routes.jsonl", "");
    town.write("old/api/.beads/config.yaml", "issue-prefix: zz\n");

    let summary = town.gt_json(&["import", "old"]);

    assert_eq!(town.gt_json(&["rig", "status", "api"])["prefix"], "zz");
    assert_eq!(town.ids(&["list", "--rig", "api"]), ["zz-1"]);
    assert!(!summary["remarks"].to_string().contains("prefix"), "{summary}");
}

#[test]
fn of_a_bead_in_two_stores_the_newer_one_counts() {
    let town = with_copy();
    let version = |second: u32| {
        format!(
            r#"{{"id":"we-1","title":"v{second}","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:{second:02}Z"}}"#
        )
    };
    town.write("old/.beads/issues.jsonl", version(5));
    town.write("old/web/mayor/rig/.beads/issues.jsonl", version(4));

    let summary = town.gt_json(&["import", "old"]);

    assert_eq!(town.show("we-1")["title"], "v5");
    assert_eq!(summary["skipped"], 1);
    assert_eq!(town.gt_json(&["import", "old"])["updated"], 0);
}

#[test]
fn anything_damaged_is_named_and_nothing_is_left_behind() {
    for (file, text, said) in [
        ("mayor/rigs.json", "{\n\"rigs\": {", "mayor/rigs.json:2: not valid JSON"),
        ("mayor/rigs.json", "[]", "no object called rigs"),
        ("mayor/accounts.json", "5", "not a JSON object"),
        (
            "mayor/town-settings.json",
            "{\"scheduler\":{\"max_polecats\":\"many\"}}",
            "scheduler.max_polecats",
        ),
        ("settings/config.json", "{", "not JSON"),
        ("web/config.json", "{", "web/config.json:1: not valid JSON"),
        ("web/settings/config.json", "{\"max_polecats\":-5}", "rig.web.max_polecats"),
        (".runtime/scheduler-state.json", "{\"paused\":", "scheduler-state.json:1: not valid JSON"),
        (
            ".beads/routes.jsonl",
            "{\"prefix\":\"a-\",\"path\":\".\"}\n{\"prefix\"",
            "routes.jsonl:2: not valid JSON",
        ),
        (
            "api/.beads/beads.jsonl",
            "{\"id\":\"ap-1\",\"title\":\"a\"}\n{\"id\":\"ap-2\"",
            "beads.jsonl:2: not valid JSON",
        ),
        ("api/.beads/beads.jsonl", "\u{0}\u{1}\u{2}", "beads.jsonl:1: not valid JSON"),
        ("web/.beads/redirect", "../nowhere/.beads", "which is no directory"),
    ] {
        let town = with_copy();
        town.write(&format!("old/{file}"), text);
        let before = files_in(town.cwd());

        assert_says(&refusal(&town.gt(["import", "old"])), &[said]);
        json_refusal(&town.gt(["import", "old", "--json"]));

        assert_eq!((town.export(), town.last_event()), (String::new(), 0), "{file}");
        assert_eq!(files_in(town.cwd()), before, "{file}");
        assert_eq!(town.gt_json(&["rig", "list"]), json!([]), "{file}");
    }
}

#[test]
fn an_unreadable_file_is_named() {
    let town = with_copy();
    fs::remove_file(town.cwd().join("old/mayor/accounts.json")).unwrap();
    town.make_dir("old/mayor/accounts.json");
    assert_says(&refusal(&town.gt(["import", "old"])), &["mayor/accounts.json", "directory"]);
    for path in ["missing", "old/mayor"] {
        assert_says(&refusal(&town.gt(["import", path])), &[path]);
    }
    town.gt(["import"]).fails(2);
}

#[test]
fn a_store_that_is_only_a_database_stops_the_import_unless_it_may_be_left_out() {
    let town = with_copy();
    fs::remove_file(town.cwd().join("old/api/.beads/beads.jsonl")).unwrap();
    town.write("old/api/.beads/beads.db", "");

    let error = refusal(&town.gt(["import", "old"]));
    assert_says(&error, &["api/.beads", "in a database", "bd export -o", "--skip-invalid"]);
    assert_eq!(town.last_event(), 0);

    let summary = town.gt_json(&["import", "old", "--skip-invalid"]);
    assert_eq!(summary["created"], 4);
    assert_says(
        &strings(&summary["left_out"]).join("\n"),
        &["api/.beads keeps its beads in a database"],
    );
}

#[test]
fn a_store_that_is_only_a_database_may_have_a_backup() {
    let town = with_copy();
    fs::remove_file(town.cwd().join("old/api/.beads/beads.jsonl")).unwrap();
    town.write("old/api/.beads/beads.db", "");
    copy_fixture(&town, "dump", "old/api/.beads/backup");

    let summary = town.gt_json(&["import", "old"]);

    assert_eq!(summary["created"], 8);
    assert_says(&strings(&summary["remarks"]).join("\n"), &["api/.beads come from its backup"]);
}

#[test]
fn a_convoy_tracks_the_beads_of_other_rigs_themselves() {
    let town = town();

    let summary = import(&town);

    let convoy = town.json(&["dep", "list", "hq-cv-abcde", "--type", "tracks"]);
    assert_eq!(texts(&convoy, "id"), ["ap-1", "we-1"]);
    assert_says(
        summary["repaired"][0]["reason"].as_str().unwrap(),
        &["its dependency on external:api:ap-1 leads to ap-1"],
    );
    assert_says(&town.export(), &["\"depends_on_id\":\"external:far:fa-1\""]);
    let alone = crate::support::town();
    alone.bd(["import", fixture("gas-town/.beads").to_str().unwrap()]).ok();
    assert_says(&alone.export(), &["external:api:ap-1"]);
}

#[test]
fn a_gas_town_that_was_paused_is_paused_after_its_import() {
    let town = with_copy();
    let rehearsed = town.gt(["import", "old", "--dry-run"]).ok().stdout;
    assert_says(&rehearsed, &["the scheduler is paused, as it was there (by mayor/)"]);
    assert_eq!(town.gt_json(&["scheduler", "status"])["paused"], false);

    let said = town.gt(["import", "old"]).ok().stdout;

    assert_says(
        &said,
        &["the scheduler is paused, as it was there (by mayor/)", "gt scheduler resume"],
    );
    let status = town.gt_json(&["scheduler", "status"]);
    assert_eq!((&status["paused"], &status["paused_by"]), (&json!(true), &json!("mayor/")));
    assert_eq!(status["paused_at"], "2026-02-19T10:00:00Z");

    // The same state once more is no new pause, and another one is.
    town.gt(["scheduler", "resume"]).ok();
    town.gt(["import", "old"]).ok();
    assert_eq!(town.gt_json(&["scheduler", "status"])["paused"], false);
    town.write("old/.runtime/scheduler-state.json", r#"{"paused":true}"#);
    town.gt(["import", "old"]).ok();
    assert_eq!(town.gt_json(&["scheduler", "status"])["paused"], true);
}

#[test]
fn a_later_pause_state_replaces_the_copy() {
    let town = with_copy();
    town.gt(["import", "old"]).ok();
    town.write("old/.runtime/scheduler-state.json", r#"{"paused":false}"#);

    let summary = town.gt_json(&["import", "old"]);

    assert_eq!(summary["kept"], json!({"pause": "not paused"}));
}
