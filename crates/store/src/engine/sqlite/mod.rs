//! SQLite: one file, many readers, one writer.

mod connection;
mod file;
mod migrate;
mod turnstile;

pub(crate) use connection::{Access, Connection, memory_connection, open_connection};
pub use file::inspect;
pub(crate) use file::{FileKind, kind_of};
pub(crate) use migrate::{LEVEL, MIGRATIONS, level, migrate};
pub use turnstile::{Notice, Turn, Turnstile};
