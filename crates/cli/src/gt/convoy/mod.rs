//! `gt convoy`.

mod change;
mod graph;
mod stage;
mod status;
mod stranded;

pub(super) use status::about_remaining;

use clap::{Args, Subcommand};
use gt_beads::convoys::{self, Convoy, ConvoyFilter};
use gt_core::Status;
use gt_core::decide::ConvoyState;
use gt_daemon::views::{convoy_document, convoy_status_document};

use super::top::{self, TopView};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table, ago, plural, status_colour};

/// Plan, launch and follow beads that travel together
#[derive(Debug, Args)]
#[command(
    after_help = "Beads that are slung together travel in a convoy, and so do beads that are staged and launched.
It lands by itself with the close of its last bead, if none of them failed. One that
was slung with --owned is closed by its owner.

Examples:
  gt convoy stage web-epic-1      # the plan and its problems; nothing runs
  gt convoy launch hq-cv-x7k2p
  gt convoy list
  gt convoy status hq-cv-x7k2p --watch
  gt convoy graph hq-cv-x7k2p --output convoy.svg
  gt convoy list --all --json
  gt convoy create \"Search\" web-1 web-2 --notify
  gt convoy pause hq-cv-x7k2p
  gt convoy retry hq-cv-x7k2p     # what failed of it
  gt convoy check                 # land what is done, after an import"
)]
pub(super) struct ConvoyArgs {
    /// Choose a convoy from the list, and look at it
    #[arg(short, long)]
    interactive: bool,
    #[command(subcommand)]
    verb: Option<ConvoyVerb>,
}

#[derive(Debug, Subcommand)]
enum ConvoyVerb {
    /// List the convoys that are under way
    List(ListArgs),
    Status(status::StatusArgs),
    Graph(graph::GraphArgs),
    Stage(stage::StageArgs),
    Launch(stage::LaunchArgs),
    Create(change::CreateArgs),
    Add(change::AddArgs),
    Remove(change::RemoveArgs),
    /// Start nothing of a convoy until it is resumed; running beads go on
    Pause(change::OneArgs),
    /// Let what a convoy tracks start again
    Resume(change::OneArgs),
    Cap(change::CapArgs),
    Review(change::ReviewRuleArgs),
    Retry(change::RetryArgs),
    /// Be told when a convoy lands
    Watch(change::WatchArgs),
    /// Not be told any more
    Unwatch(change::WatchArgs),
    Close(change::CloseArgs),
    Land(change::LandArgs),
    Stranded(stranded::StrandedArgs),
    /// Land the convoys of which everything is done and that have not landed yet
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only those with this status: open, closed, `staged_ready` or `staged_warnings`
    #[arg(long, value_parser = Status::parse)]
    status: Option<Status>,
    /// Also those that are closed, and those that gt sling made for a single bead
    #[arg(long)]
    all: bool,
    /// With the beads of each
    #[arg(long)]
    tree: bool,
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Only this convoy
    id: Option<String>,
    /// Only say what would land
    #[arg(short = 'n', long)]
    dry_run: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ConvoyArgs) -> Result<(), CliError> {
    let Some(verb) = &args.verb else {
        if args.interactive && top::can_show(context) {
            return top::show(context, TopView::Convoys);
        }
        if args.interactive {
            return choose(context);
        }
        return list(context, &ConvoyFilter::default(), false);
    };
    match verb {
        ConvoyVerb::List(args) => {
            let filter = ConvoyFilter { all: args.all, status: args.status.clone() };
            list(context, &filter, args.tree)
        }
        ConvoyVerb::Create(args) => change::create(context, args),
        ConvoyVerb::Add(args) => change::add(context, args),
        ConvoyVerb::Remove(args) => change::remove(context, args),
        ConvoyVerb::Pause(args) => change::pause(context, args),
        ConvoyVerb::Resume(args) => change::resume(context, args),
        ConvoyVerb::Cap(args) => change::cap(context, args),
        ConvoyVerb::Review(args) => change::review(context, args),
        ConvoyVerb::Retry(args) => change::retry(context, args),
        ConvoyVerb::Watch(args) => change::watch(context, args, true),
        ConvoyVerb::Unwatch(args) => change::watch(context, args, false),
        ConvoyVerb::Close(args) => change::close(context, args),
        ConvoyVerb::Land(args) => change::land(context, args),
        ConvoyVerb::Stranded(args) => stranded::run(context, args),
        ConvoyVerb::Status(args) => status::run(context, args),
        ConvoyVerb::Graph(args) => graph::run(context, args),
        ConvoyVerb::Stage(args) => stage::stage(context, args),
        ConvoyVerb::Launch(args) => stage::launch(context, args),
        ConvoyVerb::Check(args) => check(context, args),
    }
}

fn list(context: &CommandContext<'_>, filter: &ConvoyFilter, tree: bool) -> Result<(), CliError> {
    let town = context.town()?;
    let (printer, now) = (context.printer, town.now());
    let convoys = convoys::list(&town, filter)?;
    if printer.json() {
        let mut list = printer.list();
        for convoy in &convoys {
            if tree {
                let convoy_status =
                    gt_scheduling::convoy_planning::status(&town, convoy.bead.id.as_str())?;
                list.push(&convoy_status_document(&convoy_status))?;
            } else {
                list.push(&convoy_document(convoy))?;
            }
        }
        return list.finish();
    }
    if tree {
        for convoy in &convoys {
            let id = convoy.bead.id.as_str();
            let said =
                format!("  {} {}  {}", state_word(convoy), progress(convoy), convoy.bead.title);
            printer.heading(id, &said)?;
            let convoy_status = gt_scheduling::convoy_planning::status(&town, id)?;
            status::print_beads(printer, convoy_status.tracked.iter(), now)?;
        }
        return Ok(());
    }
    if convoys.is_empty() && filter.all {
        return printer.done("No convoys; beads that are slung together travel in one (gt sling)");
    }
    if convoys.is_empty() {
        return printer.done(NO_CONVOYS);
    }
    let mut table =
        Table::with_header(&["CONVOY", "STATUS", "DONE", "MADE", "TITLE"]).droppable(&["MADE"]);
    for convoy in &convoys {
        table.row(vec![
            Cell::bold(convoy.bead.id.as_str()),
            Cell::coloured(state_word(convoy), status_colour(&convoy.bead.status)),
            Cell::new(progress(convoy)),
            Cell::new(ago(convoy.bead.created_at, now)),
            Cell::new(convoy.bead.title.as_str()),
        ]);
    }
    printer.table(table)
}

/// The state of a convoy, in a word.
fn state_word(convoy: &Convoy) -> String {
    match convoy.state() {
        ConvoyState::Open if convoy.paused.is_some() => "paused".to_owned(),
        ConvoyState::Landed => "landed".to_owned(),
        ConvoyState::Staged | ConvoyState::Open | ConvoyState::Closed => {
            convoy.bead.status.to_string()
        }
    }
}

/// How far a convoy is.
fn progress(convoy: &Convoy) -> String {
    let members = convoy.members;
    let failed = match members.failed {
        0 => String::new(),
        failed => format!(", failed: {failed}"),
    };
    format!("{}/{}{failed}", members.completed(), members.total)
}

/// The answer where no convoy is under way.
const NO_CONVOYS: &str = "No convoys under way (gt convoy list --all shows those that are over); beads that are slung \
                          together travel in one (gt sling)";

/// Lets a person choose a convoy and look at it, until they quit.
fn choose(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    loop {
        let convoys = convoys::list(&town, &ConvoyFilter::default())?;
        if convoys.is_empty() {
            return printer.done(NO_CONVOYS);
        }
        for (number, convoy) in convoys.iter().enumerate() {
            let (id, title) = (&convoy.bead.id, &convoy.bead.title);
            printer.line(format!("{:>3}  {id}  {}  {title}", number + 1, progress(convoy)))?;
        }
        printer.line("Which one? A number, or q to end")?;
        printer.flush()?;
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        let read = read.map_err(|error| CliError::request(format!("cannot read: {error}")))?;
        let answer = answer.trim();
        if read == 0 || answer.is_empty() || answer == "q" {
            return Ok(());
        }
        let chosen = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        match chosen.and_then(|at| convoys.get(at)) {
            Some(convoy) => status::show(context, &town, convoy.bead.id.as_str())?,
            None => printer.line(format!("There is no {answer}"))?,
        }
        printer.line("")?;
    }
}

fn check(context: &CommandContext<'_>, args: &CheckArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let landed = convoys::check(&town, args.id.as_deref(), args.dry_run)?;
    if printer.json() {
        let mut list = printer.list();
        for convoy in &landed {
            list.push(&convoy_document(convoy))?;
        }
        return list.finish();
    }
    if landed.is_empty() {
        return printer.done("Nothing to land");
    }
    let did = if args.dry_run { "Would land" } else { "✓ Landed" };
    for convoy in &landed {
        let beads = plural(convoy.members.total, "bead");
        printer.done(format!("{did} {}: {} ({beads})", convoy.bead.id, convoy.bead.title))?;
    }
    Ok(())
}
