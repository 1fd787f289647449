//! `bd stale`.

use std::time::Duration;

use clap::Args;
use gt_town::{BeadFilter, BeadOrder, Between, rigs};

use super::filters::{limit, statuses};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::ago;

const LIMIT: usize = 50;

/// List beads that have not changed for a while, the oldest change first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd stale
  bd stale --days 7 --status in_progress --json")]
pub(super) struct StaleArgs {
    /// Not changed for this many days
    #[arg(short, long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    days: u32,
    /// Only these statuses, separated by commas; "all" for every one
    #[arg(short, long)]
    status: Option<String>,
    /// Only this rig
    #[arg(long)]
    rig: Option<String>,
    /// At most this many (50 unless said); 0 for all
    #[arg(short = 'n', long)]
    limit: Option<usize>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &StaleArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let now = town.now();
    let before = now.minus(Duration::from_hours(24).saturating_mul(args.days));
    let filter = BeadFilter {
        status: statuses(&town, args.status.as_deref())?.unwrap_or_default(),
        rig: args.rig.as_deref().map(|name| rigs::slug(&town, name)).transpose()?,
        updated: Between { after: None, before: Some(before) },
        order: BeadOrder::Updated,
        reverse: true,
        limit: limit(args.limit, Some(LIMIT)),
        ..BeadFilter::default()
    };
    super::list::print(context.printer, &town, &filter, |row| {
        format!("changed {}", ago(row.bead.updated_at, now))
    })
}
