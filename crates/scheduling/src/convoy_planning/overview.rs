//! The convoys that are under way, in numbers.

use std::collections::HashMap;

use gt_core::decide::{ConvoyState, Member, Pace, Part, WaitClass};
use gt_core::{BeadId, ExecutorKind, Timestamp};
use gt_store::{Booking, Reader, StatusFilter, Traveller};

use super::forecast::{Estimate, Mark, outlook, pace};
use crate::dispatch::DispatchInputs;
use crate::dispatch::{Caller, SchedulingSnapshot};
use gt_beads::convoys::{Convoy, find};
use gt_town::scheduler_settings::Overrides;
use gt_town::{Result, Town};

/// A convoy in numbers.
#[derive(Debug, Clone)]
pub struct Overview {
    /// The convoy.
    pub convoy: Convoy,
    /// How many beads of it have a live run, or are about to.
    pub running: u64,
    /// How many wait only for their turn.
    pub queued: u64,
    /// How many wait for others.
    pub blocked: u64,
    /// How long the rest takes; none if nothing was done before by which that could be told.
    pub estimate: Option<Estimate>,
    /// When it was looked at.
    pub as_of: Timestamp,
}

impl Overview {
    /// When the convoy would be done at this pace.
    pub fn eta(&self) -> Option<Timestamp> {
        self.estimate.map(|estimate| self.as_of.plus(estimate.remaining))
    }
}

/// The convoys that are under way, the newest first, at most so many of them; and how many there are.
pub fn overview(town: &Town, limit: usize) -> Result<(Vec<Overview>, usize)> {
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
        let snapshot = SchedulingSnapshot::read(
            reader,
            &inputs,
            &Overrides::default(),
            Caller::Daemon,
            town.now(),
        )?;
        let pace = pace(reader)?;
        let mut convoys = Vec::new();
        for convoy in shown.into_iter().take(limit) {
            convoys.push(count(reader, &snapshot, pace.as_ref(), convoy)?);
        }
        Ok((convoys, total))
    })
}

fn count(
    reader: &Reader<'_>,
    snapshot: &SchedulingSnapshot,
    pace: Option<&Pace>,
    convoy: Convoy,
) -> Result<Overview> {
    let travellers = reader.travellers(&convoy.bead.id)?;
    let is_starting = |one: &Booking| one.is_starting;
    let is_live =
        |one: &Traveller| one.run.is_some() || one.context.as_ref().is_some_and(is_starting);
    let is_queued = |one: &Traveller| {
        let is_in_line = |booking: &Booking| {
            let is_due = booking.due_at.is_none_or(|due_at| due_at <= snapshot.now);
            booking.waits == WaitClass::Nothing && is_due && snapshot.rig_starts(&booking.lane)
        };
        !is_live(one) && one.context.as_ref().is_some_and(is_in_line)
    };
    let number = |counts: &dyn Fn(&Traveller) -> bool| {
        travellers.iter().filter(|one| counts(one)).count() as u64
    };
    let members = members(reader, snapshot, &convoy, &travellers)?;
    let is_gated = |one: &Traveller| one.context.as_ref().is_some_and(|one| one.lane.gated);
    let is_gated = travellers.iter().any(is_gated);
    let settings = &snapshot.settings;
    let slots = if is_gated { settings.cap_in_force() } else { settings.max_polecats };
    let slots = convoy.slots_within(slots);
    let outlook = outlook(pace, settings, slots, &members, |at| mark(snapshot, &travellers[at]));
    Ok(Overview {
        running: number(&is_live),
        queued: number(&is_queued),
        blocked: number(&|one| one.is_blocked && !is_live(one)),
        estimate: outlook.estimate,
        as_of: snapshot.now,
        convoy,
    })
}

fn executor(snapshot: &SchedulingSnapshot, one: &Traveller) -> ExecutorKind {
    let rig = one.rig.as_ref().and_then(|slug| snapshot.rig(slug));
    rig.map_or(ExecutorKind::Process, |rig| rig.executor)
}

/// The remaining beads with their relations to each other.
fn members(
    reader: &Reader<'_>,
    snapshot: &SchedulingSnapshot,
    convoy: &Convoy,
    travellers: &[Traveller],
) -> Result<Vec<Member>> {
    let places: HashMap<&BeadId, usize> =
        travellers.iter().enumerate().map(|(at, one)| (&one.bead, at)).collect();
    let member = |one: &Traveller| {
        let rig = one.rig.as_ref().and_then(|slug| snapshot.rig(slug));
        let part = if one.issue_type.is_slingable(executor(snapshot, one)) {
            Part::Work(rig.map(|rig| (rig.slug.clone(), rig.state)))
        } else {
            Part::Frame(Vec::new())
        };
        Member {
            id: one.bead.clone(),
            part,
            waits_for: Vec::new(),
            awaited_children: Vec::new(),
            gates: Vec::new(),
        }
    };
    let mut members: Vec<Member> = travellers.iter().map(member).collect();
    for (bead, target) in reader.waits_of_travellers(&convoy.bead.id)? {
        let Some(at) = places.get(&bead).copied() else { continue };
        match places.get(&target).copied() {
            Some(place) => members[at].waits_for.push(place),
            None => members[at].gates.push(target),
        }
    }
    Ok(members)
}

fn mark(snapshot: &SchedulingSnapshot, one: &Traveller) -> Mark {
    // Agents that ask for work are offered it whether it was scheduled or not.
    let is_offered = executor(snapshot, one) == ExecutorKind::Pull;
    let is_kept = |booking: &Booking| booking.waits != WaitClass::Nothing && !one.is_blocked;
    Mark {
        age: one.run.as_ref().map(|(_, since)| snapshot.now.since(*since)),
        is_stuck: one.context.as_ref().map_or(!is_offered, is_kept),
        turn: one.context.as_ref().map_or(u64::MAX, |booking| booking.number),
    }
}
