//! Which beads, in which order.

use gt_core::{BeadId, IssueType, Outcome, Priority, RigSlug, Status, Timestamp};

use super::beads::id_from;
use crate::engine::Param;
use crate::{Reader, StoreError};

/// Which statuses a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StatusFilter {
    /// Everything but closed and pinned beads.
    #[default]
    Current,
    /// Everything.
    All,
    /// Only these.
    OneOf(Vec<Status>),
}

/// A span of time, open where nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Between {
    /// After this.
    pub after: Option<Timestamp>,
    /// Before this.
    pub before: Option<Timestamp>,
}

/// Only beads that can be worked on; see [`gt_core::decide::wait_reasons`], which has the last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The current time.
    pub now: Timestamp,
    /// Also beads that were put off.
    pub include_deferred: bool,
}

/// The order of a list. Ties are broken so that the order is always the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BeadOrder {
    /// Most urgent first, then newest first.
    #[default]
    Priority,
    /// Oldest first.
    Oldest,
    /// What is younger than two days by urgency, then the rest, oldest first.
    Hybrid,
    /// Newest first.
    Created,
    /// Last changed first.
    Updated,
    /// Last closed first.
    Closed,
    /// By name of the status.
    Status,
    /// By id, numbers in their natural order.
    Id,
    /// By title.
    Title,
    /// By type.
    Type,
    /// By assignee.
    Assignee,
}

/// Which beads, in which order. The default is what a plain `list` shows.
#[derive(Debug, Clone, Default)]
pub struct BeadFilter {
    /// Only these ids.
    pub ids: Vec<BeadId>,
    /// Only these statuses.
    pub status: StatusFilter,
    /// Only beads that can be worked on.
    pub ready: Option<Readiness>,
    /// Only beads that something blocks.
    pub blocked: bool,
    /// Only this rig.
    pub rig: Option<RigSlug>,
    /// Only these types; empty for every type that is not hidden.
    pub types: Vec<IssueType>,
    /// None of these types.
    pub exclude_types: Vec<IssueType>,
    /// Also types that are hidden by themselves.
    pub include_hidden: bool,
    /// Also templates.
    pub include_templates: bool,
    /// Also ephemeral beads.
    pub include_ephemeral: bool,
    /// Only ephemeral beads, or only others.
    pub ephemeral: Option<bool>,
    /// Only (or no) beads with the pinned flag; unset hides them from current lists.
    pub pinned: Option<bool>,
    /// At least this urgent.
    pub priority_from: Option<Priority>,
    /// At most this lowly.
    pub priority_to: Option<Priority>,
    /// Only this assignee.
    pub assignee: Option<String>,
    /// Only beads nobody has.
    pub unassigned: bool,
    /// Every one of these labels.
    pub labels: Vec<String>,
    /// At least one of these labels.
    pub labels_any: Vec<String>,
    /// None of these labels.
    pub exclude_labels: Vec<String>,
    /// No label at all.
    pub no_labels: bool,
    /// The title or the id contains this.
    pub text: Option<String>,
    /// The title contains this.
    pub title_contains: Option<String>,
    /// The description contains this.
    pub description_contains: Option<String>,
    /// The notes contain this.
    pub notes_contain: Option<String>,
    /// There is no description.
    pub empty_description: bool,
    /// Direct parts of this bead.
    pub parent: Option<BeadId>,
    /// Parts of no bead.
    pub no_parent: bool,
    /// When it was made.
    pub created: Between,
    /// When it last changed.
    pub updated: Between,
    /// When it was closed.
    pub closed: Between,
    /// When it is due.
    pub due: Between,
    /// Until when it was put off.
    pub deferred: Between,
    /// Put off, with or without a date.
    pub only_deferred: bool,
    /// Due before this and not closed.
    pub overdue_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// These top-level metadata fields have these values.
    pub metadata: Vec<(String, String)>,
    /// These top-level metadata fields exist.
    pub metadata_keys: Vec<String>,
    /// These carried fields have these values.
    pub carried: Vec<(&'static str, String)>,
    /// The order.
    pub order: BeadOrder,
    /// Turned round.
    pub reverse: bool,
    /// At most this many; none for all.
    pub limit: Option<usize>,
}

/// A statement under construction, with its parameters.
#[derive(Default)]
struct Clauses {
    conditions: Vec<String>,
    params: Vec<Value>,
}

enum Value {
    Int(i64),
    Text(String),
}

impl Clauses {
    fn bind(&mut self, value: Value) -> String {
        self.params.push(value);
        format!("?{}", self.params.len())
    }

    fn text(&mut self, text: &str) -> String {
        self.bind(Value::Text(text.to_owned()))
    }

    fn texts<'t>(&mut self, texts: impl Iterator<Item = &'t str>) -> String {
        texts
            .map(|text| self.text(text))
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn add(&mut self, condition: impl Into<String>) {
        self.conditions.push(condition.into());
    }

    fn equals(&mut self, column: &str, value: &str) {
        let value = self.text(value);
        self.add(format!("{column} = {value}"));
    }

    fn contains(&mut self, column: &str, text: &str) {
        let pattern = self.text(&contains(&text.to_lowercase()));
        self.add(format!("lower({column}) LIKE {pattern} ESCAPE '\\'"));
    }

    fn between(&mut self, column: &str, span: Between) {
        for (instant, comparison) in [(span.after, ">"), (span.before, "<")] {
            if let Some(instant) = instant {
                let value = self.bind(Value::Int(instant.as_nanos()));
                self.add(format!("{column} {comparison} {value}"));
            }
        }
    }

    fn where_clause(&self) -> String {
        if self.conditions.is_empty() {
            "1 = 1".to_owned()
        } else {
            self.conditions.join(" AND ")
        }
    }

    fn params(&self) -> Vec<Param<'_>> {
        self.params
            .iter()
            .map(|value| match value {
                Value::Int(number) => Param::Int(*number),
                Value::Text(text) => Param::Text(text),
            })
            .collect()
    }
}

/// A LIKE pattern for text that contains `text`, with escape character `\`.
pub(super) fn contains(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('%', "\\%")
        .replace('_', "\\_");
    format!("%{escaped}%")
}

impl Reader<'_> {
    /// The ids of the beads that `filter` admits, in its order.
    pub fn find(&self, filter: &BeadFilter) -> Result<Vec<BeadId>, StoreError> {
        let (sql, clauses) = self.statement(filter)?;
        let mut ids = self.rows(&sql, &clauses.params(), |row| id_from(row, 0))?;
        if filter.order == BeadOrder::Id {
            ids.sort_by(|a, b| natural_order(a.as_str(), b.as_str()));
            if filter.reverse {
                ids.reverse();
            }
            ids.truncate(filter.limit.unwrap_or(usize::MAX));
        }
        Ok(ids)
    }

    /// How many beads `filter` admits, whatever its limit.
    pub fn count(&self, filter: &BeadFilter) -> Result<u64, StoreError> {
        let clauses = self.clauses(filter)?;
        let sql = format!(
            "SELECT COUNT(*) FROM beads WHERE {}",
            clauses.where_clause()
        );
        Ok(u64::try_from(self.number(&sql, &clauses.params())?).unwrap_or(0))
    }

    /// How many beads `filter` admits for each value of a column.
    pub fn count_by(
        &self,
        filter: &BeadFilter,
        group: CountGroup,
    ) -> Result<Vec<(String, i64)>, StoreError> {
        let clauses = self.clauses(filter)?;
        let (from, value) = group.source();
        let sql = format!(
            "SELECT {value}, COUNT(*) FROM {from} WHERE {} GROUP BY {value} ORDER BY {value}",
            clauses.where_clause()
        );
        self.rows(&sql, &clauses.params(), |row| {
            Ok((row.text(0)?.to_owned(), row.int(1)?))
        })
    }

    fn statement(&self, filter: &BeadFilter) -> Result<(String, Clauses), StoreError> {
        let mut clauses = self.clauses(filter)?;
        let order = match filter.order {
            BeadOrder::Id => "id".to_owned(),
            order => order_by(order, filter.reverse, filter.ready.map(|ready| ready.now)),
        };
        let mut sql = format!(
            "SELECT id FROM beads WHERE {} ORDER BY {order}",
            clauses.where_clause()
        );
        if let (Some(limit), true) = (filter.limit, filter.order != BeadOrder::Id) {
            let limit = clauses.bind(Value::Int(i64::try_from(limit).unwrap_or(i64::MAX)));
            sql.push_str(" LIMIT ");
            sql.push_str(&limit);
        }
        Ok((sql, clauses))
    }

    fn clauses(&self, filter: &BeadFilter) -> Result<Clauses, StoreError> {
        let mut clauses = Clauses::default();
        self.add_status(&mut clauses, filter)?;
        add_kind(&mut clauses, filter);
        add_people_and_labels(&mut clauses, filter);
        add_texts(&mut clauses, filter);
        add_times(&mut clauses, filter);
        Ok(clauses)
    }

    fn add_status(&self, clauses: &mut Clauses, filter: &BeadFilter) -> Result<(), StoreError> {
        match &filter.status {
            _ if filter.ready.is_some() => {}
            StatusFilter::Current => clauses.add("status <> 'closed' AND status <> 'pinned'"),
            StatusFilter::All => {}
            StatusFilter::OneOf(statuses) => {
                let list = clauses.texts(statuses.iter().map(Status::as_str));
                clauses.add(format!("status IN ({list})"));
            }
        }
        if let Some(ready) = filter.ready {
            let now = clauses.bind(Value::Int(ready.now.as_nanos()));
            // The index of ready beads knows only open ones. Beads whose date has passed are rare
            // enough that asking for them first, and giving up the index if there are any, is cheap.
            let woken = format!("(status = 'deferred' AND defer_until <= {now})");
            let any = "SELECT 1 FROM beads WHERE status = 'deferred' AND defer_until IS NOT NULL \
                       AND defer_until <= ?1";
            if ready.include_deferred {
                clauses.add("status IN ('open', 'deferred')");
            } else if self.any(any, &[ready.now.into()])? {
                clauses.add(format!("(status = 'open' OR {woken})"));
            } else {
                clauses.add("status = 'open'");
            }
            clauses.add("open_blockers = 0");
            if !ready.include_deferred {
                clauses.add(format!("(defer_until IS NULL OR defer_until <= {now})"));
                clauses.add(format!(
                    "NOT EXISTS (SELECT 1 FROM dependencies d JOIN beads p ON p.id = d.depends_on_id \
                     WHERE d.issue_id = beads.id AND d.type = 'parent-child' AND p.defer_until > {now})"
                ));
            }
            if filter.types.is_empty() && !filter.include_ephemeral && !filter.include_hidden {
                clauses.add("workable = 1");
            }
        }
        if filter.blocked {
            clauses.add("open_blockers > 0 AND status <> 'closed'");
        }
        Ok(())
    }
}

/// What beads are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountGroup {
    /// Status.
    Status,
    /// Priority.
    Priority,
    /// Type.
    Type,
    /// Assignee.
    Assignee,
    /// Label; a bead counts once for each.
    Label,
}

impl CountGroup {
    fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::Status => ("beads", "status"),
            Self::Priority => ("beads", "CAST(priority AS TEXT)"),
            Self::Type => ("beads", "issue_type"),
            Self::Assignee => ("beads", "assignee"),
            Self::Label => (
                "beads JOIN bead_labels ON bead_labels.bead = beads.id",
                "label",
            ),
        }
    }
}

const PARENT: &str = "EXISTS (SELECT 1 FROM dependencies d WHERE d.issue_id = beads.id \
                      AND d.type = 'parent-child'";
const LABELLED: &str = "EXISTS (SELECT 1 FROM bead_labels l WHERE l.bead = beads.id";

fn add_kind(clauses: &mut Clauses, filter: &BeadFilter) {
    if !filter.ids.is_empty() {
        let list = clauses.texts(filter.ids.iter().map(BeadId::as_str));
        clauses.add(format!("id IN ({list})"));
    }
    if let Some(rig) = &filter.rig {
        clauses.equals("rig", rig.as_str());
    }
    if !filter.types.is_empty() {
        let list = clauses.texts(filter.types.iter().map(IssueType::as_str));
        clauses.add(format!("issue_type IN ({list})"));
    } else if !filter.include_hidden && filter.ready.is_none() {
        let list = clauses.texts(IssueType::HIDDEN.iter().copied());
        clauses.add(format!("issue_type NOT IN ({list})"));
    } else if !filter.include_hidden && filter.include_ephemeral {
        let list = clauses.texts(IssueType::NOT_WORK.iter().copied());
        clauses.add(format!("issue_type NOT IN ({list})"));
    }
    if !filter.exclude_types.is_empty() {
        let list = clauses.texts(filter.exclude_types.iter().map(IssueType::as_str));
        clauses.add(format!("issue_type NOT IN ({list})"));
    }
    if !filter.include_templates {
        clauses.add("is_template = 0");
    }
    match filter.ephemeral {
        Some(ephemeral) => clauses.add(format!("ephemeral = {}", i64::from(ephemeral))),
        None if !filter.include_ephemeral => clauses.add("ephemeral = 0"),
        None => {}
    }
    match filter.pinned {
        Some(pinned) => clauses.add(format!("pinned = {}", i64::from(pinned))),
        None if filter.status == StatusFilter::Current || filter.ready.is_some() => {
            clauses.add("pinned = 0");
        }
        None => {}
    }
    for (bound, comparison) in [(filter.priority_from, ">="), (filter.priority_to, "<=")] {
        if let Some(priority) = bound {
            clauses.add(format!("priority {comparison} {}", priority.number()));
        }
    }
    if let Some(outcome) = filter.outcome {
        clauses.equals("outcome", outcome.as_str());
    }
    if let Some(parent) = &filter.parent {
        let parent = clauses.text(parent.as_str());
        clauses.add(format!("{PARENT} AND d.depends_on_id = {parent})"));
    }
    if filter.no_parent {
        clauses.add(format!("NOT {PARENT})"));
    }
}

fn add_people_and_labels(clauses: &mut Clauses, filter: &BeadFilter) {
    if let Some(assignee) = &filter.assignee {
        clauses.equals("assignee", assignee);
    }
    if filter.unassigned {
        clauses.add("assignee = ''");
    }
    for label in &filter.labels {
        let label = clauses.text(label);
        clauses.add(format!("{LABELLED} AND l.label = {label})"));
    }
    for (labels, negation) in [(&filter.labels_any, ""), (&filter.exclude_labels, "NOT ")] {
        if !labels.is_empty() {
            let list = clauses.texts(labels.iter().map(String::as_str));
            clauses.add(format!("{negation}{LABELLED} AND l.label IN ({list}))"));
        }
    }
    if filter.no_labels {
        clauses.add(format!("NOT {LABELLED})"));
    }
}

fn add_texts(clauses: &mut Clauses, filter: &BeadFilter) {
    if let Some(text) = &filter.text {
        let pattern = clauses.text(&contains(&text.to_lowercase()));
        clauses.add(format!(
            "(lower(title) LIKE {pattern} ESCAPE '\\' OR lower(id) LIKE {pattern} ESCAPE '\\')"
        ));
    }
    for (text, column) in [
        (&filter.title_contains, "title"),
        (&filter.description_contains, "description"),
        (&filter.notes_contain, "notes"),
    ] {
        if let Some(text) = text {
            clauses.contains(column, text);
        }
    }
    if filter.empty_description {
        clauses.add("description = ''");
    }
    for (key, value) in &filter.metadata {
        let (key, value) = (clauses.text(key), clauses.text(value));
        clauses.add(format!("CAST(metadata ->> {key} AS TEXT) = {value}"));
    }
    for key in &filter.metadata_keys {
        let key = clauses.text(key);
        clauses.add(format!("metadata -> {key} IS NOT NULL"));
    }
    for (field, value) in &filter.carried {
        let (field, value) = (clauses.text(field), clauses.text(value));
        clauses.add(format!("carried ->> {field} = {value}"));
    }
}

fn add_times(clauses: &mut Clauses, filter: &BeadFilter) {
    clauses.between("created_at", filter.created);
    clauses.between("updated_at", filter.updated);
    clauses.between("closed_at", filter.closed);
    clauses.between("due_at", filter.due);
    clauses.between("defer_until", filter.deferred);
    if filter.only_deferred {
        clauses.add("(status = 'deferred' OR defer_until IS NOT NULL)");
    }
    if let Some(now) = filter.overdue_at {
        let now = clauses.bind(Value::Int(now.as_nanos()));
        clauses.add(format!("due_at < {now} AND status <> 'closed'"));
    }
}

fn order_by(order: BeadOrder, reverse: bool, now: Option<Timestamp>) -> String {
    let two_days = std::time::Duration::from_hours(48);
    let terms: Vec<(String, bool)> = match order {
        BeadOrder::Priority => {
            vec![
                ("priority".into(), false),
                ("created_at".into(), true),
                ("id".into(), false),
            ]
        }
        BeadOrder::Oldest => vec![("created_at".into(), false), ("id".into(), false)],
        BeadOrder::Hybrid => {
            let now = now.unwrap_or(Timestamp::from_nanos(i64::MAX));
            let limit = now
                .as_nanos()
                .saturating_sub(Timestamp::from_nanos(0).plus(two_days).as_nanos());
            vec![
                (
                    format!("CASE WHEN created_at >= {limit} THEN priority ELSE 9 END"),
                    false,
                ),
                ("created_at".into(), false),
                ("id".into(), false),
            ]
        }
        BeadOrder::Created => vec![("created_at".into(), true), ("id".into(), false)],
        BeadOrder::Updated => vec![("updated_at".into(), true), ("id".into(), false)],
        BeadOrder::Closed => vec![
            (
                "CASE WHEN closed_at IS NULL THEN 1 ELSE 0 END".into(),
                false,
            ),
            ("closed_at".into(), true),
            ("id".into(), false),
        ],
        BeadOrder::Status => vec![("status".into(), false), ("id".into(), false)],
        BeadOrder::Id => vec![("id".into(), false)],
        BeadOrder::Title => vec![("title".into(), false), ("id".into(), false)],
        BeadOrder::Type => vec![("issue_type".into(), false), ("id".into(), false)],
        BeadOrder::Assignee => vec![("assignee".into(), false), ("id".into(), false)],
    };
    let term = |(column, descending): (String, bool)| {
        let direction = if descending == reverse { "ASC" } else { "DESC" };
        format!("{column} {direction}")
    };
    terms.into_iter().map(term).collect::<Vec<_>>().join(", ")
}

/// Compares ids so that `gt-2` comes before `gt-10`.
fn natural_order(a: &str, b: &str) -> std::cmp::Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (in_a, in_b) = (digits(a), digits(b));
        if in_a > 0 && in_b > 0 {
            let (number_a, number_b) = (
                a[..in_a].trim_start_matches('0'),
                b[..in_b].trim_start_matches('0'),
            );
            let order = number_a
                .len()
                .cmp(&number_b.len())
                .then(number_a.cmp(number_b));
            if order.is_ne() {
                return order;
            }
            (a, b) = (&a[in_a..], &b[in_b..]);
            continue;
        }
        let (mut chars_a, mut chars_b) = (a.chars(), b.chars());
        match (chars_a.next(), chars_b.next()) {
            (Some(from_a), Some(from_b)) if from_a == from_b => {
                (a, b) = (chars_a.as_str(), chars_b.as_str());
            }
            (from_a, from_b) => return from_a.cmp(&from_b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_ids_sort_naturally() {
        let mut ids = ["gt-10", "gt-2", "gt-a.10", "gt-a.9", "gt-02a", "ga-1"];
        ids.sort_by(|a, b| natural_order(a, b));
        assert_eq!(
            ids,
            ["ga-1", "gt-2", "gt-02a", "gt-10", "gt-a.9", "gt-a.10"]
        );
    }

    #[test]
    fn patterns_match_only_what_they_say() {
        assert_eq!(contains("50%_\\x"), "%50\\%\\_\\\\x%");
    }
}
