//! Queries that a person wrote in SQL, over tables named as other programs around beads know them.

use crate::engine::{QueryTable, SqlDialect};
use crate::{Reader, StoreError};

/// The columns of a bead that are the same in our table.
const BEAD_COLUMNS: &str = "id, title, description, design, acceptance_criteria, notes, status, outcome, priority, \
    issue_type, assignee, owner, created_by, close_reason, external_ref, metadata, rig, ephemeral, pinned, is_template, \
    estimated_minutes";
/// The columns of a bead that hold instants.
const BEAD_INSTANTS: [&str; 6] =
    ["created_at", "updated_at", "started_at", "closed_at", "due_at", "defer_until"];
/// The named queries for beads with this value of `ephemeral`: beads, labels, dependencies, comments.
const NAMES: [(i64, [&str; 4]); 2] = [
    (0, ["issues", "labels", "dependencies", "comments"]),
    (1, ["wisps", "wisp_labels", "wisp_dependencies", "wisp_comments"]),
];

impl Reader<'_> {
    /// Answers one query that only reads. It sees the tables `issues`, `labels`, `dependencies` and `comments`, and those
    /// of ephemeral beads: `wisps`, `wisp_labels`, `wisp_dependencies` and `wisp_comments`.
    pub fn select(&self, sql: &str) -> Result<QueryTable, StoreError> {
        let tables = tables(&self.session().dialect());
        match with_tables(sql, &tables) {
            Some(sql) => self.session().answer(&sql),
            None => Err(StoreError::Query(
                "only SELECT is answered; bd update, bd close and bd delete change beads"
                    .to_owned(),
            )),
        }
    }
}

/// Our tables under the names and with the columns that others know, as the named queries of a `WITH`.
fn tables(dialect: &SqlDialect<'_>) -> String {
    let SqlDialect { schema, date_time } = dialect;
    let instants: Vec<String> =
        BEAD_INSTANTS.iter().map(|column| format!("{} AS {column}", date_time(column))).collect();
    let (instants, made) = (instants.join(", "), date_time("created_at"));
    let mut tables = Vec::new();
    for (ephemeral, [beads, labels, dependencies, comments]) in NAMES {
        let of_beads = |column: &str| {
            format!("{column} IN (SELECT id FROM {schema}.beads WHERE ephemeral = {ephemeral})")
        };
        tables.push(format!(
            "{beads} AS (SELECT {BEAD_COLUMNS}, {instants} FROM {schema}.beads WHERE ephemeral = {ephemeral})"
        ));
        tables.push(format!(
            "{labels} AS (SELECT bead AS issue_id, label FROM {schema}.labels WHERE {})",
            of_beads("bead")
        ));
        tables.push(format!(
            "{dependencies} AS (SELECT issue_id, depends_on_id, type, created_by, metadata, thread_id, \
             {made} AS created_at FROM {schema}.dependencies WHERE {})",
            of_beads("issue_id")
        ));
        tables.push(format!(
            "{comments} AS (SELECT id, bead AS issue_id, author, text, {made} AS created_at \
             FROM {schema}.comments WHERE {})",
            of_beads("bead")
        ));
    }
    tables.join(", ")
}

/// The query with the named queries before it; nothing for a statement of another kind. Only a query, or a change, which
/// the engine refuses, can follow them: no statement that ends the transaction or sets an option.
fn with_tables(sql: &str, tables: &str) -> Option<String> {
    let sql = sql.trim();
    let (first, rest) = first_word(sql);
    if first.eq_ignore_ascii_case("SELECT") || first.eq_ignore_ascii_case("VALUES") {
        return Some(format!("WITH {tables} {sql}"));
    }
    if !first.eq_ignore_ascii_case("WITH") {
        return None;
    }
    let (second, after) = first_word(rest.trim_start());
    if second.eq_ignore_ascii_case("RECURSIVE") {
        Some(format!("WITH RECURSIVE {tables}, {after}"))
    } else {
        Some(format!("WITH {tables}, {rest}"))
    }
}

fn first_word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::with_tables;

    #[test]
    fn named_queries_come_before_a_query_and_before_nothing_else() {
        let asked = |sql: &str| with_tables(sql, "T");
        assert_eq!(asked(" select 1; ").as_deref(), Some("WITH T select 1;"));
        assert_eq!(asked("WITH a AS (x) SELECT 1").as_deref(), Some("WITH T,  a AS (x) SELECT 1"));
        assert_eq!(
            asked("with recursive a AS (x) SELECT 1").as_deref(),
            Some("WITH RECURSIVE T,  a AS (x) SELECT 1")
        );
        for other in
            ["", "DELETE FROM issues", "PRAGMA query_only = OFF", "COMMIT", "-- SELECT", "SELECTS"]
        {
            assert_eq!(asked(other), None, "{other}");
        }
    }
}
