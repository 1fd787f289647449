//! Lines that another tool wrote come back byte for byte.

use gt_records::{BeadView, Counts, export_line};

use crate::issue;

#[test]
fn foreign_lines_survive_unchanged() {
    for line in include_str!("../data/export_lines.jsonl").lines() {
        let record = issue(line);
        assert_eq!(record.repairs, Vec::<String>::new());
        let view = BeadView {
            labels: &record.labels,
            dependencies: &record.dependencies,
            comments: &record.comments,
            counts: Some(Counts { dependencies: 1, dependents: 2, comments: 1 }),
            ..BeadView::bare(&record.bead)
        };
        assert_eq!(export_line(&view), line);
    }
}
