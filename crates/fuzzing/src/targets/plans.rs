//! Files that describe beads to make.

use gt_core::Invalid;
use gt_core::plan::{BeadReference, Plan, parse_markdown};
use gt_records::{parse_dependency_lines, parse_plan_graph, parse_plan_lines};

use crate::promise::{accepted, text};

pub(super) const FIELDS: &[&str] = &[
    "{\"title\":\"T\"",
    "\"key\":\"a\"",
    "\"parent\":\"a\"",
    "\"deps\":[\"a\"]",
    "\"deps\":\"blocks:a\"",
    "\"nodes\":[",
    "\"edges\":[",
    "\"from_key\":\"a\"",
    "\"to_key\":\"b\"",
    "\"to_id\":\"gt-1\"",
    "\"parent_key\":\"a\"",
    "\"metadata_refs\":{\"x\":\"a\"}",
    "\"metadata\":{}",
    "\"priority\":1",
    "\"labels\":[\"l\"]",
    "\"type\":\"bug\"",
    "\"id\":\"gt-1\"",
    "},{",
    "}\n{",
    "]}",
];

pub(super) const HEADINGS: &[&str] = &[
    "\n## ",
    "\n### ",
    "### Dependencies\n",
    "### Priority\n1\n",
    "### Parent\n",
    "### Labels\n",
    "### Type\n",
    "### Estimate\n",
    "### Id\n",
    "```\n",
    "~~~~",
    "- ",
    " ##",
    "blocks:",
    "waits-for:",
    ", ",
];

/// Every number below `count`, once.
fn is_order(order: &[usize], count: usize) -> bool {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..count)
}

fn check(plan: Result<Plan, Invalid>) {
    let Some(plan) = accepted(plan) else { return };
    let (beads, edges) = (plan.beads(), plan.edges());
    assert!(!beads.is_empty());
    assert!(is_order(plan.parents_first(), beads.len()));
    assert!(is_order(plan.dependents_first(), edges.len()));
    let is_known = |reference: &BeadReference| match reference {
        BeadReference::Planned(index) => *index < beads.len(),
        BeadReference::Existing(_) => true,
    };
    let mut made = vec![false; beads.len()];
    for index in plan.parents_first() {
        if let Some(BeadReference::Planned(parent)) = beads[*index].parent {
            assert!(made[parent], "a part comes before its parent");
        }
        made[*index] = true;
    }
    for edge in edges {
        assert!(is_known(&edge.issue) && is_known(&edge.target));
        if let (BeadReference::Planned(_), BeadReference::Planned(_)) = (&edge.issue, &edge.target)
        {
            assert_ne!(edge.issue, edge.target, "a bead waits for itself");
        }
    }
    for bead in beads {
        assert!(bead.metadata_refs.iter().all(|(_, index)| *index < beads.len()));
    }
}

/// An object per line.
pub(super) fn plan_lines(input: &[u8]) {
    let Some(file) = text(input) else { return };
    check(parse_plan_lines("plan.jsonl", file));
}

/// An object with nodes and edges.
pub(super) fn plan_graph(input: &[u8]) {
    let Some(file) = text(input) else { return };
    check(parse_plan_graph("plan.json", file));
}

/// A heading per bead.
pub(super) fn plan_markdown(input: &[u8]) {
    let Some(file) = text(input) else { return };
    check(parse_markdown("plan.md", file));
}

/// A dependency per line.
pub(super) fn dependency_lines(input: &[u8]) {
    let Some(file) = text(input) else { return };
    let Some(lines) = accepted(parse_dependency_lines("edges.jsonl", file)) else { return };
    assert!(lines.len() <= file.lines().count());
    for line in lines {
        assert!(!line.issue.is_empty() && !line.target.is_empty());
        assert!(line.place.starts_with("edges.jsonl:"));
    }
}
