//! The events that a poller reports.

use std::path::Path;

use gt_core::work::{WorkItem, WorkStatus};
use gt_executors::runs::AgentEnd;

use crate::work::error::WorkResult;

/// How it ended with an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PollEnd {
    /// The command ended well.
    Completed,
    /// It ended badly: how, in words.
    Failed(String),
    /// The command has said itself how the item stands.
    Reported(WorkStatus),
    /// It became another agent's, or was cancelled: why.
    Lost(String),
    /// It was given back, because we were asked to stop.
    GivenBack,
}

impl PollEnd {
    /// A short name that programs can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
            Self::Reported(_) => "reported",
            Self::Lost(_) => "lost",
            Self::GivenBack => "given-back",
        }
    }
}

/// How a command ended, in words; nothing if it ended well.
pub(super) fn failure(end: AgentEnd) -> Option<String> {
    match end {
        AgentEnd::Exited(0) => None,
        AgentEnd::Exited(status) => Some(format!("the command failed with exit status {status}")),
        AgentEnd::Signalled(signal) => Some(format!("the command was ended by signal {signal}")),
        AgentEnd::Cancelled => Some("the command ended without an exit status".to_owned()),
    }
}

/// An event of a poller.
#[derive(Debug)]
pub enum PollNews<'a> {
    /// An item was taken, and the command works on it.
    Began {
        /// The item.
        item: &'a WorkItem,
        /// Where the output of the command is.
        output: &'a Path,
    },
    /// It is over.
    Ended {
        /// The item.
        item: &'a WorkItem,
        /// The result.
        end: &'a PollEnd,
    },
    /// There is nothing to do: why.
    Nothing(&'a str),
    /// The agent has something with a lease of another process.
    Busy(&'a str),
    /// The queue is away: why. It is told once, until it is back.
    Away(&'a str),
    /// It is back.
    Back,
}

/// How many items ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PollResult {
    /// Well.
    pub completed: u64,
    /// Badly.
    pub failed: u64,
    /// As their commands said.
    pub reported: u64,
    /// Taken over by another agent, or cancelled.
    pub lost: u64,
    /// In the queue.
    pub given_back: u64,
}

impl PollResult {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.completed + self.failed + self.reported + self.lost + self.given_back
    }

    pub(super) fn add(&mut self, end: &WorkResult<PollEnd>) {
        let Ok(end) = end else { return };
        let counter = match end {
            PollEnd::Completed => &mut self.completed,
            PollEnd::Failed(_) => &mut self.failed,
            PollEnd::Reported(_) => &mut self.reported,
            PollEnd::Lost(_) => &mut self.lost,
            PollEnd::GivenBack => &mut self.given_back,
        };
        *counter += 1;
    }
}
