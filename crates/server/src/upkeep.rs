//! What a server does by itself, so that it needs no daemon: silent agents, ended leases, events that are too old, and
//! letters of a town that has no directory.

use std::time::{Duration, Instant};

use gt_core::Timestamp;
use gt_operations::{outbox, retention, work};

use crate::problem::Problem;
use crate::service::Shared;

/// How long one sleeps at most. No lease is so short that it could begin and end meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// And at least, so that a clock that stands still does not make anybody run.
const PAUSE: Duration = Duration::from_millis(100);

/// How often one looks for events that are too old.
const FORGET_EVERY: Duration = Duration::from_hours(1);

/// Looks after everything that is due, until the server stops.
pub(crate) async fn keep_up(service: Shared) {
    let mut forgot_at: Option<Instant> = None;
    loop {
        let forgets = forgot_at.is_none_or(|at| at.elapsed() >= FORGET_EVERY);
        if forgets {
            forgot_at = Some(Instant::now());
        }
        let looked = service
            .ask(move |town| {
                let found = work::check_overdue(town)?;
                outbox::deliver_without_directory(town)?;
                if forgets {
                    retention::forget_events(town)?;
                }
                Ok::<_, Box<Problem>>(found)
            })
            .await;
        // What could not be done is done the next time.
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
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)).clamp(PAUSE, LOOK_EVERY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_looks_when_something_is_due_and_from_time_to_time() {
        let at = |seconds: i64| Timestamp::from_nanos(seconds * 1_000_000_000);
        assert_eq!(until(None, at(0)), LOOK_EVERY);
        assert_eq!(until(Some(at(100)), at(0)), LOOK_EVERY);
        assert_eq!(until(Some(at(5)), at(0)), Duration::from_secs(5));
        assert_eq!(until(Some(at(5)), at(9)), PAUSE);
    }
}
