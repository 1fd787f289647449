//! Durable creates from many threads of one process, on PostgreSQL.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use futures_util::future::try_join_all;
use gt_core::Clock;
use gt_core::limits::SERVER_WRITE_GROUP_MAX;
use gt_store::{Options, PostgresAddress, Store, StoreAddress};
use gt_testkit::Cluster;
use gt_town::SystemClock;
use tokio::runtime::Runtime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

use super::grouped::{CreateJob, THREADS, ask_from_threads, create_from_threads};
use crate::BenchmarkResult;
use crate::baseline::{
    COUNT_EVENTS, COUNT_PREFIX, CREATOR, INSERT_BEAD, INSERT_EVENT, OWNER, PAYLOAD, TITLE,
};
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

/// The settings of a server that people rely on, which a server for tests does not have.
pub(crate) const DURABLE: &str = "fsync = on\nfull_page_writes = on\n";

/// The lock that the product takes, as a statement of its own.
pub(super) const LOCK: &str = "BEGIN; SET LOCAL search_path = gt; \
    SELECT pg_advisory_xact_lock(hashtextextended('gt town gt', 0))";

/// Whether the baseline waits for the answer to each statement, in a straightforward loop, or sends
/// all statements of a group at once.
#[derive(Clone, Copy)]
enum SendMode {
    OneByOne,
    AllAtOnce,
}

/// Creates through [`Store::submit`], against loops that only insert what arrived, under the same lock.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let cluster = &Cluster::start(DURABLE);
    let each = lab.scale.creates_per_thread;
    let ours: Arm<'_> = Box::new(|| through_store(cluster, each));
    let bare = |manner| -> Arm<'_> { Box::new(move || through_loop(cluster, each, manner)) };
    let arms = [ours, bare(SendMode::OneByOne), bare(SendMode::AllAtOnce)];
    let times = alternate(lab.scale.long_rounds, arms)?;
    let [ours, bare, at_once] = [0, 1, 2].map(|arm| median(&times[arm]));
    let name = format!("server: durable creates on PostgreSQL from {THREADS} threads");
    let beads = THREADS * each;
    Ok(vec![
        ReportRow::speeds(format!("{name}, against a bare loop"), beads, ours, bare, Some(0.5)),
        ReportRow::speeds(
            format!("{name}, against a loop that sends a group at once"),
            beads,
            ours,
            at_once,
            None,
        ),
    ])
}

/// An empty store in a database of its own.
fn fresh(cluster: &Cluster) -> BenchmarkResult<(String, Store)> {
    let url = cluster.fresh_database();
    let address = StoreAddress::Server(Box::new(PostgresAddress::parse(&url, None)?));
    let store = Store::create(&address, SystemClock.now(), Options::default())?;
    Ok((url, store))
}

fn through_store(cluster: &Cluster, each: u32) -> BenchmarkResult<Duration> {
    let (_, store) = fresh(cluster)?;
    create_from_threads(&store, each)
}

fn through_loop(cluster: &Cluster, each: u32, manner: SendMode) -> BenchmarkResult<Duration> {
    let (url, store) = fresh(cluster)?;
    drop(store);
    let bare = BareWriter::connect(&url)?;
    ask_from_threads(each, move |jobs| bare.insert_groups(&jobs, manner))
}

/// A connection and its prepared statements, nothing else.
struct BareWriter {
    runtime: Runtime,
    client: Client,
    bead: Statement,
    prefix: Statement,
    event: Statement,
    counter: Statement,
}

impl BareWriter {
    fn connect(url: &str) -> BenchmarkResult<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (client, statements) = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(connection);
            client.batch_execute("SET search_path = gt").await?;
            let mut statements = Vec::new();
            for sql in [INSERT_BEAD, COUNT_PREFIX, INSERT_EVENT, COUNT_EVENTS] {
                statements.push(client.prepare(&sql.replace('?', "$")).await?);
            }
            Ok::<_, tokio_postgres::Error>((client, statements))
        })?;
        let [bead, prefix, event, counter] =
            <[Statement; 4]>::try_from(statements).map_err(|_| "four statements")?;
        Ok(Self { runtime, client, bead, prefix, event, counter })
    }

    fn insert_groups(&self, jobs: &Receiver<CreateJob>, manner: SendMode) -> BenchmarkResult<()> {
        let mut event = 0_i64;
        while let Ok(first) = jobs.recv() {
            let mut group = vec![first];
            group.extend(jobs.try_iter().take(SERVER_WRITE_GROUP_MAX - 1));
            self.runtime.block_on(self.insert_group(&group, &mut event, manner))?;
            for job in group {
                // The thread waits for exactly this.
                let _ = job.done.send(());
            }
        }
        Ok(())
    }

    async fn insert_group(
        &self,
        group: &[CreateJob],
        event: &mut i64,
        manner: SendMode,
    ) -> BenchmarkResult<()> {
        self.client.simple_query(LOCK).await?;
        let numbered: Vec<(i64, &CreateJob)> = (*event + 1..).zip(group).collect();
        *event += i64::try_from(group.len())?;
        match manner {
            SendMode::OneByOne => {
                for (number, job) in numbered {
                    self.insert(number, job).await?;
                }
                self.client.execute(&self.counter, &[&*event]).await?;
                self.client.batch_execute("COMMIT").await?;
            }
            SendMode::AllAtOnce => {
                let all = try_join_all(numbered.into_iter().map(|(n, job)| self.insert(n, job)));
                all.await?;
                self.client.execute(&self.counter, &[&*event]).await?;
                self.client.batch_execute("COMMIT").await?;
            }
        }
        Ok(())
    }

    async fn insert(
        &self,
        number: i64,
        job: &CreateJob,
    ) -> std::result::Result<(), tokio_postgres::Error> {
        let mut uid = [0_u8; 16];
        for (byte, letter) in uid.iter_mut().rev().zip(job.id.bytes()) {
            *byte = letter;
        }
        let (uid, none, no_number, empty) = (&uid[..], None::<&str>, None::<i64>, "");
        let (id, at) = (job.id.as_str(), job.at);
        let bead: [&(dyn ToSql + Sync); 30] = [
            &id, &uid, &none, &"open", &none, &2_i64, &"task", &empty, &at, &at, &no_number,
            &no_number, &no_number, &no_number, &0_i64, &0_i64, &0_i64, &0_i64, &no_number, &TITLE,
            &OWNER, &CREATOR, &empty, &none, &none, &empty, &empty, &empty, &empty, &none,
        ];
        self.client.execute(&self.bead, &bead).await?;
        self.client.execute(&self.prefix, &[&"hq"]).await?;
        let event: [&(dyn ToSql + Sync); 8] =
            [&number, &at, &"created", &id, &none, &none, &CREATOR, &PAYLOAD];
        self.client.execute(&self.event, &event).await?;
        Ok(())
    }
}
