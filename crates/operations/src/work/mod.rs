//! The work queue: submitting, pulling, reporting and monitoring work, for commands and servers alike.
//!
//! Every operation takes a typed request and answers with a typed result or a [`WorkError`] that says which class it
//! is. Whoever serves many callers at once opens the town with [`crate::Town::with_shared_commits`]; then those that
//! write at the same time share a commit.

mod error;
mod requests;

pub use error::{Conflict, Thing, WorkError, WorkResult};
pub use requests::{
    Heartbeat, ItemChange, ItemDetails, ItemPage, ItemReason, ItemWhy, NewItem, NewProject, Next,
    NextRequest, NoWork, Overdue, Precondition, ProjectChange, Submission, Submitted, Taken,
};

use gt_core::Timestamp;
use gt_core::work::{Cursor, ItemRef, Project, ProjectRef, WorkFilter, WorkItem};

use crate::{OperationError, Town};

fn unfinished<T>() -> WorkResult<T> {
    Err(OperationError::rejected("this part of the work queue is not there yet").into())
}

/// Makes a project: a rig whose work is pulled.
pub fn create_project(_town: &Town, _new: NewProject) -> WorkResult<Project> {
    unfinished()
}

/// Every project, oldest first.
pub fn projects(_town: &Town) -> WorkResult<Vec<Project>> {
    unfinished()
}

/// One project.
pub fn project(_town: &Town, _reference: &ProjectRef) -> WorkResult<Project> {
    unfinished()
}

/// Renames a project, or gives it another name in another system.
pub fn change_project(
    _town: &Town,
    _reference: &ProjectRef,
    _change: ProjectChange,
) -> WorkResult<Project> {
    unfinished()
}

/// Submits work, all of it or none.
pub fn submit(_town: &Town, _submission: Submission) -> WorkResult<Submitted> {
    unfinished()
}

/// One item with its dispatch log.
pub fn item(_town: &Town, _reference: &ItemRef) -> WorkResult<ItemDetails> {
    unfinished()
}

/// At most `limit` items that the filter admits, from a place in its list on.
pub fn list(
    _town: &Town,
    _filter: &WorkFilter,
    _after: Option<&Cursor>,
    _limit: usize,
) -> WorkResult<ItemPage> {
    unfinished()
}

/// Changes an item, or says why not.
pub fn change(_town: &Town, _reference: &ItemRef, _change: ItemChange) -> WorkResult<WorkItem> {
    unfinished()
}

/// Calls an item off.
pub fn cancel(
    _town: &Town,
    _reference: &ItemRef,
    _precondition: Precondition,
) -> WorkResult<WorkItem> {
    unfinished()
}

/// Gives an agent the next thing to do, if there is one.
pub fn next(_town: &Town, _request: NextRequest) -> WorkResult<Next> {
    unfinished()
}

/// An agent speaks for its work; until when it has it now.
pub fn heartbeat(
    _town: &Town,
    _reference: &ItemRef,
    _heartbeat: Heartbeat,
) -> WorkResult<Timestamp> {
    unfinished()
}

/// Blocks work whose agents have been silent for too long, and takes back what leases have ended for.
pub fn check_overdue(_town: &Town) -> WorkResult<Overdue> {
    unfinished()
}

/// Why an item is where it is.
pub fn why(_town: &Town, _reference: &ItemRef) -> WorkResult<ItemWhy> {
    unfinished()
}
