//! Pure decisions: facts in, answer out.

mod admission;
mod blocking;
mod graph;
mod identity;
mod lint;
mod mention;
mod outline;
mod readiness;
mod standing;
mod transition;

pub use admission::{Ask, Cap, Caps, Occupancy, admit};
pub use blocking::{ChildrenFacts, TargetFacts, edge_blocks};
pub use graph::{cycles, find_path, waves};
pub use identity::{IdSeed, adaptive_length, resolve_partial};
pub use lint::{Section, missing_sections};
pub use mention::mentions;
pub use outline::outline;
pub use readiness::{ReadinessFacts, WaitReason, wait_reasons};
pub use standing::{Control, RigStanding, SchedulingFacts, context_reasons, unscheduled_reasons};
pub use transition::{Refusal, Standing, Transition, Verb, decide};
