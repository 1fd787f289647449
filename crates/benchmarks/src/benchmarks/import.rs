//! `bd import` of a large file.

use std::fs;
use std::time::Duration;

use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

/// A whole `bd import` into an empty town, against inserting the rows it leaves behind from memory.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let rows_of = lab.large()?.database();
    let source = lab.source(lab.scale.large)?;
    let ours: Arm<'_> = Box::new(|| {
        let town = lab.empty_town("import")?;
        let took = lab.time(lab.bd(&town, ["import"])?.arg(&source))?;
        fs::remove_dir_all(&town.path)?;
        Ok(took)
    });
    let baseline: Arm<'_> = Box::new(|| {
        let directory = lab.path().join("copy");
        fs::create_dir(&directory)?;
        let mut copy = lab.part("baseline-copy")?;
        let copied = lab.output(copy.arg(&rows_of).arg(directory.join("copy.db")))?;
        fs::remove_dir_all(&directory)?;
        Ok(Duration::from_nanos(copied.trim().parse()?))
    });
    let times = alternate(lab.scale.long_rounds, [ours, baseline])?;
    let name = format!(
        "import: `bd import` of {} beads, {} dependencies, against a prepared insert loop",
        lab.scale.large,
        3 * lab.scale.large
    );
    Ok(vec![ReportRow::speeds(
        name,
        lab.scale.large,
        median(&times[0]),
        median(&times[1]),
        Some(0.5),
    )])
}
