//! `gt work update`.

use clap::Args;
use gt_beads::beads::FieldEdit;
use gt_core::Outcome;
use gt_core::work::{ProjectRef, RunRef, Version, WorkPriority, WorkStatus};
use gt_workqueue::work::{ItemChange, Precondition, WorkClient};

use super::add::priority;
use super::print_item;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::values::json_argument;

/// Report on an item, or change it
#[derive(Debug, Args)]
#[command(
    after_help = "From queued it goes to dispatched or cancelled; from dispatched to in_progress, back to queued, to
another agent, or cancelled; from in_progress to blocked, completed or failed; from blocked to in_progress, queued or failed.

Examples:
  gt work update wq-abc --status in_progress
  gt work update wq-abc --status blocked --notes \"waiting for the vendor\"
  gt work update wq-abc --status completed --notes \"merged to main\"
  gt work update wq-abc --priority 1 --run-id wq-abc#2"
)]
pub(super) struct UpdateArgs {
    /// Which item: its UUID or its bead
    item: String,
    /// Where it stands now
    #[arg(short, long, value_parser = WorkStatus::parse)]
    status: Option<WorkStatus>,
    /// How it ended: success, failed or cancelled; by default the one that goes with the status
    #[arg(long, value_parser = Outcome::parse)]
    outcome: Option<Outcome>,
    /// Notes in place of the old ones
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    /// The agent it is for; empty for none
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// How urgent it is, from 1 (highest) to 5
    #[arg(short, long, value_name = "1-5", value_parser = priority)]
    priority: Option<WorkPriority>,
    /// The kind of work
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The work to do
    #[arg(short, long, value_name = "TEXT")]
    description: Option<String>,
    /// The data that its kind needs, as JSON or @file; null for nothing
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// The project it belongs to: a UUID or the name of a rig; empty for none
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Only if this run still has it: a UUID or <bead>#<number>
    #[arg(long, value_name = "RUN", value_parser = RunRef::parse)]
    run_id: Option<RunRef>,
    /// Only if it is still at this version
    #[arg(long, value_name = "VERSION", value_parser = Version::parse)]
    if_match: Option<Version>,
}

pub(super) fn run(
    context: &CommandContext<'_>,
    client: &WorkClient,
    args: &UpdateArgs,
) -> Result<(), CliError> {
    let reference = client.item_named(&args.item)?;
    let payload = args.payload.as_deref().map(json_argument).transpose()?;
    let change = ItemChange {
        status: args.status,
        outcome: args.outcome.or(args.status.and_then(WorkStatus::outcome)),
        notes: args.notes.clone(),
        agent: edit(args.agent.clone(), String::is_empty),
        priority: args.priority,
        kind: args.kind.clone(),
        description: args.description.clone(),
        payload: edit(payload, |json| json.as_str() == "null"),
        project: match args.project.as_deref() {
            None => FieldEdit::Keep,
            Some("") => FieldEdit::Clear,
            Some(name) => FieldEdit::Set(ProjectRef::parse(name)?),
        },
        precondition: Precondition { run: args.run_id.clone(), version: args.if_match },
    };
    let item = client.change(&reference, change)?;
    print_item(context.printer, &item, &format!("{} is {}", item.bead, item.status))
}

/// The change of a field that may be empty.
fn edit<T>(value: Option<T>, is_empty: impl Fn(&T) -> bool) -> FieldEdit<T> {
    match value {
        None => FieldEdit::Keep,
        Some(value) if is_empty(&value) => FieldEdit::Clear,
        Some(value) => FieldEdit::Set(value),
    }
}
