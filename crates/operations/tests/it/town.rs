//! A town that is nowhere, at a time that stands still unless moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use gt_core::{Clock, Timestamp};
use gt_operations::{Actor, Town};

/// A clock that a test sets.
#[derive(Debug, Default)]
pub(crate) struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// An empty town.
pub(crate) fn town() -> Town {
    let actor = Actor { name: "tester".to_owned(), owner: String::new() };
    Town::in_memory(actor, Arc::new(TestClock::default())).unwrap()
}
