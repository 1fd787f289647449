//! The arguments of the program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};

use crate::sample::Sample;
use crate::{BenchmarkResult, baseline, benchmarks, measure};

/// Measures gt against baselines in the same run and prints a Markdown table.
#[derive(Parser)]
#[command(
    name = "scripts/bench",
    bin_name = "scripts/bench",
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub(crate) struct BenchmarkCommand {
    #[command(subcommand)]
    pub(crate) part: Option<MeasurementPart>,
    #[command(flatten)]
    pub(crate) run: BenchmarkSelection,
}

/// The choice of measurements.
#[derive(clap::Args)]
pub(crate) struct BenchmarkSelection {
    /// Small stores and few rounds: does it work, not how fast is it
    #[arg(long, conflicts_with_all = ["long", "write"])]
    pub(crate) quick: bool,
    /// Benchmark claims hands out a million items, not fifty thousand
    #[arg(long)]
    pub(crate) long: bool,
    /// Only this one (can be repeated)
    #[arg(long, value_name = "NAME", value_parser = names())]
    pub(crate) only: Vec<String>,
    /// Also put the table between the markers in FILE; rows of others stay
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
}

/// A part of a measurement that needs a process of its own: the program starts itself.
#[derive(Subcommand)]
pub(crate) enum MeasurementPart {
    /// Writes the file that is imported, to try things by hand.
    #[command(hide = true)]
    Sample { beads: u32, file: PathBuf },
    /// Opens the database, adds one bead, and ends.
    #[command(name = "baseline-commit", hide = true)]
    Commit { database: PathBuf, id: String },
    /// Copies all rows from one database to another and prints the nanoseconds of the inserts.
    #[command(name = "baseline-copy", hide = true)]
    Copy { from: PathBuf, to: PathBuf },
    /// Reads every bead and every dependency of a store once.
    #[command(hide = true)]
    Scan { store: PathBuf },
    /// Writes as fast as the store can until standard input ends.
    #[command(hide = true)]
    Saturate { store: PathBuf },
    /// Is a worker that writes down when it began and ended, and waits in between if it is to.
    #[command(hide = true)]
    Arrive { directory: PathBuf, name: String },
    /// Serves a file over HTTP without any logic until standard input ends.
    #[command(name = benchmarks::BARE, hide = true)]
    ServeFile { store: PathBuf },
    /// Hands the items of a database out over HTTP in the same way, one by one.
    #[command(name = benchmarks::ONE_BY_ONE, hide = true)]
    ServeClaims { url: String },
    /// The same, a whole group at once.
    #[command(name = benchmarks::TOGETHER, hide = true)]
    ServeClaimsTogether { url: String },
    /// Runs a command and prints the KiB it had in memory at most.
    #[command(hide = true)]
    Peak {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
}

impl MeasurementPart {
    /// Runs the part.
    pub(crate) fn run(self) -> BenchmarkResult<ExitCode> {
        match self {
            Self::Sample { beads, file } => Sample::new(beads).write(&file)?,
            Self::Commit { database, id } => baseline::commit_one(&database, &id)?,
            Self::Copy { from, to } => baseline::copy_all(&from, &to)?,
            Self::Scan { store } => benchmarks::scan(&store)?,
            Self::Saturate { store } => benchmarks::saturate(&store)?,
            Self::Arrive { directory, name } => benchmarks::arrive(&directory, &name)?,
            Self::ServeFile { store } => benchmarks::serve_file(&store)?,
            Self::ServeClaims { url } => benchmarks::serve_claims(&url, false)?,
            Self::ServeClaimsTogether { url } => benchmarks::serve_claims(&url, true)?,
            Self::Peak { command } => return measure::print_peak(&command),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn names() -> PossibleValuesParser {
    benchmarks::ALL.iter().map(|benchmark| benchmark.name).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_understood() {
        let read =
            |words: &str| BenchmarkCommand::try_parse_from(format!("bench {words}").split(' '));
        let run = read("--only ready --only create --write table.md").unwrap().run;
        assert_eq!(run.only, ["ready", "create"]);
        assert_eq!(run.write, Some(PathBuf::from("table.md")));
        for wrong in ["--quick --long", "--quick --write x", "--only nothing", "nothing", "peak"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let part = read("peak gt bd list --json").unwrap().part;
        let Some(MeasurementPart::Peak { command }) = part else { panic!("another part") };
        assert_eq!(command, ["gt", "bd", "list", "--json"]);
        assert!(matches!(
            read("bare-claims url").unwrap().part,
            Some(MeasurementPart::ServeClaims { .. })
        ));
    }
}
