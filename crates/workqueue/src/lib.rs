//! The work queue: items that agents ask for over HTTP or the command line, and the tokens that admit them.
//!
//! # Invariants
//!
//! - A claim is a lease: an agent that stops renewing it loses the item.
//! - Nothing here starts a process or touches a worktree.

pub mod tokens;
pub mod work;
