//! More want a connection than there are.

use std::sync::Barrier;

use gt_store::StoreError;
use gt_testkit::{Cluster, wait_until};

use super::raw::Raw;
use super::{check, is_there, open, with, write};
use crate::subjects::{fresh_url, store_on};

#[test]
fn a_caller_without_a_connection_waits_for_one_to_come_back() {
    let store = open(&with(&fresh_url(), "pool_max=2")).unwrap();
    let (inside, leave) = (Barrier::new(3), Barrier::new(3));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                store.read(|_| {
                    inside.wait();
                    leave.wait();
                    Ok::<_, StoreError>(())
                })
            });
        }
        inside.wait();
        let third = scope.spawn(|| is_there(&store, 1));
        write(&store, 2).expect("a writer has a connection of its own");
        leave.wait();
        assert!(!third.join().unwrap());
    });
    check(&store);
}

#[test]
fn a_caller_that_waited_too_long_is_told_how_to_get_more_connections() {
    let store = open(&with(&fresh_url(), "pool_max=2&pool_wait=20ms")).unwrap();
    let refused = store
        .read(|_| store.read(|_| Ok::<_, StoreError>(store.read(|_| Ok::<_, StoreError>(())))));
    let refused = refused.unwrap().unwrap_err();
    assert!(matches!(refused, StoreError::Exhausted { limit: 2 }), "{refused:?}");
    assert!(refused.to_string().contains("pool_max"), "{refused}");
    assert!(!is_there(&store, 1));
}

#[test]
fn a_server_that_has_no_connection_left_says_so() {
    // Given a server of which others hold every connection,
    let cluster = Cluster::start("max_connections = 4\nsuperuser_reserved_connections = 0\n");
    let url = cluster.url("postgres");
    drop(store_on(&url));
    let mut others = Vec::new();
    wait_until("every connection is taken", || {
        others.extend(Raw::try_connect(&url));
        others.len() == 4
    });

    // when another client comes, then it hears why, in a moment.
    let refused = open(&with(&url, "pool_wait=200ms")).unwrap_err();
    let StoreError::Unreachable { why, .. } = &refused else { panic!("{refused:?}") };
    assert!(why.contains("max_connections"), "{refused}");

    // A client that waits longer gets the first connection that is given back.
    std::thread::scope(|scope| {
        let patient = scope.spawn(|| open(&url).map(|store| is_there(&store, 1)));
        drop(others);
        assert!(!patient.join().unwrap().unwrap());
    });
}
