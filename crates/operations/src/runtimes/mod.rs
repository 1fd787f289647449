//! Runtimes: the built-in ones, those of the town, and which one works for a rig.

mod files;
mod scripted;
mod trial;

pub use files::{KnownRuntime, RuntimeOrigin, get, list, set};
pub use scripted::{Ended, Stage, follow, script_of};
pub use trial::{Answer, Tested, test};

use gt_core::runtime::{LimitUntil, Runtime, Zones};
use gt_core::settings::Layers;
use gt_core::{RigSlug, Timestamp};
use jiff::tz::TimeZone;

use crate::{Result, Town};

/// The runtime of a rig that has a command and names none.
const CUSTOM: &str = "custom";

/// The runtime of everybody else.
const DEFAULT: &str = "claude";

/// Which runtime works for a rig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// The command of the rig.
    pub command: Option<String>,
}

impl Choice {
    /// The one that was asked for, else that of the rig, that of the town, the command of the rig, and at last the
    /// default.
    pub fn of(layers: &Layers, rig: &RigSlug, asked: Option<&str>) -> Result<Self> {
        let said = |name: &str| {
            let value = layers.get(name)?.value;
            Ok::<_, gt_core::Invalid>(Some(value).filter(|value| !value.is_empty()))
        };
        let command = said(&format!("rig.{rig}.command"))?;
        let name = match asked {
            Some(asked) => Some(asked.to_owned()),
            None => said(&format!("rig.{rig}.runtime"))?.or(said("worker.runtime")?),
        };
        let otherwise = || if command.is_some() { CUSTOM } else { DEFAULT }.to_owned();
        Ok(Self { name: name.unwrap_or_else(otherwise), command })
    }
}

/// The runtime that was chosen.
pub fn resolve(town: &Town, choice: &Choice) -> Result<Runtime> {
    Ok(get(town, &choice.name)?.runtime.for_rig(choice.command.as_deref()))
}

/// The usage limit that the end of an output tells of, if it does, with the time zones of this machine.
pub fn limit_in(runtime: &Runtime, output: &str, now: Timestamp) -> Option<LimitUntil> {
    let zones = Zones { local: TimeZone::system(), named: &|name| TimeZone::get(name).ok() };
    runtime.limit_in(output, now, &zones)
}

#[cfg(test)]
mod tests;
