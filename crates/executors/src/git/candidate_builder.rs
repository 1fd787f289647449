//! Puts work on top of a branch, without losing content of either.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::candidate::{
    AppliedAs, CandidateBuild, CandidateMember, LandMethod, LandedRange, MemberOutcome,
    RevertCommit,
};
use super::commit::{Commit, Signature};
use super::commit_graph::CommitGraph;
use super::commit_object::{CommitObject, CommitTrailer, person, with_trailers};
use super::commit_writer::CommitWriter;
use super::error::GitError;
use super::repository::Repository;
use super::tree_merger::{TreeMerge, TreeMerger, empty_tree};

/// A candidate that is being built.
pub(super) struct CandidateBuilder<'a> {
    repository: &'a Repository,
    graph: CommitGraph,
    method: LandMethod,
    merger: TreeMerger<'a>,
    writer: CommitWriter<'a>,
    tip: Commit,
    tree: Commit,
    /// The commits of workers that the tip contains as they are.
    contained: HashSet<Commit>,
}

/// The part of a member that the tip does not have.
struct MemberWork<'a> {
    member: &'a CandidateMember,
    /// Where it began, if that was taken back.
    since: Option<&'a Commit>,
    /// Parents first.
    commits: Vec<(Commit, CommitObject)>,
}

impl MemberWork<'_> {
    fn has_merges(&self) -> bool {
        self.commits.iter().any(|(_, object)| object.parents.len() > 1)
    }

    fn conflict(&self, paths: Vec<PathBuf>) -> MemberOutcome {
        MemberOutcome::Conflict { paths, since: self.since.cloned(), has_merges: self.has_merges() }
    }
}

/// The result of putting commits on top of the tip one by one.
enum ReplayResult {
    Clean { tip: Commit, tree: Commit, commits: Vec<(Commit, Commit)> },
    Conflict(Vec<PathBuf>),
}

impl<'a> CandidateBuilder<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        graph: CommitGraph,
        base: &Commit,
        method: LandMethod,
    ) -> Result<Self, GitError> {
        let merger = TreeMerger::new(repository, base)?;
        let writer = CommitWriter::new(repository, merger.input_directory())?;
        let tree = match graph.tree(base) {
            Some(tree) => tree.clone(),
            None => repository.tree_of(base)?,
        };
        let (tip, contained) = (base.clone(), HashSet::new());
        Ok(Self { repository, graph, method, merger, writer, tip, tree, contained })
    }

    pub(super) fn finish(self, members: Vec<MemberOutcome>) -> CandidateBuild {
        let Self { tip, tree, writer, .. } = self;
        CandidateBuild { tip, tree, members, unsigned: writer.unsigned() }
    }

    /// Applies a member, if it applies.
    ///
    /// If the tip does not contain the base of the work, that base was taken back: only the commits after it come along.
    /// Commits are put on top one by one, unless there are merges among them or something would be missing at the end: a
    /// rebase forgets changes that only a merge has. Then the work is merged, or becomes one commit if a merge would bring
    /// back the commits that were taken back.
    pub(super) fn apply(&mut self, member: &CandidateMember) -> Result<MemberOutcome, GitError> {
        let work = self.work(member);
        if work.commits.is_empty() {
            return Ok(MemberOutcome::AlreadyThere);
        }
        let goes_forward = work.since.is_none()
            && work.commits.iter().any(|(_, object)| object.parents.contains(&self.tip));
        match self.method {
            LandMethod::Rebase if goes_forward => self.move_forward(&work),
            LandMethod::Rebase if !work.has_merges() => self.rebase(&work),
            LandMethod::Rebase | LandMethod::Merge | LandMethod::Squash => {
                let whole = match work.commits.last() {
                    Some((_, object)) if goes_forward => TreeMerge::Clean(object.tree.clone()),
                    _ => self.whole(&work)?,
                };
                match whole {
                    TreeMerge::Clean(tree) => self.combine(&work, tree),
                    TreeMerge::Conflict(paths) => Ok(work.conflict(paths)),
                }
            }
        }
    }

    fn work<'b>(&self, member: &'b CandidateMember) -> MemberWork<'b> {
        let mut reached = self.graph.reach(&member.commit, &self.contained);
        let since = member.base.as_ref().filter(|base| reached.contains(*base));
        if let Some(since) = since {
            let before = self.graph.reach(since, &self.contained);
            reached.retain(|commit| !before.contains(commit));
        }
        let commits = self.graph.in_order(&reached).into_iter();
        let commits = commits.map(|(commit, object)| (commit.clone(), object.clone())).collect();
        MemberWork { member, since, commits }
    }

    /// Takes commits that begin at the tip: they stay as they are but for their trailers and authors. Commits of another
    /// branch of the origin that a merge has brought along stay the same commits, so that the branch counts as merged.
    fn move_forward(&mut self, work: &MemberWork<'_>) -> Result<MemberOutcome, GitError> {
        let newest = &work.member.commit;
        let own =
            if work.has_merges() { Some(self.repository.beyond_origin(newest)?) } else { None };
        let mut became: HashMap<&Commit, Commit> = HashMap::new();
        let mut commits = Vec::new();
        for (commit, object) in &work.commits {
            if own.as_ref().is_some_and(|own| !own.contains(commit)) {
                commits.push((commit.clone(), commit.clone()));
                continue;
            }
            let parents = object.parents.iter();
            let parents =
                parents.map(|parent| became.get(parent).unwrap_or(parent).clone()).collect();
            let rewritten =
                self.rewrite(work.member, commit, object, object.tree.clone(), parents)?;
            became.insert(commit, rewritten.clone());
            commits.push((commit.clone(), rewritten));
        }
        let kept = commits.iter().filter(|(from, to)| from == to).map(|(from, _)| from.clone());
        self.contained.extend(kept);
        let tree = work
            .commits
            .last()
            .map_or_else(|| self.tree.clone(), |(_, object)| object.tree.clone());
        let tip = commits.last().map_or_else(|| self.tip.clone(), |(_, to)| to.clone());
        Ok(self.advance(work, tip, tree, commits, AppliedAs::Commits))
    }

    fn rebase(&mut self, work: &MemberWork<'_>) -> Result<MemberOutcome, GitError> {
        let (tip, tree, commits) = match self.replay(work)? {
            ReplayResult::Clean { tip, tree, commits } => (tip, tree, commits),
            ReplayResult::Conflict(paths) => return Ok(work.conflict(paths)),
        };
        if !self.changes_attributes(work) {
            self.merger.note_same_attributes(&tree, &self.tree);
        }
        // One commit is merged whole. Where there is no clean merge, every commit was replayed, and that is enough.
        if work.commits.len() > 1
            && let TreeMerge::Clean(whole) = self.whole(work)?
            && whole != tree
        {
            return self.combine(work, whole);
        }
        if commits.is_empty() {
            return Ok(MemberOutcome::AlreadyThere);
        }
        Ok(self.advance(work, tip, tree, commits, AppliedAs::Commits))
    }

    fn replay(&mut self, work: &MemberWork<'_>) -> Result<ReplayResult, GitError> {
        let (mut tip, mut tree, mut commits) = (self.tip.clone(), self.tree.clone(), Vec::new());
        for (commit, object) in &work.commits {
            let parent = object.parents.first();
            let before = match parent {
                Some(parent) => self.graph.tree(parent).cloned(),
                None => Commit::parse(empty_tree(commit)),
            };
            let begins_in_tip = parent.is_some_and(|parent| {
                self.graph.new_commit(parent).is_none() || self.contained.contains(parent)
            });
            let picked = match &before {
                Some(before) if *before == tree => TreeMerge::Clean(object.tree.clone()),
                // The parent is the newest commit that both have.
                _ if begins_in_tip => self.merger.merge(&tip, &tree, commit)?,
                Some(before) => self.merger.merge_trees(before, &tree, &object.tree)?,
                None => self.merger.merge(&tip, &tree, commit)?,
            };
            let picked = match picked {
                TreeMerge::Clean(picked) => picked,
                TreeMerge::Conflict(paths) => return Ok(ReplayResult::Conflict(paths)),
            };
            if picked == tree && before.as_ref() != Some(&object.tree) {
                // Its change is there already.
                continue;
            }
            if !self.graph.changes_attributes(commit) {
                self.merger.note_same_attributes(&tree, &picked);
            }
            tip = self.rewrite(work.member, commit, object, picked.clone(), vec![tip])?;
            tree = picked;
            commits.push((commit.clone(), tip.clone()));
        }
        Ok(ReplayResult::Clean { tip, tree, commits })
    }

    /// The tip merged with all of the work. Where commits were taken back, both sides have only the files of the base in
    /// common; otherwise those commits would count as work.
    fn whole(&mut self, work: &MemberWork<'_>) -> Result<TreeMerge, GitError> {
        let newest = &work.member.commit;
        let tree_of = |commit| self.graph.tree(commit).cloned();
        match (work.since.and_then(tree_of), tree_of(newest)) {
            (Some(base), Some(theirs)) => self.merger.merge_trees(&base, &self.tree, &theirs),
            _ => self.merger.merge(&self.tip, &self.tree, newest),
        }
    }

    /// Makes one commit of the tip and the work.
    fn combine(&mut self, work: &MemberWork<'_>, tree: Commit) -> Result<MemberOutcome, GitError> {
        if tree == self.tree {
            return Ok(MemberOutcome::AlreadyThere);
        }
        let member = work.member;
        let merges = work.since.is_none() && self.method != LandMethod::Squash;
        let mut parents = vec![self.tip.clone()];
        parents.extend(merges.then(|| member.commit.clone()));
        let mut trailers = member.trailers.clone();
        if !merges {
            trailers.extend(other_authors(work));
        }
        let message = match &member.message {
            Some(message) => message.clone().into_bytes(),
            None if merges => format!("Merge the work of {}", member.name).into_bytes(),
            None => squashed_message(work),
        };
        let object = CommitObject {
            tree: tree.clone(),
            parents,
            author: self.writer.now(&member.signature),
            encoding: None,
            message: with_trailers(&message, &trailers, &member.name),
        };
        let after = self.writer.write(&object, &member.signature)?;
        if merges {
            self.contained.extend(self.graph.reach(&member.commit, &self.contained));
        }
        let commits =
            work.commits.iter().map(|(commit, _)| (commit.clone(), after.clone())).collect();
        let applied_as = if merges { AppliedAs::Merged } else { AppliedAs::Squashed };
        Ok(self.advance(work, after, tree, commits, applied_as))
    }

    fn advance(
        &mut self,
        work: &MemberWork<'_>,
        after: Commit,
        tree: Commit,
        commits: Vec<(Commit, Commit)>,
        applied_as: AppliedAs,
    ) -> MemberOutcome {
        if !self.changes_attributes(work) {
            self.merger.note_same_attributes(&self.tree, &tree);
        }
        self.tree = tree;
        let before = std::mem::replace(&mut self.tip, after.clone());
        MemberOutcome::Applied { before, after, commits, applied_as }
    }

    fn changes_attributes(&self, work: &MemberWork<'_>) -> bool {
        work.commits.iter().any(|(commit, _)| self.graph.changes_attributes(commit))
    }

    /// The commit with other parents and files, with its trailers and its author; the commit itself if all is the same.
    fn rewrite(
        &mut self,
        member: &CandidateMember,
        commit: &Commit,
        object: &CommitObject,
        tree: Commit,
        parents: Vec<Commit>,
    ) -> Result<Commit, GitError> {
        let author = match object.author_time() {
            Some(time) if is_by(object, member.replaced_author.as_ref()) => {
                [&*person(&member.signature), b" ", time].concat()
            }
            Some(_) => object.author.clone(),
            None => self.writer.now(&member.signature),
        };
        let message = with_trailers(&object.message, &member.trailers, &member.name);
        let rewritten = CommitObject { tree, parents, author, message, ..object.clone() };
        if rewritten == *object {
            return Ok(commit.clone());
        }
        self.writer.write(&rewritten, &member.signature)
    }

    /// Undoes commits, if that applies.
    pub(super) fn revert(
        &mut self,
        landed: &LandedRange,
        how: &RevertCommit,
    ) -> Result<MemberOutcome, GitError> {
        let before = self.repository.tree_of(&landed.before)?;
        let after = self.repository.tree_of(&landed.after)?;
        let tree = match self.merger.merge_trees(&after, &self.tree, &before)? {
            TreeMerge::Clean(tree) => tree,
            TreeMerge::Conflict(paths) => {
                return Ok(MemberOutcome::Conflict { paths, since: None, has_merges: false });
            }
        };
        if tree == self.tree {
            return Ok(MemberOutcome::AlreadyThere);
        }
        let RevertCommit { message, trailers, signature } = how;
        let object = CommitObject {
            tree: tree.clone(),
            parents: vec![self.tip.clone()],
            author: self.writer.now(signature),
            encoding: None,
            message: with_trailers(message.as_bytes(), trailers, "Revert"),
        };
        let reverted = self.writer.write(&object, signature)?;
        self.tree = tree;
        let before = std::mem::replace(&mut self.tip, reverted.clone());
        let commits = vec![(landed.after.clone(), reverted.clone())];
        let applied_as = AppliedAs::Squashed;
        Ok(MemberOutcome::Applied { before, after: reverted, commits, applied_as })
    }
}

/// Whether the author of a commit has the address of this person.
fn is_by(object: &CommitObject, author: Option<&Signature>) -> bool {
    let address = |person: &[u8]| {
        let at = person.iter().position(|byte| *byte == b'<');
        at.map(|at| person[at..].to_vec())
    };
    author.is_some_and(|author| address(object.author_person()) == address(&person(author)))
}

/// The authors of squashed commits who are not the author of the result.
fn other_authors(work: &MemberWork<'_>) -> Vec<CommitTrailer> {
    let member = work.member;
    let mut others: Vec<CommitTrailer> = Vec::new();
    for (_, object) in &work.commits {
        let author = object.author_person();
        if author == person(&member.signature) || is_by(object, member.replaced_author.as_ref()) {
            continue;
        }
        let value = String::from_utf8_lossy(author).into_owned();
        let trailer = CommitTrailer { key: "Co-authored-by".to_owned(), value };
        if !others.contains(&trailer) {
            others.push(trailer);
        }
    }
    others
}

/// The messages of squashed commits, after a first line. One commit keeps its message.
fn squashed_message(work: &MemberWork<'_>) -> Vec<u8> {
    if let [(_, object)] = work.commits.as_slice() {
        return object.message.clone();
    }
    let mut message = format!("The work of {}\n", work.member.name).into_bytes();
    for (_, object) in work.commits.iter().filter(|(_, object)| object.parents.len() < 2) {
        message.push(b'\n');
        message.extend(object.message.trim_ascii());
        message.push(b'\n');
    }
    message
}
