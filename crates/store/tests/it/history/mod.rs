//! Random histories: after each step the store agrees with a model that computes everything anew,
//! with its own recomputation, and with the pure evaluator of readiness.

pub(crate) mod batch;
mod model;
pub(crate) mod step;
pub(crate) mod work;

use std::collections::BTreeSet;

use gt_conformance::{EngineUnderTest, reasons_to_wait};
use gt_core::EventKind;
use gt_store::{BeadFilter, EventFilter, Reader, Readiness, StatusFilter, Store, StoreError};
use proptest::prelude::*;

use self::batch::{Batch, batch};
use self::model::Model;
use self::step::{PLACES, Place, Step, id, step};
use crate::subjects::{InMemory, NOW, OnFiles, author, place, store_at};

/// A history, half of the time of beads that are all there from the beginning.
fn history() -> impl Strategy<Value = Vec<Batch<Step>>> {
    let batches = prop::collection::vec(batch(step, step), 1..60);
    (any::<bool>(), batches).prop_map(|(populated, batches)| {
        let create = |place| Batch::Alone(Step::Create(place, PLAIN));
        let before = (0..PLACES).filter(|_| populated).map(create);
        before.chain(batches).collect()
    })
}

/// Does it to both.
fn apply(store: &Store, model: &mut Model, batch: &Batch<Step>) -> Result<(), String> {
    model.apply_all(batch.lasting());
    let answers = batch.carry_out(store, &author());
    let successes: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    if successes == batch.successes() { Ok(()) } else { Err(format!("{answers:?}")) }
}

/// Says where the store and the model differ, if they do.
fn compare(store: &Store, model: &Model) -> Result<(), String> {
    let found = store.read(|reader| {
        let mut found = reader.differences()?;
        for place in 0..PLACES {
            found.extend(compare_one(reader, model, place)?);
        }
        let places = |ids: Vec<gt_core::BeadId>| -> BTreeSet<String> {
            ids.iter().map(ToString::to_string).collect()
        };
        let expected = |holds: &dyn Fn(Place) -> bool| -> BTreeSet<String> {
            (0..PLACES).filter(|place| holds(*place)).map(|place| id(place).to_string()).collect()
        };
        let ready = places(reader.find(&ready())?);
        let should_be = expected(&|place| model.is_ready(place));
        if ready != should_be {
            found.push(format!("ready are {ready:?}, should be {should_be:?}"));
        }
        let blocked = places(reader.find(&blocked())?);
        let should_be = expected(&|place| {
            let over = |member: &model::Member| member.shape.status == model::Standing::CLOSED;
            model.members.get(&place).is_some_and(|m| !over(m)) && model.is_held_up(place)
        });
        if blocked != should_be {
            found.push(format!("blocked are {blocked:?}, should be {should_be:?}"));
        }
        Ok::<_, StoreError>(found)
    });
    match found {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(found) => Err(found.join("\n")),
        Err(error) => Err(format!("{error:?}")),
    }
}

fn ready() -> BeadFilter {
    BeadFilter {
        ready: Some(Readiness { now: NOW, include_deferred: false }),
        ..BeadFilter::default()
    }
}

fn blocked() -> BeadFilter {
    BeadFilter {
        blocked: true,
        status: StatusFilter::All,
        include_hidden: true,
        include_templates: true,
        include_ephemeral: true,
        ..BeadFilter::default()
    }
}

fn compare_one(
    reader: &Reader<'_>,
    model: &Model,
    place: Place,
) -> Result<Option<String>, StoreError> {
    let id = id(place);
    let difference = |what: &str, found: &dyn std::fmt::Debug, should: &dyn std::fmt::Debug| {
        Ok(Some(format!("{id}: {what} is {found:?}, should be {should:?}")))
    };
    let (bead, member) = (reader.bead(&id)?, model.members.get(&place));
    let (Some(bead), Some(member)) = (&bead, member) else {
        return match (bead.is_some(), member.is_some()) {
            (found, should) if found == should => Ok(None),
            (found, should) => difference("there", &found, &should),
        };
    };
    let (open, failed) = model.blockers(place);
    let count = open.len() + failed.len();
    if bead.open_blockers as usize != count {
        return difference("open_blockers", &bead.open_blockers, &count);
    }
    let named = |places: BTreeSet<Place>| places.into_iter().map(step::id).collect::<Vec<_>>();
    let (blockers, should) = (reader.blockers(&id)?, (named(open), named(failed)));
    if (&blockers.open, &blockers.failed) != (&should.0, &should.1) {
        return difference("blockers", &blockers, &should);
    }
    let judged = reasons_to_wait(reader, bead, NOW)?;
    if judged.is_empty() != model.is_ready(place) {
        return difference("reasons to wait", &judged, &model.is_ready(place));
    }
    let edges: Vec<_> =
        reader.edges_from(&id)?.into_iter().map(|edge| (edge.target, edge.kind)).collect();
    let links: Vec<_> = model
        .links
        .iter()
        .filter(|((issue, _), _)| *issue == place)
        .map(|((_, target), link)| (step::id(*target), link.kind()))
        .collect();
    if edges != links {
        return difference("edges", &edges, &links);
    }
    let stored = reader.labels_in_order(bead)?;
    let mut labels: Vec<String> = stored.clone();
    let latest = reader.latest_context(&id)?;
    labels.extend(
        gt_core::schedule::labels::of_bead(latest.as_ref()).iter().map(ToString::to_string),
    );
    labels.sort();
    if reader.labels(bead)? != labels {
        return difference("labels", &reader.labels(bead)?, &labels);
    }
    let labelled = stored == ["red"];
    if labelled != member.labelled {
        return difference("labelled", &labelled, &member.labelled);
    }
    Ok(None)
}

/// The beads that were announced as unblocked after event `number`.
fn announced_since(store: &Store, number: u64) -> Result<BTreeSet<String>, String> {
    let filter = EventFilter { kinds: vec![EventKind::Unblocked], ..EventFilter::default() };
    let events = store
        .read(|reader| reader.events_after(number, &filter, 1000))
        .map_err(|error: StoreError| format!("{error:?}"))?;
    let ids = events.0.into_iter().filter_map(|event| event.bead);
    Ok(ids.map(|id| id.to_string()).collect())
}

/// Runs a history and compares after each batch.
fn run(store: &Store, history: &[Batch<Step>]) -> Result<(), String> {
    let mut model = Model::default();
    for (number, batch) in history.iter().enumerate() {
        let context = |error: String| format!("after batch {number}, {batch:?}:\n{error}");
        let before = model.clone();
        let last = store
            .read(|reader| reader.last_event_number())
            .map_err(|error: StoreError| context(error.to_string()))?;
        apply(store, &mut model, batch).map_err(context)?;
        compare(store, &model).map_err(context)?;
        if let Batch::Alone(step) = batch
            && !step.has_stages()
        {
            let announced = announced_since(store, last).map_err(context)?;
            let freed: BTreeSet<String> =
                model.freed_since(&before).into_iter().map(|place| id(place).to_string()).collect();
            if announced != freed {
                return Err(context(format!(
                    "announced as unblocked: {announced:?}, should be {freed:?}"
                )));
            }
        }
    }
    Ok(())
}

/// A quarter of the usual number of cases, because a history has many steps. `PROPTEST_CASES=4096` tries 1024.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases / 4, ..usual }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_store_in_memory_agrees_with_the_model(
        history in history()
    ) {
        run(&InMemory.fresh(), &history).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn the_store_on_a_file_agrees_with_the_model(
        history in history()
    ) {
        run(&OnFiles::default().fresh(), &history).map_err(TestCaseError::fail)?;
    }
}

const PLAIN: step::Shape = step::Shape {
    status: model::Standing::OPEN,
    pinned: false,
    ephemeral: false,
    gate: false,
    template: false,
    deferral: step::Deferral::None,
};

/// An open task without anything special.
pub(crate) fn plain_bead(place: Place) -> gt_core::Bead {
    step::bead(place, PLAIN)
}

/// A history that leaves something blocked and counted.
fn short_history() -> [Step; 3] {
    [Step::Create(0, PLAIN), Step::Create(1, PLAIN), Step::Put(1, 0, step::Link::Blocks)]
}

#[test]
fn every_change_made_without_the_store_is_noticed() {
    let corruptions = [
        ("UPDATE dependencies SET blocking = 0", "not blocking"),
        ("UPDATE beads SET open_blockers = 0", "open_blockers is 0"),
        ("UPDATE beads SET open_blockers = 7", "open_blockers is 7"),
        ("UPDATE prefixes SET beads = 5", "its count of beads is 5, should be 2"),
        ("DELETE FROM prefixes", "its count of beads is 0, should be 2"),
        ("DELETE FROM events WHERE number = 2", "numbered"),
        ("UPDATE counters SET value = 9", "is 9, should be 3"),
    ];
    for (sql, expected) in corruptions {
        // Given a store that agrees with the model,
        let (_directory, path) = place();
        let store = store_at(&path);
        let history = short_history();
        run(&store, &history.clone().map(Batch::Alone)).expect("the store agrees");
        let mut model = Model::default();
        model.apply_all(&history);

        // when a derived value is changed,
        let raw = rusqlite::Connection::open(&path).expect("the file can be opened");
        raw.execute(sql, []).expect("the file can be changed");

        // then both the store and the comparison say so.
        let differences = store.read(|reader| reader.differences()).expect("the read succeeds");
        assert!(differences.iter().any(|line| line.contains(expected)), "{sql}: {differences:?}");
        assert!(compare(&store, &model).is_err(), "{sql}");
    }
}

#[test]
fn a_model_that_is_wrong_is_noticed() {
    let store = InMemory.fresh();
    let history = short_history();
    run(&store, &history.clone().map(Batch::Alone)).expect("the store agrees");

    let mut wrong = Model::default();
    wrong.apply_all(&history[..2]);

    assert!(compare(&store, &wrong).is_err());
}
