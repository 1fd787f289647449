//! Runs seeds, and reports the violations.

use std::io::{self, Write as _};
use std::process::ExitCode;

use gt_simulator::{Outcome, Stores, simulate};
use gt_testkit::{Engine, read_arguments};
use gt_town::parallel;

const USAGE: &str = "\
Usage: scripts/sim [--seeds N] [--from S] [--engine sqlite|postgres]

Lives through N simulated histories of a town, with crashes, clocks that jump
and everything happening at once, and checks after every step what must always
be true. The same seed is the same history.

  --seeds N       how many (1000)
  --from S        the first seed (1)
  --engine E      the store: sqlite, in memory (the default), or postgres
  --help          this text

Exit code 1 says that something was not true; then the seed, what it was, and
the last steps are printed.
";

/// How many violations are printed in full.
const SHOWN_IN_FULL: u64 = 3;
/// So many seeds are given out at once.
const CHUNK: u64 = 32;

struct Request {
    seeds: u64,
    from: u64,
    engine: Engine,
}

fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    let answer = match parse(std::env::args().skip(1)) {
        Ok(Some(request)) => run(&request, &mut out),
        Ok(None) => out.write_all(USAGE.as_bytes()).map(|()| ExitCode::SUCCESS),
        Err(wrong) => {
            let told = writeln!(io::stderr(), "scripts/sim: {wrong}; see scripts/sim --help");
            told.map(|()| ExitCode::from(2))
        }
    };
    answer.unwrap_or(ExitCode::FAILURE)
}

/// Parses the arguments; nothing if they ask for help.
fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Request>, String> {
    let mut request = Request { seeds: 1000, from: 1, engine: Engine::Sqlite };
    let wants_help = read_arguments(arguments, &[], |argument| {
        match argument.name() {
            "--seeds" => request.seeds = argument.number()?,
            "--from" => request.from = argument.number()?,
            "--engine" => request.engine = argument.engine()?,
            _ => return Err(argument.unknown()),
        }
        Ok(())
    })?;
    Ok((!wants_help).then_some(request))
}

fn run(request: &Request, out: &mut impl io::Write) -> io::Result<ExitCode> {
    let stores = match request.engine {
        Engine::Sqlite => Stores::Memory,
        Engine::Postgres => Stores::postgres(),
    };
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut steps, mut violations) = (0, 0);
    let mut next = request.from;
    let end = request.from.saturating_add(request.seeds);
    while next < end {
        let chunk: Vec<u64> = (next..end.min(next.saturating_add(CHUNK))).collect();
        next += chunk.len() as u64;
        let live = |seed: &u64| stores.with_store(|store| simulate(*seed, store, None));
        for done in parallel::execute(chunk, at_once, live) {
            let outcome: Outcome = done.outcome.map_err(io::Error::other)?;
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
        let read = |words: &[&str]| parse(words.iter().map(|word| (*word).to_owned()));
        let request = read(&["--seeds=5", "--from", "7", "--engine", "postgres"]).unwrap().unwrap();
        assert_eq!((request.seeds, request.from, request.engine), (5, 7, Engine::Postgres));
        assert!(read(&["--help"]).unwrap().is_none());
        assert!(read(&["--x", "1"]).is_err());
    }
}
