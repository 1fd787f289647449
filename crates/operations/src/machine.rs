//! The machine that runs are started on.

use std::path::PathBuf;

use gt_core::decide::MachineFacts;

/// Whoever knows how much memory is left and how busy it is. A test or a simulator has a machine of its own.
pub trait Machine: Send + Sync {
    /// What is known now; what is not known holds up nothing.
    fn facts(&self) -> MachineFacts;
}

/// A machine as its kernel describes it in files.
#[derive(Debug, Clone)]
pub struct RealMachine {
    root: PathBuf,
}

impl RealMachine {
    /// The machine whose `/proc` and `/sys` are below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
}

impl Machine for RealMachine {
    fn facts(&self) -> MachineFacts {
        gt_executors::machine::look_at(&self.root)
    }
}

impl Machine for MachineFacts {
    /// A machine that never changes.
    fn facts(&self) -> MachineFacts {
        *self
    }
}
