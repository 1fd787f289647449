//! The briefing of a worker about its run, and its reports.

mod handoff;
mod hook;
mod prime;

pub use handoff::{HandedOff, HandoffNote, begin_fresh_session, hand_off};
pub use hook::{Hooked, hook};
pub use prime::{PrimeOutput, RunningRun, TownOverview, prime, running};
