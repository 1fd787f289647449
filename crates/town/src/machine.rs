//! The machine that runs are started on.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gt_core::decide::MachineFacts;
use gt_executors::machine::disk_of;

/// Tells how much memory is left and how busy the machine is. A test or a simulator has a machine of its own.
pub trait Machine: Send + Sync {
    /// The facts that are known now; an unknown one holds up nothing.
    fn facts(&self) -> MachineFacts;
}

/// How long the facts about a machine are reused: its kernel takes a while to answer, and a cycle with many starts
/// asks often.
const FACTS_CACHE_TIME: Duration = Duration::from_millis(50);

/// A machine as its kernel describes it in files.
#[derive(Debug)]
pub struct RealMachine {
    root: PathBuf,
    /// A directory on the disk that must have room.
    disk: PathBuf,
    seen: Mutex<Option<(Instant, MachineFacts)>>,
}

impl RealMachine {
    /// The machine whose `/proc` and `/sys` are below `root`, with the disk of this directory.
    pub fn at(root: impl Into<PathBuf>, disk: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), disk: disk.into(), seen: Mutex::default() }
    }
}

impl Machine for RealMachine {
    fn facts(&self) -> MachineFacts {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, facts)) = *seen
            && at.elapsed() < FACTS_CACHE_TIME
        {
            return facts;
        }
        let facts = MachineFacts {
            disk: disk_of(&self.disk),
            ..gt_executors::machine::read_facts(&self.root)
        };
        *seen = Some((Instant::now(), facts));
        facts
    }
}

impl Machine for MachineFacts {
    /// A machine that never changes.
    fn facts(&self) -> MachineFacts {
        *self
    }
}
