//! The handles of a caller inside a transaction.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{ControlFlow, Deref};

use gt_core::{BeadId, EventPayload, NewEvent, Timestamp};

use crate::engine::{Param, Row, SqlSession, TransactionConnection};
use crate::verbs::{TouchedContainer, WorkerGuard};
use crate::{Authorship, StoreError};

/// The reading verbs, over one consistent state of the store.
pub struct Reader<'a> {
    session: &'a dyn SqlSession,
    /// A cache of answers; none where each question is asked once.
    known: Option<&'a TransactionCache>,
}

/// A cache of answers within one transaction; it stays valid because no other process writes meanwhile. Verbs
/// that change a cached fact update it, and a rollback empties it.
#[derive(Debug, Default)]
pub(crate) struct TransactionCache {
    prefixes: RefCell<HashMap<String, i64>>,
    vacancy: RefCell<Option<UnusedId>>,
    /// Beads whose contexts are evaluated before the commit, and the time of the last change. A bead whose change
    /// was undone may stay among them.
    marked: RefCell<Option<(BTreeSet<BeadId>, Timestamp)>>,
    /// Beads whose contexts were evaluated within the current job: if the job is undone, so is what was written about
    /// them, and they are evaluated again.
    evaluated: RefCell<Vec<(BeadId, Timestamp)>>,
}

/// An unused id.
#[derive(Debug, Clone)]
pub(crate) struct UnusedId {
    pub(crate) id: BeadId,
    /// Some edge points to it already.
    pub(crate) awaited: bool,
}

impl TransactionCache {
    /// How many ids of a pool there are; `ask` finds out.
    pub(crate) fn ids_counted(
        &self,
        pool: &str,
        ask: impl FnOnce() -> Result<i64, StoreError>,
    ) -> Result<i64, StoreError> {
        if let Some(count) = self.prefixes.borrow().get(pool) {
            return Ok(*count);
        }
        let count = ask()?;
        self.prefixes.borrow_mut().insert(pool.to_owned(), count);
        Ok(count)
    }

    /// So many ids of a pool came or went.
    pub(crate) fn count_ids(&self, pool: &str, difference: i64) {
        if let Some(count) = self.prefixes.borrow_mut().get_mut(pool) {
            *count += difference;
        }
    }

    /// Remembers the facts about an id.
    pub(crate) fn found_vacant(&self, vacancy: UnusedId) {
        *self.vacancy.borrow_mut() = Some(vacancy);
    }

    /// The known facts about `id`, if nothing was written since.
    pub(crate) fn vacancy_of(&self, id: &BeadId) -> Option<UnusedId> {
        self.vacancy.borrow().clone().filter(|vacancy| vacancy.id == *id)
    }

    /// A fact about this bead has changed.
    pub(crate) fn mark(&self, bead: &BeadId, at: Timestamp) {
        let mut marked = self.marked.borrow_mut();
        let (beads, last) = marked.get_or_insert_with(|| (BTreeSet::new(), at));
        beads.insert(bead.clone());
        *last = at;
    }

    /// The beads about which a fact has changed, and when; afterwards there are none.
    pub(crate) fn take_marked(&self) -> Option<(Vec<BeadId>, Timestamp)> {
        let (beads, at) = self.marked.borrow_mut().take()?;
        self.evaluated.borrow_mut().extend(beads.iter().map(|bead| (bead.clone(), at)));
        Some((beads.into_iter().collect(), at))
    }

    /// A job begins: what was evaluated before it stays if the job is undone.
    fn begin_job(&self) {
        self.evaluated.borrow_mut().clear();
    }

    fn something_was_written(&self) {
        *self.vacancy.borrow_mut() = None;
    }

    /// The changes of the current job are undone.
    fn forget(&self) {
        for (bead, at) in self.evaluated.take() {
            self.mark(&bead, at);
        }
        self.prefixes.borrow_mut().clear();
        self.something_was_written();
    }
}

/// The writing verbs, and the reading ones, which see the writes.
///
/// Every verb writes the events of its changes; they get their numbers when the work succeeds.
pub struct Writer<'a> {
    reader: Reader<'a>,
    by: &'a Authorship,
    events: Vec<NewEvent>,
    /// The number of the last event that is written.
    last_event: i64,
    notices: u64,
    /// The containers whose members this work has changed. The layer above decides about them before the commit.
    touched: BTreeMap<BeadId, TouchedContainer>,
    /// Checks the writes of a worker.
    guard: Option<WorkerGuard>,
}

thread_local! {
    static STATEMENTS_RUN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How many statements this thread has run, for tests that bound the cost of an operation.
pub fn statements_run_by_this_thread() -> u64 {
    STATEMENTS_RUN.get()
}

fn count_statement() {
    STATEMENTS_RUN.set(STATEMENTS_RUN.get() + 1);
}

impl<'a> Reader<'a> {
    pub(crate) fn new(session: &'a dyn SqlSession) -> Self {
        Self { session, known: None }
    }

    pub(crate) fn known(&self) -> Option<&TransactionCache> {
        self.known
    }

    /// The connection, for what is no statement of ours.
    pub(crate) fn session(&self) -> &dyn SqlSession {
        self.session
    }

    /// Hands every row of an answer to `each`, until that stops; for answers that may be as large as
    /// the store, or that `each` rarely wants to the end.
    pub(crate) fn scan(
        &self,
        sql: &str,
        params: &[Param<'_>],
        mut each: impl FnMut(&dyn Row) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        count_statement();
        self.session.stream(sql, params, &mut each)
    }

    /// Every row of an answer.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        params: &[Param<'_>],
        read: impl Fn(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        count_statement();
        self.session.query(sql, params, &mut |row| {
            found.push(read(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// The first row of an answer. Statements that could have many say `LIMIT 1` themselves.
    pub(crate) fn first<T>(
        &self,
        sql: &str,
        params: &[Param<'_>],
        read: impl Fn(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut found = None;
        count_statement();
        self.session.query(sql, params, &mut |row| {
            found = Some(read(row)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Whether there is any row.
    pub(crate) fn any(&self, sql: &str, params: &[Param<'_>]) -> Result<bool, StoreError> {
        Ok(self.first(sql, params, |_| Ok(()))?.is_some())
    }

    /// The number in the first column of the first row.
    pub(crate) fn number(&self, sql: &str, params: &[Param<'_>]) -> Result<i64, StoreError> {
        Ok(self.first(sql, params, |row| row.int(0))?.unwrap_or(0))
    }

    /// Writes the consequences of facts that this transaction has changed; no right of a worker limits that.
    pub(crate) fn apply_derived(&self, sql: &str, params: &[Param<'_>]) -> Result<(), StoreError> {
        count_statement();
        self.session.apply(sql, params)
    }

    /// The time that leases are counted by: that of the store if it gives one, else `callers`.
    pub fn lease_time(&self, callers: Timestamp) -> Timestamp {
        self.store_clock().unwrap_or(callers)
    }

    /// When this transaction began by the clock of the store, if that says so.
    pub(crate) fn store_clock(&self) -> Option<Timestamp> {
        self.session.clock()
    }

    /// Says whether the engine understands a statement; for the test that prepares all of them.
    pub fn prepare(&self, sql: &str) -> Result<(), StoreError> {
        self.session.prepare(sql)
    }
}

impl<'a> Deref for Writer<'a> {
    type Target = Reader<'a>;

    fn deref(&self) -> &Reader<'a> {
        &self.reader
    }
}

impl Writer<'_> {
    /// The time of this write.
    pub fn now(&self) -> Timestamp {
        self.by.at
    }

    /// The time that leases are counted by.
    pub fn lease_now(&self) -> Timestamp {
        self.reader.lease_time(self.by.at)
    }

    /// The actor of this write.
    pub fn actor(&self) -> &str {
        &self.by.actor
    }

    pub(crate) fn guard(&self) -> Option<&WorkerGuard> {
        self.guard.as_ref()
    }

    pub(crate) fn guard_mut(&mut self) -> Option<&mut WorkerGuard> {
        self.guard.as_mut()
    }

    fn check_statement(&self, sql: &str) -> Result<(), StoreError> {
        self.guard.as_ref().map_or(Ok(()), |guard| guard.check_statement(sql))
    }

    fn something_is_written(&self) {
        if let Some(known) = self.known() {
            known.something_was_written();
        }
    }

    pub(crate) fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        self.check_statement(sql)?;
        self.something_is_written();
        count_statement();
        self.reader.session.execute(sql, params)
    }

    /// Lets the database look again at how its rows are distributed.
    pub(crate) fn refresh_statistics(&self) -> Result<(), StoreError> {
        self.reader.session.refresh_statistics()
    }

    /// Runs a statement that cannot be refused and whose answer is not needed.
    pub(crate) fn apply(&self, sql: &str, params: &[Param<'_>]) -> Result<(), StoreError> {
        self.check_statement(sql)?;
        self.something_is_written();
        count_statement();
        self.reader.session.apply(sql, params)
    }

    /// The changes of this transaction so far, as events; the earliest are missing when they are
    /// too many to wait in memory.
    pub fn recorded(&self) -> &[NewEvent] {
        &self.events
    }

    /// How many notices this work has written so far.
    pub fn notices_written(&self) -> u64 {
        self.notices
    }

    /// The next container whose members this work has changed, with the counts as they are now. It is returned once, and
    /// again if its members change after that.
    pub fn take_touched_container(&mut self) -> Option<TouchedContainer> {
        self.touched.pop_first().map(|(_, touched)| touched)
    }

    pub(crate) fn note_touched(&mut self, touched: TouchedContainer) {
        let less_before = self.touched.get(&touched.id).is_some_and(|before| before.less_is_done);
        let less_is_done = touched.less_is_done || less_before;
        self.touched.insert(touched.id.clone(), TouchedContainer { less_is_done, ..touched });
    }

    pub(crate) fn note_notice(&mut self) {
        self.notices += 1;
    }

    pub(crate) fn recorded_mut(&mut self) -> &mut [NewEvent] {
        &mut self.events
    }

    pub(crate) fn record(&mut self, event: NewEvent) {
        self.events.push(event);
    }

    /// Records an event that is about no bead, rig or run.
    pub(crate) fn record_of_town(&mut self, payload: EventPayload) {
        self.record(NewEvent { bead: None, rig: None, run: None, payload });
    }

    /// Writes the events so far if they have become many, for work that has more than fit in memory.
    pub(crate) fn write_many_events(&mut self) -> Result<(), StoreError> {
        if self.events.len() < EVENTS_WAITING_MAX {
            return Ok(());
        }
        self.write_events()
    }

    fn write_events(&mut self) -> Result<(), StoreError> {
        self.check_worker()?;
        if let Some(guard) = &mut self.guard {
            guard.forget_checked();
        }
        for event in std::mem::take(&mut self.events) {
            self.insert_event(&event)?;
        }
        Ok(())
    }

    fn insert_event(&mut self, event: &NewEvent) -> Result<(), StoreError> {
        self.last_event += 1;
        let run = event.run.as_ref().map(ToString::to_string);
        let (kind, details) = (event.kind(), event.payload.to_json()?);
        let params = [
            self.last_event.into(),
            self.by.at.into(),
            kind.as_str().into(),
            event.bead.as_ref().into(),
            event.rig.as_ref().map(gt_core::RigSlug::as_str).into(),
            run.as_deref().into(),
            self.by.actor.as_str().into(),
            details.as_str().into(),
        ];
        self.apply(INSERT_EVENT, &params)
    }
}

/// A read transaction.
pub(crate) struct ReadTransaction<'c, L: TransactionConnection>(&'c L);

impl<'c, L: TransactionConnection> ReadTransaction<'c, L> {
    pub(crate) fn begin(link: &'c L) -> Result<Self, StoreError> {
        link.begin_reading()?;
        Ok(Self(link))
    }

    pub(crate) fn run<T, E>(self, work: impl FnOnce(&Reader<'_>) -> Result<T, E>) -> Result<T, E> {
        work(&Reader::new(self.0))
    }
}

impl<L: TransactionConnection> Drop for ReadTransaction<'_, L> {
    fn drop(&mut self) {
        // Nothing was written, so there is nothing to lose if this fails.
        let _ = self.0.roll_back();
    }
}

/// A write transaction that carries one or more jobs.
pub(crate) struct Group<'c> {
    link: &'c dyn TransactionConnection,
    known: TransactionCache,
    /// The number of the last event, those of this group included.
    last_event: i64,
    first_event: i64,
    finished: bool,
}

/// How many events wait in memory before they are written, where there may be very many.
const EVENTS_WAITING_MAX: usize = 512;

const LAST_EVENT: &str = "SELECT value FROM counters WHERE name = 'event'";
const MAX_EVENT: &str = "SELECT COALESCE(MAX(number), 0) FROM events";
const SET_LAST_EVENT: &str = "UPDATE counters SET value = ?1 WHERE name = 'event'";
const INSERT_EVENT: &str = "INSERT INTO events (number, at, type, bead, rig, run, actor, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// The statements of this module.
pub(crate) const STATEMENTS: &[&str] = &[LAST_EVENT, MAX_EVENT, SET_LAST_EVENT, INSERT_EVENT];

impl<'c> Group<'c> {
    pub(crate) fn begin(link: &'c impl TransactionConnection) -> Result<Self, StoreError> {
        link.begin_writing()?;
        Self::begun(link)
    }

    /// The same on a connection whose transaction has begun.
    pub(crate) fn begun(link: &'c impl TransactionConnection) -> Result<Self, StoreError> {
        let known = TransactionCache::default();
        let mut group = Self { link, known, last_event: 0, first_event: 0, finished: false };
        group.last_event = group.reader().number(LAST_EVENT, &[])?;
        group.first_event = group.last_event;
        Ok(group)
    }

    /// The connection, for work on the store as a whole.
    pub(crate) fn link(&self) -> &'c dyn TransactionConnection {
        self.link
    }

    fn reader(&self) -> Reader<'_> {
        Reader { known: Some(&self.known), ..Reader::new(self.link) }
    }

    /// Runs one job. If it fails, the whole group must be abandoned.
    pub(crate) fn run<T, E: From<StoreError>>(
        &mut self,
        by: &Authorship,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let reader = self.reader();
        let guard = by.worker.as_ref().map(|worker| reader.guard(worker)).transpose()?;
        let last_event = self.last_event;
        let (events, touched) = (Vec::new(), BTreeMap::new());
        let mut writer = Writer { reader, by, events, last_event, notices: 0, touched, guard };
        let value = work(&mut writer)?;
        self.check_open()?;
        writer.write_events()?;
        self.last_event = writer.last_event;
        Ok(value)
    }

    /// Runs one job of several. If it fails, only its own changes are undone.
    pub(crate) fn run_apart<T, E: From<StoreError>>(
        &mut self,
        by: &Authorship,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.check_open()?;
        self.link.set_savepoint()?;
        self.known.begin_job();
        let result = self.run(by, work);
        if !self.link.in_transaction() {
            return result;
        }
        if result.is_err() {
            self.known.forget();
            self.link.undo_to_savepoint()?;
        } else {
            self.link.release_savepoint()?;
        }
        result
    }

    /// Undoes the job that left the group in the middle of it.
    pub(crate) fn undo_job(&mut self) -> Result<(), StoreError> {
        self.check_open()?;
        self.known.forget();
        self.link.undo_to_savepoint()?;
        self.last_event = self.reader().number(MAX_EVENT, &[])?.max(self.first_event);
        Ok(())
    }

    /// A database that cannot write may give up the whole transaction by itself. A statement
    /// after that would be committed at once, on its own.
    fn check_open(&self) -> Result<(), StoreError> {
        if self.link.in_transaction() {
            Ok(())
        } else {
            let why = "the database gave up the transaction it was part of";
            Err(StoreError::NotCommitted(why.to_owned()))
        }
    }

    pub(crate) fn commit(mut self) -> Result<(), StoreError> {
        self.check_open()?;
        self.reader().write_waits()?;
        let news = (self.last_event != self.first_event).then_some(self.last_event);
        if let Some(number) = news {
            self.link.apply(SET_LAST_EVENT, &[number.into()])?;
        }
        self.link.commit(news)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if !self.finished {
            // An error or a panic: the database may already have rolled back by itself.
            let _ = self.link.roll_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::SettingScope;
    use crate::engine::schema::SQLITE;
    use crate::engine::sqlite::{memory_connection, migrate};

    fn author() -> Authorship {
        Authorship { actor: "tester".to_owned(), at: Timestamp::from_nanos(1), worker: None }
    }

    fn put(group: &mut Group<'_>, key: &str, value: &str) -> Result<bool, StoreError> {
        group.run_apart(&author(), |writer| {
            writer.put_setting(SettingScope::Beads, key, Some(value))
        })
    }

    #[test]
    fn a_group_that_lost_its_transaction_writes_nothing_more() {
        // Given a group with one job done, on a disk that is about to be full,
        let connection = memory_connection(crate::LeaseClock::Caller).unwrap();
        migrate(&connection, Path::new(":memory:"), SQLITE, author().at).unwrap();
        let mut group = Group::begin(&connection).unwrap();
        put(&mut group, "before", "x").unwrap();
        connection.batch("PRAGMA max_page_count = 1", "fill the disk").unwrap();

        // when a job finds no room, and another would need none,
        let full = put(&mut group, "large", &"x".repeat(100_000));
        let after = put(&mut group, "after", "x");

        // then all of them are refused, and nothing of the group is left.
        assert!(matches!(full, Err(StoreError::Full)), "{full:?}");
        assert!(matches!(after, Err(StoreError::NotCommitted(_))));
        assert!(matches!(group.commit(), Err(StoreError::NotCommitted(_))));
        let reader = Reader::new(&connection);
        assert_eq!(reader.settings(SettingScope::Beads).unwrap(), []);
        assert_eq!(reader.last_event_number().unwrap(), 0);
        assert_eq!(reader.differences().unwrap(), Vec::<String>::new());
    }
}
