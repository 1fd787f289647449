//! The event log.

use gt_core::{Bead, Event, EventKind, Status};

use super::EngineUnderTest;
use super::kit::{ACTOR, CheckedStore, at, bead, by, id, rig, slug, told};
use gt_store::{EventFilter, StoreError};

fn numbers(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.number).collect()
}

/// Ten events: five beads made, then each of them labelled.
fn ten_events(subject: &dyn EngineUnderTest) -> CheckedStore {
    let town = CheckedStore::new(subject);
    let ids = ["gt-0", "gt-1", "gt-2", "gt-3", "gt-4"];
    town.add_open(&ids);
    for id in ids {
        town.label(id, "red");
    }
    town
}

fn labels_only() -> EventFilter {
    EventFilter { kinds: vec![EventKind::LabelAdded], ..EventFilter::default() }
}

pub(super) fn an_empty_store_has_no_events(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let all = EventFilter::default();
    assert_eq!(town.read(|reader| reader.last_event_number()), 0);
    assert_eq!(town.read(|r| r.events_after(0, &all, 10)), (vec![], 0));
    assert_eq!(town.read(|r| r.latest_events(&all, 10)), []);
}

pub(super) fn numbers_are_gapless_and_in_order(subject: &dyn EngineUnderTest) {
    let town = ten_events(subject);
    town.write(|writer| {
        for number in 5..9 {
            writer.insert_bead(&bead(&format!("gt-{number}")), EventKind::Imported)?;
        }
        Ok(())
    });

    let expected: Vec<u64> = (1..=14).collect();
    assert_eq!(numbers(&town.events_since(0)), expected);
    assert_eq!(town.read(|reader| reader.last_event_number()), 14);
}

pub(super) fn a_write_that_fails_leaves_no_event_and_no_gap(subject: &dyn EngineUnderTest) {
    let town = ten_events(subject);

    town.refuse(|writer| {
        writer.insert_bead(&bead("gt-new"), EventKind::Created)?;
        Err::<(), _>(StoreError::NotCommitted("changed my mind".to_owned()))
    });
    town.refuse(|writer| {
        writer.insert_bead(&bead("gt-new"), EventKind::Created)?;
        writer.insert_bead(&bead("gt-new"), EventKind::Created)
    });

    assert_eq!(town.last_event(), 10);
    town.add_open(&["gt-new"]);
    assert_eq!(numbers(&town.events_since(10)), [11]);
}

pub(super) fn a_write_that_changes_nothing_leaves_no_event(subject: &dyn EngineUnderTest) {
    let town = ten_events(subject);
    town.write(|_| Ok(()));
    assert_eq!(town.last_event(), 10);
}

pub(super) fn an_event_names_actor_time_and_rig(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.write(|writer| writer.insert_rig(&rig("gear", "gt")));
    let author = gt_store::Authorship {
        actor: "gear/polecats/Toast".to_owned(),
        at: gt_core::Timestamp::from_nanos(1_780_230_896_789_012_345),
        worker: None,
    };
    town.store
        .write(&author, |writer| {
            let new = Bead { rig: Some(slug("gear")), ..bead("gt-a") };
            writer.insert_bead(&new, EventKind::Created)
        })
        .expect("the write succeeds");

    let event = town.events_since(1).remove(0);

    assert_eq!((event.actor, event.at), (author.actor, author.at));
    assert_eq!((event.bead, event.rig, event.run), (Some(id("gt-a")), Some(slug("gear")), None));
}

pub(super) fn events_are_read_in_pages(subject: &dyn EngineUnderTest) {
    let town = ten_events(subject);
    let all = EventFilter::default();
    let mut from = 0;
    let mut seen = Vec::new();
    loop {
        let (page, next) = town.read(|reader| reader.events_after(from, &all, 4));
        assert!(page.len() <= 4);
        if page.is_empty() {
            assert_eq!(next, from, "nothing new: go on from the same place");
            break;
        }
        assert_eq!(Some(next), page.last().map(|event| event.number));
        seen.extend(numbers(&page));
        from = next;
    }
    assert_eq!(seen, (1..=10).collect::<Vec<u64>>());
}

pub(super) fn events_that_a_filter_skips_are_not_read_again(subject: &dyn EngineUnderTest) {
    let town = ten_events(subject);
    let read = |from, limit| town.read(|reader| reader.events_after(from, &labels_only(), limit));

    let (page, next) = read(0, 2);
    assert_eq!((numbers(&page), next), (vec![6, 7], 7));
    let (page, next) = read(next, 100);
    assert_eq!((numbers(&page), next), (vec![8, 9, 10], 10));
    town.add_open(&["gt-new"]);
    assert_eq!(read(10, 100), (vec![], 11), "the last one looked at, admitted or not");
}

pub(super) fn a_limit_of_nothing_gives_nothing(subject: &dyn EngineUnderTest) {
    let town = ten_events(subject);
    let all = EventFilter::default();
    assert_eq!(town.read(|r| r.events_after(3, &all, 0)), (vec![], 3));
    assert_eq!(town.read(|r| r.latest_events(&all, 0)), []);
}

pub(super) fn a_place_beyond_the_end_is_kept(subject: &dyn EngineUnderTest) {
    let town = ten_events(subject);
    for number in [10, 99, u64::MAX] {
        let read = town.read(|r| r.events_after(number, &EventFilter::default(), 5));
        assert_eq!(read, (vec![], number));
    }
}

pub(super) fn the_latest_events_come_oldest_first(subject: &dyn EngineUnderTest) {
    let town = ten_events(subject);
    let latest = |filter: &EventFilter, limit| {
        numbers(&town.read(|reader| reader.latest_events(filter, limit)))
    };

    assert_eq!(latest(&EventFilter::default(), 3), [8, 9, 10]);
    assert_eq!(latest(&EventFilter::default(), 100).len(), 10);
    assert_eq!(latest(&labels_only(), 2), [9, 10]);
    let of_bead = EventFilter { bead: Some(id("gt-1")), ..EventFilter::default() };
    assert_eq!(latest(&of_bead, 5), [2, 7]);
    assert_eq!(latest(&of_bead, 1), [7]);
}

pub(super) fn events_are_filtered_by_each_field(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.write(|writer| writer.insert_rig(&rig("gear", "gt")));
    let in_gear = Bead { rig: Some(slug("gear")), ..bead("gt-a") };
    for (seconds, new) in [(20_000, &in_gear), (30_000, &bead("hq-b"))] {
        town.store
            .write(&by(seconds), |w| w.insert_bead(new, EventKind::Created))
            .expect("the write succeeds");
    }
    town.set_status("hq-b", Status::Hooked);
    let none = EventFilter::default;
    let filters = [
        (none(), 4),
        (EventFilter { bead: Some(id("hq-b")), ..none() }, 2),
        (EventFilter { rig: Some(slug("gear")), ..none() }, 2),
        (EventFilter { kinds: vec![EventKind::Created, EventKind::RigAdded], ..none() }, 3),
        (EventFilter { since: Some(at(20_000)), ..none() }, 2),
        (EventFilter { since: Some(at(30_001)), ..none() }, 0),
        (EventFilter { of_beads: true, ..none() }, 3),
        (EventFilter { actor: Some("a stranger".to_owned()), ..none() }, 0),
        (
            EventFilter { bead: Some(id("hq-b")), kinds: vec![EventKind::StatusChanged], ..none() },
            1,
        ),
    ];
    for (filter, expected) in filters {
        let (after, reached) = town.read(|reader| reader.events_after(0, &filter, 100));
        let latest = town.read(|reader| reader.latest_events(&filter, 100));
        assert_eq!(after.len(), expected, "{filter:?}");
        assert_eq!(after, latest, "{filter:?}");
        assert_eq!(reached, 4);
    }
}

pub(super) fn the_log_outlives_what_it_tells_about(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    town.delete("gt-a");

    let events = town.events_since(0);

    let story: Vec<String> = events.iter().map(told).collect();
    assert_eq!(story, ["created gt-a", "deleted gt-a"]);
    assert!(events.iter().all(|event| event.actor == ACTOR));
    assert_eq!(
        events[1].payload.as_str(),
        r#"{"title":"Title of gt-a","issue_type":"task","status":"open","priority":2,"assignee":""}"#
    );
}

pub(super) fn old_events_go_from_the_beginning_and_the_last_one_stays(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    assert_eq!(town.read(|reader| reader.oldest_event_at()), None);
    assert_eq!(town.write(|writer| writer.purge_events(at(20_000), 100)), 0);
    let town = ten_events(subject);
    let events = town.events_since(0);
    assert_eq!(town.read(|reader| reader.oldest_event_at()), Some(events[0].at));
    let kept = || numbers(&town.events_since(0));

    // As many as may go at once, and no more than are old.
    assert_eq!(town.write(|writer| writer.purge_events(events[4].at, 3)), 3);
    assert_eq!(kept(), (4..=11).collect::<Vec<u64>>());
    assert_eq!(town.write(|writer| writer.purge_events(events[4].at, 3)), 1);
    assert_eq!(kept(), (5..=12).collect::<Vec<u64>>());
    assert_eq!(town.write(|writer| writer.purge_events(events[4].at, 3)), 0);
    let told = town.events_since(10);
    assert!(told.iter().all(|event| event.kind == EventKind::EventsPurged), "{told:?}");

    assert_eq!(town.write(|writer| writer.purge_events(at(90_000), 100)), 7);
    assert_eq!(kept(), [12, 13]);
    town.label("gt-0", "blue");
    assert_eq!(kept(), [12, 13, 14], "numbers go on");
}

pub(super) fn the_history_of_several_beads_is_read_at_once(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    let pause = gt_store::Pause { by: "ann".to_owned(), at: at(1) };
    town.write(|writer| writer.set_paused(Some(&pause)));
    town.close("gt-a");
    let (history, pauses, oldest) = town.read(|reader| {
        let history = reader.events_of(&[id("gt-c"), id("gt-a")])?;
        Ok((history, reader.pause_events()?, reader.oldest_event()?))
    });
    let told: Vec<(u64, &str)> = history
        .iter()
        .map(|event| (event.number, event.bead.as_ref().map_or("", |bead| bead.as_str())))
        .collect();
    assert_eq!(told, [(1, "gt-a"), (3, "gt-c"), (5, "gt-a")]);
    assert_eq!(pauses.iter().map(|event| event.number).collect::<Vec<_>>(), [4]);
    assert_eq!(oldest.map(|(number, _)| number), Some(1));
    let times = town.read(|reader| Ok([reader.event_time(4)?, reader.event_time(6)?]));
    assert_eq!(times, [Some(pauses[0].at), None]);
}
