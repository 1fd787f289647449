//! Everything that a store holds, as lines that can be compared between engines.

use crate::{Reader, StoreError};

/// A column, by how it is read.
#[derive(Debug, Clone, Copy)]
enum Column {
    Int(&'static str),
    Text(&'static str),
    Blob(&'static str),
}

use Column::{Blob, Int, Text};

/// A table, with the columns that its rows are sorted by.
#[derive(Debug, Clone, Copy)]
struct Table {
    name: &'static str,
    order: &'static str,
    columns: &'static [Column],
}

/// Every table and every column; a test compares the list with the schema.
const TABLES: &[Table] = &[
    Table {
        name: "rigs",
        order: "slug",
        columns: &[
            Text("slug"),
            Blob("uid"),
            Text("prefix"),
            Text("title"),
            Text("path"),
            Text("repo"),
            Text("default_branch"),
            Text("executor"),
            Text("state"),
            Text("external_ref"),
            Text("settings"),
            Int("created_at"),
            Int("updated_at"),
        ],
    },
    Table {
        name: "beads",
        order: "id",
        columns: &[
            Text("id"),
            Blob("uid"),
            Text("rig"),
            Text("status"),
            Text("outcome"),
            Int("priority"),
            Text("issue_type"),
            Text("assignee"),
            Int("created_at"),
            Int("updated_at"),
            Int("started_at"),
            Int("closed_at"),
            Int("due_at"),
            Int("defer_until"),
            Int("ephemeral"),
            Int("no_history"),
            Int("pinned"),
            Int("is_template"),
            Int("open_blockers"),
            Int("last_child"),
            Int("estimated_minutes"),
            Text("title"),
            Text("owner"),
            Text("created_by"),
            Text("close_reason"),
            Text("external_ref"),
            Text("metadata"),
            Text("description"),
            Text("design"),
            Text("acceptance_criteria"),
            Text("notes"),
            Text("carried"),
            Int("workable"),
        ],
    },
    Table {
        name: "labels",
        order: "bead, position, label",
        columns: &[Text("bead"), Text("label"), Int("position")],
    },
    Table {
        name: "dependencies",
        order: "issue_id, depends_on_id",
        columns: &[
            Text("issue_id"),
            Text("depends_on_id"),
            Text("type"),
            Int("blocking"),
            Int("created_at"),
            Text("created_by"),
            Text("metadata"),
            Text("thread_id"),
            Text("carried"),
        ],
    },
    Table {
        name: "comments",
        order: "bead, created_at, id",
        columns: &[
            Text("bead"),
            Text("id"),
            Text("author"),
            Int("created_at"),
            Text("text"),
            Text("carried"),
        ],
    },
    Table {
        name: "settings",
        order: "scope, key",
        columns: &[
            Text("scope"),
            Text("key"),
            Text("value"),
            Int("updated_at"),
            Text("updated_by"),
        ],
    },
    Table { name: "requests", order: "key", columns: &[Text("key"), Text("bead"), Int("at")] },
    Table { name: "prefixes", order: "prefix", columns: &[Text("prefix"), Int("beads")] },
    Table { name: "counters", order: "name", columns: &[Text("name"), Int("value")] },
    Table {
        name: "events",
        order: "number",
        columns: &[
            Int("number"),
            Int("at"),
            Text("type"),
            Text("bead"),
            Text("rig"),
            Text("run"),
            Text("actor"),
            Text("payload"),
        ],
    },
];

impl Column {
    fn name(self) -> &'static str {
        match self {
            Int(name) | Text(name) | Blob(name) => name,
        }
    }
}

/// Every row of every table, derived columns included: one line each, with what is not NULL.
pub fn dump(reader: &Reader<'_>) -> Result<Vec<String>, StoreError> {
    let mut lines = Vec::new();
    for Table { name, order, columns } in TABLES {
        let list = columns.iter().map(|column| column.name()).collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT {list} FROM {name} ORDER BY {order}");
        lines.extend(reader.rows(&sql, &[], |row| {
            let mut line = vec![(*name).to_owned()];
            for (place, column) in columns.iter().enumerate() {
                let value = match column {
                    Int(_) => row.int_or_null(place)?.map(|number| number.to_string()),
                    Text(_) => row.text_or_null(place)?.map(|text| format!("{text:?}")),
                    Blob(_) => Some(format!("{:02x?}", row.blob(place)?)),
                };
                line.extend(value.map(|value| format!("{}={value}", column.name())));
            }
            Ok(line.join(" "))
        })?);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Store;

    #[test]
    fn every_column_of_every_table_is_dumped() {
        let store = Store::in_memory().unwrap();
        let schema = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_xinfo(t.name) c \
                      WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
        let there: BTreeSet<(String, String)> = store
            .read(|reader| {
                reader.rows(schema, &[], |row| {
                    Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))
                })
            })
            .unwrap()
            .into_iter()
            // What an engine remembers about itself.
            .filter(|(table, _)| table != "migrations")
            .collect();
        let listed: BTreeSet<(String, String)> = TABLES
            .iter()
            .flat_map(|table| {
                let columns = table.columns.iter();
                columns.map(|column| (table.name.to_owned(), column.name().to_owned()))
            })
            .collect();
        assert_eq!(listed, there);
    }
}
