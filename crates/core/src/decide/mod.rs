//! Pure decisions: facts in, answer out.

mod blocking;
mod graph;
mod identity;
mod readiness;
mod transition;

pub use blocking::{ChildrenFacts, TargetFacts, edge_blocks};
pub use graph::{cycles, find_path, waves};
pub use identity::{IdSeed, adaptive_length, resolve_partial};
pub use readiness::{ReadinessFacts, WaitReason, wait_reasons};
pub use transition::{Refusal, Standing, Transition, Verb, decide};
