//! Runs the checks of a rig on a commit, as far as they have not passed before.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_core::checks::{
    CheckDefinition, CheckError, CheckPurpose, CheckResult, CheckRun, CommandEnd, check_cache_key,
    hash_parts, judge_check,
};
use gt_core::secret_mask::SecretMask;
use gt_core::{Rig, RigSlug, Timestamp};
use gt_executors::git::{Commit, GitError, Repository};
use gt_executors::machine::free_bytes;

use super::command::{CheckCommand, FinishedCheckCommand};
use super::environment::{environment_of, withheld};
use super::log;
use crate::trees::{CheckTree, CheckTrees, ports_of_checks};
use gt_town::hosts::host_of;
use gt_town::rigs::checks;
use gt_town::settings::layers;
use gt_town::tree_paths::{Trees, git_failed};
use gt_town::{Result, Town, with_causes};

/// The last lines of an output that are shown.
const LAST_LINES_MAX: usize = 100;

/// A file system with less room than this is full.
const ROOM_BYTES_MIN: u64 = 1 << 20;

/// Checks to be run.
pub struct CheckOrder<'a> {
    /// The town.
    pub town: &'a Town,
    /// Our program, which watches over the processes of a check.
    pub program: &'a Path,
    /// The rig.
    pub rig: &'a Rig,
    /// The commit, which the repository of the rig has.
    pub commit: &'a Commit,
    /// The purpose of the run.
    pub purpose: CheckPurpose,
    /// The name of the only check that is run, if not all are.
    pub only: Option<&'a str>,
    /// Asked about once a second; a check whose caller says no is ended.
    pub keep_going: &'a dyn Fn() -> bool,
}

/// The result of a check on a commit.
#[derive(Debug, Clone)]
pub struct CheckReport {
    /// The check.
    pub check: CheckDefinition,
    /// The last run of it that counts; an earlier one if it was not run again.
    pub run: CheckRun,
    /// Whether it was not run, because it passed before on the same contents.
    pub cached: bool,
    /// The last lines of its output, or why it could not run; empty if it was not run.
    pub last_lines: String,
}

impl CheckReport {
    /// Whether it has passed, now or before.
    pub fn is_passed(&self) -> bool {
        self.run.result == CheckResult::Passed
    }
}

/// A check with the key of its result on a commit.
struct PlannedCheck {
    check: CheckDefinition,
    cache_key: String,
}

/// Runs the checks of a rig on a commit in their order, up to the first that does not pass. Those that passed before on the
/// same contents are not run.
pub fn run_checks(order: &CheckOrder<'_>) -> Result<Vec<CheckReport>> {
    let CheckOrder { town, rig, commit, .. } = *order;
    // The results are ours, also where a worker asked for them.
    let town = &town.as_system();
    let mut definitions = checks(town, &rig.slug)?;
    definitions.retain(|check| order.only.is_none_or(|only| check.name == only));
    if definitions.is_empty() {
        return Ok(Vec::new());
    }
    let trees = CheckTrees::of(town, rig)?;
    let repository = trees.repository()?;
    let tree_hash = tree_of(rig, &repository, commit)?;
    let setup = trees.setup_hash()?;
    let plan = plan(rig, &repository, commit, &tree_hash, &setup, definitions)?;
    let runner = Runner {
        order,
        town,
        trees: &trees,
        repository: &repository,
        tree_hash: &tree_hash,
        host: host_of(town)?,
        grace: layers(town)?.worker_kill_grace()?,
        mask: log::secret_mask(town)?,
    };
    let mut reports = Vec::new();
    let mut tree = None;
    for planned in plan {
        let report = match runner.cached(&planned)? {
            Some(report) => report,
            None => runner.check(&planned, &mut tree)?,
        };
        let is_passed = report.is_passed();
        reports.push(report);
        if !is_passed {
            break;
        }
    }
    Ok(reports)
}

/// The tree of a commit, which may be one of a worker.
fn tree_of(rig: &Rig, repository: &Repository, commit: &Commit) -> Result<String> {
    let tree = repository.tree_of(commit).or_else(|_| {
        repository.import(commit)?;
        repository.tree_of(commit)
    });
    Ok(tree.map_err(git_failed(rig))?.to_string())
}

/// The paths of a rig that need a review and differ between two commits.
pub fn protected_paths(town: &Town, rig: &Rig, from: &Commit, to: &Commit) -> Result<Vec<String>> {
    let Some(trees) = Trees::of(town, rig) else { return Ok(Vec::new()) };
    protected_among(town, rig, || trees.repository().changed_paths(from, to))
}

/// Those of the changed paths of a rig that need a review. The caller is asked only where any do.
pub(crate) fn protected_among(
    town: &Town,
    rig: &Rig,
    changed: impl FnOnce() -> std::result::Result<Vec<PathBuf>, GitError>,
) -> Result<Vec<String>> {
    let protected = layers(town)?.rig_protect(&rig.slug)?;
    if protected.is_empty() {
        return Ok(Vec::new());
    }
    let changed = changed().map_err(git_failed(rig))?;
    let changed = changed.into_iter().map(|path| path.to_string_lossy().into_owned());
    let is_protected = |path: &String| protected.iter().any(|pattern| pattern.matches(path));
    Ok(changed.filter(is_protected).collect())
}

/// The keys of checks on a commit.
fn plan(
    rig: &Rig,
    repository: &Repository,
    commit: &Commit,
    tree: &str,
    setup: &str,
    definitions: Vec<CheckDefinition>,
) -> Result<Vec<PlannedCheck>> {
    let needs_entries = definitions.iter().any(|check| !check.paths.is_empty());
    let entries = if needs_entries {
        repository.entries_of(commit).map_err(git_failed(rig))?
    } else {
        Vec::new()
    };
    let key = |check: &CheckDefinition| {
        if check.paths.is_empty() {
            return check_cache_key(check, tree, setup);
        }
        let concerned = entries.iter().filter(|entry| check.concerns(&entry.path));
        let parts = concerned.flat_map(|entry| [entry.path.as_bytes(), entry.content.as_bytes()]);
        check_cache_key(check, &hash_parts(parts), setup)
    };
    let planned = |check: CheckDefinition| PlannedCheck { cache_key: key(&check), check };
    Ok(definitions.into_iter().map(planned).collect())
}

fn passed(town: &Town, rig: &RigSlug, planned: &PlannedCheck) -> Result<Option<CheckRun>> {
    let PlannedCheck { check, cache_key } = planned;
    town.read(|reader| Ok(reader.passed_check(rig, &check.name, cache_key)?))
}

struct Runner<'a> {
    order: &'a CheckOrder<'a>,
    town: &'a Town,
    trees: &'a CheckTrees<'a>,
    repository: &'a Repository,
    tree_hash: &'a str,
    host: String,
    grace: Duration,
    mask: SecretMask,
}

impl Runner<'_> {
    /// The report of a check that passed before on the same contents.
    fn cached(&self, planned: &PlannedCheck) -> Result<Option<CheckReport>> {
        let run = passed(self.town, &self.order.rig.slug, planned)?;
        let report = |run| CheckReport {
            check: planned.check.clone(),
            run,
            cached: true,
            last_lines: String::new(),
        };
        Ok(run.map(report))
    }

    /// Runs a check, again after a failure as often as it says. `taken` is the tree, once there is one.
    fn check(&self, planned: &PlannedCheck, taken: &mut Option<CheckTree>) -> Result<CheckReport> {
        let label = format!("{}/{}", self.order.rig.slug, planned.check.name);
        let mut environment =
            environment_of(self.town, self.order.rig, self.repository, self.order.program, &label)?;
        let withheld = withheld();
        let without: Vec<&str> = withheld.iter().map(String::as_str).collect();
        let is_first = taken.is_none();
        if taken.is_none() {
            *taken = self.trees.take(self.order.keep_going)?;
        }
        let Some(tree) = taken.as_ref() else {
            let why = "the caller gave up before a worktree for checks was free".to_owned();
            return self.not_run(planned, CheckError::Killed, &why);
        };
        environment.extend(ports_of_checks(self.town, self.order.rig, tree.number())?);
        if is_first {
            // Another process may have run it while we waited.
            if let Some(report) = self.cached(planned)? {
                return Ok(report);
            }
        }
        let prepared = self.prepare(tree, &environment, &without);
        if let Err(error) = prepared {
            return self.not_run(planned, CheckError::Setup, &with_causes(&error));
        }
        let argv = ["sh", "-c", &planned.check.command].map(str::to_owned);
        let argv = self.trees.wrapped(tree, &environment, argv.into())?;
        let command = CheckCommand {
            check: &planned.check,
            argv: &argv,
            tree,
            program: self.order.program,
            environment: &environment,
            without: &without,
            grace: self.grace,
            keep_going: self.order.keep_going,
            mask: &self.mask,
        };
        let mut attempt = 1;
        loop {
            let report = self.attempt(planned, &command, attempt)?;
            if report.run.error == Some(CheckError::DiskFull) {
                // The ignored files in it may be what fills the disk. If it cannot be removed, the next check does it.
                let _ = self.repository.discard_check_tree(tree.tree().path());
            }
            if report.run.result != CheckResult::Failed || attempt > planned.check.retries {
                return Ok(report);
            }
            attempt += 1;
            if let Err(error) = self.trees.reset(tree, self.repository, self.order.commit) {
                return self.not_run(planned, CheckError::Setup, &with_causes(&error));
            }
        }
    }

    fn prepare(
        &self,
        tree: &CheckTree,
        environment: &[(String, String)],
        without: &[&str],
    ) -> Result<()> {
        let failed = git_failed(self.order.rig);
        self.repository.install_fence(self.order.program).map_err(failed)?;
        self.trees.prepare(
            tree,
            self.repository,
            self.order.commit,
            self.tree_hash,
            environment,
            without,
        )
    }

    fn attempt(
        &self,
        planned: &PlannedCheck,
        command: &CheckCommand<'_>,
        attempt: u32,
    ) -> Result<CheckReport> {
        let started_at = self.town.now();
        let (file, path) = log::create(
            self.town,
            self.order.rig,
            &planned.check.name,
            self.order.commit.as_str(),
        )?;
        let FinishedCheckCommand { end, output, duration } = command.run(file)?;
        let is_full = |path: &Path| free_bytes(path).is_some_and(|free| free < ROOM_BYTES_MIN);
        let is_disk_full = output.is_disk_full || is_full(command.tree.tree().path());
        let (result, error) = judge_check(end, &output.last_words, is_disk_full);
        let run = CheckRun {
            result,
            error,
            exit_code: match end {
                CommandEnd::Exited(code) => Some(code),
                CommandEnd::Signalled(_) | CommandEnd::TooLate | CommandEnd::Unknown => None,
            },
            attempt,
            flaky: attempt > 1 && result == CheckResult::Passed,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            log: self.below_town(&path),
            ..self.run_of(planned, started_at)
        };
        self.report(planned, &run, last_lines(&output.last_words))
    }

    /// Records that a check could not run.
    fn not_run(&self, planned: &PlannedCheck, error: CheckError, why: &str) -> Result<CheckReport> {
        // The output of a setup command is in it.
        let why = self.mask.mask(why).into_owned();
        let started_at = self.town.now();
        let (rig, commit) = (self.order.rig, self.order.commit.as_str());
        let log = match log::create(self.town, rig, &planned.check.name, commit) {
            Ok((file, path)) => {
                log::keep(format!("{why}\n").as_bytes(), file, SecretMask::default());
                self.below_town(&path)
            }
            // The reason is in the report.
            Err(_) => String::new(),
        };
        let run = CheckRun { error: Some(error), log, ..self.run_of(planned, started_at) };
        self.report(planned, &run, why)
    }

    fn run_of(&self, planned: &PlannedCheck, started_at: Timestamp) -> CheckRun {
        CheckRun {
            id: 0,
            rig: self.order.rig.slug.clone(),
            name: planned.check.name.clone(),
            definition: planned.check.hash(),
            cache_key: planned.cache_key.clone(),
            commit: self.order.commit.to_string(),
            tree: self.tree_hash.to_owned(),
            purpose: self.order.purpose,
            result: CheckResult::Error,
            error: None,
            exit_code: None,
            attempt: 1,
            flaky: false,
            started_at,
            duration_ms: 0,
            host: self.host.clone(),
            log: String::new(),
        }
    }

    fn report(
        &self,
        planned: &PlannedCheck,
        run: &CheckRun,
        last_lines: String,
    ) -> Result<CheckReport> {
        let run = self.town.write(|writer| Ok(writer.insert_check_run(run)?))?;
        Ok(CheckReport { check: planned.check.clone(), run, cached: false, last_lines })
    }

    fn below_town(&self, path: &Path) -> String {
        path.strip_prefix(self.town.root()).unwrap_or(path).to_string_lossy().into_owned()
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES_MAX)..].join("\n")
}
