//! Hermetic towns for tests: a temporary directory, a clean environment, the real binary.
//!
//! ```no_run
//! // In a test of gt-cli the path is `env!("CARGO_BIN_EXE_gt")`.
//! let sandbox = gt_testkit::Sandbox::town("target/debug/gt");
//! let id = sandbox.bd(["create", "Boil water", "--silent"]).ok().line().to_owned();
//! assert_eq!(sandbox.bd(["show", &id, "--json"]).ok().json()[0]["title"], "Boil water");
//! sandbox.bd(["show", "no-such-bead"]).fails(1);
//! ```
//!
//! # Architecture invariants
//!
//! - A program in a sandbox sees only what the sandbox gives it: the environment is built from
//!   nothing, and home, configuration and temporary files lie inside the sandbox's directory.
//! - Nothing waits forever: every program and every condition has a time limit.
//! - It knows no other crate of ours, so that it can test all of them from outside.
//! - It panics instead of returning errors. It is for tests, and a panic is how a test fails.

#![expect(
    clippy::disallowed_methods,
    reason = "tests run the product as a user does; gt-executors is part of what they test"
)]

mod certificates;
mod clock;
mod engine;
mod fake_hosting;
mod fake_model;
mod finished_program;
pub mod http;
mod invocation;
mod pooler;
mod postgres;
mod program_file;
mod random;
mod sandbox;
mod sshd;
mod tmux;
mod wait;

pub use certificates::Certificates;
pub use clock::TestClock;
pub use engine::TownEngine;
pub use fake_hosting::{FakeHosting, FakeService};
pub use fake_model::FakeModel;
pub use finished_program::FinishedProgram;
pub use invocation::{RunningProgram, SandboxCommand, TIME_LIMIT};
pub use pooler::Pooler;
pub use postgres::Cluster;
pub use program_file::write_program;
pub use random::Random;
pub use sandbox::Sandbox;
pub use sshd::Sshd;
pub use tmux::call_tmux;
pub use wait::{CONDITION_TIME_LIMIT, wait_until};
