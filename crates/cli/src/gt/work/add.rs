//! `gt work add`.

use clap::Args;
use gt_core::bead::RequestKey;
use gt_core::work::{ItemRef, ProjectRef, WorkPriority};
use gt_workqueue::work::{NewItem, Submission, WorkClient, WorkError};

use super::print_item;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::values::{comma_separated, json_argument};

/// Submit work; it is queued until it is dispatched or an agent takes it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt work add code_review \"Review PR #3 in shopping-list-api\" --agent steve-w --priority 2
  gt work add bug_fix \"Fix the login\" --project web --payload '{\"issue\":7}'
  gt work add infra_setup \"Renew the certificate\" --depends-on wq-abc --idempotency-key renew-7")]
pub(super) struct AddArgs {
    /// The kind of work: a word of your own
    #[arg(value_name = "TYPE")]
    kind: String,
    /// The work to do; its first line is the title
    description: String,
    /// The data that its kind needs, as JSON or @file
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// The agent that gets it when it is dispatched
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The project it belongs to: a UUID or the name of a rig
    #[arg(long, value_name = "PROJECT", value_parser = ProjectRef::parse)]
    project: Option<ProjectRef>,
    /// How urgent it is, from 1 (highest) to 5
    #[arg(short, long, value_name = "1-5", default_value = "3", value_parser = priority)]
    priority: WorkPriority,
    /// Notes that it has from the beginning
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    /// An item that must be done first; may be repeated
    #[arg(long, value_name = "ITEM")]
    depends_on: Vec<String>,
    /// The person or program that submits it; by default you
    #[arg(long, value_name = "NAME")]
    created_by: Option<String>,
    /// A name for this request: however often it is repeated, the item is made once
    #[arg(long, value_name = "KEY", value_parser = RequestKey::parse)]
    idempotency_key: Option<RequestKey>,
}

/// Reads a priority.
pub(super) fn priority(text: &str) -> Result<WorkPriority, gt_core::Invalid> {
    let number = text.parse::<i64>();
    let number = number.map_err(|_| {
        let shown = text.chars().take(60).collect::<String>();
        gt_core::Invalid(format!("\"{}\" is not a priority; write 1 to 5", shown.escape_debug()))
    })?;
    WorkPriority::new(number)
}

/// The item that must be done first. An unknown one is an invalid field, as it is for a server.
fn dependency(client: &WorkClient, input: &str) -> Result<ItemRef, WorkError> {
    client.item_named(input).map_err(|error| match error {
        WorkError::NotFound { .. } => {
            WorkError::Invalid { field: "depends_on", message: error.to_string() }
        }
        other => other,
    })
}

pub(super) fn run(
    context: &CommandContext<'_>,
    client: &WorkClient,
    args: &AddArgs,
) -> Result<(), CliError> {
    let depends_on = comma_separated(&args.depends_on);
    let depends_on = depends_on.iter().map(|input| dependency(client, input));
    let item = NewItem {
        project: args.project.clone(),
        kind: args.kind.clone(),
        description: args.description.clone(),
        payload: args.payload.as_deref().map(json_argument).transpose()?,
        priority: args.priority,
        agent: args.agent.clone(),
        created_by: args.created_by.clone(),
        notes: args.notes.clone().unwrap_or_default(),
        depends_on: depends_on.collect::<Result<_, _>>()?,
    };
    let submission =
        Submission { items: vec![item], key: args.idempotency_key.clone(), is_list: false };
    let submitted = client.submit(submission)?;
    let Some(item) = submitted.items.first() else {
        return Err(CliError::request("what this request made is gone; give it another key"));
    };
    let how = if submitted.before { "was submitted before as" } else { "is queued as" };
    print_item(context.printer, item, &format!("It {how} {} ({})", item.bead, item.uid))
}
