//! The log alone tells how every bead stood after any event.

use std::time::Duration;

use gt_conformance::EngineUnderTest;
use gt_core::event::replay::Replay;
use gt_core::{Bead, Dependency, Event};
use gt_store::{Authorship, EventFilter, Reader, Store, StoreError};
use proptest::prelude::*;

use crate::differential::deed::{Deed, deed, deed_apart};
use crate::history::batch::{Batch, batch};
use crate::subjects::{InMemory, NOW};

/// The tables, as they were after an event.
#[derive(Debug)]
pub(crate) struct Standing {
    after: u64,
    tables: Replay,
}

/// Reads all beads: every id has a hyphen, and a history makes fewer than the 200 that are found.
fn look(reader: &Reader<'_>) -> Result<Standing, StoreError> {
    let rows = reader.bead_rows(&reader.ids_containing("-")?)?;
    let beads: Vec<&Bead> = rows.iter().map(|row| &row.bead).collect();
    let edges: Vec<&Dependency> = rows.iter().flat_map(|row| &row.dependencies).collect();
    Ok(Standing { after: reader.last_event_number()?, tables: Replay::of(beads, edges) })
}

/// Replays the log of a store forwards from nothing and backwards from the present, and compares with the tables
/// as they are and as they were.
pub(crate) fn check_replay(store: &Store, past: &[Standing]) -> Result<(), TestCaseError> {
    let failed = |error: StoreError| TestCaseError::fail(error.to_string());
    let (present, (events, _)) = store
        .read(|reader| {
            Ok((look(reader)?, reader.events_after(0, &EventFilter::default(), usize::MAX)?))
        })
        .map_err(failed)?;
    let was = |number: u64| {
        past.iter().chain([&present]).filter(move |standing| standing.after == number)
    };
    let compare = |number: u64, replay: &Replay, event: &Event| {
        for standing in was(number) {
            prop_assert_eq!(replay, &standing.tables, "after event {}, at {:?}", number, event);
        }
        Ok(())
    };
    let mut forwards = Replay::default();
    for event in &events {
        forwards.apply(event);
        compare(event.number, &forwards, event)?;
    }
    let mut backwards = present.tables.clone();
    for event in events.iter().rev() {
        backwards.revert(event);
        compare(event.number - 1, &backwards, event)?;
    }
    prop_assert_eq!(backwards, Replay::default());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        max_shrink_iters: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_log_alone_tells_every_earlier_state(
        history in prop::collection::vec(batch(deed, deed_apart), 10..60)
    ) {
        let store = InMemory.fresh();
        let mut past: Vec<Standing> = Vec::new();
        for (number, batch) in history.iter().enumerate() {
            let at = NOW.plus(Duration::from_secs(number as u64));
            let by = Authorship { actor: "ann".to_owned(), at, worker: None };
            let batch: &Batch<Deed> = batch;
            batch.carry_out(&store, &by);
            past.push(store.read(look).expect("the store can be read"));
        }
        check_replay(&store, &past)?;
    }
}
