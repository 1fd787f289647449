//! The daemon: an event loop that wakes one reconciler for each kind of work, and the duties it shares with commands.
//!
//! # Invariants
//!
//! - The daemon keeps no state that a restart would lose: it reads everything from the store.
//! - A command that finds no daemon does the same work through the same functions of [`reconcile`].

pub mod background_helper;
pub mod daemon;
pub mod demo;
pub mod export_helper;
pub mod finishing;
pub mod health;
pub mod host_setup;
pub mod inbox;
#[cfg(test)]
mod live_run_tests;
pub mod notice_helper;
pub mod reconcile;
pub mod retention;
pub mod slinging;
pub mod store_migration;
pub mod views;

pub use reconcile::{convoys as attend_convoys, warm_trees};
