//! `gt outbox`.

use clap::{Args, Subcommand};
use gt_api::{DeliveredDocument, NoticeDocument, ToldDocument};
use gt_beads::outbox::{self, NoticeSender};
use gt_town::Town;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, plural};
use crate::values::texts;

/// How many notices are listed.
const NOTICES_SHOWN_MAX: usize = 1_000;

/// See and send what people are to be told
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt config set notify.webhook https://example.com/hook
  gt outbox test
  gt outbox list
  gt outbox retry")]
pub(super) struct OutboxArgs {
    #[command(subcommand)]
    verb: OutboxVerb,
}

#[derive(Debug, Subcommand)]
enum OutboxVerb {
    /// List what has not arrived
    List,
    /// Send everything now that has not arrived, also what was given up
    Retry,
    /// Send a test through notify.command and notify.webhook
    Test,
}

pub(super) fn run(context: &CommandContext<'_>, args: &OutboxArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    match args.verb {
        OutboxVerb::List => list(printer, &town),
        OutboxVerb::Retry => retry(printer, &town),
        OutboxVerb::Test => test(printer, &town),
    }
}

fn list(printer: &Printer, town: &Town) -> Result<(), CliError> {
    let notices = outbox::list(town, NOTICES_SHOWN_MAX)?;
    if printer.json() {
        let mut list = printer.list();
        for notice in &notices {
            list.push(&NoticeDocument::from(notice))?;
        }
        return list.finish();
    }
    if notices.is_empty() {
        return printer.done("Everything has arrived");
    }
    let mut table = Table::with_header(&["KEY", "CHANNEL", "STATE", "TRIES", "LAST ERROR"]);
    for notice in &notices {
        table.row(vec![
            Cell::new(notice.key.as_str()),
            Cell::new(notice.channel.as_str()),
            Cell::new(notice.state.as_str()),
            Cell::new(notice.attempts.to_string()),
            Cell::new(notice.last_error.as_str()),
        ]);
    }
    printer.table(table)
}

fn retry(printer: &Printer, town: &Town) -> Result<(), CliError> {
    let delivered = outbox::retry(town, &NoticeSender::of(town))?;
    let left = outbox::unsent(town)?;
    if printer.json() {
        return printer.object(&DeliveredDocument {
            sent: delivered.sent as u64,
            failed: (delivered.failed + delivered.given_up) as u64,
            waiting: left.waiting,
        });
    }
    printer.done(format!("✓ {} sent", plural(delivered.sent as u64, "notice")))?;
    if left.waiting > 0 {
        printer.done(format!(
            "{} did not arrive and will be tried again; gt outbox list says why",
            plural(left.waiting, "notice")
        ))?;
    }
    Ok(())
}

fn test(printer: &Printer, town: &Town) -> Result<(), CliError> {
    let tried = outbox::test(town, &NoticeSender::of(town))?;
    let mut wrong = Vec::new();
    for (channel, result) in &tried {
        match result {
            Ok(()) if printer.json() => {}
            Ok(()) => printer.done(format!("✓ notify.{} was told", channel.as_str()))?,
            Err(error) => wrong.push(format!("notify.{}: {}", channel.as_str(), error.why())),
        }
    }
    if !wrong.is_empty() {
        return Err(CliError::request(wrong.join("; ")));
    }
    if printer.json() {
        let told = texts(tried.iter().map(|(channel, _)| channel.as_str()));
        return printer.object(&ToldDocument { told });
    }
    Ok(())
}
