//! A town and what it is made of: its directory, settings, rigs, formulas and hosts.
//!
//! # Invariants
//!
//! - [`Town`] is the only way to the store. Every write runs the [`CommitHook`]s of the town in the same transaction.
//! - The clock and the identity of the actor come with the [`Town`]; no operation asks the machine for them.
//! - Nothing here knows beads, schedules or processes.

pub mod clock;
pub mod deck;
pub mod error;
pub mod file_settings;
pub mod formulas;
pub mod hosting;
pub mod hosts;
pub mod identity;
pub mod landing_identity;
pub mod lease_host;
pub mod machine;
pub mod named_cache;
pub mod pager;
pub mod parallel;
pub mod rig_names;
pub mod rigs;
pub mod scheduler_settings;
pub mod settings;
pub mod town;
pub mod tree_paths;

pub use clock::SystemClock;
pub use error::{OperationError, Result, with_causes};
pub use identity::{Actor, Environment};
pub use lease_host::{HostLease, LeaseHost};
pub use machine::{Machine, RealMachine};
pub use town::{
    CommitFollower, CommitHook, IfAbsent, Installed, StoreMove, Town, TownFile, install, join,
    move_store, start_store,
};

// The types of the store that commands name.
pub use gt_store::{
    BeadFilter, BeadOrder, BeadRow, Bell, BellState, Between, BlockerFacts, ChangeMark,
    CheckNumbers, CountGroup, EventFilter, Options as StoreOptions, QueryTable, QueryValue,
    QueueNumbers, Readiness, RigCounts, RunNumbers, SettingScope, Statistics, StatusFilter,
    StoreError, TownNumbers, UnsentNotices,
};
