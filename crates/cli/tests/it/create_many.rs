//! `bd create --file` and `--graph`: a whole plan of beads, all of it or nothing.

use gt_testkit::Sandbox;
use serde_json::{Value, json};

use crate::support::{
    Steps as _, assert_says, json_refusal, keys, refusal, texts, town, town_with_rigs,
};

const PLAN: &str = "\
# Release 2

Words that are not a bead.

## Build the store
It must be fast.

```
## not a bead
```
### Type
epic
### Labels
core, storage

## Use the store, carefully
### Parent
Build the store
### Priority
P0
### Dependencies
- Write the docs
- related:hq-old

## Write the docs
### Assignee
ann
### Acceptance Criteria
A tester read them.
### Estimate
30
### External Ref
gh-7
";

/// The beads there are.
fn count(town: &Sandbox) -> usize {
    town.ids(&["list", "--all"]).len()
}

/// The beads that a bead depends on, each behind its type.
fn depends_on(bead: &Value) -> Vec<String> {
    let edges = bead["dependencies"].as_array().cloned().unwrap_or_default();
    let text = |edge: &Value, field: &str| edge[field].as_str().unwrap().to_owned();
    edges
        .iter()
        .map(|edge| format!("{}:{}", text(edge, "dependency_type"), text(edge, "id")))
        .collect()
}

#[test]
fn a_markdown_file_makes_every_bead() {
    let town = town();
    town.bead("hq-old", &[]);
    town.write("plan.md", PLAN);

    let made = town.json(&["create", "--file", "plan.md"]);

    assert_eq!(
        texts(&made, "title"),
        ["Build the store", "Use the store, carefully", "Write the docs"]
    );
    let ids = texts(&made, "id");
    assert_eq!(ids[1], format!("{}.1", ids[0]));
    let store = town.show(&ids[0]);
    assert_eq!(store["description"], "It must be fast.\n\n```\n## not a bead\n```");
    assert_eq!(
        (&store["issue_type"], &store["labels"]),
        (&json!("epic"), &json!(["core", "storage"]))
    );
    let user = town.show(&ids[1]);
    assert_eq!((&user["priority"], &user["parent"]), (&json!(0), &json!(ids[0])));
    assert_eq!(user["labels"], json!(["core", "storage"]), "parts take over labels");
    let mut edges = depends_on(&user);
    edges.sort();
    assert_eq!(
        edges,
        [
            format!("blocks:{}", ids[2]),
            format!("parent-child:{}", ids[0]),
            "related:hq-old".to_owned()
        ]
    );
    let docs = town.show(&ids[2]);
    assert_eq!(
        (&docs["assignee"], &docs["acceptance_criteria"]),
        (&json!("ann"), &json!("A tester read them."))
    );
    assert_eq!((&docs["estimated_minutes"], &docs["external_ref"]), (&json!(30), &json!("gh-7")));
}

#[test]
fn the_short_flag_and_standard_input_work_too() {
    let town = town();

    let made =
        town.start_bd(&["create", "-f", "-", "--silent"]).stdin("## One\n\n## Two\n").run().ok();

    let ids: Vec<&str> = made.stdout.lines().collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(town.show(ids[1])["title"], "Two");
    let lines = town.start_bd(&["create", "-f", "-"]).stdin("\n{\"title\":\"Three\"}\n").run().ok();
    assert_says(&lines.stdout, &["✓ Created issue: hq-", " — Three"]);
}

#[test]
fn lines_of_json_name_each_other_by_key() {
    let town = town();
    town.bead("hq-old", &[]);
    town.write(
        "plan.jsonl",
        r#"{"title":"Second","deps":["first","discovered-from:hq-old"],"parent":"top","labels":["a","b"]}

{"key":"first","title":"First","type":"bug","priority":1,"metadata":{"x":[1]},"due":"+2d","defer":"+1d"}
{"key":"top","title":"Top","issue_type":"epic","description":"d","design":"e","notes":"n","id":"hq-top"}
"#,
    );

    let made = town.json(&["create", "--file", "plan.jsonl"]);

    let ids = texts(&made, "id");
    assert_eq!((ids[0].as_str(), ids[2].as_str()), ("hq-top.1", "hq-top"));
    let second = town.show("hq-top.1");
    let mut edges = depends_on(&second);
    edges.sort();
    assert_eq!(
        edges,
        [
            format!("blocks:{}", ids[1]),
            "discovered-from:hq-old".to_owned(),
            "parent-child:hq-top".to_owned()
        ]
    );
    let first = town.show(&ids[1]);
    assert_eq!((&first["status"], &first["metadata"]), (&json!("deferred"), &json!({"x": [1]})));
    assert!(first["due_at"].is_string());
    assert_eq!(town.show("hq-top")["design"], "e");
}

#[test]
fn a_mistake_anywhere_makes_nothing() {
    let town = town();
    town.bead("hq-task", &[]);
    let before = (count(&town), town.last_event());
    for (name, text, said) in [
        ("a.md", "## Fine\n## Bad\n### Priority\nsoon\n", "a.md:3: \"soon\" is not a priority"),
        (
            "b.md",
            "## Fine\n### Deps\nhq-nothing\n",
            "b.md:3: no issue found matching \"hq-nothing\"",
        ),
        (
            "c.md",
            "## Fine\n## Epic\n### Type\nepic\n### Deps\nFine\n",
            "c.md:6: epics can only block other epics",
        ),
        (
            "d.md",
            "## A\n### Deps\nB\n## B\n### Deps\nA\n",
            "d.md: a cycle of dependencies: \"A\" → \"B\" → \"A\"",
        ),
        ("e.md", "## Fine\n## Taken\n### Id\nhq-task\n", "e.md:2: hq-task already exists"),
        (
            "f.md",
            "## Fine\n## Foreign\n### Id\nzz-1\n",
            "f.md:2: zz-1 has none of the known prefixes",
        ),
        (
            "g.jsonl",
            "{\"title\":\"x\"}\n{\"title\":\"y\",\"colour\":1}\n",
            "g.jsonl:2: field \"colour\": unknown here",
        ),
        ("h.jsonl", "{\"title\":\"x\"}\n{\"title\":\"y\",\"due\":\"someday\"}\n", "h.jsonl:2: "),
        ("i.md", "nothing\n", "i.md: there is no bead in it"),
        ("j.md", "## Part\n### Parent\nPart\n", "j.md: parts of each other: \"Part\""),
    ] {
        town.write(name, text);
        let error = refusal(&town.bd(["create", "--file", name]));
        assert_says(&error, &[said]);
    }
    let error = json_refusal(&town.bd(["create", "--file", "a.md", "--json"]));
    assert_says(&error, &["a.md:3"]);
    assert_eq!((count(&town), town.last_event()), before);
}

#[test]
fn a_dry_run_shows_everything_and_makes_nothing() {
    let town = town();
    town.bead("hq-old", &[]);
    town.write("plan.md", PLAN);

    let shown = town.bd(["create", "--file", "plan.md", "--dry-run"]).ok();

    assert_says(
        &shown.stdout,
        &["Would create 3 beads:", "Build the store [core, storage]", "P0", "@ann"],
    );
    assert_says(&shown.stdout, &["depend on hq-old (related)"]);
    let listed = town.json(&["create", "--file", "plan.md", "--dry-run"]);
    assert_eq!(listed.as_array().unwrap().len(), 3);
    assert_eq!(count(&town), 1);
    // A dry run refuses the same input.
    town.write("bad.md", "## A\n### Deps\nhq-nothing\n");
    refusal(&town.bd(["create", "--file", "bad.md", "--dry-run"]));
}

#[test]
fn flags_for_one_bead_are_refused_with_a_file() {
    let town = town();
    town.write("plan.md", PLAN);
    for flags in [
        &["--title", "x"][..],
        &["x"],
        &["-p", "1"],
        &["--deps", "hq-a"],
        &["-d", "x"],
        &["--stdin"],
    ] {
        for source in ["--file", "--graph"] {
            let ran = town.start_bd(&["create", source, "plan.md"]).args(flags).run();
            assert_eq!(ran.code, 1, "{ran}");
            assert_says(&ran.stderr, &[source, "cannot be used with"]);
        }
    }
    let both = town.bd(["create", "--file", "plan.md", "--graph", "plan.md"]);
    assert_says(&both.stderr, &["cannot be used with"]);
}

#[test]
fn the_rig_holds_for_every_bead() {
    let town = town_with_rigs(&["web"]);
    town.write("plan.md", "## One\n## Two\n");

    let made = town.json(&["create", "--file", "plan.md", "--rig", "web"]);

    assert!(texts(&made, "id").iter().all(|id| id.starts_with("we-")), "{made}");
}

#[test]
fn beads_of_the_same_title_stay_apart() {
    let town = town();
    town.write("plan.md", "## Same\n## Same\n## Same\n");

    let mut ids = texts(&town.json(&["create", "--file", "plan.md"]), "id");

    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

const GRAPH: &str = r#"{
  "commit_message": "a plan",
  "nodes": [
    {"key": "zebra", "title": "Root", "type": "epic", "metadata": {"n": 1}, "metadata_refs": {"first": "ant"}},
    {"key": "ant", "title": "Leaf", "parent_key": "zebra", "assignee": "ann", "assign_after_create": true,
     "priority": 0, "labels": ["x"], "description": "d"},
    {"key": "bee", "title": "Other", "parent_id": "hq-old"}
  ],
  "edges": [
    {"from_key": "ant", "to_key": "bee"},
    {"from_id": "hq-old", "to_key": "ant", "type": "tracks"}
  ]
}"#;

#[test]
fn a_graph_is_made_and_its_ids_are_told_by_key() {
    let town = town();
    town.bead("hq-old", &[]);
    town.write("plan.json", GRAPH);

    let answer = town.json(&["create", "--graph", "plan.json"]);

    assert_eq!(keys(&answer), ["ids", "schema_version"]);
    assert_eq!(keys(&answer["ids"]), ["ant", "bee", "zebra"]);
    let id = |key: &str| answer["ids"][key].as_str().unwrap().to_owned();
    assert_eq!((id("ant"), id("bee")), (format!("{}.1", id("zebra")), "hq-old.1".to_owned()));
    assert_eq!(town.show(&id("zebra"))["metadata"], json!({"n": 1, "first": id("ant")}));
    let leaf = town.show(&id("ant"));
    assert_eq!((&leaf["assignee"], &leaf["priority"]), (&json!("ann"), &json!(0)));
    assert!(depends_on(&leaf).contains(&"blocks:hq-old.1".to_owned()));
    assert!(depends_on(&town.show("hq-old")).contains(&format!("tracks:{}", id("ant"))));
    // The assignment comes after everything is there.
    let events = town.events();
    let place = |kind: &str, bead: &str| {
        events
            .iter()
            .position(|event| event["event_type"] == kind && event["issue_id"] == bead)
            .unwrap()
    };
    assert!(place("updated", &id("ant")) > place("created", "hq-old.1"));
}

#[test]
fn a_wrong_graph_is_refused_by_name() {
    let town = town();
    for (text, said) in [
        ("{", "not valid JSON"),
        (
            r#"{"nodes":[{"key":"a","title":"A"},{"key":"a","title":"B"}]}"#,
            "the key \"a\" is already taken at plan.json: nodes[0]",
        ),
        (
            r#"{"nodes":[{"key":"a","title":"A"}],"edges":[{"from_key":"a","to_key":"b"}]}"#,
            "edges[0]: nothing in this file has the key \"b\"",
        ),
        (
            r#"{"nodes":[{"key":"a","title":"A"},{"key":"b","title":"B"}],"edges":[{"from_key":"a","to_key":"b"},{"from_key":"b","to_key":"a"}]}"#,
            "a cycle of dependencies: \"a\" → \"b\" → \"a\"",
        ),
        (
            r#"{"nodes":[{"key":"a","title":"A","parent_key":"b"},{"key":"b","title":"B","parent_key":"a"}]}"#,
            "parts of each other: \"a\" → \"b\" → \"a\"",
        ),
        (
            r#"{"nodes":[{"key":"a","title":"A","parent_id":"hq-none"}]}"#,
            "nodes[0]: no issue found matching \"hq-none\"",
        ),
        (
            r#"{"nodes":[{"key":"a","title":"A","metadata_refs":{"m":"z"}}]}"#,
            "nodes[0]: nothing in this file has the key \"z\"",
        ),
    ] {
        town.write("plan.json", text);
        let error = refusal(&town.bd(["create", "--graph", "plan.json"]));
        assert_says(&error, &["plan.json", said]);
    }
    assert_eq!(count(&town), 0);
}

#[test]
fn a_graph_can_be_rehearsed_and_come_from_standard_input() {
    let town = town();
    town.bead("hq-old", &[]);

    let rehearsal = town.start_bd(&["create", "--graph", "-", "--dry-run"]).stdin(GRAPH).run().ok();
    assert_says(&rehearsal.stdout, &["Would create 3 beads:", "Leaf [x] @ann", "(tracks)"]);
    assert_eq!(count(&town), 1);

    let made = town.start_bd(&["create", "--graph", "-"]).stdin(GRAPH).run().ok();
    assert_says(&made.stdout, &["✓ Created issue: hq-", " — Root"]);
    assert_eq!(count(&town), 4);
}

#[test]
fn dependencies_come_from_a_file_all_or_none() {
    let town = town();
    for id in ["hq-a", "hq-b", "hq-c"] {
        town.bead(id, &[]);
    }
    town.write(
        "edges.jsonl",
        "{\"from\":\"hq-b\",\"to\":\"hq-a\"}\n\n{\"issue_id\":\"hq-c\",\"depends_on_id\":\"hq-a\",\"type\":\"related\"}\n",
    );

    let added = town.json(&["dep", "add", "--file", "edges.jsonl"]);

    assert_eq!(
        added,
        json!([
            {"status": "added", "issue_id": "hq-b", "depends_on_id": "hq-a", "type": "blocks"},
            {"status": "added", "issue_id": "hq-c", "depends_on_id": "hq-a", "type": "related"},
        ])
    );
    for (lines, said) in [
        (
            "{\"from\":\"hq-c\",\"to\":\"hq-b\"}\n{\"from\":\"hq-a\",\"to\":\"hq-c\"}\n",
            "standard input:2: hq-a cannot depend on hq-c: that would be a cycle",
        ),
        (
            "{\"from\":\"hq-c\",\"to\":\"hq-b\"}\n\n{\"from\":\"hq-z\",\"to\":\"hq-a\"}\n",
            "standard input:3: no issue found matching \"hq-z\"",
        ),
        (
            "{\"from\":\"hq-c\",\"to\":\"hq-b\"}\n{\"to\":\"hq-a\"}\n",
            "standard input:2: field \"from\": missing",
        ),
    ] {
        let error = refusal(&town.start_bd(&["dep", "add", "--file", "-"]).stdin(lines).run());
        assert_says(&error, &[said]);
        assert_eq!(depends_on(&town.show("hq-c")), ["related:hq-a"], "nothing of it was done");
    }
    let both = town.bd(["dep", "add", "hq-c", "hq-b", "--file", "edges.jsonl"]);
    assert_says(&both.stderr, &["cannot be used with"]);
}
