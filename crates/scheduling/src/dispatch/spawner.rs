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
///
/// A spawner of your own can start workers anywhere. This one has another machine do it, with whichever program reaches that
/// (`ssh`, for example) and a `gt` there that knows the town:
///
/// ```
/// use std::process::Command;
/// use std::sync::Arc;
///
/// use gt_beads::beads::{self, NewBead};
/// use gt_core::ExecutorKind;
/// use gt_core::schedule::Run;
/// use gt_scheduling::Consequences;
/// use gt_scheduling::dispatch::{Dispatcher, SpawnError, Spawner};
/// use gt_scheduling::runtimes::check_name;
/// use gt_scheduling::schedule::{SlingRequest, sling};
/// use gt_town::rigs::{self, NewRig};
/// use gt_town::{Actor, SystemClock, Town, settings};
///
/// /// Starts workers on another machine.
/// struct RemoteSpawner {
///     /// The program that reaches it, with the machine: `["ssh", "-oBatchMode=yes", "builder"]`.
///     reach: Vec<String>,
/// }
///
/// impl Spawner for RemoteSpawner {
///     fn spawn(&self, run: &Run) -> Result<(), SpawnError> {
///         let (program, options) =
///             self.reach.split_first().ok_or_else(|| SpawnError::Failed("no program".to_owned()))?;
///         let started = Command::new(program)
///             .args(options)
///             .args(["gt", "worker", "exec", &run.id.to_string()])
///             .output()
///             .map_err(|error| SpawnError::Failed(format!("cannot start {program}: {error}")))?;
///         // The worker says in its first line whether it has taken the run.
///         let said = String::from_utf8_lossy(&started.stdout).trim().to_owned();
///         match said.split_once(": ") {
///             _ if said == "started" => Ok(()),
///             Some(("busy", why)) => Err(SpawnError::Busy(why.to_owned())),
///             _ => Err(SpawnError::Failed(said)),
///         }
///     }
/// }
///
/// let actor = Actor { name: "me".to_owned(), owner: String::new() };
/// let town = Town::in_memory(actor, Arc::new(SystemClock), Arc::new(Consequences))?;
/// let rig = NewRig {
///     name: "web",
///     repository: None,
///     prefix: None,
///     branch: None,
///     executor: ExecutorKind::Process,
/// };
/// rigs::add(&town, &rig)?;
/// settings::set(&town, "rig.web.command", "run-tests {bead}", check_name)?;
/// let bead = NewBead { title: "Test".to_owned(), id: Some("we-a".to_owned()), ..NewBead::default() };
/// beads::create(&town, &bead, false)?;
/// let arguments = vec!["we-a".to_owned()];
/// sling(&town, &SlingRequest { arguments, ..SlingRequest::default() })?;
///
/// // A machine that starts every run.
/// let builder = RemoteSpawner { reach: ["sh", "-c", "echo started"].map(ToOwned::to_owned).to_vec() };
/// let done = Dispatcher::new(&town, &builder).dispatch()?;
/// assert_eq!(done.dispatched.len(), 1);
/// # Ok::<(), gt_town::OperationError>(())
/// ```
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
