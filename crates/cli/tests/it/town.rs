//! Towns: made by `gt install`, found from wherever one stands.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Steps as _, assert_says, json_refusal, keys, nowhere, refusal, town};

#[test]
fn a_town_is_made_where_it_is_asked_for() {
    let sandbox = nowhere();

    let made = sandbox.gt(["install", "deep/down/town"]).ok();

    let root = sandbox.cwd().join("deep/down/town");
    assert_says(&made.stdout, &["Made a town in", root.to_str().unwrap()]);
    assert!(root.join(".gt/town.toml").is_file());
    assert!(root.join(".gt/gt.db").is_file());
    assert_eq!(sandbox.in_dir(root).ids(&["list"]), [""; 0]);
}

#[test]
fn the_new_town_is_described_as_json() {
    let sandbox = nowhere();

    let made = sandbox.gt_json(&["install", "town"]);
    let again = sandbox.gt_json(&["install", "town"]);

    assert_eq!(keys(&made), ["created", "root", "schema_version"]);
    assert_eq!(made["root"], sandbox.cwd().join("town").display().to_string());
    assert_eq!((&made["created"], &again["created"]), (&true.into(), &false.into()));
}

#[test]
fn installing_again_changes_nothing() {
    let town = town();
    let id = town.create("Boil water", &[]);
    let file = fs::read(town.cwd().join(".gt/town.toml")).unwrap();

    let again = town.gt(["install", "."]).ok();

    assert_says(&again.stdout, &["is a town already"]);
    assert_eq!(
        fs::read(town.cwd().join(".gt/town.toml")).unwrap(),
        file,
        "the town keeps its identity"
    );
    assert_eq!(town.ids(&["list"]), [id]);
}

#[test]
fn towns_do_not_nest() {
    let town = town();

    let error = refusal(&town.gt(["install", "inner/town"]));

    assert_says(&error, &["inside the town", "towns do not nest"]);
    assert!(!town.cwd().join("inner").exists(), "nothing is left behind");
}

#[test]
fn a_place_that_cannot_be_a_directory_is_refused() {
    let sandbox = nowhere();
    sandbox.write("file", "just a file");

    for place in ["file/town", "file", "/proc/town"] {
        let error = refusal(&sandbox.gt(["install", place]));
        assert_says(&error, &["cannot create", place]);
        let error = json_refusal(&sandbox.gt(["install", place, "--json"]));
        assert_says(&error, &["cannot create", place]);
    }
    assert_eq!(fs::read(sandbox.cwd().join("file")).unwrap(), b"just a file");
}

#[test]
fn a_town_in_a_git_repository_stays_out_of_its_history() {
    let sandbox = nowhere();
    let repository = sandbox.in_dir(sandbox.git_repository("project"));

    repository.gt(["install", "."]).ok();

    let git = repository.command("git").args(["status", "--porcelain"]).run().ok();
    assert_eq!(git.stdout, "");
}

#[test]
fn the_town_is_found_by_walking_up() {
    let town = town();
    let id = town.create("Boil water", &[]);
    let below = town.in_dir(town.make_dir("some/where/below"));

    assert_eq!(below.ids(&["list"]), [id]);
}

#[test]
fn the_town_is_found_by_its_variables() {
    let town = town();
    let id = town.create("Boil water", &[]);
    let elsewhere = town.in_dir(town.make_dir(town.root().join("elsewhere")));

    for variable in ["GT_TOWN_ROOT", "GT_ROOT"] {
        let list = elsewhere.bd_with(variable, town.cwd(), &["list", "--json"]).ok();
        assert_eq!(list.json()[0]["id"], id.as_str(), "{variable}");
    }
    let beads = town.cwd().join(".beads");
    let list = elsewhere.bd_with("BEADS_DIR", beads, &["list", "--json"]).ok();
    assert_eq!(list.json()[0]["id"], id.as_str());
}

#[test]
fn the_town_around_is_over_the_variables() {
    let here = town();
    let there = town();
    let id = here.create("Here", &[]);
    there.create("There", &[]);

    let list = here.bd_with("GT_ROOT", there.cwd(), &["list", "--json"]).ok();

    assert_eq!(list.json()[0]["id"], id.as_str());
}

#[test]
fn the_beads_of_the_environment_are_over_the_town_around() {
    let here = town();
    let there = town();
    there.gt(["rig", "add", "web"]).ok();
    here.create("Here", &[]);
    let file = there.cwd().join("web/.beads/beads.db");

    for (variable, place) in [("BEADS_DIR", file.parent().unwrap()), ("BEADS_DB", &*file)] {
        let made = here.bd_with(variable, place, &["create", variable, "--json"]).ok().json();
        assert_eq!(there.show(made["id"].as_str().unwrap())["title"], variable);
        assert!(made["id"].as_str().unwrap().starts_with("we-"), "{made}");
    }
    let list = here.bd_with("BEADS_DIR", "/nowhere/.beads", &["list", "--json"]).ok();
    assert_eq!(list.json()[0]["title"], "Here");
    let named = here.cwd().join(".beads/beads.db");
    let by_option = here.start_bd(&["--db", named.to_str().unwrap(), "list", "--json"]);
    let list = by_option.env("BEADS_DIR", file.parent().unwrap()).run().ok();
    assert_eq!(list.json()[0]["title"], "Here");
}

#[test]
fn a_variable_that_names_no_town_is_an_error() {
    let sandbox = nowhere();

    let error = refusal(&sandbox.bd_with("GT_TOWN_ROOT", "/nowhere/at/all", &["list"]));

    assert_says(&error, &["GT_TOWN_ROOT", "/nowhere/at/all", "gt install"]);
}

#[test]
fn without_a_town_every_command_says_how_to_make_one() {
    let sandbox = nowhere();

    for command in ["list", "ready", "stats", "activity", "export"] {
        let error = refusal(&sandbox.bd([command]));
        assert_says(&error, &["no town found", "gt install", "bd init"]);
    }
    for command in ["status", "doctor", "feed"] {
        let error = refusal(&sandbox.gt([command]));
        assert_says(&error, &["no town found", "gt install"]);
    }
    let error = json_refusal(&sandbox.bd(["list", "--json"]));
    assert_says(&error, &["no town found"]);
}

#[test]
fn another_directory_can_be_named() {
    let town = town();
    let id = town.create("Boil water", &[]);
    let elsewhere = town.in_dir(town.root());

    assert_eq!(elsewhere.ids(&["-C", "town", "list"]), [id.as_str()]);
    assert_eq!(elsewhere.ids(&["list", "--directory", "town"]), [id]);
    let error = refusal(&elsewhere.bd(["-C", "nowhere", "list"]));
    assert_says(&error, &["there is no directory nowhere"]);
}

#[test]
fn the_file_of_the_store_can_be_named() {
    let town = town();
    let id = town.create("Boil water", &[]);
    let elsewhere = town.in_dir(town.root());

    assert_eq!(elsewhere.ids(&["--db", "town/.gt/gt.db", "list"]), [id]);
    refusal(&elsewhere.bd(["--db", "nowhere/gt.db", "list"]));
}

#[test]
fn paths_begin_in_the_named_directory() {
    let town = town();
    town.write("body.txt", "At length");
    let elsewhere = town.in_dir(town.root());

    let id = elsewhere.create("A task", &["-C", "town", "--body-file", "body.txt"]);

    assert_eq!(town.show(&id)["description"], "At length");
}

#[test]
fn a_damaged_town_file_is_named() {
    let town = town();
    for damage in ["id = [", "idd = \"x\"", ""] {
        town.write(".gt/town.toml", damage);
        let error = refusal(&town.bd(["list"]));
        assert_says(&error, &[".gt/town.toml", "damaged"]);
    }
}

#[test]
fn the_program_called_bd_is_bd() {
    let town = town();
    let id = town.create("Boil water", &[]);
    let link = town.root().join("bd");
    symlink(town.gt_path(), &link).unwrap();

    let by_name = town.command(&link).args(["list", "--json"]).run().ok();
    let by_verb = town.gt(["bd", "list", "--json"]).ok();

    assert_eq!(by_name.json()[0]["id"], id.as_str());
    assert_eq!(by_verb.stdout, by_name.stdout);
    assert_eq!(town.bd(["list", "--json"]).ok().stdout, by_name.stdout);
}

#[test]
fn the_flags_of_gt_reach_bd() {
    let town = town();
    let id = town.create("Boil water", &[]);
    let elsewhere = town.in_dir(town.root());

    let list = elsewhere.gt(["--json", "-C", "town", "bd", "list"]).ok();

    assert_eq!(list.json()[0]["id"], id.as_str());
}
