//! The server has no room left.

use std::path::Path;
use std::process::Command;

use gt_core::{Bead, EventKind, Uid};
use gt_store::{Store, StoreError};
use gt_testkit::Cluster;

use super::{check, database, id, is_there, open, submit, write};
use crate::history::plain_bead;
use crate::subjects::{author, fresh_url, store_on};

#[test]
fn a_full_disk_is_said_and_nothing_is_changed_whichever_table_it_hits() {
    let url = fresh_url();
    let store = open(&url).unwrap();
    let cluster = Cluster::shared();
    let no_room = "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN RAISE ''no room'' USING ERRCODE = ''53100''; END'";
    cluster.sql(database(&url), no_room);
    for (number, table) in ["beads", "events", "counters"].into_iter().enumerate() {
        // Given no room in a table,
        let trigger = format!(
            "CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON gt.{table}
             FOR EACH ROW EXECUTE FUNCTION no_room()"
        );
        cluster.sql(database(&url), &trigger);

        // when something is written, alone or with others, then it is refused with the reason,
        let refused = write(&store, number).unwrap_err();
        assert!(matches!(refused, StoreError::Full), "{table}: {refused:?}");
        let refused = submit(&store, number).unwrap_err();
        assert!(refused.to_string().contains("disk is full"), "{table}: {refused}");
        assert!(!is_there(&store, number));
        check(&store);

        // and works when there is room.
        cluster.sql(database(&url), &format!("DROP TRIGGER no_room ON gt.{table}"));
        write(&store, number).unwrap();
    }
    check(&store);
}

#[expect(
    clippy::print_stderr,
    reason = "the reader of the test output should see which test was skipped"
)]
fn note(text: &str) {
    eprintln!("{text}");
}

/// A file system with little room, until it is dropped.
struct SmallDisk<'p>(&'p Path);

#[expect(clippy::disallowed_methods, reason = "the store must not know the executors")]
fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

impl<'p> SmallDisk<'p> {
    /// Nothing if we may not mount.
    fn mount(place: &'p Path) -> Option<Self> {
        let path = place.to_str()?;
        let options = ["-t", "tmpfs", "-o", "size=3m,mode=777", "gt-small-disk", path];
        run("mount", &options).then_some(Self(place))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        // The server may still hold its files.
        let _ = run("umount", &["-l", &self.0.display().to_string()]);
    }
}

/// Writes a bead that needs room and does not shrink.
fn write_large(store: &Store, number: usize) -> Result<(), StoreError> {
    let noise: String = (0..3_000).map(|_| Uid::fresh().to_string()).collect();
    let bead = Bead { id: id(number), uid: Uid::fresh(), description: noise, ..plain_bead(0) };
    store.write(&author(), |writer| writer.insert_bead(&bead, EventKind::Created))
}

#[test]
fn a_disk_that_really_is_full_loses_nothing() {
    // Given beads on a disk of three megabytes,
    let place = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(place.path()) else {
        note("skipped: a file system cannot be mounted here");
        return;
    };
    let cluster = Cluster::start("");
    let url = cluster.url("postgres");
    let store = store_on(&url);
    let path = place.path().display();
    run("chown", &["postgres", &path.to_string()]);
    cluster.sql("postgres", &format!("CREATE TABLESPACE small LOCATION '{path}'"));
    cluster.sql("postgres", "ALTER TABLE gt.beads SET TABLESPACE small");

    // when more is written than fits,
    let mut written = 0;
    let refused = loop {
        match write_large(&store, written) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };

    // then that is said, and all that was acknowledged is there;
    assert!(matches!(refused, StoreError::Full), "{refused:?}");
    assert!(written > 0);
    assert!((0..written).all(|number| is_there(&store, number)));
    assert!(!is_there(&store, written));
    check(&store);

    // with more room it goes on.
    cluster.sql("postgres", "ALTER TABLE gt.beads SET TABLESPACE pg_default");
    write_large(&store, written).unwrap();
    check(&store);
    cluster.sql("postgres", "DROP TABLESPACE small");
}
