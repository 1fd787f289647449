//! Scheduled work and the runs that come of it.

mod account;
mod context;
pub mod labels;
mod notice;
mod parameters;
mod park;
mod place;
mod run;

pub use account::{Account, check_account_handle, check_variable_name};
pub use context::{CloseReason, Context, ContextClosed, ContextId, Origin};
pub use notice::{Channel, Notice, NoticeState};
pub use parameters::{Merge, SlingParameters};
pub use park::{Closed, Means, MeansKind, Park};
pub use place::WorkerPlace;
pub use run::{Loss, Run, RunEnd, RunId, RunState};
