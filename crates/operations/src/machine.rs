//! The machine that runs are started on.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gt_core::decide::MachineFacts;

/// Whoever knows how much memory is left and how busy it is. A test or a simulator has a machine of its own.
pub trait Machine: Send + Sync {
    /// What is known now; what is not known holds up nothing.
    fn facts(&self) -> MachineFacts;
}

/// How long it counts what a machine was seen to be like: its kernel takes a while to say, and those who decide about many
/// starts ask again and again.
const COUNTS_FOR: Duration = Duration::from_millis(50);

/// A machine as its kernel describes it in files.
#[derive(Debug)]
pub struct RealMachine {
    root: PathBuf,
    seen: Mutex<Option<(Instant, MachineFacts)>>,
}

impl RealMachine {
    /// The machine whose `/proc` and `/sys` are below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), seen: Mutex::default() }
    }
}

impl Machine for RealMachine {
    fn facts(&self) -> MachineFacts {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, facts)) = *seen
            && at.elapsed() < COUNTS_FOR
        {
            return facts;
        }
        let facts = gt_executors::machine::look_at(&self.root);
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
