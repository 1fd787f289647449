//! Rigs of the executor `ssh`, which is removed.

use gt_core::settings::checked;
use gt_core::{ExecutorKind, Rig};

use crate::settings::{put, take_removed};
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
            let Some(machine) = take_removed(writer, &rig.slug)? else { continue };
            let (name, value) = checked(&format!("rig.{}.host", rig.slug), machine.trim())?;
            put(writer, &name, Some(&value))?;
            writer.change_rig(&rig, &Rig { executor: ExecutorKind::Process, ..rig.clone() })?;
        }
        Ok(())
    })
}
