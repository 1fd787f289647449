//! Another try for what was given up.

use gt_core::schedule::{CloseReason, Context, Origin, RunState};
use gt_core::{Bead, BeadId, Outcome, Status};
use gt_store::{NewContext, Writer};

use crate::beads::{reopen_in, resolve_in};
use crate::{OperationError, Result, Town};

/// A bead that is scheduled again.
#[derive(Debug, Clone)]
pub struct Retried {
    /// Which bead.
    pub bead: BeadId,
    /// Its new context.
    pub context: Context,
    /// It had failed, and is open again.
    pub reopened: bool,
}

/// Schedules beads again that were given up or failed, with nothing held against them. Without names that is
/// everything that waits for a person: circuit-broken, quarantined, failed in its last run, or out of
/// attempts.
pub fn retry(town: &Town, inputs: &[String], all: bool) -> Result<Vec<Result<Retried>>> {
    let mut names = inputs.to_vec();
    if all {
        names.extend(town.read(|reader| {
            let failed = reader.failed_contexts()?.into_iter().map(|context| context.bead);
            let broken = reader.beads_with_failed_runs()?;
            let mut beads: Vec<BeadId> = failed.chain(broken).collect();
            beads.sort();
            beads.dedup();
            Ok(beads.into_iter().map(|bead| bead.to_string()).collect::<Vec<_>>())
        })?);
    }
    town.write_each(names, |writer, name| retry_in(town, writer, &name))
}

fn retry_in(town: &Town, writer: &mut Writer<'_>, input: &str) -> Result<Retried> {
    let id = resolve_in(town, writer, input)?;
    let require = |writer: &Writer<'_>| -> Result<Bead> {
        writer.bead(&id)?.ok_or_else(|| OperationError::NoBead(input.to_owned()))
    };
    let bead = require(writer)?;
    let refused = |why: String| Err(OperationError::rejected(format!("cannot retry {id}: {why}")));
    let Some(latest) = writer.latest_context(&id)? else {
        return refused(format!("it was never scheduled; gt sling {id} schedules it"));
    };
    if latest.closed.is_none() {
        return refused(format!("it is scheduled already ({})", latest.id));
    }
    if let Some(run) = writer.live_run(&id)? {
        return refused(format!("it is running ({})", run.id));
    }
    let reopened = bead.status == Status::Closed;
    if reopened && bead.outcome != Some(Outcome::Failed) {
        return refused("it is closed, and did not fail".to_owned());
    }
    let last_run = writer.runs_of(&id)?.into_iter().next();
    let dispatched =
        latest.closed.as_ref().is_some_and(|closed| closed.reason == CloseReason::Dispatched);
    let ended_well = last_run.is_some_and(|run| run.state == RunState::Done);
    if dispatched && ended_well && !reopened {
        return refused(format!("its last run ended well; gt sling {id} schedules it anew"));
    }
    if writer.rig(latest.rig.as_str())?.is_none() {
        return refused(format!(
            "the rig {} is gone; gt sling {id} <rig> names another",
            latest.rig
        ));
    }
    if reopened {
        reopen_in(town, writer, id.as_str(), None)?;
    }
    let bead = require(writer)?;
    let new = NewContext {
        bead: id.clone(),
        rig: latest.rig.clone(),
        place: latest.place.clone(),
        account: latest.account.clone(),
        gated: false,
        forced: latest.forced,
        priority: bead.priority,
        origin: Origin::Retry,
        parameters: latest.parameters.clone(),
        enqueued_at: None,
        next_attempt_at: None,
        failures: 0,
        attempts: 0,
    };
    let made = writer.insert_contexts(vec![new])?.into_iter().next();
    let context = made.ok_or_else(|| OperationError::rejected("nothing was scheduled"))?;
    Ok(Retried { bead: id, context, reopened })
}
