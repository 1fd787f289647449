//! Another try for what failed of a convoy.

use std::collections::BTreeSet;

use gt_core::{BeadId, DependencyType, Outcome, Status};

use crate::schedule::{Retried, retry_found};
use gt_beads::convoys::{Convoy, require};
use gt_town::{Result, Town};

/// Schedules every bead of a convoy again that failed or was given up, and clears its failures. Beads that waited for
/// it go on waiting, until it is done.
pub fn retry(town: &Town, convoy: &str) -> Result<(Convoy, Vec<Result<Retried>>)> {
    let (convoy, failed) = town.read(|reader| {
        let bead = require(town, reader, convoy)?;
        let edges = reader.edges_from(&bead.id)?.into_iter();
        let tracked = edges.filter(|edge| edge.kind == DependencyType::Tracks);
        let tracked: Vec<BeadId> = tracked.map(|edge| edge.target).collect();
        let contexts = reader.failed_contexts()?.into_iter().map(|context| context.bead);
        let given_up: BTreeSet<BeadId> = contexts.chain(reader.beads_with_failed_runs()?).collect();
        let mut failed = Vec::new();
        for row in reader.bead_rows(&tracked)? {
            let (status, outcome) = (&row.bead.status, row.bead.outcome);
            let has_failed = *status == Status::Closed && outcome == Some(Outcome::Failed);
            if has_failed || (*status != Status::Closed && given_up.contains(&row.bead.id)) {
                failed.push(row.bead.id.to_string());
            }
        }
        let tally = reader.convoy_tally(&bead.id)?;
        Ok((Convoy::of(bead, tally), failed))
    })?;
    Ok((convoy, retry_found(town, failed)?))
}
