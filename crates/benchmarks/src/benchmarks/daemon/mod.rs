//! The cost of the daemon: between the end of a run and the next, for many starts at once, when
//! nothing happens, and under a crowd.

mod crowd;
mod next;
mod watch;

use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::report::ReportRow;

/// Runs all measurements of the daemon.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let mut rows = next::run(lab)?;
    rows.extend(watch::run(lab)?);
    rows.extend(crowd::run(lab)?);
    Ok(rows)
}
