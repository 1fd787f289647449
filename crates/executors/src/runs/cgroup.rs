//! Control groups of runs: each supervisor moves into a group of its own before it starts an agent, so that no process
//! that the agent starts can leave its run unseen.
//!
//! A process cannot leave its group by a new session, a closed descriptor or an empty environment. Where the unified
//! hierarchy cannot be written, a run has no group, and its processes are looked for by other signs ([`super::strays`]).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use gt_core::hexadecimal::digits_of;
use rustix::process::getpid;
use sha2::{Digest as _, Sha256};

use super::process_ending::{KILLED_PATIENCE, RemainingProcesses, end_all};
use super::processes::{self, Process, pid_of};

/// The first part of the name of every group of a run.
const MARK: &str = "gt-run-";

/// Bytes of the hash of a town in the name of its groups: enough to tell the towns of one machine apart.
const HASH_BYTES: usize = 6;

/// A group that was made may be swept before its supervisor enters it.
const ENTER_TRIES_MAX: u32 = 5;

/// Nesting of groups below that of a run which is followed.
const DEPTH_MAX: u32 = 16;

/// The control group of a supervisor and its agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cgroup {
    directory: PathBuf,
}

/// The group that this process entered as a supervisor.
static ENTERED: OnceLock<Option<Cgroup>> = OnceLock::new();

/// Moves this process into a control group of its own, once. Does nothing where groups cannot be had.
///
/// The first process that changes its group on a machine that has been quiet waits for the kernel for some milliseconds, so
/// a supervisor calls this as soon as it begins.
pub fn enter_control_group(runs_root: &Path) {
    ENTERED.get_or_init(|| Cgroup::enter(runs_root).ok());
}

/// The group that this process has entered and is in, if it has.
pub(super) fn entered() -> Option<&'static Cgroup> {
    let group = ENTERED.get().and_then(Option::as_ref)?;
    let is_in = own_group().is_ok_and(|own| own == group.directory);
    (is_in || move_into(&group.directory).is_ok()).then_some(group)
}

/// Why runs on this machine have no control groups; `None` if they have.
pub fn control_groups_missing() -> Option<String> {
    let base = match base() {
        Ok(base) => base,
        Err(error) => return Some(error.to_string()),
    };
    let probe = base.join(format!("{MARK}probe-{}", std::process::id()));
    let made = fs::create_dir(&probe);
    let _ = fs::remove_dir(&probe);
    let cannot = |error: io::Error| format!("{} cannot be written: {error}", base.display());
    if let Err(error) = made {
        return Some(cannot(error));
    }
    // Moving a process needs this file too.
    fs::OpenOptions::new().write(true).open(base.join("cgroup.procs")).err().map(cannot)
}

/// Calls `act` outside of the control group of a run, where it starts something that outlives the run: the server of all
/// sessions, a daemon, the supervisor of another run. A supervisor returns to its own group afterwards.
pub(crate) fn outside_control_group<T>(act: impl FnOnce() -> T) -> T {
    let leave = || -> io::Result<bool> {
        let (own, base) = (own_group()?, base()?);
        Ok(own != base && move_into(&base).is_ok())
    };
    let has_left = leave().unwrap_or(false);
    let done = act();
    if has_left {
        // Its agents are in the group in any case.
        let _ = entered();
    }
    done
}

impl Cgroup {
    fn enter(runs_root: &Path) -> io::Result<Self> {
        let base = base()?;
        let mark = mark_of(runs_root);
        sweep_in(&base, &mark);
        let started = processes::find(getpid()).map_or(0, |process| process.started);
        let directory = base.join(format!("{mark}{}-{started}", std::process::id()));
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for _ in 0..ENTER_TRIES_MAX {
            match fs::create_dir(&directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            match move_into(&directory) {
                Ok(()) => return Ok(Self { directory }),
                Err(error) => last = error,
            }
        }
        let _ = fs::remove_dir(&directory);
        Err(last)
    }

    /// The group that a record names. A worker can write the record, so that only a group of a run of this town is taken.
    pub(super) fn named(path: &str, runs_root: &Path) -> Option<Self> {
        let directory = PathBuf::from(path);
        let name = directory.file_name()?.to_str()?;
        let is_below = mount().is_ok_and(|(top, _)| directory.starts_with(top));
        let is_plain = !directory.components().any(|part| part == std::path::Component::ParentDir);
        (is_below && is_plain && name.starts_with(&mark_of(runs_root)))
            .then_some(Self { directory })
    }

    pub(super) fn path(&self) -> &Path {
        &self.directory
    }

    /// The processes in it and in groups below it, without this process and the processes that it comes from.
    pub(super) fn members(&self, ancestors: &[rustix::process::Pid]) -> Vec<Process> {
        let mut found = Vec::new();
        collect(&self.directory, DEPTH_MAX, &mut found);
        found.retain(|process| !ancestors.contains(&process.pid) && !process.is_over);
        found
    }

    /// Ends everything in it: `TERM`, `grace`, `KILL`. Says whether nothing is left. An empty group is removed.
    pub(super) fn end(&self, grace: Duration, ancestors: &[rustix::process::Pid]) -> bool {
        let find = || RemainingProcesses { processes: self.members(ancestors), group: None };
        let mut is_over = end_all(grace, Some(Duration::ZERO), find);
        if !is_over {
            if own_group().is_ok_and(|own| !own.starts_with(&self.directory)) {
                // One write also ends processes that fork faster than they can be found.
                let _ = fs::write(self.directory.join("cgroup.kill"), "1");
            }
            is_over = end_all(Duration::ZERO, Some(KILLED_PATIENCE), find);
        }
        remove(&self.directory, DEPTH_MAX);
        is_over
    }
}

/// Removes the empty groups of runs of this town.
pub fn sweep_control_groups(runs_root: &Path) {
    if let Ok(base) = base() {
        sweep_in(&base, &mark_of(runs_root));
    }
}

fn sweep_in(base: &Path, mark: &str) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(mark)) {
            // The kernel refuses to remove a group that has a process.
            remove(&entry.path(), DEPTH_MAX);
        }
    }
}

fn remove(directory: &Path, depth: u32) {
    if depth > 0 && fs::remove_dir(directory).is_err() {
        for below in groups_below(directory) {
            remove(&below, depth - 1);
        }
        let _ = fs::remove_dir(directory);
    }
}

fn groups_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    groups.map(|entry| entry.path()).collect()
}

fn collect(directory: &Path, depth: u32, found: &mut Vec<Process>) {
    let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    found.extend(text.lines().filter_map(pid_of).filter_map(processes::find));
    if depth > 0 {
        for below in groups_below(directory) {
            collect(&below, depth - 1, found);
        }
    }
}

/// Moves this process, with all its threads.
fn move_into(directory: &Path) -> io::Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .open(directory.join("cgroup.procs"))
        .and_then(|mut file| io::Write::write_all(&mut file, b"0"))
}

/// The prefix of the names of one town's groups.
fn mark_of(runs_root: &Path) -> String {
    let path = runs_root.canonicalize().unwrap_or_else(|_| runs_root.to_owned());
    let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
    format!("{MARK}{}-", digits_of(&hash[..HASH_BYTES]))
}

/// The group in which the groups of runs are made: that of this process, or the one around it if this process is part of a run.
fn base() -> io::Result<PathBuf> {
    let own = own_group()?;
    let is_of_run = |group: &Path| {
        group.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(MARK))
    };
    let outermost = own.ancestors().filter(|group| is_of_run(group)).last();
    Ok(outermost.and_then(Path::parent).unwrap_or(&own).to_owned())
}

/// The directory of the group of this process.
fn own_group() -> io::Result<PathBuf> {
    group_of("self")
}

/// The control group of a run of this town that a process is in.
pub(super) fn run_group_of(pid: rustix::process::Pid, runs_root: &Path) -> Option<PathBuf> {
    let group = group_of(&pid.as_raw_pid().to_string()).ok()?;
    let mark = mark_of(runs_root);
    let is_of_run = |group: &&Path| {
        let name = group.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(&mark))
    };
    group.ancestors().filter(is_of_run).last().map(Path::to_owned)
}

fn group_of(process: &str) -> io::Result<PathBuf> {
    let (top, root) = mount()?;
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup"))?;
    own_of(&groups, &top, &root)
        .ok_or_else(|| io::Error::other("this process is in no group of the unified hierarchy"))
}

fn own_of(groups: &str, top: &Path, root: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = path.strip_prefix(root.trim_end_matches('/'))?;
    let below = Path::new(below.trim_start_matches('/'));
    let is_plain = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    is_plain.then(|| if below.as_os_str().is_empty() { top.to_owned() } else { top.join(below) })
}

/// Where the unified hierarchy is mounted, and which group of it is mounted there.
fn mount() -> io::Result<(PathBuf, String)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    mount_of(&mounts).ok_or_else(|| {
        io::Error::other("the unified hierarchy of control groups (cgroup2) is not mounted")
    })
}

/// Reads lines such as `30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw`.
fn mount_of(mounts: &str) -> Option<(PathBuf, String)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, top) = (fields.next()?, fields.next()?);
        // A path with a space is written with its number.
        (after.starts_with("cgroup2 ") && !top.contains('\\'))
            .then(|| (PathBuf::from(top), root.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unified_hierarchy_is_found_among_mounts() {
        let mounts = "29 25 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n\
                      30 25 0:26 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_of(mounts), Some(("/sys/fs/cgroup/unified".into(), "/".to_owned())));
        assert_eq!(mount_of("29 25 0:25 / /sys rw - sysfs sysfs rw\nnonsense\n"), None);
    }

    #[test]
    fn the_own_group_is_below_the_mount() {
        let top = Path::new("/sys/fs/cgroup");
        let own = |groups: &str, root: &str| own_of(groups, top, root);
        assert_eq!(own("4:memory:/a\n0::/\n", "/"), Some(top.to_owned()));
        assert_eq!(own("0::/user/one\n", "/"), Some(top.join("user/one")));
        assert_eq!(own("0::/box/one\n", "/box"), Some(top.join("one")));
        assert_eq!(own("0::/../one\n", "/"), None);
        assert_eq!(own("4:memory:/a\n", "/"), None);
    }

    #[test]
    fn a_record_names_only_groups_of_runs_of_its_town() {
        let town = tempfile::tempdir().unwrap();
        let mark = mark_of(town.path());
        assert!(mark.starts_with(MARK) && mark.ends_with('-'));
        assert_ne!(mark, mark_of(Path::new("/another/town")));
        let Ok((top, _)) = mount() else { return };
        let named = |path: PathBuf| Cgroup::named(path.to_str().unwrap(), town.path());
        assert!(named(top.join(format!("{mark}12-3"))).is_some());
        for wrong in [
            top.join("user.slice"),
            top.join("..").join(format!("{mark}12-3")),
            top.join(format!("{mark}12-3/below")),
            PathBuf::from(format!("/somewhere/{mark}12-3")),
            top.clone(),
        ] {
            assert_eq!(named(wrong.clone()), None, "{}", wrong.display());
        }
    }
}
