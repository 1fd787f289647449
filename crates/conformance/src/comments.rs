//! Comments.

use gt_core::Comment;

use super::EngineUnderTest;
use super::kit::{CheckedStore, bead, comment, id, json};

pub(super) fn comments_read_back_oldest_first(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let a = town.add(bead("gt-a"));
    town.add_open(&["gt-b"]);
    let second = comment("gt-a", "2", "Second\nline", 20);
    let first = Comment {
        carried: vec![("extra".to_owned(), json("[1.0]"))],
        ..comment("gt-a", "9", "First", 10)
    };
    let third = comment("gt-a", "3", "At the same time", 20);

    town.write(|writer| {
        for comment in [&second, &first, &third] {
            assert!(writer.add_comment(&a, comment, true)?);
        }
        Ok(())
    });

    let found = town.read(|reader| reader.comments(&id("gt-a")));
    assert_eq!(found, [first, second, third]);
    assert_eq!(town.read(|reader| reader.comments(&id("gt-b"))), []);
}

pub(super) fn the_same_comment_is_not_added_twice(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let (a, b) = (town.add(bead("gt-a")), town.add(bead("gt-b")));
    let first = comment("gt-a", "1", "hello", 10);
    let add = |bead: &gt_core::Bead, comment: &Comment| {
        town.write(|writer| writer.add_comment(bead, comment, true))
    };

    assert!(add(&a, &first));
    assert!(!add(&a, &first), "the same in every way");
    assert!(
        !add(&a, &comment("gt-a", "2", "hello", 10)),
        "the same words, author and time under another id"
    );
    assert!(!add(&a, &comment("gt-a", "1", "other", 11)), "the same id with other words");
    assert!(add(&a, &comment("gt-a", "3", "hello", 11)), "another time");
    assert!(add(&b, &comment("gt-b", "1", "hello", 10)), "on another bead");
    let found = town.read(|reader| reader.comments(&a.id));
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], first);
}

pub(super) fn a_comment_is_announced_only_when_asked_and_when_new(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let a = town.add(bead("gt-a"));
    let before = town.last_event();

    town.write(|writer| {
        writer.add_comment(&a, &comment("gt-a", "1", "quiet", 10), false)?;
        writer.add_comment(&a, &comment("gt-a", "2", "loud", 10), true)?;
        writer.add_comment(&a, &comment("gt-a", "2", "loud", 10), true)
    });

    let events = town.events_since(before);
    assert_eq!(events.len(), 1);
    assert_eq!(
        events[0].payload.as_str(),
        r#"{"title":"Title of gt-a","author":"tester","text":"loud"}"#
    );
}

pub(super) fn a_bead_that_is_not_there_gets_no_comment(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let absent = bead("gt-absent");
    town.refuse(|writer| writer.add_comment(&absent, &comment("gt-absent", "1", "x", 1), true));
}
