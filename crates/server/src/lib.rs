//! The work queue over HTTP: its API, and the headers and answers that clients of such services expect.
//!
//! # Architecture invariants
//!
//! - A handler reads the request, asks one operation, and writes the answer. The operations decide the meaning of
//!   work.
//! - Nothing waits for the store on a thread that serves connections: reads go to threads that may wait, writes of many
//!   callers share a commit. Only one item of a file is read right there, because that is over before another thread is
//!   awake, and because readers of a file wait for no writer.
//! - One thread reads the event log for all listeners; a listener that falls behind reads the store for itself, so that
//!   nothing is skipped and nothing comes twice.
//! - Every error is `application/problem+json` and says what to do next. No secret is in an answer or in the log.
//! - Everything has a limit: connections, requests at a time, bytes, time. A connection or request over a limit gets an
//!   answer that says so. A connection that has not shown a token where tokens are needed, or made no request at all,
//!   gives way to a newer one.
//! - The flight deck needs a login always. A cookie identifies a session, and allows nothing by itself.
//! - A revoked token is refused when `gt token revoke` returns; streams and waiting requests of it end.
//! - The description at `/openapi.json` is made from the routes themselves.

mod access_log;
mod answer;
mod auth;
mod body;
mod config;
mod connections;
mod deck_access;
mod event_broadcast;
mod metrics;
mod middleware;
mod problem;
mod query;
mod routes;
mod screens;
mod server;
mod service;
mod side_server;
mod town_metrics;
mod unproven_connections;
mod upkeep;
mod wait_lines;

pub use config::{
    AllowedOrigin, Bind, DEFAULT_PORT, LogSink, ServeError, ServerConfig, ServerLimits,
};
pub use routes::openapi_json;
pub use server::{Server, Stopper};
pub use side_server::{ServerLog, SideServer};
