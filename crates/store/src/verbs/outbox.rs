//! Notices to people. Writing and sending a notice is no event: the notice is about an event.

use gt_core::schedule::{Notice, NoticeChannel, NoticeState};
use gt_core::{Json, Timestamp};

use super::contexts::{as_int, count};
use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

/// The columns of a notice, in the order [`notice_from`] reads them.
macro_rules! notice_columns {
    () => {
        "number, key, channel, payload, created_at, next_attempt_at, attempts, last_error, state"
    };
}

statements! {
    DUE = concat!("SELECT ", notice_columns!(), " FROM outbox WHERE state = 'waiting' AND channel = ?1 \
        AND next_attempt_at <= ?2 ORDER BY next_attempt_at, number LIMIT 1");
    FAR = concat!("SELECT ", notice_columns!(), " FROM outbox WHERE state = 'waiting' AND channel = ?1 \
        AND next_attempt_at > ?2 ORDER BY next_attempt_at, number LIMIT 1");
    UNSENT = concat!("SELECT ", notice_columns!(), " FROM outbox WHERE state = 'waiting' \
        UNION ALL SELECT ", notice_columns!(), " FROM outbox WHERE state = 'given-up' ORDER BY number LIMIT ?1");
    NEXT_DUE = "SELECT MIN(next_attempt_at) FROM outbox WHERE state = 'waiting'";
    WAITING = "SELECT COUNT(*) FROM outbox WHERE state = 'waiting'";
    GIVEN_UP = "SELECT COUNT(*) FROM outbox WHERE state = 'given-up'";
    BY_KEY = concat!("SELECT ", notice_columns!(), " FROM outbox WHERE key = ?1 AND channel = ?2");
    LAST_NUMBER = "SELECT value FROM counters WHERE name = 'notice'";
    SET_LAST_NUMBER = "UPDATE counters SET value = ?1 WHERE name = 'notice'";
    INSERT = concat!("INSERT INTO outbox (", notice_columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?5, 0, '', 'waiting')");
    TAKE = "UPDATE outbox SET attempts = attempts + 1, next_attempt_at = ?2 WHERE number = ?1 \
        AND state = 'waiting'";
    SENT = "UPDATE outbox SET state = 'sent', last_error = '' WHERE number = ?1";
    FAILED = "UPDATE outbox SET state = ?3, next_attempt_at = ?4, last_error = ?5 WHERE number = ?1 \
        AND attempts = ?2 AND state = 'waiting'";
    HURRY = "UPDATE outbox SET next_attempt_at = ?1 WHERE state = 'waiting'";
    REVIVE = "UPDATE outbox SET state = 'waiting', attempts = 0, next_attempt_at = ?1 WHERE state = 'given-up'";
}

/// Which waiting notices may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueNotices {
    /// Those whose time has come by now.
    pub now: Timestamp,
    /// Those that wait for a time beyond this too: a clock that has jumped since wrote it.
    pub far: Timestamp,
}

/// How many notices have not arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnsentNotices {
    /// They are still tried.
    pub waiting: u64,
    /// They are not tried any more.
    pub given_up: u64,
}

impl Reader<'_> {
    /// When the next notice is to be tried.
    pub fn next_notice_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let due = self.first(NEXT_DUE, &[], |row| row.int_or_null(0))?;
        Ok(due.flatten().map(Timestamp::from_nanos))
    }

    /// The notice that a channel should try next.
    pub fn due_notice(
        &self,
        channel: NoticeChannel,
        due: DueNotices,
    ) -> Result<Option<Notice>, StoreError> {
        let first = |sql, at: Timestamp| {
            self.first(sql, &[channel.as_str().into(), at.into()], notice_from)
        };
        match first(DUE, due.now)? {
            None => first(FAR, due.far),
            found => Ok(found),
        }
    }

    /// Notices that have not arrived, oldest first.
    pub fn unsent_notices(&self, limit: usize) -> Result<Vec<Notice>, StoreError> {
        self.rows(UNSENT, &[i64::try_from(limit).unwrap_or(i64::MAX).into()], notice_from)
    }

    /// How many notices have not arrived.
    pub fn unsent_notice_counts(&self) -> Result<UnsentNotices, StoreError> {
        Ok(UnsentNotices {
            waiting: count(self.number(WAITING, &[])?),
            given_up: count(self.number(GIVEN_UP, &[])?),
        })
    }

    /// The notice of this key on a channel, also if it has arrived.
    pub fn notice(&self, key: &str, channel: NoticeChannel) -> Result<Option<Notice>, StoreError> {
        self.first(BY_KEY, &[key.into(), channel.as_str().into()], notice_from)
    }
}

impl Writer<'_> {
    /// Writes a notice to be sent at once; `false` if the channel was given this key before.
    pub fn put_notice(
        &mut self,
        key: &str,
        channel: NoticeChannel,
        payload: &Json,
    ) -> Result<bool, StoreError> {
        if self.notice(key, channel)?.is_some() {
            return Ok(false);
        }
        let number = self.number(LAST_NUMBER, &[])? + 1;
        self.apply(SET_LAST_NUMBER, &[number.into()])?;
        let params = [
            number.into(),
            key.into(),
            channel.as_str().into(),
            Param::Text(payload.as_str()),
            self.now().into(),
        ];
        self.execute(INSERT, &params)?;
        self.note_notice();
        Ok(true)
    }

    /// Takes the notice that a channel should try next: until `lease` no other process does.
    pub fn take_notice(
        &mut self,
        channel: NoticeChannel,
        due: DueNotices,
        lease: Timestamp,
    ) -> Result<Option<Notice>, StoreError> {
        let Some(notice) = self.due_notice(channel, due)? else {
            return Ok(None);
        };
        self.execute(TAKE, &[as_int(notice.number).into(), lease.into()])?;
        let attempts = notice.attempts.saturating_add(1);
        Ok(Some(Notice { attempts, next_attempt_at: lease, ..notice }))
    }

    /// A notice has arrived.
    pub fn notice_sent(&mut self, notice: &Notice) -> Result<(), StoreError> {
        self.execute(SENT, &[as_int(notice.number).into()])?;
        Ok(())
    }

    /// A notice that was taken could not be sent: it is tried again, or given up. `false` if another process
    /// has taken it since, or sent it.
    pub fn notice_failed(
        &mut self,
        notice: &Notice,
        error: &str,
        next: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let state = match next {
            Some(_) => NoticeState::Waiting,
            None => NoticeState::GivenUp,
        };
        let params = [
            as_int(notice.number).into(),
            i64::from(notice.attempts).into(),
            state.as_str().into(),
            next.unwrap_or(self.now()).into(),
            error.into(),
        ];
        Ok(self.execute(FAILED, &params)? > 0)
    }

    /// Makes everything due that has not arrived; notices that were given up begin anew. Returns how many.
    pub fn retry_notices(&mut self) -> Result<u64, StoreError> {
        let hurried = self.execute(HURRY, &[self.now().into()])?;
        Ok(hurried + self.execute(REVIVE, &[self.now().into()])?)
    }
}

fn notice_from(row: &dyn Row) -> Result<Notice, StoreError> {
    Ok(Notice {
        number: count(row.int(0)?),
        key: row.text(1)?.to_owned(),
        channel: NoticeChannel::parse(row.text(2)?)?,
        payload: Json::trusted(row.text(3)?.to_owned()),
        created_at: Timestamp::from_nanos(row.int(4)?),
        next_attempt_at: Timestamp::from_nanos(row.int(5)?),
        attempts: u32::try_from(row.int(6)?).unwrap_or(u32::MAX),
        last_error: row.text(7)?.to_owned(),
        state: NoticeState::parse(row.text(8)?)?,
    })
}
