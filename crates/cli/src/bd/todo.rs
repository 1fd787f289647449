//! `bd todo` and `bd human`: lists of one kind of bead, with a short way to add and to end one.

use clap::{Args, Subcommand};
use gt_api::HumanCountsDocument;
use gt_beads::beads::{Close, NewBead, close, count, create};
use gt_beads::notes::comment;
use gt_core::{IssueType, Priority, Status};
use gt_town::{BeadFilter, StatusFilter};

use super::{bead_output, list};
use crate::context::CommandContext;
use crate::error::CliError;

/// The label of beads that need a person.
const NEEDS_A_PERSON: &str = "human";

/// List tasks, or add and finish one
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bd todo\n  bd todo add \"Call the bank\" -p 1\n  bd todo done gt-abc"
)]
pub(super) struct TodoArgs {
    #[command(subcommand)]
    verb: Option<TodoVerb>,
}

#[derive(Debug, Subcommand)]
enum TodoVerb {
    /// Make a task
    Add {
        /// Its title
        title: String,
        /// How urgent it is: 0 (highest) to 4
        #[arg(short, long, default_value = "2")]
        priority: String,
        /// The description
        #[arg(short, long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// List the tasks that are not closed
    List,
    /// Close tasks
    Done {
        /// Ids, or parts of them
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Why
        #[arg(short, long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// List the beads with the label human, and answer one
#[derive(Debug, Args)]
#[command(after_help = "gt inbox lists everything else that needs a person.

Examples:
  bd human list
  bd human respond gt-abc --response \"use the second key\"")]
pub(super) struct HumanArgs {
    #[command(subcommand)]
    verb: Option<HumanVerb>,
}

#[derive(Debug, Subcommand)]
enum HumanVerb {
    /// List the beads with the label human that are not closed
    List,
    /// Answer with a comment, and close the bead
    Respond {
        /// An id, or a part of it
        id: String,
        /// The answer
        #[arg(short, long, value_name = "TEXT")]
        response: String,
    },
    /// Count the beads with the label human
    Stats,
    /// Close the bead without an answer
    Dismiss {
        /// An id, or a part of it
        id: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

pub(super) fn run(context: &CommandContext<'_>, args: &TodoArgs) -> Result<(), CliError> {
    match &args.verb {
        Some(TodoVerb::Add { title, priority, description }) => {
            let new = NewBead {
                title: title.clone(),
                priority: Priority::parse(priority)?,
                description: description.clone().unwrap_or_default(),
                ..NewBead::default()
            };
            let made = create(&context.store_town()?, &new, false)?;
            let printer = context.printer;
            if printer.json() {
                return printer.record(&bead_output::bare(&made.bead, &made.labels));
            }
            printer.done(format!("✓ Created issue: {} — {}", made.bead.id, made.bead.title))
        }
        Some(TodoVerb::Done { ids, reason }) => end(context, ids, reason.as_deref()),
        Some(TodoVerb::List) | None => {
            let tasks = BeadFilter { types: vec![IssueType::default()], ..BeadFilter::default() };
            list::print(context.printer, &context.store_town()?, &tasks, |_| String::new())
        }
    }
}

pub(super) fn run_human(context: &CommandContext<'_>, args: &HumanArgs) -> Result<(), CliError> {
    match &args.verb {
        Some(HumanVerb::Respond { id, response }) => {
            comment(&context.store_town()?, id, response, None)?;
            end(context, std::slice::from_ref(id), Some("Responded"))
        }
        Some(HumanVerb::Dismiss { id, reason }) => {
            end(context, std::slice::from_ref(id), reason.as_deref().or(Some("Dismissed")))
        }
        Some(HumanVerb::Stats) => human_stats(context),
        Some(HumanVerb::List) | None => {
            let labels = vec![NEEDS_A_PERSON.to_owned()];
            let wanted = BeadFilter { labels, ..BeadFilter::default() };
            list::print(context.printer, &context.store_town()?, &wanted, |_| String::new())
        }
    }
}

fn human_stats(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.store_town()?;
    let labels = vec![NEEDS_A_PERSON.to_owned()];
    let all = BeadFilter { labels, status: StatusFilter::All, ..BeadFilter::default() };
    let total = count(&town, &all)?;
    let status = StatusFilter::OneOf(vec![Status::Closed]);
    let closed = count(&town, &BeadFilter { status, ..all })?;
    let pending = total.saturating_sub(closed);
    let printer = context.printer;
    if printer.json() {
        return printer.object(&HumanCountsDocument { total, pending, closed });
    }
    printer.line(format!("Total:   {total}"))?;
    printer.line(format!("Pending: {pending}"))?;
    printer.line(format!("Closed:  {closed}"))
}

fn end(context: &CommandContext<'_>, ids: &[String], reason: Option<&str>) -> Result<(), CliError> {
    let town = context.store_town()?;
    let reasons = reason.map(str::to_owned).into_iter().collect();
    let closed = close(&town, ids, &Close { reasons, ..Close::default() })?;
    bead_output::print_closed(context.printer, &town, closed, "Closed")
}
