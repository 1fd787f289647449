//! The bead, and the types of its parts.

mod dependency;
mod id;
mod kind;
mod label_pattern;
mod link;
mod request;
mod status;
mod text;

pub use dependency::{Dependency, DependencyType, Gate};
pub use id::{BeadId, Uid};
pub use kind::IssueType;
pub use label_pattern::LabelPattern;
pub use link::{Direction, NewDependency};
pub use request::RequestKey;
pub use status::{CustomStatus, Outcome, Priority, Status};
pub use text::{Title, check_label, check_name, check_text};

use crate::{Json, RigSlug, Timestamp};

/// Fields of an imported record that mean nothing to us, in their order and exactly as written.
pub type Carried = Vec<(String, Json)>;

/// Something a person can name, edit and track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bead {
    /// The id that people and programs use.
    pub id: BeadId,
    /// A UUIDv7 alias for clients that want one. Never a foreign key.
    pub uid: Uid,
    /// The project it belongs to; none for town-level beads and for prefixes that are not registered.
    pub rig: Option<RigSlug>,
    /// One line, at most 500 bytes.
    pub title: Title,
    /// The task, in full.
    pub description: String,
    /// The design of the solution.
    pub design: String,
    /// The criteria by which the work is accepted.
    pub acceptance_criteria: String,
    /// Notes made during the work.
    pub notes: String,
    /// Where it stands. `Closed` if and only if [`Bead::closed_at`] is set.
    pub status: Status,
    /// 0 (highest) to 4.
    pub priority: Priority,
    /// task, bug, epic, …; free text.
    pub issue_type: IssueType,
    /// The assignee; empty if there is none.
    pub assignee: String,
    /// The responsible person, by e-mail address; empty if there is none.
    pub owner: String,
    /// The estimated time.
    pub estimated_minutes: Option<u32>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The actor that made it; empty if unknown.
    pub created_by: String,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When work on it first began.
    pub started_at: Option<Timestamp>,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
    /// Why it was closed.
    pub close_reason: String,
    /// How it ended; only on closed beads, and none means success.
    pub outcome: Option<Outcome>,
    /// When it should be finished.
    pub due_at: Option<Timestamp>,
    /// Not to be worked on before this.
    pub defer_until: Option<Timestamp>,
    /// Its name in another system.
    pub external_ref: Option<String>,
    /// Anything, as JSON.
    pub metadata: Option<Json>,
    /// Machinery that may be purged; hidden from the usual lists.
    pub ephemeral: bool,
    /// Kept, but without history.
    pub no_history: bool,
    /// Never offered as work. (Only the *status* pinned keeps a bead from being in the way.)
    pub pinned: bool,
    /// A pattern for other beads: never closed.
    pub is_template: bool,
    /// How many of its dependencies block it now; see [`crate::decide::edge_blocks`].
    pub open_blockers: u32,
    /// Everything else the record came with.
    pub carried: Carried,
}

impl Bead {
    /// An open task that has a title and nothing else yet.
    pub fn new(id: BeadId, title: Title, created_at: Timestamp) -> Self {
        Self {
            uid: Uid::of_bead(&id, created_at),
            id,
            rig: None,
            title,
            description: String::new(),
            design: String::new(),
            acceptance_criteria: String::new(),
            notes: String::new(),
            status: Status::Open,
            priority: Priority::default(),
            issue_type: IssueType::default(),
            assignee: String::new(),
            owner: String::new(),
            estimated_minutes: None,
            created_at,
            created_by: String::new(),
            updated_at: created_at,
            started_at: None,
            closed_at: None,
            close_reason: String::new(),
            outcome: None,
            due_at: None,
            defer_until: None,
            external_ref: None,
            metadata: None,
            ephemeral: false,
            no_history: false,
            pinned: false,
            is_template: false,
            open_blockers: 0,
            carried: Carried::new(),
        }
    }

    /// Gives the bead a status other than `closed`, and the fields that depend on it.
    pub fn enter(&mut self, status: Status, now: Timestamp) {
        if self.status == Status::Closed {
            self.closed_at = None;
            self.close_reason = String::new();
            self.outcome = None;
        }
        if self.status == Status::Pinned {
            self.pinned = false;
        }
        if status == Status::InProgress && self.started_at.is_none() {
            self.started_at = Some(now);
        }
        self.status = status;
    }

    /// The part of its id that all beads from the same pool of ids share (`hq-cv` of
    /// `hq-cv-x1y2z`); nothing for a child, whose id is its parent's with a number.
    pub fn id_space(&self) -> Option<&str> {
        if self.id.is_child() {
            return None;
        }
        self.id.as_str().rsplit_once('-').map(|(space, _)| space)
    }
}

/// One remark on a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// A UUIDv7 for our own comments; the original id for imported ones.
    pub id: String,
    /// The bead it belongs to.
    pub bead: BeadId,
    /// The author.
    pub author: String,
    /// The comment itself.
    pub text: String,
    /// When it was written.
    pub created_at: Timestamp,
    /// Fields of an imported comment that mean nothing to us.
    pub carried: Carried,
}

impl Comment {
    /// Whether both are one comment on their bead: the same words by the same author at the same time
    /// are, even if their ids differ.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.id == other.id
            || (self.author == other.author
                && self.text == other.text
                && self.created_at == other.created_at)
    }
}
