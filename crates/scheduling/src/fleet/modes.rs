//! The modes that people give hosts: draining, active again, removed.

use gt_core::decide::{HostMode, HostState, Right};
use gt_core::schedule::{Run, RunId};
use gt_store::HostRecord;

use super::gone::{can_be_lost, lose_runs};
use super::{FleetHost, named, runs_on};
use gt_town::{OperationError, Result, Town};

/// Lets a host take no new work. `false` if it is draining already.
pub fn drain(town: &Town, input: &str) -> Result<(FleetHost, bool)> {
    set_mode(town, input, HostMode::Draining)
}

/// Lets a host take work again. `false` if it does.
pub fn resume(town: &Town, input: &str) -> Result<(FleetHost, bool)> {
    set_mode(town, input, HostMode::Active)
}

fn set_mode(town: &Town, input: &str, mode: HostMode) -> Result<(FleetHost, bool)> {
    town.require_right(Right::Queue, "a change of a host")?;
    let host = named(town, input)?;
    if mode == HostMode::Draining && host.record.mode == HostMode::Removed {
        return Err(OperationError::rejected(format!(
            "the host {} is removed and takes no work; gt host resume {} brings it back",
            host.record.host.name, host.record.host.id
        )));
    }
    let row = &host.record.host;
    let is_changed = town.write(|writer| Ok(writer.set_host_mode(row, mode)?))?;
    Ok((named(town, &host.record.host.id)?, is_changed))
}

/// A host that was removed.
#[derive(Debug, Clone)]
pub struct RemovedHost {
    /// The host.
    pub host: FleetHost,
    /// Its runs that are lost now.
    pub lost: Vec<RunId>,
}

/// Removes a host from the town. A host that is at work, or on which runs are live, is removed by force only: its runs are
/// declared lost at once, although their workers may be alive. Their work has no effect any more.
pub fn remove(town: &Town, input: &str, force: bool) -> Result<RemovedHost> {
    town.require_right(Right::Queue, "a removal of a host")?;
    let host = named(town, input)?;
    let row = &host.record.host;
    let name = &row.name;
    if !host.runs.is_empty() && !force {
        let count = host.runs.len();
        let (runs, are) = if count == 1 { ("run", "is") } else { ("runs", "are") };
        return Err(OperationError::rejected(format!(
            "{count} {runs} {are} live on {name}; let them finish first (gt host drain {name}), or, if it is gone for \
             good, gt host remove {name} --force declares them lost and starts them elsewhere"
        )));
    }
    if host.record.has_daemon() && !force {
        return Err(OperationError::rejected(format!(
            "the daemon of {name} is at work in {}; stop it there first with gt down",
            row.path
        )));
    }
    town.write(|writer| Ok(writer.set_host_mode(row, HostMode::Removed)?))?;
    let live = town.read(|reader| Ok(reader.live_runs()?))?;
    let runs: Vec<&Run> = runs_on(&live, &host.record).filter(|run| can_be_lost(run)).collect();
    let is_removed = |now: &HostRecord| now.state() == HostState::Removed;
    let lost = if runs.is_empty() {
        Vec::new()
    } else {
        lose_runs(town, &host.record, &runs, is_removed)?.map(|lost| lost.runs).unwrap_or_default()
    };
    Ok(RemovedHost { host: named(town, &row.id)?, lost })
}
