//! A store that lives as long as its connection.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use gt_core::Timestamp;

use super::{group, lock, snapshot};
use crate::engine::schema::SQLITE;
use crate::engine::sqlite::{SqliteConnection, memory_connection, migrate};
use crate::transaction::{Group, Reader};
use crate::{LeaseClock, StoreError};

/// One connection that all callers share.
#[derive(Debug)]
pub(crate) struct MemoryBackend(Mutex<SqliteConnection>);

impl MemoryBackend {
    pub(crate) fn new(clock: LeaseClock) -> Result<Self, StoreError> {
        let connection = memory_connection(clock)?;
        migrate(&connection, Path::new(":memory:"), SQLITE, Timestamp::from_nanos(0))?;
        Ok(Self(Mutex::new(connection)))
    }

    pub(super) fn connection(&self) -> MutexGuard<'_, SqliteConnection> {
        lock(&self.0)
    }

    pub(super) fn read<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&Reader<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        snapshot(&*self.connection(), work)
    }

    pub(super) fn write<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&mut Group<'_>) -> Result<(T, bool), E>,
    ) -> Result<T, E> {
        group(&*self.connection(), work).map(|(value, _)| value)
    }
}
