//! `bd create`, one process each.

use crate::BenchmarkResult;
use crate::baseline::TITLE;
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;
use crate::sample::SampleRandom;

/// A process that makes a bead, against one that opens SQLite and commits one row.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let town = lab.filled_town("create", lab.scale.small)?;
    let database = lab.path().join("commit.db");
    lab.output(lab.part("baseline-copy")?.arg(town.database()).arg(&database))?;
    let create: Arm<'_> = Box::new(|| lab.time(&mut lab.bd(&town, ["create", TITLE, "--silent"])?));
    let mut random = SampleRandom::new(1);
    let commit: Arm<'_> = Box::new(|| {
        let mut part = lab.part("baseline-commit")?;
        lab.time(part.arg(&database).arg(random.id(7)))
    });
    let times = alternate(lab.scale.short_rounds, [create, commit])?;
    Ok(vec![ReportRow::times(
        "create: `bd create`, against a process that commits one row",
        median(&times[0]),
        median(&times[1]),
        Some(3.0),
    )])
}
