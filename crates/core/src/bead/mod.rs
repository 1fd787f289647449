//! The bead and what belongs to it.

mod dependency;
mod id;
mod kind;
mod link;
mod request;
mod status;
mod text;

pub use dependency::{Dependency, DependencyType, Gate};
pub use id::{BeadId, Uid};
pub use kind::IssueType;
pub use link::{Direction, Link};
pub use request::RequestKey;
pub use status::{CustomStatus, Outcome, Priority, Status};
pub use text::{Title, check_label, check_name, check_text};

use crate::{Json, RigSlug, Timestamp};

/// Fields of an imported record that mean nothing to us, in their order and exactly as written.
pub type Carried = Vec<(String, Json)>;

/// Something a person can name, edit and track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bead {
    /// The name everybody uses.
    pub id: BeadId,
    /// A UUIDv7 alias for clients that want one. Never a foreign key.
    pub uid: Uid,
    /// The project it belongs to; none for town-level beads and prefixes nobody registered.
    pub rig: Option<RigSlug>,
    /// One line, at most 500 bytes.
    pub title: Title,
    /// What is to be done.
    pub description: String,
    /// How it is to be done.
    pub design: String,
    /// How one knows that it is done.
    pub acceptance_criteria: String,
    /// What was learned on the way.
    pub notes: String,
    /// Where it stands. `Closed` if and only if [`Bead::closed_at`] is set.
    pub status: Status,
    /// 0 (highest) to 4.
    pub priority: Priority,
    /// task, bug, epic, …; free text.
    pub issue_type: IssueType,
    /// Who has it; empty for nobody.
    pub assignee: String,
    /// The person behind it, by e-mail address; empty for nobody.
    pub owner: String,
    /// How long it was thought to take.
    pub estimated_minutes: Option<u32>,
    /// When it came into being.
    pub created_at: Timestamp,
    /// Who made it; empty if nobody said.
    pub created_by: String,
    /// When anything of it last changed.
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
    /// What its id shares with the others that were drawn from the same pool (`hq-cv` of
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
    /// A UUIDv7 for ours; whatever it was for imported ones.
    pub id: String,
    /// The bead it belongs to.
    pub bead: BeadId,
    /// Who wrote it.
    pub author: String,
    /// What was written.
    pub text: String,
    /// When it was written.
    pub created_at: Timestamp,
    /// Fields of an imported comment that mean nothing to us.
    pub carried: Carried,
}

impl Comment {
    /// Whether both are one comment on their bead: the same words by the same author at the same time
    /// are, whatever their ids.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.id == other.id
            || (self.author == other.author
                && self.text == other.text
                && self.created_at == other.created_at)
    }
}
