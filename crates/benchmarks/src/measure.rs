//! Clocks, medians and memory.

use std::ffi::OsString;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

use crate::BenchmarkResult;

/// One arm of a measurement: it takes a while and returns how long.
pub(crate) type Arm<'a> = Box<dyn FnMut() -> BenchmarkResult<Duration> + 'a>;

/// Runs all arms once per round, so that disturbances of the machine affect all of them alike. The
/// first round is not counted. Returns the sorted times of each arm.
pub(crate) fn alternate<const ARMS: usize>(
    rounds: usize,
    mut arms: [Arm<'_>; ARMS],
) -> BenchmarkResult<[Vec<Duration>; ARMS]> {
    let mut times = [const { Vec::new() }; ARMS];
    for round in 0..=rounds {
        // The second arm finds warmer caches, so the order changes.
        for turn in 0..ARMS {
            let arm = (turn + round) % ARMS;
            let took = arms[arm]()?;
            if round > 0 {
                times[arm].push(took);
            }
        }
    }
    for times in &mut times {
        times.sort();
    }
    Ok(times)
}

/// The middle of sorted times.
pub(crate) fn median(sorted: &[Duration]) -> Duration {
    percentile(sorted, 50)
}

/// The time that so many of a hundred stay below, of sorted times.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let index = sorted.len() * percent / 100;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// How many times `baseline` fits into `ours`.
pub(crate) fn ratio(ours: Duration, baseline: Duration) -> f64 {
    ours.as_secs_f64() / baseline.as_secs_f64()
}

/// Runs a command with its output thrown away and prints its peak memory in KiB. A process of its
/// own, because the system only tells the largest of all children, and because a child begins with
/// the memory of its parent.
pub(crate) fn print_peak(command: &[OsString]) -> BenchmarkResult<ExitCode> {
    let status = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    println!("{}", getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss());
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(median(&times), Duration::from_millis(51));
        assert_eq!(percentile(&times, 99), Duration::from_millis(100));
        assert_eq!(percentile(&times[..1], 99), Duration::from_millis(1));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }

    #[test]
    fn arms_take_turns_and_the_first_round_does_not_count() {
        let order = std::cell::RefCell::new(String::new());
        let arm = |name: char, millis| -> Arm<'_> {
            let order = &order;
            Box::new(move || {
                order.borrow_mut().push(name);
                Ok(Duration::from_millis(millis))
            })
        };
        let times = alternate(2, [arm('a', 1), arm('b', 2)]).unwrap();
        assert_eq!(times[0], [Duration::from_millis(1); 2]);
        assert_eq!(times[1], [Duration::from_millis(2); 2]);
        assert_eq!(order.into_inner(), "abbaab");
    }
}
