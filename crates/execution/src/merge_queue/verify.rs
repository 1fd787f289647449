//! Running the checks of a rig on a candidate.

use std::cell::Cell;
use std::time::{Duration, Instant};

use gt_core::checks::{CheckDefinition, CheckPurpose, CheckResult};
use gt_executors::git::Commit;
use gt_store::CandidateCheck;

use super::machine::CandidateCheckOrder;
use super::pass::{LEASE_GRACE_SECONDS, LEASE_SECONDS, QueueBuilder};
use crate::checks::CheckReport;
use gt_town::Result;

/// How often a builder renews its lease while a check runs.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(20);

/// A check that says no, or that could not say anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CheckFailure {
    /// The check.
    pub(super) check: String,
    /// The facts known about it, in a sentence.
    pub(super) words: String,
    /// Its run.
    pub(super) check_run: u64,
}

/// The checks of a rig that a commit has passed: all of them, as they were defined then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PassedChecks {
    /// Their definitions.
    pub(super) definitions: Vec<CheckDefinition>,
    /// The run of each.
    pub(super) runs: Vec<CandidateCheck>,
}

/// The verdict of the checks about a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CheckVerdict {
    /// Every check of the rig passes.
    Passed(PassedChecks),
    /// This check fails.
    Failed(CheckFailure),
    /// This check could not be run to its end.
    Error(CheckFailure),
}

impl QueueBuilder<'_> {
    /// Runs the checks of the rig on a commit, as far as they have not passed on the same content before. Without checks,
    /// everything passes.
    pub(super) fn verify(&self, commit: &Commit, purpose: CheckPurpose) -> Result<CheckVerdict> {
        let renewed = Cell::new(Instant::now());
        let keep_going = || {
            if renewed.get().elapsed() < RENEWAL_INTERVAL {
                return true;
            }
            renewed.set(Instant::now());
            self.renew_lease().unwrap_or(false)
        };
        let (town, rig, keep_going) = (self.town, self.rig, &keep_going);
        let order = CandidateCheckOrder { town, rig, commit, purpose, keep_going };
        let reports = self.machine.check(&order)?;
        let (mut definitions, mut runs) = (Vec::new(), Vec::new());
        for CheckReport { check, run, cached, last_lines } in reports {
            let last = last_lines.lines().rev().find(|line| !line.trim().is_empty());
            let last =
                last.map(|line| format!("; its last line: {}", line.trim())).unwrap_or_default();
            match run.result {
                CheckResult::Passed => {
                    let name = check.name.clone();
                    definitions.push(check);
                    runs.push(CandidateCheck { name, check_run: run.id, cached });
                }
                CheckResult::Failed => {
                    let code = run.exit_code.map(|code| format!(" with exit status {code}"));
                    let words = format!("it ended{}{last}", code.unwrap_or_default());
                    let check_run = run.id;
                    return Ok(CheckVerdict::Failed(CheckFailure {
                        check: check.name,
                        words,
                        check_run,
                    }));
                }
                CheckResult::Error => {
                    let kind = run.error.map_or("error", |error| error.as_str()).replace('_', " ");
                    return Ok(CheckVerdict::Error(CheckFailure {
                        check: check.name,
                        words: format!("{kind}{last}"),
                        check_run: run.id,
                    }));
                }
            }
        }
        Ok(CheckVerdict::Passed(PassedChecks { definitions, runs }))
    }

    fn renew_lease(&self) -> Result<bool> {
        let (rig, target) = (&self.name.rig, self.name.target.as_str());
        self.town.write(|writer| {
            Ok(writer.lease_queue(rig, target, self.builder, LEASE_SECONDS, LEASE_GRACE_SECONDS)?)
        })
    }
}
