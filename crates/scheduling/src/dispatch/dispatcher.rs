//! The engine: one cycle over the town's line.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gt_core::decide::{DispatchOrder, PlanReason, Slots, StartFailure, WaitReason, plan_dispatch};
use gt_core::schedule::{CloseReason, Context, Run, WorkerPlace};
use gt_core::{Bead, BeadId, Timestamp};
use gt_executors::runs::StarterLock;
use gt_store::{Guard, Lane, Pause, Reader, Writer};

use super::cycle::DispatchCycle;
use super::dispatch_inputs::DispatchInputs;
use super::merged_lanes::MergedLanes;
use super::recipe::{Recipe, cook};
use super::snapshot::{CycleCaller, SchedulingSnapshot};
use super::spawner::{SpawnError, Spawner};
use super::start::{Start, StartFailureCost, Starter, move_start_in, start_failed_in, start_in};
use crate::host_lease::renew_to_start;
use gt_beads::bead_facts::BeadFacts;
use gt_core::jitter;
use gt_town::scheduler_settings::Overrides;
use gt_town::{OperationError, Result, Town};

/// The dispatcher of a town: each call of [`Dispatcher::dispatch`] is one cycle over everything that waits. The daemon,
/// `gt scheduler run` and `gt sling` use it.
///
/// Any number of cycles may run at once: each start is decided in the transaction that writes its run.
///
/// ```
/// use std::sync::Arc;
/// use gt_scheduling::dispatch::{Dispatcher, MemorySpawner};
/// use gt_scheduling::Consequences;
/// use gt_town::{Actor, SystemClock, Town};
///
/// let actor = Actor { name: "me".to_owned(), owner: String::new() };
/// let town = Town::in_memory(actor, Arc::new(SystemClock), Arc::new(Consequences))?;
/// let spawner = MemorySpawner::default();
/// let done = Dispatcher::new(&town, &spawner)
///     .with_limit(5)
///     .with_parallelism(3)
///     .dispatch()?;
/// assert!(done.dispatched.is_empty() && done.skipped == 0 && done.errors.is_empty());
/// # Ok::<(), gt_town::OperationError>(())
/// ```
#[must_use = "a dispatcher does nothing until it dispatches"]
pub struct Dispatcher<'a> {
    town: &'a Town,
    spawner: &'a dyn Spawner,
    caller: CycleCaller,
    overrides: Overrides,
    dry_run: bool,
    counts: bool,
    order: Option<DispatchOrder>,
    only: Option<Vec<u64>>,
    starter: StarterName<'a>,
    host: &'a str,
    /// How many were given slots in this cycle.
    begun: AtomicU64,
    /// The polecats whose previous run has not left them yet.
    taken: Mutex<BTreeSet<WorkerPlace>>,
    pause: Box<dyn Fn(Duration) + Sync + 'a>,
}

/// The name that a starting run records, so that recovery can tell whether its starter is alive.
enum StarterName<'a> {
    /// A name that the caller answers for.
    Given(&'a str),
    /// A lock file of the town, taken by the first cycle and kept for the next.
    Locked(Mutex<Option<StarterLock>>),
}

/// The data that every step of a cycle needs.
struct CycleData<'c> {
    inputs: DispatchInputs,
    starter: Starter<'c>,
    decided: &'c (dyn Fn() + Sync),
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
    /// Whether something of an earlier run has to go first. That counts as no failure, and is tried again soon.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Spawn(error) if error.is_busy())
    }
}

/// The result of a cycle, or of a dry run.
#[derive(Debug, Default)]
pub struct DispatchResult {
    /// The pause of all starts, if there is one; then the cycle looked at nothing.
    pub paused: Option<Pause>,
    /// How many were waiting.
    pub queued: u64,
    /// How many of them only room was missing for.
    pub ready: u64,
    /// How many runs were live.
    pub live: u32,
    /// The cap that was in force; nothing for none.
    pub cap: Option<u32>,
    /// The started runs, in order.
    pub dispatched: Vec<StartedRun>,
    /// How many of the ready the queue's gate kept.
    pub gated: u64,
    /// How many of the others were ready and not started.
    pub skipped: u64,
    /// The limit that decided how many were started.
    pub reason: Option<PlanReason>,
    /// The beads that could not be started, and why.
    pub errors: Vec<(BeadId, NotStarted)>,
    /// When another host has had the first try at something that this one would start.
    pub due: Option<Timestamp>,
}

impl DispatchResult {
    /// How many slots were free.
    pub fn slots(&self) -> Slots {
        Slots::of_cap(self.cap, self.live)
    }

    /// Merges two passes of a cycle into one result. The later pass has the current counts; the runs that the first
    /// pass started count as queued, not as live.
    #[must_use]
    pub fn followed_by(self, later: Self) -> Self {
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
            due: later.due,
        }
    }
}

/// Something that was started, or in a dry run would be.
#[derive(Debug, Clone)]
pub struct StartedRun {
    /// The bead that it works on.
    pub bead: BeadId,
    /// The context it came from.
    pub context: Context,
    /// Its title.
    pub title: String,
    /// Its run; none in a dry run.
    pub run: Option<Run>,
}

/// How many contexts get their slots in one transaction. More would have slots long before they start.
const RESERVATIONS_PER_TRANSACTION_MAX: usize = 64;

/// Fills in the result of a dry run of these proposals.
fn rehearse(proposals: &[ProposedStart], done: &mut DispatchResult) {
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
type DispatchCandidate = (Context, Option<Bead>);

/// The result of a look at the line.
enum CandidateSearch {
    /// Contexts whose date has passed, or is further away than this, which must be woken first.
    Asleep(Duration),
    /// All starts are paused.
    Paused,
    /// The candidates that may start now, and the snapshot that decided it.
    Found(Box<SchedulingSnapshot>, Vec<DispatchCandidate>),
}

/// A run that has its slot, and that no worker has been told of yet.
pub struct ReservedRun {
    /// The context that it comes from.
    pub context: Context,
    /// The title of its bead.
    pub title: String,
    /// The steps of its worker, or why there are none.
    pub recipe: std::result::Result<Recipe, StartFailure>,
    /// The run that has its slot.
    pub run: Run,
}

/// A context that may start, with what it needs to.
struct ProposedStart {
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
            caller: CycleCaller::Hand,
            overrides: Overrides::default(),
            dry_run: false,
            counts: true,
            order: None,
            only: None,
            starter: StarterName::Given(""),
            host: "",
            begun: AtomicU64::new(0),
            taken: Mutex::default(),
            pause: Box::new(std::thread::sleep),
        }
    }

    /// Starts nothing, and says what would be started.
    pub fn with_dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Says whether the cycle counts waiting contexts. The cost grows with their number; without it, `queued`,
    /// `ready`, `gated` and `skipped` stay zero.
    pub fn with_counts(mut self, counts: bool) -> Self {
        self.counts = counts;
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

    /// Starts contexts in this order instead of the order in the settings.
    pub fn with_order(mut self, order: DispatchOrder) -> Self {
        self.order = Some(order);
        self
    }

    /// Sets the overrides of a person for one cycle; unset fields stay as they were.
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
    pub fn with_caller(mut self, caller: CycleCaller) -> Self {
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
        (self.starter, self.host) = (StarterName::Given(lock), host);
        self
    }

    /// Names a lock file as the starter of runs on this machine. It is held while this dispatcher lives. After a cycle whose
    /// outcome is not known it is released, so that recovery takes back what that cycle had begun.
    pub fn with_starter_lock(mut self, host: &'a str) -> Self {
        (self.starter, self.host) = (StarterName::Locked(Mutex::default()), host);
        self
    }

    /// Waits between starts in another way; a simulator has a clock of its own.
    pub fn with_pause(mut self, pause: impl Fn(Duration) + Sync + 'a) -> Self {
        self.pause = Box::new(pause);
        self
    }

    /// Whether nothing is started.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// How many contexts it looks at, if they are named.
    pub fn named(&self) -> Option<usize> {
        self.only.as_ref().map(Vec::len)
    }

    /// Calls `act` with the starter that runs are to name. If that fails or panics, a lock is released.
    pub fn as_starter<T>(&self, act: impl FnOnce(Starter<'_>) -> Result<T>) -> Result<T> {
        if !self.dry_run {
            // A host starts nothing before it has renewed its lease.
            renew_to_start(self.town)?;
        }
        let locked = match &self.starter {
            StarterName::Locked(kept) if !self.dry_run => kept,
            StarterName::Locked(_) => return act(Starter { lock: "", host: self.host }),
            StarterName::Given(name) => return act(Starter { lock: name, host: self.host }),
        };
        let kept = locked.lock().unwrap_or_else(PoisonError::into_inner).take();
        let lock = if let Some(lock) = kept {
            lock
        } else {
            let directory = self.town.starters_directory();
            StarterLock::take(&directory).map_err(|source| OperationError::File {
                action: "lock a file in",
                path: directory,
                source,
            })?
        };
        let done = act(Starter { lock: lock.name(), host: self.host })?;
        *locked.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        Ok(done)
    }

    /// Releases the lock after a cycle in which the store failed: a run that could not be taken back must not seem to be
    /// starting.
    fn release_if_unknown(&self, done: &DispatchResult) {
        let is_unknown =
            done.errors.iter().any(|(_, error)| matches!(error, NotStarted::Operation(_)));
        if let (StarterName::Locked(kept), true) = (&self.starter, is_unknown) {
            kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    fn snapshot(&self, reader: &Reader<'_>, inputs: &DispatchInputs) -> Result<SchedulingSnapshot> {
        let mut snapshot = SchedulingSnapshot::read(
            reader,
            inputs,
            &self.overrides,
            self.caller,
            self.town.now(),
        )?;
        if let Some(order) = self.order {
            snapshot.settings.order = order;
        }
        snapshot.yields = self.caller == CycleCaller::Daemon;
        snapshot.taken.clone_from(&self.taken.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(snapshot)
    }

    /// Runs the cycle: everything that may start now is started, in order.
    pub fn dispatch(&self) -> Result<DispatchResult> {
        self.dispatch_then(&|| ())
    }

    /// The same. `decided` is called as soon as the starts are decided and only their workers are waited for: another
    /// dispatcher may decide meanwhile. With a delay between starts it is never called.
    pub fn dispatch_then(&self, decided: &(dyn Fn() + Sync)) -> Result<DispatchResult> {
        self.in_cycle(decided, |cycle| self.start_admitted(cycle))
    }

    /// Starts the worker of a run that has its slot already.
    pub fn start_begun(&self, begun: ReservedRun) -> Result<DispatchResult> {
        let ReservedRun { context, title, recipe, run } = begun;
        let proposal = ProposedStart { context, title, recipe, run: Mutex::new(Some(run)) };
        let mut done = DispatchResult { queued: 1, ready: 1, ..DispatchResult::default() };
        self.in_cycle(&|| (), |cycle| {
            match self.execute(cycle, &proposal) {
                Ok(()) => done.dispatched.push(proposal.started()),
                Err(error) => {
                    done.errors.push((proposal.context.bead.clone(), error));
                    self.town.write(|writer| Ok(writer.note_dispatch(0)?))?;
                }
            }
            Ok(done)
        })
    }

    fn in_cycle(
        &self,
        decided: &(dyn Fn() + Sync),
        act: impl FnOnce(&CycleData<'_>) -> Result<DispatchResult>,
    ) -> Result<DispatchResult> {
        let inputs = DispatchInputs::read(self.town)?;
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let done = self.as_starter(|starter| act(&CycleData { inputs, starter, decided }))?;
        self.release_if_unknown(&done);
        Ok(done)
    }

    fn start_admitted(&self, cycle: &CycleData<'_>) -> Result<DispatchResult> {
        let mut done = DispatchResult::default();
        let mut tried = HashSet::new();
        self.begun.store(0, Ordering::Relaxed);
        let mut may_sleep = !self.dry_run;
        loop {
            let mut guards = None;
            let round = self.town.read(|reader| {
                let snapshot = self.snapshot(reader, &cycle.inputs)?;
                let longest = snapshot.control.longest_wait;
                guards = Some((snapshot.host().to_owned(), snapshot.changed_guards()));
                if may_sleep
                    && !reader.contexts_due(snapshot.now, snapshot.now.plus(longest))?.is_empty()
                {
                    return Ok(CandidateSearch::Asleep(longest));
                }
                self.find_candidates(reader, snapshot, &mut done, &tried)
            })?;
            self.note_guards(guards.unwrap_or_default())?;
            let (snapshot, candidates) = match round {
                CandidateSearch::Asleep(longest) => {
                    self.wake(longest)?;
                    may_sleep = false;
                    continue;
                }
                CandidateSearch::Found(snapshot, candidates) if !candidates.is_empty() => {
                    (snapshot, candidates)
                }
                CandidateSearch::Found(..) | CandidateSearch::Paused => break,
            };
            let proposals = self.prepare(&snapshot, candidates);
            tried.extend(proposals.iter().map(|proposal| proposal.context.number));
            if self.dry_run {
                rehearse(&proposals, &mut done);
                break;
            }
            self.start_all(cycle, &snapshot, proposals, &mut done)?;
            // Contexts that did not start leave their slots to the next in line.
            if done.dispatched.len() == tried.len() {
                break;
            }
        }
        let settled = done.gated + done.dispatched.len() as u64 + done.failed();
        done.skipped = done.ready.saturating_sub(settled);
        done.reason = done.reason.map(|reason| match reason {
            _ if done.ready == 0 && self.counts => PlanReason::None,
            // Lanes without room are not read, so the contexts in them were never evaluated.
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

    /// Looks at the line for contexts that may start now, besides those that were tried. The first look also counts
    /// how many wait.
    fn find_candidates(
        &self,
        reader: &Reader<'_>,
        mut snapshot: SchedulingSnapshot,
        done: &mut DispatchResult,
        tried: &HashSet<u64>,
    ) -> Result<CandidateSearch> {
        if let Some((by, at)) = snapshot.control.paused.clone() {
            done.paused = Some(Pause { by, at });
            return Ok(CandidateSearch::Paused);
        }
        if tried.is_empty() {
            done.live = snapshot.occupancy.live();
            done.cap = snapshot.settings.cap_in_force();
        }
        if tried.is_empty() && self.counts {
            let waiting = WaitingCounts::count(reader, &snapshot)?;
            (done.queued, done.ready) = (waiting.queued, waiting.ready);
            done.gated = waiting.gated;
            let ready = usize::try_from(done.ready).unwrap_or(usize::MAX);
            let plan = plan_dispatch(done.slots(), snapshot.settings.batch_size, ready);
            done.reason = Some(plan.reason);
        }
        let batch = snapshot.settings.batch_size as usize;
        let mut left = if batch == 0 { usize::MAX } else { batch.saturating_sub(tried.len()) };
        let mut line = match &self.only {
            None => MergedLanes::open(reader, &snapshot)?,
            Some(numbers) => {
                // A caller that names contexts has just made them, so their numbers are close together.
                let (first, last) = (numbers.iter().min(), numbers.iter().max());
                let (first, last) = (first.copied().unwrap_or(1), last.copied().unwrap_or(0));
                let count = usize::try_from((last + 1).saturating_sub(first)).unwrap_or(usize::MAX);
                let mut contexts = reader.open_contexts_after(first.saturating_sub(1), count)?;
                contexts.retain(|context| numbers.contains(&context.number));
                MergedLanes::of(&snapshot, contexts)
            }
        };
        let mut candidates = Vec::new();
        let supposed = &mut snapshot.clone();
        while let Some(context) = line.next(reader, supposed)? {
            if tried.contains(&context.number) {
                continue;
            }
            let bead = reader.bead(&context.bead)?;
            let reasons = match &bead {
                Some(bead) => {
                    let facts = BeadFacts::of_bead(reader, bead)?;
                    let mut reasons = supposed.reasons(&context, bead, &facts);
                    // A context that can never start is let through, so that its start reports the reason.
                    reasons.retain(|reason| !matches!(reason, WaitReason::RigGone(_)));
                    reasons
                }
                None => Vec::new(),
            };
            if !reasons.is_empty() {
                continue;
            }
            let refusals = supposed.admission(&context);
            if !refusals.is_empty() {
                if let [WaitReason::PreferredHost(_, until)] = refusals.as_slice() {
                    done.due = Some(done.due.map_or(*until, |due| due.min(*until)));
                }
                continue;
            }
            if left == 0 {
                done.reason.get_or_insert(PlanReason::Batch);
                break;
            }
            left -= 1;
            supposed.count_as_started(&context);
            candidates.push((context, bead));
        }
        snapshot.occupancy = supposed.occupancy.clone();
        Ok(CandidateSearch::Found(Box::new(snapshot), candidates))
    }

    /// Cooks what each needs, before any transaction: that reads files.
    fn prepare(
        &self,
        snapshot: &SchedulingSnapshot,
        candidates: Vec<DispatchCandidate>,
    ) -> Vec<ProposedStart> {
        let prepare = |(context, bead): DispatchCandidate| {
            let gone = || StartFailure::Permanent(format!("the rig {} is gone", context.rig));
            let recipe = match (&bead, snapshot.rig(&context.rig)) {
                (Some(bead), Some(rig)) => cook(self.town, rig, bead, &context.parameters)
                    .map_err(|error| StartFailure::Permanent(error.to_string())),
                _ => Err(gone()),
            };
            let title = bead.map(|bead| bead.title.to_string()).unwrap_or_default();
            ProposedStart { context, title, recipe, run: Mutex::new(None) }
        };
        candidates.into_iter().map(prepare).collect()
    }

    /// Starts what was proposed, a handful at a time: a slot is taken only by what is about to start.
    fn start_all(
        &self,
        cycle: &CycleData<'_>,
        snapshot: &SchedulingSnapshot,
        mut proposals: Vec<ProposedStart>,
        done: &mut DispatchResult,
    ) -> Result<()> {
        let delay = snapshot.settings.spawn_delay;
        while !proposals.is_empty() {
            let rest = proposals.split_off(proposals.len().min(RESERVATIONS_PER_TRANSACTION_MAX));
            if !delay.is_zero() {
                let left =
                    if done.dispatched.is_empty() { self.remaining_delay(delay)? } else { delay };
                if !left.is_zero() {
                    (self.pause)(left);
                }
            }
            self.start_some(cycle, snapshot, std::mem::replace(&mut proposals, rest), done)?;
        }
        Ok(())
    }

    /// The rest of the delay after the last start of an earlier cycle. The daemon keeps to it, because it runs one
    /// cycle after another; a person's cycle waits only between its own starts.
    fn remaining_delay(&self, delay: Duration) -> Result<Duration> {
        if self.caller != CycleCaller::Daemon {
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
        cycle: &CycleData<'_>,
        snapshot: &SchedulingSnapshot,
        proposals: Vec<ProposedStart>,
        done: &mut DispatchResult,
    ) -> Result<()> {
        let settings = &snapshot.settings;
        let has_delay = !settings.spawn_delay.is_zero();
        let mut proposals = proposals;
        let report = DispatchCycle {
            // The look at the line has counted every cap for each of them.
            available_capacity: || Ok(Slots::Unlimited),
            query_pending: || {
                let proposals = std::mem::take(&mut proposals);
                if has_delay {
                    return Ok(proposals);
                }
                let reserved = self.reserve_all(cycle, proposals, &mut done.errors)?;
                (cycle.decided)();
                Ok(reserved)
            },
            execute: |proposal: &ProposedStart| self.execute(cycle, proposal),
            on_success: |proposal: &ProposedStart| {
                done.dispatched.push(proposal.started());
                Ok(())
            },
            on_failure: |_: &ProposedStart, _: &NotStarted| (),
            batch_size: 0,
            spawn_delay: settings.spawn_delay,
            parallelism: settings.spawn_parallelism,
            pause: &|time| (self.pause)(time),
        }
        .run();
        let report = report.map_err(|error| match error {
            NotStarted::Operation(error) => error,
            other => OperationError::rejected(other.to_string()),
        })?;
        let failed = report.failed.into_iter();
        done.errors.extend(failed.map(|(proposal, error)| (proposal.context.bead, error)));
        Ok(())
    }

    fn reserve_all(
        &self,
        cycle: &CycleData<'_>,
        proposals: Vec<ProposedStart>,
        errors: &mut Vec<(BeadId, NotStarted)>,
    ) -> Result<Vec<ProposedStart>> {
        let mut snapshot = None;
        let numbers: Vec<usize> = (0..proposals.len()).collect();
        let answers = self.town.write_each(numbers, |writer, at| {
            let snapshot = self.snapshot_in(writer, cycle, &mut snapshot)?;
            self.begin(writer, snapshot, &proposals[at], cycle.starter)
        })?;
        let mut reserved = Vec::with_capacity(proposals.len());
        for (proposal, answer) in proposals.into_iter().zip(answers) {
            match proposal.reserved(answer) {
                Ok(()) => reserved.push(proposal),
                Err(error) => errors.push((proposal.context.bead.clone(), error)),
            }
        }
        Ok(reserved)
    }

    fn snapshot_in<'s>(
        &self,
        writer: &Writer<'_>,
        cycle: &CycleData<'_>,
        snapshot: &'s mut Option<SchedulingSnapshot>,
    ) -> Result<&'s mut SchedulingSnapshot> {
        // No other process writes while this transaction lasts, so the snapshot is read once.
        let read = match snapshot.take() {
            Some(read) => read,
            None => self.snapshot(writer, &cycle.inputs)?,
        };
        Ok(snapshot.insert(read))
    }

    /// Gives a proposal its slot. Together with it is written down that this cycle begins one more, because a
    /// commit of its own would cost as much as the start.
    fn begin(
        &self,
        writer: &mut Writer<'_>,
        snapshot: &mut SchedulingSnapshot,
        proposal: &ProposedStart,
        starter: Starter<'_>,
    ) -> Result<Start> {
        let start = start_in(writer, snapshot, proposal.context.number, &proposal.recipe, starter)?;
        if matches!(start, Start::Begun(_)) {
            writer.note_dispatch(self.begun.fetch_add(1, Ordering::Relaxed) + 1)?;
        }
        Ok(start)
    }

    /// Gives a proposal its slot, unless it has one, and starts its worker.
    fn execute(
        &self,
        cycle: &CycleData<'_>,
        proposal: &ProposedStart,
    ) -> std::result::Result<(), NotStarted> {
        if proposal.run().is_none() {
            let answer = self.town.write(|writer| {
                let mut snapshot = self.snapshot(writer, &cycle.inputs)?;
                self.begin(writer, &mut snapshot, proposal, cycle.starter)
            });
            proposal.reserved(answer)?;
        }
        loop {
            let Some(run) = proposal.run() else { return Ok(()) };
            if !run.executor.takes_slot() {
                return Ok(());
            }
            let Err(error) = self.spawner.spawn(&run) else { return Ok(()) };
            // A context that did not ask for this very place need not wait for it.
            if let (SpawnError::Taken(_), Some(place), None) =
                (&error, &run.place, &proposal.context.place)
                && self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(place.clone())
            {
                let moved = self.town.write(|writer| {
                    let snapshot = self.snapshot(writer, &cycle.inputs)?;
                    move_start_in(writer, &snapshot, &proposal.context, &run.id)
                })?;
                let Some(moved) = moved else { return Err(error.into()) };
                proposal.reserved(Ok(Start::Begun(Box::new(moved))))?;
                continue;
            }
            let cost = match &error {
                SpawnError::Busy(_) | SpawnError::Taken(_) => StartFailureCost::Patience,
                SpawnError::Failed(_) => StartFailureCost::Counted,
            };
            let (why, jitter) = (error.to_string(), jitter(&run.id.to_string()));
            self.town.write(|writer| start_failed_in(writer, &run, &why, &cost, jitter))?;
            return Err(error.into());
        }
    }
}

impl ProposedStart {
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

    fn started(&self) -> StartedRun {
        StartedRun {
            bead: self.context.bead.clone(),
            context: self.context.clone(),
            title: self.title.clone(),
            run: self.run(),
        }
    }
}

impl DispatchResult {
    /// How many were ready and turned out not to start.
    fn failed(&self) -> u64 {
        self.errors.len() as u64
    }
}

/// How many wait, and how many of them only for room or for the scheduler as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitingCounts {
    /// Contexts that wait.
    pub queued: u64,
    /// Contexts that would start if there were slots.
    pub ready: u64,
    /// How many of the ready the queue's gate keeps.
    pub gated: u64,
    /// How many of the ready wait for a budget, and not for the queue's gate.
    pub over_budget: u64,
    /// How many of the others begin when people have reviewed what waits for them.
    pub behind_reviews: u64,
    /// Queued and ready for each rig.
    pub rigs: HashMap<String, (u64, u64)>,
}

impl WaitingCounts {
    /// Counts everything that waits.
    pub fn count(reader: &Reader<'_>, snapshot: &SchedulingSnapshot) -> Result<Self> {
        let mut waiting = Self::default();
        for (rig, queued) in reader.count_queued()? {
            waiting.queued += queued;
            waiting.rigs.entry(rig.to_string()).or_default().0 += queued;
        }
        for (lane, count) in reader.count_lanes()? {
            if snapshot.rig_starts(&lane) {
                waiting.add_ready(snapshot, &lane, count);
            }
        }
        let far = snapshot.now.plus(snapshot.control.longest_wait);
        let mut looked_at = reader.contexts_due(snapshot.now, far)?;
        for rig in &snapshot.settings.stacking_rigs {
            looked_at.extend(reader.stacked_contexts(rig)?);
        }
        for context in looked_at {
            let lane = Lane::of(&context);
            let Some(row) = reader.bead(&context.bead)? else { continue };
            let facts = BeadFacts::of_bead(reader, &row)?;
            let reasons = snapshot.reasons(&context, &row, &facts);
            if reasons.iter().all(WaitReason::is_control) && snapshot.rig_starts(&lane) {
                waiting.add_ready(snapshot, &lane, 1);
            }
        }
        Ok(waiting)
    }

    fn add_ready(&mut self, snapshot: &SchedulingSnapshot, lane: &Lane, ready: u64) {
        self.ready += ready;
        if lane.gated && !snapshot.control.gate_open {
            self.gated += ready;
        } else {
            let reasons = snapshot.usual_lane_reasons(lane);
            if reasons.iter().any(|why| matches!(why, WaitReason::Budget(_))) {
                self.over_budget += ready;
            } else if reasons.iter().any(|why| matches!(why, WaitReason::ReviewsWaiting { .. })) {
                self.behind_reviews += ready;
            }
        }
        self.rigs.entry(lane.rig.to_string()).or_default().1 += ready;
    }
}
