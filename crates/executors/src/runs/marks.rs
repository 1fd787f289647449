//! Processes that are known by a variable of their environment.

use std::fs;
use std::time::Duration;

use rustix::process::getpid;

use super::process_ending::{RemainingProcesses, end_all};
use super::processes::{self, Process, descendants};

/// How long processes that do not even end when they are killed are waited for.
const KILL_WAIT_MAX: Duration = Duration::from_secs(2);

/// A variable that some processes have, and no others.
#[derive(Debug, Clone, Copy)]
pub struct ProcessMark<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: &'a str,
}

impl ProcessMark<'_> {
    /// Ends the processes with this mark, and all that they have started: `TERM`, `grace`, `KILL`. Says whether none is
    /// left. This process itself does not count.
    pub fn end_all(&self, grace: Duration) -> bool {
        end_all(grace, Some(KILL_WAIT_MAX), || RemainingProcesses {
            processes: self.processes(),
            group: None,
        })
    }

    /// Whether a process has it.
    pub(super) fn is_on(&self, process: &Process) -> bool {
        let entry = format!("{}={}", self.name, self.value);
        let path = format!("/proc/{}/environ", process.pid.as_raw_pid());
        let environment = fs::read(path).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
    }

    fn processes(&self) -> Vec<Process> {
        let all = processes::all();
        let has_mark = |process: &Process| self.is_on(process);
        let is_left = |process: &&Process| !process.is_over && process.pid != getpid();
        let mut found: Vec<Process> = Vec::new();
        for process in all.iter().filter(is_left).filter(|process| has_mark(process)) {
            for one in std::iter::once(*process).chain(descendants(&all, process.pid, &[])) {
                if !one.is_over && !found.iter().any(|other| other.pid == one.pid) {
                    found.push(one);
                }
            }
        }
        found
    }
}
