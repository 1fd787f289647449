//! From a query to a condition of a statement.
//!
//! Every condition comes out as true or false, never as NULL, so that a negation is exact.
//! Values are bound, never written into the statement.

use gt_core::Timestamp;
use gt_core::query::{
    Expression, FieldCondition, Flag, NumberField, Query, TextField, TextTest, TimeField, TimeTest,
};

use super::find::{Clauses, FilterValue, LABELLED, PARENT, contains, escaped, ready_at};

/// The SQL condition of `query`.
pub(super) fn condition(clauses: &mut Clauses, query: &Query) -> String {
    expression(clauses, &query.expression, query.now)
}

fn expression(clauses: &mut Clauses, asked: &Expression, now: Timestamp) -> String {
    let mut join = |parts: &[Expression], between: &str| {
        let parts: Vec<String> = parts.iter().map(|part| expression(clauses, part, now)).collect();
        format!("({})", parts.join(between))
    };
    match asked {
        Expression::All(parts) => join(parts, " AND "),
        Expression::Any(parts) => join(parts, " OR "),
        Expression::Not(inner) => format!("NOT {}", expression(clauses, inner, now)),
        Expression::Is(condition) => match condition {
            FieldCondition::Text { field, test } => text(clauses, field, test),
            FieldCondition::Number { field, test } => {
                let column = match field {
                    NumberField::Priority => "priority",
                    NumberField::Estimate => "estimated_minutes",
                };
                compare(clauses, column, test.map(|(how, number)| (how.as_str(), number)))
            }
            FieldCondition::Time { field, test } => time(clauses, *field, *test),
            FieldCondition::Flag(flag) => match flag {
                Flag::Ephemeral => "(ephemeral = 1)".to_owned(),
                Flag::Pinned => "(pinned = 1)".to_owned(),
                Flag::Template => "(is_template = 1)".to_owned(),
                Flag::Blocked => "(open_blockers > 0 AND status <> 'closed')".to_owned(),
                Flag::Ready => format!("(workable = 1 AND {})", ready_at(clauses, now, true)),
            },
        },
    }
}

/// A number compared with a column, or the column is empty.
fn compare(clauses: &mut Clauses, column: &str, test: Option<(&str, i64)>) -> String {
    match test {
        None => format!("({column} IS NULL)"),
        Some((how, number)) => {
            let number = clauses.bind(FilterValue::Int(number));
            format!("({column} IS NOT NULL AND {column} {how} {number})")
        }
    }
}

fn time(clauses: &mut Clauses, field: TimeField, test: TimeTest) -> String {
    let column = match field {
        TimeField::Created => "created_at",
        TimeField::Updated => "updated_at",
        TimeField::Started => "started_at",
        TimeField::Closed => "closed_at",
        TimeField::Due => "due_at",
        TimeField::Defer => "defer_until",
    };
    match test {
        TimeTest::Empty => compare(clauses, column, None),
        TimeTest::At(how, at) => compare(clauses, column, Some((how.as_str(), at.as_nanos()))),
        TimeTest::Day(day) => {
            let next = day.plus(std::time::Duration::from_hours(24));
            let from = compare(clauses, column, Some((">=", day.as_nanos())));
            let to = compare(clauses, column, Some(("<", next.as_nanos())));
            format!("({from} AND {to})")
        }
    }
}

/// The place where a text is stored.
enum TextLocation<'q> {
    /// In a column that always has a value.
    Column(&'static str),
    /// In a column that may be empty.
    Nullable(&'static str),
    /// In a field of a column of JSON.
    Field(&'static str, &'q str),
    /// In rows of another table: how they are found, and their column.
    Rows(&'static str, &'static str),
}

fn place(field: &TextField) -> TextLocation<'_> {
    match field {
        TextField::Id => TextLocation::Column("id"),
        TextField::Title => TextLocation::Column("title"),
        TextField::Description => TextLocation::Column("description"),
        TextField::Design => TextLocation::Column("design"),
        TextField::Acceptance => TextLocation::Column("acceptance_criteria"),
        TextField::Notes => TextLocation::Column("notes"),
        TextField::Status => TextLocation::Column("status"),
        TextField::CloseReason => TextLocation::Column("close_reason"),
        TextField::Type => TextLocation::Column("issue_type"),
        TextField::Assignee => TextLocation::Column("assignee"),
        TextField::Owner => TextLocation::Column("owner"),
        TextField::CreatedBy => TextLocation::Column("created_by"),
        TextField::Outcome => TextLocation::Nullable("outcome"),
        TextField::Rig => TextLocation::Nullable("rig"),
        TextField::ExternalRef => TextLocation::Nullable("external_ref"),
        TextField::Spec => TextLocation::Field("carried", "spec_id"),
        TextField::MolType => TextLocation::Field("carried", "mol_type"),
        TextField::WispType => TextLocation::Field("carried", "wisp_type"),
        TextField::Metadata(key) => TextLocation::Field("metadata", key),
        TextField::Label => TextLocation::Rows(LABELLED, "l.label"),
        TextField::Parent => TextLocation::Rows(PARENT, "d.depends_on_id"),
    }
}

fn text(clauses: &mut Clauses, field: &TextField, test: &TextTest) -> String {
    match place(field) {
        TextLocation::Column(column) => matches(clauses, column, test),
        TextLocation::Nullable(column) => match test {
            TextTest::Is(_) => {
                format!("({column} IS NOT NULL AND {})", matches(clauses, column, test))
            }
            _ => matches(clauses, &format!("COALESCE({column}, '')"), test),
        },
        TextLocation::Field(column, field) => {
            if let TextTest::Is(value) = test {
                let equal = clauses.field_equal(column, field, value);
                return format!("COALESCE({equal}, FALSE)");
            }
            let field = clauses.text(field);
            matches(clauses, &format!("COALESCE({column} ->> {field}, '')"), test)
        }
        TextLocation::Rows(exists, column) => match test {
            TextTest::Empty => format!("NOT {exists})"),
            _ => format!("{exists} AND {})", matches(clauses, column, test)),
        },
    }
}

/// The test of a value that is never NULL.
fn matches(clauses: &mut Clauses, value: &str, test: &TextTest) -> String {
    match test {
        TextTest::Empty => format!("({value} = '')"),
        TextTest::Is(wanted) => {
            let wanted = clauses.text(wanted);
            format!("({value} = {wanted})")
        }
        TextTest::Like(pattern) => like(clauses, value, &escaped(pattern).replace('*', "%")),
        TextTest::Contains(wanted) => like(clauses, value, &contains(wanted)),
    }
}

/// Only ASCII letters are folded, on both sides and by both engines, so that text in any script is found
/// as it was written.
fn like(clauses: &mut Clauses, value: &str, pattern: &str) -> String {
    let pattern = clauses.text(pattern);
    format!("(lower({value}) LIKE {pattern} ESCAPE '\\')")
}
