//! Convoys: the states of their members, and when they land.

use gt_core::decide::{LANDED, Members, PARTS_DONE};
use gt_core::{Bead, DependencyType, EventKind, Outcome, Status};

use super::Subject;
use super::contexts::{new, schedule};
use super::kit::{ACTOR, Town, at, bead, closed, edge, id, import, json, kind, slug};
use crate::{Pause, Unscheduled};

/// How deep epics are nested in one case.
const LEVELS: u32 = 1000;

fn convoy(text: &str) -> Bead {
    Bead { issue_type: kind("convoy"), ..bead(text) }
}

/// A town with the beads `gt-a`, `gt-b` and `gt-c`, and a convoy that tracks them.
fn town_with(subject: &dyn Subject, convoy: Bead) -> Town {
    let town = Town::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    let convoy = town.add(convoy);
    track(&town, convoy.id.as_str(), &["gt-a", "gt-b", "gt-c"]);
    town
}

fn track(town: &Town, convoy: &str, beads: &[&str]) {
    let beads: Vec<_> = beads.iter().map(|bead| id(bead)).collect();
    town.write(|writer| writer.track(&id(convoy), &beads));
}

/// How many a convoy tracks, how many of them are open, how many failed, and how often it has landed.
fn tally(town: &Town, convoy: &str) -> (u64, u64, u64, u64) {
    let tally = town.read(|reader| reader.convoy_tally(&id(convoy))).expect("it has a tally");
    let Members { total, open, failed } = tally.members;
    (total, open, failed, tally.landings)
}

/// The status of a convoy, and why it is closed.
fn standing(town: &Town, convoy: &str) -> (String, String) {
    let convoy = town.get(convoy);
    (convoy.status.to_string(), convoy.close_reason)
}

fn open() -> (String, String) {
    ("open".to_owned(), String::new())
}

fn landed() -> (String, String) {
    ("closed".to_owned(), LANDED.to_owned())
}

pub(super) fn a_convoy_lands_with_the_close_of_its_last_bead(subject: &dyn Subject) {
    let town = town_with(subject, convoy("hq-cv-1"));
    assert_eq!(tally(&town, "hq-cv-1"), (3, 3, 0, 0));
    town.close("gt-a");
    town.close_as("gt-b", Some(Outcome::Cancelled));
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((3, 1, 0, 0), open()));

    let story = town.story_of(|town| town.close("gt-c"));

    assert_eq!(story, ["closed gt-c", "closed hq-cv-1", "convoy_landed hq-cv-1"]);
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((3, 0, 0, 1), landed()));
    assert_eq!(town.get("hq-cv-1").outcome, Some(Outcome::Success));
}

pub(super) fn a_failed_member_keeps_a_convoy_open_until_it_is_done(subject: &dyn Subject) {
    let town = town_with(subject, convoy("hq-cv-1"));
    town.close_as("gt-a", Some(Outcome::Failed));
    town.close("gt-b");
    town.close("gt-c");
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((3, 0, 1, 0), open()));
    town.reopen("gt-a");
    assert_eq!(tally(&town, "hq-cv-1"), (3, 1, 0, 0));
    town.close("gt-a");
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((3, 0, 0, 1), landed()));
}

pub(super) fn an_owned_or_staged_convoy_does_not_land_by_itself(subject: &dyn Subject) {
    let owned = Bead { metadata: Some(json(r#"{"owned":true}"#)), ..convoy("hq-cv-1") };
    let town = town_with(subject, owned);
    let staged = Status::parse("staged_ready").expect("that is a status");
    town.add(Bead { status: staged, ..convoy("hq-cv-2") });
    track(&town, "hq-cv-2", &["gt-a", "gt-b", "gt-c"]);
    for bead in ["gt-a", "gt-b", "gt-c"] {
        town.close(bead);
    }
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((3, 0, 0, 0), open()));
    assert_eq!(standing(&town, "hq-cv-2").0, "staged_ready");
}

pub(super) fn a_bead_that_opens_again_opens_its_convoy_which_lands_again(subject: &dyn Subject) {
    let town = town_with(subject, convoy("hq-cv-1"));
    for bead in ["gt-a", "gt-b", "gt-c"] {
        town.close(bead);
    }

    let story = town.story_of(|town| town.reopen("gt-b"));

    assert_eq!(story, ["reopened gt-b", "reopened hq-cv-1"]);
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((3, 1, 0, 1), open()));
    town.close("gt-b");
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((3, 0, 0, 2), landed()));

    // A convoy that was closed for another reason stays closed.
    town.change("hq-cv-1", EventKind::Updated, |convoy| {
        "given up".clone_into(&mut convoy.close_reason);
    });
    town.reopen("gt-b");
    assert_eq!(standing(&town, "hq-cv-1").1, "given up");
}

pub(super) fn a_bead_may_be_in_several_convoys(subject: &dyn Subject) {
    let town = town_with(subject, convoy("hq-cv-1"));
    town.add(convoy("hq-cv-2"));
    track(&town, "hq-cv-2", &["gt-a"]);
    town.close("gt-a");
    assert_eq!((standing(&town, "hq-cv-1"), standing(&town, "hq-cv-2")), (open(), landed()));
    assert_eq!((tally(&town, "hq-cv-1"), tally(&town, "hq-cv-2")), ((3, 2, 0, 0), (1, 0, 0, 1)));
}

pub(super) fn members_that_join_and_leave_are_counted(subject: &dyn Subject) {
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

pub(super) fn a_convoy_that_comes_in_is_counted_and_stays_as_it_was(subject: &dyn Subject) {
    let town = Town::new(subject);
    town.write(|writer| {
        let edges = ["gt-a", "gt-b"].map(|bead| edge("hq-cv-1", DependencyType::Tracks, bead));
        import(writer, &convoy("hq-cv-1"), &edges)?;
        import(writer, &closed("gt-a", None), &[])?;
        import(writer, &closed("gt-b", None), &[])
    });
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((2, 0, 0, 0), open()));
    town.change("gt-b", EventKind::Imported, |bead| {
        bead.outcome = Some(Outcome::Failed);
        bead.closed_at = Some(at(3000));
    });
    assert_eq!(tally(&town, "hq-cv-1"), (2, 0, 1, 0));
    town.change("gt-b", EventKind::Imported, |bead| bead.outcome = None);
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((2, 0, 0, 0), open()));
}

/// The lanes: the convoys with a cap that they are told apart by, and how many stand in them.
fn lanes(town: &Town) -> Vec<(Vec<String>, u64)> {
    town.check();
    let lanes = town.read(|reader| reader.count_lanes()).into_iter();
    let names = |convoys: Vec<gt_core::BeadId>| convoys.iter().map(ToString::to_string).collect();
    lanes.map(|(lane, count)| (names(lane.convoys), count)).collect()
}

fn limit(town: &Town, convoy: &str, cap: u32, paused: bool) {
    let convoy = town.get(convoy);
    let pause = paused.then(|| Pause { by: ACTOR.to_owned(), at: at(7) });
    town.write(|writer| writer.limit_convoy(&convoy, cap, pause.as_ref()));
}

pub(super) fn nothing_of_a_convoy_that_is_paused_is_awake(subject: &dyn Subject) {
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
    subject: &dyn Subject,
) {
    let limited = |town: &Town| {
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
            assert_eq!(standing(&town, "hq-cv-1"), landed());
        } else {
            town.close_as("hq-cv-1", None);
            assert!(limited(&town).is_empty());
        }
        town.reopen("gt-a");
        assert_eq!(limited(&town).is_empty(), outcome == Outcome::Failed);
    }
}

pub(super) fn a_convoy_with_a_cap_has_lanes_of_its_own(subject: &dyn Subject) {
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

pub(super) fn tracked_beads_that_are_not_scheduled_are_found(subject: &dyn Subject) {
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

pub(super) fn an_epic_is_over_with_the_last_of_its_parts(subject: &dyn Subject) {
    let town = Town::new(subject);
    let epic = |text: &str| Bead { issue_type: kind("epic"), ..bead(text) };
    town.add(epic("gt-top"));
    town.add(epic("gt-epic"));
    town.add_open(&["gt-a", "gt-b"]);
    town.link("gt-epic", DependencyType::ParentChild, "gt-top");
    for part in ["gt-a", "gt-b"] {
        town.link(part, DependencyType::ParentChild, "gt-epic");
    }
    assert_eq!(tally(&town, "gt-epic"), (2, 2, 0, 0));
    town.close("gt-a");
    town.close_as("gt-b", Some(Outcome::Failed));
    assert_eq!((tally(&town, "gt-epic"), standing(&town, "gt-epic")), ((2, 0, 1, 0), open()));
    town.reopen("gt-b");

    let story = town.story_of(|town| town.close("gt-b"));

    assert_eq!(story, ["closed gt-b", "closed gt-epic", "closed gt-top"]);
    let over = ("closed".to_owned(), PARTS_DONE.to_owned());
    assert_eq!((standing(&town, "gt-epic"), standing(&town, "gt-top")), (over.clone(), over));

    let story = town.story_of(|town| town.reopen("gt-a"));

    assert_eq!(story, ["reopened gt-a", "reopened gt-epic", "reopened gt-top"]);
    // A deleted part does not count any more, and a setting turns the closing of epics off.
    town.delete("gt-a");
    assert_eq!(tally(&town, "gt-epic"), (1, 0, 0, 0));
    town.write(|writer| writer.put_setting(crate::Scope::Town, "epics.auto_close", Some("false")));
    town.reopen("gt-b");
    town.close("gt-b");
    assert_eq!(standing(&town, "gt-epic"), open());
    // A stack holds fewer levels than a store.
    town.write(|writer| writer.put_setting(crate::Scope::Town, "epics.auto_close", Some("true")));
    let level = |number: u32| format!("gt-level-{number}");
    let under = |number: u32| edge(&level(number), DependencyType::ParentChild, &level(number - 1));
    town.write(|writer| {
        writer.insert_bead(&epic(&level(0)), EventKind::Created)?;
        for number in 1..LEVELS {
            writer.insert_bead(&epic(&level(number)), EventKind::Created)?;
            writer.put_dependency(&under(number), true)?;
        }
        Ok(())
    });
    town.close(&level(LEVELS - 1));
    assert_eq!(standing(&town, &level(0)).0, "closed");
}
