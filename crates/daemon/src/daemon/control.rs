//! Starting and stopping the daemon, and reading its state.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use gt_executors::daemon::{
    LaunchResult, LockHolder, ask_to_end, holder, is_held, launch, wait_until_free,
};
use gt_executors::machine::disk_of;

use super::journal::log_path;
use super::lock_path;
use super::report::DaemonReport;
use gt_town::{OperationError, Result};

/// The longest that `start` waits for the first full scan of a new daemon.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
/// The longest that `stop` waits for the daemon to exit.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether the daemon of a town runs on this machine.
#[derive(Debug, Clone, PartialEq)]
pub enum DaemonPresence {
    /// No daemon runs.
    NotRunning,
    /// A daemon runs.
    Running {
        /// Its process id, if it has written that.
        pid: Option<u32>,
        /// When it started.
        since: String,
        /// Its report, if it has written one.
        report: Option<Box<DaemonReport>>,
    },
}

/// The outcome of starting the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonStart {
    /// It runs and has finished its first full scan.
    Ready {
        /// Its process id.
        pid: u32,
    },
    /// It runs, and its first full scan is not finished yet.
    Beginning,
    /// A daemon ran already.
    Already {
        /// Its process id, if it has written that.
        pid: Option<u32>,
        /// When it started.
        since: String,
    },
}

/// The outcome of stopping the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonStop {
    /// No daemon ran.
    NotRunning,
    /// It has ended.
    Ended {
        /// Its former process id.
        pid: u32,
    },
}

fn held_by(root: &Path) -> Result<Option<LockHolder>> {
    let path = lock_path(root);
    holder(&path).map_err(|source| OperationError::File { action: "read", path, source })
}

/// Whether the daemon of the town at `root` runs. Does not read the store.
pub fn presence(root: &Path) -> Result<DaemonPresence> {
    let holder = held_by(root)?;
    if holder.is_none() && !is_held(&lock_path(root)) {
        return Ok(DaemonPresence::NotRunning);
    }
    let pid = holder.as_ref().map(|holder| holder.pid);
    let since = holder.map(|holder| holder.since).unwrap_or_default();
    // A report of an earlier daemon says nothing about this one.
    let report = DaemonReport::read(root).filter(|report| pid == Some(report.pid));
    Ok(DaemonPresence::Running { pid, since, report: report.map(Box::new) })
}

/// Starts the daemon of the town at `root`, detached from the caller, and waits for its first full scan.
pub fn start(root: &Path, program: &Path) -> Result<DaemonStart> {
    if let DaemonPresence::Running { pid, since, .. } = presence(root)? {
        return Ok(DaemonStart::Already { pid, since });
    }
    let log = log_path(root);
    let directory = log.parent().unwrap_or(root);
    gt_executors::private::create_dir_all(directory).map_err(|source| OperationError::File {
        action: "make",
        path: directory.to_owned(),
        source,
    })?;
    let complaints = directory.join("daemon.err");
    let words = [
        OsStr::new("-C"),
        root.as_os_str(),
        OsStr::new("daemon"),
        OsStr::new("run"),
        OsStr::new("--detached"),
    ];
    match launch(program, &words, &complaints, READY_TIMEOUT)? {
        LaunchResult::Said(_) => match presence(root)? {
            DaemonPresence::Running { pid: Some(pid), .. } => Ok(DaemonStart::Ready { pid }),
            DaemonPresence::Running { .. } => Ok(DaemonStart::Beginning),
            DaemonPresence::NotRunning => Err(not_started(&complaints, &log)),
        },
        LaunchResult::Silent => Ok(DaemonStart::Beginning),
        // Another process may have started the daemon first.
        LaunchResult::Ended => match presence(root)? {
            DaemonPresence::Running { pid, since, .. } => Ok(DaemonStart::Already { pid, since }),
            DaemonPresence::NotRunning => Err(not_started(&complaints, &log)),
        },
    }
}

fn not_started(complaints: &Path, log: &Path) -> OperationError {
    let said = std::fs::read_to_string(complaints).unwrap_or_default();
    let line = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let why = line.strip_prefix("Error: ").unwrap_or(line);
    // On a full disk it could not even write that.
    let has_room = log.parent().and_then(disk_of).is_none_or(|disk| disk.free_mb > 0);
    let why = match why {
        "" if has_room => "it said nothing",
        "" => "the disk is full",
        why => why,
    };
    // A daemon that is refused before it works has written no log.
    let place =
        if log.exists() { format!(" (its log is {})", log.display()) } else { String::new() };
    OperationError::rejected(format!("the daemon did not start: {why}{place}"))
}

/// Asks the daemon of the town at `root` to end, and waits until it has. Workers keep running.
pub fn stop(root: &Path) -> Result<DaemonStop> {
    let path = lock_path(root);
    let Some(holder) = held_by(root)? else {
        if is_held(&path) {
            return Err(OperationError::rejected(format!(
                "another process holds {} and has not written its process id there; no signal was sent",
                path.display()
            )));
        }
        return Ok(DaemonStop::NotRunning);
    };
    let asked = ask_to_end(&path, &holder);
    let asked = asked.map_err(|source| OperationError::File {
        action: "send a signal to the holder of",
        path: path.clone(),
        source,
    })?;
    if !asked && is_held(&path) {
        return Err(OperationError::rejected(format!(
            "the daemon is process {} of another machine or container; stop it there",
            holder.pid
        )));
    }
    if !wait_until_free(&path, STOP_TIMEOUT) {
        return Err(OperationError::rejected(format!(
            "the daemon (process {}) was asked to end and has not after {} s; gt daemon logs says what it does, \
             and to kill it does no harm",
            holder.pid,
            STOP_TIMEOUT.as_secs()
        )));
    }
    Ok(DaemonStop::Ended { pid: holder.pid })
}
