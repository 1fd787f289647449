//! Ending processes that need not be our children: asked first, then made to.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use super::marks::ProcessMark;
use super::processes::{self, Process};
use crate::process::{SERVED_BY, SERVED_BY_US};

/// How long to wait before looking again at processes whose end is not reported.
const PROCESS_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How long after killing the last of them their end is waited for. On a busy machine that takes its time.
pub(super) const KILLED_PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait for a process that was killed before looking for others again.
const KILLED_WAIT_MAX: Duration = Duration::from_millis(500);

/// The processes that are left of a run.
#[derive(Debug)]
pub(super) struct RemainingProcesses {
    /// The processes that can be told apart.
    pub(super) processes: Vec<Process>,
    /// A process group with members, where processes cannot be told apart.
    pub(super) group: Option<Pid>,
}

impl RemainingProcesses {
    /// No processes.
    pub(super) const NOTHING: Self = Self { processes: Vec::new(), group: None };

    fn is_nothing(&self) -> bool {
        self.processes.is_empty() && self.group.is_none()
    }
}

/// Ends all that `find` finds until it finds nothing: each process is asked once with `TERM`;
/// processes that are left after `grace` are killed. Gives up `timeout` after that, if there is a
/// limit to it. A process that we may not send signals to is left alone. Says whether nothing is
/// left.
pub(super) fn end_all(
    grace: Duration,
    timeout: Option<Duration>,
    mut find: impl FnMut() -> RemainingProcesses,
) -> bool {
    let mut course = EndingSteps::default();
    let begun = Instant::now();
    loop {
        let mut left = find();
        left.processes.retain(|process| !course.is_untouchable(process));
        if left.is_nothing() {
            return course.untouchable.is_empty();
        }
        let passed = begun.elapsed();
        let in_grace = grace.checked_sub(passed).filter(|rest| !rest.is_zero());
        if in_grace.is_none()
            && timeout.is_some_and(|timeout| passed >= grace.saturating_add(timeout))
        {
            return false;
        }
        course.signal(&left, in_grace.is_none());
        course.wait(&left, in_grace.unwrap_or(KILLED_WAIT_MAX));
    }
}

/// The steps taken so far.
#[derive(Debug, Default)]
struct EndingSteps {
    asked: Vec<Process>,
    asked_group: bool,
    untouchable: Vec<Process>,
}

impl EndingSteps {
    fn is_untouchable(&self, process: &Process) -> bool {
        self.untouchable.iter().any(|other| other.is_same(process))
    }

    fn signal(&mut self, left: &RemainingProcesses, kill: bool) {
        for process in &left.processes {
            let is_asked = self.asked.iter().any(|other| other.is_same(process));
            if is_asked && !kill {
                continue;
            }
            let sent = if kill {
                send(process, Signal::KILL)
            } else {
                self.asked.push(*process);
                // One that is stopped would not hear the question.
                send(process, Signal::TERM).and_then(|()| send(process, Signal::CONT))
            };
            if sent == Err(Errno::PERM) {
                self.untouchable.push(*process);
            }
        }
        if let Some(group) = left.group {
            // A group that has gone meanwhile is not found again.
            if kill {
                let _ = kill_process_group(group, Signal::KILL);
            } else if !self.asked_group {
                self.asked_group = true;
                let _ = kill_process_group(group, Signal::TERM);
                let _ = kill_process_group(group, Signal::CONT);
            }
        }
    }

    /// Waits until one of them has ended, but not longer than `limit`.
    fn wait(&self, left: &RemainingProcesses, limit: Duration) {
        let touchable = left.processes.iter().filter(|process| !self.is_untouchable(process));
        let handles: Vec<Option<OwnedFd>> = touchable.map(handle).collect();
        let ends: Vec<&OwnedFd> = handles.iter().flatten().collect();
        let is_told = left.group.is_none() && ends.len() == handles.len();
        let limit = if is_told { limit } else { limit.min(PROCESS_POLL_INTERVAL) };
        let mut polled: Vec<PollFd<'_>> =
            ends.iter().map(|end| PollFd::new(end, PollFlags::IN)).collect();
        let timeout = Timespec::try_from(limit).ok();
        // The reason why the wait ended does not matter: the caller looks again.
        let _ = poll(&mut polled, timeout.as_ref());
    }
}

/// Sends a signal to exactly this process. One that has ended needs none.
pub(super) fn send(process: &Process, signal: Signal) -> Result<(), Errno> {
    if let Some(handle) = handle(process) {
        return gone_is_fine(rustix::process::pidfd_send_signal(handle, signal));
    }
    // Without handles the moment between looking and sending cannot be closed.
    match processes::find(process.pid) {
        Some(seen) if seen.is_same(process) => gone_is_fine(kill_process(process.pid, signal)),
        _ => Ok(()),
    }
}

fn gone_is_fine(sent: Result<(), Errno>) -> Result<(), Errno> {
    if sent == Err(Errno::SRCH) { Ok(()) } else { sent }
}

/// A descriptor for exactly this process that can be read from when it has ended, where there is such a thing.
fn handle(process: &Process) -> Option<OwnedFd> {
    use rustix::process::{PidfdFlags, pidfd_open};
    let handle = pidfd_open(process.pid, PidfdFlags::empty()).ok()?;
    // The handle belongs to the process that has the number now; check that it is still the one
    // we saw.
    processes::find(process.pid).filter(|seen| seen.is_same(process)).map(|_| handle)
}

/// Whether this process has children, ended ones among them. None is collected: a thread may wait for it.
fn has_children() -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, any), Err(Errno::CHILD))
}

/// Our children as they are now, who have nothing to do with the run that is about to start.
pub(super) fn unrelated_children() -> Vec<Process> {
    // The usual supervisor has no children before its agent, and learns that from one call.
    if !has_children() {
        return Vec::new();
    }
    let ourselves = Some(rustix::process::getpid());
    let mut children = processes::all();
    children.retain(|process| process.parent == ourselves);
    children
}

/// The processes that are left of a run after the end of its agent: its process group, and
/// everything that the agent started, which the kernel has made ours. Programs with which this process carries out a command
/// of the worker are not left of the agent.
pub(super) fn left_of(agent: Pid, unrelated: &[Process]) -> RemainingProcesses {
    let has_children = has_children();
    // A group whose members we may not send signals to is still a group.
    let has_group = !matches!(test_kill_process_group(agent), Err(Errno::SRCH));
    if !has_children && !has_group {
        return RemainingProcesses::NOTHING;
    }
    let all = processes::all();
    if all.is_empty() {
        return RemainingProcesses { processes: Vec::new(), group: has_group.then_some(agent) };
    }
    let mut left = processes::descendants(&all, rustix::process::getpid(), unrelated);
    let in_group = all.iter().filter(|process| process.group == Some(agent));
    for process in in_group {
        if !left.iter().any(|other| other.pid == process.pid) {
            left.push(*process);
        }
    }
    let served = ProcessMark { name: SERVED_BY, value: &SERVED_BY_US };
    left.retain(|process| !process.is_over && !served.is_on(process));
    RemainingProcesses { processes: left, group: None }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;
    use crate::process::{command, while_serving};

    #[test]
    fn programs_of_a_command_that_is_carried_out_are_not_left_of_the_agent() {
        let start = || command("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut children = [start(), while_serving(start)];
        // Of an agent that never was.
        let left = left_of(Pid::from_raw(i32::MAX).unwrap(), &[]).processes;
        let is_left = children
            .each_ref()
            .map(|child| left.iter().any(|one| one.pid == Pid::from_child(child)));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(is_left, [true, false]);
    }
}
