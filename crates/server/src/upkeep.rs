//! The periodic work of a server, so that it needs no daemon: silent agents, ended leases, events that are too old,
//! and letters of a town that has no directory.

use std::time::{Duration, Instant};

use gt_core::Timestamp;
use gt_daemon::retention;
use gt_workqueue::work;

use crate::problem::RequestProblem;
use crate::service::SharedService;

/// The longest pause. No lease is so short that it could begin and end meanwhile.
const UPKEEP_PAUSE_MAX: Duration = Duration::from_secs(15);
/// The shortest pause, so that a clock that stands still does not make a busy loop.
const UPKEEP_PAUSE_MIN: Duration = Duration::from_millis(100);

/// How often events that are too old are removed.
const EVENT_CLEANUP_INTERVAL: Duration = Duration::from_hours(1);

/// Looks after everything that is due, until the server stops.
pub(crate) async fn run_upkeep(service: SharedService) {
    let mut forgot_at: Option<Instant> = None;
    loop {
        let forgets = forgot_at.is_none_or(|at| at.elapsed() >= EVENT_CLEANUP_INTERVAL);
        if forgets {
            forgot_at = Some(Instant::now());
        }
        let looked = service
            .ask(move |town| {
                let found = work::check_overdue(town)?;
                gt_daemon::notice_helper::deliver_without_directory(town)?;
                if forgets {
                    retention::forget_events(town)?;
                }
                Ok::<_, Box<RequestProblem>>(found)
            })
            .await;
        // Work that could not be done is done the next time.
        let due = looked.ok().and_then(|found| {
            if found.count() > 0 {
                service.news.ring();
            }
            found.due
        });
        let pause = until(due, service.now());
        tokio::select! {
            () = service.stopping.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

fn until(due: Option<Timestamp>, now: Timestamp) -> Duration {
    let nanos = due.map_or(i64::MAX, |due| due.as_nanos().saturating_sub(now.as_nanos()));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
        .clamp(UPKEEP_PAUSE_MIN, UPKEEP_PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_ends_when_something_is_due_or_at_its_limit() {
        let at = |seconds: i64| Timestamp::from_nanos(seconds * 1_000_000_000);
        assert_eq!(until(None, at(0)), UPKEEP_PAUSE_MAX);
        assert_eq!(until(Some(at(100)), at(0)), UPKEEP_PAUSE_MAX);
        assert_eq!(until(Some(at(5)), at(0)), Duration::from_secs(5));
        assert_eq!(until(Some(at(5)), at(9)), UPKEEP_PAUSE_MIN);
    }
}
