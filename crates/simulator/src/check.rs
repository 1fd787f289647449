//! The invariants of the store, checked after every step.

use gt_town::scheduler_settings::SchedulerSettings;
use std::collections::{BTreeMap, BTreeSet};

use gt_core::decide::{BACKOFF_MAX, is_due_within};
use gt_core::merging::MergeRequest;
use gt_core::schedule::{
    CloseReason, Context, ContextOrigin, Park, ParkSubject, Run, RunId, RunState,
};
use gt_core::{BeadId, DependencyType, Outcome, Rig, RigState, Status};
use gt_store::{BeadRow, Reader, StoreError};

use crate::landing::{ConvoyHistory, SeenConvoy, convoys_in};
use crate::merge_check::MergeHistory;
use crate::simulation::Simulation;
use crate::violation::Invariant;

/// The facts of earlier checks.
#[derive(Debug, Default)]
pub(crate) struct CheckHistory {
    last_event: u64,
    runs: BTreeSet<RunId>,
    /// Every context there ever was, by number.
    pub(crate) contexts: BTreeMap<u64, Context>,
    looks: u64,
    /// The convoys as their events tell of them, up to an event.
    pub(crate) convoys: ConvoyHistory,
    pub(crate) merging: MergeHistory,
}

/// The store at one moment.
pub(crate) struct StoreSnapshot {
    pub(crate) paused: bool,
    pub(crate) runs: Vec<Run>,
    pub(crate) beads: BTreeMap<BeadId, BeadRow>,
    pub(crate) rigs: Vec<Rig>,
    pub(crate) parks: Vec<Park>,
    pub(crate) convoys: Vec<SeenConvoy>,
    /// The last context of each bead that has one.
    pub(crate) latest: BTreeMap<BeadId, Context>,
    /// The merge requests of each bead, the newest first.
    pub(crate) requests: BTreeMap<BeadId, Vec<MergeRequest>>,
}

impl StoreSnapshot {
    /// The live run of a bead.
    pub(crate) fn live(&self, bead: &BeadId) -> Option<&Run> {
        self.runs.iter().find(|run| run.id.bead == *bead && run.state.is_live())
    }

    /// The last run of a bead.
    pub(crate) fn last_run(&self, bead: &BeadId) -> Option<&Run> {
        let of_bead = self.runs.iter().filter(|run| run.id.bead == *bead);
        of_bead.max_by_key(|run| run.id.epoch)
    }

    /// The beads that block a bead, computed from the edges alone.
    pub(crate) fn blockers(&self, bead: &BeadRow) -> Vec<BeadId> {
        let blocks = |target: &BeadId| {
            let convoy = self.convoys.iter().find(|convoy| convoy.bead.id == *target);
            let target = self.beads.get(target).map(|row| &row.bead);
            let target = target.or(convoy.map(|convoy| &convoy.bead));
            target.is_some_and(|target| {
                target.status != Status::Closed || target.outcome == Some(Outcome::Failed)
            })
        };
        let edges = bead.dependencies.iter();
        let edges = edges.filter(|edge| edge.kind == DependencyType::Blocks);
        edges.map(|edge| edge.target.clone()).filter(blocks).collect()
    }
}

impl Simulation {
    /// Looks at everything that may have changed, if anything has.
    pub(crate) fn observe(&self) {
        self.observe_world();
        let last_event = self.read(|reader| reader.last_event_number());
        let (unchanged, closely) = {
            let mut state = self.state();
            let memory = &mut state.memory;
            memory.looks += 1;
            // A few changes write no event.
            let unchanged = memory.last_event == last_event && !memory.looks.is_multiple_of(16);
            memory.last_event = last_event;
            (unchanged, memory.looks.is_multiple_of(32))
        };
        if unchanged {
            return;
        }
        let snapshot = self.snapshot();
        self.check_runs(&snapshot);
        self.check_prices(&snapshot);
        self.check_ends(&snapshot);
        self.check_starts(&snapshot);
        self.check_run_costs(&snapshot.runs);
        self.check_convoys(&snapshot);
        self.check_merging(&snapshot);
        for (id, row) in &snapshot.beads {
            self.check_bead(&snapshot, id, row);
        }
        if closely {
            let differences = self.read(|reader| reader.differences());
            if let Some(first) = differences.first() {
                self.violated(Invariant::Derived, first.clone());
            }
        }
    }

    /// Reads from the store, where nothing may fail.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Reader<'_>) -> Result<T, StoreError>) -> T {
        match self.store.read(work) {
            Ok(read) => read,
            Err(error) => self.violated(Invariant::Soundness, format!("reading: {error:?}")),
        }
    }

    /// The store as it is now.
    pub(crate) fn snapshot(&self) -> StoreSnapshot {
        let mut contexts = std::mem::take(&mut self.state().memory.contexts);
        let (contexts, snapshot) = self.read(|reader| {
            let open = reader.open_contexts()?;
            let numbers: BTreeSet<u64> = open.iter().map(|context| context.number).collect();
            // A context that is closed stays as it is; those that are new or were open are asked again.
            let was_open = |context: &&Context| context.closed.is_none();
            let mut again: Vec<u64> =
                contexts.values().filter(was_open).map(|c| c.number).collect();
            again.retain(|number| !numbers.contains(number));
            let mut next = contexts.keys().next_back().copied().unwrap_or(0) + 1;
            while let Some(context) = reader.context_by_number(next)? {
                contexts.insert(next, context);
                next += 1;
            }
            for number in again {
                match reader.context_by_number(number)? {
                    Some(context) => contexts.insert(number, context),
                    None => contexts.remove(&number),
                };
            }
            contexts.extend(open.into_iter().map(|context| (context.number, context)));
            // The queue makes beads for repairs of the branches of convoys.
            let scheduled = contexts.values().map(|context| context.bead.clone());
            let beads: BTreeSet<BeadId> = self.beads.iter().cloned().chain(scheduled).collect();
            let beads: Vec<BeadId> = beads.into_iter().collect();
            let rows = reader.bead_rows(&beads)?;
            let convoys = convoys_in(reader)?;
            let mut requests = BTreeMap::new();
            let with_branch = convoys.iter().filter(|convoy| convoy.has_branch());
            for bead in beads.iter().chain(with_branch.map(|convoy| &convoy.bead.id)) {
                requests.insert(bead.clone(), reader.merge_requests_of(bead)?);
            }
            let latest = contexts.values().map(|context| (context.bead.clone(), context.clone()));
            let snapshot = StoreSnapshot {
                paused: reader.scheduler_state()?.paused.is_some(),
                runs: reader.recent_runs(usize::MAX)?,
                beads: rows.into_iter().map(|row| (row.bead.id.clone(), row)).collect(),
                rigs: reader.rigs()?,
                parks: reader.parks()?,
                convoys,
                latest: latest.collect(),
                requests,
            };
            Ok((contexts, snapshot))
        });
        self.state().memory.contexts = contexts;
        snapshot
    }

    /// At most one agent for each bead, even if the store says otherwise.
    pub(crate) fn observe_world(&self) {
        let agents: Vec<RunId> = self.state().world.agents().cloned().collect();
        let holders = |run: &RunId| self.state().world.holders(run);
        for pair in agents.windows(2) {
            let is_excepted = pair.iter().any(|run| holders(run).is_excepted);
            if pair[0].bead == pair[1].bead && !is_excepted {
                self.violated(Invariant::OneAgent, format!("{} and {}", pair[0], pair[1]));
            }
        }
        let mut trees = BTreeMap::new();
        for id in agents {
            let crate::world::Holders { host, is_excepted, .. } = holders(&id);
            let run = self.read(|reader| reader.run(&id));
            let place = run.as_ref().and_then(|run| run.place.clone());
            if let Some(other) = place.and_then(|place| trees.insert((host, place), id.clone())) {
                self.violated(Invariant::OneInTree, format!("{other} and {id}"));
            }
            // One that was cancelled in the store, or whose worker said that it is over, may take its time to end, and
            // no other begins before.
            let fits = run.as_ref().is_some_and(|run| match run.state {
                RunState::Running | RunState::Cancelled => true,
                RunState::Done => run.said.is_some() || run.reason.contains("its worker said"),
                RunState::Lost => is_excepted,
                RunState::Starting | RunState::Blocked | RunState::Failed => false,
            });
            if !fits {
                let state = run.map_or("gone", |run| run.state.as_str());
                self.violated(
                    Invariant::AgentHasRun,
                    format!("the agent of {id} is alive, its run is {state}"),
                );
            }
        }
    }

    fn check_runs(&self, snapshot: &StoreSnapshot) {
        let mut beads = BTreeSet::new();
        for run in snapshot.runs.iter().filter(|run| run.state.is_live()) {
            if !beads.insert(&run.id.bead) {
                self.violated(Invariant::OneRun, format!("{} has several", run.id.bead));
            }
            let row = snapshot.beads.get(&run.id.bead);
            let wanted = match run.state {
                RunState::Starting => Status::Hooked,
                _ => Status::InProgress,
            };
            if row.is_none_or(|row| row.bead.status != wanted || row.bead.assignee != run.agent) {
                let shown = row.map(|row| (&row.bead.status, &row.bead.assignee));
                self.violated(
                    Invariant::Status,
                    format!("{} is {}, its bead is {shown:?}", run.id, run.state.as_str()),
                );
            }
            let context = snapshot.latest.get(&run.id.bead);
            let fits = context.is_some_and(|context| {
                let open = context.closed.is_none();
                // A person needs no process: with the hook the work is theirs.
                let starting = run.state == RunState::Starting && run.executor.takes_slot();
                context.number == run.context && open == starting && context.starting == starting
            });
            if !fits {
                self.violated(
                    Invariant::Context,
                    format!("{} is {}, its context is {context:?}", run.id, run.state.as_str()),
                );
            }
        }
    }

    /// Every run that was not there before was allowed to start.
    fn check_starts(&self, snapshot: &StoreSnapshot) {
        let new: Vec<&Run> = {
            let state = self.state();
            let known = &state.memory.runs;
            snapshot.runs.iter().filter(|run| !known.contains(&run.id)).collect()
        };
        if new.is_empty() {
            return;
        }
        self.state().memory.runs.extend(new.iter().map(|run| run.id.clone()));
        let settings =
            self.certain("settings", self.town_without_seam("observer").scheduler_settings());
        for run in &new {
            if snapshot.paused {
                self.violated(Invariant::Pause, format!("{} starts while paused", run.id));
            }
            self.check_start(snapshot, &settings, run);
            self.check_placement(&snapshot.runs, run);
            self.check_parked(snapshot, run);
        }
        self.check_convoy_starts(snapshot, &new);
        self.check_caps(snapshot, &settings, &new);
        if new.iter().any(|run| run.executor.takes_slot()) {
            self.check_budget(&settings, &snapshot.runs);
            self.check_bead_budgets(&settings, &new);
        }
    }

    fn check_start(&self, snapshot: &StoreSnapshot, settings: &SchedulerSettings, run: &Run) {
        let wrong =
            |why: String| -> ! { self.violated(Invariant::Recheck, format!("{}: {why}", run.id)) };
        let Some(row) = snapshot.beads.get(&run.id.bead) else { wrong("no bead".to_owned()) };
        let now = self.time_of(run);
        let Some(context) = snapshot.latest.get(&run.id.bead) else {
            wrong("no context".to_owned())
        };
        let blockers = snapshot.blockers(row);
        if !blockers.is_empty() {
            wrong(format!("it starts, blocked by {blockers:?}"));
        }
        if let Some(until) = row.bead.defer_until.filter(|until| *until > now) {
            wrong(format!("it starts, deferred until {until}"));
        }
        let longest = BACKOFF_MAX.max(settings.cooldown);
        if !is_due_within(context.next_attempt_at, now, longest) {
            wrong(format!("it starts before {:?}", context.next_attempt_at));
        }
        let rig = snapshot.rigs.iter().find(|rig| rig.slug == run.rig);
        if rig.is_none_or(|rig| rig.state != RigState::Active) {
            wrong(format!("it starts in {rig:?}"));
        }
        let by_hand = self.state().liberties.get(&run.starter).is_some_and(|free| free.by_hand);
        if context.gated && !by_hand && !settings.queue_enabled {
            wrong("it starts through a closed gate".to_owned());
        }
    }

    /// A parked runtime or account is tried by one run when its time has come, and used by no other; after a
    /// usage limit, by no more than the ramp lets.
    fn check_parked(&self, snapshot: &StoreSnapshot, run: &Run) {
        if !run.executor.takes_slot() {
            return;
        }
        let means = ParkSubject::of_run(run);
        for park in snapshot.parks.iter().filter(|park| means.contains(&park.means)) {
            let Some(closed) = park.closed.filter(|closed| run.created_at > closed.since) else {
                continue;
            };
            let tries = park.trial.as_ref() == Some(&run.id);
            let early = run.created_at < closed.until && !self.state().set_back;
            let fits = park.ramp_since.is_some_and(|since| {
                let minutes = run.created_at.since(since).as_secs() / 60;
                let serves = |other: &&Run| ParkSubject::of_run(other).contains(&park.means);
                let live =
                    snapshot.runs.iter().filter(|run| run.state.is_live() && run.holds_slot());
                let live = live.filter(serves).count();
                // Two at first, twice as many each minute, and soon any number.
                minutes >= 5 || live <= 2 << minutes || self.state().set_back
            });
            if !(tries || fits) || early {
                self.violated(Invariant::Parked, format!("{} starts, and {park:?}", run.id));
            }
        }
    }

    /// A run that was lost with the machine or its server, or to a usage limit, has used no attempt of its bead.
    fn check_prices(&self, snapshot: &StoreSnapshot) {
        let free = |run: &&Run| {
            let taken = ["went down", "has reached its limit"];
            run.state == RunState::Lost && taken.iter().any(|words| run.reason.contains(words))
        };
        for run in snapshot.runs.iter().filter(free) {
            let found = {
                let state = self.state();
                let contexts = &state.memory.contexts;
                let after = contexts.range(run.context + 1..).map(|(_, context)| context);
                let next = after.into_iter().find(|context| context.bead == run.id.bead);
                let next = next.filter(|next| next.origin == ContextOrigin::Recovery);
                let own = contexts.get(&run.context);
                own.zip(next).map(|(own, next)| (own.attempts, next.attempts))
            };
            if let Some((before, after)) = found.filter(|(before, after)| after > before) {
                let found = format!("{} had {before} attempts before, {after} after", run.id);
                self.violated(Invariant::Price, found);
            }
        }
    }

    /// A bead whose run was cancelled is scheduled again by a person, or not at all.
    fn check_ends(&self, snapshot: &StoreSnapshot) {
        for run in snapshot.runs.iter().filter(|run| run.state == RunState::Cancelled) {
            let next = {
                let state = self.state();
                let mut after = state.memory.contexts.range(run.context + 1..);
                after.find(|(_, context)| context.bead == run.id.bead).map(|(_, next)| next.origin)
            };
            if matches!(next, Some(ContextOrigin::Recovery | ContextOrigin::Convoy)) {
                let said = run.said.map_or("cancelled", gt_core::schedule::DoneStatus::as_str);
                let found = format!("{} was {said}, and no person asked for it again", run.id);
                self.violated(Invariant::EndsStay, found);
            }
        }
    }

    /// Messages and steps that were acknowledged are in the store.
    pub(crate) fn check_said(&self) {
        let (sent, ticked) = {
            let state = self.state();
            (state.sent.clone(), state.ticked.clone())
        };
        for id in sent {
            if self.read(|reader| reader.message(id)).is_none() {
                self.violated(Invariant::Said, format!("the message {id} is gone"));
            }
        }
        for (run, steps) in ticked {
            let done = self.read(|reader| reader.steps_done(&run));
            if let Some(step) = steps.iter().find(|step| done.iter().all(|d| d.step != **step)) {
                self.violated(Invariant::Said, format!("step {step} of {run} is not done"));
            }
        }
    }

    fn check_caps(&self, snapshot: &StoreSnapshot, settings: &SchedulerSettings, new: &[&Run]) {
        let takes_slot = |run: &&Run| run.state.is_live() && run.executor.takes_slot();
        let live: Vec<&Run> = snapshot.runs.iter().filter(takes_slot).collect();
        let new: Vec<&Run> = new.iter().copied().filter(takes_slot).collect();
        if new.is_empty() {
            return;
        }
        let count = |keep: &dyn Fn(&Run) -> bool| live.iter().filter(|run| keep(run)).count();
        let over = |what: &str, cap: u32, live: usize| {
            if live > cap as usize {
                let ids: Vec<String> = new.iter().map(|run| run.id.to_string()).collect();
                self.violated(Invariant::Cap, format!("{what} is {cap}, {live} are live: {ids:?}"));
            }
        };
        let liberties =
            new.first().and_then(|run| self.state().liberties.get(&run.starter).copied());
        let asked = liberties.and_then(|free| free.cap);
        let asked = |otherwise: Option<u32>| match asked {
            Some(cap) => u32::try_from(cap).ok().filter(|cap| *cap > 0),
            None => otherwise,
        };
        if settings.is_deferred() {
            if let Some(cap) = asked(settings.max_polecats) {
                over("the cap of the town", cap, live.len());
            }
        } else if let Some(cap) = asked(settings.queue_max_polecats) {
            // Those that the gate did not hold may have come after them in the same transaction.
            let gated = new.iter().filter(|run| run.gated).count();
            if gated > 0 {
                over("the cap of the queue", cap, live.len() - new.len() + gated);
            }
        }
        for (rig, cap) in &settings.rig_caps {
            if new.iter().any(|run| run.rig == *rig) {
                over(rig.as_str(), *cap, count(&|run| run.rig == *rig));
            }
        }
        for run in &new {
            if run.account == "acme" {
                over("the cap of the account", 1, count(&|other| other.account == run.account));
            }
            if let Some(place) = &run.place {
                over(place.as_str(), 1, count(&|other| other.place == run.place));
            }
        }
    }

    fn check_bead(&self, snapshot: &StoreSnapshot, id: &BeadId, row: &BeadRow) {
        let bead = &row.bead;
        let (live, latest) = (snapshot.live(id), snapshot.latest.get(id));
        let blockers = snapshot.blockers(row).len();
        if bead.open_blockers as usize != blockers {
            self.violated(
                Invariant::Blocking,
                format!("{id} says that {} block it, {blockers} do", bead.open_blockers),
            );
        }
        // A closed bead keeps the name of its worker, but an open one has no worker without a live
        // run.
        let with_worker = bead.status != Status::Closed && bead.assignee.contains('/');
        // The work of a bead in a merge queue keeps the name of its worker.
        let with_worker = with_worker && snapshot.open_request(id).is_none();
        if live.is_none() && (bead.status == Status::Hooked || with_worker) {
            self.violated(
                Invariant::Status,
                format!("{id} is {} with {}, without a run", bead.status, bead.assignee),
            );
        }
        let Some(context) = latest else { return };
        if context.starting && live.is_none() {
            self.violated(Invariant::Context, format!("{id} is said to start, without a run"));
        }
        let Some(closed) = &context.closed else { return };
        if live.is_some() || closed.reason != CloseReason::Dispatched {
            return;
        }
        let reopened = self.state().reopened.contains(id);
        let over = bead.status == Status::Closed || reopened;
        let max_attempts = 3;
        let kept = match snapshot.last_run(id).filter(|run| run.context == context.number) {
            None => false,
            Some(run) => match run.state {
                RunState::Done => over || snapshot.made_request(&run.id),
                // Accepted work is not given up because its repair failed.
                RunState::Failed if snapshot.open_request(id).is_some() => true,
                RunState::Failed => over && !run.reason.starts_with("it did not start"),
                // A person decides about a run that was over its limit.
                RunState::Lost if run.over_limit.is_some() => true,
                RunState::Lost => context.attempts + 1 >= max_attempts,
                RunState::Cancelled
                | RunState::Starting
                | RunState::Running
                | RunState::Blocked => true,
            },
        };
        if !kept {
            let run = snapshot.last_run(id).map(|run| (run.id.to_string(), run.state.as_str()));
            self.violated(
                Invariant::Kept,
                format!(
                    "{id} ({}) was scheduled as {}, ran as {run:?}, and nothing follows",
                    bead.status, context.number
                ),
            );
        }
    }
}
