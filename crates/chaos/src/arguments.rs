//! The arguments of the program.

use std::time::Duration;

use gt_testkit::{Engine, read_arguments};

/// The text of `--help`.
pub(crate) const USAGE: &str = "\
Usage: scripts/chaos [--minutes N] [--seed S] [--beads B] [--cap C] [--clock] [--engine sqlite|postgres]

Makes a town with two rigs and a pile of beads that depend on each other, lets
its daemon get them done, and meanwhile kills and stops daemon, supervisors,
agents and tmux server at random. Then everything is left in peace until all is
done, and what became of it is checked from outside: every bead is done exactly
once, the cap was never exceeded, no line that a worker wrote is lost, and no
process is left.

  --minutes N     one town after the other, the last one begun within N minutes;
                  without it, one town
  --seed S        of the first town (1); the next one has the next
  --beads B       in each town (200)
  --cap C         how many workers at once (8)
  --chaos S       how many seconds of each town are chaotic, at most (60)
  --pause MS      the longest pause between two faults, in milliseconds (500)
  --engine E      where the records are: sqlite (the default), or postgres, whose
                  server crashes and ends connections too
  --clock         set the clock of the town forward and back, too
  --keep          keep the last town, even if it is sound
  --help          this text

Exit code 1 says that something was not true; then the seed and the town, which
is kept, are named. A seed decides what is there to do, and in which order
whom something happens to; what the machine makes of it is different each time.
";

/// The parsed arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// Nothing is one town, however long that takes.
    pub(crate) time: Option<Duration>,
    pub(crate) seed: u64,
    pub(crate) beads: u64,
    pub(crate) cap: usize,
    /// How long each town is chaotic at most.
    pub(crate) chaos: Duration,
    /// The longest pause between two faults.
    pub(crate) pause: Duration,
    pub(crate) engine: Engine,
    /// Whether the clock is set, too.
    pub(crate) clock: bool,
    /// Whether a town in which everything is well is kept, too.
    pub(crate) keep: bool,
}

impl Request {
    /// The arguments that ask for this town once more.
    pub(crate) fn again(&self) -> String {
        let Self { time: _, seed, beads, cap, chaos, pause, engine, clock, keep: _ } = self;
        let (chaos, pause) = (chaos.as_secs(), pause.as_millis());
        let engine = if *engine == Engine::Postgres { " --engine postgres" } else { "" };
        let clock = if *clock { " --clock" } else { "" };
        format!(
            "--seed {seed} --beads {beads} --cap {cap} --chaos {chaos} --pause {pause}{engine}{clock}"
        )
    }
}

/// Parses the arguments; nothing if they ask for help.
pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Request>, String> {
    let mut request = Request {
        time: None,
        seed: 1,
        beads: 200,
        cap: 8,
        chaos: Duration::from_mins(1),
        pause: Duration::from_millis(500),
        engine: Engine::Sqlite,
        clock: false,
        keep: false,
    };
    let wants_help = read_arguments(arguments, &["--keep", "--clock"], |argument| {
        let milliseconds = |number: u32| Duration::from_millis(number.into());
        match argument.name() {
            "--keep" => request.keep = true,
            "--clock" => request.clock = true,
            "--minutes" => {
                request.time = Some(Duration::from_mins(argument.number::<u32>()?.into()));
            }
            "--seed" => request.seed = argument.number()?,
            "--beads" => request.beads = argument.positive::<u32>()?.into(),
            "--cap" => request.cap = argument.positive::<u32>()? as usize,
            "--chaos" => request.chaos = Duration::from_secs(argument.number::<u32>()?.into()),
            "--pause" => request.pause = milliseconds(argument.positive()?),
            "--engine" => request.engine = argument.engine()?,
            _ => return Err(argument.unknown()),
        }
        Ok(())
    })?;
    Ok((!wants_help).then_some(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_understood() {
        let read = |words: &[&str]| parse(words.iter().map(|word| (*word).to_owned()));
        let request = read(&["--minutes=5", "--seed", "7", "--beads", "20", "--cap", "3"]);
        let request = request.unwrap().unwrap();
        assert_eq!(request.time, Some(Duration::from_mins(5)));
        assert_eq!((request.seed, request.beads, request.cap), (7, 20, 3));
        let again = request.again();
        let again = read(&again.split(' ').collect::<Vec<_>>()).unwrap().unwrap();
        assert_eq!(again, Request { time: None, ..request });
        assert!(read(&["--help"]).unwrap().is_none());
        for wrong in [&["--cap", "0"][..], &["--x", "1"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
