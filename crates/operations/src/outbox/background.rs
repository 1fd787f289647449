//! Sending beside the command that wrote the notices.

use std::path::Path;
use std::sync::Arc;

use gt_executors::background::{detach, nameless_file};

use super::deliver::is_due;
use super::{Delivered, Outside, deliver};
use crate::town::DIRECTORY;
use crate::{Actor, Environment, OperationError, Result, StoreOptions, SystemClock, Town};

/// The first argument that makes a program the helper; the town follows.
pub const HELPER: &str = "__deliver-notices";
/// How many notices of a channel the helper sends; there are rarely more than one.
const NOTICES_MAX: usize = 100;

/// Starts a copy of this program that sends what is due, and does not wait for it. The program must call
/// [`run`] when it is started with [`HELPER`]. A helper that cannot start is no failure: the notices are
/// written, and the next dispatch cycle tries them.
pub fn deliver_in_background(root: &Path) {
    let _ = start(root, HELPER);
}

/// Starts a copy of this program that knows by its first argument what to do for the town, and does not wait for it.
pub(crate) fn start(root: &Path, helper: &str) -> Result<()> {
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    let scratch = root.join(DIRECTORY);
    let nothing = nameless_file(&scratch).map_err(|source| OperationError::File {
        action: "use a temporary file in",
        path: scratch.clone(),
        source,
    })?;
    let program = std::env::current_exe().map_err(|source| OperationError::File {
        action: "find",
        path: "this program".into(),
        source,
    })?;
    Ok(detach(&program, &[helper.as_ref(), root.as_os_str()], nothing)?)
}

/// Has what is due sent, if anything is: what each cycle does for notices whose first try failed.
pub(crate) fn catch_up(town: &Town) -> Result<()> {
    if is_due(town)? {
        deliver_in_background(town.root());
    }
    Ok(())
}

/// Sends what is due here and now, if the town has no directory in which a helper could work.
pub fn deliver_without_directory(town: &Town) -> Result<()> {
    if !town.has_directory() && is_due(town)? {
        deliver(town, &Outside::of(town), NOTICES_MAX)?;
    }
    Ok(())
}

/// The helper's side: sends what is due in the town at `root`.
pub fn run(root: &Path, environment: &Environment) -> Result<Delivered> {
    let actor = Actor { name: "gt".to_owned(), owner: String::new() };
    let clock = Arc::new(SystemClock);
    let town = Town::open(root, root, environment, actor, clock, StoreOptions::default())?;
    deliver(&town, &Outside::of(&town), NOTICES_MAX)
}
