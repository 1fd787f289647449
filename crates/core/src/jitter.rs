//! Random jitter, so that retries do not happen at the same moment.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

/// A number in [0, 1) that depends on the name alone: work that failed together is not retried together, and a simulation
/// can be repeated.
pub fn jitter(name: &str) -> f64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let part = u32::try_from(hasher.finish() >> 32).unwrap_or(0);
    f64::from(part) / (f64::from(u32::MAX) + 1.0)
}
