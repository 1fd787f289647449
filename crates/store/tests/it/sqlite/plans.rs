//! The lists that people wait for are index scans, without sorting.

use std::path::Path;

use gt_core::query::Query;
use gt_core::work::{Position, WorkFilter, WorkStatus};
use gt_core::{Status, Timestamp};
use gt_store::{BeadFilter, PullQuery, Readiness, StatusFilter, Store, all_statements};

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
fn ready_keeps_its_index_when_a_deferred_bead_is_due() {
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
fn woken_beads_are_looked_up_by_date() {
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
fn requests_of_a_bead_are_deleted_by_index() {
    let (_directory, path) = place();
    drop(store_at(&path));
    let statements = all_statements();
    let forget = statements.iter().find(|sql| sql.starts_with("DELETE FROM requests"));
    let plan = plan_of(&path, forget.expect("there is a statement for it"));
    assert!(plan.contains("INDEX requests_bead"), "{plan}");
}

#[test]
fn due_notices_are_looked_up_by_channel_and_time() {
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
fn the_list_of_blocked_beads_is_a_scan_of_its_own_index() {
    scans(&BeadFilter { blocked: true, ..BeadFilter::default() }, "beads_blocked");
}

#[test]
fn the_default_list_is_a_scan_of_unclosed_beads() {
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

/// How SQLite would carry out a list of work items.
fn plan_of_work(filter: &WorkFilter, after: Option<&Position>) -> String {
    let (_directory, path) = place();
    let store = store_at(&path);
    let sql =
        store.read(|reader| Ok::<_, gt_store::StoreError>(reader.work_statement_of(filter, after)));
    plan_of(&path, &sql.expect("the filter makes a statement"))
}

#[test]
fn lists_of_work_items_are_scans_of_their_indexes_with_every_filter() {
    let all = WorkFilter::default;
    let agent = || Some("ann".to_owned());
    let queued = || vec![WorkStatus::Queued];
    let gear = || Some(gt_core::RigSlug::trusted("gear".to_owned()));
    let after = Position {
        priority: gt_core::Priority::default(),
        created_at: NOW,
        bead: gt_core::BeadId::trusted("gr-a".to_owned()),
    };
    for (filter, index) in [
        (all(), "beads_work (work_status=?"),
        (WorkFilter { statuses: queued(), ..all() }, "beads_work (work_status=?"),
        (
            WorkFilter { statuses: queued(), agent: agent(), ..all() },
            "beads_work_agent (assignee=? AND work_status=?",
        ),
        (
            WorkFilter { statuses: queued(), project: gear(), ..all() },
            "beads_work_rig (rig=? AND work_status=?",
        ),
        (WorkFilter { since: Some(NOW), ..all() }, "beads_work_created (created_at>?"),
    ] {
        for after in [None, Some(&after)] {
            let plan = plan_of_work(&filter, after);
            let scans: Vec<&str> =
                plan.lines().filter(|line| line.contains("beads USING")).collect();
            let (lookups, lists): (Vec<&str>, Vec<&str>) =
                scans.iter().partition(|line| line.contains("sqlite_autoindex"));
            assert!(!lookups.is_empty() && !lists.is_empty(), "{plan}");
            assert!(lists.iter().all(|line| line.contains(index)), "not on {index}:\n{plan}");
        }
    }
    let ended = WorkFilter { statuses: vec![WorkStatus::Completed], since: Some(NOW), ..all() };
    let plan = plan_of_work(&ended, None);
    assert!(plan.contains("beads_work_ended (work_status=? AND closed_at>?"), "{plan}");
}

#[test]
fn offers_to_agents_are_the_head_of_an_index() {
    let (_directory, path) = place();
    let store = store_at(&path);
    let kinds = [gt_core::IssueType::default()];
    for (kinds, index) in [
        (&kinds[..0], "beads_offered (rig=? AND assignee=?)"),
        (&kinds[..], "beads_offered_type (rig=? AND assignee=? AND issue_type=?)"),
    ] {
        let ask = PullQuery {
            agent: "ann",
            kinds,
            rig: None,
            dispatched: false,
            dispatched_below: false,
            after: None,
            now: NOW,
        };
        let sql =
            store.read(|reader| Ok::<_, gt_store::StoreError>(reader.offer_statement_of(&ask)));
        let plan = plan_of(&path, &sql.expect("the question makes a statement"));
        for expected in [index, "beads_wake", "runs_given", "runs_pulling"] {
            assert!(plan.contains(expected), "{expected} is not used:\n{plan}");
        }
        assert!(!plan.contains("SCAN x"), "{plan}");
    }
}

#[test]
fn leases_that_end_are_looked_up_by_time() {
    let (_directory, path) = place();
    drop(store_at(&path));
    for sql in all_statements().iter().filter(|sql| sql.contains("lease_expires_at <= ?1")) {
        let plan = plan_of(&path, sql);
        assert!(plan.contains("INDEX runs_lease (lease_expires_at"), "{plan}");
    }
}

#[test]
fn the_queries_for_silent_runs_skip_runs_with_a_lease_by_index() {
    let (_directory, path) = place();
    drop(store_at(&path));
    let statements = all_statements();
    let about_silence = statements
        .iter()
        .filter(|sql| sql.contains("'pull'") && sql.contains("lease_expires_at IS NULL"));
    let plans: Vec<String> = about_silence.map(|sql| plan_of(&path, sql)).collect();
    assert!(plans.len() >= 2, "who is silent, and who has been for longest");
    for plan in plans {
        assert!(plan.contains("runs_unleased"), "{plan}");
    }
}

#[test]
fn lanes_are_found_by_steps_through_the_index_over_the_line() {
    let (_directory, path) = place();
    drop(store_at(&path));
    let statements = all_statements();
    let find = |start: &str| {
        let found = statements.iter().find(|sql| sql.starts_with(start));
        plan_of(&path, found.expect("there is a statement for it"))
    };
    let lanes = find("WITH RECURSIVE lane");
    let steps = "INDEX contexts_line ((rig,place,account,gated,priority,convoys)>";
    assert!(lanes.contains(steps), "{lanes}");
    let counted = find("SELECT rig, place, account, gated, priority, convoys, COUNT(*)");
    assert!(counted.contains("INDEX contexts_line"), "{counted}");
    let queued = find("SELECT rig, COUNT(*) FROM contexts");
    assert!(queued.contains("COVERING INDEX contexts_rig"), "{queued}");
    let next_due = find("SELECT MIN(due_at)");
    assert!(next_due.contains("INDEX contexts_due (due_at>?)"), "{next_due}");
    for plan in [lanes, counted, queued, next_due] {
        assert!(!plan.contains("TEMP B-TREE"), "it sorts:\n{plan}");
    }
}
