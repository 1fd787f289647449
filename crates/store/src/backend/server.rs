//! A store on a PostgreSQL server that many hosts share.

use std::sync::{Arc, Mutex};

use gt_core::Timestamp;

use super::{group, lock, snapshot};
use crate::engine::postgres::{PostgresAddress, PostgresConnection, create, level};
use crate::engine::{LEVEL, Pool, SqlSession};
use crate::transaction::{Group, Reader};
use crate::{Options, StoreError};

/// The connections to a server: one that writes, some that read.
#[derive(Debug)]
pub(crate) struct ServerBackend {
    server: Arc<PostgresAddress>,
    writer: Mutex<Option<PostgresConnection>>,
    readers: Pool<PostgresConnection>,
}

impl ServerBackend {
    /// Opens the store that is there, bringing an older one up to date.
    pub(crate) fn open(
        server: &PostgresAddress,
        now: Timestamp,
        options: Options,
    ) -> Result<Self, StoreError> {
        let place = Self::at(server, options);
        let connection = PostgresConnection::open(&place.server)?;
        match level(&connection, &place.server)? {
            None => return Err(StoreError::Empty(place.server.shown().to_owned())),
            Some(found) if found < LEVEL => create(&connection, &place.server, now)?,
            Some(_) => {}
        }
        place.readers.keep(connection);
        Ok(place)
    }

    /// Makes a store, or opens the one that is there.
    pub(crate) fn create(
        server: &PostgresAddress,
        now: Timestamp,
        options: Options,
    ) -> Result<Self, StoreError> {
        let place = Self::at(server, options);
        let connection = PostgresConnection::open(&place.server)?;
        create(&connection, &place.server, now)?;
        place.readers.keep(connection);
        Ok(place)
    }

    fn at(server: &PostgresAddress, options: Options) -> Self {
        let server = Arc::new(server.clone().with_options(options));
        let readers = Pool::new(server.connections_max, server.pool_wait);
        Self { server, writer: Mutex::default(), readers }
    }

    pub(crate) fn server(&self) -> &Arc<PostgresAddress> {
        &self.server
    }

    pub(super) fn read<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&Reader<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.with_reader(|connection| snapshot(connection, work))
    }

    /// Runs `work` outside of a transaction: each of its statements sees the newest state, and is durable by itself. After a cut
    /// connection it is run once more. Nothing if each statement may reach another session.
    pub(crate) fn alone<T, E: From<StoreError>>(
        &self,
        work: impl Fn(&dyn SqlSession) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        if !self.server.keeps_sessions() {
            return None;
        }
        let once = |connection: &PostgresConnection| {
            connection.begin_alone()?;
            work(connection)
        };
        Some(self.with_reader(|connection| match once(connection) {
            Err(_) if connection.is_cut() => once(connection),
            done => done,
        }))
    }

    pub(super) fn with_reader<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&PostgresConnection) -> Result<T, E>,
    ) -> Result<T, E> {
        self.readers.with(|| PostgresConnection::open(&self.server), work)
    }

    pub(super) fn write<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&mut Group<'_>) -> Result<(T, bool), E>,
    ) -> Result<T, E> {
        let mut guard = lock(&self.writer);
        let connection = match guard.take().or_else(|| self.readers.take()) {
            Some(connection) => connection,
            None => PostgresConnection::open(&self.server)?,
        };
        // A panic drops the connection, and with it the transaction.
        let result = group(&connection, work).map(|(value, _)| value);
        *guard = Some(connection);
        result
    }
}
