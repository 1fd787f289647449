//! The columns of a context that come from the evaluator: `waits`, `due_at`, `priority` and `convoys`.
//!
//! A verb that changes a fact marks the beads whose answer may change with it. Before the transaction commits, and before the
//! line is read within it, the contexts of the marked beads are evaluated and written where the answer is another one. A
//! bead that was marked without need costs a look and changes nothing. Nothing else writes these columns.

use std::collections::{BTreeMap, HashMap};

use gt_core::decide::{ContextWait, ReadinessFacts, SchedulingFacts, WaitClass, context_wait};
use gt_core::merging::AcceptedBlocker;
use gt_core::schedule::{Context, ContextOrigin};
use gt_core::{BeadId, ExecutorKind, IssueType, Priority, RigSlug, Status, Timestamp};

use super::beads::id_from;
use super::contexts::{as_int, context_columns, contexts_from, convoys_text};
use super::hydrate::{IDS_PER_STATEMENT, placeholders, placeholders_after};
use super::statements;
use crate::engine::{Param, Row};
use crate::transaction::TransactionCache;
use crate::{BlockerFacts, Reader, StoreError, Writer};

statements! {
    EXECUTORS = "SELECT slug, executor FROM rigs";
    STORED = "SELECT waits, due_at FROM contexts WHERE bead = ?1 AND closed_at IS NULL";
    MEMBERS = "SELECT depends_on_id FROM dependencies WHERE issue_id = ?1 AND type = 'tracks'";
    PARTS = "SELECT issue_id FROM dependencies WHERE depends_on_id = ?1 AND type = 'parent-child'";
    DEPENDENTS = "SELECT issue_id FROM dependencies WHERE depends_on_id = ?1 AND type = 'blocks'";
    IN_RIG = "SELECT bead FROM contexts WHERE rig = ?1 AND closed_at IS NULL AND starting = 0";
    PAST_DUE = "SELECT bead FROM contexts WHERE closed_at IS NULL AND starting = 0 AND waits = 'nothing' \
        AND due_at IS NOT NULL AND due_at <= ?1 ORDER BY number";
}

/// How rigs carry out their runs.
pub(super) type Executors = HashMap<RigSlug, ExecutorKind>;

/// The evaluated columns of an open context.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EvaluatedContext {
    pub(super) class: WaitClass,
    pub(super) due_at: Option<Timestamp>,
    pub(super) priority: Priority,
    /// The convoys of its bead that have a cap.
    pub(super) convoys: Vec<BeadId>,
}

/// The facts about a bead that the evaluator needs.
#[derive(Debug)]
pub(super) struct WaitFacts {
    status: Status,
    issue_type: IssueType,
    pinned: bool,
    ephemeral: bool,
    defer_until: Option<Timestamp>,
    assignee: String,
    priority: Priority,
    is_blocked: bool,
    is_limited: bool,
    parent_deferred: Option<(BeadId, Timestamp)>,
    blockers: BlockerFacts,
    /// Those of the open blockers whose work is accepted. Whether that is enough is a setting, which is asked when the
    /// context is looked at.
    accepted: Vec<AcceptedBlocker>,
    /// The first of its convoys that is paused: which one, by whom, since when.
    paused: Option<(BeadId, String, Timestamp)>,
    capped: Vec<BeadId>,
}

impl WaitFacts {
    /// The evaluated columns of the open context of this bead.
    pub(super) fn evaluate(
        &self,
        context: &Context,
        executors: &Executors,
        now: Timestamp,
    ) -> EvaluatedContext {
        let parent = self.parent_deferred.as_ref();
        let is_accepted = |bead: &BeadId| {
            let mut accepted = self.accepted.iter();
            accepted.any(|blocker| blocker.bead == *bead && blocker.rig == context.rig)
        };
        let open = self.blockers.open.iter().filter(|bead| !is_accepted(bead));
        let open: Vec<BeadId> = open.cloned().collect();
        let facts = SchedulingFacts {
            readiness: ReadinessFacts {
                status: &self.status,
                issue_type: &self.issue_type,
                pinned: self.pinned,
                ephemeral: self.ephemeral,
                defer_until: self.defer_until,
                parent_deferred: parent.map(|(parent, until)| (parent, *until)),
                open_blockers: &open,
                failed_blockers: &self.blockers.failed,
            },
            assignee: &self.assignee,
            run: None,
            paused: self.paused.as_ref(),
            request: None,
        };
        let executor = executors.get(&context.rig).copied();
        let ContextWait { class, due_at } = context_wait(context, &facts, executor, now);
        // A repair goes before other work: what it repairs is nearly done.
        let priority = match context.origin {
            ContextOrigin::Repair => Priority::HIGHEST,
            _ => self.priority,
        };
        EvaluatedContext { class, due_at, priority, convoys: self.capped.clone() }
    }
}

impl Reader<'_> {
    /// The stored wait of the open context of a bead, for tests that compare it with the evaluator.
    #[doc(hidden)]
    pub fn stored_wait(&self, bead: &BeadId) -> Result<Option<ContextWait>, StoreError> {
        self.first(STORED, &[bead.into()], |row| {
            let due_at = row.int_or_null(1)?.map(Timestamp::from_nanos);
            Ok(ContextWait { class: WaitClass::parse(row.text(0)?)?, due_at })
        })
    }

    /// How every rig carries out its runs.
    pub(super) fn executors(&self) -> Result<Executors, StoreError> {
        let executors = self.rows(EXECUTORS, &[], |row| {
            Ok((RigSlug::trusted(row.text(0)?.to_owned()), ExecutorKind::parse(row.text(1)?)?))
        })?;
        Ok(executors.into_iter().collect())
    }

    /// The facts that the evaluator needs about each of these beads that exists.
    pub(super) fn wait_facts(
        &self,
        beads: &[BeadId],
    ) -> Result<HashMap<BeadId, WaitFacts>, StoreError> {
        let mut found = HashMap::with_capacity(beads.len());
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let sql = format!(
                "SELECT b.id, b.status, b.issue_type, b.pinned, b.ephemeral, b.defer_until, b.assignee, b.priority, \
                 b.open_blockers, (SELECT p.id FROM dependencies d JOIN beads p ON p.id = d.depends_on_id \
                 WHERE d.issue_id = b.id AND d.type = 'parent-child' AND p.defer_until IS NOT NULL \
                 ORDER BY p.defer_until DESC, p.id DESC LIMIT 1), (SELECT MAX(p.defer_until) FROM dependencies d \
                 JOIN beads p ON p.id = d.depends_on_id WHERE d.issue_id = b.id AND d.type = 'parent-child'), \
                 (SELECT COUNT(*) FROM dependencies d JOIN convoys v ON v.id = d.issue_id \
                 WHERE d.depends_on_id = b.id AND d.type = 'tracks' AND (v.cap > 0 OR v.paused_at IS NOT NULL)) \
                 FROM beads b WHERE b.id IN ({list})"
            );
            found.extend(self.rows(&sql, &params, |row| Ok((id_from(row, 0)?, facts_from(row)?)))?);
        }
        self.add_blockers_to(&mut found)?;
        self.add_convoys_to(&mut found)?;
        Ok(found)
    }

    fn add_blockers_to(&self, facts: &mut HashMap<BeadId, WaitFacts>) -> Result<(), StoreError> {
        let blocked = facts.iter().filter(|(_, facts)| facts.is_blocked);
        let blocked: Vec<BeadId> = blocked.map(|(bead, _)| bead.clone()).collect();
        for (bead, blockers) in self.blockers_of(&blocked)? {
            if let Some(facts) = facts.get_mut(&bead) {
                facts.blockers = blockers;
            }
        }
        for (bead, accepted) in self.accepted_blockers_of(&blocked)? {
            if let Some(facts) = facts.get_mut(&bead) {
                facts.accepted = accepted;
            }
        }
        Ok(())
    }

    fn add_convoys_to(&self, facts: &mut HashMap<BeadId, WaitFacts>) -> Result<(), StoreError> {
        let limited = facts.iter().filter(|(_, facts)| facts.is_limited);
        let limited: Vec<BeadId> = limited.map(|(bead, _)| bead.clone()).collect();
        for page in limited.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let sql = format!(
                "SELECT d.depends_on_id, v.id, v.cap, v.paused_by, v.paused_at FROM dependencies d \
                 JOIN convoys v ON v.id = d.issue_id WHERE d.depends_on_id IN ({list}) AND d.type = 'tracks' \
                 AND (v.cap > 0 OR v.paused_at IS NOT NULL) ORDER BY d.depends_on_id, v.id"
            );
            let rows = self.rows(&sql, &params, |row| {
                let by = row.text_or_null(3)?.map(str::to_owned);
                let paused = by.zip(row.int_or_null(4)?.map(Timestamp::from_nanos));
                Ok((id_from(row, 0)?, id_from(row, 1)?, row.int(2)? > 0, paused))
            })?;
            for (bead, convoy, is_capped, paused) in rows {
                let Some(facts) = facts.get_mut(&bead) else { continue };
                if let Some((by, since)) = paused.filter(|_| facts.paused.is_none()) {
                    facts.paused = Some((convoy.clone(), by, since));
                }
                if is_capped {
                    facts.capped.push(convoy);
                }
            }
        }
        Ok(())
    }

    /// Evaluates the contexts of all beads that were marked in this transaction.
    pub(crate) fn write_waits(&self) -> Result<(), StoreError> {
        match self.known().and_then(TransactionCache::take_marked) {
            Some((beads, now)) => self.write_waits_of(&beads, now),
            None => Ok(()),
        }
    }

    /// Evaluates the contexts of these beads, and writes the answers that are new.
    fn write_waits_of(&self, beads: &[BeadId], now: Timestamp) -> Result<(), StoreError> {
        let mut executors: Option<Executors> = None;
        let mut changed: BTreeMap<EvaluatedContext, Vec<u64>> = BTreeMap::new();
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let columns = context_columns!();
            let sql = format!(
                "SELECT {columns}, waits, due_at FROM contexts WHERE bead IN ({list}) AND closed_at IS NULL \
                 AND starting = 0"
            );
            let contexts = self.rows(&sql, &params, stored_from())?;
            if contexts.is_empty() {
                continue;
            }
            let scheduled: Vec<BeadId> =
                contexts.iter().map(|(context, _)| context.bead.clone()).collect();
            let facts = self.wait_facts(&scheduled)?;
            if executors.is_none() {
                executors = Some(self.executors()?);
            }
            let executors = executors.get_or_insert_default();
            for (context, stored) in contexts {
                let Some(facts) = facts.get(&context.bead) else { continue };
                let evaluated = facts.evaluate(&context, executors, now);
                if evaluated != stored {
                    changed.entry(evaluated).or_default().push(context.number);
                }
            }
        }
        for (evaluated, numbers) in changed {
            for page in numbers.chunks(IDS_PER_STATEMENT) {
                self.write_evaluated(&evaluated, page)?;
            }
        }
        Ok(())
    }

    fn write_evaluated(
        &self,
        evaluated: &EvaluatedContext,
        numbers: &[u64],
    ) -> Result<(), StoreError> {
        let convoys = convoys_text(&evaluated.convoys);
        let mut params: Vec<Param<'_>> = vec![
            evaluated.class.as_str().into(),
            evaluated.due_at.into(),
            evaluated.priority.number().into(),
            (&convoys).into(),
        ];
        let (list, size) = placeholders_after(params.len(), numbers.len());
        let padded = numbers.iter().chain(std::iter::repeat_n(&numbers[0], size - numbers.len()));
        params.extend(padded.map(|number| Param::from(as_int(*number))));
        let sql = format!(
            "UPDATE contexts SET waits = ?1, due_at = ?2, priority = ?3, convoys = ?4 WHERE number IN ({list})"
        );
        self.apply_derived(&sql, &params)
    }
}

impl Writer<'_> {
    /// A fact about this bead has changed, so the wait of its context is evaluated again.
    pub(super) fn mark(&self, bead: &BeadId) {
        if let Some(known) = self.known() {
            known.mark(bead, self.now());
        }
    }

    fn mark_all(&self, sql: &str, of: &str) -> Result<(), StoreError> {
        for bead in self.rows(sql, &[of.into()], |row| id_from(row, 0))? {
            self.mark(&bead);
        }
        Ok(())
    }

    /// The parts of this bead depend on the date it is put off to.
    pub(super) fn mark_parts_of(&self, parent: &BeadId) -> Result<(), StoreError> {
        self.mark_all(PARTS, parent.as_str())
    }

    /// A convoy limits its members in another way.
    pub(super) fn mark_members_of(&self, convoy: &BeadId) -> Result<(), StoreError> {
        self.mark_all(MEMBERS, convoy.as_str())
    }

    /// The work of this bead is accepted, or is not any more: others may begin from it.
    pub(super) fn mark_dependents_of(&self, bead: &BeadId) -> Result<(), StoreError> {
        self.mark_all(DEPENDENTS, bead.as_str())
    }

    /// A rig takes beads of other types.
    pub(super) fn mark_contexts_in(&self, rig: &RigSlug) -> Result<(), StoreError> {
        self.mark_all(IN_RIG, rig.as_str())
    }

    /// Lets the contexts join the line whose date has passed.
    pub fn wake_contexts(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.write_waits()?;
        let due = self.rows(PAST_DUE, &[now.into()], |row| id_from(row, 0))?;
        self.write_waits_of(&due, now)
    }
}

fn facts_from(row: &dyn Row) -> Result<WaitFacts, StoreError> {
    let parent = match row.text_or_null(9)? {
        Some(_) => Some(id_from(row, 9)?),
        None => None,
    };
    Ok(WaitFacts {
        status: Status::parse(row.text(1)?)?,
        issue_type: IssueType::trusted(row.text(2)?.to_owned()),
        pinned: row.flag(3)?,
        ephemeral: row.flag(4)?,
        defer_until: row.int_or_null(5)?.map(Timestamp::from_nanos),
        assignee: row.text(6)?.to_owned(),
        priority: Priority::new(row.int(7)?)?,
        is_blocked: row.int(8)? > 0,
        is_limited: row.int(11)? > 0,
        parent_deferred: parent.zip(row.int_or_null(10)?.map(Timestamp::from_nanos)),
        blockers: BlockerFacts::default(),
        accepted: Vec::new(),
        paused: None,
        capped: Vec::new(),
    })
}

/// Reads contexts with their evaluated columns.
pub(super) fn stored_from() -> impl Fn(&dyn Row) -> Result<(Context, EvaluatedContext), StoreError>
{
    const AFTER: usize = 23;
    let context = contexts_from();
    move |row| {
        let context = context(row)?;
        let stored = EvaluatedContext {
            class: WaitClass::parse(row.text(AFTER)?)?,
            due_at: row.int_or_null(AFTER + 1)?.map(Timestamp::from_nanos),
            priority: context.priority,
            convoys: context.convoys.clone(),
        };
        Ok((context, stored))
    }
}
