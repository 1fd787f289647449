//! Being the daemon, from its beginning to its end.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gt_core::time::parse_duration;
use gt_core::{Invalid, Json, settings};
use gt_executors::daemon::{
    DaemonLock, DoorBell, Keeper, Signals, Taken, make_room_for_files, watchdog_interval,
};
use gt_executors::runs::become_detached;

use super::heart::{Beginnings, Heart};
use super::journal::{Journal, Level, log_path};
use super::lock_path;
use super::office::Office;
use super::report::Report;
use super::rounds;
use crate::runs::{RealWorld, World as _};
use crate::settings::{file_layers, layers_over};
use crate::town::DIRECTORY;
use crate::{Environment, OperationError, Result, Town};

/// How the daemon looks at its own settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DaemonSettings {
    /// How often everything is looked at.
    pub(super) scan_every: Duration,
    /// How large a file of the log becomes, in bytes.
    pub(super) log_size: u64,
}

/// Nobody looks at everything more often than this.
const SCAN_EVERY_MIN: Duration = Duration::from_millis(100);
/// No file of the log is smaller than this.
const LOG_BYTES_MIN: u64 = 4096;

impl DaemonSettings {
    /// Those that are in force.
    pub(super) fn of(town: &Town) -> Result<Self> {
        let files = file_layers(town)?;
        let layers = town.read(|reader| layers_over(&files, reader))?;
        let size = layers.get("daemon.log_size")?.value;
        let log_size = settings::parse_bytes(&size)
            .ok_or_else(|| Invalid(format!("daemon.log_size is {size}, not a size")))?;
        Ok(Self {
            scan_every: parse_duration(&layers.get("daemon.scan_every")?.value)?
                .max(SCAN_EVERY_MIN),
            log_size: log_size.max(LOG_BYTES_MIN),
        })
    }
}

/// Where a daemon finds itself.
pub struct Surroundings<'a> {
    /// The program that supervises runs: this one.
    pub program: &'a Path,
    /// Its version.
    pub version: &'a str,
    /// Who keeps it running, perhaps.
    pub environment: &'a Environment,
    /// Starts what is there beside the daemon for as long as it runs.
    pub beside: &'a dyn Fn(Town, Tell) -> Box<dyn Any>,
}

/// Writes into the daemon's log what somebody beside it does: a word or two, and more about it.
pub type Tell = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Leaves the terminal and the session of whoever started us.
pub fn detach() -> std::io::Result<()> {
    become_detached()
}

/// Keeps the town going until somebody asks it to stop; `on_ready` is told when it has looked at everything. Refused while
/// another daemon of this town runs on this machine.
pub fn run(town: Town, around: &Surroundings<'_>, on_ready: &mut dyn FnMut(&Report)) -> Result<()> {
    let root = town.root().to_owned();
    let since = town.now().to_string();
    let failed = |action, path: std::path::PathBuf| {
        move |source| OperationError::File { action, path, source }
    };
    let lock = lock_path(&root);
    let taken = DaemonLock::take(&lock, &since).map_err(failed("lock", lock.clone()))?;
    let held = match taken {
        Taken::Ours(lock) => lock,
        Taken::Theirs(Some(holder)) => {
            return Err(OperationError::rejected(format!(
                "the daemon of this town already runs (process {}, since {}); gt daemon status says how it is",
                holder.pid, holder.since
            )));
        }
        Taken::Theirs(None) => {
            return Err(OperationError::rejected(format!(
                "somebody holds {}, so that a daemon of this town seems to run; gt daemon status says more",
                lock.display()
            )));
        }
    };
    make_room_for_files();
    let settings = DaemonSettings::of(&town)?;
    let journal =
        Journal::open(&root, settings.log_size).map_err(failed("open the log", log_path(&root)))?;
    let signals = Signals::listen().map_err(failed("listen to signals for", root.clone()))?;
    let world = RealWorld::of(&town)?;
    let host = world.host().to_owned();
    let directory = root.join(DIRECTORY);
    let bell = DoorBell::hang(&directory);
    let office = Office::new(town, world, around.program.to_owned(), journal)
        .map_err(failed("begin in", root.clone()))?;
    let office = Arc::new(office);
    log_panics(&office);
    office.tell(
        Level::Info,
        "began",
        &[
            ("pid", Json::trusted(std::process::id().to_string())),
            ("version", Json::string(around.version)),
        ],
    );
    if let Err(error) = &bell {
        let more = [("error", Json::string(&error.to_string()))];
        office.tell(Level::Warning, "no bell", &more);
    }
    let report = Report {
        pid: std::process::id(),
        since,
        version: around.version.to_owned(),
        town: root.display().to_string(),
        host,
        bell: bell.is_ok(),
        ..Report::default()
    };
    let environment = around.environment;
    let beginnings = Beginnings {
        lock: held,
        bell: bell.ok(),
        signals,
        keeper: Keeper::named(environment.get("NOTIFY_SOCKET")),
        watchdog: watchdog_interval(
            environment.get("WATCHDOG_USEC"),
            environment.get("WATCHDOG_PID"),
        ),
        settings,
        report,
    };
    let mut heart = Heart::new(Arc::clone(&office), beginnings)?;
    listen_to_server(&office).map_err(failed("begin in", root.clone()))?;
    rounds::begin(&office).map_err(failed("begin in", root))?;
    let log = Arc::clone(&office);
    let tell = move |what: &str, more: &str| {
        log.tell(Level::Info, what, &[("detail", Json::string(more))]);
    };
    let companion = (around.beside)(office.town.clone(), Arc::new(tell));
    let beaten = heart.beat(on_ready);
    drop(companion);
    beaten
}

/// A store on a server tells of what other machines write.
fn listen_to_server(office: &Arc<Office>) -> std::io::Result<()> {
    let bell = office.town.bell();
    if !bell.rings() {
        return Ok(());
    }
    let office = Arc::clone(office);
    let name = "server bell".to_owned();
    std::thread::Builder::new().name(name).spawn(move || {
        loop {
            if bell.wait(Duration::from_mins(1)) {
                office.ring();
            }
        }
    })?;
    Ok(())
}

/// Writes down where anything panics. Standard error may lead nowhere.
fn log_panics(office: &Arc<Office>) {
    let office = Arc::downgrade(office);
    std::panic::set_hook(Box::new(move |panic| {
        if let Some(office) = office.upgrade() {
            let more = [("error", Json::string(&panic.to_string()))];
            office.tell(Level::Error, "panicked", &more);
        }
    }));
}
