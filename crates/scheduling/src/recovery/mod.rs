//! Recovery after runs that came to nothing: which cause counts, what is parked, and what people can do about it.

mod redispatch;

pub use redispatch::{Redispatch, Redispatched, redispatch};
