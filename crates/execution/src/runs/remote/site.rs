//! The machine on which the runs of a rig are carried out.

use gt_core::rig::check_ssh_host;
use gt_core::{Rig, words};
use gt_executors::ssh::RemoteSite;

use gt_town::settings::layers_in;
use gt_town::{Result, Town};

/// Another machine, and a directory on it.
pub(super) struct RigSite {
    pub(super) machine: RemoteSite,
    pub(super) directory: String,
}

/// Where the runs of a rig go.
pub(super) fn site_of(town: &Town, rig: &Rig) -> Result<RigSite> {
    rig.check_executor()?;
    let layers = town.read(|reader| layers_in(town.root(), reader))?;
    let host = layers.rig_ssh_host(&rig.slug)?;
    check_ssh_host(&host, &rig.slug)?;
    let words = words::split(&layers.rig_ssh_command(&rig.slug)?)?;
    let command = words.into_iter().map(|word| word.text).collect();
    let machine = RemoteSite { command, host, gt: layers.rig_ssh_gt(&rig.slug)? };
    Ok(RigSite { machine, directory: layers.rig_ssh_directory(&rig.slug)? })
}
