//! Convoys: how what they track stands, and when they land.

use gt_core::decide::{LANDED, Members};
use gt_core::{Bead, DependencyType, EventKind, Outcome, Status};

use super::Subject;
use super::kit::{Town, at, bead, closed, edge, id, import, json, kind};

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

pub(super) fn what_failed_keeps_a_convoy_open_until_it_is_done(subject: &dyn Subject) {
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

pub(super) fn what_is_owned_or_staged_does_not_land_by_itself(subject: &dyn Subject) {
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

    // What somebody has closed for another reason stays closed.
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

pub(super) fn what_comes_to_a_convoy_and_leaves_it_counts(subject: &dyn Subject) {
    let town = town_with(subject, convoy("hq-cv-1"));
    town.link("hq-cv-1", DependencyType::Tracks, "gt-later");
    assert_eq!(tally(&town, "hq-cv-1"), (3, 3, 0, 0), "only what is there counts");
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
