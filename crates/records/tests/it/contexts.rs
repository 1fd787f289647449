//! Contexts as the beads that others keep them in.

use gt_core::schedule::{
    CloseReason, Context, ContextClosed, ContextId, ContextOrigin, Merge, SlingParameters,
};
use gt_core::{BeadId, Priority, RigSlug, Status, Timestamp};
use gt_records::{context_bead, context_json, parse_context};
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn plain() -> Context {
    Context {
        number: 31,
        id: ContextId::of_number(31),
        bead: BeadId::parse("gt-abc").unwrap(),
        rig: RigSlug::parse("web").unwrap(),
        place: None,
        account: None,
        gated: false,
        forced: false,
        priority: Priority::default(),
        origin: ContextOrigin::Sling,
        parameters: SlingParameters::default(),
        enqueued_at: at("2026-01-15T10:00:00Z"),
        enqueued_by: "mayor".to_owned(),
        waiting_since: at("2026-01-15T10:00:00Z"),
        next_attempt_at: None,
        failures: 0,
        last_failure: String::new(),
        attempts: 0,
        starting: false,
        convoys: Vec::new(),
        closed: None,
    }
}

fn full() -> Context {
    Context {
        account: Some("work".to_owned()),
        parameters: SlingParameters {
            formula: Some("mol-review".to_owned()),
            args: Some("be \"careful\"".to_owned()),
            vars: vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "x=y".to_owned())],
            merge: Some(Merge::Direct),
            convoy: Some(BeadId::parse("hq-cv-x").unwrap()),
            base_branch: Some("next".to_owned()),
            no_merge: true,
            review_only: true,
            review: true,
            runtime: Some("codex".to_owned()),
            hook_raw_bead: true,
            owned: true,
            ralph: true,
            retries: 0,
            host: None,
        },
        failures: 2,
        last_failure: "no room".to_owned(),
        ..plain()
    }
}

#[test]
fn the_description_has_the_fields_of_version_one_in_their_order() {
    assert_eq!(
        context_json(&full()),
        concat!(
            r#"{"version":1,"work_bead_id":"gt-abc","target_rig":"web","formula":"mol-review","#,
            r#""args":"be \"careful\"","vars":"a=1\nb=x=y","enqueued_at":"2026-01-15T10:00:00Z","#,
            r#""merge":"direct","convoy":"hq-cv-x","base_branch":"next","no_merge":true,"#,
            r#""review_only":true,"account":"work","agent":"codex","hook_raw_bead":true,"#,
            r#""owned":true,"mode":"ralph","dispatch_failures":2,"last_failure":"no room"}"#
        )
    );
}

#[test]
fn unset_fields_are_left_out() {
    assert_eq!(
        context_json(&plain()),
        r#"{"version":1,"work_bead_id":"gt-abc","target_rig":"web","enqueued_at":"2026-01-15T10:00:00Z"}"#
    );
}

#[test]
fn a_context_is_an_ephemeral_bead_until_it_is_decided() {
    let open = context_bead(&plain());
    assert_eq!(
        (open.id.as_str(), open.title.as_str()),
        ("hq-ctx-0000v", "sling context for gt-abc")
    );
    assert_eq!((open.status, open.issue_type.as_str()), (Status::Open, "sling-context"));
    assert!(open.ephemeral && open.assignee.is_empty());
    assert_eq!((open.created_by.as_str(), open.created_at), ("mayor", plain().enqueued_at));

    let later = at("2026-01-16T00:00:00Z");
    let closed = ContextClosed { at: later, by: "ann".to_owned(), reason: CloseReason::Cleared };
    let closed = context_bead(&Context { closed: Some(closed), ..plain() });
    assert_eq!((closed.status, closed.close_reason.as_str()), (Status::Closed, "cleared"));
    assert_eq!((closed.closed_at, closed.updated_at), (Some(later), later));
}

#[test]
fn a_context_of_others_is_read() {
    let record = parse_context(&context_json(&full())).unwrap();
    assert_eq!(record.work_bead, full().bead);
    let fields = record.fields;
    assert_eq!(fields.target_rig, "web");
    assert_eq!(fields.vars, ["a=1", "b=x=y"]);
    assert_eq!(fields.enqueued_at, Some(full().enqueued_at));
    assert_eq!((fields.agent.as_deref(), fields.mode.as_deref()), (Some("codex"), Some("ralph")));
    assert!(fields.no_merge && fields.review_only && fields.hook_raw_bead && fields.owned);
    assert_eq!((fields.dispatch_failures, fields.last_failure.as_deref()), (2, Some("no room")));
}

#[test]
fn a_damaged_context_says_what_is_wrong_with_it() {
    for (text, expected) in [
        ("", "not valid JSON"),
        ("Sling gt-abc to web", "not valid JSON"),
        ("[]", "expected an object"),
        ("{}", "work_bead_id"),
        (r#"{"version":2,"work_bead_id":"gt-a","target_rig":"web"}"#, "version"),
        (r#"{"version":1,"work_bead_id":"gt-a"}"#, "target_rig"),
        (r#"{"version":1,"work_bead_id":"gt a","target_rig":"web"}"#, "work_bead_id"),
        (r#"{"version":1,"work_bead_id":"gt-a","target_rig":7}"#, "target_rig"),
        (
            r#"{"version":1,"work_bead_id":"gt-a","target_rig":"w","enqueued_at":"soon"}"#,
            "enqueued_at",
        ),
    ] {
        let error = parse_context(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn every_written_context_can_be_read(
        args in prop::option::of("[^\\x00]{1,40}"),
        failures in 0_u32..5,
        last_failure in "[^\\x00]{0,40}",
    ) {
        let parameters = SlingParameters { args: args.clone(), ..SlingParameters::default() };
        let context = Context { parameters, failures, last_failure, ..plain() };
        let record = parse_context(&context_json(&context)).unwrap();
        prop_assert_eq!(record.fields.args, args);
        prop_assert_eq!(record.fields.dispatch_failures, failures);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = parse_context(&text);
    }
}
