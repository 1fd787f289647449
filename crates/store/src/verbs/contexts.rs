//! Contexts: scheduled dispatches of beads.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use gt_core::decide::WaitClass;
use gt_core::event::{ContextEnded, ContextNamed, ContextOpened};
use gt_core::schedule::{
    CloseReason, Context, ContextClosed, ContextId, ContextOrigin, SlingParameters, WorkerPlace,
};
use gt_core::{BeadId, EventPayload, NewEvent, Priority, RigSlug, Timestamp};

use super::beads::id_from;
use super::find::contains;
use super::hydrate::{IDS_PER_STATEMENT, placeholders};
use super::parameters::{parameters_from, parameters_text};
use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

/// The columns of a context, in the order [`context_from`] reads them.
macro_rules! context_columns {
    () => {
        "number, id, bead, rig, place, account, gated, forced, priority, origin, parameters, \
         enqueued_at, enqueued_by, waiting_since, next_attempt_at, failures, last_failure, attempts, \
         starting, closed_at, closed_by, close_reason, convoys"
    };
}
pub(super) use context_columns;

/// The contexts that the store proposes: the line.
macro_rules! in_line {
    () => {
        "closed_at IS NULL AND starting = 0 AND waits = 'nothing' AND due_at IS NULL"
    };
}
pub(super) use in_line;

/// The columns that tell lanes apart, in the order of the index over the line.
macro_rules! lane_columns {
    () => {
        "rig, place, account, gated, priority, convoys"
    };
}

/// A column of the lane after the lane `l`. A join would be simpler, but PostgreSQL may read the whole table for each step of
/// it. SQLite uses all columns of the index only where they are compared with expressions, and begins with the equal ones:
/// a tab, which no name contains, makes the rest of the lane smaller.
macro_rules! next_lane {
    ($column:literal) => {
        concat!(
            "(SELECT ",
            $column,
            " FROM contexts WHERE ",
            in_line!(),
            " AND (",
            lane_columns!(),
            ") > (l.rig || '', l.place || '', l.account || '', l.gated + 0, l.priority + 0, l.convoys || '\t') \
             ORDER BY ",
            lane_columns!(),
            " LIMIT 1)"
        )
    };
}

statements! {
    BY_ID = concat!("SELECT ", context_columns!(), " FROM contexts WHERE id = ?1");
    BY_NUMBER = concat!("SELECT ", context_columns!(), " FROM contexts WHERE number = ?1");
    LATEST = concat!("SELECT ", context_columns!(), " FROM contexts WHERE bead = ?1 AND latest = 1");
    OF_BEAD = concat!("SELECT ", context_columns!(), " FROM contexts WHERE bead = ?1 ORDER BY number");
    OPEN_AFTER = concat!("SELECT ", context_columns!(), " FROM contexts WHERE closed_at IS NULL \
        AND number > ?1 ORDER BY number LIMIT ?2");
    FAILED = concat!("SELECT ", context_columns!(), " FROM contexts WHERE latest = 1 \
        AND close_reason IN ('circuit-broken', 'quarantined', 'invalid-context') ORDER BY number");
    CONTAINING = "SELECT id FROM contexts WHERE id LIKE ?1 ESCAPE '\\' ORDER BY id LIMIT 200";
    LINE = concat!("SELECT ", context_columns!(), " FROM contexts WHERE ", in_line!(), " \
        AND rig = ?1 AND place = ?2 AND account = ?3 AND gated = ?4 AND priority = ?5 AND convoys = ?6 \
        AND number > ?7 ORDER BY number LIMIT ?8");
    DUE = concat!("SELECT ", context_columns!(), " FROM contexts WHERE closed_at IS NULL \
        AND starting = 0 AND waits = 'nothing' AND due_at IS NOT NULL AND due_at <= ?1");
    FAR = concat!("SELECT ", context_columns!(), " FROM contexts WHERE closed_at IS NULL \
        AND starting = 0 AND waits = 'nothing' AND due_at IS NOT NULL AND next_attempt_at IS NOT NULL \
        AND next_attempt_at > ?1");
    NEXT_DUE = "SELECT MIN(due_at) FROM contexts WHERE closed_at IS NULL AND starting = 0 \
        AND waits = 'nothing' AND due_at IS NOT NULL AND due_at > ?1";
    STALE = concat!("SELECT ", context_columns!(), " FROM contexts WHERE closed_at IS NULL \
        AND starting = 0 AND waits = 'closed' ORDER BY number LIMIT ?1");
    // From the first context of a lane to the first one of the next lane: each step is a look into the index.
    LANES = concat!("WITH RECURSIVE lane (", lane_columns!(), ") AS (SELECT ", lane_columns!(), " FROM (SELECT ",
        lane_columns!(), " FROM contexts WHERE ", in_line!(), " ORDER BY ", lane_columns!(), " LIMIT 1) head \
        UNION ALL SELECT ", next_lane!("rig"), ", ", next_lane!("place"), ", ", next_lane!("account"), ", ",
        next_lane!("gated"), ", ", next_lane!("priority"), ", ", next_lane!("convoys"), " FROM lane l \
        WHERE l.rig IS NOT NULL) SELECT ", lane_columns!(), " FROM lane WHERE rig IS NOT NULL");
    COUNT_LANES = concat!("SELECT ", lane_columns!(), ", COUNT(*) FROM contexts WHERE ", in_line!(), " \
        AND bead NOT IN (SELECT id FROM beads WHERE open_blockers > 0 AND status <> 'closed') GROUP BY ", lane_columns!(), " ORDER BY ", lane_columns!());
    STACKED = concat!("SELECT ", context_columns!(), " FROM contexts WHERE ", in_line!(), " AND rig = ?1 \
        AND EXISTS (SELECT 1 FROM beads b WHERE b.id = contexts.bead AND b.open_blockers > 0) ORDER BY number");
    COUNT_QUEUED = "SELECT rig, COUNT(*) FROM contexts WHERE closed_at IS NULL AND starting = 0 \
        GROUP BY rig ORDER BY rig";
    QUEUED_ON = "SELECT COUNT(*) FROM contexts WHERE closed_at IS NULL AND starting = 0 AND account = ?1";
    LAST_NUMBER = "SELECT value FROM counters WHERE name = 'context'";
    SET_LAST_NUMBER = "UPDATE counters SET value = ?1 WHERE name = 'context'";
    LAST_WAITING = "SELECT waiting_since FROM contexts WHERE closed_at IS NULL ORDER BY number DESC LIMIT 1";
    TAKEN = "SELECT id FROM beads WHERE id >= 'hq-ctx-' AND id < 'hq-ctx.'";
    INSERT = concat!("INSERT INTO contexts (", context_columns!(), ", waits, due_at, latest) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, 0, \
        NULL, '', '', ?19, ?20, ?21, 1)");
    SET_STARTING = "UPDATE contexts SET starting = ?2 WHERE number = ?1 AND closed_at IS NULL";
    CLOSE = "UPDATE contexts SET closed_at = ?2, closed_by = ?3, close_reason = ?4, last_failure = ?5, \
        starting = 0 WHERE number = ?1 AND closed_at IS NULL";
    POSTPONE = "UPDATE contexts SET failures = ?2, last_failure = ?3, next_attempt_at = ?4, starting = 0 \
        WHERE number = ?1 AND closed_at IS NULL";
    END_WAIT = "UPDATE contexts SET next_attempt_at = NULL WHERE number = ?1 AND closed_at IS NULL";
    FORGIVE = "UPDATE contexts SET attempts = ?2, next_attempt_at = NULL WHERE number = ?1 AND closed_at IS NULL";
}

/// A dispatch to be scheduled.
#[derive(Debug, Clone)]
pub struct NewContext {
    /// The bead to work on.
    pub bead: BeadId,
    /// The rig.
    pub rig: RigSlug,
    /// The worker, if one was named.
    pub place: Option<WorkerPlace>,
    /// The account, if one was named.
    pub account: Option<String>,
    /// It waits for a cycle by hand or for the queue to be enabled.
    pub gated: bool,
    /// It was forced, although another has the bead.
    pub forced: bool,
    /// The bead's priority.
    pub priority: Priority,
    /// Its origin.
    pub origin: ContextOrigin,
    /// The parameters of the dispatch.
    pub parameters: SlingParameters,
    /// When it was scheduled, if that was elsewhere.
    pub enqueued_at: Option<Timestamp>,
    /// The actor that schedules it, if that is not the actor of the transaction.
    pub enqueued_by: Option<String>,
    /// Not to be started before this.
    pub next_attempt_at: Option<Timestamp>,
    /// How many starts failed before, elsewhere.
    pub failures: u32,
    /// How many runs the bead has had for this.
    pub attempts: u32,
}

impl NewContext {
    /// A dispatch that nothing special was said about.
    pub fn plain(bead: BeadId, rig: RigSlug, priority: Priority, origin: ContextOrigin) -> Self {
        Self {
            bead,
            rig,
            place: None,
            account: None,
            gated: false,
            forced: false,
            priority,
            origin,
            parameters: SlingParameters::default(),
            enqueued_at: None,
            enqueued_by: None,
            next_attempt_at: None,
            failures: 0,
            attempts: 0,
        }
    }
}

/// The facts that admission decides by. Contexts of one lane differ only in their numbers and in their
/// runtimes. Where a run may be placed on one of several hosts, the host belongs here too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// The rig.
    pub rig: RigSlug,
    /// The worker that was named, if one was.
    pub place: Option<WorkerPlace>,
    /// The account that was named, if one was.
    pub account: Option<String>,
    /// Whether they wait for the queue's gate.
    pub gated: bool,
    /// Their priority.
    pub priority: Priority,
    /// The convoys they are in that have a cap.
    pub convoys: Vec<BeadId>,
}

impl Lane {
    /// The lane of a context.
    pub fn of(context: &Context) -> Self {
        Self {
            rig: context.rig.clone(),
            place: context.place.clone(),
            account: context.account.clone(),
            gated: context.gated,
            priority: context.priority,
            convoys: context.convoys.clone(),
        }
    }
}

fn lane_from(row: &dyn Row) -> Result<Lane, StoreError> {
    Ok(Lane {
        rig: RigSlug::trusted(row.text(0)?.to_owned()),
        place: unless_empty(row.text(1)?).map(WorkerPlace::trusted),
        account: unless_empty(row.text(2)?),
        gated: row.flag(3)?,
        priority: Priority::new(row.int(4)?)?,
        convoys: convoys_from(row.text(5)?),
    })
}

impl Reader<'_> {
    /// The context shown under this name.
    pub fn context(&self, id: &str) -> Result<Option<Context>, StoreError> {
        self.first(BY_ID, &[id.into()], context_from)
    }

    /// Those of these contexts that are there, in any order.
    pub fn contexts_named(&self, ids: &[BeadId]) -> Result<Vec<Context>, StoreError> {
        let mut found = Vec::new();
        for page in ids.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let columns = context_columns!();
            let sql = format!("SELECT {columns} FROM contexts WHERE id IN ({list})");
            found.extend(self.rows(&sql, &params, context_from)?);
        }
        Ok(found)
    }

    /// Names of contexts that contain `text`, at most 200.
    pub fn context_ids_containing(&self, text: &str) -> Result<Vec<BeadId>, StoreError> {
        self.rows(CONTAINING, &[(&contains(text)).into()], |row| id_from(row, 0))
    }

    /// The context with this number.
    pub fn context_by_number(&self, number: u64) -> Result<Option<Context>, StoreError> {
        self.first(BY_NUMBER, &[as_int(number).into()], context_from)
    }

    /// The last context of a bead, open or closed.
    pub fn latest_context(&self, bead: &BeadId) -> Result<Option<Context>, StoreError> {
        self.first(LATEST, &[bead.into()], context_from)
    }

    /// The open context of a bead.
    pub fn open_context(&self, bead: &BeadId) -> Result<Option<Context>, StoreError> {
        Ok(self.latest_context(bead)?.filter(|context| context.closed.is_none()))
    }

    /// The open contexts of these beads.
    pub fn open_contexts_of(
        &self,
        beads: &[BeadId],
    ) -> Result<HashMap<BeadId, Context>, StoreError> {
        let mut found = HashMap::new();
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let columns = context_columns!();
            let sql = format!(
                "SELECT {columns} FROM contexts WHERE bead IN ({list}) AND latest = 1 \
                 AND closed_at IS NULL"
            );
            let open = self.rows(&sql, &params, contexts_from())?;
            found.extend(open.into_iter().map(|context| (context.bead.clone(), context)));
        }
        Ok(found)
    }

    /// Every context of a bead, oldest first.
    pub fn contexts_of(&self, bead: &BeadId) -> Result<Vec<Context>, StoreError> {
        self.rows(OF_BEAD, &[bead.into()], context_from)
    }

    /// Open contexts after this number, in the order of their numbers.
    pub fn open_contexts_after(
        &self,
        number: u64,
        limit: usize,
    ) -> Result<Vec<Context>, StoreError> {
        let params = [as_int(number).into(), i64::try_from(limit).unwrap_or(i64::MAX).into()];
        self.rows(OPEN_AFTER, &params, contexts_from())
    }

    /// Every open context, in the order of their numbers.
    pub fn open_contexts(&self) -> Result<Vec<Context>, StoreError> {
        self.open_contexts_after(0, usize::MAX)
    }

    /// The last contexts of beads that could not be started and wait for a person.
    pub fn failed_contexts(&self) -> Result<Vec<Context>, StoreError> {
        self.rows(FAILED, &[], context_from)
    }

    /// The lanes of the line. It costs as much as there are lanes, however many contexts stand in them.
    pub fn lanes(&self) -> Result<Vec<Lane>, StoreError> {
        self.write_waits()?;
        self.rows(LANES, &[], lane_from)
    }

    /// The contexts in line of a rig that could begin from accepted commits of their blockers.
    pub fn stacked_contexts(&self, rig: &RigSlug) -> Result<Vec<Context>, StoreError> {
        self.write_waits()?;
        self.rows(STACKED, &[rig.as_str().into()], contexts_from())
    }

    /// How many contexts stand in each lane of the line. Contexts whose date has passed since the last cycle are not among
    /// them, nor those that could begin from accepted commits of their blockers ([`Self::stacked_contexts`]). It costs as much as there are contexts in
    /// line.
    pub fn count_lanes(&self) -> Result<Vec<(Lane, u64)>, StoreError> {
        self.write_waits()?;
        self.rows(COUNT_LANES, &[], |row| Ok((lane_from(row)?, count(row.int(6)?))))
    }

    /// How many contexts wait in each rig, whether they stand in line or not.
    pub fn count_queued(&self) -> Result<Vec<(RigSlug, u64)>, StoreError> {
        self.rows(COUNT_QUEUED, &[], |row| {
            Ok((RigSlug::trusted(row.text(0)?.to_owned()), count(row.int(1)?)))
        })
    }

    /// How many contexts wait that are charged to an account.
    pub fn count_queued_on(&self, account: &str) -> Result<u64, StoreError> {
        Ok(count(self.number(QUEUED_ON, &[account.into()])?))
    }

    /// The next contexts of a lane, in line after `number`.
    pub fn lane_after(
        &self,
        lane: &Lane,
        number: u64,
        limit: usize,
    ) -> Result<Vec<Context>, StoreError> {
        self.write_waits()?;
        let params = [
            lane.rig.as_str().into(),
            lane.place.as_ref().map_or("", WorkerPlace::as_str).into(),
            lane.account.as_deref().unwrap_or_default().into(),
            lane.gated.into(),
            lane.priority.number().into(),
            Param::Text(&convoys_text(&lane.convoys)),
            as_int(number).into(),
            i64::try_from(limit).unwrap_or(i64::MAX).into(),
        ];
        self.rows(LINE, &params, context_from)
    }

    /// Contexts whose date has passed, and that no cycle has let into the line yet. `far` is where a date is so far off that
    /// only a clock that jumped can have set it.
    pub fn contexts_due(&self, now: Timestamp, far: Timestamp) -> Result<Vec<Context>, StoreError> {
        self.write_waits()?;
        let mut due = self.rows(DUE, &[now.into()], context_from)?;
        due.extend(self.rows(FAR, &[far.into()], context_from)?);
        due.sort_by_key(|context| context.number);
        due.dedup_by_key(|context| context.number);
        Ok(due)
    }

    /// When the next context may join the line by time alone.
    pub fn next_context_due(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        self.write_waits()?;
        let due = self.first(NEXT_DUE, &[now.into()], |row| row.int_or_null(0))?;
        Ok(due.flatten().map(Timestamp::from_nanos))
    }

    /// Open contexts whose bead is closed.
    pub fn stale_contexts(&self, limit: usize) -> Result<Vec<Context>, StoreError> {
        self.write_waits()?;
        self.rows(STALE, &[i64::try_from(limit).unwrap_or(i64::MAX).into()], context_from)
    }
}

impl Writer<'_> {
    /// Schedules each of these. None of the beads has an open context. A bead stays with the account of its last run,
    /// as long as that is there, unless another one is named.
    pub fn insert_contexts(&mut self, new: Vec<NewContext>) -> Result<Vec<Context>, StoreError> {
        let before = count(self.number(LAST_NUMBER, &[])?);
        // Names that came with an import stay with the beads that had them first.
        let taken: HashSet<String> =
            self.rows(TAKEN, &[], |row| Ok(row.text(0)?.to_owned()))?.into_iter().collect();
        let last = self.first(LAST_WAITING, &[], |row| Ok(Timestamp::from_nanos(row.int(0)?)))?;
        let waiting_since = last.map_or(self.now(), |last| last.max(self.now()));
        let beads: Vec<BeadId> = new.iter().map(|new| new.bead.clone()).collect();
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let sql =
                format!("UPDATE contexts SET latest = 0 WHERE bead IN ({list}) AND latest = 1");
            self.apply(&sql, &params)?;
        }
        let accounts = self.last_accounts(&new)?;
        let (facts, executors) = (self.wait_facts(&beads)?, self.executors()?);
        let mut number = before;
        let mut made = Vec::with_capacity(new.len());
        for new in new {
            number += 1;
            while taken.contains(ContextId::of_number(number).as_str()) {
                number += 1;
            }
            let account = new.account.or_else(|| accounts.get(&new.bead).cloned());
            let mut context = Context {
                number,
                id: ContextId::of_number(number),
                bead: new.bead,
                rig: new.rig,
                place: new.place,
                account,
                gated: new.gated,
                forced: new.forced,
                priority: new.priority,
                origin: new.origin,
                parameters: new.parameters,
                enqueued_at: new.enqueued_at.unwrap_or(self.now()),
                enqueued_by: new.enqueued_by.unwrap_or_else(|| self.actor().to_owned()),
                waiting_since,
                next_attempt_at: new.next_attempt_at,
                failures: new.failures,
                last_failure: String::new(),
                attempts: new.attempts,
                starting: false,
                convoys: Vec::new(),
                closed: None,
            };
            let (mut class, mut due_at) = (WaitClass::Nothing, None);
            if let Some(facts) = facts.get(&context.bead) {
                let evaluated = facts.evaluate(&context, &executors, self.now());
                (class, due_at) = (evaluated.class, evaluated.due_at);
                (context.priority, context.convoys) = (evaluated.priority, evaluated.convoys);
            }
            self.insert_context(&context, class, due_at)?;
            made.push(context);
        }
        if number > before {
            self.apply(SET_LAST_NUMBER, &[as_int(number).into()])?;
        }
        if made.len() >= super::bulk::ANALYZE_AFTER_ROWS {
            self.refresh_statistics()?;
        }
        Ok(made)
    }

    /// The account of the last run of each bead for which none is named.
    fn last_accounts(&self, new: &[NewContext]) -> Result<HashMap<BeadId, String>, StoreError> {
        let open = new.iter().filter(|new| new.account.is_none());
        let beads: Vec<BeadId> = open.map(|new| new.bead.clone()).collect();
        let mut accounts = HashMap::new();
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let sql = format!(
                "SELECT r.bead, r.account FROM runs r JOIN accounts a ON a.handle = r.account \
                 WHERE r.bead IN ({list}) \
                 AND r.epoch = (SELECT MAX(n.epoch) FROM runs n WHERE n.bead = r.bead)"
            );
            let found =
                self.rows(&sql, &params, |row| Ok((id_from(row, 0)?, row.text(1)?.to_owned())))?;
            accounts.extend(found);
        }
        Ok(accounts)
    }

    fn insert_context(
        &mut self,
        context: &Context,
        class: WaitClass,
        due_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let params = [
            as_int(context.number).into(),
            context.id.as_str().into(),
            (&context.bead).into(),
            context.rig.as_str().into(),
            context.place.as_ref().map_or("", WorkerPlace::as_str).into(),
            context.account.as_deref().unwrap_or_default().into(),
            context.gated.into(),
            context.forced.into(),
            context.priority.number().into(),
            context.origin.as_str().into(),
            Param::Text(&parameters_text(&context.parameters)),
            context.enqueued_at.into(),
            (&context.enqueued_by).into(),
            context.waiting_since.into(),
            context.next_attempt_at.into(),
            i64::from(context.failures).into(),
            (&context.last_failure).into(),
            i64::from(context.attempts).into(),
            Param::Text(&convoys_text(&context.convoys)),
            class.as_str().into(),
            due_at.into(),
        ];
        self.apply(INSERT, &params)?;
        let opened = ContextOpened {
            context: context.id.as_str().to_owned(),
            origin: context.origin.as_str().to_owned(),
        };
        self.record(context_event(context, EventPayload::Scheduled(opened)));
        Ok(())
    }

    /// Says whether a run of the context is being started.
    pub fn set_starting(&mut self, context: &Context, starting: bool) -> Result<(), StoreError> {
        if !starting {
            self.mark(&context.bead);
        }
        self.apply(SET_STARTING, &[as_int(context.number).into(), starting.into()])
    }

    /// Closes an open context; `why` is told where the reason alone does not say it. The close of a
    /// dispatched one is told by its run.
    pub fn close_context(
        &mut self,
        context: &Context,
        reason: CloseReason,
        why: &str,
    ) -> Result<(), StoreError> {
        let failure = if why.is_empty() { &context.last_failure } else { why };
        let params = [
            as_int(context.number).into(),
            self.now().into(),
            self.actor().into(),
            reason.as_str().into(),
            failure.into(),
        ];
        let closed = self.execute(CLOSE, &params)?;
        if closed == 0 {
            return Err(StoreError::Corrupt(format!("{} is closed already", context.id)));
        }
        let kind = match reason {
            CloseReason::Dispatched => return Ok(()),
            CloseReason::CircuitBroken => EventPayload::CircuitBroken,
            CloseReason::Quarantined | CloseReason::InvalidContext => EventPayload::Quarantined,
            CloseReason::Cleared | CloseReason::StaleWorkBead => EventPayload::Unscheduled,
        };
        let ended = ContextEnded {
            context: context.id.as_str().to_owned(),
            reason: reason.as_str().to_owned(),
            why: unless_empty(failure),
        };
        self.record(context_event(context, kind(ended)));
        Ok(())
    }

    /// Puts an open context back in line after a start that failed: not before `at`.
    pub fn postpone_context(
        &mut self,
        context: &Context,
        failures: u32,
        why: &str,
        at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.mark(&context.bead);
        let number = as_int(context.number).into();
        self.apply(POSTPONE, &[number, i64::from(failures).into(), why.into(), at.into()])
    }

    /// Ends the backoff or cooldown of an open context: it may start at once.
    pub fn end_context_wait(&mut self, context: &Context) -> Result<(), StoreError> {
        self.mark(&context.bead);
        self.apply(END_WAIT, &[as_int(context.number).into()])?;
        let named = ContextNamed { context: context.id.as_str().to_owned() };
        self.record(context_event(context, EventPayload::RetryNow(named)));
        Ok(())
    }

    /// Gives an open context back the attempt that the run before it used, and the time it was to wait for that.
    pub fn forgive_attempt(&mut self, context: &Context) -> Result<(), StoreError> {
        self.mark(&context.bead);
        let attempts = context.attempts.saturating_sub(1);
        self.apply(FORGIVE, &[as_int(context.number).into(), i64::from(attempts).into()])
    }
}

fn context_event(context: &Context, payload: EventPayload) -> NewEvent {
    let (bead, rig) = (Some(context.bead.clone()), Some(context.rig.clone()));
    NewEvent { bead, rig, run: None, payload }
}

pub(super) fn as_int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The names of convoys, as they stand in one column.
pub(super) fn convoys_text(convoys: &[BeadId]) -> String {
    convoys.iter().map(BeadId::as_str).collect::<Vec<_>>().join(" ")
}

pub(super) fn convoys_from(text: &str) -> Vec<BeadId> {
    text.split_whitespace().map(|id| BeadId::trusted(id.to_owned())).collect()
}

pub(super) fn unless_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

pub(super) fn context_from(row: &dyn Row) -> Result<Context, StoreError> {
    context_with(row, parameters_from(row.text(10)?)?)
}

/// Reads many contexts. Contexts that were scheduled together mostly have the same parameters, which are then
/// parsed once.
pub(super) fn contexts_from() -> impl Fn(&dyn Row) -> Result<Context, StoreError> {
    let last: RefCell<Option<(String, SlingParameters)>> = RefCell::default();
    move |row| {
        let (text, mut last) = (row.text(10)?, last.borrow_mut());
        let parameters = match &*last {
            Some((known, parameters)) if known == text => parameters.clone(),
            _ => last.insert((text.to_owned(), parameters_from(text)?)).1.clone(),
        };
        context_with(row, parameters)
    }
}

fn context_with(row: &dyn Row, parameters: SlingParameters) -> Result<Context, StoreError> {
    let small = |column| -> Result<u32, StoreError> {
        u32::try_from(row.int(column)?)
            .map_err(|_| StoreError::Corrupt(format!("column {column} of a context")))
    };
    let instant = |column| -> Result<Option<Timestamp>, StoreError> {
        Ok(row.int_or_null(column)?.map(Timestamp::from_nanos))
    };
    let closed = match instant(19)? {
        None => None,
        Some(at) => {
            let reason = CloseReason::parse(row.text(21)?)?;
            Some(ContextClosed { at, by: row.text(20)?.to_owned(), reason })
        }
    };
    Ok(Context {
        number: count(row.int(0)?),
        id: ContextId::trusted(row.text(1)?.to_owned()),
        bead: id_from(row, 2)?,
        rig: RigSlug::trusted(row.text(3)?.to_owned()),
        place: unless_empty(row.text(4)?).map(WorkerPlace::trusted),
        account: unless_empty(row.text(5)?),
        gated: row.flag(6)?,
        forced: row.flag(7)?,
        priority: Priority::new(row.int(8)?)?,
        origin: ContextOrigin::parse(row.text(9)?)?,
        parameters,
        enqueued_at: Timestamp::from_nanos(row.int(11)?),
        enqueued_by: row.text(12)?.to_owned(),
        waiting_since: Timestamp::from_nanos(row.int(13)?),
        next_attempt_at: instant(14)?,
        failures: small(15)?,
        last_failure: row.text(16)?.to_owned(),
        attempts: small(17)?,
        starting: row.flag(18)?,
        convoys: convoys_from(row.text(22)?),
        closed,
    })
}
