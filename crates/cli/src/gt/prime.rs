//! `gt prime`.

use clap::Args;
use gt_operations::worker::{self, Briefing, Overview, Primed, RunningRun};
use gt_operations::{Town, messages};
use gt_records::{ObjectWriter, write_comment};

use super::mail::{message_json, print_needs_you, role, told};
use super::run::{lasted, state_words, write_run};
use super::step::{write_progress, write_steps};
use crate::context::Context;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, plural};

/// How many live runs are named.
const RUNS_SHOWN: usize = 20;

/// Tell a worker who it is, what is to be done and how to finish; tell others how the town stands
///
/// A worker is whoever has `GT_RUN` in its environment. Messages to it are printed, and count as seen afterwards.
#[derive(Debug, Args)]
#[command(after_help = "Exit code: 1 if the run of a worker is over, with what to do instead.

Examples:
  gt prime
  gt prime --json
  gt prime --run gt-abc#2        # what the worker of that run is told")]
pub(super) struct PrimeArgs {
    /// What the worker of this run, or of the live or last run of this bead, is told
    #[arg(long)]
    run: Option<String>,
}

pub(super) fn run(context: &Context<'_>, args: &PrimeArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    match worker::prime(&town, role(context), args.run.as_deref())? {
        Primed::Worker(briefing) => {
            if printer.json() {
                printer.object(&briefing_json(&briefing))?;
            } else {
                printer.text(&briefing.text())?;
            }
            // What did not leave was not read.
            printer.flush()?;
            Ok(messages::mark_seen(&town, role(context), &briefing.messages)?)
        }
        Primed::Other(overview) if printer.json() => {
            printer.object(&overview_json(&town, &overview))
        }
        Primed::Other(overview) => print_overview(printer, &town, &overview),
    }
}

fn print_overview(printer: &Printer, town: &Town, overview: &Overview) -> Result<(), CliError> {
    let queue = &overview.queue;
    printer.line(format!(
        "You are {} in the town {}. You are no worker: GT_RUN names no run.",
        town.actor().name,
        town.root().display()
    ))?;
    let paused = queue.paused.as_ref().map(|pause| format!(", paused by {}", pause.by));
    printer.line(format!(
        "{} queued, {} ready, {} polecats running{}",
        queue.queued,
        queue.ready,
        super::scheduler::capacity(queue.live, queue.cap),
        paused.unwrap_or_default()
    ))?;
    print_running(printer, town, &overview.running)?;
    print_needs_you(printer, &overview.needs_you)?;
    if !overview.unread.is_empty() {
        printer.line("")?;
        let unread = plural(overview.unread.len() as u64, "message");
        printer.heading("Unread", &format!("  {unread}; gt mail inbox lists them"))?;
    }
    printer.line("")?;
    printer.text(
        "gt status shows everything, gt why <bead> says why something does not run\n\
         gt sling <bead> sends work, gt nudge <bead> \"…\" speaks to whoever works on it\n\
         bd prime tells how work is tracked",
    )
}

/// What runs, with how far it is.
pub(super) fn print_running(
    printer: &Printer,
    town: &Town,
    running: &[RunningRun],
) -> Result<(), CliError> {
    if running.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    printer.heading("Running", "")?;
    let now = town.now();
    let mut table = Table::new();
    for RunningRun { run, title, progress } in running.iter().take(RUNS_SHOWN) {
        table.row(vec![
            Cell::bold(format!("  {}", run.id)),
            Cell::new(run.agent.as_str()),
            Cell::new(lasted(run, now)),
            Cell::new(run.awaits_origin().map(|_| state_words(run)).unwrap_or_default()),
            Cell::new(progress.map(|progress| format!("{progress} steps")).unwrap_or_default()),
            Cell::new(title.as_str()),
        ]);
    }
    printer.table(table)?;
    let more = running.len().saturating_sub(RUNS_SHOWN);
    if more > 0 {
        printer.line(format!("  … and {more} more: gt run list"))?;
    }
    Ok(())
}

/// What runs, for programs.
pub(super) fn write_running(object: &mut ObjectWriter<'_>, running: &[RunningRun]) {
    object.array("running", |array| {
        for RunningRun { run, title, progress } in running {
            array.object(|object| {
                write_run(object, run);
                object.text("title", title);
                if let Some(progress) = progress {
                    write_progress(object, *progress);
                }
            });
        }
    });
}

fn overview_json(town: &Town, overview: &Overview) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("who", "other");
    object.text("actor", &town.actor().name);
    object.array("addresses", |array| {
        overview.party.addresses().iter().for_each(|address| array.text(&address.to_string()));
    });
    object.text("town", &town.root().display().to_string());
    object.object("scheduler", |object| {
        object.flag("paused", overview.queue.paused.is_some());
        object.count("queued_total", overview.queue.queued);
        object.count("queued_ready", overview.queue.ready);
        object.count("active_polecats", overview.queue.live.into());
    });
    write_running(&mut object, &overview.running);
    object.array("needs_you", |array| {
        overview.needs_you.iter().for_each(|message| array.raw(&message_json(message)));
    });
    object.array("unread", |array| {
        for message in &overview.unread {
            array.object(|object| {
                object.text("id", &message.id.to_string());
                object.text("from", &message.from.to_string());
                object.text("subject", &told(message));
            });
        }
    });
    object.finish();
    out
}

fn briefing_json(briefing: &Briefing) -> String {
    let bead = &briefing.bead;
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("who", "worker");
    object.object("run", |object| write_run(object, briefing.run()));
    object.object("bead", |object| {
        object.text("id", bead.id.as_str());
        object.text("title", bead.title.as_str());
        object.text("status", bead.status.as_str());
        object.number("priority", bead.priority.number());
        object.text("issue_type", bead.issue_type.as_str());
        object.text("description", &bead.description);
        object.text("design", &bead.design);
        object.text("acceptance_criteria", &bead.acceptance_criteria);
        object.text("notes", &bead.notes);
    });
    object.text("instructions", briefing.instructions());
    if let Some((before, done)) = &briefing.before {
        object.object("before", |object| {
            write_run(object, before);
            object.array("steps_done", |array| done.iter().for_each(|name| array.text(name)));
        });
    }
    object.count("older_comments", briefing.older_comments as u64);
    object.array("comments", |array| {
        for comment in &briefing.comments {
            write_comment(array.element(), comment);
        }
    });
    write_progress(&mut object, briefing.steps.progress);
    write_steps(&mut object, &briefing.steps);
    object.array("messages", |array| {
        briefing.messages.iter().for_each(|message| array.raw(&message_json(message)));
    });
    object.array("rules", |array| briefing.rules().iter().for_each(|rule| array.text(rule)));
    object.array("finish", |array| {
        for (command, when) in briefing.endings() {
            array.object(|object| {
                object.text("command", &command);
                object.text("when", &when);
            });
        }
    });
    object.finish();
    out
}
