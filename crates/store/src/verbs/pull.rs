//! Work that agents ask for: offers, claims and leases.

use gt_core::event::RunWaits;
use gt_core::schedule::{Run, RunId, RunState};
use gt_core::work::{Lease, Position};
use gt_core::{Bead, BeadId, EventPayload, ExecutorKind, IssueType, RigSlug, Timestamp, Uid};

use super::beads::{COLUMNS, bead_from, id_from};
use super::find::{Clauses, FilterValue};
use super::runs::{live, run_columns, run_from, taken_by};
use super::settings::any_item_may_be_claimed;
use super::work::uid_from;
use super::{Pause, statements};
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

/// The runs that agents have asked for, or taken, and are at.
macro_rules! at_work {
    () => {
        "executor = 'pull' AND state = 'running'"
    };
}

/// When the bead of a run last changed.
macro_rules! heard {
    () => {
        "(SELECT b.updated_at FROM beads b WHERE b.id = runs.bead)"
    };
}

statements! {
    OF_AGENT = concat!("SELECT ", run_columns!(), " FROM runs WHERE agent = ?1 AND ", at_work!());
    INSERT = "INSERT INTO runs (bead, epoch, uid, context, rig, executor, runtime, agent, place, host, account, \
        gated, state, starter, formula, steps, created_at, created_by, session, tree, branch, reason, ended_by, \
        accepted_commit, running_at, lease_s, lease_expires_at) VALUES (?1, ?2, ?3, ?4, ?5, 'pull', '', ?6, '', \
        ?7, '', 0, 'running', '', '', '{}', ?8, ?9, '', '', '', '', '', '', ?8, ?10, ?11)";
    BEGIN = "UPDATE runs SET state = 'running', running_at = ?3, lease_s = ?4, lease_expires_at = ?5 \
        WHERE bead = ?1 AND epoch = ?2 AND state = 'starting'";
    BLOCK = "UPDATE runs SET state = 'blocked', lease_expires_at = NULL \
        WHERE bead = ?1 AND epoch = ?2 AND state = 'running'";
    UNBLOCK = "UPDATE runs SET state = 'running', lease_expires_at = ?3 \
        WHERE bead = ?1 AND epoch = ?2 AND state = 'blocked'";
    RENEW = "UPDATE runs SET lease_s = ?3, lease_expires_at = ?4 \
        WHERE bead = ?1 AND epoch = ?2 AND state = 'running'";
    EXPIRED = concat!("SELECT ", run_columns!(), " FROM runs WHERE state = 'running' \
        AND lease_expires_at IS NOT NULL AND lease_expires_at <= ?1 ORDER BY lease_expires_at, bead LIMIT ?2");
    NEXT_EXPIRY = "SELECT MIN(lease_expires_at) FROM runs WHERE state = 'running' AND lease_expires_at IS NOT NULL";
    SILENT = concat!("SELECT ", run_columns!(), " FROM runs WHERE ", at_work!(), " AND lease_expires_at IS NULL \
        AND ", heard!(), " <= ?1 ORDER BY bead LIMIT ?2");
    LONGEST_SILENT = concat!("SELECT MIN(", heard!(), ") FROM runs WHERE ", at_work!(), " AND lease_expires_at IS NULL");
}

/// An agent's request for work.
#[derive(Debug, Clone, Copy)]
pub struct PullQuery<'a> {
    /// The agent.
    pub agent: &'a str,
    /// Only these types; empty for all.
    pub kinds: &'a [IssueType],
    /// Only this rig.
    pub rig: Option<&'a RigSlug>,
    /// Only work that was dispatched to this agent.
    pub dispatched: bool,
    /// `work.claim` says so in the layers of settings below the store's.
    pub dispatched_below: bool,
    /// Only work after this one in line; dispatched work never is.
    pub after: Option<&'a Position>,
    /// The current time.
    pub now: Timestamp,
}

/// The work for an agent that asks, and the facts that decide whether it gets it.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The bead that the agent is at already.
    pub busy_with: Option<BeadId>,
    /// Nothing is started.
    pub paused: Option<Pause>,
    /// Only work that was dispatched to the agent is offered: it asks for no more, or `work.claim` says so.
    pub only_dispatched: bool,
    /// The first in line. The evaluator decides whether the agent gets it.
    pub first: Option<Offered>,
}

/// A bead that is proposed for an agent. No deferred parent, no paused or staged convoy and no live run keeps it, and its rig
/// is active.
#[derive(Debug, Clone)]
pub struct Offered {
    /// The bead.
    pub bead: Bead,
    /// The alias of its project, unless it has none of its own.
    pub project: Option<Uid>,
    /// The run in which it was given to this very agent, if it was.
    pub given: Option<RunId>,
    /// The run that it would be taken in if it was not.
    pub next_run: RunId,
    /// The open context that it was scheduled with, if it was.
    pub context: Option<u64>,
}

impl Reader<'_> {
    /// The run that an agent is at.
    pub fn run_of_agent(&self, agent: &str) -> Result<Option<Run>, StoreError> {
        self.first(OF_AGENT, &[agent.into()], run_from)
    }

    /// Proposes work for an agent: first work dispatched to it, then the most urgent and oldest work that may be
    /// ready and meant for it or for any agent. It is one query, however many items there are. A bead that is left
    /// out here is never given; the evaluator decides about each proposed bead.
    pub fn offer(&self, ask: &PullQuery<'_>) -> Result<Offer, StoreError> {
        let (sql, clauses) = offer_statement(ask);
        let offer = self.first(&sql, &clauses.params(), offer_from)?;
        let offer = offer.map(|offer| Offer {
            only_dispatched: offer.only_dispatched || ask.dispatched,
            ..offer
        });
        offer.ok_or_else(|| StoreError::Corrupt("the scheduler has no row".to_owned()))
    }

    /// The statement behind [`Reader::offer`], for tests that ask the engine about it.
    #[doc(hidden)]
    pub fn offer_statement_of(&self, ask: &PullQuery<'_>) -> String {
        offer_statement(ask).0
    }

    /// Runs whose leases have ended, the longest ago first.
    pub fn expired_runs(&self, now: Timestamp, limit: usize) -> Result<Vec<Run>, StoreError> {
        self.rows(EXPIRED, &[now.into(), limited(limit).into()], run_from)
    }

    /// When the next lease ends.
    pub fn next_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        let next = self.first(NEXT_EXPIRY, &[], |row| row.int_or_null(0))?;
        Ok(next.flatten().map(Timestamp::from_nanos))
    }

    /// Runs of agents without a lease that nothing has been heard of since.
    pub fn silent_runs(&self, since: Timestamp, limit: usize) -> Result<Vec<Run>, StoreError> {
        self.rows(SILENT, &[since.into(), limited(limit).into()], run_from)
    }

    /// When the agent without a lease that has been silent for longest was last heard of.
    pub fn longest_silent(&self) -> Result<Option<Timestamp>, StoreError> {
        let oldest = self.first(LONGEST_SILENT, &[], |row| row.int_or_null(0))?;
        Ok(oldest.flatten().map(Timestamp::from_nanos))
    }
}

impl Writer<'_> {
    /// An agent takes an open bead that it was offered, in this run, which is new. No other agent can have it: the
    /// caller was offered it in the same transaction.
    pub fn take_offered(&mut self, run: &Run, old: &Bead, new: &Bead) -> Result<(), StoreError> {
        let params = [
            (&run.id.bead).into(),
            i64::from(run.id.epoch).into(),
            Param::Blob(run.uid.as_bytes()),
            i64::try_from(run.context).unwrap_or(i64::MAX).into(),
            run.rig.as_str().into(),
            (&run.agent).into(),
            (&run.host).into(),
            run.created_at.into(),
            (&run.created_by).into(),
            run.lease.map(Lease::seconds).into(),
            run.lease_expires_at.into(),
        ];
        debug_assert!(run.executor == ExecutorKind::Pull && run.state == RunState::Running);
        self.apply(INSERT, &params)?;
        self.record_taken(run);
        self.take_bead(old, new)
    }

    /// The agent of a run that was given to it begins. `false` if it is not starting any more.
    pub fn begin_given(&mut self, run: &Run) -> Result<bool, StoreError> {
        let params = [
            (&run.id.bead).into(),
            i64::from(run.id.epoch).into(),
            self.now().into(),
            run.lease.map(Lease::seconds).into(),
            run.lease_expires_at.into(),
        ];
        if self.execute(BEGIN, &params)? == 0 {
            return Ok(false);
        }
        self.record_taken(run);
        Ok(true)
    }

    fn record_taken(&mut self, run: &Run) {
        self.record_run(run, EventPayload::Dispatched(taken_by(run, run.lease_expires_at)));
    }

    /// The agent of a run waits, for this reason; `stale` if it has been silent for too long. `false` if it is not
    /// at work.
    pub fn block_run(&mut self, run: &Run, why: &str, stale: bool) -> Result<bool, StoreError> {
        if self.execute(BLOCK, &[(&run.id.bead).into(), i64::from(run.id.epoch).into()])? == 0 {
            return Ok(false);
        }
        let (pulled_by, since, why) = (run.agent.clone(), self.now(), why.to_owned());
        let waits = RunWaits { pulled_by, since, why, stale };
        self.record_run(run, EventPayload::RunBlocked(waits));
        Ok(true)
    }

    /// The agent of a run that waited goes on. `false` if it did not wait.
    pub fn unblock_run(&mut self, run: &Run) -> Result<bool, StoreError> {
        let until = run.lease.map(|lease| lease.ends(self.lease_now()));
        let id = &run.id;
        let params = [(&id.bead).into(), i64::from(id.epoch).into(), until.into()];
        if self.execute(UNBLOCK, &params)? == 0 {
            return Ok(false);
        }
        self.record_run(run, EventPayload::RunUnblocked(taken_by(run, None)));
        Ok(true)
    }

    /// A run that is at work is its agent's for so long from now on. It is not news, so there is no event.
    pub fn renew_lease(&mut self, run: &RunId, lease: Lease) -> Result<Timestamp, StoreError> {
        self.touch_run(run)?;
        let until = lease.ends(self.lease_now());
        let params =
            [(&run.bead).into(), i64::from(run.epoch).into(), lease.seconds().into(), until.into()];
        self.apply(RENEW, &params)?;
        Ok(until)
    }
}

fn limited(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Ends the question about runs so that PostgreSQL asks it of the index, bead by bead. Without it, it makes a join of it; and a
/// plan that was made when there were no runs yet then reads all runs for every agent that asks, until ANALYZE counts
/// them. The other questions are about tables that do not grow with every answer; with this at all of them it would take
/// the whole for so dear that it makes a new plan each time, which takes longer than the rest.
const ONE_ROW: &str = "LIMIT 1 OFFSET 0";

/// Leaves out beads `x` that may be many ahead in line, and that the evaluator would refuse.
fn also_ready(agent: &str, now: &str) -> String {
    format!(
        "x.pinned = 0 AND (x.defer_until IS NULL OR x.defer_until <= {now}) \
         AND NOT EXISTS (SELECT 1 FROM dependencies d JOIN beads p ON p.id = d.depends_on_id \
            WHERE d.issue_id = x.id AND d.type = 'parent-child' AND p.defer_until > {now}) \
         AND NOT EXISTS (SELECT 1 FROM contexts c WHERE c.bead = x.id AND c.closed_at IS NULL \
            AND (c.due_at > {now} OR (c.place <> '' AND c.place <> {agent}))) \
         AND NOT EXISTS (SELECT 1 FROM dependencies t JOIN convoys v ON v.id = t.issue_id \
            WHERE t.depends_on_id = x.id AND t.type = 'tracks' AND v.paused_at IS NOT NULL) \
         AND NOT EXISTS (SELECT 1 FROM dependencies t JOIN beads v ON v.id = t.issue_id \
            WHERE t.depends_on_id = x.id AND t.type = 'tracks' AND v.issue_type = 'convoy' \
            AND v.status LIKE 'staged%' AND {NO_CONTEXT} AND {NO_OPEN_CONVOY}) \
         AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.bead = x.id AND r.{} {ONE_ROW})",
        live!()
    )
}

/// An open context of a bead `x` says more than the convoys that track it.
const NO_CONTEXT: &str =
    "NOT EXISTS (SELECT 1 FROM contexts c WHERE c.bead = x.id AND c.closed_at IS NULL)";

/// An open convoy schedules a bead `x`, even where a staged one waits for its launch.
const NO_OPEN_CONVOY: &str = "NOT EXISTS (SELECT 1 FROM dependencies o JOIN beads w ON w.id = o.issue_id \
    WHERE o.depends_on_id = x.id AND o.type = 'tracks' AND w.issue_type = 'convoy' AND w.status = 'open')";

fn offer_statement(ask: &PullQuery<'_>) -> (String, Clauses) {
    let mut clauses = Clauses::default();
    let agent = clauses.text(ask.agent);
    let now = clauses.bind(FilterValue::Int(ask.now.as_nanos()));
    let rig = ask.rig.map(|rig| clauses.text(rig.as_str()));
    let kinds: Vec<String> = ask.kinds.iter().map(|kind| clauses.text(kind.as_str())).collect();
    let after = ask.after.map(|after| {
        let priority = clauses.bind(FilterValue::Int(after.priority.number()));
        let created_at = clauses.bind(FilterValue::Int(after.created_at.as_nanos()));
        let bead = clauses.text(after.bead.as_str());
        format!(" AND (x.priority, x.created_at, x.id) > ({priority}, {created_at}, {bead})")
    });
    let after = after.unwrap_or_default();
    let ready = also_ready(&agent, &now);
    let in_rig = |column: &str| match &rig {
        Some(rig) => format!(" AND {column} = {rig}"),
        None => String::new(),
    };
    let of_kinds = |column: &str| {
        if kinds.is_empty() {
            String::new()
        } else {
            format!(" AND {column} IN ({})", kinds.join(", "))
        }
    };
    let given = format!(
        "SELECT x.id AS candidate, 0 AS rank, x.priority AS p, x.created_at AS c FROM runs g \
         JOIN beads x ON x.id = g.bead WHERE g.executor = 'pull' AND g.state = 'starting' \
         AND g.agent = {agent}{}{}",
        in_rig("x.rig"),
        of_kinds("x.issue_type")
    );
    // For each rig, for whom it is meant and, if the agent is particular, each type: the head of an index.
    let head = |who: &str, kind: Option<&String>| {
        let kind = kind.map(|kind| format!(" AND x.issue_type = {kind}")).unwrap_or_default();
        format!(
            "SELECT q.id, 1, q.priority, q.created_at FROM rigs g JOIN beads q ON q.id = (SELECT x.id FROM beads x \
             WHERE x.rig = g.slug AND x.assignee = {who}{kind} AND x.work_status = 'queued' AND x.status = 'open' \
             AND x.open_blockers = 0{after} AND {ready} ORDER BY x.priority, x.created_at, x.id LIMIT 1) \
             WHERE g.executor = 'pull' AND g.state = 'active'{}",
            in_rig("g.slug")
        )
    };
    let woken = format!(
        "SELECT x.id, 1, x.priority, x.created_at FROM beads x JOIN rigs g ON g.slug = x.rig \
         WHERE x.status = 'deferred' AND x.defer_until IS NOT NULL AND x.defer_until <= {now} \
         AND x.work_status = 'queued' AND x.open_blockers = 0 AND (x.assignee = '' OR x.assignee = {agent}) \
         AND g.executor = 'pull' AND g.state = 'active'{after} AND {ready}{}{}",
        in_rig("g.slug"),
        of_kinds("x.issue_type")
    );
    // Scheduled with force, a bead is for every agent, also if it is assigned or claimed.
    // The cross join keeps SQLite from walking through all beads.
    let forced = format!(
        "SELECT x.id, 1, x.priority, x.created_at FROM contexts f CROSS JOIN beads x \
         JOIN rigs g ON g.slug = x.rig WHERE x.id = f.bead AND f.closed_at IS NULL AND f.forced = 1 \
         AND x.status <> 'closed' AND x.open_blockers = 0 \
         AND g.executor = 'pull' AND g.state = 'active'{after} AND {ready}{}{}",
        in_rig("g.slug"),
        of_kinds("x.issue_type")
    );
    let mut branches = vec![given, woken, forced];
    for who in ["''", &agent] {
        if kinds.is_empty() {
            branches.push(head(who, None));
        }
        branches.extend(kinds.iter().map(|kind| head(who, Some(kind))));
    }
    let any_item = any_item_may_be_claimed(!ask.dispatched_below);
    let which = if ask.dispatched {
        "rank = 0"
    } else if ask.after.is_some() {
        "rank = 1"
    } else {
        &format!("rank = 0 OR {any_item}")
    };
    let sql = format!(
        "SELECT {COLUMNS}, (SELECT g.uid FROM rigs g WHERE g.slug = beads.rig AND g.slug <> 'inbox'), \
         (SELECT r.epoch FROM runs r WHERE r.bead = beads.id AND r.executor = 'pull' AND r.state = 'starting'), \
         (SELECT COALESCE(MAX(r.epoch), 0) FROM runs r WHERE r.bead = beads.id), \
         (SELECT c.number FROM contexts c WHERE c.bead = beads.id AND c.closed_at IS NULL), \
         busy, paused_by, paused_at, any_item FROM (SELECT paused_by, paused_at, \
         CAST(CASE WHEN {any_item} THEN 1 ELSE 0 END AS BIGINT) AS any_item, \
         (SELECT r.bead FROM runs r WHERE r.agent = {agent} AND r.executor = 'pull' AND r.state = 'running') AS busy \
         FROM scheduler) facts LEFT JOIN beads ON id = (SELECT candidate FROM ({}) every \
         WHERE {which} ORDER BY rank, p, c, candidate LIMIT 1)",
        branches.join(" UNION ALL ")
    );
    (sql, clauses)
}

fn offer_from(row: &dyn Row) -> Result<Offer, StoreError> {
    const AFTER: usize = 31;
    let first = match row.text_or_null(0)? {
        Some(_) => Some(offered_from(row, AFTER)?),
        None => None,
    };
    let busy_with = match row.text_or_null(AFTER + 4)? {
        Some(_) => Some(id_from(row, AFTER + 4)?),
        None => None,
    };
    let by = row.text_or_null(AFTER + 5)?.map(str::to_owned);
    let at = row.int_or_null(AFTER + 6)?.map(Timestamp::from_nanos);
    let only_dispatched = !row.flag(AFTER + 7)?;
    let paused = by.zip(at).map(|(by, at)| Pause { by, at });
    Ok(Offer { busy_with, paused, only_dispatched, first })
}

fn offered_from(row: &dyn Row, after: usize) -> Result<Offered, StoreError> {
    let bead = bead_from(row)?;
    let epoch = |number: i64| {
        u32::try_from(number)
            .map_err(|_| StoreError::Corrupt(format!("{} has no number left for a run", bead.id)))
    };
    let run = |epoch| RunId { bead: bead.id.clone(), epoch };
    let given = row.int_or_null(after + 1)?.map(epoch).transpose()?.map(run);
    let next_run = run(epoch(row.int(after + 2)? + 1)?);
    let context = row.int_or_null(after + 3)?.and_then(|number| u64::try_from(number).ok());
    Ok(Offered { project: uid_from(row, after)?, given, next_run, context, bead })
}
