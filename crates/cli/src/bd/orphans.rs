//! `bd orphans`.

use clap::Args;
use gt_api::OrphanDocument;
use gt_beads::beads::{Close, Orphan, close, orphans};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{is_confirmed, plural};

/// List beads that commits speak of and that are still open
///
/// The commits of the current branch of the git repository around are read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd orphans --details\n  bd orphans --fix")]
pub(super) struct OrphansArgs {
    /// Also the latest commit that speaks of each
    #[arg(long)]
    details: bool,
    /// Close them; a person at a terminal is asked first
    #[arg(short, long)]
    fix: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &OrphansArgs) -> Result<(), CliError> {
    let (printer, town) = (context.printer, context.store_town()?);
    let found = orphans(&town, &context.directory)?;
    if printer.json() {
        let mut list = printer.list();
        for orphan in &found {
            list.push(&document(orphan))?;
        }
        list.finish()?;
    } else if found.is_empty() {
        return printer.done("✓ No orphaned issues found");
    } else {
        for Orphan { bead, commit } in &found {
            printer.line(format!("{}  {} ({})", bead.id, bead.title, bead.status))?;
            if args.details {
                printer.line(format!("  {} {}", commit.commit, commit.subject))?;
            }
        }
    }
    let question = format!("Close {}?", plural(found.len() as u64, "bead"));
    if !args.fix || found.is_empty() || !is_confirmed(printer, &question)? {
        return Ok(());
    }
    let mut refused = Vec::new();
    for Orphan { bead, commit } in &found {
        let how = Close {
            reasons: vec![format!("Implemented in {}", commit.commit)],
            ..Close::default()
        };
        for closed in close(&town, &[bead.id.to_string()], &how)? {
            match closed {
                Ok(_) if printer.json() => {}
                Ok(closed) => printer.done(format!("✓ Closed {}", closed.bead.id))?,
                Err(error) => refused.push(printer.part_failed(&error.into())),
            }
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(CliError::AlreadyTold(refused.join("; "))) }
}

fn document(orphan: &Orphan) -> OrphanDocument {
    let Orphan { bead, commit } = orphan;
    OrphanDocument {
        issue_id: bead.id.to_string(),
        title: bead.title.to_string(),
        status: bead.status.to_string(),
        latest_commit: commit.commit.clone(),
        latest_commit_message: commit.subject.clone(),
    }
}
