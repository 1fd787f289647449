//! What somebody who starts to work here wants to know first.

use gt_core::{Rig, Status};
use gt_store::{BeadFilter, BeadRow, Readiness, Statistics, StatusFilter};

use super::list::find_some;
use super::ready::ready_rows;
use crate::{Result, Town};

/// How the town stands for one actor.
#[derive(Debug, Clone)]
pub struct Primer {
    /// The rig they stand in.
    pub rig: Option<Rig>,
    /// Numbers about the whole town.
    pub statistics: Statistics,
    /// What they are at, most urgent first.
    pub claimed: Vec<BeadRow>,
    /// Whether they are at more than that.
    pub more_claimed: bool,
    /// The most urgent of what can be worked on.
    pub ready: Vec<BeadRow>,
    /// How many beads can be worked on.
    pub ready_count: u64,
}

/// Looks around for the town's actor; at most `limit` beads of each kind.
pub fn primer(town: &Town, limit: usize) -> Result<Primer> {
    let claimed = BeadFilter {
        status: StatusFilter::OneOf(vec![Status::InProgress, Status::Hooked]),
        assignee: Some(town.actor().name.clone()),
        limit: Some(limit),
        ..BeadFilter::default()
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
            statistics: reader.statistics()?,
            claimed: reader.bead_rows(&ids)?,
            more_claimed,
            ready: ready_beads,
            ready_count: reader.count(&ready)?,
        })
    })
}
