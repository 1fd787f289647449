//! Looking at what is scheduled, and steering it.

mod control;
mod line;
mod status;
mod why;

pub use control::{Cleared, clear, pause, resume};
pub use gt_store::Pause;
pub(crate) use line::in_line;
pub use line::{Queued, list};
pub use status::{QueueStatus, RigStatus, status};
pub use why::{Cause, Headline, Outlook, Why, why};
