//! Processes that are known by a variable of their environment.

use std::time::Duration;
use std::{fs, thread};

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
        environment_of(process)
            .split(|byte| *byte == 0)
            .any(|variable| variable == entry.as_bytes())
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

/// How often a process is looked at that is about to become another program.
const EXEC_LOOKS_MAX: u32 = 1000;

/// The environment with which a process was started; empty if it cannot be read. The start of a program returns a moment before
/// the kernel has written its environment; until then it reads as empty.
fn environment_of(process: &Process) -> Vec<u8> {
    let path = format!("/proc/{}/environ", process.pid.as_raw_pid());
    for _ in 0..EXEC_LOOKS_MAX {
        let environment = fs::read(&path).unwrap_or_default();
        if !environment.is_empty() || !is_between_programs(process) {
            return environment;
        }
        thread::yield_now();
    }
    Vec::new()
}

/// Whether a process has memory, and no place for an environment in it yet.
fn is_between_programs(process: &Process) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid.as_raw_pid()));
    let Ok(stat) = stat else { return false };
    // The name of the program may have spaces and brackets; the third field is the first one behind it.
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_ascii_whitespace().collect())
        .unwrap_or_default();
    let field = |number: usize| fields.get(number - 3).copied().unwrap_or("0");
    let (memory, environment) = (field(23), field(50));
    memory != "0" && environment == "0"
}
