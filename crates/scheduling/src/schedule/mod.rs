//! Scheduling: from what a person slings to contexts, in one transaction.

mod check;
mod expand;
mod feed;
mod lift_stop;
mod redispatch;
mod rehearse;
mod request;
mod resolve_request;
mod retry;
mod sling;

pub use expand::read_list;
pub use expand::{ExpandedBead, meaning};
pub(crate) use feed::{UnscheduledMember, feed_in, strays};
pub(crate) use redispatch::redispatch_in;
pub(crate) use rehearse::agent_problem;
pub use request::{
    ConvoyChoice, SkipReason, SlingEntry, SlingOptions, SlingOutcome, SlingReport, SlingRequest,
};
pub(crate) use resolve_request::no_parts;
pub(crate) use retry::try_recipe;
pub use retry::{Retried, beads_to_retry, count_retries, retry, retry_found};
pub use sling::sling;
pub use sling::sling_to_start;
