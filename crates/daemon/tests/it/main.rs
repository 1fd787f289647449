//! Operations over a town in memory.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod adopt;
mod agreement;
mod damage;
mod due;
mod import;
mod inbox;
mod kept;
mod live_runs;
mod merge_queue;
mod nesting;
mod parking;
mod recovery;
mod scheduling;
mod still_clock;
mod town;
mod work;
