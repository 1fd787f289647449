//! `gt inbox`: everything that needs a person.

use clap::Args;
use gt_api::InboxItemDocument;
use gt_core::Timestamp;
use gt_core::inbox::{InboxItem, InboxKind};
use gt_daemon::inbox;

use super::mail::message_headline;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, ago, local_times, plural};

/// How many lines of a status name what needs a person.
const LINES_SHOWN: usize = 10;

/// List everything that needs a person, with the commands that answer it
///
/// Questions, reviews, work that failed for good, conflicts that no repair solved, queues and rigs that stand still, silent runs, spent budgets. gt status shows the same rows in the same order.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt inbox\n  gt inbox --rig web\n  gt inbox --json")]
pub(super) struct InboxArgs {
    /// Only what is about this rig
    #[arg(long)]
    rig: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &InboxArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let rig = args
        .rig
        .as_deref()
        .map(|name| town.read(|reader| gt_town::rig_names::require(reader, name)));
    let rig = rig.transpose()?.map(|rig| rig.slug);
    let mut items = inbox::inbox(&town)?;
    items.retain(|item| rig.is_none() || item.rig == rig);
    inbox::add_details(&town, &mut items)?;
    if printer.json() {
        let mut list = printer.list();
        for item in &items {
            list.push(&InboxItemDocument::from(item))?;
        }
        return list.finish();
    }
    if items.is_empty() {
        return printer.done(match rig {
            None => "Nothing needs you.".to_owned(),
            Some(rig) => format!("Nothing in {rig} needs you."),
        });
    }
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            printer.line("")?;
        }
        print_item(printer, item, town.now())?;
    }
    Ok(())
}

fn print_item(printer: &Printer, item: &InboxItem, now: Timestamp) -> Result<(), CliError> {
    let about = format!("  {}  {}", item.object, item.title);
    printer.heading(item.kind.as_str(), about.trim_end())?;
    let mut table = Table::wrapped();
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            table.row(vec![Cell::new(format!("  {name}")), Cell::new(value)]);
        }
    };
    let context = &item.context;
    row("why", local_times(&sentence(item)));
    row("since", item.since.map(|since| ago(since, now)).unwrap_or_default());
    row("check", context.check.clone().unwrap_or_default());
    let size = context.change.map(|size| {
        format!("{} +{} -{}", plural(size.files, "file"), size.insertions, size.deletions)
    });
    row("change", size.unwrap_or_default());
    if item.kind == InboxKind::Stalled {
        for (number, line) in context.detail.lines().enumerate() {
            row(if number == 0 { "last words" } else { "" }, line.to_owned());
        }
    }
    let blocked: Vec<String> = context.blocks.iter().map(ToString::to_string).collect();
    row("blocks", blocked.join(", "));
    for (number, command) in item.commands.iter().enumerate() {
        row(if number == 0 { "answer" } else { "" }, command.clone());
    }
    printer.table(table)
}

/// The problem in a sentence; a question with its severity.
pub(super) fn sentence(item: &InboxItem) -> String {
    match &item.context.message {
        Some(message) => message_headline(message),
        None => item.what.clone(),
    }
}

/// Prints the rows in a line each, before everything else of a status. The line about the daemon is printed above it.
pub(super) fn print_inbox_lines(printer: &Printer, items: &[InboxItem]) -> Result<(), CliError> {
    let items: Vec<&InboxItem> =
        items.iter().filter(|item| item.kind != InboxKind::DaemonAway).collect();
    if items.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    printer.heading("Needs you", "")?;
    for item in items.iter().take(LINES_SHOWN) {
        printer.paragraph(inbox_line(item))?;
    }
    match items.len().saturating_sub(LINES_SHOWN) {
        0 => {}
        more => printer.line(format!("  and {more} more (gt inbox)"))?,
    }
    printer.line("")
}

fn inbox_line(item: &InboxItem) -> String {
    match &item.context.message {
        Some(message) => {
            let about =
                message.bead.as_ref().map_or_else(|| message.from.to_string(), ToString::to_string);
            format!("  ! {about} {} (gt mail read {})", message_headline(message), message.id)
        }
        None => format!("  {}; {}", item.what, item.remedy),
    }
}
