//! The command line, read by hand: the baselines start this program too, and must start fast.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::sample::Sample;
use crate::{Result, baseline, benchmarks, measure};

/// The text of `--help`.
pub(crate) const USAGE: &str = "\
Usage: scripts/bench [--quick | --long] [--only NAME]... [--write FILE]

Measures gt against baselines in the same run and prints a Markdown table.

  --quick        small stores and few rounds: does it work, not how fast is it
  --long         claims hands out a million items, not fifty thousand
  --only NAME    only this one (can be repeated): ready, create, import, grouped,
                 server, contention, million, queue, pipeline, workers,
                 daemon, http, claims, memory
  --write FILE   also put the table between the markers in FILE; rows of others stay
  --help         this text
";

/// The parsed arguments.
pub(crate) enum Request {
    /// The text above.
    Help,
    /// Measurements.
    Run(Run),
    /// A part of a measurement, for which the program starts itself.
    Part(Part),
}

/// The choice of measurements.
#[derive(Default)]
pub(crate) struct Run {
    /// Few and small measurements.
    pub(crate) quick: bool,
    /// As much as it should be where that takes minutes.
    pub(crate) long: bool,
    /// Their names; empty for all.
    pub(crate) only: Vec<String>,
    /// Where the table goes besides standard output.
    pub(crate) write: Option<PathBuf>,
}

/// A part of a measurement that needs a process of its own.
pub(crate) enum Part {
    /// Writes the file that is imported, to try things by hand.
    Sample { beads: u32, file: PathBuf },
    /// Opens the database, adds one bead, and ends.
    Commit { database: PathBuf, id: String },
    /// Copies all rows from one database to another and prints the nanoseconds of the inserts.
    Copy { from: PathBuf, to: PathBuf },
    /// Reads every bead and every dependency of a store once.
    Scan { store: PathBuf },
    /// Writes as fast as the store can until standard input ends.
    Saturate { store: PathBuf },
    /// Is a worker that writes down when it began and ended, and waits in between if it is to.
    Arrive { directory: PathBuf, name: String },
    /// Serves a file over HTTP without any logic until standard input ends.
    ServeFile { store: PathBuf },
    /// Hands the items of a database out over HTTP in the same way; a whole group at once if it is to.
    ServeClaims { url: String, together: bool },
    /// Runs a command and prints the KiB it had in memory at most.
    Peak { command: Vec<OsString> },
}

impl Part {
    /// Runs the part.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self {
            Self::Sample { beads, file } => Sample::new(beads).write(&file)?,
            Self::Commit { database, id } => baseline::commit_one(&database, &id)?,
            Self::Copy { from, to } => baseline::copy_all(&from, &to)?,
            Self::Scan { store } => benchmarks::scan(&store)?,
            Self::Saturate { store } => benchmarks::saturate(&store)?,
            Self::Arrive { directory, name } => benchmarks::arrive(&directory, &name)?,
            Self::ServeFile { store } => benchmarks::serve_file(&store)?,
            Self::ServeClaims { url, together } => benchmarks::serve_claims(&url, together)?,
            Self::Peak { command } => return measure::print_peak(&command),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Understands the arguments, the program's name left out.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Request> {
    let arguments: Vec<OsString> = arguments.collect();
    if let Some(part) = part(&arguments) {
        return Ok(Request::Part(part));
    }
    let mut run = Run::default();
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or("an argument lacks its value");
        match argument.to_str() {
            Some("--quick") => run.quick = true,
            Some("--long") => run.long = true,
            Some("--only") => run.only.push(known(value()?)?),
            Some("--write") => run.write = Some(value()?.into()),
            Some("--help" | "-h") => return Ok(Request::Help),
            _ => return Err(format!("unknown argument {}", argument.display()).into()),
        }
    }
    if run.quick && run.long {
        return Err("--quick and --long are two things; say one".into());
    }
    if run.write.is_some() && run.quick {
        return Err("--write is for real measurements, without --quick".into());
    }
    Ok(Request::Run(run))
}

fn known(name: OsString) -> Result<String> {
    let name = name.into_string().map_err(|_| "a name is not UTF-8")?;
    if benchmarks::ALL.iter().any(|known| known.name == name) {
        Ok(name)
    } else {
        Err(format!("there is no benchmark {name}").into())
    }
}

fn part(arguments: &[OsString]) -> Option<Part> {
    let (name, rest) = arguments.split_first()?;
    match (name.to_str()?, rest) {
        ("sample", [beads, file]) => {
            Some(Part::Sample { beads: beads.to_str()?.parse().ok()?, file: file.into() })
        }
        ("baseline-commit", [database, id]) => {
            Some(Part::Commit { database: database.into(), id: id.to_str()?.to_owned() })
        }
        ("baseline-copy", [from, to]) => Some(Part::Copy { from: from.into(), to: to.into() }),
        ("scan", [store]) => Some(Part::Scan { store: store.into() }),
        ("saturate", [store]) => Some(Part::Saturate { store: store.into() }),
        ("arrive", [directory, name]) => {
            Some(Part::Arrive { directory: directory.into(), name: name.to_str()?.to_owned() })
        }
        (benchmarks::BARE, [store]) => Some(Part::ServeFile { store: store.into() }),
        (name @ (benchmarks::ONE_BY_ONE | benchmarks::TOGETHER), [url]) => {
            let together = name == benchmarks::TOGETHER;
            Some(Part::ServeClaims { url: url.to_str()?.to_owned(), together })
        }
        ("peak", command) if !command.is_empty() => Some(Part::Peak { command: command.to_vec() }),
        _ => None,
    }
}
