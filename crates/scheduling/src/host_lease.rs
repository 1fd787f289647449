//! The lease of this host: its declarations, and its renewal.

use gt_core::runtime::Command;
use gt_core::settings::plain_names;
use gt_executors::process;
use gt_store::HostDeclaration;

use crate::runtimes::{self, KnownRuntime};
use gt_town::hosts::{has_lease, is_lease_fresh};
use gt_town::rigs::pin_ssh_rigs;
use gt_town::settings::{file_layers, layers_over};
use gt_town::{Result, Town, hosts};

/// The declarations of this host.
fn declaration(town: &Town) -> Result<HostDeclaration> {
    let files = file_layers(town)?;
    let layers = town.read(|reader| layers_over(&files, reader))?;
    let names = |text: &str| plain_names(text).map(ToOwned::to_owned).collect();
    let machine = town.machine();
    Ok(HostDeclaration {
        address: layers.host_address()?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        labels: names(&layers.host_labels()?),
        max_runs: u32::try_from(layers.host_max_polecats()?).unwrap_or(0),
        rigs: names(&layers.host_rigs()?),
        runtimes: usable_runtimes(town)?,
        memory_mb: machine.memory.map_or(0, |memory| memory.total_mb),
        memory_free_mb: machine.memory.map_or(0, |memory| memory.available_mb),
        load_hundredths: machine.load.map_or(0, |load| load.hundredths),
        cores: machine.load.map_or(0, |load| load.cores),
        grace: layers.host_grace()?,
    })
}

/// The runtimes that work on this machine: those whose program is installed, and those that need none of their own.
fn usable_runtimes(town: &Town) -> Result<Vec<String>> {
    let is_usable = |known: &KnownRuntime| {
        let runtime = &known.runtime;
        let is_own = runtime.program.is_empty() || runtime.program.contains('{');
        is_own || runtime.command == Command::OfRig || process::is_installed(&runtime.program)
    };
    let all = runtimes::list(town)?.into_iter();
    let usable = all.filter(|(_, known)| known.as_ref().is_ok_and(is_usable));
    Ok(usable.map(|(name, _)| name).collect())
}

/// Renews the lease of this host if it is time to: before runs are started or judged, and by supervisors if the daemon does
/// not. A town whose store is not shared has no leases.
pub fn renew_if_due(town: &Town) -> Result<()> {
    hosts::note_given_identity(town)?;
    if !has_lease(town) || is_lease_fresh(town)? {
        return Ok(());
    }
    pin_ssh_rigs(town)?;
    hosts::renew(town, &declaration(town)?, false)
}

/// Renews the lease of this host as its daemon, whose presence others may count on.
pub fn renew_by_daemon(town: &Town) -> Result<()> {
    hosts::renew(town, &declaration(town)?, true)
}

/// Notes that the daemon of this host has stopped.
pub fn daemon_left(town: &Town) -> Result<()> {
    if has_lease(town) { hosts::note_daemon_left(town) } else { Ok(()) }
}
