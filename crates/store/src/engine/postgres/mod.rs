//! PostgreSQL: one schema of one database, many hosts, one writer.

mod address;
mod client_session;
mod connection;
mod explain;
mod listen;
mod migrate;
mod tls;
mod upkeep;
mod values;
mod wire;

pub use address::Server;
pub(crate) use connection::Connection;
pub(crate) use listen::Listener;
pub(crate) use migrate::{create, level};
