//! Nothing is lost on the way out and in again.

use gt_core::Timestamp;
use gt_records::{BeadView, Counts, IssueRecord, RecordLine, export_line, parse_line, write_bead};
use proptest::prelude::*;

use crate::strategies::{json, record, text};
use crate::{HTML, issue, read};

fn view(record: &IssueRecord) -> BeadView<'_> {
    BeadView {
        labels: &record.labels,
        dependencies: &record.dependencies,
        comments: &record.comments,
        ..BeadView::bare(&record.bead)
    }
}

fn written(record: &IssueRecord) -> String {
    let mut out = String::new();
    write_bead(&mut out, &view(record), |_| {});
    out
}

/// Carried fields that have a place of their own move there; apart from that their order stays.
fn with_sorted_carried(mut record: IssueRecord) -> IssueRecord {
    record.bead.carried.sort_by(|a, b| a.0.cmp(&b.0));
    record
}

/// A field with a name that means something and a value that often fits.
fn plausible_field() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "_type",
        "_schema",
        "id",
        "title",
        "description",
        "notes",
        "spec_id",
        "status",
        "priority",
        "issue_type",
        "assignee",
        "estimated_minutes",
        "created_at",
        "updated_at",
        "started_at",
        "closed_at",
        "close_reason",
        "outcome",
        "external_ref",
        "metadata",
        "labels",
        "dependencies",
        "comments",
        "ephemeral",
        "wisp",
        "pinned",
        "waiters",
        "parent",
        "key",
        "value",
        "dependency_count",
    ]);
    let values = prop_oneof![
        prop::sample::select(vec![
            r#""issue""#, r#""memory""#, r#""gt-a""#, r#""gt-b""#, r#""open""#, r#""closed""#, "null",
            r#""success""#, r#""""#, r#""2026-01-01T00:00:00+02:00""#, r#""0001-01-01T00:00:00Z""#,
            "2", "true", r#"["a","b","a"]"#,
            r#"[{"depends_on_id":"gt-b"},{"depends_on_id":"gt-b","metadata":[1, 2]},{"issue_id":"gt-x","depends_on_id":"gt-a"}]"#,
            r#"[{"id":3,"text":"t"},{"author":"a"}]"#,
        ])
        .prop_map(str::to_owned),
        json(),
        text().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    (names, values).prop_map(|(name, value)| format!(r#""{name}": {value}"#))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_record_survives(record in record()) {
        let first = written(&record);
        // Without the type, a carried `_schema` would make the line a header.
        let typed = first.replacen('{', r#"{"_type":"issue","#, 1);
        let read_back = issue(&typed);
        prop_assert_eq!(written(&read_back), first);
        prop_assert_eq!(with_sorted_carried(read_back), with_sorted_carried(record));
    }

    #[test]
    fn every_exported_line_survives(record in record(), counts in any::<[u64; 3]>()) {
        let [dependencies, dependents, comments] = counts;
        let counts = Some(Counts { dependencies, dependents, comments });
        let line = export_line(&BeadView { counts, ..view(&record) });
        prop_assert!(!line.contains('\n') && !line.contains(HTML));
        let read_back = issue(&line);
        prop_assert_eq!(export_line(&BeadView { counts, ..view(&read_back) }), line);
    }

    #[test]
    fn an_accepted_line_is_stable_after_one_export(fields in proptest::collection::vec(plausible_field(), 0..6)) {
        let fields = [r#"{"id":"gt-a" , "title":"T""#.to_owned()].into_iter().chain(fields);
        let text = fields.collect::<Vec<_>>().join(", ") + r#", "_type":"issue"}"#;
        if let Ok(RecordLine::Issue(record)) = read(&text) {
            let line = export_line(&view(&record));
            // A later import must not depend on its own time.
            let read_back = parse_line(&line, Timestamp::from_nanos(0)).unwrap();
            let RecordLine::Issue(read_back) = read_back else { panic!("{line}") };
            prop_assert_eq!(&read_back.repairs, &Vec::<String>::new());
            prop_assert_eq!(export_line(&view(&read_back)), line);
        }
    }
}
