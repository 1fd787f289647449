//! Passes of everything that keeps the town going.

use std::path::Path;
use std::time::{Duration, Instant};

use gt_core::decide::Right;
use gt_executors::runs::OnEnd;

use super::dispatcher::{Begun, Dispatched};
use super::scene::Caller;
use super::settings::Overrides;
use crate::reconcile::{self, Starts};
use crate::runs::{RealWorld, Recovered, RunSpawner, World as _};
use crate::schedule::{SlingReport, SlingRequest, SlungToStart, sling_to_start};
use crate::{Result, Town};

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
    is_dry_run: bool,
    /// How many contexts are to start, if they were named.
    wanted: Option<usize>,
    world: RealWorld,
    spawner: RunSpawner,
    starts: Starts<'a>,
    /// A run that has its slot, and needs only its worker.
    begun: Option<Begun>,
    /// When everything was looked after that no start waits for.
    looked_after: Option<Instant>,
}

impl<'a> Passes<'a> {
    /// Nothing happens until a pass is made.
    pub fn new(town: &'a Town, how: Pass<'a>) -> Result<Self> {
        if !how.dry_run {
            town.require_right(Right::Queue, "a dispatch cycle")?;
        }
        let world = RealWorld::of(town)?;
        let spawner = RunSpawner::new(town, how.program.to_owned(), how.on_end.clone());
        let (is_dry_run, wanted) = (how.dry_run, how.only.as_ref().map(Vec::len));
        let starts = Starts::new(town, how, world.host());
        let (begun, looked_after) = (None, None);
        Ok(Self { town, is_dry_run, wanted, world, spawner, starts, begun, looked_after })
    }

    /// Recovers what died, starts what may start (first, if that is named), puts nudges before those who sit at a screen, has notices sent that
    /// are due, and old things looked after. Of passes that follow upon each other at once, only the first does more than
    /// recover and start.
    ///
    /// Only when all that is done are origins asked about work that was on its way: they may take their time, and nothing
    /// that could start waits for that. What the answers change is followed up at once.
    pub fn pass(&mut self) -> Result<(Recovered, Dispatched)> {
        let town = self.town;
        if self.is_dry_run {
            return Ok((Recovered::default(), self.dispatch()?));
        }
        self.spawner.refresh(town)?;
        if self.looked_after.is_some_and(|at| at.elapsed() < LOOK_AFTER_EVERY) {
            return self.round();
        }
        self.looked_after = Some(Instant::now());
        // Whoever asks for certain contexts waits for them, and nearly always nothing has to be recovered for that.
        let first = match self.wanted {
            Some(_) => self.dispatch()?,
            None => Dispatched::default(),
        };
        reconcile::housekeeping(town, &self.world)?;
        if self.wanted.is_none() {
            reconcile::convoys(town)?;
        }
        let (mut recovered, mut dispatched) = if self.wanted == Some(first.dispatched.len()) {
            (reconcile::liveness(town, &self.world)?, first)
        } else {
            let (recovered, later) = self.round()?;
            (recovered, first.followed_by(later))
        };
        reconcile::letters(town)?;
        let on_their_way = reconcile::landings(town)?;
        if on_their_way > 0 {
            let problems = reconcile::landing(town, &self.world)?;
            if reconcile::landings(town)? < on_their_way {
                let later = self.round()?;
                reconcile::letters(town)?;
                recovered = followed_by(recovered, later.0);
                dispatched = dispatched.followed_by(later.1);
            }
            recovered.errors.extend(problems);
        }
        recovered.silent = reconcile::stalls(town, &self.world)?.silent;
        Ok((recovered, dispatched))
    }

    /// Slings, and makes a pass over what was slung if it is to start at once; what came of that.
    pub fn sling(&mut self, request: &SlingRequest) -> Result<(SlingReport, Option<Dispatched>)> {
        let (town, program) = (self.town, self.starts.program());
        let slung =
            self.starts.as_starter(|starter| sling_to_start(town, request, program, starter))?;
        let SlungToStart { report, begun, ahead } = slung;
        if report.deferred || request.rehearsal || report.contexts.is_empty() {
            return Ok((report, None));
        }
        self.wanted = Some(report.contexts.len());
        self.starts.only(report.contexts.clone());
        self.begun = begun;
        let (_, dispatched) = self.pass()?;
        drop(ahead);
        Ok((report, Some(dispatched)))
    }

    fn round(&mut self) -> Result<(Recovered, Dispatched)> {
        let recovered = reconcile::liveness(self.town, &self.world)?;
        Ok((recovered, self.dispatch()?))
    }

    fn dispatch(&mut self) -> Result<Dispatched> {
        match self.begun.take() {
            Some(begun) => self.starts.carry_on(&self.spawner, begun),
            None => self.starts.round(&self.spawner, || ()),
        }
    }
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
        due: later.due,
    }
}

/// Makes one pass.
pub fn pass(town: &Town, how: Pass<'_>) -> Result<(Recovered, Dispatched)> {
    Passes::new(town, how)?.pass()
}
