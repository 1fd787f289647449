//! The end of a run whose work is finished: committed, accepted, and handed to the merge queue.
//!
//! Nothing here moves a branch of the origin. The transaction that ends a run makes its merge request.

mod checkout;
mod commit;
mod delivery_mode;
mod done;
mod end;
mod end_with_rescue;

pub use checkout::landing_checkout;
pub use done::{DoneRefusal, DoneReport};
pub use done::{
    DoneRequest, DoneResult, WorkDelivery, done, run_at, submit_accepted, tell_supervisor,
};
pub(crate) use done::{finish_work, is_untouched};
pub(crate) use end::end_empty_handed;
