//! What decides about starts and is not in the store, read before any transaction.

use std::collections::BTreeMap;

use gt_core::decide::MachineFacts;
use gt_core::settings::Layers;

use crate::hosts::host_of;
use crate::runtimes::{self, RuntimeNumbers};
use crate::settings::file_layers;
use crate::{Result, Town};

/// What decides about starts and is not in the store, as it was at one moment: read once for a cycle.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// The settings below those of the store.
    pub(crate) files: Layers,
    /// This machine, as runs name it; empty if nobody asks for it.
    pub(crate) host: String,
    /// What is known of this machine.
    pub(crate) machine: MachineFacts,
    /// What the town's own files say about runtimes.
    pub(crate) runtimes: BTreeMap<String, RuntimeNumbers>,
}

impl Town {
    /// Looks around.
    pub(crate) fn surroundings(&self) -> Result<Surroundings> {
        Ok(Surroundings {
            files: file_layers(self)?,
            host: host_of(self)?,
            machine: self.machine(),
            runtimes: runtimes::own_numbers(self)?,
        })
    }
}
