//! Trying out what a dispatch would do, before anything is scheduled.

use gt_core::runtime::{CUSTOM, Runtime};
use gt_core::schedule::{SlingParameters, WorkerPlace};
use gt_core::{Bead, ExecutorKind, Rig};
use gt_executors::process;

use crate::dispatch::{Recipe, cook};
use crate::runtimes;
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::{OperationError, Result, Town};

/// Finds the runtime and cooks the formula that a run of this bead would have. Reads files, so it is called before the
/// transaction.
pub(super) fn rehearse(
    town: &Town,
    settings: &SchedulerSettings,
    rig: &Rig,
    place: Option<&WorkerPlace>,
    bead: &Bead,
    parameters: &SlingParameters,
) -> Result<Recipe> {
    // People have their own.
    let is_ours = rig.executor.takes_slot() && place.is_none_or(|place| place.executor().is_none());
    if is_ours {
        let asked = parameters.runtime.as_deref();
        let runtime = runtimes::known_in(town, settings, &rig.slug, asked);
        let runtime = runtime.map_err(|error| match asked {
            Some(_) => error,
            None => OperationError::rejected(format!(
                "{error}; name another with gt config set rig.{}.runtime <runtime>, or with --agent",
                rig.slug
            )),
        })?;
        require_program(town, rig, &runtime)?;
    }
    cook(town, rig, bead, parameters)
}

fn require_program(town: &Town, rig: &Rig, runtime: &Runtime) -> Result<()> {
    let Some(problem) = missing_program(town, rig, runtime) else { return Ok(()) };
    Err(OperationError::rejected(format!(
        "{problem}; install it, or choose another agent with --agent <name> or gt config set rig.{}.runtime <name> \
         (gt config agent list shows them)",
        rig.slug
    )))
}

/// Why no agent of a rig can be started as it is set, if that is known.
pub(crate) fn agent_problem(
    town: &Town,
    settings: &SchedulerSettings,
    rig: &Rig,
) -> Option<String> {
    if !rig.executor.takes_slot() {
        return None;
    }
    match runtimes::known_in(town, settings, &rig.slug, None) {
        Ok(runtime) => missing_program(town, rig, &runtime),
        Err(error) => Some(error.to_string()),
    }
}

/// An agent whose program is missing on every machine that could start it, in words. That is known where this machine is the
/// only one: its rig works here, and its town is a file here. The command of a rig is found out when it starts.
fn missing_program(town: &Town, rig: &Rig, runtime: &Runtime) -> Option<String> {
    let is_here = matches!(rig.executor, ExecutorKind::Tmux | ExecutorKind::Process);
    let Runtime { name, program, .. } = runtime;
    let is_own = program.is_empty() || program.contains('{') || name.as_str() == CUSTOM;
    let is_known = is_here && !is_own && town.store_path().is_some();
    (is_known && !process::is_installed(program)).then(|| {
        format!("the agent {name} needs {program}, which is not installed on this machine")
    })
}
