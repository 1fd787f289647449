//! `bd purge` and `bd prune`.

use clap::Args;
use gt_api::PurgedDocument;
use gt_beads::beads::for_each_page;
use gt_beads::deletion::delete;
use gt_core::Status;
use gt_town::{BeadFilter, Between, StatusFilter};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::plural;
use crate::values::instant_or_ago;

/// Delete closed ephemeral beads
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd purge --dry-run\n  bd purge --older-than 7d --force")]
pub(super) struct PurgeArgs {
    /// Really delete
    #[arg(short, long)]
    force: bool,
    /// Only show how many
    #[arg(long, conflicts_with = "force")]
    dry_run: bool,
    /// Only what was closed before this: 7d, 2026-05-31
    #[arg(long, value_name = "WHEN")]
    older_than: Option<String>,
    /// Only ids that begin like this
    #[arg(long, value_name = "BEGINNING")]
    pattern: Option<String>,
}

impl PurgeArgs {
    /// The arguments of a command that deletes what was closed so long ago.
    pub(super) fn of(force: bool, older_than: Option<String>) -> Self {
        Self { force, dry_run: !force, older_than, pattern: None }
    }
}

/// Whether only ephemeral beads go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PurgeScope {
    Ephemeral,
    AllClosed,
}

pub(super) fn run(
    context: &CommandContext<'_>,
    args: &PurgeArgs,
    scope: PurgeScope,
) -> Result<(), CliError> {
    if scope == PurgeScope::AllClosed && args.older_than.is_none() && args.pattern.is_none() {
        return Err(CliError::request(
            "which ones? name --older-than <when>, such as 90d, or --pattern <beginning of the id>",
        ));
    }
    let town = context.store_town()?;
    let before = args.older_than.as_deref().map(|text| instant_or_ago(text, town.now()));
    let filter = BeadFilter {
        ephemeral: (scope == PurgeScope::Ephemeral).then_some(true),
        status: StatusFilter::OneOf(vec![Status::Closed]),
        closed: Between { after: None, before: before.transpose()? },
        pinned: Some(false),
        ..BeadFilter::everything()
    };
    let beginning = args.pattern.as_deref().unwrap_or_default().trim_end_matches('*');
    let mut ids = Vec::new();
    for_each_page(&town, &filter, |rows| {
        let closed = rows.into_iter().map(|row| row.bead.id.to_string());
        ids.extend(closed.filter(|id| id.starts_with(beginning)));
        Ok::<_, CliError>(())
    })?;
    if args.force && !ids.is_empty() {
        delete(&town, &ids, false)?;
    }
    let printer = context.printer;
    if printer.json() {
        return printer.object(&PurgedDocument {
            deleted_count: if args.force { ids.len() as u64 } else { 0 },
            deleted_ids: ids,
            dry_run: !args.force,
        });
    }
    let beads = plural(ids.len() as u64, "bead");
    if args.force {
        return printer.done(format!("✓ Deleted {beads}"));
    }
    printer.done(format!("Would delete {beads}; use --force to do it"))
}
