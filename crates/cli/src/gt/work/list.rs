//! `gt work list`.

use clap::Args;
use gt_api::WorkItemDocument;
use gt_core::ExecutorKind;
use gt_core::work::{Cursor, Project, ProjectRef, WorkFilter, WorkStatus, work_type};
use gt_workqueue::work::WorkClient;

use super::{colour, first_line};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table, ago};
use crate::values::{comma_separated, instant};

/// List work items, most urgent and oldest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt work list --status in_progress
  gt work list --agent steve-w --status dispatched
  gt work list --status completed --since 2026-05-31T12:00:00Z
  gt work list --limit 100 --json")]
pub(super) struct ListArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// Only what is carried out like this: tmux, process, ssh, pull or none
    #[arg(long, value_parser = ExecutorKind::parse)]
    executor: Option<ExecutorKind>,
    /// At most this many; all of them unless said
    #[arg(short = 'n', long)]
    limit: Option<usize>,
    /// Go on where a list with the same filters ended
    #[arg(long, value_name = "CURSOR", value_parser = Cursor::parse, requires = "limit")]
    cursor: Option<Cursor>,
}

/// The arguments that select items.
#[derive(Debug, Args)]
pub(super) struct WhichArgs {
    /// Only those that stand like this; several are separated by commas
    #[arg(short, long)]
    status: Vec<String>,
    /// Only what this agent has, or is to have
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only what belongs to this project: a UUID or the name of a rig
    #[arg(long, value_name = "PROJECT", value_parser = ProjectRef::parse)]
    project: Option<ProjectRef>,
    /// Only what was created after this or, for completed, failed and cancelled, ended after this
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only this kind of work
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only what this one submitted
    #[arg(long, value_name = "NAME")]
    created_by: Option<String>,
    /// Only those with this in their description
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
}

impl WhichArgs {
    /// The filter that the arguments describe.
    pub(super) fn filter(&self, client: &WorkClient) -> Result<WorkFilter, CliError> {
        let statuses = comma_separated(&self.status);
        let statuses = statuses.iter().map(|name| WorkStatus::parse(name));
        let since = self.since.as_deref().map(|text| instant(text, client.now()));
        Ok(WorkFilter {
            statuses: statuses.collect::<Result<_, _>>()?,
            agent: self.agent.clone(),
            project: self.project(client)?.map(|project| project.rig),
            since: since.transpose()?,
            kind: self.kind.as_deref().map(work_type).transpose()?,
            created_by: self.created_by.clone(),
            text: self.search.clone(),
            executor: None,
        })
    }

    /// The project that is asked for.
    pub(super) fn project(&self, client: &WorkClient) -> Result<Option<Project>, CliError> {
        Ok(self.project.as_ref().map(|project| client.project(project)).transpose()?)
    }
}

pub(super) fn run(
    context: &CommandContext<'_>,
    client: &WorkClient,
    args: &ListArgs,
) -> Result<(), CliError> {
    let filter = WorkFilter { executor: args.executor, ..args.which.filter(client)? };
    let limit = args.limit.filter(|limit| *limit > 0);
    let printer = context.printer;
    if printer.json() {
        let mut list = printer.list();
        client.list(&filter, args.cursor.as_ref(), limit, |item| {
            list.push(&WorkItemDocument::from(&item))
        })?;
        return list.finish();
    }
    let now = client.now();
    let mut table = Table::with_header(&[
        "ITEM",
        "STATUS",
        "PRIORITY",
        "TYPE",
        "AGENT",
        "UPDATED",
        "DESCRIPTION",
    ]);
    let mut count = 0;
    let next = client.list(&filter, args.cursor.as_ref(), limit, |item| {
        count += 1;
        table.row(vec![
            Cell::bold(item.bead.as_str()),
            Cell::coloured(item.status.as_str(), colour(item.status)),
            Cell::new(item.priority.to_string()),
            Cell::new(item.kind.as_str()),
            Cell::new(item.agent.as_deref().unwrap_or_default()),
            Cell::new(ago(item.updated_at, now)),
            Cell::new(first_line(&item)),
        ]);
        Ok::<_, CliError>(())
    })?;
    if count == 0 {
        return printer.done("No work item matches");
    }
    printer.table(table)?;
    if let Some(next) = next {
        printer.note(format!("note: there is more; go on with --cursor {next}"));
    }
    Ok(())
}
