//! `bd create` with a parent and with dependencies: all of it or nothing.

use serde_json::{Value, json};

use crate::support::{Steps as _, assert_says, refusal, texts, town};

/// The dependencies of a bead: type and target.
fn dependencies(bead: &Value) -> Vec<(String, String)> {
    let Some(edges) = bead["dependencies"].as_array() else {
        return Vec::new();
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut pairs: Vec<_> =
        edges.iter().map(|edge| (text(&edge["dependency_type"]), text(&edge["id"]))).collect();
    pairs.sort();
    pairs
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(kind, id): &(&str, &str)| ((*kind).to_owned(), (*id).to_owned());
    expected.iter().map(owned).collect()
}

#[test]
fn a_part_has_its_parents_id_and_a_number() {
    let town = town();
    town.bead("hq-e", &["-t", "epic"]);

    let first = town.create("First", &["--parent", "hq-e"]);
    let second = town.create("Second", &["--parent", "hq-e"]);
    let deeper = town.create("Deeper", &["--parent", &first]);

    assert_eq!((first.as_str(), second.as_str()), ("hq-e.1", "hq-e.2"));
    assert_eq!(deeper, "hq-e.1.1");
    let bead = town.show(&first);
    assert_eq!(bead["parent"], "hq-e");
    assert_eq!(dependencies(&bead), pairs(&[("parent-child", "hq-e")]));
    assert_eq!(town.ids(&["list", "--parent", "hq-e"]).len(), 2);
}

#[test]
fn numbers_of_parts_are_not_used_again() {
    let town = town();
    town.bead("hq-e", &[]);
    town.create("First", &["--parent", "hq-e"]);
    town.create("Second", &["--parent", "hq-e"]);
    town.bd(["delete", "hq-e.1", "--force"]).ok();

    assert_eq!(town.create("Third", &["--parent", "hq-e"]), "hq-e.3");
}

#[test]
fn a_part_takes_over_labels_unless_told_otherwise() {
    let town = town();
    town.bead("hq-e", &["-l", "area,team"]);

    let heir = town.create("Heir", &["--parent", "hq-e", "-l", "own,area"]);
    let rebel = town.create("Rebel", &["--parent", "hq-e", "--no-inherit-labels"]);

    assert_eq!(town.show(&heir)["labels"], json!(["area", "own", "team"]));
    assert_eq!(town.show(&rebel).get("labels"), None);
}

#[test]
fn either_an_id_or_a_parent() {
    let town = town();
    town.bead("hq-e", &[]);

    let error = refusal(&town.bd(["create", "Both", "--id", "hq-x", "--parent", "hq-e"]));

    assert_says(&error, &["either an id or a parent"]);
}

#[test]
fn dependencies_are_ids_or_types_with_ids() {
    let town = town();
    for id in ["hq-a", "hq-b", "hq-c", "hq-d", "hq-e"] {
        town.bead(id, &[]);
    }

    let id = town.create(
        "Links",
        &[
            "--deps",
            "hq-a,depends-on:hq-b",
            "--deps",
            "blocked-by:hq-c, related:hq-d",
            "--deps",
            "discovered-from:hq-e",
        ],
    );

    assert_eq!(
        dependencies(&town.show(&id)),
        pairs(&[
            ("blocks", "hq-a"),
            ("blocks", "hq-b"),
            ("blocks", "hq-c"),
            ("discovered-from", "hq-e"),
            ("related", "hq-d"),
        ])
    );
    assert!(!town.ready().contains(&id));
}

#[test]
fn blocks_is_the_other_way_round() {
    let town = town();
    town.bead("hq-later", &[]);

    let updated = town.show("hq-later")["updated_at"].clone();

    let id = town.create("First", &["--deps", "blocks:hq-later"]);

    assert_ne!(town.show("hq-later")["updated_at"], updated, "it changed");
    assert_eq!(dependencies(&town.show("hq-later")), pairs(&[("blocks", &id)]));
    assert_eq!(dependencies(&town.show(&id)), []);
    assert_eq!(town.ready(), [id]);
}

#[test]
fn dependencies_resolve_partial_ids() {
    let town = town();
    town.bead("hq-kettle", &[]);

    let id = town.create("Tea", &["--deps", "kettle"]);

    assert_eq!(dependencies(&town.show(&id)), pairs(&[("blocks", "hq-kettle")]));
}

#[test]
fn a_bead_can_wait_for_the_children_of_another() {
    let town = town();
    town.bead("hq-e", &["-t", "epic"]);
    town.create("Part", &["--parent", "hq-e"]);

    let all = town.create("After all", &["--waits-for", "hq-e"]);
    let any =
        town.create("After any", &["--waits-for", "hq-e", "--waits-for-gate", "any-children"]);

    for id in [&all, &any] {
        let bead = town.show(id);
        assert_eq!(dependencies(&bead), pairs(&[("waits-for", "hq-e")]));
    }
    assert_says(&town.export(), &[r#""metadata":"{\"gate\":\"any-children\"}""#]);
    town.bd(["create", "No", "--waits-for-gate", "any-children"]).fails(1);
}

#[test]
fn a_failed_link_leaves_no_bead() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-e", &["-t", "epic"]);
    let before = town.last_event();

    for (flags, reason) in [
        (["--deps", "hq-none"], "no issue found matching \"hq-none\""),
        (["--deps", "hq-a,nonsense"], "no issue found matching"),
        (["--deps", "mystery:hq-a"], "is not a known dependency type"),
        (["--deps", "blocks:"], "names no bead"),
        (["--deps", "hq-e"], "can only block other"),
        (["--deps", "blocks:hq-e"], "can only block other"),
        (["--deps", "blocks:other-1"], "no issue found matching \"other-1\""),
        (["--parent", "hq-none"], "no issue found matching"),
        (["--waits-for", "hq-none"], "no issue found matching"),
    ] {
        let create = town.start_bd(&["create", "Wrong"]).args(flags);
        assert_says(&refusal(&create.run()), &[reason]);
    }

    assert_eq!(town.ids(&["list"]).len(), 2);
    assert_eq!(town.last_event(), before, "nothing happened");
}

#[test]
fn a_part_cannot_wait_for_its_parent() {
    let town = town();
    town.bead("hq-p", &[]);

    let error = refusal(&town.bd(["create", "Part", "--parent", "hq-p", "--waits-for", "hq-p"]));

    assert_says(&error, &["hq-p"]);
    assert_eq!(town.ids(&["list"]), ["hq-p"]);
}

#[test]
fn a_target_of_another_place_is_kept_and_never_blocks() {
    let town = town();

    let id = town.create("Depends on them", &["--deps", "other-123"]);

    assert_eq!(town.ready(), [id.as_str()]);
    let listed = town.json(&["list"]);
    assert_eq!(texts(&listed[0]["dependencies"], "depends_on_id"), ["other-123"]);
}
