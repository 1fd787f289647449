//! What is asked all the time is asked of indexes, by a plan that is kept, also where nobody has counted the tables yet.

use gt_store::{Ask, StoreError};
use gt_testkit::Cluster;

use super::{database, open};
use crate::subjects::{NOW, fresh_url};

/// Work for anybody, and nothing else. Only beads are counted, as the server itself would after so many.
const WORK: &str = "INSERT INTO rigs (slug, uid, prefix, title, path, repo, default_branch, executor, state, external_ref, \
    settings, created_at, updated_at) VALUES ('inbox', decode(repeat('0', 32), 'hex'), 'wq', 'Inbox', 'inbox', '', '', \
    'pull', 'active', '', '{}', 1, 1); \
    INSERT INTO beads (id, uid, rig, status, priority, issue_type, assignee, created_at, updated_at, ephemeral, \
    no_history, pinned, is_template, open_blockers, title, owner, created_by, close_reason, description, design, \
    acceptance_criteria, notes) SELECT 'wq-' || n, decode(lpad(to_hex(n), 32, '0'), 'hex'), 'inbox', 'open', n % 5, \
    'task', '', n, n, 0, 0, 0, 0, 0, 'Work', '', '', '', '', '', '', '' FROM generate_series(1, 5000) AS n; \
    ANALYZE beads";

#[test]
fn a_plan_from_before_anybody_had_work_does_not_read_all_that_was_given_since() {
    let url = fresh_url();
    let store = open(&url).unwrap();
    let ask = Ask { agent: "ann", kinds: &[], rig: None, dispatched: false, now: NOW };
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
