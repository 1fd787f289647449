//! Runs seeds, and reports the violations.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;
use gt_simulator::{SeedOutcome, Stores, measure_fleet, simulate};
use gt_testkit::TownEngine;
use gt_town::parallel;

/// How many violations are printed in full.
const SHOWN_IN_FULL: u64 = 3;
/// So many seeds are given out at once.
const CHUNK: u64 = 32;

/// Lives through simulated histories of a town, and checks after every step what must always be true.
///
/// The histories have crashes, clocks that jump, and everything happening at once. The same seed is the same history.
///
/// Exit code 1 says that something was not true; then the seed, what it was, and the last steps are printed.
#[derive(Parser)]
#[command(name = "scripts/sim", bin_name = "scripts/sim")]
struct SimulatorOptions {
    /// How many histories
    #[arg(long, value_name = "N", default_value_t = 1000)]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    from: u64,
    /// The store; SQLite is in memory
    #[arg(long, value_name = "E", value_enum, default_value_t = TownEngine::Sqlite)]
    engine: TownEngine,
    /// Lives through no history: measures the decisions in fleets of 1, 64 and 1,000 hosts, with ten live runs on each
    #[arg(long)]
    scale: bool,
}

/// The sizes of the fleets that are measured.
const FLEET_SIZES: [u32; 3] = [1, 64, 1_000];
const RUNS_PER_HOST: u32 = 10;

fn main() -> ExitCode {
    let request = SimulatorOptions::parse();
    run(&request, &mut io::stdout().lock()).unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "error: {error}");
        ExitCode::FAILURE
    })
}

fn run(request: &SimulatorOptions, out: &mut impl io::Write) -> io::Result<ExitCode> {
    let stores = match request.engine {
        TownEngine::Sqlite => Stores::Memory,
        TownEngine::Postgres => Stores::postgres(),
    };
    if request.scale {
        for hosts in FLEET_SIZES {
            let times = stores
                .with_store(|store| measure_fleet(hosts, hosts * RUNS_PER_HOST, store))
                .map_err(io::Error::other)?;
            writeln!(out, "{}", times.map_err(io::Error::other)?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut steps, mut violations) = (0, 0);
    let mut next = request.from;
    let end = request.from.saturating_add(request.seeds);
    while next < end {
        let chunk: Vec<u64> = (next..end.min(next.saturating_add(CHUNK))).collect();
        next += chunk.len() as u64;
        let live = |seed: &u64| stores.with_store(|store| simulate(*seed, store, None));
        for done in parallel::execute(chunk, at_once, live) {
            let outcome: SeedOutcome = done.outcome.map_err(io::Error::other)?;
            steps += outcome.steps;
            let Some(mut violation) = outcome.violation else { continue };
            violations += 1;
            if violations > SHOWN_IN_FULL {
                violation.steps.clear();
            }
            write!(out, "{violation}")?;
        }
    }
    let (seeds, steps, found) = (grouped(request.seeds), grouped(steps), grouped(violations));
    writeln!(out, "{seeds} seeds, {steps} steps, {found} violations")?;
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A number with commas, for people.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn arguments_are_understood() {
        let read = |words: &str| {
            SimulatorOptions::try_parse_from(format!("sim {words}").split_whitespace())
        };
        let request = read("--seeds=5 --from 7 --engine postgres").unwrap();
        assert_eq!((request.seeds, request.from, request.engine), (5, 7, TownEngine::Postgres));
        let request = read("").unwrap();
        assert_eq!((request.seeds, request.from, request.engine), (1000, 1, TownEngine::Sqlite));
        assert!(read("--x 1").is_err());
    }
}
