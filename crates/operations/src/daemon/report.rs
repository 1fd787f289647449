//! How the daemon is, as it says itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gt_core::histogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::town::DIRECTORY;

/// How the daemon is. It writes this down whenever something has changed, so that it can be read whatever the daemon does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The number of its process.
    pub pid: u32,
    /// Since when it runs.
    pub since: String,
    /// When it wrote this.
    pub seen_at: String,
    /// Its version.
    pub version: String,
    /// The town.
    pub town: String,
    /// The machine and the directory, as runs name them.
    pub host: String,
    /// Whether it has looked at everything once.
    pub ready: bool,
    /// Whether commands can ring at its door; if not, it looks every second.
    pub bell: bool,
    /// The last event that it has seen.
    pub last_event: u64,
    /// How many workers it found alive when it started.
    pub adopted: u64,
    /// How many workers it watches.
    pub watched: u64,
    /// How often it looked for something to start.
    pub passes: u64,
    /// How often it looked at everything.
    pub scans: u64,
    /// How much it found then that nobody had told of.
    pub scan_findings: u64,
    /// How often the machine slept, or its clock was set.
    pub clock_jumps: u64,
    /// How it fares with each of its duties.
    pub reconcilers: BTreeMap<String, DutyReport>,
    /// From a close to the start of what it made ready.
    pub close_to_start: LatencyReport,
    /// From the end of a run to the start of whoever got its slot.
    pub end_to_start: LatencyReport,
}

/// How it fares with one duty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DutyReport {
    /// How often it looked.
    pub rounds: u64,
    /// How much it did.
    pub done: u64,
    /// How often it failed.
    pub errors: u64,
    /// Why it failed the last time; empty if it has not failed since it went well.
    pub last_error: String,
}

/// How long something took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyReport {
    /// How many there were.
    pub count: u64,
    /// What half of them took at most, in milliseconds.
    pub p50_ms: f64,
    /// What nine of ten took at most.
    pub p90_ms: f64,
    /// What 99 of 100 took at most.
    pub p99_ms: f64,
    /// What the longest took.
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

impl Report {
    /// What the daemon of the town at `root` wrote last, if it can be read.
    pub(super) fn read(root: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path(root)).ok()?).ok()
    }

    /// Writes it where everybody finds it, whole. If that cannot be done, they find an older one.
    pub(super) fn write(&self, root: &Path) {
        let path = path(root);
        let fresh = path.with_extension("json.new");
        let Ok(text) = serde_json::to_vec(self) else { return };
        let _ = gt_executors::private::write(&fresh, text)
            .and_then(|()| std::fs::rename(&fresh, &path));
    }

    /// Takes away what was written.
    pub(super) fn remove(root: &Path) {
        let _ = std::fs::remove_file(path(root));
    }
}
