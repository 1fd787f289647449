//! Notices to people.

use super::context::names;
use crate::{Invalid, Json, Timestamp};

names! {
    /// The way in which people are told.
    NoticeChannel, "a channel of notices" {
        /// A program of theirs is run.
        Command = "command",
        /// An address of theirs gets a request.
        Webhook = "webhook",
    }
}

names! {
    /// The state of a notice.
    NoticeState, "a state of a notice" {
        /// It is to be sent.
        Waiting = "waiting",
        /// It has arrived.
        Sent = "sent",
        /// It could not be sent too often.
        GivenUp = "given-up",
    }
}

/// Something that people are to be told on one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Its place in the order in which they were written.
    pub number: u64,
    /// Its subject. The same key is never written twice for a channel, so a receiver that gets a key
    /// twice has been sent the same notice twice.
    pub key: String,
    /// The channel.
    pub channel: NoticeChannel,
    /// The text that is sent, a JSON object.
    pub payload: Json,
    /// When it was written.
    pub created_at: Timestamp,
    /// Not to be sent before this.
    pub next_attempt_at: Timestamp,
    /// How often sending has begun.
    pub attempts: u32,
    /// Why that failed the last time; empty if it did not.
    pub last_error: String,
    /// Its state.
    pub state: NoticeState,
}
