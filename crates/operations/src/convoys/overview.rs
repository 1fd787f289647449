//! The convoys that are under way, in numbers.

use std::collections::HashMap;

use gt_core::decide::{ConvoyState, Member, Pace, Part};
use gt_core::{BeadId, ExecutorKind, Timestamp};
use gt_store::{Booking, Reader, StatusFilter, Traveller};

use super::forecast::{Estimate, Mark, outlook, pace};
use super::{Convoy, find};
use crate::dispatch::{Caller, Overrides, Scene};
use crate::{Result, Town};

/// A convoy in numbers.
#[derive(Debug, Clone)]
pub struct Overview {
    /// The convoy.
    pub convoy: Convoy,
    /// How many beads of it somebody has in hand, or is about to.
    pub running: u64,
    /// How many wait for nothing but their turn.
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
    let around = town.surroundings()?;
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
        let scene = town.scene(reader, &around, &Overrides::default(), Caller::Daemon)?;
        let pace = pace(reader)?;
        let mut convoys = Vec::new();
        for convoy in shown.into_iter().take(limit) {
            convoys.push(count(reader, &scene, pace.as_ref(), convoy)?);
        }
        Ok((convoys, total))
    })
}

fn count(
    reader: &Reader<'_>,
    scene: &Scene,
    pace: Option<&Pace>,
    convoy: Convoy,
) -> Result<Overview> {
    let travellers = reader.travellers(&convoy.bead.id)?;
    let is_starting = |one: &Booking| one.is_starting;
    let is_live =
        |one: &Traveller| one.run.is_some() || one.context.as_ref().is_some_and(is_starting);
    let is_queued = |one: &Traveller| {
        let is_in_line = |booking: &Booking| {
            let is_awake = booking.asleep_until.is_none_or(|until| until <= scene.now);
            !booking.is_held && is_awake && scene.rig_starts(&booking.lane)
        };
        !is_live(one) && one.context.as_ref().is_some_and(is_in_line)
    };
    let number = |counts: &dyn Fn(&Traveller) -> bool| {
        travellers.iter().filter(|one| counts(one)).count() as u64
    };
    let members = members(reader, scene, &convoy, &travellers)?;
    let is_gated = |one: &Traveller| one.context.as_ref().is_some_and(|one| one.lane.gated);
    let is_gated = travellers.iter().any(is_gated);
    let settings = &scene.settings;
    let slots = if is_gated { settings.cap_in_force() } else { settings.max_polecats };
    let slots = convoy.slots_within(slots);
    let outlook = outlook(pace, settings, slots, &members, |at| mark(scene, &travellers[at]));
    Ok(Overview {
        running: number(&is_live),
        queued: number(&is_queued),
        blocked: number(&|one| one.is_blocked && !is_live(one)),
        estimate: outlook.estimate,
        as_of: scene.now,
        convoy,
    })
}

fn executor(scene: &Scene, one: &Traveller) -> ExecutorKind {
    let rig = one.rig.as_ref().and_then(|slug| scene.rig(slug));
    rig.map_or(ExecutorKind::Process, |rig| rig.executor)
}

/// What those that are left are to each other.
fn members(
    reader: &Reader<'_>,
    scene: &Scene,
    convoy: &Convoy,
    travellers: &[Traveller],
) -> Result<Vec<Member>> {
    let places: HashMap<&BeadId, usize> =
        travellers.iter().enumerate().map(|(at, one)| (&one.bead, at)).collect();
    let member = |one: &Traveller| {
        let rig = one.rig.as_ref().and_then(|slug| scene.rig(slug));
        let part = if one.issue_type.is_slingable(executor(scene, one)) {
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

fn mark(scene: &Scene, one: &Traveller) -> Mark {
    // Agents that ask for work are offered it whether it was scheduled or not.
    let is_offered = executor(scene, one) == ExecutorKind::Pull;
    let is_kept = |booking: &Booking| booking.is_held && !one.is_blocked;
    Mark {
        age: one.run.as_ref().map(|(_, since)| scene.now.since(*since)),
        is_stuck: one.context.as_ref().map_or(!is_offered, is_kept),
        turn: one.context.as_ref().map_or(u64::MAX, |booking| booking.number),
    }
}
