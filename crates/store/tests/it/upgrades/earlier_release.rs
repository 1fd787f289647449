//! Stores of earlier releases, opened by this program.

use gt_core::Timestamp;
use gt_core::schedule::{Merge, Run, RunState, Silence};
use gt_store::{BeadFilter, Options, Store};
use gt_testkit::Cluster;

use crate::subjects::{NOW, place, server_address};

const SQLITE: &str = include_str!("../../fixtures/schema-12/sqlite.sql");
const POSTGRES: &str = include_str!("../../fixtures/schema-12/postgres.sql");

/// A town of schema 12 on each engine, opened and so brought up to date.
fn of_schema_12() -> [(&'static str, Store, Option<tempfile::TempDir>); 2] {
    of_schema_12_after("")
}

/// The same, after a change with that schema.
fn of_schema_12_after(change: &str) -> [(&'static str, Store, Option<tempfile::TempDir>); 2] {
    let (directory, path) = place();
    let file = rusqlite::Connection::open(&path).expect("a file can be made");
    file.execute_batch(SQLITE).expect("the dump can be read");
    file.execute_batch(change).expect("the change can be made");
    file.pragma_update(None, "application_id", 1_735_685_998).expect("the file can be marked");
    drop(file);
    let on_file = Store::open(&gt_store::StoreAddress::File(path), NOW, Options::default());
    let cluster = Cluster::shared();
    let url = cluster.fresh_database();
    let name = url.rsplit('/').next().expect("a URL ends with the name of its database");
    cluster.sql(name, POSTGRES);
    if !change.is_empty() {
        cluster.sql(name, &format!("SET search_path TO gt; {change}"));
    }
    let on_server = Store::open(&server_address(&url), NOW, Options::default());
    [
        ("sqlite", on_file.expect("the file can be opened"), Some(directory)),
        ("postgres", on_server.expect("the database can be opened"), None),
    ]
}

/// The last run whose bead has this title.
fn run_of(store: &Store, title: &str) -> Run {
    store
        .read(|reader| {
            let recent = reader.recent_runs(100)?;
            let mut found = Vec::new();
            for run in recent {
                let bead = reader.bead(&run.id.bead)?;
                if bead.is_some_and(|bead| bead.title.as_str() == title) {
                    found.push(run);
                }
            }
            Ok::<_, gt_store::StoreError>(found)
        })
        .expect("the runs can be read")
        .pop()
        .expect("it has a run")
}

#[test]
fn work_that_waits_to_be_merged_becomes_a_merge_request() {
    let done = "UPDATE runs SET state = 'done', accepted_commit = 'c0ffee', base_commit = 'beef', base = 'main', \
        branch = 'polecat/nux/x', agent = 'web/polecats/nux', ended_at = 1794888155000000000 WHERE context IN (1, 3);";
    let change = format!(
        "{done} UPDATE contexts SET parameters = '{{\"merge\":\"mr\"}}' WHERE number = 1; \
         UPDATE contexts SET parameters = '{{\"review_only\":true}}' WHERE number = 3; \
         UPDATE beads SET status = 'in_progress', assignee = 'web/polecats/nux' \
         WHERE id = (SELECT bead FROM contexts WHERE number = 1); \
         UPDATE beads SET status = 'open', assignee = '' WHERE id = (SELECT bead FROM contexts WHERE number = 3);"
    );
    for (name, store, _directory) in of_schema_12_after(&change) {
        let requests = store.read(|reader| reader.open_merge_requests()).expect("they can be read");
        let shown: Vec<(u32, &str, bool, u64)> = requests
            .iter()
            .map(|request| {
                (request.id.number, request.state.as_str(), request.review, request.position)
            })
            .collect();
        assert_eq!(shown, [(1, "queued", false, 1), (1, "queued", true, 2)], "{name}");
        assert_eq!(requests[0].target, "main", "{name}");
        assert_eq!(requests[0].accepted, "c0ffee", "{name}");
    }
}

#[test]
fn states_that_were_sentences_become_columns() {
    let since = Timestamp::parse("2026-01-02T03:04:05Z").expect("a time");
    for (name, store, _directory) in of_schema_12() {
        let silent = run_of(&store, "Silent");
        assert_eq!(silent.silence(), Some(Silence { since }), "{name}");
        assert_eq!(silent.reason, "", "{name}");
    }
}

#[test]
fn work_that_was_being_pushed_becomes_a_request_that_is_being_pushed() {
    let accepted = "UPDATE runs SET accepted_commit = 'c0ffee', base_commit = 'beef', base = 'main', \
        branch = 'polecat/nux/x' WHERE landing = 'intended';";
    for (name, store, _directory) in of_schema_12_after(accepted) {
        for title in ["Awaits its origin", "Checkout in the way"] {
            let run = run_of(&store, title);
            assert_eq!(run.state, RunState::Done, "{name}: {title}");
            let request = store.read(|reader| reader.open_merge_request(&run.id.bead));
            let request = request.expect("it can be read").expect("it has a request");
            let pushed =
                store.read(|reader| reader.landing_candidates(&request.rig, &request.target));
            let pushed = pushed.expect("they can be read");
            assert_eq!(request.state.as_str(), "landing", "{name}: {title}");
            assert_eq!(request.run(), Some(run.id.clone()), "{name}: {title}");
            let own = pushed.iter().find(|pushed| Some(pushed.number) == request.candidate);
            let part = &own.expect("the request is in a candidate").parts[0];
            assert_eq!(
                (&part.request, &part.before),
                (&request.id, &run.landing.accepted),
                "{name}"
            );
            assert_eq!(run.landing.commit, "", "{name}: {title}");
        }
    }
}

#[test]
fn what_was_scheduled_without_a_strategy_still_lands_at_once() {
    for (name, store, _directory) in of_schema_12() {
        let silent = run_of(&store, "Silent");
        let context = store.read(|reader| reader.latest_context(&silent.id.bead));
        let merge = context.expect("it can be read").expect("it was scheduled").parameters.merge;
        assert_eq!(merge, Some(Merge::Direct), "{name}");
    }
}

#[test]
fn nothing_is_lost_and_nothing_derived_is_wrong() {
    for (name, store, _directory) in of_schema_12() {
        let beads = store
            .read(|reader| reader.find(&BeadFilter::default()))
            .expect("the beads can be found");
        assert!(beads.len() >= 8, "{name}: {beads:?}");
        let mut differences = Vec::new();
        let found = store.examine(&mut |difference| differences.push(difference.to_string()));
        assert_eq!(found.expect("the check runs").damage, [""; 0], "{name}");
        assert_eq!(differences, [""; 0], "{name}");
    }
}
