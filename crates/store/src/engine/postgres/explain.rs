//! PostgreSQL's errors in words that tell a person how to proceed.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

use super::address::PostgresAddress;
use crate::StoreError;

/// The code of the error that a fence raises.
pub(super) const FENCED: &str = "GT001";

/// Whether the connection is gone, so that nothing more can be asked over it. After FATAL and PANIC the server ends it.
pub(super) fn is_lost(error: &Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    if matches!(severity, Some(Severity::Fatal | Severity::Panic)) {
        return true;
    }
    match error.code() {
        Some(code) => {
            code.code().starts_with("08")
                || [
                    SqlState::ADMIN_SHUTDOWN,
                    SqlState::CRASH_SHUTDOWN,
                    SqlState::CANNOT_CONNECT_NOW,
                    SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                    SqlState::IDLE_SESSION_TIMEOUT,
                ]
                .contains(code)
        }
        None => error.is_closed() || is_io(error),
    }
}

/// Whether to connect may work in a moment: the server is starting or stopping, or is full.
pub(super) fn is_passing(error: &Error) -> bool {
    error.code().is_some_and(|code| {
        [
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::TOO_MANY_CONNECTIONS,
        ]
        .contains(code)
    })
}

fn is_io(error: &Error) -> bool {
    error.source().is_some_and(<dyn std::error::Error + 'static>::is::<std::io::Error>)
}

/// Why no connection could be made.
pub(super) fn explain_connecting(server: &PostgresAddress, error: Error) -> StoreError {
    let why = match error.code() {
        Some(code) if *code == SqlState::TOO_MANY_CONNECTIONS => {
            "it has no connection left; end other programs or raise max_connections"
        }
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => {
            "there is no such database; make it with createdb"
        }
        Some(code)
            if *code == SqlState::INVALID_PASSWORD
                || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
        {
            "it refused the login; check the user and the password"
        }
        Some(code) if *code == SqlState::CANNOT_CONNECT_NOW => {
            "it is starting or stopping; try again in a moment"
        }
        _ => "check the address, and that the server is running",
    };
    StoreError::Unreachable { server: server.shown().to_owned(), why, source: Box::new(error) }
}

/// The server took the connection and then said nothing.
pub(super) fn silent(server: &PostgresAddress) -> StoreError {
    StoreError::Unreachable {
        server: server.shown().to_owned(),
        why: "it does not answer; check that the server is running and nothing is stuck in between",
        source: Box::new(std::io::Error::from(std::io::ErrorKind::TimedOut)),
    }
}

/// Why a statement failed.
pub(super) fn explain(
    server: &PostgresAddress,
    doing: &str,
    reading: bool,
    error: Error,
) -> StoreError {
    if is_lost(&error) {
        return lost(server, reading, error);
    }
    let Some(code) = error.code() else {
        return StoreError::Engine { doing: doing.to_owned(), source: Box::new(error) };
    };
    if let Some(said) = error.as_db_error().filter(|_| code.code() == FENCED) {
        return StoreError::Fenced(said.message().to_owned());
    }
    match *code {
        SqlState::DISK_FULL => StoreError::Full,
        SqlState::LOCK_NOT_AVAILABLE => StoreError::Locked(None),
        SqlState::INSUFFICIENT_PRIVILEGE | SqlState::READ_ONLY_SQL_TRANSACTION => {
            StoreError::NotPermitted { server: server.shown().to_owned(), source: Box::new(error) }
        }
        SqlState::INVALID_SQL_STATEMENT_NAME | SqlState::DUPLICATE_PSTATEMENT => {
            StoreError::Pooler(server.shown().to_owned())
        }
        _ => StoreError::Engine { doing: doing.to_owned(), source: Box::new(error) },
    }
}

/// The connection broke before this transaction was committed.
pub(super) fn lost(server: &PostgresAddress, reading: bool, error: Error) -> StoreError {
    StoreError::Disconnected { server: server.shown().to_owned(), reading, source: Box::new(error) }
}
