//! A connection as PostgreSQL sees it: requests go out, answers come back in the same order.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use futures_util::future::join_all;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, NoTls, Row, SimpleQueryMessage, SimpleQueryRow, Statement};

use super::address::PostgresAddress;
use super::explain::{explain_connecting, is_passing, silent};
use super::tls;
use super::values::OwnedParam;
use crate::StoreError;
use crate::engine::{LongWaitCallback, QueryTable, QueryValue, WAIT_NOTICE_AFTER};

/// One statement with its parameters (`?1`, as everywhere), on its way to the server.
#[derive(Debug)]
pub(super) struct PendingStatement {
    pub(super) sql: String,
    pub(super) params: Vec<OwnedParam>,
    /// Whether it always gives the same columns, so that it may be prepared.
    pub(super) steady: bool,
}

impl PendingStatement {
    pub(super) fn plain(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), params: Vec::new(), steady: true }
    }
}

/// The response to a request.
#[derive(Debug, Default)]
pub(super) struct StatementResult {
    pub(super) rows: Vec<Row>,
    pub(super) changed: u64,
}

/// How long to try when a server does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectAttempt {
    /// It was never reached: an address that leads nowhere is said at once.
    FirstTime,
    /// It was there a moment ago: it may be restarting.
    Again,
}

const CONNECT_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// How long a connection may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);
/// Statements that are kept prepared. Filters make new ones all the time.
const STATEMENTS_MAX: usize = 512;

/// A connection with the small runtime that drives it while a caller waits for an answer.
pub(super) struct Wire {
    /// Gone only while the wire is being taken down.
    client: Option<Client>,
    /// The statements that were sent over this connection before; `None` for once.
    statements: RefCell<HashMap<String, Option<Statement>>>,
    /// Which of the server's processes answers, once it has said so.
    backend: OnceCell<String>,
    keeps_sessions: bool,
    /// The settings for statements outside of transactions are set.
    has_session_settings: Cell<bool>,
    answer_timeout: Duration,
    driver: Option<JoinHandle<()>>,
    runtime: Runtime,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Wire {
    pub(super) fn connect(
        server: &PostgresAddress,
        attempt: ConnectAttempt,
    ) -> Result<Self, StoreError> {
        let start = Instant::now();
        let long_enough = match attempt {
            ConnectAttempt::FirstTime => server.reconnect_wait.min(server.pool_wait),
            ConnectAttempt::Again => server.reconnect_wait,
        };
        loop {
            let error = match Self::try_connect(server)? {
                Ok(wire) => return Ok(wire),
                Err(error) => error,
            };
            let worth_it = is_passing(&error) || attempt == ConnectAttempt::Again;
            if !worth_it || start.elapsed() > long_enough {
                return Err(explain_connecting(server, error));
            }
            std::thread::sleep(CONNECT_RETRY_INTERVAL);
        }
    }

    fn try_connect(server: &PostgresAddress) -> Result<Result<Self, Error>, StoreError> {
        let engine = |source: Box<dyn std::error::Error + Send + Sync>| StoreError::Engine {
            doing: "connect".to_owned(),
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| engine(error.into()))?;
        let encrypted = server.config.get_ssl_mode() != tokio_postgres::config::SslMode::Disable;
        let tls = encrypted.then(|| tls::connector(&server.identity)).transpose();
        let tls = tls.map_err(|why| engine(why.into()))?;
        let connect = async {
            if let Some(tls) = tls {
                let (client, connection) = server.config.connect(tls).await?;
                Ok((client, tokio::spawn(async { drop(connection.await) })))
            } else {
                let (client, connection) = server.config.connect(NoTls).await?;
                Ok((client, tokio::spawn(async { drop(connection.await) })))
            }
        };
        let connected = runtime
            .block_on(async { timeout(server.connect_patience(), connect).await })
            .map_err(|_| silent(server))?;
        Ok(connected.map(|(client, driver)| Self {
            client: Some(client),
            statements: RefCell::default(),
            backend: OnceCell::new(),
            keeps_sessions: server.keeps_sessions,
            has_session_settings: Cell::new(false),
            // A request may have to wait for another process's lock before the server even begins.
            answer_timeout: server.answer_timeout.saturating_add(server.lock_timeout),
            driver: Some(driver),
            runtime,
        }))
    }

    fn client(&self) -> &Client {
        self.client.as_ref().expect("the client is only taken by drop")
    }

    /// Whether this process of the server is the one that answered before. Prepared statements exist
    /// only there.
    pub(super) fn is_served_by(&self, backend: &str) -> bool {
        !self.keeps_sessions || self.backend.get_or_init(|| backend.to_owned()) == backend
    }

    pub(super) fn has_session_settings(&self) -> bool {
        self.has_session_settings.get()
    }

    pub(super) fn note_session_settings(&self) {
        self.has_session_settings.set(true);
    }

    /// Waits for an answer, as long as one may take. Then the connection counts as cut, which is what
    /// every caller that waits for it is told.
    fn wait_for<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(async {
            let mut answer = std::pin::pin!(answer);
            if let Ok(answer) = timeout(self.answer_timeout, &mut answer).await {
                return answer;
            }
            if let Some(driver) = &self.driver {
                driver.abort();
            }
            answer.await
        })
    }

    /// Runs several statements at once, without parameters, and calls `notice` if that takes long.
    pub(super) fn batch(
        &self,
        sql: &str,
        notice: Option<&LongWaitCallback>,
    ) -> Result<Vec<SimpleQueryMessage>, Error> {
        self.wait_for(async {
            let mut answer = Box::pin(self.client().simple_query(sql));
            if let Some(notice) = notice {
                match timeout(WAIT_NOTICE_AFTER, &mut answer).await {
                    Ok(answer) => return answer,
                    Err(_) => notice(None),
                }
            }
            answer.await
        })
    }

    /// Sends all requests, then waits for the answers. After one that fails inside a transaction,
    /// PostgreSQL refuses the others.
    pub(super) fn run(&self, requests: &[PendingStatement]) -> Vec<Result<StatementResult, Error>> {
        self.wait_for(async {
            let plans = join_all(requests.iter().map(|request| self.plan(request))).await;
            join_all(requests.iter().zip(plans).map(|(request, plan)| async {
                let client = self.client();
                let rows = if let Some(statement) = plan? {
                    client.query_raw(&statement, &request.params).await?
                } else {
                    let typed = request.params.iter().map(|value| (value, value.kind()));
                    let typed: Vec<(&OwnedParam, Type)> = typed.collect();
                    client.query_typed_raw(&with_dollars(&request.sql), typed).await?
                };
                let mut rows = std::pin::pin!(rows);
                let mut answer = StatementResult::default();
                while let Some(row) = rows.try_next().await? {
                    answer.rows.push(row);
                }
                answer.changed = rows.rows_affected().unwrap_or(0);
                Ok(answer)
            }))
            .await
        })
    }

    /// The prepared statement, for SQL that is sent more than once: asking first costs a round trip, and
    /// a command that asks once should not pay it. A pooler would give the next transaction another
    /// connection, where nothing is prepared.
    async fn plan(&self, request: &PendingStatement) -> Result<Option<Statement>, Error> {
        if !(self.keeps_sessions && request.steady) {
            return Ok(None);
        }
        let sql = request.sql.as_str();
        {
            let mut statements = self.statements.borrow_mut();
            match statements.get(sql) {
                Some(Some(statement)) => return Ok(Some(statement.clone())),
                Some(None) => {}
                None => {
                    if statements.len() >= STATEMENTS_MAX {
                        statements.clear();
                    }
                    statements.insert(sql.to_owned(), None);
                    return Ok(None);
                }
            }
        }
        let statement = self.client().prepare(&with_dollars(sql)).await?;
        self.statements.borrow_mut().insert(sql.to_owned(), Some(statement.clone()));
        Ok(Some(statement))
    }

    /// Runs one query that a caller wrote. The server prepares a single statement only, so a text that passes this cannot
    /// end the transaction that only reads.
    pub(super) fn answer(&self, sql: &str) -> Result<QueryTable, Error> {
        self.wait_for(async {
            let statement = self.client().prepare(sql).await?;
            let columns = statement.columns();
            let messages = self.client().simple_query(sql).await?;
            let rows = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            });
            let values = |row: &SimpleQueryRow| {
                let columns = columns.iter().enumerate();
                columns.map(|(at, column)| answered(column.type_(), row.get(at))).collect()
            };
            let rows = rows.map(values).collect();
            let columns = columns.iter().map(|column| column.name().to_owned()).collect();
            Ok(QueryTable { columns, rows })
        })
    }

    /// Asks the server whether it understands a statement.
    pub(super) fn prepare(&self, sql: &str) -> Result<(), Error> {
        self.wait_for(self.client().prepare(&with_dollars(sql))).map(drop)
    }
}

/// A value as a caller reads it: flags are 1 and 0, as on the other engine.
fn answered(kind: &Type, text: Option<&str>) -> QueryValue {
    let is_number = [Type::INT2, Type::INT4, Type::INT8, Type::FLOAT4, Type::FLOAT8, Type::NUMERIC]
        .contains(kind);
    match text {
        None => QueryValue::Null,
        Some(text) if *kind == Type::BOOL => QueryValue::Number(i64::from(text == "t").to_string()),
        // NaN and Infinity are no numbers of JSON.
        Some(text) if is_number && text.ends_with(|last: char| last.is_ascii_digit()) => {
            QueryValue::Number(text.to_owned())
        }
        Some(text) => QueryValue::Text(text.to_owned()),
    }
}

/// `?1` as PostgreSQL wants it. None of our statements has a question mark in a text.
fn with_dollars(sql: &str) -> String {
    sql.replace('?', "$")
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.statements.borrow_mut().clear();
        drop(self.client.take());
        // Without its last message the server would log a client that vanished.
        if let (Some(driver), Err(_)) = (self.driver.take(), tokio::runtime::Handle::try_current())
        {
            self.runtime.block_on(async { drop(timeout(CLOSE_TIMEOUT, driver).await) });
        }
    }
}
