//! How reconcilers are woken.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Why a reconciler was woken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WakeCauses {
    /// An event announced work, or a time has come.
    pub(super) told: bool,
    /// A full scan is due, and no event came recently: no event announced what this scan finds.
    pub(super) unprompted: bool,
}

impl WakeCauses {
    /// Whether findings of this round count as unannounced.
    pub(super) fn would_be_news(self) -> bool {
        self.unprompted && !self.told
    }
}

#[derive(Debug, Default)]
struct WakeState {
    pending: Option<WakeCauses>,
    due: Option<Instant>,
    stopped: bool,
}

/// Wakes one waiting thread; several rings before it wakes count as one.
#[derive(Debug, Default)]
pub(super) struct Wake {
    state: Mutex<WakeState>,
    changed: Condvar,
}

impl Wake {
    fn state(&self) -> MutexGuard<'_, WakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes a thread because there is work.
    pub(super) fn ring(&self) {
        self.pend(|causes| causes.told = true);
    }

    /// Wakes a thread after this delay.
    pub(super) fn ring_after(&self, delay: Duration) {
        if delay.is_zero() { self.ring() } else { self.wake_at(Instant::now() + delay) }
    }

    /// Requests a full scan; `unprompted` if no event came recently.
    pub(super) fn scan(&self, unprompted: bool) {
        self.pend(|causes| {
            causes.unprompted = unprompted;
            causes.told |= !unprompted;
        });
    }

    fn pend(&self, change: impl FnOnce(&mut WakeCauses)) {
        change(self.state().pending.get_or_insert_default());
        self.changed.notify_one();
    }

    /// Wakes a thread at this time at the latest; the earliest of all such times counts.
    pub(super) fn wake_at(&self, due: Instant) {
        let mut state = self.state();
        state.due = Some(state.due.map_or(due, |other| other.min(due)));
        drop(state);
        self.changed.notify_one();
    }

    /// Tells all waiting threads to end.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }

    /// Waits until there is work, and says why; nothing once it is stopped.
    pub(super) fn wait(&self) -> Option<WakeCauses> {
        let mut state = self.state();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(causes) = state.pending.take() {
                // The time stays: this round may take long, and one round too many costs little.
                return Some(causes);
            }
            let left = state.due.map(|due| due.saturating_duration_since(Instant::now()));
            match left {
                Some(Duration::ZERO) => {
                    state.due = None;
                    return Some(WakeCauses { told: true, unprompted: false });
                }
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// A turn for one thread at a time. It can be given back early, and more than once.
#[derive(Debug, Default)]
pub(super) struct TurnLock {
    taken: Mutex<bool>,
    free: Condvar,
}

impl TurnLock {
    /// Waits for the turn.
    pub(super) fn take(&self) -> HeldTurn<'_> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.free.wait_while(taken, |taken| *taken);
        *taken.unwrap_or_else(PoisonError::into_inner) = true;
        HeldTurn { turn: self, is_ours: Mutex::new(true) }
    }
}

/// A turn that its holder has until it is given back or dropped.
#[derive(Debug)]
pub(super) struct HeldTurn<'a> {
    turn: &'a TurnLock,
    is_ours: Mutex<bool>,
}

impl HeldTurn<'_> {
    /// Gives it back, if it is still held.
    pub(super) fn give_back(&self) {
        let mut is_ours = self.is_ours.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *is_ours) {
            *self.turn.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
            self.turn.free.notify_one();
        }
    }
}

impl Drop for HeldTurn<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_rings_cause_one_round() {
        let wake = Wake::default();
        wake.ring();
        wake.ring();
        assert_eq!(wake.wait(), Some(WakeCauses { told: true, unprompted: false }));
        wake.wake_at(Instant::now());
        assert_eq!(wake.wait(), Some(WakeCauses { told: true, unprompted: false }));
        wake.stop();
        assert_eq!(wake.wait(), None);
    }

    #[test]
    fn only_unannounced_findings_of_a_scan_are_news() {
        for (rung, unprompted, news) in
            [(false, true, true), (true, true, false), (false, false, false)]
        {
            let wake = Wake::default();
            if rung {
                wake.ring();
            }
            wake.scan(unprompted);
            assert_eq!(wake.wait().map(WakeCauses::would_be_news), Some(news));
        }
    }

    #[test]
    fn the_earliest_time_counts() {
        let wake = Wake::default();
        wake.wake_at(Instant::now() + Duration::from_hours(1));
        wake.wake_at(Instant::now());
        wake.wake_at(Instant::now() + Duration::from_hours(2));
        assert!(wake.wait().is_some());
    }

    #[test]
    fn a_turn_is_given_back_once() {
        let turn = TurnLock::default();
        let first = turn.take();
        first.give_back();
        let second = turn.take();
        // The turn belongs to `second` now.
        drop(first);
        assert!(*turn.taken.lock().unwrap());
        drop(second);
        assert!(!*turn.taken.lock().unwrap());
    }
}
