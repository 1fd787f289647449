//! Scheduled work and the runs that come of it.

mod account;
mod context;
pub mod labels;
mod notice;
mod parameters;
mod park;
mod place;
mod polecat;
mod run;
mod silence;
mod steps;
mod usage;

pub use account::{Account, check_account_handle, check_variable_name};
pub(crate) use context::names;
pub use context::{CloseReason, Context, ContextClosed, ContextId, ContextOrigin};
pub use notice::{Notice, NoticeChannel, NoticeState};
pub use parameters::{Merge, SlingParameters};
pub use park::{ClosedPeriod, Park, ParkSubject, ParkSubjectKind};
pub use place::WorkerPlace;
pub use polecat::{
    Polecat, Rescued, TrashState, Trashed, TreeState, branch_name, check_polecat_name,
    free_polecat_name, session_name,
};
pub use run::{
    DoneStatus, Landing, Run, RunEnd, RunId, RunLimit, RunLoss, RunState, Workplace, host_identity,
    is_host_named,
};
pub use silence::Silence;
pub use steps::{RunStep, RunSteps, StepProgress, StepRefusal};
pub use usage::{Money, Reserve, Usage};
