//! Accounts.

use gt_core::schedule::Account;

use super::EngineUnderTest;
use super::kit::{CheckedStore, at};

fn account(handle: &str) -> Account {
    Account {
        handle: handle.to_owned(),
        config_dir: "/srv/configuration".to_owned(),
        environment: vec![
            ("KEY".to_owned(), "s3cret \"quoted\" ä".to_owned()),
            ("A".to_owned(), String::new()),
        ],
        max_runs: 3,
        is_default: false,
        created_at: at(1000),
    }
}

fn put(town: &CheckedStore, account: &Account) {
    town.write(|writer| writer.put_account(account));
}

fn defaults(town: &CheckedStore) -> Vec<String> {
    let accounts = town.read(|reader| reader.accounts());
    accounts.into_iter().filter(|one| one.is_default).map(|one| one.handle).collect()
}

pub(super) fn an_account_reads_back_exactly_as_it_was_written(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    assert_eq!(town.read(|reader| reader.accounts()), []);
    for handle in ["work", "Lab", "lab"] {
        put(&town, &account(handle));
    }
    let accounts = town.read(|reader| reader.accounts());
    assert_eq!(accounts, [account("Lab"), account("lab"), account("work")]);
}

pub(super) fn changing_an_account_keeps_whether_it_is_the_default(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    put(&town, &account("work"));
    town.write(|writer| writer.set_default_account(Some("work")));

    put(&town, &Account { max_runs: 9, environment: Vec::new(), ..account("work") });

    let accounts = town.read(|reader| reader.accounts());
    assert_eq!((accounts[0].max_runs, accounts[0].is_default), (9, true));
    assert!(accounts[0].environment.is_empty());
    // What it had before is still masked.
    put(&town, &Account { environment: vec![("B".to_owned(), "2".to_owned())], ..account("work") });
    town.write(|writer| writer.delete_account("work"));
    assert_eq!(town.read(|reader| reader.accounts()), []);
    let masked = town.read(|reader| reader.accounts_to_mask());
    let mut environments: Vec<_> = masked.into_iter().map(|one| one.environment).collect();
    environments.sort();
    assert_eq!(environments, [vec![("B".to_owned(), "2".to_owned())], account("work").environment]);
}

pub(super) fn at_most_one_account_is_the_default(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for handle in ["one", "two"] {
        put(&town, &account(handle));
    }
    for (asked, expected) in [(Some("one"), &["one"][..]), (Some("two"), &["two"]), (None, &[])] {
        town.write(|writer| writer.set_default_account(asked));
        assert_eq!(defaults(&town), expected);
    }
    town.write(|writer| writer.set_default_account(Some("one")));
    town.write(|writer| writer.delete_account("one"));
    assert!(defaults(&town).is_empty());
}

pub(super) fn changes_of_accounts_are_recorded_without_their_keys(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    put(&town, &account("work"));
    town.write(|writer| writer.set_default_account(Some("work")));
    town.write(|writer| writer.delete_account("work"));
    let payloads: Vec<String> =
        town.events_since(0).iter().map(|event| event.payload.to_string()).collect();
    let expected = [
        r#"{"account":"work","change":"put"}"#,
        r#"{"account":"work","change":"default"}"#,
        r#"{"account":"work","change":"removed"}"#,
    ];
    assert_eq!(payloads, expected);
}
