use proptest::prelude::*;

use super::*;
use crate::{DependencyType, Priority, Status};

fn parse(kind: &str, json: &str) -> EventPayload {
    EventPayload::parse(&EventKind::from_name(kind), &Json::parse(json).unwrap())
}

/// A payload of each kind, with every field, as it stands in the log.
const WRITTEN: &[(&str, &str)] = &[
    (
        "created",
        r#"{"title":"T","issue_type":"task","status":"closed","outcome":"failed","priority":2,"assignee":"ann","dependencies":[{"depends_on_id":"a-1","old":null,"new":"parent-child"}]}"#,
    ),
    ("created", r#"{"title":"T","issue_type":"task","status":"open","priority":2,"assignee":""}"#),
    ("imported", r#"{"title":"T","issue_type":"task","status":"open","priority":0,"assignee":""}"#),
    (
        "imported",
        r#"{"title":"T","changes":{"metadata":{"old":null,"new":{"k":1.50}}},"dependencies":[{"depends_on_id":"a-1","old":"blocks","new":null}]}"#,
    ),
    (
        "updated",
        r#"{"title":"T","changes":{"title":{"old":"S","new":"T"},"priority":{"old":2,"new":1},"assignee":{"old":"","new":"ann"},"estimated_minutes":{"old":null,"new":5},"pinned":{"old":false,"new":true},"rig":{"old":null,"new":"web"},"carried":{"old":null,"new":{"x":1e3}}}}"#,
    ),
    ("updated", r#"{"title":"T","changes":{"cap":{"from":0,"to":2}}}"#),
    (
        "closed",
        r#"{"title":"T","changes":{"status":{"old":"open","new":"closed"},"outcome":{"old":null,"new":"success"},"closed_at":{"old":null,"new":"2026-11-17T04:02:34.204125307Z"}}}"#,
    ),
    (
        "deleted",
        r#"{"title":"T","issue_type":"task","status":"open","priority":2,"assignee":"","dependencies":[{"depends_on_id":"a-1","old":"blocks","new":null}],"dependents":[{"issue_id":"a-2","old":"tracks","new":null}]}"#,
    ),
    ("unblocked", r#"{"title":"T"}"#),
    ("label_added", r#"{"title":"T","label":"red"}"#),
    ("dependency_added", r#"{"depends_on_id":"a-1","type":"blocks","old":null,"new":"blocks"}"#),
    ("dependency_removed", r#"{"depends_on_id":"a-1","type":"blocks","old":"blocks","new":null}"#),
    ("commented", r#"{"title":"T","author":"ann","text":"hello"}"#),
    ("rig_added", r#"{"prefix":"we","repo":""}"#),
    ("rig_changed", r#"{"old":"active","new":"parked"}"#),
    ("rig_changed", r#"{"field":"title","old":"A","new":"B"}"#),
    ("rig_removed", r#"{"prefix":"we"}"#),
    ("setting_changed", r#"{"scope":"gt","key":"a.b","old":null,"new":"x"}"#),
    ("scheduled", r#"{"context":"hq-ctx-00001","origin":"sling"}"#),
    ("retry_now", r#"{"context":"hq-ctx-00001"}"#),
    ("unscheduled", r#"{"context":"hq-ctx-00001","reason":"cleared"}"#),
    ("quarantined", r#"{"context":"hq-ctx-00001","reason":"quarantined","why":"no rig"}"#),
    ("dispatched", r#"{"agent":"web/process","lease_expires_at":"2026-11-17T04:02:34Z"}"#),
    ("run_done", r#"{"reason":"","pulled_by":"ann"}"#),
    ("handed_over", r#"{"session":2,"why":"full","head":"abc"}"#),
    ("run_silent", r#"{"since":"2026-11-17T04:02:34Z"}"#),
    (
        "run_blocked",
        r#"{"pulled_by":"ann","since":"2026-11-17T04:02:34Z","why":"keys","stale":true}"#,
    ),
    ("run_used", r#"{"peak_memory_mb":5,"tokens":7,"cost":"0.10"}"#),
    (
        "convoy_landed",
        r#"{"title":"T","landing":1,"members":3,"failed":1,"open":0,"since":"2026-11-17T04:02:34Z","seconds":9}"#,
    ),
    ("work_accepted", r#"{"said":"done","commit":"abc"}"#),
    ("landed", r#"{"branch":"main","commit":"abc"}"#),
    ("rescued", r#"{"reference":"refs/x","commit":"abc","left_out":["big: too large"]}"#),
    ("tree_moved", r#"{"polecat":"toast","path":"/t","reason":"nuked"}"#),
    ("tree_due", r#"{"polecat":"toast","path":"/t","number":"3","until":"2026-11-17T04:02:34Z"}"#),
    ("escalated", r#"{"attempts":3}"#),
    ("over_limit", r#"{"limit":"cost"}"#),
    ("paused", "{}"),
    ("resumed", r#"{"title":"T"}"#),
    (
        "parked",
        r#"{"kind":"runtime","name":"claude","reason":"x","until":"2026-11-17T04:02:34Z","again":true}"#,
    ),
    ("unparked", r#"{"kind":"account","name":"work","limit":true}"#),
    ("account_changed", r#"{"account":"work","change":"put"}"#),
    ("step_done", r#"{"step":"test","title":"Test it"}"#),
    ("message_sent", r#"{"message":"m-1","kind":"mail","from":"a","to":"b","subject":"s"}"#),
    (
        "help_wanted",
        r#"{"message":"m-1","kind":"escalation","from":"a","to":"b","subject":"s","severity":"high"}"#,
    ),
    ("events_purged", r#"{"count":5}"#),
    ("token_changed", r#"{"token":"t1","name":"ci","scopes":"read","change":"created"}"#),
];

#[test]
fn payloads_are_written_as_they_were_read() {
    for (kind, json) in WRITTEN {
        let payload = parse(kind, json);
        assert!(!matches!(payload, EventPayload::Other { .. }), "{kind} {json}");
        assert_eq!(payload.kind().as_str(), *kind);
        assert_eq!(payload.to_json().unwrap().as_str(), *json);
    }
}

#[test]
fn payloads_of_other_versions_are_read() {
    // A new bead of a release that wrote neither the assignee nor the dependencies.
    let created = parse(
        "created",
        r#"{"title":"T","issue_type":"task","status":"open","priority":2,"later":[1]}"#,
    );
    let EventPayload::Created(created) = created else { panic!("{created:?}") };
    assert_eq!((created.status, created.priority), (Status::Open, Priority::default()));
    assert_eq!((created.assignee.as_str(), created.dependencies.len()), ("", 0));
    // A deleted bead of a release that wrote the title only.
    let deleted = parse("deleted", r#"{"title":"T"}"#);
    assert!(matches!(deleted, EventPayload::Deleted(deleted) if deleted.status.is_none()));
    // A kind, and a value, of a later release.
    let later = parse("teleported", r#"{"title":"T"}"#);
    assert_eq!(later.kind(), EventKind::Other("teleported".to_owned()));
    let odd = parse("closed", r#"{"changes":{"outcome":{"old":null,"new":"maybe"}}}"#);
    assert!(matches!(&odd, EventPayload::Other { kind, .. } if kind == "closed"));
    assert_eq!(
        odd.to_json().unwrap().as_str(),
        r#"{"changes":{"outcome":{"old":null,"new":"maybe"}}}"#
    );
}

fn event(number: u64, kind: &str, bead: &str, json: &str) -> Event {
    Event {
        number,
        at: Timestamp::from_nanos(0),
        actor: String::new(),
        kind: EventKind::from_name(kind),
        bead: Some(BeadId::trusted(bead.to_owned())),
        rig: None,
        run: None,
        payload: Json::parse(json).unwrap(),
    }
}

#[test]
fn replay_follows_members_and_values_in_both_directions() {
    let id = |name: &str| BeadId::trusted(name.to_owned());
    let task = r#"{"title":"T","issue_type":"task","status":"open","priority":2,"assignee":""}"#;
    let convoy = r#"{"title":"C","issue_type":"convoy","status":"open","priority":2,"assignee":"","dependencies":[{"depends_on_id":"a-1","old":null,"new":"tracks"}]}"#;
    let taken = r#"{"title":"T","changes":{"status":{"old":"open","new":"hooked"},"assignee":{"old":"","new":"ann"}}}"#;
    let gone = r#"{"title":"T","issue_type":"task","status":"hooked","priority":2,"assignee":"ann","dependents":[{"issue_id":"c-1","old":"tracks","new":null}]}"#;
    let log = [
        event(1, "created", "a-1", task),
        event(2, "created", "c-1", convoy),
        event(3, "status_changed", "a-1", taken),
        event(4, "dependency_added", "a-1", r#"{"depends_on_id":"a-0","type":"blocks"}"#),
        event(5, "dependency_removed", "a-1", r#"{"depends_on_id":"a-0","type":"blocks"}"#),
        event(6, "deleted", "a-1", gone),
    ];
    let mut states = vec![replay::Replay::default()];
    for event in &log {
        let mut next = states.last().unwrap().clone();
        next.apply(event);
        states.push(next);
    }
    let tracked = (id("c-1"), id("a-1"));
    assert_eq!(states[2].edges.get(&tracked), Some(&DependencyType::Tracks));
    assert_eq!(states[3].beads[&id("a-1")].assignee, "ann");
    assert_eq!(states[3].beads[&id("a-1")].status, Status::Hooked);
    assert_eq!(states[4].edges[&(id("a-1"), id("a-0"))], DependencyType::Blocks);
    assert!(!states[6].edges.contains_key(&tracked) && states[6].beads.len() == 1);
    let mut back = states[6].clone();
    for (event, before) in log.iter().zip(&states).rev() {
        back.revert(event);
        assert_eq!(&back, before, "before event {}", event.number);
    }
}

#[test]
fn every_kind_describes_itself_and_its_fields() {
    for kind in EventKind::ALL {
        assert!(kind.meaning().ends_with('.'), "{kind}");
        for field in kind.payload_fields() {
            assert!(field.meaning.trim().ends_with('.'), "{kind} {}", field.name);
        }
    }
}

proptest! {
    #[test]
    fn no_payload_is_lost(kind in prop::sample::select(EventKind::ALL.to_vec()), text in ".*") {
        let json = Json::object(&[("title".to_owned(), Json::string(&text))]);
        let payload = EventPayload::parse(&kind, &json);
        prop_assert_eq!(payload.kind(), kind);
        prop_assert!(payload.to_json().is_ok());
    }
}
