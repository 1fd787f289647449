//! Containers: convoys, epics and molecules, which are over when their members are.
//!
//! The store marks the containers whose members a transaction has changed. [`update_containers_in`] decides about each of them before
//! the commit, so no reader sees the last close of a member without the close of its container.

use gt_core::decide::{
    ContainerChange, ContainerRules, ConvoyState, LANDED, container_change, convoy_change,
    lands_by_itself,
};
use gt_core::settings::Layers;
use gt_core::{Bead, BeadChangeKind, BeadId, Outcome, Status};
use gt_store::Writer;

use crate::run_records::close_context_of;
use gt_town::settings::layers_over;
use gt_town::{OperationError, Result};

/// Closes, lands and reopens the containers whose members this transaction has changed, then those that contain them,
/// until nothing changes. Returns the containers that changed, as they are now.
///
/// The commit hook of every town calls it. An operation calls it before if it reports these changes.
pub fn update_containers_in(writer: &mut Writer<'_>, files: &Layers) -> Result<Vec<Bead>> {
    let mut changed = Vec::new();
    // The value of `epics.auto_close`, once it was needed.
    let mut epics_close = None;
    // A list instead of a recursion: epics can be nested deeper than the stack of a thread.
    while let Some(touched) = writer.take_touched_container() {
        let Some(old) = writer.bead(&touched.id)? else { continue };
        let members = match touched.members {
            Some(members) if !old.issue_type.is_molecule() => members,
            _ => writer.count_members(&old)?,
        };
        let change = container_change(&old, members, touched.less_is_done, || {
            let rules = if old.issue_type.is_molecule() {
                let is_running = writer.live_run(&old.id)?.is_some();
                ContainerRules { epics_close: false, is_running }
            } else {
                let epics_close = match epics_close {
                    Some(known) => known,
                    None => *epics_close.insert(epics_close_in(writer, files)?),
                };
                ContainerRules { epics_close, is_running: false }
            };
            Ok::<_, OperationError>(rules)
        })?;
        if let Some(change) = change {
            changed.push(apply(writer, &old, change)?);
        }
    }
    Ok(changed)
}

fn epics_close_in(writer: &Writer<'_>, files: &Layers) -> Result<bool> {
    Ok(layers_over(files, writer)?.epics_auto_close()?)
}

/// Lands a convoy of which everything is done, unless its owner does that.
pub fn land_if_done(writer: &mut Writer<'_>, convoy: &BeadId) -> Result<()> {
    let Some(tally) = writer.convoy_tally(convoy)? else { return Ok(()) };
    let Some(old) = writer.bead(convoy)?.filter(|bead| bead.issue_type.is_convoy()) else {
        return Ok(());
    };
    let change = convoy_change(ConvoyState::of(&old), !lands_by_itself(&old), tally.members);
    if change == Some(ContainerChange::Lands) {
        apply(writer, &old, ContainerChange::Lands)?;
    }
    Ok(())
}

/// Lands a convoy whose integration branch has arrived at its base, unless something of it is open again.
pub fn land_integrated(writer: &mut Writer<'_>, convoy: &BeadId) -> Result<()> {
    let Some(tally) = writer.convoy_tally(convoy)? else { return Ok(()) };
    let Some(old) = writer.bead(convoy)? else { return Ok(()) };
    let change = convoy_change(ConvoyState::of(&old), false, tally.members);
    let is_merging = writer.open_merge_request(convoy)?.is_some();
    if change == Some(ContainerChange::Lands) && !is_merging {
        apply(writer, &old, ContainerChange::Lands)?;
    }
    Ok(())
}

/// Lands a convoy because its owner says so. The caller has checked that it may land.
pub(crate) fn land(writer: &mut Writer<'_>, convoy: &Bead) -> Result<Bead> {
    let landed = closed(writer, convoy, LANDED, Some(Outcome::Success));
    writer.land_convoy(convoy, &landed)?;
    Ok(landed)
}

/// Opens a container again that was over.
pub(crate) fn reopen(writer: &mut Writer<'_>, container: &Bead) -> Result<Bead> {
    let open = Bead {
        status: Status::Open,
        outcome: None,
        closed_at: None,
        close_reason: String::new(),
        updated_at: writer.now().of_change_after(container.updated_at),
        ..container.clone()
    };
    writer.save_bead(container, &open, BeadChangeKind::Reopened)?;
    Ok(open)
}

/// Writes a change of a container. No right of a worker limits it, because it follows from the members.
fn apply(writer: &mut Writer<'_>, old: &Bead, change: ContainerChange) -> Result<Bead> {
    writer.as_consequence(|writer| match change {
        ContainerChange::Reopens => reopen(writer, old),
        ContainerChange::Lands => land(writer, old),
        ContainerChange::Closes { reason, outcome } => {
            let new = closed(writer, old, reason, outcome);
            writer.save_bead(old, &new, BeadChangeKind::Closed)?;
            close_context_of(writer, &new.id)?;
            Ok(new)
        }
    })
}

fn closed(writer: &Writer<'_>, old: &Bead, reason: &str, outcome: Option<Outcome>) -> Bead {
    let now = writer.now();
    Bead {
        status: Status::Closed,
        outcome,
        closed_at: Some(now),
        close_reason: reason.to_owned(),
        updated_at: now.of_change_after(old.updated_at),
        ..old.clone()
    }
}
