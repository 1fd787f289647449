//! The invariants of convoys and epics.

use std::collections::{BTreeMap, BTreeSet};

use gt_core::decide::{
    ConvoyState, Members, PARTS_DONE, integration_base, is_owned, lands_by_itself,
};
use gt_core::merging::{RequestHold, RequestPurpose, RequestState, integration_branch};
use gt_core::schedule::{CloseReason, Context, ContextOrigin, Run, RunState};
use gt_core::{Bead, BeadId, DependencyType, EventKind, IssueType, Outcome, RigSlug, Status};
use gt_executors::git::Commit;
use gt_store::{BeadFilter, ConvoyTally, EventFilter, Reader, StatusFilter, StoreError};

use crate::check::StoreSnapshot;
use crate::merging::TARGET;
use crate::simulation::Simulation;
use crate::violation::Invariant;

/// A convoy at one moment.
pub(crate) struct SeenConvoy {
    pub(crate) bead: Bead,
    tracked: Vec<BeadId>,
    tally: Option<ConvoyTally>,
}

impl SeenConvoy {
    pub(crate) fn tracks(&self, bead: &BeadId) -> bool {
        self.tracked.contains(bead)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.tally.as_ref().is_some_and(|tally| tally.paused.is_some())
    }

    pub(crate) fn is_staged(&self) -> bool {
        self.state() == ConvoyState::Staged
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state(), ConvoyState::Closed | ConvoyState::Landed)
    }

    /// How many of it may be worked on at once; 0 for any number.
    pub(crate) fn cap(&self) -> u32 {
        self.tally.as_ref().map_or(0, |tally| tally.cap)
    }

    /// Whether its work comes together on a branch of its own.
    pub(crate) fn has_branch(&self) -> bool {
        integration_base(&self.bead).is_some()
    }

    fn state(&self) -> ConvoyState {
        ConvoyState::of(&self.bead)
    }
}

/// Every convoy, sorted by id.
pub(crate) fn convoys_in(reader: &Reader<'_>) -> Result<Vec<SeenConvoy>, StoreError> {
    let mut found = reader.find(&BeadFilter {
        status: StatusFilter::All,
        types: vec![IssueType::trusted("convoy".to_owned())],
        ..BeadFilter::default()
    })?;
    found.sort();
    let mut seen = Vec::with_capacity(found.len());
    for row in reader.bead_rows(&found)? {
        let edges = row.dependencies.into_iter();
        let tracked = edges.filter(|edge| edge.kind == DependencyType::Tracks);
        let tracked = tracked.map(|edge| edge.target).collect();
        let tally = reader.convoy_tally(&row.bead.id)?;
        seen.push(SeenConvoy { bead: row.bead, tracked, tally });
    }
    Ok(seen)
}

/// The facts about convoys from past events.
#[derive(Debug, Default)]
pub(crate) struct ConvoyHistory {
    last_event: u64,
    last_context: u64,
    /// How often each has landed, and whether it is down.
    landings: BTreeMap<BeadId, (u64, bool)>,
}

/// The changes since the last check.
#[derive(Default)]
struct ChangesSinceCheck {
    /// The beads and convoys that are open again.
    reopened: BTreeSet<BeadId>,
    /// The rigs that stand differently.
    rigs: BTreeSet<RigSlug>,
    contexts: Vec<Context>,
}

impl Simulation {
    /// Looks at every convoy and the epic.
    pub(crate) fn check_convoys(&self, snapshot: &StoreSnapshot) {
        let fresh = self.hear();
        for convoy in &snapshot.convoys {
            self.check_landing(snapshot, convoy);
        }
        self.check_epic(snapshot);
        for context in &fresh.contexts {
            self.check_scheduling(snapshot, context);
        }
        self.check_fed(snapshot, &fresh);
    }

    /// The new events. Checks that a convoy that lands has not landed before, or was open again
    /// since.
    fn hear(&self) -> ChangesSinceCheck {
        let (heard, known) = {
            let state = self.state();
            (state.memory.convoys.last_event, state.memory.convoys.last_context)
        };
        let kinds = vec![EventKind::ConvoyLanded, EventKind::Reopened, EventKind::RigChanged];
        let filter = EventFilter { kinds, ..EventFilter::default() };
        let (events, reached) = self.read(|reader| reader.events_after(heard, &filter, usize::MAX));
        let mut fresh = ChangesSinceCheck::default();
        let mut twice = None;
        let mut state = self.state();
        let memory = &mut state.memory;
        for event in events {
            match (&event.kind, event.bead, event.rig) {
                (EventKind::ConvoyLanded, Some(convoy), _) => {
                    let (landings, is_down) =
                        memory.convoys.landings.entry(convoy.clone()).or_default();
                    *landings += 1;
                    if std::mem::replace(is_down, true) {
                        twice = Some(convoy);
                    }
                }
                (EventKind::Reopened, Some(bead), _) => {
                    if let Some((_, is_down)) = memory.convoys.landings.get_mut(&bead) {
                        *is_down = false;
                    }
                    fresh.reopened.insert(bead);
                }
                (EventKind::RigChanged, _, Some(rig)) => {
                    fresh.rigs.insert(rig);
                }
                _ => {}
            }
        }
        let new = memory.contexts.range(known + 1..).map(|(_, context)| context.clone());
        fresh.contexts = new.collect();
        memory.convoys.last_event = reached;
        memory.convoys.last_context = memory.contexts.keys().next_back().copied().unwrap_or(known);
        drop(state);
        if let Some(convoy) = twice {
            self.violated(Invariant::Landing, format!("{convoy} lands, and was down already"));
        }
        fresh
    }

    fn check_landing(&self, snapshot: &StoreSnapshot, convoy: &SeenConvoy) {
        let id = &convoy.bead.id;
        let members = snapshot.members(&convoy.tracked);
        let wrong = |what: &str| -> ! {
            let reason = &convoy.bead.close_reason;
            let found = format!("{id} {what}: {members:?} {:?} {reason:?}", convoy.bead.status);
            self.violated(Invariant::Landing, found)
        };
        let by_itself = !is_owned(&convoy.bead);
        match convoy.state() {
            ConvoyState::Open if lands_by_itself(&convoy.bead) && members.are_done() => {
                wrong("has not landed")
            }
            // Everything may have left it since.
            ConvoyState::Landed if by_itself && members.open + members.failed > 0 => {
                wrong("is not done")
            }
            _ => {}
        }
        if convoy.state() == ConvoyState::Landed && convoy.has_branch() {
            self.check_integrated(snapshot, convoy);
        }
        // One that has landed is open again with the first of its beads.
        if convoy.state() == ConvoyState::Closed && (convoy.is_paused() || convoy.cap() > 0) {
            self.violated(Invariant::Reason, format!("{id} is over, and holds its beads up"));
        }
        let kept = convoy.tally.as_ref().map_or(0, |tally| tally.landings);
        let told = self.state().memory.convoys.landings.get(id).map_or(0, |(told, _)| *told);
        if kept != told {
            wrong(&format!("has landed {kept} times, and was told to have landed {told} times"));
        }
    }

    /// A convoy with a branch of its own has landed: its last requests have brought everything on the branch to the target.
    fn check_integrated(&self, snapshot: &StoreSnapshot, convoy: &SeenConvoy) {
        let id = &convoy.bead.id;
        let branch = integration_branch(id);
        let own = snapshot.requests.get(id).map_or(&[][..], Vec::as_slice);
        if let Some(open) = own.iter().find(|request| request.state.is_open()) {
            let found = format!("{id} has landed, and {} is {}", open.id, open.state);
            self.violated(Invariant::Landing, found);
        }
        let members = convoy.tracked.iter().filter_map(|bead| snapshot.requests.get(bead));
        let landed = members.flatten().filter(|request| {
            request.state == RequestState::Landed
                && request.purpose == RequestPurpose::Work
                && request.target == branch
        });
        for request in landed {
            let Some(commit) = Commit::parse(&request.landed) else { continue };
            let brought = own
                .iter()
                .filter(|last| last.rig == request.rig && last.state == RequestState::Landed);
            let brought: Vec<Commit> =
                brought.filter_map(|last| Commit::parse(&last.accepted)).collect();
            let is_there = self.with_origin(&request.rig, |origin| {
                origin.was_seen(TARGET, &commit)
                    || brought.iter().any(|tip| origin.contains(Some(tip), &commit))
            });
            if !is_there {
                let found = format!("{id} has landed, and its base does not have {}", request.id);
                self.violated(Invariant::Landing, found);
            }
        }
    }

    /// A convoy with a branch of its own whose members are done has landed, or its last request waits for a person.
    pub(crate) fn check_branches_arrived(&self, snapshot: &StoreSnapshot) {
        for convoy in snapshot.convoys.iter().filter(|convoy| convoy.has_branch()) {
            let id = &convoy.bead.id;
            let members = snapshot.members(&convoy.tracked);
            let own = snapshot.requests.get(id).map_or(&[][..], Vec::as_slice);
            let waits = own.iter().any(|request| {
                matches!(
                    request.state,
                    RequestState::Conflict
                        | RequestState::Failed
                        | RequestState::Cancelled
                        | RequestState::Held(RequestHold::WorkMissing)
                )
            });
            if convoy.state() == ConvoyState::Open && members.are_done() && !waits {
                let states: Vec<RequestState> = own.iter().map(|request| request.state).collect();
                let found =
                    format!("{id} is done and has not landed: {states:?} {:?}", convoy.tally);
                self.violated(Invariant::Progress, found);
            }
        }
    }

    fn check_epic(&self, snapshot: &StoreSnapshot) {
        let Some(epic) = self.read(|reader| reader.bead(&self.epic)) else { return };
        let is_part = |row: &&gt_store::BeadRow| row.parent() == Some(&self.epic);
        let parts = snapshot.beads.values().filter(is_part).map(|row| row.bead.id.clone());
        let members = snapshot.members(&parts.collect::<Vec<_>>());
        let is_over = epic.status == Status::Closed && epic.close_reason == PARTS_DONE;
        if is_over != members.are_done() {
            let found = format!("{} is {}, its parts are {members:?}", epic.id, epic.status);
            self.violated(Invariant::Landing, found);
        }
    }

    /// Only people schedule beads that are staged, or whose last run was cancelled.
    fn check_scheduling(&self, snapshot: &StoreSnapshot, context: &Context) {
        let bead = &context.bead;
        let by_itself = matches!(context.origin, ContextOrigin::Convoy | ContextOrigin::Recovery);
        let before = {
            let state = self.state();
            let mut before = state.memory.contexts.range(..context.number);
            before.rfind(|(_, before)| before.bead == *bead).map(|(_, before)| before.clone())
        };
        // A bead that did not start, or is tried again, waits as it was scheduled before.
        let goes_on = before.as_ref().is_some_and(|before| {
            let run = snapshot.last_run(bead).filter(|run| run.context == before.number);
            before.origin == context.origin && run.is_some_and(|run| run.state == RunState::Failed)
        });
        let ended = before.and_then(|before| before.closed).map(|closed| closed.reason);
        let is_for_people = matches!(
            ended,
            Some(CloseReason::Cleared | CloseReason::CircuitBroken | CloseReason::Quarantined)
        );
        if by_itself && is_for_people {
            let found = format!("{bead} was {ended:?}, and no person asked for it again");
            self.violated(Invariant::EndsStay, found);
        }
        if context.origin == ContextOrigin::Convoy && !goes_on {
            let under_way = |convoy: &SeenConvoy| {
                convoy.tracks(bead)
                    && convoy.state() == ConvoyState::Open
                    && context.parameters.convoy.as_ref() == Some(&convoy.bead.id)
            };
            if !snapshot.convoys.iter().any(under_way) {
                let convoy = &context.parameters.convoy;
                let found = format!("{bead} is scheduled for {convoy:?}, which is not under way");
                self.violated(Invariant::Fed, found);
            }
        }
    }

    /// A bead that is open again, or whose rig serves again, is scheduled in the same change.
    fn check_fed(&self, snapshot: &StoreSnapshot, fresh: &ChangesSinceCheck) {
        if fresh.reopened.is_empty() && fresh.rigs.is_empty() {
            return;
        }
        let town = self.town_without_seam("observer");
        for stranded in self.certain("stranded", gt_scheduling::convoy_planning::stranded(&town)) {
            let convoy = &stranded.convoy.bead.id;
            for bead in stranded.ready.iter().chain(&stranded.waiting) {
                let rig = snapshot.beads.get(bead).and_then(|row| row.bead.rig.as_ref());
                let has_changed = fresh.reopened.contains(bead)
                    || fresh.reopened.contains(convoy)
                    || rig.is_some_and(|rig| fresh.rigs.contains(rig));
                if has_changed {
                    let found = format!("{bead} of {convoy} could be scheduled, and was not");
                    self.violated(Invariant::Fed, found);
                }
            }
        }
    }

    /// After a look at all convoys, no bead is left that could be scheduled and is not.
    pub(crate) fn check_nothing_stranded(&self) {
        let town = self.town_without_seam("observer");
        if let Some(first) =
            self.certain("stranded", gt_scheduling::convoy_planning::stranded(&town)).first()
        {
            let (ready, waiting) = (&first.ready, &first.waiting);
            let found = format!("{}: {ready:?} and {waiting:?}", first.convoy.bead.id);
            self.violated(Invariant::Fed, found);
        }
    }

    /// Nothing starts of a convoy that is paused, and no more than its cap lets.
    pub(crate) fn check_convoy_starts(&self, snapshot: &StoreSnapshot, new: &[&Run]) {
        let is_live = |run: &&Run| run.state.is_live() && run.executor.takes_slot();
        for convoy in snapshot.convoys.iter().filter(|convoy| !convoy.is_over()) {
            let id = &convoy.bead.id;
            let of_convoy = |run: &&Run| convoy.tracks(&run.id.bead);
            let started: Vec<&Run> = new.iter().copied().filter(of_convoy).collect();
            let Some(first) = started.first() else { continue };
            if convoy.is_paused() {
                self.violated(Invariant::Pause, format!("{} starts, {id} is paused", first.id));
            }
            let live = snapshot.runs.iter().filter(is_live).filter(of_convoy).count();
            let takes_slot = started.iter().copied().any(|run| is_live(&run));
            if takes_slot && convoy.cap() > 0 && live > convoy.cap() as usize {
                let cap = convoy.cap();
                let found = format!("the cap of {id} is {cap}, {live} are live: {}", first.id);
                self.violated(Invariant::Cap, found);
            }
        }
    }
}

impl StoreSnapshot {
    /// How these beads stand.
    fn members(&self, ids: &[BeadId]) -> Members {
        let mut members = Members::default();
        for bead in ids.iter().filter_map(|id| self.beads.get(id)).map(|row| &row.bead) {
            let is_closed = bead.status == Status::Closed;
            members.total += 1;
            members.open += u64::from(!is_closed);
            members.failed += u64::from(is_closed && bead.outcome == Some(Outcome::Failed));
        }
        members
    }
}
