//! The whole store, row by row, from one engine into another.

use std::ops::ControlFlow;

use crate::StoreError;
use crate::engine::{Param, Row, Session};
use crate::transaction::Reader;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// A number, a flag or an instant.
    Number,
    /// Text.
    Text,
    /// Bytes, never NULL.
    Bytes,
}

/// A table with what has to be copied of it. Columns that a database computes are left out.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [(&'static str, ColumnKind)],
    /// What its rows are sorted by, so that two copies of the same store are the same.
    key: &'static str,
}

use ColumnKind::{Bytes, Number, Text};

/// Every table of the schema, those that others refer to first. The ledger of migrations is not
/// among them: it says how a database came to its schema, not what is in the store. A test compares
/// this list with the schema of both engines.
pub const TABLES: &[Table] = &[
    Table { name: "counters", columns: &[("name", Text), ("value", Number)], key: "name" },
    Table {
        name: "rigs",
        columns: &[
            ("slug", Text),
            ("uid", Bytes),
            ("prefix", Text),
            ("title", Text),
            ("path", Text),
            ("repo", Text),
            ("default_branch", Text),
            ("executor", Text),
            ("state", Text),
            ("external_ref", Text),
            ("settings", Text),
            ("created_at", Number),
            ("updated_at", Number),
        ],
        key: "slug",
    },
    Table { name: "prefixes", columns: &[("prefix", Text), ("beads", Number)], key: "prefix" },
    Table {
        name: "beads",
        columns: &[
            ("id", Text),
            ("uid", Bytes),
            ("rig", Text),
            ("status", Text),
            ("outcome", Text),
            ("priority", Number),
            ("issue_type", Text),
            ("assignee", Text),
            ("created_at", Number),
            ("updated_at", Number),
            ("started_at", Number),
            ("closed_at", Number),
            ("due_at", Number),
            ("defer_until", Number),
            ("ephemeral", Number),
            ("no_history", Number),
            ("pinned", Number),
            ("is_template", Number),
            ("open_blockers", Number),
            ("last_child", Number),
            ("estimated_minutes", Number),
            ("title", Text),
            ("owner", Text),
            ("created_by", Text),
            ("close_reason", Text),
            ("external_ref", Text),
            ("metadata", Text),
            ("description", Text),
            ("design", Text),
            ("acceptance_criteria", Text),
            ("notes", Text),
            ("carried", Text),
        ],
        key: "id",
    },
    Table {
        name: "labels",
        columns: &[("bead", Text), ("label", Text), ("position", Number)],
        key: "bead, label",
    },
    Table {
        name: "dependencies",
        columns: &[
            ("issue_id", Text),
            ("depends_on_id", Text),
            ("type", Text),
            ("blocking", Number),
            ("created_at", Number),
            ("created_by", Text),
            ("metadata", Text),
            ("thread_id", Text),
            ("carried", Text),
        ],
        key: "issue_id, depends_on_id",
    },
    Table {
        name: "comments",
        columns: &[
            ("bead", Text),
            ("id", Text),
            ("author", Text),
            ("created_at", Number),
            ("text", Text),
            ("carried", Text),
        ],
        key: "bead, id",
    },
    Table {
        name: "events",
        columns: &[
            ("number", Number),
            ("at", Number),
            ("type", Text),
            ("bead", Text),
            ("rig", Text),
            ("run", Text),
            ("actor", Text),
            ("payload", Text),
        ],
        key: "number",
    },
    Table {
        name: "settings",
        columns: &[
            ("scope", Text),
            ("key", Text),
            ("value", Text),
            ("updated_at", Number),
            ("updated_by", Text),
        ],
        key: "scope, key",
    },
    Table {
        name: "requests",
        columns: &[("key", Text), ("bead", Text), ("at", Number)],
        key: "key",
    },
];

/// Told how much is done, and of how much.
pub type Progress<'p> = &'p mut dyn FnMut(u64, u64);

/// How many rows are copied between two reports.
const ROWS_PER_REPORT: u64 = 1024;

impl Table {
    fn column_names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    fn select(&self) -> String {
        format!("SELECT {} FROM {} ORDER BY {}", self.column_names(), self.name, self.key)
    }

    fn insert(&self) -> String {
        let places: Vec<String> = (1..=self.columns.len()).map(|n| format!("?{n}")).collect();
        let (name, columns, places) = (self.name, self.column_names(), places.join(", "));
        format!("INSERT INTO {name} ({columns}) VALUES ({places})")
    }

    fn values<'r>(&self, row: &'r dyn Row) -> Result<Vec<Param<'r>>, StoreError> {
        let value = |(place, (_, kind)): (usize, &(&str, ColumnKind))| {
            Ok(match kind {
                Number => row.int_or_null(place)?.into(),
                Text => row.text_or_null(place)?.into(),
                Bytes => Param::Blob(row.blob(place)?),
            })
        };
        self.columns.iter().enumerate().map(value).collect()
    }

    /// The statement that counts its rows.
    pub(crate) fn count(&self) -> String {
        format!("SELECT COUNT(*) FROM {}", self.name)
    }
}

/// Copies every row. Both sessions are in a transaction: what is read is one state of the store, and
/// what is written is committed by the caller or not at all. Whatever the schema itself put into
/// `to` is replaced.
pub(crate) fn copy_rows(
    from: &dyn Session,
    to: &dyn Session,
    progress: Progress<'_>,
) -> Result<(), StoreError> {
    let mut total = 0;
    for table in TABLES {
        total += Reader::new(from).count_rows(table)?;
        to.execute(&format!("DELETE FROM {}", table.name), &[])?;
    }
    let mut done = 0;
    for table in TABLES {
        let insert = table.insert();
        from.stream(&table.select(), &[], &mut |row| {
            to.apply(&insert, &table.values(row)?)?;
            done += 1;
            if done % ROWS_PER_REPORT == 0 {
                progress(done, total);
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    progress(done, total);
    Ok(())
}
