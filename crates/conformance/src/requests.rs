//! Requests that may be repeated.

use gt_core::BeadId;
use gt_core::bead::RequestKey;

use super::EngineUnderTest;
use super::kit::{CheckedStore, bead, id};

fn key(text: &str) -> RequestKey {
    RequestKey::parse(text).expect("the case names a valid key")
}

fn made_by(town: &CheckedStore, text: &str) -> Option<BeadId> {
    town.read(|reader| reader.bead_of_request(&key(text)))
}

fn remember(town: &CheckedStore, text: &str, bead: &str) {
    town.write(|writer| writer.remember_request(&key(text), &id(bead)));
}

pub(super) fn a_request_is_remembered_under_its_exact_name(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    assert_eq!(made_by(&town, "job"), None);

    remember(&town, "job", "gt-a");
    remember(&town, "Job", "gt-b");

    assert_eq!(made_by(&town, "job"), Some(id("gt-a")));
    assert_eq!(made_by(&town, "Job"), Some(id("gt-b")));
    assert_eq!(made_by(&town, "job "), None);
}

pub(super) fn remembering_a_request_is_no_event(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let before = town.events_since(0).len();
    remember(&town, "job", "gt-a");
    assert_eq!(town.events_since(0).len(), before);
}

pub(super) fn a_name_is_taken_once(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    remember(&town, "job", "gt-a");

    town.refuse(|writer| writer.remember_request(&key("job"), &id("gt-b")));

    assert_eq!(made_by(&town, "job"), Some(id("gt-a")));
}

pub(super) fn deleting_a_bead_forgets_its_requests(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    for (name, bead) in [("one", "gt-a"), ("two", "gt-a"), ("other", "gt-b")] {
        remember(&town, name, bead);
    }

    town.delete("gt-a");

    assert_eq!(made_by(&town, "one"), None);
    assert_eq!(made_by(&town, "two"), None);
    assert_eq!(made_by(&town, "other"), Some(id("gt-b")));
    town.add(bead("gt-a"));
    assert_eq!(made_by(&town, "one"), None, "the next bead of that id is another");
}

pub(super) fn of_two_that_ask_at_once_one_makes_the_bead(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let ask = |name: &'static str| {
        let store = subject.another(&town.store);
        move || {
            store.write(&super::kit::by(1), |writer| {
                if let Some(found) = writer.bead_of_request(&key("job"))? {
                    return Ok(found);
                }
                let bead = bead(name);
                writer.insert_bead(&bead, gt_core::EventKind::Created)?;
                writer.remember_request(&key("job"), &bead.id)?;
                Ok::<_, gt_store::StoreError>(bead.id)
            })
        }
    };
    let names = ["gt-a", "gt-b", "gt-c", "gt-d"];
    let made: Vec<BeadId> = std::thread::scope(|scope| {
        let asking = names.map(|name| scope.spawn(ask(name)));
        asking.map(|one| one.join().expect("no panic").expect("it succeeds")).to_vec()
    });
    assert!(made.iter().all(|one| *one == made[0]), "{made:?}");
    assert_eq!(town.events_since(0).len(), 1);
}
