//! How a run gets its worker.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use gt_core::schedule::{Run, RunId};

/// Why a worker was not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    /// Something of an earlier run is still there, or the origin is not. That counts as no failure, and is tried
    /// again.
    #[error("{0}")]
    Busy(String),
    /// The previous worker has not left the place of the run yet. Another place would do.
    #[error("{0}")]
    Taken(String),
    /// It could not be started.
    #[error("{0}")]
    Failed(String),
}

impl SpawnError {
    /// Whether it only has to be tried again, and counts as no failure.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Busy(_) | Self::Taken(_) => true,
            Self::Failed(_) => false,
        }
    }
}

/// Implemented by every executor: starts the worker of a run that has its slot, and returns when the worker has taken
/// the run or is known not to.
///
/// A spawner decides nothing. The caller admits the run, and settles it if this fails.
pub trait Spawner: Sync {
    /// Starts the worker of this run.
    fn spawn(&self, run: &Run) -> Result<(), SpawnError>;
}

/// A spawner that starts nothing and remembers what it was asked for, for tests and the simulator.
///
/// ```
/// use gt_scheduling::dispatch::{MemorySpawner, Spawner};
///
/// let spawner = MemorySpawner::default();
/// spawner.refuse("gt-abc", "no such program");
/// assert!(spawner.asked().is_empty());
/// ```
#[derive(Debug, Default)]
pub struct MemorySpawner {
    asked: Mutex<Vec<RunId>>,
    refused: Mutex<BTreeMap<String, String>>,
}

impl MemorySpawner {
    /// Makes every start for this bead fail.
    pub fn refuse(&self, bead: &str, why: &str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(bead.to_owned(), why.to_owned());
    }

    /// The runs it was asked to start, in order.
    pub fn asked(&self) -> Vec<RunId> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Spawner for MemorySpawner {
    fn spawn(&self, run: &Run) -> Result<(), SpawnError> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = refused.get(run.id.bead.as_str()) {
            return Err(SpawnError::Failed(why.clone()));
        }
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(run.id.clone());
        Ok(())
    }
}
