//! Waiting until work is over, or needs a person to go on.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use gt_core::decide::WaitReason;
use gt_core::merging::RequestPurpose;
use gt_core::schedule::RunId;
use gt_core::{Bead, BeadId, Event, EventKind, Outcome, Status};
use gt_store::{Bell, EventFilter, Reader};

use super::recover::recover;
use crate::merge_queue::unattended_requests;
use gt_beads::bead_facts::BeadFacts;
use gt_beads::events::EventFollower;
use gt_scheduling::dispatch::DispatchInputs;
use gt_scheduling::dispatch::SchedulingSnapshot;
use gt_scheduling::processes::ProcessProbe;
use gt_scheduling::schedule::{ExpandedBead, meaning};
use gt_town::{Result, Town};

/// The condition to wait for.
#[derive(Debug, Clone, Default)]
pub struct WaitRequest {
    /// The beads; none for everything that is scheduled or running.
    pub beads: Vec<String>,
    /// The longest time to wait.
    pub timeout: Option<Duration>,
}

/// The outcome of waiting.
#[derive(Debug, Clone)]
pub struct WaitResult {
    /// The final state of each bead.
    pub beads: Vec<WatchedBead>,
    /// Whether the time ran out first.
    pub timed_out: bool,
}

impl WaitResult {
    /// Whether everything has ended well.
    pub fn is_well(&self) -> bool {
        !self.timed_out && self.beads.iter().all(|watched| watched.progress == BeadProgress::Done)
    }
}

/// A bead that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedBead {
    /// The bead.
    pub bead: BeadId,
    /// Its title; empty if the bead is gone.
    pub title: String,
    /// Its progress.
    pub progress: BeadProgress,
}

/// The progress of a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeadProgress {
    /// It is running, or the dispatcher will start it.
    Going,
    /// It is closed.
    Done,
    /// It is closed as failed, or gone, for this reason.
    Failed(String),
    /// Only a person can get it further, for these reasons.
    Stuck(Vec<WaitReason>),
}

/// Progress during a wait.
#[derive(Debug, Clone, Copy)]
pub enum WaitUpdate<'a> {
    /// A bead has ended.
    Ended(&'a WatchedBead),
    /// This run has a fault that could not be fixed, for this reason.
    NotRecovered(&'a RunId, &'a str),
    /// Nothing is running, and something is scheduled: a dispatcher is needed.
    Idle,
    /// Nothing is running, and no process lands the merge requests that could land.
    NotLanding,
}

/// How often the number of the last event is read where no bell rings. That is one read of a counter.
const EVENT_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often recovery checks whether the processes of runs are alive.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(1);
/// How long nothing may run before that is reported.
const IDLE_TOLD_AFTER: Duration = Duration::from_secs(3);

/// Waits until every bead is over, or needs a person, or nothing wants the answer any more. `each` is told of progress.
pub fn wait(
    town: &Town,
    processes: &dyn ProcessProbe,
    request: &WaitRequest,
    is_wanted: impl Fn() -> bool,
    each: impl FnMut(WaitUpdate<'_>),
) -> Result<WaitResult> {
    let began = town.now();
    let mut waiting = BeadWait::begin(town, processes, request, each)?;
    let bell = town.bell();
    loop {
        match waiting.check_once() {
            Ok(Some(beads)) => return Ok(WaitResult { beads, timed_out: false }),
            Ok(None) => {}
            // A passing error does not end the wait.
            Err(error) if error.may_pass() => {}
            Err(error) => return Err(error),
        }
        let passed = town.now().since(began);
        let left = request.timeout.map_or(Duration::MAX, |limit| limit.saturating_sub(passed));
        if left.is_zero() || !is_wanted() {
            let beads = waiting.progress()?;
            return Ok(WaitResult { beads, timed_out: true });
        }
        pause(&bell, left);
    }
}

/// Lets some time pass, or until there may be news.
fn pause(bell: &Bell, at_most: Duration) {
    let usual = if bell.rings() { RECOVERY_INTERVAL } else { EVENT_POLL_INTERVAL };
    bell.wait(usual.min(at_most));
}

struct BeadWait<'a, F> {
    town: &'a Town,
    processes: &'a dyn ProcessProbe,
    each: F,
    follower: EventFollower,
    /// The named beads; nothing if everything is waited for.
    named: Option<Vec<BeadId>>,
    /// Every bead that was seen scheduled or running.
    seen: BTreeSet<BeadId>,
    told: BTreeSet<BeadId>,
    unrecovered: BTreeSet<RunId>,
    recovered_at: Option<gt_core::Timestamp>,
    idle_since: Option<gt_core::Timestamp>,
    idle_told: bool,
    is_first: bool,
}

impl<'a, F: FnMut(WaitUpdate<'_>)> BeadWait<'a, F> {
    fn begin(
        town: &'a Town,
        processes: &'a dyn ProcessProbe,
        request: &WaitRequest,
        each: F,
    ) -> Result<Self> {
        // The event position is read before the first look, so that no event is missed.
        let follower = EventFollower::from_now(town, EventFilter::default())?;
        let (named, seen) = town.read(|reader| {
            if request.beads.is_empty() {
                let queued = reader.open_contexts()?.into_iter().map(|context| context.bead);
                let live = reader.live_runs()?.into_iter().map(|run| run.id.bead);
                let requests = reader.open_merge_requests()?.into_iter();
                // The request of a convoy has no work of its own to wait for.
                let landing = requests.filter(|request| {
                    request.moves_by_itself() && request.purpose != RequestPurpose::Integration
                });
                let landing = landing.map(|request| request.id.bead);
                return Ok((None, queued.chain(live).chain(landing).collect()));
            }
            let mut named: Vec<BeadId> = Vec::new();
            for input in &request.beads {
                for id in meant(town, reader, input)? {
                    if !named.contains(&id) {
                        named.push(id);
                    }
                }
            }
            Ok((Some(named), BTreeSet::new()))
        })?;
        Ok(Self {
            town,
            processes,
            each,
            follower,
            named,
            seen,
            told: BTreeSet::new(),
            unrecovered: BTreeSet::new(),
            recovered_at: None,
            idle_since: None,
            idle_told: false,
            is_first: true,
        })
    }

    /// Looks once; returns the state of all beads if none goes on by itself.
    fn check_once(&mut self) -> Result<Option<Vec<WatchedBead>>> {
        let now = self.town.now();
        if self.recovered_at.is_none_or(|at| now.since(at) >= RECOVERY_INTERVAL || now < at) {
            for (run, why) in recover(self.town, self.processes)?.errors {
                if self.unrecovered.insert(run.clone()) {
                    (self.each)(WaitUpdate::NotRecovered(&run, &why));
                }
            }
            self.recovered_at = Some(now);
        }
        let is_first = std::mem::replace(&mut self.is_first, false);
        let mut news = Vec::new();
        loop {
            let page = self.follower.next(self.town)?;
            if page.is_empty() {
                break;
            }
            news.extend(page);
        }
        if self.named.is_none() {
            self.seen.extend(news.iter().filter_map(scheduled_bead).cloned());
        }
        if is_first || !news.is_empty() {
            let beads = self.progress_if_changed()?;
            if let Some(beads) = beads
                && beads.iter().all(|watched| watched.progress != BeadProgress::Going)
            {
                return Ok(Some(beads));
            }
        }
        self.report_if_idle(now)?;
        Ok(None)
    }

    /// The state of all beads, unless some clearly go on.
    fn progress_if_changed(&mut self) -> Result<Option<Vec<WatchedBead>>> {
        if self.named.is_none() && self.is_anything_live()? {
            return Ok(None);
        }
        let beads = self.progress()?;
        for watched in &beads {
            let has_ended =
                matches!(watched.progress, BeadProgress::Done | BeadProgress::Failed(_));
            if has_ended && self.told.insert(watched.bead.clone()) {
                (self.each)(WaitUpdate::Ended(watched));
            }
        }
        Ok(Some(beads))
    }

    fn is_anything_live(&self) -> Result<bool> {
        self.town.read(|reader| Ok(reader.live_runs()?.iter().any(|run| run.executor.takes_slot())))
    }

    fn report_if_idle(&mut self, now: gt_core::Timestamp) -> Result<()> {
        if self.idle_told {
            return Ok(());
        }
        if self.is_anything_live()? {
            self.idle_since = None;
            return Ok(());
        }
        if now.since(*self.idle_since.get_or_insert(now)) >= IDLE_TOLD_AFTER {
            self.idle_told = true;
            if !self.town.read(|reader| Ok(reader.open_contexts()?))?.is_empty() {
                (self.each)(WaitUpdate::Idle);
            }
            if !unattended_requests(self.town)?.is_empty() {
                (self.each)(WaitUpdate::NotLanding);
            }
        }
        Ok(())
    }

    /// The state of every bead that is waited for.
    fn progress(&self) -> Result<Vec<WatchedBead>> {
        let inputs = DispatchInputs::read(self.town)?;
        self.town.read(|reader| {
            let snapshot = SchedulingSnapshot::read_for_daemon(reader, &inputs, self.town.now())?;
            let mut judge = ProgressReader { reader, snapshot, known: HashMap::new() };
            match &self.named {
                Some(named) => named.iter().map(|id| judge.watched(id)).collect(),
                None => self.seen.iter().map(|id| judge.watched(id)).collect(),
            }
        })
    }
}

/// The beads that an input means: the parts of an epic or a convoy, else the bead itself.
fn meant(town: &Town, reader: &Reader<'_>, input: &str) -> Result<Vec<BeadId>> {
    let parts = match meaning(town, reader, input)? {
        ExpandedBead::Bead(bead) => return Ok(vec![bead.id]),
        ExpandedBead::Epic(_, parts) | ExpandedBead::Convoy(_, parts) => parts,
    };
    let mut work = Vec::new();
    for part in parts {
        let is_container = reader
            .bead(&part)?
            .is_some_and(|bead| bead.issue_type.is_epic() || bead.issue_type.is_convoy());
        if !is_container {
            work.push(part);
        }
    }
    Ok(work)
}

/// The bead of an event that says that it was scheduled or had a run.
fn scheduled_bead(event: &Event) -> Option<&BeadId> {
    let scheduled = event.run.is_some() || event.kind == EventKind::Scheduled;
    event.bead.as_ref().filter(|_| scheduled)
}

/// Computes the progress of beads, in one transaction.
struct ProgressReader<'r, 's> {
    reader: &'r Reader<'s>,
    snapshot: SchedulingSnapshot,
    /// Whether a blocking bead goes on by itself.
    known: HashMap<BeadId, bool>,
}

impl ProgressReader<'_, '_> {
    fn watched(&mut self, id: &BeadId) -> Result<WatchedBead> {
        let Some(bead) = self.reader.bead(id)? else {
            let progress = BeadProgress::Failed("it was deleted".to_owned());
            return Ok(WatchedBead { bead: id.clone(), title: String::new(), progress });
        };
        let progress = self.progress(&bead)?;
        Ok(WatchedBead { bead: bead.id, title: bead.title.to_string(), progress })
    }

    fn progress(&mut self, bead: &Bead) -> Result<BeadProgress> {
        if self.snapshot.run_of(&bead.id).is_some() {
            return Ok(BeadProgress::Going);
        }
        if bead.status == Status::Closed {
            return Ok(match bead.outcome {
                Some(Outcome::Failed) => BeadProgress::Failed(bead.close_reason.clone()),
                _ => BeadProgress::Done,
            });
        }
        let Some(context) = self.reader.open_context(&bead.id)? else {
            let reasons = self.snapshot.reasons_unscheduled(self.reader, bead, None)?;
            let is_landing = reasons.iter().any(|reason| {
                matches!(reason, WaitReason::Merging(request) if request.moves_by_itself())
            });
            return Ok(if is_landing { BeadProgress::Going } else { BeadProgress::Stuck(reasons) });
        };
        let facts = BeadFacts::of_bead(self.reader, bead)?;
        let mut stuck = Vec::new();
        for reason in self.snapshot.reasons(&context, bead, &facts) {
            if !self.passes(&reason)? {
                stuck.push(reason);
            }
        }
        Ok(if stuck.is_empty() { BeadProgress::Going } else { BeadProgress::Stuck(stuck) })
    }

    /// Whether a reason goes away without a person.
    fn passes(&mut self, reason: &WaitReason) -> Result<bool> {
        let WaitReason::BlockedBy(blockers) = reason else {
            return Ok(reason.passes_by_itself());
        };
        for blocker in blockers {
            let gets_further = if let Some(known) = self.known.get(blocker) {
                *known
            } else {
                // In a cycle of blockers, no bead goes on by itself.
                self.known.insert(blocker.clone(), false);
                let bead = self.reader.bead(blocker)?;
                let progress = bead.map(|bead| self.progress(&bead)).transpose()?;
                let gets_further = progress == Some(BeadProgress::Going);
                self.known.insert(blocker.clone(), gets_further);
                gets_further
            };
            if !gets_further {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
