//! The scheduler in numbers. It costs the same however much is scheduled.

use std::collections::BTreeMap;

use gt_core::decide::{Budget, BudgetScope, Slots, WaitReason};
use gt_core::schedule::Context;
use gt_core::{RigState, Timestamp};
use gt_store::{Pause, Reader};

use crate::dispatch::DispatchInputs;
use crate::dispatch::Parked;
use crate::dispatch::SchedulingSnapshot;
use crate::dispatch::WaitingCounts;
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::{Result, Town};

/// The scheduler in numbers.
#[derive(Debug, Clone)]
pub struct QueueStatus {
    /// The settings in force.
    pub settings: SchedulerSettings,
    /// The pause of all starts, if there is one.
    pub paused: Option<Pause>,
    /// How many wait.
    pub queued: u64,
    /// How many of them only wait for room, or for the scheduler as a whole.
    pub ready: u64,
    /// How many of the ready ones wait for the queue gate, which a daemon does not open.
    pub gated: u64,
    /// How many of the other ready ones wait for a budget.
    pub over_budget: u64,
    /// How many of the others begin when people have reviewed what waits for them.
    pub behind_reviews: u64,
    /// How many live runs take a slot.
    pub live: u32,
    /// The cap that queued work is under; none for no limit.
    pub cap: Option<u32>,
    /// When something was last started, and how much at once.
    pub last_dispatch: Option<(Timestamp, u64)>,
    /// The runtimes and accounts that get no run now, or only one.
    pub parked: Vec<Parked>,
    /// The budgets in force, with what was used of them.
    pub budgets: Vec<Budget>,
    /// The resources of this machine that do not suffice for one more run.
    pub short: Vec<WaitReason>,
    /// The same for each rig that has anything waiting, running or limited.
    pub rigs: BTreeMap<String, RigStatus>,
}

impl QueueStatus {
    /// How many beads a running daemon would start as soon as there is room.
    pub fn ready_for_daemon(&self) -> u64 {
        if self.paused.is_some() {
            return 0;
        }
        self.ready.saturating_sub(self.gated + self.over_budget + self.behind_reviews)
    }

    /// How many slots are free.
    pub fn slots(&self) -> Slots {
        Slots::of_cap(self.cap, self.live)
    }
}

/// A rig in numbers.
#[derive(Debug, Clone, Default)]
pub struct RigStatus {
    /// How many wait.
    pub queued: u64,
    /// How many of them only wait for room, or for the scheduler as a whole.
    pub ready: u64,
    /// How many live runs take a slot.
    pub running: u32,
    /// Its own cap.
    pub cap: Option<u32>,
    /// Whether it takes part; none if it is gone.
    pub state: Option<RigState>,
    /// Whether it has no command and no runtime, so that nothing starts in it.
    pub cannot_run: bool,
}

/// The scheduler in numbers.
pub fn status(town: &Town) -> Result<QueueStatus> {
    let inputs = DispatchInputs::read(town)?;
    town.read(|reader| {
        let snapshot = SchedulingSnapshot::read_for_daemon(reader, &inputs, town.now())?;
        let waiting = WaitingCounts::count(reader, &snapshot)?;
        let mut rigs: BTreeMap<String, RigStatus> = BTreeMap::new();
        for (slug, (queued, ready)) in waiting.rigs {
            let rig = rigs.entry(slug).or_default();
            (rig.queued, rig.ready) = (queued, ready);
        }
        for run in snapshot.live_runs().filter(|run| run.holds_slot()) {
            rigs.entry(run.rig.to_string()).or_default().running += 1;
        }
        for (slug, cap) in &snapshot.settings.rig_caps {
            rigs.entry(slug.to_string()).or_default().cap = Some(*cap);
        }
        for rig in snapshot.rigs() {
            if let Some(status) = rigs.get_mut(rig.slug.as_str()) {
                status.state = Some(rig.state);
                status.cannot_run = snapshot.cannot_run(rig);
            }
        }
        let state = reader.scheduler_state()?;
        Ok(QueueStatus {
            paused: state.paused,
            queued: waiting.queued,
            ready: waiting.ready,
            gated: waiting.gated,
            over_budget: waiting.over_budget,
            behind_reviews: waiting.behind_reviews,
            live: snapshot.occupancy.live(),
            cap: snapshot.settings.cap_in_force(),
            last_dispatch: state.last_dispatch,
            rigs,
            parked: snapshot.parked(),
            budgets: shown_budgets(reader, &snapshot)?,
            short: snapshot.machine_reasons(),
            settings: snapshot.settings,
        })
    })
}

/// How many contexts are read to find the work that waits for a budget.
const WAITING_READ_MAX: usize = 200;

/// The budgets to show. There is one for each bead that was worked on, so of those only the nearly spent ones.
/// A spent one says when the work that waits for it starts, as that work itself does.
fn shown_budgets(reader: &Reader<'_>, snapshot: &SchedulingSnapshot) -> Result<Vec<Budget>> {
    let all = snapshot.caps.budgets.iter();
    let shown = all.filter(|budget| !budget.set.scope.is_work() || budget.is_nearly_spent());
    let shown: Vec<Budget> = shown.cloned().collect();
    if !shown.iter().any(Budget::is_spent) {
        return Ok(shown);
    }
    let waiting = reader.open_contexts_after(0, WAITING_READ_MAX)?;
    let for_waiting = |budget: Budget| {
        let covers = |context: &&Context| match &budget.set.scope {
            BudgetScope::Bead(bead) => context.bead == *bead,
            // The beads of a convoy wait for the same moment: nothing of such a budget comes back by time.
            BudgetScope::Convoy(_) => true,
            BudgetScope::All | BudgetScope::Rig(_) | BudgetScope::Account(_) => {
                budget.set.covers(&context.rig, context.account.as_deref())
            }
        };
        match waiting.iter().find(covers).or(waiting.first()) {
            Some(context) => budget.for_run(&snapshot.reserve_of(context)),
            None => budget,
        }
    };
    Ok(shown.into_iter().map(for_waiting).collect())
}
