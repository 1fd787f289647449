//! Starting a supervisor that goes on without us.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread;

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
    /// The first line it says, without its end; empty if it ended without a word.
    pub fn first_line(self) -> io::Result<String> {
        let mut line = String::new();
        BufReader::new(self.0).read_line(&mut line)?;
        Ok(line.trim_end_matches('\n').to_owned())
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
