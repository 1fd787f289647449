//! Numbers about the whole store.

use super::statements;
use crate::{Reader, StoreError};

statements! {
    BY_STATUS = "SELECT status, COUNT(*) FROM beads WHERE ephemeral = 0 GROUP BY status ORDER BY status";
    BLOCKED = "SELECT COUNT(*) FROM beads WHERE open_blockers > 0 AND status <> 'closed' \
        AND status <> 'pinned' AND ephemeral = 0";
    LEAD_TIME = "SELECT COUNT(*), CAST(COALESCE(SUM(closed_at / 1000000000 - created_at / 1000000000), 0) AS BIGINT) \
        FROM beads WHERE closed_at IS NOT NULL AND ephemeral = 0";
    CLOSABLE_EPICS = "SELECT COUNT(*) FROM beads e WHERE e.issue_type = 'epic' \
        AND e.status <> 'closed' AND e.ephemeral = 0 \
        AND EXISTS (SELECT 1 FROM dependencies d JOIN beads c ON c.id = d.issue_id \
            WHERE d.depends_on_id = e.id AND d.type = 'parent-child') \
        AND NOT EXISTS (SELECT 1 FROM dependencies d JOIN beads c ON c.id = d.issue_id \
            WHERE d.depends_on_id = e.id AND d.type = 'parent-child' AND c.status <> 'closed')";
}

/// Numbers about the beads that are not ephemeral.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// How many have each status.
    pub by_status: Vec<(String, i64)>,
    /// How many wait for another.
    pub blocked: i64,
    /// How many epics could be closed because all their children are.
    pub closable_epics: i64,
    /// Mean time from making to closing, in seconds.
    pub lead_time_seconds: i64,
}

impl Statistics {
    /// How many there are.
    pub fn total(&self) -> i64 {
        self.by_status.iter().map(|(_, count)| count).sum()
    }

    /// Mean time from making to closing, in hours.
    #[expect(clippy::cast_precision_loss, reason = "hours for people to read")]
    pub fn lead_time_hours(&self) -> f64 {
        self.lead_time_seconds as f64 / 3600.0
    }

    /// How many have this status.
    pub fn with_status(&self, status: &str) -> i64 {
        self.by_status.iter().find(|(name, _)| name == status).map_or(0, |(_, count)| *count)
    }
}

impl Reader<'_> {
    /// Counts everything.
    pub fn statistics(&self) -> Result<Statistics, StoreError> {
        let lead = self.first(LEAD_TIME, &[], |row| Ok((row.int(0)?, row.int(1)?)))?;
        let (closed, seconds) = lead.unwrap_or((0, 0));
        Ok(Statistics {
            by_status: self
                .rows(BY_STATUS, &[], |row| Ok((row.text(0)?.to_owned(), row.int(1)?)))?,
            blocked: self.number(BLOCKED, &[])?,
            closable_epics: self.number(CLOSABLE_EPICS, &[])?,
            lead_time_seconds: seconds.checked_div(closed).unwrap_or(0),
        })
    }
}
