//! Looking at what is scheduled, and steering it.

mod control;
mod queued;
mod status;
mod why;

pub use control::{ClearResult, clear, pause, resume};
pub use gt_store::Pause;
pub(crate) use queued::in_line;
pub use queued::{QueuedBead, list};
pub use status::{QueueStatus, RigStatus, status};
pub(crate) use why::remedy;
pub use why::{QueuePosition, WaitCause, WhyAnswer, WhyHeadline, why};
