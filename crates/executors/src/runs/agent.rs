//! An agent under its supervisor, from its start to the end of everything that it started.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process_group, wait, waitid,
};

use super::control::Control;
use super::processes::{self, Process};
use super::remains::{bystanders, end_all, left_of};
use super::{RunDirectory, RunLock};
use crate::background::spawn;
use crate::process::{ProcessError, command};

/// A program that does the work of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The program and its arguments. A program with a relative path is looked for in `directory`.
    pub argv: Vec<String>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Variables it gets besides ours.
    pub environment: Vec<(String, String)>,
    /// What it can read.
    pub prompt: Vec<u8>,
}

/// How an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentEnd {
    /// By itself, with this exit status.
    Exited(i32),
    /// By this signal, which somebody else sent.
    Signalled(i32),
    /// Because we were asked to end it.
    Cancelled,
}

/// Runs an agent until its end, or ends it when asked to through the run's directory: its process group
/// gets `TERM` and after `grace` is killed. What the agent leaves behind when it ends is ended the same way.
///
/// For a process that has become a supervisor: it collects every child that it gets meanwhile. Those that
/// it has when it calls this are left alone.
pub fn supervise(
    directory: &RunDirectory,
    lock: &RunLock,
    agent: &Agent,
    grace: Duration,
) -> Result<AgentEnd, ProcessError> {
    let program = agent.argv.first().cloned().unwrap_or_default();
    let cannot_start = |source| ProcessError::Start { program: program.clone(), source };
    let bystanders = bystanders();
    adopt_orphans();
    let control = Control::open(directory).map_err(cannot_start)?;
    let course = Course::default();
    let ended = thread::scope(|scope| {
        // The ear comes first: an agent that could not be cancelled is not started.
        let (introduce, introduced) = mpsc::channel();
        let ear = || {
            let introduced = introduced;
            if let Ok(agent) = introduced.recv() {
                course.listen(&control, agent, grace);
            }
        };
        thread::Builder::new().spawn_scoped(scope, ear).map_err(cannot_start)?;
        let child = start(directory, lock, agent).map_err(cannot_start)?;
        let agent = Pid::from_child(&child);
        // The ear listens for as long as this thread is here.
        let _ = introduce.send(agent);
        write_down(directory, agent);
        let status = course.wait_for(agent);
        let cancelled = course.finish(&control);
        Ok((agent, status, cancelled))
    });
    let outcome = ended.and_then(|(agent, status, cancelled)| {
        end_all(grace, None, || left_of(agent, &bystanders));
        let unseen = |error: Errno| ProcessError::Failed {
            program: program.clone(),
            message: format!("its end was not seen: {error}"),
        };
        let status = status.map_err(unseen)?;
        Ok(match (cancelled, status.exit_status(), status.terminating_signal()) {
            (true, ..) => AgentEnd::Cancelled,
            (false, Some(code), _) => AgentEnd::Exited(code),
            (false, None, signal) => AgentEnd::Signalled(signal.unwrap_or_default()),
        })
    });
    // First this, then the pipe: where nobody listens and an agent is written down, its supervisor died.
    // Both are of no use from now on, and do no harm if they stay.
    let _ = fs::remove_file(directory.agent_path());
    let _ = fs::remove_file(directory.control_path());
    outcome
}

/// Makes the kernel give us the children of those of our descendants that end before them.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        // Where it cannot be had, the process group still holds together what does not run away.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
}

fn start(directory: &RunDirectory, lock: &RunLock, agent: &Agent) -> io::Result<Child> {
    let Some((program, arguments)) = agent.argv.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    fs::write(directory.prompt_path(), &agent.prompt)?;
    let output = File::options().append(true).create(true).open(directory.output_path())?;
    let is_path = Path::new(program).components().count() > 1;
    let mut command =
        if is_path { command(agent.directory.join(program)) } else { command(program) };
    command
        .args(arguments)
        .current_dir(&agent.directory)
        .envs(agent.environment.iter().map(|(name, value)| (name, value)))
        .stdin(File::open(directory.prompt_path())?)
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0);
    lock.inherited(|| spawn(&mut command))
}

/// Writes down who the agent is, for whoever must end it without its supervisor.
fn write_down(directory: &RunDirectory, agent: Pid) {
    let Some(Process { pid, started, .. }) = processes::look(agent) else { return };
    let line = format!("{} {started} {}\n", pid.as_raw_pid(), std::process::id());
    // If this fails an orphan has to be ended by hand; an agent at work is not stopped for it.
    let _ = fs::write(directory.agent_path(), line);
}

/// How far it has come with an agent.
#[derive(Debug, Default)]
struct Course {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The agent has been collected, so its number may soon be somebody else's.
    ended: bool,
    cancelled: bool,
}

impl Course {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for somebody who asks, and ends the agent then. Signals are sent only while nobody can collect
    /// the agent, so its number is its own.
    fn listen(&self, control: &Control, agent: Pid, grace: Duration) {
        if !control.wait() {
            return;
        }
        let mut state = self.state();
        if state.ended {
            return;
        }
        state.cancelled = true;
        // One that is stopped would not hear the question.
        let _ = kill_process_group(agent, Signal::TERM);
        let _ = kill_process_group(agent, Signal::CONT);
        let waited = self.changed.wait_timeout_while(state, grace, |state| !state.ended);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if !state.ended {
            let _ = kill_process_group(agent, Signal::KILL);
        }
    }

    /// Collects children, adopted ones too, until the agent is among them.
    fn wait_for(&self, agent: Pid) -> Result<WaitStatus, Errno> {
        let ended_only = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::All, ended_only) {
                Err(Errno::INTR) => continue,
                seen => seen?,
            };
            let mut state = self.state();
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == agent => {
                    state.ended = true;
                    return Ok(status);
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends the listening, and says whether somebody had asked.
    fn finish(&self, control: &Control) -> bool {
        let mut state = self.state();
        state.ended = true;
        let cancelled = state.cancelled;
        drop(state);
        self.changed.notify_all();
        if !cancelled {
            // The pipe is empty, or the ear is awake already; so this neither waits nor fails.
            let _ = control.wake();
        }
        cancelled
    }
}
