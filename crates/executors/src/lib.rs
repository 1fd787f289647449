//! The world outside: programs we start, runs of agents, git, and web services we tell something.
//!
//! # Architecture invariants
//!
//! - This is the only crate that starts a program or speaks HTTP.
//! - Nothing here knows the store. An executor follows its order and reports the result.

pub mod background;
pub mod calls;
pub mod daemon;
pub mod editor;
mod environment;
pub mod git;
pub mod hosting;
pub mod machine;
pub mod pager;
pub mod private;
pub mod process;
pub mod remote_shell;
pub mod runs;
pub mod telemetry;
pub mod terminal;
pub mod tmux;
pub mod trial;
pub mod web;
