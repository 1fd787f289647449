//! From scheduled to started: who goes next, the one door to a slot, and the cycle around it.

mod budgets;
mod cycle;
mod dispatch_inputs;
mod dispatcher;
mod due;
mod merged_lanes;
mod parks;
mod place;
mod pull;
mod recipe;
mod snapshot;
mod spawner;
mod start;

pub use budgets::warn_of_nearly_spent;
pub use cycle::{CycleReport, DispatchCycle};
pub use dispatch_inputs::DispatchInputs;
pub use dispatcher::{DispatchResult, Dispatcher, NotStarted, StartedRun};
pub use dispatcher::{ReservedRun, WaitingCounts};
pub use due::next_due;
pub use parks::forget;
pub(crate) use parks::record_run_evidence;
pub use parks::{Parked, parked, resume};
pub use place::unused_polecat;
pub use pull::{begin_in, give_in, take_in};
pub use recipe::DEFAULT_FORMULA;
pub use recipe::Recipe;
pub use recipe::cook;
pub use snapshot::{CycleCaller, SchedulingSnapshot, placement_facts};
pub use spawner::{MemorySpawner, SpawnError, Spawner};
pub(crate) use start::start_in;
pub use start::{
    Start, StartFailureCost, Starter, close_stale, put_back_or_give_up, start_failed_in,
};
