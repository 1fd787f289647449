//! Looking after a store as a whole, on both engines.

mod backup;
mod check;
mod describe;
mod relocation;

use std::path::PathBuf;

use gt_core::{
    Bead, BeadId, Comment, Dependency, DependencyType, EventKind, Json, Outcome, Prefix, Rig,
    RigSlug, Status, Timestamp, Uid,
};
use gt_store::{IfFileExists, Options, SettingScope, Store, StoreError, Writer};
use gt_testkit::Cluster;
use tempfile::TempDir;

use crate::history::plain_bead;
use crate::subjects::{NOW, author, fresh_url, place, server_address, store_at};

/// A store, and a way behind its back.
struct Specimen {
    name: &'static str,
    store: Store,
    behind: Behind,
    directory: TempDir,
}

enum Behind {
    File(PathBuf),
    Database(String),
}

impl Specimen {
    fn on_file() -> Self {
        let (directory, path) = place();
        let store = store_at(&path);
        Self { name: "SQLite", store, behind: Behind::File(path), directory }
    }

    fn on_server() -> Self {
        let url = fresh_url();
        let store = Store::open(&server_address(&url), NOW, Options::default());
        let database = url.rsplit('/').next().expect("the URL names a database").to_owned();
        let (directory, _) = place();
        let store = store.expect("the store can be opened");
        Self { name: "PostgreSQL", store, behind: Behind::Database(database), directory }
    }

    /// Changes the database as no program of ours would.
    fn tamper(&self, sql: &str) {
        match &self.behind {
            Behind::File(path) => {
                let raw = rusqlite::Connection::open(path).expect("the file can be opened");
                let free = "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF;";
                raw.execute_batch(&format!("{free} {sql}")).expect("the file can be changed");
            }
            Behind::Database(name) => {
                let free = "SET search_path = gt; SET session_replication_role = replica;";
                Cluster::shared().sql(name, &format!("{free} {sql}"));
            }
        }
    }

    /// The first column of an answer.
    fn column(&self, sql: &str) -> Vec<String> {
        match &self.behind {
            Behind::File(path) => {
                let raw = rusqlite::Connection::open(path).expect("the file can be opened");
                let mut statement = raw.prepare(sql).expect("the statement is understood");
                let rows = statement.query_map([], |row| row.get(0)).expect("it runs");
                rows.collect::<Result<_, _>>().expect("it gives texts")
            }
            Behind::Database(name) => {
                Cluster::shared().sql(name, sql).lines().map(str::to_owned).collect()
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn back_up(&self, to: &str) -> Result<gt_store::Backup, StoreError> {
        self.store.back_up(&self.path(to), IfFileExists::Keep, NOW, &mut |_, _| {})
    }
}

/// An empty store on each engine.
fn specimens() -> [Specimen; 2] {
    [Specimen::on_file(), Specimen::on_server()]
}

/// The same store on each engine, with something of everything in it.
fn furnished() -> [Specimen; 2] {
    let rig = rig();
    let specimens = specimens();
    for specimen in &specimens {
        let furnished = specimen.store.write(&author(), |writer| furnish(writer, &rig));
        furnished.expect("the store can be furnished");
    }
    specimens
}

fn id(text: &str) -> BeadId {
    BeadId::parse(text).expect("the test names a valid id")
}

fn bead(name: &str) -> Bead {
    let id = id(name);
    Bead { uid: Uid::of_bead(&id, NOW), id, created_at: NOW, ..plain_bead(0) }
}

fn rig() -> Rig {
    let slug = RigSlug::parse("gear").expect("a valid name");
    let prefix = Prefix::parse("gr").expect("a valid prefix");
    Rig::new(slug, "gear", prefix, "gear", NOW)
}

fn edge(issue: &str, kind: DependencyType, target: &str) -> Dependency {
    Dependency {
        issue: id(issue),
        target: id(target),
        kind,
        created_at: NOW,
        created_by: "tester".to_owned(),
        metadata: "{\"gate\":\"any-children\"}".to_owned(),
        thread_id: "thread".to_owned(),
        carried: vec![("odd".to_owned(), Json::string("kept"))],
    }
}

fn furnish(writer: &mut Writer<'_>, rig: &Rig) -> Result<(), StoreError> {
    writer.insert_rig(rig)?;
    let first = Bead {
        rig: Some(rig.slug.clone()),
        description: "Über 'alles' \"quoted\"\nsecond line\t🦀".to_owned(),
        metadata: Some(Json::parse("{\"a\":[1,2]}").expect("valid JSON")),
        due_at: Some(Timestamp::from_nanos(i64::MAX)),
        estimated_minutes: Some(30),
        carried: vec![("unknown".to_owned(), Json::string("field"))],
        ..bead("gr-a")
    };
    let failed = Bead {
        status: Status::Closed,
        closed_at: Some(NOW),
        outcome: Some(Outcome::Failed),
        ..bead("gr-f")
    };
    for bead in [&first, &bead("gr-b"), &failed, &bead("hq-c")] {
        writer.insert_bead(bead, EventKind::Created)?;
    }
    let child = writer.next_child_id(&id("gr-a"))?;
    let child = Bead { uid: Uid::of_bead(&child, NOW), id: child, ..bead("gr-x") };
    writer.insert_bead(&child, EventKind::Created)?;
    for edge in [
        edge("gr-b", DependencyType::Blocks, "gr-a"),
        edge("gr-b", DependencyType::Blocks, "gr-f"),
        edge("hq-c", DependencyType::WaitsFor, "gr-a"),
        edge("hq-c", DependencyType::Tracks, "gr-nowhere"),
        edge(child.id.as_str(), DependencyType::ParentChild, "gr-a"),
    ] {
        writer.put_dependency(&edge, true)?;
    }
    for label in ["red", "green"] {
        writer.add_label(&first, label, true)?;
    }
    let comment = Comment {
        id: "c1".to_owned(),
        bead: first.id.clone(),
        author: "tester".to_owned(),
        text: "A remark".to_owned(),
        created_at: NOW,
        carried: Vec::new(),
    };
    writer.add_comment(&first, &comment, true)?;
    writer.put_setting(SettingScope::Beads, "key", Some("value"))?;
    Ok(())
}
