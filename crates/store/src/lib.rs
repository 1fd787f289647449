//! The store: the only place with SQL.
//!
//! # Architecture invariants
//!
//! - Callers speak domain verbs and types; no SQL and no row leaves this crate.
//! - One writer at a time, in the process and across processes. A write transaction holds nothing but
//!   SQL, writes the events of its changes, and numbers them without gaps.
//! - The verbs in [`Reader`] and [`Writer`] are written once, over the small [`engine`] seam, in SQL
//!   that both engines understand. An engine knows how to connect, begin, commit and bind; it knows
//!   no table.
//! - Derived values (`open_blockers`, `blocking`, counters) are kept by the verb that changes what
//!   they derive from. [`Reader::differences`] recomputes all of them from scratch.

mod backup;
mod bell;
#[cfg(feature = "conformance")]
pub mod conformance;
mod copy;
pub mod engine;
mod error;
mod group;
mod maintenance;
mod place;
mod store;
mod transaction;
mod verbs;

pub use backup::Existing;
pub use bell::Bell;
pub use copy::{ColumnKind, NOT_COPIED, Progress, TABLES, Table};
pub use engine::postgres::Server;
pub use engine::{EngineFacts, Notice};
pub use error::StoreError;
pub use group::Ticket;
pub use maintenance::{Backup, Description, Examination, Shrinkage, TableSize};
pub(crate) use store::Writes;
pub use store::{
    Address, Authorship, LeaseClock, Options, Proof, SCHEMA_LEVEL, SettingsBelow, Store, Worker,
};
#[cfg(feature = "conformance")]
pub use transaction::statements_run_by_this_thread;
pub use transaction::{Reader, Writer};
pub use verbs::{
    Ask, BeadFilter, BeadOrder, BeadRow, Between, BlockerFacts, Booking, Bulk, CountGroup,
    DependencyChange, Difference, DoneStep, Due, Estimate, EventFilter, Growth, Guard, HostRow,
    Lane, LiveSteps, NewContext, Offer, Offered, Pause, Readiness, RigCounts, SchedulerState,
    Scope, Sketch, Spent, Statistics, StatusFilter, Tally, Totals, TouchedContainer, Traveller,
    Unscheduled, UnsentNotices, all_statements, differing_fields,
};
