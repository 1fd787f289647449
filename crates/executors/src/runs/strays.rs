//! What is left of a run that does not hold its lock: daemons that have closed everything they inherited.
//!
//! While its supervisor lives, all of them are its descendants, and it ends them. When it was killed, nothing but their
//! environment tells to whom they belong, and they may go on writing into a tree that somebody else is to have.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, getpid};

use super::RunFiles;
use super::orphan::Record;
use super::processes::{self, Process};
use super::remains::{Left, end_all};

/// How long after killing the last of them their end is waited for.
const KILLED_PATIENCE: Duration = Duration::from_secs(5);

/// A run of which nothing holds the lock any more, and something may be left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// Its name, as its worker knows it.
    pub run: String,
    /// The tree that it had, if it had one.
    pub tree: Option<PathBuf>,
}

/// What is left of such a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strays {
    /// The numbers of the processes that bear its name.
    pub of_run: Vec<i32>,
    /// The numbers of others that are in its tree.
    pub in_tree: Vec<i32>,
}

impl RunFiles {
    /// Whether the supervisor of a run did not live to end what its agent left behind.
    pub fn was_cut_off(&self) -> bool {
        let text = fs::read_to_string(self.lock_path()).unwrap_or_default();
        Record::parse(&text).is_some()
    }
}

/// Looks once through all processes for what is left of these runs of the town at `root`. Finds nothing where the kernel
/// does not tell.
pub fn strays_of(root: &Path, suspects: &[Suspect]) -> Vec<Strays> {
    by_suspect(suspects, look(root, suspects))
}

/// A process that has to do with a suspect, with which, and whether it bears its name.
type Found = (Process, usize, bool);

fn by_suspect(suspects: &[Suspect], processes: Vec<Found>) -> Vec<Strays> {
    let mut found = vec![Strays::default(); suspects.len()];
    for (process, at, is_of_run) in processes {
        let strays = &mut found[at];
        let list = if is_of_run { &mut strays.of_run } else { &mut strays.in_tree };
        list.push(process.pid.as_raw_pid());
    }
    found
}

/// Ends what bears the name of one of these runs: `TERM`, `grace`, `KILL`. Returns what is left of them then; others
/// that are in their trees are left alone.
pub fn end_strays(root: &Path, suspects: &[Suspect], grace: Duration) -> Vec<Strays> {
    // Most often there is nothing, and a look takes its time where there are many processes.
    let found = look(root, suspects);
    if !found.iter().any(|(_, _, is_of_run)| *is_of_run) {
        return by_suspect(suspects, found);
    }
    end_all(grace, Some(KILLED_PATIENCE), || {
        let found = look(root, suspects).into_iter();
        let processes = found.filter(|(_, _, is_of_run)| *is_of_run).map(|(one, ..)| one).collect();
        Left { processes, group: None }
    });
    strays_of(root, suspects)
}

/// The processes that have to do with one of the suspects.
fn look(root: &Path, suspects: &[Suspect]) -> Vec<Found> {
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
    let our_name = program_name(Path::new("/proc/self"));
    let mut found = Vec::new();
    for process in all.iter().filter(|process| !process.is_over) {
        let directory = format!("/proc/{}", process.pid.as_raw_pid());
        let directory = Path::new(&directory);
        let is_ours = fs::metadata(directory).is_ok_and(|file| file.uid() == user);
        // Whoever asks is not what is left of anything.
        if !is_ours || ancestors.contains(&process.pid) {
            continue;
        }
        // What has no program is of the kernel.
        let Some(name) = program_name(directory) else { continue };
        if is_machinery(&name, our_name.as_deref()) {
            continue;
        }
        let environment = fs::read(directory.join("environ")).unwrap_or_default();
        let at = suspects.iter().position(|suspect| is_of(&environment, &suspect.run, root));
        if let Some(at) = at {
            found.push((*process, at, true));
            continue;
        }
        let Ok(place) = fs::read_link(directory.join("cwd")) else { continue };
        let is_inside =
            |tree: &Option<PathBuf>| tree.as_ref().is_some_and(|t| place.starts_with(t));
        if let Some(at) = trees.iter().position(is_inside) {
            found.push((*process, at, false));
        }
    }
    found
}

/// Whether these variables are those of a process of this run, of this town: others have runs of the same name.
fn is_of(environment: &[u8], run: &str, root: &Path) -> bool {
    let value = |name: &[u8]| {
        let mut variables = environment.split(|byte| *byte == 0);
        variables.find_map(|variable| variable.strip_prefix(name)?.strip_prefix(b"="))
    };
    // Whoever tells people about a run is not its worker, though it knows its name.
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

/// Whether a program is one that works for all runs, whoever started it: our own, or a server of sessions.
fn is_machinery(name: &[u8], our_name: Option<&[u8]>) -> bool {
    name.starts_with(b"tmux") || Some(name) == our_name
}

/// What the program of a process is called.
fn program_name(directory: &Path) -> Option<Vec<u8>> {
    let program = fs::read_link(directory.join("exe")).ok()?;
    let name = program.file_name()?.as_bytes();
    // What was replaced while it runs is called like this.
    Some(name.strip_suffix(b" (deleted)").unwrap_or(name).to_vec())
}

/// This process, and those that it comes from.
fn ancestors(all: &[Process]) -> Vec<Pid> {
    let mut line = vec![getpid()];
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

    #[cfg(target_os = "linux")]
    #[test]
    fn what_bears_the_name_of_a_run_is_found_and_ended_and_what_is_in_its_tree_is_found() {
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
        let suspect = |run: &str, tree| Suspect { run: run.to_owned(), tree };
        let suspects = [suspect("we-c#1", None), suspect("we-a#1", Some(tree))];

        let found = strays_of(town.path(), &suspects);
        assert_eq!(found[0], Strays::default());
        assert_eq!(found[1], Strays { of_run: vec![number(&one)], in_tree: vec![number(&other)] });

        let left = end_strays(town.path(), &suspects, Duration::from_mins(1));
        assert_eq!(left[1], Strays { of_run: vec![], in_tree: vec![number(&other)] });
        assert!(!one.wait().unwrap().success());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
