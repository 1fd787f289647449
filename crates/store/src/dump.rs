//! Everything that a store holds, as lines that can be compared between engines.

use crate::{ColumnKind, CopiedTable, Reader, StoreError, TABLES};

/// The columns that a database computes by itself and a copy leaves out.
const COMPUTED: [(&str, (&str, ColumnKind)); 2] =
    [("beads", ("workable", ColumnKind::Number)), ("beads", ("work_status", ColumnKind::Text))];

fn columns(table: &CopiedTable) -> Vec<(&'static str, ColumnKind)> {
    let computed = COMPUTED.into_iter().filter(|(name, _)| *name == table.name);
    table.columns.iter().copied().chain(computed.map(|(_, column)| column)).collect()
}

/// Every row of every table, derived columns included: one line each, with the values that are not NULL.
pub fn dump(reader: &Reader<'_>) -> Result<Vec<String>, StoreError> {
    let mut lines = Vec::new();
    for table in TABLES {
        let columns = columns(table);
        let list = columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT {list} FROM {} ORDER BY {}", table.name, table.key);
        lines.extend(reader.rows(&sql, &[], |row| {
            let mut line = vec![table.name.to_owned()];
            for (place, (name, kind)) in columns.iter().enumerate() {
                let value = match kind {
                    ColumnKind::Number => row.int_or_null(place)?.map(|number| number.to_string()),
                    ColumnKind::Text => row.text_or_null(place)?.map(|text| format!("{text:?}")),
                    ColumnKind::Bytes => Some(format!("{:02x?}", row.blob(place)?)),
                };
                line.extend(value.map(|value| format!("{name}={value}")));
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
    use crate::{NOT_COPIED, Store};

    #[test]
    fn every_column_of_every_table_is_dumped() {
        let store = Store::in_memory().unwrap();
        let schema = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_xinfo(t.name) c \
                      WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
        let there: BTreeSet<(String, String)> = store
            .read(|reader| {
                reader
                    .rows(schema, &[], |row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned())))
            })
            .unwrap()
            .into_iter()
            .filter(|(table, _)| !NOT_COPIED.contains(&table.as_str()))
            .collect();
        let listed: BTreeSet<(String, String)> = TABLES
            .iter()
            .flat_map(|table| {
                let columns = columns(table).into_iter();
                columns.map(|(column, _)| (table.name.to_owned(), column.to_owned()))
            })
            .collect();
        assert_eq!(listed, there);
    }
}
