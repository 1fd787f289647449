//! What keeps a town going: each of these looks at the rows that need attention, does what is missing, and can be done
//! at any time, beside any number of others. Passes by hand and the daemon do the same.

use std::path::Path;

use gt_core::Timestamp;
use gt_core::schedule::RunId;
use gt_executors::runs::StarterLock;

use crate::convoys::{Attended, attend};
use crate::dispatch::{Begun, Dispatched, Dispatcher, NotStarted, Pass, Spawner, Starter};
use crate::landing::resume;
use crate::messages::deliver_waiting;
use crate::recovery::{StaleHook, release_stale_hooks};
use crate::runs::{
    RealWorld, Recovered, World as _, recover,
    stalls::{self, Stalls},
};
use crate::trees::{Warmed, complete_moves, keep_warm};
use crate::work::{Overdue, WorkError};
use crate::{OperationError, Result, Town, outbox, retention, work};

/// Runs and starts that died, and contexts whose bead is over.
pub(crate) fn liveness(town: &Town, world: &RealWorld) -> Result<Recovered> {
    crate::hosts::renew(town)?;
    recover(town, world)
}

/// Hooked beads that no worker is at. Returns those that are open again, and when the next may be due.
pub(crate) fn stale_hooks(town: &Town) -> Result<(Vec<StaleHook>, Option<Timestamp>)> {
    release_stale_hooks(town)
}

/// What convoys track and nobody has scheduled, and convoys that are done and have not landed: for whoever keeps a town going.
pub fn convoys(town: &Town) -> Result<Attended> {
    attend(town, &town.surroundings()?)
}

/// Workers that say nothing.
pub(crate) fn stalls(town: &Town, world: &RealWorld) -> Result<Stalls> {
    stalls::look(town, world)
}

/// Agents that asked for work and say nothing any more.
pub(crate) fn work(town: &Town) -> Result<Overdue> {
    work::check_overdue(town).map_err(|error| match error {
        WorkError::Operation(error) => error,
        other => OperationError::rejected(other.to_string()),
    })
}

/// Accepted work that was on its way when its worker died. Asks origins, which may take their time. Returns the runs for
/// which that went wrong, and why.
pub(crate) fn landing(town: &Town, world: &RealWorld) -> Result<Vec<(RunId, String)>> {
    resume(town, world)
}

/// How many pushes there are whose end nobody has seen.
pub(crate) fn landings(town: &Town) -> Result<usize> {
    town.read(|reader| Ok(reader.landing_runs()?.len()))
}

/// Nudges that nobody was shown yet, and notices that are due.
pub(crate) fn letters(town: &Town) -> Result<()> {
    deliver_waiting(town)?;
    outbox::catch_up(town)
}

/// Trees that stand ready before anybody needs them. Takes its time where a rig has a setup command.
pub fn warm_trees(town: &Town, world: &RealWorld) -> Result<Warmed> {
    keep_warm(town, world)
}

/// Moves of trees that were interrupted, and what is old.
pub(crate) fn housekeeping(town: &Town, world: &RealWorld) -> Result<()> {
    complete_moves(town)?;
    retention::catch_up(town, world.host())
}

/// What may start.
pub(crate) struct Starts<'a> {
    town: &'a Town,
    how: Pass<'a>,
    host: String,
    lock: Option<StarterLock>,
}

impl<'a> Starts<'a> {
    /// Starts for this machine. Nothing happens yet.
    pub(crate) fn new(town: &'a Town, how: Pass<'a>, host: &str) -> Self {
        Self { town, how, host: host.to_owned(), lock: None }
    }

    /// Starts only these contexts from now on.
    pub(crate) fn only(&mut self, contexts: Vec<u64>) {
        self.how.only = Some(contexts);
    }

    /// The same program.
    pub(crate) fn program(&self) -> &'a Path {
        self.how.program
    }

    /// Does something as the starter of runs.
    pub(crate) fn as_starter<T>(
        &mut self,
        act: impl FnOnce(Starter<'_>) -> Result<T>,
    ) -> Result<T> {
        let lock = self.take_lock()?;
        let done = act(Starter { lock: lock.name(), host: &self.host });
        self.lock = Some(lock);
        done
    }

    /// Starts the worker of a run that has its slot already.
    pub(crate) fn carry_on(&mut self, spawner: &dyn Spawner, begun: Begun) -> Result<Dispatched> {
        self.dispatch(spawner, || (), Some(begun))
    }

    /// Starts what may start. `decided` is called when it is decided what that is.
    pub(crate) fn round(
        &mut self,
        spawner: &dyn Spawner,
        decided: impl Fn() + Sync,
    ) -> Result<Dispatched> {
        self.dispatch(spawner, decided, None)
    }

    fn dispatch(
        &mut self,
        spawner: &dyn Spawner,
        decided: impl Fn() + Sync,
        begun: Option<Begun>,
    ) -> Result<Dispatched> {
        let lock = if self.how.dry_run { None } else { Some(self.take_lock()?) };
        let mut dispatcher = Dispatcher::new(self.town, spawner)
            .with_caller(self.how.caller)
            .with_overrides(self.how.overrides)
            .with_dry_run(self.how.dry_run)
            .with_decided(decided);
        if let Some(only) = &self.how.only {
            dispatcher = dispatcher.with_only(only.clone());
        }
        if let Some(lock) = &lock {
            dispatcher = dispatcher.with_starter(lock.name(), &self.host);
        }
        let dispatched = match begun {
            Some(begun) => dispatcher.carry_on(begun)?,
            None => dispatcher.dispatch()?,
        };
        drop(dispatcher);
        // While a starter lives its starts are under way. One that could not be taken back must not seem so, and
        // is recovered when the lock is gone.
        let all_known =
            !dispatched.errors.iter().any(|(_, error)| matches!(error, NotStarted::Operation(_)));
        self.lock = lock.filter(|_| all_known);
        Ok(dispatched)
    }

    fn take_lock(&mut self) -> Result<StarterLock> {
        if let Some(lock) = self.lock.take() {
            return Ok(lock);
        }
        let directory = self.town.starters_directory();
        StarterLock::take(&directory).map_err(|source| OperationError::File {
            action: "lock a file in",
            path: directory,
            source,
        })
    }
}
