//! `bd duplicate`, `bd supersede` and `bd duplicates`.

use clap::Args;
use gt_api::{
    DuplicateGroupDocument, DuplicateIssueDocument, DuplicatesDocument, MarkedDuplicateDocument,
    SupersededDocument,
};
use gt_beads::beads::{
    DuplicateGroup, ReplacedBead, Replacement, duplicates, merge_duplicates, replace,
};
use gt_execution::runs::end_processes_of;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::plural;

/// Close a bead as a duplicate of another
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd duplicate gt-abc --of gt-def")]
pub(super) struct DuplicateArgs {
    /// The bead that is closed
    #[arg(value_name = "ID")]
    id: String,
    /// The bead that says the same
    #[arg(long, value_name = "ID")]
    of: String,
}

/// Close a bead because another takes its place
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd supersede gt-old --with gt-new")]
pub(super) struct SupersedeArgs {
    /// The bead that is closed
    #[arg(value_name = "ID")]
    id: String,
    /// The bead that takes its place
    #[arg(long, value_name = "ID")]
    with: String,
}

/// Find beads that say the same
#[derive(Debug, Args)]
#[command(
    after_help = "Beads that are not closed say the same if their title, description, design, acceptance criteria and
status are equal. The one that most others depend on is kept.

Examples:
  bd duplicates
  bd duplicates --auto-merge --dry-run"
)]
pub(super) struct DuplicatesArgs {
    /// Close all but one of each group
    #[arg(long)]
    auto_merge: bool,
    /// Change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run_duplicate(
    context: &CommandContext<'_>,
    args: &DuplicateArgs,
) -> Result<(), CliError> {
    let ReplacedBead { closed, kept, .. } =
        give_way(context, &args.id, &args.of, Replacement::DuplicateOf)?;
    let printer = context.printer;
    if printer.json() {
        let (duplicate, canonical) = (closed.to_string(), kept.to_string());
        let status = "closed".to_owned();
        return printer.object(&MarkedDuplicateDocument { duplicate, canonical, status });
    }
    printer.done(format!("✓ Marked {closed} as duplicate of {kept} (closed)"))
}

pub(super) fn run_supersede(
    context: &CommandContext<'_>,
    args: &SupersedeArgs,
) -> Result<(), CliError> {
    let ReplacedBead { closed, kept, .. } =
        give_way(context, &args.id, &args.with, Replacement::SupersededBy)?;
    let printer = context.printer;
    if printer.json() {
        let (superseded, replacement) = (closed.to_string(), kept.to_string());
        let status = "closed".to_owned();
        return printer.object(&SupersededDocument { superseded, replacement, status });
    }
    printer.done(format!("✓ Marked {closed} as superseded by {kept} (closed)"))
}

fn give_way(
    context: &CommandContext<'_>,
    id: &str,
    by: &str,
    why: Replacement,
) -> Result<ReplacedBead, CliError> {
    let town = context.store_town()?;
    let replaced = replace(&town, id, by, why)?;
    end_processes_of(&town, &replaced.cancelled);
    Ok(replaced)
}

pub(super) fn run_duplicates(
    context: &CommandContext<'_>,
    args: &DuplicatesArgs,
) -> Result<(), CliError> {
    let town = context.store_town()?;
    let groups = duplicates(&town)?;
    let merged = match (args.auto_merge, args.dry_run) {
        (true, false) => Some(merge_duplicates(&town, &groups)?),
        _ => None,
    };
    end_processes_of(&town, merged.iter().flatten().filter_map(|merged| merged.cancelled.as_ref()));
    let printer = context.printer;
    if printer.json() {
        return printer.object(&DuplicatesDocument {
            duplicate_groups: groups.len() as u64,
            groups: groups.iter().map(group_document).collect(),
            merge_results: merged.map(|all| all.iter().map(merge_document).collect()),
        });
    }
    if groups.is_empty() {
        return printer.done("No duplicates found");
    }
    for DuplicateGroup { beads } in &groups {
        let Some(((kept, _), others)) = beads.split_first() else { continue };
        printer.heading(kept.id.as_str(), &format!("  {}", kept.title))?;
        for (bead, _) in others {
            printer
                .line(format!("  {} says the same: bd duplicate {0} --of {}", bead.id, kept.id))?;
        }
    }
    match merged {
        Some(merged) => {
            let closed = plural(merged.len() as u64, "duplicate");
            printer.done(format!("✓ Closed {closed}"))
        }
        None => printer.done("bd duplicates --auto-merge closes them"),
    }
}

fn group_document(DuplicateGroup { beads }: &DuplicateGroup) -> DuplicateGroupDocument {
    let ids: Vec<String> = beads.iter().map(|(bead, _)| bead.id.to_string()).collect();
    let (target, sources) = ids
        .split_first()
        .map_or_else(Default::default, |(first, rest)| (first.clone(), rest.to_vec()));
    let issue = |(at, (bead, dependents)): (usize, &(gt_core::Bead, u64))| DuplicateIssueDocument {
        id: bead.id.to_string(),
        title: bead.title.to_string(),
        status: bead.status.to_string(),
        priority: bead.priority.number(),
        dependents: *dependents,
        is_merge_target: at == 0,
    };
    DuplicateGroupDocument {
        title: beads.first().map(|(bead, _)| bead.title.to_string()).unwrap_or_default(),
        issues: beads.iter().enumerate().map(issue).collect(),
        suggested_target: target,
        suggested_sources: sources,
    }
}

fn merge_document(merged: &ReplacedBead) -> MarkedDuplicateDocument {
    MarkedDuplicateDocument {
        duplicate: merged.closed.to_string(),
        canonical: merged.kept.to_string(),
        status: "closed".to_owned(),
    }
}
