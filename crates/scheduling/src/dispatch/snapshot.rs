//! The scheduling snapshot: cycle, dry run, list, status and explanation evaluate the same one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use gt_core::decide::{
    AdmissionRequest, BACKOFF_MAX, BudgetKind, Caps, DiskGuard, DispatchOrder, Fleet, HostFacts,
    HostMode, LoadGuard, MEMORY_GROWTH_TIME, MachineMemory, MemoryGuard, Occupancy, OrderPosition,
    ParkHold, RigFacts, SchedulerFacts, UsageHistory, WaitReason, admit, context_reasons, hold,
    ramp, rig_reasons, unscheduled_reasons,
};
use gt_core::schedule::{
    Account, Context, ContextOrigin, Park, ParkSubject, Polecat, Reserve, Run, WorkerPlace,
    host_identity, is_host_named,
};
use gt_core::{Bead, BeadId, ExecutorKind, Rig, RigSlug, Timestamp};
use gt_store::{Guard, HostDeclaration, HostRecord, Lane, Reader};

use super::budgets::{WorkBudgets, read_budgets};
use super::dispatch_inputs::DispatchInputs;
use super::parks::Parked;
use crate::runtimes::{RuntimeNumbers, memory_of_preset};
use gt_beads::bead_facts::BeadFacts;
use gt_core::runtime::CUSTOM;
use gt_town::Result;
use gt_town::scheduler_settings::{Overrides, SchedulerSettings};

/// How many of the last runs tell what the next ones will use.
const HISTORY_RUNS: u32 = 500;

/// The kind of caller that runs a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CycleCaller {
    /// A person, whom the queue's gate does not hold up.
    Hand,
    /// The daemon, or a process that acts for it.
    Daemon,
}

/// Everything besides the single context that decides whether it starts, read at one moment.
#[derive(Debug, Clone)]
pub struct SchedulingSnapshot {
    /// The settings of the scheduler, with the overrides of this cycle.
    pub settings: SchedulerSettings,
    /// Pause, queue gate and backoff limits.
    pub control: SchedulerFacts,
    /// The limits on live runs.
    pub caps: Caps,
    pub(crate) occupancy: Occupancy,
    /// The moment of the snapshot.
    pub now: Timestamp,
    /// The accounts of the town.
    pub accounts: Vec<Account>,
    /// The stored parks of runtimes and accounts; their effect now is in the caps.
    pub parks: Vec<Park>,
    /// The polecats that no run has in the store, and whose last worker has not left yet.
    pub taken: BTreeSet<WorkerPlace>,
    rigs: BTreeMap<RigSlug, Rig>,
    /// This machine.
    host: String,
    /// Whether a host that is better placed has the first try. A person who starts something here means this host.
    pub(crate) yields: bool,
    /// The town's settings for runtimes, and the learned estimates of their memory.
    runtimes: BTreeMap<String, RuntimeNumbers>,
    estimates: BTreeMap<String, u32>,
    /// The usage of earlier runs, if a budget of tokens or money is in force.
    history: Option<UsageHistory>,
    /// The live run of each bead that has one.
    runs: HashMap<BeadId, Run>,
    /// The convoys with a cap that the bead of a live run is in.
    capped: HashMap<BeadId, Vec<BeadId>>,
    /// The convoys with a budget that a scheduled bead or the bead of a live run is in.
    budget_convoys: HashMap<BeadId, Vec<BeadId>>,
    /// The beads of convoys that are paused: which one, by whom, since when.
    paused: HashMap<BeadId, (BeadId, String, Timestamp)>,
}

impl SchedulingSnapshot {
    /// Reads it. `inputs` is what is not in the store, read before the transaction.
    pub fn read(
        reader: &Reader<'_>,
        inputs: &DispatchInputs,
        overrides: &Overrides,
        caller: CycleCaller,
        now: Timestamp,
    ) -> Result<Self> {
        let layers = gt_town::settings::layers_over(&inputs.files, reader)?;
        let settings = SchedulerSettings::of(&layers)?;
        let deferred = settings.is_deferred();
        let settings = settings.overridden(overrides);
        let state = reader.scheduler_state()?;
        let accounts = reader.accounts()?;
        let mut caps = settings.caps(deferred);
        let capped = accounts.iter().filter(|account| account.max_runs > 0);
        caps.accounts = capped.map(|account| (account.handle.clone(), account.max_runs)).collect();
        let capped = inputs.runtimes.iter().filter(|(_, numbers)| numbers.max_runs > 0);
        caps.runtimes = capped.map(|(name, numbers)| (name.clone(), numbers.max_runs)).collect();
        let elsewhere = settings.rig_hosts.iter();
        let elsewhere = elsewhere.filter(|(_, name)| !is_host_named(&inputs.host, name));
        caps.elsewhere = elsewhere.map(|(rig, name)| (rig.clone(), name.clone())).collect();
        if inputs.has_lease {
            caps.fleet = Some(read_fleet(reader, inputs, &settings)?);
        }
        if let Some(review) = &mut caps.review {
            review.waiting = u32::try_from(reader.waiting_reviews()?).unwrap_or(u32::MAX);
        }
        let memory = settings.memory_floor.zip(inputs.machine.memory);
        let load = inputs.machine.load.filter(|_| settings.load_per_core > 0);
        let disk = inputs.machine.disk.filter(|_| settings.disk_min_mb > 0);
        let is_guarded = memory.is_some() || load.is_some() || disk.is_some();
        let shut = if is_guarded { reader.shut_guards(&inputs.host)? } else { Vec::new() };
        caps.memory = memory
            .map(|(floor, memory)| MemoryGuard::new(memory, floor, shut.contains(&Guard::Memory)));
        caps.load = load.and_then(|load| {
            LoadGuard::new(load, settings.load_per_core, shut.contains(&Guard::Load))
        });
        caps.disk = disk.and_then(|disk| {
            DiskGuard::new(disk, settings.disk_min_mb, shut.contains(&Guard::Disk))
        });
        let estimates = if memory.is_some() { reader.estimates()? } else { Vec::new() };
        let live = reader.live_runs()?;
        // A run that has ended holds its part of the budgets until its usage is known.
        let mut holders = reader.runs_with_pending_usage()?;
        holders.extend(live.iter().cloned());
        let mut budgets = read_budgets(reader, &settings, &accounts, &holders, now)?;
        let work = WorkBudgets::read(reader, &settings, &holders, now)?;
        budgets.extend(work.budgets);
        let reserves = budgets.iter().any(|budget| budget.set.kind != BudgetKind::RunsPerHour);
        let history = if reserves { Some(reader.usage_history(HISTORY_RUNS)?) } else { None };
        let mut snapshot = Self {
            host: inputs.host.clone(),
            yields: false,
            runtimes: inputs.runtimes.clone(),
            estimates: estimates.into_iter().map(|one| (one.name, one.memory_mb)).collect(),
            control: SchedulerFacts {
                paused: state.paused.map(|pause| (pause.by, pause.at)),
                gate_open: caller == CycleCaller::Hand || settings.queue_enabled,
                longest_wait: BACKOFF_MAX.max(settings.cooldown),
            },
            history,
            settings,
            caps,
            occupancy: Occupancy::default(),
            now,
            accounts,
            parks: reader.parks()?,
            taken: BTreeSet::new(),
            rigs: reader.rigs()?.into_iter().map(|rig| (rig.slug.clone(), rig)).collect(),
            runs: HashMap::new(),
            capped: HashMap::new(),
            budget_convoys: work.convoys,
            paused: HashMap::new(),
        };
        snapshot.read_convoys(reader)?;
        for run in live {
            let convoys = snapshot.capped.get(&run.id.bead).cloned().unwrap_or_default();
            snapshot.note_run(run, &convoys);
        }
        snapshot.caps.budgets = budgets;
        snapshot.caps.parked =
            snapshot.parked().into_iter().map(|parked| (parked.park.means, parked.hold)).collect();
        Ok(snapshot)
    }

    /// Reads what the daemon decides by at this moment, with the settings as they are.
    pub fn read_for_daemon(
        reader: &Reader<'_>,
        inputs: &DispatchInputs,
        now: Timestamp,
    ) -> Result<Self> {
        Self::read(reader, inputs, &Overrides::default(), CycleCaller::Daemon, now)
    }

    /// Reads the paused convoys and the caps of convoys. Most towns have none of either.
    fn read_convoys(&mut self, reader: &Reader<'_>) -> Result<()> {
        let limiting = reader.limiting_convoys()?;
        if limiting.iter().any(|tally| tally.paused.is_some()) {
            let members = reader.paused_members()?.into_iter();
            self.paused =
                members.map(|(bead, convoy, pause)| (bead, (convoy, pause.by, pause.at))).collect();
        }
        let capped = limiting.into_iter().filter(|tally| tally.cap > 0);
        self.caps.convoys = capped.map(|tally| (tally.convoy, tally.cap)).collect();
        if !self.caps.convoys.is_empty() {
            for (bead, convoy) in reader.runs_under_convoy_caps()? {
                self.capped.entry(bead).or_default().push(convoy);
            }
        }
        Ok(())
    }

    /// The parks in force. The trial run of a park counts as long as it is live.
    pub fn parked(&self) -> Vec<Parked> {
        let held = |park: &Park| {
            let trial = park.trial.as_ref();
            let trial =
                trial.and_then(|trial| self.runs.get(&trial.bead).filter(|run| run.id == *trial));
            Some(Parked { hold: hold(park, trial, self.now)?, park: park.clone() })
        };
        self.parks.iter().filter_map(held).collect()
    }

    /// The demand that a run made on the caps.
    pub(crate) fn ask_of<'a>(
        &self,
        run: &'a Run,
        convoys: &'a [BeadId],
        budget_convoys: &'a [BeadId],
    ) -> AdmissionRequest<'a> {
        let is_here = runs_here(run.executor) && run.is_on(&self.host);
        // The memory that it has taken since is measured. A date in the future means that a clock was set back.
        let is_young =
            self.now.since(run.created_at) < MEMORY_GROWTH_TIME && run.created_at <= self.now;
        AdmissionRequest {
            rig: &run.rig,
            executor: run.executor,
            place: None,
            account: Some(run.account.as_str()).filter(|account| !account.is_empty()),
            gated: run.gated,
            runtime: Some(&run.runtime),
            convoys,
            bead: Some(&run.id.bead),
            budget_convoys,
            is_new_work: false,
            here: is_here
                .then(|| if is_young { self.memory_of(&run.runtime, &run.rig) } else { 0 }),
            reserve: run.reserved,
            on_host: &run.host,
            asked_host: None,
        }
    }

    /// The share of the budgets that the run of a context is expected to need; nothing if no budget asks for it.
    pub(crate) fn reserve_of(&self, context: &Context) -> Reserve {
        let Some(history) = self.history.as_ref() else { return Reserve::default() };
        let formula = context.parameters.formula.as_deref().unwrap_or_default();
        let limits = self.settings.run_limits_in(&context.rig);
        history.reserve(formula, self.runtime_of(context), &context.rig, limits)
    }

    /// How much memory a run with this runtime is expected to take, in megabytes: what was learned, else what the town's
    /// file for it says, else what this program does.
    fn memory_of(&self, runtime: &str, rig: &RigSlug) -> u64 {
        if self.caps.memory.is_none() {
            return 0;
        }
        let name = if runtime.is_empty() { CUSTOM } else { runtime };
        let learned = self.estimates.get(&ParkSubject::runtime(runtime, rig).name).copied();
        let said = || self.runtimes.get(name).map(|numbers| numbers.memory_mb);
        learned.or_else(said).or_else(|| memory_of_preset(name)).unwrap_or(0).into()
    }

    /// Counts a run that has just been admitted, or was live before; its bead is in these convoys that have a cap.
    pub(crate) fn note_run(&mut self, run: Run, convoys: &[BeadId]) {
        let budget_convoys = self.budget_convoys_of(&run.id.bead).to_vec();
        let ask = self.ask_of(&run, convoys, &budget_convoys);
        if run.holds_slot() {
            self.occupancy.add(&ask, 1);
        }
        self.caps.note_start(&ask, &run.id);
        if let Some(place) = run.place.clone().filter(|_| run.executor.takes_slot()) {
            self.occupancy.occupy(place, run.id.clone());
        }
        if !convoys.is_empty() {
            self.capped.insert(run.id.bead.clone(), convoys.to_vec());
        }
        self.runs.insert(run.id.bead.clone(), run);
    }

    fn budget_convoys_of(&self, bead: &BeadId) -> &[BeadId] {
        self.budget_convoys.get(bead).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the bead of a live run is in this convoy, which has a cap.
    pub(crate) fn is_run_of(&self, run: &Run, convoy: &BeadId) -> bool {
        self.capped.get(&run.id.bead).is_some_and(|convoys| convoys.contains(convoy))
    }

    /// The rig of this name.
    pub fn rig(&self, slug: &RigSlug) -> Option<&Rig> {
        self.rigs.get(slug)
    }

    /// All rigs of the town.
    pub fn rigs(&self) -> impl Iterator<Item = &Rig> {
        self.rigs.values()
    }

    /// All live runs of the town.
    pub fn live_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.values()
    }

    /// The live run of a bead.
    pub fn run_of(&self, bead: &BeadId) -> Option<&Run> {
        self.runs.get(bead)
    }

    /// How a context's run would be carried out.
    pub(crate) fn executor_of(&self, context: &Context) -> ExecutorKind {
        self.executor_at(&context.rig, context.place.as_ref())
    }

    fn executor_at(&self, rig: &RigSlug, place: Option<&WorkerPlace>) -> ExecutorKind {
        let of_rig = || self.rig(rig).map_or(ExecutorKind::Process, |rig| rig.executor);
        place.and_then(WorkerPlace::executor).unwrap_or_else(of_rig)
    }

    /// The accounts that a run may be charged to, the first choice first: the one that was named, else the default, else,
    /// if they are spread, those that have the fewest.
    fn accounts_for<'a>(&'a self, asked: Option<&'a str>) -> Vec<Option<&'a str>> {
        let default = self.accounts.iter().find(|account| account.is_default);
        let first = asked.or(default.map(|account| account.handle.as_str()));
        if asked.is_some() || !self.settings.spreads_accounts {
            return vec![first];
        }
        let others = self.accounts.iter().filter(|account| !account.is_default);
        let mut others: Vec<&str> = others.map(|account| account.handle.as_str()).collect();
        others.sort_by_key(|handle| {
            (self.occupancy.live_with(&ParkSubject::account(handle)), *handle)
        });
        let mut accounts: Vec<Option<&str>> = first.map(Some).into_iter().collect();
        accounts.extend(others.into_iter().map(Some));
        if accounts.is_empty() { vec![None] } else { accounts }
    }

    /// The reason that keeps a run off an account that is not its first choice. While the default is at its usage
    /// limit, its runs move over one by one and then in larger numbers. All at once would reach the next limit.
    fn spill_over(&self, account: &str) -> Option<WaitReason> {
        let default = self.accounts.iter().find(|account| account.is_default)?;
        let means = ParkSubject::account(&default.handle);
        let park = self.parks.iter().find(|park| park.means == means && park.is_limit())?;
        let is_closed = self.caps.parked.iter().any(|(held, _)| *held == means);
        let hold = ramp(park.closed.filter(|_| is_closed)?.since, self.now)?;
        let ParkHold::Ramp(most, _) = hold else { return None };
        let is_full = self.occupancy.live_with(&ParkSubject::account(account)) >= most;
        is_full.then(|| WaitReason::AccountLimited(account.to_owned(), hold))
    }

    /// The account of the first of these asks that is admitted, or everything that keeps all of them.
    fn choose<'a>(
        &'a self,
        asked: Option<&'a str>,
        ask: impl Fn(Option<&'a str>) -> AdmissionRequest<'a>,
    ) -> std::result::Result<Option<&'a str>, Vec<WaitReason>> {
        let mut reasons: Vec<WaitReason> = Vec::new();
        for (at, account) in self.accounts_for(asked).into_iter().enumerate() {
            let mut full = admit(&self.caps, &self.occupancy, &ask(account));
            let spill = account.filter(|_| at > 0).and_then(|account| self.spill_over(account));
            full.extend(spill);
            if full.is_empty() {
                return Ok(account);
            }
            full.retain(|reason| !reasons.contains(reason));
            reasons.extend(full);
        }
        Err(reasons)
    }

    /// Where a context stands in line.
    pub(crate) fn place_in_line(context: &Context) -> OrderPosition {
        OrderPosition {
            priority: context.priority,
            number: context.number,
            waiting_since: context.waiting_since,
        }
    }

    /// The order in which contexts go.
    pub fn order(&self) -> DispatchOrder {
        self.settings.order
    }

    fn rig_facts(&self, slug: &RigSlug) -> Option<RigFacts> {
        self.rig(slug).map(|rig| RigFacts {
            state: rig.state,
            executor: rig.executor,
            can_run: self.settings.knows_how(rig),
        })
    }

    /// Whether the rig has no command and no runtime, so that nothing starts in it.
    pub(crate) fn cannot_run(&self, rig: &Rig) -> bool {
        let reasons = self.rig_facts(&rig.slug).map(|facts| rig_reasons(&rig.slug, facts, None));
        let is_that = |reason: &WaitReason| matches!(reason, WaitReason::RigCannotRun(_));
        reasons.is_some_and(|reasons| reasons.iter().any(is_that))
    }

    /// Whether the rig of a lane starts anything at all.
    pub(crate) fn rig_starts(&self, lane: &Lane) -> bool {
        let rig = self.rig_facts(&lane.rig);
        rig.is_some_and(|rig| rig_reasons(&lane.rig, rig, lane.place.as_ref()).is_empty())
    }

    /// Whether nothing that all contexts of a lane share keeps them, so that a cycle need look at them one
    /// by one. Those whose rig is gone are looked at, to be given up.
    pub(crate) fn has_candidates(&self, lane: &Lane) -> bool {
        let gate = !lane.gated || self.control.gate_open;
        let open = self.control.paused.is_none() && gate;
        open && (self.rig_starts(lane) || self.rig(&lane.rig).is_none()) && self.admits(lane)
    }

    /// Whether the caps have room for one more of a lane.
    pub fn admits(&self, lane: &Lane) -> bool {
        self.lane_reasons(lane).is_empty()
    }

    /// Every cap that admits none of a lane now, whichever runtime it wants: those of one lane may have different ones, and a
    /// repair may stand among them.
    pub(crate) fn lane_reasons(&self, lane: &Lane) -> Vec<WaitReason> {
        self.lane_reasons_with(lane, None, false)
    }

    /// Why no new work of a lane starts now with the runtime of its rig: what holds everything, and every cap.
    pub(crate) fn usual_lane_reasons(&self, lane: &Lane) -> Vec<WaitReason> {
        let takes_slot = self.executor_at(&lane.rig, lane.place.as_ref()).takes_slot();
        let runtime = takes_slot.then(|| self.settings.runtime_in(&lane.rig, None));
        let paused = self.control.paused.as_ref();
        let paused = paused.map(|(by, since)| WaitReason::Paused(by.clone(), *since));
        self.lane_reasons_with(lane, runtime, true).into_iter().chain(paused).collect()
    }

    fn lane_reasons_with(
        &self,
        lane: &Lane,
        runtime: Option<&str>,
        is_new_work: bool,
    ) -> Vec<WaitReason> {
        let executor = self.executor_at(&lane.rig, lane.place.as_ref());
        let limits = self.settings.run_limits_in(&lane.rig);
        // Those of one lane may need more.
        let reserve = self.history.as_ref().map(|history| history.smallest(limits));
        let reserve = reserve.unwrap_or_default();
        let ask = |account| AdmissionRequest {
            rig: &lane.rig,
            executor,
            place: lane.place.as_ref(),
            account,
            gated: lane.gated,
            runtime,
            convoys: &lane.convoys,
            // Those of one lane are different beads.
            bead: None,
            budget_convoys: &[],
            is_new_work,
            here: runs_here(executor).then_some(0),
            reserve,
            on_host: &self.host,
            // Those of one lane may ask for different ones.
            asked_host: None,
        };
        self.choose(lane.account.as_deref(), ask).err().unwrap_or_default()
    }

    /// Every reason, admission aside, why an open context does not start.
    pub fn reasons(&self, context: &Context, bead: &Bead, facts: &BeadFacts) -> Vec<WaitReason> {
        let left = self.left_blockers(context, facts);
        let mut facts = facts.scheduling(bead, self.run_of(&context.bead));
        if let Some(left) = &left {
            facts.readiness.open_blockers = left;
        }
        facts.paused = self.paused.get(&bead.id);
        context_reasons(context, &facts, self.rig_facts(&context.rig), &self.control, self.now)
    }

    /// The blockers that count for a context in a rig where work may begin from an accepted commit.
    fn left_blockers(&self, context: &Context, facts: &BeadFacts) -> Option<Vec<BeadId>> {
        let rig =
            self.rig(&context.rig).filter(|rig| self.settings.stacking_rigs.contains(&rig.slug))?;
        let target = context.parameters.base_branch.as_deref().unwrap_or(&rig.default_branch);
        Some(facts.blockers_unless_accepted(&rig.slug, target))
    }

    /// Every reason why a bead without an open context does not start.
    pub fn reasons_unscheduled(
        &self,
        reader: &Reader<'_>,
        bead: &Bead,
        staged: Option<&BeadId>,
    ) -> Result<Vec<WaitReason>> {
        let facts = BeadFacts::of_bead(reader, bead)?;
        let last_run = reader.runs_of(&bead.id)?.into_iter().next();
        let latest = reader.latest_context(&bead.id)?;
        Ok(self.reasons_without_context(bead, &facts, latest.as_ref(), last_run.as_ref(), staged))
    }

    /// The same of a bead about which everything is known: its last context, which is not open, and its last run.
    pub(crate) fn reasons_without_context(
        &self,
        bead: &Bead,
        facts: &BeadFacts,
        latest: Option<&Context>,
        last_run: Option<&Run>,
        staged: Option<&BeadId>,
    ) -> Vec<WaitReason> {
        let mut facts = facts.scheduling(bead, self.run_of(&bead.id));
        facts.paused = self.paused.get(&bead.id);
        let rig = bead.rig.as_ref().and_then(|slug| Some((slug, self.rig_facts(slug)?)));
        let attempts = self.settings.max_attempts;
        let mut reasons =
            unscheduled_reasons(&facts, latest, last_run, rig, staged, attempts, self.now);
        // Agents that ask for work are given nothing either.
        if let Some((by, since)) = &self.control.paused
            && reasons.contains(&WaitReason::WaitsForPullAgent)
        {
            reasons.push(WaitReason::Paused(by.clone(), *since));
        }
        reasons
    }

    /// The demand that a context makes on the caps, on this account.
    fn ask<'a>(&'a self, context: &'a Context, account: Option<&'a str>) -> AdmissionRequest<'a> {
        let (executor, runtime) = (self.executor_of(context), self.runtime_of(context));
        AdmissionRequest {
            rig: &context.rig,
            executor,
            place: context.place.as_ref(),
            account,
            gated: context.gated,
            runtime: Some(runtime),
            convoys: &context.convoys,
            bead: Some(&context.bead),
            budget_convoys: self.budget_convoys_of(&context.bead),
            is_new_work: match context.origin {
                ContextOrigin::Repair | ContextOrigin::Recovery => false,
                ContextOrigin::Sling
                | ContextOrigin::Queue
                | ContextOrigin::Retry
                | ContextOrigin::Convoy
                | ContextOrigin::Adopted => true,
            },
            here: runs_here(executor).then(|| self.memory_of(runtime, &context.rig)),
            reserve: self.reserve_of(context),
            on_host: &self.host,
            asked_host: context.parameters.host.as_deref(),
        }
    }

    fn chosen<'a>(
        &'a self,
        context: &'a Context,
    ) -> std::result::Result<Option<&'a str>, Vec<WaitReason>> {
        self.choose(context.account.as_deref(), |account| self.ask(context, account))
    }

    /// The account that the run of a context would be charged to if it started now.
    pub(crate) fn account_of<'a>(&'a self, context: &'a Context) -> Option<&'a str> {
        self.chosen(context).unwrap_or_else(|_| {
            self.accounts_for(context.account.as_deref()).into_iter().next().flatten()
        })
    }

    /// The runtime that a context's run would be carried out with; empty for the rig's own command, and for a person
    /// or an agent that asks for work, who have their own.
    pub fn runtime_of<'a>(&'a self, context: &'a Context) -> &'a str {
        let asked = context.parameters.runtime.as_deref();
        if self.executor_of(context).takes_slot() {
            self.settings.runtime_in(&context.rig, asked)
        } else {
            asked.unwrap_or_default()
        }
    }

    /// Every cap that does not admit a context now.
    pub(crate) fn admission(&self, context: &Context) -> Vec<WaitReason> {
        match self.chosen(context) {
            Err(reasons) => reasons,
            Ok(_) => self.first_try(context).into_iter().collect(),
        }
    }

    /// The host that should start a context rather than this one, and until when it has the first try.
    fn first_try(&self, context: &Context) -> Option<WaitReason> {
        let fleet = self.caps.fleet.as_ref().filter(|_| self.yields)?;
        let since = context
            .next_attempt_at
            .map_or(context.waiting_since, |at| at.max(context.waiting_since));
        let until = since.plus(FIRST_TRY_TIME);
        // A date in the future was set by another clock.
        if self.now >= until || since > self.now {
            return None;
        }
        let ask = self.ask(context, None);
        if !ask.executor.takes_slot() {
            return None;
        }
        let other = fleet.preferred(&ask.placement(), |host| self.occupancy.live_on(host))?;
        Some(WaitReason::PreferredHost(other.name().to_owned(), until))
    }

    /// Counts a context as if it had started.
    pub(crate) fn count_as_started(&mut self, context: &Context) {
        let (mut occupancy, mut caps) = (self.occupancy.clone(), self.caps.clone());
        let ask = self.ask(context, self.account_of(context));
        let next = gt_core::RunId { bead: context.bead.clone(), epoch: 0 };
        occupancy.add(&ask, 1);
        caps.note_start(&ask, &next);
        if let Some(place) = context.place.clone().filter(|place| place.executor().is_none()) {
            occupancy.occupy(place, next);
        }
        (self.occupancy, self.caps) = (occupancy, caps);
    }

    /// The resources of this machine that do not suffice for one more run.
    pub(crate) fn machine_reasons(&self) -> Vec<WaitReason> {
        let Some(rig) = self.rigs.keys().next() else { return Vec::new() };
        let ask = AdmissionRequest {
            rig,
            executor: ExecutorKind::Process,
            place: None,
            account: None,
            gated: false,
            runtime: None,
            convoys: &[],
            bead: None,
            budget_convoys: &[],
            is_new_work: false,
            here: Some(0),
            reserve: Reserve::default(),
            on_host: &self.host,
            asked_host: None,
        };
        let mut reasons = admit(&self.caps, &self.occupancy, &ask);
        reasons.retain(|reason| {
            matches!(
                reason,
                WaitReason::Memory { .. } | WaitReason::Load(_) | WaitReason::Disk { .. }
            )
        });
        reasons
    }

    /// The guards of this machine whose state differs from the stored one, with the new state.
    pub(crate) fn changed_guards(&self) -> Vec<(Guard, bool)> {
        let memory = self.caps.memory.map(|guard| {
            (Guard::Memory, guard.was_shut, guard.is_shut(self.occupancy.pledged_mb()))
        });
        let load = self.caps.load.map(|guard| (Guard::Load, guard.was_shut, guard.is_shut()));
        let disk = self.caps.disk.map(|guard| (Guard::Disk, guard.was_shut, guard.is_shut()));
        let changed = memory.into_iter().chain(load).chain(disk).filter(|(_, was, is)| was != is);
        changed.map(|(guard, _, is)| (guard, is)).collect()
    }

    /// This machine, as runs name it.
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// How long a host that is better placed has the first try.
const FIRST_TRY_TIME: Duration = Duration::from_secs(3);

/// The facts about a host that placement needs, without its trees and its memory.
pub fn placement_facts(record: &HostRecord) -> HostFacts {
    let declared = &record.declared;
    HostFacts {
        host: format!("{}/{}", record.host.name, record.host.id),
        state: record.state(),
        labels: declared.labels.iter().cloned().collect(),
        cap: Some(declared.max_runs).filter(|cap| *cap > 0),
        rigs: declared.rigs.iter().cloned().collect(),
        // A host that an older program renews declares nothing.
        runtimes: (!declared.version.is_empty())
            .then(|| declared.runtimes.iter().cloned().collect()),
        warm: BTreeSet::new(),
        has_daemon: record.has_daemon(),
        is_short_of_memory: false,
    }
}

/// The facts about all hosts of a town.
fn read_fleet(
    reader: &Reader<'_>,
    inputs: &DispatchInputs,
    settings: &SchedulerSettings,
) -> Result<Fleet> {
    let polecats = reader.polecats()?;
    let facts = |record: HostRecord| {
        let facts = placement_facts(&record);
        let is_warm_here = |polecat: &&Polecat| {
            polecat.is_warm() && host_identity(&polecat.host) == record.host.id
        };
        let warm = polecats.iter().filter(is_warm_here).map(|polecat| polecat.rig.clone());
        let HostDeclaration { memory_mb: total_mb, memory_free_mb: available_mb, .. } =
            record.declared;
        let memory = MachineMemory { total_mb, available_mb };
        let floor = settings.memory_floor.filter(|_| total_mb > 0);
        HostFacts {
            warm: warm.collect(),
            is_short_of_memory: facts.host != inputs.host
                && floor.is_some_and(|floor| MemoryGuard::new(memory, floor, false).is_shut(0)),
            ..facts
        }
    };
    Ok(Fleet {
        here: inputs.host.clone(),
        hosts: reader
            .fleet()?
            .into_iter()
            .filter(|record| {
                let is_here = record.host.id == host_identity(&inputs.host);
                is_here || record.mode != HostMode::Removed
            })
            .map(facts)
            .collect(),
        rig_labels: settings.rig_labels.clone(),
        rig_hosts: settings.rig_hosts.clone(),
        left_runs: reader.beads_with_left_runs()?,
    })
}

/// Whether a run takes memory of the machine that starts it.
fn runs_here(executor: ExecutorKind) -> bool {
    match executor {
        ExecutorKind::Tmux | ExecutorKind::Process => true,
        ExecutorKind::Ssh | ExecutorKind::Pull | ExecutorKind::None => false,
    }
}
