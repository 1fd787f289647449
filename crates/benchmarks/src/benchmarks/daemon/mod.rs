//! The cost of the daemon: between the end of a run and the next, for many starts at once, when
//! nothing happens, and under a crowd.

mod crowd;
mod next;
mod watch;

use crate::Result;
use crate::lab::Lab;
use crate::report::Row;

/// Runs all measurements of the daemon.
pub(crate) fn run(lab: &Lab) -> Result<Vec<Row>> {
    let mut rows = next::run(lab)?;
    rows.extend(watch::run(lab)?);
    rows.extend(crowd::run(lab)?);
    Ok(rows)
}
