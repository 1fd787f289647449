//! Clocks that are wrong.

use std::fs;
use std::path::PathBuf;

use crate::{Sandbox, SandboxCommand};

/// The library that stands before that of the system, made from `clock.c`.
const LIBRARY: &str = concat!(env!("OUT_DIR"), "/clock.so");

/// A clock for all programs that are started with it. It can be set while they run.
#[derive(Debug)]
pub struct TestClock(PathBuf);

impl TestClock {
    /// A clock of a sandbox, and by how many seconds it is wrong.
    pub fn wrong_by(sandbox: &Sandbox, seconds: i64) -> Self {
        let clock = Self(sandbox.root().join("clock"));
        clock.set(seconds);
        clock
    }

    /// By how many seconds it is wrong from now on. The next clock of the same sandbox is the same one.
    pub fn set(&self, seconds: i64) {
        // In one step: a program that reads a half-written file would see a wrong time.
        let next = self.0.with_extension("next");
        fs::write(&next, seconds.to_string()).expect("write how wrong the clock is");
        fs::rename(&next, &self.0).expect("set the clock");
    }

    /// The same program, reading this clock. Time passes as it does for others.
    pub fn read_by(&self, invocation: SandboxCommand) -> SandboxCommand {
        invocation.env("LD_PRELOAD", LIBRARY).env("TEST_CLOCK", &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The year that a program says it is.
    fn year(sandbox: &Sandbox, clock: &TestClock) -> i32 {
        let date = clock.read_by(sandbox.command("date").arg("+%Y")).run().ok();
        date.line().parse().expect("date says the year")
    }

    #[test]
    fn a_program_sees_how_its_clock_is_set() {
        let sandbox = Sandbox::new("gt");
        let clock = TestClock::wrong_by(&sandbox, 0);
        let right = year(&sandbox, &clock);
        for years in [2, -2, 0] {
            clock.set(i64::from(years) * 366 * 24 * 60 * 60);
            assert_eq!(year(&sandbox, &clock), right + years);
        }
    }
}
