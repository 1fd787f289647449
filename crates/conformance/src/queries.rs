//! The beads that each condition of a query admits.

use gt_core::query::Query;
use gt_core::{Bead, DependencyType, Outcome, Status, Title};

use super::EngineUnderTest;
use super::kit::{CheckedStore, at, bead, closed, comment, json, kind, priority, rig, slug};
use gt_store::{BeadFilter, QueryTable, QueryValue, StatusFilter, StoreError};

/// Everything for which the query is true, asked at second 5000.
fn asks(query: &str) -> BeadFilter {
    BeadFilter {
        query: Some(Query::parse(query, at(5000)).expect("the case asks a valid query")),
        status: StatusFilter::All,
        include_hidden: true,
        include_templates: true,
        include_ephemeral: true,
        ..BeadFilter::default()
    }
}

/// A town with a bead for everything that can be asked, and nothing else that is true of two.
fn town(subject: &dyn EngineUnderTest) -> CheckedStore {
    let town = CheckedStore::new(subject);
    town.write(|writer| writer.insert_rig(&rig("gear", "ge")));
    let text = str::to_owned;
    let carried = |name: &str| vec![(name.to_owned(), json("\"alpha\""))];
    for bead in [
        Bead { title: Title::trusted(text("Fix 100% of_it")), ..bead("gt-title") },
        Bead { description: text("It's\nÄpfel"), ..bead("gt-text") },
        Bead { assignee: text("ann"), owner: text("ann@x"), ..bead("gt-ann") },
        Bead { created_by: text("bob"), issue_type: kind("bug"), ..bead("gt-bob") },
        Bead { priority: priority(0), estimated_minutes: Some(90), ..bead("gt-urgent") },
        Bead { rig: Some(slug("gear")), external_ref: Some(text("JIRA-1")), ..bead("ge-rig") },
        Bead { metadata: Some(json(r#"{"k":"v","n":5,"z":null}"#)), ..bead("gt-meta") },
        Bead { carried: carried("spec_id"), ..bead("gt-spec") },
        Bead { status: Status::Deferred, ..bead("gt-put-off") },
        Bead { status: Status::Deferred, defer_until: Some(at(4000)), ..bead("gt-woken") },
        Bead { defer_until: Some(at(6000)), due_at: Some(at(86_400)), ..bead("gt-later") },
        Bead { ephemeral: true, ..bead("gt-wisp") },
        Bead { pinned: true, is_template: true, ..bead("gt-held") },
        closed("gt-failed", Some(Outcome::Failed)),
        bead("gt-part"),
        bead("gt-waits"),
    ] {
        town.add(bead);
    }
    town.label("gt-title", "red");
    town.label("gt-text", "Reddish");
    town.link("gt-part", DependencyType::ParentChild, "gt-later");
    town.link("gt-waits", DependencyType::Blocks, "gt-urgent");
    town
}

const ALL: [&str; 16] = [
    "ge-rig",
    "gt-ann",
    "gt-bob",
    "gt-failed",
    "gt-held",
    "gt-later",
    "gt-meta",
    "gt-part",
    "gt-put-off",
    "gt-spec",
    "gt-text",
    "gt-title",
    "gt-urgent",
    "gt-waits",
    "gt-wisp",
    "gt-woken",
];

const CASES: [(&str, &[&str]); 44] = [
    ("id=gt-ann", &["gt-ann"]),
    ("id=gt-ann,gt-bob", &["gt-ann", "gt-bob"]),
    ("id=GE-*", &["ge-rig"]),
    ("id=gt-*t*f*", &["gt-put-off"]),
    ("id=\"gt-*\"", &[]),
    ("title=FIX", &["gt-title"]),
    ("title~\"100%\"", &["gt-title"]),
    ("title~\"of_i\"", &["gt-title"]),
    ("title~\"of%i\"", &[]),
    ("description~Äpfel", &["gt-text"]),
    ("description=\"It's\"", &["gt-text"]),
    ("description!=none", &["gt-text"]),
    ("status=closed", &["gt-failed"]),
    ("status=deferred,closed", &["gt-failed", "gt-put-off", "gt-woken"]),
    ("outcome=failed", &["gt-failed"]),
    ("outcome~fail", &["gt-failed"]),
    ("type=bug", &["gt-bob"]),
    ("priority<2", &["gt-urgent"]),
    ("priority=P0", &["gt-urgent"]),
    ("assignee=ann", &["gt-ann"]),
    ("assignee=Ann", &[]),
    ("assignee!=none", &["gt-ann"]),
    ("owner~@X", &["gt-ann"]),
    ("created_by=bob", &["gt-bob"]),
    ("label=red", &["gt-title"]),
    ("label=red*", &["gt-text", "gt-title"]),
    ("label~ish", &["gt-text"]),
    ("label!=none", &["gt-text", "gt-title"]),
    ("parent=gt-later", &["gt-part"]),
    ("parent!=none", &["gt-part"]),
    ("rig=gear", &["ge-rig"]),
    ("rig!=none", &["ge-rig"]),
    ("external_ref=jira-*", &["ge-rig"]),
    ("metadata.k=v OR metadata.n=5", &["gt-meta"]),
    ("metadata.z!=none", &[]),
    ("metadata.k~V", &["gt-meta"]),
    ("spec=alpha", &["gt-spec"]),
    ("estimate>=90", &["gt-urgent"]),
    ("due=1970-01-02", &["gt-later"]),
    ("due<1970-01-02", &[]),
    ("closed<=1970-01-01T00:33:20Z", &["gt-failed"]),
    ("defer!=none AND defer<0", &["gt-woken"]),
    ("blocked", &["gt-waits"]),
    ("ephemeral OR pinned OR template=true", &["gt-held", "gt-wisp"]),
];

pub(super) fn each_condition_admits_what_it_says(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    town.finds(asks("id=*"), &ALL);
    for (query, expected) in CASES {
        town.finds(asks(query), expected);
    }
}

pub(super) fn a_negation_admits_exactly_the_rest(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    for (query, expected) in CASES.into_iter().chain([("ready", READY)]) {
        let rest: Vec<&str> = ALL.into_iter().filter(|id| !expected.contains(id)).collect();
        town.finds(asks(&format!("NOT ({query})")), &rest);
        town.finds(asks(&format!("({query}) OR NOT ({query})")), &ALL);
        town.finds(asks(&format!("({query}) AND NOT ({query})")), &[]);
    }
}

const READY: &[&str] = &[
    "ge-rig",
    "gt-ann",
    "gt-bob",
    "gt-meta",
    "gt-spec",
    "gt-text",
    "gt-title",
    "gt-urgent",
    "gt-woken",
];

pub(super) fn ready_means_what_it_means_elsewhere(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    town.finds(asks("ready"), READY);
    let ready = Some(gt_store::Readiness { now: at(5000), include_deferred: false });
    town.finds(BeadFilter { ready, ..BeadFilter::default() }, READY);
}

pub(super) fn a_query_narrows_what_the_other_fields_admit(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let mut filter = BeadFilter { limit: Some(1), ..asks("label!=none") };
    filter.assignee = Some("ann".to_owned());
    town.finds(filter, &[]);
    let current = BeadFilter { status: StatusFilter::Current, ..asks("id=gt-failed,gt-ann") };
    town.finds(current, &["gt-ann"]);
}

/// The answer as lines of values with commas between.
fn lines(found: &QueryTable) -> Vec<String> {
    let text = |value: &QueryValue| match value {
        QueryValue::Null => "-".to_owned(),
        QueryValue::Number(number) => format!("#{number}"),
        QueryValue::Text(text) => text.clone(),
    };
    found.rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join(",")).collect()
}

pub(super) fn a_select_sees_the_tables_that_others_know(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    town.label("gt-wisp", "brief");
    let ann = town.get("gt-ann");
    town.write(|writer| {
        writer.add_comment(&ann, &comment("gt-ann", "c1", "Is it so?", 1000), true)
    });
    for (query, columns, rows) in [
        (
            "SELECT id, priority, created_at, closed_at FROM issues WHERE title = 'Title of gt-urgent'",
            "id,priority,created_at,closed_at",
            &["gt-urgent,#0,1970-01-01 00:16:40,-"][..],
        ),
        ("SELECT COUNT(*) AS cnt FROM issues WHERE ephemeral = 1", "cnt", &["#0"]),
        ("SELECT id FROM wisps;", "id", &["gt-wisp"]),
        (
            "SELECT w.id, l.label FROM wisps w JOIN wisp_labels l ON l.issue_id = w.id",
            "id,label",
            &["gt-wisp,brief"],
        ),
        (
            "SELECT issue_id, label FROM labels ORDER BY issue_id DESC",
            "issue_id,label",
            &["gt-title,red", "gt-text,Reddish"],
        ),
        (
            "WITH waiting AS (SELECT issue_id FROM dependencies WHERE type = 'blocks') SELECT * FROM waiting",
            "issue_id",
            &["gt-waits"],
        ),
        (
            "SELECT issue_id, author FROM comments WHERE text LIKE '%?'",
            "issue_id,author",
            &["gt-ann,tester"],
        ),
        ("SELECT id FROM issues WHERE id = 'no-bead'", "id", &[]),
        ("VALUES (1, 'a'), (2, NULL)", "column1,column2", &["#1,a", "#2,-"]),
    ] {
        let found = town.read(|reader| reader.select(query));
        assert_eq!(found.columns.join(","), columns, "{query}");
        assert_eq!(lines(&found), rows, "{query}");
    }
}

pub(super) fn a_select_changes_nothing(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    for query in [
        "",
        "DELETE FROM beads",
        "COMMIT",
        "WITH x AS (SELECT 1) DELETE FROM beads",
        "SELECT 1; DELETE FROM beads",
        "SELECT 1; COMMIT; DELETE FROM beads",
        "SELECT nothing FROM issues",
        "SELECT 1 FROM no_table",
    ] {
        let refused = town.refuse_reading(|reader| reader.select(query));
        assert!(matches!(refused, StoreError::Query(_)), "{query}: {refused:?}");
    }
    town.finds(asks("id=*"), &ALL);
}
