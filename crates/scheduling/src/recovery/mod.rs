//! What is done about runs that came to nothing: who is to blame, what is parked, and what people can do about it.

mod redispatch;

pub use redispatch::{Redispatch, Redispatched, redispatch};
