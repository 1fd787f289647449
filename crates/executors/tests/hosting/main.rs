//! The client of hosting services, against services whose state is a file.

#![expect(clippy::unwrap_used, reason = "a panic is how the helpers of a test fail")]

mod following;
mod misbehaviour;
mod opening;
mod support;
