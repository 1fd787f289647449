//! How long work that could have started waited, computed from the events.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::histogram::Histogram;
use crate::{BeadId, Event, EventKind, Timestamp};

/// How many beads and starts are remembered at most; with more of them waiting, the latency is long anyway.
const REMEMBERED_MAX: usize = 10_000;

/// The event that let work start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A close made it ready.
    Close,
    /// A run ended, whose slot it got.
    End,
}

/// A worker that has begun, and how long it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// The event that let it start.
    pub trigger: Trigger,
    /// From there until its worker had taken it.
    pub time: Duration,
}

/// Since when a bead could start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadySince {
    /// Since a close made it ready.
    Unblocked(Timestamp),
    /// Since it was scheduled.
    Scheduled(Timestamp),
    /// It waits for a date.
    Later,
}

/// Reads events, and measures how long work waits that could start: from the close that made it ready, or from the
/// end of the run whose slot it got, whichever was later, until its worker has taken it.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    close_to_start: Histogram,
    end_to_start: Histogram,
    ready: BTreeMap<BeadId, ReadySince>,
    last_end: Option<Timestamp>,
    starting: BTreeMap<String, (Trigger, Timestamp)>,
}

impl Latencies {
    /// From a close to the start of the bead that it made ready.
    pub fn close_to_start(&self) -> &Histogram {
        &self.close_to_start
    }

    /// From the end of a run to the start of the run that got its slot.
    pub fn end_to_start(&self) -> &Histogram {
        &self.end_to_start
    }

    /// Takes note of something that happened, in the order in which it did. If a worker has begun, says how long that
    /// took.
    pub fn see(&mut self, event: &Event) -> Option<Latency> {
        match event.kind {
            EventKind::Scheduled => self.remember(event, ReadySince::Scheduled(event.at)),
            EventKind::Unblocked => self.remember(event, ReadySince::Unblocked(event.at)),
            EventKind::StartFailed => self.remember(event, ReadySince::Later),
            EventKind::Closed | EventKind::Deleted | EventKind::Unscheduled => {
                event.bead.as_ref().map(|bead| self.ready.remove(bead));
            }
            EventKind::RunDone
            | EventKind::RunFailed
            | EventKind::RunLost
            | EventKind::RunCancelled => {
                self.last_end = Some(event.at);
                event.run.as_ref().map(|run| self.starting.remove(run));
            }
            EventKind::RunStarting => self.begin(event),
            EventKind::Dispatched => return self.begun(event),
            // Every run that starts now has waited for this.
            EventKind::Resumed
            | EventKind::Unparked
            | EventKind::SettingChanged
            | EventKind::RigChanged
            | EventKind::AccountChanged => {
                self.ready.clear();
                self.last_end = None;
            }
            _ => {}
        }
        None
    }

    fn remember(&mut self, event: &Event, ready: ReadySince) {
        let Some(bead) = &event.bead else { return };
        self.ready.insert(bead.clone(), ready);
        if self.ready.len() > REMEMBERED_MAX {
            self.ready.pop_first();
        }
    }

    fn begin(&mut self, event: &Event) {
        let (Some(bead), Some(run)) = (&event.bead, &event.run) else { return };
        let since = match (self.ready.remove(bead), self.last_end) {
            (Some(ReadySince::Unblocked(at) | ReadySince::Scheduled(at)), Some(end))
                if end > at =>
            {
                (Trigger::End, end)
            }
            (Some(ReadySince::Unblocked(at)), _) => (Trigger::Close, at),
            (Some(ReadySince::Scheduled(_) | ReadySince::Later) | None, _) => return,
        };
        self.starting.insert(run.clone(), since);
        if self.starting.len() > REMEMBERED_MAX {
            self.starting.pop_first();
        }
    }

    fn begun(&mut self, event: &Event) -> Option<Latency> {
        let (trigger, since) = self.starting.remove(event.run.as_ref()?)?;
        let time = event.at.since(since);
        match trigger {
            Trigger::Close => self.close_to_start.add(time),
            Trigger::End => self.end_to_start.add(time),
        }
        Some(Latency { trigger, time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;

    fn event(milliseconds: i64, kind: EventKind, name: &str) -> Event {
        Event {
            number: 1,
            at: Timestamp::from_nanos(milliseconds * 1_000_000),
            actor: "gt".to_owned(),
            kind,
            bead: Some(BeadId::parse(name).unwrap()),
            rig: None,
            run: Some(format!("{name}#1")),
            payload: Json::object(&[]),
        }
    }

    fn seen(events: &[(i64, EventKind, &str)]) -> (Latencies, Vec<(Trigger, u128)>) {
        let mut latencies = Latencies::default();
        let mut found = Vec::new();
        for (at, kind, name) in events {
            let latency = latencies.see(&event(*at, kind.clone(), name));
            found.extend(latency.map(|latency| (latency.trigger, latency.time.as_millis())));
        }
        (latencies, found)
    }

    #[test]
    fn a_close_that_makes_work_ready_is_where_its_wait_begins() {
        let (latencies, found) = seen(&[
            (0, EventKind::Scheduled, "gt-b"),
            (1000, EventKind::Unblocked, "gt-b"),
            (1010, EventKind::RunStarting, "gt-b"),
            (1030, EventKind::Dispatched, "gt-b"),
        ]);
        assert_eq!(found, [(Trigger::Close, 30)]);
        assert_eq!(latencies.close_to_start().quantiles().count, 1);
        assert_eq!(latencies.end_to_start().quantiles().count, 0);
    }

    #[test]
    fn a_wait_for_a_slot_is_counted_since_the_slot_is_free() {
        let (latencies, found) = seen(&[
            (0, EventKind::Unblocked, "gt-b"),
            (10, EventKind::Scheduled, "gt-c"),
            (5000, EventKind::RunDone, "gt-a"),
            (5010, EventKind::RunStarting, "gt-b"),
            (5020, EventKind::RunStarting, "gt-c"),
            (5040, EventKind::Dispatched, "gt-b"),
            (5050, EventKind::Dispatched, "gt-c"),
        ]);
        assert_eq!(found, [(Trigger::End, 40), (Trigger::End, 50)]);
        assert_eq!(latencies.end_to_start().quantiles().count, 2);
    }

    #[test]
    fn a_wait_for_another_reason_is_not_counted() {
        for between in [EventKind::StartFailed, EventKind::Resumed, EventKind::Unscheduled] {
            let (_, found) = seen(&[
                (0, EventKind::Unblocked, "gt-b"),
                (5, between, "gt-b"),
                (9000, EventKind::RunStarting, "gt-b"),
                (9010, EventKind::Dispatched, "gt-b"),
            ]);
            assert_eq!(found, []);
        }
        // The bead was scheduled and started: nothing ended and nothing was closed.
        let (_, found) = seen(&[
            (0, EventKind::RunDone, "gt-a"),
            (5, EventKind::Scheduled, "gt-b"),
            (7, EventKind::RunStarting, "gt-b"),
            (9, EventKind::Dispatched, "gt-b"),
        ]);
        assert_eq!(found, []);
    }

    #[test]
    fn a_cancelled_start_is_forgotten() {
        let (latencies, found) = seen(&[
            (0, EventKind::Unblocked, "gt-b"),
            (1, EventKind::RunStarting, "gt-b"),
            (2, EventKind::RunCancelled, "gt-b"),
            (3, EventKind::Dispatched, "gt-b"),
        ]);
        assert_eq!(found, []);
        assert!(latencies.starting.is_empty() && latencies.ready.is_empty());
    }
}
