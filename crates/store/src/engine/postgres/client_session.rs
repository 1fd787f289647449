//! Finding out whether a transaction was committed when the answer to its COMMIT is lost.
//!
//! Every write transaction sets a nonce in the row of its client session. After a lost answer a new connection takes the
//! town's lock, which the old transaction holds to its end, and then looks at that row. The number of the transaction would
//! not do: a server that crashed gives numbers out again that it had not written down.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use gt_core::Uid;
use tokio_postgres::SimpleQueryRow;
use tokio_postgres::error::SqlState;

use super::address::PostgresAddress;
use super::connection::last_row;
use super::values::OwnedParam;
use super::wire::{ConnectAttempt, PendingStatement, Wire};

/// When the transaction began, or now outside of one, by the clock of the server.
pub(super) const NOW_MICROS: &str = "(extract(epoch FROM now()) * 1000000)::bigint";

const SET_NONCE: &str = "INSERT INTO client_sessions (id, nonce, kept_until) \
    VALUES (?1, ?2, (extract(epoch FROM now()) * 1000000)::bigint * 1000 + ?3) \
    ON CONFLICT (id) DO UPDATE SET nonce = excluded.nonce, kept_until = excluded.kept_until";
const DELETE_EXPIRED: &str = "DELETE FROM client_sessions \
    WHERE kept_until < (extract(epoch FROM now()) * 1000000)::bigint * 1000";

/// How long the row of a session that has ended stays, beyond the longest time in which it is asked for.
const ROW_KEPT_EXTRA: Duration = Duration::from_hours(1);
/// Between two attempts at a server that is not ready yet.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// The first wait for the lock; the next ones are longer.
const LOCK_WAIT_FIRST: Duration = Duration::from_secs(1);

/// A client as the database knows it: one for each connection that writes.
#[derive(Debug)]
pub(super) struct ClientSession {
    id: String,
    /// Of the transaction that is under way.
    nonce: RefCell<String>,
    begun: Cell<Option<ServerTransaction>>,
    /// Whether expired rows of others were already deleted.
    has_tidied: Cell<bool>,
}

/// A transaction as the server shows it to others.
#[derive(Debug, Clone, Copy)]
struct ServerTransaction {
    backend: i64,
    at_micros: i64,
}

/// The outcome of a transaction whose COMMIT was not answered.
#[derive(Debug)]
pub(super) enum CommitOutcome {
    /// It was made; the connection that found out.
    Committed(Box<Wire>),
    NotCommitted,
    Unknown,
}

/// The result of one query of the database.
#[derive(Debug, PartialEq, Eq)]
enum CommitCheck {
    Committed,
    NotCommitted,
    /// The row may have expired since.
    Expired,
    /// A transaction holds the lock, perhaps the lost one.
    Locked,
    /// The server is a standby, or went away again.
    NotReady,
}

impl ClientSession {
    pub(super) fn new() -> Self {
        Self {
            id: Uid::fresh().to_string(),
            nonce: RefCell::default(),
            begun: Cell::new(None),
            has_tidied: Cell::new(false),
        }
    }

    /// A write transaction begins; `row` has the server's process and [`NOW_MICROS`].
    pub(super) fn begin(&self, row: Option<&SimpleQueryRow>) {
        let number = |column: usize| row?.get(column)?.parse().ok();
        let begun = number(0).zip(number(1));
        self.begun.set(begun.map(|(backend, at_micros)| ServerTransaction { backend, at_micros }));
        *self.nonce.borrow_mut() = Uid::fresh().to_string();
    }

    /// The statements of this session, to be sent just before COMMIT.
    pub(super) fn requests(&self, server: &PostgresAddress) -> Vec<PendingStatement> {
        let params = vec![
            OwnedParam::Text(self.id.clone()),
            OwnedParam::Text(self.nonce.borrow().clone()),
            OwnedParam::Int(i64::try_from(kept(server).as_nanos()).unwrap_or(i64::MAX / 2)),
        ];
        let set_nonce = PendingStatement { params, ..PendingStatement::plain(SET_NONCE) };
        if self.has_tidied.get() {
            return vec![set_nonce];
        }
        vec![
            PendingStatement { steady: false, ..PendingStatement::plain(DELETE_EXPIRED) },
            set_nonce,
        ]
    }

    /// The transaction is committed.
    pub(super) fn committed(&self) {
        self.has_tidied.set(true);
    }

    /// Finds out the outcome of the transaction. Waits for the server as long as for any connection, and then for
    /// the lock as long as any writer.
    pub(super) fn outcome_of_lost_commit(&self, server: &PostgresAddress) -> CommitOutcome {
        let Some(begun) = self.begun.get() else { return CommitOutcome::Unknown };
        let start = Instant::now();
        let mut connected_at = None;
        let mut lock_wait = LOCK_WAIT_FIRST;
        loop {
            let Ok(wire) = Wire::connect(server, ConnectAttempt::Again) else {
                return CommitOutcome::Unknown;
            };
            let waited = connected_at.get_or_insert_with(Instant::now).elapsed();
            let left = server.lock_timeout.saturating_sub(waited).max(RETRY_INTERVAL);
            end_idle_transaction(&wire, begun);
            match self.look(&wire, server, begun, lock_wait.min(left)) {
                CommitCheck::Committed => return CommitOutcome::Committed(Box::new(wire)),
                CommitCheck::NotCommitted => return CommitOutcome::NotCommitted,
                CommitCheck::Locked if left > RETRY_INTERVAL => lock_wait *= 2,
                CommitCheck::NotReady if start.elapsed() < server.reconnect_wait => {
                    connected_at = None;
                    std::thread::sleep(RETRY_INTERVAL);
                }
                CommitCheck::Locked | CommitCheck::NotReady | CommitCheck::Expired => {
                    return CommitOutcome::Unknown;
                }
            }
        }
    }

    fn look(
        &self,
        wire: &Wire,
        server: &PostgresAddress,
        begun: ServerTransaction,
        lock_wait: Duration,
    ) -> CommitCheck {
        let sql = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL search_path = {schema}; \
             SET LOCAL lock_timeout = {lock_ms}; {take_lock}; \
             SELECT pg_is_in_recovery(), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
             (SELECT nonce FROM client_sessions WHERE id = '{id}'); COMMIT",
            schema = server.schema,
            lock_ms = lock_wait.as_millis(),
            take_lock = server.take_town_lock(),
            id = self.id,
        );
        let row = match wire.batch(&sql, None) {
            Ok(answer) => last_row(answer),
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                return CommitCheck::Locked;
            }
            Err(_) => return CommitCheck::NotReady,
        };
        let Some(row) = row.filter(|row| row.get(0) == Some("f")) else {
            return CommitCheck::NotReady;
        };
        let now_micros = row.get(1).and_then(|text| text.parse().ok());
        let age = now_micros.and_then(|now: i64| u64::try_from(now - begun.at_micros).ok());
        judge(row.get(2), &self.nonce.borrow(), age.map(Duration::from_micros), kept(server))
    }
}

/// How long the row of a session stays after its last transaction.
fn kept(server: &PostgresAddress) -> Duration {
    ROW_KEPT_EXTRA + server.reconnect_wait + server.lock_timeout
}

/// Whether a transaction was committed that set `nonce`, where the row of its session now has `found`. The row of an old
/// transaction may be deleted: of a client that slept for hours nothing can be told from a row that is not there.
fn judge(found: Option<&str>, nonce: &str, age: Option<Duration>, kept: Duration) -> CommitCheck {
    if found == Some(nonce) {
        CommitCheck::Committed
    } else if found.is_some() || age.is_some_and(|age| age < kept) {
        CommitCheck::NotCommitted
    } else {
        CommitCheck::Expired
    }
}

/// Ends the lost transaction if the server still waits for its COMMIT, which never comes.
fn end_idle_transaction(wire: &Wire, begun: ServerTransaction) {
    let ServerTransaction { backend, at_micros } = begun;
    let sql = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = {backend} \
         AND datname = current_database() AND state LIKE 'idle in transaction%' \
         AND (extract(epoch FROM xact_start) * 1000000)::bigint = {at_micros}"
    );
    // Where this is not permitted, `idle_in_transaction_session_timeout` ends it.
    let _ = wire.batch(&sql, None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_row_proves_nothing_once_it_may_have_expired() {
        let kept = Duration::from_secs(10);
        let judge = |found, seconds: Option<u64>| {
            judge(found, "mine", seconds.map(Duration::from_secs), kept)
        };
        assert_eq!(judge(Some("mine"), Some(1)), CommitCheck::Committed);
        assert_eq!(judge(Some("mine"), None), CommitCheck::Committed);
        assert_eq!(judge(Some("mine"), Some(99)), CommitCheck::Committed);
        assert_eq!(judge(Some("earlier"), Some(99)), CommitCheck::NotCommitted);
        assert_eq!(judge(None, Some(9)), CommitCheck::NotCommitted);
        assert_eq!(judge(None, Some(10)), CommitCheck::Expired);
        // The clock of the server went backwards.
        assert_eq!(judge(None, None), CommitCheck::Expired);
    }
}
