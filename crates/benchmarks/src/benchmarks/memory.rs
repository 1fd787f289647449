//! No command needs much memory, however large the town.

use std::time::{Duration, Instant};

use crate::BenchmarkResult;
use crate::lab::{BenchmarkTown, Lab};
use crate::report::{ReportRow, milliseconds};

const LIMIT_KIB: u64 = 100_000_000 / 1024;

/// Every command that might look at the whole town.
const COMMANDS: &[&str] = &[
    "bd list --all --limit 0",
    "bd list --all --limit 0 --json",
    "bd export",
    "bd ready --limit 0 --json",
    "bd ready --explain --limit 0 --json",
    "bd blocked --json",
    "bd search x --status all --limit 0 --json",
    "bd stats",
    "bd count --by-label",
    "gt status",
    "gt doctor",
    "bd activity --limit 0 --json",
    "bd dep cycles",
];

/// The peak memory of commands in the large town, and how long they take.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let town = lab.large()?;
    let (least, _) = peak(lab, town, &["bd", "--version"])?;
    let source = town.source.to_str().ok_or("a path is not UTF-8")?;
    let mut rows = Vec::new();
    let mut add = |name: &str, town: &BenchmarkTown, command: &[&str]| -> BenchmarkResult<()> {
        let (kib, took) = peak(lab, town, command)?;
        rows.push(ReportRow {
            name: format!("memory: {name}"),
            ours: format!("{} ({})", megabytes(kib), milliseconds(took)),
            baseline: megabytes(least),
            ratio: "–".to_owned(),
            target: "< 100 MB".to_owned(),
            met: Some(kib < LIMIT_KIB),
        });
        Ok(())
    };
    let empty = lab.empty_town("memory")?;
    add("`bd import`", &empty, &["bd", "import", source])?;
    for command in COMMANDS {
        let words: Vec<&str> = command.split(' ').collect();
        add(&format!("`{command}`"), town, &words)?;
    }
    add("`bd import` of the same again", town, &["bd", "import", source])?;
    Ok(rows)
}

/// The most memory a command had, in KiB, and how long it took.
pub(super) fn peak(
    lab: &Lab,
    town: &BenchmarkTown,
    command: &[&str],
) -> BenchmarkResult<(u64, Duration)> {
    let mut part = lab.part("peak")?;
    let program = lab.program(command[0], &town.path)?;
    part.current_dir(&town.path).arg(program.get_program()).args(&command[1..]);
    let start = Instant::now();
    let kib = lab.output(&mut part)?;
    Ok((kib.trim().parse()?, start.elapsed()))
}

pub(super) fn megabytes(kib: u64) -> String {
    let tenths = kib * 1024 / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}
