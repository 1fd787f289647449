//! Numbers about a town for monitoring.

use gt_core::Timestamp;

use super::statements;
use crate::{Reader, StoreError};

statements! {
    QUEUE = "SELECT rig, COUNT(*), MIN(enqueued_at) FROM contexts WHERE closed_at IS NULL GROUP BY rig ORDER BY rig";
    RUNS = "SELECT rig, host, state, COUNT(*) FROM runs GROUP BY rig, host, state ORDER BY rig, host, state";
    LANDINGS = "SELECT rig, COUNT(*) FROM merge_requests WHERE state = 'landed' GROUP BY rig ORDER BY rig";
    CHECKS = "SELECT rig, result, COUNT(*), CAST(SUM(duration_ms) AS BIGINT) FROM check_runs GROUP BY rig, result \
        ORDER BY rig, result";
}

/// How many contexts of a rig are open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueNumbers {
    /// The rig.
    pub rig: String,
    /// How many.
    pub open: i64,
    /// When the oldest of them was enqueued.
    pub oldest: Timestamp,
}

/// How many runs of a rig on a host are in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunNumbers {
    /// The rig.
    pub rig: String,
    /// The host, as runs name it.
    pub host: String,
    /// The state.
    pub state: String,
    /// How many.
    pub runs: i64,
}

/// The runs of the checks of a rig with one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckNumbers {
    /// The rig.
    pub rig: String,
    /// The result.
    pub result: String,
    /// How many.
    pub runs: i64,
    /// How long all of them took.
    pub total_ms: i64,
}

/// Numbers about a town. Those of runs, landings and checks never go down, because their rows stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TownNumbers {
    /// The queue.
    pub queue: Vec<QueueNumbers>,
    /// All runs there ever were.
    pub runs: Vec<RunNumbers>,
    /// How often work of each rig has landed.
    pub landings: Vec<(String, i64)>,
    /// The runs of checks.
    pub checks: Vec<CheckNumbers>,
}

impl Reader<'_> {
    /// Counts everything that is monitored. Reads every run, so callers keep the answer for a while.
    pub fn town_numbers(&self) -> Result<TownNumbers, StoreError> {
        let queue = self.rows(QUEUE, &[], |row| {
            let oldest = Timestamp::from_nanos(row.int(2)?);
            Ok(QueueNumbers { rig: row.text(0)?.to_owned(), open: row.int(1)?, oldest })
        })?;
        let runs = self.rows(RUNS, &[], |row| {
            let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
            Ok(RunNumbers { rig: text(0)?, host: text(1)?, state: text(2)?, runs: row.int(3)? })
        })?;
        let landings =
            self.rows(LANDINGS, &[], |row| Ok((row.text(0)?.to_owned(), row.int(1)?)))?;
        let checks = self.rows(CHECKS, &[], |row| {
            let (rig, result) = (row.text(0)?.to_owned(), row.text(1)?.to_owned());
            Ok(CheckNumbers { rig, result, runs: row.int(2)?, total_ms: row.int(3)? })
        })?;
        Ok(TownNumbers { queue, runs, landings, checks })
    }
}
