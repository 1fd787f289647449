//! Trees that are taken away, and come back.

use gt_core::Rig;
use gt_core::schedule::{Polecat, TrashState, Trashed, TreeState, WorkerPlace};
use gt_core::time::parse_duration;
use gt_executors::git::{GitError, move_tree_away, move_tree_back};
use gt_executors::runs::{Liveness, RunFiles};

use super::{Trees, git_failed, rig_with_trees};
use crate::runs::{RealWorld, World as _};
use crate::settings::layers_in;
use crate::{OperationError, Result, Town};

/// Moves the tree of a polecat away, whatever is in it. The one way in which a tree leaves its place: for a nuke, for
/// a tree that is not clean, for one that is not whole. The intention is written down first, so that a crash in
/// between leaves nothing that nobody knows of.
pub(super) fn move_away(
    town: &Town,
    rig: &Rig,
    polecat: &Polecat,
    reason: &str,
) -> Result<Option<Trashed>> {
    let Some(trees) = Trees::of(town, rig) else { return Ok(None) };
    let tree = trees.tree(&polecat.name);
    if tree.path().symlink_metadata().is_err() {
        return Ok(None);
    }
    let trashed = town.write(|writer| {
        let now = writer.now();
        let layers = layers_in(town.root(), writer)?;
        let keep = parse_duration(&layers.get("trash.keep")?.value)?;
        let trashed = writer.insert_trash(&Trashed {
            number: 0,
            rig: rig.slug.clone(),
            name: polecat.name.clone(),
            host: polecat.host.clone(),
            path: String::new(),
            branch: polecat.branch.clone(),
            run: polecat.last_run.clone(),
            reason: reason.to_owned(),
            state: TrashState::Moving,
            moved_at: now,
            moved_by: writer.actor().to_owned(),
            purge_at: now.plus(keep),
        })?;
        writer.put_polecat(&Polecat { tree: TreeState::Absent, ..polecat.clone() })?;
        Ok(trashed)
    })?;
    let destination = trees.trash().join(directory_name(&trashed));
    move_tree_away(&trees.repository(), tree.path(), &destination).map_err(git_failed(rig))?;
    let trashed = Trashed { path: trees.below_town(&destination), ..trashed };
    town.write(|writer| Ok(writer.set_trash_state(&trashed, TrashState::Kept)?))?;
    Ok(Some(Trashed { state: TrashState::Kept, ..trashed }))
}

fn directory_name(trashed: &Trashed) -> String {
    format!("{}-{}", trashed.number, trashed.name)
}

/// Completes what somebody began to move away and did not live to see there.
pub(crate) fn complete_moves(town: &Town) -> Result<()> {
    let moving: Vec<Trashed> = town.read(|reader| {
        let trash = reader.trash()?.into_iter();
        Ok(trash.filter(|trashed| trashed.state == TrashState::Moving).collect())
    })?;
    if moving.is_empty() {
        return Ok(());
    }
    let world = RealWorld::of(town)?;
    for trashed in moving.iter().filter(|trashed| trashed.host == world.host()) {
        let rig = town.read(|reader| Ok(reader.rig(trashed.rig.as_str())?))?;
        let Some(rig) = rig else { continue };
        let Some(trees) = Trees::of(town, &rig) else { continue };
        let destination = trees.trash().join(directory_name(trashed));
        let tree = trees.tree(&trashed.name);
        match move_tree_away(&trees.repository(), tree.path(), &destination) {
            // Whoever began it is done by now, or there never was anything.
            Ok(()) | Err(GitError::Missing { .. }) => {
                let path = trees.below_town(&destination);
                let moved = Trashed { path, ..trashed.clone() };
                town.write(|writer| Ok(writer.set_trash_state(&moved, TrashState::Kept)?))?;
            }
            Err(error) => return Err(git_failed(&rig)(error)),
        }
    }
    Ok(())
}

/// The polecat that a name means: `<rig>/<name>` or `<rig>/polecats/<name>`.
pub(super) fn named_polecat(town: &Town, input: &str) -> Result<(Rig, Polecat)> {
    let (slug, name) = match input.split('/').collect::<Vec<_>>().as_slice() {
        [rig, name] | [rig, "polecats", name] => ((*rig).to_owned(), (*name).to_owned()),
        _ => {
            return Err(OperationError::rejected(format!(
                "\"{}\" is not a polecat; write <rig>/<name>",
                input.escape_debug()
            )));
        }
    };
    let rig = rig_with_trees(town, &slug)?;
    let (found, known) = town.read(|reader| {
        let known = reader.polecats_of(&rig.slug)?;
        Ok((reader.polecat(&rig.slug, &name)?, known))
    })?;
    match found {
        Some(polecat) => Ok((rig, polecat)),
        None => {
            let mut known: Vec<String> = known.into_iter().map(|polecat| polecat.name).collect();
            known.sort();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(OperationError::rejected(format!(
                "the rig {slug} has no polecat \"{}\"; it has: {known}",
                name.escape_debug()
            )))
        }
    }
}

/// Takes a polecat out of service: its tree is moved away, its name is free. Refused while it works, or while
/// something of its last run is alive.
pub fn nuke(town: &Town, input: &str) -> Result<(Polecat, Option<Trashed>)> {
    let (rig, polecat) = named_polecat(town, input)?;
    let place = WorkerPlace::polecat(&rig.slug, &polecat.name)?;
    let live = town.read(|reader| {
        let live = reader.live_runs()?.into_iter();
        Ok(live.filter(|run| run.place.as_ref() == Some(&place)).map(|run| run.id).next())
    })?;
    if let Some(run) = live {
        return Err(OperationError::rejected(format!(
            "{place} works on {run}; end it with gt run cancel {run} first"
        )));
    }
    if let Some(run) = &polecat.last_run {
        let files = RunFiles::of(&town.runs_directory(), &run.to_string());
        if matches!(files.liveness(), Ok(Liveness::Held)) {
            return Err(OperationError::rejected(format!(
                "something of {run} is still alive in the tree of {place}; gt run show {run} says what"
            )));
        }
    }
    let trashed = move_away(town, &rig, &polecat, "nuked")?;
    town.write(|writer| Ok(writer.delete_polecat(&rig.slug, &polecat.name)?))?;
    Ok((polecat, trashed))
}

/// The trees that were moved away and can come back, the last first.
pub fn trash(town: &Town) -> Result<Vec<Trashed>> {
    town.read(|reader| Ok(reader.trash()?))
}

/// Brings a tree back that was moved away: the last one of a polecat (`<rig>/<name>`), or the one with a number.
pub fn undelete(town: &Town, input: &str) -> Result<Trashed> {
    let all = trash(town)?;
    let wanted = input.trim_start_matches('#').parse::<u64>().ok();
    let parts: Vec<&str> = input.split('/').collect();
    let found = all.into_iter().filter(|trashed| trashed.state == TrashState::Kept).find(
        |trashed| match (wanted, parts.as_slice()) {
            (Some(number), _) => trashed.number == number,
            (None, [rig, name] | [rig, "polecats", name]) => {
                trashed.rig.as_str() == *rig && trashed.name == *name
            }
            (None, _) => false,
        },
    );
    let Some(trashed) = found else {
        return Err(OperationError::rejected(format!(
            "nothing in the trash is \"{}\"; gt polecat list --trash shows what is there",
            input.escape_debug()
        )));
    };
    let rig = rig_with_trees(town, trashed.rig.as_str())?;
    let Some(trees) = Trees::of(town, &rig) else { return Ok(trashed) };
    let world = RealWorld::of(town)?;
    if trashed.host != world.host() {
        return Err(OperationError::rejected(format!(
            "{} is in another directory of this town ({}); bring it back there",
            trashed.path, trashed.host
        )));
    }
    let destination = town.root().join(&trashed.path);
    move_tree_back(&trees.repository(), &destination, trees.tree(&trashed.name).path())
        .map_err(git_failed(&rig))?;
    town.write(|writer| {
        let now = writer.now();
        let known = writer.polecat(&rig.slug, &trashed.name)?;
        writer.put_polecat(&Polecat {
            rig: rig.slug.clone(),
            name: trashed.name.clone(),
            host: trashed.host.clone(),
            tree: TreeState::Ready,
            branch: trashed.branch.clone(),
            last_run: trashed.run.clone(),
            created_at: known.map_or(now, |polecat| polecat.created_at),
            updated_at: now,
        })?;
        Ok(writer.set_trash_state(&trashed, TrashState::Restored)?)
    })?;
    Ok(trashed)
}

/// Deletes what was moved away so long ago that it may go: the one place that deletes a tree. Says what went, or
/// with `dry_run` what would.
pub fn purge(town: &Town, dry_run: bool) -> Result<Vec<Trashed>> {
    let world = RealWorld::of(town)?;
    let now = town.now();
    let due: Vec<Trashed> = trash(town)?
        .into_iter()
        .filter(|trashed| trashed.state == TrashState::Kept && trashed.host == world.host())
        .filter(|trashed| trashed.purge_at <= now)
        .collect();
    if dry_run {
        return Ok(due);
    }
    for trashed in &due {
        let path = town.root().join(&trashed.path);
        match std::fs::remove_dir_all(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(OperationError::File { action: "delete", path, source });
            }
            _ => town.write(|writer| Ok(writer.set_trash_state(trashed, TrashState::Purged)?))?,
        }
    }
    Ok(due)
}
