//! Messages between people and workers: their addresses, and whether they were delivered and read.

use std::fmt;

use crate::schedule::{RunId, WorkerPlace, names};
use crate::{BeadId, Invalid, RigSlug, Timestamp, Title, limits};

/// The name of a message, such as `msg-17`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(u64);

impl MessageId {
    /// The name of the message with this number.
    pub fn of_number(number: u64) -> Self {
        Self(number)
    }

    /// Reads `msg-17`, or only `17`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        let digits = text.strip_prefix("msg-").unwrap_or(text);
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse().ok().filter(|number| *number > 0 && plain);
        number.map(Self).ok_or_else(|| {
            Invalid(format!(
                "\"{}\" is not a message; messages look like msg-17, and gt mail inbox lists yours",
                shown(text)
            ))
        })
    }

    /// The number.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "msg-{}", self.0)
    }
}

/// The address of a message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageAddress {
    /// The people who look after the town.
    Mayor,
    /// The agent that looks after recovery.
    Deacon,
    /// The agent that looks after the workers of a rig.
    Witness(RigSlug),
    /// The agent that looks after the merges of a rig.
    Refinery(RigSlug),
    /// A polecat, a person or a standing agent.
    Place(WorkerPlace),
    /// The worker of this bead, now or next: the message is about the work, which may pass to another worker.
    Work(BeadId),
}

/// The forms of an address, for the error about any other text.
pub const ADDRESS_FORMS: &str = "mayor, deacon, <rig>/witness, <rig>/refinery, <rig>/crew/<name>, \
    <rig>/polecats/<name>, or a bead or run for its worker";

/// An address as it was written. A name that only the town can resolve is kept as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrittenAddress {
    /// A role that always exists.
    Standing(MessageAddress),
    /// The worker of this run.
    Run(RunId),
    /// The worker of the bead that has this name.
    Bead(String),
}

impl WrittenAddress {
    /// Reads an address. `<rig>/<name>` is the polecat of that name.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        let invalid =
            || Invalid(format!("\"{}\" is not an address; write {ADDRESS_FORMS}", shown(text)));
        if let Ok(run) = RunId::parse(text)
            && !text.contains('/')
        {
            return Ok(Self::Run(run));
        }
        let parts: Vec<&str> = text.strip_suffix('/').unwrap_or(text).split('/').collect();
        // White space at the end of an address would be invisible.
        if parts.iter().any(|part| part.trim() != *part) {
            return Err(invalid());
        }
        let address = match parts.as_slice() {
            ["mayor"] => MessageAddress::Mayor,
            ["deacon"] => MessageAddress::Deacon,
            [name] if !name.is_empty() => return Ok(Self::Bead((*name).to_owned())),
            [rig, "witness"] => MessageAddress::Witness(RigSlug::parse(rig)?),
            [rig, "refinery"] => MessageAddress::Refinery(RigSlug::parse(rig)?),
            [_, "crew" | "polecats"] => return Err(invalid()),
            [rig, "crew", name] => {
                MessageAddress::Place(WorkerPlace::crew(&RigSlug::parse(rig)?, name)?)
            }
            [rig, "polecats", name] | [rig, name] => {
                MessageAddress::Place(WorkerPlace::polecat(&RigSlug::parse(rig)?, name)?)
            }
            _ => return Err(invalid()),
        };
        Ok(Self::Standing(address))
    }
}

impl MessageAddress {
    /// The address that this text is, written in full; nothing if it is none.
    pub fn exact(text: &str) -> Option<Self> {
        match WrittenAddress::parse(text) {
            Ok(WrittenAddress::Standing(address)) if address.to_string() == text => Some(address),
            _ => None,
        }
    }

    /// Wraps text that was an address when it was stored.
    pub fn stored(text: &str) -> Self {
        Self::exact(text).unwrap_or_else(|| Self::Work(BeadId::trusted(text.to_owned())))
    }

    /// The rig it belongs to, if it names one.
    pub fn rig(&self) -> Option<&str> {
        match self {
            Self::Mayor | Self::Deacon | Self::Work(_) => None,
            Self::Witness(rig) | Self::Refinery(rig) => Some(rig.as_str()),
            Self::Place(place) => place.as_str().split('/').next(),
        }
    }
}

impl fmt::Display for MessageAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mayor => f.write_str("mayor"),
            Self::Deacon => f.write_str("deacon"),
            Self::Witness(rig) => write!(f, "{rig}/witness"),
            Self::Refinery(rig) => write!(f, "{rig}/refinery"),
            Self::Place(place) => place.fmt(f),
            Self::Work(bead) => bead.fmt(f),
        }
    }
}

/// The sender of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sender {
    /// The worker of a run.
    Worker(RunId),
    /// A sender with an address of its own.
    Standing(MessageAddress),
    /// A person, by name.
    Person(String),
}

impl Sender {
    /// Wraps text that was a sender when it was stored.
    pub fn stored(text: &str) -> Self {
        match (MessageAddress::exact(text), RunId::parse(text)) {
            (Some(address), _) => Self::Standing(address),
            (None, Ok(run)) => Self::Worker(run),
            (None, Err(_)) => Self::Person(text.to_owned()),
        }
    }

    /// Where an answer goes. People without an address read the mayor's messages.
    pub fn answers_go_to(&self) -> MessageAddress {
        match self {
            Self::Worker(run) => MessageAddress::Work(run.bead.clone()),
            Self::Standing(address) => address.clone(),
            Self::Person(_) => MessageAddress::Mayor,
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker(run) => run.fmt(f),
            Self::Standing(address) => address.fmt(f),
            Self::Person(name) => f.write_str(name),
        }
    }
}

names! {
    /// How much depends on an answer.
    Severity, "a severity; use low, medium, high or critical" {
        /// Whenever there is time.
        Low = "low",
        /// The work goes on, but not for long.
        Medium = "medium",
        /// The work cannot go on.
        High = "high",
        /// More than this work is in danger.
        Critical = "critical",
    }
}

/// The purpose of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// To be read at any time.
    Mail,
    /// To be typed into the session of a working agent.
    Nudge,
    /// A person is asked.
    Escalation(Severity),
}

impl MessageKind {
    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Nudge => "nudge",
            Self::Escalation(_) => "escalation",
        }
    }

    /// How much depends on an answer, if a person is asked.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Mail | Self::Nudge => None,
            Self::Escalation(severity) => Some(severity),
        }
    }

    /// The kind of this name and severity, which is empty for none.
    pub fn parse(name: &str, severity: &str) -> Result<Self, Invalid> {
        match (name, severity) {
            ("mail", "") => Ok(Self::Mail),
            ("nudge", "") => Ok(Self::Nudge),
            ("escalation", severity) => Ok(Self::Escalation(Severity::parse(severity)?)),
            _ => Err(Invalid(format!("\"{}\" is not a kind of message", shown(name)))),
        }
    }
}

names! {
    /// The finding that a message of ours tells a person about.
    MessageTopic, "a topic of a message" {
        /// Commits of a worker that no landing brought to a branch of the origin.
        ForeignCommits = "foreign-commits",
        /// Changes of the repository that the workers of a rig share.
        RepositoryChanged = "repository-changed",
    }
}

names! {
    /// The state of the delivery of a message.
    Receipt, "a receipt of a message" {
        /// It is kept for its recipient.
        Queued = "queued",
        /// It was put where its recipient looks.
        Delivered = "delivered",
        /// Its recipient has read it.
        Seen = "seen",
    }
}

/// The words of a message: lines that do nothing to a terminal, of a bounded length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageBody(String);

impl MessageBody {
    /// Checks the words. White space at the end is not part of them.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.replace("\r\n", "\n");
        let text = text.trim_end();
        if text.len() > limits::MESSAGE_BYTES_MAX {
            return Err(Invalid(format!(
                "a message has at most {} bytes, this one has {}; put the rest into a file or a comment",
                limits::MESSAGE_BYTES_MAX,
                text.len()
            )));
        }
        if let Some(control) = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
            return Err(Invalid(format!(
                "a message is text without control characters; this one has {}",
                control.escape_debug()
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }
}

/// A message that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Its purpose.
    pub kind: MessageKind,
    /// The sender.
    pub from: Sender,
    /// The recipient.
    pub to: MessageAddress,
    /// The subject, in a line.
    pub subject: Option<Title>,
    /// The text.
    pub body: MessageBody,
    /// The bead it is about.
    pub bead: Option<BeadId>,
    /// The finding that it tells a person about, if a program of ours made it.
    pub topic: Option<MessageTopic>,
    /// The message it answers.
    pub reply_to: Option<MessageId>,
}

/// A message with its receipts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its name.
    pub id: MessageId,
    /// Its purpose.
    pub kind: MessageKind,
    /// The sender.
    pub from: Sender,
    /// The recipient.
    pub to: MessageAddress,
    /// The subject; empty if there is none.
    pub subject: String,
    /// The text.
    pub body: String,
    /// The bead it is about.
    pub bead: Option<BeadId>,
    /// The finding that it tells a person about, if a program of ours made it.
    pub topic: Option<MessageTopic>,
    /// The message it answers.
    pub reply_to: Option<MessageId>,
    /// When it was sent.
    pub created_at: Timestamp,
    /// When it was put where its recipient looks.
    pub delivered_at: Option<Timestamp>,
    /// When its recipient read it.
    pub seen_at: Option<Timestamp>,
}

impl Message {
    /// The state of its delivery.
    pub fn receipt(&self) -> Receipt {
        match (self.seen_at, self.delivered_at) {
            (Some(_), _) => Receipt::Seen,
            (None, Some(_)) => Receipt::Delivered,
            (None, None) => Receipt::Queued,
        }
    }

    /// A line that sums it up: its subject, else how its text begins.
    pub fn headline(&self) -> &str {
        if self.subject.is_empty() {
            self.body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
        } else {
            &self.subject
        }
    }

    /// Whether one session left it for the next one that works on the same bead.
    pub fn is_handover(&self) -> bool {
        let is_ours = self
            .subject
            .strip_prefix(HANDOVER)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(": "));
        is_ours && self.kind == MessageKind::Mail && matches!(self.to, MessageAddress::Work(_))
    }

    /// The line that is typed into the session of a working agent; it begins with [`Self::mark`]. A longer text is
    /// left where the agent can read it.
    pub fn spoken(&self) -> String {
        let mark = self.mark();
        let (first, rest) = self.body.trim().split_once('\n').unwrap_or((self.body.trim(), ""));
        let is_whole = self.subject.is_empty() && rest.is_empty();
        if is_whole && first.len() <= SPOKEN_BYTES_MAX {
            return format!("{mark} {}", first.replace('\t', " "));
        }
        let headline = self.headline().replace('\t', " ");
        let ends = headline.char_indices().map(|(at, _)| at).chain([headline.len()]);
        let end = ends.take_while(|at| *at <= SPOKEN_BYTES_MAX).last().unwrap_or_default();
        format!("{mark} {}… (the rest: gt mail read {})", &headline[..end], self.id)
    }

    /// The mark that tells it apart from all other messages on a screen.
    pub fn mark(&self) -> String {
        format!("[{} from {}]", self.id, self.from)
    }
}

/// The subject of a message that one session leaves for the next begins with this.
pub const HANDOVER: &str = "Handoff";

/// The longest line that is typed into the session of a working agent, in bytes. Programs show short texts as
/// they are, and of long ones only that there is one.
const SPOKEN_BYTES_MAX: usize = 400;

fn shown(text: &str) -> String {
    text.chars().take(60).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn standing(text: &str) -> String {
        match WrittenAddress::parse(text).unwrap() {
            WrittenAddress::Standing(address) => address.to_string(),
            other => panic!("{text} is read as {other:?}"),
        }
    }

    #[test]
    fn every_role_of_a_town_has_an_address() {
        for text in
            ["mayor", "deacon", "web/witness", "web/refinery", "web/crew/ann", "web/polecats/toast"]
        {
            assert_eq!(standing(text), text);
            assert_eq!(MessageAddress::stored(text).to_string(), text);
        }
        assert_eq!(standing("web/toast"), "web/polecats/toast");
        assert_eq!(standing("mayor/"), "mayor");
        let run = RunId::parse("we-a#3").unwrap();
        assert_eq!(WrittenAddress::parse("we-a#3"), Ok(WrittenAddress::Run(run)));
        assert_eq!(WrittenAddress::parse(" we-a "), Ok(WrittenAddress::Bead("we-a".to_owned())));
    }

    #[test]
    fn the_error_about_an_address_shows_the_forms_of_one() {
        for wrong in
            ["", "/", "web/crew", "web/polecats", "web/crew/a/b", "web/x/y", "web//", "/ann"]
        {
            let Err(Invalid(message)) = WrittenAddress::parse(wrong) else { panic!("{wrong}") };
            assert!(!message.is_empty());
        }
        let Err(Invalid(message)) = WrittenAddress::parse("web/crew") else { panic!() };
        assert!(message.contains("<rig>/crew/<name>"), "{message}");
    }

    #[test]
    fn an_answer_reaches_the_sender() {
        for (from, to) in [
            ("we-a#3", "we-a"),
            ("web/crew/ann", "web/crew/ann"),
            ("deacon", "deacon"),
            ("Ann Smith", "mayor"),
            ("web/process", "mayor"),
        ] {
            let sender = Sender::stored(from);
            assert_eq!(sender.to_string(), from);
            assert_eq!(sender.answers_go_to().to_string(), to, "{from}");
        }
    }

    #[test]
    fn messages_have_short_names() {
        assert_eq!(MessageId::parse("msg-17"), MessageId::parse("17"));
        assert_eq!(MessageId::parse("msg-17").unwrap().to_string(), "msg-17");
        for wrong in ["", "msg-", "msg-0", "0", "-1", "+1", "msg-x", "99999999999999999999"] {
            assert!(MessageId::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_is_text_and_nothing_else() {
        assert_eq!(MessageBody::parse("a\r\n\tb \n\n").unwrap().as_str(), "a\n\tb");
        for wrong in ["\u{1b}[2J", "a\0b", "a\rb", "\u{7f}"] {
            assert!(MessageBody::parse(wrong).is_err(), "{wrong:?}");
        }
        let most = "x".repeat(limits::MESSAGE_BYTES_MAX);
        assert!(MessageBody::parse(&most).is_ok());
        assert!(MessageBody::parse(&format!("{most}x")).is_err());
    }

    #[test]
    fn kinds_and_receipts_have_names_that_lead_back() {
        let escalations = Severity::ALL.iter().map(|severity| MessageKind::Escalation(*severity));
        for kind in [MessageKind::Mail, MessageKind::Nudge].into_iter().chain(escalations) {
            let severity = kind.severity().map_or("", Severity::as_str);
            assert_eq!(MessageKind::parse(kind.as_str(), severity), Ok(kind));
        }
        for (name, severity) in [("mail", "high"), ("escalation", ""), ("letter", "")] {
            assert!(MessageKind::parse(name, severity).is_err());
        }
    }

    fn message(subject: &str, body: &str) -> Message {
        Message {
            id: MessageId::of_number(7),
            kind: MessageKind::Mail,
            from: Sender::Person("ann".to_owned()),
            to: MessageAddress::Work(BeadId::trusted("gt-a".to_owned())),
            subject: subject.to_owned(),
            body: body.to_owned(),
            bead: None,
            topic: None,
            reply_to: None,
            created_at: Timestamp::from_nanos(0),
            delivered_at: None,
            seen_at: None,
        }
    }

    #[test]
    fn the_spoken_form_is_one_short_line() {
        assert_eq!(message("", "Hurry\tup\n").spoken(), "[msg-7 from ann] Hurry up");
        let rest = "… (the rest: gt mail read msg-7)";
        assert_eq!(message("", "a\nb").spoken(), format!("[msg-7 from ann] a{rest}"));
        assert_eq!(message("Tea", "a").spoken(), format!("[msg-7 from ann] Tea{rest}"));
        let long = message("", &"ä".repeat(300)).spoken();
        assert_eq!(long, format!("[msg-7 from ann] {}{rest}", "ä".repeat(200)));
    }

    #[test]
    fn a_note_for_the_next_session_is_told_by_its_subject() {
        for (subject, is_one) in
            [("Handoff", true), ("Handoff: tea", true), ("Handoffs", false), ("Tea", false)]
        {
            assert_eq!(message(subject, "").is_handover(), is_one, "{subject}");
        }
        let nudge = Message { kind: MessageKind::Nudge, ..message("Handoff", "") };
        let elsewhere = Message { to: MessageAddress::Mayor, ..message("Handoff", "") };
        assert!(!nudge.is_handover() && !elsewhere.is_handover());
    }

    proptest! {
        #[test]
        fn an_address_reads_back_as_it_is_written(text in "[a-z]{1,3}(/[a-z]{0,8}){0,3}|.{0,40}") {
            if let Ok(WrittenAddress::Standing(address)) = WrittenAddress::parse(&text) {
                prop_assert_eq!(MessageAddress::exact(&address.to_string()), Some(address.clone()));
                prop_assert_eq!(MessageAddress::stored(&address.to_string()), address);
            }
            let _ = MessageAddress::stored(&text);
            prop_assert_eq!(Sender::stored(&text).to_string(), text.clone());
            let _ = MessageId::parse(&text);
            let _ = MessageBody::parse(&text);
        }
    }
}
