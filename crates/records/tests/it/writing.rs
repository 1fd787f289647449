//! The written fields, and their order.

use gt_core::{BeadId, Json};
use gt_records::{
    BeadView, Counts, ObjectWriter, export_line, export_memory_line, write_bead, write_dependency,
};

use crate::{imported_at, issue, issue_with, read};

const TIMES: &str = r#""created_at":"2026-05-01T00:00:00Z","updated_at":"2026-05-01T00:00:00Z""#;

#[test]
fn carried_fields_stand_at_their_place_and_more_at_the_end() {
    let record = issue_with(&format!(
        r#""zeta":1.0,"payload":"p","outcome":"success","status":"closed","closed_at":"2026-05-01T00:00:00Z","spec_id":"s","alpha":null,"closed_by_session":"c",{TIMES}"#
    ));
    let parent = BeadId::parse("gt-p").unwrap();
    let view = BeadView {
        counts: Some(Counts::default()),
        parent: Some(&parent),
        ..BeadView::bare(&record.bead)
    };
    let mut out = String::from("> ");
    write_bead(&mut out, &view, |object| {
        object.text("dependency_type", "blocks");
    });
    assert_eq!(
        out,
        concat!(
            r#"> {"id":"gt-a","title":"T","spec_id":"s","status":"closed","priority":0,"issue_type":"task","#,
            r#""created_at":"2026-05-01T00:00:00Z","updated_at":"2026-05-01T00:00:00Z","#,
            r#""closed_at":"2026-05-01T00:00:00Z","outcome":"success","closed_by_session":"c","#,
            r#""payload":"p","zeta":1.0,"alpha":null,"#,
            r#""dependency_count":0,"dependent_count":0,"comment_count":0,"parent":"gt-p","#,
            r#""dependency_type":"blocks"}"#
        )
    );
}

#[test]
fn every_field_has_its_place() {
    let order = "id title description design acceptance_criteria notes spec_id status priority \
        issue_type assignee owner estimated_minutes created_at created_by updated_at started_at \
        closed_at close_reason outcome closed_by_session due_at defer_until external_ref \
        source_system metadata compaction_level compacted_at compacted_at_commit original_size \
        labels dependencies comments sender ephemeral no_history wisp_type pinned is_template \
        bonded_from await_type await_id timeout waiters source_formula source_location mol_type \
        work_type event_kind actor target payload aaa";
    let mut names: Vec<&str> = order.split_whitespace().collect();
    let expected = names.clone();
    names.sort_unstable();
    let fields = names.iter().map(|name| {
        let value = match *name {
            "id" => r#""gt-a""#,
            "status" => r#""closed""#,
            "outcome" => r#""failed""#,
            "priority" | "estimated_minutes" => "0",
            "ephemeral" | "no_history" | "pinned" | "is_template" => "true",
            "labels" => r#"["l"]"#,
            "dependencies" => r#"[{"depends_on_id":"gt-b"}]"#,
            "comments" => r#"[{"text":"c"}]"#,
            at if at.ends_with("_at") || at == "defer_until" => r#""2026-05-01T00:00:00Z""#,
            _ => r#""x""#,
        };
        format!(r#""{name}":{value}"#)
    });
    let record = issue(&format!("{{{}}}", fields.collect::<Vec<_>>().join(",")));
    let mut out = String::new();
    let view = BeadView {
        labels: &record.labels,
        dependencies: &record.dependencies,
        comments: &record.comments,
        ..BeadView::bare(&record.bead)
    };
    write_bead(&mut out, &view, |_| {});
    let written = Json::parse(&out).unwrap().fields().unwrap();
    let written: Vec<&str> = written.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(written, expected);
}

#[test]
fn only_exported_lines_are_escaped_for_html() {
    let record = issue_with(&format!(r#""notes":"<\u2028&>","x":"<\u003c",{TIMES}"#));
    let mut out = String::new();
    write_bead(&mut out, &BeadView::bare(&record.bead), |_| {});
    assert!(out.contains("\"notes\":\"<\u{2028}&>\""), "{out}");
    let line = export_line(&BeadView::bare(&record.bead));
    assert!(line.starts_with(r#"{"_type":"issue","id":"gt-a","#), "{line}");
    assert!(line.contains(r#""notes":"\u003c\u2028\u0026\u003e""#), "{line}");
    assert!(line.ends_with(r#""x":"\u003c\u003c"}"#), "{line}");
}

#[test]
fn an_edge_is_written_as_it_came() {
    let given = r#"{"issue_id":"gt-a","depends_on_id":"gt-b","type":"waits-for","created_at":"2026-05-01T00:00:00.5Z","created_by":"me","metadata":"{\"gate\":\"any-children\"}","thread_id":"t","x":1e2}"#;
    let record = issue_with(&format!(r#""dependencies":[{given}]"#));
    let mut out = String::new();
    write_dependency(&mut out, &record.dependencies[0]);
    assert_eq!(out, given);
}

#[test]
fn a_memory_survives() {
    let line = export_memory_line("a<b", &Json::parse("{\"v\": 1.0}").unwrap());
    assert_eq!(line, r#"{"_type":"memory","key":"a\u003cb","value":{"v":1.0}}"#);
    let gt_records::RecordLine::Memory { key, value } = read(&line).unwrap() else {
        panic!("not a memory: {line}");
    };
    assert_eq!(export_memory_line(&key, &value), line);
}

#[test]
fn an_object_is_written_field_by_field() {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("a\"", "\0\u{1f}\u{8}\u{c}\t\r\n\\/\u{7f}ä");
    object.text_unless_empty("b", "");
    object.number("c", i64::MIN);
    object.count("d", u64::MAX);
    object.flag("e", false);
    object.flag_if_set("f", false);
    object.timestamp("g", imported_at());
    object.raw("h", "1e400");
    object.array("i", |array| {
        array.text("x");
        array.raw("2");
        array.object(|_| {});
    });
    object.array("j", |_| {});
    object.object("k", |object| object.flag("l", true));
    object.finish();
    assert_eq!(
        out,
        concat!(
            r#"{"a\"":"\u0000\u001f\b\f\t\r\n\\/"#,
            "\u{7f}ä",
            r#"","c":-9223372036854775808,"d":18446744073709551615,"e":false,"#,
            r#""g":"2026-07-01T00:00:00Z","h":1e400,"i":["x",2,{}],"j":[],"k":{"l":true}}"#
        )
    );
}
