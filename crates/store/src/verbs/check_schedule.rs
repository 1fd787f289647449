//! Recomputing what contexts, lanes and runs repeat of others.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use gt_core::Timestamp;
use gt_core::schedule::RunState;

use super::check::{Found, tell};
use super::statements;
use crate::{Reader, StoreError};

statements! {
    STANDINGS = "SELECT c.id, c.held, s.held, c.priority, s.priority, c.asleep_until, s.asleep_until, \
        c.convoys, s.convoys FROM contexts c JOIN context_standing s ON s.number = c.number ORDER BY c.number";
    COUNTED = "SELECT rig, place, account, gated, priority, convoys, COUNT(*), \
        COUNT(CASE WHEN held = 0 AND asleep_until IS NULL THEN 1 END) FROM contexts \
        WHERE closed_at IS NULL AND starting = 0 GROUP BY rig, place, account, gated, priority, convoys";
    LANES = "SELECT rig, place, account, gated, priority, convoys, queued, awake FROM lanes";
    LATEST = "SELECT bead, COALESCE(MAX(CASE WHEN latest = 1 THEN number END), 0), MAX(number) \
        FROM contexts GROUP BY bead HAVING COUNT(CASE WHEN latest = 1 THEN 1 END) <> 1 \
        OR MAX(CASE WHEN latest = 1 THEN number END) <> MAX(number) ORDER BY bead";
    LAST_NUMBER = "SELECT (SELECT COALESCE(MAX(number), 0) FROM contexts), value FROM counters \
        WHERE name = 'context'";
    LIVE = "SELECT r.bead, r.epoch, r.state, b.status FROM runs r JOIN beads b ON b.id = r.bead \
        WHERE r.state IN ('starting', 'running', 'blocked') ORDER BY r.bead";
}

/// What a lane is told apart by, and how many are in it: all, and those that nothing keeps.
type Lanes = BTreeMap<String, (i64, i64)>;

impl Reader<'_> {
    /// Whether contexts, lanes and runs agree with what they are about.
    pub(super) fn check_schedule(&self, found: Found<'_>) -> Result<(), StoreError> {
        self.check_standings(found)?;
        self.check_lanes(found)?;
        self.check_latest(found)?;
        self.check_runs(found)
    }

    fn check_standings(&self, found: Found<'_>) -> Result<(), StoreError> {
        self.scan(STANDINGS, &[], |row| {
            let id = row.text(0)?;
            for (value, stored, computed) in [("held", 1, 2), ("priority", 3, 4)] {
                let (stored, computed) = (row.int(stored)?, row.int(computed)?);
                if stored != computed {
                    tell(found, id, value, stored, computed);
                }
            }
            let (stored, computed) = (row.text(7)?, row.text(8)?);
            if stored != computed {
                tell(found, id, "convoys", stored, computed);
            }
            // A date that has passed is forgotten by whoever looks at the clock, which we do not.
            let (stored, computed) = (row.int_or_null(5)?, row.int_or_null(6)?);
            if stored.is_some() && stored != computed {
                let shown = |at: Option<i64>| match at {
                    Some(at) => Timestamp::from_nanos(at).to_string(),
                    None => "empty".to_owned(),
                };
                tell(found, id, "asleep_until", shown(stored), shown(computed));
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    fn lanes_of(&self, sql: &str) -> Result<Lanes, StoreError> {
        let rows = self.rows(sql, &[], |row| {
            let (rig, place, account) = (row.text(0)?, row.text(1)?, row.text(2)?);
            let (gated, priority, convoys) = (row.int(3)?, row.int(4)?, row.text(5)?);
            let name = format!(
                "lane rig={rig:?} place={place:?} account={account:?} gated={gated} priority={priority} \
                 convoys={convoys:?}"
            );
            Ok((name, (row.int(6)?, row.int(7)?)))
        })?;
        Ok(rows.into_iter().collect())
    }

    fn check_lanes(&self, found: Found<'_>) -> Result<(), StoreError> {
        let mut counted = self.lanes_of(COUNTED)?;
        let mut compare = |lane: &str, stored: (i64, i64), counted: (i64, i64)| {
            for (value, stored, counted) in
                [("queued", stored.0, counted.0), ("awake", stored.1, counted.1)]
            {
                if stored != counted {
                    tell(found, lane, value, stored, counted);
                }
            }
        };
        for (lane, stored) in self.lanes_of(LANES)? {
            compare(&lane, stored, counted.remove(&lane).unwrap_or_default());
        }
        for (lane, counted) in counted {
            compare(&lane, (0, 0), counted);
        }
        Ok(())
    }

    fn check_latest(&self, found: Found<'_>) -> Result<(), StoreError> {
        self.scan(LATEST, &[], |row| {
            let (stored, computed) = (row.int(1)?, row.int(2)?);
            tell(found, row.text(0)?, "the number of its latest context", stored, computed);
            Ok(ControlFlow::Continue(()))
        })?;
        let numbers = self.first(LAST_NUMBER, &[], |row| Ok((row.int(0)?, row.int(1)?)))?;
        if let Some((last, counter)) = numbers
            && counter < last
        {
            let value = "the number of the last context";
            tell(found, "counter context", value, counter, format_args!("at least {last}"));
        }
        Ok(())
    }

    /// While a run is live, the status of its bead follows from it.
    fn check_runs(&self, found: Found<'_>) -> Result<(), StoreError> {
        self.scan(LIVE, &[], |row| {
            let (bead, epoch, state) = (row.text(0)?, row.int(1)?, row.text(2)?);
            let expected = match RunState::parse(state)? {
                RunState::Starting => "hooked",
                RunState::Running => "in_progress",
                RunState::Blocked => "blocked",
                RunState::Done | RunState::Failed | RunState::Lost | RunState::Cancelled => {
                    return Ok(ControlFlow::Continue(()));
                }
            };
            let status = row.text(3)?;
            if status != expected {
                let value = format!("status while its run {bead}#{epoch} is {state}");
                tell(found, bead, value, status, expected);
            }
            Ok(ControlFlow::Continue(()))
        })
    }
}
