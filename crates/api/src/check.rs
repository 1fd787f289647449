//! Checks of rigs.

use gt_core::RigSlug;
use gt_core::checks::{CheckDefinition, CheckError, CheckRun, PathPattern};
use gt_core::time::format_duration;
use serde::Serialize;

use crate::UtcTime;

/// A check of a rig.
#[derive(Debug, Clone, Serialize)]
pub struct RigCheckDocument {
    pub rig: String,
    pub name: String,
    pub command: String,
    pub timeout: String,
    pub retry: u32,
    /// The paths that its result depends on; all if there are none.
    pub paths: Vec<String>,
    /// The hash of all of this but the rig.
    pub definition: String,
}

impl RigCheckDocument {
    /// The check of a rig.
    pub fn of(rig: &RigSlug, check: &CheckDefinition) -> Self {
        Self {
            rig: rig.to_string(),
            name: check.name.clone(),
            command: check.command.clone(),
            timeout: format_duration(check.timeout),
            retry: check.retries,
            paths: check.paths.iter().map(PathPattern::to_string).collect(),
            definition: check.hash(),
        }
    }
}

/// The result of a check on a commit.
#[derive(Debug, Clone, Serialize)]
pub struct CheckReportDocument {
    pub rig: String,
    pub name: String,
    pub command: String,
    pub commit: String,
    pub tree: String,
    /// `passed`, `failed`, or `error` if it could not say.
    pub result: String,
    /// Why it could not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    pub attempt: u32,
    /// Whether it passed after it had failed on the same tree.
    pub flaky: bool,
    /// Whether it was not run, because it passed before on the same contents.
    pub cached: bool,
    pub started_at: UtcTime,
    pub duration_ms: u64,
    pub host: String,
    /// The file with its output, below the directory of the town.
    pub log: String,
    pub last_lines: Vec<String>,
}

impl CheckReportDocument {
    /// The result of a check.
    pub fn of(check: &CheckDefinition, run: &CheckRun, cached: bool, last_lines: &str) -> Self {
        Self {
            rig: run.rig.to_string(),
            name: check.name.clone(),
            command: check.command.clone(),
            commit: run.commit.clone(),
            tree: run.tree.clone(),
            result: run.result.as_str().to_owned(),
            error: run.error.map(|error| CheckError::as_str(error).to_owned()),
            exit_code: run.exit_code,
            attempt: run.attempt,
            flaky: run.flaky,
            cached,
            started_at: run.started_at.into(),
            duration_ms: run.duration_ms,
            host: run.host.clone(),
            log: run.log.clone(),
            last_lines: last_lines.lines().map(str::to_owned).collect(),
        }
    }
}
