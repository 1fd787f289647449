//! Operations on beads and what belongs to them: dependencies, notes, messages, convoys, import and export.
//!
//! # Invariants
//!
//! - An operation reads facts, asks a pure decision of [`gt_core::decide`], and writes the answer in the same transaction.
//! - A run is only a row here: an operation that cancels one returns it, and the caller ends its processes.
//! - Operations know neither terminal nor arguments; commands, server and daemon call the same ones.

pub mod acting;
pub mod adopt;
pub mod agent_setup;
pub mod batch;
pub mod bead_facts;
pub mod beads;
pub mod beads_directory;
pub mod containers;
pub mod convoys;
pub mod deletion;
pub mod dependencies;
pub mod distillation;
pub mod events;
pub mod gates;
pub mod hooks;
pub mod interchange;
pub mod lookup;
pub mod memories;
pub mod merge_requests;
pub mod messages;
pub mod molecules;
pub mod notes;
pub mod outbox;
pub mod polecat_names;
pub mod queries;
pub mod renaming;
pub mod request_repairs;
pub mod review_rules;
pub mod run_records;
pub mod steps;
pub mod store;
pub mod swarms;
pub mod tombstones;
pub mod transition_check;
