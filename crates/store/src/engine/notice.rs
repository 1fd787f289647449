//! Telling somebody that a wait has become long.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

const NOTICE_AFTER: Duration = Duration::from_secs(1);

/// Called when a wait has become long enough to notice.
pub type Notice = Arc<dyn Fn() + Send + Sync>;

/// Runs `wait`, which may take long; then `notice` is called once, meanwhile.
pub(crate) fn with_notice<T>(notice: Option<&Notice>, wait: impl FnOnce() -> T) -> T {
    let Some(notice) = notice.cloned() else {
        return wait();
    };
    let (done, waiting) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if waiting.recv_timeout(NOTICE_AFTER) == Err(RecvTimeoutError::Timeout) {
            notice();
        }
    });
    let value = wait();
    drop(done);
    value
}
