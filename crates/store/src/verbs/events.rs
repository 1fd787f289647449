//! The event log.

use std::ops::ControlFlow;

use gt_core::event::PurgeCount;
use gt_core::{BeadId, Event, EventKind, EventPayload, Json, RigSlug, Timestamp};

use super::hydrate::{IDS_PER_STATEMENT, placeholders};
use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

/// The columns of an event, in the order [`event_from`] reads them.
macro_rules! event_columns {
    () => {
        "number, at, type, bead, rig, run, actor, payload"
    };
}

statements! {
    LAST = "SELECT value FROM counters WHERE name = 'event'";
    AFTER = concat!("SELECT ", event_columns!(), " FROM events WHERE number > ?1 ORDER BY number");
    LATEST = concat!("SELECT ", event_columns!(), " FROM events ORDER BY number DESC");
    OF_BEAD = concat!("SELECT ", event_columns!(), " FROM events WHERE bead = ?1 ORDER BY number DESC");
    OLDEST = "SELECT number, at FROM events ORDER BY number LIMIT 1";
    KEPT_FROM = "SELECT number FROM events WHERE at >= ?1 OR number >= ?2 ORDER BY number LIMIT 1";
    PURGE = "DELETE FROM events WHERE number < ?1";
    AT = "SELECT at FROM events WHERE number = ?1";
    PAUSES = concat!("SELECT ", event_columns!(), " FROM events WHERE type IN ('paused', 'resumed') AND bead IS NULL \
        ORDER BY number");
    COUNT_OF_BEAD = "SELECT COUNT(*) FROM events WHERE bead = ?1";
}

/// A filter of events.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Only events of this bead.
    pub bead: Option<BeadId>,
    /// Only events in this rig.
    pub rig: Option<RigSlug>,
    /// Of these kinds; empty for all.
    pub kinds: Vec<EventKind>,
    /// Not before this.
    pub since: Option<Timestamp>,
    /// Only events of this actor.
    pub actor: Option<String>,
    /// Only events of a bead.
    pub of_beads: bool,
}

impl EventFilter {
    fn admits(&self, event: &Event) -> bool {
        self.bead.as_ref().is_none_or(|bead| event.bead.as_ref() == Some(bead))
            && self.rig.as_ref().is_none_or(|rig| event.rig.as_ref() == Some(rig))
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && self.since.is_none_or(|since| event.at >= since)
            && self.actor.as_ref().is_none_or(|actor| event.actor == *actor)
            && (!self.of_beads || event.bead.is_some())
    }
}

impl Reader<'_> {
    /// The number of the last event.
    pub fn last_event_number(&self) -> Result<u64, StoreError> {
        Ok(u64::try_from(self.number(LAST, &[])?).unwrap_or(0))
    }

    /// When the oldest event happened that is kept.
    pub fn oldest_event_at(&self) -> Result<Option<Timestamp>, StoreError> {
        self.first(OLDEST, &[], |row| Ok(Timestamp::from_nanos(row.int(1)?)))
    }

    /// The number and the time of the oldest event that is kept.
    pub fn oldest_event(&self) -> Result<Option<(u64, Timestamp)>, StoreError> {
        self.first(OLDEST, &[], |row| {
            Ok((u64::try_from(row.int(0)?).unwrap_or(0), Timestamp::from_nanos(row.int(1)?)))
        })
    }

    /// When the event of this number happened; nothing if it is not kept.
    pub fn event_time(&self, number: u64) -> Result<Option<Timestamp>, StoreError> {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.first(AT, &[number.into()], |row| Ok(Timestamp::from_nanos(row.int(0)?)))
    }

    /// The pauses of all starts and their ends, the oldest first.
    pub fn pause_events(&self) -> Result<Vec<Event>, StoreError> {
        self.rows(PAUSES, &[], event_from)
    }

    /// The events of these beads, the oldest first.
    pub fn events_of(&self, beads: &[BeadId]) -> Result<Vec<Event>, StoreError> {
        let mut found = Vec::new();
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let columns = event_columns!();
            let sql = format!("SELECT {columns} FROM events WHERE bead IN ({list})");
            found.extend(self.rows(&sql, &params, event_from)?);
        }
        found.sort_by_key(|event| event.number);
        Ok(found)
    }

    /// How many events of a bead there are.
    pub fn event_count(&self, bead: &BeadId) -> Result<u64, StoreError> {
        Ok(u64::try_from(self.number(COUNT_OF_BEAD, &[bead.into()])?).unwrap_or(0))
    }

    /// The events after `number` that the filter admits, in order, and the number to go on from: the
    /// last one looked at, admitted or not.
    pub fn events_after(
        &self,
        number: u64,
        filter: &EventFilter,
        limit: usize,
    ) -> Result<(Vec<Event>, u64), StoreError> {
        let mut reached = number;
        let after = i64::try_from(number).unwrap_or(i64::MAX);
        let found = self.admitted(AFTER, &[after.into()], filter, limit, |event| {
            reached = event.number;
        })?;
        Ok((found, reached))
    }

    /// The last `limit` events that the filter admits, oldest first.
    pub fn latest_events(
        &self,
        filter: &EventFilter,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let of_bead: Vec<Param<'_>> = filter.bead.iter().map(Param::from).collect();
        let sql = if of_bead.is_empty() { LATEST } else { OF_BEAD };
        let mut found = self.admitted(sql, &of_bead, filter, limit, |_| {})?;
        found.reverse();
        Ok(found)
    }

    /// The first `limit` events of an answer that the filter admits; every one looked at is shown to
    /// `seen`.
    fn admitted(
        &self,
        sql: &str,
        params: &[Param<'_>],
        filter: &EventFilter,
        limit: usize,
        mut seen: impl FnMut(&Event),
    ) -> Result<Vec<Event>, StoreError> {
        let mut found = Vec::new();
        if limit == 0 {
            return Ok(found);
        }
        self.scan(sql, params, |row| {
            let event = event_from(row)?;
            seen(&event);
            if filter.admits(&event) {
                found.push(event);
            }
            Ok(if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(found)
    }
}

impl Writer<'_> {
    /// Drops events from the beginning of the log, up to the first that did not happen before this, and at most `limit`;
    /// says how many. The last one stays, so that its number shows how many are gone.
    pub fn purge_events(&mut self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let Some(oldest) = self.first(OLDEST, &[], |row| row.int(0))? else { return Ok(0) };
        let params = [before.into(), oldest.saturating_add(limit.into()).into()];
        let kept_from = match self.first(KEPT_FROM, &params, |row| row.int(0))? {
            Some(number) => number,
            None => self.number(LAST, &[])?,
        };
        let gone = self.execute(PURGE, &[kept_from.into()])?;
        if gone > 0 {
            self.record_of_town(EventPayload::EventsPurged(PurgeCount { count: gone }));
        }
        Ok(gone)
    }
}

fn event_from(row: &dyn Row) -> Result<Event, StoreError> {
    let text = |column| -> Result<Option<String>, StoreError> {
        Ok(row.text_or_null(column)?.map(str::to_owned))
    };
    Ok(Event {
        number: u64::try_from(row.int(0)?).unwrap_or(0),
        at: Timestamp::from_nanos(row.int(1)?),
        kind: EventKind::from_name(row.text(2)?),
        bead: text(3)?.map(BeadId::trusted),
        rig: text(4)?.map(RigSlug::trusted),
        run: text(5)?,
        actor: row.text(6)?.to_owned(),
        payload: Json::trusted(row.text(7)?.to_owned()),
    })
}
