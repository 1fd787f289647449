//! Commands of workers, carried out by a process that has the store.
//!
//! A worker's `gt` and `bd` open no store. They send their arguments, standard input and directory to a socket, as messages of
//! [`protocol`], and print the answer. The daemon or the supervisor of the run listens there ([`CallServer`]).
//!
//! # Invariants
//!
//! - A call never reaches the store by another way: without an answer it fails, or, if it may be done twice, is made again.
//! - A process of another user is not served, and is not asked.
//! - A file that a worker names is opened by the worker's own process.
//! - Input that cannot be understood ends its own call and nothing else.

mod caller_connection;
mod client;
mod files;
mod frames;
mod path;
mod peer;
pub mod protocol;
mod runner;
mod server;

pub use caller_connection::{CallerFile, CallerFiles};
pub use client::{CallError, Calling};
pub use files::WholeFile;
pub use path::{SOCKET_BYTES_MAX, short_path};
pub use protocol::{CALL_PROTOCOL, CallRequest, OutputStream, SOCKETS, TOKEN_FILE};
pub use runner::{CallRunner, CallStreams, CallerOutput, OutputSink};
pub use server::CallServer;
