use proptest::prelude::*;

use super::*;

fn draft(key: &str) -> Draft {
    let (place, title) = (format!("plan:{key}"), format!("Title of {key}"));
    Draft { place, key: Some(key.to_owned()), title, ..Draft::default() }
}

fn planned(key: &str) -> BeadName {
    BeadName::Planned(key.to_owned())
}

fn edge(from: &str, to: &str) -> DraftEdge {
    let place = format!("plan:{from}→{to}");
    let (from, to) = (BeadName::Planned(from.to_owned()), BeadName::Planned(to.to_owned()));
    DraftEdge { place, from, to, kind: DependencyType::Blocks }
}

fn refused(drafts: Vec<Draft>, edges: Vec<DraftEdge>) -> String {
    Plan::new("plan", drafts, edges, PlanNaming::Keys).unwrap_err().0
}

#[test]
fn parents_come_before_their_parts() {
    let child = Draft { parent: Some(planned("middle")), ..draft("child") };
    let middle = Draft { parent: Some(planned("top")), ..draft("middle") };
    let drafts = vec![child, draft("other"), middle, draft("top")];

    let plan = Plan::new("plan", drafts, Vec::new(), PlanNaming::Keys).unwrap();

    assert_eq!(plan.parents_first(), [3, 2, 0, 1]);
}

#[test]
fn circles_and_wrong_names_are_named() {
    let part = |key: &str, of: &str| Draft { parent: Some(planned(of)), ..draft(key) };
    for (drafts, edges, said) in [
        (vec![], vec![], "there is no bead"),
        (vec![draft("a"), draft("a")], vec![], "the key \"a\" is already taken at plan:a"),
        (vec![draft("a")], vec![edge("a", "b")], "has the key \"b\""),
        (vec![draft("a")], vec![edge("a", "a")], "\"a\" cannot depend on itself"),
        (
            vec![part("a", "b"), part("b", "a")],
            vec![],
            "parts of each other: \"a\" → \"b\" → \"a\"",
        ),
        (
            vec![draft("a"), draft("b"), draft("c")],
            vec![edge("a", "b"), edge("b", "c"), edge("c", "a")],
            "a cycle of dependencies: \"a\" → \"b\" → \"c\" → \"a\"",
        ),
    ] {
        let message = refused(drafts, edges);
        assert!(message.contains(said), "{message} does not say {said}");
    }
}

#[test]
fn an_edge_that_never_blocks_may_close_a_circle() {
    let related = DraftEdge { kind: DependencyType::trusted("related"), ..edge("b", "a") };
    let edges = vec![edge("a", "b"), related];

    assert!(Plan::new("plan", vec![draft("a"), draft("b")], edges, PlanNaming::Keys).is_ok());
}

const MARKDOWN: &str = "\
# The plan

Words about it.

## Build the store: fast, small ##

It must be *fast*.

```sh
## not a bead
### Priority
```

### Priority
P1
### Type
Feature
### Labels
- core, storage
- `odd label`
### Acceptance Criteria

1. one

#### Two
2. two

### Estimate
90
### Notes:
~~~
```
~~~

## Use the store
### Id
hq-use
### Dependencies
Build the store: fast, small
related:hq-x, blocks:hq-y
- waits-for:Build the store: fast, small
### Parent
Build the store: fast, small
### Assignee
ann
### External Ref
gh-7
### Description
Later.
";

#[test]
fn a_markdown_plan_says_everything() {
    let plan = parse_markdown("plan.md", MARKDOWN).unwrap();

    let [store, user] = plan.beads() else { panic!("{plan:?}") };
    let said = &store.draft;
    assert_eq!(
        (said.place.as_str(), said.title.as_str()),
        ("plan.md:5", "Build the store: fast, small")
    );
    assert_eq!(said.description, "It must be *fast*.\n\n```sh\n## not a bead\n### Priority\n```");
    assert_eq!(said.priority, Priority::new(1).unwrap());
    assert_eq!(said.issue_type, Some(IssueType::parse("feature").unwrap()));
    assert_eq!(said.labels, ["core", "storage", "`odd label`"]);
    assert_eq!(said.acceptance_criteria, "1. one\n\n#### Two\n2. two");
    assert_eq!(said.estimated_minutes, Some(90));
    assert_eq!(said.notes, "~~~\n```\n~~~");
    let said = &user.draft;
    assert_eq!((said.id.as_deref(), said.assignee.as_str()), (Some("hq-use"), "ann"));
    assert_eq!((said.external_ref.as_deref(), said.description.as_str()), (Some("gh-7"), "Later."));
    assert_eq!(user.parent, Some(BeadReference::Planned(0)));
    let (new, old) = (BeadReference::Planned(1), |id: &str| BeadReference::Existing(id.to_owned()));
    let edges: Vec<_> =
        plan.edges().iter().map(|e| (&e.issue, &e.target, e.kind.as_str())).collect();
    assert_eq!(
        edges,
        [
            (&new, &BeadReference::Planned(0), "blocks"),
            (&new, &old("hq-x"), "related"),
            (&old("hq-y"), &new, "blocks"),
            (&new, &BeadReference::Planned(0), "waits-for"),
        ]
    );
    assert_eq!(plan.edges()[1].place, "plan.md:40");
}

#[test]
fn errors_name_the_line() {
    for (text, said) in [
        ("", "p.md: there is no bead in it"),
        ("just words\n### Priority\n1\n", "p.md: there is no bead in it"),
        ("## A\n\n##\n", "p.md:3: the heading has no title"),
        ("## A\n### Priority\nhigh\n", "p.md:2: \"high\" is not a priority"),
        ("## A\n### Priority\n1\n2\n", "p.md:2: this section takes one line"),
        ("## A\n### Colour\n", "p.md:2: \"Colour\" is not a section"),
        (
            "## A\n### Notes\n### Design\n### Notes\n",
            "p.md:4: \"Notes\" is there twice, first in line 2",
        ),
        ("## A\n### Estimate\nsoon\n", "p.md:2: \"soon\" is not a number of minutes"),
        ("## A\n```\n## B\n", "p.md:2: this code fence is never closed"),
        ("## A\n### Deps\n\nfoo:hq-a\n", "p.md:4: \"foo\" is not a known dependency type"),
        (
            "## A\n## A\n## B\n### Deps\nA\n",
            "p.md:5: \"A\" could be the one at p.md:1 or the one at p.md:2",
        ),
        ("## A\n### Deps\nA\n", "p.md:3: \"A\" cannot depend on itself"),
    ] {
        let message = parse_markdown("p.md", text).unwrap_err().0;
        assert!(message.starts_with(said), "{message} does not say {said}");
    }
    let long = format!("## {}\n", "x".repeat(600));
    assert!(
        parse_markdown("p.md", &long).unwrap_err().0.starts_with("p.md:1: a title has at most")
    );
}

/// A draft as Markdown.
fn render(draft: &Draft) -> String {
    let mut text = format!(
        "## {}\n\n{}\n\n### Priority\n\n{}\n",
        draft.title, draft.description, draft.priority
    );
    let labels: Vec<String> = draft.labels.iter().map(|label| format!("- {label}\n")).collect();
    for (name, value) in [
        ("Design", draft.design.as_str()),
        ("Acceptance", &draft.acceptance_criteria),
        ("Notes", &draft.notes),
        ("Assignee", &draft.assignee),
        ("Labels", &labels.concat()),
    ] {
        text.extend(["### ", name, "\n\n", value, "\n"]);
    }
    text
}

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let word = || "[a-zäß][a-z0-9 .:_äß]{0,8}[a-z0-9]";
    let block = || "([a-z][a-z #`~]{0,9}[a-z](\n{1,2})?){0,4}[a-z]|(```\n#{1,4} x\n\n```)?";
    let texts = (block(), block(), block(), block());
    let one = (word(), texts, 0..=4_i64, word(), prop::collection::vec(word(), 0..3));
    let draft = one.prop_map(
        |(title, (description, design, acceptance_criteria, notes), priority, assignee, labels)| {
            let priority = Priority::new(priority).unwrap();
            Draft {
                title,
                description,
                design,
                acceptance_criteria,
                notes,
                priority,
                assignee,
                labels,
                ..Draft::default()
            }
        },
    );
    prop::collection::vec(draft, 1..4)
}

proptest! {
    #[test]
    fn a_written_plan_reads_back(drafts in drafts()) {
        let text: String = drafts.iter().map(render).collect();
        let plan = parse_markdown("p.md", &text).unwrap();
        let read: Vec<Draft> = plan
            .beads()
            .iter()
            .map(|bead| Draft { place: String::new(), ..bead.draft.clone() })
            .collect();
        prop_assert_eq!(read, drafts);
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>(), lines in prop::collection::vec(
        prop_oneof![
            Just("## A"), Just("##"), Just("### Priority"), Just("### Deps"), Just("A"), Just("```"),
            Just("~~~~"), Just("### Parent"), Just("### Labels"), Just("- a, b"), Just("\u{feff}## Ä ##"),
            Just("blocks:A"), Just("### Id"), Just("1"), Just(""), Just("# ### #"),
        ], 0..20))
    {
        let _ = parse_markdown("p.md", &text);
        let _ = parse_markdown("p.md", &lines.join("\n"));
        let _ = parse_markdown("p.md", &lines.join("\r\n"));
    }

    #[test]
    fn no_bead_waits_before_it_is_waited_for(
        ends in prop::collection::vec((0..8_usize, 0..8_usize), 0..20),
    ) {
        let drafts = (0..8).map(|key| draft(&key.to_string())).collect();
        let edges = ends.iter().map(|(from, to)| edge(&from.to_string(), &to.to_string()));
        // Only plans with circles are refused.
        if let Ok(plan) = Plan::new("plan", drafts, edges.collect(), PlanNaming::Keys) {
            let mut seen = vec![false; ends.len()];
            let mut waiting = Vec::new();
            for at in plan.dependents_first() {
                let PlannedEdge { issue, target, .. } = &plan.edges()[*at];
                prop_assert!(!waiting.contains(target), "{:?} waits already", target);
                waiting.push(issue.clone());
                seen[*at] = true;
            }
            prop_assert!(seen.into_iter().all(|seen| seen));
        }
    }

    #[test]
    fn every_parent_comes_first(parents in prop::collection::vec(prop::option::of(0..12_usize), 1..12)) {
        let count = parents.len();
        let drafts = parents.iter().enumerate().map(|(index, parent)| {
            let parent = parent.filter(|parent| *parent < count);
            Draft { parent: parent.map(|parent| planned(&parent.to_string())), ..draft(&index.to_string()) }
        });
        // Only plans with circles are refused.
        if let Ok(plan) = Plan::new("plan", drafts.collect(), Vec::new(), PlanNaming::Keys) {
            let order = plan.parents_first();
            let place = |index: usize| order.iter().position(|at| *at == index).unwrap();
            for (index, bead) in plan.beads().iter().enumerate() {
                if let Some(BeadReference::Planned(parent)) = bead.parent {
                    prop_assert!(place(parent) < place(index));
                }
            }
            prop_assert_eq!(order.len(), count);
        }
    }
}
