//! Frequent queries use indexes, by a plan that is kept, also where the tables have no statistics yet.

use gt_store::{PullQuery, StoreError};
use gt_testkit::Cluster;

use super::{database, open};
use crate::subjects::{NOW, fresh_url};

/// Work for any agent, and nothing else. Only beads have statistics, as the server itself would have after so many.
const WORK: &str = "INSERT INTO rigs (slug, uid, prefix, title, path, repo, default_branch, executor, state, external_ref, \
    settings, created_at, updated_at) VALUES ('inbox', decode(repeat('0', 32), 'hex'), 'wq', 'Inbox', 'inbox', '', '', \
    'pull', 'active', '', '{}', 1, 1); \
    INSERT INTO beads (id, uid, rig, status, priority, issue_type, assignee, created_at, updated_at, ephemeral, \
    no_history, pinned, is_template, open_blockers, title, owner, created_by, close_reason, description, design, \
    acceptance_criteria, notes) SELECT 'wq-' || n, decode(lpad(to_hex(n), 32, '0'), 'hex'), 'inbox', 'open', n % 5, \
    'task', '', n, n, 0, 0, 0, 0, 0, 'Work', '', '', '', '', '', '', '' FROM generate_series(1, 5000) AS n; \
    ANALYZE beads";

#[test]
fn a_plan_made_before_there_were_runs_does_not_read_all_later_runs() {
    let url = fresh_url();
    let store = open(&url).unwrap();
    let ask = PullQuery {
        agent: "ann",
        kinds: &[],
        rig: None,
        dispatched: false,
        dispatched_below: false,
        after: None,
        now: NOW,
    };
    let sql = store.read(|reader| Ok::<_, StoreError>(reader.offer_statement_of(&ask))).unwrap();
    // Often enough for the server to decide whether it keeps a plan.
    let asked = "EXECUTE asked ('bob', 1); ".repeat(8);
    let said = Cluster::shared().sql(
        database(&url),
        &format!(
            "SET search_path = gt; {WORK}; PREPARE asked (TEXT, BIGINT) AS {}; {asked} \
             EXPLAIN (COSTS OFF) EXECUTE asked ('ann', 1)",
            sql.replace('?', "$")
        ),
    );
    // One that was made for this question alone would have the name of the agent in it.
    assert!(said.contains("agent = $1"), "a new plan is made each time:\n{said}");
    assert!(said.contains("runs_live") && said.contains("beads_offered"), "{said}");
    for table in ["runs", "beads"] {
        assert!(!said.contains(&format!("Seq Scan on {table}")), "all {table} are read:\n{said}");
    }
}

/// Many beads that are scheduled in two rigs. Nothing is counted.
const LINE: &str = "INSERT INTO beads (id, uid, rig, status, priority, issue_type, assignee, created_at, updated_at, \
    ephemeral, no_history, pinned, is_template, open_blockers, title, owner, created_by, close_reason, description, design, \
    acceptance_criteria, notes) SELECT 'gr-' || n, decode(lpad(to_hex(n), 32, '0'), 'hex'), NULL, 'open', 2, 'task', '', n, \
    n, 0, 0, 0, 0, 0, 'Work', '', '', '', '', '', '', '' FROM generate_series(1, 5000) AS n; \
    INSERT INTO contexts (number, id, bead, rig, place, account, gated, forced, priority, origin, parameters, enqueued_at, \
    enqueued_by, waiting_since, failures, last_failure, attempts, starting, latest, closed_by, close_reason) \
    SELECT n, 'hq-ctx-' || n, 'gr-' || n, 'gear' || n % 2, '', '', 0, 0, 2, 'sling', '{}', n, 'me', n, 0, '', 0, 0, 1, '', '' \
    FROM generate_series(1, 5000) AS n";

#[test]
fn a_plan_from_before_anything_was_scheduled_finds_lanes_by_the_index_over_the_line() {
    let url = fresh_url();
    let statements = gt_store::all_statements();
    let lanes = statements.iter().find(|sql| sql.starts_with("WITH RECURSIVE lane"));
    let lanes = lanes.expect("there is a statement for it");
    let said = Cluster::shared().sql(
        database(&url),
        &format!(
            "SET search_path = gt; PREPARE asked AS {lanes}; {} {LINE}; EXECUTE asked; \
             EXPLAIN (COSTS OFF) EXECUTE asked",
            "EXECUTE asked; ".repeat(8)
        ),
    );
    assert!(said.contains("gear0||") && said.contains("gear1||"), "{said}");
    assert!(said.contains("contexts_line"), "{said}");
    assert!(!said.contains("Seq Scan on contexts"), "all contexts are read:\n{said}");
}
