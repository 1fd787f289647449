//! Where the commands of the work queue do their work.

use std::ops::ControlFlow;
use std::time::Duration;

use gt_core::work::{Cursor, ItemRef, ProjectRef, WorkFilter, WorkItem};
use gt_core::{RigSlug, Timestamp};
use gt_operations::work::{
    self, Heartbeat, ItemChange, ItemDetails, Next, NextRequest, Overdue, Submission, Submitted,
};
use gt_operations::{Town, beads};

use crate::context::Context;
use crate::error::CliError;

/// A way to a work queue.
pub(super) enum Door {
    /// The town around the working directory.
    Local(Box<Town>),
}

impl Door {
    /// The door that the command was told to take.
    pub(super) fn open(context: &Context<'_>) -> Result<Self, CliError> {
        Ok(Self::Local(Box::new(context.town()?)))
    }

    /// The current time, as the other side has it.
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Local(town) => town.now(),
        }
    }

    /// The town, for what only somebody who is in it can do.
    pub(super) fn town(&self) -> &Town {
        match self {
            Self::Local(town) => town,
        }
    }

    /// The item that a person means: its UUID, its bead, or enough of the id of that.
    pub(super) fn item_named(&self, input: &str) -> Result<ItemRef, CliError> {
        match (self, ItemRef::parse(input)) {
            (_, Ok(reference @ ItemRef::Uid(_))) => Ok(reference),
            (Self::Local(town), _) => Ok(ItemRef::Bead(beads::resolve(town, input)?)),
        }
    }

    /// The rig of a project.
    pub(super) fn rig_of(&self, project: &ProjectRef) -> Result<RigSlug, CliError> {
        match self {
            Self::Local(town) => Ok(work::project_rig(town, project)?),
        }
    }

    pub(super) fn submit(&self, submission: Submission) -> Result<Submitted, CliError> {
        match self {
            Self::Local(town) => Ok(work::submit(town, submission)?),
        }
    }

    pub(super) fn item(&self, reference: &ItemRef) -> Result<ItemDetails, CliError> {
        match self {
            Self::Local(town) => Ok(work::item(town, reference)?),
        }
    }

    pub(super) fn change(
        &self,
        reference: &ItemRef,
        change: ItemChange,
    ) -> Result<WorkItem, CliError> {
        match self {
            Self::Local(town) => Ok(work::change(town, reference, change)?),
        }
    }

    /// Hands out what the filter admits, at most `limit`; says where it goes on.
    pub(super) fn list(
        &self,
        filter: &WorkFilter,
        after: Option<&Cursor>,
        limit: Option<usize>,
        mut each: impl FnMut(WorkItem) -> Result<(), CliError>,
    ) -> Result<Option<Cursor>, CliError> {
        let Self::Local(town) = self;
        if let Some(limit) = limit {
            let page = work::list(town, filter, after, limit)?;
            page.items.into_iter().try_for_each(each)?;
            return Ok(page.next);
        }
        let mut wrong = None;
        work::for_each(town, filter, |item| match each(item) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                wrong = Some(error);
                ControlFlow::Break(())
            }
        })?;
        wrong.map_or(Ok(None), Err)
    }

    pub(super) fn next(&self, request: &NextRequest, wait: Duration) -> Result<Next, CliError> {
        match self {
            Self::Local(town) => Ok(work::next_within(town, request, wait)?),
        }
    }

    pub(super) fn heartbeat(
        &self,
        reference: &ItemRef,
        heartbeat: Heartbeat,
    ) -> Result<Timestamp, CliError> {
        match self {
            Self::Local(town) => Ok(work::heartbeat(town, reference, heartbeat)?),
        }
    }

    pub(super) fn check_overdue(&self) -> Result<Overdue, CliError> {
        match self {
            Self::Local(town) => Ok(work::check_overdue(town)?),
        }
    }
}
