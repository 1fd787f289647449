//! Which beads, in which order.

use gt_core::query::Query;
use gt_core::{BeadId, IssueType, Outcome, Priority, RigSlug, Status, Timestamp};

/// Which statuses a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StatusFilter {
    /// Everything but closed and pinned beads.
    #[default]
    Current,
    /// Everything.
    All,
    /// Only these.
    OneOf(Vec<Status>),
}

/// A span of time, open where nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Between {
    /// After this.
    pub after: Option<Timestamp>,
    /// Before this.
    pub before: Option<Timestamp>,
}

/// Only beads that can be worked on; see [`gt_core::decide::wait_reasons`], which has the last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The current time.
    pub now: Timestamp,
    /// Also beads that were put off.
    pub include_deferred: bool,
}

/// The order of a list. Ties are broken so that the order is always the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BeadOrder {
    /// Most urgent first, then newest first.
    #[default]
    Priority,
    /// Oldest first.
    Oldest,
    /// Beads younger than two days by urgency, then the rest, oldest first.
    Hybrid,
    /// Newest first.
    Created,
    /// Last changed first.
    Updated,
    /// Last closed first.
    Closed,
    /// By name of the status.
    Status,
    /// By id, numbers in their natural order.
    Id,
    /// By title.
    Title,
    /// By type.
    Type,
    /// By assignee.
    Assignee,
}

/// Which beads, in which order. The default is that of a plain `list`.
#[derive(Debug, Clone, Default)]
pub struct BeadFilter {
    /// Only these ids.
    pub ids: Vec<BeadId>,
    /// Only these statuses.
    pub status: StatusFilter,
    /// None of these statuses.
    pub exclude_statuses: Vec<Status>,
    /// Only beads that can be worked on.
    pub ready: Option<Readiness>,
    /// Only beads that something blocks.
    pub blocked: bool,
    /// Only this rig.
    pub rig: Option<RigSlug>,
    /// Only these types; empty for every type that is not hidden.
    pub types: Vec<IssueType>,
    /// None of these types.
    pub exclude_types: Vec<IssueType>,
    /// Also types that are hidden by themselves.
    pub include_hidden: bool,
    /// Also templates; the list of ready beads includes them anyway.
    pub include_templates: bool,
    /// Also ephemeral beads.
    pub include_ephemeral: bool,
    /// Also contexts, shown as beads, although they are ephemeral and of a hidden type; and beads of
    /// that type, which came from elsewhere.
    pub include_contexts: bool,
    /// Only ephemeral beads, or only others.
    pub ephemeral: Option<bool>,
    /// Only (or no) beads with the pinned flag; unset hides them from current lists.
    pub pinned: Option<bool>,
    /// This priority or a less urgent one.
    pub priority_from: Option<Priority>,
    /// This priority or a more urgent one.
    pub priority_to: Option<Priority>,
    /// Only this assignee.
    pub assignee: Option<String>,
    /// Only beads without an assignee.
    pub unassigned: bool,
    /// Every one of these labels.
    pub labels: Vec<String>,
    /// At least one of these labels.
    pub labels_any: Vec<String>,
    /// None of these labels.
    pub exclude_labels: Vec<String>,
    /// No label at all.
    pub no_labels: bool,
    /// The title or the id contains this.
    pub text: Option<String>,
    /// The title contains this.
    pub title_contains: Option<String>,
    /// The description contains this.
    pub description_contains: Option<String>,
    /// The notes contain this.
    pub notes_contain: Option<String>,
    /// There is no description.
    pub empty_description: bool,
    /// Direct parts of this bead.
    pub parent: Option<BeadId>,
    /// Parts of no bead.
    pub no_parent: bool,
    /// When it was made.
    pub created: Between,
    /// When it last changed.
    pub updated: Between,
    /// When it was closed.
    pub closed: Between,
    /// When it is due.
    pub due: Between,
    /// Until when it is deferred.
    pub deferred: Between,
    /// Put off, with or without a date.
    pub only_deferred: bool,
    /// Due before this and not closed.
    pub overdue_at: Option<Timestamp>,
    /// The outcome.
    pub outcome: Option<Outcome>,
    /// These top-level metadata fields have these values.
    pub metadata: Vec<(String, String)>,
    /// These top-level metadata fields exist.
    pub metadata_keys: Vec<String>,
    /// These carried fields have these values.
    pub carried: Vec<(&'static str, String)>,
    /// A further condition.
    pub query: Option<Query>,
    /// The order.
    pub order: BeadOrder,
    /// Turned round.
    pub reverse: bool,
    /// At most this many; none for all.
    pub limit: Option<usize>,
}

impl BeadFilter {
    /// Every bead; contexts are none.
    pub fn everything() -> Self {
        Self {
            status: StatusFilter::All,
            include_hidden: true,
            include_templates: true,
            include_ephemeral: true,
            ..Self::default()
        }
    }
}

/// The field that beads are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountGroup {
    /// Status.
    Status,
    /// Priority.
    Priority,
    /// Type.
    Type,
    /// Assignee.
    Assignee,
    /// Label; a bead counts once for each.
    Label,
}
