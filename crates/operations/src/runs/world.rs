//! What the world says about runs, when nobody has written it down.

use std::path::PathBuf;
use std::time::Duration;

use gt_core::schedule::Run;
use gt_executors::runs::{Liveness, RunDirectory, starter_is_alive};

use super::cancel::end_processes;
use crate::town::DIRECTORY;
use crate::{Result, Town};

/// Whether something is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alive {
    /// It is.
    Yes,
    /// It is not, and never will be again.
    No,
    /// Nobody can say.
    Unknown,
}

/// Whoever can be asked before anything is declared lost. A simulator has a world of its own.
pub trait World: Sync {
    /// The name of this machine.
    fn host(&self) -> &str;
    /// Whether whoever began this run, and did not see its worker take it, is still at it.
    fn starter_of(&self, run: &Run) -> Alive;
    /// Whether any process of this run is left.
    fn worker_of(&self, run: &Run) -> Alive;
    /// Ends every process of this run, asking first and killing after `grace`, and returns when none is left.
    fn end_worker(&self, run: &Run, grace: Duration) -> Result<()>;
}

/// This machine.
#[derive(Debug, Clone)]
pub struct RealWorld {
    host: String,
    starters: PathBuf,
    runs: PathBuf,
}

impl RealWorld {
    /// The world as this town sees it.
    pub fn of(town: &Town) -> Self {
        let host = gt_executors::process::host_name();
        Self { host, starters: town.starters_directory(), runs: town.runs_directory() }
    }
}

impl World for RealWorld {
    fn host(&self) -> &str {
        &self.host
    }

    fn starter_of(&self, run: &Run) -> Alive {
        if run.host != self.host {
            return Alive::Unknown;
        }
        match starter_is_alive(&self.starters, &run.starter) {
            Ok(true) => Alive::Yes,
            Ok(false) => Alive::No,
            Err(_) => Alive::Unknown,
        }
    }

    fn worker_of(&self, run: &Run) -> Alive {
        if run.host != self.host {
            return Alive::Unknown;
        }
        match RunDirectory::of(&self.runs, &run.id.to_string()).liveness() {
            Ok(Liveness::Held) => Alive::Yes,
            Ok(Liveness::Free | Liveness::NeverTaken) => Alive::No,
            Err(_) => Alive::Unknown,
        }
    }

    fn end_worker(&self, run: &Run, grace: Duration) -> Result<()> {
        end_processes(&RunDirectory::of(&self.runs, &run.id.to_string()), run, grace)
    }
}

impl Town {
    /// Where the runs of this town keep their files.
    pub(crate) fn runs_directory(&self) -> PathBuf {
        self.root().join(DIRECTORY).join("runs")
    }

    /// Where the locks of those are who start runs.
    pub(crate) fn starters_directory(&self) -> PathBuf {
        self.root().join(DIRECTORY).join("starters")
    }
}
