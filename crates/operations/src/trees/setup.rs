//! What a rig wants done in a tree before a worker gets it.

use std::time::Duration;

use gt_core::Rig;
use gt_core::schedule::Run;
use gt_core::time::format_duration;
use gt_executors::git::Tree;
use gt_executors::trial::Trial;

use super::overlay::lay_over;
use super::{Trees, git_failed};
use crate::settings::layers_in;
use crate::{OperationError, Result, Town};

/// How much of what the command says is kept, and how much of that is told.
const OUTPUT_BYTES_MAX: u64 = 4_000;
const LINES_TOLD: usize = 5;

/// Lays the overlay of the rig over the tree, and runs its command in it. The command has as long as a start may take.
pub(super) fn set_up(
    town: &Town,
    trees: &Trees<'_>,
    rig: &Rig,
    run: &Run,
    tree: &Tree,
    branch: &str,
) -> Result<()> {
    let value = |name: &str| {
        town.read(|reader| {
            let name = format!("rig.{}.{name}", rig.slug);
            Ok(layers_in(town.root(), reader)?.get(&name)?.value)
        })
    };
    let overlay = value("overlay")?;
    if !overlay.trim().is_empty() {
        lay_over(trees, rig, tree, &town.root().join(overlay))?;
    }
    let command = value("setup")?;
    if command.trim().is_empty() {
        return Ok(());
    }
    let argv = ["/bin/sh", "-c", &command].map(str::to_owned);
    let environment = [
        ("GT_TOWN_ROOT", town.root().display().to_string()),
        ("GT_RIG", rig.slug.to_string()),
        ("GT_ROLE", run.agent.clone()),
        ("GT_BRANCH", branch.to_owned()),
    ];
    let environment: Vec<_> =
        environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let limit = town.scheduler_settings()?.start_timeout;
    let tried = Trial {
        argv: &argv,
        directory: tree.path(),
        environment: &environment,
        input: b"",
        limit,
        output_bytes_max: OUTPUT_BYTES_MAX,
    }
    .run();
    let tried = tried.map_err(|error| failed(rig, &error.to_string(), ""))?;
    match tried.status {
        Some(status) if status.success() => settled(rig, tree),
        Some(status) => Err(failed(rig, &status.to_string(), &tried.output)),
        None => Err(failed(rig, &too_long(limit), &tried.output)),
    }
}

fn too_long(limit: Duration) -> String {
    format!("it took longer than {} (scheduler.start_timeout)", format_duration(limit))
}

/// What the command leaves behind must not be taken for work.
fn settled(rig: &Rig, tree: &Tree) -> Result<()> {
    let changes = tree.status().map_err(git_failed(rig))?.changes;
    match changes.paths().next() {
        None => Ok(()),
        Some(path) => Err(OperationError::rejected(format!(
            "rig.{}.setup changes {}, which would be committed as work; have it ignored (.gitignore), or undo it \
             in the command",
            rig.slug,
            path.display()
        ))),
    }
}

fn failed(rig: &Rig, how: &str, output: &str) -> OperationError {
    let lines: Vec<&str> =
        output.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES_TOLD)..].join(" / ");
    let said = if last.is_empty() { String::new() } else { format!(": {last}") };
    OperationError::rejected(format!("rig.{}.setup failed: {how}{said}", rig.slug))
}
