//! The state of beads after any event, from the log alone.
//!
//! Events have the old and the new values, so the log is read in both directions: forwards from an empty store, or
//! backwards from the present, which also works if the oldest events are gone.

use std::collections::BTreeMap;

use super::{BeadCreated, BeadImported, ChangedFields, EdgeChange, Event, EventKind, EventPayload};
use crate::{Bead, BeadId, Dependency, DependencyType, IssueType, Outcome, Priority, Status};

/// A bead as the log tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedBead {
    /// The title.
    pub title: String,
    /// The type.
    pub issue_type: IssueType,
    /// The status.
    pub status: Status,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// The priority.
    pub priority: Priority,
    /// The assignee; empty if there is none.
    pub assignee: String,
}

impl From<&Bead> for ReplayedBead {
    fn from(bead: &Bead) -> Self {
        BeadCreated::of(bead).into()
    }
}

impl From<BeadCreated> for ReplayedBead {
    fn from(created: BeadCreated) -> Self {
        let BeadCreated { title, issue_type, status, outcome, priority, assignee, .. } = created;
        Self { title, issue_type, status, outcome, priority, assignee }
    }
}

/// An edge: the bead that depends, and the bead that it depends on.
type Ends = (BeadId, BeadId);

/// All beads and the edges between them, after some event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// The beads.
    pub beads: BTreeMap<BeadId, ReplayedBead>,
    /// The type of each edge.
    pub edges: BTreeMap<Ends, DependencyType>,
}

/// The direction in which an event is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReplayDirection {
    Forwards,
    Backwards,
}

impl ReplayDirection {
    /// The value at the end of a change in this direction.
    fn end<T>(self, old: T, new: T) -> T {
        match self {
            Self::Forwards => new,
            Self::Backwards => old,
        }
    }
}

impl Replay {
    /// The present state of a store, from which events are reverted.
    pub fn of<'a>(
        beads: impl IntoIterator<Item = &'a Bead>,
        edges: impl IntoIterator<Item = &'a Dependency>,
    ) -> Self {
        let ends = |edge: &Dependency| (edge.issue.clone(), edge.target.clone());
        Self {
            beads: beads.into_iter().map(|bead| (bead.id.clone(), bead.into())).collect(),
            edges: edges.into_iter().map(|edge| (ends(edge), edge.kind.clone())).collect(),
        }
    }

    /// Goes on to the state after an event.
    pub fn apply(&mut self, event: &Event) {
        self.follow(event, ReplayDirection::Forwards);
    }

    /// Goes back to the state before an event.
    pub fn revert(&mut self, event: &Event) {
        self.follow(event, ReplayDirection::Backwards);
    }

    fn follow(&mut self, event: &Event, direction: ReplayDirection) {
        let Some(bead) = &event.bead else { return };
        let details = event.details();
        if let Some(change) = details.bead_change() {
            self.change(bead, &change.changes, direction);
            return self.follow_edges(bead, &change.dependencies, direction);
        }
        match details {
            EventPayload::Created(created) | EventPayload::Imported(BeadImported::New(created)) => {
                self.follow_edges(bead, &created.dependencies, direction);
                self.set_bead(bead, direction.end(None, Some(created.into())));
            }
            EventPayload::Deleted(deleted) => {
                // An earlier version did not list the edges.
                self.edges.retain(|(issue, target), _| issue != bead && target != bead);
                self.follow_edges(bead, &deleted.dependencies, direction);
                for edge in deleted.dependents {
                    self.set_edge((edge.issue_id, bead.clone()), direction.end(edge.old, edge.new));
                }
                let (title, assignee) = (deleted.title, deleted.assignee);
                let known = deleted.issue_type.zip(deleted.status).zip(deleted.priority);
                let before = known.map(|((issue_type, status), priority)| ReplayedBead {
                    title,
                    issue_type,
                    status,
                    outcome: deleted.outcome,
                    priority,
                    assignee,
                });
                self.set_bead(bead, direction.end(before, None));
            }
            EventPayload::DependencyAdded(edge)
            | EventPayload::DependencyChanged(edge)
            | EventPayload::DependencyRemoved(edge) => {
                let kind = Some(edge.r#type);
                let (old, new) = match event.kind {
                    // An earlier version wrote the type only.
                    _ if edge.old.is_some() || edge.new.is_some() => (edge.old, edge.new),
                    EventKind::DependencyRemoved => (kind, None),
                    _ => (None, kind),
                };
                self.set_edge((bead.clone(), edge.depends_on_id), direction.end(old, new));
            }
            _ => {}
        }
    }

    fn change(&mut self, bead: &BeadId, changes: &ChangedFields, direction: ReplayDirection) {
        let Some(known) = self.beads.get_mut(bead) else { return };
        if let Some(title) = &changes.title {
            known.title = direction.end(&title.old, &title.new).to_string();
        }
        if let Some(issue_type) = &changes.issue_type {
            known.issue_type = direction.end(&issue_type.old, &issue_type.new).clone();
        }
        if let Some(status) = &changes.status {
            known.status = direction.end(&status.old, &status.new).clone();
        }
        if let Some(outcome) = &changes.outcome {
            known.outcome = direction.end(outcome.old, outcome.new);
        }
        if let Some(priority) = &changes.priority {
            known.priority = direction.end(priority.old, priority.new);
        }
        if let Some(assignee) = &changes.assignee {
            known.assignee.clone_from(direction.end(&assignee.old, &assignee.new));
        }
    }

    fn follow_edges(&mut self, issue: &BeadId, edges: &[EdgeChange], direction: ReplayDirection) {
        for EdgeChange { depends_on_id, old, new } in edges {
            self.set_edge((issue.clone(), depends_on_id.clone()), direction.end(old, new).clone());
        }
    }

    fn set_bead(&mut self, id: &BeadId, bead: Option<ReplayedBead>) {
        match bead {
            Some(bead) => drop(self.beads.insert(id.clone(), bead)),
            None => drop(self.beads.remove(id)),
        }
    }

    fn set_edge(&mut self, ends: Ends, kind: Option<DependencyType>) {
        match kind {
            Some(kind) => drop(self.edges.insert(ends, kind)),
            None => drop(self.edges.remove(&ends)),
        }
    }
}
