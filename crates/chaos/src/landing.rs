//! Invariants of landing that hold at any moment, as git and the commands show them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::check::{git, text};
use crate::town::{BROKEN, ChaosTown, RIGS};

/// Looks at the targets and merge requests of a town, again and again.
#[derive(Debug, Default)]
pub(crate) struct LandingWatch {
    /// How many tips of each target were looked at.
    tips: BTreeMap<&'static str, usize>,
    /// Closed beads whose landed commit was found in the target.
    landed: BTreeSet<String>,
    /// The violations.
    pub(crate) violations: BTreeSet<String>,
}

impl LandingWatch {
    /// How many tips of targets were looked at.
    pub(crate) fn tips(&self) -> usize {
        self.tips.values().sum()
    }

    /// Looks once. A command that does not answer, because what it needs was killed, is an error.
    pub(crate) fn look(&mut self, town: &ChaosTown) -> Result<(), String> {
        self.look_at_requests(town)?;
        for (rig, ..) in RIGS {
            self.look_at_tips(town, rig)?;
        }
        self.look_at_closed_beads(town)
    }

    /// Each open request has a state, a reason and a next step, and its accepted commit is kept.
    fn look_at_requests(&mut self, town: &ChaosTown) -> Result<(), String> {
        let requests = town.ask(&["mq", "list"])?;
        for request in requests.as_array().into_iter().flatten() {
            self.violations.extend(not_explained(request));
            let id = text(request, "id");
            let home = town.sandbox.cwd().join(text(request, "rig"));
            // The repository of the builder keeps the outcome of work on its target.
            let repositories = [home.join(".repo.git"), home.join(".repo.git.own")];
            let accepted = text(request, "accepted");
            if repositories.iter().any(|repository| is_kept(town, repository, accepted)) {
                continue;
            }
            // It may have landed or been replaced since.
            let now = town.ask(&["mq", "show", id])?;
            if text(&now, "state") == text(request, "state") {
                self.violations.extend(not_kept(&now, ""));
            }
        }
        Ok(())
    }

    /// Each commit that the target of a rig was ever at passes the check.
    fn look_at_tips(&mut self, town: &ChaosTown, rig: &'static str) -> Result<(), String> {
        let origin = town.origin(rig);
        let log = fs::read_to_string(origin.join("logs/refs/heads/main")).unwrap_or_default();
        let seen = self.tips.entry(rig).or_default();
        for tip in tips(&log).skip(*seen) {
            let files = git(town, &origin, &["ls-tree", "--name-only", tip])?;
            self.violations.extend(red_tip(rig, tip, &files));
            *seen += 1;
        }
        Ok(())
    }

    /// Each bead that is closed as done has landed.
    fn look_at_closed_beads(&mut self, town: &ChaosTown) -> Result<(), String> {
        let beads = town.ask_bd(&["list", "--status", "closed", "--limit", "0"])?;
        for bead in beads.as_array().into_iter().flatten() {
            let id = text(bead, "id");
            let is_new = town.beads.contains_key(id) && !self.landed.contains(id);
            if !is_new || text(bead, "outcome") != "success" {
                continue;
            }
            let request = town.ask(&["mq", "show", id])?;
            let origin = town.origin(text(&request, "rig"));
            let is_reachable = |commit: &str| {
                git(town, &origin, &["merge-base", "--is-ancestor", commit, "main"]).is_ok()
            };
            match not_landed(id, &request, is_reachable) {
                Some(violation) => drop(self.violations.insert(violation)),
                None => drop(self.landed.insert(id.to_owned())),
            }
        }
        Ok(())
    }
}

/// Whether a reference of a repository contains a commit.
fn is_kept(town: &ChaosTown, repository: &Path, commit: &str) -> bool {
    let references = git(town, repository, &["for-each-ref", "--contains", commit]);
    references.is_ok_and(|references| not_kept(&Value::Null, &references).is_none())
}

/// The commits that a branch was moved to, from its reflog.
fn tips(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter_map(|line| line.split(' ').nth(1))
}

/// A tip of a target on which the check fails.
fn red_tip(rig: &str, tip: &str, files: &str) -> Option<String> {
    let broken = files.lines().find(|file| file.ends_with(BROKEN))?;
    Some(format!("main of {rig} was at {tip}, which has {broken}"))
}

/// A request without a state, a reason or a next step.
fn not_explained(request: &Value) -> Option<String> {
    let is_missing = |key: &&str| text(request, key).is_empty();
    let missing = ["state", "reason", "next"].into_iter().find(is_missing)?;
    Some(format!("a merge request has no {missing}: {request}"))
}

/// A request whose accepted commit none of these references has.
fn not_kept(request: &Value, references: &str) -> Option<String> {
    let is_lost = references.trim().is_empty();
    is_lost.then(|| format!("the accepted commit is in no branch and no rescue: {request}"))
}

/// A bead that is closed as done, though its last request has not landed or its landed commit is not in the target.
fn not_landed(bead: &str, request: &Value, is_reachable: impl Fn(&str) -> bool) -> Option<String> {
    let landed = text(request, "landed");
    let is_landed = text(request, "state") == "landed" && !landed.is_empty();
    let is_there = is_landed && is_reachable(landed);
    (!is_there).then(|| format!("{bead} is closed and its work is not on main: {request}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tip_that_does_not_pass_the_check_is_found() {
        let log = "0 aaa A <a@b> 1 +0000\tpush\naaa bbb A <a@b> 2 +0000\tpush\n";
        assert_eq!(tips(log).collect::<Vec<_>>(), ["aaa", "bbb"]);
        assert_eq!(red_tip("web", "aaa", "README.md\nwe-1#1.txt\n"), None);
        assert!(red_tip("web", "bbb", "README.md\nwe-1.broken\n").is_some());
    }

    #[test]
    fn a_request_without_state_reason_or_next_step_is_found() {
        let request = json!({"id": "we-1@1", "state": "held", "reason": "because", "next": "wait"});
        assert_eq!(not_explained(&request), None);
        for key in ["state", "reason", "next"] {
            let mut without = request.clone();
            without[key] = json!("");
            assert!(not_explained(&without).is_some_and(|found| found.contains(key)), "{key}");
        }
    }

    #[test]
    fn accepted_work_that_no_reference_has_is_found() {
        let request = json!({"id": "we-1@1", "accepted": "aaa"});
        assert_eq!(not_kept(&request, "aaa commit\trefs/heads/x\n"), None);
        assert!(not_kept(&request, "\n").is_some());
    }

    #[test]
    fn a_bead_that_is_closed_before_its_commit_is_in_the_target_is_found() {
        let landed = json!({"id": "we-1@1", "state": "landed", "landed": "aaa"});
        assert_eq!(not_landed("we-1", &landed, |commit| commit == "aaa"), None);
        assert!(not_landed("we-1", &landed, |_| false).is_some());
        let open = json!({"id": "we-1@1", "state": "landing", "landed": ""});
        assert!(not_landed("we-1", &open, |_| true).is_some());
    }
}
