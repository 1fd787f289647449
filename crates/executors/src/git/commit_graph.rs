//! The commits that a branch does not have yet.

use std::collections::{HashMap, HashSet};

use super::commit::{Commit, one_per_line};
use super::commit_object::CommitObject;
use super::error::GitError;
use super::repository::Repository;
use super::tree_merger::ATTRIBUTE_FILES;

/// The commits that some commits have and a base has not.
#[derive(Debug, Default)]
pub(super) struct CommitGraph {
    /// Parents first.
    order: Vec<Commit>,
    /// Those commits, and the parents at which they begin.
    objects: HashMap<Commit, CommitObject>,
    /// The commits that are not in the base.
    new: HashSet<Commit>,
    /// The commits that change attribute files.
    changing_attributes: HashSet<Commit>,
}

impl Repository {
    /// Reads the commits that `tips` have and `base` has not. Our own repository has all of them.
    pub(super) fn commits_beyond(
        &self,
        base: &Commit,
        tips: &[&Commit],
    ) -> Result<CommitGraph, GitError> {
        let mut graph = CommitGraph::default();
        let mut listed = base.to_string();
        if !tips.is_empty() {
            let output = self
                .own_call("list commits")
                .args(["rev-list", "--topo-order", "--reverse", "--boundary"])
                .args(tips.iter().map(|tip| tip.as_str()))
                .args(["--not", base.as_str()])
                .done()?;
            for line in String::from_utf8_lossy(&output).lines() {
                let (hash, is_new) =
                    line.strip_prefix('-').map_or((line, true), |hash| (hash, false));
                graph.order.extend(Commit::parse(hash).filter(|_| is_new));
                listed = format!("{listed}\n{hash}");
            }
        }
        graph.new = graph.order.iter().cloned().collect();
        let read = self.own_call("read commits").args(["cat-file", "--batch"]);
        let output = read.input(format!("{listed}\n")).done()?;
        graph.objects = read_batch(&output).ok_or_else(|| GitError::Failed {
            deed: "read commits".to_owned(),
            message: "a commit is not readable".to_owned(),
        })?;
        Ok(graph)
    }
}

/// Reads the output of `git cat-file --batch`: a line with hash, kind and size, the content, and a line break.
fn read_batch(output: &[u8]) -> Option<HashMap<Commit, CommitObject>> {
    let mut objects = HashMap::new();
    let mut rest = output;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let header = std::str::from_utf8(&rest[..end]).ok()?;
        let mut words = header.split(' ');
        let (hash, _, bytes) = (words.next()?, words.next()?, words.next()?.parse::<usize>().ok()?);
        let content = rest.get(end + 1..end + 1 + bytes)?;
        objects.insert(Commit::parse(hash)?, CommitObject::parse(content)?);
        rest = rest.get(end + 2 + bytes..)?;
    }
    Some(objects)
}

impl CommitGraph {
    /// Finds the commits that change attribute files.
    pub(super) fn find_attribute_changes(
        &mut self,
        repository: &Repository,
    ) -> Result<(), GitError> {
        if self.order.is_empty() {
            return Ok(());
        }
        let input = one_per_line(&self.order);
        let output = repository
            .own_call("compare commits")
            .args(["diff-tree", "--stdin", "-r", "-m", "--root", "--name-only", "--no-renames"])
            .args(["--", ATTRIBUTE_FILES])
            .input(input)
            .done()?;
        // No attribute file has a hash as its name.
        let text = String::from_utf8_lossy(&output);
        self.changing_attributes = text.lines().filter_map(Commit::parse).collect();
        Ok(())
    }

    /// All commits that are not in the base, parents first.
    pub(super) fn commits(&self) -> Vec<(&Commit, &CommitObject)> {
        self.in_order(&self.new)
    }

    /// A commit that is not in the base.
    pub(super) fn new_commit(&self, commit: &Commit) -> Option<&CommitObject> {
        self.new.contains(commit).then(|| self.objects.get(commit)).flatten()
    }

    /// The tree object of a commit of the graph, of one of the parents at which it begins, or of the base.
    pub(super) fn tree(&self, commit: &Commit) -> Option<&Commit> {
        self.objects.get(commit).map(|object| &object.tree)
    }

    pub(super) fn changes_attributes(&self, commit: &Commit) -> bool {
        self.changing_attributes.contains(commit)
    }

    /// The commits that are not in the base and that `tip` contains, without some and what only leads to these.
    pub(super) fn reach(&self, tip: &Commit, without: &HashSet<Commit>) -> HashSet<Commit> {
        let mut found = HashSet::new();
        let mut ahead = vec![tip];
        while let Some(commit) = ahead.pop() {
            if without.contains(commit) || found.contains(commit) {
                continue;
            }
            if let Some(object) = self.new_commit(commit) {
                found.insert(commit.clone());
                ahead.extend(&object.parents);
            }
        }
        found
    }

    /// Commits with their contents, parents first.
    pub(super) fn in_order(&self, commits: &HashSet<Commit>) -> Vec<(&Commit, &CommitObject)> {
        let wanted = self.order.iter().filter(|commit| commits.contains(*commit));
        wanted.filter_map(|commit| Some((commit, self.objects.get(commit)?))).collect()
    }
}
