//! Making a town, or a stand-alone store.

use std::path::{Path, PathBuf};

use gt_core::{Clock, Prefix, Rig, RigSlug, Uid};
use gt_store::{Authorship, Options, Store};

use super::file::{self, TownFile};
use super::{DIRECTORY, STORE, around};
use crate::{Actor, OperationError, Result, rigs};

/// Makes a town in `directory`. Says whether it is new; an existing one is left as it is.
pub fn install(directory: &Path, clock: &dyn Clock) -> Result<(PathBuf, bool)> {
    refuse_inside_a_town(directory)?;
    std::fs::create_dir_all(directory).map_err(|source| OperationError::File {
        action: "create",
        path: directory.to_owned(),
        source,
    })?;
    let root = directory.canonicalize().map_err(|source| OperationError::File {
        action: "find",
        path: directory.to_owned(),
        source,
    })?;
    if around(&root).is_some() {
        return Ok((root, false));
    }
    make(&root, clock, |_| Ok(()))?;
    Ok((root, true))
}

/// Asked before anything is made, so that nothing has to be unmade.
fn refuse_inside_a_town(directory: &Path) -> Result<()> {
    let made = directory.ancestors().find_map(|at| at.canonicalize().ok());
    let Some(existing) = made.as_deref().and_then(around) else {
        return Ok(());
    };
    if directory.canonicalize().is_ok_and(|root| root == existing) {
        return Ok(());
    }
    Err(OperationError::rejected(format!(
        "{} is inside the town {}; towns do not nest",
        directory.display(),
        existing.display()
    )))
}

/// Makes a stand-alone store in `directory`: a town of one rig, whose directory is the town's.
pub fn start_store(
    directory: &Path,
    prefix: Option<&str>,
    actor: &Actor,
    clock: &dyn Clock,
) -> Result<Prefix> {
    let name: String = directory
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .collect();
    let name = name.trim_matches(['-', '_']).to_owned();
    let prefix = match prefix {
        Some(prefix) => {
            let prefix = Prefix::parse(prefix)?;
            rigs::refuse_reserved(&prefix)?;
            prefix
        }
        None => Prefix::derive(&name, |_| false).map_err(|_| {
            OperationError::rejected(
                "this directory's name gives no prefix; give one with --prefix",
            )
        })?,
    };
    let slug = RigSlug::parse(&name).or_else(|_| RigSlug::parse(&format!("{prefix}-rig")))?;
    let now = clock.now();
    let rig = Rig::new(slug, &name, prefix.clone(), ".", now);
    make(directory, clock, |store| {
        let by = Authorship { actor: actor.name.clone(), at: now };
        store.write(&by, |writer| {
            // Somebody may have come this far before, and no further.
            let existing = writer.rigs()?.into_iter().find(|rig| rig.path == ".");
            if let Some(existing) = existing {
                return Ok(existing.prefix);
            }
            writer.insert_rig(&rig)?;
            Ok(prefix)
        })
    })
}

fn make<T>(root: &Path, clock: &dyn Clock, furnish: impl FnOnce(&Store) -> Result<T>) -> Result<T> {
    let directory = root.join(DIRECTORY);
    std::fs::create_dir_all(&directory).map_err(|source| OperationError::File {
        action: "create",
        path: directory.clone(),
        source,
    })?;
    let store = Store::create(&directory.join(STORE), clock.now(), Options::default())?;
    let furnished = furnish(&store)?;
    // A town inside a git repository stays out of its history.
    let ignore = directory.join(".gitignore");
    std::fs::write(&ignore, "*\n").map_err(|source| OperationError::File {
        action: "write",
        path: ignore,
        source,
    })?;
    file::write(root, &TownFile { id: Uid::fresh().to_string(), database_url: None })?;
    Ok(furnished)
}
