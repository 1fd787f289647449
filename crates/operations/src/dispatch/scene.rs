//! What a cycle, a list and an explanation look at: one evaluator for all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gt_core::decide::{
    Ask, BACKOFF_MAX, Caps, Control, DispatchOrder, Occupancy, Place, RigStanding, WaitReason,
    admit, context_reasons, hold, unscheduled_reasons,
};
use gt_core::schedule::{Account, Context, Park, Run, WorkerPlace};
use gt_core::settings::Layers;
use gt_core::{Bead, BeadId, ExecutorKind, Rig, RigSlug, RigState, Timestamp};
use gt_store::{Lane, Reader};

use super::settings::{Overrides, SchedulerSettings};
use crate::beads::BeadFacts;
use crate::recovery::Parked;
use crate::{Result, Town};

/// Who runs a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A person, whom the queue's gate does not hold up.
    Hand,
    /// The daemon, or whoever acts for it.
    Daemon,
}

/// Everything besides the single context that decides whether it starts, read at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) settings: SchedulerSettings,
    pub(crate) control: Control,
    pub(crate) caps: Caps,
    pub(crate) occupancy: Occupancy,
    pub(crate) now: Timestamp,
    pub(crate) accounts: Vec<Account>,
    /// What is held against runtimes and accounts; how that holds them now is in the caps.
    pub(crate) parks: Vec<Park>,
    /// The polecats that nobody has in the store, and whose last worker has not left yet.
    pub(crate) taken: BTreeSet<WorkerPlace>,
    rigs: BTreeMap<RigSlug, Rig>,
    /// The live run of each bead that has one.
    runs: HashMap<BeadId, Run>,
}

impl Scene {
    /// Reads it. `files` are the layers below the store's, read before the transaction.
    pub(crate) fn read(
        reader: &Reader<'_>,
        files: &Layers,
        overrides: &Overrides,
        caller: Caller,
        now: Timestamp,
    ) -> Result<Self> {
        let layers = crate::settings::layers_over(files, reader)?;
        let settings = SchedulerSettings::of(&layers)?;
        let deferred = settings.is_deferred();
        let settings = settings.overridden(overrides);
        let state = reader.scheduler_state()?;
        let accounts = reader.accounts()?;
        let mut caps = settings.caps(deferred);
        let capped = accounts.iter().filter(|account| account.max_runs > 0);
        caps.accounts = capped.map(|account| (account.handle.clone(), account.max_runs)).collect();
        let mut scene = Self {
            control: Control {
                paused: state.paused.map(|pause| (pause.by, pause.at)),
                gate_open: caller == Caller::Hand || settings.queue_enabled,
                longest_wait: BACKOFF_MAX.max(settings.cooldown),
            },
            settings,
            caps,
            occupancy: Occupancy::default(),
            now,
            accounts,
            parks: reader.parks()?,
            taken: BTreeSet::new(),
            rigs: reader.rigs()?.into_iter().map(|rig| (rig.slug.clone(), rig)).collect(),
            runs: HashMap::new(),
        };
        for run in reader.live_runs()? {
            scene.note_run(run);
        }
        scene.caps.parked =
            scene.parked().into_iter().map(|parked| (parked.park.means, parked.hold)).collect();
        Ok(scene)
    }

    /// What is parked now. The run that tries something counts as long as it is live.
    pub(crate) fn parked(&self) -> Vec<Parked> {
        let held = |park: &Park| {
            let trial = park.trial.as_ref();
            let trial =
                trial.and_then(|trial| self.runs.get(&trial.bead).filter(|run| run.id == *trial));
            Some(Parked { hold: hold(park, trial, self.now)?, park: park.clone() })
        };
        self.parks.iter().filter_map(held).collect()
    }

    /// What a run asked of the caps.
    pub(crate) fn ask_of(run: &Run) -> Ask<'_> {
        Ask {
            rig: &run.rig,
            executor: run.executor,
            place: None,
            account: Some(run.account.as_str()).filter(|account| !account.is_empty()),
            gated: run.gated,
            runtime: Some(&run.runtime),
        }
    }

    /// Counts a run that has just been admitted, or was live before.
    pub(crate) fn note_run(&mut self, run: Run) {
        if run.holds_slot() {
            self.occupancy.add(&Self::ask_of(&run), 1);
        }
        self.caps.note_trial(&Self::ask_of(&run), &run.id);
        if let Some(place) = run.place.clone().filter(|_| Run::takes_slot(run.executor)) {
            self.occupancy.occupy(place, run.id.clone());
        }
        self.runs.insert(run.id.bead.clone(), run);
    }

    pub(crate) fn rig(&self, slug: &RigSlug) -> Option<&Rig> {
        self.rigs.get(slug)
    }

    pub(crate) fn rigs(&self) -> impl Iterator<Item = &Rig> {
        self.rigs.values()
    }

    pub(crate) fn live_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.values()
    }

    pub(crate) fn run_of(&self, bead: &BeadId) -> Option<&Run> {
        self.runs.get(bead)
    }

    /// How a context's run would be carried out.
    pub(crate) fn executor_of(&self, context: &Context) -> ExecutorKind {
        if context.place.as_ref().is_some_and(WorkerPlace::is_crew) {
            return ExecutorKind::None;
        }
        self.rig(&context.rig).map_or(ExecutorKind::Process, |rig| rig.executor)
    }

    /// The account that a context's run would be charged to.
    pub(crate) fn account_of<'a>(&'a self, asked: Option<&'a str>) -> Option<&'a str> {
        asked.or_else(|| {
            let default = self.accounts.iter().find(|account| account.is_default);
            default.map(|account| account.handle.as_str())
        })
    }

    /// Where a context stands in line.
    pub(crate) fn place_in_line(context: &Context) -> Place {
        Place {
            priority: context.priority,
            number: context.number,
            waiting_since: context.waiting_since,
        }
    }

    /// The order in which contexts go.
    pub(crate) fn order(&self) -> DispatchOrder {
        self.settings.order
    }

    fn standing(&self, slug: &RigSlug) -> Option<RigStanding> {
        self.rig(slug).map(|rig| RigStanding {
            state: rig.state,
            executor: rig.executor,
            can_run: self.settings.knows_how(rig),
        })
    }

    /// Whether the rig of a lane starts anything at all.
    pub(crate) fn rig_starts(&self, lane: &Lane) -> bool {
        let Some(rig) = self.standing(&lane.rig) else { return false };
        let crew = lane.place.as_ref().is_some_and(WorkerPlace::is_crew);
        let runs = crew || (rig.executor != ExecutorKind::Pull && rig.can_run);
        rig.state == RigState::Active && runs
    }

    /// Whether nothing that all contexts of a lane share keeps them, so that a cycle need look at them one
    /// by one. Those whose rig is gone are looked at, to be given up.
    pub(crate) fn is_worth_a_look(&self, lane: &Lane) -> bool {
        let gate = !lane.gated || self.control.gate_open;
        let open = self.control.paused.is_none() && gate;
        open && (self.rig_starts(lane) || self.rig(&lane.rig).is_none()) && self.admits(lane)
    }

    /// Whether the caps have room for one more of a lane.
    pub(crate) fn admits(&self, lane: &Lane) -> bool {
        let crew = lane.place.as_ref().is_some_and(WorkerPlace::is_crew);
        let executor = self.rig(&lane.rig).map_or(ExecutorKind::Process, |rig| rig.executor);
        let ask = Ask {
            rig: &lane.rig,
            executor: if crew { ExecutorKind::None } else { executor },
            place: lane.place.as_ref(),
            account: self.account_of(lane.account.as_deref()),
            gated: lane.gated,
            // Those of one lane may have different ones.
            runtime: None,
        };
        admit(&self.caps, &self.occupancy, &ask).is_empty()
    }

    /// Every reason, admission aside, why an open context does not start.
    pub(crate) fn reasons(
        &self,
        context: &Context,
        bead: &Bead,
        facts: &BeadFacts,
    ) -> Vec<WaitReason> {
        let facts = facts.scheduling(bead, self.run_of(&context.bead));
        context_reasons(context, &facts, self.standing(&context.rig), &self.control, self.now)
    }

    /// Every reason why a bead without an open context does not start.
    pub(crate) fn reasons_unscheduled(
        &self,
        reader: &Reader<'_>,
        bead: &Bead,
        staged: Option<&BeadId>,
    ) -> Result<Vec<WaitReason>> {
        let facts = BeadFacts::of_bead(reader, bead)?;
        let facts = facts.scheduling(bead, self.run_of(&bead.id));
        let rig = bead.rig.as_ref().and_then(|slug| Some((slug, self.standing(slug)?)));
        let last_run = reader.runs_of(&bead.id)?.into_iter().next();
        let latest = reader.latest_context(&bead.id)?;
        let latest = latest.as_ref();
        let attempts = self.settings.max_attempts;
        Ok(unscheduled_reasons(&facts, latest, last_run.as_ref(), rig, staged, attempts, self.now))
    }

    /// What a context asks of the caps.
    pub(crate) fn ask<'a>(&'a self, context: &'a Context) -> Ask<'a> {
        Ask {
            rig: &context.rig,
            executor: self.executor_of(context),
            place: context.place.as_ref(),
            account: self.account_of(context.account.as_deref()),
            gated: context.gated,
            runtime: Some(self.runtime_of(context)),
        }
    }

    /// The runtime that a context's run would be carried out with; empty for the rig's own command, and for a person
    /// or an agent that asks for work, who have their own.
    pub(crate) fn runtime_of<'a>(&'a self, context: &'a Context) -> &'a str {
        let asked = context.parameters.runtime.as_deref();
        if Run::takes_slot(self.executor_of(context)) {
            self.settings.runtime_in(&context.rig, asked)
        } else {
            asked.unwrap_or_default()
        }
    }

    /// Every cap that does not admit a context now.
    pub(crate) fn admission(&self, context: &Context) -> Vec<WaitReason> {
        admit(&self.caps, &self.occupancy, &self.ask(context))
    }

    /// Counts a context as if it had started.
    pub(crate) fn suppose_started(&mut self, context: &Context) {
        let (mut occupancy, mut caps) =
            (std::mem::take(&mut self.occupancy), std::mem::take(&mut self.caps));
        let ask = self.ask(context);
        let next = gt_core::RunId { bead: context.bead.clone(), epoch: 0 };
        occupancy.add(&ask, 1);
        caps.note_trial(&ask, &next);
        if let Some(place) = context.place.clone().filter(|place| !place.is_crew()) {
            occupancy.occupy(place, next);
        }
        (self.occupancy, self.caps) = (occupancy, caps);
    }
}

impl Town {
    /// What decides whether anything starts, as of now.
    pub(crate) fn scene(
        &self,
        reader: &Reader<'_>,
        files: &Layers,
        overrides: &Overrides,
        caller: Caller,
    ) -> Result<Scene> {
        Scene::read(reader, files, overrides, caller, self.now())
    }
}
