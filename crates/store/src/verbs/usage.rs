//! The usage of runs, the estimates for them, and the guards that hold up starts on a machine.

use gt_core::event::RunUsage;
use gt_core::schedule::{Money, Run, Usage};
use gt_core::{EventPayload, RigSlug, Timestamp};

use super::contexts::{as_int, count};
use super::statements;
use crate::engine::Row;
use crate::{Reader, StoreError, Writer};

statements! {
    STARTS = "SELECT created_at, rig FROM runs WHERE created_at > ?1 AND executor IN ('tmux', 'process', 'ssh') \
        AND (running_at IS NOT NULL OR state = 'starting')";
    SPENT = "SELECT used_at, tokens, cost FROM runs WHERE used_at IS NOT NULL AND used_at > ?1 \
        AND (tokens IS NOT NULL OR cost IS NOT NULL)";
    NOTE = "UPDATE runs SET peak_memory_mb = ?3, tokens = ?4, cost = ?5, used_at = ?6 \
        WHERE bead = ?1 AND epoch = ?2";
    ESTIMATES = "SELECT name, memory_mb, runs FROM estimates ORDER BY name";
    ESTIMATE = "INSERT INTO estimates (name, memory_mb, runs) VALUES (?1, ?2, ?3) \
        ON CONFLICT (name) DO UPDATE SET memory_mb = excluded.memory_mb, runs = excluded.runs";
    GUARDS = "SELECT kind FROM guards WHERE host = ?1 ORDER BY kind";
    SHUT = "INSERT INTO guards (host, kind, since) VALUES (?1, ?2, ?3) ON CONFLICT (host, kind) DO NOTHING";
    OPEN = "DELETE FROM guards WHERE host = ?1 AND kind = ?2";
}

/// Something that was used at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageAt {
    /// When it was recorded.
    pub at: Timestamp,
    /// The tokens.
    pub tokens: Option<u64>,
    /// The cost.
    pub cost: Option<Money>,
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
}

impl Guard {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Load => "load",
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

    /// The tokens and the money that runs have reported after `from`.
    pub fn spent_since(&self, from: Timestamp) -> Result<Vec<UsageAt>, StoreError> {
        self.rows(SPENT, &[from.into()], |row| {
            Ok(UsageAt {
                at: Timestamp::from_nanos(row.int(0)?),
                tokens: row.int_or_null(1)?.map(count),
                cost: row.int_or_null(2)?.map(|cost| Money(count(cost))),
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
        let guards = [Guard::Memory, Guard::Load];
        Ok(guards
            .into_iter()
            .filter(|guard| kinds.iter().any(|kind| kind == guard.as_str()))
            .collect())
    }
}

impl Writer<'_> {
    /// Writes down the usage of a run, live or ended.
    pub fn note_usage(&mut self, run: &Run, usage: &Usage) -> Result<(), StoreError> {
        let params = [
            (&run.id.bead).into(),
            i64::from(run.id.epoch).into(),
            usage.peak_memory_mb.map(i64::from).into(),
            usage.tokens.map(as_int).into(),
            usage.cost.map(|Money(cost)| as_int(cost)).into(),
            self.now().into(),
        ];
        self.apply(NOTE, &params)?;
        let used = RunUsage {
            peak_memory_mb: usage.peak_memory_mb,
            tokens: usage.tokens,
            cost: usage.cost.map(|cost| cost.to_string()),
        };
        self.record_run(run, EventPayload::RunUsed(used));
        Ok(())
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
