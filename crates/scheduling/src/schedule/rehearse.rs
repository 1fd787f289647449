//! Trying out what a dispatch would do, before anything is scheduled.

use gt_core::schedule::{SlingParameters, WorkerPlace};
use gt_core::{Bead, Rig};

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
        runtimes::known_in(town, settings, &rig.slug, asked).map_err(|error| match asked {
            Some(_) => error,
            None => OperationError::rejected(format!(
                "{error}; name another with gt config set rig.{}.runtime <runtime>, or with --agent",
                rig.slug
            )),
        })?;
    }
    cook(town, rig, bead, parameters)
}
