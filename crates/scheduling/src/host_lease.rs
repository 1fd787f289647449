//! The lease of this host: its declarations, and its renewal.

use gt_core::runtime::Command;
use gt_core::settings::{Layers, plain_names};
use gt_executors::process;
use gt_store::{HostDeclaration, HostRow};

use crate::runtimes::{self, KnownRuntime};
use gt_town::hosts::{has_lease, is_lease_fresh};
use gt_town::rigs::pin_ssh_rigs;
use gt_town::settings::{KeptSettings, file_layers, layers_over};
use gt_town::{OperationError, Result, Town, hosts};

/// The facts that a daemon keeps from one renewal to the next.
#[derive(Debug, Default)]
pub struct KeptDeclaration {
    settings: KeptSettings,
    last: Option<(HostRow, HostDeclaration)>,
}

/// A renewal that has arrived.
#[derive(Debug)]
pub struct LeaseRenewal {
    /// The number of the last event, if it came with the answer.
    pub last_event: Option<u64>,
    /// Why the declarations of the renewal before were repeated: the settings of this host cannot be read.
    pub unreadable: Option<OperationError>,
}

impl KeptDeclaration {
    fn declare(&mut self, town: &Town, state: u64) -> Result<(HostRow, HostDeclaration)> {
        let layers = self.settings.layers(town, state)?;
        Ok((hosts::own_row(town)?, declaration(town, &layers)?))
    }
}

/// The declarations of this host, by these settings.
fn declaration(town: &Town, layers: &Layers) -> Result<HostDeclaration> {
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
    let files = file_layers(town)?;
    let layers = town.read(|reader| layers_over(&files, reader))?;
    hosts::renew(town, &declaration(town, &layers)?, false)?;
    Ok(())
}

/// Like [`renew_if_due`], for a host that is about to start runs: it starts none if its clock is wrong.
pub fn renew_to_start(town: &Town) -> Result<()> {
    if has_lease(town) && !is_lease_fresh(town)? {
        hosts::refuse_unfit_host(town)?;
    }
    renew_if_due(town)
}

/// Renews the lease of this host as its daemon, whose presence others may count on. `settings_state` is a number that changes
/// with the settings of the store. A wrong setting stops no worker: the declarations of the renewal before are repeated.
pub fn renew_by_daemon(
    town: &Town,
    kept: &mut KeptDeclaration,
    settings_state: u64,
) -> Result<LeaseRenewal> {
    let ((row, declared), unreadable) = match (kept.declare(town, settings_state), kept.last.take())
    {
        (Ok(declared), _) => (declared, None),
        (Err(error), Some(last)) if !error.is_of_store() => (last, Some(error)),
        (Err(error), last) => {
            kept.last = last;
            return Err(error);
        }
    };
    let renewed = hosts::renew_as(town, &row, &declared, true);
    kept.last = Some((row, declared));
    Ok(LeaseRenewal { last_event: renewed?, unreadable })
}

/// Notes that the daemon of this host has stopped.
pub fn daemon_left(town: &Town) -> Result<()> {
    if has_lease(town) { hosts::note_daemon_left(town) } else { Ok(()) }
}
