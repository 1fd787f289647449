//! The rights that the user of the database needs.

use gt_store::{Options, Store, StoreError};
use gt_testkit::Cluster;

use super::{check, database, is_there, open, submit, write};
use crate::subjects::{NOW, fresh_url, server_address, store_on};

/// Makes a user who may log in, and returns the URL with that user.
fn as_user(cluster: &Cluster, url: &str, user: &str) -> String {
    cluster.sql(database(url), &format!("CREATE ROLE {user} LOGIN"));
    url.replace("postgres@", &format!("{user}@"))
}

#[test]
fn a_user_who_owns_the_schema_needs_nothing_else() {
    // Given an ordinary user, and a schema that another user made for it,
    let cluster = Cluster::shared();
    let url = cluster.fresh_database();
    let theirs = as_user(cluster, &url, "owner_of_one");

    // who cannot make it,
    let made = Store::create(&server_address(&theirs), NOW, Options::default());
    assert!(matches!(made, Err(StoreError::NotPermitted { .. })), "{made:?}");
    cluster.sql(database(&url), "CREATE SCHEMA gt AUTHORIZATION owner_of_one");

    // then everything works, the bell too.
    let store = store_on(&theirs);
    write(&store, 1).unwrap();
    submit(&store, 2).unwrap();
    check(&store);
    assert!(store.bell().wait(gt_testkit::CONDITION_TIME_LIMIT));
}

#[test]
fn a_read_only_user_can_read_and_is_told_why_a_write_fails() {
    let cluster = Cluster::shared();
    let url = fresh_url();
    write(&open(&url).unwrap(), 1).unwrap();
    let theirs = as_user(cluster, &url, "onlooker");
    let stranger = open(&theirs).unwrap_err();
    assert!(matches!(stranger, StoreError::NotPermitted { .. }), "{stranger:?}");
    cluster.sql(
        database(&url),
        "GRANT USAGE ON SCHEMA gt TO onlooker; GRANT SELECT ON ALL TABLES IN SCHEMA gt TO onlooker",
    );

    let store = open(&theirs).unwrap();

    assert!(is_there(&store, 1));
    let refused = write(&store, 2).unwrap_err();
    assert!(matches!(refused, StoreError::NotPermitted { .. }), "{refused:?}");
    assert!(!is_there(&store, 2));
    check(&store);
}
