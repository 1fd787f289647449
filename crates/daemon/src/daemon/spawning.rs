//! A limit for parallel starts, over all dispatching threads.

use std::sync::{Condvar, Mutex, PoisonError};

use gt_core::schedule::Run;

use gt_scheduling::dispatch::{SpawnError, Spawner};

/// A limit for parallel work.
#[derive(Debug, Default)]
pub(super) struct Permits {
    /// The limit, and the current count.
    counts: Mutex<(usize, usize)>,
    changed: Condvar,
}

impl Permits {
    /// Sets the limit.
    pub(super) fn set_limit(&self, limit: usize) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).0 = limit;
        self.changed.notify_all();
    }

    fn take(&self) -> Permit<'_> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = self.changed.wait_while(counts, |(limit, busy)| *busy >= (*limit).max(1));
        counts.unwrap_or_else(PoisonError::into_inner).1 += 1;
        Permit(self)
    }
}

struct Permit<'a>(&'a Permits);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner).1 -= 1;
        self.0.changed.notify_one();
    }
}

/// Starts workers, with no more starts under way than are permitted.
pub(super) struct PermittedSpawner<'a> {
    pub(super) spawner: &'a dyn Spawner,
    pub(super) permits: &'a Permits,
}

impl Spawner for PermittedSpawner<'_> {
    fn spawn(&self, run: &Run) -> Result<(), SpawnError> {
        let _permit = self.permits.take();
        self.spawner.spawn(run)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn parallelism_limit_is_respected() {
        let permits = Permits::default();
        permits.set_limit(2);
        let (busy, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _permit = permits.take();
                        most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        busy.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!((1..=2).contains(&most.into_inner()));
    }
}
