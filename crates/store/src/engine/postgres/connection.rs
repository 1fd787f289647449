//! A connection that carries a transaction.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use gt_core::Timestamp;
use tokio_postgres::{Error, SimpleQueryMessage, SimpleQueryRow};

use super::address::PostgresAddress;
use super::client_session::{ClientSession, CommitOutcome, NOW_MICROS};
use super::explain::{FENCED, explain, is_lost, lost};
use super::values::{OwnedParam, ServerRow};
use super::wire::{ConnectAttempt, PendingStatement, StatementResult, Wire};
use crate::engine::{EachRow, Param, QueryTable, SqlDialect, SqlSession, TransactionConnection};
use crate::{LeaseClock, StoreError};

/// A connection, which finds its way back to the server between transactions when it was cut.
///
/// Statements whose answer is not needed wait here and travel with the next one, so that a round trip
/// is paid only where a decision depends on the answer.
#[derive(Debug)]
pub(crate) struct PostgresConnection {
    server: Arc<PostgresAddress>,
    wire: RefCell<Option<Wire>>,
    waiting: RefCell<Vec<PendingStatement>>,
    state: Cell<TransactionState>,
    /// Where among the waiting requests the last savepoint is set, if it is still among them.
    savepoint: Cell<Option<usize>>,
    /// How many cursors are open, one inside the other.
    cursors: Cell<usize>,
    /// When the transaction began by the server's clock, in microseconds.
    began_us: Cell<Option<i64>>,
    /// The transaction only reads.
    is_reading: Cell<bool>,
    client: ClientSession,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransactionState {
    /// No transaction.
    Idle,
    /// In a transaction.
    Open,
    /// In a transaction that the server has given up, back to the savepoint if there is one.
    Failed,
    /// The transaction is gone, with or without the connection.
    Lost,
}

/// The server's clock in microseconds, and the name of its column.
const CLOCK_SQL: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock_us";
const CLOCK: &str = "clock_us";
/// Rows per round trip of an answer that may be very long.
const ROWS_FIRST: usize = 64;
const ROWS_NEXT: usize = 1024;

impl PostgresConnection {
    /// Connects.
    pub(crate) fn open(server: &Arc<PostgresAddress>) -> Result<Self, StoreError> {
        let wire = Wire::connect(server, ConnectAttempt::FirstTime)?;
        Ok(Self {
            server: Arc::clone(server),
            wire: RefCell::new(Some(wire)),
            waiting: RefCell::default(),
            state: Cell::new(TransactionState::Idle),
            savepoint: Cell::new(None),
            cursors: Cell::new(0),
            began_us: Cell::new(None),
            is_reading: Cell::new(false),
            client: ClientSession::new(),
        })
    }

    /// Runs statements that take no parameters and give no rows, inside a transaction.
    pub(super) fn batch(&self, sql: &str, doing: &str) -> Result<(), StoreError> {
        self.flush()?;
        let answer = self.with_wire(|wire| wire.batch(sql, None))?;
        answer.map(drop).map_err(|error| self.fail(doing, error))
    }

    /// Runs one statement that must not be inside a transaction.
    pub(super) fn run_alone(&self, sql: &str, doing: &str) -> Result<(), StoreError> {
        // An empty transaction shows whether the connection still stands, and makes it again if not.
        self.begin_reading()?;
        self.roll_back()?;
        let answer = self.with_wire(|wire| wire.batch(sql, None))?;
        answer.map(drop).map_err(|error| self.fail(doing, error))
    }

    /// The schema that the store is in.
    pub(super) fn schema(&self) -> &str {
        &self.server.schema
    }

    /// Whether the address names several servers.
    pub(super) fn names_several_hosts(&self) -> bool {
        self.server.names_several_hosts()
    }

    /// The server, as it may be shown.
    pub(super) fn shown(&self) -> &str {
        self.server.shown()
    }

    fn with_wire<T>(&self, work: impl FnOnce(&Wire) -> T) -> Result<T, StoreError> {
        match &*self.wire.borrow() {
            Some(wire) => Ok(work(wire)),
            None => Err(StoreError::NotCommitted("the connection is gone".to_owned())),
        }
    }

    /// Begins a transaction. As nothing has happened in it yet, a connection that turns out to be cut
    /// is simply made again.
    ///
    /// `sql` ends with a row whose first column is the process of the server that answers; that row is
    /// given back.
    fn begin(&self, sql: &str, doing: &str) -> Result<Option<SimpleQueryRow>, StoreError> {
        self.waiting.borrow_mut().clear();
        self.savepoint.set(None);
        self.cursors.set(0);
        let start = Instant::now();
        loop {
            if self.wire.borrow().is_none() {
                let wire = Wire::connect(&self.server, ConnectAttempt::Again)?;
                *self.wire.borrow_mut() = Some(wire);
            }
            let notice = self.server.on_wait.as_ref();
            match self.with_wire(|wire| wire.batch(sql, notice))? {
                Ok(answer) => {
                    self.state.set(TransactionState::Open);
                    let row = last_row(answer);
                    let clock = row.as_ref().and_then(|row| row.try_get(CLOCK).ok().flatten());
                    self.began_us.set(clock.and_then(|text| text.parse().ok()));
                    let backend = row.as_ref().and_then(|row| row.get(0)).unwrap_or_default();
                    if self.with_wire(|wire| wire.is_served_by(backend))? {
                        return Ok(row);
                    }
                    // A statement that we prepared may mean something else there.
                    self.roll_back()?;
                    return Err(StoreError::Pooler(self.server.shown().to_owned()));
                }
                Err(error) if is_lost(&error) && start.elapsed() < self.server.reconnect_wait => {
                    *self.wire.borrow_mut() = None;
                }
                Err(error) => {
                    self.state.set(TransactionState::Failed);
                    let explained = explain(&self.server, doing, self.is_reading.get(), error);
                    self.roll_back()?;
                    return Err(explained);
                }
            }
        }
    }

    fn fail(&self, doing: &str, error: Error) -> StoreError {
        if is_lost(&error) {
            self.lose();
        } else if self.state.get() == TransactionState::Open {
            self.state.set(TransactionState::Failed);
        }
        explain(&self.server, doing, self.is_reading.get(), error)
    }

    fn lose(&self) {
        *self.wire.borrow_mut() = None;
        self.state.set(TransactionState::Lost);
    }

    /// Sends the waiting statements and `requests`; gives the answer to the last of these.
    fn send(&self, requests: Vec<PendingStatement>) -> Result<StatementResult, StoreError> {
        if self.state.get() == TransactionState::Lost {
            return Err(StoreError::NotCommitted("the transaction was lost".to_owned()));
        }
        let mut all = self.waiting.take();
        all.extend(requests);
        let answers = self.with_wire(|wire| wire.run(&all))?;
        let savepoint = self.savepoint.take();
        let mut last = StatementResult::default();
        for (place, (answer, request)) in answers.into_iter().zip(&all).enumerate() {
            match answer {
                Ok(answer) => last = answer,
                Err(error) => {
                    let failure = self.fail(&format!("run: {}", request.sql), error);
                    // Something that an earlier job left behind failed: that job was told that it
                    // succeeded, and the savepoint to go back to is not where it should be.
                    if savepoint.is_some_and(|savepoint| place <= savepoint) {
                        self.state.set(TransactionState::Lost);
                    }
                    return Err(failure);
                }
            }
        }
        Ok(last)
    }

    fn flush(&self) -> Result<(), StoreError> {
        if self.waiting.borrow().is_empty() { Ok(()) } else { self.send(Vec::new()).map(drop) }
    }

    /// The connection broke while the commit was under way. The database knows whether it was made.
    fn resolve_lost_commit(&self, failure: StoreError) -> Result<(), StoreError> {
        match self.client.outcome_of_lost_commit(&self.server) {
            CommitOutcome::Committed(wire) => {
                self.client.committed();
                self.state.set(TransactionState::Idle);
                *self.wire.borrow_mut() = Some(*wire);
                Ok(())
            }
            CommitOutcome::NotCommitted => Err(failure),
            CommitOutcome::Unknown => Err(StoreError::Unsettled(self.server.shown().to_owned())),
        }
    }

    /// The columns that set the settings of one transaction. They are set each time, because a pooler may run the next one
    /// elsewhere.
    fn local_settings(&self) -> String {
        let PostgresAddress { schema, lock_timeout, idle_timeout, .. } = &*self.server;
        let (lock, idle) = (lock_timeout.as_millis(), idle_timeout.as_millis());
        format!(
            "set_config('search_path', '{schema}', true), set_config('lock_timeout', '{lock}', true), \
             set_config('idle_in_transaction_session_timeout', '{idle}', true)"
        )
    }

    /// Makes the connection ready for statements that are transactions of their own. Only behind an address whose sessions
    /// last: the schema is set once for the session.
    pub(crate) fn begin_alone(&self) -> Result<(), StoreError> {
        self.roll_back()?;
        self.savepoint.set(None);
        self.cursors.set(0);
        self.began_us.set(None);
        self.is_reading.set(true);
        if self.wire.borrow().is_none() {
            let wire = Wire::connect(&self.server, ConnectAttempt::Again)?;
            *self.wire.borrow_mut() = Some(wire);
        }
        if self.with_wire(Wire::has_session_settings)? {
            return Ok(());
        }
        let PostgresAddress { schema, lock_timeout, .. } = &*self.server;
        let sql = format!(
            "SELECT set_config('search_path', '{schema}', false), set_config('lock_timeout', '{}', false)",
            lock_timeout.as_millis()
        );
        let answer = self.with_wire(|wire| wire.batch(&sql, None))?;
        answer.map_err(|error| self.fail("set the schema of a session", error))?;
        self.with_wire(Wire::note_session_settings)
    }

    /// Whether the connection was cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.wire.borrow().is_none()
    }

    /// The process that has the lock that we did not get, in words.
    fn holder(&self) -> Option<String> {
        let sql = format!(
            "SELECT format('%s (process %s of the database server, user %s, since %s)', \
             coalesce(nullif(application_name, ''), 'a program'), pid, usename, \
             to_char(xact_start, 'YYYY-MM-DD HH24:MI:SS TZ')) \
             FROM pg_locks JOIN pg_stat_activity USING (pid) \
             WHERE locktype = 'advisory' AND granted AND objsubid = 1 \
             AND datname = current_database() AND datid = database \
             AND (classid::bigint << 32) | objid::bigint = hashtextextended('gt town {}', 0)",
            self.server.schema
        );
        let answer = self.with_wire(|wire| wire.batch(&sql, None)).ok()?.ok()?;
        last_row(answer)?.get(0).map(str::to_owned)
    }

    fn request(sql: &str, params: &[Param<'_>]) -> PendingStatement {
        let params = params.iter().map(OwnedParam::from).collect();
        PendingStatement { sql: sql.to_owned(), params, steady: true }
    }

    fn hand_out(
        answer: &StatementResult,
        each: EachRow<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        for row in &answer.rows {
            if each(&ServerRow(row))? == ControlFlow::Break(()) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn stream_from(
        &self,
        cursor: &str,
        query: PendingStatement,
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        let declare = format!("DECLARE {cursor} NO SCROLL CURSOR FOR {}", query.sql);
        let fetch = |rows: usize| PendingStatement {
            steady: false,
            ..PendingStatement::plain(format!("FETCH {rows} FROM {cursor}"))
        };
        let mut asked = ROWS_FIRST;
        let declare = PendingStatement { sql: declare, ..query };
        let mut answer = self.send(vec![declare, fetch(asked)])?;
        while Self::hand_out(&answer, each)? == ControlFlow::Continue(())
            && answer.rows.len() == asked
        {
            asked = ROWS_NEXT;
            answer = self.send(vec![fetch(asked)])?;
        }
        Ok(())
    }
}

impl SqlSession for PostgresConnection {
    fn query(&self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> Result<(), StoreError> {
        let answer = self.send(vec![Self::request(sql, params)])?;
        Self::hand_out(&answer, each).map(drop)
    }

    fn stream(&self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> Result<(), StoreError> {
        let depth = self.cursors.get();
        let cursor = format!("rows{depth}");
        self.cursors.set(depth + 1);
        let streamed = self.stream_from(&cursor, Self::request(sql, params), each);
        self.cursors.set(depth);
        if self.state.get() == TransactionState::Open {
            self.waiting.borrow_mut().push(PendingStatement::plain(format!("CLOSE {cursor}")));
        }
        streamed
    }

    fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        Ok(self.send(vec![Self::request(sql, params)])?.changed)
    }

    fn apply(&self, sql: &str, params: &[Param<'_>]) -> Result<(), StoreError> {
        self.waiting.borrow_mut().push(Self::request(sql, params));
        if self.waiting.borrow().len() >= ROWS_NEXT { self.flush() } else { Ok(()) }
    }

    fn answer(&self, sql: &str) -> Result<QueryTable, StoreError> {
        self.flush()?;
        self.with_wire(|wire| wire.answer(sql))?.map_err(|error| {
            let said = error.as_db_error().map(|error| error.message().to_owned());
            match (self.fail("run the query", error), said) {
                (StoreError::Engine { .. } | StoreError::NotPermitted { .. }, Some(said)) => {
                    StoreError::Query(said)
                }
                (other, _) => other,
            }
        })
    }

    fn dialect(&self) -> SqlDialect<'_> {
        let date_time = |column: &str| {
            format!(
                "to_char(to_timestamp({column} / 1000000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')"
            )
        };
        SqlDialect { schema: &self.server.schema, date_time }
    }

    fn prepare(&self, sql: &str) -> Result<(), StoreError> {
        self.flush()?;
        let prepared = self.with_wire(|wire| wire.prepare(sql))?;
        prepared.map_err(|error| self.fail(&format!("prepare: {sql}"), error))
    }

    fn clock(&self) -> Option<Timestamp> {
        match &self.server.lease_clock {
            LeaseClock::Caller => None,
            LeaseClock::Store => {
                Some(Timestamp::from_nanos(self.began_us.get()?.saturating_mul(1000)))
            }
            LeaseClock::Simulated(clock) => Some(clock()),
        }
    }

    fn refresh_statistics(&self) -> Result<(), StoreError> {
        // Without statistics, PostgreSQL guesses, and reads whole tables for a short list.
        self.apply("ANALYZE beads, labels, dependencies, comments, contexts", &[])
    }
}

impl TransactionConnection for PostgresConnection {
    fn begin_reading(&self) -> Result<(), StoreError> {
        let sql = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT pg_backend_pid(), {CLOCK_SQL}, {}",
            self.local_settings()
        );
        self.is_reading.set(true);
        self.begin(&sql, "begin to read").map(drop)
    }

    /// The lock is a statement of its own: the statements after it see the commits of the last holder.
    fn begin_writing(&self) -> Result<(), StoreError> {
        let sql = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
             SELECT {}, CASE current_setting('synchronous_commit') \
             WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END; \
             {}; SELECT pg_backend_pid(), {NOW_MICROS}, {CLOCK_SQL}",
            self.local_settings(),
            self.server.take_town_lock(),
        );
        self.is_reading.set(false);
        let begun =
            self.begin(&sql, "wait for its turn to write").map_err(|error| match error {
                StoreError::Locked(None) => StoreError::Locked(self.holder()),
                other => other,
            })?;
        self.client.begin(begun.as_ref());
        Ok(())
    }

    fn commit(&self, news: Option<i64>) -> Result<(), StoreError> {
        if self.state.get() != TransactionState::Open {
            return Err(StoreError::NotCommitted("the transaction had failed before".to_owned()));
        }
        let mut last = Vec::new();
        if let Some(number) = news {
            let params =
                vec![OwnedParam::Text(self.server.channel()), OwnedParam::Text(number.to_string())];
            last.push(PendingStatement {
                params,
                ..PendingStatement::plain("SELECT pg_notify(?1, ?2)")
            });
        }
        // Both travel with the COMMIT, so that they cost no round trip.
        last.extend(self.client.requests(&self.server));
        last.push(PendingStatement::plain("COMMIT"));
        match self.send(last) {
            Ok(_) => {
                self.client.committed();
                self.state.set(TransactionState::Idle);
                Ok(())
            }
            Err(failure) if self.wire.borrow().is_none() => self.resolve_lost_commit(failure),
            Err(failure) => Err(failure),
        }
    }

    fn roll_back(&self) -> Result<(), StoreError> {
        self.waiting.borrow_mut().clear();
        let state = self.state.replace(TransactionState::Idle);
        if state == TransactionState::Idle || self.wire.borrow().is_none() {
            return Ok(());
        }
        let answer = self.with_wire(|wire| wire.batch("ROLLBACK", None))?;
        answer.map(drop).map_err(|error| {
            // The state of this connection is unknown, so the next transaction begins on a new one.
            *self.wire.borrow_mut() = None;
            lost(&self.server, self.is_reading.get(), error)
        })
    }

    fn set_savepoint(&self) -> Result<(), StoreError> {
        let mut waiting = self.waiting.borrow_mut();
        self.savepoint.set(Some(waiting.len()));
        waiting.push(PendingStatement::plain("SAVEPOINT job"));
        Ok(())
    }

    fn undo_to_savepoint(&self) -> Result<(), StoreError> {
        if self.state.get() == TransactionState::Failed {
            // They would only be refused.
            self.waiting.borrow_mut().clear();
        } else if self.flush().is_err() && self.state.get() == TransactionState::Lost {
            return Err(StoreError::NotCommitted("the transaction was lost".to_owned()));
        }
        // Requests are prepared before the first of them runs, and in a transaction that it has given
        // up the server prepares nothing but the way out.
        let undo = ["ROLLBACK TO job", "RELEASE job"]
            .map(|sql| PendingStatement { steady: false, ..PendingStatement::plain(sql) });
        self.send(undo.into())?;
        self.state.set(TransactionState::Open);
        Ok(())
    }

    fn release_savepoint(&self) -> Result<(), StoreError> {
        self.waiting.borrow_mut().push(PendingStatement::plain("RELEASE job"));
        Ok(())
    }

    fn in_transaction(&self) -> bool {
        matches!(self.state.get(), TransactionState::Open | TransactionState::Failed)
    }

    fn raise_fence(&self, tables: &[&str], reason: &str) -> Result<(), StoreError> {
        let mut sql = format!(
            "CREATE FUNCTION fence() RETURNS trigger LANGUAGE plpgsql AS $fence$ BEGIN \
             RAISE EXCEPTION USING ERRCODE = '{FENCED}', MESSAGE = '{}'; END $fence$;",
            reason.replace('\'', "''")
        );
        for table in tables {
            sql += "CREATE TRIGGER fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ";
            sql += table;
            sql += " FOR EACH STATEMENT EXECUTE FUNCTION fence();";
        }
        self.batch(&sql, "close the store to writers")
    }

    fn lower_fence(&self, _tables: &[&str]) -> Result<(), StoreError> {
        self.batch("DROP FUNCTION IF EXISTS fence() CASCADE", "open the store to writers")
    }
}

pub(super) fn last_row(answer: Vec<SimpleQueryMessage>) -> Option<SimpleQueryRow> {
    answer.into_iter().rev().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })
}
