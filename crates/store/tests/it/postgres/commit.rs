//! The connection breaks while a change is being committed: only the server knows what became of it,
//! and it is asked.

use gt_store::{Store, StoreError};
use gt_testkit::Cluster;

use super::proxy::{Fault, Proxy};
use super::{check, database, is_there, open, submit, write};
use crate::subjects::fresh_url;

/// A store behind a proxy, and another way to the same store.
fn behind(proxy: &Proxy, parameters: &str) -> (Store, Store) {
    let url = fresh_url();
    let store = open(&proxy.url(&url, parameters)).expect("the proxy lets us through");
    (store, open(&url).expect("the store is there"))
}

#[test]
fn a_commit_whose_answer_is_lost_is_reported_as_done_and_done_once() {
    // Given a line that is cut after the server has heard COMMIT,
    let proxy = Proxy::start();
    let (store, other) = behind(&proxy, "");
    proxy.arm(Fault::LoseAnswerTo("COMMIT\0"));

    // when something is written,
    write(&store, 1).expect("the server says that it was committed");

    // then it is there, once, and the store goes on.
    assert!(proxy.has_struck());
    assert!(is_there(&other, 1));
    write(&store, 2).expect("the store goes on");
    check(&other);
    assert_eq!(other.read(|reader| reader.last_event_number()).unwrap(), 2);
}

#[test]
fn a_commit_that_was_never_heard_is_a_clean_error() {
    let proxy = Proxy::start();
    let (store, other) = behind(&proxy, "");
    proxy.arm(Fault::CutBefore("COMMIT\0"));

    let refused = write(&store, 1);

    assert!(matches!(refused, Err(StoreError::Disconnected { .. })), "{refused:?}");
    assert!(!is_there(&other, 1));
    write(&store, 1).expect("the same can be tried again");
    check(&other);
}

#[test]
fn a_server_that_waits_for_a_commit_that_never_comes_is_told_to_stop_waiting() {
    // Given a line of which only our end is cut,
    let proxy = Proxy::start();
    let (store, other) = behind(&proxy, "");
    proxy.arm(Fault::LeaveServerWaiting("COMMIT\0"));

    // when something is written,
    let refused = write(&store, 1);

    // then nothing was changed, and nobody waits for the one who vanished.
    assert!(matches!(refused, Err(StoreError::Disconnected { .. })), "{refused:?}");
    write(&other, 2).expect("the lock is free");
    assert!(!is_there(&other, 1));
    check(&other);
}

#[test]
fn a_commit_that_nobody_can_be_asked_about_is_reported_as_such() {
    let proxy = Proxy::start();
    let (store, other) = behind(&proxy, "reconnect_wait=300ms");
    proxy.arm(Fault::LoseAnswerTo("COMMIT\0"));
    proxy.close();

    let unknown = write(&store, 1);

    assert!(matches!(unknown, Err(StoreError::Unsettled(_))), "{unknown:?}");
    assert!(is_there(&other, 1));
    check(&other);
}

#[test]
fn a_backend_that_is_killed_while_it_commits_leaves_nothing_behind() {
    // Given a server that ends whoever commits a bead,
    let url = fresh_url();
    let store = open(&url).unwrap();
    let cluster = Cluster::shared();
    cluster.sql(
        database(&url),
        "CREATE FUNCTION end_me() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
         CREATE CONSTRAINT TRIGGER end_me AFTER INSERT ON gt.beads
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION end_me()",
    );

    // when a bead is written,
    let refused = write(&store, 1);

    // then it is not there, and can be written later.
    assert!(matches!(refused, Err(StoreError::Disconnected { .. })), "{refused:?}");
    assert!(!is_there(&store, 1));
    cluster.sql(database(&url), "DROP TRIGGER end_me ON gt.beads");
    write(&store, 1).unwrap();
    check(&store);
}

#[test]
fn those_who_share_a_lost_commit_all_hear_the_truth() {
    // Given a line that is cut before the COMMIT of a group,
    let proxy = Proxy::start();
    let (store, other) = behind(&proxy, "");
    proxy.arm(Fault::CutBefore("COMMIT\0"));

    // when several write at once and repeat what was refused,
    std::thread::scope(|scope| {
        for number in 0..8 {
            let store = &store;
            scope.spawn(move || while submit(store, number).is_err() {});
        }
    });

    // then each is there once.
    assert!(proxy.has_struck());
    assert!((0..8).all(|number| is_there(&other, number)));
    assert_eq!(other.read(|reader| reader.last_event_number()).unwrap(), 8);
    check(&other);
}
