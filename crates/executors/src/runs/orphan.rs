//! Ending a run whose supervisor is gone.

use std::fmt;
use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::control::has_listener;
use super::process_ending::{KILLED_PATIENCE, RemainingProcesses, end_all, send};
use super::processes::{self, Process, descendants, has_open, pid_of};
use super::{Liveness, RunFiles};

/// The contents of the lock file for as long as there is, or is about to be, an agent: the
/// supervisor's own number, and as soon as it is known, the agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockRecord {
    pub(super) supervisor: Pid,
    /// Its number, which is that of its group too, and when it was started.
    pub(super) agent: Option<(Pid, u64)>,
    /// The session in which it was has gone away, and it has not.
    pub(super) without_session: bool,
    /// The process that keeps open the session that was opened instead of the first one.
    pub(super) holder: Option<Pid>,
    /// The directory of the control group that all of them are in.
    pub(super) cgroup: Option<String>,
}

/// The beginnings of the lines below the first one.
const WITHOUT_SESSION: &str = "without session";
const HOLDER: &str = "session of ";
const CGROUP: &str = "control group ";

impl LockRecord {
    pub(super) fn parse(text: &str) -> Option<Self> {
        // Below it may stand how the agent ended, while something that it left is still there.
        let mut lines = text.lines();
        let words: Vec<&str> = lines.next()?.split_ascii_whitespace().collect();
        let (mut without_session, mut holder, mut cgroup) = (false, None, None);
        for line in lines {
            if line == WITHOUT_SESSION {
                without_session = true;
            } else if let Some(number) = line.strip_prefix(HOLDER) {
                holder = pid_of(number);
            } else if let Some(path) = line.strip_prefix(CGROUP) {
                cgroup = Some(path.to_owned());
            }
        }
        let (supervisor, agent) = match words.as_slice() {
            [supervisor] => (supervisor, None),
            [supervisor, agent, started] => {
                (supervisor, Some((pid_of(agent)?, started.parse().ok()?)))
            }
            _ => return None,
        };
        Some(Self { supervisor: pid_of(supervisor)?, agent, without_session, holder, cgroup })
    }
}

impl fmt::Display for LockRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.supervisor.as_raw_pid())?;
        if let Some((agent, started)) = self.agent {
            write!(f, " {} {started}", agent.as_raw_pid())?;
        }
        writeln!(f)?;
        if self.without_session {
            writeln!(f, "{WITHOUT_SESSION}")?;
        }
        if let Some(holder) = self.holder {
            writeln!(f, "{HOLDER}{}", holder.as_raw_pid())?;
        }
        self.cgroup.iter().try_for_each(|path| writeln!(f, "{CGROUP}{path}"))
    }
}

/// Whether the session of a run went away before its supervisor did.
pub fn lost_its_session(files: &RunFiles) -> bool {
    let text = fs::read_to_string(files.lock_path()).unwrap_or_default();
    LockRecord::parse(&text).is_some_and(|record| record.without_session)
}

/// Ends the agent of a run whose supervisor is gone, its process group, and everything else that holds the
/// run's lock: `TERM`, `grace`, `KILL`. Says whether there was something to end and it has ended.
///
/// A process is sent a signal only if it is known to belong to the run: it holds the lock, it is the one
/// that was written down (number and start), or it shares the process group of such a one. A run with a
/// supervisor is left alone: that is asked with [`ask_to_cancel`](super::ask_to_cancel).
pub fn end_orphan(files: &RunFiles, grace: Duration) -> io::Result<bool> {
    if has_listener(files)? || files.liveness()? != Liveness::Held {
        return Ok(false);
    }
    let text = fs::read_to_string(files.lock_path())?;
    let Some(record) = LockRecord::parse(&text) else { return Ok(false) };
    let lock = fs::metadata(files.lock_path())?;
    let find = || {
        let all = processes::all();
        let processes = belonging(&all, &record, |process| has_open(process.pid, &lock));
        RemainingProcesses { processes, group: None }
    };
    if find().processes.is_empty() {
        return Ok(false);
    }
    Ok(end_all(grace, Some(KILLED_PATIENCE), find))
}

/// A signal to all processes of a run but its supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunSignal {
    /// They stop where they are.
    Stop,
    /// Those that were stopped go on.
    Continue,
    /// They end at once, also if they are stopped.
    Kill,
}

/// How often the processes of a run are looked for until none is new: one may start another before it is stopped.
const SIGNAL_PASSES_MAX: usize = 20;

/// Sends a signal to every process of a run: its agent, the process group and the descendants of that, and everything else that
/// holds the run's lock. The supervisor gets none. Says how many processes got it.
pub fn signal_run(files: &RunFiles, signal: RunSignal) -> io::Result<usize> {
    if files.liveness()? != Liveness::Held {
        return Ok(0);
    }
    let Some(record) = LockRecord::parse(&fs::read_to_string(files.lock_path())?) else {
        return Ok(0);
    };
    let lock = fs::metadata(files.lock_path())?;
    let signal = match signal {
        RunSignal::Stop => Signal::STOP,
        RunSignal::Continue => Signal::CONT,
        RunSignal::Kill => Signal::KILL,
    };
    let mut sent: Vec<Process> = Vec::new();
    for _ in 0..SIGNAL_PASSES_MAX {
        let all = processes::all();
        let mut found = belonging(&all, &record, |process| has_open(process.pid, &lock));
        if let Some((agent, _)) = record
            .agent
            .filter(|agent| found.iter().any(|process| (process.pid, process.started) == *agent))
        {
            found.extend(descendants(&all, agent, &[]));
        }
        let is_new = |process: &Process| !sent.iter().any(|old| old.is_same(process));
        found.retain(is_new);
        if found.is_empty() {
            break;
        }
        for process in found {
            // A process of another user is left alone, as when the run ends.
            let _ = send(&process, signal);
            if !sent.iter().any(|old| old.pid == process.pid) {
                sent.push(process);
            }
        }
    }
    Ok(sent.len())
}

/// The process with which the session of a run was started whose agent is at work: its supervisor, or the one that holds the
/// session open which was opened instead of the first. Nothing if there is no such agent now.
pub fn supervisor_at_work(files: &RunFiles) -> io::Result<Option<u32>> {
    if !has_listener(files)? {
        return Ok(None);
    }
    let record = LockRecord::parse(&fs::read_to_string(files.lock_path())?);
    let with_agent = record.filter(|record| record.agent.is_some());
    let process = with_agent.map(|record| record.holder.unwrap_or(record.supervisor));
    Ok(process.and_then(|process| u32::try_from(process.as_raw_pid()).ok()))
}

/// The rest of a run whose supervisor is gone, while a process holds its lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnattendedRun {
    /// Its agent, of this number, which goes on alone.
    Agent(i32),
    /// Others, of these numbers; none if we may not know them.
    Others(Vec<i32>),
}

/// The rest of a run whose supervisor is gone; nothing if the supervisor is there, or no process is
/// left.
pub fn unattended(files: &RunFiles) -> io::Result<Option<UnattendedRun>> {
    if files.liveness()? != Liveness::Held || has_listener(files)? {
        return Ok(None);
    }
    let record = LockRecord::parse(&fs::read_to_string(files.lock_path())?);
    // Without a record, a supervisor is about to begin, or about to leave.
    let Some((supervisor, agent)) =
        record.and_then(|record| Some((record.supervisor, record.agent?)))
    else {
        return Ok(None);
    };
    let holders = holders(files);
    let agent_lives = processes::all()
        .iter()
        .any(|process| (process.pid, process.started) == agent && !process.is_over);
    let supervised = holders.contains(&supervisor.as_raw_pid());
    // Asked again: all of it may have ended meanwhile.
    if supervised || files.liveness()? != Liveness::Held {
        return Ok(None);
    }
    Ok(Some(if agent_lives {
        UnattendedRun::Agent(agent.0.as_raw_pid())
    } else {
        UnattendedRun::Others(holders)
    }))
}

/// The numbers of the processes that have the lock of a run open, other than ours, as far as we may know.
pub fn holders(files: &RunFiles) -> Vec<i32> {
    let Ok(lock) = fs::metadata(files.lock_path()) else { return Vec::new() };
    let ourselves = rustix::process::getpid();
    let holds = |process: &Process| process.pid != ourselves && has_open(process.pid, &lock);
    let all = processes::all().into_iter();
    all.filter(holds).map(|process| process.pid.as_raw_pid()).collect()
}

/// Those that belong to the run.
fn belonging(
    all: &[Process],
    record: &LockRecord,
    holds_lock: impl Fn(&Process) -> bool,
) -> Vec<Process> {
    let ourselves = rustix::process::getpid();
    // The supervisor may be there after all, with an agent that has just ended.
    let may_end = |process: &&Process| ![ourselves, record.supervisor].contains(&process.pid);
    let group = record.agent.map(|(agent, _)| agent);
    let mut found: Vec<Process> = all
        .iter()
        .filter(may_end)
        .filter(|process| {
            record.agent == Some((process.pid, process.started))
                || (!process.is_over && holds_lock(process))
        })
        .copied()
        .collect();
    // The number of a group is not reused while the group has a member.
    if group.is_some() && found.iter().any(|process| process.group == group) {
        for process in all.iter().filter(may_end) {
            let is_new = !found.iter().any(|other| other.pid == process.pid);
            if is_new && process.group == group {
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
        let (parent, group) = (Some(pid(1)), Some(pid(group)));
        Process { pid: pid(number), parent, group, session: group, started, is_over: false }
    }

    const STARTED: u64 = 500;

    const RECORD: &str = "70000 70001 500\n";

    fn numbers(record: &str, all: &[Process], holders: &[i32]) -> Vec<i32> {
        let record = LockRecord::parse(record).unwrap();
        belonging(all, &record, |process| holders.contains(&process.pid.as_raw_pid()))
            .iter()
            .map(|process| process.pid.as_raw_pid())
            .collect()
    }

    #[test]
    fn a_record_is_read_or_refused() {
        let with_more = format!(
            "{RECORD}without session\nsession of 70009\ncontrol group /sys/fs/cgroup/a b\n"
        );
        for record in [RECORD, "70000\n", &with_more] {
            assert_eq!(LockRecord::parse(record).unwrap().to_string(), record);
        }
        for text in ["", "12 345", "0 345 6", "-1 345 6", "12 x 6", "12 -3 1", "1 2 3 4", "a"] {
            assert_eq!(LockRecord::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_agent_and_its_group_belong_to_the_run() {
        let all =
            [process(70_001, 70_001, STARTED), process(70_002, 70_001, 501), process(9, 9, 1)];
        assert_eq!(numbers(RECORD, &all, &[]), [70_001, 70_002]);
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let all = [process(70_001, 70_001, 900), process(70_002, 70_001, 901)];
        assert_eq!(numbers(RECORD, &all, &[]), [] as [i32; 0]);
    }

    #[test]
    fn a_holder_of_the_lock_belongs_to_the_run_with_its_group() {
        let all = [process(70_002, 70_001, 501), process(70_003, 70_001, 502), process(80, 80, 9)];
        assert_eq!(numbers(RECORD, &all, &[70_003, 80]), [70_003, 80, 70_002]);
    }

    #[test]
    fn an_agent_that_is_not_written_down_yet_is_found_by_the_lock() {
        let all = [process(70_000, 70_000, 499), process(70_001, 70_001, STARTED)];
        assert_eq!(numbers("70000\n", &all, &[70_000, 70_001]), [70_001]);
        assert_eq!(numbers("70000\n", &all, &[]), [] as [i32; 0]);
    }

    #[test]
    fn the_supervisor_is_left_alone() {
        let all = [process(70_000, 70_000, 499), process(70_001, 70_001, STARTED)];
        assert_eq!(numbers(RECORD, &all, &[70_000, 70_001]), [70_001]);
    }
}
