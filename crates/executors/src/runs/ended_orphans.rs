//! Orphans that the kernel has made children of this process, and that have ended.
//!
//! Other threads of a supervisor start programs, too, when they carry out commands of its worker, and wait for them. The kernel
//! tells the status of an ended child once. So a child that has ended is collected here only if no thread has done that for a
//! long time.

use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use super::processes::{self, Process};

/// The time after which no thread waits for a child that has ended.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);

/// The children that had ended at the last look.
#[derive(Debug)]
pub(super) struct EndedOrphans {
    looked_at: Instant,
    ended: Vec<Process>,
}

impl Default for EndedOrphans {
    fn default() -> Self {
        Self { looked_at: Instant::now(), ended: Vec::new() }
    }
}

impl EndedOrphans {
    /// Collects the children that have ended since the look before the last; never the agent. Most calls do nothing.
    pub(super) fn collect(&mut self, agent: Pid) {
        if self.looked_at.elapsed() >= LOOK_INTERVAL {
            self.looked_at = Instant::now();
            self.reap_ended(agent);
        }
    }

    fn reap_ended(&mut self, agent: Pid) {
        let ourselves = Some(getpid());
        let mut ended = processes::all();
        ended.retain(|child| child.parent == ourselves && child.is_over && child.pid != agent);
        for child in &ended {
            if self.ended.iter().any(|old| old.is_same(child)) {
                let _ = waitpid(Some(child.pid), WaitOptions::NOHANG);
            }
        }
        self.ended = ended;
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;
    use crate::process::command;

    #[test]
    fn a_child_that_has_ended_is_collected_at_the_second_look() {
        let agent = getpid();
        let mut child = command("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let is_over = || processes::find(pid).is_some_and(|seen| seen.is_over);
        drop(child.stdin.take());
        while !is_over() {
            std::thread::yield_now();
        }
        let mut orphans = EndedOrphans::default();

        orphans.reap_ended(agent);
        assert!(is_over(), "a thread may still wait for it");
        orphans.reap_ended(agent);
        assert!(processes::find(pid).is_none());
        assert!(child.wait().is_err());
    }
}
