//! Rigs of the executor `ssh`, which is removed.

use gt_core::settings::{REMOVED_OF_RIG, checked};
use gt_core::{ExecutorKind, Rig};
use gt_store::SettingScope;

use crate::settings::put;
use crate::{Result, Town, hosts};

/// Pins rigs that an earlier program carried out over ssh to the host with the name of their machine, where they are plain
/// processes. They wait until `gt host add` has made that machine a host. In a town on a file there is no other host, and they
/// stay as they are.
pub fn pin_ssh_rigs(town: &Town) -> Result<()> {
    let is_one = |rig: &Rig| rig.executor == ExecutorKind::Ssh;
    if !hosts::is_shared(town) || !town.read(|reader| Ok(reader.rigs()?.iter().any(is_one)))? {
        return Ok(());
    }
    town.as_system().write(|writer| {
        for rig in writer.rigs()?.into_iter().filter(is_one) {
            let of_rig = |key: &str| format!("rig.{}.{key}", rig.slug);
            let machine = writer.setting(SettingScope::Town, &of_rig(REMOVED_OF_RIG[0]))?;
            let Some(machine) = machine.filter(|machine| !machine.trim().is_empty()) else {
                continue;
            };
            let (name, value) = checked(&of_rig("host"), machine.trim())?;
            put(writer, &name, Some(&value))?;
            for key in REMOVED_OF_RIG {
                writer.put_setting(SettingScope::Town, &of_rig(key), None)?;
            }
            writer.change_rig(&rig, &Rig { executor: ExecutorKind::Process, ..rig.clone() })?;
        }
        Ok(())
    })
}
