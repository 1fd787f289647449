//! What is done about runs that came to nothing: who is to blame, what is parked, and what people can do about it.

mod needs;
mod parks;
mod redispatch;
mod stale_hooks;

pub use needs::{Need, needs_of, needs_you};
pub use parks::{Parked, limited, parked, resume};
pub(crate) use parks::{forget, note_start, testify};
pub use redispatch::{Redispatch, Redispatched, redispatch};
pub(crate) use stale_hooks::release_stale_hooks;
pub use stale_hooks::{Kept, StaleHook, StaleHooks, stale_hooks};
