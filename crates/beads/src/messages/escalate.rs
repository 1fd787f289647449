//! Asking for a person.

use gt_core::message::{MessageBody, MessageKind, MessageTopic, NewMessage, Severity};
use gt_core::{BeadId, Message, MessageAddress, Sender, Status};
use gt_store::{Reader, Writer};

use super::party::MessageParty;
use super::send::send_in;
use crate::lookup::resolve_in;
use gt_town::{OperationError, Result, Town};

/// A request for a person.
#[derive(Debug, Clone)]
pub struct Escalation {
    /// The bead it is about; a worker's own if it is not said.
    pub bead: Option<String>,
    /// The request, in words.
    pub words: String,
    /// How much depends on an answer.
    pub severity: Severity,
}

/// Asks for a person: the request is listed in `gt status` and similar views, and sent on the channels of the town.
/// The caller is `role` if the environment says so.
pub fn escalate(town: &Town, role: Option<&str>, wanted: &Escalation) -> Result<Message> {
    let body = MessageBody::parse(&wanted.words)?;
    if body.is_empty() {
        return Err(OperationError::rejected("say what you need a person for"));
    }
    town.write(|writer| {
        let party = MessageParty::of(town, writer, role)?;
        let bead = match (&wanted.bead, &party) {
            (Some(input), _) => Some(resolve_in(town, writer, input)?),
            (None, MessageParty::Worker(run)) => Some(run.id.bead.clone()),
            (None, MessageParty::Standing(_) | MessageParty::Person) => None,
        };
        escalate_in(writer, party.sender(town), bead, body, wanted.severity)
    })
}

/// Like [`escalate`], inside a larger transaction.
pub fn escalate_in(
    writer: &mut Writer<'_>,
    from: Sender,
    bead: Option<BeadId>,
    body: MessageBody,
    severity: Severity,
) -> Result<Message> {
    send_escalation_in(writer, from, bead, body, severity, None)
}

/// Tells a person what a program of ours has found.
pub fn escalate_finding_in(
    writer: &mut Writer<'_>,
    from: Sender,
    body: MessageBody,
    topic: MessageTopic,
) -> Result<Message> {
    send_escalation_in(writer, from, None, body, Severity::High, Some(topic))
}

fn send_escalation_in(
    writer: &mut Writer<'_>,
    from: Sender,
    bead: Option<BeadId>,
    body: MessageBody,
    severity: Severity,
    topic: Option<MessageTopic>,
) -> Result<Message> {
    let (kind, to) = (MessageKind::Escalation(severity), MessageAddress::Mayor);
    let new = NewMessage { kind, from, to, subject: None, body, bead, topic, reply_to: None };
    send_in(writer, new)
}

/// Requests for a person that were not acknowledged yet, the most severe first: all, or those about one bead. Requests
/// about closed work do not count.
pub fn needs_you_in(reader: &Reader<'_>, of: Option<&BeadId>) -> Result<Vec<Message>> {
    let mut asking = Vec::new();
    for message in reader.unseen_escalations()? {
        if of.is_some() && message.bead.as_ref() != of {
            continue;
        }
        let bead = message.bead.as_ref().map(|id| reader.bead(id)).transpose()?.flatten();
        if bead.is_none_or(|bead| bead.status != Status::Closed) {
            asking.push(message);
        }
    }
    let rank = |message: &Message| {
        let severity = message.kind.severity();
        Severity::ALL.iter().position(|known| Some(*known) == severity)
    };
    asking.sort_by_key(|message| std::cmp::Reverse(rank(message)));
    Ok(asking)
}
