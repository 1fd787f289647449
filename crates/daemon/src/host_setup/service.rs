//! The daemon of this host as a service: of systemd where a user has one, else a process of its own.

use std::path::Path;
use std::time::Duration;

use gt_executors::background::{LimitedProgram, ProgramEnd};
use gt_executors::process;
use gt_town::town::DIRECTORY;
use gt_town::{Environment, OperationError, Result};

use crate::daemon::{self, Unit, install_unit, unit};

/// How long the service manager may take. The first look of a daemon at everything may start workers.
const SERVICE_TIMEOUT: Duration = Duration::from_mins(2);

/// How much of the words of the service manager is told.
const WORDS_BYTES_MAX: usize = 2_000;

/// The manager that keeps a daemon going.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonService {
    /// A user service of systemd, with the name of its unit.
    Systemd(String),
    /// None: it is a process of its own, and does not come back by itself after a restart of the machine.
    Process,
}

/// Starts the daemon of the town at `root` as a service.
pub(super) fn start(
    root: &Path,
    program: &Path,
    environment: &Environment,
) -> Result<DaemonService> {
    if !has_service_manager(root) {
        daemon::start(root, program)?;
        return Ok(DaemonService::Process);
    }
    let unit = unit(root, program, environment)?;
    install_unit(&unit)?;
    systemctl(root, &["daemon-reload"])?;
    systemctl(root, &["enable", "--now", &unit.name])?;
    // Some machines forbid it; then the daemon ends when the user logs out, and gt host list says so.
    let _ = run(root, "loginctl", &["enable-linger"]);
    Ok(DaemonService::Systemd(unit.name))
}

/// Ends the daemon of the town at `root` and starts it with the program that is there now.
pub fn restart(root: &Path, program: &Path, environment: &Environment) -> Result<DaemonService> {
    if let Some(unit) = installed(root, program, environment) {
        systemctl(root, &["restart", &unit.name])?;
        return Ok(DaemonService::Systemd(unit.name));
    }
    daemon::stop(root)?;
    daemon::start(root, program)?;
    Ok(DaemonService::Process)
}

/// Ends the daemon of the town at `root` for good.
pub fn remove(root: &Path, program: &Path, environment: &Environment) -> Result<()> {
    if let Some(unit) = installed(root, program, environment) {
        systemctl(root, &["disable", "--now", &unit.name])?;
        std::fs::remove_file(&unit.path).map_err(|source| OperationError::File {
            action: "remove",
            path: unit.path,
            source,
        })?;
        systemctl(root, &["daemon-reload"])?;
    }
    daemon::stop(root).map(drop)
}

fn has_service_manager(root: &Path) -> bool {
    process::is_installed("systemctl")
        && matches!(run(root, "systemctl", &["--user", "show-environment"]), Ok(ProgramEnd::Well))
}

/// The unit of the town, if it is a service.
fn installed(root: &Path, program: &Path, environment: &Environment) -> Option<Unit> {
    let unit = unit(root, program, environment).ok().filter(|unit| unit.path.exists())?;
    has_service_manager(root).then_some(unit)
}

fn systemctl(root: &Path, words: &[&str]) -> Result<()> {
    let arguments: Vec<&str> = ["--user"].iter().chain(words).copied().collect();
    let line = arguments.join(" ");
    match run(root, "systemctl", &arguments)? {
        ProgramEnd::Well => Ok(()),
        ProgramEnd::Badly { words, .. } => {
            Err(OperationError::rejected(format!("systemctl {line} failed: {words}")))
        }
        ProgramEnd::TooLate => {
            Err(OperationError::rejected(format!("systemctl {line} did not end in time")))
        }
    }
}

fn run(root: &Path, program: &str, arguments: &[&str]) -> Result<ProgramEnd> {
    let program = LimitedProgram {
        program: Path::new(program),
        arguments,
        directory: root,
        environment: &[],
        input: &[],
        scratch: &root.join(DIRECTORY),
        limit: SERVICE_TIMEOUT,
        words_bytes_max: WORDS_BYTES_MAX,
    };
    Ok(program.run()?)
}
