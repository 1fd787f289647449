//! Convoys, epics and molecules follow their members in the same transaction.

use gt_beads::beads::{self, BeadChanges, Close, NewBead};
use gt_beads::{convoys, deletion, dependencies, molecules};
use gt_core::decide::{LANDED, Members, PARTS_DONE, STEPS_DONE};
use gt_core::{Bead, BeadChangeKind, BeadId, DependencyType, IssueType, Json, Outcome, Status};
use gt_store::{BeadFilter, EventFilter, Reader, statements_run_by_this_thread};
use gt_town::{Town, settings};

use crate::towns::{on_each_engine, town_in, town_in_memory};

/// How deep containers are nested in one test.
const LEVELS: u64 = 3_000;

fn id(text: &str) -> BeadId {
    BeadId::parse(text).unwrap()
}

fn make(town: &Town, name: &str, kind: &str, parent: Option<&str>) {
    let new = NewBead {
        title: name.to_owned(),
        id: Some(name.to_owned()),
        force: true,
        issue_type: Some(IssueType::parse(kind).unwrap()),
        ..NewBead::default()
    };
    beads::create(town, &new, false).unwrap();
    if let Some(parent) = parent {
        let part = DependencyType::ParentChild;
        dependencies::add(town, name, parent, &part, false).unwrap();
    }
}

fn tasks(town: &Town, names: &[&str], parent: Option<&str>) {
    for name in names {
        make(town, name, "task", parent);
    }
}

fn convoy(town: &Town, name: &str, members: &[&str]) {
    make(town, name, "convoy", None);
    let members: Vec<BeadId> = members.iter().map(|member| id(member)).collect();
    town.write(|writer| Ok(writer.track(&id(name), &members)?)).unwrap();
}

/// A town with the tasks `hq-a`, `hq-b` and `hq-c`, and the convoy `hq-cv-1` that tracks them.
fn with_convoy(town: &Town) {
    tasks(town, &["hq-a", "hq-b", "hq-c"], None);
    convoy(town, "hq-cv-1", &["hq-a", "hq-b", "hq-c"]);
}

fn change(town: &Town, name: &str, change: impl FnOnce(&mut Bead)) {
    let changed = town.write(|writer| {
        let old = writer.bead(&id(name))?.unwrap();
        let mut new = old.clone();
        change(&mut new);
        Ok(writer.save_bead(&old, &new, BeadChangeKind::Updated)?)
    });
    assert!(changed.unwrap());
}

fn close_as(town: &Town, name: &str, outcome: Option<Outcome>) -> beads::ClosedBead {
    let how = Close { outcome, force: true, ..Close::default() };
    beads::close(town, &[name.to_owned()], &how).unwrap().remove(0).unwrap()
}

fn close(town: &Town, name: &str) -> beads::ClosedBead {
    close_as(town, name, None)
}

fn reopen(town: &Town, name: &str) {
    beads::reopen(town, &[name.to_owned()], None).unwrap().remove(0).unwrap();
}

fn get(town: &Town, name: &str) -> Bead {
    town.read(|reader| Ok(reader.bead(&id(name))?)).unwrap().unwrap()
}

/// The status of a container, and why it is closed.
fn standing(town: &Town, name: &str) -> (String, String) {
    let container = get(town, name);
    (container.status.to_string(), container.close_reason)
}

fn open() -> (String, String) {
    ("open".to_owned(), String::new())
}

fn closed(reason: &str) -> (String, String) {
    ("closed".to_owned(), reason.to_owned())
}

/// How many a container has, how many of them are open, how many failed, and how often it has landed.
fn tally(town: &Town, name: &str) -> (u64, u64, u64, u64) {
    let tally = town.read(|reader| Ok(reader.convoy_tally(&id(name))?)).unwrap().unwrap();
    let Members { total, open, failed } = tally.members;
    (total, open, failed, tally.landings)
}

/// The events that `action` writes, as `kind id`.
fn story_of(town: &Town, action: impl FnOnce()) -> Vec<String> {
    let last = || town.read(|reader| Ok(reader.last_event_number()?)).unwrap();
    let before = last();
    action();
    let filter = EventFilter::default();
    let (events, _) =
        town.read(|reader| Ok(reader.events_after(before, &filter, 10_000)?)).unwrap();
    let bead = |bead: Option<BeadId>| bead.map(|id| format!(" {id}")).unwrap_or_default();
    let told = events.into_iter().map(|event| format!("{}{}", event.kind, bead(event.bead)));
    assert!(town.read(|reader| Ok(reader.differences()?)).unwrap().is_empty());
    told.collect()
}

#[test]
fn a_convoy_lands_with_the_close_of_its_last_bead() {
    on_each_engine(|town| {
        with_convoy(town);
        close(town, "hq-a");
        close_as(town, "hq-b", Some(Outcome::Cancelled));
        assert_eq!((tally(town, "hq-cv-1"), standing(town, "hq-cv-1")), ((3, 1, 0, 0), open()));

        let story = story_of(town, || drop(close(town, "hq-c")));

        assert_eq!(story, ["closed hq-c", "closed hq-cv-1", "convoy_landed hq-cv-1"]);
        let landed = closed(LANDED);
        assert_eq!((tally(town, "hq-cv-1"), standing(town, "hq-cv-1")), ((3, 0, 0, 1), landed));
        assert_eq!(get(town, "hq-cv-1").outcome, Some(Outcome::Success));
    });
}

#[test]
fn a_failed_member_keeps_a_convoy_open_until_it_is_done() {
    let town = town_in_memory();
    with_convoy(&town);
    close_as(&town, "hq-a", Some(Outcome::Failed));
    close(&town, "hq-b");
    close(&town, "hq-c");
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((3, 0, 1, 0), open()));
    reopen(&town, "hq-a");
    close(&town, "hq-a");
    assert_eq!(tally(&town, "hq-cv-1"), (3, 0, 0, 1));
    assert_eq!(standing(&town, "hq-cv-1"), closed(LANDED));
}

#[test]
fn an_owned_or_staged_convoy_does_not_land_by_itself() {
    let town = town_in_memory();
    with_convoy(&town);
    let owned = Json::parse(r#"{"owned":true}"#).unwrap();
    change(&town, "hq-cv-1", |convoy| convoy.metadata = Some(owned));
    convoy(&town, "hq-cv-2", &["hq-a", "hq-b", "hq-c"]);
    change(&town, "hq-cv-2", |convoy| convoy.status = Status::parse("staged_ready").unwrap());
    for bead in ["hq-a", "hq-b", "hq-c"] {
        close(&town, bead);
    }
    assert_eq!((tally(&town, "hq-cv-1"), standing(&town, "hq-cv-1")), ((3, 0, 0, 0), open()));
    assert_eq!(standing(&town, "hq-cv-2").0, "staged_ready");
}

#[test]
fn a_bead_that_opens_again_opens_its_convoy_which_lands_again() {
    on_each_engine(|town| {
        with_convoy(town);
        for bead in ["hq-a", "hq-b", "hq-c"] {
            close(town, bead);
        }

        let story = story_of(town, || reopen(town, "hq-b"));

        assert_eq!(story, ["reopened hq-b", "reopened hq-cv-1"]);
        assert_eq!((tally(town, "hq-cv-1"), standing(town, "hq-cv-1")), ((3, 1, 0, 1), open()));
        close(town, "hq-b");
        let landed = closed(LANDED);
        assert_eq!((tally(town, "hq-cv-1"), standing(town, "hq-cv-1")), ((3, 0, 0, 2), landed));

        // A convoy that was closed for another reason stays closed.
        change(town, "hq-cv-1", |convoy| "given up".clone_into(&mut convoy.close_reason));
        reopen(town, "hq-b");
        assert_eq!(standing(town, "hq-cv-1").1, "given up");
    });
}

#[test]
fn a_bead_may_be_in_several_convoys() {
    let town = town_in_memory();
    with_convoy(&town);
    convoy(&town, "hq-cv-2", &["hq-a"]);
    close(&town, "hq-a");
    let standings = (standing(&town, "hq-cv-1"), standing(&town, "hq-cv-2"));
    assert_eq!(standings, (open(), closed(LANDED)));
    assert_eq!((tally(&town, "hq-cv-1"), tally(&town, "hq-cv-2")), ((3, 2, 0, 0), (1, 0, 0, 1)));
}

#[test]
fn a_convoy_that_its_owner_landed_early_opens_again_only_if_less_is_done() {
    let town = town_in_memory();
    with_convoy(&town);
    let owned = Json::parse(r#"{"owned":true}"#).unwrap();
    change(&town, "hq-cv-1", |convoy| convoy.metadata = Some(owned));
    close(&town, "hq-a");
    convoys::land(&town, "hq-cv-1", true, false).unwrap();
    close(&town, "hq-b");
    assert_eq!(standing(&town, "hq-cv-1"), closed(LANDED));
    reopen(&town, "hq-a");
    assert_eq!(standing(&town, "hq-cv-1"), open());
}

#[test]
fn a_convoy_that_the_last_open_bead_leaves_lands() {
    let town = town_in_memory();
    with_convoy(&town);
    close(&town, "hq-a");
    close(&town, "hq-b");
    let tracks = DependencyType::Tracks;

    dependencies::remove(&town, "hq-cv-1", "hq-c", Some(&tracks)).unwrap();

    assert_eq!(standing(&town, "hq-cv-1"), closed(LANDED));
    // A bead that joins opens it again.
    town.write(|writer| Ok(writer.track(&id("hq-cv-1"), &[id("hq-c")])?)).unwrap();
    assert_eq!(standing(&town, "hq-cv-1"), open());
    deletion::delete(&town, &["hq-c".to_owned()], false).unwrap();
    assert_eq!(standing(&town, "hq-cv-1"), closed(LANDED));
}

#[test]
fn changes_that_undo_each_other_in_one_transaction_land_nothing_twice() {
    let town = town_in_memory();
    with_convoy(&town);
    for bead in ["hq-a", "hq-b", "hq-c"] {
        close(&town, bead);
    }
    let story = story_of(&town, || {
        town.write(|writer| {
            let over = writer.bead(&id("hq-a"))?.unwrap();
            let mut opened = over.clone();
            opened.enter(Status::Open, writer.now());
            writer.save_bead(&over, &opened, BeadChangeKind::Reopened)?;
            writer.save_bead(&opened, &over, BeadChangeKind::Closed)?;
            Ok(())
        })
        .unwrap();
    });
    assert_eq!(story, ["reopened hq-a", "closed hq-a"]);
    assert_eq!(tally(&town, "hq-cv-1"), (3, 0, 0, 1));
}

#[test]
fn an_epic_is_over_with_the_last_of_its_parts() {
    on_each_engine(|town| {
        make(town, "hq-top", "epic", None);
        make(town, "hq-epic", "epic", Some("hq-top"));
        tasks(town, &["hq-a", "hq-b"], Some("hq-epic"));
        make(town, "hq-after", "task", None);
        let waits = DependencyType::WaitsFor;
        dependencies::add(town, "hq-after", "hq-epic", &waits, false).unwrap();
        assert_eq!(tally(town, "hq-epic"), (2, 2, 0, 0));
        close(town, "hq-a");
        close_as(town, "hq-b", Some(Outcome::Failed));
        assert_eq!((tally(town, "hq-epic"), standing(town, "hq-epic")), ((2, 0, 1, 0), open()));
        reopen(town, "hq-b");

        let mut unblocked = Vec::new();
        let story = story_of(town, || unblocked = close(town, "hq-b").unblocked);

        assert_eq!(story, ["closed hq-b", "closed hq-epic", "unblocked hq-after", "closed hq-top"]);
        assert_eq!(unblocked, [id("hq-after")]);
        let over = closed(PARTS_DONE);
        assert_eq!((standing(town, "hq-epic"), standing(town, "hq-top")), (over.clone(), over));

        let story = story_of(town, || reopen(town, "hq-a"));

        let reopened = ["reopened hq-a", "reopened hq-epic", "reopened hq-top"];
        assert_eq!(story, reopened);
        deletion::delete(town, &["hq-a".to_owned()], false).unwrap();
        assert_eq!(
            (tally(town, "hq-epic"), standing(town, "hq-epic")),
            ((1, 0, 0, 0), closed(PARTS_DONE))
        );
    });
}

#[test]
fn epics_stay_open_if_a_file_or_the_store_says_so() {
    let part_closed = |town: &Town| {
        make(town, "hq-epic", "epic", None);
        tasks(town, &["hq-a"], Some("hq-epic"));
        close(town, "hq-a");
        standing(town, "hq-epic")
    };
    assert_eq!(part_closed(&town_in_memory()), closed(PARTS_DONE));
    for (in_file, in_store, expected) in [
        ("false", None, open()),
        ("true", Some("false"), open()),
        ("false", Some("true"), closed(PARTS_DONE)),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let town = town_in(directory.path());
        let settings = town.root().join("settings");
        std::fs::create_dir(&settings).unwrap();
        let text = format!("{{\"epics\":{{\"auto_close\":{in_file}}}}}");
        std::fs::write(settings.join("config.json"), text).unwrap();
        if let Some(value) = in_store {
            settings::set(&town, "epics.auto_close", value, |_, _| Ok(())).unwrap();
        }
        assert_eq!(part_closed(&town), expected, "{in_file} in a file, {in_store:?} in the store");
    }
}

#[test]
fn a_molecule_is_over_with_its_last_step() {
    on_each_engine(|town| {
        make(town, "hq-epic", "epic", None);
        make(town, "hq-molecule", "molecule", Some("hq-epic"));
        tasks(town, &["hq-a", "hq-b"], Some("hq-molecule"));
        assert_eq!(close(town, "hq-a").also_closed, []);

        let mut also_closed = Vec::new();
        let story = story_of(town, || also_closed = close(town, "hq-b").also_closed);

        assert_eq!(story, ["closed hq-b", "closed hq-molecule", "closed hq-epic"]);
        assert_eq!(also_closed, [id("hq-molecule")]);
        assert_eq!(standing(town, "hq-molecule"), closed(STEPS_DONE));
        assert_eq!(standing(town, "hq-epic"), closed(PARTS_DONE));
        reopen(town, "hq-a");
        assert_eq!(standing(town, "hq-molecule"), closed(STEPS_DONE), "a molecule stays closed");
    });
}

#[test]
fn a_molecule_ends_with_a_change_of_status_and_fails_with_a_step() {
    let town = town_in_memory();
    make(&town, "hq-molecule", "molecule", None);
    tasks(&town, &["hq-a", "hq-b"], Some("hq-molecule"));
    close_as(&town, "hq-a", Some(Outcome::Failed));
    let changes = BeadChanges { status: Some(Status::Closed), ..BeadChanges::default() };
    beads::update(&town, &["hq-b".to_owned()], &changes).unwrap().remove(0).unwrap();
    assert_eq!(get(&town, "hq-molecule").outcome, Some(Outcome::Failed));
}

#[test]
fn containers_nested_three_thousand_levels_close_and_open_at_a_linear_cost() {
    for (kind, statements_max) in [("epic", 14), ("molecule", 14)] {
        let costs = [LEVELS / 10, LEVELS].map(|levels| {
            let town = town_in_memory();
            let name = |level: u64| format!("hq-level{level}");
            make(&town, &name(0), kind, None);
            for level in 1..levels {
                make(&town, &name(level), kind, Some(&name(level - 1)));
            }
            make(&town, "hq-a", "task", Some(&name(levels - 1)));
            let before = statements_run_by_this_thread();
            close(&town, "hq-a");
            let statements = statements_run_by_this_thread() - before;
            assert_eq!(get(&town, &name(0)).status, Status::Closed);
            assert!(statements < statements_max * levels, "{kind}: {statements} for {levels}");
            reopen(&town, "hq-a");
            let expected = if kind == "epic" { Status::Open } else { Status::Closed };
            assert_eq!(get(&town, &name(0)).status, expected);
            statements
        });
        assert!(costs[1] <= costs[0] * 10, "{kind}: {costs:?}");
    }
}

#[test]
fn a_molecule_is_squashed_into_its_digest_whole_or_not_at_all() {
    let town = town_in_memory();
    make(&town, "hq-mol", "molecule", None);
    tasks(&town, &["hq-brew", "hq-pour"], Some("hq-mol"));
    change(&town, "hq-pour", |bead| bead.status = Status::InProgress);
    let titles = || {
        let all =
            |reader: &Reader<'_>| Ok(reader.bead_rows(&reader.find(&BeadFilter::everything())?)?);
        let rows = town.read(all).unwrap();
        rows.into_iter().map(|row| row.bead.title.to_string()).collect::<Vec<_>>()
    };
    let before = titles();
    let refusal = molecules::squash(&town, "hq-mol", None).unwrap_err().to_string();
    assert!(refusal.starts_with("hq-pour is in progress"), "{refusal}");
    assert_eq!(titles(), before);

    change(&town, "hq-pour", |bead| bead.status = Status::Open);
    let squashed = molecules::squash(&town, "hq-mol", None).unwrap();
    assert_eq!(squashed.deleted.beads.len(), 3);
    assert_eq!(titles(), ["Digest: hq-mol"]);
}

#[test]
fn molecules_are_burned_together_or_not_at_all() {
    let town = town_in_memory();
    make(&town, "hq-mol", "molecule", None);
    tasks(&town, &["hq-brew"], Some("hq-mol"));
    make(&town, "hq-other", "molecule", None);
    tasks(&town, &["hq-task"], None);
    let burn = |names: &[&str]| {
        molecules::burn(&town, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    };
    let count = || town.read(|reader| Ok(reader.find(&BeadFilter::everything())?.len())).unwrap();

    let refusal = burn(&["hq-mol", "hq-none"]).unwrap_err().to_string();
    assert!(refusal.contains("hq-none"), "{refusal}");
    let refusal = burn(&["hq-mol", "hq-task"]).unwrap_err().to_string();
    assert!(refusal.starts_with("hq-task is a task, not a molecule"), "{refusal}");
    let refusal = molecules::squash(&town, "hq-task", None).unwrap_err().to_string();
    assert!(refusal.starts_with("hq-task is a task, not a molecule"), "{refusal}");
    assert_eq!(count(), 4, "nothing was deleted");

    let burned = burn(&["hq-mol", "hq-brew", "hq-other", "hq-mol"]).unwrap();
    assert_eq!(burned.beads.len(), 3);
    assert_eq!(count(), 1);
}
