//! Beads as clients of the work queue see them.

use gt_core::work::{ItemRef, Position, WorkFilter, WorkItem, WorkOrder};
use gt_core::{Bead, ExecutorKind, IssueType, RigSlug, Timestamp, Uid};

use super::beads::{COLUMNS, bead_from};
use super::find::{Clauses, FilterValue, contains};
use super::runs::live;
use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError};

/// The columns of an item besides its bead, in the order [`item_from`] reads it: its project, and the run that has it.
macro_rules! item_columns {
    () => {
        concat!(
            "(SELECT g.uid FROM rigs g WHERE g.slug = beads.rig AND g.slug <> 'inbox'), \
             (SELECT r.uid FROM runs r WHERE r.bead = beads.id AND r.",
            live!(),
            "), (SELECT r.lease_expires_at FROM runs r WHERE r.bead = beads.id AND r.",
            live!(),
            ")"
        )
    };
}

/// How many columns a bead has.
const BEAD_COLUMNS: usize = 31;

statements! {
    QUEUED_IN = "SELECT 1 FROM beads WHERE rig = ?1 AND work_status = 'queued' LIMIT 1";
    QUEUED_OF = "SELECT 1 FROM beads WHERE issue_type = ?2 AND status IN ('open', 'deferred') AND rig = ?1 \
        AND work_status = 'queued' LIMIT 1";
}

impl Reader<'_> {
    /// The item that goes by this name.
    pub fn work_item(&self, reference: &ItemRef) -> Result<Option<WorkItem>, StoreError> {
        let (column, param) = match reference {
            ItemRef::Uid(uid) => ("uid", Param::Blob(uid.as_bytes())),
            ItemRef::Bead(bead) => ("id", bead.into()),
        };
        // Whether it is one is asked of the core: SQLite computes `work_status` anew wherever no index has it, which takes
        // longer than the rest of this.
        let sql = format!("SELECT {COLUMNS}, {} FROM beads WHERE {column} = ?1", item_columns!());
        let found = self.first(&sql, &[param], parts_from)?;
        Ok(found.filter(|(bead, ..)| WorkItem::is_one(bead)).map(item_of))
    }

    /// At most `limit` items that the filter admits, in its order, after a place in its list.
    pub fn work_items(
        &self,
        filter: &WorkFilter,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<WorkItem>, StoreError> {
        let (sql, clauses) = statement(filter, after, limit);
        self.rows(&sql, &clauses.params(), item_from)
    }

    /// The statement behind [`Reader::work_items`], for tests that ask the engine about it.
    #[doc(hidden)]
    pub fn work_statement_of(&self, filter: &WorkFilter, after: Option<&Position>) -> String {
        statement(filter, after, 20).0
    }

    /// Whether anything of this rig is queued, ready or not.
    pub fn any_queued_in(&self, rig: &RigSlug) -> Result<bool, StoreError> {
        self.any(QUEUED_IN, &[rig.as_str().into()])
    }

    /// Whether anything of this rig and type is queued, ready or not.
    pub fn any_queued_of(&self, rig: &RigSlug, kind: &IssueType) -> Result<bool, StoreError> {
        self.any(QUEUED_OF, &[rig.as_str().into(), kind.as_str().into()])
    }
}

/// The statement for a part of a list. Each status is looked up on its own, in the order of an index,
/// and no more of each than is shown: so it costs the same however much there is.
fn statement(filter: &WorkFilter, after: Option<&Position>, limit: usize) -> (String, Clauses) {
    let mut clauses = Clauses::default();
    add_conditions(&mut clauses, filter);
    let order = match filter.order() {
        WorkOrder::Urgency => "p, c, picked",
        WorkOrder::Age => "c, picked",
    };
    if let Some(after) = after {
        let created = clauses.bind(FilterValue::Int(after.created_at.as_nanos()));
        let id = clauses.text(after.bead.as_str());
        let place = match filter.order() {
            WorkOrder::Urgency => {
                let priority = clauses.bind(FilterValue::Int(after.priority.number()));
                format!("(priority, created_at, id) > ({priority}, {created}, {id})")
            }
            WorkOrder::Age => format!("(created_at, id) > ({created}, {id})"),
        };
        clauses.add(place);
    }
    let since = filter.since.map(|since| clauses.bind(FilterValue::Int(since.as_nanos())));
    let limit = clauses.bind(FilterValue::Int(i64::try_from(limit).unwrap_or(i64::MAX)));
    let common = clauses.where_clause();
    let branch = |condition: &str| {
        let by = match filter.order() {
            WorkOrder::Urgency => "priority, created_at, id",
            WorkOrder::Age => "created_at, id",
        };
        format!(
            "SELECT * FROM (SELECT id AS picked, priority AS p, created_at AS c FROM beads \
             WHERE {condition} AND work_status IS NOT NULL AND {common} ORDER BY {by} LIMIT {limit}) one"
        )
    };
    let branches: Vec<String> = match &since {
        Some(since) if filter.statuses.is_empty() => vec![branch(&format!("created_at > {since}"))],
        _ => {
            let of_status = |status: &gt_core::work::WorkStatus| {
                let is = format!("work_status = '{status}'");
                branch(&match &since {
                    Some(since) if status.is_terminal() => {
                        format!("{is} AND closed_at IS NOT NULL AND closed_at > {since}")
                    }
                    Some(since) => format!("{is} AND created_at > {since}"),
                    None => is,
                })
            };
            filter.wanted().iter().map(of_status).collect()
        }
    };
    let sql = format!(
        "SELECT {COLUMNS}, {} FROM beads JOIN (SELECT * FROM ({}) every ORDER BY {order} LIMIT {limit}) page \
         ON id = picked ORDER BY {order}",
        item_columns!(),
        branches.join(" UNION ALL ")
    );
    (sql, clauses)
}

fn add_conditions(clauses: &mut Clauses, filter: &WorkFilter) {
    let WorkFilter { statuses: _, agent, project, since: _, kind, created_by, text, executor } =
        filter;
    for (column, value) in [
        ("assignee", agent.as_deref()),
        ("rig", project.as_ref().map(RigSlug::as_str)),
        ("issue_type", kind.as_ref().map(IssueType::as_str)),
        ("created_by", created_by.as_deref()),
    ] {
        if let Some(value) = value {
            let value = clauses.text(value);
            clauses.add(format!("{column} = {value}"));
        }
    }
    if agent.is_some() {
        // The condition of the partial index of agents.
        clauses.add("assignee <> ''");
    }
    if let Some(text) = text {
        let pattern = clauses.text(&contains(text));
        clauses.add(format!(
            "(lower(title) LIKE {pattern} ESCAPE '\\' OR lower(description) LIKE {pattern} ESCAPE '\\')"
        ));
    }
    if let Some(executor) = executor {
        let executor = clauses.text(ExecutorKind::as_str(*executor));
        clauses.add(format!("rig IN (SELECT slug FROM rigs WHERE executor = {executor})"));
    }
}

/// A bead, its project, and the run that has it with the end of its lease.
type WorkItemParts = (Bead, Option<Uid>, Option<(Uid, Option<Timestamp>)>);

fn parts_from(row: &dyn Row) -> Result<WorkItemParts, StoreError> {
    let project = uid_from(row, BEAD_COLUMNS)?;
    let lease = row.int_or_null(BEAD_COLUMNS + 2)?.map(Timestamp::from_nanos);
    let run = uid_from(row, BEAD_COLUMNS + 1)?.map(|run| (run, lease));
    Ok((bead_from(row)?, project, run))
}

fn item_of((bead, project, run): WorkItemParts) -> WorkItem {
    WorkItem::of(bead, project, run)
}

fn item_from(row: &dyn Row) -> Result<WorkItem, StoreError> {
    parts_from(row).map(item_of)
}

pub(super) fn uid_from(row: &dyn Row, column: usize) -> Result<Option<Uid>, StoreError> {
    let Some(bytes) = row.blob_or_null(column)? else { return Ok(None) };
    let bytes = bytes
        .try_into()
        .map_err(|_| StoreError::Corrupt("a uid that is not 16 bytes long".to_owned()))?;
    Ok(Some(Uid::from_bytes(bytes)))
}
