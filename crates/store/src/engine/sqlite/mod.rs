//! SQLite: one file, many readers, one writer.

mod connection;
mod fair_write_lock;
mod file;
mod foreign_writer;
mod migrate;
mod upkeep;

pub(crate) use connection::{Access, SqliteConnection, memory_connection, open_connection};
pub use fair_write_lock::{FairWriteLock, WriteTurn};
pub(crate) use file::{FileKind, inspect, kind_of};
pub(crate) use migrate::{level, make_backup_directory, migrate};
pub(crate) use upkeep::{QUICK_CHECK, check_quickly};
