//! `gt rig`: the projects of a town.

use serde_json::json;

use crate::support::{
    Steps as _, assert_says, json_refusal, keys, refusal, texts, town, town_with_rigs,
};

const RIG_KEYS: [&str; 11] = [
    "created_at",
    "default_branch",
    "executor",
    "name",
    "path",
    "prefix",
    "repo",
    "state",
    "title",
    "uid",
    "updated_at",
];

#[test]
fn a_rig_is_added_with_the_path_of_its_repository() {
    let town = town();
    let repository = town.git_repository("project");

    let added = town.gt(["rig", "add", "web", "../project"]).ok();

    assert_says(&added.stdout, &["Added the rig web (prefix we)", "--rig web"]);
    let rig = town.gt_json(&["rig", "status", "web"]);
    assert_eq!(rig["repo"], repository.display().to_string());
    assert_eq!(rig["default_branch"], "main");
    assert_eq!(rig["state"], "active");
    assert!(town.cwd().join("web").is_dir());
}

#[test]
fn the_branch_can_be_named() {
    let town = town();
    let repository = town.git_repository("project");
    town.command("git").args(["branch", "develop"]).dir(&repository).run().ok();

    let rig = town.gt_json(&["rig", "add", "web", "../project", "--branch", "develop"]);

    assert_eq!(rig["default_branch"], "develop");
}

#[test]
fn an_empty_repository_has_a_branch_too() {
    let town = town();
    let bare = town.root().join("empty");
    let git = town.command("git").args(["init", "--quiet", "-b", "trunk"]);
    git.arg(&bare).run().ok();

    let rig = town.gt_json(&["rig", "add", "web", bare.to_str().unwrap()]);

    assert_eq!(rig["default_branch"], "trunk");
}

#[test]
fn a_rig_needs_no_repository() {
    let town = town();

    let rig = town.gt_json(&["rig", "add", "errands"]);

    assert_eq!((&rig["repo"], &rig["default_branch"]), (&json!(""), &json!("")));
}

#[test]
fn a_repository_that_cannot_be_reached_is_refused_unless_its_branch_is_named() {
    let town = town();
    let missing = town.root().join("missing").display().to_string();

    let error = refusal(&town.gt(["rig", "add", "web", &missing]));
    assert_says(&error, &[&missing, "not a git repository", "--branch"]);
    assert_eq!(town.gt_json(&["rig", "list"]), json!([]));

    let rig = town.gt_json(&["rig", "add", "web", &missing, "--branch", "main"]);
    assert_eq!(rig["repo"], missing);
}

#[test]
fn a_directory_that_is_no_repository_is_refused() {
    let town = town();
    town.make_dir("plain");

    let error = refusal(&town.gt(["rig", "add", "web", "plain"]));

    assert_says(&error, &["not a git repository"]);
}

#[test]
fn executor_title_and_branch_of_a_rig_can_be_changed() {
    let town = town();
    let repository = town.git_repository("project");
    town.command("git").args(["branch", "trunk"]).dir(&repository).run().ok();
    town.gt(["rig", "add", "web", "../project", "--executor", "tmux"]).ok();

    let said = town.gt(["rig", "set", "web", "executor", "process"]).ok();
    assert_says(&said.stdout, &["The executor of the rig web is process"]);
    let again = town.gt(["rig", "set", "web", "executor", "process"]).ok();
    assert_says(&again.stdout, &["already", "nothing to do"]);
    town.gt(["rig", "set", "web", "branch", "trunk"]).ok();
    let rig = town.gt_json(&["rig", "set", "web", "title", "The web shop"]);

    assert_eq!(rig["title"], "The web shop");
    let rig = town.gt_json(&["rig", "status", "web"]);
    assert_eq!((&rig["executor"], &rig["default_branch"]), (&json!("process"), &json!("trunk")));
    let told = town.gt(["feed"]).ok().stdout;
    assert_says(&told, &["The web shop", "trunk"]);
}

#[test]
fn every_setting_of_a_rig_can_be_changed_by_its_short_name() {
    let town = town();
    town.gt(["rig", "add", "web"]).ok();

    assert_eq!(
        town.gt(["rig", "set", "web", "merge", "pr"]).ok().stdout,
        "Set rig.web.merge = pr\n"
    );
    assert_eq!(town.gt(["config", "get", "rig.web.merge"]).ok().line(), "pr");
    assert_eq!(town.gt_json(&["rig", "set", "web", "review", "required"])["key"], "rig.web.review");
    let listed = town.gt(["rig", "set", "web"]).ok().stdout;
    assert_says(&listed, &["rig.web.review", "required", "rig.web.max_polecats"]);
    let error = refusal(&town.gt(["rig", "set", "web", "merge", "never"]));
    assert_eq!(error, refusal(&town.gt(["config", "set", "rig.web.merge", "never"])));
    let error = refusal(&town.gt(["rig", "set", "web", "reviews", "required"]));
    assert_says(&error, &["did you mean review?", "executor, title, branch, merge"]);
    assert_says(&refusal(&town.gt(["rig", "set", "wob", "merge", "pr"])), &["wob"]);
}

#[test]
fn the_executor_ssh_is_refused_with_the_commands_that_replace_it() {
    let town = town();
    town.gt(["rig", "add", "nightly"]).ok();
    let commands = ["gt store migrate postgres://…", "gt host add <machine> --ssh <machine>"];
    for words in [
        ["rig", "add", "web", "--executor", "ssh"].as_slice(),
        &["rig", "add", "web", "--executor", "ssh", "--host", "builder"],
        &["rig", "set", "nightly", "executor", "ssh"],
        &["rig", "set", "nightly", "executor", "ssh", "--host", "builder"],
    ] {
        assert_says(&refusal(&town.gt(words)), &commands);
    }
    assert_eq!(town.gt_json(&["rig", "status", "nightly"])["executor"], "process");
    assert_eq!(town.gt_json(&["rig", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn the_executor_of_a_rig_cannot_change_while_a_run_is_live() {
    let town = town_with_rigs(&["web"]);
    town.gt(["config", "set", "rig.web.command", "sleep 600"]).ok();
    town.bd(["create", "Long", "--id", "we-a", "--rig", "web"]).ok();
    town.gt(["sling", "we-a", "web"]).ok();

    let error = refusal(&town.gt(["rig", "set", "web", "executor", "tmux"]));

    assert_says(&error, &["we-a#1 is running", "gt run cancel we-a#1"]);
    town.gt(["run", "cancel", "we-a"]).ok();
    town.gt(["rig", "set", "web", "executor", "tmux"]).ok();
}

#[test]
fn other_changes_of_a_rig_are_refused() {
    let town = town_with_rigs(&["web"]);
    for (arguments, says) in [
        (["web", "prefix", "wb"], "a rig has no"),
        (["web", "executor", "pull"], "add another rig"),
        (["web", "branch", "trunk"], "has no repository"),
        (["nowhere", "title", "x"], "nowhere"),
    ] {
        let mut line = vec!["rig", "set"];
        line.extend(arguments);
        assert_says(&refusal(&town.gt(&line)), &[says]);
    }
}

#[test]
fn names_are_taken_once() {
    let town = town_with_rigs(&["web"]);

    let error = refusal(&town.gt(["rig", "add", "web"]));

    assert_says(&error, &["web", "exists already"]);
}

#[test]
fn some_names_and_prefixes_are_reserved() {
    let town = town();
    for name in ["hq", "wq", "mayor", "deacon", "settings", "inbox"] {
        let error = refusal(&town.gt(["rig", "add", name]));
        assert_says(&error, &[name, "reserved"]);
    }
    for prefix in ["hq", "wq"] {
        let error = refusal(&town.gt(["rig", "add", "web", "--prefix", prefix]));
        assert_says(&error, &[prefix, "reserved", "--prefix"]);
    }
    for name in ["", "a b", "..", ".gt", "a/b", "-x", "ä"] {
        let ran = town.gt(["rig", "add", "--", name]);
        assert_says(&refusal(&ran), &["is not a rig name"]);
    }
    assert_eq!(town.gt_json(&["rig", "list"]), json!([]));
}

#[test]
fn a_prefix_is_derived_from_the_name_and_grows_when_it_is_taken() {
    let town = town();
    for (name, prefix) in [
        ("gas-town", "gt"),
        ("web", "we"),
        ("web2", "web"),
        ("gadget_tools", "gad"),
        ("work-queue", "wor"),
    ] {
        let rig = town.gt_json(&["rig", "add", name]);
        assert_eq!(rig["prefix"], prefix, "{name}");
    }
}

#[test]
fn a_prefix_belongs_to_one_rig() {
    let town = town_with_rigs(&["web"]);

    let error = refusal(&town.gt(["rig", "add", "api", "--prefix", "we"]));

    assert_says(&error, &["we", "belongs to the rig web", "--prefix"]);
}

#[test]
fn a_rig_whose_directory_cannot_be_made_is_not_added() {
    let town = town();
    town.write("web", "a file in the way");

    let error = refusal(&town.gt(["rig", "add", "web"]));

    assert_says(&error, &["cannot create"]);
    assert_eq!(town.gt_json(&["rig", "list"]), json!([]));
    assert_eq!(town.last_event(), 0);
}

#[test]
fn rigs_are_listed_with_their_beads() {
    let town = town_with_rigs(&["web", "api"]);
    let id = town.create("A task", &["--rig", "web"]);
    town.create("Another", &["--rig", "web"]);
    town.bd(["close", &id]).ok();

    let list = town.gt_json(&["rig", "list"]);

    assert_eq!(texts(&list, "name"), ["api", "web"]);
    assert_eq!(list[0]["beads"], json!({}));
    assert_eq!(list[1]["beads"], json!({"closed": 1, "open": 1}));
    let mut expected = vec!["beads"];
    expected.extend(RIG_KEYS);
    assert_eq!(keys(&list[1]), expected);
    let said = town.gt(["rig", "list"]).ok();
    assert_says(&said.stdout, &["RIG", "PREFIX", "web", "we", "active"]);
}

#[test]
fn the_status_of_a_rig_has_the_same_keys_and_what_is_scheduled() {
    let town = town_with_rigs(&["web"]);

    let status = town.gt_json(&["rig", "status", "web"]);

    let mut expected: Vec<&str> = RIG_KEYS.to_vec();
    expected.extend(["beads", "queued", "ready", "running", "schema_version"]);
    expected.sort_unstable();
    assert_eq!(keys(&status), expected);
    let said = town.gt(["rig", "status", "web"]).ok();
    assert_says(&said.stdout, &["prefix", "state", "directory", "executor"]);
}

#[test]
fn an_unknown_rig_is_answered_with_the_known_ones() {
    let town = town_with_rigs(&["web", "api"]);
    for verb in ["status", "park", "unpark", "dock", "undock", "remove"] {
        let error = refusal(&town.gt(["rig", verb, "wbe"]));
        assert_says(&error, &["\"wbe\" not found", "api, web"]);
    }
}

#[test]
fn parking_and_docking_go_there_and_back() {
    let town = town_with_rigs(&["web"]);
    for (verb, state) in [
        ("park", "parked"),
        ("unpark", "active"),
        ("dock", "docked"),
        ("undock", "active"),
        ("park", "parked"),
        ("dock", "docked"),
    ] {
        let before = town.last_event();
        let rig = town.gt_json(&["rig", verb, "web"]);
        assert_eq!(rig["state"], state, "{verb}");
        assert_eq!(town.last_event(), before + 1, "{verb}");

        let again = town.gt(["rig", verb, "web"]).ok();
        assert_says(&again.stdout, &[state, "already"]);
        assert_eq!(town.last_event(), before + 1, "{verb} again");
    }
}

#[test]
fn a_docked_rig_is_neither_parked_nor_unparked() {
    let town = town_with_rigs(&["web"]);
    town.gt(["rig", "dock", "web"]).ok();
    for verb in ["park", "unpark"] {
        let error = refusal(&town.gt(["rig", verb, "web"]));
        assert_says(&error, &["web is docked", "gt rig undock web"]);
    }
    town.gt(["rig", "undock", "web"]).ok();
    town.gt(["rig", "park", "web"]).ok();
    let error = refusal(&town.gt(["rig", "undock", "web"]));
    assert_says(&error, &["web is parked", "gt rig unpark web"]);
}

#[test]
fn a_rig_with_open_work_stays() {
    let town = town_with_rigs(&["web"]);
    let id = town.create("A task", &["--rig", "web"]);

    let error = refusal(&town.gt(["rig", "remove", "web"]));
    assert_says(&error, &["1 bead ", "not closed", "gt rig dock web"]);

    town.bd(["close", &id]).ok();
    let removed = town.gt(["rig", "remove", "web"]).ok();
    assert_says(&removed.stdout, &["Removed the rig web"]);
    assert_eq!(town.gt_json(&["rig", "list"]), json!([]));
    assert_eq!(town.show(&id)["status"], "closed", "its beads stay");
    assert!(town.cwd().join("web").is_dir(), "its directory stays");
}

#[test]
fn the_settings_of_a_rig_go_with_it() {
    let town = town_with_rigs(&["web"]);
    town.gt(["config", "set", "rig.web.max_polecats", "3"]).ok();

    town.gt(["rig", "remove", "web"]).ok();

    town.gt(["rig", "add", "web"]).ok();
    let value = town.gt(["config", "get", "rig.web.max_polecats"]).ok();
    assert_eq!(value.line(), "0");
}

#[test]
fn a_rig_that_comes_back_finds_its_beads() {
    let town = town_with_rigs(&["web"]);
    let id = town.create("A task", &["--rig", "web"]);
    town.bd(["close", &id]).ok();
    town.gt(["rig", "remove", "web"]).ok();

    town.gt(["rig", "add", "web"]).ok();

    assert_eq!(town.ids(&["list", "--rig", "web", "--all"]), [id]);
}

#[test]
fn json_refusals_name_the_rig() {
    let town = town_with_rigs(&["web"]);
    let error = json_refusal(&town.gt(["rig", "status", "nope", "--json"]));
    assert_says(&error, &["nope", "web"]);
}

#[test]
fn a_bead_goes_to_the_rig_that_is_named_else_its_parents_else_that_of_the_directory() {
    let town = town_with_rigs(&["web", "api"]);
    let parent = town.create("Parent", &["--rig", "api"]);
    let in_web = town.in_dir("web");

    let of_town = town.create("Nothing said", &[]);
    let of_directory = in_web.create("Standing in web", &[]);
    let of_parent = in_web.create("A part", &["--parent", &parent]);
    let named = in_web.create("Named", &["--rig", "api"]);
    let over_parent = in_web.create("Both", &["--rig", "web", "--parent", &parent]);
    let by_prefix = town.create("Named by prefix", &["--rig", "ap"]);

    assert!(of_town.starts_with("hq-"), "{of_town}");
    assert!(of_directory.starts_with("we-"), "{of_directory}");
    assert_eq!(of_parent, format!("{parent}.1"));
    assert!(named.starts_with("ap-"), "{named}");
    let web = town.ids(&["list", "--rig", "web", "--sort", "id"]);
    let mut expected = [of_directory, over_parent];
    expected.sort();
    assert_eq!(web, expected);
    let api = town.ids(&["list", "--rig", "api"]);
    for id in [parent, of_parent, named, by_prefix] {
        assert!(api.contains(&id), "{id} in {api:?}");
    }
}

#[test]
fn a_bead_in_an_unknown_rig_is_refused() {
    let town = town_with_rigs(&["web"]);

    let error = refusal(&town.bd(["create", "A task", "--rig", "nope"]));

    assert_says(&error, &["nope", "known rigs: web"]);
    assert_eq!(town.ids(&["list"]), [""; 0]);
}

#[test]
fn the_repository_of_a_rig_is_a_place_of_the_rig() {
    let town = town();
    let repository = town.git_repository("code");
    town.gt(["rig", "add", "web", repository.to_str().unwrap()]).ok();

    let made = town
        .command(town.bd_path())
        .args(["create", "Here", "--silent"])
        .env("GT_TOWN_ROOT", town.cwd())
        .dir(&repository)
        .run()
        .ok();

    assert!(made.line().starts_with("we-"), "{made}");
}

#[test]
fn a_bead_goes_to_the_only_rig_and_is_told_of_hq_where_there_are_several() {
    let town = town_with_rigs(&["web"]);
    let only = town.bd(["create", "Only"]).ok();
    assert!(only.stdout.contains("we-"), "{only}");
    assert_eq!(only.stderr, "");

    town.gt(["rig", "add", "api"]).ok();
    let several = town.bd(["create", "Several", "--silent"]).ok();
    let id = several.stdout.trim().to_owned();
    assert!(id.starts_with("hq-"), "{several}");
    assert_says(
        &several.stderr,
        &["made in hq, which is not dispatched", &format!("bd update {id} --rig")],
    );
    // Where it was chosen, or there is no rig at all, there is nothing to tell.
    assert_eq!(town.bd(["create", "Chosen", "--id", "hq-chosen"]).ok().stderr, "");
    assert_eq!(town_with_rigs(&[]).bd(["create", "Alone"]).ok().stderr, "");
}

#[test]
fn a_bead_is_moved_to_another_rig_with_everything_about_it() {
    let town = town_with_rigs(&["web", "api"]);
    for rig in ["web", "api"] {
        town.gt(["config", "set", &format!("rig.{rig}.command"), "true"]).ok();
    }
    town.gt(["scheduler", "pause"]).ok();
    town.bead("hq-a", &["-l", "soon"]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bd(["comments", "add", "hq-a", "look"]).ok();
    assert_says(&refusal(&town.gt(["sling", "hq-a"])), &["town-level", "bd update hq-a --rig"]);
    assert_says(&refusal(&town.bd(["update", "hq-a", "--rig", "wbe"])), &["wbe", "api, web"]);

    town.bd(["update", "hq-a", "--rig", "web"]).ok();

    assert_eq!(town.ids(&["list", "--rig", "web"]), ["hq-a"]);
    let shown = town.show("hq-a");
    assert_eq!((&shown["labels"], &shown["comment_count"]), (&json!(["soon"]), &json!(1)));
    assert_eq!(town.gt_json(&["why", "hq-b"])["reasons"][0]["code"], "blocked");
    let slung = town.gt_json(&["sling", "hq-a", "--no-boot"]);
    assert_eq!(slung["entries"][0]["target_rig"], "web");
    let error = refusal(&town.bd(["update", "hq-a", "--rig", "api"]));
    assert_says(&error, &["it is scheduled", "gt scheduler clear --bead hq-a"]);
    town.gt(["scheduler", "clear", "--bead", "hq-a"]).ok();
    town.bd(["update", "hq-a", "--rig", "api"]).ok();
    assert_eq!(town.ids(&["list", "--rig", "api"]), ["hq-a"]);

    // A copy of the town knows where it belongs, and a rig that is not there is no rig.
    let records = town.export();
    let copy = town_with_rigs(&["web", "api"]);
    copy.write("records.jsonl", &records);
    copy.bd(["import", "records.jsonl"]).ok();
    assert_eq!(copy.ids(&["list", "--rig", "api"]), ["hq-a"]);
    town.bd(["update", "hq-a", "--rig", ""]).ok();
    assert_eq!(town.ids(&["list", "--rig", "api"]), [""; 0]);
    assert!(!town.export().contains("gt_rig"), "its prefix says it all again");
}

#[test]
fn a_bead_that_runs_stays_in_its_rig() {
    let town = town_with_rigs(&["web", "api"]);
    town.gt(["config", "set", "rig.web.command", "sleep 600"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a", "--no-boot"]).ok();
    let error = refusal(&town.bd(["update", "we-a", "--rig", "api"]));
    assert_says(&error, &["cannot move we-a", "gt run cancel we-a#1"]);
    town.gt(["run", "cancel", "we-a"]).ok();
    town.bd(["update", "we-a", "--rig", "api"]).ok();
}

#[test]
fn a_branch_that_the_origin_does_not_have_is_refused() {
    let town = town();
    let repository = town.git_repository("project");
    town.command("git").args(["branch", "trunk"]).dir(&repository).run().ok();
    town.gt(["rig", "add", "web", "../project"]).ok();
    let last = town.last_event();

    let error = refusal(&town.gt(["rig", "set", "web", "branch", "trunc"]));
    assert_says(&error, &["the origin of the rig web has no branch trunc", "did you mean trunk?"]);
    assert_says(
        &refusal(&town.gt(["rig", "set", "web", "branch", "nonesuch"])),
        &["no branch nonesuch"],
    );
    assert_says(
        &refusal(&town.gt(["rig", "add", "api", "../project", "--branch", "nonesuch"])),
        &["the origin of the rig api has no branch nonesuch"],
    );
    assert_eq!(town.last_event(), last, "nothing happened");

    town.gt(["rig", "set", "web", "branch", "trunk"]).ok();
    // An origin that does not answer refuses nothing.
    std::fs::rename(&repository, repository.with_extension("gone")).unwrap();
    town.gt(["rig", "set", "web", "branch", "later"]).ok();
}
