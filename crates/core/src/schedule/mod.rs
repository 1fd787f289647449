//! Scheduled work and the runs that come of it.

mod account;
mod context;
pub mod labels;
mod notice;
mod parameters;
mod place;
mod run;
mod steps;

pub use account::{Account, check_account_handle, check_variable_name};
pub(crate) use context::names;
pub use context::{CloseReason, Context, ContextClosed, ContextId, Origin};
pub use notice::{Channel, Notice, NoticeState};
pub use parameters::{Merge, SlingParameters};
pub use place::WorkerPlace;
pub use run::{Run, RunEnd, RunId, RunState};
pub use steps::{RunStep, RunSteps, StepProgress, StepRefusal};
