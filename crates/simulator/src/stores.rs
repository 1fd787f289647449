//! Empty stores for seeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use gt_core::Timestamp;
use gt_store::{LeaseClock, Options, PostgresAddress, Store, StoreAddress, StoreError};
use gt_testkit::Cluster;

/// An empty store whose clock a seed moves.
#[derive(Debug)]
pub struct SeedStore {
    pub(crate) store: Store,
    /// The clock of its server, in nanoseconds since 1970.
    pub(crate) clock: Arc<AtomicI64>,
}

impl SeedStore {
    fn new(open: impl FnOnce(LeaseClock) -> Result<Store, StoreError>) -> Result<Self, StoreError> {
        let clock = Arc::new(AtomicI64::new(0));
        let of_store = Arc::clone(&clock);
        let now = move || Timestamp::from_nanos(of_store.load(Ordering::Relaxed));
        Ok(Self { store: open(LeaseClock::Simulated(Arc::new(now)))?, clock })
    }
}

/// Where the towns of the seeds are kept.
#[derive(Debug)]
pub enum Stores {
    /// In memory, on SQLite.
    Memory,
    /// In a database on this server, each in a schema of its own.
    Postgres(Box<TestDatabase>),
}

/// A database on a server that is gone with the process.
#[derive(Debug)]
pub struct TestDatabase {
    cluster: &'static Cluster,
    url: String,
    used: AtomicU64,
}

impl Stores {
    /// A PostgreSQL server of our own.
    pub fn postgres() -> Self {
        let cluster = Cluster::shared();
        let url = cluster.fresh_database();
        Self::Postgres(Box::new(TestDatabase { cluster, url, used: AtomicU64::new(0) }))
    }

    /// Calls `work` with an empty store.
    pub fn with_store<T>(&self, work: impl FnOnce(SeedStore) -> T) -> Result<T, StoreError> {
        match self {
            Self::Memory => Ok(work(SeedStore::new(Store::in_memory_with)?)),
            Self::Postgres(database) => database.with_store(work),
        }
    }
}

impl TestDatabase {
    fn with_store<T>(&self, work: impl FnOnce(SeedStore) -> T) -> Result<T, StoreError> {
        let schema = format!("town_{}", self.used.fetch_add(1, Ordering::Relaxed));
        let server = PostgresAddress::parse(&format!("{}?schema={schema}", self.url), None)?;
        let address = StoreAddress::Server(Box::new(server));
        let store = SeedStore::new(|lease_clock| {
            let options = Options { lease_clock, ..Options::default() };
            Store::create(&address, Timestamp::from_nanos(0), options)
        })?;
        let done = work(store);
        let database = self.url.rsplit('/').next().unwrap_or_default();
        self.cluster.sql(database, &format!("DROP SCHEMA {schema} CASCADE"));
        Ok(done)
    }
}
