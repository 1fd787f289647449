//! The checks of `gt doctor`.

mod fleet;
mod rigs;

pub use fleet::examine_fleet;

use std::path::{Path, PathBuf};

use gt_core::decide::{DiskGuard, HostVerdict, shown_path};
use gt_core::schedule::{TrashState, Trashed};
use gt_core::{BeadId, ExecutorKind};
use gt_executors::git::LargeFiles;
use gt_executors::machine::{UsedRoom, disk_of, used_room};
use gt_executors::process;
use gt_executors::runs::control_groups_missing;

use crate::daemon;
use crate::retention::disk_guard;
use gt_beads::interchange::{is_automatic, is_changed_elsewhere, jsonl_path};
use gt_beads::{dependencies, outbox, store};
use gt_execution::trees;
use gt_scheduling::queue;
use gt_town::deck::{DeckRecord, DeckSettings};
use gt_town::hosts::HostRemark;
use gt_town::{OperationError, Result, Town, UnsentNotices};

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckGrade {
    /// No problem.
    Good,
    /// It works, but deserves attention.
    Warning,
    /// It does not work.
    Problem,
}

/// One check.
#[derive(Debug, Clone)]
pub struct HealthCheck {
    /// The subject of the check.
    pub name: &'static str,
    /// Its result.
    pub grade: CheckGrade,
    /// The finding.
    pub detail: String,
    /// The remedy; empty if none is needed.
    pub fix: String,
    /// The remedy that this program can apply itself.
    pub mend: Option<HealthRemedy>,
}

/// A remedy that loses nothing, so that a program may apply it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthRemedy {
    /// Take the permissions of other users from this directory.
    Tighten(PathBuf),
    /// Make this directory.
    MakeDirectory(PathBuf),
}

impl HealthRemedy {
    /// The deed, as a sentence begins.
    pub fn describe(&self) -> String {
        match self {
            Self::Tighten(path) => {
                format!("take the permissions of others from {}", path.display())
            }
            Self::MakeDirectory(path) => format!("make {}", path.display()),
        }
    }

    /// Applies it.
    pub fn apply(&self) -> Result<()> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| OperationError::File { action, path, source }
        };
        match self {
            Self::Tighten(path) => {
                gt_executors::private::tighten(path).map_err(failed("protect", path))
            }
            Self::MakeDirectory(path) => {
                std::fs::create_dir_all(path).map_err(failed("create", path))
            }
        }
    }
}

impl HealthCheck {
    /// The check of a town that cannot be opened.
    pub fn unopened(why: String) -> Self {
        let fix = "mend what is named there; a file can be replaced by a backup from .gt/backups";
        Self::bad("town", CheckGrade::Problem, why, fix)
    }

    fn good(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            name,
            grade: CheckGrade::Good,
            detail: detail.into(),
            fix: String::new(),
            mend: None,
        }
    }

    fn bad(
        name: &'static str,
        grade: CheckGrade,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { name, grade, detail: detail.into(), fix: fix.into(), mend: None }
    }

    fn mended_by(self, mend: HealthRemedy) -> Self {
        Self { mend: Some(mend), ..self }
    }
}

/// Checks everything that can fail without notice.
pub fn examine(town: &Town) -> Result<Vec<HealthCheck>> {
    let mut checks = vec![HealthCheck::good("town", town.root().display().to_string())];
    checks.push(store_file(town)?);
    if let Some(path) = town.store_path() {
        checks.push(writable(path));
        checks.push(file_system(town));
    }
    checks.extend(private_files(town));
    checks.extend(room(town)?);
    checks.push(copies(town)?);
    // A setting that cannot be read is reported below.
    let remarks = gt_town::hosts::remarks(town).unwrap_or_default();
    checks.extend(remarks.into_iter().map(host_remark));
    checks.extend(database_warnings(town)?);
    checks.push(derived_values(town)?);
    checks.push(circles(town)?);
    let settings = settings(town);
    let has_settings = settings.grade == CheckGrade::Good;
    checks.push(settings);
    for told in gt_town::settings::unused_commands(town, None).unwrap_or_default() {
        let fix = "unset the one that is not meant with gt config unset";
        checks.push(HealthCheck::bad("runtime", CheckGrade::Warning, told, fix));
    }
    checks.push(notices(town)?);
    checks.extend(exported_beads(town)?);
    checks.extend(waiting_work(town)?);
    checks.extend(deck(town));
    checks.push(moved_trees(town)?);
    checks.extend(rig_directories(town)?);
    // The agent of a rig is a setting.
    if has_settings {
        checks.extend(rigs::examine(town)?);
    }
    checks.extend(repositories(town)?);
    checks.extend(large_files(town)?);
    checks.push(control_groups(town));
    checks.push(match process::version_of("git", "--version") {
        Some(version) => HealthCheck::good("git", version),
        None => HealthCheck::bad("git", CheckGrade::Problem, "not found", "install git"),
    });
    Ok(checks)
}

fn settings(town: &Town) -> HealthCheck {
    match gt_town::settings::list(town) {
        Ok(_) => HealthCheck::good("settings", "every value is valid"),
        Err(error) => {
            let fix = "correct the file, or the value with gt config set";
            HealthCheck::bad("settings", CheckGrade::Problem, error.to_string(), fix)
        }
    }
}

/// The room that the town takes on its disk, and the room that is left.
fn room(town: &Town) -> Result<Option<HealthCheck>> {
    let Some(disk) = disk_of(town.root()).filter(|_| town.has_directory()) else {
        return Ok(None);
    };
    let rigs = town.read(|reader| Ok(reader.rigs()?))?;
    let of_rigs = |names: &[&str]| {
        let directories = rigs.iter().map(|rig| town.root().join(&rig.path));
        let inside = directories.flat_map(|rig| names.iter().map(move |name| rig.join(name)));
        shown_room(used_room(inside.collect()))
    };
    let logs = used_room(vec![town.runs_directory()]);
    let checks = used_room(vec![town.root().join(gt_town::town::DIRECTORY).join("checks")]);
    let detail = format!(
        "{} MB free; trees take {}, the trash {}, logs of runs {}, logs of checks {}",
        disk.free_mb,
        of_rigs(&["polecats", "checks"]),
        of_rigs(&[".trash"]),
        shown_room(logs),
        shown_room(checks)
    );
    // A setting that cannot be read is a finding of its own.
    let settings = gt_town::settings::layers(town).ok();
    let minimum = settings.and_then(|settings| settings.guard_disk_min_mb().ok()).unwrap_or(0);
    let guard = disk_guard(town, u64::try_from(minimum).unwrap_or(0))?;
    let Some(guard) = guard.filter(DiskGuard::is_shut) else {
        return Ok(Some(HealthCheck::good("room", detail)));
    };
    let wanted = guard.wanted_mb();
    let detail =
        format!("{detail}; nothing starts below {wanted} MB (guard.disk_min_mb: {minimum})");
    let fix = "make room: gt polecat purge, or remove other files of this disk";
    Ok(Some(HealthCheck::bad("room", CheckGrade::Problem, detail, fix)))
}

fn shown_room(room: UsedRoom) -> String {
    let more = if room.is_more { "more than " } else { "" };
    format!("{more}{} MB", room.bytes.div_ceil(1 << 20))
}

/// Work that waits for a daemon that does not run.
fn waiting_work(town: &Town) -> Result<Option<HealthCheck>> {
    // A setting that cannot be read is a finding of its own.
    let Ok(status) = queue::status(town) else { return Ok(None) };
    Ok(daemon::absence(town, &status)?.map(|absence| {
        HealthCheck::bad("daemon", CheckGrade::Warning, absence.to_string(), absence.remedy())
    }))
}

/// Whether other users can read secret files.
fn private_files(town: &Town) -> Option<HealthCheck> {
    let directory = town.root().join(gt_town::town::DIRECTORY);
    if !town.has_directory() {
        return None;
    }
    let is_open = gt_executors::private::is_open_to_others(&directory).unwrap_or(true);
    let shown = directory.display();
    Some(if is_open {
        let detail = format!("{shown} can be read by other users");
        let fix = format!("let its owner run chmod -R go= {shown}");
        HealthCheck::bad("private", CheckGrade::Problem, detail, fix)
            .mended_by(HealthRemedy::Tighten(directory.clone()))
    } else {
        HealthCheck::good("private", format!("{shown} can be read by its owner alone"))
    })
}

fn host_remark(remark: HostRemark) -> HealthCheck {
    HealthCheck::bad("host", CheckGrade::Warning, remark.told, remark.remedy)
}

/// Other directories that could be mistaken for this one. A directory that is itself a copy is a problem until a
/// person decides about it.
fn copies(town: &Town) -> Result<HealthCheck> {
    let found = gt_town::hosts::copies(town)?;
    if found.is_empty() {
        return Ok(HealthCheck::good("host", "no copy of this directory is known"));
    }
    let detail = found.join("; ");
    let Some(former) = gt_town::hosts::show(town)?.former else {
        let fix = "each of them is a host of its own; remove copies that are not needed";
        return Ok(HealthCheck::bad("host", CheckGrade::Warning, detail, fix));
    };
    let fix = match former.verdict {
        // Each copy of a store file has all of the work, and would do it.
        HostVerdict::Copy if town.store_path().is_some() => "remove this copy".to_owned(),
        HostVerdict::Copy => {
            let file = town.root().join(gt_town::town::DIRECTORY).join("host");
            let file = file.display();
            format!("remove this copy, or rm {file} if it is to stay beside the original")
        }
        HostVerdict::Moved | HostVerdict::Same => {
            "gt host adopt takes over the runs that were live there".to_owned()
        }
    };
    Ok(HealthCheck::bad("host", CheckGrade::Problem, detail, fix))
}

/// Whether a run keeps its processes in a control group. This is never a problem: gt works without them.
fn control_groups(town: &Town) -> HealthCheck {
    const NAME: &str = "control groups";
    // Unreadable settings are a finding of their own.
    if town.scheduler_settings().is_ok_and(|settings| !settings.control_groups) {
        return HealthCheck::good(NAME, "not used: worker.control_groups is false");
    }
    HealthCheck::good(
        NAME,
        match control_groups_missing() {
            None => "each run has one, so that every process it starts is found".to_owned(),
            Some(why) => format!(
                "none, because {why}; a process of a lost run is found by its lock, environment, session and tree \
                 instead. A daemon that runs as a service of systemd (gt daemon install) has them"
            ),
        },
    )
}

fn store_file(town: &Town) -> Result<HealthCheck> {
    let found = town.store().check_file()?;
    Ok(match found.as_slice() {
        [] => {
            let detail =
                format!("{}, schema {}, intact", town.store_place(), gt_store::SCHEMA_LEVEL);
            HealthCheck::good("store", detail)
        }
        [first, ..] => {
            let detail = format!("damaged: {first}");
            HealthCheck::bad(
                "store",
                CheckGrade::Problem,
                detail,
                "restore a backup from .gt/backups",
            )
        }
    })
}

/// Settings of the database that could lose committed data.
fn database_warnings(town: &Town) -> Result<Vec<HealthCheck>> {
    let fix = "change the settings of the database";
    let warnings = town.store().warnings()?.into_iter();
    Ok(warnings
        .map(|detail| HealthCheck::bad("database", CheckGrade::Warning, detail, fix))
        .collect())
}

/// Whether the town is writable: a town that can be read may still fail every command that changes something.
fn writable(path: &Path) -> HealthCheck {
    match std::fs::OpenOptions::new().write(true).open(path) {
        Ok(_) => HealthCheck::good("writable", path.display().to_string()),
        Err(error) => {
            let detail = format!("{} cannot be written: {error}", path.display());
            HealthCheck::bad(
                "writable",
                CheckGrade::Problem,
                detail,
                "check the permissions of .gt",
            )
        }
    }
}

/// Locks and shared memory do not work on network file systems.
fn file_system(town: &Town) -> HealthCheck {
    const UNSAFE: [&str; 8] =
        ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "vboxsf", "virtiofs"];
    let kind = file_system_of(town.root()).unwrap_or_else(|| "unknown".to_owned());
    if UNSAFE.contains(&kind.as_str()) {
        let detail = format!("the town is on {kind}, where SQLite's locks are not safe");
        let fix = "move the town to a local disk";
        return HealthCheck::bad("file system", CheckGrade::Problem, detail, fix);
    }
    HealthCheck::good("file system", kind)
}

fn file_system_of(path: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (_, at, kind) = (words.next()?, words.next()?, words.next()?);
        path.starts_with(at).then(|| (at.len(), kind.to_owned()))
    });
    mounted.max().map(|(_, kind)| kind)
}

fn derived_values(town: &Town) -> Result<HealthCheck> {
    let differences = store::differences(town)?;
    Ok(match differences.first.as_slice() {
        [] => HealthCheck::good("derived values", "all as they should be"),
        [first, ..] => {
            let detail = format!("{} differ, for example {first}", differences.count);
            let fix = "gt store check names all of them; export the beads and import them into a \
                       fresh town, and report this";
            HealthCheck::bad("derived values", CheckGrade::Problem, detail, fix)
        }
    })
}

fn circles(town: &Town) -> Result<HealthCheck> {
    // Also those through parts that beads wait for, which an import can bring.
    let circles = dependencies::cycles(town)?;
    Ok(match circles.as_slice() {
        [] => HealthCheck::good("dependencies", "no circles"),
        [first, ..] => {
            let fix = "remove one with bd dep remove; bd dep cycles names all of them";
            let path: Vec<BeadId> =
                first.iter().chain(first.first()).map(|bead| bead.id.clone()).collect();
            HealthCheck::bad("dependencies", CheckGrade::Problem, shown_path(&path), fix)
        }
    })
}

/// The flight deck, if its daemon cannot serve it.
fn deck(town: &Town) -> Option<HealthCheck> {
    let record = DeckRecord::read(town.root()).filter(|record| !record.problem.is_empty())?;
    let is_wanted = DeckSettings::of(town).is_ok_and(|settings| settings.enabled);
    let fix = "end the program that has its port, or move it with gt config set deck.port <port>";
    (is_wanted && crate::daemon::is_running(town))
        .then(|| HealthCheck::bad("deck", CheckGrade::Warning, record.problem, fix))
}

/// The file of beads beside the code, where it is kept current.
fn exported_beads(town: &Town) -> Result<Option<HealthCheck>> {
    const NAME: &str = "export";
    if !town.has_directory() || !town.read(is_automatic)? {
        return Ok(None);
    }
    let path = jsonl_path(town)?;
    Ok(Some(if is_changed_elsewhere(town)? {
        let detail = format!(
            "{} was changed by git or another program, and is not kept current until that is taken over",
            path.display()
        );
        HealthCheck::bad(NAME, CheckGrade::Warning, detail, "bd sync")
    } else {
        HealthCheck::good(NAME, format!("{} is kept current", path.display()))
    }))
}

fn notices(town: &Town) -> Result<HealthCheck> {
    let UnsentNotices { waiting, given_up } = outbox::unsent(town)?;
    let fix =
        "gt outbox list says why; gt outbox test tries the settings, gt outbox retry sends them";
    Ok(match (waiting, given_up) {
        (0, 0) => HealthCheck::good("notices", "all have arrived"),
        (waiting, 0) => HealthCheck::good("notices", format!("{waiting} waiting to be sent")),
        (waiting, given_up) => {
            let detail = format!("{given_up} given up, {waiting} waiting to be sent");
            HealthCheck::bad("notices", CheckGrade::Warning, detail, fix)
        }
    })
}

/// Trees that were moved away are deleted one day; people must learn of it before.
fn moved_trees(town: &Town) -> Result<HealthCheck> {
    let all = trees::trash(town)?;
    let now = town.now();
    let named = |these: &[&Trashed]| {
        let names: Vec<String> =
            these.iter().map(|one| format!("#{} {}/{}", one.number, one.rig, one.name)).collect();
        names.join(", ")
    };
    let stuck: Vec<&Trashed> = all.iter().filter(|one| one.state == TrashState::Moving).collect();
    if !stuck.is_empty() {
        let detail = format!("being moved away, or could not be: {}", named(&stuck));
        let fix = "gt scheduler run tries it again; if it stays so, look at the permissions of the rig's directory";
        return Ok(HealthCheck::bad("trash", CheckGrade::Warning, detail, fix));
    }
    let soon: Vec<&Trashed> = all.iter().filter(|one| trees::is_due_soon(one, now)).collect();
    if !soon.is_empty() {
        let detail = format!("deleted within 3 days: {}", named(&soon));
        let fix = "gt polecat undelete <#number> brings one back";
        return Ok(HealthCheck::bad("trash", CheckGrade::Warning, detail, fix));
    }
    Ok(HealthCheck::good(
        "trash",
        match all.len() {
            0 => "empty".to_owned(),
            count => format!("{count} moved away, none is deleted soon"),
        },
    ))
}

fn rig_directories(town: &Town) -> Result<Vec<HealthCheck>> {
    let mut checks = Vec::new();
    let here = gt_town::hosts::host_of(town)?;
    for (rig, _) in gt_town::rigs::list(town)? {
        if let Some(host) = gt_town::hosts::other_host_of(town, &rig.slug, &here)? {
            let slug = &rig.slug;
            checks.push(if gt_town::hosts::is_known(town, &host)? {
                let detail = format!("{slug} ({}); only {host} works on it", rig.state.as_str());
                HealthCheck::good("rig", detail)
            } else {
                let detail =
                    format!("{slug}: only {host} works on it, and the town has no such host");
                let fix = format!(
                    "gt config unset rig.{slug}.host, or the name that gt host show prints"
                );
                HealthCheck::bad("rig", CheckGrade::Problem, detail, fix)
            });
            continue;
        }
        let directory = town.root().join(&rig.path);
        let is_local = rig.repo.starts_with('/');
        // Agents that pull work have directories of their own. A host that joined later gets one with its first run of the rig.
        let needs_directory = (rig.executor != ExecutorKind::Pull || !rig.repo.is_empty())
            && !gt_town::hosts::is_shared(town);
        checks.push(if needs_directory && !directory.is_dir() {
            let detail = format!("{}: its directory {} is gone", rig.slug, directory.display());
            HealthCheck::bad(
                "rig",
                CheckGrade::Warning,
                detail,
                format!("mkdir {}", directory.display()),
            )
            .mended_by(HealthRemedy::MakeDirectory(directory))
        } else if is_local && !Path::new(&rig.repo).exists() {
            let detail = format!("{}: its repository {} is gone", rig.slug, rig.repo);
            let fix = format!("bring it back, or gt rig dock {}", rig.slug);
            HealthCheck::bad("rig", CheckGrade::Problem, detail, fix)
        } else {
            HealthCheck::good("rig", format!("{} ({})", rig.slug, rig.state.as_str()))
        });
    }
    Ok(checks)
}

/// The repositories that workers share. A damaged one is repaired before the next run of its rig.
fn repositories(town: &Town) -> Result<Vec<HealthCheck>> {
    let mut checks = Vec::new();
    for (rig, _) in gt_town::rigs::list(town)? {
        let Some(problem) = gt_town::tree_paths::repository_problem(town, &rig) else { continue };
        let detail = format!("{}: {problem}", rig.slug);
        let fix = format!(
            "gt repairs it from {} before the next run of the rig; nothing in it is deleted",
            rig.repo
        );
        checks.push(HealthCheck::bad("repository", CheckGrade::Problem, detail, fix));
    }
    Ok(checks)
}

/// Whether git-lfs is installed for projects that use it: without it, workers see pointers instead of files, or
/// commit files that should be pointers.
fn large_files(town: &Town) -> Result<Vec<HealthCheck>> {
    let mut checks = Vec::new();
    for (rig, _) in gt_town::rigs::list(town)? {
        let Some(repository) = gt_town::tree_paths::shared_repository(town, &rig) else { continue };
        let Ok(Some(tip)) = repository.tip(&rig.default_branch) else { continue };
        let bad = |detail: &str, fix: &str| {
            let detail = format!("{} keeps files with git-lfs, {detail}", rig.slug);
            HealthCheck::bad("git-lfs", CheckGrade::Problem, detail, fix)
        };
        match repository.large_files(&tip) {
            Ok(LargeFiles::None) | Err(_) => {}
            Ok(LargeFiles::Ready) => {
                checks.push(HealthCheck::good("git-lfs", rig.slug.to_string()));
            }
            Ok(LargeFiles::NotInstalled) => checks.push(bad(
                "which is not installed here",
                "install git-lfs and run git lfs install",
            )),
            Ok(LargeFiles::NotSetUp) => {
                checks.push(bad("which git does not use yet", "git lfs install"));
            }
        }
    }
    Ok(checks)
}
