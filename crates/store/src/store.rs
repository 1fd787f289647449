//! Opening a store, and the two ways in: [`Store::read`] and [`Store::write`].

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gt_core::schedule::RunId;
use gt_core::settings::Layers;
use gt_core::work::TokenHash;
use gt_core::{BeadId, Timestamp};

use crate::StoreError;
use crate::backend::{Backend, ChangeMark, FileBackend, MemoryBackend, ServerBackend};
use crate::bell::Bell;
use crate::engine::postgres::PostgresAddress;
use crate::engine::sqlite::QUICK_CHECK;
use crate::engine::{LEVEL, LongWaitCallback};
use crate::group::{Queue, Ticket};
use crate::transaction::{Reader, Writer};
use crate::verbs::{HostDeclaration, HostRow, renew_known_host};

/// The schema this program knows.
pub const SCHEMA_LEVEL: i64 = LEVEL;

/// The actor of a write, and its time.
#[derive(Debug, Clone)]
pub struct Authorship {
    /// The actor.
    pub actor: String,
    /// The time.
    pub at: Timestamp,
    /// The worker that writes; nothing for a person and for the program itself. A worker's writes are checked before they
    /// are committed.
    pub worker: Option<Worker>,
}

/// A process that says that it works on a run.
#[derive(Debug, Clone)]
pub struct Worker {
    /// The run.
    pub run: RunId,
    /// The proof of that.
    pub proof: Proof,
}

impl Worker {
    /// The bead of the run.
    pub(crate) fn bead(&self) -> &BeadId {
        &self.run.bead
    }
}

/// How a process proves that it works on a run.
#[derive(Debug, Clone)]
pub enum Proof {
    /// With the token that the run's supervisor gave it.
    Token(TokenHash),
    /// Not at all.
    Missing,
    /// This program itself vouches for it.
    Vouched,
    /// It is a check of this name, which works on no run and may only read.
    Check(String),
}

/// The options of opening a store.
#[derive(Clone, Default)]
pub struct Options {
    /// Called once when a write has waited for others for a second.
    pub on_wait: Option<LongWaitCallback>,
    /// The clock that leases are counted by.
    pub lease_clock: LeaseClock,
    /// Reads the layers of settings below the store's. Without it, only the store and the defaults count.
    pub settings_below: Option<SettingsBelow>,
}

/// Reads the layers of settings below the store's.
pub type SettingsBelow = Arc<dyn Fn() -> Layers + Send + Sync>;

/// The clock that leases are counted by.
#[derive(Clone, Default)]
pub enum LeaseClock {
    /// The caller's own, as tests and simulations need it.
    #[default]
    Caller,
    /// That of the database server, so that hosts whose clocks differ agree. A file has no clock but that of the machine
    /// that all its writers share.
    Store,
    /// This one, as if it were that of the database server: a simulator has a server whose clock it moves.
    Simulated(Arc<dyn Fn() -> Timestamp + Send + Sync>),
}

impl fmt::Debug for LeaseClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caller => "Caller",
            Self::Store => "Store",
            Self::Simulated(_) => "Simulated",
        })
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

/// The address of a store.
#[derive(Debug, Clone)]
pub enum StoreAddress {
    /// In a file.
    File(PathBuf),
    /// On a PostgreSQL server.
    Server(Box<PostgresAddress>),
}

impl From<&Path> for StoreAddress {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server(server) => f.write_str(server.shown()),
        }
    }
}

/// Whether the writer comes and goes, or stays and writes for many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    Alone,
    Grouped,
}

/// A town's records. Cheap to clone; every clone is the same store.
#[derive(Debug, Clone)]
pub struct Store {
    place: Arc<Backend>,
    queue: Arc<Queue>,
}

impl Store {
    /// Opens the store at `address`, bringing an older one up to date; a file is backed up first. A file that
    /// is not a store is refused untouched.
    pub fn open(
        address: &StoreAddress,
        now: Timestamp,
        options: Options,
    ) -> Result<Self, StoreError> {
        Ok(Self::at(match address {
            StoreAddress::File(path) => Backend::File(FileBackend::open(path, now, options)?),
            StoreAddress::Server(server) => {
                Backend::Server(Box::new(ServerBackend::open(server, now, options)?))
            }
        }))
    }

    /// Makes a store at `address`, or opens the one that is there.
    pub fn create(
        address: &StoreAddress,
        now: Timestamp,
        options: Options,
    ) -> Result<Self, StoreError> {
        Ok(Self::at(match address {
            StoreAddress::File(path) => Backend::File(FileBackend::create(path, now, options)?),
            StoreAddress::Server(server) => {
                Backend::Server(Box::new(ServerBackend::create(server, now, options)?))
            }
        }))
    }

    /// A store that lives as long as this value, for tests and the simulator.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::in_memory_with(LeaseClock::Caller)
    }

    /// A store that lives as long as this value, with this clock.
    pub fn in_memory_with(clock: LeaseClock) -> Result<Self, StoreError> {
        Ok(Self::at(Backend::Memory(MemoryBackend::new(clock)?)))
    }

    fn at(place: Backend) -> Self {
        Self { place: Arc::new(place), queue: Arc::default() }
    }

    /// Runs `work` on one consistent state of the store.
    pub fn read<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&Reader<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.place.read(work)
    }

    /// Like [`Store::read`], without one state for all statements of `work`, which may be run twice. It costs less where `work`
    /// needs only one statement.
    pub fn read_newest<T, E: From<StoreError>>(
        &self,
        work: impl Fn(&Reader<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        if let Backend::Server(place) = &*self.place
            && let Some(done) = place.alone(|session| work(&Reader::new(session)))
        {
            return done;
        }
        self.place.read(work)
    }

    /// Renews the lease of a host as its daemon, with one statement that waits for no other writer, and says the number of the
    /// last event. Nothing if the store does not know the host, or cannot do so: [`Writer::renew_host`] always can.
    pub fn renew_known_host(
        &self,
        host: &HostRow,
        declared: &HostDeclaration,
    ) -> Result<Option<u64>, StoreError> {
        match &*self.place {
            Backend::Server(place) => place
                .alone(|session| renew_known_host(&Reader::new(session), host, declared))
                .unwrap_or(Ok(None)),
            Backend::File(_) | Backend::Memory(_) => Ok(None),
        }
    }

    /// Runs `work` as one transaction: its changes and their events are durable when this
    /// returns `Ok`, and nothing is changed when it returns `Err`.
    pub fn write<T, E: From<StoreError>>(
        &self,
        by: &Authorship,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.place.write(WriteMode::Alone, |group| {
            let value = group.run(by, work)?;
            Ok((value, true))
        })
    }

    /// Runs `work` for each item in one transaction. Each item stands and falls alone.
    pub fn write_each<I, T, E: From<StoreError>>(
        &self,
        by: &Authorship,
        items: impl IntoIterator<Item = I>,
        mut work: impl FnMut(&mut Writer<'_>, I) -> Result<T, E>,
    ) -> Result<Vec<Result<T, E>>, StoreError> {
        self.place.write(WriteMode::Alone, |group| {
            let run = |item| group.run_apart(by, |writer| work(writer, item));
            let results: Vec<Result<T, E>> = items.into_iter().map(run).collect();
            let any = results.iter().any(Result::is_ok);
            Ok((results, any))
        })
    }

    /// Like [`Store::write`], together with all other waiting writes: many callers share
    /// one commit. Each stands and falls alone.
    pub fn submit<T, E>(
        &self,
        by: Authorship,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T, E> + Send + 'static,
    ) -> Ticket<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.queue.submit(&self.place, by, work)
    }

    /// The damage that the engine finds in the file; nothing in a healthy one. A server looks after its
    /// own files.
    pub fn check_file(&self) -> Result<Vec<String>, StoreError> {
        if matches!(*self.place, Backend::Server(_)) {
            return Ok(Vec::new());
        }
        self.read(|reader| {
            let found = reader.rows(QUICK_CHECK, &[], |row| Ok(row.text(0)?.to_owned()))?;
            Ok(found.into_iter().filter(|line| line != "ok").collect())
        })
    }

    pub(crate) fn place(&self) -> &Backend {
        &self.place
    }

    /// Something that says when there may be news.
    pub fn bell(&self) -> Bell {
        match &*self.place {
            Backend::Server(place) => Bell::of_server(place.server()),
            Backend::File(_) | Backend::Memory(_) => Bell::silent(),
        }
    }

    /// A hint that changes with each commit, also of other processes; nothing for a store that is in no file.
    pub fn change_mark(&self) -> Option<ChangeMark> {
        match &*self.place {
            Backend::File(file) => Some(file.change_mark()),
            Backend::Memory(_) | Backend::Server(_) => None,
        }
    }

    /// Where this store is, unless it is in memory.
    pub fn address(&self) -> Option<StoreAddress> {
        match &*self.place {
            Backend::File(file) => Some(StoreAddress::File(file.path().to_owned())),
            Backend::Server(place) => {
                Some(StoreAddress::Server(Box::new(PostgresAddress::clone(place.server()))))
            }
            Backend::Memory(_) => None,
        }
    }

    /// The file this store lives in, if it lives in one.
    pub fn path(&self) -> Option<&Path> {
        match &*self.place {
            Backend::File(file) => Some(file.path()),
            Backend::Memory(_) | Backend::Server(_) => None,
        }
    }
}
