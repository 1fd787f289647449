//! Arbitrary JSON and arbitrary records.

use gt_core::{
    Bead, BeadId, Carried, Comment, Dependency, DependencyType, IssueType, Json, Outcome, Priority,
    Status, Timestamp, Title, Uid,
};
use gt_records::IssueRecord;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

/// Any text that a store can hold, from every corner of Unicode.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec!['"', '\\', '<', '&', '\n', '\u{1}', '\u{2028}', '✓']);
    vec(prop_oneof![3 => any::<char>(), 1 => special], 0..12)
        .prop_map(|chars| chars.into_iter().filter(|c| *c != '\0').collect())
}

/// A text that is neither empty nor has control characters.
fn name() -> impl Strategy<Value = String> {
    "[a-z✓<&\"\\\\ ]{1,12}"
}

/// One compact JSON value.
pub(crate) fn json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        prop::sample::select(vec![
            "null",
            "true",
            "false",
            "0",
            "-0",
            "1.50",
            "1e400",
            "-1E+2",
            "12345678901234567890",
            r#""\u003c\/\ud83d\ude00\\u0000""#,
        ])
        .prop_map(str::to_owned),
        text().prop_map(|text| Json::string(&text).to_string()),
    ];
    scalar.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(","))),
            btree_map(text(), inner, 0..5).prop_map(|fields| {
                let fields: Vec<_> =
                    fields.into_iter().map(|(key, value)| (key, Json::trusted(value))).collect();
                Json::object(&fields).to_string()
            }),
        ]
    })
}

/// Unknown fields: names of other tools, and made-up names.
fn carried(known: &'static [&'static str]) -> impl Strategy<Value = Carried> {
    let strange = prop_oneof![name(), text()].prop_map(|name| format!("x{name}"));
    let names = prop_oneof![prop::sample::select(known).prop_map(str::to_owned), strange];
    btree_map(names, json(), 0..4).prop_map(|fields| {
        fields.into_iter().map(|(name, value)| (name, Json::trusted(value))).collect()
    })
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp::from_nanos)
}

fn id() -> impl Strategy<Value = BeadId> {
    "[a-z]{2}-[a-z0-9]{1,4}(\\.[1-9])?".prop_map(BeadId::trusted)
}

fn status() -> impl Strategy<Value = Status> {
    prop_oneof![
        prop::sample::select(Status::BUILT_IN.to_vec()),
        "[a-z][a-z0-9_-]{0,10}".prop_map(|name| Status::parse(&name).unwrap())
    ]
    .prop_filter("a tombstone is no issue", |status| status.as_str() != "tombstone")
}

fn bead() -> impl Strategy<Value = Bead> {
    let outcomes = vec![Outcome::Success, Outcome::Failed, Outcome::Cancelled];
    let texts = vec(text(), 9);
    let times = (timestamp(), timestamp(), vec(option::of(timestamp()), 3));
    let ending = (status(), timestamp(), option::of(prop::sample::select(outcomes)));
    let numbers = (0i64..5, option::of(any::<u32>()));
    let metadata = option::of(json().prop_filter("null is none", |json| json != "null"));
    let flags = any::<[bool; 4]>();
    let carried = carried(&["spec_id", "timeout", "payload", "content_hash", "_schema"]);
    let names = (id(), text(), name(), option::of(name()));
    (names, texts, times, ending, numbers, metadata, flags, carried).prop_map(
        |(names, texts, times, ending, numbers, metadata, flags, carried)| {
            let mut texts = texts.into_iter();
            let mut text = || texts.next().unwrap();
            let (id, title, issue_type, external_ref) = names;
            let (created_at, updated_at, other_times) = times;
            let (status, closed_at, outcome) = ending;
            let is_closed = status == Status::Closed;
            Bead {
                uid: Uid::of_bead(&id, created_at),
                id,
                rig: None,
                title: Title::imported(&format!("t{title}")).unwrap(),
                description: text(),
                design: text(),
                acceptance_criteria: text(),
                notes: text(),
                status,
                priority: Priority::new(numbers.0).unwrap(),
                issue_type: IssueType::trusted(issue_type),
                assignee: text(),
                owner: text(),
                estimated_minutes: numbers.1,
                created_at,
                created_by: text(),
                updated_at,
                started_at: other_times[0],
                closed_at: is_closed.then_some(closed_at),
                close_reason: text(),
                outcome: outcome.filter(|_| is_closed),
                due_at: other_times[1],
                defer_until: other_times[2],
                external_ref,
                metadata: metadata.map(Json::trusted),
                ephemeral: flags[0],
                no_history: flags[1],
                pinned: flags[2],
                is_template: flags[3],
                open_blockers: 0,
                carried,
            }
        },
    )
}

fn dependency() -> impl Strategy<Value = Dependency> {
    let target = prop_oneof![id(), "external:[a-z<\"\\\\]{1,8}".prop_map(BeadId::trusted)];
    let kind = prop_oneof![Just("blocks".to_owned()), name()];
    let carried = carried(&["id", "text"]);
    (target, kind, timestamp(), vec(text(), 3), carried).prop_map(
        |(target, kind, created_at, texts, carried)| Dependency {
            issue: target.clone(),
            target,
            kind: DependencyType::parse(&kind).unwrap(),
            created_at,
            created_by: texts[0].clone(),
            metadata: texts[1].clone(),
            thread_id: texts[2].clone(),
            carried,
        },
    )
}

fn comment() -> impl Strategy<Value = Comment> {
    let carried = carried(&["metadata", "type"]);
    (name(), id(), text(), text(), timestamp(), carried).prop_map(
        |(id, bead, author, text, created_at, carried)| Comment {
            id,
            bead,
            author,
            text,
            created_at,
            carried,
        },
    )
}

/// A consistent record with any of its fields set.
pub(crate) fn record() -> impl Strategy<Value = IssueRecord> {
    let labels = vec(name(), 0..4);
    let dependencies = vec(dependency(), 0..4);
    let comments = vec(comment(), 0..3);
    (bead(), labels, dependencies, comments).prop_map(
        |(bead, mut labels, mut dependencies, mut comments)| {
            labels.sort();
            labels.dedup();
            dependencies.sort_by(|a, b| a.target.cmp(&b.target));
            dependencies.dedup_by(|a, b| a.target == b.target);
            dependencies.retain(|edge| edge.target != bead.id);
            for edge in &mut dependencies {
                edge.issue = bead.id.clone();
            }
            for comment in &mut comments {
                comment.bead = bead.id.clone();
            }
            IssueRecord { bead, labels, dependencies, comments, repairs: Vec::new() }
        },
    )
}
