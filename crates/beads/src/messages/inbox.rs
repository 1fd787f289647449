//! Reading messages.

use gt_core::{Message, MessageAddress, MessageId};
use gt_store::{Reader, Writer};

use super::address::resolve_address;
use super::party::MessageParty;
use gt_town::{OperationError, Result, Town};

/// How many messages of an address are read when only unread ones count.
const UNREAD_MAX: usize = 1_000;

/// Messages to one reader.
#[derive(Debug, Clone)]
pub struct Inbox {
    /// The addresses of the reader.
    pub addresses: Vec<MessageAddress>,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
}

/// Messages to the caller, or to the address that `asked` means: the unread ones, or the last `all` of all. The
/// caller's own count as delivered.
pub fn inbox(
    town: &Town,
    role: Option<&str>,
    asked: Option<&str>,
    all: Option<usize>,
) -> Result<Inbox> {
    let (inbox, mine) = town.read(|reader| {
        let own = MessageParty::of(town, reader, role)?.addresses();
        let addresses = match asked {
            Some(asked) => vec![resolve_address(town, reader, asked)?],
            None => own.clone(),
        };
        let mut messages = Vec::new();
        for address in &addresses {
            messages.extend(match all {
                Some(limit) => reader.messages_to(address, limit)?,
                None => reader.unseen_messages(address, UNREAD_MAX)?,
            });
        }
        messages.sort_by_key(|message| message.id);
        if let Some(limit) = all {
            messages.drain(..messages.len().saturating_sub(limit));
        }
        let mine = addresses.iter().all(|address| own.contains(address));
        Ok((Inbox { addresses, messages }, mine))
    })?;
    if !mine || !inbox.messages.iter().any(is_queued) {
        return Ok(inbox);
    }
    let messages = town.write(|writer| {
        put_before_in(writer, &inbox.messages)?;
        inbox.messages.iter().map(|message| require(writer, message.id)).collect::<Result<_>>()
    })?;
    Ok(Inbox { messages, ..inbox })
}

/// The first answer to a message among the last messages to the caller. It does not count as read because of this.
pub fn answer_to(town: &Town, role: Option<&str>, id: MessageId) -> Result<Option<Message>> {
    let last = inbox(town, role, None, Some(UNREAD_MAX))?;
    Ok(last.messages.into_iter().find(|message| message.reply_to == Some(id)))
}

/// A message to any address. It does not count as read because of this.
pub fn show(town: &Town, id: &str) -> Result<Message> {
    let id = MessageId::parse(id)?;
    town.read(|reader| require(reader, id))
}

/// A message that the caller is about to read. The worker of a run that is over may not read.
pub fn read(town: &Town, role: Option<&str>, id: &str) -> Result<Message> {
    let id = MessageId::parse(id)?;
    town.read(|reader| {
        MessageParty::of(town, reader, role)?;
        require(reader, id)
    })
}

/// Marks these messages as read by the caller. Those that are for others, or were seen before, stay as they are. A
/// command calls this after it has shown the messages: a message that did not reach its reader was not seen.
pub fn mark_seen(town: &Town, role: Option<&str>, messages: &[Message]) -> Result<()> {
    if messages.iter().all(|message| message.seen_at.is_some()) {
        return Ok(());
    }
    town.write(|writer| {
        let party = MessageParty::of(town, writer, role)?;
        messages.iter().filter(|message| is_for(message, &party)).try_for_each(|message| {
            writer.message_seen(message)?;
            Ok(())
        })
    })
}

/// Marks a message as delivered; `false` if it was already.
pub fn delivered(town: &Town, id: MessageId) -> Result<bool> {
    town.write(|writer| {
        let message = require(writer, id)?;
        Ok(writer.message_delivered(&message)?)
    })
}

/// The unread messages of a party, oldest first.
pub fn unread_in(reader: &Reader<'_>, party: &MessageParty) -> Result<Vec<Message>> {
    let mut unread = Vec::new();
    for address in party.addresses() {
        unread.extend(reader.unseen_messages(&address, UNREAD_MAX)?);
    }
    unread.sort_by_key(|message| message.id);
    Ok(unread)
}

/// Marks these messages as delivered; they need not have been read.
pub fn put_before_in(writer: &mut Writer<'_>, messages: &[Message]) -> Result<()> {
    for message in messages.iter().filter(|message| is_queued(message)) {
        writer.message_delivered(message)?;
    }
    Ok(())
}

fn is_queued(message: &Message) -> bool {
    message.delivered_at.is_none() && message.seen_at.is_none()
}

/// Whether a message is for this party.
pub(super) fn is_for(message: &Message, party: &MessageParty) -> bool {
    party.addresses().contains(&message.to)
}

pub(super) fn require(reader: &Reader<'_>, id: MessageId) -> Result<Message> {
    reader.message(id)?.ok_or_else(|| {
        OperationError::rejected(format!(
            "there is no message {id}; gt mail inbox --all lists those to you"
        ))
    })
}
