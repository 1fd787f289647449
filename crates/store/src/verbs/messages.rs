//! Messages and their receipts.

use gt_core::event::{MessageDetails, PurgeCount};
use gt_core::message::{MessageKind, MessageTopic, NewMessage, Severity};
use gt_core::{
    BeadId, EventPayload, Message, MessageAddress, MessageId, NewEvent, RigSlug, Sender, Timestamp,
    Title,
};

use super::contexts::{as_int, count};
use super::statements;
use crate::engine::Row;
use crate::{Reader, StoreError, Writer};

/// The columns of a message, in the order [`message_from`] reads them.
macro_rules! message_columns {
    () => {
        "number, kind, severity, sender, recipient, subject, body, bead, reply_to, created_at, delivered_at, \
         seen_at, topic"
    };
}

statements! {
    ONE = concat!("SELECT ", message_columns!(), " FROM messages WHERE number = ?1");
    TO = concat!("SELECT ", message_columns!(), " FROM messages WHERE recipient = ?1 \
        ORDER BY number DESC LIMIT ?2");
    UNSEEN = concat!("SELECT ", message_columns!(), " FROM messages WHERE recipient = ?1 \
        AND seen_at IS NULL ORDER BY number LIMIT ?2");
    ASKING = concat!("SELECT ", message_columns!(), " FROM messages WHERE kind = 'escalation' \
        AND seen_at IS NULL ORDER BY number");
    UNDELIVERED = concat!("SELECT ", message_columns!(), " FROM messages WHERE kind = ?1 \
        AND delivered_at IS NULL AND seen_at IS NULL ORDER BY number LIMIT ?2");
    LAST_NUMBER = "SELECT value FROM counters WHERE name = 'message'";
    SET_LAST_NUMBER = "UPDATE counters SET value = ?1 WHERE name = 'message'";
    INSERT = "INSERT INTO messages (number, id, kind, severity, sender, recipient, subject, body, bead, \
        reply_to, created_at, topic) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    DELIVERED = "UPDATE messages SET delivered_at = ?2 WHERE number = ?1 AND delivered_at IS NULL \
        AND seen_at IS NULL";
    SEEN = "UPDATE messages SET seen_at = ?2, delivered_at = COALESCE(delivered_at, ?2) WHERE number = ?1 \
        AND seen_at IS NULL";
    OLDEST = "SELECT created_at FROM messages ORDER BY number LIMIT 1";
    PURGE = "DELETE FROM messages WHERE seen_at IS NOT NULL AND seen_at < ?1";
}

impl Reader<'_> {
    /// The message of this name.
    pub fn message(&self, id: MessageId) -> Result<Option<Message>, StoreError> {
        self.first(ONE, &[as_int(id.number()).into()], message_from)
    }

    /// The last messages to an address, newest first.
    pub fn messages_to(
        &self,
        to: &MessageAddress,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        self.addressed(TO, to, limit)
    }

    /// The unread messages to an address, oldest first.
    pub fn unseen_messages(
        &self,
        to: &MessageAddress,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        self.addressed(UNSEEN, to, limit)
    }

    /// The nudges that are not delivered yet, oldest first.
    pub fn undelivered_nudges(&self, limit: usize) -> Result<Vec<Message>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let params = [MessageKind::Nudge.as_str().into(), limit.into()];
        self.rows(UNDELIVERED, &params, message_from)
    }

    /// The unread messages that ask for a person, oldest first.
    pub fn unseen_escalations(&self) -> Result<Vec<Message>, StoreError> {
        self.rows(ASKING, &[], message_from)
    }

    /// When the first message that is still there was written.
    pub fn oldest_message_at(&self) -> Result<Option<Timestamp>, StoreError> {
        self.first(OLDEST, &[], |row| Ok(Timestamp::from_nanos(row.int(0)?)))
    }

    fn addressed(
        &self,
        sql: &str,
        to: &MessageAddress,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        let to = to.to_string();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.rows(sql, &[to.as_str().into(), limit.into()], message_from)
    }
}

impl Writer<'_> {
    /// Keeps a message for its recipient.
    pub fn send_message(&mut self, new: NewMessage) -> Result<Message, StoreError> {
        let number = self.number(LAST_NUMBER, &[])? + 1;
        self.apply(SET_LAST_NUMBER, &[number.into()])?;
        let message = Message {
            id: MessageId::of_number(count(number)),
            kind: new.kind,
            from: new.from,
            to: new.to,
            subject: new.subject.as_ref().map_or("", Title::as_str).to_owned(),
            body: new.body.as_str().to_owned(),
            bead: new.bead,
            topic: new.topic,
            reply_to: new.reply_to,
            created_at: self.now(),
            delivered_at: None,
            seen_at: None,
        };
        let (id, from, to) =
            (message.id.to_string(), message.from.to_string(), message.to.to_string());
        let reply_to = message.reply_to.map(|id| id.to_string()).unwrap_or_default();
        let params = [
            number.into(),
            id.as_str().into(),
            message.kind.as_str().into(),
            message.kind.severity().map_or("", Severity::as_str).into(),
            from.as_str().into(),
            to.as_str().into(),
            (&message.subject).into(),
            (&message.body).into(),
            message.bead.as_ref().map_or("", BeadId::as_str).into(),
            reply_to.as_str().into(),
            message.created_at.into(),
            message.topic.map_or("", MessageTopic::as_str).into(),
        ];
        self.execute(INSERT, &params)?;
        let kind = match message.kind {
            MessageKind::Mail | MessageKind::Nudge => EventPayload::MessageSent,
            MessageKind::Escalation(_) => EventPayload::HelpWanted,
        };
        self.record_message(&message, kind);
        Ok(message)
    }

    /// A message was put where its recipient looks; `false` if it was before.
    pub fn message_delivered(&mut self, message: &Message) -> Result<bool, StoreError> {
        self.advance(DELIVERED, message, EventPayload::MessageDelivered)
    }

    /// The recipient of a message has read it; `false` if they had before.
    pub fn message_seen(&mut self, message: &Message) -> Result<bool, StoreError> {
        self.advance(SEEN, message, EventPayload::MessageSeen)
    }

    /// Deletes the messages that were read before this; says how many. Unread messages stay.
    pub fn purge_messages(&mut self, read_before: Timestamp) -> Result<u64, StoreError> {
        let gone = self.execute(PURGE, &[read_before.into()])?;
        if gone > 0 {
            self.record_of_town(EventPayload::MessagesPurged(PurgeCount { count: gone }));
        }
        Ok(gone)
    }

    fn advance(
        &mut self,
        sql: &str,
        message: &Message,
        kind: fn(MessageDetails) -> EventPayload,
    ) -> Result<bool, StoreError> {
        if self.execute(sql, &[as_int(message.id.number()).into(), self.now().into()])? == 0 {
            return Ok(false);
        }
        self.record_message(message, kind);
        Ok(true)
    }

    /// Tells of a message in a line; its full text is for its recipient.
    fn record_message(&mut self, message: &Message, kind: fn(MessageDetails) -> EventPayload) {
        let run = match &message.from {
            Sender::Worker(run) => Some(run.clone()),
            Sender::Standing(_) | Sender::Person(_) => None,
        };
        let payload = kind(MessageDetails {
            message: message.id.to_string(),
            kind: message.kind.as_str().to_owned(),
            from: message.from.to_string(),
            to: message.to.to_string(),
            subject: message.headline().to_owned(),
            severity: message.kind.severity().map(|severity| severity.as_str().to_owned()),
        });
        self.record(NewEvent {
            bead: message.bead.clone(),
            rig: message.to.rig().map(|rig| RigSlug::trusted(rig.to_owned())),
            run,
            payload,
        });
    }
}

fn message_from(row: &dyn Row) -> Result<Message, StoreError> {
    let instant = |column| -> Result<Option<Timestamp>, StoreError> {
        Ok(row.int_or_null(column)?.map(Timestamp::from_nanos))
    };
    let bead = row.text(7)?;
    Ok(Message {
        id: MessageId::of_number(count(row.int(0)?)),
        kind: MessageKind::parse(row.text(1)?, row.text(2)?)?,
        from: Sender::stored(row.text(3)?),
        to: MessageAddress::stored(row.text(4)?),
        subject: row.text(5)?.to_owned(),
        body: row.text(6)?.to_owned(),
        bead: (!bead.is_empty()).then(|| BeadId::trusted(bead.to_owned())),
        topic: match row.text(12)? {
            "" => None,
            topic => Some(MessageTopic::parse(topic)?),
        },
        reply_to: MessageId::parse(row.text(8)?).ok(),
        created_at: Timestamp::from_nanos(row.int(9)?),
        delivered_at: instant(10)?,
        seen_at: instant(11)?,
    })
}
