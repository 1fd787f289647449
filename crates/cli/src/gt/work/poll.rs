//! `gt work poll`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use gt_api::PollDocument;
use gt_core::time::parse_duration;
use gt_core::work::WorkItem;
use gt_workqueue::work::{PollEnd, PollNews, PollResult, Polling, WorkClient, poll};

use super::first_line;
use super::request_args::WorkRequestArgs;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, local_times, plural};
use crate::served;

/// Take work, one item after the other, and have a command do it
///
/// The command gets the item as JSON on its standard input, and its id wherever {} stands in its arguments. If it ends with 0
/// the item is completed, else it has failed; the last lines of its output are noted, and all of it is kept in a file. A command
/// may report itself with gt work update: then that counts.
///
/// The lease is renewed at a third of its time while the command is at work. If another agent gets the item, the command is ended. TERM, INT and
/// HUP end the command and give the item back. A server that is away is waited for.
#[derive(Debug, Args)]
#[command(
    after_help = "In the environment of the command are GT_WORK_ID, GT_WORK_BEAD, GT_WORK_TYPE, GT_WORK_AGENT, GT_RUN_ID and, \
unless it is longer than 100 KB, GT_WORK_ITEM with the item as JSON; with a server also GT_WORK_URL and GT_WORK_TOKEN.

Examples:
  gt work poll --agent steve-w -- ./review.sh {}
  gt work poll --agent ci --type deploy --once --wait 0 -- make deploy
  gt work poll --agent steve-w --url https://queue.example -- claude -p \"Do the work item on standard input\""
)]
pub(super) struct PollArgs {
    #[command(flatten)]
    asking: WorkRequestArgs,
    /// How long the queue is asked to wait for work at a time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    wait: Duration,
    /// Do one item, or none if there is none after --wait, and end
    #[arg(long)]
    once: bool,
    /// End after so many items
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max: Option<u64>,
    /// How long a command may take to end when it is asked to, before it is killed
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    grace: Duration,
    /// Keep the output of commands in this directory, for good; .gt/work in the town or, with a server, gt/work in
    /// ~/.local/state unless said, for as long as events.keep says
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(
    context: &CommandContext<'_>,
    client: &WorkClient,
    args: &PollArgs,
) -> Result<(), CliError> {
    if served::current().is_some() {
        return Err(CliError::request(
            "gt work poll starts programs where it runs, and not for workers; run it in a shell of your own",
        ));
    }
    let polling = Polling {
        request: args.asking.request()?,
        wait: args.wait,
        once: args.once,
        most: args.max,
        command: args.command.clone(),
        directory: context.directory.clone(),
        output: output(context, client, args)?,
        // Old output in a directory that the user named is left to the user.
        keep: if args.output.is_some() { None } else { Some(client.history_kept()?) },
        grace: args.grace,
    };
    let printer = context.printer;
    // A closed output does not end the poll: the item would be dropped.
    let polled = poll(client, &polling, &mut |news| {
        let _ = print_news(printer, news).and_then(|()| printer.flush());
    })?;
    printer.done(format!("✓ {}", summary(&polled)))
}

fn output(
    context: &CommandContext<'_>,
    client: &WorkClient,
    args: &PollArgs,
) -> Result<PathBuf, CliError> {
    if let Some(directory) = &args.output {
        return Ok(context.directory.join(directory));
    }
    let state = || Some(context.environment.state_directory()?.join("work"));
    match client {
        WorkClient::Local(town) if town.has_directory() => Ok(town.root().join(".gt").join("work")),
        WorkClient::Local(_) | WorkClient::Remote(_) => state().ok_or_else(|| {
            CliError::request(
                "neither HOME nor XDG_STATE_HOME is set; say with --output where output is kept",
            )
        }),
    }
}

fn print_news(printer: &Printer, news: &PollNews<'_>) -> Result<(), CliError> {
    match news {
        PollNews::Began { item, output } if printer.json() => {
            let output = Some(output.display().to_string());
            printer.json_line(&PollDocument { output, ..event("began", Some(item)) })
        }
        PollNews::Began { item, output } => {
            printer.done(format!("{} began: {}", item.bead, first_line(item)))?;
            printer.done(format!("  its output is in {}", output.display()))
        }
        PollNews::Ended { item, end } if printer.json() => {
            let mut told = event(end.code(), Some(item));
            match end {
                PollEnd::Failed(why) | PollEnd::Lost(why) => told.reason = Some(why.clone()),
                PollEnd::Reported(status) => told.status = Some(status.to_string()),
                PollEnd::Completed | PollEnd::GivenBack => {}
            }
            printer.json_line(&told)
        }
        PollNews::Ended { item, end } => printer.done(match end {
            PollEnd::Completed => format!("✓ {} is completed", item.bead),
            PollEnd::Failed(why) => format!("✗ {} has failed: {why}", item.bead),
            PollEnd::Reported(status) => {
                format!("✓ {} is {status}, as its command says", item.bead)
            }
            PollEnd::Lost(why) => {
                format!("✗ {} is lost, and its command was ended: {why}", item.bead)
            }
            PollEnd::GivenBack => format!("{} was given back", item.bead),
        }),
        PollNews::Nothing(why) if printer.json() => {
            let reason = Some(why.to_string());
            printer.json_line(&PollDocument { reason, ..event("nothing", None) })
        }
        PollNews::Nothing(why) => printer.done(format!("Nothing to do: {}", local_times(why))),
        PollNews::Busy(why) => {
            printer.note(format!("note: {why}; waiting for that"));
            Ok(())
        }
        PollNews::Away(why) => {
            printer.note(format!("note: {why}; waiting for the queue"));
            Ok(())
        }
        PollNews::Back => {
            printer.note("note: the queue is back");
            Ok(())
        }
    }
}

fn event(name: &str, item: Option<&WorkItem>) -> PollDocument {
    PollDocument {
        event: name.to_owned(),
        id: item.map(|item| item.uid.to_string()),
        bead: item.map(|item| item.bead.to_string()),
        ..PollDocument::default()
    }
}

fn summary(polled: &PollResult) -> String {
    let parts = [
        (polled.completed, "completed"),
        (polled.failed, "failed"),
        (polled.reported, "reported by their commands"),
        (polled.lost, "lost"),
        (polled.given_back, "given back"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, how)| format!("{count} {how}"))
        .collect();
    let count = plural(polled.count(), "item");
    if parts.is_empty() { count } else { format!("{count}: {}", parts.join(", ")) }
}
