//! Properties that every parser of outside data keeps for any input.
//!
//! # Architecture invariants
//!
//! - [`TARGETS`] is the only list. The test of this crate runs all of it on stable Rust, `scripts/fuzz`
//!   runs the same functions under libFuzzer, and `fuzz/corpus/<name>` holds the first inputs of both.
//! - A target panics if and only if a promise is broken. It takes bytes, because files are bytes.
//! - Nothing here opens a file that an input names, starts a program, or connects to anything.
//! - Work is bounded by the size of the input ([`INPUT_BYTES_MAX`]) and the number of rounds, never by
//!   a clock.

pub mod corpus;
mod hunt;
mod mutate;
mod promise;
pub mod targets;

pub use hunt::{FuzzFailure, hunt};
pub use targets::{FuzzTarget, TARGETS};

/// No input is longer, in the test or under libFuzzer.
pub const INPUT_BYTES_MAX: usize = 4096;

/// The target of this name.
pub fn find(name: &str) -> Option<&'static FuzzTarget> {
    TARGETS.iter().find(|target| target.name == name)
}
