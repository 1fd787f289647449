//! The same history on both engines leaves the same store, and the same question gets the same answer.

pub(crate) mod deed;
mod question;

use std::fmt::Debug;

use gt_conformance::EngineUnderTest;
use gt_core::EventKind;
use gt_core::work::{Position, WorkFilter};
use gt_store::dump;
use gt_store::{Authorship, EventFilter, PullQuery, Reader, Store, StoreError};
use proptest::prelude::*;

use self::deed::{Deed, deed, deed_apart};
use self::question::{Question, question};
use crate::history::batch::{Batch, batch};
use crate::replay::check_replay;
use crate::statements::GROUPS;
use crate::subjects::{InMemory, NOW, OnServer};

/// The two engines, one beside the other.
struct Engines {
    sqlite: Store,
    postgres: Store,
}

impl Engines {
    fn fresh() -> Self {
        Self { sqlite: InMemory.fresh(), postgres: OnServer.fresh() }
    }

    /// Hands every batch to both; each must answer the same.
    fn live_through(&self, history: &[Batch<Deed>]) -> Result<(), TestCaseError> {
        for (number, batch) in history.iter().enumerate() {
            let moment = std::time::Duration::from_secs(number as u64);
            let by = Authorship {
                actor: format!("actor {}", number % 3),
                at: NOW.plus(moment),
                worker: None,
            };
            let answers = [&self.sqlite, &self.postgres]
                .map(|store| batch.carry_out(store, &by).into_iter().map(kind).collect::<Vec<_>>());
            same(&format!("answers to batch {number}, {batch:?}"), answers)?;
        }
        Ok(())
    }

    /// Asks both.
    fn ask<T: PartialEq + Debug>(
        &self,
        what: &str,
        ask: impl Fn(&Reader<'_>) -> Result<T, StoreError>,
    ) -> Result<(), TestCaseError> {
        let answers =
            [&self.sqlite, &self.postgres].map(|store| store.read(&ask).map_err(|e| kind(Err(e))));
        same(what, answers)
    }

    /// Everything that both hold is the same, and right.
    fn compare(&self) -> Result<(), TestCaseError> {
        let [sqlite, postgres] = [&self.sqlite, &self.postgres].map(|store| {
            store.read(dump).map_err(|error| TestCaseError::fail(format!("{error:?}")))
        });
        let (sqlite, postgres) = (sqlite?, postgres?);
        for (line, other) in sqlite.iter().zip(&postgres) {
            same("a row", [line, other])?;
        }
        same("how many rows", [sqlite.len(), postgres.len()])?;
        self.ask("differences", |reader| reader.differences())?;
        for store in [&self.sqlite, &self.postgres] {
            check_replay(store, &[])?;
        }
        let wrong = self.postgres.read(|reader| reader.differences());
        prop_assert_eq!(wrong.map_err(|error| error.to_string()), Ok(Vec::new()));
        Ok(())
    }
}

/// The kind of an answer; the details differ between engines.
fn kind(answer: Result<(), StoreError>) -> String {
    match answer {
        Ok(()) => "done".to_owned(),
        Err(error) => {
            let shown = format!("{error:?}");
            let end = shown.find(|c: char| !c.is_alphanumeric()).unwrap_or(shown.len());
            shown[..end].to_owned()
        }
    }
}

fn same<T: PartialEq + Debug>(what: &str, [sqlite, postgres]: [T; 2]) -> Result<(), TestCaseError> {
    if sqlite == postgres {
        return Ok(());
    }
    Err(TestCaseError::fail(format!(
        "{what}\n  SQLite:     {sqlite:?}\n  PostgreSQL: {postgres:?}"
    )))
}

/// Cases are few because each makes a database; their histories are long instead.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        max_shrink_iters: 500,
        max_shrink_time: 30_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(16))]

    #[test]
    fn the_same_history_leaves_the_same_store(
        history in prop::collection::vec(batch(deed, deed_apart), 20..80)
    ) {
        let engines = Engines::fresh();
        engines.live_through(&history)?;
        engines.compare()?;
    }
}

proptest! {
    #![proptest_config(config(8))]

    #[test]
    fn the_same_question_gets_the_same_answer(
        history in prop::collection::vec(deed(), 30..120),
        questions in prop::collection::vec(question(), 20..40),
    ) {
        let engines = Engines::fresh();
        // In pieces, because one deed that is refused takes its whole transaction with it.
        let pieces: Vec<Batch<Deed>> =
            history.chunks(4).map(|deeds| Batch::Together(deeds.to_vec())).collect();
        engines.live_through(&pieces)?;
        ask_about_everything(&engines)?;
        for Question { filter, part, limit, work, agent, kinds, asked_at } in questions {
            ask_about_work(&engines, &work, limit)?;
            let ask = PullQuery { agent, kinds: &kinds, rig: work.project.as_ref(), dispatched: false, dispatched_below: false, after: None, now: asked_at };
            engines.ask(&format!("{ask:?}"), |r| Ok(format!("{:?}", r.offer(&ask)?)))?;
            let asked = format!("{filter:?}");
            engines.ask(&asked, |reader| reader.find(&filter))?;
            engines.ask(&format!("count of {asked}"), |reader| reader.count(&filter))?;
            for group in GROUPS {
                engines.ask(&format!("{group:?} of {asked}"), |r| r.count_by(&filter, group))?;
            }
            engines.ask(&format!("rows of {asked}"), |reader| {
                Ok(format!("{:?}", reader.bead_rows(&reader.find(&filter)?)?))
            })?;
            engines.ask(&format!("ids containing {part:?}"), |r| r.ids_containing(&part))?;
            let mut events = EventFilter {
                bead: filter.ids.first().cloned(),
                rig: filter.rig.clone(),
                kinds: Vec::new(),
                since: filter.created.after,
                actor: None,
                of_beads: filter.ids.is_empty(),
            };
            for kinds in [vec![], vec![EventKind::Unblocked, EventKind::Closed]] {
                events.kinds = kinds;
                engines.ask(&format!("latest {events:?}"), |r| r.latest_events(&events, limit))?;
                engines.ask(&format!("after {events:?}"), |r| r.events_after(3, &events, limit))?;
            }
        }
    }
}

/// Asks for work items, whole and part by part: the page after the first of them.
fn ask_about_work(engines: &Engines, work: &WorkFilter, limit: usize) -> Result<(), TestCaseError> {
    engines.ask(&format!("{work:?}"), |reader| {
        let whole = reader.work_items(work, None, limit)?;
        let after = whole.first().map(Position::of);
        let rest = reader.work_items(work, after.as_ref(), limit)?;
        Ok(format!("{whole:?} {rest:?}"))
    })
}

fn ask_about_everything(engines: &Engines) -> Result<(), TestCaseError> {
    engines.ask("statistics", |reader| reader.statistics())?;
    engines.ask("all labels", |reader| reader.all_labels())?;
    engines.ask("rigs", |reader| reader.rigs())?;
    engines.ask("counts of rigs", |reader| {
        reader.rigs()?.iter().map(|rig| reader.rig_counts(&rig.slug)).collect::<Result<Vec<_>, _>>()
    })?;
    engines.ask("edges that can block", |reader| {
        let mut edges = Vec::new();
        reader.for_each_blocking_edge(|from, to| edges.push((from, to)))?;
        Ok(edges)
    })?;
    engines.ask("lanes", |reader| reader.lanes())?;
    engines.ask("open contexts", |reader| reader.open_contexts())?;
    engines.ask("failed contexts", |reader| reader.failed_contexts())?;
    engines.ask("contexts due", |reader| reader.contexts_due(NOW, NOW))?;
    engines.ask("stale contexts", |reader| reader.stale_contexts(1_000))?;
    engines.ask("contexts by a part of their names", |reader| {
        Ok((reader.context_ids_containing("ctx-0000")?, reader.contexts_named(&[])?))
    })?;
    engines.ask("runs", |reader| Ok((reader.live_runs()?, reader.recent_runs(1_000)?)))?;
    engines.ask("marks of old queues", |reader| {
        Ok((reader.marked_by_old_queues()?, reader.contexts_of_old_queues()?))
    })?;
    for id in (0..crate::history::step::PLACES).map(crate::history::step::id) {
        engines.ask(&format!("around {id}"), |reader| {
            let bead = reader.bead(&id)?;
            let labels = bead.as_ref().map(|bead| reader.labels(bead)).transpose()?;
            let ordered = bead.as_ref().map(|bead| reader.labels_in_order(bead)).transpose()?;
            let around = (reader.edges_from(&id)?, reader.edges_to(&id)?, reader.children(&id)?);
            let more = (
                reader.blockers(&id)?,
                reader.comments(&id)?,
                reader.has_open_children(&id)?,
                reader.rig_of_id(&id)?,
            );
            let ends = (reader.parents(&id)?, reader.blocking_targets(&id)?);
            let work = (reader.contexts_of(&id)?, reader.live_run(&id)?, reader.runs_of(&id)?);
            Ok((bead, labels, ordered, around, more, ends, work))
        })?;
    }
    Ok(())
}

#[test]
fn a_difference_is_noticed_and_shown() {
    let engines = Engines::fresh();
    engines.compare().expect("two empty stores are the same");
    let by = Authorship { actor: "tester".to_owned(), at: NOW, worker: None };
    let written = engines.sqlite.write(&by, |writer| {
        writer.insert_bead(&crate::history::plain_bead(1), EventKind::Created)
    });
    written.expect("the write succeeds");

    let noticed = engines.compare().expect_err("they differ").to_string();

    assert!(noticed.contains("SQLite:"), "{noticed}");
    assert!(noticed.contains("value=1"), "{noticed}");
}
