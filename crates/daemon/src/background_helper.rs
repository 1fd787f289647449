//! Helpers: detached copies of this program that work for a town after the command that started them.

use std::path::Path;
use std::sync::Arc;

use gt_executors::background::{detach, nameless_file};
use gt_scheduling::Consequences;
use gt_town::town::DIRECTORY;
use gt_town::{Actor, Environment, OperationError, Result, StoreOptions, SystemClock, Town};

/// Starts a copy of this program as this helper of the town, and does not wait for it.
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

/// The town at `root`, as a helper opens it.
pub fn open_town(root: &Path, environment: &Environment) -> Result<Town> {
    let actor = Actor { name: "gt".to_owned(), owner: String::new() };
    let (clock, options) = (Arc::new(SystemClock), StoreOptions::default());
    Town::open(root, root, environment, actor, clock, options, Arc::new(Consequences))
}
