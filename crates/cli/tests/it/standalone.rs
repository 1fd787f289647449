//! `bd init`: beads without a town around them.

use std::fs;

use gt_testkit::Sandbox;

use crate::support::{
    Steps as _, assert_says, files_in, json_refusal, keys, nowhere, refusal, town,
};

fn project(name: &str) -> Sandbox {
    let sandbox = nowhere();
    sandbox.in_dir(sandbox.make_dir(name))
}

#[test]
fn a_store_is_useful_alone() {
    let project = project("my-app");

    let made = project.bd(["init"]).ok();
    let id = project.create("Boil water", &[]);

    assert_says(&made.stdout, &["Made a store", "(prefix ma)"]);
    assert!(id.starts_with("ma-"), "{id}");
    assert_eq!(project.ready(), [id]);
}

#[test]
fn the_prefix_comes_from_the_directory_unless_one_is_given() {
    for (directory, flags, prefix) in [
        ("kitchen", &[][..], "ki"),
        ("My.App", &[], "ma"),
        ("kitchen", &["--prefix", "stove"], "stove"),
        ("kitchen", &["--prefix", "stove-"], "stove"),
        // hq and wq are taken by the town itself.
        ("hq", &[], "hq2"),
    ] {
        let project = project(directory);
        let made = project.start_bd(&["init", "--json"]).args(flags).run().ok().json();
        assert_eq!(keys(&made), ["created", "prefix", "root", "schema_version"], "{directory}");
        assert_eq!(made["prefix"], prefix, "{directory} {flags:?}");
        let id = project.create("A task", &[]);
        assert!(id.starts_with(&format!("{prefix}-")), "{id}");
    }
}

#[test]
fn beads_below_the_store_get_its_prefix_too() {
    let project = project("kitchen");
    project.bd(["init"]).ok();
    let below = project.in_dir(project.make_dir("src/deep"));

    let id = below.create("A task", &[]);

    assert!(id.starts_with("ki-"), "{id}");
}

#[test]
fn a_prefix_that_cannot_be_is_refused_and_nothing_is_made() {
    let project = project("kitchen");
    for (prefix, reason) in [
        ("two words", "is not a prefix"),
        ("-", "is not a prefix"),
        ("hq", "reserved"),
        ("wq", "reserved"),
    ] {
        let error = refusal(&project.bd(["init", "--prefix", prefix]));
        assert_says(&error, &[reason]);
        let error = json_refusal(&project.bd(["init", "--prefix", prefix, "--json"]));
        assert_says(&error, &[reason]);
    }
    assert_eq!(files_in(project.cwd()), [""; 0]);
}

#[test]
fn a_directory_whose_name_gives_no_prefix_needs_one() {
    let project = project("…");

    let error = refusal(&project.bd(["init"]));
    assert_says(&error, &["--prefix"]);
    assert_eq!(files_in(project.cwd()), [""; 0]);

    project.bd(["init", "--prefix", "dots"]).ok();
    assert!(project.create("A task", &[]).starts_with("dots-"));
}

#[test]
fn inside_a_town_there_is_nothing_to_do() {
    let town = town();
    let before = files_in(town.cwd());
    let below = town.in_dir(town.make_dir(".gt"));

    let said = below.bd(["init", "--prefix", "other", "--force"]).ok();
    let json = town.json(&["init"]);

    assert_says(&said.stdout, &["Already inside the town"]);
    assert_eq!(json["created"], false);
    assert_eq!(files_in(town.cwd()), before);
}

#[test]
fn an_interrupted_init_can_be_repeated() {
    let project = project("kitchen");
    project.bd(["init"]).ok();
    // As if the power had gone just before the end.
    fs::remove_file(project.cwd().join(".gt/town.toml")).unwrap();

    project.bd(["init"]).ok();

    assert!(project.create("A task", &[]).starts_with("ki-"));
}

#[test]
fn a_foreign_beads_directory_is_never_touched() {
    let project = project("my-app");
    project.write(".beads/issues.jsonl", "foreign\n");
    project.write(".beads/beads.db", "not ours\n");

    project.bd(["init"]).ok();
    project.create("A task", &[]);
    project.export();

    let beads = project.cwd().join(".beads");
    assert_eq!(files_in(&beads), ["beads.db", "issues.jsonl"]);
    assert_eq!(fs::read_to_string(beads.join("issues.jsonl")).unwrap(), "foreign\n");
    assert_eq!(fs::read_to_string(beads.join("beads.db")).unwrap(), "not ours\n");
}

#[test]
fn flags_of_other_implementations_are_accepted() {
    let project = project("kitchen");

    let init = ["init", "--quiet", "--force", "--server", "--server-port", "3307"];
    let made = project.bd(init).ok();

    assert_eq!(made.stdout, "");
    project.create("A task", &["--sandbox", "--dolt-auto-commit", "off"]);
}
