//! The hosts of a town: their states, the modes that people give them, and the runs of hosts that are away or gone.

mod gone;
mod modes;

pub use gone::{GoneWatch, LostRuns, declare_gone};
pub use modes::{RemovedHost, drain, remove, resume};

use std::time::Duration;

use gt_core::decide::HostState;
use gt_core::schedule::{Run, RunId};
use gt_core::time::format_duration;
use gt_store::{HostRecord, Reader};

use gt_town::{OperationError, Result, Town, hosts};

/// A host with its live runs.
#[derive(Debug, Clone)]
pub struct FleetHost {
    /// The host.
    pub record: HostRecord,
    /// Its live runs.
    pub runs: Vec<RunId>,
    /// Whether it is this one.
    pub is_here: bool,
}

/// The hosts of a town, by name. Those that were removed come last.
pub fn list(town: &Town) -> Result<Vec<FleetHost>> {
    let here = hosts::is_host(town).then(|| hosts::own_row(town)).transpose()?;
    let is_here = |record: &HostRecord| here.as_ref().is_some_and(|own| own.id == record.host.id);
    let mut found = town.read(|reader| {
        let live = reader.live_runs()?;
        let with_runs = |record: HostRecord| FleetHost {
            runs: runs_on(&live, &record).map(|run| run.id.clone()).collect(),
            is_here: is_here(&record),
            record,
        };
        Ok(reader.fleet()?.into_iter().map(with_runs).collect::<Vec<_>>())
    })?;
    found.sort_by_key(|host| host.record.state() == HostState::Removed);
    Ok(found)
}

/// The live runs that a host carries out.
fn runs_on<'r>(live: &'r [Run], host: &HostRecord) -> impl Iterator<Item = &'r Run> {
    let id = host.host.id.clone();
    live.iter().filter(move |run| run.executor.takes_slot() && run.is_on(&id))
}

/// The host that a person means by its identity or its name.
pub fn named(town: &Town, input: &str) -> Result<FleetHost> {
    let all = list(town)?;
    let identity = input.rsplit_once('/').map_or(input, |(_, identity)| identity);
    if let Some(host) = all.iter().find(|host| host.record.host.id == identity) {
        return Ok(host.clone());
    }
    let mut named: Vec<&FleetHost> =
        all.iter().filter(|host| host.record.host.name == input).collect();
    let is_removed = |host: &FleetHost| host.record.state() == HostState::Removed;
    // A removed host may have had the name before.
    if named.iter().any(|host| !is_removed(host)) {
        named.retain(|host| !is_removed(host));
    }
    match named.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(OperationError::rejected(format!(
            "no host is called {input}; gt host list shows them"
        ))),
        several => {
            let several: Vec<String> = several
                .iter()
                .map(|host| format!("{} in {}", host.record.host.id, host.record.host.path))
                .collect();
            Err(OperationError::rejected(format!(
                "{} hosts are called {input}: {}; name one by its identity",
                several.len(),
                several.join(", ")
            )))
        }
    }
}

/// A host that is away or gone, with the live runs on it, which are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwayHost {
    /// Its identity.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: HostState,
    /// How long ago it renewed its lease.
    pub age: Duration,
    /// Its live runs.
    pub runs: Vec<RunId>,
}

impl AwayHost {
    /// The state of a run on this host, in words.
    pub fn of_run(&self) -> String {
        format!("unknown: its host {} is {}", self.name, self.since())
    }

    /// The state and the time since the last sign, in words.
    pub fn since(&self) -> String {
        let age = format_duration(Duration::from_secs(self.age.as_secs()));
        format!("{} (last sign {age} ago)", self.state.as_str())
    }
}

/// The hosts that are away or gone while the store says that runs are live on them.
pub fn away_in(reader: &Reader<'_>, live: &[Run]) -> Result<Vec<AwayHost>> {
    if live.is_empty() {
        return Ok(Vec::new());
    }
    // A host without a lease, in a town whose store is not shared, is never away.
    let leased = reader.fleet()?.into_iter().filter(|record| record.times().is_some());
    let away = leased.filter_map(|record| {
        let state = record.state();
        let runs: Vec<RunId> = runs_on(live, &record).map(|run| run.id.clone()).collect();
        let is_away = matches!(state, HostState::Away | HostState::Gone) && !runs.is_empty();
        let HostRecord { host, age, .. } = record;
        is_away.then_some(AwayHost { id: host.id, name: host.name, state, age, runs })
    });
    Ok(away.collect())
}

/// The hosts that are away or gone and have live runs. A town whose store is not shared has none.
pub fn away(town: &Town) -> Result<Vec<AwayHost>> {
    if !hosts::has_lease(town) {
        return Ok(Vec::new());
    }
    town.read(|reader| {
        let live = reader.live_runs()?;
        away_in(reader, &live)
    })
}
