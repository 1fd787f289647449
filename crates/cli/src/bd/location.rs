//! `bd where`, `bd context` and `bd ping`.

use std::path::Path;

use clap::Args;
use gt_api::{LocationDocument, PingDocument, WorkspaceDocument};
use gt_beads::events::last_number;
use gt_core::Rig;
use gt_town::{Town, rigs};

use super::version;
use crate::context::CommandContext;
use crate::error::CliError;

/// Print the directory of the beads
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd where --json")]
pub(super) struct WhereArgs {}

/// Print the store and the directories that commands use here
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd context --json")]
pub(super) struct WorkspaceArgs {}

/// Say whether the store answers
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd ping")]
pub(super) struct PingArgs {}

pub(super) fn run_where(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let rigs: Vec<Rig> = rigs::list(&town)?.into_iter().map(|(rig, _)| rig).collect();
    let rig = town.rig_here(&rigs).or_else(|| <[_; 1]>::try_from(rigs).ok().map(|[only]| only));
    let prefix = rig.map(|rig| rig.prefix.to_string());
    let (path, database_path) = (beads_directory(&town), town.store_place());
    if printer.json() {
        return printer.object(&LocationDocument { path, prefix, database_path });
    }
    printer.line(&path)?;
    if let Some(prefix) = prefix {
        printer.line(format!("  prefix: {prefix}"))?;
    }
    printer.line(format!("  database: {database_path}"))
}

pub(super) fn run_context(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let backend = if town.store_path().is_some() { "sqlite" } else { "postgres" };
    let root = town.root().display().to_string();
    let found = WorkspaceDocument {
        beads_dir: beads_directory(&town),
        repo_root: root,
        is_redirected: false,
        is_worktree: false,
        backend: backend.to_owned(),
        dolt_mode: String::new(),
        database: town.store_place(),
        project_id: town.id().to_owned(),
        role: "maintainer".to_owned(),
        bd_version: version::INTERFACE.to_owned(),
    };
    if printer.json() {
        return printer.object(&found);
    }
    printer.line(format!("Town {}", found.repo_root))?;
    printer.line(format!("Beads directory {}", found.beads_dir))?;
    printer.line(format!("Store {} ({})", found.database, found.backend))?;
    printer.line(format!("Interface {}", found.bd_version))
}

pub(super) fn run_ping(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.store_town()?;
    last_number(&town)?;
    let printer = context.printer;
    let database_path = town.store_place();
    if printer.json() {
        let (status, version) = ("ok".to_owned(), version::INTERFACE.to_owned());
        return printer.object(&PingDocument { status, database_path, version });
    }
    printer.done(format!("✓ {database_path} answers"))
}

/// The directory that tools look for: `.beads` where there is one, else that of the town.
fn beads_directory(town: &Town) -> String {
    let named = |name: &str| town.root().join(name);
    let beads = named(".beads");
    let directory = if Path::is_dir(&beads) { beads } else { named(".gt") };
    directory.display().to_string()
}
