//! The daemon of a host renews its lease with one statement.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of `Reader<'_>` is not general enough to be passed by name"
)]

use gt_store::{HostDeclaration, HostRow, Store, StoreError};

use super::raw::Raw;
use super::{open, with, write};
use crate::subjects::{author, fresh_url};

fn builder() -> HostRow {
    HostRow {
        id: "0123".to_owned(),
        name: "builder".to_owned(),
        machine: String::new(),
        path: "/town".to_owned(),
        incarnation: "boot".to_owned(),
    }
}

fn renew(store: &Store, labels: &[&str]) -> Option<u64> {
    let labels = labels.iter().map(ToString::to_string).collect();
    let declared = HostDeclaration { labels, cores: 4, ..HostDeclaration::default() };
    store.renew_known_host(&builder(), &declared).expect("the server answers")
}

fn labels(store: &Store) -> Vec<String> {
    let fleet = store.read_newest(|reader| reader.fleet()).expect("the server answers");
    fleet.into_iter().flat_map(|host| host.declared.labels).collect()
}

#[test]
fn a_known_host_is_renewed_beside_a_writer_and_the_answer_names_the_last_event() {
    let url = fresh_url();
    let (store, other) = (open(&url).unwrap(), open(&url).unwrap());
    assert_eq!(renew(&store, &["a"]), None, "a host that is not listed is not renewed");
    let declared = HostDeclaration::default();
    store.write(&author(), |writer| writer.renew_host(&builder(), &declared, false)).unwrap();
    write(&store, 1).unwrap();

    // While another connection has the town's lock,
    other
        .write(&author(), |_| {
            assert_eq!(renew(&store, &["a", "b"]), Some(1));
            Ok::<_, StoreError>(())
        })
        .unwrap();

    assert_eq!(labels(&store), ["a", "b"]);
    let fleet = store.read(|reader| reader.fleet()).unwrap();
    assert!(fleet[0].daemon_age.is_some(), "its daemon was seen");
    assert_eq!(fleet[0].declared.cores, 4);
}

#[test]
fn a_renewal_over_a_cut_connection_is_repeated() {
    let url = fresh_url();
    let store = open(&url).unwrap();
    let declared = HostDeclaration::default();
    store.write(&author(), |writer| writer.renew_host(&builder(), &declared, true)).unwrap();
    assert_eq!(renew(&store, &["a"]), Some(0));

    Raw::connect(&url).run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );

    assert_eq!(renew(&store, &["b"]), Some(0));
    assert_eq!(labels(&store), ["b"]);
}

#[test]
fn a_pooler_that_changes_connections_gets_transactions() {
    let url = with(&fresh_url(), "pooler=transaction");
    let store = open(&url).unwrap();
    let declared = HostDeclaration::default();
    store.write(&author(), |writer| writer.renew_host(&builder(), &declared, true)).unwrap();

    assert_eq!(renew(&store, &["a"]), None, "the caller renews in a transaction");
    assert_eq!(labels(&store), Vec::<String>::new());
}
