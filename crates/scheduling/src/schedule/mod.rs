//! Scheduling: from what a person slings to contexts, in one transaction.

mod check;
mod expand;
mod feed;
mod load;
mod redispatch;
mod rehearse;
mod request;
mod retry;
mod sling;

pub use expand::read_list;
pub use expand::{Meaning, meaning};
pub(crate) use feed::{Stray, feed_in, strays};
pub(crate) use load::no_parts;
pub(crate) use redispatch::redispatch_in;
pub use request::{Entry, Fate, Flags, Skip, SlingReport, SlingRequest, Travel};
pub use retry::{Retried, retry};
pub(crate) use retry::{retry_found, try_recipe};
pub use sling::sling;
pub use sling::sling_to_start;
