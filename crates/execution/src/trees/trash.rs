//! Trees that are moved to the trash, and can be restored.
//!
//! A process that moves a tree holds the lock of the rig's trash. If a move is recorded as under way while the lock
//! is free, the process that began it is dead, and the next holder completes the move first. So the moved tree is
//! always the intended one, and never one that was made in its place since.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use gt_core::schedule::{Polecat, RunId, TrashState, Trashed, TreeState, WorkerPlace};
use gt_core::{Rig, Timestamp};
use gt_executors::git::{GitError, Tree, move_tree_away, move_tree_back};
use gt_executors::runs::{Liveness, RunFiles};
use gt_store::Reader;

use super::save;
use gt_beads::polecat_names::{live_run_at, named_polecat};
use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _, STRAY_GRACE};
use gt_town::settings::layers_in;
use gt_town::tree_paths::{Trees, git_failed, rig_with_trees};
use gt_town::{OperationError, Result, Town};

/// How long before its deletion a tree is announced.
pub const PURGE_NOTICE_PERIOD: Duration = Duration::from_hours(3 * 24);

/// The prefix of trees that are being deleted. No other code reads them.
const PURGING_PREFIX: &str = ".purging-";

/// Why a tree leaves its place.
#[derive(Debug, Clone, Copy)]
pub(super) enum TrashReason<'a> {
    /// A run needs the place, and has it already.
    For(&'a RunId),
    /// The polecat is taken out of service.
    Nuked,
    /// It was made ahead, and fewer warm trees are wanted now.
    Unwanted,
    /// Another one is made in its place, ahead of any run.
    Unclean,
}

impl TrashReason<'_> {
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

/// Takes the lock for moving trees of a rig to and from its trash; waits for the current holder.
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

/// Moves the tree of a polecat away, with all its content. The one way in which a tree leaves its place: for a nuke,
/// for a tree that is not clean, for one that is not whole. The intention is recorded first, so that a crash in
/// between leaves no unknown tree.
pub(super) fn move_away(
    town: &Town,
    rig: &Rig,
    polecat: &Polecat,
    why: TrashReason<'_>,
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
            && !matches!(why, TrashReason::For(own) if *own == run.id)
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
        let keep = layers_in(town.root(), writer)?.trash_keep()?;
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

/// Completes a recorded move. Called with the lock.
fn complete(town: &Town, rig: &Rig, trees: &Trees<'_>, trashed: &Trashed) -> Result<Trashed> {
    let destination = trees.trash().join(format!("{}-{}", trashed.number, trashed.name));
    let tree = trees.tree(&trashed.name);
    let state = match move_tree_away(&trees.repository(), tree.path(), &destination) {
        Ok(()) => TrashState::Kept,
        // It was deleted by hand in between.
        Err(GitError::Missing { .. }) => TrashState::Purged,
        Err(error) => return Err(git_failed(rig)(error)),
    };
    let moved = Trashed { path: trees.below_town(&destination), state, ..trashed.clone() };
    town.write(|writer| Ok(writer.set_trash_state(&moved, state)?))?;
    Ok(moved)
}

/// All moves that have begun and are not recorded as complete.
fn moving(town: &Town) -> Result<Vec<Trashed>> {
    let mut all = trash(town)?;
    all.retain(|trashed| trashed.state == TrashState::Moving);
    Ok(all)
}

/// Completes moves whose process died. A tree that cannot be moved now stays where it is and blocks no work; `gt
/// doctor` reports it.
pub fn complete_moves(town: &Town) -> Result<()> {
    let begun = moving(town)?;
    if begun.is_empty() {
        return Ok(());
    }
    let processes = LocalProcesses::of(town)?;
    for one in begun.iter().filter(|one| one.host == processes.host()) {
        let rig = town.read(|reader| Ok(reader.rig(one.rig.as_str())?))?;
        let Some(rig) = rig else { continue };
        let Some(trees) = Trees::of(town, &rig) else { continue };
        let Ok(_lock) = take_lock(&trees) else { continue };
        // The process that began it may be alive, and done by now.
        if moving(town)?.iter().any(|still| still.number == one.number) {
            let _ = complete(town, &rig, &trees, one);
        }
    }
    Ok(())
}

/// The pause between two looks whether the supervisor of an ended run has left.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Takes a polecat out of service: its tree is moved away, its name is free. Refused while it works, or while a
/// process of its last run is alive. With `dry_run` it only checks that.
pub fn nuke(town: &Town, input: &str, dry_run: bool) -> Result<(Polecat, Option<Trashed>)> {
    let (rig, polecat) = named_polecat(town, input)?;
    let place = WorkerPlace::polecat(&rig.slug, &polecat.name)?;
    if let Some(run) = town.read(|reader| live_run_at(reader, &place))? {
        return Err(works_on(&place, &run.id));
    }
    if polecat.host != LocalProcesses::of(town)?.host() {
        return Err(OperationError::rejected(format!(
            "the tree of {place} is in another directory of this town ({}); take it away there",
            polecat.host
        )));
    }
    if let Some(run) = &polecat.last_run {
        let files = RunFiles::of(&town.runs_directory(), &run.to_string());
        let is_held = || matches!(files.liveness(), Ok(Liveness::Held));
        // A supervisor that has just written the end of its run is about to leave.
        let began = Instant::now();
        while is_held() && began.elapsed() < STRAY_GRACE {
            std::thread::sleep(EXIT_POLL_INTERVAL);
        }
        if is_held() {
            return Err(OperationError::rejected(format!(
                "something of {run} is still alive in the tree of {place}; gt run show {run} says what"
            )));
        }
    }
    if dry_run {
        return Ok((polecat, None));
    }
    save_last(town, &rig, &polecat)?;
    let trashed = move_away(town, &rig, &polecat, TrashReason::Nuked)?;
    Ok((polecat, trashed))
}

/// Saves the work of the last run of a polecat, so that it is listed with the other rescues, and stays when the trash
/// is emptied.
fn save_last(town: &Town, rig: &Rig, polecat: &Polecat) -> Result<()> {
    let Some(last) = &polecat.last_run else { return Ok(()) };
    let Some(run) = town.read(|reader| Ok(reader.run(last)?))? else { return Ok(()) };
    match save(town, rig, &run) {
        // A tree that git cannot read is moved away as it is.
        Ok(_) | Err(OperationError::Git { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The trees in the trash that can be restored, the last first.
pub fn trash(town: &Town) -> Result<Vec<Trashed>> {
    town.read(|reader| Ok(reader.trash()?))
}

/// Whether a tree will be deleted so soon that people are told.
pub fn is_due_soon(trashed: &Trashed, now: Timestamp) -> bool {
    trashed.state == TrashState::Kept && trashed.purge_at <= now.plus(PURGE_NOTICE_PERIOD)
}

/// Brings a tree back that was moved away: the last one of a polecat (`<rig>/<name>`), or the one with a number.
pub fn undelete(town: &Town, input: &str) -> Result<Trashed> {
    let wanted = town.read(|reader| find_kept(reader, input))?;
    let rig = rig_with_trees(town, wanted.rig.as_str())?;
    let Some(trees) = Trees::of(town, &rig) else { return Ok(wanted) };
    let processes = LocalProcesses::of(town)?;
    if wanted.host != processes.host() {
        return Err(OperationError::rejected(format!(
            "{} is in another directory of this town ({}); bring it back there",
            wanted.path, wanted.host
        )));
    }
    let _lock = take_lock(&trees)?;
    // It may have been restored, or deleted, while we waited.
    let trashed = town.read(|reader| find_kept(reader, &format!("#{}", wanted.number)))?;
    let place = WorkerPlace::polecat(&rig.slug, &trashed.name)?;
    if let Some(run) = town.read(|reader| live_run_at(reader, &place))? {
        return Err(works_on(&place, &run.id));
    }
    let (kept, tree) = (town.root().join(&trashed.path), trees.tree(&trashed.name));
    // Without the tree in the trash, the one in its place must be it, brought back by a process that then died.
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
                "the tree is not in {} any more; it was moved or deleted by hand",
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

/// Deletes the trees whose retention time is over. Returns them, or with `dry_run` those that would be deleted.
pub fn purge(town: &Town, dry_run: bool) -> Result<Vec<Trashed>> {
    let processes = LocalProcesses::of(town)?;
    let now = town.now();
    let mut due = trash(town)?;
    due.retain(|trashed| {
        trashed.state == TrashState::Kept
            && trashed.host == processes.host()
            && trashed.purge_at <= now
    });
    if dry_run { Ok(due) } else { delete_for_good(town, due) }
}

/// The only function that deletes trees. Returns the deleted ones. A tree that cannot be deleted does not stop the
/// others.
pub fn delete_for_good(town: &Town, due: Vec<Trashed>) -> Result<Vec<Trashed>> {
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

/// Deletes a tree; `false` if it was restored in the last moment.
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
        rename_for_deletion(&path, &directory.join(format!("{PURGING_PREFIX}{}", trashed.number)))?;
        town.write(|writer| Ok(writer.set_trash_state(trashed, TrashState::Purged)?))?;
    }
    delete_doomed(&directory)?;
    Ok(true)
}

/// Renames a tree before its deletion: deleting takes long, and half of a tree is of no use.
fn rename_for_deletion(path: &Path, deleted: &Path) -> Result<()> {
    match fs::rename(path, deleted) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(OperationError::File { action: "move", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn delete_doomed(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PURGING_PREFIX) {
            let path = entry.path();
            gt_executors::private::delete_directory(&path)
                .map_err(|source| OperationError::File { action: "delete", path, source })?;
        }
    }
    Ok(())
}
