//! The scheduler in numbers. It costs the same however much is scheduled.

use std::collections::BTreeMap;

use gt_core::decide::{Budget, Slots, WaitReason};
use gt_core::{RigState, Timestamp};
use gt_store::Pause;

use crate::dispatch::DispatchInputs;
use crate::dispatch::Parked;
use crate::dispatch::SchedulingSnapshot;
use crate::dispatch::{CycleCaller, WaitingCounts};
use gt_town::scheduler_settings::{Overrides, SchedulerSettings};
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
        if self.paused.is_some() { 0 } else { self.ready.saturating_sub(self.gated) }
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
        let snapshot = SchedulingSnapshot::read(
            reader,
            &inputs,
            &Overrides::default(),
            CycleCaller::Daemon,
            town.now(),
        )?;
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
            live: snapshot.occupancy.live(),
            cap: snapshot.settings.cap_in_force(),
            last_dispatch: state.last_dispatch,
            rigs,
            parked: snapshot.parked(),
            budgets: shown_budgets(&snapshot.caps.budgets),
            short: snapshot.machine_reasons(),
            settings: snapshot.settings,
        })
    })
}

/// The budgets to show. There is one for each bead that was worked on, so of those only the nearly spent ones.
fn shown_budgets(all: &[Budget]) -> Vec<Budget> {
    let shown = all.iter().filter(|budget| !budget.set.scope.is_work() || budget.is_nearly_spent());
    shown.cloned().collect()
}
