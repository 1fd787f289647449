//! A store moves to another database whole or not at all, and only one of the two takes writes.

use std::path::Path;

use gt_core::EventKind;
use gt_store::{
    BeadFilter, CopiedRows, Options, SettingScope, Store, StoreAddress, StoreError, StoreFence,
    TABLES,
};
use gt_testkit::Cluster;

use super::{Behind, Specimen, bead, furnished, id};
use crate::subjects::{NOW, author, fresh_url, server_address};

const TOWN: &str = "0199-town";

fn file(path: &Path) -> StoreAddress {
    StoreAddress::File(path.to_owned())
}

/// An address of each engine where nothing is yet.
fn new_places(specimen: &Specimen) -> [StoreAddress; 2] {
    [file(&specimen.path("moved.db")), empty_database()]
}

/// A database without a schema. A fresh URL of the other tests holds a store already.
fn empty_database() -> StoreAddress {
    server_address(&Cluster::shared().fresh_database())
}

fn move_to(store: &Store, to: &StoreAddress) -> Result<CopiedRows, StoreError> {
    store.move_to(to, TOWN, NOW, |_| Ok(()), &mut |_, _| {})
}

fn open(address: &StoreAddress) -> Store {
    Store::open(address, NOW, Options::default()).expect("the store can be opened")
}

fn add(store: &Store, name: &str) -> Result<(), StoreError> {
    store.write(&author(), |writer| writer.insert_bead(&bead(name), EventKind::Created)).map(drop)
}

fn beads(store: &Store) -> u64 {
    store.read(|reader| reader.count(&BeadFilter::default())).expect("the read succeeds")
}

fn fence(store: &Store) -> Option<StoreFence> {
    store.read(|reader| reader.marks()).expect("the read succeeds").fence
}

fn assert_fenced(store: &Store, place: &str) {
    let refused = add(store, "gr-late");
    assert!(matches!(refused, Err(StoreError::Fenced(_))), "{place}: {refused:?}");
    // A write without an event is refused as well.
    let refused = store
        .write(&author(), |writer| writer.put_setting(SettingScope::Values, "late", Some("x")));
    assert!(matches!(refused, Err(StoreError::Fenced(_))), "{place}: {refused:?}");
}

#[test]
fn a_moved_store_is_the_same_and_goes_on_where_the_former_stopped() {
    let [specimen, _server] = furnished();
    for (number, to) in new_places(&specimen).iter().enumerate() {
        // Given a copy of a store, because each can move only once,
        let source = specimen.path(&format!("source{number}.db"));
        specimen.back_up(source.to_str().expect("a name")).expect("the backup succeeds");
        let store = open(&file(&source));

        // when it moves,
        let copied = move_to(&store, to).expect("the move succeeds");

        // then neither takes writes until the fence is lifted, and then only the new one does.
        assert_eq!(copied.tables, TABLES.len() as u64);
        let moved = open(to);
        assert_fenced(&store, "the former store");
        assert_fenced(&moved, "the new store");
        moved.lift_fence().expect("the fence can be lifted");
        moved.lift_fence().expect("to lift it twice is fine");
        assert_fenced(&store, "the former store");
        store.lift_fence().expect("a former store stays fenced");
        assert_eq!(fence(&store), Some(StoreFence::Moved(to.to_string())));

        // Everything is there, and numbers go on.
        assert_eq!(beads(&moved), beads(&store));
        let last = |store: &Store| store.read(|reader| reader.last_event_number());
        let before = last(&store).expect("the read succeeds");
        add(&moved, "gr-new").expect("the new store takes writes");
        assert_eq!(last(&moved).expect("the read succeeds"), before + 1);
        let child = moved.write(&author(), |writer| writer.next_child_id(&id("gr-a")));
        assert_eq!(child.expect("the write succeeds"), id("gr-a.2"));
        let differences = moved.read(|reader| reader.differences()).expect("the read succeeds");
        assert_eq!(differences, Vec::<String>::new());
    }
}

#[test]
fn an_interrupted_move_begins_again_with_the_rows_of_now() {
    let [specimen, _server] = furnished();
    for (number, to) in new_places(&specimen).iter().enumerate() {
        let source = specimen.path(&format!("source{number}.db"));
        let copy = specimen.path(&format!("copy{number}.db"));
        for path in [&source, &copy] {
            specimen.back_up(path.to_str().expect("a name")).expect("the backup succeeds");
        }
        let store = open(&file(&source));

        // Given a move that failed in the middle of its rows,
        let stopped = store.move_to(to, TOWN, NOW, |_| Err(StoreError::Full), &mut |_, _| {});
        assert!(matches!(stopped, Err(StoreError::Full)), "{stopped:?}");
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            store.move_to(to, TOWN, NOW, |_| Ok::<_, StoreError>(()), &mut |_, _| panic!("killed"))
        }));
        assert!(died.is_err());
        assert_eq!(fence(&store), None);
        // and one that died when the new store was filled and the former not yet fenced,
        move_to(&open(&file(&copy)), to).expect("the move succeeds");
        assert_eq!(fence(&open(to)), Some(StoreFence::Incoming));
        let before = beads(&store);
        add(&store, "gr-new").expect("the former store is in use");

        // when it is done again, then the new store has the rows of now.
        move_to(&store, to).expect("the move succeeds");
        assert_eq!(beads(&open(to)), beads(&store));
        assert_eq!(beads(&store), before + 1);
    }
}

#[test]
fn a_store_that_is_in_use_newer_or_out_of_reach_is_no_place_to_move_to() {
    let [specimen, other] = furnished();
    let store = &specimen.store;
    let refused = |to: &StoreAddress, part: &str| {
        let said = move_to(store, to).expect_err("the move is refused").to_string();
        assert!(said.contains(part), "{said}");
        assert_eq!(fence(store), None);
        add_and_remove_nothing(store);
    };

    // Another town,
    let Behind::Database(name) = &other.behind else { panic!("the second is on a server") };
    let used = server_address(&Cluster::shared().url(name));
    refused(&used, "is not empty");
    other
        .store
        .write(&author(), |writer| writer.put_setting(SettingScope::Store, "town", Some("0198-x")))
        .expect("the write succeeds");
    refused(&used, "holds another town (0198-x)");
    // a newer schema, even if it serves this program,
    let newer = fresh_url();
    let database = newer.rsplit('/').next().expect("the URL names a database");
    Cluster::shared().sql(database, "INSERT INTO gt.migrations VALUES (9999, 1, 0)");
    refused(&server_address(&newer), "schema 9999");
    // a server that is not there,
    refused(&server_address("postgres://me@127.0.0.1:1/town"), "cannot reach");
    // a file of another program, and another store.
    let letter = specimen.path("letter.txt");
    std::fs::write(&letter, "Dear diary").expect("the file can be written");
    refused(&file(&letter), "not a gt store");
    let backup = specimen.back_up("backup.db").expect("the backup succeeds").path;
    refused(&file(&backup), "not empty");
}

/// The store still takes writes.
fn add_and_remove_nothing(store: &Store) {
    store
        .write(&author(), |writer| writer.put_setting(SettingScope::Values, "k", Some("v")))
        .expect("the former store is in use");
}

#[test]
fn a_former_store_makes_way_when_its_town_comes_back() {
    let specimen = Specimen::on_file();
    let Behind::File(home) = &specimen.behind else { panic!("it is on a file") };
    add(&specimen.store, "gr-one").expect("the write succeeds");
    let away = empty_database();
    move_to(&specimen.store, &away).expect("the move succeeds");
    let away = open(&away);
    away.lift_fence().expect("the fence can be lifted");
    add(&away, "gr-two").expect("the write succeeds");

    move_to(&away, &file(home)).expect("it comes back to its own file");

    let back = open(&file(home));
    back.lift_fence().expect("the fence can be lifted");
    assert_eq!(beads(&back), 2);
    let kept = std::fs::read_dir(specimen.path("backups")).expect("it is kept").count();
    assert_eq!(kept, 1);
}
