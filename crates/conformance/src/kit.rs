//! Helpers of the cases: small beads, short sentences, and a town that checks itself.

use std::cell::Cell;
use std::collections::HashMap;

use gt_core::decide::TargetFacts;
use gt_core::{
    Bead, BeadChangeKind, BeadId, Comment, Dependency, DependencyType, Event, EventKind,
    ExecutorKind, IssueType, Json, Outcome, Prefix, Priority, Rig, RigSlug, RigState, Status,
    Timestamp, Title, Uid,
};

use super::EngineUnderTest;
use gt_store::{Authorship, BeadFilter, BeadOrder, EventFilter, Reader, Store, StoreError, Writer};

/// The actor that writes in the cases.
pub(super) const ACTOR: &str = "tester";

/// A moment, in seconds after 1970.
pub(super) const fn at(seconds: i64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

pub(super) fn by(seconds: i64) -> Authorship {
    Authorship { actor: ACTOR.to_owned(), at: at(seconds), worker: None }
}

pub(super) fn id(text: &str) -> BeadId {
    BeadId::parse(text).expect("the case names a valid id")
}

pub(super) fn slug(text: &str) -> RigSlug {
    RigSlug::parse(text).expect("the case names a valid rig")
}

pub(super) fn kind(text: &str) -> IssueType {
    IssueType::parse(text).expect("the case names a valid type")
}

pub(super) fn priority(number: i64) -> Priority {
    Priority::new(number).expect("the case names a valid priority")
}

pub(super) fn json(text: &str) -> Json {
    Json::parse(text).expect("the case holds valid JSON")
}

pub(super) fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

/// An open task, made at second 1000, called after its id.
pub(super) fn bead(text: &str) -> Bead {
    Bead::new(id(text), Title::trusted(format!("Title of {text}")), at(1000))
}

/// A bead that is over.
pub(super) fn closed(text: &str, outcome: Option<Outcome>) -> Bead {
    Bead { status: Status::Closed, closed_at: Some(at(2000)), outcome, ..bead(text) }
}

/// `issue` depends on `target`.
pub(super) fn edge(issue: &str, kind: DependencyType, target: &str) -> Dependency {
    Dependency {
        issue: id(issue),
        target: id(target),
        kind,
        created_at: at(1000),
        created_by: String::new(),
        metadata: String::new(),
        thread_id: String::new(),
        carried: Vec::new(),
    }
}

/// `issue` waits for `target` and, of its children, for as many as the gate says.
pub(super) fn gated(issue: &str, target: &str, gate: &str) -> Dependency {
    Dependency {
        metadata: format!("{{\"gate\":\"{gate}\"}}"),
        ..edge(issue, DependencyType::WaitsFor, target)
    }
}

pub(super) fn comment(bead: &str, name: &str, text: &str, seconds: i64) -> Comment {
    Comment {
        id: name.to_owned(),
        bead: id(bead),
        author: ACTOR.to_owned(),
        text: text.to_owned(),
        created_at: at(seconds),
        carried: Vec::new(),
    }
}

pub(super) fn rig(name: &str, prefix: &str) -> Rig {
    Rig {
        slug: slug(name),
        uid: Uid::fresh(),
        title: format!("The {name}"),
        prefix: Prefix::parse(prefix).expect("the case names a valid prefix"),
        path: name.to_owned(),
        repo: format!("https://example.invalid/{name}"),
        default_branch: "main".to_owned(),
        executor: ExecutorKind::Tmux,
        state: RigState::Active,
        external_ref: String::new(),
        settings: json("{}"),
        created_at: at(1000),
        updated_at: at(1000),
    }
}

/// A store with a clock that moves on by a second with every write, and that looks after every
/// write whether all derived values are still true.
pub(super) struct CheckedStore {
    pub(super) store: Store,
    seconds: Cell<i64>,
}

impl CheckedStore {
    pub(super) fn new(subject: &dyn EngineUnderTest) -> Self {
        Self { store: subject.fresh(), seconds: Cell::new(10_000) }
    }

    fn next(&self) -> Authorship {
        self.seconds.set(self.seconds.get() + 1);
        by(self.seconds.get())
    }

    /// A write that succeeds.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T, StoreError>,
    ) -> T {
        let value = self.store.write(&self.next(), work).expect("the write succeeds");
        self.check();
        value
    }

    /// A write that is refused and changes nothing.
    pub(super) fn refuse<T>(
        &self,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T, StoreError>,
    ) -> StoreError {
        let before = self.state();
        let refused = self.store.write(&self.next(), work).err().expect("the write is refused");
        assert_eq!(self.state(), before, "a refused write changed something");
        self.check();
        refused
    }

    /// A read that succeeds.
    pub(super) fn read<T>(&self, work: impl FnOnce(&Reader<'_>) -> Result<T, StoreError>) -> T {
        self.store.read(work).expect("the read succeeds")
    }

    /// A read that is refused.
    pub(super) fn refuse_reading<T>(
        &self,
        work: impl FnOnce(&Reader<'_>) -> Result<T, StoreError>,
    ) -> StoreError {
        self.store.read(work).err().expect("the read is refused")
    }

    /// Derived values are correct.
    pub(super) fn check(&self) {
        let differences = self.read(|reader| reader.differences());
        assert!(differences.is_empty(), "{differences:#?}");
    }

    fn state(&self) -> Vec<String> {
        self.read(gt_store::dump)
    }

    pub(super) fn add(&self, bead: Bead) -> Bead {
        self.write(|writer| writer.insert_bead(&bead, EventKind::Created));
        bead
    }

    /// Open tasks with these ids.
    pub(super) fn add_open(&self, ids: &[&str]) {
        for id in ids {
            self.add(bead(id));
        }
    }

    pub(super) fn get(&self, text: &str) -> Bead {
        self.read(|reader| reader.bead(&id(text))).expect("the bead is there")
    }

    /// Changes a bead in place and saves it.
    pub(super) fn change(
        &self,
        text: &str,
        kind: BeadChangeKind,
        change: impl FnOnce(&mut Bead),
    ) -> bool {
        self.write(|writer| {
            let old = writer.bead(&id(text))?.expect("the bead is there");
            let mut new = old.clone();
            change(&mut new);
            new.updated_at = writer.now();
            writer.save_bead(&old, &new, kind)
        })
    }

    pub(super) fn close(&self, text: &str) {
        self.close_as(text, None);
    }

    pub(super) fn close_as(&self, text: &str, outcome: Option<Outcome>) {
        let now = at(self.seconds.get());
        self.change(text, BeadChangeKind::Closed, |bead| {
            bead.status = Status::Closed;
            bead.closed_at = Some(now);
            bead.outcome = outcome;
        });
    }

    pub(super) fn reopen(&self, text: &str) {
        self.change(text, BeadChangeKind::Reopened, |bead| {
            bead.status = Status::Open;
            bead.closed_at = None;
            bead.outcome = None;
        });
    }

    pub(super) fn set_status(&self, text: &str, status: Status) {
        self.change(text, BeadChangeKind::StatusChanged, |bead| bead.status = status);
    }

    pub(super) fn delete(&self, text: &str) {
        self.write(|writer| {
            let bead = writer.bead(&id(text))?.expect("the bead is there");
            writer.delete_bead(&bead)
        });
    }

    pub(super) fn put(&self, edge: &Dependency) -> gt_store::DependencyChange {
        self.write(|writer| writer.put_dependency(edge, true))
    }

    pub(super) fn link(&self, issue: &str, kind: DependencyType, target: &str) {
        self.put(&edge(issue, kind, target));
    }

    pub(super) fn unlink(&self, issue: &str, target: &str) {
        self.write(|writer| {
            let edge = writer.edge(&id(issue), &id(target))?;
            writer.remove_dependency(&edge.expect("the edge is there"), true)
        });
    }

    pub(super) fn label(&self, text: &str, label: &str) -> bool {
        let bead = self.get(text);
        self.write(|writer| writer.add_label(&bead, label, true))
    }

    /// How many edges block the bead.
    pub(super) fn blockers_of(&self, text: &str) -> u32 {
        self.get(text).open_blockers
    }

    /// The ids that the filter admits, in its order.
    pub(super) fn find(&self, filter: &BeadFilter) -> Vec<String> {
        let ids = self.read(|reader| reader.find(filter));
        ids.iter().map(ToString::to_string).collect()
    }

    /// The filter admits exactly these beads, and counts them.
    #[track_caller]
    pub(super) fn finds(&self, filter: BeadFilter, expected: &[&str]) {
        let filter = BeadFilter { order: BeadOrder::Id, ..filter };
        assert_eq!(self.find(&filter), expected, "{filter:?}");
        let counted = self.read(|reader| reader.count(&filter));
        assert_eq!(counted, expected.len() as u64, "count of {filter:?}");
    }

    pub(super) fn last_event(&self) -> u64 {
        self.read(|reader| reader.last_event_number())
    }

    pub(super) fn events_since(&self, number: u64) -> Vec<Event> {
        let (events, _) =
            self.read(|reader| reader.events_after(number, &EventFilter::default(), 10_000));
        events
    }

    /// The events that `action` writes into the log, as `kind id`.
    pub(super) fn story_of(&self, action: impl FnOnce(&Self)) -> Vec<String> {
        let before = self.last_event();
        action(self);
        let events = self.events_since(before);
        events.iter().map(told).collect()
    }
}

/// An event in short: its kind and its bead.
pub(super) fn told(event: &Event) -> String {
    let bead = event.bead.as_ref().map(|id| format!(" {id}"));
    format!("{}{}", event.kind, bead.unwrap_or_default())
}

/// Adds a bead with its edges the way an import does.
pub(super) fn import(
    writer: &mut Writer<'_>,
    bead: &Bead,
    edges: &[Dependency],
) -> Result<(), StoreError> {
    let facts = TargetFacts { status: bead.status.clone(), outcome: bead.outcome };
    let expected = HashMap::from([(bead.id.clone(), facts)]);
    let mut bulk = writer.bulk(&expected)?;
    bulk.insert(bead, &[], &[], edges)?;
    bulk.finish()
}
