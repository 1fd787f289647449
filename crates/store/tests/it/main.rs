//! The store on SQLite: the conformance suite, random histories, and what only a file can show.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of `Reader<'_>` is not general enough to be passed by name"
)]

mod conformance;
mod history;
mod maintenance;
mod sqlite;
mod statements;
mod subjects;
