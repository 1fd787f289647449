//! Work that waits for a daemon that does not run.

use std::fmt;
use std::path::Path;

use gt_core::merging::{MergeRequest, RequestHold, RequestState};
use gt_execution::merge_queue::{
    QueueName, followed_pull_requests, pass_for, unattended_convoys, unattended_requests,
};
use gt_executors::process;

use super::control::{DaemonPresence, presence};
use super::is_running;
use gt_scheduling::queue::{self, QueueStatus};
use gt_town::{Result, Town};

/// Beads are ready, merge requests wait to land or pull requests are open, and no daemon of this town on this host moves them: none runs, or it is
/// stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonAbsence {
    /// How many beads are ready.
    pub ready: u64,
    /// How many beads would be, and wait for a budget.
    pub over_budget: u64,
    /// Whether the ready beads wait for memory, load or disk of this host.
    pub is_host_full: bool,
    /// How many beads wait for the end of a pause after a failed start.
    pub in_backoff: u64,
    /// How many merge requests a pass would move, and no process works on them.
    pub requests: u64,
    /// How many convoys are done, and their last merge request is not made.
    pub convoys: u64,
    /// How many pull requests are open, whose merge would not be noticed.
    pub pull_requests: u64,
    /// The process of a daemon that a signal or Ctrl-Z has stopped.
    pub stopped: Option<u32>,
}

impl DaemonAbsence {
    /// The command that makes the work go on.
    pub fn remedy(&self) -> String {
        self.stopped.map_or_else(|| "gt up".to_owned(), |pid| format!("kill -CONT {pid}"))
    }

    /// Whether something waits that a pass over the merge queues would move.
    pub fn has_merging(&self) -> bool {
        self.requests > 0 || self.convoys > 0
    }

    /// Whether a merge request is among what waits.
    pub fn concerns(&self, request: &MergeRequest) -> bool {
        match request.state {
            RequestState::Held(RequestHold::PullRequestOpen) => self.pull_requests > 0,
            state => state.moves_by_itself() && self.has_merging(),
        }
    }

    /// The work that waits, in words.
    fn waiting(&self) -> String {
        let beads = match (self.ready, self.is_host_full) {
            (0, _) => None,
            (1, false) => Some("1 bead is ready".to_owned()),
            (ready, false) => Some(format!("{ready} beads are ready")),
            (1, true) => Some("1 bead waits for room on this host".to_owned()),
            (ready, true) => Some(format!("{ready} beads wait for room on this host")),
        };
        let in_backoff = counted(
            self.in_backoff,
            "bead waits to be started again",
            "beads wait to be started again",
        );
        let over_budget =
            counted(self.over_budget, "bead waits for a budget", "beads wait for a budget");
        let requests =
            counted(self.requests, "merge request waits to land", "merge requests wait to land");
        let convoys = counted(self.convoys, "convoy waits to land", "convoys wait to land");
        let pull_requests =
            counted(self.pull_requests, "pull request is open", "pull requests are open");
        beads
            .into_iter()
            .chain(in_backoff)
            .chain(over_budget)
            .chain(requests)
            .chain(convoys)
            .chain(pull_requests)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// A count with its words for one and for several; nothing for none.
fn counted(count: u64, one: &str, several: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {several}")),
    }
}

impl fmt::Display for DaemonAbsence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, remedy) = (self.waiting(), self.remedy());
        match self.stopped {
            Some(pid) => write!(
                f,
                "The daemon (process {pid}) is stopped and {waiting}; resume it with {remedy}"
            )?,
            None => {
                write!(f, "No daemon is running and {waiting}; start the daemon with {remedy}")?;
            }
        }
        if self.has_merging() {
            write!(f, ", or land now with gt mq run")?;
        }
        if self.pull_requests > 0 {
            write!(f, ", or look at pull requests now with gt mq sync")?;
        }
        Ok(())
    }
}

/// Whether ready work, or finished work that has not landed, waits for a daemon that does not run. A pause and the queue gate
/// hold work back on purpose, so work behind them does not count.
pub fn absence(town: &Town, status: &QueueStatus) -> Result<Option<DaemonAbsence>> {
    absence_with_backoff(town, status, 0)
}

/// The same, where so many beads wait for the end of a pause after a failed start, which a daemon alone ends.
pub fn absence_with_backoff(
    town: &Town,
    status: &QueueStatus,
    in_backoff: u64,
) -> Result<Option<DaemonAbsence>> {
    let stopped = stopped_daemon(town);
    if stopped.is_none() && is_running(town) {
        return Ok(None);
    }
    let requests = unattended_requests(town)?.len() as u64;
    let convoys = unattended_convoys(town)?.len() as u64;
    let pull_requests = followed_pull_requests(town)?;
    let ready = status.ready_for_daemon();
    let over_budget = if status.paused.is_some() { 0 } else { status.over_budget };
    let counts = [ready, over_budget, in_backoff, requests, convoys, pull_requests];
    let is_host_full = !status.short.is_empty();
    Ok(counts.iter().any(|count| *count > 0).then_some(DaemonAbsence {
        ready,
        over_budget,
        is_host_full,
        in_backoff,
        requests,
        convoys,
        pull_requests,
        stopped,
    }))
}

/// The warning to a user who schedules work while no daemon starts it: none runs, or it is stopped.
pub fn absence_warning(town: &Town) -> Option<String> {
    match stopped_daemon(town) {
        Some(pid) => Some(format!(
            "warning: the daemon (process {pid}) is stopped; resume it with kill -CONT {pid}, or start what is ready with gt \
             scheduler run"
        )),
        None if is_running(town) => None,
        None => Some(
            "warning: no daemon is running; start it with gt up, or start what is ready with gt scheduler run"
                .to_owned(),
        ),
    }
}

/// The process of a daemon that a signal or Ctrl-Z has stopped.
fn stopped_daemon(town: &Town) -> Option<u32> {
    match presence(town.root()) {
        Ok(DaemonPresence::Running { pid, .. }) => pid.filter(|pid| process::is_stopped(*pid)),
        Ok(DaemonPresence::NotRunning) | Err(_) => None,
    }
}

/// The same for a merge request that a pass would move, or whose pull request is open.
pub fn absence_for_request(town: &Town, request: &MergeRequest) -> Result<Option<DaemonAbsence>> {
    let is_followed = request.state == RequestState::Held(RequestHold::PullRequestOpen);
    if !is_followed && !request.state.moves_by_itself() {
        return Ok(None);
    }
    let absence = absence(town, &queue::status(town)?)?;
    Ok(absence.filter(|absence| absence.concerns(request)))
}

/// Lands a request where no daemon would; the request as it is then.
pub fn land_without_daemon(
    town: &Town,
    program: &Path,
    request: MergeRequest,
) -> Result<MergeRequest> {
    if is_running(town) {
        return Ok(request);
    }
    let queue = QueueName { rig: request.rig.clone(), target: request.target.clone() };
    pass_for(town, program, &queue)?;
    let now = town.read(|reader| Ok(reader.merge_request(&request.id)?))?;
    Ok(now.unwrap_or(request))
}
