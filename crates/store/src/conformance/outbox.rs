//! Notices, and how they are sent.

use gt_core::Timestamp;
use gt_core::schedule::{Channel, Notice, NoticeState};

use super::Subject;
use super::contest::Contest;
use super::kit::{Town, at, by, json};
use crate::{Due, UnsentNotices};

/// Every notice that the cases write is due by then, and none further away is believed.
const LATER: Due = Due { now: at(20_000), far: at(30_000) };
const LEASE: Timestamp = at(20_060);

fn put(town: &Town, key: &str, channel: Channel) -> bool {
    town.write(|writer| writer.put_notice(key, channel, &json(r#"{"a":1}"#)))
}

fn take(town: &Town, channel: Channel) -> Option<Notice> {
    town.write(|writer| writer.take_notice(channel, LATER, LEASE))
}

fn taken(town: &Town, channel: Channel) -> Notice {
    take(town, channel).expect("a notice is due")
}

fn counts(town: &Town) -> (u64, u64) {
    let UnsentNotices { waiting, given_up } = town.read(|reader| reader.unsent_notice_counts());
    (waiting, given_up)
}

pub(super) fn a_notice_is_written_once_for_each_channel(subject: &dyn Subject) {
    let town = Town::new(subject);
    assert!(put(&town, "key", Channel::Command));
    assert!(!put(&town, "key", Channel::Command));
    assert!(put(&town, "key", Channel::Webhook));
    assert!(put(&town, "Key", Channel::Command));

    let unsent = town.read(|reader| reader.unsent_notices(10));
    let told: Vec<_> = unsent.iter().map(|n| (n.number, n.key.as_str(), n.channel)).collect();
    let expected =
        [(1, "key", Channel::Command), (2, "key", Channel::Webhook), (3, "Key", Channel::Command)];
    assert_eq!(told, expected);
    let first = &unsent[0];
    assert_eq!(first.payload, json(r#"{"a":1}"#));
    assert_eq!((first.attempts, first.last_error.as_str()), (0, ""));
    assert_eq!((first.state, first.next_attempt_at), (NoticeState::Waiting, first.created_at));
    assert_eq!(town.read(|reader| reader.unsent_notices(2)).len(), 2);

    let sent = taken(&town, Channel::Command);
    town.write(|writer| writer.notice_sent(&sent));
    assert!(!put(&town, "key", Channel::Command), "not even after it has arrived");
}

pub(super) fn notices_are_no_events(subject: &dyn Subject) {
    let town = Town::new(subject);
    let story = town.story_of(|town| {
        put(town, "key", Channel::Command);
        let notice = taken(town, Channel::Command);
        town.write(|writer| writer.notice_failed(&notice, "no", Some(at(20_000))));
        let notice = taken(town, Channel::Command);
        town.write(|writer| writer.notice_sent(&notice));
        town.write(|writer| writer.retry_notices());
    });
    assert!(story.is_empty(), "{story:?}");
}

pub(super) fn a_writer_knows_how_many_notices_it_has_written(subject: &dyn Subject) {
    let town = Town::new(subject);
    let written = town.write(|writer| {
        for key in ["a", "a", "b"] {
            writer.put_notice(key, Channel::Command, &json("{}"))?;
        }
        Ok(writer.notices_written())
    });
    assert_eq!(written, 2);
    assert_eq!(town.write(|writer| Ok(writer.notices_written())), 0);
}

pub(super) fn due_notices_are_taken_oldest_first_and_once(subject: &dyn Subject) {
    let town = Town::new(subject);
    assert_eq!(town.read(|reader| reader.next_notice_due()), None);
    for key in ["a", "b"] {
        put(&town, key, Channel::Webhook);
    }
    let too_early = Due { now: at(1), far: at(30_000) };
    assert_eq!(town.read(|reader| reader.due_notice(Channel::Webhook, too_early)), None);
    assert_eq!(take(&town, Channel::Command), None);

    let (first, second) = (taken(&town, Channel::Webhook), taken(&town, Channel::Webhook));

    assert_eq!((first.key.as_str(), first.attempts), ("a", 1));
    assert_eq!((second.key.as_str(), second.next_attempt_at), ("b", LEASE));
    assert_eq!(take(&town, Channel::Webhook), None, "others have them");
    // The process that took it may be dead when the lease is over.
    let after = Due { now: LEASE, far: at(30_000) };
    let again = town.write(|writer| writer.take_notice(Channel::Webhook, after, at(21_000)));
    let again = again.expect("the lease is over");
    assert_eq!((again.key.as_str(), again.attempts), ("a", 2));
}

pub(super) fn a_time_that_no_clock_can_have_meant_is_due(subject: &dyn Subject) {
    let town = Town::new(subject);
    put(&town, "key", Channel::Command);
    let notice = taken(&town, Channel::Command);
    town.write(|writer| writer.notice_failed(&notice, "no", Some(at(90_000))));
    assert_eq!(taken(&town, Channel::Command).key, "key");
}

pub(super) fn a_failed_notice_waits_and_is_given_up_in_the_end(subject: &dyn Subject) {
    let town = Town::new(subject);
    put(&town, "key", Channel::Command);
    let notice = taken(&town, Channel::Command);
    assert!(town.write(|writer| writer.notice_failed(&notice, "busy", Some(at(20_000)))));
    let notice = taken(&town, Channel::Command);
    assert_eq!(notice.last_error, "busy");
    assert_eq!(counts(&town), (1, 0));

    assert!(town.write(|writer| writer.notice_failed(&notice, "gone", None)));

    assert_eq!(counts(&town), (0, 1));
    assert_eq!(take(&town, Channel::Command), None);
    let unsent = town.read(|reader| reader.unsent_notices(10));
    assert_eq!((unsent[0].state, unsent[0].last_error.as_str()), (NoticeState::GivenUp, "gone"));

    assert_eq!(town.write(|writer| writer.retry_notices()), 1);
    let again = taken(&town, Channel::Command);
    assert_eq!((again.attempts, again.state), (1, NoticeState::Waiting));
}

pub(super) fn a_late_sender_does_not_undo_the_work_of_others(subject: &dyn Subject) {
    let town = Town::new(subject);
    put(&town, "key", Channel::Command);
    let slow = taken(&town, Channel::Command);
    let after = Due { now: LEASE, far: at(30_000) };
    let quick = town.write(|writer| writer.take_notice(Channel::Command, after, at(21_000)));
    let quick = quick.expect("the lease is over");
    assert!(!town.write(|writer| writer.notice_failed(&slow, "late", None)));

    town.write(|writer| writer.notice_sent(&quick));

    assert!(!town.write(|writer| writer.notice_failed(&quick, "late", None)));
    assert_eq!(counts(&town), (0, 0));
    let notice = town.read(|reader| reader.notice("key", Channel::Command));
    assert_eq!(notice.expect("it is kept").state, NoticeState::Sent);
}

pub(super) fn of_several_that_look_one_takes_a_notice(subject: &dyn Subject) {
    let contest = Contest::new(subject, 3).prepare(|writer, round| {
        writer.put_notice(&format!("round {round}"), Channel::Webhook, &json("{}"))?;
        Ok(())
    });
    contest.run(
        |store, turn| {
            let due = Due { now: at(20_000), far: at(30_000) };
            let taken =
                store.write(&by(20_000), |writer| writer.take_notice(Channel::Webhook, due, LEASE));
            (turn.round, taken.expect("the write succeeds"))
        },
        |town, _, answers| {
            let keys: Vec<String> =
                answers.into_iter().filter_map(|(_, notice)| notice.map(|n| n.key)).collect();
            let mut once = keys.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), keys.len(), "{keys:?}");
            for key in keys {
                let notice = town.read(|reader| reader.notice(&key, Channel::Webhook));
                assert_eq!(notice.expect("it is there").attempts, 1, "{key}");
            }
        },
    );
}
