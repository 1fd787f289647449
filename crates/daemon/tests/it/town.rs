//! A town that is nowhere, at a time that stands still unless moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use gt_core::{Clock, Timestamp};
use gt_scheduling::Consequences;
use gt_store::Store;
use gt_town::{Actor, Town};

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
    town_over(Store::in_memory().unwrap())
}

/// A town over this store.
pub(crate) fn town_over(store: Store) -> Town {
    let actor = Actor { name: "tester".to_owned(), owner: String::new() };
    Town::over(store, actor, Arc::new(TestClock::default()), Arc::new(Consequences))
}
