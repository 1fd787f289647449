//! Every statement there is, fixed or built, is one that both engines understand.

use gt_conformance::EngineUnderTest;
use gt_core::query::Query;
use gt_core::{IssueType, Outcome, Priority, RigSlug, Status, Timestamp};
use gt_store::{
    BeadFilter, BeadOrder, Between, CountGroup, Reader, Readiness, StatusFilter, Store, StoreError,
    all_statements,
};

use crate::subjects::{InMemory, NOW, OnServer};

pub(crate) const ORDERS: [BeadOrder; 11] = [
    BeadOrder::Priority,
    BeadOrder::Oldest,
    BeadOrder::Hybrid,
    BeadOrder::Created,
    BeadOrder::Updated,
    BeadOrder::Closed,
    BeadOrder::Status,
    BeadOrder::Id,
    BeadOrder::Title,
    BeadOrder::Type,
    BeadOrder::Assignee,
];

pub(crate) const GROUPS: [CountGroup; 5] = [
    CountGroup::Status,
    CountGroup::Priority,
    CountGroup::Type,
    CountGroup::Assignee,
    CountGroup::Label,
];

type Change = fn(&mut BeadFilter);

/// One change of a plain filter for everything that can be asked.
const CHANGES: &[Change] = &[
    |filter| filter.ids = vec![id("gt-a"), id("gt-b")],
    |filter| filter.status = StatusFilter::All,
    |filter| filter.status = StatusFilter::OneOf(Status::BUILT_IN.to_vec()),
    |filter| filter.status = StatusFilter::OneOf(Vec::new()),
    |filter| filter.ready = Some(readiness(false)),
    |filter| filter.ready = Some(readiness(true)),
    |filter| filter.blocked = true,
    |filter| filter.rig = Some(RigSlug::trusted("gear".to_owned())),
    |filter| filter.types = vec![IssueType::default()],
    |filter| filter.exclude_types = vec![IssueType::default()],
    |filter| filter.include_hidden = true,
    |filter| filter.include_templates = true,
    |filter| filter.include_ephemeral = true,
    |filter| filter.include_contexts = true,
    |filter| filter.ephemeral = Some(true),
    |filter| filter.ephemeral = Some(false),
    |filter| filter.pinned = Some(true),
    |filter| filter.priority_from = Some(Priority::HIGHEST),
    |filter| filter.priority_to = Some(Priority::default()),
    |filter| filter.assignee = Some("toast".to_owned()),
    |filter| filter.unassigned = true,
    |filter| filter.labels = texts(),
    |filter| filter.labels_any = texts(),
    |filter| filter.exclude_labels = texts(),
    |filter| filter.no_labels = true,
    |filter| filter.text = Some("it's 100%".to_owned()),
    |filter| filter.title_contains = Some("\\".to_owned()),
    |filter| filter.description_contains = Some("x".to_owned()),
    |filter| filter.notes_contain = Some("x".to_owned()),
    |filter| filter.empty_description = true,
    |filter| filter.parent = Some(id("gt-a")),
    |filter| filter.no_parent = true,
    |filter| filter.created = span(),
    |filter| filter.updated = span(),
    |filter| filter.closed = span(),
    |filter| filter.due = span(),
    |filter| filter.deferred = span(),
    |filter| filter.only_deferred = true,
    |filter| filter.overdue_at = Some(NOW),
    |filter| filter.outcome = Some(Outcome::Failed),
    |filter| filter.metadata = vec![("key".to_owned(), "value".to_owned())],
    |filter| filter.metadata_keys = texts(),
    |filter| filter.carried = vec![("spec_id", "1".to_owned())],
    |filter| filter.query = Some(query()),
    |filter| filter.reverse = true,
    |filter| filter.limit = Some(3),
];

fn id(text: &str) -> gt_core::BeadId {
    gt_core::BeadId::trusted(text.to_owned())
}

fn texts() -> Vec<String> {
    ["one", "two"].map(str::to_owned).to_vec()
}

fn readiness(include_deferred: bool) -> Readiness {
    Readiness { now: NOW, include_deferred }
}

/// A query with every kind of condition in it.
fn query() -> Query {
    let texts = ["id", "title", "rig", "spec", "metadata.k", "label", "parent"]
        .map(|field| format!("({field}=none OR {field}=x OR {field}=x* OR NOT {field}~x)"));
    let rest = "priority<=1 AND estimate=none AND due=2026-05-31 AND due>7d AND NOT ready AND blocked \
                AND ephemeral AND pinned AND template";
    Query::parse(&format!("{} AND {rest}", texts.join(" AND ")), NOW).expect("a valid query")
}

fn span() -> Between {
    Between { after: Some(Timestamp::from_nanos(1)), before: Some(NOW) }
}

/// An empty store on each engine.
fn engines() -> [Store; 2] {
    [InMemory.fresh(), OnServer.fresh()]
}

fn reading(work: impl Fn(&Reader<'_>) -> Result<(), StoreError>) {
    for store in engines() {
        if let Err(error) = store.read(&work) {
            panic!("{error:?}");
        }
    }
}

/// Lists and counts with a filter.
fn list_and_count(reader: &Reader<'_>, filter: &BeadFilter) -> Result<(), StoreError> {
    reader.prepare(&reader.statement_of(filter)?)?;
    assert_eq!(reader.find(filter)?, []);
    assert_eq!(reader.count(filter)?, 0);
    Ok(())
}

/// Runs everything that can be asked with a filter.
fn ask(reader: &Reader<'_>, filter: &BeadFilter) -> Result<(), StoreError> {
    list_and_count(reader, filter)?;
    for group in GROUPS {
        assert_eq!(reader.count_by(filter, group)?, []);
    }
    Ok(())
}

#[test]
fn every_fixed_statement_is_understood() {
    let statements = all_statements();
    assert!(statements.len() > 60, "the list has shrunk");
    reading(|reader| statements.iter().try_for_each(|sql| reader.prepare(sql)));
}

#[test]
fn a_statement_that_is_not_understood_is_noticed() {
    for store in engines() {
        for sql in ["SELEKT 1", "SELECT nothing FROM beads", "DELETE FROM nowhere"] {
            let prepared = store.read(|reader| reader.prepare(sql));
            assert!(matches!(prepared, Err(StoreError::Engine { .. })), "{sql}");
        }
    }
}

#[test]
fn every_pair_of_fields_makes_a_statement_that_is_understood() {
    reading(|reader| {
        // A filter does not know in which order its fields were set, and each field meets each group in
        // `every_order_makes_a_statement_that_is_understood`; a pair meets one of them.
        let mut groups = GROUPS.into_iter().cycle();
        for (place, first) in CHANGES.iter().enumerate() {
            for second in &CHANGES[place..] {
                let mut filter = BeadFilter::default();
                first(&mut filter);
                second(&mut filter);
                list_and_count(reader, &filter)?;
                if let Some(group) = groups.next() {
                    assert_eq!(reader.count_by(&filter, group)?, []);
                }
            }
        }
        Ok(())
    });
}

#[test]
fn every_order_makes_a_statement_that_is_understood() {
    reading(|reader| {
        for order in ORDERS {
            for change in CHANGES {
                let mut filter = BeadFilter { order, ..BeadFilter::default() };
                change(&mut filter);
                ask(reader, &filter)?;
            }
        }
        Ok(())
    });
}

#[test]
fn all_fields_at_once_make_a_statement_that_is_understood() {
    let mut filter = BeadFilter::default();
    for change in CHANGES {
        change(&mut filter);
    }
    reading(|reader| ask(reader, &filter));
}
