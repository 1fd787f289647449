//! From a filter to a statement, and the queries that use it.

use gt_core::limits::QUERY_BYTES_MAX;
use gt_core::{BeadId, IssueType, Status, Timestamp};

use super::beads::id_from;
use super::filter::{BeadFilter, BeadOrder, Between, CountGroup, StatusFilter};
use super::statements;
use crate::engine::Param;
use crate::{Reader, StoreError};

statements! {
    WOKEN = "SELECT 1 FROM beads WHERE status = 'deferred' AND defer_until IS NOT NULL \
        AND defer_until <= ?1 LIMIT 1";
}

const CONTEXT: &str = IssueType::SLING_CONTEXT;

/// A statement under construction, with its parameters.
#[derive(Default)]
pub(super) struct Clauses {
    conditions: Vec<String>,
    params: Vec<FilterValue>,
}

pub(super) enum FilterValue {
    Int(i64),
    Text(String),
}

impl Clauses {
    pub(super) fn bind(&mut self, value: FilterValue) -> String {
        self.params.push(value);
        format!("?{}", self.params.len())
    }

    pub(super) fn text(&mut self, text: &str) -> String {
        self.bind(FilterValue::Text(text.to_owned()))
    }

    fn texts<'t>(&mut self, texts: impl Iterator<Item = &'t str>) -> String {
        texts.map(|text| self.text(text)).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn add(&mut self, condition: impl Into<String>) {
        self.conditions.push(condition.into());
    }

    fn equals(&mut self, column: &str, value: &str) {
        let value = self.text(value);
        self.add(format!("{column} = {value}"));
    }

    /// One of the `columns` contains `text`. Only ASCII letters are folded, on both sides and by both
    /// engines, so that text in any script is found as it was written.
    fn contains(&mut self, columns: &[&str], text: &str) {
        let pattern = self.text(&contains(text));
        let either: Vec<String> = columns
            .iter()
            .map(|column| format!("lower({column}) LIKE {pattern} ESCAPE '\\'"))
            .collect();
        self.add(format!("({})", either.join(" OR ")));
    }

    /// A top-level field of a JSON column has this value: its text, or the way it is spelled if it
    /// is no text. NULL where there is no such field.
    pub(super) fn field_equal(&mut self, column: &str, field: &str, value: &str) -> String {
        let (field, value) = (self.text(field), self.text(value));
        format!("({column} ->> {field} = {value} OR CAST({column} -> {field} AS TEXT) = {value})")
    }

    fn field_equals(&mut self, column: &str, field: &str, value: &str) {
        let equal = self.field_equal(column, field, value);
        self.add(equal);
    }

    fn between(&mut self, column: &str, span: Between) {
        for (instant, comparison) in [(span.after, ">"), (span.before, "<")] {
            if let Some(instant) = instant {
                let value = self.bind(FilterValue::Int(instant.as_nanos()));
                self.add(format!("{column} {comparison} {value}"));
            }
        }
    }

    pub(super) fn where_clause(&self) -> String {
        if self.conditions.is_empty() { "1 = 1".to_owned() } else { self.conditions.join(" AND ") }
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        self.params
            .iter()
            .map(|value| match value {
                FilterValue::Int(number) => Param::Int(*number),
                FilterValue::Text(text) => Param::Text(text),
            })
            .collect()
    }
}

/// A LIKE pattern for lower-case text that contains `text`, with escape character `\`.
pub(super) fn contains(text: &str) -> String {
    format!("%{}%", escaped(text))
}

/// A LIKE pattern for exactly this text in lower case, with escape character `\`.
pub(super) fn escaped(text: &str) -> String {
    text.to_ascii_lowercase().replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}

/// The conditions on a bead, besides its kind, to be ready at `now`. `woken` says whether there may be
/// deferred beads whose date has passed.
pub(super) fn ready_at(clauses: &mut Clauses, now: Timestamp, woken: bool) -> String {
    let now = clauses.bind(FilterValue::Int(now.as_nanos()));
    let status = if woken {
        format!(
            "(status = 'open' OR \
             (status = 'deferred' AND defer_until IS NOT NULL AND defer_until <= {now}))"
        )
    } else {
        "status = 'open'".to_owned()
    };
    format!(
        "open_blockers = 0 AND {status} AND (defer_until IS NULL OR defer_until <= {now}) AND \
         NOT EXISTS (SELECT 1 FROM dependencies d JOIN beads p ON p.id = d.depends_on_id \
         WHERE d.issue_id = beads.id AND d.type = 'parent-child' AND p.defer_until > {now})"
    )
}

impl Reader<'_> {
    /// The ids of the beads that `filter` admits, in its order.
    pub fn find(&self, filter: &BeadFilter) -> Result<Vec<BeadId>, StoreError> {
        let (sql, clauses) = self.statement(filter)?;
        let mut ids = self.rows(&sql, &clauses.params(), |row| id_from(row, 0))?;
        if filter.order == BeadOrder::Id {
            ids.sort_by(BeadId::natural_order);
            if filter.reverse {
                ids.reverse();
            }
            ids.truncate(filter.limit.unwrap_or(usize::MAX));
        }
        Ok(ids)
    }

    /// How many beads `filter` admits, without its limit.
    pub fn count(&self, filter: &BeadFilter) -> Result<u64, StoreError> {
        let clauses = self.clauses(filter)?;
        let from = source(filter);
        let sql = format!("SELECT COUNT(*) FROM {from} WHERE {}", clauses.where_clause());
        Ok(u64::try_from(self.number(&sql, &clauses.params())?).unwrap_or(0))
    }

    /// How many beads `filter` admits for each value of a column.
    pub fn count_by(
        &self,
        filter: &BeadFilter,
        group: CountGroup,
    ) -> Result<Vec<(String, i64)>, StoreError> {
        let clauses = self.clauses(filter)?;
        let (join, value) = group.source();
        let from = source(filter);
        let sql = format!(
            "SELECT {value}, COUNT(*) FROM {from}{join} WHERE {} GROUP BY {value} ORDER BY {value}",
            clauses.where_clause()
        );
        self.rows(&sql, &clauses.params(), |row| Ok((row.text(0)?.to_owned(), row.int(1)?)))
    }

    /// The statement behind [`Reader::find`], for tests that ask the engine about it.
    #[doc(hidden)]
    pub fn statement_of(&self, filter: &BeadFilter) -> Result<String, StoreError> {
        self.statement(filter).map(|(sql, _)| sql)
    }

    fn statement(&self, filter: &BeadFilter) -> Result<(String, Clauses), StoreError> {
        let mut clauses = self.clauses(filter)?;
        let order = match filter.order {
            BeadOrder::Id => "id".to_owned(),
            order => order_by(order, filter.reverse, filter.ready.map(|ready| ready.now)),
        };
        let from = source(filter);
        let mut sql =
            format!("SELECT id FROM {from} WHERE {} ORDER BY {order}", clauses.where_clause());
        if let (Some(limit), true) = (filter.limit, filter.order != BeadOrder::Id) {
            let limit = clauses.bind(FilterValue::Int(i64::try_from(limit).unwrap_or(i64::MAX)));
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
        add_texts(&mut clauses, filter)?;
        add_times(&mut clauses, filter);
        if let Some(query) = &filter.query {
            let condition = super::query::condition(&mut clauses, query);
            clauses.add(condition);
        }
        Ok(clauses)
    }

    fn add_status(&self, clauses: &mut Clauses, filter: &BeadFilter) -> Result<(), StoreError> {
        match &filter.status {
            _ if filter.ready.is_some() => {}
            StatusFilter::Current => clauses.add("status <> 'closed' AND status <> 'pinned'"),
            StatusFilter::All => {}
            StatusFilter::OneOf(statuses) if statuses.is_empty() => clauses.add("1 = 0"),
            StatusFilter::OneOf(statuses) => {
                let list = clauses.texts(statuses.iter().map(Status::as_str));
                clauses.add(format!("status IN ({list})"));
            }
        }
        if !filter.exclude_statuses.is_empty() {
            let list = clauses.texts(filter.exclude_statuses.iter().map(Status::as_str));
            clauses.add(format!("status NOT IN ({list})"));
        }
        if let Some(ready) = filter.ready {
            if ready.include_deferred {
                clauses.add("open_blockers = 0 AND status IN ('open', 'deferred')");
            } else {
                // The index of ready beads knows only open ones. Beads whose date has passed are
                // rare enough that asking for them first, and giving up the index if there are any,
                // is cheap.
                let woken = self.any(WOKEN, &[ready.now.into()])?;
                let condition = ready_at(clauses, ready.now, woken);
                clauses.add(condition);
            }
            if filter.types.is_empty() && !filter.include_hidden && !admits_ephemeral(filter) {
                clauses.add("workable = 1 AND issue_type <> 'convoy'");
            }
        }
        if filter.blocked {
            clauses.add("open_blockers > 0 AND status <> 'closed'");
        }
        Ok(())
    }
}

/// The table that is read. Only a filter that asks for contexts pays for them.
fn source(filter: &BeadFilter) -> &'static str {
    if shows_contexts(filter) { "shown_beads AS beads" } else { "beads" }
}

impl CountGroup {
    /// The table that is joined with the beads, and the value that they are counted by.
    fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::Status => ("", "status"),
            Self::Priority => ("", "CAST(priority AS TEXT)"),
            Self::Type => ("", "issue_type"),
            Self::Assignee => ("", "assignee"),
            Self::Label => (" JOIN bead_labels ON bead_labels.bead = beads.id", "label"),
        }
    }
}

pub(super) const PARENT: &str = "EXISTS (SELECT 1 FROM dependencies d WHERE d.issue_id = beads.id \
                      AND d.type = 'parent-child'";
pub(super) const LABELLED: &str = "EXISTS (SELECT 1 FROM bead_labels l WHERE l.bead = beads.id";

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
        let hidden = IssueType::HIDDEN.iter().copied();
        let list = clauses.texts(hidden.filter(|name| !shows_contexts(filter) || *name != CONTEXT));
        clauses.add(format!("issue_type NOT IN ({list})"));
    } else if !filter.include_hidden && admits_ephemeral(filter) {
        let list = clauses.texts(IssueType::NOT_WORK.iter().copied());
        clauses.add(format!("issue_type NOT IN ({list}) AND issue_type <> 'convoy'"));
    }
    if !filter.exclude_types.is_empty() {
        let list = clauses.texts(filter.exclude_types.iter().map(IssueType::as_str));
        clauses.add(format!("issue_type NOT IN ({list})"));
    }
    if !filter.include_templates && filter.ready.is_none() {
        clauses.add("is_template = 0");
    }
    match filter.ephemeral {
        Some(ephemeral) => clauses.add(format!("ephemeral = {}", i64::from(ephemeral))),
        None if filter.include_ephemeral => {}
        None if shows_contexts(filter) => {
            clauses.add(format!("(ephemeral = 0 OR issue_type = '{CONTEXT}')"));
        }
        None => clauses.add("ephemeral = 0"),
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

/// A bead that is ready, or only blocked, is never a context.
fn shows_contexts(filter: &BeadFilter) -> bool {
    filter.include_contexts && filter.ready.is_none() && !filter.blocked
}

fn admits_ephemeral(filter: &BeadFilter) -> bool {
    filter.ephemeral.unwrap_or(filter.include_ephemeral)
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

fn add_texts(clauses: &mut Clauses, filter: &BeadFilter) -> Result<(), StoreError> {
    for (text, columns) in [
        (&filter.text, ["title", "id"].as_slice()),
        (&filter.title_contains, &["title"]),
        (&filter.description_contains, &["description"]),
        (&filter.notes_contain, &["notes"]),
    ] {
        let Some(text) = text else { continue };
        if text.len() > QUERY_BYTES_MAX {
            return Err(StoreError::Query(format!(
                "a text to look for has at most {QUERY_BYTES_MAX} bytes, and this one has {}",
                text.len()
            )));
        }
        clauses.contains(columns, text);
    }
    if filter.empty_description {
        clauses.add("description = ''");
    }
    for (key, value) in &filter.metadata {
        clauses.field_equals("metadata", key, value);
    }
    for key in &filter.metadata_keys {
        let key = clauses.text(key);
        clauses.add(format!("metadata -> {key} IS NOT NULL"));
    }
    for (field, value) in &filter.carried {
        clauses.field_equals("carried", field, value);
    }
    Ok(())
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
        let now = clauses.bind(FilterValue::Int(now.as_nanos()));
        clauses.add(format!("due_at < {now} AND status <> 'closed'"));
    }
}

fn order_by(order: BeadOrder, reverse: bool, now: Option<Timestamp>) -> String {
    let two_days = std::time::Duration::from_hours(48);
    let terms: Vec<(String, bool)> = match order {
        BeadOrder::Priority => {
            vec![("priority".into(), false), ("created_at".into(), true), ("id".into(), false)]
        }
        BeadOrder::Oldest => vec![("created_at".into(), false), ("id".into(), false)],
        BeadOrder::Hybrid => {
            let now = now.unwrap_or(Timestamp::from_nanos(i64::MAX));
            let limit =
                now.as_nanos().saturating_sub(Timestamp::from_nanos(0).plus(two_days).as_nanos());
            vec![
                (format!("CASE WHEN created_at >= {limit} THEN priority ELSE 9 END"), false),
                ("created_at".into(), false),
                ("id".into(), false),
            ]
        }
        BeadOrder::Created => vec![("created_at".into(), true), ("id".into(), false)],
        BeadOrder::Updated => vec![("updated_at".into(), true), ("id".into(), false)],
        BeadOrder::Closed => vec![
            ("CASE WHEN closed_at IS NULL THEN 1 ELSE 0 END".into(), false),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_only_what_they_say() {
        assert_eq!(contains("50%_\\x"), "%50\\%\\_\\\\x%");
    }
}
