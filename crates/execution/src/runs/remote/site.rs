//! The machine on which the runs of a rig are carried out.

use gt_core::rig::check_ssh_host;
use gt_core::settings::Layers;
use gt_core::{Rig, RigSlug, words};
use gt_executors::ssh::Site;

use gt_town::settings::layers_in;
use gt_town::{Result, Town};

/// Another machine, and a directory on it.
pub(super) struct RigSite {
    pub(super) machine: Site,
    pub(super) directory: String,
}

/// Where the runs of a rig go.
pub(super) fn site_of(town: &Town, rig: &Rig) -> Result<RigSite> {
    rig.check_executor()?;
    let layers = town.read(|reader| layers_in(town.root(), reader))?;
    check_ssh_host(&setting(&layers, &rig.slug, "host")?, &rig.slug)?;
    let value = |name: &str| setting(&layers, &rig.slug, name);
    let command = words::split(&value("command")?)?.into_iter().map(|word| word.text).collect();
    let machine = Site { command, host: value("host")?, gt: value("gt")? };
    Ok(RigSite { machine, directory: value("directory")? })
}

fn setting(layers: &Layers, rig: &RigSlug, name: &str) -> Result<String> {
    Ok(layers.get(&format!("rig.{rig}.ssh.{name}"))?.value)
}
