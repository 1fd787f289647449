//! Waiting for several things at once.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until something can be read from one of these, or the time is up. Signals may end it early.
pub fn wait_for_any(sources: &[BorrowedFd<'_>], limit: Duration) {
    let mut watched: Vec<PollFd<'_>> =
        sources.iter().map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN)).collect();
    let limit = Timespec::try_from(limit).ok();
    // The reason it ended does not matter: every caller checks its own sources.
    let _ = poll(&mut watched, limit.as_ref());
}
