//! The convoys that are under way, in numbers.

use std::collections::HashMap;
use std::time::Duration;

use gt_core::decide::{ConvoyState, MemberRole, RunDurations, StagedMember, WaitClass, WaitReason};
use gt_core::{BeadId, ExecutorKind, Timestamp};
use gt_store::{Member, QueuedMember, Reader, StatusFilter};

use super::forecast::{BeadForecastFacts, DurationEstimate, outlook, past_durations};
use crate::dispatch::DispatchInputs;
use crate::dispatch::SchedulingSnapshot;
use gt_beads::convoys::{Convoy, find};
use gt_town::{Result, Town};

/// A convoy in numbers.
#[derive(Debug, Clone)]
pub struct ConvoyOverview {
    /// The convoy.
    pub convoy: Convoy,
    /// How many beads of it have a live run, or are about to.
    pub running: u64,
    /// How many wait only for their turn.
    pub queued: u64,
    /// How many wait for others.
    pub blocked: u64,
    /// How long the rest takes; none if nothing was done before by which that could be told.
    pub estimate: Option<DurationEstimate>,
    /// When it was looked at.
    pub as_of: Timestamp,
}

impl ConvoyOverview {
    /// When the convoy would be done at the rate of past runs.
    pub fn eta(&self) -> Option<Timestamp> {
        self.estimate.map(|estimate| self.as_of.plus(estimate.remaining))
    }
}

/// The convoys that are under way, the newest first, at most so many of them; and how many there are.
pub fn overview(town: &Town, limit: usize) -> Result<(Vec<ConvoyOverview>, usize)> {
    let inputs = DispatchInputs::read(town)?;
    town.read(|reader| {
        let found = reader.bead_rows(&find(reader, StatusFilter::Current)?)?;
        let beads = found.into_iter().map(|row| row.bead);
        let under_way: Vec<_> =
            beads.filter(|bead| ConvoyState::of(bead) == ConvoyState::Open).collect();
        let mut shown = Vec::with_capacity(under_way.len());
        for bead in under_way {
            let tally = reader.convoy_tally(&bead.id)?;
            let convoy = Convoy::of(bead, tally);
            if !convoy.is_bookkeeping() {
                shown.push(convoy);
            }
        }
        let total = shown.len();
        if total == 0 {
            return Ok((Vec::new(), 0));
        }
        let snapshot = SchedulingSnapshot::read_for_daemon(reader, &inputs, town.now())?;
        let durations = past_durations(reader)?;
        let mut convoys = Vec::new();
        for convoy in shown.into_iter().take(limit) {
            convoys.push(count(reader, &snapshot, durations.as_ref(), convoy)?);
        }
        Ok((convoys, total))
    })
}

fn count(
    reader: &Reader<'_>,
    snapshot: &SchedulingSnapshot,
    durations: Option<&RunDurations>,
    convoy: Convoy,
) -> Result<ConvoyOverview> {
    let open_members = reader.open_members(&convoy.bead.id)?;
    let is_starting = |one: &QueuedMember| one.is_starting;
    let is_live = |one: &Member| one.run.is_some() || one.context.as_ref().is_some_and(is_starting);
    let is_queued = |one: &Member| {
        let is_in_line = |queued_member: &QueuedMember| {
            let is_due = queued_member.due_at.is_none_or(|due_at| due_at <= snapshot.now);
            queued_member.waits == WaitClass::Nothing
                && is_due
                && snapshot.rig_starts(&queued_member.lane)
        };
        !is_live(one) && one.context.as_ref().is_some_and(is_in_line)
    };
    let number = |counts: &dyn Fn(&Member) -> bool| {
        open_members.iter().filter(|one| counts(one)).count() as u64
    };
    let members = members(reader, snapshot, &convoy, &open_members)?;
    let is_gated = |one: &Member| one.context.as_ref().is_some_and(|one| one.lane.gated);
    let is_gated = open_members.iter().any(is_gated);
    let settings = &snapshot.settings;
    let slots = if is_gated { settings.cap_in_force() } else { settings.max_polecats };
    let slots = convoy.slots_within(slots);
    let outlook =
        outlook(durations, settings, slots, &members, |at| mark(snapshot, &open_members[at]));
    Ok(ConvoyOverview {
        running: number(&is_live),
        queued: number(&is_queued),
        blocked: number(&|one| one.is_blocked && !is_live(one)),
        estimate: outlook.estimate,
        as_of: snapshot.now,
        convoy,
    })
}

fn executor(snapshot: &SchedulingSnapshot, one: &Member) -> ExecutorKind {
    let rig = one.rig.as_ref().and_then(|slug| snapshot.rig(slug));
    rig.map_or(ExecutorKind::Process, |rig| rig.executor)
}

/// The remaining beads with their relations to each other.
fn members(
    reader: &Reader<'_>,
    snapshot: &SchedulingSnapshot,
    convoy: &Convoy,
    open_members: &[Member],
) -> Result<Vec<StagedMember>> {
    let places: HashMap<&BeadId, usize> =
        open_members.iter().enumerate().map(|(at, one)| (&one.bead, at)).collect();
    let member = |one: &Member| {
        let rig = one.rig.as_ref().and_then(|slug| snapshot.rig(slug));
        let part = if one.issue_type.is_slingable(executor(snapshot, one)) {
            MemberRole::Work(rig.map(|rig| (rig.slug.clone(), rig.state)))
        } else {
            MemberRole::Frame(Vec::new())
        };
        StagedMember {
            id: one.bead.clone(),
            part,
            waits_for: Vec::new(),
            awaited_children: Vec::new(),
            gates: Vec::new(),
        }
    };
    let mut members: Vec<StagedMember> = open_members.iter().map(member).collect();
    for (bead, target) in reader.waits_of_open_members(&convoy.bead.id)? {
        let Some(at) = places.get(&bead).copied() else { continue };
        match places.get(&target).copied() {
            Some(place) => members[at].waits_for.push(place),
            None => members[at].gates.push(target),
        }
    }
    Ok(members)
}

fn mark(snapshot: &SchedulingSnapshot, one: &Member) -> BeadForecastFacts {
    let Some(context) = &one.context else {
        // Agents that ask for work are offered it whether it was scheduled or not.
        let is_offered = executor(snapshot, one) == ExecutorKind::Pull;
        return BeadForecastFacts {
            age: one.run.as_ref().map(|(_, since)| snapshot.now.since(*since)),
            is_stuck: !is_offered,
            begins_in: Duration::ZERO,
            turn: u64::MAX,
        };
    };
    let reasons =
        if one.run.is_some() { Vec::new() } else { snapshot.usual_lane_reasons(&context.lane) };
    let is_kept = context.waits != WaitClass::Nothing && !one.is_blocked;
    let until = reasons.iter().filter_map(WaitReason::until).chain(context.due_at).max();
    BeadForecastFacts {
        age: one.run.as_ref().map(|(_, since)| snapshot.now.since(*since)),
        is_stuck: is_kept || reasons.iter().any(|reason| !reason.passes_by_itself()),
        begins_in: until.map(|until| until.since(snapshot.now)).unwrap_or_default(),
        turn: context.number,
    }
}
