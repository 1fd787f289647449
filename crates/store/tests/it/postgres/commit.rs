//! The connection breaks while a change is being committed: only the server knows the outcome,
//! and it is asked.

use std::thread;

use gt_store::{Store, StoreError};
use gt_testkit::{Cluster, Pooler, wait_until};

use super::proxy::{Fault, Proxy};
use super::raw::{Raw, TAKE_THE_LOCK};
use super::{check, database, is_there, open, submit, write};
use crate::subjects::{fresh_url, store_on};

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
fn a_commit_that_never_reached_the_server_is_a_clean_error() {
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

    // then nothing was changed, and no writer waits for the one that vanished.
    assert!(matches!(refused, Err(StoreError::Disconnected { .. })), "{refused:?}");
    write(&other, 2).expect("the lock is free");
    assert!(!is_there(&other, 1));
    check(&other);
}

#[test]
fn a_commit_of_unknown_outcome_is_reported_as_such() {
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
    // Given a server that ends each backend that commits a bead,
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
fn all_writes_of_a_lost_commit_get_the_true_outcome() {
    // Given a line that is cut before the COMMIT of a group,
    let proxy = Proxy::start();
    let (store, other) = behind(&proxy, "");
    proxy.arm(Fault::CutBefore("COMMIT\0"));

    // when several write at once and repeat refused writes,
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

/// Writes through a line that is cut at COMMIT and stays closed until `meanwhile` is done.
fn write_while_cut_off(
    store: &Store,
    proxy: &Proxy,
    fault: Fault,
    meanwhile: impl FnOnce(),
) -> Result<(), StoreError> {
    proxy.arm(fault);
    proxy.close();
    thread::scope(|scope| {
        let writing = scope.spawn(|| write(store, 1));
        wait_until("the line is cut", || proxy.has_struck());
        meanwhile();
        proxy.reopen();
        writing.join().expect("the writer does not panic")
    })
}

#[test]
fn a_crash_that_reuses_transaction_numbers_does_not_change_the_answer() {
    for (fault, is_committed) in
        [(Fault::CutBefore("COMMIT\0"), false), (Fault::LoseAnswerTo("COMMIT\0"), true)]
    {
        // Given a commit that was not answered, by a server that crashes,
        let cluster = Cluster::start("");
        let url = cluster.url("postgres");
        let other = store_on(&url);
        let proxy = Proxy::before(cluster.socket());
        let store = open(&proxy.url(&url, "reconnect_wait=1m")).expect("the proxy lets us through");

        // when the numbers of lost transactions are given to others, which commit and abort,
        let written = write_while_cut_off(&store, &proxy, fault, || {
            if is_committed {
                wait_until("the server has committed", || is_there(&other, 1));
            }
            cluster.crash();
            cluster.sql("postgres", "CREATE TABLE others (number int)");
            for number in 0..32 {
                let end = if is_committed { "ROLLBACK" } else { "COMMIT" };
                let sql = format!("BEGIN; INSERT INTO others VALUES ({number}); {end}");
                cluster.sql("postgres", &sql);
            }
        });

        // then the answer is about our transaction.
        assert_eq!(written.is_ok(), is_committed, "{written:?}");
        assert_eq!(is_there(&other, 1), is_committed);
        write(&store, 2).expect("the store goes on");
        check(&other);
    }
}

/// Whether a client waits for the town's lock.
fn is_lock_waited_for(url: &str) -> bool {
    let sql = "SELECT COUNT(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    Cluster::shared().sql(database(url), sql) == "t"
}

#[test]
fn a_lost_commit_is_not_judged_while_a_transaction_holds_the_lock() {
    for (parameters, is_released) in [("lock_timeout=300ms", false), ("lock_timeout=1m", true)] {
        // Given a commit that was not answered,
        let url = fresh_url();
        let proxy = Proxy::start();
        let store = open(&proxy.url(&url, parameters)).expect("the proxy lets us through");
        let other = open(&url).expect("the store is there");
        let mut holder = None;

        // when a transaction holds the lock that the client must take before it looks,
        let written = thread::scope(|scope| {
            write_while_cut_off(&store, &proxy, Fault::LoseAnswerTo("COMMIT\0"), || {
                wait_until("the server has committed", || is_there(&other, 1));
                let raw = Raw::connect(&url);
                raw.run(TAKE_THE_LOCK);
                if is_released {
                    let url = &url;
                    scope.spawn(move || {
                        wait_until("the client waits", || is_lock_waited_for(url));
                        raw.run("ROLLBACK");
                    });
                } else {
                    holder = Some(raw);
                }
            })
        });

        // then it waits for the lock, and without it says that it does not know.
        match (is_released, &written) {
            (true, Ok(())) | (false, Err(StoreError::Unsettled(_))) => {}
            _ => panic!("{parameters}: {written:?}"),
        }
    }
}

#[test]
fn a_lost_commit_is_settled_behind_a_pooler() {
    let pooler = Pooler::start(Cluster::shared());
    for (fault, is_committed) in [
        (Fault::CutBefore("COMMIT\0"), false),
        (Fault::LoseAnswerTo("COMMIT\0"), true),
        (Fault::LeaveServerWaiting("COMMIT\0"), false),
    ] {
        let url = fresh_url();
        let proxy = Proxy::before(pooler.socket());
        let store =
            open(&proxy.url(&url, "pooler=transaction")).expect("the pooler lets us through");
        let other = open(&url).expect("the store is there");
        proxy.arm(fault);

        let written = write(&store, 1);

        assert!(proxy.has_struck());
        assert_eq!(written.is_ok(), is_committed, "{written:?}");
        assert!(!matches!(written, Err(StoreError::Unsettled(_))), "{written:?}");
        assert_eq!(is_there(&other, 1), is_committed);
        write(&store, 2).expect("the store goes on");
        check(&other);
    }
}

#[test]
fn a_client_session_keeps_one_row_and_deletes_only_expired_ones() {
    // Given rows of sessions that ended long ago and a moment ago,
    let url = fresh_url();
    let sql = |sql: &str| Cluster::shared().sql(database(&url), sql);
    sql("DELETE FROM gt.client_sessions; \
         INSERT INTO gt.client_sessions VALUES ('old', 'a', 1), ('new', 'b', 9000000000000000000)");

    // when a session writes several times, alone and in groups,
    let store = open(&url).expect("the store is there");
    for number in 0..3 {
        write(&store, number).unwrap();
        submit(&store, 10 + number).unwrap();
    }

    // then it has one row, and the expired one is gone.
    assert_eq!(sql("SELECT COUNT(*) FROM gt.client_sessions"), "2");
    assert_eq!(sql("SELECT id FROM gt.client_sessions WHERE nonce = 'b'"), "new");
    let kept = "SELECT COUNT(*) FROM gt.client_sessions WHERE id <> 'new' \
                AND kept_until > (extract(epoch FROM now()) + 3600) * 1e9";
    assert_eq!(sql(kept), "1");
}
