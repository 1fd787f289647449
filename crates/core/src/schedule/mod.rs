//! Scheduled work and the runs that come of it.

mod account;
mod context;
pub mod labels;
mod parameters;
mod place;
mod run;

pub use account::Account;
pub use context::{CloseReason, Context, ContextClosed, ContextId, Origin};
pub use parameters::{Merge, SlingParameters};
pub use place::WorkerPlace;
pub use run::{Run, RunEnd, RunId, RunState};
