//! The usage of runs, the estimates for them, and the guards that hold up starts on a machine.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;

use gt_core::cost::{SpendingChange, Spent, TokenCounts, UsageRecord, UsageSource};
use gt_core::decide::UsageHistory;
use gt_core::event::RunUsage;
use gt_core::schedule::{Money, Run, RunId, Usage};
use gt_core::{BeadId, EventPayload, RigSlug, Timestamp};

use super::beads::id_from;
use super::contexts::{as_int, count};
use super::hydrate::{IDS_PER_STATEMENT, placeholders};
use super::runs::{live, run_columns, run_from};
use super::statements;
use crate::engine::Row;
use crate::{Reader, StoreError, Writer};

/// The sums of [`Spent`].
macro_rules! spent_columns {
    () => {
        "CAST(COALESCE(SUM(input + output + cache_read + cache_write + reasoning), 0) AS BIGINT), \
         CAST(COALESCE(SUM(cost), 0) AS BIGINT), CAST(COALESCE(SUM(unpriced), 0) AS BIGINT)"
    };
}

statements! {
    STARTS = "SELECT created_at, rig FROM runs WHERE created_at > ?1 AND executor IN ('tmux', 'process', 'ssh') \
        AND (running_at IS NOT NULL OR state = 'starting')";
    SPENT = "SELECT at, rig, account, CAST(SUM(input + output + cache_read + cache_write + reasoning) AS BIGINT), \
        CAST(SUM(cost) AS BIGINT) FROM spending WHERE at > ?1 GROUP BY at, rig, account ORDER BY at, rig, account";
    SPENT_FROM = concat!("SELECT ", spent_columns!(), " FROM spending WHERE at >= ?1");
    SPENT_BY_HOUR = concat!("SELECT (at - ?1) / 3600000000000, ", spent_columns!(), " FROM spending WHERE at >= ?1 \
        GROUP BY (at - ?1) / 3600000000000 ORDER BY 1");
    SPENT_BY_RUNS = concat!("SELECT ", spent_columns!(), " FROM spending WHERE bead = ?1 AND epoch BETWEEN ?2 AND ?3");
    SPENT_BY_MEMBERS = concat!("SELECT ", spent_columns!(), " FROM dependencies d JOIN spending ON bead = d.depends_on_id \
        WHERE d.issue_id = ?1 AND d.type = 'tracks'");
    SPENT_BY_QUEUED = concat!("SELECT bead, ", spent_columns!(), " FROM spending \
        WHERE bead IN (SELECT bead FROM contexts WHERE closed_at IS NULL) GROUP BY bead ORDER BY bead");
    SPENT_BY_CONVOYS = concat!("SELECT d.issue_id, ", spent_columns!(), " FROM beads v \
        JOIN dependencies d ON d.issue_id = v.id LEFT JOIN spending ON bead = d.depends_on_id \
        WHERE v.issue_type = 'convoy' AND v.status = 'open' AND d.type = 'tracks' GROUP BY d.issue_id ORDER BY d.issue_id");
    IN_OPEN_CONVOYS = concat!("SELECT d.depends_on_id, d.issue_id FROM dependencies d JOIN beads v ON v.id = d.issue_id \
        WHERE d.type = 'tracks' AND v.issue_type = 'convoy' AND v.status = 'open' AND d.depends_on_id IN \
        (SELECT bead FROM contexts WHERE closed_at IS NULL UNION SELECT bead FROM runs WHERE ", live!(), " \
        UNION SELECT bead FROM runs WHERE usage_pending = 1) \
        ORDER BY d.depends_on_id, d.issue_id");
    MEASURED = "SELECT formula, runtime, rig, tokens, cost FROM runs WHERE ended_at IS NOT NULL \
        AND (tokens IS NOT NULL OR cost IS NOT NULL) ORDER BY ended_at DESC LIMIT ?1";
    SPENDING = "SELECT bead, epoch, rig, account, model, at, input, output, cache_read, cache_write, reasoning, cost, \
        priced, unpriced FROM spending WHERE at >= ?1 AND at < ?2 ORDER BY at, bead, epoch, model";
    SPEND = "INSERT INTO spending (bead, epoch, rig, account, model, at, input, output, cache_read, cache_write, \
        reasoning, cost, priced, unpriced) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) \
        ON CONFLICT (bead, epoch, model, at) DO UPDATE SET input = spending.input + excluded.input, \
        output = spending.output + excluded.output, cache_read = spending.cache_read + excluded.cache_read, \
        cache_write = spending.cache_write + excluded.cache_write, \
        reasoning = spending.reasoning + excluded.reasoning, cost = spending.cost + excluded.cost, \
        priced = spending.priced + excluded.priced, unpriced = spending.unpriced + excluded.unpriced";
    RECORDS = "SELECT session, model, source, input, output, cache_read, cache_write, reasoning, reported, priced \
        FROM usage_records WHERE bead = ?1 AND epoch = ?2 ORDER BY session, model, source";
    KEEP_RECORD = "INSERT INTO usage_records (bead, epoch, session, model, source, input, output, cache_read, \
        cache_write, reasoning, reported, priced) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
        ON CONFLICT (bead, epoch, session, model, source) DO UPDATE SET input = excluded.input, \
        output = excluded.output, cache_read = excluded.cache_read, cache_write = excluded.cache_write, \
        reasoning = excluded.reasoning, reported = excluded.reported, priced = excluded.priced";
    NOTE = "UPDATE runs SET peak_memory_mb = coalesce(?3, peak_memory_mb), tokens = ?4, cost = ?5 \
        WHERE bead = ?1 AND epoch = ?2";
    DONE_UNTOLD = "SELECT COUNT(*) FROM beads b WHERE b.status = 'closed' AND b.closed_at >= ?1 AND b.closed_at < ?2 \
        AND (b.outcome IS NULL OR b.outcome = 'success') \
        AND EXISTS (SELECT 1 FROM runs r WHERE r.bead = b.id AND r.running_at IS NOT NULL) \
        AND NOT EXISTS (SELECT 1 FROM spending s WHERE s.bead = b.id)";
    PENDING = concat!("SELECT ", run_columns!("'{}'"), " FROM runs WHERE usage_pending = 1 AND ended_at IS NOT NULL");
    SETTLE = "UPDATE runs SET usage_pending = 0 WHERE bead = ?1 AND epoch = ?2 AND usage_pending = 1";
    ESTIMATES = "SELECT name, memory_mb, runs FROM estimates ORDER BY name";
    ESTIMATE = "INSERT INTO estimates (name, memory_mb, runs) VALUES (?1, ?2, ?3) \
        ON CONFLICT (name) DO UPDATE SET memory_mb = excluded.memory_mb, runs = excluded.runs";
    GUARDS = "SELECT kind FROM guards WHERE host = ?1 ORDER BY kind";
    SHUT = "INSERT INTO guards (host, kind, since) VALUES (?1, ?2, ?3) ON CONFLICT (host, kind) DO NOTHING";
    OPEN = "DELETE FROM guards WHERE host = ?1 AND kind = ?2";
}

/// Something that was used at some moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageAt {
    /// When it was recorded.
    pub at: Timestamp,
    /// The rig.
    pub rig: RigSlug,
    /// The account; empty for none.
    pub account: String,
    /// The tokens.
    pub tokens: u64,
    /// The cost as far as it is known.
    pub cost: Money,
}

/// The growth of the usage of a run for one model, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendingEntry {
    /// The run.
    pub run: RunId,
    /// Its rig.
    pub rig: RigSlug,
    /// The account it used; empty for none.
    pub account: String,
    /// When.
    pub at: Timestamp,
    /// By how much, and for which model.
    pub change: SpendingChange,
}

/// The memory that a run is expected to take, learned from earlier runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// The name of its runtime.
    pub name: String,
    /// The memory in megabytes.
    pub memory_mb: u32,
    /// The number of runs it was learned from.
    pub runs: u64,
}

/// A guard that can hold up starts on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Over its memory.
    Memory,
    /// Over its load.
    Load,
    /// Over its disk.
    Disk,
}

impl Guard {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Load => "load",
            Self::Disk => "disk",
        }
    }
}

impl Reader<'_> {
    /// When runs that take a slot were started after `from`, and in which rig. A start that failed is none.
    pub fn starts_since(&self, from: Timestamp) -> Result<Vec<(Timestamp, RigSlug)>, StoreError> {
        self.rows(STARTS, &[from.into()], |row| {
            Ok((Timestamp::from_nanos(row.int(0)?), RigSlug::trusted(row.text(1)?.to_owned())))
        })
    }

    /// The tokens and the money that runs have used after `from`, the oldest first.
    pub fn spent_since(&self, from: Timestamp) -> Result<Vec<UsageAt>, StoreError> {
        self.rows(SPENT, &[from.into()], |row| {
            Ok(UsageAt {
                at: Timestamp::from_nanos(row.int(0)?),
                rig: RigSlug::trusted(row.text(1)?.to_owned()),
                account: row.text(2)?.to_owned(),
                tokens: count(row.int(3)?),
                cost: Money(count(row.int(4)?)),
            })
        })
    }

    /// The usage of runs from a moment on.
    pub fn spent_from(&self, from: Timestamp) -> Result<Spent, StoreError> {
        Ok(self.first(SPENT_FROM, &[from.into()], |row| spent_at(row, 0))?.unwrap_or_default())
    }

    /// The usage of the runs of a bead with these epochs.
    pub fn spent_by_runs(
        &self,
        bead: &BeadId,
        epochs: RangeInclusive<u32>,
    ) -> Result<Spent, StoreError> {
        let params =
            [bead.into(), i64::from(*epochs.start()).into(), i64::from(*epochs.end()).into()];
        Ok(self.first(SPENT_BY_RUNS, &params, |row| spent_at(row, 0))?.unwrap_or_default())
    }

    /// The usage of all runs of each of these beads; beads of which nothing was reported are left out.
    pub fn spent_by_beads(&self, beads: &[BeadId]) -> Result<HashMap<BeadId, Spent>, StoreError> {
        let mut found = HashMap::new();
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let columns = spent_columns!();
            let sql = format!(
                "SELECT bead, {columns} FROM spending WHERE bead IN ({list}) GROUP BY bead"
            );
            found.extend(self.rows(&sql, &params, bead_and_spent)?);
        }
        Ok(found)
    }

    /// The usage of the runs of each scheduled bead; beads of which nothing was reported are left out.
    pub fn spent_by_scheduled_beads(&self) -> Result<Vec<(BeadId, Spent)>, StoreError> {
        self.rows(SPENT_BY_QUEUED, &[], bead_and_spent)
    }

    /// The usage of the runs of all beads that an open convoy tracks, for each open convoy.
    pub fn spent_by_open_convoys(&self) -> Result<Vec<(BeadId, Spent)>, StoreError> {
        self.rows(SPENT_BY_CONVOYS, &[], bead_and_spent)
    }

    /// The runs that have ended and whose usage is not final yet: they hold what they have reserved.
    pub fn runs_with_pending_usage(&self) -> Result<Vec<Run>, StoreError> {
        self.rows(PENDING, &[], run_from)
    }

    /// Each bead that is scheduled, or has a run that is live or whose usage is not final, with each open convoy that tracks it.
    pub fn active_members_of_open_convoys(&self) -> Result<Vec<(BeadId, BeadId)>, StoreError> {
        self.rows(IN_OPEN_CONVOYS, &[], |row| Ok((id_from(row, 0)?, id_from(row, 1)?)))
    }

    /// The usage of the runs of all beads that a convoy tracks.
    pub fn spent_by_members(&self, convoy: &BeadId) -> Result<Spent, StoreError> {
        let spent = self.first(SPENT_BY_MEMBERS, &[convoy.into()], |row| spent_at(row, 0))?;
        Ok(spent.unwrap_or_default())
    }

    /// The usage of the last runs that have ended and told of it.
    pub fn usage_history(&self, runs: u32) -> Result<UsageHistory, StoreError> {
        let rows = self.rows(MEASURED, &[i64::from(runs).into()], |row| {
            let usage = Usage {
                peak_memory_mb: None,
                tokens: row.int_or_null(3)?.map(count),
                cost: row.int_or_null(4)?.map(|cost| Money(count(cost))),
            };
            let rig = RigSlug::trusted(row.text(2)?.to_owned());
            Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned(), rig, usage))
        })?;
        let mut history = UsageHistory::default();
        for (formula, runtime, rig, usage) in rows {
            history.add(&formula, &runtime, &rig, &usage);
        }
        Ok(history)
    }

    /// Spending from one moment until before another, the oldest first.
    pub fn spending(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<SpendingEntry>, StoreError> {
        self.rows(SPENDING, &[from.into(), until.into()], |row| {
            let bead = BeadId::trusted(row.text(0)?.to_owned());
            let epoch = u32::try_from(row.int(1)?).unwrap_or(u32::MAX);
            Ok(SpendingEntry {
                run: RunId { bead, epoch },
                rig: RigSlug::trusted(row.text(2)?.to_owned()),
                account: row.text(3)?.to_owned(),
                at: Timestamp::from_nanos(row.int(5)?),
                change: SpendingChange {
                    model: row.text(4)?.to_owned(),
                    input: row.int(6)?,
                    output: row.int(7)?,
                    cache_read: row.int(8)?,
                    cache_write: row.int(9)?,
                    reasoning: row.int(10)?,
                    cost: row.int(11)?,
                    priced: row.int(12)?,
                    unpriced: row.int(13)?,
                },
            })
        })
    }

    /// Spending in each hour since a moment, by the number of the hour from then; hours without anything are left out.
    pub fn spent_by_hour(&self, from: Timestamp) -> Result<Vec<(u64, Spent)>, StoreError> {
        self.rows(SPENT_BY_HOUR, &[from.into()], |row| Ok((count(row.int(0)?), spent_at(row, 1)?)))
    }

    /// The usage of each run of these beads, as far as it was reported, and the part of its cost that is by the prices.
    pub fn spent_by_runs_of(
        &self,
        beads: &[BeadId],
    ) -> Result<HashMap<RunId, (Spent, Money)>, StoreError> {
        let mut found = HashMap::new();
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let columns = spent_columns!();
            let sql = format!(
                "SELECT bead, epoch, CAST(COALESCE(SUM(priced), 0) AS BIGINT), {columns} FROM spending \
                 WHERE bead IN ({list}) GROUP BY bead, epoch"
            );
            found.extend(self.rows(&sql, &params, |row| {
                let epoch = u32::try_from(row.int(1)?).unwrap_or(u32::MAX);
                let run = RunId { bead: id_from(row, 0)?, epoch };
                Ok((run, (spent_at(row, 3)?, Money(count(row.int(2)?)))))
            })?);
        }
        Ok(found)
    }

    /// Those of these beads that are closed, and neither failed nor cancelled.
    pub fn done_among(&self, beads: &[BeadId]) -> Result<BTreeSet<BeadId>, StoreError> {
        let mut found = BTreeSet::new();
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let sql = format!(
                "SELECT id FROM beads WHERE id IN ({list}) AND status = 'closed' \
                 AND (outcome IS NULL OR outcome = 'success')"
            );
            found.extend(self.rows(&sql, &params, |row| id_from(row, 0))?);
        }
        Ok(found)
    }

    /// How many beads were done from one moment until before another by runs of which no usage is known.
    pub fn done_without_usage(&self, from: Timestamp, until: Timestamp) -> Result<u64, StoreError> {
        let found = self.first(DONE_UNTOLD, &[from.into(), until.into()], |row| row.int(0))?;
        Ok(count(found.unwrap_or(0)))
    }

    /// Everything that the sources of a run have said about its usage.
    pub fn usage_records(&self, run: &RunId) -> Result<Vec<UsageRecord>, StoreError> {
        self.rows(RECORDS, &[(&run.bead).into(), i64::from(run.epoch).into()], |row| {
            Ok(UsageRecord {
                session: u32::try_from(row.int(0)?).unwrap_or(u32::MAX),
                model: row.text(1)?.to_owned(),
                source: UsageSource::parse(row.text(2)?)?,
                tokens: TokenCounts {
                    input: count(row.int(3)?),
                    output: count(row.int(4)?),
                    cache_read: count(row.int(5)?),
                    cache_write: count(row.int(6)?),
                    reasoning: count(row.int(7)?),
                },
                reported: row.int_or_null(8)?.map(|cost| Money(count(cost))),
                priced: row.int_or_null(9)?.map(|cost| Money(count(cost))),
            })
        })
    }

    /// The memory that runs are expected to take.
    pub fn estimates(&self) -> Result<Vec<MemoryEstimate>, StoreError> {
        self.rows(ESTIMATES, &[], |row: &dyn Row| {
            Ok(MemoryEstimate {
                name: row.text(0)?.to_owned(),
                memory_mb: u32::try_from(row.int(1)?).unwrap_or(u32::MAX),
                runs: count(row.int(2)?),
            })
        })
    }

    /// The guards that hold up starts on a machine.
    pub fn shut_guards(&self, host: &str) -> Result<Vec<Guard>, StoreError> {
        let kinds = self.rows(GUARDS, &[host.into()], |row| Ok(row.text(0)?.to_owned()))?;
        let guards = [Guard::Memory, Guard::Load, Guard::Disk];
        Ok(guards
            .into_iter()
            .filter(|guard| kinds.iter().any(|kind| kind == guard.as_str()))
            .collect())
    }
}

fn bead_and_spent(row: &dyn Row) -> Result<(BeadId, Spent), StoreError> {
    Ok((id_from(row, 0)?, spent_at(row, 1)?))
}

/// The sums in three columns from this one on.
fn spent_at(row: &dyn Row, column: usize) -> Result<Spent, StoreError> {
    Ok(Spent {
        tokens: count(row.int(column)?),
        cost: Money(count(row.int(column + 1)?)),
        unpriced: count(row.int(column + 2)?),
    })
}

impl Writer<'_> {
    /// Keeps what a source has said about a run.
    pub fn keep_usage_record(
        &mut self,
        run: &RunId,
        record: &UsageRecord,
    ) -> Result<(), StoreError> {
        let money = |money: Option<Money>| money.map(|Money(cost)| as_int(cost));
        let TokenCounts { input, output, cache_read, cache_write, reasoning } = record.tokens;
        let params = [
            (&run.bead).into(),
            i64::from(run.epoch).into(),
            i64::from(record.session).into(),
            (&*record.model).into(),
            record.source.as_str().into(),
            as_int(input).into(),
            as_int(output).into(),
            as_int(cache_read).into(),
            as_int(cache_write).into(),
            as_int(reasoning).into(),
            money(record.reported).into(),
            money(record.priced).into(),
        ];
        self.apply(KEEP_RECORD, &params)
    }

    /// Adds what the usage of a run grew by at a moment.
    pub fn add_spending(
        &mut self,
        run: &Run,
        at: Timestamp,
        change: &SpendingChange,
    ) -> Result<(), StoreError> {
        let params = [
            (&run.id.bead).into(),
            i64::from(run.id.epoch).into(),
            run.rig.as_str().into(),
            (&*run.account).into(),
            (&*change.model).into(),
            at.into(),
            change.input.into(),
            change.output.into(),
            change.cache_read.into(),
            change.cache_write.into(),
            change.reasoning.into(),
            change.cost.into(),
            change.priced.into(),
            change.unpriced.into(),
        ];
        self.apply(SPEND, &params)
    }

    /// Writes down the usage of a run so far. It is no event: it changes all the time while a run is live.
    pub fn set_run_usage(&mut self, run: &RunId, usage: &Usage) -> Result<(), StoreError> {
        let params = [
            (&run.bead).into(),
            i64::from(run.epoch).into(),
            usage.peak_memory_mb.map(i64::from).into(),
            usage.tokens.map(as_int).into(),
            usage.cost.map(|Money(cost)| as_int(cost)).into(),
        ];
        self.apply(NOTE, &params)
    }

    /// Writes down the usage of a run, live or ended, and records it as an event, with what was wrong with the reports.
    pub fn note_usage(
        &mut self,
        run: &Run,
        usage: &Usage,
        notes: Vec<String>,
    ) -> Result<(), StoreError> {
        self.set_run_usage(&run.id, usage)?;
        let used = RunUsage {
            peak_memory_mb: usage.peak_memory_mb,
            tokens: usage.tokens,
            cost: usage.cost.map(|cost| cost.to_string()),
            notes,
        };
        self.record_run(run, EventPayload::RunUsed(used));
        Ok(())
    }

    /// The usage of a run is final: its end gives back what it has reserved. `false` if that was so already.
    pub fn finalize_usage(&mut self, run: &RunId) -> Result<bool, StoreError> {
        Ok(self.execute(SETTLE, &[(&run.bead).into(), i64::from(run.epoch).into()])? > 0)
    }

    /// Writes down the memory that runs are expected to take.
    pub fn put_estimate(&mut self, estimate: &MemoryEstimate) -> Result<(), StoreError> {
        let (memory_mb, runs) = (i64::from(estimate.memory_mb), as_int(estimate.runs));
        self.apply(ESTIMATE, &[(&estimate.name).into(), memory_mb.into(), runs.into()])
    }

    /// Writes down that a guard holds up starts on a machine, or does not any more. It is no event: the
    /// contexts that wait for it say so when they are asked.
    pub fn set_guard(&mut self, host: &str, guard: Guard, is_shut: bool) -> Result<(), StoreError> {
        if is_shut {
            self.apply(SHUT, &[host.into(), guard.as_str().into(), self.now().into()])
        } else {
            self.apply(OPEN, &[host.into(), guard.as_str().into()])
        }
    }
}
