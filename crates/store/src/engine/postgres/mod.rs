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

pub use address::PostgresAddress;
pub(crate) use connection::PostgresConnection;
pub(crate) use listen::NotificationListener;
pub(crate) use migrate::{create, level};
