//! Finished work: committed, accepted, and delivered.
//!
//! Intent, effect, confirmation: a push is recorded before it begins, and confirmed after it. A crash in between
//! leaves a question that the origin can answer (`resume`), and nothing is done twice.

mod checkout;
mod commit;
mod delivery_mode;
mod done;
mod end;
mod end_with_rescue;
mod land;
mod resume;
mod waiting;

pub use checkout::landing_checkout;
pub use done::{DoneRefusal, DoneReport};
pub use done::{DoneRequest, DoneResult, WorkDelivery, done, run_at, tell_supervisor};
pub(crate) use done::{finish_work, is_untouched};
pub(crate) use end::end_empty_handed;
pub(crate) use land::LandingWait;
pub(crate) use resume::ResumeOutcome;
pub(crate) use resume::complete;
pub use resume::resume;
pub(crate) use waiting::note_waiting;
