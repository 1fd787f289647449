//! The hook that git asks before a worker changes a reference.

use std::path::{Path, PathBuf};

use gt_core::Rig;
use gt_core::schedule::{RunId, RunState};
use gt_executors::git::fence::{
    FencedRepository, allow, bash_env_here, install_worker_git, parse, save_environment,
    use_environment, withheld_here, worker_git_variables,
};
use gt_executors::runs::RunFiles;

use gt_town::settings::layers_in;
use gt_town::tree_paths::Trees;
use gt_town::{OperationError, Result, Town};

/// The agent whose sign-in is one of the withheld variables.
const SIGNS_IN_WITH_TOKEN: &str = "copilot";

/// Adds to the environment of a worker the variables that keep it behind the fence, even if shared git settings
/// change, and removes those that reach the origin. Variables that the runtime or the account sets stay.
pub(crate) fn put_behind_fence(
    town: &Town,
    rig: &Rig,
    run: &RunId,
    runtime: &str,
    environment: &mut Vec<(String, String)>,
) -> Result<()> {
    let Some(trees) = Trees::of(town, rig) else { return Ok(()) };
    let files = RunFiles::of(&town.runs_directory(), &run.to_string());
    let path = files.environment_path();
    save_environment(&path).map_err(|source| OperationError::File {
        action: "write",
        path,
        source,
    })?;
    let inherits =
        town.read(|reader| Ok(layers_in(town.root(), reader)?.worker_inherit_credentials()?))?;
    if !inherits && runtime != SIGNS_IN_WITH_TOKEN {
        for name in withheld_here() {
            if !environment.iter().any(|(present, _)| present == name) {
                environment.push((name.to_owned(), String::new()));
            }
        }
    }
    let said = |name: &str| {
        let found = environment.iter().rev().find(|(present, _)| present == name);
        found.map(|(_, value)| value.as_str())
    };
    // Variables that a runtime sets stay; those of our own environment are not passed on.
    let count = said("GIT_CONFIG_COUNT").and_then(|count| count.parse::<u16>().ok()).unwrap_or(0);
    let key = |number| said(&format!("GIT_CONFIG_KEY_{number}")).unwrap_or_default().to_owned();
    let present: Vec<String> = (0..count).map(key).collect();
    let bash_env = said("BASH_ENV").map(str::to_owned).or_else(bash_env_here);
    environment.extend(trees.repository().fence_variables(&present));
    environment.extend(worker_git_variables(&programs_of(town), bash_env.as_deref()));
    Ok(())
}

/// The directory with the programs that workers find first.
pub(crate) fn programs_of(town: &Town) -> PathBuf {
    town.root().join(gt_town::town::DIRECTORY).join("bin")
}

/// Makes this program the `git` of workers.
pub(crate) fn give_workers_git(town: &Town, program: &Path) -> Result<()> {
    let rigs = town.read(|reader| Ok(reader.rigs()?))?;
    let fenced: Vec<FencedRepository> = rigs
        .iter()
        .filter_map(|rig| {
            let repository = Trees::of(town, rig)?.repository();
            let origin = repository.origin().ok()?;
            Some(FencedRepository { repository: repository.path().to_owned(), origin })
        })
        .collect();
    let directory = programs_of(town);
    install_worker_git(&directory, program, &fenced).map_err(|source| OperationError::File {
        action: "write",
        path: directory,
        source,
    })
}

/// Gives our git the environment of the run's supervisor when a worker calls us: the worker's own has nothing that
/// reaches the origin, and the worker can change it.
pub fn use_environment_of_supervisor(town: &Town, run: &RunId) {
    use_environment(&RunFiles::of(&town.runs_directory(), &run.to_string()).environment_path());
}

/// Whether the worker of a run may make these changes, as git passes them to its hook. A run that is over, or was
/// replaced by another, may change nothing that others see.
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
