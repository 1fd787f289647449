//! Notices to people, delivered at least once.
//!
//! The transaction that changes something also writes the notices about it (`notify_in`), so that neither happens
//! without the other. After the commit a helper process sends them
//! (a helper process that the town starts after the commit), and notices that did not arrive are tried again by the
//! next caller of [`deliver`]: each dispatch cycle, and the daemon. A notice whose sender died before it recorded the
//! delivery is sent again, with the same key.

mod deliver;
mod notice_sender;
mod notices_from_events;
#[cfg(test)]
mod tests;

pub use deliver::is_due;
pub use deliver::{Delivered, SEND_TIME_MAX, deliver};
pub use notice_sender::NoticeSender;
pub use notices_from_events::write_event_notices;

use std::borrow::Cow;

use gt_core::cost::Spent;
use gt_core::schedule::{Notice, NoticeChannel, NoticeState};
use gt_core::secret_mask::SecretMask;
use gt_core::settings::Layers;
use gt_core::{BeadId, Json, RigSlug, RunId, Timestamp, WebAddress, words};
use gt_store::{UnsentNotices, Writer};

use gt_town::settings::layers_in;
use gt_town::{OperationError, Result, Town};

/// The version of the object that is sent.
const SCHEMA_VERSION: &str = "1";

/// A notice for people.
#[derive(Debug, Clone)]
pub struct NewNotice<'a> {
    /// The identity of the news, the same however often it is written, such as `circuit-broken:hq-ctx-00012` or
    /// `escalated:gt-abc#3`. People are told once of a key.
    pub key: String,
    /// The kind of news, such as `circuit-broken`.
    pub kind: &'a str,
    /// The bead it is about.
    pub bead: Option<&'a BeadId>,
    /// The rig it is about.
    pub rig: Option<&'a RigSlug>,
    /// The run it is about.
    pub run: Option<&'a RunId>,
    /// One sentence for a person, with the next step.
    pub message: String,
    /// Details for a program, an object.
    pub details: Json,
    /// The usage of the runs that it is about, if it tells of their end.
    pub spent: Spent,
}

/// Writes a notice for every configured channel; none, if none is. Returns whether there is something to send now,
/// which [`Town::write`] does by itself after the commit.
pub fn notify_in(
    writer: &mut Writer<'_>,
    settings: &Layers,
    notice: &NewNotice<'_>,
) -> Result<bool> {
    let mut written = false;
    for channel in NoticeChannel::ALL {
        if target_of(settings, *channel)?.is_some() {
            let mask = SecretMask::of_accounts(&writer.accounts_to_mask()?);
            let link = deck_link(&settings.deck_url()?, notice.bead);
            let payload = payload(&masked(notice, &mask), writer.now(), link);
            written |= writer.put_notice(&notice.key, *channel, &payload)?;
        }
    }
    Ok(written)
}

/// A notice without the keys of accounts: it may have the last words of a worker.
fn masked<'a>(notice: &NewNotice<'a>, mask: &SecretMask) -> NewNotice<'a> {
    let details = match mask.mask(notice.details.as_str()) {
        Cow::Borrowed(_) => notice.details.clone(),
        // A key that is a number is one outside of strings too, and leaves no JSON.
        Cow::Owned(details) => Json::parse(&details).unwrap_or_else(|_| Json::object(&[])),
    };
    NewNotice { message: mask.mask(&notice.message).into_owned(), details, ..notice.clone() }
}

/// The place in the flight deck where a person sees more and decides, if its address is known to people elsewhere.
fn deck_link(deck_url: &str, bead: Option<&BeadId>) -> Option<String> {
    if deck_url.is_empty() {
        return None;
    }
    Some(match bead {
        Some(bead) => format!("{deck_url}#/bead/{bead}"),
        None => format!("{deck_url}#/needs"),
    })
}

fn payload(notice: &NewNotice<'_>, at: Timestamp, link: Option<String>) -> Json {
    let text = |text: Option<String>| match text {
        Some(text) => Json::string(&text),
        None => Json::trusted("null".to_owned()),
    };
    let fields = [
        ("at", Json::string(&at.to_string())),
        ("bead", text(notice.bead.map(ToString::to_string))),
        ("details", notice.details.clone()),
        ("key", Json::string(&notice.key)),
        ("kind", Json::string(notice.kind)),
        ("message", Json::string(&notice.message)),
        ("rig", text(notice.rig.map(ToString::to_string))),
        ("run", text(notice.run.map(ToString::to_string))),
        ("schema_version", Json::trusted(SCHEMA_VERSION.to_owned())),
        ("spent", spent_json(&notice.spent)),
        ("url", text(link)),
    ];
    Json::object(&fields.map(|(name, value)| (name.to_owned(), value)))
}

fn spent_json(spent: &Spent) -> Json {
    if spent.is_nothing() {
        return Json::trusted("null".to_owned());
    }
    let fields = [
        ("cost", Json::string(&spent.cost.to_string())),
        ("tokens", Json::trusted(spent.tokens.to_string())),
        ("unpriced", Json::trusted(spent.unpriced.to_string())),
    ];
    Json::object(&fields.map(|(name, value)| (name.to_owned(), value)))
}

/// The destination of a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoticeTarget {
    /// A program and its arguments.
    Command(Vec<String>),
    /// A web service.
    Webhook {
        /// Its address.
        address: WebAddress,
        /// The key that signs the request; empty for no signature.
        secret: String,
    },
}

/// Why a notice did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendFailure {
    /// This one was refused; others may arrive.
    Refused(String),
    /// The channel does not work at the moment; its other notices wait.
    Unreachable(String),
}

impl SendFailure {
    /// The reason.
    pub fn why(&self) -> &str {
        match self {
            Self::Refused(why) | Self::Unreachable(why) => why,
        }
    }
}

/// Sends notices. Tests and the simulator have their own; [`NoticeSender`] is the real one.
pub trait Notifier {
    /// Sends one notice, within [`SEND_TIME_MAX`].
    fn send(&self, target: &NoticeTarget, notice: &Notice) -> Result<(), SendFailure>;
}

/// The destination of a channel; nothing if it is not configured.
fn target_of(settings: &Layers, channel: NoticeChannel) -> Result<Option<NoticeTarget>> {
    Ok(match channel {
        NoticeChannel::Command => {
            let words = words::split(&settings.notify_command()?)?;
            let words: Vec<String> = words.into_iter().map(|word| word.text).collect();
            (!words.is_empty()).then_some(NoticeTarget::Command(words))
        }
        NoticeChannel::Webhook => match settings.notify_webhook()? {
            none if none.is_empty() => None,
            address => Some(NoticeTarget::Webhook {
                address: WebAddress::parse(&address)?,
                secret: settings.notify_secret()?,
            }),
        },
    })
}

/// The setting with the destination of a channel.
fn setting_of(channel: NoticeChannel) -> &'static str {
    match channel {
        NoticeChannel::Command => "notify.command",
        NoticeChannel::Webhook => "notify.webhook",
    }
}

/// The notices that have not arrived, oldest first.
pub fn list(town: &Town, limit: usize) -> Result<Vec<Notice>> {
    town.read(|reader| Ok(reader.unsent_notices(limit)?))
}

/// How many notices have not arrived.
pub fn unsent(town: &Town) -> Result<UnsentNotices> {
    town.read(|reader| Ok(reader.unsent_notice_counts()?))
}

/// Tries all notices now that have not arrived, also those that were given up.
pub fn retry(town: &Town, notifier: &dyn Notifier) -> Result<Delivered> {
    let count = town.write(|writer| Ok(writer.retry_notices()?))?;
    deliver(town, notifier, usize::try_from(count).unwrap_or(usize::MAX))
}

/// Sends a test through every configured channel, and returns the results.
pub fn test(
    town: &Town,
    notifier: &dyn Notifier,
) -> Result<Vec<(NoticeChannel, std::result::Result<(), SendFailure>)>> {
    let settings = town.read(|reader| layers_in(town.root(), reader))?;
    let now = town.now();
    let new = NewNotice {
        key: format!("test:{}", gt_core::Uid::fresh()),
        kind: "test",
        bead: None,
        rig: None,
        run: None,
        message: "This is a test; nothing needs you".to_owned(),
        details: Json::object(&[]),
        spent: Spent::default(),
    };
    let mut tried = Vec::new();
    for channel in NoticeChannel::ALL {
        let Some(target) = target_of(&settings, *channel)? else { continue };
        let notice = Notice {
            number: 0,
            key: new.key.clone(),
            channel: *channel,
            payload: payload(&new, now, None),
            created_at: now,
            next_attempt_at: now,
            attempts: 1,
            last_error: String::new(),
            state: NoticeState::Waiting,
        };
        tried.push((*channel, notifier.send(&target, &notice)));
    }
    if tried.is_empty() {
        return Err(OperationError::rejected(
            "no channel for notices is configured; name a program with gt config set notify.command, or an address \
             with gt config set notify.webhook",
        ));
    }
    Ok(tried)
}
