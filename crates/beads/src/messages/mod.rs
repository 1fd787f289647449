//! Messages between people and workers, with receipts: queued, delivered, seen.

mod address;
mod escalate;
mod inbox;
mod party;
mod send;
#[cfg(test)]
mod tests;
mod wait;

pub(crate) use address::check as check_address;
pub use escalate::{Escalation, escalate, escalate_finding_in, escalate_in, needs_you_in};
pub use inbox::{Inbox, answer_to, delivered, inbox, mark_seen, read, show};
pub use inbox::{put_before_in, unread_in};
pub use party::MessageParty;
pub use send::subject;
pub use send::{MessageToSend, refuse_read, reply, reply_to_unread, send, send_in};
pub use wait::wait_until_seen;
