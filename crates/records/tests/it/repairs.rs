//! Inconsistent records are made consistent, and say so.

use gt_core::{Outcome, Status};

use crate::issue_with;

const UPDATED: &str = r#""updated_at":"2026-05-01T00:00:00Z""#;

#[test]
fn a_closed_bead_gets_a_closing_time() {
    let record = issue_with(&format!(
        r#""status":"closed","outcome":"failed","closed_at":"0001-01-01T00:00:00Z",{UPDATED}"#
    ));
    assert_eq!(record.bead.closed_at, Some(record.bead.updated_at));
    assert_eq!(record.bead.outcome, Some(Outcome::Failed));
    assert_eq!(record.repairs, ["closed without closed_at; took updated_at, 2026-05-01T00:00:00Z"]);
}

#[test]
fn an_open_bead_has_neither_closing_time_nor_outcome() {
    let record =
        issue_with(r#""status":"hooked","closed_at":"2026-05-01T00:00:00Z","outcome":"success""#);
    assert_eq!(record.bead.status, Status::Hooked);
    assert_eq!((record.bead.closed_at, record.bead.outcome), (None, None));
    assert_eq!(
        record.repairs,
        [
            "dropped closed_at, 2026-05-01T00:00:00Z: the status is hooked",
            "dropped outcome \"success\": the status is hooked"
        ]
    );
}

#[test]
fn edges_belong_to_the_bead_they_stand_under() {
    let record = issue_with(
        r#""dependencies":[{"issue_id":"gt-old","depends_on_id":"gt-b"},{"issue_id":"gt-old","depends_on_id":"gt-a"}]"#,
    );
    assert_eq!(record.dependencies.len(), 1);
    assert_eq!(record.dependencies[0].issue, record.bead.id);
    assert_eq!(
        record.repairs,
        [
            "the dependency on gt-b named \"gt-old\" as its issue; it stands under gt-a",
            "the dependency on gt-a named \"gt-old\" as its issue; it stands under gt-a",
            "dropped a dependency of the bead on itself"
        ]
    );
}

#[test]
fn of_two_edges_to_one_target_the_last_counts() {
    let record = issue_with(
        r#""dependencies":[{"depends_on_id":"gt-b"},{"depends_on_id":"gt-c"},{"depends_on_id":"gt-b","type":"tracks"}]"#,
    );
    let kept: Vec<_> =
        record.dependencies.iter().map(|edge| (edge.target.as_str(), edge.kind.as_str())).collect();
    assert_eq!(kept, [("gt-c", "blocks"), ("gt-b", "tracks")]);
    assert_eq!(record.repairs, ["dropped a blocks dependency on gt-b: there is a later one"]);
}

#[test]
fn a_parent_without_its_edge_becomes_one() {
    let record = issue_with(r#""parent":"gt-p","created_at":"2026-05-01T00:00:00Z""#);
    let [edge] = record.dependencies.as_slice() else { panic!("{:?}", record.dependencies) };
    assert_eq!((edge.target.as_str(), edge.kind.as_str()), ("gt-p", "parent-child"));
    assert_eq!(edge.created_at, record.bead.created_at);
    assert_eq!(record.repairs, ["made a parent-child dependency of its parent, gt-p"]);
}

#[test]
fn a_parent_that_the_edges_name_already_is_nothing_new() {
    let record = issue_with(
        r#""parent":"gt-p","dependencies":[{"depends_on_id":"gt-q","type":"parent-child"},{"depends_on_id":"gt-p","type":"parent-child"}]"#,
    );
    assert_eq!((record.dependencies.len(), record.repairs.len()), (2, 0));
}

#[test]
fn the_edges_win_over_a_parent_that_contradicts_them() {
    for (more, said) in [
        (
            r#""parent":"gt-p","dependencies":[{"depends_on_id":"gt-p"}]"#,
            "a blocks dependency on gt-p",
        ),
        (
            r#""parent":"gt-p","dependencies":[{"depends_on_id":"gt-q","type":"parent-child"}]"#,
            "a parent-child dependency on gt-q",
        ),
        (r#""parent":"gt-a""#, "no other bead"),
        (r#""parent":"a b""#, "no other bead"),
        (r#""parent":7"#, "no other bead"),
    ] {
        let record = issue_with(more);
        assert!(record.repairs[0].contains(said), "{more}: {:?}", record.repairs);
        assert!(record.repairs[0].starts_with("dropped the parent"), "{:?}", record.repairs);
    }
    assert_eq!(issue_with(r#""parent":"""#).repairs, Vec::<String>::new());
    assert_eq!(issue_with(r#""parent":null"#).repairs, Vec::<String>::new());
}
