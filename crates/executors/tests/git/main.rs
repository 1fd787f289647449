//! Git with real repositories.

#![expect(clippy::unwrap_used, reason = "a panic is how the helpers of a test fail")]

mod accepting;
mod candidates;
mod checking;
mod checkouts;
mod fence;
mod hosted_branches;
mod hostile;
mod kept_candidates;
mod landing;
mod moving;
mod patches;
mod repair;
mod repository;
mod rescuing;
mod support;
mod trees;
