//! A bare server over a file: it echoes what is submitted once a row of it is durable, and reads a row by its id. No checks,
//! no logic, no log.

use std::cell::RefCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{self, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::routing::{get, post};
use gt_core::limits::WRITE_GROUP_MAX;
use gt_core::{Clock, Timestamp};
use gt_town::SystemClock;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use tokio::sync::oneshot;

use crate::BenchmarkResult;
use crate::baseline::{
    self, COUNT_EVENTS, COUNT_PREFIX, CREATOR, INSERT_BEAD, INSERT_EVENT, TITLE,
};
use crate::benchmarks::grouped::WAITING_MAX;
use crate::sample::SampleRandom;

/// The payload of the event of a submission.
const PAYLOAD: &str = r#"{"title":"Retry the landing queue when the remote is slow","issue_type":"deploy","status":"open","priority":2}"#;
/// The metadata of an item.
const METADATA: &str = r#"{"branch":"main","attempt":1}"#;

const READ: &str = "SELECT id, status, priority, issue_type, assignee, created_at, updated_at, title, created_by, \
    metadata, notes FROM beads WHERE uid = ?1";

/// The state that all handlers share.
struct BareState {
    jobs: SyncSender<oneshot::Sender<()>>,
    database: PathBuf,
}

/// Says where it listens, and serves until standard input ends, which it also does if the parent
/// process dies.
pub(super) fn serve(router: Router) -> BenchmarkResult<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, router).await });
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        ended.await??;
        Ok(())
    })
}

/// The whole of `gt-benchmarks bare-http`.
pub(crate) fn serve_file(database: &Path) -> BenchmarkResult<()> {
    let connection = open(database)?;
    let (jobs, receiver) = sync_channel(WAITING_MAX);
    std::thread::spawn(move || {
        if let Err(error) = insert_groups(connection, &receiver) {
            eprintln!("the bare server cannot write: {error}");
        }
    });
    let shared = Arc::new(BareState { jobs, database: database.to_owned() });
    serve(
        Router::new()
            .route("/work", post(submit))
            .route("/work/{id}", get(read))
            .with_state(shared),
    )
}

fn open(database: &Path) -> BenchmarkResult<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    baseline::set_product_pragmas(&connection)?;
    Ok(connection)
}

/// JSON, as it is sent.
pub(super) type JsonResponse = (StatusCode, [(HeaderName, &'static str); 1], Bytes);
/// The same, or the error.
pub(super) type JsonResult = std::result::Result<JsonResponse, StatusCode>;

pub(super) fn json(status: StatusCode, body: Bytes) -> JsonResponse {
    (status, [(header::CONTENT_TYPE, "application/json")], body)
}

async fn submit(State(shared): State<Arc<BareState>>, body: Bytes) -> JsonResult {
    let (done, is_done) = oneshot::channel();
    // More may wait than there are connections.
    shared.jobs.try_send(done).map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    is_done.await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(json(StatusCode::CREATED, body))
}

fn insert_groups(
    mut connection: Connection,
    jobs: &Receiver<oneshot::Sender<()>>,
) -> BenchmarkResult<()> {
    let mut random = SampleRandom::new(64);
    let last = "SELECT value FROM counters WHERE name = 'event'";
    let mut event: i64 = connection.query_row(last, [], |row| row.get(0))?;
    let none = None::<&str>;
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(WRITE_GROUP_MAX - 1));
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for _ in &group {
            event += 1;
            let at = SystemClock.now().as_nanos();
            let id = random.id(7);
            transaction.prepare_cached(INSERT_BEAD)?.execute(params![
                id,
                uid(at, event),
                "inbox",
                "open",
                none,
                2,
                "deploy",
                "",
                at,
                at,
                none,
                none,
                none,
                none,
                0,
                0,
                0,
                0,
                none,
                TITLE,
                "",
                CREATOR,
                "",
                none,
                METADATA,
                "",
                "",
                "",
                "",
                none,
            ])?;
            transaction.prepare_cached(COUNT_PREFIX)?.execute(["wq"])?;
            let values = params![event, at, "created", id, "inbox", none, CREATOR, PAYLOAD];
            transaction.prepare_cached(INSERT_EVENT)?.execute(values)?;
        }
        transaction.prepare_cached(COUNT_EVENTS)?.execute([event])?;
        transaction.commit()?;
        for done in group {
            // A client that has gone does not need the answer.
            let _ = done.send(());
        }
    }
    Ok(())
}

/// An alias that grows, as the product's do.
pub(super) fn uid(at: i64, number: i64) -> [u8; 16] {
    let mut uid = [0; 16];
    uid[..8].copy_from_slice(&at.to_be_bytes());
    uid[8..].copy_from_slice(&number.to_be_bytes());
    uid
}

thread_local! {
    /// A connection for each thread that serves: no thread waits for another, and nothing changes
    /// threads.
    static CONNECTION: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

async fn read(
    State(shared): State<Arc<BareState>>,
    extract::Path(id): extract::Path<String>,
) -> JsonResult {
    let found = CONNECTION.with_borrow_mut(|slot| -> BenchmarkResult<String> {
        let connection = match slot {
            Some(connection) => connection,
            None => slot.insert(open(&shared.database)?),
        };
        read_one(connection, &id)
    });
    let text = found.map_err(|_| StatusCode::NOT_FOUND)?;
    Ok(json(StatusCode::OK, Bytes::from(text)))
}

fn read_one(connection: &Connection, id: &str) -> BenchmarkResult<String> {
    let digits: String = id.chars().filter(|c| *c != '-').collect();
    let uid = u128::from_str_radix(&digits, 16)?.to_be_bytes();
    let mut statement = connection.prepare_cached(READ)?;
    Ok(statement.query_row([uid], |row| {
        let text = |column: usize| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str()?);
        let at = |column: usize| row.get(column).map(Timestamp::from_nanos);
        Ok(format!(
            r#"{{"id":"{id}","bead":"{}","status":"{}","priority":{},"type":"{}","assigned_agent":"{}","created_at":"{}","updated_at":"{}","description":"{}","created_by":"{}","payload":{},"notes":"{}"}}"#,
            text(0)?,
            text(1)?,
            row.get::<_, i64>(2)?,
            text(3)?,
            text(4)?,
            at(5)?,
            at(6)?,
            text(7)?,
            text(8)?,
            text(9)?,
            text(10)?,
        ))
    })?)
}
