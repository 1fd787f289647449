//! `bd create`, one process each.

use std::path::Path;
use std::time::Duration;

use crate::Result;
use crate::baseline::TITLE;
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::Row;
use crate::sample::Random;

/// A process that makes a bead, against processes that open SQLite and commit one row.
pub(crate) fn run(lab: &Lab) -> Result<Vec<Row>> {
    let town = lab.filled_town("create", lab.scale.small)?;
    let databases = ["commit.db", "commit-leaving-log.db"].map(|name| lab.path().join(name));
    for database in &databases {
        let mut copy = lab.part("baseline-copy")?;
        lab.output(copy.arg(town.database()).arg(database))?;
    }
    let create: Arm<'_> = Box::new(|| lab.time(&mut lab.bd(&town, ["create", TITLE, "--silent"])?));
    let commit = |seed, database, close| -> Arm<'_> {
        let mut random = Random::new(seed);
        Box::new(move || commit(lab, database, &random.id(7), close))
    };
    let normal = commit(1, &databases[0], "normally");
    let leaving = commit(2, &databases[1], "leave-log");
    let times = alternate(lab.scale.short_rounds, [create, normal, leaving])?;
    let [ours, normal, leaving] = [0, 1, 2].map(|arm| median(&times[arm]));
    Ok(vec![
        Row::times(
            "create: `bd create`, against a process that commits one row",
            ours,
            normal,
            Some(3.0),
        ),
        Row::times(
            "create: the same, against one that leaves its log behind as we do",
            ours,
            leaving,
            None,
        ),
    ])
}

fn commit(lab: &Lab, database: &Path, id: &str, close: &str) -> Result<Duration> {
    let mut part = lab.part("baseline-commit")?;
    lab.time(part.arg(database).args([id, close]))
}
