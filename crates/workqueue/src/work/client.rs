//! The way to a work queue, which may be here or elsewhere: the same questions, answers and errors.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use gt_core::settings::Layers;
use gt_core::work::{Cursor, ItemRef, Project, ProjectRef, RunRef, WorkFilter, WorkItem};
use gt_core::{Clock as _, Timestamp};
use gt_executors::daemon::Signals;

use super::error::{MissingKind, WorkError, WorkResult};
use super::remote::Remote;
use super::requests::{
    Heartbeat, ItemChange, ItemDetails, NextRequest, NextWork, Overdue, Submission, Submitted,
    TakenItem,
};
use super::{change, check_overdue, heartbeat, item, list, next_while, project, release, submit};
use gt_town::{OperationError, SystemClock, Town, settings};

/// How many items are asked for at a time when all of them are wanted.
const PAGE_ITEMS: usize = 256;
/// The most that a server gives at a time.
const PAGE_ITEMS_MAX: usize = 1000;

/// A way to a work queue.
#[derive(Debug)]
pub enum WorkClient {
    /// The queue of this town.
    Local(Box<Town>),
    /// The queue of a server.
    Remote(Box<Remote>),
}

impl WorkClient {
    /// The current time.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::Local(town) => town.now(),
            Self::Remote(_) => SystemClock.now(),
        }
    }

    /// For how long it is kept here what happened; how long a server keeps it is not known here.
    pub fn history_kept(&self) -> WorkResult<Duration> {
        let layers = match self {
            Self::Local(town) => settings::layers(town)?,
            Self::Remote(_) => Layers::default(),
        };
        Ok(settings::history_kept(&layers)?)
    }

    /// The item that a person means: its UUID, its bead or, here, enough of the id of that.
    pub fn item_named(&self, input: &str) -> WorkResult<ItemRef> {
        match (self, ItemRef::parse(input)) {
            (_, Ok(reference @ ItemRef::Uid(_))) => Ok(reference),
            (Self::Local(town), _) => match gt_beads::lookup::resolve(town, input) {
                // In the words of the queue, for a local and a remote queue alike.
                Err(OperationError::NoBead(name)) => {
                    Err(WorkError::NotFound { what: MissingKind::Item, name })
                }
                resolved => Ok(ItemRef::Bead(resolved?)),
            },
            (Self::Remote(_), named) => Ok(named?),
        }
    }

    /// One project.
    pub fn project(&self, reference: &ProjectRef) -> WorkResult<Project> {
        match self {
            Self::Local(town) => project(town, reference),
            Self::Remote(remote) => remote.project(reference),
        }
    }

    /// Submits work, all of it or none.
    pub fn submit(&self, submission: Submission) -> WorkResult<Submitted> {
        match self {
            Self::Local(town) => submit(town, submission),
            Self::Remote(remote) => remote.submit(submission),
        }
    }

    /// One item with its dispatch log.
    pub fn item(&self, reference: &ItemRef) -> WorkResult<ItemDetails> {
        match self {
            Self::Local(town) => item(town, reference),
            Self::Remote(remote) => remote.item(reference),
        }
    }

    /// Changes an item, or says why not.
    pub fn change(&self, reference: &ItemRef, wanted: ItemChange) -> WorkResult<WorkItem> {
        match self {
            Self::Local(town) => change(town, reference, wanted),
            Self::Remote(remote) => remote.change(reference, &wanted),
        }
    }

    /// Hands out what the filter admits, at most `limit`, until `each` says no; says where it goes on.
    pub fn list<E: From<WorkError>>(
        &self,
        filter: &WorkFilter,
        after: Option<&Cursor>,
        limit: Option<usize>,
        mut each: impl FnMut(WorkItem) -> Result<(), E>,
    ) -> Result<Option<Cursor>, E> {
        let mut after = after.cloned();
        let mut left = limit.unwrap_or(usize::MAX);
        loop {
            let most = if limit.is_some() { PAGE_ITEMS_MAX } else { PAGE_ITEMS };
            let count = left.min(most);
            let page = match self {
                Self::Local(town) => list(town, filter, after.as_ref(), count)?,
                Self::Remote(remote) => remote.list(filter, after.as_ref(), count)?,
            };
            left -= page.items.len().min(left);
            page.items.into_iter().try_for_each(&mut each)?;
            match page.next {
                Some(next) if left > 0 => after = Some(next),
                next => return Ok(next),
            }
        }
    }

    /// Gives an agent the next thing to do; if there is nothing, waits for it, at most so long, and until a signal asks us
    /// to stop.
    pub fn next(
        &self,
        request: &NextRequest,
        wait: Duration,
        signals: Option<&Signals>,
    ) -> WorkResult<NextWork> {
        let remote = match self {
            Self::Local(town) => {
                let go_on = || !signals.is_some_and(Signals::is_rung);
                return next_while(town, request, wait, go_on).map_err(as_of_request);
            }
            Self::Remote(remote) => remote,
        };
        let began = Instant::now();
        loop {
            let left = wait.saturating_sub(began.elapsed());
            let interrupt = signals.map(|signals| signals.as_fd());
            let found = remote.next(request, left, interrupt)?;
            // A server waits in whole seconds, and not for hours.
            let is_over = wait.saturating_sub(began.elapsed()) < Duration::from_secs(1);
            if is_over || matches!(found, NextWork::Item(_)) {
                return Ok(found);
            }
        }
    }

    /// The name of the run in which an agent has what it was just given, as people call it.
    pub fn run_of(&self, taken: &TakenItem) -> RunRef {
        match (self, &taken.run) {
            (Self::Remote(remote), RunRef::Uid(uid)) => {
                let details = remote.item(&ItemRef::Uid(taken.item.uid));
                let log = details.map(|details| details.dispatch_log).unwrap_or_default();
                let attempt = log.into_iter().find(|attempt| attempt.uid == *uid);
                attempt.map_or(RunRef::Uid(*uid), |attempt| RunRef::Id(attempt.run))
            }
            (_, run) => run.clone(),
        }
    }

    /// Renews the lease of an agent's work; returns its new end.
    pub fn heartbeat(&self, reference: &ItemRef, beat: Heartbeat) -> WorkResult<Timestamp> {
        match self {
            Self::Local(town) => heartbeat(town, reference, beat),
            Self::Remote(remote) => remote.heartbeat(reference, &beat),
        }
    }

    /// An agent gives its work back.
    pub fn release(&self, reference: &ItemRef, run: RunRef) -> WorkResult<WorkItem> {
        match self {
            Self::Local(town) => release(town, reference, run),
            Self::Remote(remote) => remote.release(reference, &run),
        }
    }

    /// Looks after work whose agents say nothing any more.
    pub fn check_overdue(&self) -> WorkResult<Overdue> {
        match self {
            Self::Local(town) => check_overdue(town),
            Self::Remote(remote) => remote.check_overdue(),
        }
    }
}

/// A name in a request that is not found is a wrong field of it, for a local and a remote queue alike.
fn as_of_request(error: WorkError) -> WorkError {
    match error {
        WorkError::NotFound { what: MissingKind::Project, .. } => {
            WorkError::Invalid { field: "project_id", message: error.to_string() }
        }
        other => other,
    }
}
