//! Plans of beads to make: one object per line, or a graph.

use gt_core::plan::BeadReference;
use gt_core::{DependencyType, Json, Priority};
use gt_records::{parse_dependency_lines, parse_plan_graph, parse_plan_lines};
use proptest::prelude::*;

#[test]
fn a_line_says_everything() {
    let text = r#"
{"key":"a","title":"First","description":"d","design":"e","acceptance_criteria":"f","notes":"n","priority":"P1","issue_type":"feat","assignee":"ann","labels":["x","y,z"],"external_ref":"gh-1","estimated_minutes":30,"metadata":{"b":1,"a":[ 2 ]},"id":"hq-a","due":"+2d","defer_until":"2030-01-01T00:00:00Z","ephemeral":true}

{"title":"Second","type":"bug","parent":"a","deps":["a","related:hq-z"],"labels":"one, two"}
"#;

    let plan = parse_plan_lines("plan.jsonl", text).unwrap();

    let [first, second] = plan.beads() else { panic!("{plan:?}") };
    let said = &first.draft;
    assert_eq!((said.place.as_str(), said.title.as_str()), ("plan.jsonl:2", "First"));
    assert_eq!((said.description.as_str(), said.design.as_str()), ("d", "e"));
    assert_eq!((said.acceptance_criteria.as_str(), said.notes.as_str()), ("f", "n"));
    assert_eq!(said.priority, Priority::new(1).unwrap());
    assert_eq!(said.issue_type.as_ref().unwrap().as_str(), "feature");
    assert_eq!(said.labels, ["x", "y", "z"]);
    assert_eq!(said.metadata, Some(Json::trusted(r#"{"b":1,"a":[2]}"#.to_owned())));
    assert_eq!(
        (said.due.as_deref(), said.defer.as_deref()),
        (Some("+2d"), Some("2030-01-01T00:00:00Z"))
    );
    assert!(said.ephemeral);
    assert_eq!(second.draft.labels, ["one", "two"]);
    assert_eq!(second.parent, Some(BeadReference::Planned(0)));
    let targets: Vec<_> = plan.edges().iter().map(|edge| &edge.target).collect();
    assert_eq!(targets, [&BeadReference::Planned(0), &BeadReference::Existing("hq-z".to_owned())]);
}

#[test]
fn a_wrong_line_is_named_with_its_field() {
    for (line, said) in [
        ("{", "p:2: not valid JSON"),
        ("[]", "p:2: expected an object"),
        ("{}", "p:2: field \"title\": missing"),
        (
            r#"{"title":"x","colour":"red"}"#,
            "p:2: field \"colour\": unknown here; known: key, title",
        ),
        (r#"{"title":"x","priority":7}"#, "p:2: field \"priority\": priority 7 is not between"),
        (r#"{"title":"x","labels":[1]}"#, "p:2: field \"labels\": expected a text"),
        (r#"{"title":"x","estimated_minutes":-1}"#, "p:2: field \"estimated_minutes\": -1 is not"),
        (r#"{"title":"x","deps":["foo:bar"]}"#, "p:2: \"foo\" is not a known dependency type"),
        (r#"{"title":"x","key":"k"}"#, "p:2: the key \"k\" is already taken at p:1"),
        (r#"{"title":"x\u0000"}"#, "p:2: field \"title\": the text contains a NUL"),
    ] {
        let text = format!("{}\n{line}\n", r#"{"title":"fine","key":"k"}"#);
        let message = parse_plan_lines("p", &text).unwrap_err().0;
        assert!(message.starts_with(said), "{message} does not say {said}");
    }
}

#[test]
fn a_graph_has_nodes_and_edges() {
    let text = r#"{
      "commit_message": "a message",
      "nodes": [
        {"key":"root","title":"Root","type":"epic","metadata":{"n":1},"metadata_refs":{"first":"leaf"}},
        {"key":"leaf","title":"Leaf","parent_key":"root","assignee":"ann","assign_after_create":true},
        {"key":"far","title":"Far","parent_id":"hq-old","labels":["a"]}
      ],
      "edges": [
        {"from_key":"leaf","to_key":"far"},
        {"from_id":"hq-old","to_key":"leaf","type":"tracks"}
      ]
    }"#;

    let plan = parse_plan_graph("plan.json", text).unwrap();

    let [root, leaf, far] = plan.beads() else { panic!("{plan:?}") };
    assert_eq!(root.metadata_refs, [("first".to_owned(), 1)]);
    assert_eq!(
        (leaf.parent.clone(), leaf.draft.assign_last),
        (Some(BeadReference::Planned(0)), true)
    );
    assert_eq!(far.parent, Some(BeadReference::Existing("hq-old".to_owned())));
    let [first, second] = plan.edges() else { panic!("{plan:?}") };
    assert_eq!(
        (&first.issue, &first.target),
        (&BeadReference::Planned(1), &BeadReference::Planned(2))
    );
    assert_eq!(first.kind, DependencyType::Blocks);
    assert_eq!(
        (&second.issue, &second.kind),
        (&BeadReference::Existing("hq-old".to_owned()), &DependencyType::Tracks)
    );
}

#[test]
fn a_wrong_graph_is_named_with_its_node() {
    for (text, said) in [
        ("{\n\"nodes\": [}", "g: not valid JSON: expected value at line 2"),
        ("[]", "g: expected an object"),
        ("{}", "g: there is no bead in it"),
        (r#"{"nodes":[],"egdes":[]}"#, "g: field \"egdes\": unknown here"),
        (r#"{"nodes":[{"title":"x"}]}"#, "g: nodes[0]: field \"key\": missing"),
        (
            r#"{"nodes":[{"key":"a","title":"x","parent":"b"}]}"#,
            "g: nodes[0]: field \"parent\": unknown here",
        ),
        (
            r#"{"nodes":[{"key":"a","title":"x","parent_key":"b","parent_id":"c"}]}"#,
            "g: nodes[0]: field \"parent_key\": either this or parent_id",
        ),
        (
            r#"{"nodes":[{"key":"a","title":"x","parent_key":"b"}]}"#,
            "g: nodes[0]: nothing in this file has the key \"b\"",
        ),
        (
            r#"{"nodes":[{"key":"a","title":"x","metadata":[],"metadata_refs":{"m":"a"}}]}"#,
            "g: nodes[0]: field \"metadata\": expected an object",
        ),
        (
            r#"{"nodes":[{"key":"a","title":"x","metadata_refs":[]}]}"#,
            "g: nodes[0]: field \"metadata_refs\": expected an object",
        ),
        (
            r#"{"nodes":[{"key":"a","title":"x"}],"edges":[{"from_key":"a"}]}"#,
            "g: edges[0]: field \"to_key\": missing",
        ),
        (
            r#"{"nodes":[{"key":"a","title":"x"}],"edges":[{"from_key":"a","to_key":"z"}]}"#,
            "g: edges[0]: nothing in this file has the key \"z\"",
        ),
    ] {
        let message = parse_plan_graph("g", text).unwrap_err().0;
        assert!(message.starts_with(said), "{message} does not say {said}");
    }
}

#[test]
fn dependencies_come_one_per_line() {
    let text = "{\"from\":\"a\",\"to\":\"b\"}\n\n{\"issue_id\":\"c\",\"depends_on_id\":\"d\",\"type\":\"related\"}";
    let found = parse_dependency_lines("e", text).unwrap();
    let read: Vec<_> = found
        .iter()
        .map(|d| (d.place.as_str(), d.issue.as_str(), d.target.as_str(), d.kind.as_str()))
        .collect();
    assert_eq!(read, [("e:1", "a", "b", "blocks"), ("e:3", "c", "d", "related")]);
    for (line, said) in [
        (r#"{"from":"a"}"#, "e:1: field \"to\": missing"),
        (
            r#"{"from":"a","to":"b","kind":"x"}"#,
            "e:1: field \"kind\": unknown here; known: from, to, type",
        ),
    ] {
        let message = parse_dependency_lines("e", line).unwrap_err().0;
        assert!(message.starts_with(said), "{message} does not say {said}");
    }
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(text in any::<String>(), values in prop::collection::vec(
        prop_oneof![
            Just("\"a\""), Just("null"), Just("[\"a\",\"b\"]"), Just("[1]"), Just("{\"a\":\"b\"}"), Just("-1"),
            Just("true"), Just("\"blocks:a\""), Just("\"\\ud800\""), Just("1e400"),
        ], 12))
    {
        let names = ["title", "key", "deps", "parent", "labels", "metadata", "priority", "due", "id", "metadata_refs", "parent_key", "estimated_minutes"];
        let fields: Vec<String> = names.iter().zip(&values).map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let object = format!("{{{}}}", fields.join(","));
        for text in [&text, &object] {
            let _ = parse_plan_lines("p", text);
            let _ = parse_plan_graph("p", text);
            let _ = parse_plan_graph("p", &format!("{{\"nodes\":[{text}],\"edges\":[{text}]}}"));
            let _ = parse_dependency_lines("p", text);
        }
    }
}
