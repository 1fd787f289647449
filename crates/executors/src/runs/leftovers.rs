//! Processes that programs with a limited time have left, in a process that does nothing but run such programs.

use std::time::{Duration, Instant};

use rustix::process::getpid;

use super::agent::adopt_orphans;
use super::process_ending::{RemainingProcesses, end_all};
use super::processes::{self, Process, descendants};
use crate::daemon::wait_for_any;

/// How long processes that do not even end when they are killed are waited for.
const KILL_WAIT_MAX: Duration = Duration::from_secs(2);

/// How long to wait before looking again whether any is left.
const PROCESS_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Processes that programs have left running. They may go on until the time of their program is up,
/// also where they have begun a session of their own.
#[derive(Debug)]
pub struct Leftovers {
    known: Vec<(Process, Instant)>,
}

impl Leftovers {
    /// From now on, the kernel makes every process ours that a program leaves behind.
    pub fn adopt() -> Self {
        adopt_orphans();
        Self { known: Vec::new() }
    }

    /// Notes the processes that a program has left and that may run until this time, and ends all
    /// whose time is up.
    pub fn note(&mut self, until: Instant) {
        for process in left() {
            if !self.known.iter().any(|(known, _)| known.is_same(&process)) {
                self.known.push((process, until));
            }
        }
        self.end_due();
    }

    /// Waits until nothing is left, and ends each process when its time is up.
    pub fn finish(mut self) {
        let last = self.known.iter().map(|(_, until)| *until).max();
        while let Some(last) = last.filter(|_| !left().is_empty()) {
            // A process that was started meanwhile has as much time as the last program had.
            self.note(last);
            if Instant::now() > last + KILL_WAIT_MAX {
                // A process that cannot be ended belongs to another user.
                return;
            }
            wait_for_any(&[], PROCESS_POLL_INTERVAL);
        }
    }

    fn end_due(&self) {
        let now = Instant::now();
        let due = |process: &Process| {
            self.known.iter().any(|(known, until)| known.is_same(process) && *until <= now)
        };
        end_all(Duration::ZERO, Some(KILL_WAIT_MAX), || {
            let all = processes::all();
            let mut processes: Vec<Process> = Vec::new();
            for process in left().into_iter().filter(due) {
                processes.push(process);
                processes.extend(descendants(&all, process.pid, &[]));
            }
            processes.retain(|process| !process.is_over);
            RemainingProcesses { processes, group: None }
        });
    }
}

/// Everything that this process, or a process that it has started, has started.
fn left() -> Vec<Process> {
    let mut left = descendants(&processes::all(), getpid(), &[]);
    left.retain(|process| !process.is_over);
    left
}
