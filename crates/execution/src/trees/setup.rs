//! The setup that a rig wants in a tree before a worker gets it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use gt_core::Rig;
use gt_core::checks::hash_parts;
use gt_core::command_wrap::CommandWrap;
use gt_core::schedule::RunId;
use gt_core::secret_mask::SecretMask;
use gt_core::time::format_duration;
use gt_executors::git::{Commit, Tree};
use gt_executors::runs::RunFiles;
use gt_executors::trial::{ErrorStream, Trial};

use super::overlay::{CheckoutFiles, files_below, lay_over};
use super::ports::ports_of_polecat;
use crate::wrap::{WrappedCommand, wrap_of};
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::settings::layers_in;
use gt_town::tree_paths::{Trees, git_failed};
use gt_town::{OperationError, Result, Town};

/// How much of the output of the command is kept, and how many lines of it are reported.
const OUTPUT_BYTES_MAX: u64 = 256 * 1024;
const LINES_TOLD: usize = 5;

/// The setup that a rig wants in its trees.
#[derive(Debug)]
pub(super) struct TreeSetup {
    /// The directory whose files every tree has.
    overlay: Option<PathBuf>,
    /// The files of a checkout of the user that every tree has.
    included: CheckoutFiles,
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
        let (mut setup, checkout) = town.read(|reader| {
            let layers = layers_in(town.root(), reader)?;
            let said = |value: String| Some(value).filter(|value| !value.trim().is_empty());
            let overlay = said(layers.rig_overlay(&rig.slug)?);
            let checkout = said(layers.rig_checkout(&rig.slug)?);
            let setup = Self {
                included: CheckoutFiles::default(),
                overlay: overlay.map(|overlay| town.root().join(overlay)),
                command: said(layers.rig_setup(&rig.slug)?),
                wrap: wrap_of(&layers, rig)?,
                limit: SchedulerSettings::of(&layers)?.start_timeout,
            };
            Ok((setup, checkout))
        })?;
        let checkout = match checkout {
            Some(checkout) => town.root().join(checkout),
            None => PathBuf::from(rig.repo.strip_prefix("file://").unwrap_or(&rig.repo)),
        };
        if checkout.is_absolute() {
            setup.included = CheckoutFiles::of(rig, checkout)?;
        }
        Ok(setup)
    }

    /// The files that every tree has besides those of the repository, each with its path in the tree.
    fn files(&self) -> Result<BTreeMap<PathBuf, PathBuf>> {
        let CheckoutFiles { checkout, files } = &self.included;
        let mut all: BTreeMap<PathBuf, PathBuf> =
            files.iter().map(|file| (file.clone(), checkout.join(file))).collect();
        if let Some(overlay) = &self.overlay {
            let files = files_below(overlay)?.into_iter();
            all.extend(files.map(|file| (file.clone(), overlay.join(file))));
        }
        Ok(all)
    }

    /// The mark of a tree that was set up like this at this commit: the command, and the overlay files as they are
    /// now.
    pub(super) fn mark(&self, base: &Commit) -> Result<String> {
        let mut mark = format!("{base}\n{}\n", self.command.as_deref().unwrap_or_default());
        // Writing to a string does not fail.
        let _ = self.wrap.iter().try_for_each(|wrap| writeln!(mark, "{:?}", wrap.words()));
        for (file, path) in self.files()? {
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

/// Lays the overlay of the rig over the tree, and runs its command in it, for an agent on a branch. A warm tree has no
/// run and no branch.
pub(super) fn set_up(
    trees: &Trees<'_>,
    wishes: &TreeSetup,
    tree: &Tree,
    (polecat, agent): (&str, &str),
    run: Option<&RunId>,
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
    let mut environment: Vec<_> =
        environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    environment.extend(ports_of_polecat(town, rig, polecat)?);
    wishes.run_command(trees, tree, run, &environment, &[])
}

impl TreeSetup {
    /// Lays the files of the user's checkout and the overlay of the rig over a tree.
    pub(super) fn lay_over(&self, trees: &Trees<'_>, tree: &Tree) -> Result<()> {
        lay_over(trees, tree, self.overlay.as_deref(), &self.included)
    }

    /// Runs the command of the rig in a tree, with these variables besides ours and without others of ours.
    pub(super) fn run_command(
        &self,
        trees: &Trees<'_>,
        tree: &Tree,
        run: Option<&RunId>,
        environment: &[(String, String)],
        without: &[&str],
    ) -> Result<()> {
        let Some(command) = &self.command else { return Ok(()) };
        let (rig, place) = (trees.rig, (trees.town, tree.path()));
        let run_name = run.map(RunId::to_string).unwrap_or_default();
        let wrapped = WrappedCommand { rig, place, run: &run_name, environment };
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
        let mut tried = tried.map_err(|error| failed(rig, &error.to_string(), ""))?;
        let is_successful = tried.status.is_some_and(|status| status.success());
        if !is_successful {
            let accounts = trees.town.read(|reader| Ok(reader.accounts_to_mask()?))?;
            tried.output = SecretMask::of_accounts(&accounts).mask(&tried.output).into_owned();
        }
        if let Some(run) = run.filter(|_| !is_successful) {
            keep_output(trees.town, run, &tried.output);
        }
        match tried.status {
            Some(status) if status.success() => refuse_changes(rig, tree),
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
        for (file, path) in self.files()? {
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
        Ok(hash_parts(parts.iter().map(Vec::as_slice)))
    }
}

/// Keeps the output of a command that failed, for people. The reason of the start has its last lines in any case.
fn keep_output(town: &Town, run: &RunId, output: &str) {
    let files = RunFiles::of(&town.runs_directory(), &run.to_string());
    let _ = gt_executors::private::write(&files.setup_path(), output);
}

fn too_long(limit: Duration) -> String {
    format!("it took longer than {} (scheduler.start_timeout)", format_duration(limit))
}

/// Refuses changes that the command leaves behind: they would be taken for work.
fn refuse_changes(rig: &Rig, tree: &Tree) -> Result<()> {
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
