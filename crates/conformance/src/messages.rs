//! Messages and their receipts.

use gt_core::message::{MessageBody, MessageKind, MessageTopic, NewMessage, Receipt, Severity};
use gt_core::{Message, MessageAddress, MessageId, Sender, Title};

use super::EngineUnderTest;
use super::kit::{CheckedStore, by, id};

fn mail(from: &str, to: &str, body: &str) -> NewMessage {
    NewMessage {
        kind: MessageKind::Mail,
        from: Sender::stored(from),
        to: MessageAddress::stored(to),
        subject: Title::parse("News").ok(),
        body: MessageBody::parse(body).expect("the case has a valid message"),
        bead: None,
        topic: None,
        reply_to: None,
    }
}

fn send(town: &CheckedStore, new: NewMessage) -> Message {
    town.write(|writer| writer.send_message(new))
}

fn unseen(town: &CheckedStore, to: &str) -> Vec<String> {
    let found = town.read(|reader| reader.unseen_messages(&MessageAddress::stored(to), 10));
    found.into_iter().map(|message| message.body).collect()
}

pub(super) fn a_message_reads_back_exactly_as_it_was_sent(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let first = send(&town, mail("ann", "mayor", "one\n\ttwo ä"));
    let whole = NewMessage {
        kind: MessageKind::Escalation(Severity::High),
        subject: None,
        bead: Some(id("gt-a")),
        topic: Some(MessageTopic::ForeignCommits),
        reply_to: Some(first.id),
        ..mail("gt-a#3", "gt-a", "help")
    };
    let second = send(&town, whole);

    assert_eq!((first.id.to_string(), second.id.to_string()), ("msg-1".into(), "msg-2".into()));
    for message in [&first, &second] {
        assert_eq!(town.read(|reader| reader.message(message.id)).as_ref(), Some(message));
    }
    assert_eq!(second.from, Sender::stored("gt-a#3"));
    assert_eq!((second.subject.as_str(), second.headline()), ("", "help"));
    assert_eq!(town.read(|reader| reader.message(MessageId::of_number(3))), None);
}

pub(super) fn a_message_is_delivered_once_and_seen_once(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let message = send(&town, mail("ann", "web/polecats/toast", "hurry"));
    assert_eq!(message.receipt(), Receipt::Queued);
    let again = || town.read(|reader| reader.message(message.id)).expect("it is kept");

    let story = town.story_of(|town| {
        assert!(town.write(|writer| writer.message_delivered(&message)));
        assert!(!town.write(|writer| writer.message_delivered(&message)));
        assert_eq!(again().receipt(), Receipt::Delivered);
        assert!(town.write(|writer| writer.message_seen(&message)));
        assert!(!town.write(|writer| writer.message_seen(&message)));
        assert!(!town.write(|writer| writer.message_delivered(&message)));
    });

    assert_eq!(story, ["message_delivered", "message_seen"]);
    let seen = again();
    assert_eq!(seen.receipt(), Receipt::Seen);
    assert!(Some(seen.created_at) < seen.delivered_at && seen.delivered_at < seen.seen_at);
}

pub(super) fn a_seen_message_counts_as_delivered(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let message = send(&town, mail("ann", "mayor", "hurry"));
    town.write(|writer| writer.message_seen(&message));
    let seen = town.read(|reader| reader.message(message.id)).expect("it is kept");
    assert_eq!(seen.delivered_at, seen.seen_at);
}

pub(super) fn an_address_gets_its_own_messages_in_order(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let first = send(&town, mail("ann", "gear/crew/bob", "one"));
    send(&town, mail("ann", "gear/crew/Bob", "not for him"));
    send(&town, mail("ann", "gear/crew/bob", "two"));
    send(&town, mail("ann", "gear/crew/bob", "three"));

    assert_eq!(unseen(&town, "gear/crew/bob"), ["one", "two", "three"]);
    town.write(|writer| writer.message_seen(&first));
    assert_eq!(unseen(&town, "gear/crew/bob"), ["two", "three"]);
    let last = town.read(|reader| reader.messages_to(&MessageAddress::stored("gear/crew/bob"), 2));
    let last: Vec<&str> = last.iter().map(|message| message.body.as_str()).collect();
    assert_eq!(last, ["three", "two"]);
}

pub(super) fn a_nudge_waits_until_it_is_delivered_or_seen(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let nudge = |words| NewMessage { kind: MessageKind::Nudge, ..mail("ann", "gt-a", words) };
    let waiting = |town: &CheckedStore| {
        let found = town.read(|reader| reader.undelivered_nudges(10));
        found.into_iter().map(|message| message.body).collect::<Vec<_>>()
    };
    let first = send(&town, nudge("one"));
    send(&town, NewMessage { kind: MessageKind::Mail, ..nudge("no nudge") });
    let second = send(&town, nudge("two"));
    send(&town, nudge("three"));

    assert_eq!(waiting(&town), ["one", "two", "three"]);
    town.write(|writer| writer.message_delivered(&first));
    town.write(|writer| writer.message_seen(&second));
    assert_eq!(waiting(&town), ["three"]);
    assert_eq!(town.read(|reader| reader.undelivered_nudges(0)), []);
    // Only a live run gets it, and the event of that run comes first.
    assert!(town.read(|reader| reader.is_at_rest()));
}

pub(super) fn an_escalation_is_found_until_it_is_read(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let asking = NewMessage {
        kind: MessageKind::Escalation(Severity::Critical),
        bead: Some(id("gt-a")),
        ..mail("gt-a#1", "mayor", "the disk is full")
    };
    let mut sent = None;
    let story = town.story_of(|town| {
        send(town, mail("ann", "mayor", "hello"));
        sent = Some(send(town, asking));
    });
    let sent = sent.expect("it was sent");

    assert_eq!(story, ["message_sent", "help_wanted gt-a"]);
    assert_eq!(town.read(|reader| reader.unseen_escalations()), std::slice::from_ref(&sent));
    // The bead may be deleted; the messages about it stay.
    town.delete("gt-a");
    town.write(|writer| writer.message_seen(&sent));
    assert_eq!(town.read(|reader| reader.unseen_escalations()), []);
}

pub(super) fn messages_that_were_read_long_ago_go_and_no_others(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    assert_eq!(town.read(|reader| reader.oldest_message_at()), None);
    let sent = ["one", "two", "three"].map(|text| send(&town, mail("ann", "mayor", text)));
    assert_eq!(town.read(|reader| reader.oldest_message_at()), Some(sent[0].created_at));
    town.write(|writer| writer.message_seen(&sent[0]));
    town.write(|writer| writer.message_seen(&sent[2]));
    let seen = |at: usize| town.read(|reader| reader.message(sent[at].id)).map(|one| one.seen_at);
    let last = seen(2).flatten().expect("it was read");

    let story = town.story_of(|town| {
        assert_eq!(town.write(|writer| writer.purge_messages(last)), 1);
        assert_eq!(town.write(|writer| writer.purge_messages(last)), 0);
    });

    assert_eq!(story, ["messages_purged"]);
    assert_eq!((seen(0), seen(1), seen(2)), (None, Some(None), Some(Some(last))));
    // Its number is not given again.
    assert_eq!(send(&town, mail("ann", "mayor", "four")).id.number(), 4);
}

pub(super) fn a_message_that_is_undone_leaves_no_gap(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let refused = town.store.write(&by(20_000), |writer| {
        writer.send_message(mail("ann", "mayor", "never mind"))?;
        Err::<(), _>(gt_store::StoreError::Corrupt("it is undone".to_owned()))
    });
    assert!(refused.is_err());
    assert_eq!(send(&town, mail("ann", "mayor", "one")).id.number(), 1);
}
