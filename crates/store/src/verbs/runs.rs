//! Runs: attempts of workers.

use gt_core::decide::SilenceChange;
use gt_core::event::{AcceptedWork, LandedWork, RunEnded, RunTaken, SilentSince};
use gt_core::schedule::{
    DoneStatus, Landing, Money, Reserve, Run, RunEnd, RunId, RunLimit, RunState, Usage,
    WorkerPlace, Workplace,
};
use gt_core::work::Lease;
use gt_core::{BeadId, EventPayload, ExecutorKind, Json, NewEvent, RigSlug, Timestamp, Uid};

use super::beads::id_from;
use super::contexts::{as_int, count};
use super::find::{Clauses, FilterValue};
use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

/// The columns of a run, in the order [`run_from`] reads them.
macro_rules! run_columns {
    () => {
        run_columns!("steps")
    };
    ($steps:literal) => {
        concat!(
            "bead, epoch, uid, context, rig, executor, runtime, agent, place, host, account, gated, \
             state, starter, formula, ",
            $steps,
            ", created_at, created_by, running_at, ended_at, ended_by, exit_code, exit_signal, reason, \
             session, tree, branch, base, base_commit, said, accepted_commit, landing_commit, \
             peak_memory_mb, tokens, cost, lease_s, lease_expires_at, silent_since, \
             over_limit, reserved_tokens, reserved_cost"
        )
    };
}

macro_rules! live {
    () => {
        "state IN ('starting', 'running', 'blocked')"
    };
}
pub(super) use {live, run_columns};

// A process that knows the agent to be gone records a run as failed or lost; the other ends may be recorded while it works.
statements! {
    ONE = concat!("SELECT ", run_columns!(), " FROM runs WHERE bead = ?1 AND epoch = ?2");
    LIVE_OF = concat!("SELECT ", run_columns!(), " FROM runs WHERE bead = ?1 AND ", live!());
    LIVE = concat!("SELECT ", run_columns!("'{}'"), " FROM runs WHERE ", live!());
    OF_BEAD = concat!("SELECT ", run_columns!(), " FROM runs WHERE bead = ?1 ORDER BY epoch DESC");
    RECENT = concat!("SELECT ", run_columns!(), " FROM runs ORDER BY created_at DESC, bead, epoch LIMIT ?1");
    FAILED_LAST = "SELECT c.bead FROM contexts c JOIN runs r ON r.context = c.number \
        WHERE c.latest = 1 AND c.close_reason = 'dispatched' AND r.state IN ('failed', 'lost') \
        AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.bead = r.bead AND n.epoch > r.epoch) \
        UNION SELECT b.id FROM beads b JOIN runs r ON r.bead = b.id \
        WHERE b.outcome = 'failed' AND r.state IN ('failed', 'lost') \
        AND NOT EXISTS (SELECT 1 FROM contexts c WHERE c.bead = b.id) \
        AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.bead = r.bead AND n.epoch > r.epoch) \
        ORDER BY 1";
    OUT_OF_ATTEMPTS = "SELECT c.bead, c.attempts + 1 FROM contexts c JOIN beads b ON b.id = c.bead \
        JOIN runs r ON r.context = c.number WHERE c.latest = 1 AND c.close_reason = 'dispatched' \
        AND b.status = 'open' AND r.state = 'lost' AND r.over_limit IS NULL \
        AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.bead = r.bead AND n.epoch > r.epoch) \
        ORDER BY c.bead LIMIT ?1";
    HANDED_BACK = "SELECT r.bead, r.epoch FROM contexts c JOIN beads b ON b.id = c.bead \
        JOIN runs r ON r.context = c.number WHERE c.latest = 1 AND c.close_reason = 'dispatched' \
        AND b.status IN ('open', 'blocked', 'deferred') \
        AND ((r.state = 'cancelled' AND r.said IN ('escalated', 'deferred')) OR (r.state = 'done' AND b.status = 'open') \
        OR (r.state = 'failed' AND b.status = 'blocked') OR (r.state = 'lost' AND r.over_limit IS NOT NULL)) \
        AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.bead = r.bead AND n.epoch > r.epoch) \
        ORDER BY c.bead LIMIT ?1";
    LAST_EPOCH = "SELECT COALESCE(MAX(epoch), 0) FROM runs WHERE bead = ?1";
    INSERT = "INSERT INTO runs (bead, epoch, uid, context, rig, executor, runtime, agent, place, host, \
        account, gated, state, starter, formula, steps, created_at, created_by, session, tree, branch, \
        reason, ended_by, accepted_commit, reserved_tokens, reserved_cost, usage_pending) VALUES (?1, ?2, ?3, ?4, ?5, \
        ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, '', '', '', '', '', '', ?19, ?20, ?21)";
    MOVE_START = "UPDATE runs SET agent = ?3, place = ?4 WHERE bead = ?1 AND epoch = ?2 AND state = 'starting'";
    CLAIM = "UPDATE runs SET state = 'running', running_at = ?3, session = ?4, tree = ?5, branch = ?6, base = ?7, \
        base_commit = ?8 WHERE bead = ?1 AND epoch = ?2 AND state = 'starting'";
    ACCEPT = concat!("UPDATE runs SET said = ?3, accepted_commit = ?4 \
        WHERE bead = ?1 AND epoch = ?2 AND ", live!());
    LAND = "UPDATE runs SET landing_commit = ?3 WHERE bead = ?1 AND epoch = ?2";
    SILENT = "UPDATE runs SET silent_since = ?3 WHERE bead = ?1 AND epoch = ?2 AND state = 'running' \
        AND silent_since IS NULL";
    HEARD_AGAIN = "UPDATE runs SET silent_since = NULL WHERE bead = ?1 AND epoch = ?2 AND state = 'running' \
        AND silent_since = ?3";
    OVER_LIMIT = concat!("UPDATE runs SET over_limit = ?3 WHERE bead = ?1 AND epoch = ?2 AND over_limit IS NULL AND ",
        live!());
    INTEND = concat!("UPDATE runs SET ended_by = ?3 WHERE bead = ?1 AND epoch = ?2 AND ", live!());
    END = concat!("UPDATE runs SET state = ?3, ended_at = ?4, ended_by = ?5, exit_code = ?6, \
        exit_signal = ?7, reason = ?8, silent_since = NULL, \
        usage_pending = CASE WHEN running_at IS NULL OR ?3 IN ('failed', 'lost') THEN 0 ELSE usage_pending END WHERE bead = ?1 AND epoch = ?2 AND ", live!());
}

/// A page of the runs that were ever begun, the newest first.
#[derive(Debug, Clone, Default)]
pub struct RunPage {
    /// Only those that are live, or only those that have ended.
    pub live: Option<bool>,
    /// Only those of this rig.
    pub rig: Option<RigSlug>,
    /// Only those after this one in the list.
    pub after: Option<(Timestamp, RunId)>,
    /// The most runs.
    pub limit: usize,
}

impl RunPage {
    fn clauses(&self) -> Clauses {
        let mut clauses = Clauses::default();
        match self.live {
            Some(true) => clauses.add(live!()),
            Some(false) => clauses.add("state NOT IN ('starting', 'running', 'blocked')"),
            None => {}
        }
        if let Some(rig) = &self.rig {
            let rig = clauses.text(rig.as_str());
            clauses.add(format!("rig = {rig}"));
        }
        clauses
    }
}

impl Reader<'_> {
    /// A page of runs, the newest first.
    pub fn runs_page(&self, page: &RunPage) -> Result<Vec<Run>, StoreError> {
        let mut clauses = page.clauses();
        if let Some((at, RunId { bead, epoch })) = &page.after {
            let at = clauses.bind(FilterValue::Int(at.as_nanos()));
            let bead = clauses.text(bead.as_str());
            let epoch = clauses.bind(FilterValue::Int(i64::from(*epoch)));
            clauses.add(format!("(created_at, bead, epoch) < ({at}, {bead}, {epoch})"));
        }
        let condition = clauses.where_clause();
        let newest_first = |a: &Run, b: &Run| {
            let order = b.created_at.cmp(&a.created_at);
            order.then_with(|| b.id.bead.cmp(&a.id.bead)).then_with(|| b.id.epoch.cmp(&a.id.epoch))
        };
        if page.live == Some(true) {
            let columns = run_columns!();
            let sql = format!("SELECT {columns} FROM runs WHERE {condition}");
            let mut live = self.rows(&sql, &clauses.params(), run_from)?;
            // Not by the database: SQLite would rather walk through every run there ever was, in this order.
            live.sort_by(newest_first);
            live.truncate(page.limit);
            return Ok(live);
        }
        let limit = clauses.bind(FilterValue::Int(i64::try_from(page.limit).unwrap_or(i64::MAX)));
        let columns = run_columns!();
        let sql = format!(
            "SELECT {columns} FROM runs WHERE {condition} \
             ORDER BY created_at DESC, bead DESC, epoch DESC LIMIT {limit}"
        );
        self.rows(&sql, &clauses.params(), run_from)
    }

    /// How many runs all pages have together.
    pub fn count_runs(&self, page: &RunPage) -> Result<u64, StoreError> {
        let counted = |live: Option<bool>| {
            let clauses = RunPage { live, ..page.clone() }.clauses();
            let sql = format!("SELECT COUNT(*) FROM runs WHERE {}", clauses.where_clause());
            self.number(&sql, &clauses.params())
        };
        // An index counts all runs, and another one those that are live.
        let runs = match page.live {
            Some(false) => counted(None)? - counted(Some(true))?,
            live => counted(live)?,
        };
        Ok(count(runs))
    }

    /// The run of this name.
    pub fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.first(ONE, &[(&id.bead).into(), i64::from(id.epoch).into()], run_from)
    }

    /// The live run of a bead.
    pub fn live_run(&self, bead: &BeadId) -> Result<Option<Run>, StoreError> {
        self.first(LIVE_OF, &[bead.into()], run_from)
    }

    /// Every live run, oldest first, without its steps: callers that count runs need none.
    pub fn live_runs(&self) -> Result<Vec<Run>, StoreError> {
        let mut live = self.rows(LIVE, &[], run_from)?;
        // Not by the database: SQLite would rather walk through every run there ever was, in this order.
        live.sort_by(|a, b| a.created_at.cmp(&b.created_at).then_with(|| a.id.cmp(&b.id)));
        Ok(live)
    }

    /// Every run of a bead, newest first.
    pub fn runs_of(&self, bead: &BeadId) -> Result<Vec<Run>, StoreError> {
        self.rows(OF_BEAD, &[bead.into()], run_from)
    }

    /// The last runs, newest first.
    pub fn recent_runs(&self, limit: usize) -> Result<Vec<Run>, StoreError> {
        self.rows(RECENT, &[i64::try_from(limit).unwrap_or(i64::MAX).into()], run_from)
    }

    /// The beads whose last run failed or was lost, and that were not scheduled since; also those that are never
    /// scheduled, because agents ask for them.
    pub fn beads_with_failed_runs(&self) -> Result<Vec<BeadId>, StoreError> {
        self.rows(FAILED_LAST, &[], |row| id_from(row, 0))
    }

    /// Open beads whose last run was lost and that were not scheduled since, with how many attempts they used.
    pub fn beads_out_of_attempts(&self, limit: usize) -> Result<Vec<(BeadId, u32)>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.rows(OUT_OF_ATTEMPTS, &[limit.into()], |row| {
            Ok((id_from(row, 0)?, u32::try_from(row.int(1)?).unwrap_or(u32::MAX)))
        })
    }

    /// The last runs of beads that their workers gave back undecided and that were not scheduled since: escalated, put off,
    /// done while the bead is open, ended without a change, or ended because they were over a limit of their own.
    pub fn runs_handed_back(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.rows(HANDED_BACK, &[limit.into()], |row| {
            let epoch = u32::try_from(row.int(1)?)
                .map_err(|_| StoreError::Corrupt("the number of a run is too large".to_owned()))?;
            Ok(RunId { bead: id_from(row, 0)?, epoch })
        })
    }

    /// The name of the next run of a bead.
    pub fn next_run_id(&self, bead: &BeadId) -> Result<RunId, StoreError> {
        let last = self.number(LAST_EPOCH, &[bead.into()])?;
        let epoch = u32::try_from(last + 1)
            .map_err(|_| StoreError::Corrupt(format!("{bead} has no number left for a run")))?;
        Ok(RunId { bead: bead.clone(), epoch })
    }
}

impl Writer<'_> {
    /// Writes a run that has just been admitted.
    pub fn insert_run(&mut self, run: &Run) -> Result<(), StoreError> {
        let params = [
            (&run.id.bead).into(),
            i64::from(run.id.epoch).into(),
            Param::Blob(run.uid.as_bytes()),
            as_int(run.context).into(),
            run.rig.as_str().into(),
            run.executor.as_str().into(),
            (&run.runtime).into(),
            (&run.agent).into(),
            run.place.as_ref().map_or("", WorkerPlace::as_str).into(),
            (&run.host).into(),
            (&run.account).into(),
            run.gated.into(),
            run.state.as_str().into(),
            (&run.starter).into(),
            (&run.formula).into(),
            run.steps.as_str().into(),
            run.created_at.into(),
            (&run.created_by).into(),
            run.reserved.tokens.map(as_int).into(),
            run.reserved.cost.map(|Money(cost)| as_int(cost)).into(),
            (run.reserved != Reserve::default()).into(),
        ];
        self.execute(INSERT, &params)?;
        self.record_run(run, EventPayload::RunStarting(taken_by(run, None)));
        Ok(())
    }

    /// Gives a run that is starting the place and the agent that `run` has. `false` if it is not starting any more.
    pub fn move_start(&mut self, run: &Run) -> Result<bool, StoreError> {
        let params = [
            (&run.id.bead).into(),
            i64::from(run.id.epoch).into(),
            (&run.agent).into(),
            run.place.as_ref().map_or("", WorkerPlace::as_str).into(),
        ];
        Ok(self.execute(MOVE_START, &params)? > 0)
    }

    /// The worker takes a run that is starting, in this place. `false` if it is not starting any more.
    pub fn claim_run(&mut self, run: &Run, place: &Workplace) -> Result<bool, StoreError> {
        let params = [
            (&run.id.bead).into(),
            i64::from(run.id.epoch).into(),
            self.now().into(),
            (&place.session).into(),
            (&place.tree).into(),
            (&place.branch).into(),
            (&place.base).into(),
            (&place.base_commit).into(),
        ];
        if self.execute(CLAIM, &params)? == 0 {
            return Ok(false);
        }
        self.record_run(run, EventPayload::Dispatched(taken_by(run, None)));
        Ok(true)
    }

    /// Writes down the report of the worker of a live run, and the commit that is accepted of it. `false` if it has
    /// ended already.
    pub fn accept_work(
        &mut self,
        run: &Run,
        said: DoneStatus,
        accepted: &str,
    ) -> Result<bool, StoreError> {
        let params = [
            (&run.id.bead).into(),
            i64::from(run.id.epoch).into(),
            said.as_str().into(),
            accepted.into(),
        ];
        if self.execute(ACCEPT, &params)? == 0 {
            return Ok(false);
        }
        let (said, commit) = (said.as_str().to_owned(), accepted.to_owned());
        self.record_run(run, EventPayload::WorkAccepted(AcceptedWork { said, commit }));
        Ok(true)
    }

    /// Writes down that a branch of the origin has the work of a run, as this commit.
    pub fn confirm_landing(
        &mut self,
        run: &Run,
        branch: &str,
        commit: &str,
    ) -> Result<(), StoreError> {
        let params = [(&run.id.bead).into(), i64::from(run.id.epoch).into(), commit.into()];
        self.apply(LAND, &params)?;
        let spent = self.spent_by_runs(&run.id.bead, 0..=run.id.epoch)?;
        let landed = LandedWork {
            branch: branch.to_owned(),
            commit: commit.to_owned(),
            tokens: spent.known_tokens(),
            cost: spent.known_cost().map(|cost| cost.to_string()),
        };
        self.record_run(run, EventPayload::Landed(landed));
        Ok(())
    }

    /// Writes down that the worker of a run is silent, or goes on. `false` if that is known, or it is not at work any more.
    pub fn change_silence(&mut self, run: &Run, change: SilenceChange) -> Result<bool, StoreError> {
        let (kind, silence, statement): (fn(SilentSince) -> EventPayload, _, _) = match change {
            SilenceChange::Begins(silence) => (EventPayload::RunSilent, silence, SILENT),
            SilenceChange::Ends(silence) => (EventPayload::RunGoesOn, silence, HEARD_AGAIN),
        };
        let id = &run.id;
        let params = [(&id.bead).into(), i64::from(id.epoch).into(), silence.since.into()];
        if self.execute(statement, &params)? == 0 {
            return Ok(false);
        }
        self.record_run(run, kind(SilentSince { since: silence.since }));
        Ok(true)
    }

    /// Writes down that a live run is over a limit of its own. `false` if that is known, or it has ended already.
    pub fn mark_over_limit(&mut self, run: &Run, limit: RunLimit) -> Result<bool, StoreError> {
        let id = &run.id;
        let params = [(&id.bead).into(), i64::from(id.epoch).into(), limit.as_str().into()];
        self.touch_run(id)?;
        Ok(self.execute(OVER_LIMIT, &params)? > 0)
    }

    /// Writes down the actor that wants a live run to end; the process that writes its end needs it.
    pub fn intend_to_cancel(&mut self, run: &Run, by: &str) -> Result<(), StoreError> {
        self.touch_run(&run.id)?;
        self.apply(INTEND, &[(&run.id.bead).into(), i64::from(run.id.epoch).into(), by.into()])
    }

    /// Ends a live run. `false` if it has ended already.
    pub fn end_run(&mut self, run: &Run, end: &RunEnd, by: &str) -> Result<bool, StoreError> {
        let kind = match end.state {
            RunState::Done => EventPayload::RunDone,
            RunState::Lost => EventPayload::RunLost,
            RunState::Cancelled => EventPayload::RunCancelled,
            RunState::Failed | RunState::Starting | RunState::Running | RunState::Blocked => {
                EventPayload::RunFailed
            }
        };
        self.end_run_as(run, end, by, kind)
    }

    /// Ends a live run whose worker never came to work. `false` if it has ended already.
    pub fn fail_start(&mut self, run: &Run, why: &str, by: &str) -> Result<bool, StoreError> {
        let end = RunEnd::without_status(RunState::Failed, format!("it did not start: {why}"));
        self.end_run_as(run, &end, by, EventPayload::StartFailed)
    }

    fn end_run_as(
        &mut self,
        run: &Run,
        end: &RunEnd,
        by: &str,
        kind: fn(RunEnded) -> EventPayload,
    ) -> Result<bool, StoreError> {
        let params = [
            (&run.id.bead).into(),
            i64::from(run.id.epoch).into(),
            end.state.as_str().into(),
            self.now().into(),
            by.into(),
            end.exit_code.map(i64::from).into(),
            end.exit_signal.map(i64::from).into(),
            (&end.reason).into(),
        ];
        if self.execute(END, &params)? == 0 {
            return Ok(false);
        }
        // Notices are written only for the ends of pulled runs; this field marks those.
        let pulled_by = (run.executor == ExecutorKind::Pull).then(|| run.agent.clone());
        self.record_run(run, kind(RunEnded { reason: end.reason.clone(), pulled_by }));
        Ok(true)
    }

    /// Records an event about a run.
    pub fn record_run(&mut self, run: &Run, payload: EventPayload) {
        self.record(NewEvent {
            bead: Some(run.id.bead.clone()),
            rig: Some(run.rig.clone()),
            run: Some(run.id.clone()),
            payload,
        });
    }
}

/// The agent that has a run, and until when it has it for sure.
pub(super) fn taken_by(run: &Run, lease_expires_at: Option<Timestamp>) -> RunTaken {
    RunTaken { agent: run.agent.clone(), lease_expires_at }
}

pub(super) fn run_from(row: &dyn Row) -> Result<Run, StoreError> {
    let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
    let instant = |column| -> Result<Option<Timestamp>, StoreError> {
        Ok(row.int_or_null(column)?.map(Timestamp::from_nanos))
    };
    let small = |column| -> Result<Option<i32>, StoreError> {
        Ok(row.int_or_null(column)?.and_then(|number| i32::try_from(number).ok()))
    };
    let epoch = u32::try_from(row.int(1)?)
        .map_err(|_| StoreError::Corrupt("an epoch that is no small number".to_owned()))?;
    let uid = row
        .blob(2)?
        .try_into()
        .map_err(|_| StoreError::Corrupt("a uid that is not 16 bytes long".to_owned()))?;
    Ok(Run {
        id: RunId { bead: id_from(row, 0)?, epoch },
        uid: Uid::from_bytes(uid),
        context: count(row.int(3)?),
        rig: RigSlug::trusted(text(4)?),
        executor: ExecutorKind::parse(row.text(5)?)?,
        runtime: text(6)?,
        agent: text(7)?,
        place: Some(text(8)?).filter(|place| !place.is_empty()).map(WorkerPlace::trusted),
        host: text(9)?,
        account: text(10)?,
        gated: row.flag(11)?,
        state: RunState::parse(row.text(12)?)?,
        starter: text(13)?,
        formula: text(14)?,
        steps: Json::trusted(text(15)?),
        created_at: Timestamp::from_nanos(row.int(16)?),
        created_by: text(17)?,
        running_at: instant(18)?,
        ended_at: instant(19)?,
        ended_by: text(20)?,
        exit_code: small(21)?,
        exit_signal: small(22)?,
        reason: text(23)?,
        workplace: Workplace {
            session: text(24)?,
            tree: text(25)?,
            branch: text(26)?,
            base: text(27)?,
            base_commit: text(28)?,
        },
        said: Some(row.text(29)?)
            .filter(|said| !said.is_empty())
            .map(DoneStatus::parse)
            .transpose()?,
        landing: Landing { accepted: text(30)?, commit: text(31)? },
        usage: Usage {
            peak_memory_mb: row.int_or_null(32)?.map(|mb| u32::try_from(mb).unwrap_or(u32::MAX)),
            tokens: row.int_or_null(33)?.map(count),
            cost: row.int_or_null(34)?.map(|cost| Money(count(cost))),
        },
        lease: row.int_or_null(35)?.map(Lease::of_seconds).transpose()?,
        lease_expires_at: instant(36)?,
        silent_since: instant(37)?,
        over_limit: row.text_or_null(38)?.map(RunLimit::parse).transpose()?,
        reserved: Reserve {
            tokens: row.int_or_null(39)?.map(count),
            cost: row.int_or_null(40)?.map(|cost| Money(count(cost))),
        },
    })
}
