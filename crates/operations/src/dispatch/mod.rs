//! Starting what waits.

mod cycle;

pub use cycle::{CycleReport, DispatchCycle};
