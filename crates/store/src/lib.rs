//! The store: the only place with SQL.
//!
//! # Architecture invariants
//!
//! - Callers speak domain verbs and types; no SQL and no row leaves this crate. [`Reader::select`] alone takes a query that a
//!   person wrote, and only reads.
//! - One writer at a time, in the process and across processes. A write transaction holds nothing but
//!   SQL, writes the events of its changes, and numbers them without gaps.
//! - The verbs in [`Reader`] and [`Writer`] are written once, over the small [`engine`] seam, in SQL
//!   that both engines understand. An engine knows how to connect, begin, commit and bind; it knows
//!   no table.
//! - Derived values (`open_blockers`, `blocking`, counters) are kept by the verb that changes what
//!   they derive from. [`Reader::differences`] recomputes all of them from scratch.

mod backend;
mod backup;
mod bell;
mod copy;
mod dump;
pub mod engine;
mod error;
mod group;
mod maintenance;
mod relocation;
mod store;
mod transaction;
mod verbs;

pub use backend::ChangeMark;
pub use backup::IfFileExists;
pub use bell::{Bell, BellState};
pub use copy::{ColumnKind, CopiedTable, NOT_COPIED, OnCopyProgress, TABLES};
pub use dump::dump;
pub use engine::postgres::PostgresAddress;
pub use engine::{EngineFacts, LongWaitCallback, QueryTable, QueryValue};
pub use error::StoreError;
pub use group::Ticket;
pub use maintenance::{Backup, StoreCheckResult, StoreDescription, TableSize, VacuumResult};
pub use relocation::{CopiedRows, StoreFence};
pub(crate) use store::WriteMode;
pub use store::{
    Authorship, LeaseClock, Options, Proof, SCHEMA_LEVEL, SettingsBelow, Store, StoreAddress,
    Worker,
};
pub use transaction::{Reader, Writer, statements_run_by_this_thread};
pub use verbs::{
    BeadFilter, BeadOrder, BeadRow, Between, BlockerFacts, BoardFilter, Bulk, CandidateCheck,
    CheckNumbers, ConvoyTally, CountGroup, DependencyChange, Difference, DoneStep, DueNotices,
    EventFilter, Growth, Guard, HostDeclaration, HostRecord, HostRow, Lane, LiveSteps, Member,
    MemberRow, MemoryEstimate, MergeQueueRow, NewContext, Offer, Offered, Pause, PullQuery,
    QueueNumbers, QueuedMember, Readiness, RedTarget, RequestFilter, RigCounts, RunNumbers,
    RunOutputTail, RunPage, SchedulerState, SettingScope, SpendingEntry, Statistics, StatusFilter,
    StoreMarks, Totals, TouchedContainer, TownNumbers, Unscheduled, UnsentNotices, UsageAt,
    all_statements, differing_fields,
};
