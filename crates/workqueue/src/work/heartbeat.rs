//! Heartbeats: an agent renews the lease of its work.

use gt_core::schedule::{Run, RunState};
use gt_core::work::{ItemRef, RunRef, WorkItem};
use gt_core::{ExecutorKind, Timestamp};
use gt_store::Reader;

use super::error::{Conflict, WorkResult};
use super::requests::Heartbeat;
use super::{refuse_other, require_item};
use gt_town::Town;
use gt_town::settings::{file_layers, layers_over};

/// Renews the lease of an agent's work, and returns its new end. Work that was not pulled has no lease unless it gets
/// one here: then this counts only as a heartbeat, and the answer is the time at which the stale check would block it.
pub fn heartbeat(town: &Town, reference: &ItemRef, heartbeat: Heartbeat) -> WorkResult<Timestamp> {
    let reference = reference.clone();
    let files = file_layers(town)?;
    town.submit(move |town, writer| {
        let item = require_item(writer, &reference)?;
        let run = held_in(writer, &item, &heartbeat.run)?;
        refuse_other(town, &run.agent, || holder_text(&run))?;
        if run.state != RunState::Running || run.executor != ExecutorKind::Pull {
            return Err(Conflict::NotInProgress { bead: item.bead, run: run.id }.into());
        }
        if let Some(until) = run.lease_expires_at.filter(|_| heartbeat.adopts) {
            return Err(Conflict::Leased { bead: item.bead, run: run.id, until }.into());
        }
        if let Some(lease) = heartbeat.lease.or(run.lease) {
            return Ok(writer.renew_lease(&run.id, lease)?);
        }
        writer.touch_bead(&item.bead)?;
        Ok(writer.lease_now().plus(layers_over(&files, writer)?.work_stale_after()?))
    })
}

/// The agent of a run, in words.
pub(super) fn holder_text(run: &Run) -> String {
    format!("{} has {}", run.agent, run.id)
}

/// The run that has an item, if it is the named one.
pub(super) fn held_in(reader: &Reader<'_>, item: &WorkItem, named: &RunRef) -> WorkResult<Run> {
    let live = reader.live_run(&item.bead)?;
    match live {
        Some(run) if named.is(&run.id, run.uid) => Ok(run),
        other => Err(Conflict::StaleRun {
            bead: item.bead.clone(),
            given: named.clone(),
            live: other.map(|run| run.id),
        }
        .into()),
    }
}
