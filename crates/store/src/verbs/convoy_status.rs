//! Queries about many beads at once, to show them together.

use std::collections::HashMap;
use std::time::Duration;

use gt_core::decide::WaitClass;
use gt_core::schedule::{Context, Run, RunState, WorkerPlace};
use gt_core::{BeadId, IssueType, Priority, RigSlug, Status, Timestamp, Title};

use super::beads::{facts_from, id_from};
use super::blocking::note_blocker;
use super::contexts::{context_columns, contexts_from, convoys_from, count, in_line, unless_empty};
use super::hydrate::{IDS_PER_STATEMENT, placeholders};
use super::runs::{live, run_columns, run_from};
use super::statements;
use crate::engine::Row;
use crate::{BlockerFacts, Lane, Reader, StoreError};

statements! {
    IN_LINE = concat!("SELECT ", context_columns!(), " FROM contexts WHERE ", in_line!(), " ORDER BY number LIMIT ?1");
    PAST = "SELECT rig, ended_at - running_at FROM (SELECT rig, state, executor, running_at, ended_at \
        FROM runs ORDER BY created_at DESC, bead DESC, epoch DESC LIMIT ?1) past \
        WHERE state = 'done' AND executor <> 'none' AND running_at IS NOT NULL";
    OPEN_MEMBERS = concat!("SELECT b.id, b.rig, b.issue_type, b.open_blockers, c.number, c.rig, c.place, c.account, \
        c.gated, c.priority, c.starting, c.waits, c.due_at, r.state, COALESCE(r.running_at, r.created_at), \
        c.convoys \
        FROM dependencies d JOIN beads b ON b.id = d.depends_on_id \
        LEFT JOIN contexts c ON c.bead = b.id AND c.closed_at IS NULL \
        LEFT JOIN runs r ON r.bead = b.id AND r.", live!(), " \
        WHERE d.issue_id = ?1 AND d.type = 'tracks' AND b.status <> 'closed' ORDER BY b.id");
    WAITS = "SELECT e.issue_id, e.depends_on_id FROM dependencies d \
        JOIN dependencies e ON e.issue_id = d.depends_on_id \
        WHERE d.issue_id = ?1 AND d.type = 'tracks' AND e.blocking = 1 ORDER BY e.issue_id, e.depends_on_id";
}

/// How many runs of the past are looked at, done or not, to find out how long they take.
const PAST_RUNS: i64 = 1_000;

/// A bead that a convoy tracks and that is not closed, with only the columns to count it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The bead.
    pub bead: BeadId,
    /// Its rig.
    pub rig: Option<RigSlug>,
    /// Its type.
    pub issue_type: IssueType,
    /// Whether something has to be done first.
    pub is_blocked: bool,
    /// Its open context, if it has one.
    pub context: Option<QueuedMember>,
    /// Where its live run stands, and since when its worker has it.
    pub run: Option<(RunState, Timestamp)>,
}

/// An open context, with only the columns for its place in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMember {
    /// Its number.
    pub number: u64,
    /// The lane that it stands in.
    pub lane: Lane,
    /// A worker is being started for it.
    pub is_starting: bool,
    /// The kind of thing that it waits for.
    pub waits: WaitClass,
    /// It does not start before this.
    pub due_at: Option<Timestamp>,
}

/// A bead with only the columns to draw it among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRow {
    /// The bead.
    pub id: BeadId,
    /// Its title.
    pub title: Title,
    /// Its type.
    pub issue_type: IssueType,
    /// Its rig.
    pub rig: Option<RigSlug>,
    /// Its status.
    pub status: Status,
    /// Its parent; the first of several.
    pub parent: Option<BeadId>,
}

impl Reader<'_> {
    /// Those of these beads that are there, in this order, with only the columns to draw them.
    pub fn member_rows(&self, beads: &[BeadId]) -> Result<Vec<MemberRow>, StoreError> {
        let mut found = Vec::with_capacity(beads.len());
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let parents = |list: &str| {
                format!(
                    "SELECT issue_id, MIN(depends_on_id) FROM dependencies WHERE issue_id IN ({list}) \
                     AND type = 'parent-child' GROUP BY issue_id"
                )
            };
            let pair = |row: &dyn Row| Ok((id_from(row, 0)?, id_from(row, 1)?));
            let mut parents: HashMap<BeadId, BeadId> =
                self.of_each(page, parents, pair)?.into_iter().collect();
            let sql = |list: &str| {
                format!("SELECT id, title, issue_type, rig, status FROM beads WHERE id IN ({list})")
            };
            let member_row = |row: &dyn Row| {
                let id = id_from(row, 0)?;
                Ok(MemberRow {
                    id,
                    title: Title::trusted(row.text(1)?.to_owned()),
                    issue_type: IssueType::trusted(row.text(2)?.to_owned()),
                    rig: row.text_or_null(3)?.and_then(unless_empty).map(RigSlug::trusted),
                    status: Status::parse(row.text(4)?)?,
                    parent: None,
                })
            };
            let drawn = self.of_each(page, sql, member_row)?.into_iter();
            let mut drawn: HashMap<BeadId, MemberRow> =
                drawn.map(|member_row| (member_row.id.clone(), member_row)).collect();
            for id in page {
                if let Some(member_row) = drawn.remove(id) {
                    found.push(MemberRow { parent: parents.remove(id), ..member_row });
                }
            }
        }
        Ok(found)
    }

    /// The last context of each of these beads that has one, open or closed.
    pub fn latest_contexts_of(
        &self,
        beads: &[BeadId],
    ) -> Result<HashMap<BeadId, Context>, StoreError> {
        let sql = |list: &str| {
            let columns = context_columns!();
            format!("SELECT {columns} FROM contexts WHERE bead IN ({list}) AND latest = 1")
        };
        let found = self.of_each(beads, sql, contexts_from())?;
        Ok(found.into_iter().map(|context| (context.bead.clone(), context)).collect())
    }

    /// The last run of each of these beads that has had one, without its steps.
    pub fn last_runs_of(&self, beads: &[BeadId]) -> Result<HashMap<BeadId, Run>, StoreError> {
        let sql = |list: &str| {
            let columns = run_columns!("'{}'");
            format!(
                "SELECT {columns} FROM runs WHERE bead IN ({list}) \
                 AND epoch = (SELECT MAX(n.epoch) FROM runs n WHERE n.bead = runs.bead)"
            )
        };
        let found = self.of_each(beads, sql, run_from)?;
        Ok(found.into_iter().map(|run| (run.id.bead.clone(), run)).collect())
    }

    /// The present blockers of each of these beads; beads without one are left out.
    pub fn blockers_of(
        &self,
        beads: &[BeadId],
    ) -> Result<HashMap<BeadId, BlockerFacts>, StoreError> {
        let sql = |list: &str| {
            format!(
                "SELECT d.issue_id, d.depends_on_id, b.status, b.outcome FROM dependencies d \
                 JOIN beads b ON b.id = d.depends_on_id WHERE d.issue_id IN ({list}) \
                 AND d.blocking = 1 ORDER BY d.issue_id, d.depends_on_id"
            )
        };
        let edge = |row: &dyn Row| Ok((id_from(row, 0)?, id_from(row, 1)?, facts_from(row, 2)?));
        let mut found: HashMap<BeadId, BlockerFacts> = HashMap::new();
        for (bead, blocker, facts) in self.of_each(beads, sql, edge)? {
            note_blocker(found.entry(bead).or_default(), blocker, &facts);
        }
        found.values_mut().for_each(BlockerFacts::sort);
        Ok(found)
    }

    /// Until when those of these beads are put off that are put off until a date.
    pub fn defer_dates_of(
        &self,
        beads: &[BeadId],
    ) -> Result<HashMap<BeadId, Timestamp>, StoreError> {
        let sql = |list: &str| {
            format!(
                "SELECT id, defer_until FROM beads WHERE id IN ({list}) AND defer_until IS NOT NULL"
            )
        };
        let date = |row: &dyn Row| Ok((id_from(row, 0)?, Timestamp::from_nanos(row.int(1)?)));
        Ok(self.of_each(beads, sql, date)?.into_iter().collect())
    }

    /// For each of these beads that a staged convoy tracks, and no open one: that convoy, the first by its id. An open
    /// convoy schedules the bead, even if a staged one waits.
    pub fn staged_convoys_of(
        &self,
        beads: &[BeadId],
    ) -> Result<HashMap<BeadId, BeadId>, StoreError> {
        let sql = |list: &str| {
            format!(
                "SELECT d.depends_on_id, d.issue_id FROM dependencies d \
                 JOIN beads b ON b.id = d.issue_id \
                 WHERE d.depends_on_id IN ({list}) AND d.type = 'tracks' \
                 AND b.issue_type = 'convoy' AND b.status LIKE 'staged%' \
                 AND NOT EXISTS (SELECT 1 FROM dependencies o JOIN beads v ON v.id = o.issue_id \
                     WHERE o.depends_on_id = d.depends_on_id AND o.type = 'tracks' \
                     AND v.issue_type = 'convoy' AND v.status = 'open') ORDER BY d.issue_id"
            )
        };
        let mut found = HashMap::new();
        for (bead, convoy) in
            self.of_each(beads, sql, |row| Ok((id_from(row, 0)?, id_from(row, 1)?)))?
        {
            found.entry(bead).or_insert(convoy);
        }
        Ok(found)
    }

    /// The contexts of the line in the order of their numbers, at most so many.
    pub fn contexts_in_line(&self, limit: usize) -> Result<Vec<Context>, StoreError> {
        self.write_waits()?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.rows(IN_LINE, &[limit.into()], contexts_from())
    }

    /// How long the last successful runs lasted, newest first, at most so many of each rig. Work of people is
    /// not among them.
    pub fn past_durations(&self, limit: usize) -> Result<Vec<(RigSlug, Duration)>, StoreError> {
        let past = self.rows(PAST, &[PAST_RUNS.into()], |row| {
            let lasted = Duration::from_nanos(count(row.int(1)?));
            Ok((RigSlug::trusted(row.text(0)?.to_owned()), lasted))
        })?;
        let mut seen: HashMap<RigSlug, usize> = HashMap::new();
        let wanted = |(rig, _): &(RigSlug, Duration)| {
            let seen = seen.entry(rig.clone()).or_default();
            *seen += 1;
            *seen <= limit
        };
        Ok(past.into_iter().filter(wanted).collect())
    }

    /// The beads that a convoy tracks and that are not closed, sorted by id.
    pub fn open_members(&self, convoy: &BeadId) -> Result<Vec<Member>, StoreError> {
        self.rows(OPEN_MEMBERS, &[convoy.into()], member_from)
    }

    /// Every edge that blocks something that a convoy tracks: the bead, and its blocker.
    pub fn waits_of_open_members(
        &self,
        convoy: &BeadId,
    ) -> Result<Vec<(BeadId, BeadId)>, StoreError> {
        self.rows(WAITS, &[convoy.into()], |row| Ok((id_from(row, 0)?, id_from(row, 1)?)))
    }

    /// The rows about these beads, a page at a time; `sql` gets the placeholders of their ids.
    fn of_each<T>(
        &self,
        beads: &[BeadId],
        sql: impl Fn(&str) -> String,
        from: impl Fn(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            found.extend(self.rows(&sql(&list), &params, &from)?);
        }
        Ok(found)
    }
}

fn member_from(row: &dyn Row) -> Result<Member, StoreError> {
    let run = row.text_or_null(13)?.map(RunState::parse).transpose()?;
    let run = run.zip(row.int_or_null(14)?.map(Timestamp::from_nanos));
    let context =
        row.int_or_null(4)?.map(|number| queued_member_from(row, count(number))).transpose()?;
    let rig = row.text_or_null(1)?.and_then(unless_empty).map(RigSlug::trusted);
    Ok(Member {
        bead: id_from(row, 0)?,
        rig,
        issue_type: IssueType::trusted(row.text(2)?.to_owned()),
        is_blocked: row.int(3)? > 0,
        context,
        run,
    })
}

fn queued_member_from(row: &dyn Row, number: u64) -> Result<QueuedMember, StoreError> {
    let lane = Lane {
        rig: RigSlug::trusted(row.text(5)?.to_owned()),
        place: unless_empty(row.text(6)?).map(WorkerPlace::trusted),
        account: unless_empty(row.text(7)?),
        gated: row.flag(8)?,
        priority: Priority::new(row.int(9)?)?,
        convoys: convoys_from(row.text(15)?),
    };
    Ok(QueuedMember {
        number,
        lane,
        is_starting: row.flag(10)?,
        waits: WaitClass::parse(row.text(11)?)?,
        due_at: row.int_or_null(12)?.map(Timestamp::from_nanos),
    })
}
