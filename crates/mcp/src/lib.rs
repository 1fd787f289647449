//! The Model Context Protocol: how agents call the town.
//!
//! A worker gets tools for its own run alone; an operator gets tools for the town. Both call the operations that commands and
//! HTTP routes call.
//!
//! # Architecture invariants
//!
//! - Only this crate knows the protocol and its library. A tool reads its arguments, calls an operation and answers in a few
//!   lines; it holds no rule of the domain and no SQL.
//! - The caller decides the role: its run token makes a worker, everything else an operator. A tool cannot change it.
//! - No input ends the server: a request that cannot be read gets an error, and the next one is read.

mod answers;
mod arguments;
mod caller;
mod catalog;
mod http_service;
mod operator_tools;
mod resources;
mod server;
mod session_limit;
mod stdio;
mod subscriptions;
#[cfg(test)]
mod tests;
mod worker_tools;

pub use caller::{McpCaller, McpRights, McpRole};
pub use catalog::{ToolDefinition, tools_of};
pub use http_service::{McpHttpService, http_service};
pub use server::McpServer;
pub use session_limit::{LimitedSessions, SessionProblem, TooManySessions, within_session_limit};
pub use stdio::{serve_stdio, serve_streams};
