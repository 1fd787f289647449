//! `gt polecat list` and `gt polecat status`.

use clap::Args;
use comfy_table::Color;
use gt_api::{PolecatDocument, TrashedDocument};
use gt_core::Timestamp;
use gt_core::schedule::Trashed;
use gt_execution::polecats::{PolecatState, ShownPolecat};
use gt_execution::trees;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, ago, plural};
use crate::values::texts;

/// List the polecats, or the trees that were moved away
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt polecat list
  gt polecat list --rig gastown --dirty
  gt polecat list --trash")]
pub(super) struct ListArgs {
    /// Only those of this rig
    #[arg(long)]
    rig: Option<String>,
    /// Ask git what is not committed in each tree, which takes longer
    #[arg(long)]
    dirty: bool,
    /// List the trees that were moved away instead, with when they will be deleted
    #[arg(long, conflicts_with = "dirty")]
    trash: bool,
}

/// Show everything about a polecat
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gt polecat status gastown/nux\n  gt polecat status gastown/nux --json"
)]
pub(super) struct StatusArgs {
    /// The polecat: <rig>/<name>
    polecat: String,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ListArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    if args.trash {
        if let Some(rig) = &args.rig {
            gt_town::rigs::status(&town, rig)?;
        }
        let mut trash = trees::trash(&town)?;
        trash.retain(|one| args.rig.as_ref().is_none_or(|rig| one.rig.as_str() == rig));
        return list_trash(printer, &trash, town.now());
    }
    let polecats = gt_execution::polecats::polecats(&town, args.rig.as_deref(), args.dirty)?;
    if printer.json() {
        let mut list = printer.list();
        for polecat in &polecats {
            list.push(&document(polecat))?;
        }
        return list.finish();
    }
    if polecats.is_empty() {
        return printer
            .done("No polecats yet; a rig with a repository gets one with gt sling <bead>");
    }
    let mut header = vec!["POLECAT", "STATE", "RUN", "SESSION", "BRANCH"];
    if args.dirty {
        header.push("UNCOMMITTED");
    }
    let mut table = Table::with_header(&header).droppable(&["SESSION"]).keeping_last();
    for one in &polecats {
        let mut cells = vec![
            Cell::new(name(one)),
            Cell::coloured(one.state.as_str(), Some(colour(one.state))),
            Cell::new(run_words(one)),
            Cell::new(session_words(one)),
            Cell::new(one.polecat.branch.as_str()),
        ];
        if args.dirty {
            cells.push(Cell::new(uncommitted(one)));
        }
        table.row(cells);
    }
    printer.table(table)
}

pub(super) fn status(context: &CommandContext<'_>, args: &StatusArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let one = gt_execution::polecats::polecat(&town, &args.polecat)?;
    if printer.json() {
        return printer.object(&document(&one));
    }
    printer.heading(&name(&one), &format!("  {}", one.state.as_str()))?;
    let mut table = Table::wrapped();
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            table.row(vec![Cell::bold(name), Cell::new(value)]);
        }
    };
    row("run", run_words(&one));
    row("session", session_words(&one));
    row("tree", one.path.display().to_string());
    row("branch", one.polecat.branch.clone());
    if let Some(status) = &one.status {
        row("uncommitted", uncommitted(&one));
        row("unpushed", plural(status.unpushed, "commit"));
        row("unfinished", status.unfinished.map(|what| what.to_string()).unwrap_or_default());
    }
    if !one.is_here {
        row("host", one.polecat.host.clone());
    }
    row("used", ago(one.polecat.updated_at, town.now()));
    printer.table(table)
}

fn name(one: &ShownPolecat) -> String {
    format!("{}/{}", one.polecat.rig, one.polecat.name)
}

fn colour(state: PolecatState) -> Color {
    match state {
        PolecatState::Working => Color::Green,
        PolecatState::Idle | PolecatState::Warm => Color::Blue,
        PolecatState::Absent => Color::DarkGrey,
    }
}

fn run_words(one: &ShownPolecat) -> String {
    match &one.run {
        Some(run) if run.state.is_live() => run.id.to_string(),
        Some(run) => format!("{} ({})", run.id, run.state.as_str()),
        None => String::new(),
    }
}

fn session_words(one: &ShownPolecat) -> String {
    match (&one.session, one.session_alive) {
        (Some(name), Some(true)) => name.clone(),
        (Some(_), Some(false)) | (None, _) => "-".to_owned(),
        (Some(_), None) => "unknown".to_owned(),
    }
}

fn uncommitted(one: &ShownPolecat) -> String {
    match &one.status {
        Some(status) => match status.changes.paths().count() as u64 {
            0 => "nothing".to_owned(),
            count => plural(count, "file"),
        },
        None if one.state == PolecatState::Absent => "-".to_owned(),
        None => "unknown".to_owned(),
    }
}

fn document(one: &ShownPolecat) -> PolecatDocument {
    let (run, status) = (one.run.as_ref(), one.status.as_ref());
    PolecatDocument {
        rig: one.polecat.rig.to_string(),
        name: one.polecat.name.clone(),
        state: one.state.as_str().to_owned(),
        host: one.polecat.host.clone(),
        path: one.path.display().to_string(),
        branch: one.polecat.branch.clone(),
        bead: run.map(|run| run.id.bead.to_string()),
        run: run.map(|run| run.id.to_string()),
        run_state: run.map(|run| run.state.as_str().to_owned()),
        session: one.session.clone(),
        session_alive: one.session_alive,
        uncommitted: status
            .map(|status| texts(status.changes.paths().map(|path| path.to_string_lossy()))),
        unpushed: status.map(|status| status.unpushed),
        unfinished: status
            .and_then(|status| status.unfinished)
            .map(|unfinished| unfinished.command().to_owned()),
        created_at: one.polecat.created_at.into(),
        updated_at: one.polecat.updated_at.into(),
    }
}

fn list_trash(printer: &Printer, trash: &[Trashed], now: Timestamp) -> Result<(), CliError> {
    if printer.json() {
        let mut list = printer.list();
        for one in trash {
            list.push(&trashed_document(one, now))?;
        }
        return list.finish();
    }
    if trash.is_empty() {
        return printer.done("The trash is empty");
    }
    let mut table = Table::with_header(&["#", "POLECAT", "MOVED", "DELETED", "RUN", "WHY"]);
    for one in trash {
        table.row(vec![
            Cell::new(format!("#{}", one.number)),
            Cell::new(format!("{}/{}", one.rig, one.name)),
            Cell::new(ago(one.moved_at, now)),
            Cell::coloured(
                deletion(one, now),
                trees::is_due_soon(one, now).then_some(Color::Yellow),
            ),
            Cell::new(one.run.as_ref().map(ToString::to_string).unwrap_or_default()),
            Cell::new(one.reason.as_str()),
        ]);
    }
    printer.table(table)?;
    let soon = trash.iter().filter(|one| trees::is_due_soon(one, now)).count() as u64;
    if soon > 0 {
        printer.note(format!(
            "{} will be deleted within 3 days; gt polecat undelete <#number> brings one back",
            plural(soon, "tree")
        ));
    }
    Ok(())
}

fn deletion(one: &Trashed, now: Timestamp) -> String {
    match one.purge_at.since(now).as_secs() {
        0 => "with the next purge".to_owned(),
        1..86_400 => "within a day".to_owned(),
        seconds => format!("in {}", plural(seconds / 86_400, "day")),
    }
}

/// A tree that was moved away, for programs.
pub(super) fn trashed_document(one: &Trashed, now: Timestamp) -> TrashedDocument {
    TrashedDocument::of(one, trees::is_due_soon(one, now))
}
