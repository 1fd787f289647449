//! A pooler that gives each transaction another connection.

use gt_conformance::{Engine, EngineUnderTest};
use gt_store::{Store, StoreError};
use gt_testkit::{Cluster, Pooler};

use super::raw::Raw;
use super::{check, database, is_there, open, submit, with, write};
use crate::subjects::fresh_url;

/// PostgreSQL behind a pooler.
struct Pooled<'p>(&'p Pooler);

impl Pooled<'_> {
    fn open(&self, database: &str) -> Store {
        let url = with(&self.0.url(database), "pooler=transaction");
        open(&url).expect("the pooler lets us through")
    }
}

impl EngineUnderTest for Pooled<'_> {
    fn engine(&self) -> Engine {
        Engine::Postgres
    }

    fn fresh(&self) -> Store {
        self.open(database(&fresh_url()))
    }

    fn another(&self, store: &Store) -> Store {
        let address = store.address().expect("the store is on a server");
        Store::open(&address, crate::subjects::NOW, gt_store::Options::default())
            .expect("the pooler lets us through")
    }
}

#[test]
fn a_store_behind_a_pooler_is_a_store() {
    let pooler = Pooler::start(Cluster::shared());
    for case in [
        "beads::a_bead_reads_back_exactly_as_it_was_written",
        "events::numbers_are_gapless_and_in_order",
        "events::events_are_read_in_pages",
        "filters::by_several_fields_at_once",
        "groups::in_a_group_each_job_stands_or_falls_alone",
        "groups::the_first_job_of_a_store_may_panic",
        "groups::no_answer_comes_before_the_commit",
        "groups::many_submitters_lose_nothing",
        "races::one_of_many_takes_a_bead",
        "readiness::a_blocked_bead_becomes_ready_when_its_last_blocker_is_done",
    ] {
        gt_conformance::run(case, &Pooled(&pooler));
    }
}

#[test]
fn writers_behind_a_pooler_take_turns() {
    let pooler = Pooler::start(Cluster::shared());
    let url = fresh_url();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = Pooled(&pooler).open(database(&url));
            scope.spawn(move || {
                for number in 0..5 {
                    write(&store, writer * 100 + number).unwrap();
                    submit(&store, writer * 100 + 50 + number).unwrap();
                }
            });
        }
    });
    let store = open(&url).unwrap();
    assert_eq!(store.read(|reader| reader.last_event_number()).unwrap(), 40);
    check(&store);
}

#[test]
fn a_pooler_that_the_url_does_not_name_is_noticed_before_it_does_harm() {
    // Given a store that does not know of the pooler it is behind,
    let pooler = Pooler::start(Cluster::shared());
    let url = fresh_url();
    let through = pooler.url(database(&url));
    let store = open(&through).unwrap();
    assert!(!is_there(&store, 1));

    // when another client takes the connection it had so far,
    let other = Raw::connect(&through);
    other.run("BEGIN; SELECT 1");
    let refused = store.read(|reader| reader.bead_exists(&super::id(1))).unwrap_err();

    // then the error names the option to set.
    assert!(matches!(refused, StoreError::Pooler(_)), "{refused:?}");
    assert!(refused.to_string().contains("pooler=transaction"), "{refused}");
    assert!(!is_there(&Pooled(&pooler).open(database(&url)), 1));
}
