//! A clock that everybody in a town reads, and that can be set while they do.

use std::fs;
use std::path::PathBuf;

use gt_testkit::{Invocation, Sandbox, clock_library};

/// By how many seconds it may be wrong: a little, by more than any backoff, by more than a day, and not at all.
const WRONG_BY: [&str; 9] =
    ["+3", "-3", "+400", "-400", "+7200", "-7200", "+100000", "-100000", "+0"];

/// The clock of a town: a library that stands before that of the system, and a file that says how wrong it is.
#[derive(Debug)]
pub(crate) struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// A clock that is right. Needs `faketime`.
    pub(crate) fn of(sandbox: &Sandbox) -> Self {
        let library = clock_library().expect("faketime is installed");
        let clock = Self { library, file: sandbox.root().join("clock") };
        clock.set_right();
        clock
    }

    /// The same program, reading this clock. Time that passes is not changed, only what the clock says.
    pub(crate) fn read_by(&self, invocation: Invocation) -> Invocation {
        let invocation = invocation.env("FAKETIME_TIMESTAMP_FILE", &self.file);
        let right = ["FAKETIME_NO_CACHE", "FAKETIME_DONT_FAKE_MONOTONIC", "DONT_FAKE_MONOTONIC"];
        let invocation = right.into_iter().fold(invocation, |all, name| all.env(name, "1"));
        invocation.env("LD_PRELOAD", &self.library)
    }

    /// Sets it to something; whether that was possible.
    pub(crate) fn step(&self, chosen: u64) -> bool {
        let at = usize::try_from(chosen % WRONG_BY.len() as u64).unwrap_or(0);
        self.set(WRONG_BY[at])
    }

    /// Sets it right.
    pub(crate) fn set_right(&self) {
        self.set("+0");
    }

    /// In one step: whoever reads a file that is being written has no time at all.
    fn set(&self, wrong_by: &str) -> bool {
        let next = self.file.with_extension("next");
        fs::write(&next, wrong_by).and_then(|()| fs::rename(&next, &self.file)).is_ok()
    }
}
