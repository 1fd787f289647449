//! Labels that say where a bead stands with the scheduler.

use super::context::{CloseReason, Context};

/// A bead waits to be dispatched.
pub const QUEUED: &str = "gt:queued";
/// The same, as the oldest queue called it.
pub const QUEUED_PLAIN: &str = "queued";
/// A bead was dispatched.
pub const DISPATCHED: &str = "gt:queue-dispatched";
/// A bead could not be dispatched, and waits for a person.
pub const DISPATCH_FAILED: &str = "gt:dispatch-failed";
/// A bead is a context.
pub const SLING_CONTEXT: &str = "gt:sling-context";

/// Labels that follow from the contexts and are never stored, unless they came from elsewhere.
pub const DERIVED: [&str; 5] = [QUEUED, QUEUED_PLAIN, DISPATCHED, DISPATCH_FAILED, SLING_CONTEXT];

/// Whether this label follows from the contexts, so that it is never added or removed by hand.
pub fn is_derived(label: &str) -> bool {
    DERIVED.contains(&label)
}

/// The labels of a bead that follow from its last context. The store's view says the same.
pub fn of_bead(latest: Option<&Context>) -> &'static [&'static str] {
    let Some(latest) = latest else { return &[] };
    match latest.closed.as_ref().map(|closed| closed.reason) {
        None => &[QUEUED, QUEUED_PLAIN],
        Some(CloseReason::Dispatched) => &[DISPATCHED],
        Some(
            CloseReason::CircuitBroken | CloseReason::Quarantined | CloseReason::InvalidContext,
        ) => &[DISPATCH_FAILED],
        Some(CloseReason::Cleared | CloseReason::StaleWorkBead) => &[],
    }
}
