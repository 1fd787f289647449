//! Writing messages.

use gt_core::message::{MessageBody, MessageKind, NewMessage};
use gt_core::secret_mask::SecretMask;
use gt_core::{BeadId, Message, MessageAddress, MessageId, Title};
use gt_store::Writer;

use super::address::{check, resolve_address};
use super::inbox::{is_for, require};
use super::party::MessageParty;
use gt_town::{OperationError, Result, Town};

/// A message to be sent.
#[derive(Debug, Clone, Default)]
pub struct MessageToSend {
    /// The subject, in a line.
    pub subject: Option<String>,
    /// The text.
    pub body: String,
    /// It is typed into the session of a working receiver, instead of waiting until they look.
    pub nudge: bool,
}

impl MessageToSend {
    fn kind(&self) -> MessageKind {
        if self.nudge { MessageKind::Nudge } else { MessageKind::Mail }
    }

    /// The checked subject and text: one of them must not be empty.
    fn words(&self) -> Result<(Option<Title>, MessageBody)> {
        let subject = self.subject.as_deref().map(subject).transpose()?;
        let body = MessageBody::parse(&self.body)?;
        if subject.is_none() && body.is_empty() {
            return Err(OperationError::rejected("the message is empty; say something"));
        }
        Ok((subject, body))
    }
}

/// Stores a message for the address that `to` means. The caller is `role` if the environment says so.
pub fn send(town: &Town, role: Option<&str>, to: &str, letter: &MessageToSend) -> Result<Message> {
    let (subject, body) = letter.words()?;
    town.write(|writer| {
        let party = MessageParty::of(town, writer, role)?;
        let to = resolve_address(town, writer, to)?;
        let bead = topic(&party, &to);
        let (kind, from) = (letter.kind(), party.sender(town));
        let new = NewMessage { kind, from, to, subject, body, bead, topic: None, reply_to: None };
        send_in(writer, new)
    })
}

/// Stores a message, without the keys of accounts that stand in it: mail is read and passed on by others.
pub fn send_in(writer: &mut Writer<'_>, mut new: NewMessage) -> Result<Message> {
    let mask = SecretMask::of_accounts(&writer.accounts_to_mask()?);
    new.body = MessageBody::parse(&mask.mask(new.body.as_str()))?;
    new.subject =
        new.subject.map(|subject| Title::parse(&mask.mask(subject.as_str()))).transpose()?;
    Ok(writer.send_message(new)?)
}

/// Answers a message. An answer to the caller's own message goes to the same receiver; a message to the caller counts
/// as read when it is answered.
pub fn reply(town: &Town, role: Option<&str>, id: &str, letter: &MessageToSend) -> Result<Message> {
    write_reply(town, role, id, letter, |_| Ok(()))
}

/// Answers a message that was not read yet: of two answers in the same instant one is refused.
pub fn reply_to_unread(town: &Town, id: &str, letter: &MessageToSend) -> Result<Message> {
    write_reply(town, None, id, letter, refuse_read)
}

/// Refuses to answer a message a second time, which would surprise its sender.
pub fn refuse_read(message: &Message) -> Result<()> {
    match message.seen_at {
        None => Ok(()),
        Some(at) => Err(OperationError::rejected(format!(
            "{} was answered or read already, at {}",
            message.id,
            at.floor_to_second()
        ))),
    }
}

fn write_reply(
    town: &Town,
    role: Option<&str>,
    id: &str,
    letter: &MessageToSend,
    refuse: fn(&Message) -> Result<()>,
) -> Result<Message> {
    let id = MessageId::parse(id)?;
    let (given, body) = letter.words()?;
    town.write(|writer| {
        let party = MessageParty::of(town, writer, role)?;
        let answered = require(writer, id)?;
        refuse(&answered)?;
        let from = party.sender(town);
        let mine = is_for(&answered, &party);
        let to = if answered.from == from && !mine {
            answered.to.clone()
        } else {
            answered.from.answers_go_to()
        };
        check(writer, &to)?;
        let subject = given.clone().or_else(|| subject_of_answer(&answered));
        let bead = answered.bead.clone().or_else(|| topic(&party, &to));
        let (kind, reply_to) = (letter.kind(), Some(id));
        let new = NewMessage { kind, from, to, subject, body, bead, topic: None, reply_to };
        let sent = send_in(writer, new)?;
        if mine {
            writer.message_seen(&answered)?;
        }
        Ok(sent)
    })
}

/// The bead that a message is about.
fn topic(party: &MessageParty, to: &MessageAddress) -> Option<BeadId> {
    match (to, party) {
        (MessageAddress::Work(bead), _) => Some(bead.clone()),
        (_, MessageParty::Worker(run)) => Some(run.id.bead.clone()),
        (_, MessageParty::Standing(_) | MessageParty::Person) => None,
    }
}

/// The subject of a message, checked.
pub fn subject(text: &str) -> Result<Title> {
    Title::parse(text).map_err(|invalid| {
        OperationError::rejected(
            invalid
                .0
                .replace("a title", "a subject")
                .replace("put the rest into the description", "put the rest into the message"),
        )
    })
}

fn subject_of_answer(answered: &Message) -> Option<Title> {
    let about = answered.headline();
    let text = if about.starts_with("Re: ") { about.to_owned() } else { format!("Re: {about}") };
    let cut = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= SUBJECT_BYTES).last();
    Title::parse(&text[..cut.filter(|_| text.len() > SUBJECT_BYTES).unwrap_or(text.len())]).ok()
}

/// How much of a subject an answer repeats.
const SUBJECT_BYTES: usize = 100;
