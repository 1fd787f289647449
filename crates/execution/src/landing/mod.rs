//! Finished work: committed, accepted, and delivered.
//!
//! Intent, effect, confirmation: a push is recorded before it begins, and confirmed after it. A crash in between
//! leaves a question that the origin can answer (`resume`), and nothing is done twice.

mod aside;
mod checkout;
mod commit;
mod done;
mod end;
mod land;
mod resume;
mod waiting;
mod way;

pub use checkout::landing_checkout;
pub use done::{Done, DoneRequest, Fate, done, run_at};
pub use done::{Refused, Statement};
pub(crate) use done::{finish_work, is_untouched};
pub(crate) use end::end_empty_handed;
pub(crate) use land::Patience;
pub(crate) use resume::Sequel;
pub(crate) use resume::complete;
pub use resume::resume;
pub(crate) use waiting::note_waiting;
