//! The origin of a rig: a graph of commits in memory, and branches that others move as well.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};

use gt_executors::git::{
    AppliedAs, CandidateBuild, CandidateMember, Commit, LandMethod, LandedRange, MemberOutcome,
};

use crate::hosting::SimulatedHosting;
use crate::merging::TARGET;

/// So many files are in a repository.
pub(crate) const FILES: u64 = 9;

/// The content of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SimulatedContent {
    /// No two changes write the same.
    pub(crate) serial: u64,
    /// Checks fail wherever this is.
    pub(crate) is_bad: bool,
    /// Checks fail where both sides are in one tree.
    pub(crate) side: Option<bool>,
}

/// The files of a commit, or those that it changes.
pub(crate) type SimulatedFiles = BTreeMap<u64, SimulatedContent>;

/// A commit.
#[derive(Debug, Clone)]
struct SimulatedCommit {
    parent: Option<Commit>,
    changes: SimulatedFiles,
    files: SimulatedFiles,
    /// The commit of a worker that was put on top of the target as this one.
    copied_from: Option<Commit>,
}

/// An origin, and the clones of it.
#[derive(Debug, Default)]
pub(crate) struct SimulatedOrigin {
    commits: BTreeMap<Commit, SimulatedCommit>,
    /// The newest commit of the target; nothing if the branch was deleted.
    pub(crate) target: Option<Commit>,
    /// The last commit that the target had.
    last_target: Option<Commit>,
    /// The other branches: those of convoys and of pull requests.
    pub(crate) heads: BTreeMap<String, Commit>,
    /// The commits that builders keep under a name.
    kept: BTreeMap<String, Commit>,
    /// The hosting service.
    pub(crate) hosting: SimulatedHosting,
    /// It does not answer.
    pub(crate) is_away: bool,
    /// It answers, and takes no push.
    pub(crate) is_closed: bool,
    /// The branches as each machine has fetched them.
    fetched: BTreeMap<String, BTreeMap<String, Commit>>,
    /// The branches of workers.
    pub(crate) branches: BTreeMap<String, Commit>,
    /// The checks that have passed: the tree, and the definition.
    pub(crate) passed: BTreeSet<(String, String)>,
    made: u64,
}

impl SimulatedOrigin {
    /// An origin with one commit. `number` makes its commits different from those of other origins.
    pub(crate) fn new(number: u64) -> Self {
        let mut origin = Self { made: number << 32, ..Self::default() };
        let plain = SimulatedContent { serial: 0, is_bad: false, side: None };
        let files = (0..FILES).map(|file| (file, plain)).collect();
        let first = origin.commit(None, files, None);
        origin.move_target(Some(first));
        origin
    }

    fn commit(
        &mut self,
        parent: Option<Commit>,
        changes: SimulatedFiles,
        copied_from: Option<Commit>,
    ) -> Commit {
        self.made += 1;
        let name = name_of(self.made);
        let mut files = parent.as_ref().map(|parent| self.files(parent)).unwrap_or_default();
        files.extend(changes.clone());
        let commit = SimulatedCommit { parent, changes, files, copied_from };
        self.commits.insert(name.clone(), commit);
        name
    }

    /// A new commit on top of another.
    pub(crate) fn commit_on(&mut self, parent: &Commit, changes: SimulatedFiles) -> Commit {
        self.commit(Some(parent.clone()), changes, None)
    }

    /// Moves the target, or deletes it.
    pub(crate) fn move_target(&mut self, to: Option<Commit>) {
        if let Some(to) = &to {
            self.last_target = Some(to.clone());
        }
        self.target = to;
    }

    /// Moves a branch, or deletes it.
    pub(crate) fn move_branch(&mut self, branch: &str, to: Option<Commit>) {
        match to {
            to if branch == TARGET => self.move_target(to),
            Some(to) => drop(self.heads.insert(branch.to_owned(), to)),
            None => drop(self.heads.remove(branch)),
        }
    }

    /// The newest commit of a branch.
    pub(crate) fn tip(&self, branch: &str) -> Option<Commit> {
        if branch == TARGET { self.target.clone() } else { self.heads.get(branch).cloned() }
    }

    /// The newest commit of a branch that work begins from. The branch of a convoy is made where the target is.
    pub(crate) fn begin_from(&mut self, branch: &str) -> Option<Commit> {
        let tip = if branch == TARGET { None } else { self.heads.get(branch).cloned() };
        let tip = tip.or_else(|| self.last_target());
        if let Some(tip) = tip.clone().filter(|_| branch != TARGET) {
            self.heads.insert(branch.to_owned(), tip);
        }
        tip
    }

    /// Keeps a commit under a name.
    pub(crate) fn keep(&mut self, name: &str, commit: Commit) {
        self.kept.insert(name.to_owned(), commit);
    }

    pub(crate) fn forget(&mut self, name: &str) {
        self.kept.remove(name);
    }

    pub(crate) fn is_kept(&self, commit: &Commit) -> bool {
        self.kept.values().any(|kept| kept == commit)
    }

    /// The target, or the last commit that it had.
    pub(crate) fn last_target(&self) -> Option<Commit> {
        self.target.clone().or_else(|| self.last_target.clone())
    }

    pub(crate) fn files(&self, commit: &Commit) -> SimulatedFiles {
        self.commits.get(commit).map(|commit| commit.files.clone()).unwrap_or_default()
    }

    pub(crate) fn changes_of(&self, commit: &Commit) -> SimulatedFiles {
        self.commits.get(commit).map(|commit| commit.changes.clone()).unwrap_or_default()
    }

    pub(crate) fn parent(&self, commit: &Commit) -> Option<Commit> {
        self.commits.get(commit)?.parent.clone()
    }

    /// A commit and everything before it, the newest first.
    fn history(&self, from: &Commit) -> Vec<Commit> {
        let mut history = Vec::new();
        let mut next = Some(from.clone());
        while let Some(commit) = next {
            next = self.parent(&commit);
            history.push(commit);
        }
        history
    }

    pub(crate) fn contains(&self, tip: Option<&Commit>, commit: &Commit) -> bool {
        tip.is_some_and(|tip| self.history(tip).contains(commit))
    }

    /// Whether a branch has a commit now, or had it when a machine looked last.
    pub(crate) fn was_seen(&self, branch: &str, commit: &Commit) -> bool {
        let fetched = self.fetched.values().filter_map(|heads| heads.get(branch).cloned());
        let mut tips = fetched.chain(self.tip(branch));
        tips.any(|tip| self.contains(Some(&tip), commit))
    }

    /// The newest commit that two others have in common.
    pub(crate) fn merge_base(&self, one: &Commit, other: &Commit) -> Option<Commit> {
        let known: BTreeSet<Commit> = self.history(other).into_iter().collect();
        self.history(one).into_iter().find(|commit| known.contains(commit))
    }

    /// The name of the tree of a commit.
    pub(crate) fn tree(&self, commit: &Commit) -> Commit {
        let mut hasher = DefaultHasher::new();
        self.files(commit).hash(&mut hasher);
        name_of(hasher.finish())
    }

    /// Whether checks pass on a commit.
    pub(crate) fn is_green(&self, commit: &Commit) -> bool {
        let files = self.files(commit);
        let has = |side| files.values().any(|content| content.side == Some(side));
        let is_red = files.values().any(|content| content.is_bad) || (has(true) && has(false));
        !is_red
    }

    /// A machine asks for all branches.
    pub(crate) fn fetch(&mut self, machine: &str) {
        let mut heads = self.heads.clone();
        heads.extend(self.target.clone().map(|tip| (TARGET.to_owned(), tip)));
        self.fetched.insert(machine.to_owned(), heads);
    }

    /// A branch as a machine has fetched it.
    pub(crate) fn fetched(&self, machine: &str, branch: &str) -> Option<Commit> {
        self.fetched.get(machine)?.get(branch).cloned()
    }

    /// The commits of a range, the oldest first.
    fn range(&self, base: Option<&Commit>, tip: &Commit, known: &BTreeSet<Commit>) -> Vec<Commit> {
        let mut range: Vec<Commit> = self
            .history(tip)
            .into_iter()
            .take_while(|commit| base != Some(commit) && !known.contains(commit))
            .collect();
        range.reverse();
        range
    }

    /// Whether the commits from `before` to `after` make the changes of work that began at a base.
    pub(crate) fn is_same_work(
        &self,
        (base, work): (&Commit, &Commit),
        (before, after): (&Commit, &Commit),
    ) -> bool {
        let changes = |range: Vec<Commit>| -> Vec<SimulatedFiles> {
            range.iter().map(|commit| self.changes_of(commit)).collect()
        };
        let known: BTreeSet<Commit> = self.history(before).into_iter().collect();
        changes(self.range(Some(base), work, &known)) == changes(self.range(None, after, &known))
    }

    /// Whether work applies to a commit.
    pub(crate) fn applies(&mut self, tip: &Commit, commit: &Commit) -> bool {
        !matches!(self.merge(tip, commit, LandMethod::Rebase), MemberOutcome::Conflict { .. })
    }

    /// Puts work on top of a commit, from where their histories part.
    pub(crate) fn merge(
        &mut self,
        tip: &Commit,
        work: &Commit,
        method: LandMethod,
    ) -> MemberOutcome {
        self.apply(tip, work, None, method)
    }

    /// Undoes the commits of a range on top of a commit.
    pub(crate) fn revert(&mut self, tip: &Commit, range: &LandedRange) -> MemberOutcome {
        let (before, after) = (self.files(&range.before), self.files(&range.after));
        let current = self.files(tip);
        let mut undone = SimulatedFiles::new();
        for (file, landed) in after {
            let Some(old) = before.get(&file).filter(|old| **old != landed) else { continue };
            match current.get(&file) {
                Some(there) if *there == landed => drop(undone.insert(file, *old)),
                Some(there) if there == old => {}
                _ => {
                    let paths = vec![format!("file-{file}").into()];
                    return MemberOutcome::Conflict { paths, since: None, has_merges: false };
                }
            }
        }
        if undone.is_empty() {
            return MemberOutcome::AlreadyThere;
        }
        let after = self.commit_on(tip, undone);
        let (commits, applied_as) = (Vec::new(), AppliedAs::Squashed);
        MemberOutcome::Applied { before: tip.clone(), after, commits, applied_as }
    }

    pub(crate) fn build(
        &mut self,
        base: &Commit,
        members: &[CandidateMember],
        method: LandMethod,
    ) -> CandidateBuild {
        let mut tip = base.clone();
        let mut outcomes = Vec::new();
        for member in members {
            let outcome = self.apply(&tip, &member.commit, member.base.as_ref(), method);
            if let MemberOutcome::Applied { after, .. } = &outcome {
                tip = after.clone();
            }
            outcomes.push(outcome);
        }
        CandidateBuild { tree: self.tree(&tip), tip, members: outcomes, unsigned: None }
    }

    /// Puts work on top of a commit.
    fn apply(
        &mut self,
        tip: &Commit,
        work: &Commit,
        base: Option<&Commit>,
        method: LandMethod,
    ) -> MemberOutcome {
        let known: BTreeSet<Commit> = self.history(tip).into_iter().collect();
        let mut after = tip.clone();
        let mut commits = Vec::new();
        for original in self.range(base, work, &known) {
            let Some(SimulatedCommit { parent, changes, .. }) =
                self.commits.get(&original).cloned()
            else {
                return MemberOutcome::Unreadable(format!("there is no commit {original}"));
            };
            let before = parent.map(|parent| self.files(&parent)).unwrap_or_default();
            let current = self.files(&after);
            let mut own = SimulatedFiles::new();
            for (file, content) in changes {
                let there = current.get(&file);
                if there == Some(&content) {
                    continue;
                }
                if there != before.get(&file) {
                    let paths = vec![format!("file-{file}").into()];
                    return MemberOutcome::Conflict { paths, since: None, has_merges: false };
                }
                own.insert(file, content);
            }
            if !own.is_empty() {
                after = self.commit(Some(after), own, Some(original.clone()));
                commits.push((original, after.clone()));
            }
        }
        if commits.is_empty() {
            return MemberOutcome::AlreadyThere;
        }
        let applied_as = match method {
            LandMethod::Rebase => AppliedAs::Commits,
            LandMethod::Squash | LandMethod::Merge => {
                let known: BTreeSet<Commit> = self.history(tip).into_iter().collect();
                let all = self.range(None, &after, &known).into_iter();
                let all = all.filter_map(|commit| Some(self.commits.get(&commit)?.changes.clone()));
                let all: SimulatedFiles = all.flatten().collect();
                after = self.commit(Some(tip.clone()), all, Some(work.clone()));
                AppliedAs::Squashed
            }
        };
        MemberOutcome::Applied { before: tip.clone(), after, commits, applied_as }
    }

    /// Puts work on top of a commit as it is, whether the target has it or not.
    pub(crate) fn copy(&mut self, tip: &Commit, work: &Commit) -> Commit {
        let changes = self.changes_of(work);
        self.commit(Some(tip.clone()), changes, Some(work.clone()))
    }

    /// The commit of a worker that a commit was copied from, also by way of other branches.
    fn original_of(&self, commit: &Commit) -> Option<Commit> {
        let mut original = self.commits.get(commit)?.copied_from.clone()?;
        while let Some(earlier) = self.commits.get(&original).and_then(|it| it.copied_from.clone())
        {
            original = earlier;
        }
        Some(original)
    }

    /// A commit of a worker that the target has more than once.
    pub(crate) fn landed_twice(&self) -> Option<Commit> {
        let mut seen = BTreeSet::new();
        let history = self.target.as_ref().map(|tip| self.history(tip)).unwrap_or_default();
        let mut copies = history.iter().filter_map(|commit| self.original_of(commit));
        copies.find(|original| !seen.insert(original.clone()))
    }
}

fn name_of(number: u64) -> Commit {
    // A number has at most 16 digits in hexadecimal.
    Commit::parse(&format!("{number:040x}")).expect("forty digits are a commit")
}
