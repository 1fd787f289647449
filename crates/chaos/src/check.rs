//! The state of the work, from outside: as the commands tell it, as git has it, and as the files
//! are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::town::{ChaosTown, RIGS};

/// The facts about the runs of a town.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// How many ended how.
    pub(crate) by_state: BTreeMap<String, u64>,
    /// How many merge requests followed the first one of their bead.
    pub(crate) repairs: u64,
}

/// Checks everything; returns the violations.
pub(crate) fn check(town: &ChaosTown) -> (Runs, Vec<String>) {
    let mut runs = Runs::default();
    let mut violations = Vec::new();
    for part in [
        beads_are_done_once(town, &mut runs),
        commits_have_landed_once(town),
        nothing_is_lost(town),
        the_doctor_is_content(town),
    ] {
        match part {
            Ok(found) => violations.extend(found),
            Err(error) => violations.push(error),
        }
    }
    (runs, violations)
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn array(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("expected an array: {value}"))
}

/// The beads that each bead waits for.
type Needs = BTreeMap<String, Vec<String>>;

/// A file and its size.
type FileSize = (String, u64);

fn beads_are_done_once(town: &ChaosTown, runs: &mut Runs) -> Result<Vec<String>, String> {
    let beads = town.ask_bd(&["list", "--all", "--limit", "0"])?;
    let all = town.ask(&["run", "list", "--all", "--limit", "0"])?;
    for run in array(&all)? {
        *runs.by_state.entry(text(run, "state").to_owned()).or_default() += 1;
    }
    let mut requests: BTreeMap<&str, u64> = BTreeMap::new();
    for bead in town.beads.keys() {
        // A bead that was never done has none.
        let last = town.ask(&["mq", "show", bead]).unwrap_or_default();
        let number = text(&last, "id").rsplit('@').next().and_then(|number| number.parse().ok());
        requests.insert(bead.as_str(), number.unwrap_or(0));
    }
    runs.repairs = requests.values().map(|number| number.saturating_sub(1)).sum();
    let mut violations = not_done_once(&town.beads, array(&beads)?, array(&all)?, &requests);
    // By one clock, if it is left alone.
    if town.clock.is_none() {
        violations.extend(too_early(&town.beads, array(&beads)?, array(&all)?));
    }
    Ok(violations)
}

/// Beads that are not closed, or of which not exactly one run is done for each of their merge requests; and runs that have not
/// ended.
fn not_done_once(
    needs: &Needs,
    beads: &[Value],
    runs: &[Value],
    requests: &BTreeMap<&str, u64>,
) -> Vec<String> {
    let mut violations = Vec::new();
    let closed = beads.iter().filter(|bead| text(bead, "status") == "closed");
    let closed: BTreeSet<&str> = closed.map(|bead| text(bead, "id")).collect();
    let mut done: BTreeMap<&str, u64> = BTreeMap::new();
    for run in runs {
        let state = text(run, "state");
        *done.entry(text(run, "bead")).or_default() += u64::from(state == "done");
        if !["done", "failed", "lost", "cancelled"].contains(&state) {
            violations.push(format!("a run is still {state}: {run}"));
        }
    }
    for bead in needs.keys() {
        let times = done.get(bead.as_str()).copied().unwrap_or(0);
        let wanted = requests.get(bead.as_str()).copied().unwrap_or(0);
        if times != wanted || times == 0 {
            violations.push(format!("{bead} was done {times} times for {wanted} merge requests"));
        }
        if !closed.contains(bead.as_str()) {
            violations.push(format!("{bead} is not closed"));
        }
    }
    violations
}

/// Runs that were done and had begun before all that their bead waits for was closed.
fn too_early(needs: &Needs, beads: &[Value], runs: &[Value]) -> Vec<String> {
    let closed_at: BTreeMap<&str, &str> =
        beads.iter().map(|bead| (text(bead, "id"), text(bead, "closed_at"))).collect();
    let mut violations = Vec::new();
    for run in runs.iter().filter(|run| text(run, "state") == "done") {
        let bead = text(run, "bead");
        for need in needs.get(bead).into_iter().flatten() {
            let closed = closed_at.get(need.as_str()).copied().unwrap_or_default();
            if text(run, "created_at") < seconds_of(closed) {
                violations
                    .push(format!("{bead} began before {need} was closed at {closed}: {run}"));
            }
        }
    }
    violations
}

/// The instant without its fraction, so that two that were written with different precision compare.
fn seconds_of(instant: &str) -> &str {
    instant.split(['.', 'Z']).next().unwrap_or(instant)
}

fn commits_have_landed_once(town: &ChaosTown) -> Result<Vec<String>, String> {
    let mut files = String::new();
    for (rig, _, _) in RIGS {
        let origin = town.origin(rig);
        files.push_str(&git(
            town,
            &origin,
            &["log", "--format=", "--name-only", "main", "--", "*.txt"],
        )?);
        git(town, &origin, &["fsck", "--connectivity-only", "--no-dangling"])?;
    }
    Ok(not_landed_once(&town.beads, &files))
}

/// Beads of which no run has a commit on the branch of their origin, and runs that have several. `files` are the files of runs
/// that each commit of the branch changes.
fn not_landed_once(needs: &Needs, files: &str) -> Vec<String> {
    let mut landed: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for run in files.lines().filter_map(|file| file.strip_suffix(".txt")) {
        let bead = run.split('#').next().unwrap_or(run);
        *landed.entry(bead).or_default().entry(run).or_default() += 1;
    }
    let mut violations = Vec::new();
    for bead in needs.keys() {
        let Some(runs) = landed.get(bead.as_str()) else {
            violations.push(format!("{bead} has no commit on main of its origin"));
            continue;
        };
        for (run, times) in runs.iter().filter(|(_, times)| **times > 1) {
            violations.push(format!("{run} has {times} commits on main of its origin"));
        }
    }
    violations
}

/// The files of a run, known by its witness, are in a tree, in the trash, in a rescue, or have
/// landed.
fn nothing_is_lost(town: &ChaosTown) -> Result<Vec<String>, String> {
    let mut found = BTreeSet::new();
    for (rig, _, _) in RIGS {
        let home = town.sandbox.cwd().join(rig);
        collect(&home, &mut found);
        for repository in [home.join(".repo.git"), town.origin(rig)] {
            let refs = git(town, &repository, &["for-each-ref", "--format=%(objectname)"])?;
            let commits: BTreeSet<&str> = refs.lines().collect();
            for commit in commits {
                let files = git(town, &repository, &["ls-tree", "-r", "-l", "-z", commit])?;
                found.extend(files.split('\0').filter_map(entry_of));
            }
        }
    }
    let witnesses = fs::read_dir(town.witnesses()).map_err(|error| error.to_string())?;
    let runs = witnesses.flatten().map(|file| file.file_name().to_string_lossy().into_owned());
    Ok(runs.flat_map(|run| lost(&run, &found)).collect())
}

/// The files of a run that were not found: one that git keeps, and one that it ignores.
fn lost(run: &str, found: &BTreeSet<FileSize>) -> Vec<String> {
    // The name of the run and a new line.
    let size = run.len() as u64 + 1;
    let files = ["txt", "log"].map(|ending| (format!("{run}.{ending}"), size));
    let lost = files.into_iter().filter(|file| !found.contains(file));
    lost.map(|(name, _)| format!("{name} is nowhere")).collect()
}

/// Name and size of a file, from a line of `git ls-tree -l`.
fn entry_of(line: &str) -> Option<FileSize> {
    let (about, path) = line.split_once('\t')?;
    let size = about.split_whitespace().next_back()?.parse().ok()?;
    Some((path.rsplit('/').next()?.to_owned(), size))
}

/// Names and sizes of the files below a directory. Git's own files are skipped: git is asked
/// instead.
fn collect(directory: &Path, found: &mut BTreeSet<FileSize>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !name.starts_with(".repo.git") => collect(&path, found),
            Ok(kind) if kind.is_file() => {
                found.extend(entry.metadata().map(|about| (name, about.len())));
            }
            _ => {}
        }
    }
}

fn the_doctor_is_content(town: &ChaosTown) -> Result<Vec<String>, String> {
    let answer = town.ask(&["doctor"])?;
    // The servers of the chaos run without fsync, which the check of the database tells.
    let is_of_town = |check: &&Value| text(check, "check") != "database";
    let wrong = array(&answer)?.iter().filter(is_of_town);
    let wrong = wrong.filter(|check| text(check, "grade") != "good");
    Ok(wrong.map(|check| format!("gt doctor: {check}")).collect())
}

pub(crate) fn git(
    town: &ChaosTown,
    repository: &Path,
    arguments: &[&str],
) -> Result<String, String> {
    let ran = town.sandbox.command("git").args(arguments).dir(repository).run();
    if ran.code == 0 { Ok(ran.stdout) } else { Err(ran.to_string()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn needs() -> Needs {
        [("we-1".to_owned(), Vec::new()), ("we-2".to_owned(), vec!["we-1".to_owned()])].into()
    }

    fn bead(id: &str, status: &str, second: u32) -> Value {
        json!({"id": id, "status": status, "closed_at": format!("2026-01-01T00:00:0{second}.5Z")})
    }

    fn run(bead: &str, state: &str, second: u32) -> Value {
        let created = format!("2026-01-01T00:00:0{second}.7Z");
        json!({"bead": bead, "state": state, "created_at": created})
    }

    #[test]
    fn work_that_is_done_twice_or_not_at_all_is_found() {
        let beads = [bead("we-1", "closed", 1), bead("we-2", "closed", 2)];
        let runs = [run("we-1", "lost", 0), run("we-1", "done", 0), run("we-2", "done", 1)];
        let once = BTreeMap::from([("we-1", 1), ("we-2", 1)]);
        let violations =
            |beads: &[Value], runs: &[Value]| not_done_once(&needs(), beads, runs, &once);
        assert_eq!(violations(&beads, &runs), [""; 0]);

        let twice = [runs.as_slice(), &[run("we-2", "done", 2)]].concat();
        assert_eq!(violations(&beads, &twice), ["we-2 was done 2 times for 1 merge requests"]);
        let repaired = BTreeMap::from([("we-1", 1), ("we-2", 2)]);
        assert_eq!(not_done_once(&needs(), &beads, &twice, &repaired), [""; 0]);
        let not = "we-2 was done 0 times for 1 merge requests";
        assert_eq!(violations(&beads, &runs[..2]), [not]);
        let open = [bead("we-1", "closed", 1), bead("we-2", "open", 2)];
        assert_eq!(violations(&open, &runs), ["we-2 is not closed"]);
        let live = [runs.as_slice(), &[run("we-1", "running", 2)]].concat();
        assert_eq!(violations(&beads, &live).len(), 1);
    }

    #[test]
    fn work_that_did_not_wait_is_found() {
        let beads = [bead("we-1", "closed", 3), bead("we-2", "closed", 4)];
        assert_eq!(too_early(&needs(), &beads, &[run("we-2", "done", 3)]), [""; 0]);
        assert_eq!(too_early(&needs(), &beads, &[run("we-2", "done", 2)]).len(), 1);
    }

    #[test]
    fn commits_that_landed_twice_or_not_at_all_are_found() {
        let landed = "we-2#1.txt\nwe-2#3.txt\n\nwe-1#1.txt\n";
        assert_eq!(not_landed_once(&needs(), landed), [""; 0]);
        let wrong = not_landed_once(&needs(), "we-2#1.txt\nwe-2#1.txt\n");
        assert_eq!(wrong.len(), 2, "{wrong:?}");
    }

    #[test]
    fn files_that_are_gone_or_cut_off_are_found() {
        let file = |name: &str, size| (name.to_owned(), size);
        let whole = BTreeSet::from([file("we-1#1.txt", 7), file("we-1#1.log", 7)]);
        assert_eq!(lost("we-1#1", &whole), [""; 0]);
        let damaged = BTreeSet::from([file("we-1#1.log", 3)]);
        assert_eq!(lost("we-1#1", &damaged), ["we-1#1.txt is nowhere", "we-1#1.log is nowhere"]);
    }

    #[test]
    fn files_that_git_lists_have_a_name_and_a_size() {
        let line = "100644 blob 5716ca5987cbf97d6bb54920bea6adde242d87e6       4\tdeep/we-1#1.txt";
        assert_eq!(entry_of(line), Some(("we-1#1.txt".to_owned(), 4)));
        assert_eq!(entry_of("160000 commit 5716       -\tmodule"), None);
    }

    #[test]
    fn instants_of_different_precision_compare() {
        assert!("2026-01-01T00:00:01.5Z" >= seconds_of("2026-01-01T00:00:01Z"));
        assert!("2026-01-01T00:00:00.9Z" < seconds_of("2026-01-01T00:00:01.2Z"));
    }
}
