//! What a user can ask for.
//!
//! # Architecture invariants
//!
//! - An operation reads facts from the store, asks a pure decision of [`gt_core::decide`] what to do,
//!   and writes the answer in the same transaction. Nothing else writes state.
//! - Operations know neither terminal nor arguments; commands, server and daemon call the same ones.
//! - The clock and the identity of the actor come with the [`Town`].

pub mod accounts;
pub mod adopt;
pub mod batch;
pub mod beads;
#[cfg(test)]
mod beside_runs;
mod clock;
mod consequences;
pub mod convoys;
pub mod daemon;
pub mod demo;
pub mod dependencies;
pub mod dispatch;
mod error;
pub mod events;
pub mod formulas;
pub mod health;
pub mod hooks;
pub mod hosts;
mod identity;
pub mod interchange;
mod kept;
pub mod landing;
mod machine;
pub mod messages;
pub mod notes;
pub mod outbox;
pub mod parallel;
pub mod queue;
mod reconcile;
pub mod recovery;
pub mod retention;
pub mod rigs;
pub mod runs;
pub mod runtimes;
pub mod schedule;
pub mod settings;
pub mod store;
pub mod tokens;
mod town;
pub mod trees;
pub mod work;
pub mod worker;

pub use clock::SystemClock;
pub use error::{OperationError, Result, with_causes};
pub use identity::{Actor, Environment};
pub use machine::{Machine, RealMachine};
pub use reconcile::{convoys as attend_convoys, warm_trees};
pub use town::{IfAbsent, Installed, Town, TownFile, install, start_store};

// What the commands need to name, so that they need not know the store.
pub use gt_store::{
    BeadFilter, BeadOrder, BeadRow, Bell, Between, BlockerFacts, CountGroup, EventFilter,
    Options as StoreOptions, Readiness, RigCounts, Scope, Statistics, StatusFilter, StoreError,
    UnsentNotices,
};
