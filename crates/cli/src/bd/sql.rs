//! `bd sql`.

use clap::Args;
use gt_api::{OrderedMap, RawJson};
use gt_beads::queries::select;
use gt_core::Json;
use gt_town::{QueryTable, QueryValue};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table};

/// Answer a query in SQL; nothing is changed
///
/// The tables are issues, labels, dependencies and comments, and those of ephemeral beads: wisps, `wisp_labels`,
/// `wisp_dependencies` and `wisp_comments`. Times are in UTC. The rest is the SQL of the store, SQLite or PostgreSQL.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd sql 'SELECT id, title FROM issues WHERE priority = 0'
  bd sql --csv 'SELECT label, COUNT(*) AS beads FROM labels GROUP BY label'")]
pub(super) struct SqlArgs {
    /// The query
    #[arg(value_name = "QUERY")]
    query: String,
    /// Print comma-separated values, the names of the columns first
    #[arg(long)]
    csv: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &SqlArgs) -> Result<(), CliError> {
    let QueryTable { columns, rows } = select(&context.store_town()?, &args.query)?;
    let printer = context.printer;
    if printer.json() {
        let mut list = printer.list();
        for row in rows {
            let values = columns.iter().cloned().zip(row.into_iter().map(json));
            list.push(&values.collect::<OrderedMap<RawJson>>())?;
        }
        return list.finish();
    }
    let texts = rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>());
    if args.csv {
        return std::iter::once(columns.iter().map(String::as_str).collect())
            .chain(texts)
            .try_for_each(|fields| printer.data(csv_line(&fields)));
    }
    if rows.is_empty() {
        return printer.done("(0 rows)");
    }
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::with_header(&names);
    for texts in texts {
        table.row(texts.into_iter().map(Cell::new).collect());
    }
    printer.table(table)
}

fn json(value: QueryValue) -> RawJson {
    RawJson(match value {
        QueryValue::Null => Json::trusted("null".to_owned()),
        QueryValue::Number(number) => Json::trusted(number),
        QueryValue::Text(text) => Json::string(&text),
    })
}

fn text(value: &QueryValue) -> &str {
    match value {
        QueryValue::Null => "",
        QueryValue::Number(text) | QueryValue::Text(text) => text,
    }
}

/// One line of comma-separated values, by RFC 4180.
fn csv_line(fields: &[&str]) -> String {
    let field = |text: &&str| {
        if text.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            (*text).to_owned()
        }
    };
    fields.iter().map(field).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::csv_line;

    #[test]
    fn fields_with_separators_are_quoted() {
        assert_eq!(
            csv_line(&["a", "b,c", "say \"d\"", "", "e\nf"]),
            "a,\"b,c\",\"say \"\"d\"\"\",,\"e\nf\""
        );
    }
}
