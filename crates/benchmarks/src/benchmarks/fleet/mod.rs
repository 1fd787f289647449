//! A town with several hosts: what many hosts cost a cycle, how soon a death is noticed, what three hosts do that one cannot,
//! and what an idle one costs.

mod cycle;
mod death;
mod idle;
mod spread;

use std::fs;

use crate::BenchmarkResult;
use crate::lab::{BenchmarkTown, Lab};
use crate::report::ReportRow;

/// All of it, on a server with `fsync`.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let mut rows = vec![cycle::run(lab)?];
    rows.extend(death::run(lab)?);
    rows.push(idle::run(lab)?);
    rows.push(spread::run(lab)?);
    Ok(rows)
}

/// A directory that is a host of the town at `url`, with a name of its own and a cap; 0 is none.
fn join(lab: &Lab, name: &str, url: &str, cap: u32) -> BenchmarkResult<BenchmarkTown> {
    let town = lab.town_on(name, url)?;
    let settings = town.path.join("settings");
    fs::create_dir_all(&settings)?;
    let declared = format!(r#"{{"host": {{"name": "{name}", "max_polecats": {cap}}}}}"#);
    fs::write(settings.join("config.json"), declared)?;
    Ok(town)
}
