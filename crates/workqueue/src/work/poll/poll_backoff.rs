//! How long a poller goes on: until a signal asks it to stop, also while the queue is away.

use std::cell::Cell;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use gt_executors::daemon::{Signals, wait_for_any};

use gt_core::jitter;

/// The first pause after the queue was away.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
/// The longest.
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// How long a poller that was asked to stop still tries to report the last item.
const LAST_REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a poller goes on.
#[derive(Debug)]
pub(super) struct PollBackoff {
    signals: Signals,
    /// When we were asked to stop.
    asked_at: Cell<Option<Instant>>,
    /// How often in a row the queue was away.
    failures: u32,
}

impl PollBackoff {
    pub(super) fn new(signals: Signals) -> Self {
        Self { signals, asked_at: Cell::new(None), failures: 0 }
    }

    pub(super) fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Whether we were asked to stop. Closing our terminal asks, too.
    pub(super) fn is_over(&self) -> bool {
        if self.asked_at.get().is_none() && self.signals.is_rung() {
            self.asked_at.set(Some(Instant::now()));
        }
        self.asked_at.get().is_some()
    }

    /// Whether there is time left to try something once more.
    pub(super) fn is_left(&self) -> bool {
        !self.is_over() || self.asked_at.get().is_some_and(|at| at.elapsed() < LAST_REPORT_TIMEOUT)
    }

    /// Waits, but not after we were asked to stop.
    pub(super) fn pause(&self, limit: Duration) {
        let until = Instant::now() + limit;
        while !self.is_over() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            wait_for_any(&[self.signals.as_fd()], left);
        }
    }

    /// The queue was away; whether this is news.
    pub(super) fn failed(&mut self) -> bool {
        self.failures = self.failures.saturating_add(1);
        self.failures == 1
    }

    /// The queue was there; whether this is news.
    pub(super) fn succeeded(&mut self) -> bool {
        std::mem::take(&mut self.failures) > 0
    }

    /// How long to wait before the queue is asked again. Pollers of the same queue do not come back all at once.
    pub(super) fn next_pause(&self, name: &str) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(10);
        let plain = PAUSE_FIRST.saturating_mul(1 << doublings).min(PAUSE_MAX);
        plain.mul_f64(0.75 + 0.5 * jitter(&format!("{name} {}", self.failures)))
    }

    /// Waits before the queue is asked again; only shortly after we were asked to stop.
    pub(super) fn back_off(&self, name: &str) {
        if self.is_over() {
            wait_for_any(&[], PAUSE_FIRST);
        } else {
            self.pause(self.next_pause(name));
        }
    }
}
