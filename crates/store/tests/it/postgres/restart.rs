//! The server restarts, or ends one of our connections.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use gt_core::{Bead, EventKind, Uid};
use gt_store::{Store, StoreError};
use gt_testkit::{Cluster, wait_until};

use super::{check, database, id, is_there, open, submit, with, write};
use crate::history::plain_bead;
use crate::subjects::{author, fresh_url, store_on};

fn restart(cluster: &Cluster) {
    cluster.stop();
    cluster.start_server();
}

/// Reads while reading, which takes two connections.
fn two_can_read(store: &Store) -> bool {
    store.read(|_| Ok::<_, StoreError>(is_there(store, 1))).expect("the store can be read")
}

/// Writes a bead, has `during` happen in the middle, and goes on.
fn write_through(store: &Store, number: usize, during: impl Fn()) -> Result<(), StoreError> {
    let bead = Bead { id: id(number), uid: Uid::fresh(), ..plain_bead(0) };
    store.write(&author(), |writer| {
        writer.insert_bead(&bead, EventKind::Created)?;
        assert!(writer.bead_exists(&bead.id)?);
        during();
        writer.add_label(&bead, "after", true).map(drop)
    })
}

#[test]
fn a_restart_between_operations_is_not_noticed_and_one_in_the_middle_is_a_clean_error() {
    let cluster = Cluster::start("");
    let store = store_on(&cluster.url("postgres"));

    // Between operations, with several connections open,
    write(&store, 1).unwrap();
    assert!(two_can_read(&store));
    restart(&cluster);
    assert!(two_can_read(&store));
    restart(&cluster);
    write(&store, 2).unwrap();

    // in the middle of a change,
    let refused = write_through(&store, 3, || restart(&cluster));
    assert!(matches!(refused, Err(StoreError::Disconnected { reading: false, .. })), "{refused:?}");
    assert!(!is_there(&store, 3));

    // and in the middle of reading.
    let broken = store.read(|reader| {
        reader.bead_exists(&id(1))?;
        restart(&cluster);
        reader.bead_exists(&id(1))
    });
    assert!(matches!(broken, Err(StoreError::Disconnected { reading: true, .. })), "{broken:?}");
    let told = broken.unwrap_err().to_string();
    assert!(!told.contains("nothing was changed"), "the changes before it are made: {told}");
    write(&store, 3).unwrap();
    check(&store);
}

#[test]
fn every_acknowledged_write_survives_restarts_exactly_once() {
    // Given writers that go on through two restarts, each number once,
    const WRITES_MIN: usize = 60;
    let cluster = Cluster::start("");
    let store = store_on(&cluster.url("postgres"));
    let acknowledged = AtomicUsize::new(0);
    let write_until = |first: usize, how: fn(&Store, usize) -> Result<(), StoreError>| {
        let mut done = HashSet::new();
        for number in (first..).step_by(2) {
            if acknowledged.load(Ordering::SeqCst) >= 3 * WRITES_MIN {
                break;
            }
            if how(&store, number).is_ok() {
                done.insert(number);
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
        }
        done
    };
    let done: HashSet<usize> = std::thread::scope(|scope| {
        let alone = scope.spawn(|| write_until(0, write));
        let grouped = scope.spawn(|| write_until(1, submit));
        for round in 1..=2 {
            let reached = || acknowledged.load(Ordering::SeqCst) >= round * WRITES_MIN;
            wait_until("enough is acknowledged", reached);
            restart(&cluster);
        }
        let (alone, grouped) = (alone.join().unwrap(), grouped.join().unwrap());
        alone.union(&grouped).copied().collect()
    });

    // when it is over, then everything acknowledged is there, and every bead has one event.
    assert!(done.iter().all(|number| is_there(&store, *number)));
    let (beads, events) = store
        .read(|reader| {
            let all = reader.find(&gt_store::BeadFilter::default())?;
            Ok::<_, StoreError>((all.len(), reader.last_event_number()?))
        })
        .unwrap();
    assert!(beads >= done.len());
    assert_eq!(beads as u64, events);
    check(&store);
}

#[test]
fn a_killed_backend_is_replaced_between_operations_and_a_clean_error_in_the_middle() {
    let url = fresh_url();
    let store = open(&with(&url, "application_name=victim")).unwrap();
    let kill = || {
        let sql = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
            WHERE application_name = 'victim' AND datname = current_database()";
        assert_ne!(Cluster::shared().sql(database(&url), sql), "0");
    };

    write(&store, 1).unwrap();
    kill();
    assert!(is_there(&store, 1));
    kill();
    write(&store, 2).unwrap();
    let refused = write_through(&store, 3, kill);
    assert!(matches!(refused, Err(StoreError::Disconnected { reading: false, .. })), "{refused:?}");
    assert!(!is_there(&store, 3));
    write(&store, 3).unwrap();
    check(&store);
}
