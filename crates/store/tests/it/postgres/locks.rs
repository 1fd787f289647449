//! Another process holds the lock of all writers.

use gt_store::StoreError;
use gt_testkit::Cluster;

use super::raw::{Raw, TAKE_THE_LOCK};
use super::{check, database, is_there, open, with, write};
use crate::subjects::fresh_url;

#[test]
fn a_client_that_sits_on_the_lock_is_named_and_nothing_else_suffers() {
    // Given a client that took the lock and went to lunch,
    let url = fresh_url();
    let store = open(&with(&url, "lock_timeout=100ms&application_name=hungry")).unwrap();
    write(&store, 1).unwrap();
    let sleeper = Raw::connect(&with(&url, "application_name=lunch"));
    sleeper.run(TAKE_THE_LOCK);

    // when a process wants to write, then it is told which one is in the way;
    let refused = write(&store, 2).unwrap_err();
    assert!(matches!(refused, StoreError::Locked(Some(_))), "{refused:?}");
    assert!(refused.to_string().starts_with("lunch (process "), "{refused}");

    // reads succeed, and the connection that waited is as good as new.
    assert!(is_there(&store, 1));
    let held = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND application_name = 'hungry' AND state <> 'idle'";
    assert_eq!(Cluster::shared().sql(database(&url), held), "0");
    sleeper.run("ROLLBACK");
    write(&store, 2).unwrap();
    check(&store);
}

#[test]
fn towns_in_two_schemas_do_not_wait_for_each_other() {
    let url = fresh_url();
    let second = crate::subjects::store_on(&with(&url, "schema=second&lock_timeout=100ms"));
    let sleeper = Raw::connect(&url);
    sleeper.run(TAKE_THE_LOCK);
    write(&second, 1).unwrap();
    assert!(!is_there(&open(&url).unwrap(), 1));
}
