//! Rigs: the projects of a town.

mod change;
mod checks;
mod removed_executor;

use std::path::{Path, PathBuf};

use gt_core::decide::Right;
use gt_core::settings::{SettingName, checked};
use gt_core::{BeadId, ExecutorKind, Prefix, Rig, RigSlug, RigState, Status};
use gt_executors::git;
use gt_store::{Reader, RigCounts, Writer};

pub use change::{RigChange, branch_name, change, move_request_in};
pub use checks::{MayFetch, add_check, checks, checks_in, remove_check, suggested_checks};
pub use removed_executor::pin_ssh_rigs;

use crate::rig_names::{refuse_reserved, require};
use crate::{OperationError, Result, Town};

/// A rig to be added.
#[derive(Debug, Clone)]
pub struct NewRig<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its repository: a URL or a path.
    pub repository: Option<&'a str>,
    /// The prefix of its beads' ids.
    pub prefix: Option<&'a str>,
    /// The branch that work lands on; asked from the repository if nothing is said.
    pub branch: Option<&'a str>,
    /// How its runs are carried out.
    pub executor: ExecutorKind,
}

/// Adds a rig and makes its directory.
pub fn add(town: &Town, new: &NewRig<'_>) -> Result<Rig> {
    new.executor.refuse_removed()?;
    if new.executor == ExecutorKind::None {
        return Err(OperationError::rejected(
            "the executor none comes later; use tmux, process or pull",
        ));
    }
    // Before its directory is made.
    town.require_right(Right::Rigs, "a change of the town's rigs")?;
    let slug = RigSlug::parse(new.name)?;
    let prefix = new.prefix.map(Prefix::parse).transpose()?;
    // Before the transaction: git may take its time.
    town.read(|reader| check_free(reader, &slug, prefix.as_ref()))?;
    let (repo, default_branch) = repository(new, &slug)?;
    let host = host_of_directory(town, &slug, &repo)?;
    // Before the rig, because a directory without a rig does no harm.
    make_directory(town, slug.as_str())?;
    town.write(|writer| {
        check_free(writer, &slug, prefix.as_ref())?;
        let taken: Vec<String> =
            writer.rigs()?.into_iter().map(|rig| rig.prefix.to_string()).collect();
        let prefix = match prefix {
            Some(prefix) => prefix,
            None => Prefix::derive(new.name, |prefix| taken.iter().any(|t| t == prefix))?,
        };
        let rig = Rig {
            repo,
            default_branch,
            executor: new.executor,
            ..Rig::new(slug.clone(), new.name, prefix, slug.as_str(), writer.now())
        };
        writer.insert_rig(&rig)?;
        if let Some((name, value)) = &host {
            crate::settings::put(writer, name, Some(value))?;
        }
        Ok(rig)
    })
}

/// The setting that names this host for a rig whose origin is a directory of it, if other hosts work on the same store:
/// they have another directory of that name, or none.
fn host_of_directory(
    town: &Town,
    slug: &RigSlug,
    repository: &str,
) -> Result<Option<(SettingName, String)>> {
    if !repository.starts_with('/') || !crate::hosts::is_shared(town) {
        return Ok(None);
    }
    let host = crate::hosts::host_of(town)?;
    Ok(Some(checked(&format!("rig.{slug}.host"), &host)?))
}

/// The executor of a new rig if none is named: agents that work in a repository get a session each, where sessions can
/// be had; a command that needs no tree needs no session either.
pub fn usual_executor(has_repository: bool) -> ExecutorKind {
    if has_repository && gt_executors::tmux::Tmux::check().is_ok() {
        ExecutorKind::Tmux
    } else {
        ExecutorKind::Process
    }
}

/// Makes the directory of a rig at this path inside the town, unless it is there. A host that joined the town after the rig was
/// added has none yet.
pub fn make_directory(town: &Town, path: &str) -> Result<()> {
    if !town.has_directory() {
        return Ok(());
    }
    let directory = town.root().join(path);
    std::fs::create_dir_all(&directory).map_err(|source| OperationError::File {
        action: "create",
        path: directory,
        source,
    })
}

fn check_free(reader: &Reader<'_>, slug: &RigSlug, prefix: Option<&Prefix>) -> Result<()> {
    if reader.rig(slug.as_str())?.is_some() {
        return Err(OperationError::rejected(format!("the rig {slug} exists already")));
    }
    let Some(prefix) = prefix else { return Ok(()) };
    refuse_reserved(prefix)?;
    match reader.rigs()?.into_iter().find(|rig| rig.prefix == *prefix) {
        Some(rig) => Err(OperationError::rejected(format!(
            "the prefix {prefix} belongs to the rig {}; choose another with --prefix",
            rig.slug
        ))),
        None => Ok(()),
    }
}

/// The repository as we keep it (a local path is made absolute) and the branch that work lands on.
fn repository(new: &NewRig<'_>, slug: &RigSlug) -> Result<(String, String)> {
    let Some(given) = new.repository else {
        return Ok((String::new(), String::new()));
    };
    let local = Path::new(given);
    let repository = if local.exists() {
        let absolute = local.canonicalize().map_err(|source| OperationError::File {
            action: "find",
            path: local.to_owned(),
            source,
        })?;
        absolute.to_string_lossy().into_owned()
    } else {
        given.to_owned()
    };
    let branch = match new.branch {
        Some(branch) => {
            let branch = branch_name(branch)?;
            change::check_branch(slug, &repository, &branch)?;
            branch
        }
        None => git::default_branch(&repository).map_err(|error| {
            let is_detached =
                local.is_dir() && checkout_around(local).is_ok_and(|found| found.is_some());
            OperationError::rejected(if is_detached {
                format!(
                    "no branch is checked out in {given}, so it is not known where work lands; check one out there \
                     (git switch <branch>), or name it with gt rig add --branch"
                )
            } else {
                format!(
                    "{given} is not a git repository that can be reached ({error}); check it, or name \
                     the branch with --branch to add it anyway"
                )
            })
        })?,
    };
    Ok((repository, branch))
}

/// The checkout of a git repository that a directory is in; nothing if it is in none.
pub fn checkout_around(directory: &Path) -> Result<Option<PathBuf>> {
    git::checkout_around(directory).map_err(|error| OperationError::rejected(error.to_string()))
}

/// Every rig, with how many beads of it have each status.
pub fn list(town: &Town) -> Result<Vec<(Rig, RigCounts)>> {
    town.read(|reader| {
        let with_counts = |rig: Rig| {
            let counts = reader.rig_counts(&rig.slug)?;
            Ok((rig, counts))
        };
        reader.rigs()?.into_iter().map(with_counts).collect()
    })
}

/// One rig, with how many beads of it have each status.
pub fn status(town: &Town, name: &str) -> Result<(Rig, RigCounts)> {
    town.read(|reader| {
        let rig = require(reader, name)?;
        let counts = reader.rig_counts(&rig.slug)?;
        Ok((rig, counts))
    })
}

/// Parks, docks or reactivates a rig; says whether that changed anything.
pub fn set_state(town: &Town, name: &str, from: &[RigState], to: RigState) -> Result<(Rig, bool)> {
    town.write(|writer| {
        let rig = require(writer, name)?;
        if rig.state == to {
            return Ok((rig, false));
        }
        if !from.contains(&rig.state) {
            return Err(OperationError::rejected(format!(
                "the rig {} is {}; use gt rig {} {} first",
                rig.slug,
                rig.state.as_str(),
                if rig.state == RigState::Docked { "undock" } else { "unpark" },
                rig.slug
            )));
        }
        writer.set_rig_state(&rig, to)?;
        Ok((Rig { state: to, ..rig }, true))
    })
}

/// Removes a rig and its settings, unless it has open work. Its beads and its directory stay. The beads in `released` may be
/// open: their merge requests were given up with the rig.
pub fn remove_in(writer: &mut Writer<'_>, rig: &Rig, released: &[BeadId]) -> Result<()> {
    let mut open: i64 = writer
        .rig_counts(&rig.slug)?
        .iter()
        .filter(|(status, _)| status != "closed")
        .map(|(_, count)| count)
        .sum();
    for bead in released {
        let bead = writer.bead(bead)?.filter(|bead| bead.status != Status::Closed);
        open -= i64::from(bead.is_some_and(|bead| bead.rig.as_ref() == Some(&rig.slug)));
    }
    if open > 0 {
        let beads =
            if open == 1 { "1 bead that is".to_owned() } else { format!("{open} beads that are") };
        return Err(OperationError::rejected(format!(
            "the rig {} has {beads} not closed; close what is open, or take it out of service \
             with gt rig dock {}",
            rig.slug, rig.slug
        )));
    }
    refuse_scheduled(writer, rig)?;
    writer.delete_rig(rig)?;
    crate::settings::forget_rig(writer, &rig.slug)
}

/// Work of other rigs may have been sent here.
fn refuse_scheduled(reader: &Reader<'_>, rig: &Rig) -> Result<()> {
    let queued = reader.count_queued()?.into_iter().find(|(slug, _)| *slug == rig.slug);
    let queued = queued.map_or(0, |(_, queued)| queued);
    if queued > 0 {
        let beads = if queued == 1 { "1 bead".to_owned() } else { format!("{queued} beads") };
        return Err(OperationError::rejected(format!(
            "the rig {} has {beads} scheduled; gt scheduler list shows them, and gt scheduler clear \
             --bead <id> takes them out",
            rig.slug
        )));
    }
    refuse_live_run(reader, rig)
}

/// Refuses to remove a rig in which a run is live.
pub fn refuse_live_run(reader: &Reader<'_>, rig: &Rig) -> Result<()> {
    match reader.live_runs()?.into_iter().find(|run| run.rig == rig.slug) {
        Some(run) => Err(OperationError::rejected(format!(
            "{} is running in the rig {}; wait for it, or end it with gt run cancel {}",
            run.id, rig.slug, run.id
        ))),
        None => Ok(()),
    }
}

/// The rig of this name, for commands that narrow to one.
pub fn slug(town: &Town, name: &str) -> Result<RigSlug> {
    town.read(|reader| Ok(require(reader, name)?.slug))
}
