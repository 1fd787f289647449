//! An agent that takes work from a queue, one item after the other, and has a command do it.
//!
//! # What must stay true
//!
//! - An item is worked on only while its lease is ours: it is renewed at a third of its time, and a command whose item has
//!   become another agent's is ended.
//! - The result of an item is reported in the name of the run in which it was taken, so that a late report is refused.
//! - A command does not outlive the process that polls: when that is killed, the command ends before its lease does. If its attendant
//!   is killed as well, the next poller on the machine that gets the item ends it first.
//! - A command that cannot even be started costs no item: it is given back, and the poller ends.
//! - A queue that is away is waited for, while a command is at work as well.

mod news;
mod notes;
mod outputs;
mod poll_backoff;
mod run_item;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use gt_core::work::{ItemRef, Project, RunRef, WorkItem, WorkStatus};
use gt_core::{Timestamp, Uid};
use gt_executors::daemon::Signals;

pub use self::news::{PollEnd, PollNews, PollResult};
use self::outputs::Outputs;
use self::poll_backoff::PollBackoff;
use self::run_item::carry_out;
use super::client::WorkClient;
use super::error::WorkResult;
use super::requests::{Heartbeat, NextRequest, NextWork};
use gt_town::OperationError;

/// The shortest pause before the queue is asked again when there was nothing.
const EMPTY_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The pause before the queue is asked again when the agent has an item with a lease of another process.
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(5);

/// How to poll.
#[derive(Debug, Clone)]
pub struct Polling {
    /// The request for work, with the name of the agent.
    pub request: NextRequest,
    /// How long the queue is asked to wait for work at a time.
    pub wait: Duration,
    /// End when there is nothing after that time.
    pub once: bool,
    /// End after so many items.
    pub most: Option<u64>,
    /// The command and its arguments; `{}` in them is the id of the item.
    pub command: Vec<String>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Where its output is kept, a file for each item.
    pub output: PathBuf,
    /// For how long; for good if nothing is said.
    pub keep: Option<Duration>,
    /// How long it may take to end when it is asked to.
    pub grace: Duration,
}

/// An item that is ours.
#[derive(Debug, Clone)]
struct HeldItem {
    item: WorkItem,
    run: Uid,
    /// It was in progress already, and its run may have had a command.
    is_adopted: bool,
}

impl HeldItem {
    fn reference(&self) -> ItemRef {
        ItemRef::Uid(self.item.uid)
    }
}

/// Takes items and has the command do them, until a signal asks us to stop, or there were as many as were wanted.
/// Reports each event to `tell`.
pub fn poll(
    door: &WorkClient,
    polling: &Polling,
    tell: &mut dyn FnMut(&PollNews<'_>),
) -> WorkResult<PollResult> {
    gt_executors::private::create_dir_all(&polling.output).map_err(|source| {
        OperationError::File { action: "make", path: polling.output.clone(), source }
    })?;
    let project =
        polling.request.project.as_ref().map(|project| door.project(project)).transpose()?;
    let signals = Signals::listen()
        .map_err(|error| OperationError::rejected(format!("cannot listen to signals: {error}")))?;
    let mut poller = Poller { door, polling, project, backoff: PollBackoff::new(signals), tell };
    let mut polled = PollResult::default();
    let mut outputs = Outputs::of(polling);
    while !poller.backoff.is_over() && polling.most.is_none_or(|most| polled.count() < most) {
        outputs.tidy(poller.now());
        let Some(held) = poller.take()? else { break };
        let end = carry_out(&mut poller, &held);
        polled.add(&end);
        let end = end?;
        (poller.tell)(&PollNews::Ended { item: &held.item, end: &end });
        if polling.once {
            break;
        }
    }
    Ok(polled)
}

/// A process that polls.
struct Poller<'a> {
    door: &'a WorkClient,
    polling: &'a Polling,
    project: Option<Project>,
    backoff: PollBackoff,
    tell: &'a mut dyn FnMut(&PollNews<'_>),
}

impl Poller<'_> {
    /// Waits for an item; nothing when it is time to end.
    fn take(&mut self) -> WorkResult<Option<HeldItem>> {
        let request = &self.polling.request;
        let began = Instant::now();
        let mut told_busy = None;
        while !self.backoff.is_over() {
            let asked = Instant::now();
            let is_last = self.polling.once && began.elapsed() >= self.polling.wait;
            match self.door.next(request, self.polling.wait, Some(self.backoff.signals())) {
                Ok(NextWork::Item(taken)) => {
                    self.is_back();
                    let held = HeldItem { item: taken.item, run: taken.run_uid, is_adopted: false };
                    if self.backoff.is_over() {
                        self.give_back(&held)?;
                        return Ok(None);
                    }
                    return Ok(Some(held));
                }
                Ok(NextWork::Nothing(why)) => {
                    self.is_back();
                    if self.polling.once {
                        (self.tell)(&PollNews::Nothing(&why.to_string()));
                        return Ok(None);
                    }
                    self.backoff.pause(EMPTY_PAUSE_MIN.saturating_sub(asked.elapsed()));
                }
                Err(error) => match error.busy_with() {
                    Some(uid) => {
                        self.is_back();
                        if let Some(held) = self.adopt(uid)? {
                            return Ok(Some(held));
                        }
                        if is_last {
                            return Err(error);
                        }
                        if told_busy.replace(uid) != Some(uid) {
                            (self.tell)(&PollNews::Busy(&error.to_string()));
                        }
                        self.backoff
                            .pause(BUSY_RETRY_DELAY.min(self.polling.wait.max(EMPTY_PAUSE_MIN)));
                    }
                    None if error.may_pass() && !is_last => self.is_away(&error),
                    None => return Err(error),
                },
            }
        }
        Ok(None)
    }

    /// Takes an item that the agent has in progress, if no process has a lease on it and it is of the kind that we do.
    fn adopt(&mut self, uid: Uid) -> WorkResult<Option<HeldItem>> {
        let reference = ItemRef::Uid(uid);
        let mut item = match self.door.item(&reference) {
            Ok(details) => details.item,
            Err(error) if error.may_pass() => return Ok(None),
            Err(error) if error.code() == Some("not-found") => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(run) = item.run.filter(|_| self.fits(&item)) else { return Ok(None) };
        let (lease, adopts) = (Some(self.polling.request.lease), true);
        let beat = Heartbeat { run: RunRef::Uid(run), lease, adopts };
        match self.door.heartbeat(&reference, beat) {
            Ok(until) => {
                item.lease_expires_at = Some(until);
                Ok(Some(HeldItem { item, run, is_adopted: true }))
            }
            // Another process was faster, or it is over.
            Err(error) if error.may_pass() || error.code().is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn fits(&self, item: &WorkItem) -> bool {
        let kinds = &self.polling.request.kinds;
        item.status == WorkStatus::InProgress
            && item.lease_expires_at.is_none()
            && (kinds.is_empty() || kinds.contains(&item.kind))
            && self.project.as_ref().is_none_or(|project| item.project == Some(project.uid))
    }

    /// Gives an item back, if that can be done soon; else its lease ends it.
    fn give_back(&mut self, held: &HeldItem) -> WorkResult<()> {
        let run = || RunRef::Uid(held.run);
        let given = self.retry_while_unreachable(|door| door.release(&held.reference(), run()));
        match given {
            Ok(_) => Ok(()),
            // It is not ours any more, which is all that was wanted.
            Err(error) if matches!(error.code(), Some("stale-run" | "not-found")) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Asks until the queue can be asked; when it is time to end, not for long.
    fn retry_while_unreachable<T>(
        &mut self,
        mut ask: impl FnMut(&WorkClient) -> WorkResult<T>,
    ) -> WorkResult<T> {
        loop {
            match ask(self.door) {
                Err(error) if error.may_pass() && self.backoff.is_left() => self.is_away(&error),
                done => {
                    if done.is_ok() {
                        self.is_back();
                    }
                    return done;
                }
            }
        }
    }

    /// Says once that the queue is away, and waits a little.
    fn is_away(&mut self, error: &super::WorkError) {
        if self.backoff.failed() {
            (self.tell)(&PollNews::Away(&gt_town::with_causes(error)));
        }
        self.backoff.back_off(&self.polling.request.agent);
    }

    /// Says that the queue is back, if it was away.
    fn is_back(&mut self) {
        if self.backoff.succeeded() {
            (self.tell)(&PollNews::Back);
        }
    }

    fn now(&self) -> Timestamp {
        self.door.now()
    }
}
