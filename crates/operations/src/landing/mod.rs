//! Work that is done: committed, accepted, and brought to where it belongs.
//!
//! Intent, effect, confirmation: what is about to be pushed is written down before, and that it was after. Whoever dies
//! in between leaves a question that the origin can answer (`resume`), and nothing is done twice.

mod aside;
mod audit;
mod checkout;
mod commit;
mod done;
mod end;
mod fence;
mod land;
mod merging;
mod resume;
mod waiting;
mod way;

pub(crate) use audit::{look_after, look_at_target, remember_repository};
pub use checkout::landing_checkout;
pub use done::{Done, DoneRequest, Fate, done, run_at};
pub(crate) use done::{Refused, Statement, finish_work, is_untouched};
pub(crate) use end::end_empty_handed;
pub use fence::{fence, use_environment_of_supervisor};
pub(crate) use fence::{give_workers_git, programs_of, put_behind_fence};
pub(crate) use land::Patience;
pub(crate) use merging::merging_in;
pub(crate) use resume::{Sequel, complete, resume};
pub(crate) use waiting::note_waiting;
