//! Commands as today's scripts and agents give them.

use serde_json::json;

use crate::support::{Steps as _, assert_says, refusal, texts, town, town_with_rigs};

#[test]
fn beads_are_made_as_gas_town_makes_them() {
    let town = town_with_rigs(&["gastown"]);
    town.bd(["create", "--title=Epic", "--type=epic", "--id=ga-epic"]).ok();

    let created = town
        .bd([
            "create",
            "--json",
            "--title=Fix the login",
            "--description=It loops",
            "--labels=gt:task,backend",
            "--priority=1",
            "--type=bug",
            "--parent=ga-epic",
            "--assignee=gastown/polecats/Toast",
            "--actor=mayor",
        ])
        .ok()
        .json();

    assert_eq!(created["id"], "ga-epic.1");
    assert_eq!(created["created_by"], "mayor");
    assert_eq!(created["assignee"], "gastown/polecats/Toast");
    let message = ["create", "--title=Ping", "--type=message", "--ephemeral", "--wisp-type=ping"];
    let id = town.start_bd(&message).args(["--silent", "--repo=gastown"]).run().ok();
    assert!(id.line().starts_with("ga-wisp-"), "{id}");
}

#[test]
fn beads_are_listed_as_gas_town_lists_them() {
    let town = town();
    town.bead("hq-cv-1", &["-t", "convoy", "-l", "gt:convoy", "-p", "1"]);
    town.bead("hq-a", &["-a", "mayor", "-d", "molecule: x"]);
    town.bd(["update", "hq-a", "--status=hooked"]).ok();

    for (flags, expected) in [
        (&["--json", "--flat", "--limit=0", "--status=hooked"][..], &["hq-a"][..]),
        (&["--json", "--type=convoy", "--all", "--no-pager"], &["hq-cv-1"]),
        (&["--json", "--label=gt:convoy", "--status=all"], &["hq-cv-1"]),
        (&["--json", "--assignee=mayor", "--status=hooked"], &["hq-a"]),
        (&["--json", "--desc-contains=molecule:", "--limit=10"], &["hq-a"]),
        (&["--json", "--priority=1", "--include-infra"], &["hq-cv-1"]),
        (&["--json", "--no-assignee", "--sort=updated"], &["hq-cv-1"]),
    ] {
        let list = town.start_bd(&["list"]).args(flags).run().ok();
        assert_eq!(texts(&list.json(), "id"), expected, "{flags:?}");
    }
}

#[test]
fn ready_and_show_are_asked_as_gas_town_asks() {
    let town = town();
    town.bead("hq-a", &["-l", "gt:task"]);
    town.bead("hq-b", &[]);

    assert_eq!(town.bd(["ready", "--json", "--limit=0"]).ok().json().as_array().unwrap().len(), 2);
    let ready = town.bd(["ready", "--json", "--label", "gt:task", "-n", "100"]).ok();
    assert_eq!(texts(&ready.json(), "id"), ["hq-a"]);
    let shown = town.bd(["show", "hq-a", "--json", "--allow-stale"]).ok();
    assert_eq!(shown.json()[0]["id"], "hq-a");
    let shown = town.bd(["show", "--json", "hq-a", "hq-b"]).ok();
    assert_eq!(texts(&shown.json(), "id"), ["hq-a", "hq-b"]);
}

#[test]
fn convoys_track_as_gas_town_makes_them_track() {
    let town = town();
    town.bead("hq-cv-1", &["-t", "convoy"]);
    town.bead("hq-a", &[]);

    town.bd(["dep", "add", "hq-cv-1", "hq-a", "--type=tracks"]).ok();

    let tracked = town.json(&["dep", "list", "hq-cv-1", "-t", "tracks"]);
    assert_eq!(texts(&tracked, "id"), ["hq-a"]);
    let up = town.json(&["dep", "list", "hq-a", "--direction=up", "--type=tracks"]);
    assert_eq!(texts(&up, "id"), ["hq-cv-1"]);
    assert_eq!(town.ready(), ["hq-a"], "tracking holds nothing up, and a convoy is not work");
    town.bd(["dep", "remove", "hq-cv-1", "hq-a", "--type=tracks"]).ok();
    assert_eq!(town.json(&["dep", "list", "hq-cv-1"]), json!([]));
}

#[test]
fn the_environment_of_a_worker_is_understood() {
    let town = town_with_rigs(&["gastown"]);
    let elsewhere = town.in_dir(town.make_dir(town.root().join("elsewhere")));

    let create = elsewhere
        .start_bd(&["create", "From a worker", "--json", "--rig", "gastown"])
        .env("BEADS_DIR", town.cwd().join(".beads"))
        .env("GT_TOWN_ROOT", town.cwd())
        .env("GT_ROOT", town.cwd())
        .env("GT_ROLE", "gastown/polecats/Toast")
        .env("GT_RIG", "gastown")
        .env("BD_ACTOR", "gastown/polecats/Toast")
        .env("BEADS_DOLT_PORT", "3307")
        .env("BEADS_DOLT_SERVER_HOST", "127.0.0.1")
        .env("BD_DOLT_AUTO_COMMIT", "off")
        .env("GIT_AUTHOR_EMAIL", "toast@example.com");

    let created = create.run().ok().json();
    assert_eq!(created["created_by"], "gastown/polecats/Toast");
    assert_eq!(created["owner"], "toast@example.com");
    assert!(created["id"].as_str().unwrap().starts_with("ga-"));
}

#[test]
fn the_words_that_scripts_look_for_are_there() {
    let town = town();
    assert_says(&refusal(&town.bd(["show", "hq-none"])), &["no issue found"]);
    assert_says(&refusal(&town.gt(["rig", "status", "none"])), &["not found"]);
    assert_says(&town.bd(["list", "--x"]).fails(1).stderr, &["unknown flag: --x"]);
    assert_eq!(town.bd(["list"]).ok().stdout, "No issues found.\n");
}

#[test]
fn the_settings_of_the_seeds_are_set_as_they_say() {
    let town = town();
    for (key, value) in [
        ("queue.enabled", "true"),
        ("queue.max_polecats", "5"),
        ("queue.batch_size", "2"),
        ("queue.spawn_delay", "3s"),
        ("scheduler.max_polecats", "5"),
        ("scheduler.max_polecats", "-1"),
        ("scheduler.batch_size", "2"),
        ("scheduler.spawn_delay", "3s"),
    ] {
        town.gt(["config", "set", key, value]).ok();
        assert_eq!(town.gt(["config", "get", key]).ok().line(), value, "{key}");
    }
}

#[test]
fn a_session_from_install_to_done() {
    let sandbox = crate::support::nowhere();
    let repository = sandbox.git_repository("web");

    sandbox.gt(["install", "town"]).ok();
    let town = sandbox.in_dir("town");
    town.gt(["rig", "add", "web", repository.to_str().unwrap()]).ok();
    town.bd(["create", "Ship it", "--rig", "web", "--id", "we-ship"]).ok();
    town.bd(["create", "Test it", "--rig", "web", "--id", "we-test", "--deps", "blocks:we-ship"])
        .ok();

    assert_eq!(town.bd(["ready"]).ok().stdout, "we-test  P2  task  open  Test it\n");
    assert_eq!(
        town.bd(["blocked"]).ok().stdout,
        "we-ship  P2  task  open  Ship it — blocked by we-test\n"
    );
    assert_eq!(
        town.bd(["ready", "--claim", "--actor", "ann"]).ok().stdout,
        "✓ Claimed we-test: Test it\n"
    );
    assert_eq!(
        town.bd(["close", "we-test", "-r", "green", "--suggest-next"]).ok().stdout,
        "✓ Closed we-test: green\n  ready now: we-ship\n"
    );
    assert_eq!(
        town.bd(["list", "--all"]).ok().stdout,
        "we-test  P2  task  closed  Test it @ann\nwe-ship  P2  task  open    Ship it\n"
    );
}
