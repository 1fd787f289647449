//! How fast and how large `gt` is, as ratios against baselines measured in the same run.
//!
//! # Architecture invariants
//!
//! - Nothing is compared with a number from another run or another machine. A measurement and its
//!   baseline alternate, and the medians of many rounds are compared.
//! - A baseline is the cost of the same rows with SQLite alone: no logic, no checks, no output.
//! - Programs run with an environment built from nothing, in a directory that is removed. Everything
//!   that is started is also ended.

#![expect(
    clippy::disallowed_methods,
    reason = "programs are measured as a shell starts them, not as gt-executors does"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table goes to standard output, progress to standard error"
)]

mod arguments;
mod baseline;
mod benchmarks;
mod lab;
mod measure;
mod report;
mod sample;
mod transfer;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::{BenchmarkCommand, BenchmarkSelection};
use crate::lab::Lab;

/// Any error ends the run; no caller could handle it.
type BenchmarkResult<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let result = match BenchmarkCommand::parse() {
        BenchmarkCommand { part: Some(part), .. } => part.run(),
        BenchmarkCommand { part: None, run } => measure_all(&run).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        eprintln!("gt-benchmarks: {error}");
        ExitCode::FAILURE
    })
}

/// Runs what was asked for and prints the table.
fn measure_all(run: &BenchmarkSelection) -> BenchmarkResult<()> {
    let lab = Lab::new(run.quick, run.long)?;
    let mut rows = Vec::new();
    for benchmark in benchmarks::ALL {
        if run.only.is_empty() || run.only.iter().any(|name| name == benchmark.name) {
            eprintln!("{}: {}", benchmark.name, benchmark.about);
            rows.extend((benchmark.run)(&lab)?);
        }
    }
    let report = report::render(&rows, run.quick);
    print!("{report}");
    match &run.write {
        Some(file) => report::rewrite(Path::new(file), &report),
        None => Ok(()),
    }
}
