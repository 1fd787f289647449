//! The environment of the processes of a check: they run code that no person has read yet.

use std::path::Path;

use gt_core::Rig;
use gt_executors::git::Repository;
use gt_executors::git::fence::{
    WITHHELD, bash_env_here, credentials_here, path_in_use, worker_git_variables,
};

use crate::trees::{path_with_us, programs_of};
use gt_town::identity::{CHECK, RUN_OF_CHECK, RUN_TOKEN};
use gt_town::{Result, Town};

/// Variables that lead to the store or to a work queue with rights of ours.
const OF_STORE: [&str; 6] =
    ["DATABASE_URL", "PGPASSWORD", "GT_WORK_URL", "GT_WORK_TOKEN", "GT_DAEMON", RUN_TOKEN];

/// The variables of ours that a check does not get.
pub(super) fn withheld() -> Vec<String> {
    let known = WITHHELD.into_iter().chain(OF_STORE).map(str::to_owned);
    known.chain(credentials_here()).collect()
}

/// The variables that a check gets besides ours. `label` names it; a `gt` that it calls is refused every write.
pub(super) fn environment_of(
    town: &Town,
    rig: &Rig,
    repository: &Repository,
    program: &Path,
    label: &str,
) -> Result<Vec<(String, String)>> {
    path_with_us(town, program)?;
    let programs = programs_of(town);
    // Not the path of a worker that asks for a check: it may have changed it.
    let path = path_in_use().unwrap_or_default();
    let path = format!("{}:{}", programs.display(), path.to_string_lossy());
    let own = |(name, value): (&str, String)| (name.to_owned(), value);
    let mut environment: Vec<(String, String)> = [
        ("GT_TOWN_ROOT", town.root().display().to_string()),
        ("GT_RIG", rig.slug.to_string()),
        (CHECK, label.to_owned()),
        ("GT_RUN", RUN_OF_CHECK.to_owned()),
        ("BD_ACTOR", format!("check/{label}")),
        ("BEADS_ACTOR", format!("check/{label}")),
        ("PATH", path),
        // No helper of git knows a password here, and none asks a person.
        ("GIT_TERMINAL_PROMPT", "0".to_owned()),
        ("GIT_CONFIG_KEY_0", "credential.helper".to_owned()),
        ("GIT_CONFIG_VALUE_0", String::new()),
    ]
    .map(own)
    .into();
    environment.extend(repository.fence_variables(&["credential.helper".to_owned()]));
    environment.extend(worker_git_variables(&programs, bash_env_here().as_deref()));
    Ok(environment)
}
