//! The store on both engines: the conformance suite, random histories, and the behaviour of a single engine.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of `Reader<'_>` is not general enough to be passed by name"
)]

mod conformance;
mod deferred;
mod differential;
mod history;
mod maintenance;
mod postgres;
mod replay;
mod sqlite;
mod statements;
mod subjects;
mod upgrades;
