//! On which machine the runs of a rig are carried out.

use gt_core::settings::Layers;
use gt_core::{ExecutorKind, Rig, RigSlug, words};
use gt_executors::ssh::Site;

use crate::settings::layers_in;
use crate::{OperationError, Result, Town};

/// Another machine, and where on it.
pub(super) struct RigSite {
    pub(super) machine: Site,
    pub(super) directory: String,
}

/// Where the runs of a rig go.
pub(super) fn site_of(town: &Town, rig: &Rig) -> Result<RigSite> {
    check_rig(rig)?;
    let layers = town.read(|reader| layers_in(town.root(), reader))?;
    check_host(&setting(&layers, &rig.slug, "host")?, &rig.slug)?;
    let value = |name: &str| setting(&layers, &rig.slug, name);
    let command = words::split(&value("command")?)?.into_iter().map(|word| word.text).collect();
    let machine = Site { command, host: value("host")?, gt: value("gt")? };
    Ok(RigSite { machine, directory: value("directory")? })
}

fn setting(layers: &Layers, rig: &RigSlug, name: &str) -> Result<String> {
    Ok(layers.get(&format!("rig.{rig}.ssh.{name}"))?.value)
}

/// Refuses a rig whose runs go to another machine when nobody has said to which.
pub(crate) fn check_host(host: &str, rig: &RigSlug) -> Result<()> {
    if host.trim().is_empty() {
        return Err(OperationError::rejected(format!(
            "the rig {rig} is carried out over ssh, and nobody has said on which machine; say it with \
             gt config set rig.{rig}.ssh.host <machine>"
        )));
    }
    Ok(())
}

/// Refuses what cannot be carried out on another machine.
pub(crate) fn check_rig(rig: &Rig) -> Result<()> {
    if rig.executor == ExecutorKind::Ssh && !rig.repo.is_empty() {
        return Err(OperationError::rejected(format!(
            "the rig {} has a repository, and trees on other machines are not there yet; use the executor tmux or \
             process for it, or a rig without a repository whose command looks after its own tree",
            rig.slug
        )));
    }
    Ok(())
}
