//! Putting beads off, and taking them up again.

use gt_core::bead::check_text;
use gt_core::decide::Verb;
use gt_core::{Bead, BeadChangeKind, BeadId, Status, Timestamp};
use gt_store::Writer;

use super::status::apply;
use crate::lookup::require;
use crate::transition_check::refuse_if_over;
use gt_town::{Result, Town};

/// Defers each bead, until a time or until it is undeferred, or says why not. One that is deferred until a time that has
/// passed can be worked on at once. `false` for one that was deferred like that already.
pub fn defer(
    town: &Town,
    inputs: &[String],
    until: Option<Timestamp>,
    reason: Option<&str>,
) -> Result<Vec<Result<(BeadId, bool)>>> {
    check_text("reason", reason.unwrap_or_default())?;
    town.write_each(inputs, |writer, input| {
        let old = require(town, writer, input)?;
        let verb = Verb::SetStatus(Status::Deferred);
        let mut applied = apply(writer, &old, &verb, "defer", town.acting_run())?;
        applied.new.defer_until = until;
        let changed = save(writer, &old, applied.new, applied.kind)?;
        if let (Some(reason), true) = (reason, changed) {
            crate::notes::add_in(writer, &old, &format!("Deferred: {reason}"))?;
        }
        Ok((old.id, changed))
    })
}

/// Takes each bead up again: it is open if it was put off, and has no date any more. `false` for one that
/// was not put off.
pub fn undefer(town: &Town, inputs: &[String]) -> Result<Vec<Result<(BeadId, bool)>>> {
    town.write_each(inputs, |writer, input| {
        let old = require(town, writer, input)?;
        refuse_if_over(town, writer, &old.id, "undefer")?;
        let mut new = old.clone();
        let mut kind = None;
        if old.status == Status::Deferred {
            let verb = Verb::SetStatus(Status::Open);
            let applied = apply(writer, &old, &verb, "undefer", town.acting_run())?;
            (new, kind) = (applied.new, applied.kind);
        }
        // A closed bead keeps the date as a part of its history.
        if old.status != Status::Closed {
            new.defer_until = None;
        }
        let changed = save(writer, &old, new, kind)?;
        Ok((old.id, changed))
    })
}

/// Writes what changed, if anything did.
fn save(
    writer: &mut Writer<'_>,
    old: &Bead,
    mut new: Bead,
    kind: Option<BeadChangeKind>,
) -> Result<bool> {
    if new == *old {
        return Ok(false);
    }
    new.updated_at = writer.now().of_change_after(old.updated_at);
    writer.save_bead(old, &new, kind.unwrap_or(BeadChangeKind::Updated))?;
    Ok(true)
}
