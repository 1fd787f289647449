//! `gt store info`.

use clap::Args;
use gt_core::Timestamp;
use gt_operations::IfAbsent;
use gt_operations::store::{self, Growth, Info, SCHEMA_LEVEL};
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, size};

/// Show where the store is, how large it is and how fast it grows
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt store info --json")]
pub(super) struct InfoArgs {}

pub(super) fn run(context: &Context<'_>) -> Result<(), CliError> {
    let town = context.town_or_database(IfAbsent::Refuse)?;
    let printer = context.printer;
    let info = store::info(&town)?;
    if printer.json() { printer.object(&json(&info)) } else { print(printer, &info) }
}

fn print(printer: &Printer, info: &Info) -> Result<(), CliError> {
    let said = &info.store;
    let engine = &said.engine;
    let mut facts = Table::new();
    let mut fact = |name: &str, text: String| facts.row(vec![Cell::bold(name), Cell::new(text)]);
    fact("Store", said.place.clone().unwrap_or_default());
    fact("Town", format!("{} ({})", info.root.display(), info.town));
    fact("Engine", format!("{} {}, schema {}", engine.engine, engine.version, said.schema));
    let parts: Vec<String> =
        engine.parts.iter().map(|(name, bytes)| format!("{name} {}", size(*bytes))).collect();
    fact("Size", format!("{} ({})", size(engine.bytes), parts.join(", ")));
    let settings: Vec<String> =
        engine.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    fact("Settings", settings.join(", "));
    let (first, last) = said.event_numbers;
    fact("Events", format!("{first} to {last}, {}", span(&said.events)));
    fact("", rate(&said.events));
    fact("Beads", format!("made {}", span(&said.beads)));
    fact("", rate(&said.beads));
    printer.table(facts)?;
    printer.line("")?;
    let sized = said.tables.iter().any(|table| table.bytes.is_some());
    let names: &[&str] = if sized { &["TABLE", "ROWS", "SIZE"] } else { &["TABLE", "ROWS"] };
    let mut table = Table::with_header(names);
    for row in &said.tables {
        let mut cells = vec![Cell::new(row.name), Cell::new(row.rows.to_string())];
        cells.extend(row.bytes.map(|bytes| Cell::new(size(bytes))));
        table.row(cells);
    }
    printer.table(table)
}

fn span(growth: &Growth) -> String {
    let day = |at: Option<Timestamp>| {
        at.map_or_else(|| "never".to_owned(), |at| at.to_jiff().strftime("%Y-%m-%d").to_string())
    };
    format!("{} to {}", day(growth.oldest), day(growth.newest))
}

fn rate(growth: &Growth) -> String {
    let Growth { week, month, .. } = growth;
    let (week_rate, month_rate) = (per_day(*week, 7), per_day(*month, 30));
    format!("{week} in 7 days ({week_rate} a day), {month} in 30 days ({month_rate} a day)")
}

/// With one digit behind the point.
#[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
fn per_day(count: u64, days: u64) -> String {
    format!("{:.1}", count as f64 / days as f64)
}

fn json(info: &Info) -> String {
    let said = &info.store;
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("town", &info.town);
    object.text("root", &info.root.display().to_string());
    object.text("place", said.place.as_deref().unwrap_or_default());
    object.text("engine", said.engine.engine);
    object.text("engine_version", &said.engine.version);
    object.number("schema", said.schema);
    object.number("schema_known", SCHEMA_LEVEL);
    object.count("bytes", said.engine.bytes);
    object.object("sizes", |object| {
        said.engine.parts.iter().for_each(|(name, bytes)| object.count(name, *bytes));
    });
    object.object("settings", |object| {
        said.engine.settings.iter().for_each(|(name, value)| object.text(name, value));
    });
    object.array("tables", |array| {
        for table in &said.tables {
            array.object(|object| {
                object.text("name", table.name);
                object.count("rows", table.rows);
                if let Some(bytes) = table.bytes {
                    object.count("bytes", bytes);
                }
            });
        }
    });
    object.object("events", |object| {
        object.count("first", said.event_numbers.0);
        object.count("last", said.event_numbers.1);
        growth(object, &said.events);
    });
    object.object("beads", |object| growth(object, &said.beads));
    object.finish();
    out
}

fn growth(object: &mut ObjectWriter<'_>, growth: &Growth) {
    if let (Some(oldest), Some(newest)) = (growth.oldest, growth.newest) {
        object.timestamp("oldest", oldest);
        object.timestamp("newest", newest);
    }
    object.count("last_7_days", growth.week);
    object.count("last_30_days", growth.month);
    object.raw("per_day_in_7_days", &per_day(growth.week, 7));
    object.raw("per_day_in_30_days", &per_day(growth.month, 30));
}
