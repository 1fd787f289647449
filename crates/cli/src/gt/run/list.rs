//! `gt run list`.

use clap::Args;
use gt_api::{ListedRunDocument, StepProgressDocument};
use gt_core::schedule::{Money, RunState};
use gt_execution::runs::{self, ListedRun, RunFilter};
use gt_town::rigs;

use super::lasted;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table, ago, run_state_colour};

/// So many of the past, unless said otherwise.
const LIMIT: usize = 50;

/// List runs, newest first; without flags, those that are live
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt run list
  gt run list --all --limit 0 --json
  gt run list gt-abc
  gt run list --state failed --rig web")]
pub(super) struct ListArgs {
    /// Every run of this bead
    #[arg(value_name = "BEAD")]
    of: Option<String>,
    /// Those that have ended, too
    #[arg(short, long)]
    all: bool,
    /// Every run of this bead
    #[arg(long, value_name = "ID", conflicts_with = "of")]
    bead: Option<String>,
    /// Only in this rig
    #[arg(long)]
    rig: Option<String>,
    /// Only in this state: starting, running, blocked, done, failed, lost or cancelled
    #[arg(long)]
    state: Option<String>,
    /// At most this many (50 unless said; those that are live are always all shown); 0 for all
    #[arg(short = 'n', long)]
    limit: Option<usize>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ListArgs) -> Result<(), CliError> {
    let state = args.state.as_deref().map(parse_state).transpose()?;
    let town = context.town()?;
    let printer = context.printer;
    let bead = args.of.clone().or_else(|| args.bead.clone());
    let past = args.all || bead.is_some() || state.is_some_and(|state| !state.is_live());
    let filter = RunFilter {
        all: args.all,
        bead,
        rig: args.rig.as_deref().map(|name| rigs::slug(&town, name)).transpose()?,
        state,
        limit: match args.limit {
            Some(0) => usize::MAX,
            Some(limit) => limit,
            None if past => LIMIT,
            None => usize::MAX,
        },
    };
    let found = runs::list(&town, &filter)?;
    if printer.json() {
        let mut list = printer.list();
        for ListedRun { run, title, progress, unknown } in &found {
            list.push(&ListedRunDocument {
                unknown: unknown.clone(),
                run: run.into(),
                title: title.clone(),
                progress: progress.map(StepProgressDocument::from),
            })?;
        }
        return list.finish();
    }
    if found.is_empty() {
        return printer.done(if past {
            "No such run"
        } else {
            "Nothing is running; gt run list --all shows what ran"
        });
    }
    let now = town.now();
    // Costs take room that titles need.
    let has_cost = found.iter().any(|one| one.run.usage.cost.is_some());
    let has_hosts = found.iter().any(|one| one.run.host_name() != found[0].run.host_name());
    let mut names = vec!["RUN", "STATE", "FOR", "STEPS", "AGENT", "BEGUN"];
    names.extend(has_hosts.then_some("HOST"));
    names.extend(has_cost.then_some("COST"));
    names.push("TITLE");
    let mut table = Table::with_header(&names).droppable(&["BEGUN", "STEPS", "COST", "HOST"]);
    for ListedRun { run, title, progress, unknown } in &found {
        let title = unknown.as_ref().map(|why| format!("{title} ({why})")).unwrap_or(title.clone());
        let mut row = vec![
            Cell::bold(run.id.to_string()),
            Cell::coloured(run.state_name(), Some(run_state_colour(run.state))),
            Cell::new(lasted(run, now)),
            Cell::new(progress.map(|progress| progress.to_string()).unwrap_or_default()),
            Cell::new(run.agent.as_str()),
            Cell::new(ago(run.created_at, now)),
        ];
        row.extend(has_hosts.then(|| Cell::new(run.host_name())));
        row.extend(
            has_cost.then(|| Cell::new(run.usage.cost.map(Money::dollars).unwrap_or_default())),
        );
        row.push(Cell::new(title.as_str()));
        table.row(row);
    }
    printer.table(table)
}

fn parse_state(text: &str) -> Result<RunState, CliError> {
    RunState::parse(text).map_err(|_| {
        let known: Vec<&str> = RunState::ALL.iter().map(|state| state.as_str()).collect();
        let text = text.escape_debug();
        CliError::request(format!(
            "\"{text}\" is not a state of a run; known: {}",
            known.join(", ")
        ))
    })
}
