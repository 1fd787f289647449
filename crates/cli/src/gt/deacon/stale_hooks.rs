//! `gt deacon stale-hooks`.

use clap::Args;
use gt_api::{KeptHookDocument, ReleasedHookDocument, StaleHooksDocument};
use gt_core::time::parse_duration;
use gt_execution::stale_hooks::{StaleHook, StaleHooks};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, plural, span};

/// Release beads that have an assignee but no live run
///
/// Looks at the hooked and claimed beads of all rigs. A bead without a live run that was not touched for a while is open
/// again, without an assignee. A bead with a running worker, a bead that is being merged, and a bead that a person has begun
/// is left alone. The daemon does the same for hooks that were not touched for an hour, except for beads that a person has
/// claimed by hand.
#[derive(Debug, Args)]
#[command(
    after_help = "The time of the daemon is the setting recovery.stale_hooks; 0s switches it off.

Examples:
  gt deacon stale-hooks --dry-run
  gt deacon stale-hooks --max-age 4h
  gt deacon stale-hooks --json"
)]
pub(super) struct StaleHooksArgs {
    /// Only what was not touched for this long
    #[arg(long, value_name = "TIME", default_value = "1h")]
    max_age: String,
    /// Change nothing, and say what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &StaleHooksArgs) -> Result<(), CliError> {
    let max_age = parse_duration(&args.max_age)?;
    let found = gt_execution::stale_hooks::stale_hooks(&context.town()?, max_age, args.dry_run)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&document(&found, args.dry_run));
    }
    text(printer, &found, args.dry_run)
}

fn text(printer: &Printer, found: &StaleHooks, rehearsal: bool) -> Result<(), CliError> {
    for hook in &found.released {
        let who = if hook.assignee.is_empty() { "no assignee" } else { &hook.assignee };
        let idle = span(hook.idle);
        let StaleHook { bead, status, .. } = hook;
        printer.line(if rehearsal {
            format!("Would release {bead}: {status} with {who}, untouched for {idle}")
        } else {
            format!("✓ Released {bead}: it was {status} with {who}, untouched for {idle}")
        })?;
    }
    for (bead, kept) in &found.kept {
        printer.line(format!("Left {bead} alone: {kept}"))?;
    }
    let count = plural(found.released.len() as u64, "stale hook");
    let end = match (found.released.is_empty(), rehearsal) {
        (true, _) => "No stale hooks".to_owned(),
        (false, true) => format!("{count} would be released"),
        (false, false) => format!("{count} released; gt deacon redispatch <bead> starts one again"),
    };
    printer.done(end)
}

fn document(found: &StaleHooks, rehearsal: bool) -> StaleHooksDocument {
    let released = found.released.iter().map(|hook| ReleasedHookDocument {
        id: hook.bead.to_string(),
        title: hook.title.clone(),
        assignee: hook.assignee.clone(),
        status: hook.status.to_string(),
        idle_seconds: hook.idle.as_secs(),
    });
    let kept = found.kept.iter().map(|(bead, kept)| KeptHookDocument {
        id: bead.to_string(),
        code: kept.code().to_owned(),
        reason: kept.to_string(),
    });
    StaleHooksDocument { dry_run: rehearsal, released: released.collect(), kept: kept.collect() }
}
