//! The guarantees for the code that types messages into the sessions of workers.

use std::sync::Arc;

use gt_core::message::{MessageBody, MessageKind, NewMessage};
use gt_core::schedule::{Run, RunState, WorkerPlace};
use gt_core::{BeadId, ExecutorKind, Message, MessageAddress, RigSlug, Sender, Uid};

use super::{MessageParty, delivered, mark_seen, unread_in};
use crate::beads::{NewBead, create};
use gt_town::{Actor, SystemClock, Town};

/// A town in which toast, a polecat of web, works on hq-a.
fn town() -> (Town, WorkerPlace) {
    let actor = Actor { name: "tester".to_owned(), owner: String::new() };
    let town =
        Town::in_memory(actor, Arc::new(SystemClock), Arc::new(())).expect("a town in memory");
    let new = NewBead { title: "a".to_owned(), id: Some("hq-a".to_owned()), ..NewBead::default() };
    let bead = create(&town, &new, false).expect("the bead is made").bead;
    let rig = RigSlug::trusted("web".to_owned());
    let place = WorkerPlace::polecat(&rig, "toast").expect("a valid name");
    let begun = town.write(|writer| {
        Ok(writer.insert_run(&Run {
            agent: place.to_string(),
            place: Some(place.clone()),
            state: RunState::Running,
            ..Run::begun(
                writer.next_run_id(&bead.id)?,
                Uid::fresh(),
                1,
                rig.clone(),
                ExecutorKind::Tmux,
                writer.now(),
            )
        })?)
    });
    begun.expect("the run begins");
    (town, place)
}

fn send(town: &Town, to: MessageAddress, words: &str) {
    let sent = town.write(|writer| {
        Ok(writer.send_message(NewMessage {
            kind: MessageKind::Nudge,
            from: Sender::Person("ann".to_owned()),
            to,
            subject: None,
            body: MessageBody::parse(words)?,
            bead: None,
            topic: None,
            reply_to: None,
        })?)
    });
    sent.expect("it is sent");
}

/// The messages for the worker at a place that were neither delivered nor read.
fn messages_for(town: &Town, place: &WorkerPlace) -> Vec<Message> {
    let found = town.read(|reader| {
        let live = reader.live_runs()?;
        let party = match live.into_iter().find(|run| run.place.as_ref() == Some(place)) {
            Some(run) => MessageParty::Worker(Box::new(run)),
            None => MessageParty::Standing(MessageAddress::Place(place.clone())),
        };
        unread_in(reader, &party)
    });
    let mut found = found.expect("a read");
    found.retain(|message| message.delivered_at.is_none() && message.seen_at.is_none());
    found
}

fn undelivered(town: &Town, place: &WorkerPlace) -> Vec<String> {
    messages_for(town, place).into_iter().map(|message| message.body).collect()
}

#[test]
fn a_session_gets_messages_to_its_place_and_its_bead_once_and_in_order() {
    let (town, place) = town();
    let work = |bead: &str| MessageAddress::Work(BeadId::trusted(bead.to_owned()));
    send(&town, work("hq-a"), "one");
    send(&town, MessageAddress::Place(place.clone()), "two");
    send(&town, work("hq-b"), "for another");
    send(&town, MessageAddress::Mayor, "for a person");

    assert_eq!(undelivered(&town, &place), ["one", "two"]);
    let first = messages_for(&town, &place).remove(0);
    assert!(delivered(&town, first.id).expect("a write"));
    assert!(!delivered(&town, first.id).expect("a write"));
    assert_eq!(undelivered(&town, &place), ["two"]);
}

#[test]
fn messages_that_were_read_are_not_delivered_again() {
    let (town, place) = town();
    send(&town, MessageAddress::Place(place.clone()), "one");
    let waiting = messages_for(&town, &place);
    // A caller does not mark messages that are for others.
    mark_seen(&town, None, &waiting).expect("a write");
    assert_eq!(undelivered(&town, &place), ["one"]);

    mark_seen(&town, Some(place.as_str()), &waiting).expect("a write");

    assert_eq!(undelivered(&town, &place), Vec::<String>::new());
}

#[test]
fn a_place_without_a_worker_keeps_its_messages() {
    let (town, _) = town();
    let rig = RigSlug::trusted("web".to_owned());
    let idle = WorkerPlace::polecat(&rig, "nux").expect("a valid name");
    send(&town, MessageAddress::Place(idle.clone()), "later");
    assert_eq!(undelivered(&town, &idle), ["later"]);
}
