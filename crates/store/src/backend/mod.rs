//! Where a store is, and how one gets at it there.

mod file;
mod memory;
mod server;

pub use file::ChangeMark;
pub(crate) use file::FileBackend;
pub(crate) use memory::MemoryBackend;
pub(crate) use server::ServerBackend;

use std::sync::{Mutex, MutexGuard, PoisonError};

use gt_core::limits::{SERVER_WRITE_GROUP_MAX, WRITE_GROUP_MAX};

use crate::engine::{TransactionConnection, Upkeep};
use crate::transaction::{Group, ReadTransaction, Reader};
use crate::{StoreError, WriteMode};

/// The backend of a store.
#[derive(Debug)]
pub(crate) enum Backend {
    File(FileBackend),
    Memory(MemoryBackend),
    Server(Box<ServerBackend>),
}

impl Backend {
    /// How many jobs may share a commit.
    pub(crate) fn group_max(&self) -> usize {
        match self {
            Self::File(_) | Self::Memory(_) => WRITE_GROUP_MAX,
            Self::Server(_) => SERVER_WRITE_GROUP_MAX,
        }
    }

    /// Runs `work` on one consistent state of the store.
    pub(crate) fn read<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&Reader<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        match self {
            Self::File(file) => file.read(work),
            Self::Memory(memory) => memory.read(work),
            Self::Server(server) => server.read(work),
        }
    }

    /// Runs `work` on one consistent state of the store, with the database itself at hand.
    pub(crate) fn with_upkeep<T>(
        &self,
        work: impl FnOnce(&dyn Upkeep, &Reader<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::File(file) => file.with_reader(|link| with_upkeep(link, work)),
            Self::Memory(memory) => with_upkeep(&*memory.connection(), work),
            Self::Server(server) => server.with_reader(|link| with_upkeep(link, work)),
        }
    }

    /// Gives back the room of deleted rows, while writers wait or go on.
    pub(crate) fn vacuum(&self) -> Result<(), StoreError> {
        match self {
            Self::File(file) => file.vacuum(),
            Self::Memory(memory) => memory.connection().vacuum(),
            Self::Server(server) => {
                server.with_reader(crate::engine::postgres::PostgresConnection::vacuum)
            }
        }
    }

    /// Runs `work` inside a write transaction and commits it if `work` says that anything is worth
    /// committing.
    pub(crate) fn write<T, E: From<StoreError>>(
        &self,
        writes: WriteMode,
        work: impl FnOnce(&mut Group<'_>) -> Result<(T, bool), E>,
    ) -> Result<T, E> {
        match self {
            Self::File(file) => file.write(writes, work),
            Self::Memory(memory) => memory.write(work),
            Self::Server(server) => server.write(work),
        }
    }
}

fn snapshot<T, E: From<StoreError>>(
    link: &impl TransactionConnection,
    work: impl FnOnce(&Reader<'_>) -> Result<T, E>,
) -> Result<T, E> {
    ReadTransaction::begin(link)?.run(work)
}

fn with_upkeep<T>(
    link: &impl Upkeep,
    work: impl FnOnce(&dyn Upkeep, &Reader<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    snapshot(link, |reader| work(link, reader))
}

/// Runs `work` in a transaction; says whether it was committed.
fn group<T, E: From<StoreError>>(
    link: &impl TransactionConnection,
    work: impl FnOnce(&mut Group<'_>) -> Result<(T, bool), E>,
) -> Result<(T, bool), E> {
    work_in(Group::begin(link)?, work)
}

fn work_in<T, E: From<StoreError>>(
    mut group: Group<'_>,
    work: impl FnOnce(&mut Group<'_>) -> Result<(T, bool), E>,
) -> Result<(T, bool), E> {
    let (value, worth_committing) = work(&mut group)?;
    if worth_committing {
        group.commit()?;
    }
    Ok((value, worth_committing))
}

/// A panic inside a transaction rolled it back, so the value behind the lock is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
