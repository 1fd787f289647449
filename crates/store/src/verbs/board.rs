//! The lanes of the board: the first beads of each, and how many there are. Each list reads an index in the order that is
//! shown; each count reads an index alone, and takes away the few beads that a run or a merge request has.

use gt_core::board::BoardLane;
use gt_core::{BeadId, IssueType, RigSlug, Timestamp};

use super::beads::id_from;
use super::find::{Clauses, FilterValue};
use crate::engine::Row;
use crate::{Reader, StoreError};

const LIVE: &str = "state IN ('starting', 'running', 'blocked')";
const OPEN: &str = "state NOT IN ('landed', 'cancelled', 'superseded')";
const READY: &str = "status = 'open' AND open_blockers = 0";
const BLOCKED: &str = "open_blockers > 0 AND status <> 'closed' \
    AND status NOT IN ('in_progress', 'hooked', 'pinned')";
/// Contexts of beads that no other bead holds, and that do not start all the same: they back off, were given up, or their run
/// has ended without finishing them.
const HELD_BACK: &str = "c.latest = 1 AND (c.close_reason IN ('circuit-broken', 'quarantined', 'invalid-context') \
    OR (c.close_reason = 'dispatched' AND EXISTS (SELECT 1 FROM runs e WHERE e.context = c.number \
        AND e.state IN ('failed', 'lost', 'cancelled'))) \
    OR (c.closed_at IS NULL AND c.next_attempt_at > ";
const HELD: &str = "open_blockers = 0 AND status IN ('blocked', 'deferred')";
/// The rig of a bead, in a form that makes no engine take the index of rigs, whose order is not that of a lane.
const BEAD_RIG: &str = "COALESCE(rig, '')";
const AT_WORK: &str = "status IN ('in_progress', 'hooked')";

/// The condition that a bead is work, and no container. It is the column `workable` in other words, which the indexes of the
/// lanes can answer.
fn is_work() -> String {
    let kinds: Vec<String> = IssueType::NOT_WORK
        .iter()
        .copied()
        .chain(["convoy", "epic"])
        .map(|kind| format!("'{kind}'"))
        .collect();
    format!("ephemeral = 0 AND pinned = 0 AND issue_type NOT IN ({})", kinds.join(", "))
}

/// The beads of a board.
#[derive(Debug, Clone)]
pub struct BoardFilter {
    /// Only those of this rig.
    pub rig: Option<RigSlug>,
    /// Only those that this convoy tracks.
    pub convoy: Option<BeadId>,
    /// The time, by which a backoff is over or not.
    pub now: Timestamp,
    /// Closed beads are shown if they were closed after this.
    pub landed_since: Timestamp,
    /// The most beads of each lane.
    pub limit: usize,
}

/// The place of a bead in its lane: smaller is earlier.
type LaneOrder = (i64, i64);

impl Reader<'_> {
    /// The first beads of a lane, in its order.
    pub fn board_lane(
        &self,
        lane: BoardLane,
        filter: &BoardFilter,
    ) -> Result<Vec<BeadId>, StoreError> {
        let mut found = match lane {
            BoardLane::Ready => self.waiting_beads(&startable(filter), filter)?,
            BoardLane::Blocked => {
                let mut found = self.waiting_beads(BLOCKED, filter)?;
                found.extend(self.waiting_beads(&held_back(filter), filter)?);
                found.extend(self.waiting_beads(HELD, filter)?);
                found
            }
            BoardLane::Running => {
                let mut found = self.beads_of_runs(filter)?;
                found.extend(self.waiting_beads(AT_WORK, filter)?);
                found
            }
            BoardLane::Review | BoardLane::Queue => self.beads_of_requests(lane, filter)?,
            BoardLane::Landed => self.landed_beads(filter)?,
        };
        found.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.cmp(other)));
        found.truncate(filter.limit);
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    /// How many beads a lane has.
    pub fn board_count(&self, lane: BoardLane, filter: &BoardFilter) -> Result<u64, StoreError> {
        let count = match lane {
            BoardLane::Ready => {
                self.count_waiting(READY, filter)? - self.count_held_back(filter)?
            }
            BoardLane::Blocked => {
                self.count_waiting(BLOCKED, filter)?
                    + self.count_waiting(HELD, filter)?
                    + self.count_held_back(filter)?
            }
            BoardLane::Running => {
                let mut clauses = narrowed(filter, "rig", "bead");
                clauses.add(LIVE);
                self.count_matching("runs", &clauses)? + self.count_waiting(AT_WORK, filter)?
            }
            BoardLane::Review | BoardLane::Queue => {
                self.count_matching("merge_requests m", &requests(lane, filter))?
            }
            BoardLane::Landed => self.count_matching("beads", &landed(filter))?,
        };
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn count_matching(&self, table: &str, clauses: &Clauses) -> Result<i64, StoreError> {
        let sql = format!("SELECT COUNT(*) FROM {table} WHERE {}", clauses.where_clause());
        self.number(&sql, &clauses.params())
    }

    /// Counts beads that no run and no merge request has.
    fn count_waiting(&self, condition: &str, filter: &BoardFilter) -> Result<i64, StoreError> {
        let mut clauses = narrowed(filter, BEAD_RIG, "id");
        clauses.add(condition);
        clauses.add(is_work());
        let all = self.count_matching("beads", &clauses)?;
        clauses.add("id = taken.bead");
        // In this order: SQLite would rather look at every bead of the lane.
        let taken = format!(
            "(SELECT bead FROM runs WHERE {LIVE} UNION SELECT bead FROM merge_requests WHERE {OPEN}) taken \
             CROSS JOIN beads"
        );
        Ok(all - self.count_matching(&taken, &clauses)?)
    }

    /// Counts beads that would be ready, and do not start.
    fn count_held_back(&self, filter: &BoardFilter) -> Result<i64, StoreError> {
        let mut clauses = narrowed(filter, BEAD_RIG, "id");
        clauses.add(READY);
        clauses.add(is_work());
        add_not_taken(&mut clauses);
        clauses.add("id = held.bead");
        // In this order: SQLite would rather look at every bead of the lane.
        let held = format!(
            "(SELECT c.bead FROM contexts c WHERE {HELD_BACK}{}))) held CROSS JOIN beads",
            filter.now.as_nanos()
        );
        self.count_matching(&held, &clauses)
    }

    /// Beads that no run and no merge request has, by priority.
    fn waiting_beads(
        &self,
        condition: &str,
        filter: &BoardFilter,
    ) -> Result<Vec<(LaneOrder, BeadId)>, StoreError> {
        let mut clauses = narrowed(filter, BEAD_RIG, "id");
        clauses.add(condition);
        clauses.add(is_work());
        add_not_taken(&mut clauses);
        self.page(
            "SELECT id, priority, -created_at FROM beads",
            clauses,
            "priority, created_at DESC, id",
            filter,
        )
    }

    /// The beads of live runs, the oldest run first.
    fn beads_of_runs(&self, filter: &BoardFilter) -> Result<Vec<(LaneOrder, BeadId)>, StoreError> {
        let mut clauses = narrowed(filter, "rig", "bead");
        clauses.add(LIVE);
        // The order is made by the caller: SQLite would rather walk through every run in this order.
        let sql = format!(
            "SELECT bead, -1, created_at FROM runs WHERE {} AND \
             EXISTS (SELECT 1 FROM beads b WHERE b.id = runs.bead)",
            clauses.where_clause()
        );
        self.rows(&sql, &clauses.params(), placed)
    }

    fn beads_of_requests(
        &self,
        lane: BoardLane,
        filter: &BoardFilter,
    ) -> Result<Vec<(LaneOrder, BeadId)>, StoreError> {
        let clauses = requests(lane, filter);
        self.page(
            "SELECT m.bead, 0, m.position FROM merge_requests m",
            clauses,
            "m.position",
            filter,
        )
    }

    fn landed_beads(&self, filter: &BoardFilter) -> Result<Vec<(LaneOrder, BeadId)>, StoreError> {
        let order = "closed_at DESC, id DESC";
        self.page("SELECT id, 0, -closed_at FROM beads", landed(filter), order, filter)
    }

    fn page(
        &self,
        select: &str,
        mut clauses: Clauses,
        order: &str,
        filter: &BoardFilter,
    ) -> Result<Vec<(LaneOrder, BeadId)>, StoreError> {
        let condition = clauses.where_clause();
        let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
        let limit = clauses.bind(FilterValue::Int(limit));
        let sql = format!("{select} WHERE {condition} ORDER BY {order} LIMIT {limit}");
        self.rows(&sql, &clauses.params(), placed)
    }
}

fn add_not_taken(clauses: &mut Clauses) {
    clauses.add(format!("NOT EXISTS (SELECT 1 FROM runs r WHERE r.bead = beads.id AND r.{LIVE})"));
    clauses.add(format!(
        "NOT EXISTS (SELECT 1 FROM merge_requests m WHERE m.bead = beads.id AND m.{OPEN})"
    ));
}

/// The condition that a context of the bead holds it back. The time is a number of our own, so it is part of the text.
fn context_holds(filter: &BoardFilter) -> String {
    let now = filter.now.as_nanos();
    format!("EXISTS (SELECT 1 FROM contexts c WHERE c.bead = beads.id AND {HELD_BACK}{now})))")
}

fn startable(filter: &BoardFilter) -> String {
    format!("{READY} AND NOT {}", context_holds(filter))
}

fn held_back(filter: &BoardFilter) -> String {
    format!("{READY} AND {}", context_holds(filter))
}

fn placed(row: &dyn Row) -> Result<(LaneOrder, BeadId), StoreError> {
    Ok(((row.int(1)?, row.int(2)?), id_from(row, 0)?))
}

/// The conditions of a filter, with the columns of the rig and of the bead.
fn narrowed(filter: &BoardFilter, rig: &str, bead: &str) -> Clauses {
    let mut clauses = Clauses::default();
    if let Some(slug) = &filter.rig {
        let slug = clauses.text(slug.as_str());
        clauses.add(format!("{rig} = {slug}"));
    }
    if let Some(convoy) = &filter.convoy {
        let convoy = clauses.text(convoy.as_str());
        clauses.add(format!(
            "{bead} IN (SELECT depends_on_id FROM dependencies WHERE issue_id = {convoy} AND type = 'tracks')"
        ));
    }
    clauses
}

/// Requests that are not over and that no run repairs.
fn requests(lane: BoardLane, filter: &BoardFilter) -> Clauses {
    let mut clauses = narrowed(filter, "m.rig", "m.bead");
    clauses.add(format!("m.{OPEN}"));
    clauses.add(if lane == BoardLane::Review {
        "m.state = 'review'"
    } else {
        "m.state <> 'review'"
    });
    clauses.add(format!("NOT EXISTS (SELECT 1 FROM runs r WHERE r.bead = m.bead AND r.{LIVE})"));
    clauses
}

fn landed(filter: &BoardFilter) -> Clauses {
    let mut clauses = narrowed(filter, BEAD_RIG, "id");
    let since = clauses.bind(FilterValue::Int(filter.landed_since.as_nanos()));
    clauses.add(format!("status = 'closed' AND closed_at > {since} AND {}", is_work()));
    clauses.add("(outcome IS NULL OR outcome = 'success')");
    clauses
}
