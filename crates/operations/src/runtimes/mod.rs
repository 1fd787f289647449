//! Runtimes: the built-in ones, those of the town, and which one works for a rig.

mod files;
mod scripted;
mod trial;

pub use files::{KnownRuntime, RuntimeOrigin, get, list, set, unset};
pub use scripted::{Ended, Stage, follow, script_of};
pub use trial::{Answer, Tested, test};

use gt_core::runtime::{LimitUntil, Runtime, Zones};
use gt_core::{Rig, Timestamp};
use jiff::tz::TimeZone;

use crate::settings::layers_in;
use crate::{Result, Town};

/// The runtime of a rig that has a command and names none.
const CUSTOM: &str = "custom";

/// The runtime of everybody else.
const DEFAULT: &str = "claude";

/// The runtime that works for a rig: the one that was asked for, else that of the rig, that of the town, the
/// command of the rig, and at last the default.
pub fn resolve(town: &Town, rig: &Rig, asked: Option<&str>) -> Result<Runtime> {
    let (of_rig, of_town, command) = town.read(|reader| {
        let layers = layers_in(town.root(), reader)?;
        let said = |name: &str| {
            let value = layers.get(name)?.value;
            Ok::<_, gt_core::Invalid>(Some(value).filter(|value| !value.is_empty()))
        };
        let slug = &rig.slug;
        Ok((
            said(&format!("rig.{slug}.runtime"))?,
            said("worker.runtime")?,
            said(&format!("rig.{slug}.command"))?,
        ))
    })?;
    let name = asked.or(of_rig.as_deref()).or(of_town.as_deref()).unwrap_or(if command.is_some() {
        CUSTOM
    } else {
        DEFAULT
    });
    Ok(get(town, name)?.runtime.for_rig(command.as_deref()))
}

/// The usage limit that the end of an output tells of, if it does, with the time zones of this machine.
pub fn limit_in(runtime: &Runtime, output: &str, now: Timestamp) -> Option<LimitUntil> {
    let zones = Zones { local: TimeZone::system(), named: &|name| TimeZone::get(name).ok() };
    runtime.limit_in(output, now, &zones)
}

#[cfg(test)]
mod tests;
