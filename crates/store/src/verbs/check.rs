//! Recomputing derived values, to check them.
//!
//! Rows are looked at as they come, so that a store of any size can be checked; only how the children
//! stand of beads that are waited for is kept.

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;

use gt_core::decide::{ChildrenFacts, Members, edge_blocks};
use gt_core::work::WorkStatus;
use gt_core::{BeadId, ExecutorKind, IssueType, Timestamp, Uid};

use super::beads::{facts_from, id_from};
use super::dependencies::dependency_from;
use super::statements;
use crate::engine::Row;
use crate::{Reader, StoreError};

statements! {
    // Each edge with the facts that decide whether it blocks, and with the count of its bead.
    EDGES = "SELECT d.issue_id, d.depends_on_id, d.type, d.created_at, d.created_by, d.metadata, \
        d.thread_id, d.carried, d.blocking, t.status, t.outcome, i.open_blockers \
        FROM dependencies d LEFT JOIN beads i ON i.id = d.issue_id \
        LEFT JOIN beads t ON t.id = d.depends_on_id ORDER BY d.issue_id, d.depends_on_id";
    // The states of the children of each bead that another waits for, each state once.
    CHILDREN = "SELECT DISTINCT p.depends_on_id, c.status, c.outcome FROM dependencies p \
        JOIN beads c ON c.id = p.issue_id WHERE p.type = 'parent-child' AND EXISTS \
        (SELECT 1 FROM dependencies w WHERE w.depends_on_id = p.depends_on_id AND w.type = 'waits-for')";
    WITHOUT_EDGES = "SELECT b.id, b.open_blockers FROM beads b WHERE b.open_blockers <> 0 \
        AND NOT EXISTS (SELECT 1 FROM dependencies d WHERE d.issue_id = b.id) ORDER BY b.id";
    BEADS = "SELECT id, status, outcome, closed_at, ephemeral, pinned, issue_type, workable, \
        last_child, work_status, is_template FROM beads ORDER BY id";
    ALIASES = "SELECT id, uid, created_at FROM beads ORDER BY id";
    POSITIONS = "SELECT l.bead, l.position, COUNT(*) FROM labels l GROUP BY l.bead, l.position \
        HAVING COUNT(*) > 1 OR l.position < 1 ORDER BY l.bead, l.position";
    PREFIXES = "SELECT prefix, beads FROM prefixes ORDER BY prefix";
    EVENTS = "SELECT COUNT(*), COALESCE(MIN(number), 0), COALESCE(MAX(number), 0) FROM events";
    GAP = "SELECT e.number FROM events e WHERE e.number < ?1 \
        AND NOT EXISTS (SELECT 1 FROM events n WHERE n.number = e.number + 1) \
        ORDER BY e.number LIMIT 1";
}

/// A derived value that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The bead, prefix or counter it is about.
    pub about: String,
    /// The name of the value.
    pub value: String,
    /// The stored value.
    pub stored: String,
    /// The correct value.
    pub computed: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { about, value, stored, computed } = self;
        write!(f, "{about}: {value} is {stored}, should be {computed}")
    }
}

/// The function that gets the differences.
pub(super) type OnDifference<'f> = &'f mut dyn FnMut(Difference);

pub(super) fn report_difference(
    found: OnDifference<'_>,
    about: impl fmt::Display,
    value: impl Into<String>,
    stored: impl fmt::Display,
    computed: impl fmt::Display,
) {
    found(Difference {
        about: about.to_string(),
        value: value.into(),
        stored: stored.to_string(),
        computed: computed.to_string(),
    });
}

impl Reader<'_> {
    /// Every derived value that is wrong, in words; none in a healthy store.
    pub fn differences(&self) -> Result<Vec<String>, StoreError> {
        let mut differences = Vec::new();
        self.for_each_difference(&mut |difference| differences.push(difference.to_string()))?;
        Ok(differences)
    }

    /// Recomputes every derived value, and reports the wrong ones.
    pub fn for_each_difference(&self, found: OnDifference<'_>) -> Result<(), StoreError> {
        self.check_edges(found)?;
        self.check_beads(found)?;
        self.check_positions(found)?;
        self.check_events(found)?;
        self.check_convoys(found)?;
        self.check_schedule(found)
    }

    /// Beads whose alias is not the one that they would get from an export and import: how many, and
    /// the first. An import that corrects when a bead was made leaves its alias alone.
    pub fn wrong_aliases(&self) -> Result<(u64, Option<BeadId>), StoreError> {
        let (mut count, mut first) = (0, None);
        self.scan(ALIASES, &[], |row| {
            let id = id_from(row, 0)?;
            let alias = Uid::of_bead(&id, Timestamp::from_nanos(row.int(2)?));
            if row.blob(1)? != alias.as_bytes() {
                count += 1;
                first.get_or_insert(id);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((count, first))
    }

    /// How the beads stand that each convoy tracks, and that each epic has as its parts.
    fn check_convoys(&self, found: OnDifference<'_>) -> Result<(), StoreError> {
        let kept: HashMap<BeadId, Members> =
            self.convoy_tallies()?.into_iter().map(|tally| (tally.convoy, tally.members)).collect();
        for convoy in self.counted_containers()? {
            let Some(container) = self.bead(&convoy)? else { continue };
            let counted = self.count_members(&container)?;
            let stored = kept.get(&convoy).copied().unwrap_or_default();
            for (value, stored, computed) in [
                ("members", stored.total, counted.total),
                ("open_members", stored.open, counted.open),
                ("failed_members", stored.failed, counted.failed),
            ] {
                if stored != computed {
                    report_difference(found, &convoy, value, stored, computed);
                }
            }
        }
        Ok(())
    }

    /// Whether each edge blocks, and how many block each bead. Edges come sorted by bead.
    fn check_edges(&self, found: OnDifference<'_>) -> Result<(), StoreError> {
        let families = self.families()?;
        let mut current: Option<BlockerCount> = None;
        self.scan(EDGES, &[], |row| {
            let (edge, stored) = (dependency_from(row)?, row.flag(8)?);
            let target = match row.text_or_null(9)? {
                Some(_) => Some(facts_from(row, 9)?),
                None => None,
            };
            let blocks = edge_blocks(&edge.kind, edge.gate(), target.as_ref(), || {
                families.get(&edge.target).copied().unwrap_or_default()
            });
            if blocks != stored {
                let value = format!("the {} dependency on {}", edge.kind, edge.target);
                report_difference(found, &edge.issue, value, word(stored), word(blocks));
            }
            let counted = match current.take() {
                Some(counted) if counted.bead == edge.issue => counted,
                finished => {
                    if let Some(counted) = finished {
                        counted.compare(found);
                    }
                    BlockerCount { bead: edge.issue, stored: row.int_or_null(11)?, blockers: 0 }
                }
            };
            let blockers = counted.blockers + i64::from(blocks);
            current = Some(BlockerCount { blockers, ..counted });
            Ok(ControlFlow::Continue(()))
        })?;
        if let Some(counted) = current {
            counted.compare(found);
        }
        self.scan(WITHOUT_EDGES, &[], |row| {
            let (bead, stored) = (id_from(row, 0)?, Some(row.int(1)?));
            BlockerCount { bead, stored, blockers: 0 }.compare(found);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The children of every bead that is waited for, asked for once instead of edge by edge.
    fn families(&self) -> Result<HashMap<BeadId, ChildrenFacts>, StoreError> {
        let mut families: HashMap<BeadId, ChildrenFacts> = HashMap::new();
        self.scan(CHILDREN, &[], |row| {
            let facts = families.entry(id_from(row, 0)?).or_default();
            *facts = facts.with(&facts_from(row, 1)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(families)
    }

    /// The facts that each bead stores twice, and the count of beads of each prefix.
    fn check_beads(&self, found: OnDifference<'_>) -> Result<(), StoreError> {
        let mut prefixes: HashMap<String, i64> = HashMap::new();
        self.scan(BEADS, &[], |row| {
            let id = id_from(row, 0)?;
            check_bead(row, &id, found)?;
            if !id.is_child()
                && let Some((space, _)) = id.as_str().rsplit_once('-')
            {
                match prefixes.get_mut(space) {
                    Some(count) => *count += 1,
                    None => drop(prefixes.insert(space.to_owned(), 1)),
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let stored = self.rows(PREFIXES, &[], |row| Ok((row.text(0)?.to_owned(), row.int(1)?)))?;
        let mut compare = |prefix: &str, stored: i64, counted: i64| {
            if stored != counted {
                report_difference(
                    found,
                    format_args!("prefix {prefix}"),
                    "its count of beads",
                    stored,
                    counted,
                );
            }
        };
        for (prefix, stored) in stored {
            compare(&prefix, stored, prefixes.remove(&prefix).unwrap_or(0));
        }
        let mut uncounted: Vec<(String, i64)> = prefixes.into_iter().collect();
        uncounted.sort();
        for (prefix, counted) in uncounted {
            compare(&prefix, 0, counted);
        }
        Ok(())
    }

    /// The order of a bead's labels.
    fn check_positions(&self, found: OnDifference<'_>) -> Result<(), StoreError> {
        self.scan(POSITIONS, &[], |row| {
            let (bead, position, count) = (row.text(0)?, row.int(1)?, row.int(2)?);
            let stored = format!("that of {count} labels");
            let computed = if position < 1 { "at least 1" } else { "that of one" };
            report_difference(found, bead, format!("label position {position}"), stored, computed);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The numbers of the events. Old ones may have been removed, from the beginning.
    fn check_events(&self, found: OnDifference<'_>) -> Result<(), StoreError> {
        let numbers = self.first(EVENTS, &[], |row| Ok((row.int(0)?, row.int(1)?, row.int(2)?)))?;
        let Some((count, first, last)) = numbers.filter(|(count, ..)| *count > 0) else {
            return Ok(());
        };
        let expected = last - first + 1;
        if count != expected {
            let gap = self.number(GAP, &[last.into()])?;
            let value = format!("how many are numbered {first} to {last}");
            let stored = format!("{count} (nothing follows {gap})");
            report_difference(found, "events", value, stored, expected);
        }
        let counter = self.last_event_number()?;
        if u64::try_from(last).ok() != Some(counter) {
            report_difference(
                found,
                "counter event",
                "the number of the last event",
                counter,
                last,
            );
        }
        Ok(())
    }
}

/// A bead, its stored count of blockers, and the count so far.
struct BlockerCount {
    bead: BeadId,
    /// Nothing if there is no such bead, which is reported elsewhere.
    stored: Option<i64>,
    blockers: i64,
}

impl BlockerCount {
    fn compare(&self, found: OnDifference<'_>) {
        if let Some(stored) = self.stored
            && stored != self.blockers
        {
            report_difference(found, &self.bead, "open_blockers", stored, self.blockers);
        }
    }
}

fn check_bead(row: &dyn Row, id: &BeadId, found: OnDifference<'_>) -> Result<(), StoreError> {
    let status = row.text(1)?;
    if let Err(error) = facts_from(row, 1) {
        report_difference(
            found,
            id,
            "status",
            format_args!("{status} ({error})"),
            "one that can be read",
        );
        return Ok(());
    }
    let (closed, closed_at) = (status == "closed", row.int_or_null(3)?);
    if closed != closed_at.is_some() {
        let stored = match closed_at {
            Some(at) => Timestamp::from_nanos(at).to_string(),
            None => "empty".to_owned(),
        };
        let computed = if closed { "set" } else { "empty" };
        let value = format!("closed_at of a bead that is {status}");
        report_difference(found, id, value, stored, computed);
    }
    if let Some(outcome) = row.text_or_null(2)?
        && !closed
    {
        report_difference(
            found,
            id,
            format!("outcome of a bead that is {status}"),
            outcome,
            "empty",
        );
    }
    let is_work = !IssueType::NOT_WORK.contains(&row.text(6)?);
    let workable = !row.flag(4)? && !row.flag(5)? && is_work;
    let stored = row.flag(7)?;
    if stored != workable {
        report_difference(found, id, "workable", i64::from(stored), i64::from(workable));
    }
    let facts = facts_from(row, 1)?;
    let kind = IssueType::trusted(row.text(6)?.to_owned());
    let is_item = !row.flag(4)? && !row.flag(10)? && kind.is_slingable(ExecutorKind::Pull);
    let work_status =
        is_item.then(|| WorkStatus::of(&facts.status, facts.outcome)).map(WorkStatus::as_str);
    let stored = row.text_or_null(9)?;
    if stored != work_status {
        let shown = |status: Option<&str>| status.unwrap_or("empty").to_owned();
        report_difference(found, id, "work_status", shown(stored), shown(work_status));
    }
    let last_child = row.int(8)?;
    if last_child < 0 {
        report_difference(found, id, "last_child", last_child, "at least 0");
    }
    Ok(())
}

fn word(blocks: bool) -> &'static str {
    if blocks { "blocking" } else { "not blocking" }
}
