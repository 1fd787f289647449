//! Processes of a run that has lost its supervisor and whose lock is free: they have closed everything they inherited.
//!
//! While a supervisor lives, all of them are its descendants, and it ends them. When it was killed, its control group tells
//! which processes are left ([`super::cgroup`]). Where there are no groups, other signs tell: the environment, the session and
//! process group of the agent, and a place or an open file in the tree of the run. A process that is only seen may be that of
//! a person, so it is never sent a signal; but while it is there, no other agent starts on the same bead.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, getpid};

use super::RunFiles;
use super::cgroup::Cgroup;
use super::orphan::LockRecord;
use super::process_ending::{KILLED_PATIENCE, RemainingProcesses, end_all};
use super::processes::{self, Process, descendants};

/// A run whose supervisor died before it could end the processes of its agents, and whose lock is
/// free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// Its name, as its worker knows it.
    run: String,
    /// The tree that it had, if it had one.
    tree: Option<PathBuf>,
    /// Its last agent: number and start.
    agent: Option<(Pid, u64)>,
    cgroup: Option<Cgroup>,
}

impl Suspect {
    /// The run with these files, if its supervisor was cut off. Processes are looked for in `tree` too.
    pub fn of(files: &RunFiles, run: &str, tree: Option<PathBuf>) -> Option<Self> {
        let text = fs::read_to_string(files.lock_path()).unwrap_or_default();
        let record = LockRecord::parse(&text)?;
        let cgroup = record.cgroup.and_then(|path| Cgroup::named(&path, files.root()));
        Some(Self { run: run.to_owned(), tree, agent: record.agent, cgroup })
    }

    /// The same without the tree, if a control group tells reliably which processes are left.
    #[must_use]
    pub fn trusting_control_group(mut self) -> Self {
        if self.cgroup.is_some() {
            self.tree = None;
        }
        self
    }
}

impl RunFiles {
    /// Whether the supervisor of a run died before it could end the processes of its agents.
    pub fn was_cut_off(&self) -> bool {
        let text = fs::read_to_string(self.lock_path()).unwrap_or_default();
        LockRecord::parse(&text).is_some()
    }
}

/// The processes that are left of such a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strays {
    /// The numbers of processes that certainly belong to it.
    pub of_run: Vec<i32>,
    /// The numbers of others that may belong to it: they are in its tree, or in the session of its agent.
    pub seen: Vec<i32>,
}

impl Strays {
    /// The numbers of both kinds.
    pub fn all(&self) -> Vec<i32> {
        [self.of_run.as_slice(), &self.seen].concat()
    }
}

/// Looks once through all processes for those of these runs of the town at `root`. Finds nothing
/// where the kernel does not tell.
pub fn strays_of(root: &Path, suspects: &[Suspect]) -> Vec<Strays> {
    by_suspect(suspects, processes_of_suspects(root, suspects))
}

/// A process that has to do with a suspect, with which, and whether it certainly belongs to it.
type StrayProcess = (Process, usize, bool);

fn by_suspect(suspects: &[Suspect], processes: Vec<StrayProcess>) -> Vec<Strays> {
    let mut found = vec![Strays::default(); suspects.len()];
    for (process, at, is_of_run) in processes {
        let strays = &mut found[at];
        let list = if is_of_run { &mut strays.of_run } else { &mut strays.seen };
        list.push(process.pid.as_raw_pid());
    }
    found
}

/// Ends the processes that certainly belong to one of these runs: `TERM`, `grace`, `KILL`. Returns
/// those that are left then; processes that are only seen are left alone.
pub fn end_strays(root: &Path, suspects: &[Suspect], grace: Duration) -> Vec<Strays> {
    // Most often there is nothing, and a look takes its time where there are many processes.
    let found = processes_of_suspects(root, suspects);
    if !found.iter().any(|(_, _, is_of_run)| *is_of_run) {
        return by_suspect(suspects, found);
    }
    let ancestors = ancestors(&processes::all());
    for cgroup in suspects.iter().filter_map(|suspect| suspect.cgroup.as_ref()) {
        cgroup.end(grace, &ancestors);
    }
    end_all(grace, Some(KILLED_PATIENCE), || {
        let found = processes_of_suspects(root, suspects).into_iter();
        let processes = found.filter(|(_, _, is_of_run)| *is_of_run).map(|(one, ..)| one).collect();
        RemainingProcesses { processes, group: None }
    });
    strays_of(root, suspects)
}

/// The processes that have to do with one of the suspects.
fn processes_of_suspects(root: &Path, suspects: &[Suspect]) -> Vec<StrayProcess> {
    if suspects.is_empty() {
        return Vec::new();
    }
    let all = processes::all();
    let ancestors = ancestors(&all);
    let user = rustix::process::geteuid().as_raw();
    let trees: Vec<Option<PathBuf>> = suspects
        .iter()
        .map(|suspect| suspect.tree.as_ref().and_then(|tree| tree.canonicalize().ok()))
        .collect();
    let members: Vec<Vec<Process>> = suspects
        .iter()
        .map(|suspect| suspect.cgroup.as_ref().map(|group| group.members(&ancestors)))
        .map(Option::unwrap_or_default)
        .collect();
    let our_name = program_name(Path::new("/proc/self"));
    let is_ours = |process: &Process| {
        fs::metadata(directory_of(process)).is_ok_and(|file| file.uid() == user)
    };
    let mut found: Vec<StrayProcess> = Vec::new();
    for process in all.iter().filter(|process| !process.is_over) {
        // The process that asks belongs to no suspect.
        if !is_ours(process) || ancestors.contains(&process.pid) {
            continue;
        }
        let is_member = |members: &Vec<Process>| members.iter().any(|one| one.pid == process.pid);
        if let Some(at) = members.iter().position(is_member) {
            found.push((*process, at, true));
            continue;
        }
        let directory = directory_of(process);
        // A process without a program is one of the kernel.
        let Some(name) = program_name(&directory) else { continue };
        if is_machinery(&name, our_name.as_deref()) {
            continue;
        }
        let environment = fs::read(directory.join("environ")).unwrap_or_default();
        let at = suspects.iter().position(|suspect| is_of(&environment, &suspect.run, root));
        if let Some(at) = at {
            found.push((*process, at, true));
            continue;
        }
        let in_session = suspects.iter().position(|suspect| shares_session(suspect, process));
        let places = places_of(&directory);
        let is_inside = |tree: &PathBuf| {
            places.iter().any(|place| place.starts_with(tree)) || has_file_in(&directory, tree)
        };
        let in_tree = |at: &usize| trees[*at].as_ref().is_some_and(is_inside);
        match in_session {
            // Two signs that do not depend on each other are enough.
            Some(at) => found.push((*process, at, in_tree(&at))),
            None if is_git_of_ours(process, &all, our_name.as_deref()) => {}
            None => found.extend((0..suspects.len()).find(in_tree).map(|at| (*process, at, false))),
        }
    }
    with_descendants(found, &all, &ancestors)
}

/// Adds the children of the found processes: they belong to the same run.
fn with_descendants(
    mut found: Vec<StrayProcess>,
    all: &[Process],
    ancestors: &[Pid],
) -> Vec<StrayProcess> {
    let mut more: Vec<StrayProcess> = Vec::new();
    for (parent, at, is_of_run) in &found {
        for process in descendants(all, parent.pid, &[]) {
            let is_known =
                |known: &[StrayProcess]| known.iter().any(|(other, ..)| other.pid == process.pid);
            let is_asking = ancestors.contains(&process.pid);
            if !process.is_over && !is_asking && !is_known(&found) && !is_known(&more) {
                more.push((process, *at, *is_of_run));
            }
        }
    }
    found.append(&mut more);
    found
}

/// Whether a process is in the session or the process group of the agent of a run. The kernel gives their number to no
/// other process while one is in them.
fn shares_session(suspect: &Suspect, process: &Process) -> bool {
    suspect.agent.is_some_and(|(agent, started)| {
        let is_in = process.session == Some(agent) || process.group == Some(agent);
        is_in && process.started >= started
    })
}

fn directory_of(process: &Process) -> PathBuf {
    PathBuf::from(format!("/proc/{}", process.pid.as_raw_pid()))
}

/// The directories that a process works in, and its program.
fn places_of(directory: &Path) -> Vec<PathBuf> {
    ["cwd", "root", "exe"]
        .iter()
        .filter_map(|name| fs::read_link(directory.join(name)).ok())
        .collect()
}

/// Whether a process has a file of this tree open, as far as we may know.
fn has_file_in(directory: &Path, tree: &Path) -> bool {
    let files = fs::read_dir(directory.join("fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| file.starts_with(tree))
}

/// Whether a process is a git that another command of ours has just started: it does not stay.
fn is_git_of_ours(process: &Process, all: &[Process], our_name: Option<&[u8]>) -> bool {
    let name_of = |process: &Process| program_name(&directory_of(process)).unwrap_or_default();
    let mut current = *process;
    // Git starts git; a chain longer than this is none of ours.
    for _ in 0..8 {
        if !name_of(&current).starts_with(b"git") {
            return false;
        }
        let parent = all.iter().find(|other| Some(other.pid) == current.parent);
        match parent {
            Some(parent) if Some(name_of(parent).as_slice()) == our_name => return true,
            Some(parent) => current = *parent,
            None => return false,
        }
    }
    false
}

/// Whether these variables are those of a process of this run, of this town: others have runs of the same name.
fn is_of(environment: &[u8], run: &str, root: &Path) -> bool {
    let value = |name: &[u8]| {
        let mut variables = environment.split(|byte| *byte == 0);
        variables.find_map(|variable| variable.strip_prefix(name)?.strip_prefix(b"="))
    };
    // A program that sends a notice about a run is not its worker, though it knows its name.
    if value(b"GT_RUN") != Some(run.as_bytes()) || value(b"GT_NOTICE_KEY").is_some() {
        return false;
    }
    value(b"GT_TOWN_ROOT").is_some_and(|named| {
        let named = Path::new(OsStr::from_bytes(named));
        named == root
            || named
                .canonicalize()
                .is_ok_and(|named| root.canonicalize().is_ok_and(|root| named == root))
    })
}

/// Whether a program works for all runs, regardless of its parent: our own, or a server of
/// sessions.
fn is_machinery(name: &[u8], our_name: Option<&[u8]>) -> bool {
    is_session_server(name) || Some(name) == our_name
}

/// Whether a program is a server of sessions.
pub(super) fn is_session_server(name: &[u8]) -> bool {
    name.starts_with(b"tmux")
}

/// The name of the program of a process.
pub(super) fn program_name(directory: &Path) -> Option<Vec<u8>> {
    let program = fs::read_link(directory.join("exe")).ok()?;
    let name = program.file_name()?.as_bytes();
    // The kernel adds this to a program that was replaced while it runs.
    Some(name.strip_suffix(b" (deleted)").unwrap_or(name).to_vec())
}

/// This process, and those that it comes from.
fn ancestors(all: &[Process]) -> Vec<Pid> {
    line_of(getpid(), all)
}

/// A process, and those that it comes from.
pub(super) fn line_of(pid: Pid, all: &[Process]) -> Vec<Pid> {
    let mut line = vec![pid];
    while let Some(parent) = line
        .last()
        .and_then(|last| all.iter().find(|process| process.pid == *last))
        .and_then(|process| process.parent)
        .filter(|parent| !line.contains(parent))
    {
        line.push(parent);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspect(run: &str, tree: Option<PathBuf>) -> Suspect {
        Suspect { run: run.to_owned(), tree, agent: None, cgroup: None }
    }

    #[test]
    fn a_process_belongs_to_the_run_that_its_environment_names_in_this_town() {
        let root = Path::new("/somewhere/town");
        let of =
            |environment: &str, run| is_of(environment.replace('|', "\0").as_bytes(), run, root);
        assert!(of("A=1|GT_RUN=we-a#1|GT_TOWN_ROOT=/somewhere/town|", "we-a#1"));
        for other in [
            "",
            "GT_RUN=we-a#1|",
            "GT_RUN=we-a#1|GT_TOWN_ROOT=/elsewhere/town|",
            "GT_RUN=we-a#12|GT_TOWN_ROOT=/somewhere/town|",
            "GT_RUN=|GT_TOWN_ROOT=/somewhere/town|",
            "GT_RUN=we-a#1|GT_TOWN_ROOT=/somewhere/town|GT_NOTICE_KEY=1|",
            "XGT_RUN=we-a#1|GT_TOWN_ROOT=/somewhere/town|",
            "GT_RUNS=we-a#1|GT_TOWN_ROOT=/somewhere/town|",
        ] {
            assert!(!of(other, "we-a#1"), "{other}");
        }
    }

    #[test]
    fn processes_of_a_run_are_ended_and_those_in_its_tree_are_only_found() {
        use std::process::Stdio;

        use crate::process::command_in;

        let town = tempfile::tempdir().unwrap();
        let tree = town.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let begin = |run: &str, place: &Path| {
            let mut sleep = command_in("sleep", place);
            sleep.arg("600").stdin(Stdio::null());
            sleep.env("GT_RUN", run).env("GT_TOWN_ROOT", town.path());
            sleep.spawn().unwrap()
        };
        let mut one = begin("we-a#1", town.path());
        let mut other = begin("we-b#1", &tree);
        let number = |child: &std::process::Child| i32::try_from(child.id()).unwrap();
        let suspects = [suspect("we-c#1", None), suspect("we-a#1", Some(tree))];

        let found = strays_of(town.path(), &suspects);
        assert_eq!(found[0], Strays::default());
        assert_eq!(found[1], Strays { of_run: vec![number(&one)], seen: vec![number(&other)] });

        let left = end_strays(town.path(), &suspects, Duration::from_mins(1));
        assert_eq!(left[1], Strays { of_run: vec![], seen: vec![number(&other)] });
        assert!(!one.wait().unwrap().success());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    /// Waits until a script that closed everything and left its session says its number.
    fn number_in(file: &Path) -> i32 {
        gt_testkit::wait_until("the process has begun", || {
            fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n'))
        });
        fs::read_to_string(file).unwrap().trim().parse().unwrap()
    }

    fn kill(number: i32) {
        let pid = Pid::from_raw(number).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }

    #[test]
    fn a_process_is_seen_by_its_place_its_program_its_files_and_its_parent() {
        use std::process::Stdio;

        use crate::process::command_in;

        let town = tempfile::tempdir().unwrap();
        let tree = town.path().join("tree");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("open"), "").unwrap();
        fs::copy(command_path("sleep"), tree.join("program")).unwrap();
        // Each has an empty environment and a session of its own.
        let begin = |script: &str, place: &Path| {
            let mut shell = command_in("setsid", place);
            shell.args(["env", "-i", "/bin/sh", "-c", script]).arg(&tree);
            shell.stdin(Stdio::null()).stdout(Stdio::null());
            shell.spawn().unwrap()
        };
        let elsewhere = town.path();
        let waiting = [
            begin("exec /bin/sleep 600", &tree),
            begin("exec \"$0/program\" 600", elsewhere),
            begin("exec 3<\"$0/open\"; exec /bin/sleep 600", elsewhere),
        ];
        let parent = begin("cd / && /bin/sleep 600 & echo $! > \"$0/child\"; wait", &tree);
        let child = number_in(&tree.join("child"));
        let stranger = begin("exec /bin/sleep 600", elsewhere);
        let suspects = [suspect("we-a#1", Some(tree))];

        let mut expected: Vec<i32> = waiting.iter().chain([&parent]).map(of_child).collect();
        expected.push(child);
        expected.sort_unstable();
        gt_testkit::wait_until("all of them are seen, and no other", || {
            let mut seen = strays_of(town.path(), &suspects)[0].clone();
            seen.seen.sort_unstable();
            seen == Strays { of_run: vec![], seen: expected.clone() }
        });
        // Processes that are only seen never get a signal.
        let left = end_strays(town.path(), &suspects, Duration::ZERO);
        assert_eq!(left[0].seen.len(), expected.len());

        kill(child);
        for mut process in waiting.into_iter().chain([parent, stranger]) {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        assert_eq!(strays_of(town.path(), &suspects), [Strays::default()]);
    }

    #[test]
    fn a_process_in_the_session_of_the_agent_is_seen_and_ended_if_it_is_in_the_tree_too() {
        use std::process::Stdio;

        use crate::process::command_in;

        let town = tempfile::tempdir().unwrap();
        let tree = town.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let script = "cd / && env -i /bin/sleep 600 & echo $! > outside; \
                      env -i /bin/sleep 600 & echo $! > inside; wait";
        let mut agent = command_in("setsid", &tree);
        agent.args(["/bin/sh", "-c", script]).stdin(Stdio::null());
        let mut agent = agent.spawn().unwrap();
        let [outside, inside] = ["outside", "inside"].map(|name| number_in(&tree.join(name)));
        let pid = Pid::from_child(&agent);
        let record = processes::find(pid).map(|process| (pid, process.started));
        agent.kill().unwrap();
        agent.wait().unwrap();

        let suspects = [Suspect { agent: record, ..suspect("we-a#1", Some(tree)) }];
        let found = strays_of(town.path(), &suspects);
        assert_eq!(found, [Strays { of_run: vec![inside], seen: vec![outside] }]);
        let left = end_strays(town.path(), &suspects, Duration::from_mins(1));
        assert_eq!(left, [Strays { of_run: vec![], seen: vec![outside] }]);
        kill(outside);
    }

    fn of_child(child: &std::process::Child) -> i32 {
        i32::try_from(child.id()).unwrap()
    }

    fn command_path(name: &str) -> PathBuf {
        ["/bin", "/usr/bin"]
            .iter()
            .map(|place| Path::new(place).join(name))
            .find(|path| path.exists())
            .unwrap()
    }
}
