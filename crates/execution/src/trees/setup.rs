//! The setup that a rig wants in a tree before a worker gets it.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use gt_core::Rig;
use gt_core::checks::hash_parts;
use gt_core::command_wrap::CommandWrap;
use gt_core::time::format_duration;
use gt_executors::git::{Commit, Tree};
use gt_executors::trial::{ErrorStream, Trial};

use super::overlay::{files_below, lay_over};
use crate::wrap::{WrappedCommand, wrap_of};
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::settings::layers_in;
use gt_town::tree_paths::{Trees, git_failed};
use gt_town::{OperationError, Result, Town};

/// How much of the output of the command is kept, and how many lines of it are reported.
const OUTPUT_BYTES_MAX: u64 = 4_000;
const LINES_TOLD: usize = 5;

/// The setup that a rig wants in its trees.
#[derive(Debug)]
pub(super) struct TreeSetup {
    /// The directory whose files every tree has.
    overlay: Option<PathBuf>,
    /// The command that is run in each.
    command: Option<String>,
    /// The program around that command.
    wrap: Option<CommandWrap>,
    /// The time limit: that of a start.
    limit: Duration,
}

impl TreeSetup {
    /// The setup of this rig.
    pub(super) fn of(town: &Town, rig: &Rig) -> Result<Self> {
        town.read(|reader| {
            let layers = layers_in(town.root(), reader)?;
            let said = |value: String| Some(value).filter(|value| !value.trim().is_empty());
            let overlay = said(layers.rig_overlay(&rig.slug)?);
            Ok(Self {
                overlay: overlay.map(|overlay| town.root().join(overlay)),
                command: said(layers.rig_setup(&rig.slug)?),
                wrap: wrap_of(&layers, rig)?,
                limit: SchedulerSettings::of(&layers)?.start_timeout,
            })
        })
    }

    /// The mark of a tree that was set up like this at this commit: the command, and the overlay files as they are
    /// now.
    pub(super) fn mark(&self, base: &Commit) -> Result<String> {
        let mut mark = format!("{base}\n{}\n", self.command.as_deref().unwrap_or_default());
        // Writing to a string does not fail.
        let _ = self.wrap.iter().try_for_each(|wrap| writeln!(mark, "{:?}", wrap.words()));
        let Some(overlay) = &self.overlay else { return Ok(mark) };
        for file in files_below(overlay)? {
            let path = overlay.join(&file);
            let data = path.symlink_metadata().map_err(|source| OperationError::File {
                action: "read",
                path,
                source,
            })?;
            let (seconds, nanos) = (data.mtime(), data.mtime_nsec());
            let _ = writeln!(
                mark,
                "{} {} {seconds}.{nanos} {:o}",
                file.display(),
                data.len(),
                data.mode()
            );
        }
        Ok(mark)
    }
}

/// Lays the overlay of the rig over the tree, and runs its command in it, for an agent on a branch. The run and the branch
/// are empty for a warm tree.
pub(super) fn set_up(
    trees: &Trees<'_>,
    wishes: &TreeSetup,
    tree: &Tree,
    agent: &str,
    run: &str,
    branch: &str,
) -> Result<()> {
    let (town, rig) = (trees.town, trees.rig);
    wishes.lay_over(trees, tree)?;
    let environment = [
        ("GT_TOWN_ROOT", town.root().display().to_string()),
        ("GT_RIG", rig.slug.to_string()),
        ("GT_ROLE", agent.to_owned()),
        ("GT_BRANCH", branch.to_owned()),
    ];
    let environment: Vec<_> =
        environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    wishes.run_command(trees, tree, run, &environment, &[])
}

impl TreeSetup {
    /// Lays the overlay of the rig over a tree.
    pub(super) fn lay_over(&self, trees: &Trees<'_>, tree: &Tree) -> Result<()> {
        match &self.overlay {
            Some(overlay) => lay_over(trees, trees.rig, tree, overlay),
            None => Ok(()),
        }
    }

    /// Runs the command of the rig in a tree, with these variables besides ours and without others of ours.
    pub(super) fn run_command(
        &self,
        trees: &Trees<'_>,
        tree: &Tree,
        run: &str,
        environment: &[(String, String)],
        without: &[&str],
    ) -> Result<()> {
        let Some(command) = &self.command else { return Ok(()) };
        let (rig, place) = (trees.rig, Some((trees.town, tree.path())));
        let wrapped = WrappedCommand { rig, place, run, environment };
        let argv = ["/bin/sh", "-c", command].map(str::to_owned);
        let argv = wrapped.argv(self.wrap.as_ref(), argv.into())?;
        let limit = self.limit;
        let tried = Trial {
            argv: &argv,
            directory: tree.path(),
            environment,
            without,
            input: b"",
            limit,
            output_bytes_max: OUTPUT_BYTES_MAX,
            errors: ErrorStream::Joined,
        }
        .run();
        let tried = tried.map_err(|error| failed(rig, &error.to_string(), ""))?;
        match tried.status {
            Some(status) if status.success() => settled(rig, tree),
            Some(status) => Err(failed(rig, &status.to_string(), &tried.output)),
            None => Err(failed(rig, &too_long(limit), &tried.output)),
        }
    }

    /// The program around commands in the tree.
    pub(super) fn wrap(&self) -> Option<&CommandWrap> {
        self.wrap.as_ref()
    }

    /// A hash of the commands and of the contents of the overlay: equal ones set a tree up alike.
    pub(super) fn hash(&self) -> Result<String> {
        let mut parts = vec![self.command.clone().unwrap_or_default().into_bytes()];
        let wrap = self.wrap.iter().flat_map(CommandWrap::words);
        parts.extend(wrap.map(|word| word.clone().into_bytes()));
        if let Some(overlay) = &self.overlay {
            for file in files_below(overlay)? {
                let path = overlay.join(&file);
                let failed =
                    |source| OperationError::File { action: "read", path: path.clone(), source };
                let mode = path.symlink_metadata().map_err(failed)?.mode();
                let content = if path.is_symlink() {
                    std::fs::read_link(&path).map_err(failed)?.into_os_string().into_encoded_bytes()
                } else {
                    std::fs::read(&path).map_err(failed)?
                };
                parts.push(file.into_os_string().into_encoded_bytes());
                parts.push(format!("{mode:o}").into_bytes());
                parts.push(content);
            }
        }
        Ok(hash_parts(parts.iter().map(Vec::as_slice)))
    }
}

fn too_long(limit: Duration) -> String {
    format!("it took longer than {} (scheduler.start_timeout)", format_duration(limit))
}

/// Refuses changes that the command leaves behind: they would be taken for work.
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
