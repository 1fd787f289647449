//! The order of the inbox, and which rows say the same.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::item::{InboxItem, InboxKind, InboxObject};
use crate::BeadId;
use crate::message::{MessageAddress, Sender, Severity};

/// Puts rows in the order in which every view lists them, and leaves out rows that another row says better.
///
/// The order: kinds as [`InboxKind`] lists them, severe questions first, then the oldest. A bead has one row of its own: the
/// first in this order, which tells of the others.
pub fn arrange_inbox(mut items: Vec<InboxItem>) -> Vec<InboxItem> {
    let beads_of = |wanted: fn(&InboxItem) -> bool| -> BTreeSet<BeadId> {
        items.iter().filter(|item| wanted(item)).filter_map(|item| item.bead.clone()).collect()
    };
    let with_request = beads_of(|item| matches!(item.object, InboxObject::Request(_)));
    let with_question = beads_of(|item| item.kind == InboxKind::Question);
    items.retain(|item| {
        let Some(bead) = &item.bead else { return true };
        match item.kind {
            // The state of the request says it, and changes when the problem is over.
            InboxKind::Question => !(is_from_refinery(item) && with_request.contains(bead)),
            InboxKind::Escalated => !with_request.contains(bead) && !with_question.contains(bead),
            InboxKind::AttemptsUsedUp
            | InboxKind::OverLimit
            | InboxKind::CircuitBroken
            | InboxKind::Quarantined
            | InboxKind::PutOff => !with_request.contains(bead),
            _ => true,
        }
    });
    items.sort_by_cached_key(|item| {
        let kind = InboxKind::ALL.iter().position(|kind| *kind == item.kind);
        (kind, severity_rank(item), item.since.is_none(), item.since, item.key())
    });
    one_row_for_each_bead(items)
}

/// Puts what else a bead needs into its first row.
fn one_row_for_each_bead(items: Vec<InboxItem>) -> Vec<InboxItem> {
    let mut rows: Vec<InboxItem> = Vec::with_capacity(items.len());
    let mut places: BTreeMap<BeadId, usize> = BTreeMap::new();
    for item in items {
        let Some(bead) = item.bead.clone().filter(|_| is_about_its_bead(item.kind)) else {
            rows.push(item);
            continue;
        };
        match places.entry(bead) {
            Entry::Vacant(place) => {
                place.insert(rows.len());
                rows.push(item);
            }
            Entry::Occupied(place) => {
                let row = &mut rows[*place.get()];
                row.what = format!("{}; also {}: {}", row.what, item.kind.as_str(), item.what);
                let known = row.commands.clone();
                row.commands.extend(item.commands.into_iter().filter(|one| !known.contains(one)));
            }
        }
    }
    rows
}

/// Whether a row is about the work on its bead, and not about something that the bead only shows.
fn is_about_its_bead(kind: InboxKind) -> bool {
    !matches!(kind, InboxKind::ForeignCommits | InboxKind::RepositoryChanged | InboxKind::Budget)
}

fn is_from_refinery(item: &InboxItem) -> bool {
    let message = item.context.message.as_ref();
    message.is_some_and(|message| {
        matches!(message.from, Sender::Standing(MessageAddress::Refinery(_)))
    })
}

/// Smaller for what is more severe.
fn severity_rank(item: &InboxItem) -> usize {
    let severity = item.context.message.as_ref().and_then(|message| message.kind.severity());
    let rank = severity.and_then(|severity| Severity::ALL.iter().position(|one| *one == severity));
    Severity::ALL.len() - rank.map_or(0, |rank| rank + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::InboxContext;
    use crate::merging::MergeRequestId;
    use crate::message::{Message, MessageId, MessageKind};
    use crate::{RigSlug, RunId, Timestamp};

    fn item(kind: InboxKind, object: InboxObject, bead: Option<&str>, at: i64) -> InboxItem {
        InboxItem {
            kind,
            object,
            bead: bead.map(|bead| BeadId::parse(bead).unwrap()),
            rig: None,
            title: String::new(),
            what: String::new(),
            remedy: String::new(),
            commands: Vec::new(),
            since: Some(Timestamp::from_nanos(at)),
            context: InboxContext::default(),
        }
    }

    fn of_bead(kind: InboxKind, bead: &str, at: i64) -> InboxItem {
        item(kind, InboxObject::Bead(BeadId::parse(bead).unwrap()), Some(bead), at)
    }

    fn of_request(kind: InboxKind, request: &str, at: i64) -> InboxItem {
        let id = MergeRequestId::parse(request).unwrap();
        let bead = id.bead.to_string();
        item(kind, InboxObject::Request(id), Some(&bead), at)
    }

    fn question(number: u64, bead: Option<&str>, severity: Severity, from: Sender) -> InboxItem {
        let message = Message {
            id: MessageId::of_number(number),
            kind: MessageKind::Escalation(severity),
            from,
            to: MessageAddress::Mayor,
            subject: String::new(),
            body: "help".to_owned(),
            bead: bead.map(|bead| BeadId::parse(bead).unwrap()),
            topic: None,
            reply_to: None,
            created_at: Timestamp::from_nanos(i64::try_from(number).unwrap()),
            delivered_at: None,
            seen_at: None,
        };
        InboxItem::of_question(message, String::new(), None, true)
    }

    fn worker(run: &str) -> Sender {
        Sender::Worker(RunId::parse(run).unwrap())
    }

    fn keys(items: Vec<InboxItem>) -> Vec<String> {
        arrange_inbox(items).iter().map(InboxItem::key).collect()
    }

    #[test]
    fn kinds_come_first_then_severity_then_age() {
        let listed = keys(vec![
            of_bead(InboxKind::CircuitBroken, "gt-b", 1),
            of_request(InboxKind::Review, "gt-new@1", 9),
            of_request(InboxKind::Review, "gt-old@1", 2),
            question(1, None, Severity::Medium, worker("gt-x#1")),
            question(2, None, Severity::Critical, worker("gt-x#1")),
        ]);
        assert_eq!(
            listed,
            [
                "help-wanted:msg-2",
                "help-wanted:msg-1",
                "review:gt-old@1",
                "review:gt-new@1",
                "circuit-broken:gt-b"
            ]
        );
    }

    #[test]
    fn a_bead_has_one_row_of_its_own() {
        let refinery = Sender::Standing(MessageAddress::Refinery(RigSlug::parse("web").unwrap()));
        let listed = keys(vec![
            of_request(InboxKind::Conflict, "gt-a@1", 3),
            of_bead(InboxKind::AttemptsUsedUp, "gt-a", 2),
            question(1, Some("gt-a"), Severity::High, refinery.clone()),
            question(2, Some("gt-a"), Severity::High, worker("gt-a#1")),
            question(3, Some("gt-b"), Severity::High, refinery),
            of_bead(InboxKind::Escalated, "gt-c", 1),
            question(4, Some("gt-c"), Severity::High, worker("gt-c#1")),
            of_bead(InboxKind::Escalated, "gt-d", 1),
        ]);
        assert_eq!(
            listed,
            ["help-wanted:msg-2", "help-wanted:msg-3", "help-wanted:msg-4", "escalated:gt-d"]
        );
    }

    #[test]
    fn the_first_row_of_a_bead_tells_of_the_others() {
        let run = InboxObject::Run(RunId::parse("gt-a#1").unwrap());
        let mut stalled = item(InboxKind::Stalled, run, Some("gt-a"), 1);
        stalled.what = "gt-a#1 prints nothing".to_owned();
        stalled.commands = vec!["gt peek gt-a".to_owned(), "gt mail read msg-2".to_owned()];
        let rows = arrange_inbox(vec![
            stalled,
            question(1, Some("gt-a"), Severity::Medium, worker("gt-a#1")),
            question(2, Some("gt-a"), Severity::Critical, worker("gt-a#1")),
        ]);
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!(row.key(), "help-wanted:msg-2");
        assert_eq!(
            row.what,
            "gt-a: help; also help-wanted: gt-a: help; also stalled: gt-a#1 prints nothing"
        );
        assert_eq!(
            row.commands,
            [
                "gt mail read msg-2",
                "gt mail reply msg-2 -m <text>",
                "gt mail read msg-1",
                "gt mail reply msg-1 -m <text>",
                "gt peek gt-a"
            ]
        );
    }
}
