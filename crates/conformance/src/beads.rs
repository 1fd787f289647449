//! Beads: written, read, changed, deleted.

use gt_core::{BeadChangeKind, DependencyType, EventKind, Outcome, Status, Timestamp, Title, Uid};

use super::EngineUnderTest;
use super::kit::{
    ACTOR, CheckedStore, at, bead, closed, comment, edge, id, json, kind, priority, texts,
};
use gt_store::StoreError;

fn full_bead() -> gt_core::Bead {
    gt_core::Bead {
        title: Title::trusted("Título 🔧 with \"quotes\"".to_owned()),
        description: "Several\nlines\r\n\tof text".to_owned(),
        design: "שלום עולם".to_owned(),
        acceptance_criteria: "- [ ] it works".to_owned(),
        notes: "x".repeat(100_000),
        status: Status::Closed,
        priority: priority(0),
        issue_type: kind("feature"),
        assignee: "mayor/".to_owned(),
        owner: "ann@example.invalid".to_owned(),
        estimated_minutes: Some(u32::MAX),
        created_at: Timestamp::from_nanos(1_780_230_896_789_012_345),
        created_by: "importer".to_owned(),
        updated_at: Timestamp::from_nanos(i64::MAX),
        started_at: Some(Timestamp::from_nanos(i64::MIN)),
        closed_at: Some(Timestamp::from_nanos(-1)),
        close_reason: "done; see 50% of 'it'".to_owned(),
        outcome: Some(Outcome::Cancelled),
        due_at: Some(at(5)),
        defer_until: Some(at(6)),
        external_ref: Some("JIRA-1".to_owned()),
        metadata: Some(json(r#"{"b":1.50,"a":[null,{"x":"\u00e4"}]}"#)),
        ephemeral: true,
        no_history: true,
        pinned: true,
        is_template: true,
        carried: vec![
            ("zeta".to_owned(), json("1e400")),
            ("alpha".to_owned(), json(r#"{"k":" v "}"#)),
        ],
        ..bead("gt-full")
    }
}

pub(super) fn a_bead_reads_back_exactly_as_it_was_written(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let (full, plain) = (town.add(full_bead()), town.add(bead("gt-plain")));

    assert_eq!(town.get("gt-full"), full);
    assert_eq!(town.get("gt-plain"), plain);
}

pub(super) fn a_bead_exists_only_under_its_exact_id(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-abc"]);

    for (text, there) in [("gt-abc", true), ("gt-ab", false), ("gt-ABC", false)] {
        assert_eq!(town.read(|reader| reader.bead_exists(&id(text))), there);
        let found = town.read(|reader| reader.bead(&id(text)));
        assert_eq!(found.is_some(), there, "{text}");
    }
}

pub(super) fn a_bead_is_found_by_its_alias(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let uid = town.add(bead("gt-a")).uid;

    let found = town.read(|reader| reader.bead_by_uid(&uid));
    assert_eq!(found, Some(id("gt-a")));
    let missing = town.read(|reader| reader.bead_by_uid(&Uid::fresh()));
    assert_eq!(missing, None);
}

pub(super) fn a_taken_id_is_refused_and_the_bead_there_stays(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let first = town.add(bead("gt-a"));
    let second = gt_core::Bead {
        title: Title::trusted("Another".to_owned()),
        uid: Uid::fresh(),
        ..bead("gt-a")
    };

    let refused = town.refuse(|writer| writer.insert_bead(&second, EventKind::Created));

    assert!(matches!(refused, StoreError::AlreadyExists(taken) if taken == id("gt-a")));
    assert_eq!(town.get("gt-a"), first);
}

pub(super) fn a_state_that_contradicts_itself_is_refused(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let contradictions = [
        gt_core::Bead { closed_at: None, ..closed("gt-b", None) },
        gt_core::Bead { closed_at: Some(at(1)), ..bead("gt-b") },
        gt_core::Bead { outcome: Some(Outcome::Failed), ..bead("gt-b") },
        gt_core::Bead { rig: Some(super::kit::slug("nowhere")), ..bead("gt-b") },
    ];
    for contradiction in contradictions {
        town.refuse(|writer| writer.insert_bead(&contradiction, EventKind::Created));
        town.refuse(|writer| {
            let old = bead("gt-a");
            let new = gt_core::Bead { id: old.id.clone(), ..contradiction.clone() };
            writer.save_bead(&old, &new, BeadChangeKind::Updated)
        });
    }
}

pub(super) fn a_new_bead_is_announced_with_what_it_is(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.write(|writer| {
        writer.insert_bead(&bead("gt-a"), EventKind::Created)?;
        writer.insert_bead(&closed("gt-b", None), EventKind::Imported)
    });

    let events = town.events_since(0);

    let told: Vec<String> = events.iter().map(super::kit::told).collect();
    assert_eq!(told, ["created gt-a", "imported gt-b"]);
    assert_eq!(
        events[0].payload.as_str(),
        r#"{"title":"Title of gt-a","issue_type":"task","status":"open","priority":2,"assignee":""}"#
    );
}

pub(super) fn a_change_is_announced_with_every_field_that_differs(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let before = town.last_event();

    let changed = town.change("gt-a", BeadChangeKind::Claimed, |bead| {
        bead.status = Status::InProgress;
        bead.assignee.push_str("toast");
        bead.estimated_minutes = Some(30);
        bead.metadata = Some(json(r#"{"k":1}"#));
    });

    assert!(changed);
    let [event] = &town.events_since(before)[..] else {
        panic!("one change is one event");
    };
    assert_eq!(event.kind, EventKind::Claimed);
    assert_eq!(event.bead, Some(id("gt-a")));
    assert_eq!(
        event.payload.as_str(),
        r#"{"title":"Title of gt-a","changes":{"status":{"old":"open","new":"in_progress"},"assignee":{"old":"","new":"toast"},"estimated_minutes":{"old":null,"new":30},"metadata":{"old":null,"new":{"k":1}}}}"#
    );
}

pub(super) fn every_field_of_a_bead_can_change_and_is_listed(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.write(|writer| writer.insert_rig(&super::kit::rig("gear", "gear")));
    let old = town.add(bead("gt-full"));
    let new = gt_core::Bead { uid: old.uid, rig: Some(super::kit::slug("gear")), ..full_bead() };
    let before = town.last_event();

    town.write(|writer| writer.save_bead(&old, &new, BeadChangeKind::Imported));

    assert_eq!(town.get("gt-full"), new);
    let payload = town.events_since(before)[0].payload.fields();
    let changes = payload.and_then(|fields| fields[1].1.fields());
    let names: Vec<String> =
        changes.expect("changes are an object").into_iter().map(|(name, _)| name).collect();
    // Everything but the id, the alias, the number of blockers and the time of the change itself.
    assert_eq!(names.len(), 27, "{names:?}");
}

pub(super) fn saving_what_has_not_changed_writes_nothing(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let old = town.add(bead("gt-a"));
    let later = gt_core::Bead { updated_at: at(999_999), ..old.clone() };

    for new in [&old, &later] {
        let story = town.story_of(|town| {
            let wrote = town.write(|writer| writer.save_bead(&old, new, BeadChangeKind::Updated));
            assert!(!wrote);
        });
        assert!(story.is_empty(), "{story:?}");
        assert_eq!(town.get("gt-a"), old);
    }
}

pub(super) fn saving_leaves_alone_what_is_derived(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let stale = town.get("gt-a");
    town.link("gt-a", DependencyType::Blocks, "gt-b");

    let new = gt_core::Bead { notes: "new".to_owned(), uid: Uid::fresh(), ..stale.clone() };
    town.write(|writer| writer.save_bead(&stale, &new, BeadChangeKind::Updated));

    let saved = town.get("gt-a");
    assert_eq!((saved.open_blockers, saved.uid, saved.notes.as_str()), (1, stale.uid, "new"));
}

pub(super) fn touching_moves_the_time_of_change_forward_only(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let touched_at = |seconds| {
        town.store
            .write(&super::kit::by(seconds), |writer| {
                writer.touch_bead(&id("gt-a"))?;
                writer.touch_bead(&id("gt-absent"))
            })
            .expect("touching succeeds");
        town.get("gt-a").updated_at
    };
    let before = town.last_event();

    assert_eq!(touched_at(5000), at(5000));
    assert_eq!(touched_at(4000), at(5000));
    assert_eq!(town.last_event(), before, "a touch is not worth telling about");
}

pub(super) fn deleting_a_bead_deletes_its_labels_comments_and_edges(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    town.label("gt-b", "red");
    let b = town.get("gt-b");
    town.write(|writer| writer.add_comment(&b, &comment("gt-b", "1", "hello", 5), true));
    town.link("gt-a", DependencyType::Blocks, "gt-b");
    town.link("gt-b", DependencyType::Blocks, "gt-c");

    let story = town.story_of(|town| town.delete("gt-b"));

    assert_eq!(story, ["deleted gt-b", "unblocked gt-a"]);
    assert!(town.read(|reader| reader.bead(&b.id)).is_none());
    assert_eq!(town.read(|reader| reader.edges_from(&id("gt-a"))), []);
    assert_eq!(town.read(|reader| reader.edges_to(&id("gt-c"))), []);
    assert_eq!(town.read(|reader| reader.comments(&b.id)), []);
    assert_eq!(town.read(|reader| reader.all_labels()), []);
}

pub(super) fn a_deleted_id_can_be_used_again_without_its_past(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    town.label("gt-a", "red");
    town.link("gt-a", DependencyType::Blocks, "gt-b");
    town.delete("gt-a");

    town.add_open(&["gt-a"]);

    let again = town.get("gt-a");
    assert_eq!(again, bead("gt-a"));
    let labels = town.read(|reader| reader.labels(&again));
    assert_eq!(labels, texts([]));
    town.put(&edge("gt-b", DependencyType::Blocks, "gt-a"));
    assert_eq!(town.blockers_of("gt-b"), 1);
}

pub(super) fn ids_are_found_by_a_part_of_them_taken_literally(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-abc", "gt-xab", "gt-a_b", "gt-a.1", "hq-ab%"]);
    let containing = |text: &str| {
        let ids = town.read(|reader| reader.ids_containing(text));
        ids.iter().map(ToString::to_string).collect::<Vec<_>>()
    };

    assert_eq!(containing("ab"), ["gt-abc", "gt-xab", "hq-ab%"]);
    assert_eq!(containing("a_b"), ["gt-a_b"]);
    assert_eq!(containing("%"), ["hq-ab%"]);
    assert_eq!(containing("\\"), texts([]));
    assert_eq!(containing("").len(), 5);
}

pub(super) fn ids_containing_a_part_are_at_most_two_hundred(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.write(|writer| {
        for number in 0..250 {
            writer.insert_bead(&bead(&format!("gt-x{number:03}")), EventKind::Created)?;
        }
        Ok(())
    });

    let found = town.read(|reader| reader.ids_containing("x"));

    assert_eq!(found.len(), 200);
    assert_eq!(found[199], id("gt-x199"));
    // The text before the first dash is the prefix, which every bead of a rig shares.
    assert_eq!(town.read(|reader| reader.ids_containing("gt")), []);
}

pub(super) fn every_event_names_the_actor_of_the_change(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.write(|writer| {
        assert_eq!(writer.actor(), ACTOR);
        let now = writer.now();
        writer.insert_bead(&bead("gt-a"), EventKind::Created)?;
        let old = writer.bead(&id("gt-a"))?.expect("the bead is there");
        let new = gt_core::Bead { updated_at: now, notes: "new".to_owned(), ..old.clone() };
        writer.save_bead(&old, &new, BeadChangeKind::Updated)
    });

    let events = town.events_since(0);
    assert!(events.iter().all(|event| event.actor == ACTOR));
    assert_eq!(events[1].at, town.get("gt-a").updated_at);
}

pub(super) fn a_bead_that_is_gone_cannot_be_changed(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let old = town.add(bead("gt-a"));
    town.delete("gt-a");
    let new = gt_core::Bead { notes: "changed".to_owned(), ..old.clone() };
    let refused = town.refuse(|writer| writer.save_bead(&old, &new, BeadChangeKind::Updated));
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
    assert!(refused.to_string().contains("gt-a is gone"), "{refused}");
}
