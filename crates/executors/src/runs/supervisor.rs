//! Starting a supervisor that goes on without us.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::RunDirectory;
use crate::background::spawn;
use crate::process::{ProcessError, command};

/// What is done when a supervisor has ended.
pub type OnExit = Box<dyn FnOnce() + Send>;

/// What a supervisor says to whoever started it.
#[derive(Debug)]
pub struct Voice(ChildStdout);

impl Voice {
    /// The first line it says, without its end; empty if it ended without a word, nothing if it has said
    /// nothing when the time is up.
    pub fn first_line_within(mut self, limit: Duration) -> io::Result<Option<String>> {
        let began = Instant::now();
        let mut said = Vec::new();
        let mut more = [0; 512];
        loop {
            let left = limit.saturating_sub(began.elapsed());
            let left =
                Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&left)) {
                Ok(0) => return Ok(None),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if began.elapsed() >= limit {
                return Ok(None);
            }
            let read = self.0.read(&mut more)?;
            said.extend_from_slice(&more[..read]);
            let end = said.iter().position(|byte| *byte == b'\n');
            if read == 0 || end.is_some() {
                said.truncate(end.unwrap_or(said.len()));
                return Ok(Some(String::from_utf8_lossy(&said).into_owned()));
            }
        }
    }
}

/// Says one line to whoever started this supervisor. If they are gone, nobody needs it.
pub fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(line.replace('\n', " ").as_bytes());
    let _ = out.write_all(b"\n").and_then(|()| out.flush());
}

/// Starts the supervisor of a run and returns at once. It reads nothing, its complaints are appended to a
/// file in the directory of the run, which is made if need be, and it outlives us. While we are there,
/// `on_exit` is called when it has ended, on a thread of its own.
///
/// The supervisor itself calls [`become_detached`] first.
pub fn start_supervisor(
    program: &Path,
    arguments: &[&OsStr],
    directory: &RunDirectory,
    environment: &[(&str, &str)],
    on_exit: Option<OnExit>,
) -> Result<Voice, ProcessError> {
    let failed = |source| ProcessError::Start { program: program.display().to_string(), source };
    // The thread comes first: a supervisor that nobody collects is not started.
    let (introduce, introduced) = mpsc::channel::<Child>();
    let collect = move || {
        if let Ok(mut child) = introduced.recv() {
            // It says in the store what came of it; here only its end matters.
            let _ = child.wait();
            if let Some(on_exit) = on_exit {
                on_exit();
            }
        }
    };
    thread::Builder::new().spawn(collect).map_err(failed)?;
    let mut child = start(program, arguments, directory, environment).map_err(failed)?;
    let voice = child.stdout.take().map(Voice);
    // The thread waits for this alone.
    let _ = introduce.send(child);
    voice.ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))
}

fn start(
    program: &Path,
    arguments: &[&OsStr],
    directory: &RunDirectory,
    environment: &[(&str, &str)],
) -> io::Result<Child> {
    directory.create()?;
    let log = File::options().append(true).create(true).open(directory.supervisor_log_path())?;
    let mut command = command(program);
    // No process group of its own: whoever leads one cannot begin a session.
    command
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    spawn(&mut command)
}

/// Leaves the session and the terminal of whoever started us, so that their end is not ours.
pub fn become_detached() -> io::Result<()> {
    match rustix::process::setsid() {
        // We lead a process group: a person started us by hand, and wants to be able to interrupt us.
        Ok(_) | Err(Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
