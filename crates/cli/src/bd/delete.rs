//! `bd delete`.

use clap::Args;
use gt_api::{DeletedIds, DeletionDocument};
use gt_beads::deletion::{delete, preview_delete};
use gt_execution::runs::end_processes_of;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::plural;
use crate::values::{text_of, texts};

/// Delete beads for good; without --force only shows what would go
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd delete gt-abc\n  bd delete gt-abc --force")]
pub(super) struct DeleteArgs {
    /// Ids, or parts of them
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Really delete, and cancel the runs and merge requests that have them
    #[arg(short, long)]
    force: bool,
    /// Also delete everything that depends on it
    #[arg(long)]
    cascade: bool,
    /// Only show what would go
    #[arg(long, conflicts_with = "force")]
    dry_run: bool,
    /// Take the ids from this file, one per line (- is standard input)
    #[arg(long, value_name = "FILE")]
    from_file: Option<String>,
    #[arg(long, hide = true)]
    reason: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &DeleteArgs) -> Result<(), CliError> {
    let mut ids = args.ids.clone();
    if let Some(path) = &args.from_file {
        let text = text_of(path)?;
        let lines = text.lines().map(str::trim);
        ids.extend(lines.filter(|l| !l.is_empty() && !l.starts_with('#')).map(str::to_owned));
    }
    if ids.is_empty() {
        return Err(CliError::request("which bead? bd delete <id>"));
    }
    let town = context.store_town()?;
    let printer = context.printer;
    let deletion = if args.force {
        let deletion = delete(&town, &ids, args.cascade)?;
        end_processes_of(&town, &deletion.runs);
        deletion
    } else {
        preview_delete(&town, &ids, args.cascade)?
    };
    if printer.json() {
        let (beads, runs, requests) = (&deletion.beads, &deletion.runs, &deletion.requests);
        let ids = texts(beads.iter().map(|bead| &bead.id));
        // Only where there are some: scripts written for others do not expect it.
        let cancelled = (!runs.is_empty()).then(|| texts(runs.iter().map(|run| &run.id)));
        let given_up = (!requests.is_empty()).then(|| texts(requests));
        let (deleted, would_delete) =
            if args.force { (Some(deleted_ids(ids)), None) } else { (None, Some(ids)) };
        let (runs_cancelled, would_cancel_runs) =
            if args.force { (cancelled, None) } else { (None, cancelled) };
        let (merge_requests_cancelled, would_cancel_merge_requests) =
            if args.force { (given_up, None) } else { (None, given_up) };
        return printer.object(&DeletionDocument {
            deleted,
            would_delete,
            deleted_count: if args.force { beads.len() as u64 } else { 0 },
            dependencies_removed: deletion.dependencies as u64,
            labels_removed: deletion.labels as u64,
            comments_removed: deletion.comments as u64,
            orphaned: texts(&deletion.bereft),
            runs_cancelled,
            would_cancel_runs,
            merge_requests_cancelled,
            would_cancel_merge_requests,
        });
    }
    let verb = if args.force { "✓ Cancelled" } else { "Would cancel" };
    for run in &deletion.runs {
        printer.done(format!("{verb} {} of {}", run.id, run.agent))?;
    }
    for request in &deletion.requests {
        printer.done(format!("{verb} the merge request {request}"))?;
    }
    let verb = if args.force { "✓ Deleted" } else { "Would delete" };
    for bead in &deletion.beads {
        printer.done(format!("{verb} {}: {}", bead.id, bead.title))?;
    }
    printer.done(format!(
        "{}, {} and {} go with it",
        match deletion.dependencies {
            1 => "1 dependency".to_owned(),
            many => format!("{many} dependencies"),
        },
        plural(deletion.labels as u64, "label"),
        plural(deletion.comments as u64, "comment")
    ))?;
    if !deletion.bereft.is_empty() {
        let ids: Vec<String> = deletion.bereft.iter().map(ToString::to_string).collect();
        printer.done(format!("These lose a dependency: {}", ids.join(", ")))?;
    }
    if !args.force {
        printer.done("Nothing was deleted; use --force to do it")?;
    }
    Ok(())
}

fn deleted_ids(mut ids: Vec<String>) -> DeletedIds {
    match ids.pop() {
        Some(only) if ids.is_empty() => DeletedIds::One(only),
        last => {
            ids.extend(last);
            DeletedIds::Several(ids)
        }
    }
}
