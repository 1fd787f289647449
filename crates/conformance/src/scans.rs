//! Answers that are longer than the rows an engine fetches at once.

use std::collections::HashMap;

use gt_core::decide::TargetFacts;
use gt_core::{Bead, BeadId, DependencyType, Event, EventKind, Status};

use super::EngineUnderTest;
use super::kit::{CheckedStore, bead, edge, id};
use gt_store::{BeadFilter, BeadOrder, EventFilter, StoreError};

/// More than fits into a few fetches of any engine.
const ROWS: usize = 5_000;

fn name(number: usize) -> String {
    format!("gt-{number:05}")
}

/// So many beads in a row, each waiting for the one before it.
fn long_row(subject: &dyn EngineUnderTest) -> CheckedStore {
    let town = CheckedStore::new(subject);
    let facts = TargetFacts { status: Status::Open, outcome: None };
    let beads: Vec<Bead> = (0..ROWS).map(|number| bead(&name(number))).collect();
    let expected: HashMap<BeadId, TargetFacts> =
        beads.iter().map(|bead| (bead.id.clone(), facts.clone())).collect();
    let written = town.store.write(&super::kit::by(1), |writer| {
        let mut bulk = writer.bulk(&expected)?;
        for (number, bead) in beads.iter().enumerate() {
            let before = number.checked_sub(1).map(name);
            let edges = before.map(|before| edge(&name(number), DependencyType::Blocks, &before));
            bulk.insert(bead, &[], &[], edges.as_slice())?;
        }
        bulk.finish()
    });
    written.expect("the beads are written");
    town
}

fn numbers(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.number).collect()
}

pub(super) fn a_long_answer_comes_whole_in_order_and_beside_other_reads(
    subject: &dyn EngineUnderTest,
) {
    let town = long_row(subject);
    let all = EventFilter::default();
    let last = ROWS as u64;

    town.read(|reader| {
        // A scan to its end, with other reads and other scans in the middle of it.
        let mut seen = 0;
        let mut inside = Ok(());
        reader.for_each_blocking_edge(|from, to| {
            seen += 1;
            assert_eq!((from.to_string(), to.to_string()), (name(seen), name(seen - 1)));
            if seen.is_multiple_of(1_000) {
                let look = || -> Result<(), StoreError> {
                    assert_eq!(reader.bead(&from)?.map(|bead| bead.open_blockers), Some(1));
                    let (page, reached) = reader.events_after(10, &all, 100)?;
                    assert_eq!((page.len(), reached), (100, 110));
                    let mut edges = 0;
                    reader.for_each_blocking_edge(|_, _| edges += 1)?;
                    assert_eq!(edges, ROWS - 1);
                    Ok(())
                };
                inside = std::mem::replace(&mut inside, Ok(())).and_then(|()| look());
            }
        })?;
        inside?;
        assert_eq!(seen, ROWS - 1);

        // Scans that stop early, at the edges of a fetch.
        for limit in [1, 63, 64, 65, 1_087, 1_088, 1_089, ROWS - 1, ROWS, ROWS + 1] {
            let expected = limit.min(ROWS) as u64;
            let (after, reached) = reader.events_after(0, &all, limit)?;
            assert_eq!(numbers(&after), (1..=expected).collect::<Vec<_>>());
            assert_eq!(reached, expected);
            let latest = numbers(&reader.latest_events(&all, limit)?);
            assert_eq!(latest, (last + 1 - expected..=last).collect::<Vec<_>>());
        }
        // The only one that is wanted comes last.
        let of_last = EventFilter { bead: Some(id(&name(ROWS - 1))), ..EventFilter::default() };
        assert_eq!(numbers(&reader.events_after(0, &of_last, 10)?.0), [last]);

        let filter = BeadFilter { order: BeadOrder::Id, ..BeadFilter::default() };
        let found = reader.find(&filter)?;
        assert_eq!(found.len(), ROWS);
        let rows = reader.bead_rows(&found)?;
        assert!(rows.iter().zip(0..).all(|(row, number)| row.bead.id == id(&name(number))));
        assert!(rows[1..].iter().all(|row| row.dependencies.len() == 1));
        Ok(())
    });
    town.check();
}

pub(super) fn one_close_frees_thousands(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let written = town.store.write(&super::kit::by(1), |writer| {
        writer.insert_bead(&bead("gt-t"), EventKind::Created)?;
        for number in 0..ROWS / 4 {
            writer.insert_bead(&bead(&name(number)), EventKind::Created)?;
            let waits = edge(&name(number), DependencyType::Blocks, "gt-t");
            writer.put_dependency(&waits, false)?;
        }
        Ok::<_, StoreError>(())
    });
    written.expect("the beads are written");

    let mut story = town.story_of(|town| town.close("gt-t"));

    assert_eq!(story.remove(0), "closed gt-t");
    let freed: Vec<String> =
        (0..ROWS / 4).map(|number| format!("unblocked {}", name(number))).collect();
    assert_eq!(story, freed, "in the order of their ids");
}
