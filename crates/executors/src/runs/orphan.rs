//! Ending a run whose supervisor is gone.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::Pid;

use super::control::somebody_listens;
use super::processes::{self, Process, has_open};
use super::remains::{Left, end_all};
use super::{Liveness, RunDirectory};

/// How long after killing the last processes of a run their end is waited for.
const KILLED_PATIENCE: Duration = Duration::from_secs(5);

/// What a supervisor writes down about its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    agent: Pid,
    started: u64,
    supervisor: Pid,
}

fn parse(text: &str) -> Option<Record> {
    let mut words = text.split_ascii_whitespace();
    let mut pid = || Pid::from_raw(words.next()?.parse().ok().filter(|number| *number > 0)?);
    let agent = pid()?;
    let started = words.next()?.parse().ok()?;
    let mut pid = || Pid::from_raw(words.next()?.parse().ok().filter(|number| *number > 0)?);
    Some(Record { agent, started, supervisor: pid()? })
}

/// Ends the agent of a run whose supervisor is gone, its process group, and everything else that holds the
/// run's lock: `TERM`, `grace`, `KILL`. Says whether there was something to end and it has ended.
///
/// A process is sent a signal only if it is known to belong to the run: it holds the lock, it is the one
/// that was written down (number and start), or it shares the process group of such a one. A run with a
/// supervisor is left alone: that is asked with [`ask_to_cancel`](super::ask_to_cancel).
pub fn end_orphan(directory: &RunDirectory, grace: Duration) -> io::Result<bool> {
    if somebody_listens(directory)? || directory.liveness()? != Liveness::Held {
        return Ok(false);
    }
    let text = match fs::read_to_string(directory.agent_path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        read => read?,
    };
    let Some(record) = parse(&text) else { return Ok(false) };
    let lock = fs::metadata(directory.lock_path())?;
    let find = || {
        let all = processes::all();
        let processes = belonging(&all, record, |process| has_open(process.pid, &lock));
        Left { processes, group: None }
    };
    if find().processes.is_empty() {
        return Ok(false);
    }
    Ok(end_all(grace, Some(KILLED_PATIENCE), find))
}

/// Those that belong to the run.
fn belonging(
    all: &[Process],
    record: Record,
    holds_lock: impl Fn(&Process) -> bool,
) -> Vec<Process> {
    let ourselves = rustix::process::getpid();
    // The supervisor may be there after all, with an agent that has just ended.
    let may_end = |process: &&Process| ![ourselves, record.supervisor].contains(&process.pid);
    let mut found: Vec<Process> = all
        .iter()
        .filter(may_end)
        .filter(|process| {
            (process.pid, process.started) == (record.agent, record.started)
                || (!process.is_over && holds_lock(process))
        })
        .copied()
        .collect();
    // The number of a group is nobody else's while the group has a member.
    if found.iter().any(|process| process.group == Some(record.agent)) {
        for process in all.iter().filter(may_end) {
            let is_new = !found.iter().any(|other| other.pid == process.pid);
            if is_new && process.group == Some(record.agent) {
                found.push(*process);
            }
        }
    }
    found.retain(|process| !process.is_over);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).unwrap()
    }

    fn process(number: i32, group: i32, started: u64) -> Process {
        let parent = Some(pid(1));
        Process { pid: pid(number), parent, group: Some(pid(group)), started, is_over: false }
    }

    const STARTED: u64 = 500;

    fn numbers(all: &[Process], holders: &[i32]) -> Vec<i32> {
        let record = Record { agent: pid(70_001), started: STARTED, supervisor: pid(70_000) };
        belonging(all, record, |process| holders.contains(&process.pid.as_raw_pid()))
            .iter()
            .map(|process| process.pid.as_raw_pid())
            .collect()
    }

    #[test]
    fn a_record_is_read_or_refused() {
        let record = Record { agent: pid(12), started: 345, supervisor: pid(6) };
        assert_eq!(parse("12 345 6\n"), Some(record));
        for text in ["", "12", "12 345", "0 345 6", "-1 345 6", "12 x 6", "12 345 -1", "a b c"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_agent_and_its_group_belong_to_the_run() {
        let all =
            [process(70_001, 70_001, STARTED), process(70_002, 70_001, 501), process(9, 9, 1)];
        assert_eq!(numbers(&all, &[]), [70_001, 70_002]);
    }

    #[test]
    fn a_number_that_came_back_is_somebody_else() {
        let all = [process(70_001, 70_001, 900), process(70_002, 70_001, 901)];
        assert_eq!(numbers(&all, &[]), [] as [i32; 0]);
    }

    #[test]
    fn whoever_holds_the_lock_belongs_to_the_run_and_proves_its_group() {
        let all = [process(70_002, 70_001, 501), process(70_003, 70_001, 502), process(80, 80, 9)];
        assert_eq!(numbers(&all, &[70_003, 80]), [70_003, 80, 70_002]);
    }

    #[test]
    fn the_supervisor_is_left_alone() {
        let all = [process(70_000, 70_000, 499), process(70_001, 70_001, STARTED)];
        assert_eq!(numbers(&all, &[70_000, 70_001]), [70_001]);
    }
}
