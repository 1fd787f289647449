//! Waiting until work is over, or only a person can get it further.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use gt_core::decide::WaitReason;
use gt_core::schedule::{Run, RunId};
use gt_core::{Bead, BeadId, Event, EventKind, Outcome, Status};
use gt_store::{Bell, EventFilter, Reader};

use super::recover::recover;
use super::world::World;
use crate::beads::BeadFacts;
use crate::dispatch::{Caller, Overrides, Scene};
use crate::events::Follower;
use crate::schedule::{Meaning, meaning};
use crate::{Result, Town};

/// What is waited for.
#[derive(Debug, Clone, Default)]
pub struct WaitRequest {
    /// These beads; none for everything that is scheduled or running.
    pub beads: Vec<String>,
    /// At most so long.
    pub timeout: Option<Duration>,
}

/// What came of waiting.
#[derive(Debug, Clone)]
pub struct Waited {
    /// How each bead stands in the end.
    pub beads: Vec<Watched>,
    /// Whether the time was up first.
    pub timed_out: bool,
}

impl Waited {
    /// Whether everything has ended well.
    pub fn is_well(&self) -> bool {
        !self.timed_out && self.beads.iter().all(|watched| watched.progress == Progress::Done)
    }
}

/// A bead that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// Which bead.
    pub bead: BeadId,
    /// Its title; empty if the bead is gone.
    pub title: String,
    /// How far it is.
    pub progress: Progress,
}

/// How far a bead is that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It is running, or will start without anybody doing anything but dispatching it.
    Going,
    /// It is closed.
    Done,
    /// It is closed as failed, or gone, for this reason.
    Failed(String),
    /// Only a person can get it further, for these reasons.
    Stuck(Vec<WaitReason>),
}

/// What happens while one waits.
#[derive(Debug, Clone, Copy)]
pub enum Notice<'a> {
    /// A bead has ended.
    Ended(&'a Watched),
    /// Something is wrong with this run that could not be put right, for this reason.
    NotRecovered(&'a RunId, &'a str),
    /// Nothing is running, though something could be started: somebody has to dispatch it.
    Idle,
}

/// How often one looks at the number of the last event where no bell rings. That is one read of a counter.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often one asks the world whether runs are still there.
const RECOVER_EVERY: Duration = Duration::from_secs(1);
/// How long nothing may run before that is told.
const IDLE_TOLD_AFTER: Duration = Duration::from_secs(3);

/// Waits until every bead is over, or only a person can get it further. `each` is told what happens
/// meanwhile.
pub fn wait(
    town: &Town,
    world: &dyn World,
    request: &WaitRequest,
    each: impl FnMut(Notice<'_>),
) -> Result<Waited> {
    let began = town.now();
    let mut waiting = Waiting::begin(town, world, request, each)?;
    let bell = town.bell();
    loop {
        match waiting.look() {
            Ok(Some(beads)) => return Ok(Waited { beads, timed_out: false }),
            Ok(None) => {}
            // Whoever waits is meant to stay.
            Err(error) if error.may_pass() => {}
            Err(error) => return Err(error),
        }
        let passed = town.now().since(began);
        let left = request.timeout.map_or(Duration::MAX, |limit| limit.saturating_sub(passed));
        if left.is_zero() {
            let beads = waiting.standing()?;
            return Ok(Waited { beads, timed_out: true });
        }
        pause(&bell, left);
    }
}

/// Lets some time pass, or until there may be news.
fn pause(bell: &Bell, at_most: Duration) {
    let usual = if bell.rings() { RECOVER_EVERY } else { LOOK_EVERY };
    bell.wait(usual.min(at_most));
}

struct Waiting<'a, F> {
    town: &'a Town,
    world: &'a dyn World,
    each: F,
    follower: Follower,
    /// What was named; nothing if everything is waited for.
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

impl<'a, F: FnMut(Notice<'_>)> Waiting<'a, F> {
    fn begin(town: &'a Town, world: &'a dyn World, request: &WaitRequest, each: F) -> Result<Self> {
        // The place to go on from is taken before the first look: nothing falls in between.
        let follower = Follower::from_now(town, EventFilter::default())?;
        let (named, seen) = town.read(|reader| {
            if request.beads.is_empty() {
                let queued = reader.open_contexts()?.into_iter().map(|context| context.bead);
                let live = reader.live_runs()?.into_iter().map(|run| run.id.bead);
                return Ok((None, queued.chain(live).collect()));
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
            world,
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

    /// Looks once; says how everything stands if nothing gets further by itself.
    fn look(&mut self) -> Result<Option<Vec<Watched>>> {
        let now = self.town.now();
        if self.recovered_at.is_none_or(|at| now.since(at) >= RECOVER_EVERY || now < at) {
            for (run, why) in recover(self.town, self.world)?.errors {
                if self.unrecovered.insert(run.clone()) {
                    (self.each)(Notice::NotRecovered(&run, &why));
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
            let standing = self.standing_if_worth_it()?;
            if let Some(standing) = standing
                && standing.iter().all(|watched| watched.progress != Progress::Going)
            {
                return Ok(Some(standing));
            }
        }
        self.tell_if_idle(now)?;
        Ok(None)
    }

    /// How everything stands, unless it is plain that something goes on.
    fn standing_if_worth_it(&mut self) -> Result<Option<Vec<Watched>>> {
        if self.named.is_none() && self.is_anything_live()? {
            return Ok(None);
        }
        let standing = self.standing()?;
        for watched in &standing {
            let has_ended = matches!(watched.progress, Progress::Done | Progress::Failed(_));
            if has_ended && self.told.insert(watched.bead.clone()) {
                (self.each)(Notice::Ended(watched));
            }
        }
        Ok(Some(standing))
    }

    fn is_anything_live(&self) -> Result<bool> {
        self.town
            .read(|reader| Ok(reader.live_runs()?.iter().any(|run| Run::takes_slot(run.executor))))
    }

    fn tell_if_idle(&mut self, now: gt_core::Timestamp) -> Result<()> {
        if self.idle_told {
            return Ok(());
        }
        if self.is_anything_live()? {
            self.idle_since = None;
            return Ok(());
        }
        if now.since(*self.idle_since.get_or_insert(now)) >= IDLE_TOLD_AFTER {
            self.idle_told = true;
            (self.each)(Notice::Idle);
        }
        Ok(())
    }

    /// How every bead that is waited for stands.
    fn standing(&self) -> Result<Vec<Watched>> {
        let around = self.town.surroundings()?;
        self.town.read(|reader| {
            let scene = self.town.scene(reader, &around, &Overrides::default(), Caller::Daemon)?;
            let mut judge = Judge { reader, scene, known: HashMap::new() };
            match &self.named {
                Some(named) => named.iter().map(|id| judge.watched(id)).collect(),
                None => self.seen.iter().map(|id| judge.watched(id)).collect(),
            }
        })
    }
}

/// The beads that an input means: those that work on an epic or a convoy is made of, else itself.
fn meant(town: &Town, reader: &Reader<'_>, input: &str) -> Result<Vec<BeadId>> {
    let parts = match meaning(town, reader, input)? {
        Meaning::Bead(bead) => return Ok(vec![bead.id]),
        Meaning::Epic(_, parts) | Meaning::Convoy(_, parts) => parts,
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

/// Says how far beads are, at one moment.
struct Judge<'r, 's> {
    reader: &'r Reader<'s>,
    scene: Scene,
    /// Whether a bead that blocks others gets further by itself.
    known: HashMap<BeadId, bool>,
}

impl Judge<'_, '_> {
    fn watched(&mut self, id: &BeadId) -> Result<Watched> {
        let Some(bead) = self.reader.bead(id)? else {
            let progress = Progress::Failed("it was deleted".to_owned());
            return Ok(Watched { bead: id.clone(), title: String::new(), progress });
        };
        let progress = self.progress(&bead)?;
        Ok(Watched { bead: bead.id, title: bead.title.to_string(), progress })
    }

    fn progress(&mut self, bead: &Bead) -> Result<Progress> {
        if self.scene.run_of(&bead.id).is_some() {
            return Ok(Progress::Going);
        }
        if bead.status == Status::Closed {
            return Ok(match bead.outcome {
                Some(Outcome::Failed) => Progress::Failed(bead.close_reason.clone()),
                _ => Progress::Done,
            });
        }
        let Some(context) = self.reader.open_context(&bead.id)? else {
            let reasons = self.scene.reasons_unscheduled(self.reader, bead, None)?;
            return Ok(Progress::Stuck(reasons));
        };
        let facts = BeadFacts::of_bead(self.reader, bead)?;
        let mut stuck = Vec::new();
        for reason in self.scene.reasons(&context, bead, &facts) {
            if !self.passes(&reason)? {
                stuck.push(reason);
            }
        }
        Ok(if stuck.is_empty() { Progress::Going } else { Progress::Stuck(stuck) })
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
                // Should there be a circle after all, nothing in it gets further.
                self.known.insert(blocker.clone(), false);
                let bead = self.reader.bead(blocker)?;
                let progress = bead.map(|bead| self.progress(&bead)).transpose()?;
                let gets_further = progress == Some(Progress::Going);
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
