//! Encryption, and the identity of the server.

use std::error::Error as _;

use gt_store::StoreError;
use gt_testkit::{Certificates, Cluster};

use super::{check, open, with, write};
use crate::subjects::store_on;

/// An error with all its sources, as text.
fn chain(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

#[test]
fn a_connection_is_encrypted_and_the_server_checked_as_far_as_the_url_says() {
    // Given a server that accepts no client from the network without encryption, and whose certificate is
    // for localhost,
    let (ours, another) =
        (Certificates::for_host("localhost"), Certificates::for_host("localhost"));
    let cluster = Cluster::start_with_port(&ours.settings());
    drop(store_on(&cluster.url("postgres")));
    let by_name = cluster.url_by_port("postgres");
    let by_number = by_name.replace("localhost", "127.0.0.1");
    let reach = |url: &str, mode: &str, roots: Option<&Certificates>| {
        let roots = roots.map(|roots| format!("&sslrootcert={}", roots.authority().display()));
        let parameters =
            format!("application_name=gt-{mode}&sslmode={mode}{}", roots.unwrap_or_default());
        open(&with(url, &parameters))
    };

    // clients that encrypt and clients that trust the authority connect, and are encrypted;
    for (url, mode, roots) in [
        (&by_name, "prefer", None),
        (&by_name, "require", None),
        (&by_number, "require", None),
        (&by_name, "verify-ca", Some(&ours)),
        (&by_number, "verify-ca", Some(&ours)),
        (&by_name, "verify-full", Some(&ours)),
    ] {
        let store = reach(url, mode, roots).unwrap_or_else(|error| panic!("{mode}: {error:?}"));
        let encrypted = format!(
            "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
             WHERE application_name = 'gt-{mode}'"
        );
        assert_eq!(cluster.sql("postgres", &encrypted), "t", "{mode}");
        drop(store);
    }

    // the others are refused, and hear why.
    for (url, mode, roots, part) in [
        (&by_name, "disable", None, "no encryption"),
        (&by_name, "verify-ca", Some(&another), "certificate"),
        (&by_name, "verify-full", Some(&another), "certificate"),
        (&by_number, "verify-full", Some(&ours), "not valid for name"),
        (&by_name, "verify-full", None, "certificate"),
    ] {
        let refused = reach(url, mode, roots).expect_err(mode);
        let said = chain(&refused);
        assert!(said.contains(part), "{mode}: {said}");
    }

    // A store over an encrypted connection is a store, bell and all.
    let store = reach(&by_name, "verify-full", Some(&ours)).unwrap();
    write(&store, 1).unwrap();
    check(&store);
    assert!(store.bell().wait(gt_testkit::CONDITION_TIME_LIMIT));
}

#[test]
fn a_server_without_encryption_is_used_only_if_the_url_allows_it() {
    let cluster = Cluster::start_with_port("");
    drop(store_on(&cluster.url("postgres")));
    let url = cluster.url_by_port("postgres");
    open(&with(&url, "sslmode=prefer")).unwrap();
    open(&with(&url, "sslmode=disable")).unwrap();
    let refused = open(&with(&url, "sslmode=require")).unwrap_err();
    assert!(chain(&refused).contains("TLS"), "{}", chain(&refused));
}
