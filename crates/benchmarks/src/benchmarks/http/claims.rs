//! Agents that ask one server for work, all of them at once, on PostgreSQL.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use futures_util::future::try_join_all;
use gt_core::limits::SERVER_WRITE_GROUP_MAX;
use gt_core::{Clock, Uid};
use gt_testkit::Cluster;
use gt_town::SystemClock;
use tokio::sync::oneshot;
use tokio_postgres::{Client, NoTls, Statement};

use super::bare::{JsonResult, json, serve, uid};
use super::client::{ask_all, field, request};
use super::fill::fill_database;
use super::serving::{ServerProcess, make_store};
use super::{CONNECTIONS, SPEED_SHARE_MIN};
use crate::BenchmarkResult;
use crate::baseline::{COUNT_EVENTS, INSERT_EVENT};
use crate::benchmarks::grouped::WAITING_MAX;
use crate::benchmarks::server::{DURABLE, LOCK};
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

/// The part that claims one by one, in a straightforward loop.
pub(crate) const ONE_BY_ONE: &str = "bare-claims";
/// The part that looks for a whole group at once and sends all of its statements without waiting.
pub(crate) const TOGETHER: &str = "bare-claims-together";

/// Settings of a server that only counts claims: with so many items, waiting for the disk would
/// take most of the time. The comparison uses a durable server.
const HASTY: &str = "fsync = off\nfull_page_writes = off\nsynchronous_commit = off\nshared_buffers = '1GB'\n\
    max_wal_size = '4GB'\nautovacuum_naptime = 10s\n";

/// `POST /work/next` against bare claims of the same rows under the same lock; and whether anything was handed out twice.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let mut rows = compared(lab)?;
    rows.push(all_of_them(lab)?);
    Ok(rows)
}

fn compared(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let cluster = &Cluster::start(DURABLE);
    let each = lab.scale.claims_compared / CONNECTIONS;
    let template = template(lab, cluster, each * CONNECTIONS)?;
    let ours: Arm<'_> = Box::new(|| {
        let url = cluster.clone_database(&template);
        claim_all(&ServerProcess::ours(lab, &url)?, each)
    });
    let bare = |part| -> Arm<'_> {
        let template = &template;
        Box::new(move || {
            let url = cluster.clone_database(template);
            claim_all(&ServerProcess::bare(lab, part, &url)?, each)
        })
    };
    let times = alternate(lab.scale.long_rounds, [ours, bare(ONE_BY_ONE), bare(TOGETHER)])?;
    let [ours, one_by_one, together] = [0, 1, 2].map(|arm| median(&times[arm]));
    let name = format!("claims: `POST /work/next`, {CONNECTIONS} agents, PostgreSQL");
    let count = each * CONNECTIONS;
    Ok(vec![
        ReportRow::speeds(
            format!("{name}, against a bare grouped claim"),
            count,
            ours,
            one_by_one,
            Some(SPEED_SHARE_MIN),
        ),
        ReportRow::speeds(
            format!("{name}, against one that sends a group at once"),
            count,
            ours,
            together,
            None,
        ),
    ])
}

/// The name of a database with so many items that any agent may claim.
pub(super) fn template(lab: &Lab, cluster: &Cluster, items: u32) -> BenchmarkResult<String> {
    let url = cluster.fresh_database();
    make_store(lab, &url)?;
    let (_, name) = url.rsplit_once('/').ok_or("no name in a URL")?;
    cluster.sql(name, &fill_database(items));
    Ok(name.to_owned())
}

/// So many claims on each connection, each by an agent of its own. All of them must get something, and nothing twice.
fn claim_all(serving: &ServerProcess, each: u32) -> BenchmarkResult<Duration> {
    let seen = RefCell::new(HashSet::new());
    let took = ask_all(
        serving.address,
        CONNECTIONS,
        each,
        |connection, number| {
            // A lease that ended meanwhile would rightly give an item to another agent.
            let body = format!(r#"{{"agent":"agent-{connection}-{number}","lease_s":3600}}"#);
            request("POST", "/work/next", &body)
        },
        |answer| {
            let answer = std::str::from_utf8(answer)?;
            let id = field(answer, "id").ok_or_else(|| format!("nothing was given: {answer}"))?;
            if seen.borrow_mut().insert(id.to_owned()) {
                Ok(())
            } else {
                Err(format!("{id} was handed out twice").into())
            }
        },
    )?;
    let given = seen.into_inner().len();
    if given == usize::try_from(each * CONNECTIONS)? {
        Ok(took)
    } else {
        Err(format!("only {given} items were handed out").into())
    }
}

/// Hands all of them out, by ours, and asks the store too.
fn all_of_them(lab: &Lab) -> BenchmarkResult<ReportRow> {
    let cluster = &Cluster::start(HASTY);
    let each = lab.scale.claims / CONNECTIONS;
    let template = template(lab, cluster, each * CONNECTIONS)?;
    let serving = ServerProcess::ours(lab, &cluster.url(&template))?;
    let took = claim_all(&serving, each)?;
    let count = "SELECT count(*) || '|' || count(DISTINCT bead) FROM gt.runs";
    let runs = cluster.sql(&template, count);
    let given = each * CONNECTIONS;
    let speed = f64::from(given) / took.as_secs_f64();
    Ok(ReportRow {
        name: format!(
            "claims: {given} items handed out by `POST /work/next`, each of them once (PostgreSQL without `fsync`)"
        ),
        ours: format!("{speed:.0}/s"),
        baseline: "–".to_owned(),
        ratio: "–".to_owned(),
        target: "none twice".to_owned(),
        met: Some(runs == format!("{given}|{given}")),
    })
}

const HEADS: &str = "SELECT id, uid, title, created_at FROM beads WHERE rig = 'inbox' AND assignee = '' \
    AND work_status = 'queued' AND status = 'open' AND open_blockers = 0 ORDER BY priority, created_at, id LIMIT $1";
const TAKE: &str = "UPDATE beads SET status = 'in_progress', assignee = $2, started_at = $3, updated_at = $3 WHERE id = $1";
const INSERT_RUN: &str = "INSERT INTO runs (bead, epoch, uid, context, rig, executor, runtime, agent, place, host, account, \
    gated, state, starter, formula, steps, created_at, created_by, session, tree, branch, reason, ended_by, \
    accepted_commit, running_at, lease_s, lease_expires_at) VALUES ($1, 1, $2, 0, 'inbox', 'pull', '', $3, '', '', '', 0, \
    'running', '', '', '{}', $4, 'api', '', '', '', '', '', '', $4, 300, $4 + 300000000000)";

/// An agent's request, and the channel for its answer.
struct ClaimJob {
    agent: String,
    done: oneshot::Sender<String>,
}

/// The whole of `gt-benchmarks bare-claims` and of the other one.
pub(crate) fn serve_claims(url: &str, together: bool) -> BenchmarkResult<()> {
    let (jobs, receiver) = sync_channel(WAITING_MAX);
    let url = url.to_owned();
    std::thread::spawn(move || {
        if let Err(error) = claim_groups(&url, &receiver, together) {
            eprintln!("the bare server cannot write: {error}");
        }
    });
    serve(Router::new().route("/work/next", post(next)).with_state(jobs))
}

async fn next(State(jobs): State<SyncSender<ClaimJob>>, body: Bytes) -> JsonResult {
    let text = std::str::from_utf8(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let agent = field(text, "agent").ok_or(StatusCode::BAD_REQUEST)?.to_owned();
    let (done, is_done) = oneshot::channel();
    jobs.try_send(ClaimJob { agent, done }).map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let item = is_done.await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(json(StatusCode::OK, Bytes::from(item)))
}

/// A connection and its prepared statements, nothing else.
struct BareClaimer {
    client: Client,
    heads: Statement,
    take: Statement,
    run: Statement,
    event: Statement,
    counter: Statement,
    last_event: i64,
}

fn claim_groups(url: &str, jobs: &Receiver<ClaimJob>, together: bool) -> BenchmarkResult<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut bare = runtime.block_on(BareClaimer::connect(url))?;
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(SERVER_WRITE_GROUP_MAX - 1));
        let agents: Vec<&str> = group.iter().map(|job| job.agent.as_str()).collect();
        let items = runtime.block_on(bare.claim_group(&agents, together))?;
        for (job, item) in group.into_iter().zip(items) {
            // A client that has gone does not need the answer.
            let _ = job.done.send(item);
        }
    }
    Ok(())
}

impl BareClaimer {
    async fn connect(url: &str) -> BenchmarkResult<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute("SET search_path = gt").await?;
        let numbered = |sql: &str| sql.replace('?', "$");
        let last = client.query_one("SELECT value FROM counters WHERE name = 'event'", &[]);
        let last_event = last.await?.get(0);
        Ok(Self {
            heads: client.prepare(HEADS).await?,
            take: client.prepare(TAKE).await?,
            run: client.prepare(INSERT_RUN).await?,
            event: client.prepare(&numbered(INSERT_EVENT)).await?,
            counter: client.prepare(&numbered(COUNT_EVENTS)).await?,
            last_event,
            client,
        })
    }

    async fn claim_group(
        &mut self,
        agents: &[&str],
        together: bool,
    ) -> BenchmarkResult<Vec<String>> {
        self.client.simple_query(LOCK).await?;
        let first_event = self.last_event + 1;
        self.last_event += 2 * i64::try_from(agents.len())?;
        let events = (first_event..).step_by(2);
        let items = if together {
            let limit = i64::try_from(agents.len())?;
            let heads = self.client.query(&self.heads, &[&limit]).await?;
            let claims = agents.iter().zip(&heads).zip(events);
            try_join_all(claims.map(|((agent, head), event)| self.claim(agent, head, event)))
                .await?
        } else {
            let mut items = Vec::with_capacity(agents.len());
            for (agent, event) in agents.iter().zip(events) {
                let head = self.client.query_one(&self.heads, &[&1_i64]).await?;
                items.push(self.claim(agent, &head, event).await?);
            }
            items
        };
        self.client.execute(&self.counter, &[&self.last_event]).await?;
        self.client.batch_execute("COMMIT").await?;
        Ok(items)
    }

    /// Writes what the product writes for it: the run, the bead and two events.
    async fn claim(
        &self,
        agent: &str,
        head: &tokio_postgres::Row,
        event: i64,
    ) -> BenchmarkResult<String> {
        let (id, alias, title): (&str, &[u8], &str) = (head.get(0), head.get(1), head.get(2));
        let at = SystemClock.now().as_nanos();
        let run_uid = uid(at, event);
        let run = format!("{id}#1");
        let none = None::<&str>;
        self.client.execute(&self.run, &[&id, &&run_uid[..], &agent, &at]).await?;
        self.client.execute(&self.take, &[&id, &agent, &at]).await?;
        let taken =
            format!(r#"{{"agent":"{agent}","lease_expires_at":"2026-11-16T05:00:00.000000000Z"}}"#);
        let changed = format!(
            r#"{{"title":"{title}","changes":{{"assignee":["","{agent}"],"status":["open","in_progress"]}}}}"#
        );
        let inbox = "inbox";
        self.client
            .execute(&self.event, &[&event, &at, &"dispatched", &id, &inbox, &run, &"api", &taken])
            .await?;
        self.client
            .execute(
                &self.event,
                &[&(event + 1), &at, &"status_changed", &id, &inbox, &none, &"api", &changed],
            )
            .await?;
        let alias = Uid::from_bytes(alias.try_into()?);
        Ok(format!(
            r#"{{"item":{{"id":"{alias}","bead":"{id}","description":"{title}","status":"in_progress","assigned_agent":"{agent}"}},"run_id":"{run}"}}"#
        ))
    }
}
