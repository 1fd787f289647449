//! Convoys and epics: the counts of their members, the marks for the layer above, and the limits of convoys.

use gt_core::decide::{LANDED, Members};
use gt_core::{Bead, BeadChangeKind, DependencyType, Outcome, Status};

use super::EngineUnderTest;
use super::contexts::{new, schedule};
use super::kit::{ACTOR, CheckedStore, at, bead, closed, edge, id, import, kind, slug};
use gt_store::{Pause, StoreError, TouchedContainer, Unscheduled, Writer};

fn convoy(text: &str) -> Bead {
    Bead { issue_type: kind("convoy"), ..bead(text) }
}

/// A town with the beads `gt-a`, `gt-b` and `gt-c`, and a convoy that tracks them.
fn town_with(subject: &dyn EngineUnderTest, convoy: Bead) -> CheckedStore {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    let convoy = town.add(convoy);
    track(&town, convoy.id.as_str(), &["gt-a", "gt-b", "gt-c"]);
    town
}

fn track(town: &CheckedStore, convoy: &str, beads: &[&str]) {
    let beads: Vec<_> = beads.iter().map(|bead| id(bead)).collect();
    town.write(|writer| writer.track(&id(convoy), &beads));
}

/// How many a convoy tracks, how many of them are open, how many failed, and how often it has landed.
fn tally(town: &CheckedStore, convoy: &str) -> (u64, u64, u64, u64) {
    let tally = town.read(|reader| reader.convoy_tally(&id(convoy))).expect("it has a tally");
    let Members { total, open, failed } = tally.members;
    (total, open, failed, tally.landings)
}

/// The status of a convoy, and why it is closed.
fn standing(town: &CheckedStore, convoy: &str) -> (String, String) {
    let convoy = town.get(convoy);
    (convoy.status.to_string(), convoy.close_reason)
}

fn open() -> (String, String) {
    ("open".to_owned(), String::new())
}

fn landed() -> (String, String) {
    ("closed".to_owned(), LANDED.to_owned())
}

/// Writes that a convoy has landed, as the layer above does.
fn land(town: &CheckedStore, convoy: &str) {
    town.write(|writer| {
        let old = writer.bead(&id(convoy))?.expect("the convoy is there");
        let new = Bead {
            status: Status::Closed,
            outcome: Some(Outcome::Success),
            closed_at: Some(writer.now()),
            close_reason: LANDED.to_owned(),
            ..old.clone()
        };
        writer.land_convoy(&old, &new)
    });
}

/// A marked container in short: its id, its counts if it has any, and whether less is done than before.
type Mark = (String, Option<(u64, u64, u64)>, bool);

/// The containers that this work marks.
fn touched(
    town: &CheckedStore,
    work: impl FnOnce(&mut Writer<'_>) -> Result<(), StoreError>,
) -> Vec<Mark> {
    let marks = town.write(|writer| {
        work(writer)?;
        Ok(std::iter::from_fn(|| writer.take_touched_container()).collect::<Vec<_>>())
    });
    let counts = |Members { total, open, failed }| (total, open, failed);
    let short = |TouchedContainer { id, members, less_is_done }| {
        (id.to_string(), members.map(counts), less_is_done)
    };
    marks.into_iter().map(short).collect()
}

fn set(writer: &mut Writer<'_>, bead: &str, to: &Bead) -> Result<(), StoreError> {
    let old = writer.bead(&id(bead))?.expect("the bead is there");
    let (status, outcome, closed_at) = (to.status.clone(), to.outcome, to.closed_at);
    let kind =
        if status == Status::Closed { BeadChangeKind::Closed } else { BeadChangeKind::Reopened };
    let new = Bead { status, outcome, closed_at, ..old.clone() };
    writer.save_bead(&old, &new, kind).map(drop)
}

pub(super) fn a_change_of_a_member_marks_its_containers_with_their_counts(
    subject: &dyn EngineUnderTest,
) {
    let town = town_with(subject, convoy("hq-cv-1"));
    let (over, failed) = (closed("gt-x", None), closed("gt-x", Some(Outcome::Failed)));
    for (container, text) in [("epic", "gt-epic"), ("molecule", "gt-molecule"), ("task", "gt-t")] {
        town.add(Bead { issue_type: kind(container), ..bead(text) });
        town.link("gt-a", DependencyType::ParentChild, text);
    }
    let mark = |name: &str, counts, less| (name.to_owned(), counts, less);
    let marks = |less, open, failed| {
        vec![
            mark("gt-epic", Some((1, open, failed)), less),
            mark("gt-molecule", None, less),
            mark("hq-cv-1", Some((3, 2 + open, failed)), less),
        ]
    };

    assert_eq!(touched(&town, |writer| set(writer, "gt-a", &over)), marks(false, 0, 0));
    assert_eq!(touched(&town, |writer| set(writer, "gt-a", &failed)), marks(true, 0, 1));
    assert_eq!(touched(&town, |writer| set(writer, "gt-a", &bead("gt-x"))), marks(false, 1, 0));
    // Of several changes the last counts are told, and whether less was done in between.
    let twice = touched(&town, |writer| {
        set(writer, "gt-b", &over)?;
        set(writer, "gt-b", &bead("gt-x"))?;
        set(writer, "gt-c", &over)
    });
    assert_eq!(twice, [mark("hq-cv-1", Some((3, 2, 0)), true)]);
    // A change that counts the same, and a bead without containers, mark nothing.
    town.add_open(&["gt-d"]);
    let none = touched(&town, |writer| {
        set(writer, "gt-d", &over)?;
        let old = writer.bead(&id("gt-b"))?.expect("the bead is there");
        let taken = Bead { status: Status::InProgress, ..old.clone() };
        writer.save_bead(&old, &taken, BeadChangeKind::StatusChanged).map(drop)
    });
    assert_eq!(none, []);
    // A work that is undone leaves no mark for the next one.
    town.refuse(|writer| {
        set(writer, "gt-b", &over)?;
        Err::<(), _>(StoreError::AlreadyExists(id("gt-b")))
    });
    assert_eq!(touched(&town, |_| Ok(())), []);
    // A member that joins may not be done; with a member that leaves, no less is done.
    let joins = edge("hq-cv-1", DependencyType::Tracks, "gt-d");
    let joined = touched(&town, |writer| writer.put_dependency(&joins, true).map(drop));
    assert_eq!(joined, [mark("hq-cv-1", Some((4, 2, 0)), true)]);
    let left = touched(&town, |writer| writer.remove_dependency(&joins, true));
    assert_eq!(left, [mark("hq-cv-1", Some((3, 2, 0)), false)]);
}

pub(super) fn a_landing_is_counted_and_told(subject: &dyn EngineUnderTest) {
    let town = town_with(subject, convoy("hq-cv-1"));
    town.close("gt-a");
    town.close_as("gt-b", Some(Outcome::Failed));

    let story = town.story_of(|town| land(town, "hq-cv-1"));

    assert_eq!(story, ["closed hq-cv-1", "convoy_landed hq-cv-1"]);
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((3, 1, 1, 1), landed()));
}

pub(super) fn members_are_counted_as_they_close_and_open(subject: &dyn EngineUnderTest) {
    let town = town_with(subject, convoy("hq-cv-1"));
    town.add(convoy("hq-cv-2"));
    track(&town, "hq-cv-2", &["gt-a"]);
    assert_eq!(tally(&town, "hq-cv-1"), (3, 3, 0, 0));
    town.close_as("gt-a", Some(Outcome::Failed));
    town.close("gt-b");
    town.close_as("gt-c", Some(Outcome::Cancelled));
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((3, 0, 1, 0), open()));
    assert_eq!(tally(&town, "hq-cv-2"), (1, 0, 1, 0));
    town.reopen("gt-a");
    assert_eq!((tally(&town, "hq-cv-1"), tally(&town, "hq-cv-2")), ((3, 1, 0, 0), (1, 1, 0, 0)));
    town.close("gt-a");
    assert_eq!((tally(&town, "hq-cv-1"), tally(&town, "hq-cv-2")), ((3, 0, 0, 0), (1, 0, 0, 0)));
}

pub(super) fn parts_of_an_epic_are_counted(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add(Bead { issue_type: kind("epic"), ..bead("gt-epic") });
    town.add_open(&["gt-a", "gt-b"]);
    for part in ["gt-a", "gt-b"] {
        town.link(part, DependencyType::ParentChild, "gt-epic");
    }
    assert_eq!(tally(&town, "gt-epic"), (2, 2, 0, 0));
    town.close("gt-a");
    town.close_as("gt-b", Some(Outcome::Failed));
    assert_eq!((tally(&town, "gt-epic"), standing(&town, "gt-epic")), ((2, 0, 1, 0), open()));
    // A deleted part does not count any more.
    town.delete("gt-b");
    assert_eq!(tally(&town, "gt-epic"), (1, 0, 0, 0));
}

pub(super) fn members_that_join_and_leave_are_counted(subject: &dyn EngineUnderTest) {
    let town = town_with(subject, convoy("hq-cv-1"));
    town.link("hq-cv-1", DependencyType::Tracks, "gt-later");
    assert_eq!(tally(&town, "hq-cv-1"), (3, 3, 0, 0), "only existing beads count");
    town.add_open(&["gt-later"]);
    assert_eq!(tally(&town, "hq-cv-1"), (4, 4, 0, 0));
    town.unlink("hq-cv-1", "gt-later");
    town.put(&edge("hq-cv-1", DependencyType::Blocks, "gt-a"));
    town.delete("gt-b");
    assert_eq!(tally(&town, "hq-cv-1"), (1, 1, 0, 0));
    town.put(&edge("hq-cv-1", DependencyType::Tracks, "gt-a"));
    assert_eq!(tally(&town, "hq-cv-1"), (2, 2, 0, 0));
    town.add(bead("gt-plain"));
    town.link("gt-plain", DependencyType::Tracks, "gt-a");
    assert_eq!(town.read(|reader| reader.convoy_tally(&id("gt-plain"))), None, "that is no convoy");
}

pub(super) fn a_convoy_that_comes_in_is_counted_and_stays_as_it_was(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.write(|writer| {
        let edges = ["gt-a", "gt-b"].map(|bead| edge("hq-cv-1", DependencyType::Tracks, bead));
        import(writer, &convoy("hq-cv-1"), &edges)?;
        import(writer, &closed("gt-a", None), &[])?;
        import(writer, &closed("gt-b", None), &[])
    });
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((2, 0, 0, 0), open()));
    town.change("gt-b", BeadChangeKind::Imported, |bead| {
        bead.outcome = Some(Outcome::Failed);
        bead.closed_at = Some(at(3000));
    });
    assert_eq!(tally(&town, "hq-cv-1"), (2, 0, 1, 0));
    town.change("gt-b", BeadChangeKind::Imported, |bead| bead.outcome = None);
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((2, 0, 0, 0), open()));
}

/// The lanes: the convoys with a cap that they are told apart by, and how many stand in them.
fn lanes(town: &CheckedStore) -> Vec<(Vec<String>, u64)> {
    town.check();
    let lanes = town.read(|reader| reader.count_lanes()).into_iter();
    let names = |convoys: Vec<gt_core::BeadId>| convoys.iter().map(ToString::to_string).collect();
    lanes.map(|(lane, count)| (names(lane.convoys), count)).collect()
}

fn limit(town: &CheckedStore, convoy: &str, cap: u32, paused: bool) {
    let convoy = town.get(convoy);
    let pause = paused.then(|| Pause { by: ACTOR.to_owned(), at: at(7) });
    town.write(|writer| writer.limit_convoy(&convoy, cap, pause.as_ref()));
}

pub(super) fn nothing_of_a_convoy_that_is_paused_is_awake(subject: &dyn EngineUnderTest) {
    let town = town_with(subject, convoy("hq-cv-1"));
    town.add_open(&["gt-d"]);
    for bead in ["gt-a", "gt-d"] {
        schedule(&town, new(bead));
    }

    let story = town.story_of(|town| limit(town, "hq-cv-1", 0, true));

    assert_eq!(story, ["paused hq-cv-1"]);
    assert_eq!(lanes(&town), [(vec![], 1)]);
    // A member that is scheduled or joins meanwhile is held, and one that leaves is not.
    schedule(&town, new("gt-b"));
    track(&town, "hq-cv-1", &["gt-d"]);
    assert_eq!(lanes(&town), []);
    town.unlink("hq-cv-1", "gt-a");
    assert_eq!(lanes(&town), [(vec![], 1)]);
    town.put(&edge("hq-cv-1", DependencyType::trusted("related"), "gt-b"));
    assert_eq!(lanes(&town), [(vec![], 2)]);
    let paused = town.read(|reader| reader.paused_members());
    let paused: Vec<_> = paused.iter().map(|(bead, ..)| bead.to_string()).collect();
    assert_eq!(paused, ["gt-c", "gt-d"]);

    let story = town.story_of(|town| limit(town, "hq-cv-1", 0, false));

    assert_eq!(story, ["resumed hq-cv-1"]);
    assert_eq!(lanes(&town), [(vec![], 3)]);
    assert!(town.read(|reader| reader.limiting_convoys()).is_empty());
}

pub(super) fn a_closed_convoy_holds_up_no_bead_and_a_reopened_one_is_as_it_was(
    subject: &dyn EngineUnderTest,
) {
    let limited = |town: &CheckedStore| {
        let convoys = town.read(|reader| reader.limiting_convoys());
        convoys.into_iter().map(|tally| tally.cap).collect::<Vec<_>>()
    };
    for outcome in [Outcome::Failed, Outcome::Success] {
        let town = town_with(subject, convoy("hq-cv-1"));
        limit(&town, "hq-cv-1", 2, true);
        for bead in ["gt-a", "gt-b", "gt-c"] {
            town.close_as(bead, Some(outcome));
        }
        assert_eq!(limited(&town), [2]);
        if outcome == Outcome::Success {
            land(&town, "hq-cv-1");
            assert_eq!(standing(&town, "hq-cv-1"), landed());
        } else {
            town.close_as("hq-cv-1", None);
            assert!(limited(&town).is_empty());
        }
        town.reopen("gt-a");
        assert_eq!(limited(&town).is_empty(), outcome == Outcome::Failed);
    }
}

pub(super) fn a_convoy_with_a_cap_has_lanes_of_its_own(subject: &dyn EngineUnderTest) {
    let town = town_with(subject, convoy("hq-cv-2"));
    town.add(convoy("hq-cv-1"));
    track(&town, "hq-cv-1", &["gt-a"]);
    town.add_open(&["gt-d"]);
    limit(&town, "hq-cv-2", 5, false);
    let both = schedule(&town, new("gt-a"));
    assert_eq!(both.convoys, [id("hq-cv-2")]);
    for bead in ["gt-b", "gt-d"] {
        schedule(&town, new(bead));
    }
    let one = |name: &str| vec![name.to_owned()];
    assert_eq!(lanes(&town), [(vec![], 1), (one("hq-cv-2"), 2)]);

    limit(&town, "hq-cv-1", 1, false);

    let both = vec!["hq-cv-1".to_owned(), "hq-cv-2".to_owned()];
    assert_eq!(lanes(&town), [(vec![], 1), (both, 1), (one("hq-cv-2"), 1)]);
    let found = town.read(|reader| {
        let all = reader.lanes()?;
        reader.lane_after(&all[1], 0, 10)
    });
    let found: Vec<_> = found.iter().map(|context| context.bead.to_string()).collect();
    assert_eq!(found, ["gt-a"]);
    // A change of the number changes no lane; without a cap, and when it is over or gone, it has none.
    limit(&town, "hq-cv-1", 2, false);
    assert_eq!(
        town.read(|reader| reader.convoy_tally(&id("hq-cv-1"))).map(|tally| tally.cap),
        Some(2)
    );
    limit(&town, "hq-cv-2", 0, false);
    assert_eq!(lanes(&town), [(vec![], 2), (one("hq-cv-1"), 1)]);
    town.close_as("hq-cv-1", None);
    assert_eq!(lanes(&town), [(vec![], 3)]);
    limit(&town, "hq-cv-2", 1, true);
    town.delete("hq-cv-2");
    assert_eq!(lanes(&town), [(vec![], 3)]);
}

pub(super) fn tracked_beads_that_are_not_scheduled_are_found(subject: &dyn EngineUnderTest) {
    let town = town_with(subject, convoy("hq-cv-1"));
    let staged = Status::parse("staged_ready").expect("that is a status");
    town.add(Bead { status: staged, ..convoy("hq-cv-2") });
    town.add_open(&["gt-d"]);
    track(&town, "hq-cv-2", &["gt-d"]);
    schedule(&town, new("gt-a"));
    town.close("gt-b");
    let found = || town.read(|reader| reader.unscheduled_members(Unscheduled::Anywhere));
    assert_eq!(found(), [(id("hq-cv-1"), id("gt-c"))]);
    let (convoy, other, bead) = (id("hq-cv-1"), id("hq-cv-2"), id("gt-c"));
    for (which, count) in [
        (Unscheduled::In(&convoy), 1),
        (Unscheduled::In(&other), 0),
        (Unscheduled::Bead(&bead), 1),
        (Unscheduled::Of(&slug("gear")), 0),
    ] {
        assert_eq!(town.read(|reader| reader.unscheduled_members(which)).len(), count, "{which:?}");
    }
    town.write(|writer| writer.note_fed(&id("hq-cv-1")));
    let fed = town.read(|reader| reader.convoy_tally(&id("hq-cv-1")));
    assert!(fed.is_some_and(|tally| tally.fed_at.is_some()));
    let idle = || town.read(|reader| reader.convoys_without_open_members()).len();
    assert_eq!(idle(), 0);
    town.close_as("gt-a", Some(Outcome::Failed));
    town.close("gt-c");
    assert_eq!(idle(), 1);
    town.close_as("hq-cv-1", None);
    assert_eq!((found(), idle()), (vec![], 0));
}
