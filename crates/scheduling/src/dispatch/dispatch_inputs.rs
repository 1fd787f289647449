//! The inputs of dispatch decisions that are not in the store: read once, before any transaction.

use std::collections::BTreeMap;

use gt_core::decide::MachineFacts;
use gt_core::settings::Layers;

use crate::runtimes::{self, RuntimeNumbers};
use gt_town::hosts::{has_lease, host_of};
use gt_town::settings::file_layers;
use gt_town::{Result, Town};

/// The inputs of dispatch decisions that are not in the store, as they were at one moment.
#[derive(Debug, Clone, Default)]
pub struct DispatchInputs {
    /// The settings below those of the store.
    pub files: Layers,
    /// This machine, as runs name it; empty for a town without a directory.
    pub host: String,
    /// Whether this machine is one of several hosts, each with a lease.
    pub has_lease: bool,
    /// The known facts about this machine.
    pub machine: MachineFacts,
    /// The runtimes in the town's own files.
    pub runtimes: BTreeMap<String, RuntimeNumbers>,
}

impl DispatchInputs {
    /// Reads them.
    pub fn read(town: &Town) -> Result<Self> {
        Ok(Self {
            files: file_layers(town)?,
            host: host_of(town)?,
            has_lease: has_lease(town),
            machine: town.machine(),
            runtimes: runtimes::own_numbers(town)?,
        })
    }
}
