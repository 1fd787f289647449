//! One side goes silent, and the other is not told.

use gt_store::StoreError;
use gt_testkit::wait_until;

use super::proxy::{Fault, Proxy};
use super::{check, is_there, open, write};
use crate::subjects::fresh_url;

#[test]
fn a_client_that_goes_silent_in_the_middle_of_a_change_is_ended_and_others_go_on() {
    // Given a client whose words get lost once it holds the lock,
    let url = fresh_url();
    let proxy = Proxy::start();
    let patience = "idle_timeout=1s&lock_timeout=500ms&answer_timeout=500ms";
    let silent = open(&proxy.url(&url, patience)).unwrap();
    let other = open(&url).unwrap();
    proxy.arm(Fault::Swallow("INSERT INTO beads"));

    // when it writes and another does, then the server ends the silent one;
    std::thread::scope(|scope| {
        let lost = scope.spawn(|| write(&silent, 1));
        wait_until("it has gone silent", || proxy.has_struck());
        write(&other, 2).expect("others go on");
        let lost = lost.join().unwrap();
        assert!(matches!(lost, Err(StoreError::Disconnected { .. })), "{lost:?}");
    });

    // nothing of its change is there, and it can come back.
    assert!(!is_there(&other, 1));
    wait_until("it is back", || write(&silent, 1).is_ok());
    check(&other);
}

#[test]
fn a_swallowed_commit_is_a_clean_error_and_frees_the_lock() {
    let url = fresh_url();
    let proxy = Proxy::start();
    let store = open(&proxy.url(&url, "lock_timeout=500ms&answer_timeout=500ms")).unwrap();
    proxy.arm(Fault::Swallow("COMMIT\0"));
    let lost = write(&store, 1);
    assert!(matches!(lost, Err(StoreError::Disconnected { .. })), "{lost:?}");
    wait_until("the lock is free again", || write(&store, 1).is_ok());
    check(&open(&url).unwrap());
}

#[test]
fn a_server_that_takes_connections_and_says_nothing_is_not_waited_for_forever() {
    let url = fresh_url();
    let proxy = Proxy::start();
    proxy.fall_silent();
    let refused = open(&proxy.url(&url, "connect_timeout=1")).unwrap_err();
    let StoreError::Unreachable { why, .. } = &refused else { panic!("{refused:?}") };
    assert!(why.contains("does not answer"), "{why}");
}

#[test]
fn of_several_hosts_the_first_that_answers_is_used() {
    let url = fresh_url();
    let proxy = Proxy::start();
    let through = proxy.url(&url, "target_session_attrs=read-write");
    let store = open(&through.replace("@127", "@127.0.0.1:1,127")).unwrap();
    write(&store, 1).unwrap();
    assert!(is_there(&open(&url).unwrap(), 1));
}
