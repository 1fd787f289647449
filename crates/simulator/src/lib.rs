//! The engine under simulated crashes, clocks and interleavings, from a seed.
//!
//! A seed furnishes a small town and lets cycles, supervisors, agents, recoverers and people act on
//! it, one step at a time, in an order that the seed decides. Each of them may be interrupted by
//! the others, or die, between any two transactions. The invariants are checked after every step;
//! at the end nothing goes wrong any more, and everything that can be dispatched must be.
//!
//! # Architecture invariants
//!
//! - The operations, the decisions and the store are the real ones. Simulated are the clock, the processes
//!   and their locks, and what people want.
//! - There are no threads. A process between two transactions lets the others go first by calling them.
//! - The same seed gives the same steps: nothing here reads a clock, an address or a hash in order.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of a reader is one of a single lifetime, a closure of any"
)]

mod agreement;
mod busy_fleet;
mod check;
mod clock;
mod convoys;
mod cycle;
mod ending;
mod fleet;
mod hosting;
mod landing;
mod merge_check;
mod merge_machine;
mod merging;
mod origin;
mod person;
mod planted;
mod scale;
mod simulation;
mod spending;
mod stores;
mod supervisor;
mod violation;
mod worker;
mod world;

pub use busy_fleet::{host_of_number, renew_hosts, schedule_with_live_runs};
pub use planted::Planted;
pub use scale::{FleetTimes, measure_fleet};
pub use stores::{SeedStore, Stores};
pub use violation::{Invariant, Violation};

use simulation::Simulation;

/// The result of a seed.
#[derive(Debug, Clone)]
pub struct SeedOutcome {
    /// How many steps there were.
    pub steps: u64,
    /// A digest of everything that happened: two histories with the same one were the same.
    pub digest: u64,
    /// The invariant that was violated, if any.
    pub violation: Option<Violation>,
}

/// Lives through a seed on an empty store.
///
/// ```
/// use gt_simulator::{Stores, simulate};
///
/// let outcome = Stores::Memory.with_store(|store| simulate(1, store, None))?;
/// assert!(outcome.steps > 0 && outcome.violation.is_none());
/// # Ok::<(), gt_store::StoreError>(())
/// ```
pub fn simulate(seed: u64, store: SeedStore, planted: Option<Planted>) -> SeedOutcome {
    let simulation = Simulation::new(seed, store, planted);
    if let Err(error) = simulation.prepare_town() {
        let found = format!("the town cannot be furnished: {error}");
        let violation =
            Violation { seed, invariant: Invariant::Soundness, found, steps: Vec::new() };
        return SeedOutcome { steps: 0, digest: 0, violation: Some(violation) };
    }
    let steps = 40 + simulation.state().random.below(120);
    simulation.live(steps)
}
