//! Connections that wait to be used again.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::StoreError;

/// Connections for reading: used ones are kept, new ones are made up to a limit, and a caller that comes
/// after that waits for one to come back.
#[derive(Debug)]
pub(crate) struct Pool<C> {
    state: Mutex<PoolState<C>>,
    returned: Condvar,
    limit: usize,
    timeout: Duration,
}

#[derive(Debug)]
struct PoolState<C> {
    idle: Vec<C>,
    lent: usize,
}

impl<C> Pool<C> {
    /// A pool that lends at most `limit` at a time and lets others wait as long as `timeout`.
    pub(crate) fn new(limit: usize, timeout: Duration) -> Self {
        let state = Mutex::new(PoolState { idle: Vec::new(), lent: 0 });
        Self { state, returned: Condvar::new(), limit, timeout }
    }

    /// Runs `work` with an idle connection, or with a new one.
    pub(crate) fn with<T, E: From<StoreError>>(
        &self,
        connect: impl FnOnce() -> Result<C, StoreError>,
        work: impl FnOnce(&C) -> Result<T, E>,
    ) -> Result<T, E> {
        let idle = self.borrow()?;
        let _loan = PoolLoan(self);
        let connection = match idle {
            Some(connection) => connection,
            None => connect()?,
        };
        let result = work(&connection);
        // Not reached if `work` panics: the state of the connection is unknown then.
        self.keep(connection);
        result
    }

    /// Counts a loan, and gives an idle connection if there is one.
    fn borrow(&self) -> Result<Option<C>, StoreError> {
        let start = Instant::now();
        let mut state = self.state();
        while state.lent >= self.limit {
            let left = self.timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(StoreError::Exhausted { limit: self.limit });
            }
            state = match self.returned.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        state.lent += 1;
        Ok(state.idle.pop())
    }

    /// Keeps a connection for others.
    pub(crate) fn keep(&self, connection: C) {
        self.state().idle.push(connection);
    }

    /// Takes an idle connection away for good.
    pub(crate) fn take(&self) -> Option<C> {
        self.state().idle.pop()
    }

    /// Whether the next one to come needs a new connection.
    pub(crate) fn has_no_idle(&self) -> bool {
        self.state().idle.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, PoolState<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection that is in use, or about to be made.
struct PoolLoan<'p, C>(&'p Pool<C>);

impl<C> Drop for PoolLoan<'_, C> {
    fn drop(&mut self) {
        self.0.state().lent -= 1;
        self.0.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn number_of(pool: &Pool<u32>, made: u32) -> Result<u32, StoreError> {
        pool.with(|| Ok(made), |number| Ok(*number))
    }

    #[test]
    fn a_connection_is_used_again() {
        let pool = Pool::new(2, Duration::ZERO);
        assert_eq!(number_of(&pool, 1).unwrap(), 1);
        assert_eq!(number_of(&pool, 2).unwrap(), 1);
    }

    #[test]
    fn more_than_the_limit_is_refused_by_name() {
        let pool = Pool::new(1, Duration::ZERO);
        let inner = pool.with(|| Ok(1), |_| Ok::<_, StoreError>(number_of(&pool, 2))).unwrap();
        assert!(matches!(inner, Err(StoreError::Exhausted { limit: 1 })), "{inner:?}");
        assert_eq!(number_of(&pool, 3).unwrap(), 1);
    }

    #[test]
    fn a_waiting_caller_gets_the_connection_that_comes_back() {
        let pool = Pool::new(1, Duration::from_mins(10));
        let (pool, inside) = (&pool, &Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pool.with(
                    || Ok(1),
                    |_| {
                        inside.wait();
                        Ok::<_, StoreError>(())
                    },
                )
            });
            inside.wait();
            assert_eq!(number_of(pool, 2).unwrap(), 1);
        });
    }

    #[test]
    fn a_failed_connection_and_a_panic_give_their_place_back() {
        let pool = Pool::new(1, Duration::ZERO);
        let failed: Result<(), _> = pool.with(|| Err(StoreError::Full), |_: &u32| Ok(()));
        assert!(matches!(failed, Err(StoreError::Full)));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.with(|| Ok(1), |_| -> Result<(), StoreError> { panic!("in the middle") })
        }));
        assert!(panicked.is_err());
        assert_eq!(number_of(&pool, 2).unwrap(), 2);
    }
}
