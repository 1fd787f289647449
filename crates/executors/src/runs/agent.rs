//! An agent under its supervisor, from its start to the end of everything that it started.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, WaitStatus, getpid};

use super::agent_watch::{AgentResult, Reopening, watch};
use super::control::{ControlPipe, SupervisorRequest};
use super::orphan::LockRecord;
use super::process_ending::{end_all, left_of, unrelated_children};
use super::prompter::Prompting;
use super::{AgentEnd, Prompter, RunFiles, RunLock, cgroup, processes};
use crate::background::spawn;
use crate::process::{ProcessError, command_in};
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
    /// The prompt on its standard input, or to be typed for it; an agent on a terminal reads from
    /// that.
    pub prompt: Vec<u8>,
    /// How it gets a terminal of its own, if it needs one: see [`crate::terminal`].
    pub terminal: Option<Launcher>,
    /// The program that types the prompt into that terminal, if that is how it gets it.
    pub prompter: Option<Prompter>,
}

/// How the session of an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The agent has ended, and its run with it.
    Over(AgentEnd),
    /// The agent was ended so that another one goes on with its run. Nothing of it is left; its supervisor still listens.
    HandedOver,
}

/// Runs an agent until its end, or ends it when asked to through its supervisor: its process group
/// gets `TERM` and after `grace` is killed. One that is told that its work is done has `grace` to
/// end by itself before that. Processes that the agent leaves behind are ended the same way.
/// `started` is called once the agent is there, and has its prompt.
///
/// For a process that does nothing else meanwhile: it collects its children, and at the end kills
/// those that it did not have before. Earlier children are left alone, and do not get the lock
/// either.
#[derive(Default)]
pub struct Supervision {
    control: Option<ControlPipe>,
    peak_mb: Option<u32>,
    reopen: Option<Reopen>,
    /// The session that was opened instead of the first one.
    opened: Option<OpenedSession>,
}

/// Opens another session for an agent whose session has gone away; `None` if that does not work now.
pub type Reopen = Box<dyn Fn() -> Option<OpenedSession>>;

/// A session that was opened for an agent whose session has gone away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    /// Its terminal, such as `/dev/pts/3`.
    pub terminal: PathBuf,
    /// The process that it was started with, which holds it open until the run is over.
    pub holder: u32,
    /// The server that has the session. If this process had to start it, it is no part of the run all the same.
    pub server: Option<u32>,
}

impl std::fmt::Debug for Supervision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervision").field("opened", &self.opened).finish_non_exhaustive()
    }
}

impl Supervision {
    /// From now on, an agent whose session goes away gets another one from this.
    pub fn reopen_with(&mut self, reopen: Reopen) {
        self.reopen = Some(reopen);
    }

    /// Runs an agent until its end, or ends it on request: see [`Supervision`]. After a handover it
    /// is called again with the next agent of the same run.
    pub fn stay_with(
        &mut self,
        files: &RunFiles,
        lock: &RunLock,
        agent: &Agent,
        grace: Duration,
        started: impl FnOnce(),
    ) -> Result<SessionEnd, ProcessError> {
        let ready = ControlPipe::ready(&mut self.control, files);
        let control = ready.map_err(|source| ProcessError::Start {
            program: agent.argv.first().cloned().unwrap_or_default(),
            source,
        })?;
        let mut place = AgentSession { reopen: self.reopen.as_ref(), opened: &mut self.opened };
        let end =
            supervise(control, files, lock, agent, grace, started, &mut self.peak_mb, &mut place);
        // A request between two agents reaches the next one. After the last one it comes too late.
        if !matches!(end, Ok(SessionEnd::HandedOver)) {
            self.control = None;
        }
        end
    }

    /// The most memory that the agents used since the last call, in megabytes; nothing if none of
    /// them lasted long enough to be measured.
    pub fn take_peak_mb(&mut self) -> Option<u32> {
        self.peak_mb.take()
    }
}

/// The session of a supervisor.
struct AgentSession<'a> {
    reopen: Option<&'a Reopen>,
    opened: &'a mut Option<OpenedSession>,
}

/// How much of the agent's earlier output is shown in a session that was opened later, in bytes.
const REPLAYED_BYTES_MAX: u64 = 4096;

#[expect(clippy::too_many_arguments, reason = "each of them is of another owner")]
fn supervise(
    control: &mut ControlPipe,
    files: &RunFiles,
    lock: &RunLock,
    agent: &Agent,
    grace: Duration,
    started: impl FnOnce(),
    peak_mb: &mut Option<u32>,
    place: &mut AgentSession<'_>,
) -> Result<SessionEnd, ProcessError> {
    let program = agent.argv.first().cloned().unwrap_or_default();
    let cannot_start = |source| ProcessError::Start { program: program.clone(), source };
    let failed = |message| ProcessError::Failed { program: program.clone(), message };
    let mut unrelated = unrelated_children();
    adopt_orphans();
    // For a process that must end the agent without us. If the record cannot be written, a person
    // has to end it; the agent starts all the same.
    let cgroup = cgroup::entered().map(|group| group.path().to_string_lossy().into_owned());
    let mut record = LockRecord {
        supervisor: getpid(),
        agent: None,
        without_session: false,
        holder: place.opened.as_ref().and_then(OpenedSession::process),
        cgroup,
    };
    let mut session = match place.opened.as_ref() {
        Some(opened) => OwnTerminal::at(&opened.terminal),
        None => OwnTerminal::of_this_process(),
    };
    let _ = lock.write(&record.to_string());
    let begun = start(files, lock, agent, place.opened.as_ref()).map_err(cannot_start);
    let outcome = begun.and_then(|StartedAgent { child, mut relay, prompting }| {
        let agent = Pid::from_child(&child);
        record.agent = processes::find(agent).map(|process| (agent, process.started));
        let _ = lock.write(&record.to_string());
        let requests = (&mut *control, lock);
        let attended = watch(agent, requests, prompting, grace, &mut session, started, || {
            let Some(reopen) = place.reopen else { return Reopening::Never };
            (record.without_session, record.holder) = (true, None);
            let _ = lock.write(&record.to_string());
            let Some(opened) = reopen() else { return Reopening::Later };
            // Its server has the sessions of other runs too.
            let server = opened.server.and_then(|server| Pid::from_raw(server.try_into().ok()?));
            unrelated.extend(server.and_then(processes::find));
            if let (Some(relay), Ok(Some(display))) = (&mut relay, Display::on(&opened.terminal)) {
                // An agent that cannot be shown goes on, and its output is in the log.
                let _ =
                    relay.move_to(display, &end_of_file(&files.output_path(), REPLAYED_BYTES_MAX));
            }
            (record.without_session, record.holder) = (false, opened.process());
            let _ = lock.write(&record.to_string());
            let terminal = OwnTerminal::at(&opened.terminal);
            *place.opened = Some(opened);
            Reopening::Opened(terminal)
        });
        *peak_mb = (*peak_mb).max(attended.peak_mb);
        let end = session_end(&attended);
        if let Ok(SessionEnd::Over(end)) = &end {
            // Should we not live to tell. If it cannot be written, that is all we can do.
            let _ = lock.write(&format!("{record}{end}"));
        }
        end_all(grace, None, || left_of(agent, &unrelated));
        if let Some(relay) = relay {
            // Output that could not be kept is lost; the run is over all the same.
            let _ = relay.finish();
        }
        // A second request for a handover is fulfilled by this one; a stronger request is not
        // forgotten.
        let more = control.wish_at_once().is_some_and(|wish| wish > SupervisorRequest::HandOver);
        let end = end.map(|end| match end {
            SessionEnd::HandedOver if more => SessionEnd::Over(AgentEnd::Cancelled),
            end => end,
        });
        let _ = match &end {
            Ok(SessionEnd::Over(end)) => lock.write(&end.to_string()),
            Ok(SessionEnd::HandedOver) => {
                lock.write(&LockRecord { agent: None, ..record }.to_string())
            }
            Err(_) => Ok(()),
        };
        end.map_err(failed)
    });
    if outcome.is_err() {
        // A record in a lock file without a listener would mean that a supervisor died.
        let _ = lock.write("");
    }
    outcome
}

/// The end of the session for its run; the reason if it is a failed start.
fn session_end(attended: &AgentResult) -> Result<SessionEnd, String> {
    let AgentResult { status, is_free, wish, prompted, .. } = attended;
    let status = status.map_err(|error| format!("its end was not seen: {error}"))?;
    match (wish, prompted) {
        (Some(SupervisorRequest::HandOver), _) => Ok(SessionEnd::HandedOver),
        (None, Some(Err(why))) => Err(why.clone()),
        (None | Some(SupervisorRequest::Leave | SupervisorRequest::Cancel), _) => {
            Ok(SessionEnd::Over(agent_end(status, !is_free)))
        }
    }
}

pub(super) fn agent_end(status: WaitStatus, is_cancelled: bool) -> AgentEnd {
    match (is_cancelled, status.exit_status(), status.terminating_signal()) {
        (true, ..) => AgentEnd::Cancelled,
        (false, Some(code), _) => AgentEnd::Exited(code),
        (false, None, signal) => AgentEnd::Signalled(signal.unwrap_or_default()),
    }
}

/// Makes the kernel give us the children of those of our descendants that end before them.
pub(super) fn adopt_orphans() {
    // Without it, the process group still holds together the processes that do not leave it.
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}

/// An agent that was started.
struct StartedAgent {
    child: Child,
    relay: Option<Relay>,
    /// The program that types its prompt, or why there is none.
    prompting: Option<Result<Prompting, String>>,
}

impl OpenedSession {
    fn process(&self) -> Option<Pid> {
        Pid::from_raw(self.holder.try_into().ok()?)
    }
}

/// The end of a file, if it can be read.
fn end_of_file(path: &Path, bytes_max: u64) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(io::SeekFrom::Start(length.saturating_sub(bytes_max)))?;
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().unwrap_or_default()
}

fn start(
    files: &RunFiles,
    lock: &RunLock,
    agent: &Agent,
    opened: Option<&OpenedSession>,
) -> io::Result<StartedAgent> {
    let output = crate::private::options().append(true).create(true).open(files.output_path())?;
    let Some(launcher) = &agent.terminal else {
        let child = start_plainly(lock, agent, output)?;
        return Ok(StartedAgent { child, relay: None, prompting: None });
    };
    // The keyboard is locked until the agent is there and has its prompt.
    let keyboard = files.take_keyboard()?;
    let display = match opened {
        Some(opened) => Display::on(&opened.terminal)?,
        None => Display::of_this_process()?,
    };
    let process = opened.and_then(OpenedSession::process).unwrap_or_else(getpid);
    let terminal = Terminal::open(display.as_ref())?;
    let argv: Vec<OsString> = agent.argv.iter().map(OsString::from).collect();
    let started =
        lock.inherited(|| terminal.start(launcher, &argv, &agent.directory, &agent.environment));
    let child = started.map_err(|error| explained(agent, error))?;
    let relay = Some(terminal.relay(output, display)?);
    let prompting = agent.prompter.as_ref().map(|prompter| {
        let begun = prompter.start(&agent.prompt, keyboard, process);
        begun.map_err(|error| format!("its prompt cannot be typed: {error}"))
    });
    Ok(StartedAgent { child, relay, prompting })
}

fn start_plainly(lock: &RunLock, agent: &Agent, output: File) -> io::Result<Child> {
    let Some((program, arguments)) = agent.argv.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let prompt = prompt_file(&agent.prompt)?;
    let is_path = program.contains('/');
    let found = if is_path { agent.directory.join(program) } else { program.into() };
    let mut command = command_in(found, &agent.directory);
    command
        .args(arguments)
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
pub(super) fn prompt_file(prompt: &[u8]) -> io::Result<File> {
    // In memory: a file on a disk would be made, and kept, for every run.
    let file = rustix::fs::memfd_create("gt prompt", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(prompt)?;
    file.rewind()?;
    Ok(file)
}
