//! What git asks before a worker changes a reference.

use gt_core::schedule::{RunId, RunState};
use gt_executors::git::fence::{allow, parse};

use crate::{OperationError, Result, Town};

/// Whether the worker of a run may make these changes, as git tells them to its hook. A run that is over, or that another
/// one has taken the place of, may change nothing that others see.
pub fn fence(town: &Town, run: &RunId, updates: &[u8]) -> Result<()> {
    let updates = parse(updates).map_err(|error| OperationError::Rejected(error.to_string()))?;
    let found = town.read(|reader| Ok(reader.run(run)?))?;
    let branch = match found {
        Some(found) if matches!(found.state, RunState::Running | RunState::Blocked) => {
            found.workplace.branch
        }
        Some(found) => {
            return Err(OperationError::rejected(format!(
                "{run} is {}: nothing that it does counts any more; stop here",
                found.state.as_str()
            )));
        }
        None => return Err(OperationError::rejected(format!("there is no run {run}; stop here"))),
    };
    allow(&updates, &branch).map_err(|refusal| OperationError::Rejected(refusal.to_string()))
}
