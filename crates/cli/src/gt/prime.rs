//! `gt prime`.

use clap::Args;
use gt_api::{
    BriefedBeadDocument, BriefingDocument, EarlierRunDocument, EndingDocument, ListedRunDocument,
    MessageDocument, OverviewDocument, QueueCountsDocument, RawJson, StepProgressDocument,
    UnreadDocument,
};
use gt_beads::messages;
use gt_daemon::daemon;
use gt_execution::briefing::Briefing;
use gt_execution::worker::{self, PrimeOutput, RunningRun, TownOverview};
use gt_records::write_comment;
use gt_town::Town;

use super::daemon::print_daemon_absence;
use super::mail::{message_headline, print_needs_you, role};
use super::run::lasted;
use super::step::{next_name, steps_documents};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, plural};
use crate::values::texts;

/// How many live runs are named.
const RUNS_SHOWN: usize = 20;

/// Tell a worker who it is, what is to be done and how to finish; tell others how the town stands
///
/// A worker is a process with `GT_RUN` in its environment. Messages to it are printed, and count as seen afterwards.
#[derive(Debug, Args)]
#[command(after_help = "Exit code: 1 if the run of a worker is over, with what to do instead.

Examples:
  gt prime
  gt prime --json
  gt prime --run gt-abc#2        # what the worker of that run is told")]
pub(super) struct PrimeArgs {
    /// Print the text for the worker of this run, or of the live or last run of this bead
    #[arg(long)]
    run: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &PrimeArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    match worker::prime(&town, role(context), args.run.as_deref())? {
        PrimeOutput::Worker(briefing) => {
            if printer.json() {
                printer.object(&briefing_document(&briefing))?;
            } else {
                printer.text(&briefing.text())?;
            }
            // Only messages that were written out count as seen.
            printer.flush()?;
            Ok(messages::mark_seen(&town, role(context), &briefing.messages)?)
        }
        PrimeOutput::Other(overview) if printer.json() => {
            printer.object(&overview_document(&town, &overview))
        }
        PrimeOutput::Other(overview) => print_overview(printer, &town, &overview),
    }
}

fn print_overview(printer: &Printer, town: &Town, overview: &TownOverview) -> Result<(), CliError> {
    let queue = &overview.queue;
    print_daemon_absence(printer, daemon::absence(town, queue)?)?;
    printer.paragraph(format!(
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
         gt sling <bead> sends work, gt nudge <bead> \"…\" speaks to its worker\n\
         bd prime tells how work is tracked",
    )
}

/// Prints the running runs with their progress.
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
    let mut table = Table::new().droppable_at(&[3, 1]);
    for RunningRun { run, title, progress, unknown } in running.iter().take(RUNS_SHOWN) {
        let title = unknown.as_ref().map(|why| format!("{title} ({why})")).unwrap_or(title.clone());
        table.row(vec![
            Cell::bold(format!("  {}", run.id)),
            Cell::new(run.agent.as_str()),
            Cell::new(lasted(run, now)),
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

/// The running runs, for programs.
pub(super) fn running_documents(running: &[RunningRun]) -> Vec<ListedRunDocument> {
    let document = |RunningRun { run, title, progress, unknown }: &RunningRun| ListedRunDocument {
        unknown: unknown.clone(),
        run: run.into(),
        title: title.clone(),
        progress: progress.map(StepProgressDocument::from),
    };
    running.iter().map(document).collect()
}

fn overview_document(town: &Town, overview: &TownOverview) -> OverviewDocument {
    let unread = overview.unread.iter().map(|message| UnreadDocument {
        id: message.id.to_string(),
        from: message.from.to_string(),
        subject: message_headline(message),
    });
    OverviewDocument {
        who: "other".to_owned(),
        actor: town.actor().name.clone(),
        addresses: texts(overview.party.addresses()),
        town: town.root().display().to_string(),
        scheduler: QueueCountsDocument {
            paused: overview.queue.paused.is_some(),
            queued_total: overview.queue.queued,
            queued_ready: overview.queue.ready,
            active_polecats: overview.queue.live.into(),
        },
        running: running_documents(&overview.running),
        needs_you: overview.needs_you.iter().map(MessageDocument::from).collect(),
        unread: unread.collect(),
    }
}

fn briefing_document(briefing: &Briefing) -> BriefingDocument {
    let bead = &briefing.bead;
    let comments = briefing.comments.iter().map(|comment| {
        let mut record = String::new();
        write_comment(&mut record, comment);
        RawJson::record(record)
    });
    let endings = briefing.endings().into_iter();
    BriefingDocument {
        who: "worker".to_owned(),
        run: briefing.run().into(),
        bead: BriefedBeadDocument {
            id: bead.id.to_string(),
            title: bead.title.to_string(),
            status: bead.status.to_string(),
            priority: bead.priority.number(),
            issue_type: bead.issue_type.to_string(),
            description: bead.description.clone(),
            design: bead.design.clone(),
            acceptance_criteria: bead.acceptance_criteria.clone(),
            notes: bead.notes.clone(),
        },
        instructions: briefing.instructions().to_owned(),
        before: briefing.before.as_ref().map(|(before, done)| EarlierRunDocument {
            run: before.into(),
            steps_done: texts(done),
        }),
        older_comments: briefing.older_comments as u64,
        comments: comments.collect(),
        progress: briefing.steps.progress.into(),
        steps: steps_documents(&briefing.steps),
        next: next_name(&briefing.steps),
        messages: briefing.messages.iter().map(MessageDocument::from).collect(),
        rules: texts(briefing.rules()),
        finish: endings.map(|(command, when)| EndingDocument { command, when }).collect(),
    }
}
