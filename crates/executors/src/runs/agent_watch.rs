//! Stays with an agent: its end, requests to it, and when it is made to end.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process_group, waitid,
    waitpid,
};

use super::control::{ControlPipe, SupervisorRequest};
use super::ended_orphans::EndedOrphans;
use super::prompter::Prompting;
use super::{RunLock, processes};
use crate::terminal::OwnTerminal;

/// How far it has come with an agent.
#[derive(Debug, Clone, Copy)]
enum AgentStage {
    Working,
    /// Its work is done since then, and it may end by itself.
    Dismissed(Instant),
    /// Asked to end, at that time.
    Asked(Instant),
    Killed,
}

/// How it went with an agent.
#[derive(Debug)]
pub(super) struct AgentResult {
    /// How it ended.
    pub(super) status: Result<WaitStatus, Errno>,
    /// Whether it ended by itself.
    pub(super) is_free: bool,
    /// The strongest request for it, up to the last moment.
    pub(super) wish: Option<SupervisorRequest>,
    /// Whether it got its prompt, if that was to be typed.
    pub(super) prompted: Option<Result<(), String>>,
    /// The most memory that it and its processes used, in megabytes; nothing if it ended before the
    /// first measurement.
    pub(super) peak_mb: Option<u32>,
}

impl AgentStage {
    /// Whether the agent ends by itself, if it ends now.
    fn is_free(self) -> bool {
        matches!(self, Self::Working | Self::Dismissed(_))
    }
}

/// How long the prompter has to report that the prompt arrived, when the agent has ended: the agent
/// may have been quick.
const PROMPT_REPORT_WAIT_MAX: Duration = Duration::from_secs(3);

/// How often adopted children are collected: no event reports their end.
pub(super) const COLLECT_INTERVAL: Duration = Duration::from_mins(1);

/// How often a supervisor looks whether the files of its run are still there: no event reports that.
pub(crate) const REMOVAL_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Stays with the agent to its end, or ends it on request, when it cannot be given its prompt, or when the files of its run
/// were deleted.
/// Collects orphans that end meanwhile. `started` is called once it is at work. `on_loss` is
/// called when our session has gone away, and again later if it could not open another one: the
/// agent goes on meanwhile.
pub(super) fn watch(
    agent: Pid,
    (control, lock): (&mut ControlPipe, &RunLock),
    prompting: Option<Result<Prompting, String>>,
    grace: Duration,
    session: &mut OwnTerminal,
    started: impl FnOnce(),
    mut on_loss: impl FnMut() -> Reopening,
) -> AgentResult {
    let end = end_of(agent);
    let mut memory = MemorySampler::default();
    let mut orphans = EndedOrphans::default();
    let mut stage = AgentStage::Working;
    let mut wish = None;
    let mut started = Some(started);
    let mut reopening = Retry::default();
    if session.as_fd().is_none() {
        // Its session may have gone away before it had an agent.
        reopening.begin();
    }
    let (mut prompting, mut prompted) = match prompting {
        None => {
            started.take().into_iter().for_each(|started| started());
            (None, None)
        }
        Some(Ok(prompting)) => (Some(prompting), None),
        Some(Err(why)) => (None, Some(Err(why))),
    };
    loop {
        let limit = match (&end, stage) {
            (None, _) => AGENT_POLL_INTERVAL,
            (_, AgentStage::Dismissed(since) | AgentStage::Asked(since)) => {
                grace.saturating_sub(since.elapsed()).min(COLLECT_INTERVAL)
            }
            (_, AgentStage::Working | AgentStage::Killed) => COLLECT_INTERVAL,
        };
        let limit = limit.min(REMOVAL_CHECK_INTERVAL);
        let limit = limit.min(memory.next_look()).min(reopening.next_try());
        let news = wait_for_news(end.as_ref(), control, wish, prompting.as_mut(), session, limit);
        if news.is_without_session {
            session.forget();
            reopening.begin();
        }
        if stage.is_free() && reopening.is_due() {
            match on_loss() {
                Reopening::Opened(terminal) => {
                    *session = terminal;
                    reopening.end();
                }
                Reopening::Later => reopening.put_off(),
                Reopening::Never => reopening.end(),
            }
        }
        memory.measure(agent);
        wish = wish.max(news.wish);
        if lock.is_removed() {
            wish = Some(SupervisorRequest::Cancel);
        }
        orphans.collect(agent);
        let status = match collect(agent, news.is_over) {
            Ok(None) => None,
            Ok(Some(status)) => Some(Ok(status)),
            Err(error) => Some(Err(error)),
        };
        if let Some(status) = status {
            // It may have been the agent itself that said something, and ended at once.
            let wish = wish.max(control.wish_at_once());
            if let Some(prompting) = prompting {
                let verdict = prompting.verdict_within(PROMPT_REPORT_WAIT_MAX);
                if verdict.is_ok() {
                    started.take().into_iter().for_each(|started| started());
                }
                prompted = Some(verdict);
            }
            let (is_free, peak_mb) = (stage.is_free(), memory.peak_mb);
            return AgentResult { status, is_free, wish, prompted, peak_mb };
        }
        if let Some(verdict) = news.prompted {
            prompting = None;
            if verdict.is_ok() {
                started.take().into_iter().for_each(|started| started());
            }
            prompted = Some(verdict);
        }
        // The agent is not collected, so its number is its own, and that of its group.
        match (stage, wish) {
            (AgentStage::Working, Some(SupervisorRequest::Leave)) => {
                stage = AgentStage::Dismissed(Instant::now());
            }
            (AgentStage::Working, Some(SupervisorRequest::HandOver))
            | (AgentStage::Working | AgentStage::Dismissed(_), Some(SupervisorRequest::Cancel)) => {
                stage = ask(agent);
            }
            (AgentStage::Working, None) if matches!(prompted, Some(Err(_))) => stage = ask(agent),
            (AgentStage::Dismissed(since), _) if since.elapsed() >= grace => stage = ask(agent),
            (AgentStage::Asked(since), _) if since.elapsed() >= grace => {
                let _ = kill_process_group(agent, Signal::KILL);
                stage = AgentStage::Killed;
            }
            (
                AgentStage::Working
                | AgentStage::Dismissed(_)
                | AgentStage::Asked(_)
                | AgentStage::Killed,
                _,
            ) => {}
        }
    }
}

/// The result of opening another session for an agent whose session has gone away.
#[derive(Debug)]
pub(super) enum Reopening {
    /// This is its terminal.
    Opened(OwnTerminal),
    /// It did not work this time.
    Later,
    /// The agent had no session that can be opened again.
    Never,
}

/// The pauses between two tries to open another session.
const REOPEN_PAUSE_MIN: Duration = Duration::from_millis(250);
const REOPEN_PAUSE_MAX: Duration = Duration::from_mins(1);

/// When another session is tried to be opened.
#[derive(Debug, Default)]
struct Retry {
    at: Option<Instant>,
    pause: Duration,
}

impl Retry {
    fn begin(&mut self) {
        *self = Self { at: Some(Instant::now()), pause: REOPEN_PAUSE_MIN };
    }

    fn end(&mut self) {
        self.at = None;
    }

    fn put_off(&mut self) {
        self.at = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(REOPEN_PAUSE_MAX);
    }

    fn is_due(&self) -> bool {
        self.at.is_some_and(|at| at <= Instant::now())
    }

    fn next_try(&self) -> Duration {
        self.at.map_or(COLLECT_INTERVAL, |at| at.saturating_duration_since(Instant::now()))
    }
}

/// How soon an agent is first weighed: one that ends sooner is not worth a look.
const MEMORY_CHECK_FIRST: Duration = Duration::from_secs(2);

/// Looks now and then how much memory an agent takes: soon at first, then ever more rarely.
struct MemorySampler {
    last: Instant,
    interval: Duration,
    peak_mb: Option<u32>,
}

impl Default for MemorySampler {
    fn default() -> Self {
        Self { last: Instant::now(), interval: MEMORY_CHECK_FIRST, peak_mb: None }
    }
}

impl MemorySampler {
    fn next_look(&self) -> Duration {
        self.interval.saturating_sub(self.last.elapsed())
    }

    fn measure(&mut self, agent: Pid) {
        if self.next_look().is_zero() {
            self.peak_mb = self.peak_mb.max(processes::memory_of_tree(agent));
            self.last = Instant::now();
            self.interval = (self.interval * 2).min(COLLECT_INTERVAL);
        }
    }
}

/// Asks an agent and its process group to end.
fn ask(agent: Pid) -> AgentStage {
    let _ = kill_process_group(agent, Signal::TERM);
    // One that is stopped would not hear the question.
    let _ = kill_process_group(agent, Signal::CONT);
    AgentStage::Asked(Instant::now())
}

/// How long to wait before looking again, if nothing tells of the end of an agent.
pub(super) const AGENT_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The events that ended the wait, if any.
#[derive(Debug)]
struct AgentWaitResult {
    /// The agent has ended.
    is_over: bool,
    /// The request to it.
    wish: Option<SupervisorRequest>,
    /// Whether it has its prompt.
    prompted: Option<Result<(), String>>,
    /// The session in which we are has gone away.
    is_without_session: bool,
}

/// Waits for the end of the agent, for a request, if that still matters, for the prompter, and not
/// longer than `limit`.
fn wait_for_news(
    end: Option<&OwnedFd>,
    control: &mut ControlPipe,
    wish: Option<SupervisorRequest>,
    prompting: Option<&mut Prompting>,
    session: &OwnTerminal,
    limit: Duration,
) -> AgentWaitResult {
    let timeout = Timespec::try_from(limit).ok();
    // A descriptor that is not waited for is asked for nothing.
    let flags = |wanted| if wanted { PollFlags::IN } else { PollFlags::empty() };
    let [is_spoken_to, is_over, is_typed, is_without_session] = {
        let unwatched = || PollFd::new(&*control, flags(false));
        let asked = PollFd::new(&*control, flags(wish != Some(SupervisorRequest::Cancel)));
        let over = end.map_or_else(unwatched, |end| PollFd::new(end, flags(true)));
        let typed = prompting.as_deref();
        let typed = typed.map_or_else(unwatched, |typing| PollFd::new(typing, flags(true)));
        // That its other end is gone is told without being asked for.
        let without = session.as_fd();
        let without = without
            .map_or_else(unwatched, |terminal| PollFd::from_borrowed_fd(terminal, flags(false)));
        let mut polled = [asked, over, typed, without];
        // A wait that ended for another reason is no problem: the children are looked at next.
        let _ = poll(&mut polled, timeout.as_ref());
        polled.map(|polled| !polled.revents().is_empty())
    };
    AgentWaitResult {
        is_over,
        wish: if is_spoken_to { control.wish() } else { None },
        prompted: prompting.filter(|_| is_typed).and_then(Prompting::verdict),
        is_without_session: is_without_session && session.as_fd().is_some(),
    }
}

/// The status of the agent, if it has ended.
pub(super) fn collect(agent: Pid, is_over: bool) -> Result<Option<WaitStatus>, Errno> {
    // The end cannot take long, and another answer would come again and again.
    let options = if is_over { WaitOptions::empty() } else { WaitOptions::NOHANG };
    loop {
        match waitpid(Some(agent), options) {
            Err(Errno::INTR) => {}
            Ok(collected) => return Ok(collected.map(|(_, status)| status)),
            Err(error) => return Err(error),
        }
    }
}

/// A descriptor that can be read from when the child has ended.
pub(super) fn end_of(child: Pid) -> Option<OwnedFd> {
    use rustix::process::{PidfdFlags, pidfd_open};
    if let Ok(end) = pidfd_open(child, PidfdFlags::empty()) {
        return Some(end);
    }
    pipe_closed_at_end_of(child).ok()
}

/// The same where the kernel has no such descriptor: a pipe that the thread which waits for the
/// child closes.
fn pipe_closed_at_end_of(child: Pid) -> io::Result<OwnedFd> {
    let (end, told) = io::pipe()?;
    let wait = move || {
        let ended_only = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(child), ended_only), Err(Errno::INTR)) {}
        drop(told);
    };
    thread::Builder::new().spawn(wait)?;
    Ok(end.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::command;

    #[test]
    fn the_end_of_a_child_can_be_waited_for_without_the_help_of_the_kernel() {
        let mut child = command("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let end = pipe_closed_at_end_of(Pid::from_child(&child)).unwrap();
        let is_over = |timeout: Option<&Timespec>| {
            let mut news = [PollFd::new(&end, PollFlags::IN)];
            poll(&mut news, timeout).unwrap() == 1
        };
        assert!(!is_over(Some(&Timespec::default())));

        drop(child.stdin.take());

        assert!(is_over(None));
        assert!(child.wait().unwrap().success());
    }
}
