//! The scheduler: which work runs next and why, the dispatcher, the queue, and the transitions of runs in the store.
//!
//! # Invariants
//!
//! - Every start goes through [`dispatch`], which checks everything again in the transaction that takes the slot.
//! - Lists, explanations, dry runs and starts ask the same evaluator in [`gt_core::decide`].
//! - Starting a worker is the trait [`dispatch::Spawner`]; this crate has only the one in memory.

pub mod accounts;
pub mod board;
mod consequences;
pub mod convoy_planning;
pub mod costs;
pub mod dispatch;
pub mod fleet;
pub mod host_lease;
pub mod needs;
pub mod processes;
pub mod queue;
pub mod recovery;
pub mod run_transitions;
pub mod runtimes;
pub mod schedule;
pub mod usage_windows;

pub use consequences::Consequences;
