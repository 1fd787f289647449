//! Making and changing convoys.

use clap::{Args, ValueEnum};
use gt_beads::convoys::{self, ConvoyClose, NewConvoy};
use gt_core::BeadId;
use gt_core::schedule::Merge;
use gt_execution::trees::nuke;
use gt_scheduling::schedule::{ConvoyChoice, SlingRequest};
use gt_town::rigs::branch_name;

use super::super::daemon::note_daemon_absence;
use super::super::scheduler::{RetryOfBeads, retry_and_print};
use super::super::sling;
use super::{convoy_document, progress, state_word};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{moment, plural};

/// Make a convoy of beads, and schedule all of them
///
/// Blocked beads start when their blockers are done. The convoy lands with the close of the last bead, unless it is owned.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy create \"Search\" web-1 web-2 api-7
  gt convoy create \"Search\" --from-epic web-epic-1 --notify
  gt convoy create \"Release\" web-1 --owned --notify=web/crew/max")]
pub(super) struct CreateArgs {
    /// Its name
    name: String,
    /// The beads that it tracks, or work items
    ids: Vec<String>,
    /// Everything below this epic
    #[arg(long, value_name = "EPIC", conflicts_with = "ids")]
    from_epic: Option<String>,
    /// You land it yourself, with gt convoy land
    #[arg(long)]
    owned: bool,
    /// Its owner
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Send a message when it lands: to you, or to this address
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    notify: Vec<String>,
    /// How its work is merged: direct, mr, pr or local
    #[arg(long, value_parser = Merge::parse)]
    merge: Option<Merge>,
    /// The branch that its work begins from and lands on
    #[arg(long, value_name = "BRANCH", value_parser = branch_name)]
    base_branch: Option<String>,
    /// Let a person approve its work before it lands
    #[arg(long)]
    review: bool,
    /// Let its work come together on the branch integration/<convoy>, and bring that to the base branch at the end
    #[arg(long, conflicts_with = "owned")]
    integration: bool,
    /// Start any number at once without being asked
    #[arg(short, long)]
    yes: bool,
}

/// Let a convoy track more beads, and schedule them; one that is over is open again
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt convoy add hq-cv-x7k2p web-4 web-5")]
pub(super) struct AddArgs {
    /// The convoy
    id: String,
    /// The beads
    #[arg(required = true, value_name = "BEAD")]
    beads: Vec<String>,
    /// Start any number at once without being asked
    #[arg(short, long)]
    yes: bool,
}

/// Take beads out of a convoy; their runs go on
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt convoy remove hq-cv-x7k2p web-4")]
pub(super) struct RemoveArgs {
    /// The convoy
    id: String,
    /// The beads
    #[arg(required = true, value_name = "BEAD")]
    beads: Vec<String>,
}

/// Close a convoy before everything is done; its beads go on without it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy close hq-cv-x7k2p --reason \"not needed any more\" --force
  gt convoy close hq-cv-x7k2p --notify")]
pub(super) struct CloseArgs {
    /// The convoy
    id: String,
    /// Why
    #[arg(short, long)]
    reason: Option<String>,
    /// Tell those who watch it
    #[arg(long)]
    notify: bool,
    /// Although something of it is not done
    #[arg(short, long)]
    force: bool,
}

/// Land a convoy that its owner lands
///
/// The worktrees of its workers are moved to the trash, unless another run uses them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy land hq-cv-x7k2p --dry-run
  gt convoy land hq-cv-x7k2p --keep-worktrees")]
pub(super) struct LandArgs {
    /// The convoy
    id: String,
    /// Although something of it is not done
    #[arg(short, long)]
    force: bool,
    /// Leave the trees where they are
    #[arg(long)]
    keep_worktrees: bool,
    /// Only say what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
}

/// A convoy, and who watches it
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// The convoy
    id: String,
    /// Tell this address instead of you when it lands: mayor, deacon or <rig>/crew/<name>
    #[arg(long = "for", value_name = "ADDRESS")]
    who: Option<String>,
}

/// A convoy
#[derive(Debug, Args)]
pub(super) struct OneArgs {
    /// The convoy
    id: String,
}

/// Say how many beads of a convoy are worked on at once
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy cap hq-cv-x7k2p 3
  gt convoy cap hq-cv-x7k2p 0      # any number, within the other caps")]
pub(super) struct CapArgs {
    /// The convoy
    id: String,
    /// So many at most; 0 for any number
    cap: u32,
}

/// Say whether a person has to approve the work of a convoy before it lands
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy review hq-cv-x7k2p required
  gt convoy review hq-cv-x7k2p optional")]
pub(super) struct ReviewRuleArgs {
    /// The convoy
    id: String,
    /// Whether a person has to; the bead, its sling or its rig may still require it
    rule: ReviewRule,
}

/// Whether a review is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReviewRule {
    Required,
    Optional,
}

pub(super) fn create(context: &CommandContext<'_>, args: &CreateArgs) -> Result<(), CliError> {
    sling::refuse_workers(&context.environment)?;
    let notify = args.notify.iter().map(|to| Some(to.clone()).filter(|to| !to.is_empty()));
    let new = NewConvoy {
        title: Some(args.name.clone()),
        from_epic: args.from_epic.is_some(),
        owned: args.owned,
        owner: args.owner.clone(),
        notify: notify.collect(),
        merge: args.merge,
        base_branch: args.base_branch.clone(),
        review: args.review,
        integration: args.integration,
    };
    let arguments = args.from_epic.iter().chain(&args.ids).cloned().collect();
    let request =
        SlingRequest { arguments, travel: ConvoyChoice::In(new), ..SlingRequest::default() };
    let town = context.town()?;
    if !args.yes && !sling::are_starts_wanted(context, &town, &request)? {
        return context.printer.done(sling::NOTHING_STARTED);
    }
    let slung = sling::carry_out(&town, &request)?;
    if !context.printer.json() {
        let convoy = slung.convoy.as_ref().map_or("", |convoy| convoy.as_str());
        let beads = plural(slung.entries.len() as u64, "bead");
        context.printer.done(format!("✓ Created {convoy}: {} ({beads})", args.name))?;
    }
    sling::print_scheduled_by_convoy(context, &town, &slung)
}

pub(super) fn add(context: &CommandContext<'_>, args: &AddArgs) -> Result<(), CliError> {
    sling::refuse_workers(&context.environment)?;
    let request = SlingRequest {
        arguments: args.beads.clone(),
        travel: ConvoyChoice::With(args.id.clone()),
        ..SlingRequest::default()
    };
    let town = context.town()?;
    if !args.yes && !sling::are_starts_wanted(context, &town, &request)? {
        return context.printer.done(sling::NOTHING_STARTED);
    }
    let slung = sling::carry_out(&town, &request)?;
    if !context.printer.json() {
        let convoy = slung.convoy.as_ref().map_or("", |convoy| convoy.as_str());
        if slung.added.is_empty() {
            context.printer.done(format!("{convoy} tracks them already; nothing to do"))?;
        } else {
            let names: Vec<&str> = slung.added.iter().map(BeadId::as_str).collect();
            context.printer.done(format!("✓ {convoy} tracks {}", names.join(", ")))?;
            let convoy = gt_scheduling::convoy_planning::status(&town, convoy)?.convoy;
            if convoy.bead.status.is_staged() {
                let id = &convoy.bead.id;
                context
                    .printer
                    .note(format!("It is staged: gt convoy stage {id} shows the plan anew"));
            }
        }
    }
    sling::print_scheduled_by_convoy(context, &town, &slung)
}

pub(super) fn remove(context: &CommandContext<'_>, args: &RemoveArgs) -> Result<(), CliError> {
    sling::refuse_workers(&context.environment)?;
    let done = convoys::remove(&context.town()?, &args.id, &args.beads)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&convoy_document(&done.convoy));
    }
    let id = &done.convoy.bead.id;
    for bead in &done.removed {
        printer.done(format!("✓ {id} does not track {bead} any more"))?;
    }
    for bead in &done.unknown {
        printer.done(format!("{id} does not track {bead}; nothing to do"))?;
    }
    printer.note(format!("{}: {} done", state_word(&done.convoy), progress(&done.convoy)));
    Ok(())
}

pub(super) fn close(context: &CommandContext<'_>, args: &CloseArgs) -> Result<(), CliError> {
    sling::refuse_workers(&context.environment)?;
    let how = ConvoyClose { reason: args.reason.clone(), force: args.force, notify: args.notify };
    let (convoy, changed) = convoys::close(&context.town()?, &args.id, &how)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&convoy_document(&convoy));
    }
    let id = &convoy.bead.id;
    if !changed {
        return printer.done(format!("{id} is {} already; nothing to do", state_word(&convoy)));
    }
    printer.done(format!(
        "✓ Closed {id}: {} ({} done)",
        convoy.bead.close_reason,
        progress(&convoy)
    ))?;
    if convoy.members.open > 0 {
        let open = plural(convoy.members.open, "bead");
        printer.note(format!(
            "Its open beads go on without it ({open}); gt scheduler clear --bead <id> stops one"
        ));
    }
    Ok(())
}

pub(super) fn land(context: &CommandContext<'_>, args: &LandArgs) -> Result<(), CliError> {
    sling::refuse_workers(&context.environment)?;
    let town = context.town()?;
    let printer = context.printer;
    let convoy = convoys::land(&town, &args.id, args.force, args.dry_run)?;
    let trees = if args.keep_worktrees {
        Vec::new()
    } else {
        convoys::clear_trees(&town, &convoy.bead.id, |place| {
            nuke(&town, place.as_str(), args.dry_run).map(drop)
        })?
    };
    if printer.json() {
        return printer.object(&convoy_document(&convoy));
    }
    let (did, moved) =
        if args.dry_run { ("Would land", "Would move") } else { ("✓ Landed", "✓ Moved") };
    printer.done(format!(
        "{did} {}: {} ({} done)",
        convoy.bead.id,
        convoy.bead.title,
        progress(&convoy)
    ))?;
    for tree in trees {
        match tree {
            Ok(place) => printer.done(format!("{moved} the tree of {place} to the trash"))?,
            Err(why) => printer.note(format!("A tree stays: {why}")),
        }
    }
    Ok(())
}

pub(super) fn watch(
    context: &CommandContext<'_>,
    args: &WatchArgs,
    watches: bool,
) -> Result<(), CliError> {
    let town = context.town()?;
    let (convoy, who, changed) = convoys::watch(&town, &args.id, args.who.as_deref(), watches)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&convoy_document(&convoy));
    }
    let id = &convoy.bead.id;
    printer.done(match (changed, watches) {
        (true, true) => format!("✓ {who} is told when {id} lands"),
        (true, false) => format!("✓ {who} is not told of {id} any more"),
        (false, true) => format!("{who} watches {id} already; nothing to do"),
        (false, false) => format!("{who} does not watch {id}; nothing to do"),
    })
}

pub(super) fn pause(context: &CommandContext<'_>, args: &OneArgs) -> Result<(), CliError> {
    let (convoy, changed) = convoys::pause(&context.town()?, &args.id)?;
    let id = convoy.bead.id.clone();
    let said = match (&convoy.paused, changed) {
        (_, true) => {
            format!(
                "✓ Paused {id}: nothing of it starts until gt convoy resume {id}; what runs goes on"
            )
        }
        (Some(pause), false) => {
            format!(
                "{id} is paused already by {} since {}; nothing to do",
                pause.by,
                moment(pause.at)
            )
        }
        (None, false) => format!("{id} is not paused"),
    };
    print_change(context, &convoy, said)
}

pub(super) fn resume(context: &CommandContext<'_>, args: &OneArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let (convoy, changed) = convoys::resume(&town, &args.id)?;
    let id = &convoy.bead.id;
    let said = if changed {
        format!("✓ Resumed {id}: what is ready starts")
    } else {
        format!("{id} is not paused; nothing to do")
    };
    print_change(context, &convoy, said)?;
    note_daemon_absence(context.printer, &town);
    Ok(())
}

pub(super) fn cap(context: &CommandContext<'_>, args: &CapArgs) -> Result<(), CliError> {
    let (convoy, changed) = convoys::cap(&context.town()?, &args.id, args.cap)?;
    let id = &convoy.bead.id;
    let said = match (changed, args.cap) {
        (true, 0) => format!("✓ {id} has no cap of its own"),
        (true, cap) => format!("✓ Of {id} at most {} at once", plural(u64::from(cap), "bead")),
        (false, 0) => format!("{id} has no cap of its own; nothing to do"),
        (false, cap) => format!("{id} has a cap of {cap} already; nothing to do"),
    };
    print_change(context, &convoy, said)
}

pub(super) fn review(context: &CommandContext<'_>, args: &ReviewRuleArgs) -> Result<(), CliError> {
    sling::refuse_workers(&context.environment)?;
    let is_required = args.rule == ReviewRule::Required;
    let (convoy, changed) = convoys::require_review(&context.town()?, &args.id, is_required)?;
    let id = &convoy.bead.id;
    let said = match (changed, is_required) {
        (true, true) => format!("✓ A person approves the work of {id} before it lands"),
        (true, false) => format!("✓ {id} requires no review"),
        (false, true) => format!("{id} requires a review already; nothing to do"),
        (false, false) => format!("{id} requires no review; nothing to do"),
    };
    print_change(context, &convoy, said)
}

fn print_change(
    context: &CommandContext<'_>,
    convoy: &convoys::Convoy,
    said: String,
) -> Result<(), CliError> {
    let printer = context.printer;
    if printer.json() { printer.object(&convoy_document(convoy)) } else { printer.done(said) }
}

/// Try again what failed of a convoy
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt convoy retry hq-cv-x7k2p")]
pub(super) struct RetryArgs {
    /// The convoy
    id: String,
    /// Start any number of agents at once, without being asked
    #[arg(long, short = 'y')]
    yes: bool,
}

pub(super) fn retry(context: &CommandContext<'_>, args: &RetryArgs) -> Result<(), CliError> {
    sling::refuse_workers(&context.environment)?;
    let town = context.town()?;
    let (convoy, failed) = gt_scheduling::convoy_planning::failed_members(&town, &args.id)?;
    let nothing = format!("Nothing of {} has failed", convoy.bead.id);
    let retry = RetryOfBeads { names: failed, found: true, now: false, yes: args.yes };
    retry_and_print(context, &town, &retry, &nothing)
}
