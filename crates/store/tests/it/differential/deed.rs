//! The operations of a history that both engines live through: all verbs of a writer, also
//! those that must be refused.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gt_core::decide::{IdSeed, TargetFacts};
use gt_core::message::{MessageBody, MessageKind, NewMessage, Severity};
use gt_core::schedule::{Account, NoticeChannel};
use gt_core::{
    Bead, BeadChangeKind, Comment, Dependency, DependencyType, EventKind, ExecutorKind, IssueType,
    Json, MessageAddress, MessageId, Prefix, Priority, Rig, RigSlug, RigState, Sender, Status,
    Title, Uid,
};
use gt_store::{DueNotices, SettingScope, StoreError, Writer};
use proptest::prelude::*;

use crate::history::batch::Perform;
use crate::history::step::{
    self, Link, Place, Shape, Step, id, imported, link, place, shape, step,
};
use crate::subjects::NOW;

#[derive(Debug, Clone)]
pub(crate) enum Deed {
    /// An operation that the model of blocking knows.
    Step(Step),
    /// Other fields change.
    Edit(Place, Vec<Edit>),
    /// A label of its own comes or goes.
    Label(Place, &'static str, bool),
    Comment(Place, &'static str, bool),
    /// Several beads come at once, with labels and comments.
    Family(BTreeMap<Place, (Shape, BTreeMap<Place, Link>)>),
    /// An edge that the event of its bead tells of; none if it goes.
    EdgeWithBead(Place, Place, Option<Link>),
    /// A bead that is new, and a part of another from the beginning.
    Part(Place, Place, Shape),
    /// A bead tracks others.
    Track(Place, BTreeSet<Place>),
    /// The next part of a bead.
    Child(Place),
    /// A bead with an id of the store's choosing.
    Fresh(&'static str),
    Touch(Place),
    Setting(SettingScope, &'static str, Option<&'static str>),
    /// An account is put, made the default, or removed.
    Account(&'static str, u8),
    /// A notice is written.
    Notice(&'static str, NoticeChannel),
    /// A notice is tried: it arrives, fails, or is given up.
    TryNotice(NoticeChannel, u8),
    RetryNotices,
    /// A message is sent.
    Message(&'static str, &'static str, bool),
    /// The messages that were read until now go.
    PurgeMessages,
    /// A message is delivered or seen, if it is there.
    Receipt(u64, bool),
    AddRig(usize),
    SetRigState(usize, RigState),
    RenameRig(usize),
    RemoveRig(usize),
    /// An id that may be taken, without looking first.
    Insist(Place, Shape),
    /// Refused, if the bead is there: an edge to itself.
    DependOnItself(Place),
    /// Refused: closed without a time, or with an outcome while open.
    Contradict(Place, bool),
    /// Refused: a bead that was never there cannot be changed.
    ChangeTheAbsent,
    /// Refused when it is sent, which a server may put off.
    DecorateTheAbsent(Ornament),
}

/// A row about a bead that is not there.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ornament {
    Label,
    Comment,
    Edge,
}

/// A change of one field.
#[derive(Debug, Clone)]
pub(crate) enum Edit {
    Title(&'static str),
    Description(&'static str),
    Design(&'static str),
    Acceptance(&'static str),
    Notes(&'static str),
    Priority(i64),
    Type(&'static str),
    Assignee(&'static str),
    Owner(&'static str),
    Estimate(Option<u32>),
    Created(i64),
    Started(Option<i64>),
    Due(Option<i64>),
    Metadata(Option<&'static str>),
    Carried(Option<&'static str>),
    Reference(Option<&'static str>),
    Ephemeral(bool),
    NoHistory(bool),
    Template(bool),
    Rig(Option<usize>),
}

pub(super) const TEXTS: [&str; 12] = [
    "",
    "plain",
    "Plain",
    "Äpfel & Birnen",
    "äpfel",
    "修复 🔧",
    "it's 100% \"quoted\" \\ back_slashed",
    "line\nbreak\ttab",
    "\u{1}control\u{7f}",
    "ZZZ",
    "_under",
    "e\u{301} combined, \u{200b}invisible, \u{10ffff} last",
];
pub(super) const LABELS: [&str; 6] = ["red", "Red", "äpfel", "a:b", "修复", "%"];
pub(super) const PEOPLE: [&str; 4] = ["", "ann", "Bob", "Zoë"];
pub(super) const TYPES: [&str; 6] = ["task", "bug", "epic", "gate", "message", "Own kind"];
pub(super) const RIGS: [(&str, &str); 3] = [("gear", "gt"), ("gear-two", "gt-1"), ("other", "ot")];
pub(super) const DOCUMENTS: [&str; 14] = [
    r#"{"k":"v"}"#,
    r#"{"k":5}"#,
    r#"{"k":"5","n":null}"#,
    r#"{"k":1.50,"n":1e3}"#,
    r#"{"k":true,"n":-0}"#,
    r#"{"a":{"k":"v"},"k":[1,"v"]}"#,
    r#"["k","v"]"#,
    r#""k""#,
    r#"{"k":"\u00e4 \"q\" \\ \/"}"#,
    r#"{"k":"ä \"q\" \\ /"}"#,
    r#"{"":"x","odd key":"x","a.b":"x","ä":"x"}"#,
    r#"{"k":"","0":"zero"}"#,
    r#"{"k":{"x":1}}"#,
    "null",
];

const SCOPES: [SettingScope; 3] = [SettingScope::Town, SettingScope::Beads, SettingScope::Memory];

fn text() -> impl Strategy<Value = &'static str> {
    prop::sample::select(TEXTS.to_vec())
}

fn person() -> impl Strategy<Value = &'static str> {
    prop::sample::select(PEOPLE.to_vec())
}

fn document() -> impl Strategy<Value = Option<&'static str>> {
    prop::option::weighted(0.8, prop::sample::select(DOCUMENTS.to_vec()))
}

/// Seconds around the time of the tests; so few that there are ties.
pub(super) fn second() -> impl Strategy<Value = i64> {
    -3..4_i64
}

fn rig() -> impl Strategy<Value = usize> {
    0..RIGS.len()
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        text().prop_map(Edit::Title),
        text().prop_map(Edit::Description),
        text().prop_map(Edit::Design),
        text().prop_map(Edit::Acceptance),
        text().prop_map(Edit::Notes),
        (0..5_i64).prop_map(Edit::Priority),
        prop::sample::select(TYPES.to_vec()).prop_map(Edit::Type),
        person().prop_map(Edit::Assignee),
        person().prop_map(Edit::Owner),
        prop::option::of(prop_oneof![Just(0), Just(90), Just(u32::MAX)]).prop_map(Edit::Estimate),
        second().prop_map(Edit::Created),
        prop::option::of(second()).prop_map(Edit::Started),
        prop::option::of(second()).prop_map(Edit::Due),
        document().prop_map(Edit::Metadata),
        document().prop_map(Edit::Carried),
        prop::option::of(text()).prop_map(Edit::Reference),
        any::<bool>().prop_map(Edit::Ephemeral),
        any::<bool>().prop_map(Edit::NoHistory),
        any::<bool>().prop_map(Edit::Template),
        prop::option::of(rig()).prop_map(Edit::Rig),
    ]
}

fn channel() -> impl Strategy<Value = NoticeChannel> {
    prop_oneof![Just(NoticeChannel::Command), Just(NoticeChannel::Webhook)]
}

fn recipient() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["mayor", "gear/crew/Zoë", "gear/polecats/toast", "gt-1"])
}

fn state() -> impl Strategy<Value = RigState> {
    prop_oneof![Just(RigState::Active), Just(RigState::Parked), Just(RigState::Docked)]
}

fn family() -> impl Strategy<Value = BTreeMap<Place, (Shape, BTreeMap<Place, Link>)>> {
    let one = (imported(), shape()).prop_map(|((place, links), shape)| (place, (shape, links)));
    prop::collection::vec(one, 1..6).prop_map(|members| members.into_iter().collect())
}

/// The operations that may share a transaction in which each stands or falls alone.
pub(crate) fn deed_apart() -> impl Strategy<Value = Deed> {
    let label = prop::sample::select(LABELS.to_vec());
    let key = prop::sample::select(vec!["a.b", "A.b", "z"]);
    prop_oneof![
        12 => step().prop_map(Deed::Step),
        6 => (place(), prop::collection::vec(edit(), 1..5)).prop_map(|(p, e)| Deed::Edit(p, e)),
        3 => (place(), label, any::<bool>()).prop_map(|(p, l, on)| Deed::Label(p, l, on)),
        1 => (place(), text(), any::<bool>()).prop_map(|(p, t, tell)| Deed::Comment(p, t, tell)),
        3 => family().prop_map(Deed::Family),
        2 => (place(), place(), prop::option::weighted(0.7, link()))
            .prop_map(|(from, to, link)| Deed::EdgeWithBead(from, to, link)),
        1 => (place(), place(), shape()).prop_map(|(new, of, shape)| Deed::Part(new, of, shape)),
        2 => (place(), prop::collection::btree_set(place(), 0..4))
            .prop_map(|(place, members)| Deed::Track(place, members)),
        1 => place().prop_map(Deed::Child),
        1 => text().prop_map(Deed::Fresh),
        1 => place().prop_map(Deed::Touch),
        1 => (prop::sample::select(SCOPES.to_vec()), key, prop::option::of(text()))
            .prop_map(|(scope, key, value)| Deed::Setting(scope, key, value)),
        1 => (person(), 0..3_u8).prop_map(|(handle, what)| Deed::Account(handle, what)),
        1 => (text(), channel()).prop_map(|(key, channel)| Deed::Notice(key, channel)),
        1 => (channel(), 0..3_u8).prop_map(|(channel, what)| Deed::TryNotice(channel, what)),
        1 => Just(Deed::RetryNotices),
        1 => (recipient(), text(), any::<bool>())
            .prop_map(|(to, text, asks)| Deed::Message(to, text, asks)),
        1 => (1..4_u64, any::<bool>()).prop_map(|(number, seen)| Deed::Receipt(number, seen)),
        1 => Just(Deed::PurgeMessages),
        1 => rig().prop_map(Deed::AddRig),
        1 => rig().prop_map(Deed::RenameRig),
        1 => (rig(), state()).prop_map(|(rig, state)| Deed::SetRigState(rig, state)),
        1 => rig().prop_map(Deed::RemoveRig),
        1 => (place(), shape()).prop_map(|(place, shape)| Deed::Insist(place, shape)),
        1 => (place(), any::<bool>()).prop_map(|(place, over)| Deed::Contradict(place, over)),
        1 => Just(Deed::ChangeTheAbsent),
    ]
}

/// Every operation.
pub(crate) fn deed() -> impl Strategy<Value = Deed> {
    let ornament =
        prop_oneof![Just(Ornament::Label), Just(Ornament::Comment), Just(Ornament::Edge)];
    prop_oneof![
        30 => deed_apart(),
        1 => place().prop_map(Deed::DependOnItself),
        1 => ornament.prop_map(Deed::DecorateTheAbsent),
    ]
}

impl Perform for Deed {
    fn perform(&self, writer: &mut Writer<'_>) -> Result<(), StoreError> {
        match self {
            Self::Step(step) => step.perform(writer),
            Self::Edit(place, edits) => {
                let Some(old) = writer.bead(&id(*place))? else { return Ok(()) };
                let mut new = Bead { updated_at: writer.now(), ..old.clone() };
                for edit in edits {
                    edit.apply(&mut new, writer)?;
                }
                writer.save_bead(&old, &new, BeadChangeKind::Updated).map(drop)
            }
            Self::Label(place, label, on) => match writer.bead(&id(*place))? {
                Some(bead) if *on => writer.add_label(&bead, label, true).map(drop),
                Some(bead) => writer.remove_label(&bead, label, true).map(drop),
                None => Ok(()),
            },
            Self::Comment(place, text, announce) => match writer.bead(&id(*place))? {
                Some(bead) => {
                    let comment = comment(&bead, text, writer);
                    writer.add_comment(&bead, &comment, *announce).map(drop)
                }
                None => Ok(()),
            },
            Self::Family(members) => insert_family(writer, members),
            Self::EdgeWithBead(issue, target, link) => {
                edge_with_bead(writer, *issue, *target, *link)
            }
            Self::Part(new, parent, shape) => {
                if writer.bead_exists(&id(*new))? || new == parent {
                    return Ok(());
                }
                writer.insert_bead(&step::bead(*new, *shape), EventKind::Created)?;
                writer.put_dependency(&step::edge(*new, *parent, Link::Part), false).map(drop)
            }
            Self::Track(place, members) => track(writer, *place, members),
            Self::Child(place) => {
                if !writer.bead_exists(&id(*place))? {
                    return Ok(());
                }
                let child = writer.next_child_id(&id(*place))?;
                let bead = named(&child);
                writer.insert_bead(&bead, EventKind::Created)?;
                let part = edge(&bead, &id(*place), DependencyType::ParentChild);
                writer.put_dependency(&part, true).map(drop)
            }
            Self::Fresh(title) => {
                let prefix = Prefix::parse("gt").expect("a valid prefix");
                let seed = IdSeed { title, description: "", creator: "", at: NOW };
                let new = writer.free_id(&prefix, &seed)?;
                writer.insert_bead(&named(&new), EventKind::Created)
            }
            Self::Touch(place) => writer.touch_bead(&id(*place)),
            Self::Setting(scope, key, value) => writer.put_setting(*scope, key, *value).map(drop),
            Self::Account(handle, 0) => writer.put_account(&account(handle)),
            Self::Account(handle, 1) => writer.set_default_account(Some(handle)),
            Self::Account(handle, _) => writer.delete_account(handle),
            Self::Notice(key, channel) => {
                writer.put_notice(key, *channel, &Json::string(key)).map(drop)
            }
            Self::TryNotice(channel, what) => try_notice(writer, *channel, *what),
            Self::RetryNotices => writer.retry_notices().map(drop),
            Self::Message(to, text, asks) => send(writer, to, text, *asks),
            Self::PurgeMessages => writer.purge_messages(writer.now()).map(drop),
            Self::Receipt(number, seen) => match writer.message(MessageId::of_number(*number))? {
                Some(message) if *seen => writer.message_seen(&message).map(drop),
                Some(message) => writer.message_delivered(&message).map(drop),
                None => Ok(()),
            },
            Self::AddRig(number) => {
                if writer.rig(RIGS[*number].0)?.is_some() {
                    return Ok(());
                }
                writer.insert_rig(&a_rig(*number))
            }
            Self::SetRigState(number, state) => match writer.rig(RIGS[*number].0)? {
                Some(rig) => writer.set_rig_state(&rig, *state),
                None => Ok(()),
            },
            Self::RenameRig(number) => match writer.rig(RIGS[*number].0)? {
                Some(rig) => {
                    let title = format!("{}, again", rig.title);
                    writer.change_rig(&rig, &Rig { title, ..rig.clone() })
                }
                None => Ok(()),
            },
            Self::RemoveRig(number) => match writer.rig(RIGS[*number].0)? {
                Some(rig) => writer.delete_rig(&rig),
                None => Ok(()),
            },
            Self::Insist(place, shape) => {
                writer.insert_bead(&step::bead(*place, *shape), EventKind::Created)
            }
            Self::DependOnItself(place) => match writer.bead(&id(*place))? {
                Some(bead) => {
                    let itself = edge(&bead, &bead.id, DependencyType::Blocks);
                    writer.put_dependency(&itself, true).map(drop)
                }
                None => Ok(()),
            },
            Self::Contradict(place, over) => contradict(writer, *place, *over),
            Self::ChangeTheAbsent => {
                let old = absent();
                let new = Bead { notes: "changed".to_owned(), ..old.clone() };
                writer.save_bead(&old, &new, BeadChangeKind::Updated).map(drop)
            }
            Self::DecorateTheAbsent(ornament) => {
                let bead = absent();
                match ornament {
                    Ornament::Label => writer.add_label(&bead, "red", true).map(drop),
                    Ornament::Comment => {
                        let comment = comment(&bead, "Hello", writer);
                        writer.add_comment(&bead, &comment, true).map(drop)
                    }
                    Ornament::Edge => {
                        let edge = edge(&bead, &id(0), DependencyType::Blocks);
                        writer.put_dependency(&edge, true).map(drop)
                    }
                }
            }
        }
    }
}

fn edge_with_bead(
    writer: &mut Writer<'_>,
    issue: Place,
    target: Place,
    link: Option<Link>,
) -> Result<(), StoreError> {
    if issue == target || !writer.bead_exists(&id(issue))? {
        return Ok(());
    }
    match (link, writer.edge(&id(issue), &id(target))?) {
        (Some(link), _) => writer.put_dependency(&step::edge(issue, target, link), false).map(drop),
        (None, Some(edge)) => writer.remove_dependency(&edge, false),
        (None, None) => Ok(()),
    }
}

fn track(
    writer: &mut Writer<'_>,
    place: Place,
    members: &BTreeSet<Place>,
) -> Result<(), StoreError> {
    if !writer.bead_exists(&id(place))? {
        return Ok(());
    }
    let mut new = Vec::new();
    for member in members.iter().filter(|member| **member != place) {
        if writer.edge(&id(place), &id(*member))?.is_none() {
            new.push(id(*member));
        }
    }
    writer.track(&id(place), &new)
}

fn account(handle: &str) -> Account {
    Account {
        handle: handle.to_owned(),
        config_dir: format!("/srv/{handle}"),
        environment: vec![("KEY".to_owned(), handle.to_owned())],
        max_runs: 2,
        is_default: false,
        created_at: NOW,
    }
}

fn send(writer: &mut Writer<'_>, to: &str, text: &str, asks: bool) -> Result<(), StoreError> {
    // A text that is no message is refused before any store sees it.
    let Ok(body) = MessageBody::parse(text) else { return Ok(()) };
    let kind = if asks { MessageKind::Escalation(Severity::High) } else { MessageKind::Nudge };
    let (from, to) = (Sender::stored("gt-1#2"), MessageAddress::stored(to));
    let new =
        NewMessage { kind, from, to, subject: None, body, bead: None, topic: None, reply_to: None };
    writer.send_message(new).map(drop)
}

fn try_notice(writer: &mut Writer<'_>, channel: NoticeChannel, what: u8) -> Result<(), StoreError> {
    let hour = std::time::Duration::from_hours(1);
    let due = DueNotices { now: writer.now(), far: writer.now().plus(hour) };
    let Some(notice) = writer.take_notice(channel, due, writer.now().plus(hour))? else {
        return Ok(());
    };
    match what {
        0 => writer.notice_sent(&notice),
        1 => writer.notice_failed(&notice, "busy", Some(writer.now())).map(drop),
        _ => writer.notice_failed(&notice, "gone", None).map(drop),
    }
}

impl Edit {
    fn apply(&self, bead: &mut Bead, writer: &Writer<'_>) -> Result<(), StoreError> {
        let moment =
            |second: i64| gt_core::Timestamp::from_nanos(NOW.as_nanos() + second * 1_000_000_000);
        let json = |text: &str| Json::parse(text).expect("valid JSON");
        match self {
            Self::Title(text) => bead.title = Title::trusted(format!("T {text}")),
            Self::Description(text) => bead.description = String::from(*text),
            Self::Design(text) => bead.design = String::from(*text),
            Self::Acceptance(text) => bead.acceptance_criteria = String::from(*text),
            // Long enough that no engine keeps it with the rest of the row.
            Self::Notes(text) => bead.notes = text.repeat(1_000),
            Self::Priority(number) => bead.priority = Priority::new(*number)?,
            Self::Type(name) => bead.issue_type = IssueType::trusted((*name).to_owned()),
            Self::Assignee(name) => bead.assignee = String::from(*name),
            Self::Owner(name) => bead.owner = String::from(*name),
            Self::Estimate(minutes) => bead.estimated_minutes = *minutes,
            Self::Created(second) => bead.created_at = moment(*second),
            Self::Started(second) => bead.started_at = second.map(moment),
            Self::Due(second) => bead.due_at = second.map(moment),
            Self::Metadata(text) => bead.metadata = text.map(json),
            Self::Carried(text) => {
                let field = |text: &str| ("spec_id".to_owned(), json(text));
                bead.carried = text.map(field).into_iter().collect();
            }
            Self::Reference(text) => bead.external_ref = text.map(str::to_owned),
            Self::Ephemeral(on) => bead.ephemeral = *on,
            Self::NoHistory(on) => bead.no_history = *on,
            Self::Template(on) => bead.is_template = *on,
            Self::Rig(number) => {
                let slug = number.map(|number| RIGS[number].0);
                let there = slug.map(|slug| writer.rig(slug)).transpose()?.flatten();
                bead.rig = there.map(|rig| rig.slug);
            }
        }
        Ok(())
    }
}

/// A bead that is never there.
fn absent() -> Bead {
    named(&gt_core::BeadId::trusted("gt-never".to_owned()))
}

fn named(id: &gt_core::BeadId) -> Bead {
    Bead { uid: Uid::of_bead(id, NOW), id: id.clone(), ..crate::history::plain_bead(0) }
}

fn edge(bead: &Bead, target: &gt_core::BeadId, kind: DependencyType) -> Dependency {
    Dependency {
        issue: bead.id.clone(),
        target: target.clone(),
        kind,
        created_at: NOW,
        created_by: "ann".to_owned(),
        metadata: r#"{"gate":"any-children"}"#.to_owned(),
        thread_id: "thread".to_owned(),
        carried: vec![("x".to_owned(), Json::trusted("1.50".to_owned()))],
    }
}

fn comment(bead: &Bead, text: &str, writer: &Writer<'_>) -> Comment {
    let at = writer.now();
    Comment {
        id: format!("{}-{}", at.as_nanos(), text.len()),
        bead: bead.id.clone(),
        author: writer.actor().to_owned(),
        text: text.to_owned(),
        created_at: at,
        carried: Vec::new(),
    }
}

fn a_rig(number: usize) -> Rig {
    let (slug, prefix) = RIGS[number];
    Rig {
        slug: RigSlug::trusted(slug.to_owned()),
        uid: Uid::from_bytes([u8::try_from(number).expect("there are few"); 16]),
        title: format!("The {slug}"),
        // The first two never fit together: one prefix belongs to one rig.
        prefix: Prefix::parse(prefix).expect("a valid prefix"),
        path: slug.to_owned(),
        repo: String::new(),
        default_branch: "main".to_owned(),
        executor: ExecutorKind::Pull,
        state: RigState::Active,
        external_ref: String::new(),
        settings: Json::trusted("{}".to_owned()),
        created_at: NOW,
        updated_at: NOW,
    }
}

fn contradict(writer: &mut Writer<'_>, place: Place, over: bool) -> Result<(), StoreError> {
    let Some(old) = writer.bead(&id(place))? else { return Ok(()) };
    let mut new = old.clone();
    if over {
        (new.status, new.closed_at) = (Status::Closed, None);
    } else {
        (new.status, new.closed_at) = (Status::Open, Some(NOW));
    }
    writer.save_bead(&old, &new, BeadChangeKind::Updated).map(drop)
}

fn insert_family(
    writer: &mut Writer<'_>,
    members: &BTreeMap<Place, (Shape, BTreeMap<Place, Link>)>,
) -> Result<(), StoreError> {
    let mut new = Vec::new();
    for (place, (shape, links)) in members {
        if !writer.bead_exists(&id(*place))? {
            new.push((*place, step::bead(*place, *shape), links));
        }
    }
    let facts = |bead: &Bead| TargetFacts { status: bead.status.clone(), outcome: bead.outcome };
    let expected: HashMap<_, _> =
        new.iter().map(|(_, bead, _)| (bead.id.clone(), facts(bead))).collect();
    let comments: Vec<Comment> =
        new.iter().map(|(_, bead, _)| comment(bead, "imported", writer)).collect();
    let mut bulk = writer.bulk(&expected)?;
    for ((place, bead, links), comment) in new.iter().zip(comments) {
        let labels = LABELS.map(str::to_owned);
        let edges: Vec<Dependency> = links
            .iter()
            .filter(|(target, _)| *target != place)
            .map(|(target, link)| step::edge(*place, *target, *link))
            .collect();
        bulk.insert(bead, &labels[..usize::from(place % 4)], &[comment], &edges)?;
    }
    bulk.finish()
}
