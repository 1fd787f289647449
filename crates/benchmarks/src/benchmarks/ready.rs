//! `bd ready` must not become slower as the town grows.

use crate::BenchmarkResult;
use crate::lab::{BenchmarkTown, Lab};
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

const ARGUMENTS: [&str; 4] = ["ready", "--json", "--limit", "20"];

/// The same command in a large and in a small town, just after their import.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let (small, large) = (lab.small()?, lab.large()?);
    let ready = |town| -> Arm<'_> { Box::new(move || one(lab, town)) };
    let times = alternate(lab.scale.short_rounds, [ready(large), ready(small)])?;
    let name = format!(
        "ready: `bd ready --json --limit 20`, {} beads against {}",
        lab.scale.large, lab.scale.small
    );
    Ok(vec![ReportRow::times(name, median(&times[0]), median(&times[1]), Some(2.0))])
}

fn one(lab: &Lab, town: &BenchmarkTown) -> BenchmarkResult<std::time::Duration> {
    lab.time(&mut lab.bd(town, ARGUMENTS)?)
}
