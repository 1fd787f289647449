//! `gt store info`.

use clap::Args;
use gt_api::{EventsGrowthDocument, GrowthDocument, RawJson, StoreInfoDocument, TableDocument};
use gt_beads::store::{self, Growth, SCHEMA_LEVEL, TownStoreInfo};
use gt_core::Timestamp;
use gt_town::IfAbsent;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, local_date, size};

/// Show where the store is, how large it is and how fast it grows
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt store info --json")]
pub(super) struct InfoArgs {}

pub(super) fn run(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.town_or_database(IfAbsent::Refuse)?;
    let printer = context.printer;
    let info = store::info(&town)?;
    if printer.json() { printer.object(&document(&info)) } else { print(printer, &info) }
}

fn print(printer: &Printer, info: &TownStoreInfo) -> Result<(), CliError> {
    let said = &info.store;
    let engine = &said.engine;
    let mut facts = Table::wrapped();
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
    let day = |at: Option<Timestamp>| at.map_or_else(|| "never".to_owned(), local_date);
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

fn document(info: &TownStoreInfo) -> StoreInfoDocument {
    let (said, engine) = (&info.store, &info.store.engine);
    let tables = said.tables.iter().map(|table| TableDocument {
        name: table.name.to_owned(),
        rows: table.rows,
        bytes: table.bytes,
    });
    let sizes = engine.parts.iter().map(|(name, bytes)| (name.to_string(), *bytes));
    let settings = engine.settings.iter().map(|(name, value)| (name.to_string(), value.clone()));
    StoreInfoDocument {
        town: info.town.clone(),
        root: info.root.display().to_string(),
        place: said.place.clone().unwrap_or_default(),
        engine: engine.engine.to_owned(),
        engine_version: engine.version.clone(),
        schema: said.schema,
        schema_known: SCHEMA_LEVEL,
        bytes: engine.bytes,
        sizes: sizes.collect(),
        settings: settings.collect(),
        tables: tables.collect(),
        events: EventsGrowthDocument {
            first: said.event_numbers.0,
            last: said.event_numbers.1,
            growth: growth(&said.events),
        },
        beads: growth(&said.beads),
    }
}

fn growth(growth: &Growth) -> GrowthDocument {
    let times = growth.oldest.zip(growth.newest);
    GrowthDocument {
        oldest: times.map(|(oldest, _)| oldest.into()),
        newest: times.map(|(_, newest)| newest.into()),
        last_7_days: growth.week,
        last_30_days: growth.month,
        per_day_in_7_days: RawJson::record(per_day(growth.week, 7)),
        per_day_in_30_days: RawJson::record(per_day(growth.month, 30)),
    }
}
