//! One pass of everything that keeps the town going.

use std::path::Path;
use std::sync::Arc;

use gt_executors::runs::StarterLock;

use super::dispatcher::{Dispatched, Dispatcher};
use super::scene::Caller;
use super::settings::Overrides;
use crate::outbox::catch_up;
use crate::runs::{ProcessSpawner, RealWorld, Recovered, World as _, recover};
use crate::{OperationError, Result, Town};

/// How a pass is made.
#[derive(Clone)]
pub struct Pass<'a> {
    /// The program that supervises runs: this one.
    pub program: &'a Path,
    /// Who makes it.
    pub caller: Caller,
    /// What it may set differently.
    pub overrides: Overrides,
    /// Nothing is changed.
    pub dry_run: bool,
    /// These contexts alone.
    pub only: Option<Vec<u64>>,
    /// Told when a supervisor that was started here has ended.
    pub on_exit: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl<'a> Pass<'a> {
    /// A pass by hand over everything that waits.
    pub fn by_hand(program: &'a Path) -> Self {
        let (caller, overrides) = (Caller::Hand, Overrides::default());
        Self { program, caller, overrides, dry_run: false, only: None, on_exit: None }
    }
}

/// Recovers what died, starts what may start, and has notices sent that are due. Any number of passes may be made at once, by anybody.
pub fn pass(town: &Town, how: &Pass<'_>) -> Result<(Recovered, Dispatched)> {
    let world = RealWorld::of(town)?;
    let mut spawner = ProcessSpawner::new(town, how.program.to_owned())?;
    if let Some(told) = &how.on_exit {
        spawner = spawner.on_exit(Arc::clone(told));
    }
    let mut dispatcher = Dispatcher::new(town, &spawner)
        .with_caller(how.caller)
        .with_overrides(how.overrides)
        .with_dry_run(how.dry_run);
    if let Some(only) = &how.only {
        dispatcher = dispatcher.with_only(only.clone());
    }
    if how.dry_run {
        return Ok((Recovered::default(), dispatcher.dispatch()?));
    }
    let recovered = recover(town, &world)?;
    let directory = town.starters_directory();
    let lock = StarterLock::take(&directory).map_err(|source| OperationError::File {
        action: "lock a file in",
        path: directory,
        source,
    })?;
    let dispatched = dispatcher.with_starter(lock.name(), world.host()).dispatch()?;
    catch_up(town)?;
    Ok((recovered, dispatched))
}
