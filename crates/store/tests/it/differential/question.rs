//! Questions that a filter can ask.

use gt_core::work::{WorkFilter, WorkStatus};
use gt_core::{ExecutorKind, IssueType, Outcome, Priority, RigSlug, Status, Timestamp};
use gt_store::{BeadFilter, Between, Readiness, StatusFilter};
use proptest::prelude::*;

use super::deed::{DOCUMENTS, LABELS, PEOPLE, RIGS, TEXTS, TYPES, second};
use crate::history::step::{id, place};
use crate::statements::ORDERS;
use crate::subjects::NOW;

#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) filter: BeadFilter,
    /// A part of an id.
    pub(super) part: String,
    /// The limit of events.
    pub(super) limit: usize,
    /// The filter of work items.
    pub(super) work: WorkFilter,
    /// An agent that asks for work: who, of which types, and when.
    pub(super) agent: &'static str,
    pub(super) kinds: Vec<IssueType>,
    pub(super) asked_at: Timestamp,
}

/// Names that people can ask for; the commands refuse those that SQLite would take for a path.
const KEYS: [&str; 8] = ["k", "n", "a", "odd key", "a.b", "ä", "0", "absent"];
const VALUES: [&str; 16] = [
    "v",
    "5",
    "1.50",
    "1.5",
    "1e3",
    "1000.0",
    "true",
    "null",
    "-0",
    "0",
    "",
    "x",
    "ä \"q\" \\ /",
    "[1,\"v\"]",
    "{\"x\":1}",
    "zero",
];

/// The random values for a change of a filter.
#[derive(Debug, Clone, Copy)]
struct Pick {
    number: usize,
    other: usize,
    on: bool,
    place: u8,
    after: Option<i64>,
    before: Option<i64>,
}

impl Pick {
    fn of<T: Copy>(self, values: &[T]) -> T {
        values[self.number % values.len()]
    }

    fn other_of<T: Copy>(self, values: &[T]) -> T {
        values[self.other % values.len()]
    }

    fn text(self) -> String {
        self.of(&TEXTS).to_owned()
    }

    /// A piece of a text, in any case.
    fn piece(self) -> String {
        let text = self.of(&TEXTS);
        let characters = text.chars().skip(self.other % 5).take(1 + self.other % 3);
        let piece: String = characters.collect();
        if self.on { piece.to_ascii_uppercase() } else { piece }
    }

    fn labels(self) -> Vec<String> {
        vec![self.of(&LABELS).to_owned(), self.other_of(&LABELS).to_owned()]
    }

    fn types(self) -> Vec<IssueType> {
        let named = |name: &str| IssueType::trusted(name.to_owned());
        vec![named(self.of(&TYPES)), named(self.other_of(&TYPES))]
    }

    fn statuses(self) -> Vec<Status> {
        let all = Status::BUILT_IN;
        [self.number, self.other].map(|number| all[number % all.len()].clone()).to_vec()
    }

    fn priority(self) -> Option<Priority> {
        Priority::new(self.of(&[0, 1, 2, 3, 4])).ok()
    }

    fn span(self) -> Between {
        Between { after: self.after.map(moment), before: self.before.map(moment) }
    }
}

fn moment(second: i64) -> Timestamp {
    Timestamp::from_nanos(NOW.as_nanos() + second * 1_000_000_000)
}

/// One change for everything that can be asked.
const CHANGES: &[fn(&mut BeadFilter, Pick)] = &[
    |filter, pick| filter.ids = vec![id(pick.place), id(pick.place / 2)],
    |filter, pick| filter.status = StatusFilter::OneOf(pick.statuses()),
    |filter, pick| filter.exclude_statuses = pick.statuses(),
    |filter, pick| {
        let now = moment(pick.after.unwrap_or(0));
        filter.ready = Some(Readiness { now, include_deferred: pick.on });
    },
    |filter, pick| filter.blocked = pick.on,
    |filter, pick| filter.rig = Some(RigSlug::trusted(pick.of(&RIGS).0.to_owned())),
    |filter, pick| filter.types = pick.types(),
    |filter, pick| filter.exclude_types = pick.types(),
    |filter, pick| filter.include_hidden = pick.on,
    |filter, pick| filter.include_templates = pick.on,
    |filter, pick| filter.include_ephemeral = pick.on,
    |filter, _| filter.include_contexts = true,
    |filter, pick| filter.ephemeral = Some(pick.on),
    |filter, pick| filter.pinned = Some(pick.on),
    |filter, pick| filter.priority_from = pick.priority(),
    |filter, pick| filter.priority_to = pick.priority(),
    |filter, pick| filter.assignee = Some(pick.of(&PEOPLE).to_owned()),
    |filter, pick| filter.unassigned = pick.on,
    |filter, pick| filter.labels = pick.labels(),
    |filter, pick| filter.labels_any = pick.labels(),
    |filter, pick| filter.exclude_labels = pick.labels(),
    |filter, pick| filter.no_labels = pick.on,
    |filter, pick| filter.text = Some(pick.piece()),
    |filter, pick| filter.title_contains = Some(pick.piece()),
    |filter, pick| filter.description_contains = Some(pick.piece()),
    |filter, pick| filter.notes_contain = Some(pick.text()),
    |filter, pick| filter.empty_description = pick.on,
    |filter, pick| filter.parent = Some(id(pick.place)),
    |filter, pick| filter.no_parent = pick.on,
    |filter, pick| filter.created = pick.span(),
    |filter, pick| filter.updated = pick.span(),
    |filter, pick| filter.closed = pick.span(),
    |filter, pick| filter.due = pick.span(),
    |filter, pick| filter.deferred = pick.span(),
    |filter, pick| filter.only_deferred = pick.on,
    |filter, pick| filter.overdue_at = pick.after.map(moment),
    |filter, pick| {
        let outcomes = [Outcome::Success, Outcome::Failed, Outcome::Cancelled];
        filter.outcome = Some(pick.of(&outcomes));
    },
    |filter, pick| {
        filter.metadata = vec![(pick.of(&KEYS).to_owned(), pick.other_of(&VALUES).to_owned())];
    },
    |filter, pick| filter.metadata_keys = vec![pick.of(&KEYS).to_owned()],
    |filter, pick| filter.carried = vec![("spec_id", pick.of(&VALUES).to_owned())],
    |filter, pick| filter.carried = vec![("spec_id", pick.of(&DOCUMENTS).to_owned())],
];

fn pick() -> impl Strategy<Value = Pick> {
    let second = || prop::option::of(second());
    (0..100_usize, 0..100_usize, any::<bool>(), place(), second(), second()).prop_map(
        |(number, other, on, place, after, before)| Pick {
            number,
            other,
            on,
            place,
            after,
            before,
        },
    )
}

fn filter() -> impl Strategy<Value = BeadFilter> {
    let changes = prop::collection::vec((0..CHANGES.len(), pick()), 0..4);
    let order = prop::sample::select(ORDERS.to_vec());
    let limit = prop::option::weighted(0.3, 0..6_usize);
    (prop::bool::weighted(0.7), order, any::<bool>(), limit, changes).prop_map(
        |(all, order, reverse, limit, changes)| {
            let status = if all { StatusFilter::All } else { StatusFilter::Current };
            let plain = BeadFilter { status, order, reverse, limit, ..BeadFilter::default() };
            changes.into_iter().fold(plain, |mut filter, (change, pick)| {
                CHANGES[change](&mut filter, pick);
                filter
            })
        },
    )
}

/// One change for everything that can be asked of the work queue.
const WORK_CHANGES: &[fn(&mut WorkFilter, Pick)] = &[
    |filter, pick| filter.statuses = vec![pick.of(WorkStatus::ALL), pick.other_of(WorkStatus::ALL)],
    |filter, pick| filter.agent = Some(pick.of(&PEOPLE).to_owned()),
    |filter, pick| filter.project = Some(RigSlug::trusted(pick.of(&RIGS).0.to_owned())),
    |filter, pick| filter.since = pick.after.map(moment),
    |filter, pick| filter.kind = pick.types().pop(),
    |filter, pick| filter.created_by = Some(pick.of(&PEOPLE).to_owned()),
    |filter, pick| filter.text = Some(pick.piece()),
    |filter, pick| {
        filter.executor = Some(pick.of(&[ExecutorKind::Pull, ExecutorKind::Tmux]));
    },
];

fn work_filter() -> impl Strategy<Value = WorkFilter> {
    let changes = prop::collection::vec((0..WORK_CHANGES.len(), pick()), 0..3);
    changes.prop_map(|changes| {
        changes.into_iter().fold(WorkFilter::default(), |mut filter, (change, pick)| {
            WORK_CHANGES[change](&mut filter, pick);
            filter
        })
    })
}

pub(super) fn question() -> impl Strategy<Value = Question> {
    let part = prop::sample::select(vec!["", "g", "gt", "1", "-", "T-1", "%", "_", ".", "\\", "ä"]);
    let limit = prop_oneof![Just(0), Just(1), Just(5), Just(1_000)];
    (filter(), part, limit, work_filter(), pick()).prop_map(|(filter, part, limit, work, pick)| {
        Question {
            filter,
            part: part.to_owned(),
            limit,
            work,
            agent: pick.of(&PEOPLE),
            kinds: if pick.on { pick.types() } else { Vec::new() },
            asked_at: moment(pick.after.unwrap_or(0)),
        }
    })
}
