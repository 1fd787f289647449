//! Holding a convoy up, and how much of it is done at once.

use gt_core::decide::ConvoyState;
use gt_core::{Bead, BeadChangeKind, Json};
use gt_store::{ConvoyTally, Pause, Writer};

use super::change::again;
use super::{Convoy, require};
use crate::review_rules::{REVIEW, REVIEW_OPTIONAL, REVIEW_REQUIRED, metadata_requires_review};
use gt_town::{OperationError, Result, Town};

/// Pauses a convoy: live runs go on, and nothing of it starts. Says whether that changed anything.
pub fn pause(town: &Town, convoy: &str) -> Result<(Convoy, bool)> {
    limit(town, convoy, |writer, tally| {
        let by = writer.actor().to_owned();
        Some((tally.cap, Some(Pause { by, at: writer.now() }))).filter(|_| tally.paused.is_none())
    })
}

/// Lets what a convoy tracks start again. Says whether that changed anything.
pub fn resume(town: &Town, convoy: &str) -> Result<(Convoy, bool)> {
    limit(town, convoy, |_, tally| Some((tally.cap, None)).filter(|_| tally.paused.is_some()))
}

/// Lets at most so many beads of a convoy be worked on at once; 0 for any number. Live runs go on. Says whether that
/// changed anything.
pub fn cap(town: &Town, convoy: &str, cap: u32) -> Result<(Convoy, bool)> {
    limit(town, convoy, |_, tally| Some((cap, tally.paused.clone())).filter(|_| tally.cap != cap))
}

/// Requires that a person approves the work of a convoy before it lands, or does not any more. Says whether that changed
/// anything.
pub fn require_review(town: &Town, convoy: &str, required: bool) -> Result<(Convoy, bool)> {
    town.write(|writer| {
        let old = require(town, writer, convoy)?;
        let changes = metadata_requires_review(&old) != required;
        if changes {
            let kept = old.metadata.clone().unwrap_or_else(|| Json::object(&[]));
            let value = if required { REVIEW_REQUIRED } else { REVIEW_OPTIONAL };
            let metadata = Some(kept.with(REVIEW, &Json::string(value)));
            let updated_at = writer.now().of_change_after(old.updated_at);
            let new = Bead { metadata, updated_at, ..old.clone() };
            writer.save_bead(&old, &new, BeadChangeKind::Updated)?;
        }
        Ok((again(writer, &old.id)?, changes))
    })
}

fn limit(
    town: &Town,
    convoy: &str,
    change: impl FnOnce(&Writer<'_>, &ConvoyTally) -> Option<(u32, Option<Pause>)>,
) -> Result<(Convoy, bool)> {
    town.write(|writer| {
        let bead = require(town, writer, convoy)?;
        if matches!(ConvoyState::of(&bead), ConvoyState::Closed | ConvoyState::Landed) {
            return Err(OperationError::rejected(format!(
                "{} is over, and nothing of it starts anyway; gt convoy status {} shows how it ended",
                bead.id, bead.id
            )));
        }
        // One that never tracked anything has no row yet.
        writer.track(&bead.id, &[])?;
        let Some(tally) = writer.convoy_tally(&bead.id)? else {
            return Err(OperationError::NoBead(bead.id.to_string()));
        };
        let changed = change(writer, &tally);
        if let Some((cap, paused)) = &changed {
            writer.limit_convoy(&bead, *cap, paused.as_ref())?;
        }
        Ok((again(writer, &bead.id)?, changed.is_some()))
    })
}
