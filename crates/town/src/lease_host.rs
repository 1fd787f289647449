//! The host of a town, as far as its lease needs it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gt_core::decide::LeaseTimes;
use gt_core::settings::Layers;
use gt_executors::runs::{LeaseFile, since_boot};
use gt_store::HostRow;

/// A host that has a lease and no directory. A simulator has such hosts.
pub trait LeaseHost: Send + Sync {
    /// The host, as the store lists it.
    fn row(&self) -> HostRow;
    /// The settings that it has beside its store.
    fn settings(&self) -> Layers;
    /// How long ago its machine was started, by its own clock.
    fn since_boot(&self) -> Duration;
    /// When the last renewal was sent, since the boot, and the grace that it declared; nothing if there was none since then.
    fn last_renewal(&self) -> Option<(Duration, Duration)>;
    /// Records a renewal that was sent so long after the boot and has arrived, unless a later one is recorded.
    fn record_renewal(&self, sent: Duration, grace: Duration);
}

/// The record of the renewals of a host, with the clock that they are counted by.
#[derive(Clone)]
pub enum HostLease {
    /// A file of a directory, and the boot-time clock of this machine.
    File(LeaseFile),
    /// A host without a directory.
    Host(Arc<dyn LeaseHost>),
}

impl fmt::Debug for HostLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.fmt(f),
            Self::Host(host) => host.row().fmt(f),
        }
    }
}

impl HostLease {
    /// How long ago the machine was started.
    pub fn since_boot(&self) -> Duration {
        match self {
            Self::File(_) => since_boot(),
            Self::Host(host) => host.since_boot(),
        }
    }

    /// The age of the last renewal by the boot-time clock, since it was sent, and the times that it declared; nothing if there
    /// was none since the machine started.
    pub fn age(&self) -> Option<(Duration, LeaseTimes)> {
        let (sent, grace) = match self {
            Self::File(file) => file.read(),
            Self::Host(host) => host.last_renewal(),
        }?;
        Some((self.since_boot().saturating_sub(sent), LeaseTimes::of(grace)))
    }

    /// Records a renewal that was sent so long after the boot and has arrived.
    pub(crate) fn record(&self, sent: Duration, grace: Duration) -> std::io::Result<()> {
        match self {
            Self::File(file) => file.record(sent, grace),
            Self::Host(host) => {
                host.record_renewal(sent, grace);
                Ok(())
            }
        }
    }
}
