//! Telling the user that a wait has become long.

use std::sync::Arc;
use std::time::Duration;

/// When a wait is long enough to notice.
pub(crate) const WAIT_NOTICE_AFTER: Duration = Duration::from_secs(1);

/// Called when a write waits for long, with the program that holds the store, if that is known.
pub type LongWaitCallback = Arc<dyn Fn(Option<&str>) + Send + Sync>;
