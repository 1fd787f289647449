//! The state of the scheduler as a whole.

use gt_core::event::PauseChanged;
use gt_core::{EventPayload, Timestamp};

use super::statements;
use crate::{Reader, StoreError, Writer};

statements! {
    STATE = "SELECT paused_by, paused_at, last_dispatch_at, last_dispatch_count FROM scheduler WHERE one = 1";
    PAUSE = "UPDATE scheduler SET paused_by = ?1, paused_at = ?2 WHERE one = 1";
    RESUME = "UPDATE scheduler SET paused_by = NULL, paused_at = NULL WHERE one = 1";
    AT_REST = "SELECT CASE WHEN EXISTS (SELECT 1 FROM contexts WHERE closed_at IS NULL) \
        OR EXISTS (SELECT 1 FROM runs WHERE state IN ('starting', 'running', 'blocked')) \
        OR EXISTS (SELECT 1 FROM merge_requests WHERE state NOT IN ('landed', 'cancelled', 'superseded')) \
        OR EXISTS (SELECT 1 FROM outbox WHERE state = 'waiting') \
        OR EXISTS (SELECT 1 FROM left_runs) OR EXISTS (SELECT 1 FROM guards) THEN 0 ELSE 1 END";
    NOTE = "UPDATE scheduler SET last_dispatch_at = ?1, last_dispatch_count = ?2 WHERE one = 1";
}

/// The actor that stopped the scheduler, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// The actor.
    pub by: String,
    /// The time of the pause.
    pub at: Timestamp,
}

/// The state of the scheduler as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchedulerState {
    /// Nothing is started while this is set.
    pub paused: Option<Pause>,
    /// When something was last started, and how much at once.
    pub last_dispatch: Option<(Timestamp, u64)>,
}

impl Reader<'_> {
    /// The state of the scheduler.
    pub fn scheduler_state(&self) -> Result<SchedulerState, StoreError> {
        let state = self.first(STATE, &[], |row| {
            let paused = match (row.text_or_null(0)?, row.int_or_null(1)?) {
                (Some(by), Some(at)) => {
                    Some(Pause { by: by.to_owned(), at: Timestamp::from_nanos(at) })
                }
                _ => None,
            };
            let last_dispatch = match (row.int_or_null(2)?, row.int_or_null(3)?) {
                (Some(at), Some(count)) => {
                    Some((Timestamp::from_nanos(at), u64::try_from(count).unwrap_or(0)))
                }
                _ => None,
            };
            Ok(SchedulerState { paused, last_dispatch })
        })?;
        Ok(state.unwrap_or_default())
    }

    /// Whether nothing is scheduled, live, landing or to be sent, so that only a new event can give the town work. A nudge waits
    /// for a live run.
    pub fn is_at_rest(&self) -> Result<bool, StoreError> {
        Ok(self.number(AT_REST, &[])? != 0)
    }
}

impl Writer<'_> {
    /// Stops or resumes all starts; the caller has checked that this changes something.
    pub fn set_paused(&mut self, pause: Option<&Pause>) -> Result<(), StoreError> {
        let kind = if let Some(Pause { by, at }) = pause {
            self.execute(PAUSE, &[by.into(), (*at).into()])?;
            EventPayload::Paused
        } else {
            self.execute(RESUME, &[])?;
            EventPayload::Resumed
        };
        self.record_of_town(kind(PauseChanged { title: None }));
        Ok(())
    }

    /// Remembers that so many runs were started just now; every one of them has told of itself.
    pub fn note_dispatch(&mut self, count: u64) -> Result<(), StoreError> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.apply(NOTE, &[self.now().into(), count.into()])
    }
}
