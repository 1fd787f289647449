//! SQLite: one file, many readers, one writer.

mod connection;
mod file;
mod migrate;
mod turnstile;
mod upkeep;

pub(crate) use connection::{Access, Connection, memory_connection, open_connection};
pub(crate) use file::{FileKind, inspect, kind_of};
pub(crate) use migrate::{level, migrate};
pub use turnstile::{Turn, Turnstile};
pub(crate) use upkeep::{QUICK_CHECK, check_quickly};
