//! An agent under its supervisor, from its start to the end of everything that it started.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, kill_process_group, wait,
    waitid, waitpid,
};

use super::control::{Control, Wish};
use super::orphan::Record;
use super::remains::{bystanders, end_all, left_of};
use super::{AgentEnd, RunFiles, RunLock, processes};
use crate::background::spawn;
use crate::process::{ProcessError, command};
use crate::terminal::{Display, Launcher, OwnTerminal, Relay, Terminal};

/// A program that does the work of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The program and its arguments. A program with a relative path is looked for in `directory`.
    pub argv: Vec<String>,
    /// Where it runs; an absolute path.
    pub directory: PathBuf,
    /// Variables it gets besides ours.
    pub environment: Vec<(String, String)>,
    /// What it can read; an agent on a terminal reads from that.
    pub prompt: Vec<u8>,
    /// How it gets a terminal of its own, if it needs one: see [`crate::terminal`].
    pub terminal: Option<Launcher>,
}

/// Runs an agent until its end, or ends it when asked to through its supervisor: its process group
/// gets `TERM` and after `grace` is killed. One that is told that its work is done has `grace` to end by itself before
/// that. What the agent leaves behind when it ends is ended the same way.
/// `started` is called once the agent is there.
///
/// For a process that does nothing else meanwhile: it collects its children, and ends whatever it has in the
/// end besides the children that it had before. Those are left alone, and do not get the lock either.
///
/// Between two runs it can be kept, which saves making the pipe through which it is spoken to.
#[derive(Debug, Default)]
pub struct Supervision {
    control: Option<Control>,
}

impl Supervision {
    /// Runs an agent until its end, or ends it when somebody asks: see [`Supervision`].
    pub fn stay_with(
        &mut self,
        files: &RunFiles,
        lock: &RunLock,
        agent: &Agent,
        grace: Duration,
        started: impl FnOnce(),
    ) -> Result<AgentEnd, ProcessError> {
        let ready = Control::ready(&mut self.control, files);
        let control = ready.map_err(|source| ProcessError::Start {
            program: agent.argv.first().cloned().unwrap_or_default(),
            source,
        })?;
        let end = supervise(control, files, lock, agent, grace, started);
        control.rest();
        end
    }
}

fn supervise(
    control: &mut Control,
    files: &RunFiles,
    lock: &RunLock,
    agent: &Agent,
    grace: Duration,
    started: impl FnOnce(),
) -> Result<AgentEnd, ProcessError> {
    let program = agent.argv.first().cloned().unwrap_or_default();
    let cannot_start = |source| ProcessError::Start { program: program.clone(), source };
    let bystanders = bystanders();
    adopt_orphans();
    // For whoever must end the agent without us. If it cannot be written that is done by hand; an agent is
    // not kept from its work for it.
    let mut record = Record { supervisor: getpid(), agent: None, without_session: false };
    let mut session = OwnTerminal::of_this_process();
    let _ = lock.write(&record.to_string());
    let outcome = start(files, lock, agent).map_err(cannot_start).and_then(|(child, relay)| {
        let agent = Pid::from_child(&child);
        record.agent = processes::look(agent).map(|process| (agent, process.started));
        let _ = lock.write(&record.to_string());
        started();
        let (ended, is_cancelled) = attend(agent, control, grace, &mut session, || {
            record.without_session = true;
            let _ = lock.write(&record.to_string());
        });
        let end = ended.map(|status| agent_end(status, is_cancelled));
        if let Ok(end) = end {
            // Should we not live to tell. If it cannot be written, that is all we can do.
            let _ = lock.write(&format!("{record}{end}"));
        }
        end_all(grace, None, || left_of(agent, &bystanders));
        if let Some(relay) = relay {
            // What could not be kept is gone; the run is over all the same.
            let _ = relay.finish();
        }
        if let Ok(end) = end {
            let _ = lock.write(&end.to_string());
        }
        end.map_err(|error| ProcessError::Failed {
            program: program.clone(),
            message: format!("its end was not seen: {error}"),
        })
    });
    if outcome.is_err() {
        // Where nobody listens and somebody is written down, a supervisor died.
        let _ = lock.write("");
    }
    outcome
}

fn agent_end(status: WaitStatus, is_cancelled: bool) -> AgentEnd {
    match (is_cancelled, status.exit_status(), status.terminating_signal()) {
        (true, ..) => AgentEnd::Cancelled,
        (false, Some(code), _) => AgentEnd::Exited(code),
        (false, None, signal) => AgentEnd::Signalled(signal.unwrap_or_default()),
    }
}

/// Makes the kernel give us the children of those of our descendants that end before them.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        // Where it cannot be had, the process group still holds together what does not run away.
        let _ = rustix::process::set_child_subreaper(Some(getpid()));
    }
}

fn start(files: &RunFiles, lock: &RunLock, agent: &Agent) -> io::Result<(Child, Option<Relay>)> {
    let output = File::options().append(true).create(true).open(files.output_path())?;
    match &agent.terminal {
        Some(launcher) => {
            let display = Display::of_this_process()?;
            let terminal = Terminal::open(display.as_ref())?;
            let argv: Vec<OsString> = agent.argv.iter().map(OsString::from).collect();
            let started = lock.inherited(|| {
                terminal.start(launcher, &argv, &agent.directory, &agent.environment)
            });
            let child = started.map_err(|error| explained(agent, error))?;
            Ok((child, Some(terminal.relay(output, display)?)))
        }
        None => Ok((start_plainly(files, lock, agent, output)?, None)),
    }
}

fn start_plainly(
    files: &RunFiles,
    lock: &RunLock,
    agent: &Agent,
    output: File,
) -> io::Result<Child> {
    let Some((program, arguments)) = agent.argv.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let prompt = prompt_file(files, &agent.prompt)?;
    let is_path = program.contains('/');
    let mut command =
        if is_path { command(agent.directory.join(program)) } else { command(program) };
    command
        .args(arguments)
        .current_dir(&agent.directory)
        .envs(agent.environment.iter().map(|(name, value)| (name, value)))
        .stdin(prompt)
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0);
    lock.inherited(|| spawn(&mut command)).map_err(|error| explained(agent, error))
}

/// The kernel says the same, whether the program or the place to start it is missing.
fn explained(agent: &Agent, error: io::Error) -> io::Error {
    if agent.directory.is_dir() {
        return error;
    }
    let directory = agent.directory.display();
    io::Error::new(error.kind(), format!("{directory}, where it would run, is no directory"))
}

/// Something to read the prompt from that never makes the writer wait.
#[cfg(target_os = "linux")]
fn prompt_file(_files: &RunFiles, prompt: &[u8]) -> io::Result<File> {
    // In memory: a file on a disk would be made, and kept, for every run.
    let file = rustix::fs::memfd_create("gt prompt", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(prompt)?;
    file.rewind()?;
    Ok(file)
}

/// Something to read the prompt from that never makes the writer wait.
#[cfg(not(target_os = "linux"))]
fn prompt_file(files: &RunFiles, prompt: &[u8]) -> io::Result<File> {
    let mut file = crate::background::nameless_file(files.root())?;
    file.write_all(prompt)?;
    file.rewind()?;
    Ok(file)
}

/// How far it has come with an agent.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Working,
    /// Its work is done since then, and it may end by itself.
    Dismissed(Instant),
    /// Asked to end, at that time.
    Asked(Instant),
    Killed,
}

impl Stage {
    /// Whether the agent ends by itself, if it ends now.
    fn is_free(self) -> bool {
        matches!(self, Self::Working | Self::Dismissed(_))
    }
}

/// How often children that we have adopted are collected, whose end nobody tells us.
const COLLECT_INTERVAL: Duration = Duration::from_mins(1);

/// Stays with the agent to its end, or ends it when somebody asks. Collects every child that ends meanwhile.
/// Says how the agent ended, and whether somebody had asked.
/// Tells once if the session goes away in which we are: the agent does not mind.
fn attend(
    agent: Pid,
    control: &mut Control,
    grace: Duration,
    session: &mut OwnTerminal,
    on_loss: impl FnMut(),
) -> (Result<WaitStatus, Errno>, bool) {
    let mut on_loss = on_loss;
    let end = end_of(agent);
    let mut stage = Stage::Working;
    loop {
        let limit = match (&end, stage) {
            (None, _) => LOOK_AGAIN,
            (_, Stage::Dismissed(since) | Stage::Asked(since)) => {
                grace.saturating_sub(since.elapsed()).min(COLLECT_INTERVAL)
            }
            (_, Stage::Working | Stage::Killed) => COLLECT_INTERVAL,
        };
        let news = wait_for_news(end.as_ref(), control, session, stage, limit);
        if news.is_without_session {
            session.forget();
            on_loss();
        }
        match collect(agent, news.is_over) {
            Ok(None) => {}
            Ok(Some(status)) => return (Ok(status), !stage.is_free()),
            Err(error) => return (Err(error), !stage.is_free()),
        }
        // The agent is not collected, so its number is its own, and that of its group.
        match (stage, news.wish) {
            (Stage::Working, Some(Wish::Leave)) => stage = Stage::Dismissed(Instant::now()),
            (Stage::Working | Stage::Dismissed(_), Some(Wish::Cancel)) => stage = ask(agent),
            (Stage::Dismissed(since), _) if since.elapsed() >= grace => stage = ask(agent),
            (Stage::Asked(since), _) if since.elapsed() >= grace => {
                let _ = kill_process_group(agent, Signal::KILL);
                stage = Stage::Killed;
            }
            (Stage::Working | Stage::Dismissed(_) | Stage::Asked(_) | Stage::Killed, _) => {}
        }
    }
}

/// Asks an agent and its process group to end.
fn ask(agent: Pid) -> Stage {
    let _ = kill_process_group(agent, Signal::TERM);
    // One that is stopped would not hear the question.
    let _ = kill_process_group(agent, Signal::CONT);
    Stage::Asked(Instant::now())
}

/// How long to wait before looking again, if nothing tells of the end of an agent.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What woke us, if anything did.
#[derive(Debug, Clone, Copy)]
struct News {
    /// The agent has ended.
    is_over: bool,
    /// What somebody wants of it.
    wish: Option<Wish>,
    /// The session in which we are has gone away.
    is_without_session: bool,
}

/// Waits for the end of the agent, for somebody who asks, if that still matters, and not longer than `limit`.
fn wait_for_news(
    end: Option<&OwnedFd>,
    control: &mut Control,
    session: &OwnTerminal,
    stage: Stage,
    limit: Duration,
) -> News {
    let timeout = Timespec::try_from(limit).ok();
    // A descriptor that is not waited for is asked for nothing.
    let flags = |wanted| if wanted { PollFlags::IN } else { PollFlags::empty() };
    let asked = PollFd::new(&*control, flags(stage.is_free()));
    let over = end
        .map_or_else(|| PollFd::new(&*control, flags(false)), |end| PollFd::new(end, flags(true)));
    // That its other end is gone is told without being asked for.
    let without =
        session.as_fd().map(|terminal| PollFd::from_borrowed_fd(terminal, PollFlags::empty()));
    let mut polled: Vec<PollFd<'_>> = [asked, over].into_iter().chain(without).collect();
    // Whatever else ends the wait, looking at the children tells.
    let _ = poll(&mut polled, timeout.as_ref());
    let is_told = |at: usize| polled.get(at).is_some_and(|polled| !polled.revents().is_empty());
    let (is_spoken_to, is_over, is_without_session) = (is_told(0), is_told(1), is_told(2));
    News { is_over, wish: if is_spoken_to { control.wish() } else { None }, is_without_session }
}

/// Collects the children that have ended; the status of the agent, if it is among them.
fn collect(agent: Pid, is_over: bool) -> Result<Option<WaitStatus>, Errno> {
    loop {
        let collected = if is_over {
            // It cannot take long, and another answer than its end would come again and again.
            waitpid(Some(agent), WaitOptions::empty())
        } else {
            wait(WaitOptions::NOHANG)
        };
        match collected {
            Ok(Some((pid, status))) if pid == agent => return Ok(Some(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// A descriptor that can be read from when the child has ended.
fn end_of(child: Pid) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{PidfdFlags, pidfd_open};
        if let Ok(end) = pidfd_open(child, PidfdFlags::empty()) {
            return Some(end);
        }
    }
    told_end_of(child).ok()
}

/// The same where the kernel has no such descriptor: a pipe that is closed by whoever waits for the child.
fn told_end_of(child: Pid) -> io::Result<OwnedFd> {
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

    #[test]
    fn the_end_of_a_child_can_be_waited_for_without_the_help_of_the_kernel() {
        let mut child = command("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let end = told_end_of(Pid::from_child(&child)).unwrap();
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
