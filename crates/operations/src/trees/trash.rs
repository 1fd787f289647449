//! Trees that are taken away, and come back.
//!
//! Whoever moves something holds the lock of the rig's trash. A move that is written down as under way while nobody
//! holds it was begun by somebody who is dead, and the next one completes it first. So what is moved is always the tree
//! that was meant, and never one that was made in its place since.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_core::schedule::{Polecat, RunId, TrashState, Trashed, TreeState, WorkerPlace};
use gt_core::time::parse_duration;
use gt_core::{Rig, Timestamp};
use gt_executors::git::{GitError, Tree, move_tree_away, move_tree_back};
use gt_executors::runs::{Liveness, RunFiles};
use gt_store::Reader;

use super::show::{live_run_at, named_polecat};
use super::{Trees, git_failed, rig_with_trees, save};
use crate::runs::{RealWorld, World as _};
use crate::settings::layers_in;
use crate::{OperationError, Result, Town};

/// How long before a tree is deleted everybody is told so.
pub(crate) const WARNING: Duration = Duration::from_hours(3 * 24);

/// What is being deleted begins with this, and means nothing to anybody any more.
const DOOMED: &str = ".purging-";

/// Why a tree leaves its place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Leaving<'a> {
    /// A run needs the place, and has it already.
    For(&'a RunId),
    /// Somebody takes the polecat out of service.
    Nuked,
    /// It was made ahead, and that many are not wanted any more.
    Unwanted,
    /// Another one is made in its place, ahead of any run.
    Unclean,
}

impl Leaving<'_> {
    fn reason(self) -> &'static str {
        match self {
            Self::For(_) | Self::Unclean => "it was not clean, or not whole",
            Self::Nuked => "nuked",
            Self::Unwanted => "fewer warm trees are wanted",
        }
    }

    /// Whether the polecat stays, to get another tree.
    fn keeps_polecat(self) -> bool {
        match self {
            Self::For(_) | Self::Unclean => true,
            Self::Nuked | Self::Unwanted => false,
        }
    }
}

/// The right to move trees of a rig to and from its trash; waits for whoever has it.
fn take_lock(trees: &Trees<'_>) -> Result<File> {
    let directory = trees.trash();
    let path = directory.join(".lock");
    let failed = |action| {
        let path = path.clone();
        move |source| OperationError::File { action, path, source }
    };
    fs::create_dir_all(&directory).map_err(failed("make"))?;
    let file = gt_executors::private::options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(failed("open"))?;
    file.lock().map_err(failed("lock"))?;
    Ok(file)
}

/// Moves the tree of a polecat away, whatever is in it. The one way in which a tree leaves its place: for a nuke, for
/// a tree that is not clean, for one that is not whole. The intention is written down first, so that a crash in
/// between leaves nothing that nobody knows of.
pub(super) fn move_away(
    town: &Town,
    rig: &Rig,
    polecat: &Polecat,
    why: Leaving<'_>,
) -> Result<Option<Trashed>> {
    let Some(trees) = Trees::of(town, rig) else { return Ok(None) };
    let _lock = take_lock(&trees)?;
    for begun in moving(town)?.iter().filter(|begun| begun.name == polecat.name) {
        if begun.rig == rig.slug && begun.host == polecat.host {
            complete(town, rig, &trees, begun)?;
        }
    }
    let tree = trees.tree(&polecat.name);
    let is_there = tree.path().symlink_metadata().is_ok();
    if !is_there && polecat.tree == TreeState::Absent && why.keeps_polecat() {
        return Ok(None);
    }
    let place = WorkerPlace::polecat(&rig.slug, &polecat.name)?;
    let trashed = town.write(|writer| {
        if let Some(run) = live_run_at(writer, &place)?
            && !matches!(why, Leaving::For(own) if *own == run.id)
        {
            return Err(works_on(&place, &run.id));
        }
        if why.keeps_polecat() {
            writer.put_polecat(&Polecat { tree: TreeState::Absent, ..polecat.clone() })?;
        } else {
            writer.delete_polecat(&rig.slug, &polecat.name)?;
        }
        if !is_there {
            return Ok(None);
        }
        let now = writer.now();
        let layers = layers_in(town.root(), writer)?;
        let keep = parse_duration(&layers.get("trash.keep")?.value)?;
        Ok(Some(writer.insert_trash(&Trashed {
            number: 0,
            rig: rig.slug.clone(),
            name: polecat.name.clone(),
            host: polecat.host.clone(),
            path: String::new(),
            branch: polecat.branch.clone(),
            run: polecat.last_run.clone(),
            reason: why.reason().to_owned(),
            state: TrashState::Moving,
            moved_at: now,
            moved_by: writer.actor().to_owned(),
            purge_at: now.plus(keep),
        })?))
    })?;
    trashed.map(|trashed| complete(town, rig, &trees, &trashed)).transpose()
}

fn works_on(place: &WorkerPlace, run: &RunId) -> OperationError {
    OperationError::rejected(format!(
        "{place} works on {run}; end it with gt run cancel {run} first"
    ))
}

/// Takes the tree of a move that was written down to where it belongs. Called with the lock.
fn complete(town: &Town, rig: &Rig, trees: &Trees<'_>, trashed: &Trashed) -> Result<Trashed> {
    let destination = trees.trash().join(format!("{}-{}", trashed.number, trashed.name));
    let tree = trees.tree(&trashed.name);
    let state = match move_tree_away(&trees.repository(), tree.path(), &destination) {
        Ok(()) => TrashState::Kept,
        // Somebody has deleted it by hand in between.
        Err(GitError::Missing { .. }) => TrashState::Purged,
        Err(error) => return Err(git_failed(rig)(error)),
    };
    let moved = Trashed { path: trees.below_town(&destination), state, ..trashed.clone() };
    town.write(|writer| Ok(writer.set_trash_state(&moved, state)?))?;
    Ok(moved)
}

/// Everything that somebody has begun to move, and not said yet that it was.
fn moving(town: &Town) -> Result<Vec<Trashed>> {
    let mut all = trash(town)?;
    all.retain(|trashed| trashed.state == TrashState::Moving);
    Ok(all)
}

/// Completes what somebody began to move away and did not live to see there. What cannot be moved now keeps nobody
/// else from working: it stays where it is, and `gt doctor` says so.
pub(crate) fn complete_moves(town: &Town) -> Result<()> {
    let begun = moving(town)?;
    if begun.is_empty() {
        return Ok(());
    }
    let world = RealWorld::of(town)?;
    for one in begun.iter().filter(|one| one.host == world.host()) {
        let rig = town.read(|reader| Ok(reader.rig(one.rig.as_str())?))?;
        let Some(rig) = rig else { continue };
        let Some(trees) = Trees::of(town, &rig) else { continue };
        let Ok(_lock) = take_lock(&trees) else { continue };
        // Whoever began it may have been alive, and done by now.
        if moving(town)?.iter().any(|still| still.number == one.number) {
            let _ = complete(town, &rig, &trees, one);
        }
    }
    Ok(())
}

/// Takes a polecat out of service: its tree is moved away, its name is free. Refused while it works, or while
/// something of its last run is alive. With `dry_run` only that is looked at.
pub fn nuke(town: &Town, input: &str, dry_run: bool) -> Result<(Polecat, Option<Trashed>)> {
    let (rig, polecat) = named_polecat(town, input)?;
    let place = WorkerPlace::polecat(&rig.slug, &polecat.name)?;
    if let Some(run) = town.read(|reader| live_run_at(reader, &place))? {
        return Err(works_on(&place, &run.id));
    }
    if polecat.host != RealWorld::of(town)?.host() {
        return Err(OperationError::rejected(format!(
            "the tree of {place} is in another directory of this town ({}); take it away there",
            polecat.host
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
    if dry_run {
        return Ok((polecat, None));
    }
    save_last(town, &rig, &polecat)?;
    let trashed = move_away(town, &rig, &polecat, Leaving::Nuked)?;
    Ok((polecat, trashed))
}

/// Saves what the last run of a polecat left in its tree, so that it is found beside everything else that was saved, and
/// stays when the trash is emptied.
fn save_last(town: &Town, rig: &Rig, polecat: &Polecat) -> Result<()> {
    let Some(last) = &polecat.last_run else { return Ok(()) };
    let Some(run) = town.read(|reader| Ok(reader.run(last)?))? else { return Ok(()) };
    match save(town, rig, &run) {
        // What git cannot read is moved away as it is.
        Ok(_) | Err(OperationError::Git { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The trees that were moved away and can come back, the last first.
pub fn trash(town: &Town) -> Result<Vec<Trashed>> {
    town.read(|reader| Ok(reader.trash()?))
}

/// Whether a tree will be deleted so soon that people are told.
pub fn is_due_soon(trashed: &Trashed, now: Timestamp) -> bool {
    trashed.state == TrashState::Kept && trashed.purge_at <= now.plus(WARNING)
}

/// Brings a tree back that was moved away: the last one of a polecat (`<rig>/<name>`), or the one with a number.
pub fn undelete(town: &Town, input: &str) -> Result<Trashed> {
    let wanted = town.read(|reader| find_kept(reader, input))?;
    let rig = rig_with_trees(town, wanted.rig.as_str())?;
    let Some(trees) = Trees::of(town, &rig) else { return Ok(wanted) };
    let world = RealWorld::of(town)?;
    if wanted.host != world.host() {
        return Err(OperationError::rejected(format!(
            "{} is in another directory of this town ({}); bring it back there",
            wanted.path, wanted.host
        )));
    }
    let _lock = take_lock(&trees)?;
    // It may have come back, or gone, while we waited.
    let trashed = town.read(|reader| find_kept(reader, &format!("#{}", wanted.number)))?;
    let place = WorkerPlace::polecat(&rig.slug, &trashed.name)?;
    if let Some(run) = town.read(|reader| live_run_at(reader, &place))? {
        return Err(works_on(&place, &run.id));
    }
    let (kept, tree) = (town.root().join(&trashed.path), trees.tree(&trashed.name));
    // Without the tree in the trash, the one in its place must be it, brought back by somebody who then died.
    let is_back = || tree.branch().is_ok_and(|branch| branch.unwrap_or_default() == trashed.branch);
    match (kept.join("tree").symlink_metadata().is_ok(), tree.path().exists()) {
        (true, true) => {
            return Err(OperationError::rejected(format!(
                "{place} has another tree now; take that away first with gt polecat nuke {}/{}",
                rig.slug, trashed.name
            )));
        }
        (false, _) if !is_back() => {
            return Err(OperationError::rejected(format!(
                "the tree is not in {} any more; somebody has moved or deleted it by hand",
                kept.display()
            )));
        }
        (true, false) | (false, _) => {}
    }
    move_tree_back(&trees.repository(), &kept, tree.path()).map_err(git_failed(&rig))?;
    put_back(town, &rig, &trashed, &tree)?;
    Ok(trashed)
}

fn put_back(town: &Town, rig: &Rig, trashed: &Trashed, tree: &Tree) -> Result<()> {
    let branch = tree.branch().ok().flatten().unwrap_or_default();
    town.write(|writer| {
        let now = writer.now();
        let known = writer.polecat(&rig.slug, &trashed.name)?;
        writer.put_polecat(&Polecat {
            rig: rig.slug.clone(),
            name: trashed.name.clone(),
            host: trashed.host.clone(),
            tree: TreeState::Ready,
            branch,
            last_run: trashed.run.clone(),
            created_at: known.map_or(now, |polecat| polecat.created_at),
            updated_at: now,
        })?;
        Ok(writer.set_trash_state(trashed, TrashState::Restored)?)
    })
}

fn find_kept(reader: &Reader<'_>, input: &str) -> Result<Trashed> {
    let number = input.trim_start_matches('#').parse::<u64>().ok();
    let parts: Vec<&str> = input.split('/').collect();
    let is_meant = |trashed: &Trashed| match (number, parts.as_slice()) {
        (Some(number), _) => trashed.number == number,
        (None, [rig, name] | [rig, "polecats", name]) => {
            trashed.rig.as_str() == *rig && trashed.name == *name
        }
        (None, [name]) => trashed.name == *name,
        (None, _) => false,
    };
    let kept = reader.trash()?.into_iter().filter(|trashed| trashed.state == TrashState::Kept);
    let meant: Vec<Trashed> = kept.filter(is_meant).collect();
    if let Some(other) = meant.iter().find(|other| other.rig != meant[0].rig) {
        return Err(OperationError::rejected(format!(
            "{input} is in the trash of {} and of {}; write <rig>/<name>",
            meant[0].rig, other.rig
        )));
    }
    meant.into_iter().next().ok_or_else(|| {
        OperationError::rejected(format!(
            "nothing in the trash is \"{}\"; gt polecat list --trash shows what is there",
            input.escape_debug()
        ))
    })
}

/// Deletes what was moved away so long ago that it may go. Says what went, or with `dry_run` what would.
pub fn purge(town: &Town, dry_run: bool) -> Result<Vec<Trashed>> {
    let world = RealWorld::of(town)?;
    let now = town.now();
    let mut due = trash(town)?;
    due.retain(|trashed| {
        trashed.state == TrashState::Kept && trashed.host == world.host() && trashed.purge_at <= now
    });
    if dry_run { Ok(due) } else { delete_for_good(town, due) }
}

/// The one place that deletes trees. Says which went. One that cannot be deleted keeps no other.
pub(crate) fn delete_for_good(town: &Town, due: Vec<Trashed>) -> Result<Vec<Trashed>> {
    let (mut gone, mut problem) = (Vec::new(), None);
    for trashed in due {
        match delete_one(town, &trashed) {
            Ok(true) => gone.push(trashed),
            Ok(false) => {}
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    problem.map_or(Ok(gone), Err)
}

/// Deletes a tree; `false` if somebody wanted it back in the last moment.
fn delete_one(town: &Town, trashed: &Trashed) -> Result<bool> {
    let path = town.root().join(&trashed.path);
    let Some(directory) = path.parent().map(Path::to_owned) else { return Ok(false) };
    let rig = rig_with_trees(town, trashed.rig.as_str())?;
    if let Some(trees) = Trees::of(town, &rig) {
        let _lock = take_lock(&trees)?;
        let meant = format!("#{}", trashed.number);
        if town.read(|reader| Ok(find_kept(reader, &meant).is_err()))? {
            return Ok(false);
        }
        doom(&path, &directory.join(format!("{DOOMED}{}", trashed.number)))?;
        town.write(|writer| Ok(writer.set_trash_state(trashed, TrashState::Purged)?))?;
    }
    delete_doomed(&directory)?;
    Ok(true)
}

/// Takes what is to be deleted out of reach at once: deleting takes long, and half of a tree is of no use.
fn doom(path: &Path, doomed: &Path) -> Result<()> {
    match fs::rename(path, doomed) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(OperationError::File { action: "move", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn delete_doomed(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(DOOMED) {
            let path = entry.path();
            delete(&path).map_err(|source| OperationError::File {
                action: "delete",
                path,
                source,
            })?;
        }
    }
    Ok(())
}

fn delete(path: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        // Caches of build tools are often read-only.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let mut open = vec![path.to_owned()];
            while let Some(directory) = open.pop() {
                open.extend(made_writable(&directory)?);
            }
            fs::remove_dir_all(path)
        }
        deleted => deleted,
    }
}

/// Makes a directory writable; the directories in it.
fn made_writable(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    let inside = fs::read_dir(directory)?.flatten();
    let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    Ok(inside.filter(is_directory).map(|entry| entry.path()).collect())
}
