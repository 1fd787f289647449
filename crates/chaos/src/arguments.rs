//! The arguments of the program.

use std::num::{NonZeroU32, ParseIntError};
use std::time::Duration;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use gt_testkit::TownEngine;

/// Kills and stops the processes of a working town at random, and checks the town from outside.
///
/// Makes a town with two rigs and a pile of beads that depend on each other, lets its daemon get them done, and meanwhile
/// kills and stops daemon, supervisors, agents and tmux server at random. Then everything is left in peace until all is
/// done, and what became of it is checked from outside: every bead has landed exactly once, the target branches never had a
/// tree that fails the check, the cap was never exceeded, no line that a worker wrote is lost, and no process is left.
///
/// Exit code 1 says that something was not true; then the seed and the town, which is kept, are named. A seed decides
/// what is there to do, and in which order the faults happen; the machine decides at which moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Parser)]
#[command(name = "scripts/chaos", bin_name = "scripts/chaos")]
pub(crate) struct ChaosOptions {
    /// One town after the other, the last one begun within so many minutes; without it, one town
    #[arg(long = "minutes", value_name = "N", value_parser = minutes)]
    pub(crate) time: Option<Duration>,
    /// Seed of the first town; the next one has the next
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Beads in each town
    #[arg(long, value_name = "B", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) beads: u64,
    /// Workers at once
    #[arg(long, value_name = "C", default_value_t = 8, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) cap: usize,
    /// Seconds of each town that are chaotic, at most
    #[arg(long, value_name = "S", default_value = "60", value_parser = seconds)]
    pub(crate) chaos: Duration,
    /// Longest pause between two faults, in milliseconds
    #[arg(long, value_name = "MS", default_value = "500", value_parser = milliseconds)]
    pub(crate) pause: Duration,
    /// Where the records are; a PostgreSQL server crashes and ends connections too
    #[arg(long, value_name = "E", value_enum, default_value_t = TownEngine::Sqlite)]
    pub(crate) engine: TownEngine,
    /// Set the clock of the town forward and back, too
    #[arg(long)]
    pub(crate) clock: bool,
    /// Keep the last town, even if it is sound
    #[arg(long)]
    pub(crate) keep: bool,
}

impl ChaosOptions {
    /// The arguments that ask for this town once more.
    pub(crate) fn again(&self) -> String {
        let Self { time: _, seed, beads, cap, chaos, pause, engine, clock, keep: _ } = self;
        let (chaos, pause) = (chaos.as_secs(), pause.as_millis());
        let engine = if *engine == TownEngine::Postgres { " --engine postgres" } else { "" };
        let clock = if *clock { " --clock" } else { "" };
        format!(
            "--seed {seed} --beads {beads} --cap {cap} --chaos {chaos} --pause {pause}{engine}{clock}"
        )
    }
}

fn minutes(text: &str) -> Result<Duration, ParseIntError> {
    text.parse::<u32>().map(|number| Duration::from_mins(number.into()))
}

fn seconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse::<u32>().map(|number| Duration::from_secs(number.into()))
}

fn milliseconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse::<NonZeroU32>().map(|number| Duration::from_millis(number.get().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_understood() {
        let read =
            |words: &str| ChaosOptions::try_parse_from(format!("chaos {words}").split_whitespace());
        let request = read("--minutes=5 --seed 7 --beads 20 --cap 3").unwrap();
        assert_eq!(request.time, Some(Duration::from_mins(5)));
        assert_eq!((request.seed, request.beads, request.cap), (7, 20, 3));
        let again = read(&request.again()).unwrap();
        assert_eq!(again, ChaosOptions { time: None, ..request });
        let plain = "--seed 1 --beads 200 --cap 8 --chaos 60 --pause 500";
        assert_eq!(read("").unwrap().again(), plain);
        for wrong in ["--cap 0", "--beads 0", "--pause 0", "--engine oracle", "--x 1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
