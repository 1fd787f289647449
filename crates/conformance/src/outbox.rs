//! Notices, and how they are sent.

use gt_core::Timestamp;
use gt_core::schedule::{Notice, NoticeChannel, NoticeState};

use super::EngineUnderTest;
use super::contest::Contest;
use super::kit::{CheckedStore, at, by, json};
use gt_store::{DueNotices, UnsentNotices};

/// Every notice that the cases write is due by then, and none further away is believed.
const LATER: DueNotices = DueNotices { now: at(20_000), far: at(30_000) };
const LEASE: Timestamp = at(20_060);

fn put(town: &CheckedStore, key: &str, channel: NoticeChannel) -> bool {
    town.write(|writer| writer.put_notice(key, channel, &json(r#"{"a":1}"#)))
}

fn take(town: &CheckedStore, channel: NoticeChannel) -> Option<Notice> {
    town.write(|writer| writer.take_notice(channel, LATER, LEASE))
}

fn taken(town: &CheckedStore, channel: NoticeChannel) -> Notice {
    take(town, channel).expect("a notice is due")
}

fn counts(town: &CheckedStore) -> (u64, u64) {
    let UnsentNotices { waiting, given_up } = town.read(|reader| reader.unsent_notice_counts());
    (waiting, given_up)
}

pub(super) fn a_notice_is_written_once_for_each_channel(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    assert!(put(&town, "key", NoticeChannel::Command));
    assert!(!put(&town, "key", NoticeChannel::Command));
    assert!(put(&town, "key", NoticeChannel::Webhook));
    assert!(put(&town, "Key", NoticeChannel::Command));

    let unsent = town.read(|reader| reader.unsent_notices(10));
    let told: Vec<_> = unsent.iter().map(|n| (n.number, n.key.as_str(), n.channel)).collect();
    let expected = [
        (1, "key", NoticeChannel::Command),
        (2, "key", NoticeChannel::Webhook),
        (3, "Key", NoticeChannel::Command),
    ];
    assert_eq!(told, expected);
    let first = &unsent[0];
    assert_eq!(first.payload, json(r#"{"a":1}"#));
    assert_eq!((first.attempts, first.last_error.as_str()), (0, ""));
    assert_eq!((first.state, first.next_attempt_at), (NoticeState::Waiting, first.created_at));
    assert_eq!(town.read(|reader| reader.unsent_notices(2)).len(), 2);

    let sent = taken(&town, NoticeChannel::Command);
    town.write(|writer| writer.notice_sent(&sent));
    assert!(!put(&town, "key", NoticeChannel::Command), "not even after it has arrived");
}

pub(super) fn notices_are_no_events(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let story = town.story_of(|town| {
        put(town, "key", NoticeChannel::Command);
        let notice = taken(town, NoticeChannel::Command);
        town.write(|writer| writer.notice_failed(&notice, "no", Some(at(20_000))));
        let notice = taken(town, NoticeChannel::Command);
        town.write(|writer| writer.notice_sent(&notice));
        town.write(|writer| writer.retry_notices());
    });
    assert!(story.is_empty(), "{story:?}");
}

pub(super) fn a_writer_knows_how_many_notices_it_has_written(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let written = town.write(|writer| {
        for key in ["a", "a", "b"] {
            writer.put_notice(key, NoticeChannel::Command, &json("{}"))?;
        }
        Ok(writer.notices_written())
    });
    assert_eq!(written, 2);
    assert_eq!(town.write(|writer| Ok(writer.notices_written())), 0);
}

pub(super) fn due_notices_are_taken_oldest_first_and_once(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    assert_eq!(town.read(|reader| reader.next_notice_due()), None);
    for key in ["a", "b"] {
        put(&town, key, NoticeChannel::Webhook);
    }
    let too_early = DueNotices { now: at(1), far: at(30_000) };
    assert_eq!(town.read(|reader| reader.due_notice(NoticeChannel::Webhook, too_early)), None);
    assert_eq!(take(&town, NoticeChannel::Command), None);

    let (first, second) =
        (taken(&town, NoticeChannel::Webhook), taken(&town, NoticeChannel::Webhook));

    assert_eq!((first.key.as_str(), first.attempts), ("a", 1));
    assert_eq!((second.key.as_str(), second.next_attempt_at), ("b", LEASE));
    assert_eq!(take(&town, NoticeChannel::Webhook), None, "others have them");
    // The process that took it may be dead when the lease is over.
    let after = DueNotices { now: LEASE, far: at(30_000) };
    let again = town.write(|writer| writer.take_notice(NoticeChannel::Webhook, after, at(21_000)));
    let again = again.expect("the lease is over");
    assert_eq!((again.key.as_str(), again.attempts), ("a", 2));
}

pub(super) fn a_time_that_no_clock_can_have_meant_is_due(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    put(&town, "key", NoticeChannel::Command);
    let notice = taken(&town, NoticeChannel::Command);
    town.write(|writer| writer.notice_failed(&notice, "no", Some(at(90_000))));
    assert_eq!(taken(&town, NoticeChannel::Command).key, "key");
}

pub(super) fn a_failed_notice_waits_and_is_given_up_in_the_end(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    put(&town, "key", NoticeChannel::Command);
    let notice = taken(&town, NoticeChannel::Command);
    assert!(town.write(|writer| writer.notice_failed(&notice, "busy", Some(at(20_000)))));
    let notice = taken(&town, NoticeChannel::Command);
    assert_eq!(notice.last_error, "busy");
    assert_eq!(counts(&town), (1, 0));

    assert!(town.write(|writer| writer.notice_failed(&notice, "gone", None)));

    assert_eq!(counts(&town), (0, 1));
    assert_eq!(take(&town, NoticeChannel::Command), None);
    let unsent = town.read(|reader| reader.unsent_notices(10));
    assert_eq!((unsent[0].state, unsent[0].last_error.as_str()), (NoticeState::GivenUp, "gone"));

    assert_eq!(town.write(|writer| writer.retry_notices()), 1);
    let again = taken(&town, NoticeChannel::Command);
    assert_eq!((again.attempts, again.state), (1, NoticeState::Waiting));
}

pub(super) fn a_late_sender_does_not_undo_the_work_of_others(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    put(&town, "key", NoticeChannel::Command);
    let slow = taken(&town, NoticeChannel::Command);
    let after = DueNotices { now: LEASE, far: at(30_000) };
    let quick = town.write(|writer| writer.take_notice(NoticeChannel::Command, after, at(21_000)));
    let quick = quick.expect("the lease is over");
    assert!(!town.write(|writer| writer.notice_failed(&slow, "late", None)));

    town.write(|writer| writer.notice_sent(&quick));

    assert!(!town.write(|writer| writer.notice_failed(&quick, "late", None)));
    assert_eq!(counts(&town), (0, 0));
    let notice = town.read(|reader| reader.notice("key", NoticeChannel::Command));
    assert_eq!(notice.expect("it is kept").state, NoticeState::Sent);
}

pub(super) fn of_several_that_look_one_takes_a_notice(subject: &dyn EngineUnderTest) {
    let contest = Contest::new(subject, 3).prepare(|writer, round| {
        writer.put_notice(&format!("round {round}"), NoticeChannel::Webhook, &json("{}"))?;
        Ok(())
    });
    contest.run(
        |store, turn| {
            let due = DueNotices { now: at(20_000), far: at(30_000) };
            let taken = store.write(&by(20_000), |writer| {
                writer.take_notice(NoticeChannel::Webhook, due, LEASE)
            });
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
                let notice = town.read(|reader| reader.notice(&key, NoticeChannel::Webhook));
                assert_eq!(notice.expect("it is there").attempts, 1, "{key}");
            }
        },
    );
}
