//! Giving beads other ids.
//!
//! Runs, branches, worktrees and merge requests are named after their bead. A bead that has any of them keeps its id.

use std::collections::HashMap;

use gt_core::bead::Uid;
use gt_core::limits::PAGE_BEADS;
use gt_core::{Bead, BeadChangeKind, BeadId, Comment, Dependency, EventKind, Prefix, Rig};
use gt_store::{BeadFilter, Reader, Writer};

use crate::beads::{mentions_of, with_other_ids};
use crate::deletion::delete_in;
use crate::lookup::require;
use gt_town::rig_names::refuse_reserved;
use gt_town::{OperationError, Result, Town};

/// A bead that has another id now.
#[derive(Debug, Clone)]
pub struct RenamedBead {
    /// Its id before.
    pub old: BeadId,
    /// Its id now.
    pub new: BeadId,
    /// How many beads mentioned it, and mention the new id now.
    pub rewritten: u64,
}

/// A rig whose beads have another prefix now.
#[derive(Debug, Clone)]
pub struct RenamedPrefix {
    /// The rig, as it was.
    pub rig: Rig,
    /// Its prefix now.
    pub new: Prefix,
    /// The ids of its beads, before and now.
    pub beads: Vec<(BeadId, BeadId)>,
}

/// Gives a bead another id. Everything about it moves there, and texts that mention it follow.
pub fn rename(town: &Town, input: &str, new: &str) -> Result<RenamedBead> {
    town.write(|writer| {
        let bead = require(town, writer, input)?;
        let (old, new) = (bead.id.clone(), BeadId::parse(new)?);
        if new == old {
            return Err(OperationError::rejected(format!("{new} is its id already")));
        }
        let is_same_rig = writer.rig_of_id(&new)? == writer.rig_of_id(&old)?;
        if !is_same_rig || new.has_prefix(Prefix::TOWN) != old.has_prefix(Prefix::TOWN) {
            return Err(OperationError::rejected(format!(
                "{new} does not begin with the prefix of the rig of {old}; bd update {old} --rig moves a bead to another rig"
            )));
        }
        refuse_work(writer, &bead)?;
        let spoken_of = mentions_of(town, writer, &old)?;
        move_bead(town, writer, &bead, &new)?;
        let mut rewritten = 0;
        for mention in spoken_of {
            rewritten += u64::from(rewrite(writer, &mention.bead, |id| {
                (id == old.as_str()).then(|| new.clone())
            })?);
        }
        Ok(RenamedBead { old, new, rewritten })
    })
}

/// Gives the rig of the working directory another prefix, and each of its beads an id with it. All of them or none.
pub fn rename_prefix(town: &Town, new: &str, dry_run: bool) -> Result<RenamedPrefix> {
    let new = Prefix::parse(new.strip_suffix('-').unwrap_or(new))?;
    refuse_reserved(&new)?;
    town.write_or_rehearse(dry_run, |writer| {
        let rigs = writer.rigs()?;
        let only = || <[Rig; 1]>::try_from(rigs.clone()).ok().map(|[only]| only);
        let Some(rig) = town.rig_here(&rigs).or_else(only) else {
            return Err(OperationError::rejected(
                "this directory belongs to no rig; call it in the directory of the rig",
            ));
        };
        if rig.prefix == new {
            return Err(OperationError::rejected(format!("{new} is the prefix already")));
        }
        if let Some(other) = rigs.iter().find(|other| other.prefix == new) {
            let slug = &other.slug;
            return Err(OperationError::rejected(format!("{new} is the prefix of the rig {slug}")));
        }
        let beads = ids_with_prefix(writer, &rig, &new)?;
        writer.change_rig(&rig, &Rig { prefix: new.clone(), ..rig.clone() })?;
        for (old, id) in &beads {
            if let Some(bead) = writer.bead(old)? {
                refuse_work(writer, &bead)?;
                move_bead(town, writer, &bead, id)?;
            }
        }
        let known: HashMap<String, BeadId> =
            beads.iter().map(|(old, id)| (old.as_str().to_ascii_lowercase(), id.clone())).collect();
        for page in writer.find(&BeadFilter::everything())?.chunks(PAGE_BEADS) {
            for row in writer.bead_rows(page)? {
                rewrite(writer, &row.bead, |id| known.get(id).cloned())?;
            }
        }
        Ok(RenamedPrefix { rig, new, beads })
    })
}

/// The ids of the beads of a rig, before and after; a bead stands before its parts.
fn ids_with_prefix(reader: &Reader<'_>, rig: &Rig, new: &Prefix) -> Result<Vec<(BeadId, BeadId)>> {
    let of_rig = BeadFilter { rig: Some(rig.slug.clone()), ..BeadFilter::everything() };
    let mut ids = reader.find(&of_rig)?;
    ids.sort_by(BeadId::natural_order);
    let mut beads = Vec::new();
    for old in ids {
        let rest = old.as_str().strip_prefix(rig.prefix.as_str());
        if let Some(rest) = rest.and_then(|rest| rest.strip_prefix('-')) {
            let id = BeadId::parse(&format!("{new}-{rest}"))?;
            beads.push((old, id));
        }
    }
    Ok(beads)
}

/// Refuses a bead after which work is named.
fn refuse_work(reader: &Reader<'_>, bead: &Bead) -> Result<()> {
    let id = &bead.id;
    let why = if bead.issue_type.is_convoy() {
        "it is a convoy".to_owned()
    } else if !reader.runs_of(id)?.is_empty() {
        "its runs and their branches are named after it".to_owned()
    } else if reader.open_context(id)?.is_some() {
        format!("it is scheduled; gt scheduler clear --bead {id} takes it out of the queue")
    } else if !reader.convoys_of(std::slice::from_ref(id))?.is_empty() {
        "a convoy tracks it".to_owned()
    } else {
        return Ok(());
    };
    Err(OperationError::rejected(format!("cannot rename {id}: {why}")))
}

/// Makes the bead anew under another id, with everything that belongs to it, and deletes the old one.
fn move_bead(town: &Town, writer: &mut Writer<'_>, bead: &Bead, id: &BeadId) -> Result<()> {
    let old = &bead.id;
    let moved = Bead {
        id: id.clone(),
        uid: Uid::of_bead(id, bead.created_at),
        open_blockers: 0,
        ..bead.clone()
    };
    writer.insert_bead(&moved, EventKind::Created)?;
    for label in writer.labels_in_order(bead)? {
        writer.add_label(&moved, &label, false)?;
    }
    for comment in writer.comments(old)? {
        writer.add_comment(&moved, &Comment { bead: id.clone(), ..comment }, false)?;
    }
    for edge in writer.edges_from(old)? {
        writer.put_dependency(&Dependency { issue: id.clone(), ..edge }, true)?;
    }
    // Before the old bead goes: nothing that waits for it is free in between.
    for edge in writer.edges_to(old)? {
        writer.put_dependency(&Dependency { target: id.clone(), ..edge }, true)?;
    }
    delete_in(town, writer, &[old.to_string()], false)?;
    Ok(())
}

/// Lets the texts of a bead mention other ids; says whether one did.
fn rewrite(
    writer: &mut Writer<'_>,
    bead: &Bead,
    other: impl Fn(&str) -> Option<BeadId>,
) -> Result<bool> {
    // The renaming may have touched it.
    let Some(bead) = writer.bead(&bead.id)? else { return Ok(false) };
    let Some(mut changed) = with_other_ids(&bead, other)? else { return Ok(false) };
    changed.updated_at = writer.now();
    Ok(writer.save_bead(&bead, &changed, BeadChangeKind::Updated)?)
}
