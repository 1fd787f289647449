//! Towns that settle their containers, and do nothing else after a change.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use gt_beads::containers::update_containers_in;
use gt_core::settings::Layers;
use gt_core::{Clock, Timestamp};
use gt_store::{Options, PostgresAddress, Store, StoreAddress, Writer};
use gt_testkit::Cluster;
use gt_town::town::{CommitFollower, CommitHook, install};
use gt_town::{Actor, Environment, Result, Town};

/// A clock that moves on by a second whenever it is asked.
#[derive(Debug, Default)]
struct Seconds(AtomicI64);

impl Clock for Seconds {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.fetch_add(1_000_000_000, Ordering::Relaxed))
    }
}

/// Settles containers before each commit, as the consequences of every town do.
#[derive(Debug)]
struct SettleContainers;

struct Follower(Layers);

impl CommitHook for SettleContainers {
    fn begin(&self, town: &Town) -> Option<Box<dyn CommitFollower>> {
        Some(Box::new(Follower(town.file_settings())))
    }
}

impl CommitFollower for Follower {
    fn before_commit(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        update_containers_in(writer, &self.0).map(drop)
    }
}

fn actor() -> Actor {
    Actor { name: "tester".to_owned(), owner: String::new() }
}

fn town_over(store: Store) -> Town {
    Town::over(store, actor(), Arc::new(Seconds::default()), Arc::new(SettleContainers))
}

/// An empty town in memory.
pub(crate) fn town_in_memory() -> Town {
    town_over(Store::in_memory().unwrap())
}

/// An empty town in this directory.
pub(crate) fn town_in(directory: &Path) -> Town {
    let (root, environment) = (directory.join("town"), Environment::default());
    let clock = Arc::new(Seconds::default());
    install(&root, &environment, &actor(), &*clock).unwrap();
    let hook = Arc::new(SettleContainers);
    Town::open(&root, &root, &environment, actor(), clock, Options::default(), hook).unwrap()
}

/// Runs a case in memory, on a file and on PostgreSQL.
pub(crate) fn on_each_engine(case: impl Fn(&Town)) {
    case(&town_in_memory());
    let directory = tempfile::tempdir().unwrap();
    let file = StoreAddress::File(directory.path().join("gt.db"));
    let server = Cluster::shared().fresh_database();
    let server = StoreAddress::Server(Box::new(PostgresAddress::parse(&server, None).unwrap()));
    for address in [file, server] {
        let store = Store::create(&address, Timestamp::from_nanos(1), Options::default()).unwrap();
        case(&town_over(store));
    }
}
