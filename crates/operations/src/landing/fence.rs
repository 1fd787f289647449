//! What git asks before a worker changes a reference.

use gt_core::Rig;
use gt_core::schedule::{RunId, RunState};
use gt_executors::git::fence::{allow, parse};

use crate::trees::Trees;
use crate::{OperationError, Result, Town};

/// Adds to the environment of a worker what keeps it behind the fence, whatever becomes of the settings that it shares with
/// others.
pub(crate) fn put_behind_fence(town: &Town, rig: &Rig, environment: &mut Vec<(String, String)>) {
    let Some(trees) = Trees::of(town, rig) else { return };
    let said = |name: &str| {
        let found = environment.iter().rev().find(|(present, _)| present == name);
        found.map(|(_, value)| value.as_str())
    };
    // Those that a runtime brings stay; those that we were started with reach nobody.
    let count = said("GIT_CONFIG_COUNT").and_then(|count| count.parse::<u16>().ok()).unwrap_or(0);
    let key = |number| said(&format!("GIT_CONFIG_KEY_{number}")).unwrap_or_default().to_owned();
    let present: Vec<String> = (0..count).map(key).collect();
    environment.extend(trees.repository().fence_variables(&present));
}

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
