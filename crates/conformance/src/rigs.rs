//! Rigs, and which beads belong to them.

use gt_core::{Bead, ExecutorKind, Prefix, Rig, RigState};

use super::EngineUnderTest;
use super::kit::{CheckedStore, bead, closed, id, json, rig, slug};

fn add(town: &CheckedStore, rig: Rig) -> Rig {
    town.write(|writer| writer.insert_rig(&rig));
    rig
}

fn rig_of(town: &CheckedStore, text: &str) -> Option<String> {
    town.get(text).rig.map(|slug| slug.to_string())
}

pub(super) fn a_rig_reads_back_exactly_as_it_was_written(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let zoo = add(
        &town,
        Rig {
            title: "Zoo 🐘".to_owned(),
            executor: ExecutorKind::Pull,
            state: RigState::Docked,
            external_ref: "ext".to_owned(),
            settings: json(r#"{"a":[1.0]}"#),
            ..rig("zoo", "z")
        },
    );
    let gear = add(&town, rig("gear", "gear"));

    assert_eq!(town.read(|reader| reader.rig("zoo")), Some(zoo.clone()));
    assert_eq!(town.read(|reader| reader.rig("absent")), None);
    assert_eq!(town.read(|reader| reader.rigs()), [gear, zoo], "listed by name");
}

pub(super) fn an_id_belongs_to_the_rig_with_the_longest_prefix(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    add(&town, rig("mine", "my"));
    add(&town, rig("app", "my-app"));
    let owner = |text: &str| {
        let slug = town.read(|reader| reader.rig_of_id(&id(text)));
        slug.map(|slug| slug.to_string())
    };

    assert_eq!(owner("my-x1").as_deref(), Some("mine"));
    assert_eq!(owner("my-app-x1").as_deref(), Some("app"));
    assert_eq!(owner("my-app-x1.2").as_deref(), Some("app"));
    assert_eq!(owner("my-application").as_deref(), Some("mine"));
    assert_eq!(owner("mys-x1"), None);
    assert_eq!(owner("hq-x1"), None);
}

pub(super) fn a_new_rig_adopts_the_beads_of_its_prefix(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["my-1", "my-app-1", "my-app-1.2", "mya-1", "mx-1"]);
    town.add(closed("my-2", None));

    add(&town, rig("app", "my-app"));
    town.add_open(&["my-app-late"]);
    add(&town, rig("mine", "my"));

    assert_eq!(rig_of(&town, "my-app-late"), None, "not its own");
    assert_eq!(rig_of(&town, "my-1").as_deref(), Some("mine"));
    assert_eq!(rig_of(&town, "my-2").as_deref(), Some("mine"));
    assert_eq!(rig_of(&town, "my-app-1").as_deref(), Some("app"));
    assert_eq!(rig_of(&town, "my-app-1.2").as_deref(), Some("app"));
    assert_eq!(rig_of(&town, "mya-1"), None);
    assert_eq!(rig_of(&town, "mx-1"), None);
}

pub(super) fn a_bead_that_has_a_rig_is_not_adopted(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    add(&town, rig("mine", "my"));
    town.add(Bead { rig: Some(slug("mine")), ..bead("my-app-1") });

    add(&town, rig("app", "my-app"));

    assert_eq!(rig_of(&town, "my-app-1").as_deref(), Some("mine"));
}

pub(super) fn a_rig_with_a_taken_name_or_prefix_is_refused(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let first = add(&town, rig("gear", "gt"));
    for second in
        [rig("gear", "other"), rig("other", "gt"), Rig { uid: first.uid, ..rig("other", "other") }]
    {
        town.refuse(|writer| writer.insert_rig(&second));
    }
    assert_eq!(town.read(|reader| reader.rigs()), [first]);
}

pub(super) fn the_state_of_a_rig_changes_with_an_event(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let mut gear = add(&town, rig("gear", "gt"));
    for state in [RigState::Parked, RigState::Docked, RigState::Active] {
        let before = town.last_event();
        town.write(|writer| writer.set_rig_state(&gear, state));
        let event = &town.events_since(before)[0];

        assert_eq!(event.kind.as_str(), "rig_changed");
        assert_eq!(event.rig, Some(slug("gear")));
        let payload = format!(r#"{{"old":"{}","new":"{}"}}"#, gear.state.as_str(), state.as_str());
        assert_eq!(event.payload.as_str(), payload);
        gear = town.read(|reader| reader.rig("gear")).expect("the rig is there");
        assert_eq!((gear.state, gear.updated_at), (state, event.at));
    }
}

pub(super) fn each_change_of_a_rig_is_an_event(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let gear = add(&town, rig("gear", "gt"));
    let new = Rig {
        title: "Gears".to_owned(),
        default_branch: "trunk".to_owned(),
        executor: ExecutorKind::Ssh,
        prefix: Prefix::parse("gr").expect("a prefix"),
        ..gear.clone()
    };
    let before = town.last_event();
    town.write(|writer| writer.change_rig(&gear, &new));
    let events = town.events_since(before);

    let told: Vec<&str> = events.iter().map(|event| event.payload.as_str()).collect();
    let branch = &gear.default_branch;
    assert_eq!(
        told,
        [
            format!(r#"{{"field":"title","old":"{}","new":"Gears"}}"#, gear.title),
            format!(r#"{{"field":"default_branch","old":"{branch}","new":"trunk"}}"#),
            format!(r#"{{"field":"executor","old":"{}","new":"ssh"}}"#, gear.executor.as_str()),
            r#"{"field":"prefix","old":"gt","new":"gr"}"#.to_owned(),
        ]
    );
    assert!(events.iter().all(|event| event.kind.as_str() == "rig_changed"));
    let changed = town.read(|reader| reader.rig("gear")).expect("the rig is there");
    assert_eq!(changed, Rig { updated_at: events[0].at, ..new });
    let before = town.last_event();
    town.write(|writer| writer.change_rig(&changed, &changed));
    assert_eq!(town.last_event(), before);
}

pub(super) fn removing_a_rig_keeps_its_beads(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let gear = add(&town, rig("gear", "gt"));
    town.add(Bead { rig: Some(slug("gear")), ..bead("gt-a") });

    let story = town.story_of(|town| {
        town.write(|writer| writer.delete_rig(&gear));
    });

    assert_eq!(story, ["rig_removed"]);
    assert_eq!(town.read(|reader| reader.rigs()), []);
    assert_eq!(town.get("gt-a"), bead("gt-a"));
    add(&town, rig("gears", "gt"));
    assert_eq!(rig_of(&town, "gt-a").as_deref(), Some("gears"));
}

pub(super) fn a_rig_is_added_and_removed_with_an_event(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let gear = add(&town, rig("gear", "gt"));
    town.write(|writer| writer.delete_rig(&gear));

    let events = town.events_since(0);

    assert_eq!(events[0].kind.as_str(), "rig_added");
    assert_eq!(
        events[0].payload.as_str(),
        r#"{"prefix":"gt","repo":"https://example.invalid/gear"}"#
    );
    assert_eq!(events[1].payload.as_str(), r#"{"prefix":"gt"}"#);
    assert_eq!(events[1].rig, Some(slug("gear")), "the log remembers it");
}

pub(super) fn the_beads_of_a_rig_are_counted_by_status(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    add(&town, rig("gear", "gt"));
    add(&town, rig("zoo", "zoo"));
    let in_gear = |bead: Bead| {
        town.add(Bead { rig: Some(slug("gear")), ..bead });
    };
    in_gear(bead("gt-a"));
    in_gear(bead("gt-b"));
    in_gear(closed("gt-c", None));
    in_gear(Bead { ephemeral: true, ..bead("gt-d") });
    town.add_open(&["hq-a"]);

    let mut counts = town.read(|reader| reader.rig_counts(&slug("gear")));

    counts.sort();
    assert_eq!(counts, [("closed".to_owned(), 1), ("open".to_owned(), 2)]);
    assert_eq!(town.read(|reader| reader.rig_counts(&slug("zoo"))), []);
}

pub(super) fn events_of_a_bead_name_its_rig(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    add(&town, rig("gear", "gt"));
    let a = town.add(Bead { rig: Some(slug("gear")), ..bead("gt-a") });
    town.add_open(&["gt-b"]);
    let before = town.last_event();

    town.link("gt-a", gt_core::DependencyType::Blocks, "gt-b");
    town.label("gt-a", "red");
    town.write(|writer| writer.add_comment(&a, &super::kit::comment("gt-a", "1", "x", 1), true));
    town.close("gt-b");
    town.delete("gt-a");

    for event in town.events_since(before) {
        let expected = (event.bead == Some(id("gt-a"))).then(|| slug("gear"));
        assert_eq!(event.rig, expected, "{event:?}");
    }
}
