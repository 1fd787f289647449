//! A store of schema 12 is brought up to date, and the waits of its contexts are filled in as the evaluator says.

use std::fmt::Write as _;

use gt_core::BeadId;
use gt_core::decide::{ContextWait, WaitClass};
use gt_store::{Options, SCHEMA_LEVEL, Store, StoreError};
use gt_testkit::Cluster;

use crate::subjects::{NOW, place, server_address};

macro_rules! until_schema_12 {
    ($engine:literal) => {
        concat!(
            include_str!(concat!("../../../migrations/", $engine, "/0001_foundation.sql")),
            include_str!(concat!("../../../migrations/", $engine, "/0002_requests.sql")),
            include_str!(concat!("../../../migrations/", $engine, "/0003_scheduler.sql")),
            include_str!(concat!("../../../migrations/", $engine, "/0004_workers.sql")),
            include_str!(concat!("../../../migrations/", $engine, "/0005_capacity.sql")),
            include_str!(concat!("../../../migrations/", $engine, "/0006_work.sql")),
            include_str!(concat!("../../../migrations/", $engine, "/0007_pull.sql")),
            include_str!(concat!("../../../migrations/", $engine, "/0008_convoys.sql")),
            include_str!(concat!("../../../migrations/", $engine, "/0009_live_convoys.sql")),
            include_str!(concat!("../../../migrations/", $engine, "/0010_identity.sql")),
            include_str!(concat!("../../../migrations/", $engine, "/0011_token_agents.sql")),
            include_str!(concat!("../../../migrations/", $engine, "/0012_client_sessions.sql")),
        )
    };
}

const LEDGER: &str = "CREATE TABLE migrations (version BIGINT PRIMARY KEY NOT NULL, serves BIGINT NOT NULL, \
    applied_at BIGINT NOT NULL); INSERT INTO migrations (version, serves, applied_at) VALUES (12, 11, 1);";

/// A bead with an open context: its name, the special columns of both, and the wait of the context.
type Specimen = (&'static str, &'static str, &'static str, WaitClass, Option<i64>);

const LATER: i64 = i64::MAX - 1;

const SPECIMENS: [Specimen; 18] = [
    ("gr-plain", "", "", WaitClass::Nothing, None),
    ("gr-closed", "status = 'closed', closed_at = 1", "", WaitClass::Closed, None),
    ("gr-claimed", "status = 'in_progress', assignee = 'ann'", "", WaitClass::Status, None),
    ("gr-forced", "status = 'hooked', assignee = 'ann'", "forced = 1", WaitClass::Nothing, None),
    ("gr-deferred", "status = 'deferred'", "", WaitClass::Status, None),
    (
        "gr-later",
        "status = 'deferred', defer_until = 9223372036854775806",
        "",
        WaitClass::Nothing,
        Some(LATER),
    ),
    ("gr-pinned", "pinned = 1, open_blockers = 0", "", WaitClass::Status, None),
    ("gr-machine", "ephemeral = 1", "", WaitClass::Status, None),
    ("gr-blocked", "open_blockers = 1", "", WaitClass::Blockers, None),
    ("gr-given", "assignee = 'ann'", "", WaitClass::Assignee, None),
    ("gr-placed", "assignee = 'ann'", "place = 'ann'", WaitClass::Nothing, None),
    ("gr-epic", "issue_type = 'epic'", "", WaitClass::Type, None),
    ("gr-story", "issue_type = 'story'", "", WaitClass::Type, None),
    ("gr-asked", "issue_type = 'story'", "rig = 'asked'", WaitClass::Nothing, None),
    ("gr-message", "issue_type = 'message'", "rig = 'asked'", WaitClass::Type, None),
    ("gr-gone", "issue_type = 'story'", "rig = 'gone'", WaitClass::Nothing, None),
    ("gr-paused", "", "", WaitClass::Convoy, None),
    ("gr-backoff", "", "next_attempt_at = 9223372036854775806", WaitClass::Nothing, Some(LATER)),
];

/// The rows that an older program left; `uid` writes the alias of a number.
fn furniture(uid: impl Fn(usize) -> String) -> String {
    let mut sql = String::new();
    let bead = |id: &str, number: usize, kind: &str| {
        format!(
            "INSERT INTO beads (id, uid, rig, status, priority, issue_type, assignee, created_at, updated_at, \
             ephemeral, no_history, pinned, is_template, open_blockers, title, owner, created_by, close_reason, \
             description, design, acceptance_criteria, notes) VALUES ('{id}', {}, NULL, 'open', 2, '{kind}', '', 1, \
             1, 0, 0, 0, 0, 0, 'Work', '', '', '', '', '', '', ''); ",
            uid(number)
        )
    };
    for (number, (rig, executor)) in [("gear", "process"), ("asked", "pull")].iter().enumerate() {
        let _ = write!(
            sql,
            "INSERT INTO rigs (slug, uid, prefix, title, path, repo, default_branch, executor, state, external_ref, \
             settings, created_at, updated_at) VALUES ('{rig}', {}, '{rig}', '', '', '', '', '{executor}', 'active', \
             '', '{{}}', 1, 1); ",
            uid(900 + number)
        );
    }
    sql.push_str(&bead("hq-blocker", 901, "task"));
    sql.push_str(&bead("hq-cv-1", 902, "convoy"));
    for (number, (id, of_bead, of_context, ..)) in SPECIMENS.iter().enumerate() {
        sql.push_str(&bead(id, number, "task"));
        let _ = write!(
            sql,
            "INSERT INTO contexts (number, id, bead, rig, place, account, gated, forced, priority, origin, parameters, \
             enqueued_at, enqueued_by, waiting_since, failures, last_failure, attempts, starting, held, latest, \
             closed_by, close_reason) VALUES ({number} + 1, 'hq-ctx-{number}', '{id}', 'gear', '', '', 0, 0, 2, \
             'sling', '{{}}', 1, 'me', 1, 0, '', 0, 0, 0, 1, '', ''); "
        );
        // The context before its bead, whose change lets a trigger look at both.
        if !of_context.is_empty() {
            let _ = write!(sql, "UPDATE contexts SET {of_context} WHERE bead = '{id}'; ");
        }
        let of_bead = if of_bead.is_empty() { "priority = 1" } else { of_bead };
        let _ = write!(sql, "UPDATE beads SET {of_bead} WHERE id = '{id}'; ");
        let _ = write!(sql, "UPDATE beads SET priority = 2 WHERE id = '{id}'; ");
        let _ = write!(sql, "UPDATE beads SET priority = 1 WHERE id = '{id}'; ");
    }
    let edge = |issue: &str, target: &str, kind: &str, blocking: u8| {
        format!(
            "INSERT INTO dependencies (issue_id, depends_on_id, type, created_at, created_by, metadata, thread_id, \
             blocking) VALUES ('{issue}', '{target}', '{kind}', 1, '', '', '', {blocking}); "
        )
    };
    sql.push_str(&edge("gr-blocked", "hq-blocker", "blocks", 1));
    sql.push_str(
        "INSERT INTO convoys (id, members, open_members, failed_members, landings, paused_by, paused_at) \
         VALUES ('hq-cv-1', 1, 1, 0, 0, 'ann', 1); ",
    );
    sql.push_str(&edge("hq-cv-1", "gr-paused", "tracks", 0));
    sql.push_str(
        "UPDATE counters SET value = 100 WHERE name = 'context'; \
         INSERT INTO prefixes (prefix, beads) VALUES ('gr', 18); INSERT INTO prefixes (prefix, beads) VALUES ('hq', 1); \
         INSERT INTO prefixes (prefix, beads) VALUES ('hq-cv', 1)",
    );
    sql
}

fn check(store: &Store) {
    store
        .read(|reader| {
            for (id, _, _, class, due_at) in SPECIMENS {
                let stored = reader.stored_wait(&BeadId::trusted(id.to_owned()))?;
                let due_at = due_at.map(gt_core::Timestamp::from_nanos);
                assert_eq!(stored, Some(ContextWait { class, due_at }), "{id}");
            }
            assert_eq!(reader.differences()?, Vec::<String>::new());
            Ok::<_, StoreError>(())
        })
        .expect("the store can be read");
    let described = store.describe(NOW).expect("the store can be described");
    assert_eq!(described.schema, SCHEMA_LEVEL);
}

#[test]
fn sqlite_store_of_schema_12_is_upgraded() {
    let (_directory, path) = place();
    let old = rusqlite::Connection::open(&path).expect("the file can be made");
    old.pragma_update(None, "application_id", 0x6774_776e).expect("the file can be marked");
    let furniture = furniture(|number| format!("x'{number:032x}'"));
    let made = format!("{LEDGER} {} ; {furniture}", until_schema_12!("sqlite"));
    old.execute_batch(&made).expect("an old store can be made");
    drop(old);

    check(&Store::open(&path.as_path().into(), NOW, Options::default()).expect("it is upgraded"));
}

#[test]
fn postgres_store_of_schema_12_is_upgraded() {
    let url = Cluster::shared().fresh_database();
    let database = url.rsplit('/').next().expect("a URL has parts");
    let furniture = furniture(|number| format!("decode('{number:032x}', 'hex')"));
    let made = until_schema_12!("postgres");
    let made = format!("CREATE SCHEMA gt; SET search_path = gt; {LEDGER} {made} ; {furniture}");
    Cluster::shared().sql(database, &made);

    let store = Store::create(&server_address(&url), NOW, Options::default());
    check(&store.expect("it is upgraded"));
}
