//! From scheduled to started: who goes next, the one door to a slot, and the cycle around it.

mod cycle;
mod dispatcher;
mod due;
mod line;
mod pass;
mod pull;
mod recipe;
mod scene;
mod settings;
mod spawner;
mod start;
mod surroundings;

pub use cycle::{CycleReport, DispatchCycle};
pub(crate) use dispatcher::{Begun, Waiting};
pub use dispatcher::{Dispatched, Dispatcher, NotStarted, Started};
pub use due::next_due;
pub use pass::{Pass, Passes, pass};
pub(crate) use pull::{begin_in, give_in, take_in};
pub(crate) use recipe::{DEFAULT_FORMULA, Recipe, cook};
pub use scene::Caller;
pub(crate) use scene::Scene;
pub use settings::{Overrides, SchedulerSettings};
pub use spawner::{MemorySpawner, SpawnError, Spawner};
pub(crate) use start::{Cost, Start, Starter, close_stale, settle, start_failed_in, start_in};
pub(crate) use surroundings::Surroundings;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::{Result, Town};

/// A number in [0, 1) that is always the same for the same name and different for different ones: what
/// failed together does not come back together, and a simulation can be repeated.
pub(crate) fn jitter(name: &str) -> f64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let part = u32::try_from(hasher.finish() >> 32).unwrap_or(0);
    f64::from(part) / (f64::from(u32::MAX) + 1.0)
}

impl Town {
    /// The settings of the scheduler that are in force.
    pub fn scheduler_settings(&self) -> Result<SchedulerSettings> {
        let files = crate::settings::file_layers(self)?;
        self.read(|reader| SchedulerSettings::of(&crate::settings::layers_over(&files, reader)?))
    }
}
