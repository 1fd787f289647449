//! The lists that people wait for are index scans, without sorting.

use std::path::Path;

use gt_core::query::Query;
use gt_core::{Status, Timestamp};
use gt_store::{BeadFilter, Readiness, StatusFilter, Store, all_statements};

use crate::history::plain_bead;
use crate::subjects::{NOW, author, place, store_at};

/// How SQLite would carry out the statement behind a filter.
fn plan(store: &Store, path: &Path, filter: &BeadFilter) -> String {
    let sql =
        store.read(|reader| reader.statement_of(filter)).expect("the filter makes a statement");
    plan_of(path, &sql)
}

fn plan_of(path: &Path, sql: &str) -> String {
    let connection = rusqlite::Connection::open(path).expect("the file can be opened");
    let mut statement = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .expect("the statement is understood");
    let mut rows = statement.raw_query();
    let mut lines = Vec::new();
    while let Some(row) = rows.next().expect("the plan can be read") {
        lines.push(row.get::<_, String>(3).expect("a line of the plan"));
    }
    lines.join("\n")
}

#[track_caller]
fn scans(filter: &BeadFilter, index: &str) {
    let (_directory, path) = place();
    let store = store_at(&path);
    let plan = plan(&store, &path, filter);
    let first = plan.lines().next().unwrap_or_default();
    assert!(first.contains(&format!("INDEX {index}")), "not on {index}:\n{plan}");
    assert!(!plan.contains("TEMP B-TREE"), "it sorts:\n{plan}");
}

fn ready() -> BeadFilter {
    BeadFilter {
        ready: Some(Readiness { now: NOW, include_deferred: false }),
        limit: Some(20),
        ..BeadFilter::default()
    }
}

#[test]
fn ready_is_a_scan_of_its_own_index() {
    scans(&ready(), "beads_ready");
    scans(
        &BeadFilter { unassigned: true, labels: vec!["red".to_owned()], limit: None, ..ready() },
        "beads_ready",
    );
}

#[test]
fn ready_keeps_its_index_when_somebody_has_woken() {
    let (_directory, path) = place();
    let store = store_at(&path);
    let woken = gt_core::Bead { status: Status::Deferred, defer_until: Some(NOW), ..plain_bead(0) };
    store
        .write(&author(), |writer| writer.insert_bead(&woken, gt_core::EventKind::Created))
        .expect("the write succeeds");
    let plan = plan(&store, &path, &ready());
    assert!(plan.contains("INDEX beads_ready"), "{plan}");
}

#[test]
fn who_has_woken_is_looked_up_by_date() {
    let (_directory, path) = place();
    drop(store_at(&path));
    let statements = all_statements();
    let woken = statements
        .iter()
        .find(|sql| sql.contains("status = 'deferred'"))
        .expect("there is a statement for it");
    let plan = plan_of(&path, woken);
    assert!(plan.contains("INDEX beads_wake"), "{plan}");
    assert!(plan.contains("defer_until<?"), "{plan}");
}

#[test]
fn what_made_a_bead_is_forgotten_without_looking_at_everything() {
    let (_directory, path) = place();
    drop(store_at(&path));
    let statements = all_statements();
    let forget = statements.iter().find(|sql| sql.starts_with("DELETE FROM requests"));
    let plan = plan_of(&path, forget.expect("there is a statement for it"));
    assert!(plan.contains("INDEX requests_bead"), "{plan}");
}

#[test]
fn what_is_due_to_be_sent_is_looked_up_by_channel_and_time() {
    let (_directory, path) = place();
    drop(store_at(&path));
    let statements = all_statements();
    for condition in ["next_attempt_at <= ?2", "next_attempt_at > ?2"] {
        let wanted = |sql: &&&str| sql.contains("FROM outbox") && sql.contains(condition);
        let plan = plan_of(&path, statements.iter().find(wanted).expect("there is a statement"));
        assert!(plan.contains("INDEX outbox_waiting (channel=? AND next_attempt_at"), "{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "it sorts:\n{plan}");
    }
    for state in ["waiting", "given-up"] {
        let counts = format!("SELECT COUNT(*) FROM outbox WHERE state = '{state}'");
        let plan =
            plan_of(&path, statements.iter().find(|sql| **sql == counts).expect("it counts"));
        assert!(plan.contains("INDEX outbox_"), "{plan}");
    }
}

#[test]
fn what_is_blocked_is_a_scan_of_its_own_index() {
    scans(&BeadFilter { blocked: true, ..BeadFilter::default() }, "beads_blocked");
}

#[test]
fn the_default_list_is_a_scan_of_what_is_not_closed() {
    scans(&BeadFilter::default(), "beads_unclosed");
    scans(
        &BeadFilter {
            limit: Some(50),
            updated: gt_store::Between { after: Some(Timestamp::from_nanos(0)), before: None },
            ..BeadFilter::default()
        },
        "beads_unclosed",
    );
}

#[test]
fn a_list_of_one_status_is_a_scan_of_it() {
    scans(
        &BeadFilter {
            status: StatusFilter::OneOf(vec![Status::Closed]),
            limit: Some(50),
            ..BeadFilter::default()
        },
        "beads_status",
    );
}

#[test]
fn a_query_keeps_the_index_of_the_list() {
    let asks = |query: &str| Some(Query::parse(query, NOW).expect("a valid query"));
    let query = asks("label=x AND (title~y OR NOT assignee=none)");
    scans(&BeadFilter { query, limit: Some(50), ..BeadFilter::default() }, "beads_unclosed");
    let (query, status) = (asks("status=open AND label=x"), StatusFilter::All);
    scans(&BeadFilter { query, status, limit: Some(50), ..BeadFilter::default() }, "beads_status");
}

#[test]
fn a_scan_of_another_index_is_noticed() {
    let (_directory, path) = place();
    let store = store_at(&path);
    let by_title = BeadFilter { order: gt_store::BeadOrder::Title, ..BeadFilter::default() };
    assert!(plan(&store, &path, &by_title).contains("TEMP B-TREE"));
}
