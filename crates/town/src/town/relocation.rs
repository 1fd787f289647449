//! Moving a town to another store.
//!
//! `town.toml.next` is written before anything else and becomes `town.toml` by a rename. It counts only when the former
//! store says that the town has moved; so a process that dies in between leaves a town on exactly one of its stores, and
//! the next command finishes the move.

use std::path::Path;

use gt_core::Timestamp;
use gt_core::decide::Right;
use gt_store::{
    CopiedRows, OnCopyProgress, Options, Reader, Store, StoreAddress, StoreError, StoreFence,
    StoreMarks,
};

use super::credentials;
use super::database::{address_of, is_same_store, normal};
use super::file::{self, TownFile};
use super::{DIRECTORY, STORE, Town};
use crate::{Environment, OperationError, Result};

/// The word for the file in the town's own directory.
const OWN_FILE: &str = "sqlite";

/// The result of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreMove {
    /// The former store, without a password.
    pub from: String,
    /// The new store, without a password.
    pub to: String,
    /// The copied rows; nothing if the town was there already.
    pub copied: Option<CopiedRows>,
}

/// Moves the town to the store that `to` names: a URL, a path, or `sqlite` for the town's own file. `ready` is asked
/// when no other process can write to the former store any more.
pub fn move_store(
    town: &Town,
    to: &str,
    environment: &Environment,
    ready: impl FnOnce(&Reader<'_>) -> Result<()>,
    progress: OnCopyProgress<'_>,
) -> Result<StoreMove> {
    town.require_right(Right::Store, "a move of the store")?;
    let (root, from) = (town.root(), town.store_place());
    let to = to.trim();
    let url = match to {
        // Written down in full, so that no variable leads the town back.
        OWN_FILE => format!("sqlite:{DIRECTORY}/{STORE}"),
        _ => to.to_owned(),
    };
    let base = if to == OWN_FILE { root } else { town.working_directory.as_path() };
    let address = address_of(&url, base, environment)?.ok_or_else(|| {
        OperationError::rejected(format!(
            "{to} is not the address of a store; it can be postgres://user@host/database, a path, or sqlite for the \
             town's own file"
        ))
    })?;
    let shown = address.to_string();
    if town.store().address().is_some_and(|current| is_same_store(&current, &address)) {
        return Ok(StoreMove { from, to: shown, copied: None });
    }
    let database_url = match &address {
        StoreAddress::File(_) if to == OWN_FILE => url,
        StoreAddress::File(path) => format!("sqlite:{}", path.display()),
        StoreAddress::Server(_) => credentials::keep(environment, normal(&url))?,
    };
    file::write_next(root, &TownFile { id: town.id.clone(), database_url: Some(database_url) })?;
    let moved = town.store().move_to(&address, &town.id, town.now(), ready, progress);
    let copied = match moved {
        Ok(copied) => copied,
        // The server may have carried it out: the store itself decides whether the file counts.
        Err(error @ OperationError::Store(StoreError::Unsettled(_))) => return Err(error),
        Err(error) => {
            file::remove_next(root);
            return Err(error);
        }
    };
    switch(root, &address, town.now())?;
    Ok(StoreMove { from, to: shown, copied: Some(copied) })
}

/// Opens the new store to writers, and has the town use it. The former store refuses writes already.
fn switch(root: &Path, to: &StoreAddress, now: Timestamp) -> Result<()> {
    Store::open(to, now, Options::default())?.lift_fence()?;
    file::put_next_in_place(root)
}

/// The step after a look at the marks of a town's store.
pub(super) enum AfterMarks {
    /// It is the store of the town.
    Use,
    /// The town has moved, and `town.toml` names the new store now.
    OpenAgain,
}

/// Refuses a store that the town does not use. If the town has moved and the process that moved it died before
/// `town.toml` said so, this finishes the move.
pub(super) fn follow_marks(
    root: &Path,
    file: &TownFile,
    place: &StoreAddress,
    marks: &StoreMarks,
    environment: &Environment,
    now: Timestamp,
) -> Result<AfterMarks> {
    let Some(fence) = &marks.fence else { return Ok(AfterMarks::Use) };
    if let (StoreFence::Moved(moved_to), Some(next)) = (fence, file::read_next(root)?)
        && next.id == file.id
        && let Some(url) = &next.database_url
        && let Some(to) = address_of(url, root, environment)?
        && to.to_string() == *moved_to
    {
        switch(root, &to, now)?;
        return Ok(AfterMarks::OpenAgain);
    }
    Err(StoreError::Fenced(fence.reason(&place.to_string())).into())
}
