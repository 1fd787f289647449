//! The facts that an agent or a person needs first when they start to work here.

use gt_core::{Rig, Status};
use gt_store::{BeadFilter, BeadRow, Readiness, StatusFilter};

use super::list::find_some;
use super::ready::ready_rows;
use gt_town::{Result, Town};

/// The state of the town for one actor.
#[derive(Debug, Clone)]
pub struct Primer {
    /// The rig of the working directory.
    pub rig: Option<Rig>,
    /// How many beads are in progress.
    pub active_count: u64,
    /// How many beads wait for another.
    pub waiting_count: u64,
    /// The actor's own beads in progress, most urgent first.
    pub claimed: Vec<BeadRow>,
    /// Whether the actor has more beads in progress than these.
    pub more_claimed: bool,
    /// The most urgent ready beads.
    pub ready: Vec<BeadRow>,
    /// How many beads are ready.
    pub ready_count: u64,
}

/// Collects the facts for the town's actor; at most `limit` beads of each kind. Everything here comes from an
/// index: an agent that starts should not have to wait, however large the town is.
pub fn primer(town: &Town, limit: usize) -> Result<Primer> {
    let active = BeadFilter {
        status: StatusFilter::OneOf(vec![Status::InProgress, Status::Hooked]),
        ..BeadFilter::default()
    };
    let waiting = BeadFilter { blocked: true, ..BeadFilter::default() };
    let claimed = BeadFilter {
        assignee: Some(town.actor().name.clone()),
        limit: Some(limit),
        ..active.clone()
    };
    let ready = BeadFilter {
        ready: Some(Readiness { now: town.now(), include_deferred: false }),
        limit: Some(limit),
        ..BeadFilter::default()
    };
    town.read(|reader| {
        let (ids, more_claimed) = find_some(reader, &claimed, None)?;
        let (ready_beads, _) = ready_rows(reader, &ready, None)?;
        Ok(Primer {
            rig: town.rig_here(&reader.rigs()?),
            active_count: reader.count(&active)?,
            waiting_count: reader.count(&waiting)?,
            claimed: reader.bead_rows(&ids)?,
            more_claimed,
            ready: ready_beads,
            ready_count: reader.count(&ready)?,
        })
    })
}
