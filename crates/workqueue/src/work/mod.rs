//! The work queue: submitting, pulling, reporting and monitoring work, for commands and servers alike.
//!
//! Every operation takes a typed request and answers with a typed result or a [`WorkError`] that says which class it
//! is. The caller is the actor of the [`gt_town::Town`]. A server clones the town for each client
//! ([`gt_town::Town::acting_as`]), and opens it with [`gt_town::Town::with_shared_commits`]: then requests that write at
//! the same time share a commit.

mod change;
mod client;
mod error;
mod heartbeat;
mod list;
mod next;
mod overdue;
mod poll;
mod projects;
mod release;
mod remote;
mod requests;
mod show;
mod submit;
mod watch;

pub use change::{cancel, change};
pub use client::WorkClient;
pub use error::{Conflict, MissingKind, WorkError, WorkResult};
pub use gt_executors::runs::{ATTEND, attend_command};
pub use heartbeat::heartbeat;
pub use list::list;
pub use next::next;
use next::next_while;
pub use overdue::check_overdue;
pub use poll::{PollEnd, PollNews, PollResult, Polling, poll};
pub use projects::{change_project, create_project, project, projects};
pub use release::release;
pub use remote::{Remote, RemoteError};
pub use requests::{
    Heartbeat, ItemChange, ItemDetails, ItemPage, ItemReason, ItemWhy, NewItem, NewProject,
    NextRequest, NextWork, NoWork, Overdue, Precondition, ProjectChange, Submission, Submitted,
    TakenItem,
};
pub use show::{item, why};
pub use submit::submit;
pub use watch::{SeenChanges, WorkWatch};

use gt_core::work::{ItemRef, WorkItem};
use gt_store::Reader;

use gt_town::Town;

/// Refuses work for another agent than the one that the caller may act for. `what` says what was asked for.
fn refuse_other(town: &Town, agent: &str, what: impl FnOnce() -> String) -> WorkResult<()> {
    match town.only_agent() {
        Some(only) if only != agent => {
            Err(WorkError::NotForAgent { agent: only.to_owned(), what: what() })
        }
        _ => Ok(()),
    }
}

/// The item that has this name.
fn require_item(reader: &Reader<'_>, reference: &ItemRef) -> WorkResult<WorkItem> {
    reader
        .work_item(reference)?
        .ok_or_else(|| WorkError::NotFound { what: MissingKind::Item, name: reference.to_string() })
}
