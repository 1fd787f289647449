//! The engine: one cycle over the town's line.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gt_core::decide::{DispatchOrder, PlanReason, Slots, StartFailure, WaitReason, plan_dispatch};
use gt_core::schedule::{CloseReason, Context, Run, WorkerPlace};
use gt_core::{Bead, BeadId};
use gt_store::{Guard, Lane, Pause, Reader, Writer};

use super::cycle::DispatchCycle;
use super::jitter;
use super::line::Line;
use super::recipe::{Recipe, cook};
use super::scene::{Caller, Scene};
use super::settings::Overrides;
use super::spawner::{SpawnError, Spawner};
use super::start::{Cost, Start, Starter, start_failed_in, start_in};
use super::surroundings::Surroundings;
use crate::beads::BeadFacts;
use crate::{OperationError, Result, Town};

/// One dispatch cycle over the town, with everything that can be told it.
///
/// Any number of them may run at once: what each starts is decided in the transaction that starts it.
///
/// ```
/// use std::sync::Arc;
/// use gt_operations::dispatch::{Dispatcher, MemorySpawner};
/// use gt_operations::{Actor, SystemClock, Town};
///
/// let actor = Actor { name: "me".to_owned(), owner: String::new() };
/// let town = Town::in_memory(actor, Arc::new(SystemClock))?;
/// let spawner = MemorySpawner::default();
/// let done = Dispatcher::new(&town, &spawner)
///     .with_limit(5)
///     .with_parallelism(3)
///     .dispatch()?;
/// assert!(done.dispatched.is_empty() && done.skipped == 0 && done.errors.is_empty());
/// # Ok::<(), gt_operations::OperationError>(())
/// ```
#[must_use = "a dispatcher does nothing until it dispatches"]
pub struct Dispatcher<'a> {
    town: &'a Town,
    spawner: &'a dyn Spawner,
    caller: Caller,
    overrides: Overrides,
    dry_run: bool,
    order: Option<DispatchOrder>,
    only: Option<Vec<u64>>,
    starter: &'a str,
    host: &'a str,
    /// How many were given slots in this cycle.
    begun: AtomicU64,
    /// The polecats that somebody has not left yet.
    taken: Mutex<BTreeSet<WorkerPlace>>,
    pause: Box<dyn Fn(Duration) + Sync + 'a>,
    decided: Box<dyn Fn() + Sync + 'a>,
}

/// Why something that was to start did not.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// Something keeps it now that did not when it was chosen.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Changed(Vec<WaitReason>),
    /// It can never start, and was given up.
    #[error("{1}")]
    GivenUp(CloseReason, String),
    /// Its worker could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The store could not be used.
    #[error(transparent)]
    Operation(#[from] OperationError),
}

impl NotStarted {
    /// Whether something of an earlier run has to go first: nobody is to blame, and it is tried again soon.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Spawn(error) if error.is_busy())
    }
}

/// What a cycle did, or in a dry run would do.
#[derive(Debug, Default)]
pub struct Dispatched {
    /// Who stopped all starts, if somebody did; then nothing was looked at.
    pub paused: Option<Pause>,
    /// How many were waiting.
    pub queued: u64,
    /// How many of them only room was missing for.
    pub ready: u64,
    /// How many runs were live.
    pub live: u32,
    /// The cap that was in force; nothing for none.
    pub cap: Option<u32>,
    /// What was started, in order.
    pub dispatched: Vec<Started>,
    /// How many of the ready the queue's gate kept.
    pub gated: u64,
    /// How many of the others were ready and not started.
    pub skipped: u64,
    /// What decided how many were started.
    pub reason: Option<PlanReason>,
    /// What could not be started, and why.
    pub errors: Vec<(BeadId, NotStarted)>,
}

impl Dispatched {
    /// How many slots were free.
    pub fn slots(&self) -> Slots {
        Slots::of_cap(self.cap, self.live)
    }

    /// What was started by two looks at the line, of which the later one knows better how it stands. As if it had been one:
    /// what the first one started waited, and was not live.
    pub(super) fn followed_by(self, later: Self) -> Self {
        let started = self.dispatched.len();
        let waited = u64::try_from(started).unwrap_or(u64::MAX);
        let is_over = |bead: &BeadId| {
            later.dispatched.iter().any(|started| started.context.bead == *bead)
                || later.errors.iter().any(|(other, _)| other == bead)
        };
        let mut errors = self.errors;
        errors.retain(|(bead, _)| !is_over(bead));
        errors.extend(later.errors);
        Self {
            queued: later.queued.saturating_add(waited),
            ready: later.ready.saturating_add(waited),
            live: later.live.saturating_sub(u32::try_from(started).unwrap_or(u32::MAX)),
            dispatched: self.dispatched.into_iter().chain(later.dispatched).collect(),
            errors,
            paused: later.paused,
            cap: later.cap,
            gated: later.gated,
            skipped: later.skipped,
            reason: later.reason,
        }
    }
}

/// Something that was started, or in a dry run would be.
#[derive(Debug, Clone)]
pub struct Started {
    /// What it is working on.
    pub bead: BeadId,
    /// The context it came from.
    pub context: Context,
    /// Its title.
    pub title: String,
    /// Its run; none in a dry run.
    pub run: Option<Run>,
}

/// How many get their slots in one transaction. More would have slots long before they start.
const RESERVED_AT_ONCE: usize = 64;

/// What a cycle would do with what was proposed.
fn rehearse(proposals: &[Proposal], done: &mut Dispatched) {
    for proposal in proposals {
        match &proposal.recipe {
            Ok(_) => done.dispatched.push(proposal.started()),
            Err(failure) => {
                let why = failure.message().to_owned();
                let given_up = NotStarted::GivenUp(CloseReason::Quarantined, why);
                done.errors.push((proposal.context.bead.clone(), given_up));
            }
        }
    }
}

/// A context with its bead; no bead if that is gone.
type Candidate = (Context, Option<Bead>);

/// What a look at the line found.
enum Round {
    /// Contexts whose date has passed, or is further away than this, which must be woken first.
    Asleep(Duration),
    /// Somebody stopped all starts.
    Paused,
    /// Who may start now, and how things stood.
    Found(Box<Scene>, Vec<Candidate>),
}

/// A run that has its slot, and that nobody has been told of yet.
pub(crate) struct Begun {
    pub(crate) context: Context,
    pub(crate) title: String,
    pub(crate) recipe: std::result::Result<Recipe, StartFailure>,
    pub(crate) run: Run,
}

/// A context that may start, with what it needs to.
struct Proposal {
    context: Context,
    title: String,
    recipe: std::result::Result<Recipe, StartFailure>,
    run: Mutex<Option<Run>>,
}

impl<'a> Dispatcher<'a> {
    /// A cycle by hand over everything that waits.
    pub fn new(town: &'a Town, spawner: &'a dyn Spawner) -> Self {
        Self {
            town,
            spawner,
            caller: Caller::Hand,
            overrides: Overrides::default(),
            dry_run: false,
            order: None,
            only: None,
            starter: "",
            host: "",
            begun: AtomicU64::new(0),
            taken: Mutex::default(),
            pause: Box::new(std::thread::sleep),
            decided: Box::new(|| ()),
        }
    }

    /// Starts nothing, and says what would be started.
    pub fn with_dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Starts at most so many; 0 is no limit.
    pub fn with_limit(mut self, limit: u32) -> Self {
        self.overrides.batch_size = Some(limit);
        self
    }

    /// Has so many starts under way at once; 0 is the default.
    pub fn with_parallelism(mut self, parallelism: u32) -> Self {
        self.overrides.spawn_parallelism = Some(parallelism.into());
        self
    }

    /// Lets them go in this order, whatever the setting says.
    pub fn with_order(mut self, order: DispatchOrder) -> Self {
        self.order = Some(order);
        self
    }

    /// Sets what a person may set differently for one cycle; what it leaves open stays as it was.
    pub fn with_overrides(mut self, overrides: Overrides) -> Self {
        let before = self.overrides;
        self.overrides = Overrides {
            max_polecats: overrides.max_polecats.or(before.max_polecats),
            batch_size: overrides.batch_size.or(before.batch_size),
            spawn_parallelism: overrides.spawn_parallelism.or(before.spawn_parallelism),
        };
        self
    }

    /// Says who runs the cycle.
    pub fn with_caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Looks at these contexts alone.
    pub fn with_only(mut self, contexts: Vec<u64>) -> Self {
        self.only = Some(contexts);
        self
    }

    /// Says who starts the runs: the lock that shows whether they are alive, and their machine.
    pub fn with_starter(mut self, lock: &'a str, host: &'a str) -> Self {
        (self.starter, self.host) = (lock, host);
        self
    }

    /// Waits between starts in another way; a simulator has a clock of its own.
    pub fn with_pause(mut self, pause: impl Fn(Duration) + Sync + 'a) -> Self {
        self.pause = Box::new(pause);
        self
    }

    /// Calls this when it is decided what starts, and only waiting for workers is left: somebody else may decide meanwhile.
    /// With a delay between starts that is never so.
    pub fn with_decided(mut self, decided: impl Fn() + Sync + 'a) -> Self {
        self.decided = Box::new(decided);
        self
    }

    fn scene(&self, reader: &Reader<'_>, around: &Surroundings) -> Result<Scene> {
        let mut scene = self.town.scene(reader, around, &self.overrides, self.caller)?;
        if let Some(order) = self.order {
            scene.settings.order = order;
        }
        scene.taken.clone_from(&self.taken.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(scene)
    }

    /// Runs the cycle: everything that may start now is started, in order.
    pub fn dispatch(&self) -> Result<Dispatched> {
        let around = self.town.surroundings()?;
        let mut done = Dispatched::default();
        let mut tried = HashSet::new();
        self.begun.store(0, Ordering::Relaxed);
        let mut may_sleep = !self.dry_run;
        loop {
            let mut guards = None;
            let round = self.town.read(|reader| {
                let scene = self.scene(reader, &around)?;
                let longest = scene.control.longest_wait;
                guards = Some((scene.host().to_owned(), scene.changed_guards()));
                if may_sleep && !reader.contexts_due(scene.now, scene.now.plus(longest))?.is_empty()
                {
                    return Ok(Round::Asleep(longest));
                }
                self.look(reader, scene, &mut done, &tried)
            })?;
            self.note_guards(guards.unwrap_or_default())?;
            let (scene, candidates) = match round {
                Round::Asleep(longest) => {
                    self.wake(longest)?;
                    may_sleep = false;
                    continue;
                }
                Round::Found(scene, candidates) if !candidates.is_empty() => (scene, candidates),
                Round::Found(..) | Round::Paused => break,
            };
            let proposals = self.prepare(&scene, candidates);
            tried.extend(proposals.iter().map(|proposal| proposal.context.number));
            if self.dry_run {
                rehearse(&proposals, &mut done);
                break;
            }
            self.start_all(&around, &scene, proposals, &mut done)?;
            // Those who did not start leave their slots to the next in line.
            if done.dispatched.len() == tried.len() {
                break;
            }
        }
        let settled = done.gated + done.dispatched.len() as u64 + done.failed();
        done.skipped = done.ready.saturating_sub(settled);
        done.reason = done.reason.map(|reason| match reason {
            _ if done.ready == 0 => PlanReason::None,
            // Nobody looks at lanes without room, so nobody has met whoever stands in them.
            PlanReason::Ready if done.skipped > 0 => PlanReason::Capacity,
            reason => reason,
        });
        let count = done.dispatched.len() as u64;
        if self.begun.load(Ordering::Relaxed) != count && !self.dry_run {
            // Some that had their slots did not start after all.
            self.town.write(|writer| Ok(writer.note_dispatch(count)?))?;
        }
        Ok(done)
    }

    /// Starts the worker of a run that has its slot already.
    pub(crate) fn carry_on(&self, begun: Begun) -> Result<Dispatched> {
        let around = self.town.surroundings()?;
        let Begun { context, title, recipe, run } = begun;
        let proposal = Proposal { context, title, recipe, run: Mutex::new(Some(run)) };
        let mut done = Dispatched { queued: 1, ready: 1, ..Dispatched::default() };
        match self.execute(&around, &proposal) {
            Ok(()) => done.dispatched.push(proposal.started()),
            Err(error) => {
                done.errors.push((proposal.context.bead.clone(), error));
                self.town.write(|writer| Ok(writer.note_dispatch(0)?))?;
            }
        }
        Ok(done)
    }

    /// Writes down which guards of this machine hold up starts since this cycle, so that they let them go on only when there
    /// is clearly room again.
    fn note_guards(&self, (host, guards): (String, Vec<(Guard, bool)>)) -> Result<()> {
        if guards.is_empty() || self.dry_run {
            return Ok(());
        }
        self.town.write(|writer| {
            for (guard, is_shut) in guards {
                writer.set_guard(&host, guard, is_shut)?;
            }
            Ok(())
        })
    }

    /// Wakes contexts whose date has passed, so that they stand in line with the others.
    fn wake(&self, longest: Duration) -> Result<()> {
        self.town.write(|writer| {
            let now = writer.now();
            for context in writer.contexts_due(now, now.plus(longest))? {
                if context.next_attempt_at.is_some_and(|at| at > now) {
                    // A date that only a clock that jumped can have set.
                    let (failures, why) = (context.failures, context.last_failure.as_str());
                    writer.postpone_context(&context, failures, why, None)?;
                }
            }
            Ok(writer.wake_contexts(now)?)
        })
    }

    /// Looks at the line: who may start now, besides those who were tried. The first look also says how
    /// many wait.
    fn look(
        &self,
        reader: &Reader<'_>,
        mut scene: Scene,
        done: &mut Dispatched,
        tried: &HashSet<u64>,
    ) -> Result<Round> {
        if let Some((by, at)) = scene.control.paused.clone() {
            done.paused = Some(Pause { by, at });
            return Ok(Round::Paused);
        }
        if tried.is_empty() {
            let waiting = Waiting::count(reader, &scene)?;
            (done.queued, done.ready) = (waiting.queued, waiting.ready);
            done.gated = waiting.gated;
            done.live = scene.occupancy.live();
            done.cap = scene.settings.cap_in_force();
            let ready = usize::try_from(done.ready).unwrap_or(usize::MAX);
            let plan = plan_dispatch(done.slots(), scene.settings.batch_size, ready);
            done.reason = Some(plan.reason);
        }
        let batch = scene.settings.batch_size as usize;
        let mut left = if batch == 0 { usize::MAX } else { batch.saturating_sub(tried.len()) };
        let mut line = match &self.only {
            None => Line::open(reader, &scene)?,
            Some(numbers) => {
                // Whoever names contexts has just made them, so they stand together.
                let (first, last) = (numbers.iter().min(), numbers.iter().max());
                let (first, last) = (first.copied().unwrap_or(1), last.copied().unwrap_or(0));
                let count = usize::try_from((last + 1).saturating_sub(first)).unwrap_or(usize::MAX);
                let mut contexts = reader.open_contexts_after(first.saturating_sub(1), count)?;
                contexts.retain(|context| numbers.contains(&context.number));
                Line::of(&scene, contexts)
            }
        };
        let mut candidates = Vec::new();
        let supposed = &mut scene.clone();
        while let Some(context) = line.next(reader, supposed)? {
            if tried.contains(&context.number) {
                continue;
            }
            let bead = reader.bead(&context.bead)?;
            let reasons = match &bead {
                Some(bead) => {
                    let facts = BeadFacts::of_bead(reader, bead)?;
                    let mut reasons = supposed.reasons(&context, bead, &facts);
                    // Whoever can never start is let through, to be told so.
                    reasons.retain(|reason| !matches!(reason, WaitReason::RigGone(_)));
                    reasons
                }
                None => Vec::new(),
            };
            if !reasons.is_empty() {
                continue;
            }
            if !supposed.admission(&context).is_empty() {
                continue;
            }
            if left == 0 {
                break;
            }
            left -= 1;
            supposed.suppose_started(&context);
            candidates.push((context, bead));
        }
        scene.occupancy = supposed.occupancy.clone();
        Ok(Round::Found(Box::new(scene), candidates))
    }

    /// Cooks what each needs, before any transaction: that reads files.
    fn prepare(&self, scene: &Scene, candidates: Vec<Candidate>) -> Vec<Proposal> {
        let prepare = |(context, bead): Candidate| {
            let gone = || StartFailure::Permanent(format!("the rig {} is gone", context.rig));
            let recipe = match (&bead, scene.rig(&context.rig)) {
                (Some(bead), Some(rig)) => cook(self.town, rig, bead, &context.parameters)
                    .map_err(|error| StartFailure::Permanent(error.to_string())),
                _ => Err(gone()),
            };
            let title = bead.map(|bead| bead.title.to_string()).unwrap_or_default();
            Proposal { context, title, recipe, run: Mutex::new(None) }
        };
        candidates.into_iter().map(prepare).collect()
    }

    /// Starts what was proposed, a handful at a time: a slot is taken only by what is about to start.
    fn start_all(
        &self,
        around: &Surroundings,
        scene: &Scene,
        mut proposals: Vec<Proposal>,
        done: &mut Dispatched,
    ) -> Result<()> {
        let delay = scene.settings.spawn_delay;
        while !proposals.is_empty() {
            let rest = proposals.split_off(proposals.len().min(RESERVED_AT_ONCE));
            if !delay.is_zero() {
                let left = if done.dispatched.is_empty() { self.left_of(delay)? } else { delay };
                if !left.is_zero() {
                    (self.pause)(left);
                }
            }
            self.start_some(around, scene, std::mem::replace(&mut proposals, rest), done)?;
        }
        Ok(())
    }

    /// How much is left of the delay after the last start of an earlier cycle. Whoever makes one cycle after the other keeps
    /// to it; a person who asks for one waits only between those that it starts.
    fn left_of(&self, delay: Duration) -> Result<Duration> {
        if self.caller != Caller::Daemon {
            return Ok(Duration::ZERO);
        }
        let last = self.town.read(|reader| Ok(reader.scheduler_state()?.last_dispatch))?;
        Ok(match last {
            Some((at, count)) if count > 0 => delay.saturating_sub(self.town.now().since(at)),
            _ => Duration::ZERO,
        })
    }

    /// Starts what was proposed. Without a delay between starts all of them get their slots in one
    /// transaction, in order, and are spawned side by side.
    fn start_some(
        &self,
        around: &Surroundings,
        scene: &Scene,
        proposals: Vec<Proposal>,
        done: &mut Dispatched,
    ) -> Result<()> {
        let settings = &scene.settings;
        let pending = if settings.spawn_delay.is_zero() {
            let reserved = self.reserve_all(around, proposals, done)?;
            (self.decided)();
            reserved
        } else {
            proposals
        };
        let pending = Mutex::new(Some(pending));
        let take = || {
            Ok(pending.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default())
        };
        let mut report = DispatchCycle::new(
            || Ok(Slots::Unlimited),
            take,
            |proposal: &Proposal| self.execute(around, proposal),
        )
        .spawn_delay(settings.spawn_delay)
        .parallelism(settings.spawn_parallelism)
        .pause(|time| (self.pause)(time))
        .run()
        .map_err(|error| match error {
            NotStarted::Operation(error) => error,
            other => OperationError::rejected(other.to_string()),
        })?;
        done.dispatched.extend(report.dispatched.iter().map(Proposal::started));
        for (proposal, error) in report.failed.drain(..) {
            done.errors.push((proposal.context.bead.clone(), error));
        }
        Ok(())
    }

    fn reserve_all(
        &self,
        around: &Surroundings,
        proposals: Vec<Proposal>,
        done: &mut Dispatched,
    ) -> Result<Vec<Proposal>> {
        let mut scene = None;
        let numbers: Vec<usize> = (0..proposals.len()).collect();
        let answers = self.town.write_each(numbers, |writer, at| {
            let scene = self.scene_in(writer, around, &mut scene)?;
            self.begin(writer, scene, &proposals[at])
        })?;
        let mut reserved = Vec::with_capacity(proposals.len());
        for (proposal, answer) in proposals.into_iter().zip(answers) {
            match proposal.reserved(answer) {
                Ok(()) => reserved.push(proposal),
                Err(error) => done.errors.push((proposal.context.bead.clone(), error)),
            }
        }
        Ok(reserved)
    }

    fn scene_in<'s>(
        &self,
        writer: &Writer<'_>,
        around: &Surroundings,
        scene: &'s mut Option<Scene>,
    ) -> Result<&'s mut Scene> {
        // Nobody else writes while this transaction lasts, so it is read once.
        let read = match scene.take() {
            Some(read) => read,
            None => self.scene(writer, around)?,
        };
        Ok(scene.insert(read))
    }

    /// Gives a proposal its slot. Together with it is written down that this cycle begins one more, because a
    /// commit of its own would cost as much as the start.
    fn begin(
        &self,
        writer: &mut Writer<'_>,
        scene: &mut Scene,
        proposal: &Proposal,
    ) -> Result<Start> {
        let starter = Starter { lock: self.starter, host: self.host };
        let start = start_in(writer, scene, proposal.context.number, &proposal.recipe, starter)?;
        if matches!(start, Start::Begun(_)) {
            writer.note_dispatch(self.begun.fetch_add(1, Ordering::Relaxed) + 1)?;
        }
        Ok(start)
    }

    /// Gives a proposal its slot, unless it has one, and starts its worker.
    fn execute(
        &self,
        around: &Surroundings,
        proposal: &Proposal,
    ) -> std::result::Result<(), NotStarted> {
        if proposal.run().is_none() {
            let answer = self.town.write(|writer| {
                let mut scene = self.scene(writer, around)?;
                self.begin(writer, &mut scene, proposal)
            });
            proposal.reserved(answer)?;
        }
        loop {
            let Some(run) = proposal.run() else { return Ok(()) };
            if !Run::takes_slot(run.executor) {
                return Ok(());
            }
            let Err(error) = self.spawner.spawn_from(self.town, &run) else { return Ok(()) };
            // Whoever did not ask for that very place is not made to wait for it.
            let elsewhere = match (&error, &run.place) {
                (SpawnError::Taken(_), Some(place)) if proposal.context.place.is_none() => {
                    let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
                    taken.insert(place.clone())
                }
                _ => false,
            };
            let cost = match &error {
                _ if elsewhere => Cost::Nothing,
                SpawnError::Busy(_) | SpawnError::Taken(_) => Cost::Patience,
                SpawnError::Failed(_) => Cost::Counted,
            };
            let (why, jitter) = (error.to_string(), jitter(&run.id.to_string()));
            let again = self.town.write(|writer| {
                let taken_back = start_failed_in(writer, &run, &why, &cost, jitter)?;
                if !elsewhere || !taken_back {
                    return Ok(None);
                }
                // In the same transaction, so that nobody takes its slot in between.
                let mut scene = self.scene(writer, around)?;
                Ok(Some(self.begin(writer, &mut scene, proposal)?))
            })?;
            match again {
                Some(start) => proposal.reserved(Ok(start))?,
                None => return Err(error.into()),
            }
        }
    }
}

impl Proposal {
    fn run(&self) -> Option<Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn reserved(&self, answer: Result<Start>) -> std::result::Result<(), NotStarted> {
        match answer? {
            Start::Begun(run) => {
                *self.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(*run);
                Ok(())
            }
            Start::Changed(reasons) => Err(NotStarted::Changed(reasons)),
            Start::GivenUp(reason, why) => Err(NotStarted::GivenUp(reason, why)),
        }
    }

    fn started(&self) -> Started {
        Started {
            bead: self.context.bead.clone(),
            context: self.context.clone(),
            title: self.title.clone(),
            run: self.run(),
        }
    }
}

impl Dispatched {
    /// How many were ready and turned out not to start.
    fn failed(&self) -> u64 {
        self.errors.len() as u64
    }
}

/// How many wait, and how many of them only for room or for the scheduler as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) queued: u64,
    pub(crate) ready: u64,
    /// How many of the ready the queue's gate keeps.
    pub(crate) gated: u64,
    /// Queued and ready for each rig.
    pub(crate) rigs: HashMap<String, (u64, u64)>,
}

impl Waiting {
    /// Counts by lanes, so that it costs the same however many wait.
    pub(crate) fn count(reader: &Reader<'_>, scene: &Scene) -> Result<Self> {
        let mut waiting = Self::default();
        let lanes = reader.lanes()?;
        for lane in &lanes {
            let ready = if scene.rig_starts(lane) { lane.awake } else { 0 };
            waiting.add(scene, lane, lane.queued, ready);
        }
        let far = scene.now.plus(scene.control.longest_wait);
        for context in reader.contexts_due(scene.now, far)? {
            let lane = Lane::of(&context);
            let Some(row) = reader.bead(&context.bead)? else { continue };
            let facts = BeadFacts::of_bead(reader, &row)?;
            let reasons = scene.reasons(&context, &row, &facts);
            if reasons.iter().all(WaitReason::is_control) && scene.rig_starts(&lane) {
                waiting.add(scene, &lane, 0, 1);
            }
        }
        Ok(waiting)
    }

    fn add(&mut self, scene: &Scene, lane: &Lane, queued: u64, ready: u64) {
        self.queued += queued;
        self.ready += ready;
        if lane.gated && !scene.control.gate_open {
            self.gated += ready;
        }
        let of_rig = self.rigs.entry(lane.rig.to_string()).or_default();
        of_rig.0 += queued;
        of_rig.1 += ready;
    }
}
