//! Opening a store, and the two ways in: [`Store::read`] and [`Store::write`].

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gt_core::Timestamp;

use crate::engine::sqlite::{
    Access, Connection, FileKind, LEVEL, MIGRATIONS, Notice, Turnstile, kind_of, memory_connection,
    migrate, open_connection,
};
use crate::group::{Queue, Ticket};
use crate::transaction::{Group, Reader, Snapshot, Writer};
use crate::{StoreError, inspect};

/// The schema this program knows.
pub const SCHEMA_LEVEL: i64 = LEVEL;

/// Who writes, and when they said so.
#[derive(Debug, Clone)]
pub struct Authorship {
    /// Who.
    pub actor: String,
    /// When.
    pub at: Timestamp,
}

/// How a store is opened.
#[derive(Clone, Default)]
pub struct Options {
    /// Called once when a write has waited for others for a second.
    pub on_wait: Option<Notice>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

/// A town's records. Cheap to clone; every clone is the same store.
#[derive(Debug, Clone)]
pub struct Store {
    core: Arc<Core>,
    queue: Arc<Queue>,
}

/// The connections, shared by the callers and the thread that groups their writes.
#[derive(Debug)]
pub(crate) struct Core {
    place: Place,
    writer: Mutex<Option<Connection>>,
    readers: Mutex<Vec<Connection>>,
}

#[derive(Debug)]
enum Place {
    File { path: PathBuf, turnstile: Mutex<Option<Arc<Turnstile>>>, options: Options },
    Memory,
}

/// How long the log may get when writers come and go, each reading it when it opens the store.
const LOG_BYTES_ALONE: u64 = 1024 * 1024;
/// How long the log may get under a writer that stays.
pub(crate) const LOG_BYTES_GROUPED: u64 = 32 * 1024 * 1024;

impl Store {
    /// Opens the store at `path`, bringing an older one up to date after a backup. A file that is not
    /// a store is refused untouched.
    pub fn open(path: &Path, now: Timestamp, options: Options) -> Result<Self, StoreError> {
        inspect(path)?;
        let core = Core::at_file(path, options);
        let reader = open_connection(path, Access::Read)?;
        // Only an out-of-date store needs the right to write.
        if migrate_is_needed(&reader, path)? {
            drop(reader);
            core.bring_up_to_date(Access::Write, now)?;
        } else {
            core.readers().push(reader);
        }
        Ok(Self::from_core(core))
    }

    /// Makes a store at `path`, or opens the one that is there.
    pub fn create(path: &Path, now: Timestamp, options: Options) -> Result<Self, StoreError> {
        match kind_of(path)? {
            FileKind::Absent => {
                let core = Core::at_file(path, options);
                core.bring_up_to_date(Access::Create, now)?;
                Ok(Self::from_core(core))
            }
            FileKind::Store | FileKind::Foreign(_) => Self::open(path, now, options),
        }
    }

    /// A store that lives as long as this value, for tests and the simulator.
    pub fn in_memory() -> Result<Self, StoreError> {
        let connection = memory_connection()?;
        let epoch = Timestamp::from_nanos(0);
        migrate(&connection, Path::new(":memory:"), MIGRATIONS, epoch)?;
        Ok(Self::from_core(Core {
            place: Place::Memory,
            writer: Mutex::new(Some(connection)),
            readers: Mutex::default(),
        }))
    }

    fn from_core(core: Core) -> Self {
        Self { core: Arc::new(core), queue: Arc::default() }
    }

    /// Runs `work` on one consistent state of the store.
    pub fn read<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&Reader<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        match &self.core.place {
            Place::Memory => {
                let guard = self.core.writer(Access::Write)?;
                let snapshot = Snapshot::begin(connected(&guard)?)?;
                snapshot.run(work)
            }
            Place::File { path, .. } => {
                let pooled = self.core.readers().pop();
                let connection = match pooled {
                    Some(connection) => connection,
                    None => open_connection(path, Access::Read)?,
                };
                let result = Snapshot::begin(&connection)?.run(work);
                self.core.readers().push(connection);
                result
            }
        }
    }

    /// Runs `work` as one transaction: what it changed and the events of it are durable when this
    /// returns `Ok`, and nothing is changed when it returns `Err`.
    pub fn write<T, E: From<StoreError>>(
        &self,
        by: &Authorship,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.core.with_group(LOG_BYTES_ALONE, |group| {
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
        self.core.with_group(LOG_BYTES_ALONE, |group| {
            let run = |item| group.run_apart(by, |writer| work(writer, item));
            let results: Vec<Result<T, E>> = items.into_iter().map(run).collect();
            let any = results.iter().any(Result::is_ok);
            Ok((results, any))
        })
    }

    /// Like [`Store::write`], together with whatever else is waiting to be written: many callers share
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
        self.queue.submit(&self.core, by, work)
    }

    /// What the engine finds wrong with the file; nothing in a healthy one.
    pub fn check_file(&self) -> Result<Vec<String>, StoreError> {
        self.read(|reader| {
            let found =
                reader.rows("PRAGMA quick_check", &[], |row| Ok(row.text(0)?.to_owned()))?;
            Ok(found.into_iter().filter(|line| line != "ok").collect())
        })
    }

    /// The file this store lives in, unless it lives in memory.
    pub fn path(&self) -> Option<&Path> {
        match &self.core.place {
            Place::File { path, .. } => Some(path),
            Place::Memory => None,
        }
    }
}

impl Core {
    fn at_file(path: &Path, options: Options) -> Self {
        Self {
            place: Place::File { path: path.to_owned(), turnstile: Mutex::default(), options },
            writer: Mutex::default(),
            readers: Mutex::default(),
        }
    }

    /// Runs `work` inside a write transaction and commits it if `work` says that anything is worth
    /// committing.
    pub(crate) fn with_group<T, E: From<StoreError>>(
        &self,
        log_bytes_max: u64,
        work: impl FnOnce(&mut Group<'_>) -> Result<(T, bool), E>,
    ) -> Result<T, E> {
        let guard = self.writer(Access::Write)?;
        let turnstile = self.turnstile()?;
        let _turn = match (&turnstile, &self.place) {
            (Some(turnstile), Place::File { options, .. }) => {
                Some(turnstile.enter(options.on_wait.as_ref())?)
            }
            _ => None,
        };
        let mut group = Group::begin(connected(&guard)?)?;
        let (value, worth_committing) = work(&mut group)?;
        if worth_committing {
            group.commit()?;
            connected(&guard)?.shorten_log(log_bytes_max);
        }
        Ok(value)
    }

    fn bring_up_to_date(&self, access: Access, now: Timestamp) -> Result<(), StoreError> {
        let Place::File { path, options, .. } = &self.place else {
            return Ok(());
        };
        let turnstile = self.turnstile()?;
        let _turn = turnstile.as_ref().map(|t| t.enter(options.on_wait.as_ref())).transpose()?;
        let guard = self.writer(access)?;
        migrate(connected(&guard)?, path, MIGRATIONS, now).map(drop)
    }

    fn turnstile(&self) -> Result<Option<Arc<Turnstile>>, StoreError> {
        let Place::File { path, turnstile, .. } = &self.place else {
            return Ok(None);
        };
        let mut slot = turnstile.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            let directory = path.parent().unwrap_or(Path::new("."));
            *slot = Some(Arc::new(Turnstile::open(directory)?));
        }
        Ok(slot.clone())
    }

    fn writer(&self, access: Access) -> Result<MutexGuard<'_, Option<Connection>>, StoreError> {
        // A panic inside a transaction rolled it back, so the connection is still good.
        let mut guard = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Place::File { path, .. }) = (&*guard, &self.place) {
            let idle = self.readers().pop();
            *guard = Some(match idle {
                Some(reader) => reader.into_writer()?,
                None => open_connection(path, access)?,
            });
        }
        Ok(guard)
    }

    fn readers(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connected<'g>(
    guard: &'g MutexGuard<'_, Option<Connection>>,
) -> Result<&'g Connection, StoreError> {
    guard.as_ref().ok_or_else(|| StoreError::NotCommitted("the store is closed".to_owned()))
}

fn migrate_is_needed(connection: &Connection, path: &Path) -> Result<bool, StoreError> {
    let (found, needed) = crate::engine::sqlite::level(connection)?;
    if needed > LEVEL {
        return Err(StoreError::TooNew { path: path.to_owned(), found, needed, known: LEVEL });
    }
    Ok(found < LEVEL)
}
