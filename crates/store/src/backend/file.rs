//! A store in a file that many processes share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use gt_core::Timestamp;

use super::{lock, snapshot, work_in};
use crate::engine::schema::SQLITE;
use crate::engine::sqlite::{
    Access, FairWriteLock, FileKind, SqliteConnection, WriteTurn, inspect, kind_of, level, migrate,
    open_connection,
};
use crate::engine::{LEVEL, Pool};
use crate::transaction::{Group, Reader};
use crate::{Options, StoreError, WriteMode};

/// The connections to a file, and the lock that its writers take in turn.
#[derive(Debug)]
pub(crate) struct FileBackend {
    path: PathBuf,
    options: Options,
    write_lock: Mutex<Option<Arc<FairWriteLock>>>,
    writer: Mutex<Option<SqliteConnection>>,
    readers: Pool<SqliteConnection>,
    /// Something was written here.
    has_written: AtomicBool,
}

/// How a file of commits looks: it looks different after a commit, for the price of one system call. Two commits within one tick of
/// the kernel's clock may look alike, so it is a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeMark(Option<(u64, Option<SystemTime>)>);

/// How long a log a writer may leave when it goes: the next process that opens the store alone reads it.
const LOG_BYTES_MAX_AT_CLOSE: u64 = 1024 * 1024;
/// How long the log may get meanwhile: a caller that has just committed should not wait for the fold.
const LOG_BYTES_MAX_ALONE: u64 = 4 * 1024 * 1024;
/// How long the log may get under a writer that stays and has others wait in groups.
const LOG_BYTES_MAX_GROUPED: u64 = 32 * 1024 * 1024;

impl FileBackend {
    /// Opens the store at `path`, bringing an older one up to date after a backup.
    pub(crate) fn open(path: &Path, now: Timestamp, options: Options) -> Result<Self, StoreError> {
        inspect(path)?;
        let place = Self::at(path, options);
        let reader = open_connection(path, Access::Read)?;
        // Only an out-of-date store needs the right to write.
        if migrate_is_needed(&reader, path)? {
            drop(reader);
            place.bring_up_to_date(Access::Write, now)?;
        } else {
            place.readers.keep(reader);
        }
        Ok(place)
    }

    /// Makes a store at `path`, or opens the one that is there.
    pub(crate) fn create(
        path: &Path,
        now: Timestamp,
        options: Options,
    ) -> Result<Self, StoreError> {
        match kind_of(path)? {
            FileKind::Absent => {
                let place = Self::at(path, options);
                place.bring_up_to_date(Access::Create, now)?;
                Ok(place)
            }
            FileKind::Store | FileKind::Foreign(_) => Self::open(path, now, options),
        }
    }

    fn at(path: &Path, options: Options) -> Self {
        Self {
            path: path.to_owned(),
            options,
            write_lock: Mutex::default(),
            writer: Mutex::default(),
            // Every reader has a file of its own to read; there is nothing to run out of.
            readers: Pool::new(usize::MAX, Duration::ZERO),
            has_written: AtomicBool::new(false),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What a commit of any process changes: the log that it is written to.
    pub(crate) fn change_mark(&self) -> ChangeMark {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let about = std::fs::metadata(log).ok();
        ChangeMark(about.map(|about| (about.len(), about.modified().ok())))
    }

    pub(super) fn read<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&Reader<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.with_reader(|connection| snapshot(connection, work))
    }

    pub(super) fn with_reader<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&SqliteConnection) -> Result<T, E>,
    ) -> Result<T, E> {
        self.readers.with(|| open_connection(&self.path, Access::Read), work)
    }

    /// Folds the log into the file and writes the file anew. Other writers wait for their turn;
    /// readers go on.
    pub(super) fn vacuum(&self) -> Result<(), StoreError> {
        let guard = self.writer(Access::Write)?;
        let write_lock = self.write_lock()?;
        let _turn = self.enter(&write_lock)?;
        let connection = connected(&guard)?;
        connection.shorten_log(0);
        self.check_room()?;
        connection.vacuum()?;
        connection.shorten_log(0);
        Ok(())
    }

    /// The new file is made aside, and then goes through the log.
    fn check_room(&self) -> Result<(), StoreError> {
        let io = |source| StoreError::Io { action: "look at", path: self.path.clone(), source };
        let needed_bytes = std::fs::metadata(&self.path).map_err(io)?.len() * 2;
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let system = rustix::fs::statvfs(directory).map_err(|error| io(error.into()))?;
        let free_bytes = system.f_bavail.saturating_mul(system.f_frsize);
        if free_bytes < needed_bytes {
            return Err(StoreError::NoRoom { path: self.path.clone(), needed_bytes, free_bytes });
        }
        Ok(())
    }

    pub(super) fn write<T, E: From<StoreError>>(
        &self,
        writes: WriteMode,
        work: impl FnOnce(&mut Group<'_>) -> Result<(T, bool), E>,
    ) -> Result<T, E> {
        let mut guard = self.writer(Access::Write)?;
        let write_lock = self.write_lock()?;
        let _turn = self.enter(&write_lock)?;
        let connection = connected(&guard)?;
        let notice = self.options.on_wait.as_ref();
        connection.begin_writing_within(notice, &|| self.lock_timeout())?;
        let (value, committed) = work_in(Group::begun(connection)?, work)?;
        if committed {
            self.has_written.store(true, Ordering::Relaxed);
            connection.shorten_log(match writes {
                WriteMode::Alone => LOG_BYTES_MAX_ALONE,
                WriteMode::Grouped => LOG_BYTES_MAX_GROUPED,
            });
        }
        if writes == WriteMode::Alone
            && self.readers.has_no_idle()
            && let Some(connection) = guard.take()
        {
            // The next read uses the same connection: another one would read the whole schema, and prepare every
            // statement again, which is most of the cost of a short command.
            self.readers.keep(connection);
        }
        Ok(value)
    }

    fn bring_up_to_date(&self, access: Access, now: Timestamp) -> Result<(), StoreError> {
        let write_lock = self.write_lock()?;
        let _turn = self.enter(&write_lock)?;
        let guard = self.writer(access)?;
        migrate(connected(&guard)?, &self.path, SQLITE, now).map(drop)
    }

    /// Waits for the turn to write, at most as long as `store.lock_timeout` says.
    fn enter<'t>(&self, write_lock: &'t FairWriteLock) -> Result<WriteTurn<'t>, StoreError> {
        write_lock.enter(self.options.on_wait.as_ref(), &|| self.lock_timeout())
    }

    /// How long a write waits for another one. Reading does not wait for a writer, so this can be read meanwhile; where it
    /// cannot, the default holds.
    fn lock_timeout(&self) -> Option<Duration> {
        let below = self.options.settings_below.as_ref().map(|read| read()).unwrap_or_default();
        let layers = self.read(|reader| reader.settings_over(&below));
        let layers = layers.ok().and_then(Result::ok).unwrap_or_default();
        layers.store_lock_timeout().ok().filter(|limit| !limit.is_zero())
    }

    fn write_lock(&self) -> Result<Arc<FairWriteLock>, StoreError> {
        let mut slot = lock(&self.write_lock);
        if let Some(write_lock) = &*slot {
            return Ok(Arc::clone(write_lock));
        }
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let write_lock = Arc::new(FairWriteLock::open(directory)?);
        *slot = Some(Arc::clone(&write_lock));
        Ok(write_lock)
    }

    fn writer(
        &self,
        access: Access,
    ) -> Result<MutexGuard<'_, Option<SqliteConnection>>, StoreError> {
        let mut guard = lock(&self.writer);
        if guard.is_none() {
            *guard = Some(match self.readers.take() {
                Some(reader) => reader.into_writer()?,
                None => open_connection(&self.path, access)?,
            });
        }
        Ok(guard)
    }
}

impl Drop for FileBackend {
    fn drop(&mut self) {
        if !self.has_written.load(Ordering::Relaxed) {
            return;
        }
        let writer = lock(&self.writer).take().or_else(|| self.readers.take()?.into_writer().ok());
        if let Some(connection) = writer {
            connection.shorten_log(LOG_BYTES_MAX_AT_CLOSE);
        }
    }
}

fn connected<'g>(
    guard: &'g MutexGuard<'_, Option<SqliteConnection>>,
) -> Result<&'g SqliteConnection, StoreError> {
    guard.as_ref().ok_or_else(|| StoreError::NotCommitted("the store is closed".to_owned()))
}

fn migrate_is_needed(connection: &SqliteConnection, path: &Path) -> Result<bool, StoreError> {
    let (found, needed) = level(connection)?;
    if needed > LEVEL {
        let place = path.display().to_string();
        return Err(StoreError::TooNew { place, found, needed, known: LEVEL });
    }
    Ok(found < LEVEL)
}
