//! The promises of a server about limits and its description, with limits that a test can reach.

#![expect(clippy::unwrap_used, reason = "a panic is how the helpers of a test fail")]

mod deck;
mod deck_views;
mod description;
mod limits;
mod support;
mod tokens;
