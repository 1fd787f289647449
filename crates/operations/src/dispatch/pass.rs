//! Passes of everything that keeps the town going.

use std::path::Path;
use std::time::{Duration, Instant};

use gt_executors::runs::{OnEnd, StarterLock};

use super::dispatcher::{Dispatched, Dispatcher, NotStarted};
use super::scene::Caller;
use super::settings::Overrides;
use crate::landing::resume;
use crate::messages::deliver_waiting;
use crate::outbox::catch_up;
use crate::runs::{RealWorld, Recovered, RunSpawner, World as _, recover, stalls};
use crate::trees::complete_moves;
use crate::{OperationError, Result, Town, retention};

/// How passes are made.
#[derive(Clone)]
pub struct Pass<'a> {
    /// The program that supervises runs: this one.
    pub program: &'a Path,
    /// Who makes them.
    pub caller: Caller,
    /// What they may set differently.
    pub overrides: Overrides,
    /// Nothing is changed.
    pub dry_run: bool,
    /// These contexts alone.
    pub only: Option<Vec<u64>>,
    /// Told when a run that was started here has ended.
    pub on_end: Option<OnEnd>,
}

impl<'a> Pass<'a> {
    /// A pass by hand over everything that waits.
    pub fn by_hand(program: &'a Path) -> Self {
        let (caller, overrides) = (Caller::Hand, Overrides::default());
        Self { program, caller, overrides, dry_run: false, only: None, on_end: None }
    }
}

/// How long apart everything is looked after that no start waits for. Where runs are short there are hundreds of passes
/// in a second, and each of these things costs a read.
const LOOK_AFTER_EVERY: Duration = Duration::from_secs(1);

/// Makes passes. Any number may be made at once, by anybody; whoever makes many keeps what can be kept between
/// them, above all the supervisors.
pub struct Passes<'a> {
    town: &'a Town,
    how: Pass<'a>,
    world: RealWorld,
    spawner: RunSpawner,
    lock: Option<StarterLock>,
    /// When everything was looked after that no start waits for.
    looked_after: Option<Instant>,
}

impl<'a> Passes<'a> {
    /// Nothing happens until a pass is made.
    pub fn new(town: &'a Town, how: Pass<'a>) -> Result<Self> {
        let world = RealWorld::of(town)?;
        let spawner = RunSpawner::new(town, how.program.to_owned(), how.on_end.clone());
        Ok(Self { town, how, world, spawner, lock: None, looked_after: None })
    }

    /// Recovers what died, starts what may start, puts nudges before those who sit at a screen, has notices sent that
    /// are due, and old things looked after. Of passes that follow upon each other at once, only the first does more than
    /// recover and start.
    ///
    /// Only when all that is done are origins asked about work that was on its way: they may take their time, and nothing
    /// that could start waits for that. What the answers change is followed up at once.
    pub fn pass(&mut self) -> Result<(Recovered, Dispatched)> {
        let town = self.town;
        if self.how.dry_run {
            return Ok((Recovered::default(), self.dispatch()?));
        }
        self.spawner.refresh(town)?;
        if self.looked_after.is_some_and(|at| at.elapsed() < LOOK_AFTER_EVERY) {
            return Ok((recover(town, &self.world)?, self.dispatch()?));
        }
        self.looked_after = Some(Instant::now());
        complete_moves(town)?;
        let (mut recovered, mut dispatched) = self.round()?;
        let on_their_way = landings(town)?;
        if on_their_way > 0 {
            let problems = resume(town, &self.world)?;
            if landings(town)? < on_their_way {
                let later = self.round()?;
                recovered = followed_by(recovered, later.0);
                dispatched = dispatched.followed_by(later.1);
            }
            recovered.errors.extend(problems);
        }
        recovered.silent = stalls::look(town, &self.world)?.silent;
        retention::catch_up(town, self.world.host())?;
        Ok((recovered, dispatched))
    }

    fn round(&mut self) -> Result<(Recovered, Dispatched)> {
        let town = self.town;
        let recovered = recover(town, &self.world)?;
        let dispatched = self.dispatch()?;
        deliver_waiting(town)?;
        catch_up(town)?;
        Ok((recovered, dispatched))
    }

    fn dispatch(&mut self) -> Result<Dispatched> {
        let lock = if self.how.dry_run { None } else { Some(self.take_lock()?) };
        let mut dispatcher = Dispatcher::new(self.town, &self.spawner)
            .with_caller(self.how.caller)
            .with_overrides(self.how.overrides)
            .with_dry_run(self.how.dry_run);
        if let Some(only) = &self.how.only {
            dispatcher = dispatcher.with_only(only.clone());
        }
        if let Some(lock) = &lock {
            dispatcher = dispatcher.with_starter(lock.name(), self.world.host());
        }
        let dispatched = dispatcher.dispatch()?;
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

/// How many pushes there are whose end nobody has seen.
fn landings(town: &Town) -> Result<usize> {
    town.read(|reader| Ok(reader.landing_runs()?.len()))
}

/// What two passes of recovery did. What was wrong the first time is put right now, or is still wrong.
fn followed_by(first: Recovered, later: Recovered) -> Recovered {
    Recovered {
        restarted: [first.restarted, later.restarted].concat(),
        lost: [first.lost, later.lost].concat(),
        finished: [first.finished, later.finished].concat(),
        errors: later.errors,
        waiting: later.waiting,
        silent: later.silent,
        stale: first.stale + later.stale,
    }
}

/// Makes one pass.
pub fn pass(town: &Town, how: Pass<'_>) -> Result<(Recovered, Dispatched)> {
    Passes::new(town, how)?.pass()
}
