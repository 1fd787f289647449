//! Work outside the store: supervisors, worktrees, landing, sessions.
//!
//! # Invariants
//!
//! - A supervisor claims its run before it starts the agent.
//! - A run is declared lost only when no process of it can be found.
//! - No work is deleted: a worktree that is in the way is moved to the trash.
//! - A bead closes as landed only when its origin has the commit.

pub mod briefing;
pub mod checks;
pub mod connections;
pub mod drain;
pub mod landing;
pub mod merge_queue;
pub mod polecats;
mod run_processes;
pub mod runs;
pub mod stale_hooks;
pub mod trees;
pub mod worker;
mod wrap;
