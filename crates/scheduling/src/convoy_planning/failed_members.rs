//! The failed members of a convoy.

use std::collections::BTreeSet;

use gt_core::{BeadId, DependencyType, Outcome, Status};

use gt_beads::convoys::{Convoy, require};
use gt_town::{Result, Town};

/// A convoy and its beads that failed or were given up.
pub fn failed_members(town: &Town, convoy: &str) -> Result<(Convoy, Vec<String>)> {
    town.read(|reader| {
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
    })
}
