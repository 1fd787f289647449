//! What became of the work, from outside: as the commands tell it, as git has it, and as the files are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::town::{ChaosTown, RIGS};

/// What is known of the runs of a town.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// How many ended how.
    pub(crate) by_state: BTreeMap<String, u64>,
}

/// Looks at everything; what is not as it should be.
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

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn array(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("expected an array: {value}"))
}

/// Every bead is closed, and one of its runs is done; none began before those it waits for were closed.
fn beads_are_done_once(town: &ChaosTown, runs: &mut Runs) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    let beads = town.ask_bd(&["list", "--all", "--limit", "0"])?;
    let mut closed_at = BTreeMap::new();
    for bead in array(&beads)?.iter().filter(|bead| text(bead, "status") == "closed") {
        closed_at.insert(text(bead, "id"), text(bead, "closed_at"));
    }
    let all = town.ask(&["run", "list", "--all", "--limit", "0"])?;
    let mut done: BTreeMap<&str, u64> = BTreeMap::new();
    for run in array(&all)? {
        let (bead, state) = (text(run, "bead"), text(run, "state"));
        *runs.by_state.entry(state.to_owned()).or_default() += 1;
        *done.entry(bead).or_default() += u64::from(state == "done");
        if ["starting", "running", "blocked"].contains(&state) {
            violations.push(format!("a run is still {state}: {run}"));
        }
        if town.clock.is_some() {
            continue;
        }
        for need in town.beads.get(bead).into_iter().flatten() {
            // Both are written in one form, by one clock.
            let closed = closed_at.get(need.as_str()).copied().unwrap_or_default();
            if state == "done" && text(run, "created_at") < seconds_of(closed) {
                violations
                    .push(format!("{bead} began before {need} was closed at {closed}: {run}"));
            }
        }
    }
    for bead in town.beads.keys() {
        let times = done.get(bead.as_str()).copied().unwrap_or(0);
        if times != 1 || !closed_at.contains_key(bead.as_str()) {
            violations.push(format!("{bead} was done {times} times, or is not closed"));
        }
    }
    Ok(violations)
}

/// The instant without its fraction, so that two that were written with different precision compare.
fn seconds_of(instant: &str) -> &str {
    instant.split(['.', 'Z']).next().unwrap_or(instant)
}

/// Every bead has one commit on the branch of its origin.
fn commits_have_landed_once(town: &ChaosTown) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    let mut landed: BTreeMap<String, u64> = BTreeMap::new();
    for (rig, _, _) in RIGS {
        let origin = town.origin(rig);
        for subject in git(town, &origin, &["log", "--format=%s", "main"])?.lines() {
            if let Some(bead) = subject.strip_prefix("Work for ") {
                *landed.entry(bead.to_owned()).or_default() += 1;
            }
        }
        git(town, &origin, &["fsck", "--connectivity-only", "--no-dangling"])?;
    }
    for bead in town.beads.keys() {
        let times = landed.remove(bead).unwrap_or(0);
        if times != 1 {
            violations.push(format!("{bead} has {times} commits on main of its origin"));
        }
    }
    violations.extend(landed.into_keys().map(|other| format!("a commit for {other}: nobody's")));
    Ok(violations)
}

/// What a run has written, by the witness that it left, is in a tree, in the trash, in what was saved, or has landed; what
/// git ignores is in a tree or in the trash.
fn nothing_is_lost(town: &ChaosTown) -> Result<Vec<String>, String> {
    let mut on_disk = BTreeSet::new();
    let mut in_git = BTreeSet::new();
    for (rig, _, _) in RIGS {
        let home = town.sandbox.cwd().join(rig);
        collect(&home, &mut on_disk);
        for repository in [home.join(".repo.git"), town.origin(rig)] {
            let refs = git(town, &repository, &["for-each-ref", "--format=%(objectname)"])?;
            let commits: BTreeSet<&str> = refs.lines().collect();
            for commit in commits {
                let files = git(town, &repository, &["ls-tree", "-r", "-l", "-z", commit])?;
                in_git.extend(files.split('\0').filter_map(entry_of));
            }
        }
    }
    let mut violations = Vec::new();
    for witness in fs::read_dir(town.witnesses()).map_err(|error| error.to_string())?.flatten() {
        let run = witness.file_name().to_string_lossy().into_owned();
        // The name of the run and a new line.
        let size = run.len() as u64 + 1;
        let (kept, ignored) = ((format!("{run}.txt"), size), (format!("{run}.log"), size));
        if !on_disk.contains(&kept) && !in_git.contains(&kept) {
            violations.push(format!("{} is nowhere", kept.0));
        }
        if !on_disk.contains(&ignored) && !in_git.contains(&ignored) {
            violations.push(format!("{}, which git ignores, is nowhere", ignored.0));
        }
    }
    Ok(violations)
}

/// Name and size of a file, from a line of `git ls-tree -l`.
fn entry_of(line: &str) -> Option<(String, u64)> {
    let (about, path) = line.split_once('\t')?;
    let size = about.split_whitespace().next_back()?.parse().ok()?;
    Some((path.rsplit('/').next()?.to_owned(), size))
}

/// Names and sizes of the files below a directory. What git keeps for itself is asked of git.
fn collect(directory: &Path, found: &mut BTreeSet<(String, u64)>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && name != ".repo.git" => collect(&path, found),
            Ok(kind) if kind.is_file() => {
                found.extend(entry.metadata().map(|about| (name, about.len())));
            }
            _ => {}
        }
    }
}

fn the_doctor_is_content(town: &ChaosTown) -> Result<Vec<String>, String> {
    let answer = town.ask(&["doctor"])?;
    let wrong = array(&answer)?.iter().filter(|check| text(check, "grade") != "good");
    Ok(wrong.map(|check| format!("gt doctor: {check}")).collect())
}

fn git(town: &ChaosTown, repository: &Path, arguments: &[&str]) -> Result<String, String> {
    let ran = town.sandbox.command("git").args(arguments).dir(repository).run();
    if ran.code == 0 { Ok(ran.stdout) } else { Err(ran.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_git_lists_have_a_name_and_a_size() {
        let line = "100644 blob 5716ca5987cbf97d6bb54920bea6adde242d87e6       4\tdeep/we-1#1.txt";
        assert_eq!(entry_of(line), Some(("we-1#1.txt".to_owned(), 4)));
        assert_eq!(entry_of("160000 commit 5716       -\tmodule"), None);
    }

    #[test]
    fn instants_compare_whatever_their_precision() {
        assert!("2026-01-01T00:00:01.5Z" >= seconds_of("2026-01-01T00:00:01Z"));
        assert!("2026-01-01T00:00:00.9Z" < seconds_of("2026-01-01T00:00:01.2Z"));
    }
}
