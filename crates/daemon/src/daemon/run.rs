//! The daemon process, from its start to its end.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use gt_core::Json;
use gt_executors::daemon::{
    BellSocket, DaemonLock, LockAttempt, ServiceManager, Signals, make_room_for_files,
    watchdog_interval,
};
use gt_executors::runs::become_detached;

use super::event_loop::{EventLoop, EventLoopParts};
use super::host_lease;
use super::journal::{Journal, Level, log_path};
use super::lock_path;
use super::reconcilers;
use super::report::DaemonReport;
use super::state::DaemonState;
use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _};
use gt_town::settings::{file_layers, layers_over};
use gt_town::town::DIRECTORY;
use gt_town::{Bell, Environment, OperationError, Result, Town};

/// The settings of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DaemonSettings {
    /// The interval between full scans.
    pub(super) scan_every: Duration,
    /// The largest size of a log file, in bytes.
    pub(super) log_size: u64,
}

/// The shortest interval between two full scans.
const SCAN_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The smallest allowed size of a log file.
const LOG_BYTES_MIN: u64 = 4096;

impl DaemonSettings {
    /// The settings in force.
    pub(super) fn of(town: &Town) -> Result<Self> {
        let files = file_layers(town)?;
        let layers = town.read(|reader| layers_over(&files, reader))?;
        Ok(Self {
            scan_every: layers.daemon_scan_every()?.max(SCAN_INTERVAL_MIN),
            log_size: layers.daemon_log_size()?.max(LOG_BYTES_MIN),
        })
    }
}

/// The environment of a daemon.
pub struct DaemonEnvironment<'a> {
    /// The program that supervises runs: this one.
    pub program: &'a Path,
    /// Its version.
    pub version: &'a str,
    /// The environment, which may name a service manager.
    pub environment: &'a Environment,
    /// Starts services that run beside the daemon, for as long as it runs. The number changes when settings may have changed.
    pub beside: &'a dyn Fn(Town, ServiceLog, Arc<AtomicU64>) -> Box<dyn Any>,
}

/// Writes an action of a service beside the daemon into the daemon's log: a word or two, and details.
pub type ServiceLog = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Leaves the terminal and the session of the parent process.
pub fn detach() -> std::io::Result<()> {
    become_detached()
}

/// Keeps the town going until it is asked to stop. Calls `on_ready` after the first full scan. Refused while another
/// daemon of this town runs on this machine.
pub fn run(
    town: Town,
    around: &DaemonEnvironment<'_>,
    on_ready: &mut dyn FnMut(&DaemonReport),
) -> Result<()> {
    let root = town.root().to_owned();
    let since = town.now().to_string();
    let failed = |action, path: std::path::PathBuf| {
        move |source| OperationError::File { action, path, source }
    };
    let lock = lock_path(&root);
    let taken = DaemonLock::take(&lock, &since).map_err(failed("lock", lock.clone()))?;
    let held = match taken {
        LockAttempt::Ours(lock) => lock,
        LockAttempt::Theirs(Some(holder)) => {
            return Err(OperationError::rejected(format!(
                "the daemon of this town already runs (process {}, since {}); gt daemon status says how it is",
                holder.pid, holder.since
            )));
        }
        LockAttempt::Theirs(None) => {
            return Err(OperationError::rejected(format!(
                "another process holds {}, so a daemon of this town seems to run; see gt daemon status",
                lock.display()
            )));
        }
    };
    gt_town::hosts::refuse_unfit_host(&town)?;
    gt_town::rigs::pin_ssh_rigs(&town)?;
    make_room_for_files();
    let settings = DaemonSettings::of(&town)?;
    let journal =
        Journal::open(&root, settings.log_size).map_err(failed("open the log", log_path(&root)))?;
    let signals = Signals::listen().map_err(failed("listen to signals for", root.clone()))?;
    let processes = LocalProcesses::of(&town)?;
    let host = processes.host().to_owned();
    let directory = root.join(DIRECTORY);
    let bell = BellSocket::create(&directory);
    let state = DaemonState::new(town, processes, around.program.to_owned(), journal)
        .map_err(failed("begin in", root.clone()))?;
    let state = Arc::new(state);
    log_panics(&state);
    state.tell(
        Level::Info,
        "began",
        &[
            ("pid", Json::trusted(std::process::id().to_string())),
            ("version", Json::string(around.version)),
        ],
    );
    if let Err(error) = &bell {
        let more = [("error", Json::string(&error.to_string()))];
        state.tell(Level::Warning, "no bell", &more);
    }
    let report = DaemonReport {
        pid: std::process::id(),
        since,
        version: around.version.to_owned(),
        town: root.display().to_string(),
        host,
        bell: bell.is_ok(),
        ..DaemonReport::default()
    };
    let environment = around.environment;
    let parts = EventLoopParts {
        lock: held,
        bell: bell.ok(),
        signals,
        service_manager: ServiceManager::named(environment.get("NOTIFY_SOCKET")),
        watchdog: watchdog_interval(
            environment.get("WATCHDOG_USEC"),
            environment.get("WATCHDOG_PID"),
        ),
        settings,
        report,
    };
    let bell = state.town.bell();
    let mut event_loop = EventLoop::new(Arc::clone(&state), bell.state(), parts)?;
    listen_to_server(&state, bell).map_err(failed("begin in", root.clone()))?;
    host_lease::begin(&state).map_err(failed("begin in", root.clone()))?;
    reconcilers::begin(&state).map_err(failed("begin in", root))?;
    let log = Arc::clone(&state);
    let tell = move |what: &str, more: &str| {
        log.tell(Level::Info, what, &[("detail", Json::string(more))]);
    };
    let companion =
        (around.beside)(state.town.clone(), Arc::new(tell), Arc::clone(&state.settings_state));
    let ended = event_loop.run(on_ready);
    drop(companion);
    // Others count on this daemon until its lease has ended, if the store cannot be told.
    let _ = gt_scheduling::host_lease::daemon_left(&state.town);
    ended
}

/// Listens for writes of other machines, if the store is on a server.
fn listen_to_server(state: &Arc<DaemonState>, bell: Bell) -> std::io::Result<()> {
    if !bell.rings() {
        return Ok(());
    }
    let state = Arc::clone(state);
    let name = "server bell".to_owned();
    std::thread::Builder::new().name(name).spawn(move || {
        loop {
            if bell.wait(Duration::from_mins(1)) {
                state.ring();
            }
        }
    })?;
    Ok(())
}

/// Logs every panic with its place. Standard error may lead nowhere.
fn log_panics(state: &Arc<DaemonState>) {
    let state = Arc::downgrade(state);
    std::panic::set_hook(Box::new(move |panic| {
        if let Some(state) = state.upgrade() {
            let more = [("error", Json::string(&panic.to_string()))];
            state.tell(Level::Error, "panicked", &more);
        }
    }));
}
