//! Stores for the tests.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gt_core::Timestamp;
use gt_store::conformance::Subject;
use gt_store::{Authorship, Options, Store};
use tempfile::TempDir;

/// When the tests happen.
pub(crate) const NOW: Timestamp = Timestamp::from_nanos(1_780_000_000_000_000_000);

pub(crate) fn author() -> Authorship {
    Authorship { actor: "tester".to_owned(), at: NOW }
}

/// Opens the store at `path`, making it if it is not there.
pub(crate) fn store_at(path: &Path) -> Store {
    Store::create(path, NOW, Options::default()).expect("the store can be opened")
}

/// A directory for one test, and where its store goes.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = directory.path().join("gt.db");
    (directory, path)
}

/// SQLite in memory.
pub(crate) struct InMemory;

impl Subject for InMemory {
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

impl Subject for OnFiles {
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
