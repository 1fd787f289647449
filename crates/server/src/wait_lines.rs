//! Requests that wait for the same work stand in one line, so that a thousand of them do not ask the store a thousand
//! times about one item.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{Semaphore, SemaphorePermit};

/// How many requests of a line look at the same time. More than one, because concurrent writes share a commit.
const TURNS_PER_LINE: usize = 16;
/// How many lines there are before empty ones are forgotten.
const LINES_BEFORE_CLEANUP: usize = 64;

/// The work that a request waits for: kinds and a project, as they were named.
pub(crate) type WantedWork = (Vec<String>, Option<String>);

/// All lines in which a request waits.
#[derive(Debug, Default)]
pub(crate) struct WaitLines {
    lines: Mutex<HashMap<WantedWork, Weak<WaitLine>>>,
}

impl WaitLines {
    fn lines(&self) -> MutexGuard<'_, HashMap<WantedWork, Weak<WaitLine>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line of the requests that wait for this.
    pub(crate) fn join(&self, wanted: WantedWork) -> Arc<WaitLine> {
        let mut lines = self.lines();
        if let Some(line) = lines.get(&wanted).and_then(Weak::upgrade) {
            return line;
        }
        if lines.len() >= LINES_BEFORE_CLEANUP {
            lines.retain(|_, line| line.strong_count() > 0);
        }
        let line = Arc::new(WaitLine {
            turns: Semaphore::new(TURNS_PER_LINE),
            nothing_at: AtomicU64::new(0),
        });
        lines.insert(wanted, Arc::downgrade(&line));
        line
    }
}

/// The requests that wait for the same work.
#[derive(Debug)]
pub(crate) struct WaitLine {
    turns: Semaphore,
    /// How many chances there had been when a request of this line looked last and found nothing for the whole line.
    nothing_at: AtomicU64,
}

impl WaitLine {
    /// Waits for a turn to look. Nothing if another request has looked meanwhile, after `chances` of them, and there
    /// was nothing for this line.
    pub(crate) async fn turn(&self, chances: u64) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        let turn = self.turns.acquire().await.ok()?;
        (self.nothing_at.load(Ordering::Acquire) < chances).then_some(turn)
    }

    /// There was nothing for this line after so many chances.
    pub(crate) fn found_nothing(&self, chances: u64) {
        self.nothing_at.fetch_max(chances, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_request_after_one_that_found_nothing_need_not_look() {
        let lines = WaitLines::default();
        let (one, other) = (lines.join((vec![], None)), lines.join((vec![], None)));
        let looks = |line: &WaitLine, chances| line.turn(chances).now_or_never().unwrap().is_some();
        assert!(looks(&one, 1));
        one.found_nothing(1);
        assert!(!looks(&other, 1));
        assert!(looks(&other, 2));
        // Another line wants something else.
        assert!(looks(&lines.join((vec!["deploy".to_owned()], None)), 1));
    }

    #[test]
    fn empty_lines_are_forgotten() {
        let lines = WaitLines::default();
        for at in 0..1000 {
            drop(lines.join((vec![at.to_string()], None)));
        }
        assert!(lines.lines().len() <= LINES_BEFORE_CLEANUP);
    }
}
