//! `gt hook`.

use clap::Args;
use gt_api::{FullRunDocument, HookedBeadDocument, HookedDocument, StepProgressDocument};
use gt_execution::worker::{self, Hooked};

use super::mail::role;
use super::run::lasted;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::plural;

/// Show what is on your hook: the bead that you work on, and its run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt hook                     # what I work on
  gt hook gt-abc              # who works on gt-abc
  gt hook --json")]
pub(super) struct HookArgs {
    /// Show the worker of this bead instead
    bead: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &HookArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let hooked = worker::hook(&town, role(context), args.bead.as_deref())?;
    if printer.json() {
        let mut list = printer.list();
        for one in &hooked {
            list.push(&document(one))?;
        }
        return list.finish();
    }
    if hooked.is_empty() {
        return printer.done("Nothing is on your hook; gt hook <bead> says who has a bead");
    }
    let now = town.now();
    for Hooked { bead, run, progress, unread } in &hooked {
        printer.heading(bead.id.as_str(), &format!("  {}", bead.title.as_str()))?;
        let Some(run) = run else {
            printer.line(format!("  is on no hook; gt why {} says why", bead.id))?;
            continue;
        };
        let steps = progress.map(|progress| format!(", steps {progress}")).unwrap_or_default();
        let (id, state) = (&run.id, run.state.as_str());
        printer.line(format!(
            "  {id} by {}, {state} for {}{steps}",
            run.agent,
            lasted(run, now)
        ))?;
        if *unread > 0 {
            let unread = plural(*unread as u64, "unread message");
            printer.line(format!("  {unread}; gt mail inbox lists them"))?;
        }
        if args.bead.is_none() {
            printer.line("  gt prime tells everything, gt done finishes it")?;
        }
    }
    Ok(())
}

fn document(hooked: &Hooked) -> HookedDocument {
    HookedDocument {
        bead: HookedBeadDocument {
            id: hooked.bead.id.to_string(),
            title: hooked.bead.title.to_string(),
            status: hooked.bead.status.to_string(),
            priority: hooked.bead.priority.number(),
        },
        run: hooked.run.as_ref().map(FullRunDocument::from),
        progress: hooked.progress.map(StepProgressDocument::from),
        unread: hooked.unread as u64,
    }
}
