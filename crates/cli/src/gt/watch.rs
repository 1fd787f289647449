//! Showing something again whenever it has changed.

use std::time::Duration;

use gt_beads::events::EventFollower;
use gt_town::{Bell, EventFilter, OperationError, Town};

use crate::context::CommandContext;
use crate::error::CliError;

/// How often the event counter is read.
const EVENT_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often a terminal is refreshed without an event, so that ages and durations stay right.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);

/// Whether there is more to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchStep {
    /// It may change.
    More,
    /// It is over.
    End,
}

/// Calls `look` and prints the result again after every event of the town, until it is over or the reader of the output
/// has gone. A terminal is refreshed in place, also without an event; other outputs get a page when it has changed.
pub(super) fn watch<T>(
    context: &CommandContext<'_>,
    town: &Town,
    look: impl Fn() -> Result<T, OperationError>,
    is_same: impl Fn(&T, &T) -> bool,
    print: impl Fn(&T) -> Result<WatchStep, CliError>,
) -> Result<(), CliError> {
    let printer = context.printer;
    let in_place = printer.is_terminal() && !printer.json();
    let mut news = EventWatch { follower: None, bell: town.bell(), is_away: false };
    let mut shown: Option<T> = None;
    loop {
        // The follower begins before the look, so that no event in between is missed.
        if let Some(seen) = news.ask(context, || {
            let follower = EventFollower::from_now(town, EventFilter::default())?;
            Ok((follower, look()?))
        })? {
            let (follower, now) = seen;
            news.follower = Some(follower);
            if in_place || shown.as_ref().is_none_or(|before| !is_same(before, &now)) {
                if in_place {
                    printer.begin_page()?;
                }
                if print(&now)? == WatchStep::End {
                    return printer.flush();
                }
                printer.flush()?;
                shown = Some(now);
            }
        }
        news.wait(context, town, if in_place { REFRESH_INTERVAL } else { Duration::MAX })?;
    }
}

/// The event follower and the bell that wakes it.
struct EventWatch {
    /// The position in the event log; nothing while the store is away.
    follower: Option<EventFollower>,
    bell: Bell,
    is_away: bool,
}

impl EventWatch {
    /// Asks the store; nothing if it is away and may come back, because a watch outlives a restart of the server.
    fn ask<T>(
        &mut self,
        context: &CommandContext<'_>,
        question: impl FnOnce() -> Result<T, OperationError>,
    ) -> Result<Option<T>, CliError> {
        match question() {
            Ok(answer) => {
                self.is_away = false;
                Ok(Some(answer))
            }
            Err(error) if error.may_pass() => {
                if !std::mem::replace(&mut self.is_away, true) {
                    let error = CliError::from(error);
                    context.printer.note(format!("note: {}; waiting for it", error.chain()));
                }
                self.follower = None;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for an event, at most this long. In between it checks whether the reader of the output has gone.
    fn wait(
        &mut self,
        context: &CommandContext<'_>,
        town: &Town,
        at_most: Duration,
    ) -> Result<(), CliError> {
        let mut waited = Duration::ZERO;
        while waited < at_most {
            if self.bell.rings() {
                context.printer.wait(Duration::ZERO)?;
                self.bell.wait(EVENT_POLL_INTERVAL);
            } else {
                context.printer.wait(EVENT_POLL_INTERVAL)?;
            }
            waited = waited.saturating_add(EVENT_POLL_INTERVAL);
            let Some(mut follower) = self.follower.take() else { return Ok(()) };
            let Some((follower, news)) = self.ask(context, || {
                let news = follower.next(town)?;
                Ok((follower, news))
            })?
            else {
                return Ok(());
            };
            self.follower = Some(follower);
            if !news.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }
}
