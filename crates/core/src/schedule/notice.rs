//! What people are told.

use super::context::names;
use crate::{Invalid, Json, Timestamp};

names! {
    /// How people are told.
    Channel, "a channel of notices" {
        /// A program of theirs is run.
        Command = "command",
        /// An address of theirs gets a request.
        Webhook = "webhook",
    }
}

names! {
    /// Where a notice stands.
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
    /// What it is about. The same key is never written twice for a channel, and whoever receives a key
    /// twice has been sent the same notice twice.
    pub key: String,
    /// How it is sent.
    pub channel: Channel,
    /// What is sent, an object.
    pub payload: Json,
    /// When it was written.
    pub created_at: Timestamp,
    /// Not to be sent before this.
    pub next_attempt_at: Timestamp,
    /// How often somebody has begun to send it.
    pub attempts: u32,
    /// Why that failed the last time; empty if it did not.
    pub last_error: String,
    /// Where it stands.
    pub state: NoticeState,
}
