//! The bell rings when another process has written.

use std::time::Duration;

use gt_core::{Bead, EventKind, Uid};
use gt_store::{Bell, StoreError};
use gt_testkit::{Cluster, wait_until};

use super::raw::Raw;
use super::{database, id, open, with, write};
use crate::history::plain_bead;
use crate::subjects::{author, fresh_url, store_on};

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Whether exactly one connection listens.
fn listening(cluster: &Cluster, database: &str) -> bool {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND query LIKE 'LISTEN %' AND state = 'idle'";
    cluster.sql(database, sql) == "1"
}

/// Waits until the notifications so far are consumed.
fn fall_quiet(bell: &Bell) {
    wait_until("the bell is quiet", || !bell.wait(POLL_INTERVAL));
}

#[test]
fn the_bell_rings_when_another_store_has_written_and_stops_when_it_is_dropped() {
    let url = fresh_url();
    let (store, other) = (open(&url).unwrap(), open(&url).unwrap());
    let bell = store.bell();
    assert!(bell.rings());
    wait_until("it listens", || listening(Cluster::shared(), database(&url)));
    fall_quiet(&bell);

    write(&other, 1).unwrap();
    wait_until("it rings", || bell.wait(POLL_INTERVAL));

    drop(bell);
    let gone = || !listening(Cluster::shared(), database(&url));
    wait_until("its connection is gone", gone);
}

#[test]
fn the_bell_rings_again_after_a_restart_because_news_may_have_been_missed() {
    let cluster = Cluster::start("");
    let url = cluster.url("postgres");
    let store = store_on(&url);
    let bell = store.bell();
    let silent = Duration::from_secs(1);
    wait_until("it listens", || bell.state().poll_interval(silent) > silent);
    fall_quiet(&bell);

    cluster.stop();
    wait_until("it knows that it hears nothing", || bell.state().poll_interval(silent) == silent);
    cluster.start_server();
    wait_until("it listens again", || listening(&cluster, "postgres"));
    assert!(bell.wait(gt_testkit::CONDITION_TIME_LIMIT));
    fall_quiet(&bell);
    write(&store, 1).unwrap();
    wait_until("it rings", || bell.wait(POLL_INTERVAL));
}

#[test]
fn a_group_of_changes_rings_once_and_an_empty_write_not_at_all() {
    // Given a listener that counts the notifications on the store's channel,
    let url = fresh_url();
    let store = open(&url).unwrap();
    let ear = Raw::connect(&url);
    ear.run("LISTEN gt_gt");

    // when ten beads come in one transaction, and one that is refused in another,
    let work = |writer: &mut gt_store::Writer<'_>, number| {
        let bead = Bead { id: id(number), uid: Uid::fresh(), ..plain_bead(0) };
        writer.insert_bead(&bead, EventKind::Created)
    };
    let written = store.write_each(&author(), 0..10, work).unwrap();
    assert!(written.into_iter().all(|one: Result<(), StoreError>| one.is_ok()));
    write(&store, 1).unwrap_err();
    ear.run("NOTIFY gt_gt, 'end'");

    // then one number was said, the last.
    assert_eq!(ear.hear(), "10");
    assert_eq!(ear.hear(), "end");
}

#[test]
fn behind_a_pooler_the_bell_knows_that_it_cannot_ring() {
    let store = open(&with(&fresh_url(), "pooler=transaction")).unwrap();
    assert!(!store.bell().rings());
}
