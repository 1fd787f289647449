//! What a worker is told of its run, and what it can say about it.

mod acting;
mod briefing;
mod handoff;
mod hook;
mod prime;
mod steps;

pub(crate) use acting::{current_run, require_own_work};
pub use briefing::{Briefing, briefing};
pub use handoff::{HandedOff, HandoffNote, begin_fresh_session, hand_off};
pub use hook::{Hooked, hook};
pub use prime::{Overview, Primed, RunningRun, prime, running};
pub use steps::{StepView, StepsDone, StepsOfRun, finish_steps, steps};
pub(crate) use steps::{progress_in, progress_of_live, steps_in};
