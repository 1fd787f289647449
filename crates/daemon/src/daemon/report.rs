//! The report of the daemon about itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gt_core::histogram::Histogram;
use serde::{Deserialize, Serialize};

use gt_town::town::DIRECTORY;

/// The state of the daemon. It is written at every change, so that it can be read while the daemon is busy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DaemonReport {
    /// Its process id.
    pub pid: u32,
    /// When it started.
    pub since: String,
    /// When it wrote this report.
    pub seen_at: String,
    /// Its version.
    pub version: String,
    /// The town.
    pub town: String,
    /// The machine and the directory, as in runs.
    pub host: String,
    /// Whether the first full scan is complete.
    pub ready: bool,
    /// Whether commands can ring its bell; if not, it polls every second.
    pub bell: bool,
    /// The last event that it has seen.
    pub last_event: u64,
    /// How many workers it found alive when it started.
    pub adopted: u64,
    /// How many workers it watches.
    pub watched: u64,
    /// How many dispatch rounds it made.
    pub passes: u64,
    /// How many full scans it made.
    pub scans: u64,
    /// How much those scans found that no event had announced.
    pub scan_findings: u64,
    /// How often the machine slept, or its clock was set.
    pub clock_jumps: u64,
    /// The counts of each reconciler.
    pub reconcilers: BTreeMap<String, ReconcilerReport>,
    /// From a close to the start of the work that it made ready.
    pub close_to_start: LatencyReport,
    /// From the end of a run to the start of the run that got its slot.
    pub end_to_start: LatencyReport,
}

/// The counts of one reconciler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReconcilerReport {
    /// How many rounds it made.
    pub rounds: u64,
    /// How many changes it made.
    pub done: u64,
    /// How often it failed.
    pub errors: u64,
    /// The last error; empty after a success.
    pub last_error: String,
}

/// The distribution of a latency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyReport {
    /// How many were measured.
    pub count: u64,
    /// The median, in milliseconds.
    pub p50_ms: f64,
    /// The 90th percentile.
    pub p90_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The maximum.
    pub max_ms: f64,
}

impl LatencyReport {
    pub(super) fn of(histogram: &Histogram) -> Self {
        let quantiles = histogram.quantiles();
        let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
        Self {
            count: quantiles.count,
            p50_ms: milliseconds(quantiles.p50),
            p90_ms: milliseconds(quantiles.p90),
            p99_ms: milliseconds(quantiles.p99),
            max_ms: milliseconds(quantiles.max),
        }
    }
}

fn path(root: &Path) -> PathBuf {
    root.join(DIRECTORY).join("daemon.json")
}

impl DaemonReport {
    /// The last report of the daemon of the town at `root`, if it can be read.
    pub(super) fn read(root: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path(root)).ok()?).ok()
    }

    /// Replaces the report file in one step. If that fails, readers find an older report.
    pub(super) fn write(&self, root: &Path) {
        let path = path(root);
        let fresh = path.with_extension("json.new");
        let Ok(text) = serde_json::to_vec(self) else { return };
        let _ = gt_executors::private::write(&fresh, text)
            .and_then(|()| std::fs::rename(&fresh, &path));
    }

    /// Removes the report file.
    pub(super) fn remove(root: &Path) {
        let _ = std::fs::remove_file(path(root));
    }
}
