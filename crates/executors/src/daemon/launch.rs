//! Starting a daemon that goes on without us.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::background::spawn;
use crate::process::{ProcessError, command};
use crate::runs::outside_control_group;

/// The result of starting a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchResult {
    /// It said this line.
    Said(String),
    /// It ended without a word.
    Ended,
    /// It has said nothing yet.
    Silent,
}

/// Starts a program and waits at most `limit` for the first line that it prints. Its standard error
/// replaces the contents of the file `complaints`.
pub fn launch(
    program: &Path,
    arguments: &[&OsStr],
    complaints: &Path,
    limit: Duration,
) -> Result<LaunchResult, ProcessError> {
    let failed = |source| ProcessError::Start { program: program.display().to_string(), source };
    let mut command = command(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(open_complaints(complaints).map_err(failed)?);
    // A daemon that an agent starts outlives the run of that agent.
    let mut child = outside_control_group(|| spawn(&mut command)).map_err(failed)?;
    let voice = child.stdout.take().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
    let (tell, answer) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let said = if let Ok(1..) = BufReader::new(voice).read_line(&mut line) {
            LaunchResult::Said(line.trim_end().to_owned())
        } else {
            // Reaps the child, which no other thread waits for; its lock is free after that.
            let _ = child.wait();
            LaunchResult::Ended
        };
        // The receiver is gone when the time was up first.
        let _ = tell.send(said);
    });
    Ok(answer.recv_timeout(limit).unwrap_or(LaunchResult::Silent))
}

/// The number of open files that a program of ours asks for.
const FILES_WANTED: u64 = 65_536;

/// Raises the limit on open files as far as allowed: each worker takes a few.
pub fn make_room_for_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(FILES_WANTED, |most| most.min(FILES_WANTED));
    if limit.current.is_some_and(|now| now < wanted) {
        // A lower limit only means that fewer workers can be watched at a time.
        let _ =
            setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    }
}

/// How many files this process may have open at a time. Nothing where no limit is set.
pub fn open_files_max() -> Option<usize> {
    getrlimit(Resource::Nofile).current.and_then(|limit| limit.try_into().ok())
}

fn open_complaints(path: &Path) -> io::Result<File> {
    crate::private::options().write(true).create(true).truncate(true).open(path)
}
