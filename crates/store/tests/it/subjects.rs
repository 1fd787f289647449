//! Stores for the tests.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use gt_conformance::{Engine, EngineUnderTest};
use gt_core::Timestamp;
use gt_store::{Authorship, Options, PostgresAddress, Store, StoreAddress};
use gt_testkit::Cluster;
use tempfile::TempDir;

/// When the tests happen.
pub(crate) const NOW: Timestamp = Timestamp::from_nanos(1_780_000_000_000_000_000);

pub(crate) fn author() -> Authorship {
    Authorship { actor: "tester".to_owned(), at: NOW, worker: None }
}

/// Opens the store at `path`, making it if it is not there.
pub(crate) fn store_at(path: &Path) -> Store {
    open_or_make(&StoreAddress::File(path.to_owned()))
}

/// Opens the store in the database at `url`, making it if it is not there.
pub(crate) fn store_on(url: &str) -> Store {
    open_or_make(&server_address(url))
}

/// The address of the store in the database at `url`.
pub(crate) fn server_address(url: &str) -> StoreAddress {
    StoreAddress::Server(Box::new(PostgresAddress::parse(url, None).expect("the URL is valid")))
}

fn open_or_make(address: &StoreAddress) -> Store {
    Store::create(address, NOW, Options::default()).expect("the store can be opened")
}

/// A directory for one test, and where its store goes.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = directory.path().join("gt.db");
    (directory, path)
}

/// SQLite in memory.
#[derive(Default)]
pub(crate) struct InMemory;

impl EngineUnderTest for InMemory {
    fn engine(&self) -> Engine {
        Engine::Sqlite
    }

    fn fresh(&self) -> Store {
        Store::in_memory().expect("a store in memory can be made")
    }

    fn another(&self, store: &Store) -> Store {
        store.clone()
    }

    fn reads_beside_writes(&self) -> bool {
        false
    }
}

/// SQLite on files, which are gone with this value.
#[derive(Default)]
pub(crate) struct OnFiles {
    directories: Mutex<Vec<TempDir>>,
}

impl EngineUnderTest for OnFiles {
    fn engine(&self) -> Engine {
        Engine::Sqlite
    }

    fn fresh(&self) -> Store {
        let (directory, path) = place();
        let store = store_at(&path);
        self.directories.lock().expect("no other test shares this").push(directory);
        store
    }

    fn another(&self, store: &Store) -> Store {
        store_at(store.path().expect("the store is on a file"))
    }
}

/// PostgreSQL: a database of its own for every store.
#[derive(Default)]
pub(crate) struct OnServer;

/// A database with an empty store in it, which the others are copies of.
fn template() -> &'static str {
    static MADE: OnceLock<()> = OnceLock::new();
    MADE.get_or_init(|| {
        let cluster = Cluster::shared();
        cluster.sql("postgres", "CREATE DATABASE empty_store");
        drop(store_on(&cluster.url("empty_store")));
    });
    "empty_store"
}

/// The URL of a new database with an empty store.
pub(crate) fn fresh_url() -> String {
    let template = template();
    Cluster::shared().clone_database(template)
}

impl EngineUnderTest for OnServer {
    fn engine(&self) -> Engine {
        Engine::Postgres
    }

    fn fresh(&self) -> Store {
        let address = server_address(&fresh_url());
        Store::open(&address, NOW, Options::default()).expect("the store can be opened")
    }

    fn another(&self, store: &Store) -> Store {
        let address = store.address().expect("the store is on a server");
        Store::open(&address, NOW, Options::default()).expect("the store can be opened")
    }
}
