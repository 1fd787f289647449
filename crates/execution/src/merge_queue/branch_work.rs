//! The work that has landed on the integration branch of a convoy in one rig, and where it is now.

use gt_core::merging::{MergeRequest, RequestState, integration_branch};
use gt_core::{Bead, BeadId, Rig};
use gt_executors::git::Commit;
use gt_store::Reader;

use super::integrate::is_buildable;
use super::machine::MergeRepository;
use gt_town::Result;
use gt_town::tree_paths::git_failed;

/// How many beads are named whose work is missing.
const NAMED_MAX: usize = 5;

/// The work that has landed on the branch of a convoy in one rig.
pub(super) struct BranchWork<'a> {
    rig: &'a Rig,
    branch: String,
    target: String,
    /// The requests that landed on the branch, the last one at the end.
    pub(super) landed: Vec<MergeRequest>,
    /// The requests that bring, or have brought, the branch to its base.
    last: Vec<MergeRequest>,
}

impl<'a> BranchWork<'a> {
    /// The work of a convoy that goes to `target`.
    pub(super) fn of(
        reader: &Reader<'_>,
        convoy: &Bead,
        rig: &'a Rig,
        target: &str,
    ) -> Result<Self> {
        let branch = integration_branch(&convoy.id);
        let mut landed = reader.merge_requests_landed_on(&branch)?;
        landed.retain(|request| request.rig == rig.slug);
        landed.sort_by_key(|request| (request.changed_at, request.candidate, request.position));
        let mut last = reader.merge_requests_of(&convoy.id)?;
        last.retain(|request| request.rig == rig.slug);
        Ok(Self { rig, branch, target: target.to_owned(), landed, last })
    }

    /// The commit that landed last, as far as the store knows.
    pub(super) fn last_commit(&self) -> Option<String> {
        self.landed.last().map(|request| request.landed.clone())
    }

    /// The commit that has all others, as far as the repository has them.
    pub(super) fn newest(&self, repository: &dyn MergeRepository) -> Result<Option<Commit>> {
        let mut newest: Option<Commit> = None;
        for commit in self.landed.iter().rev().filter_map(|it| Commit::parse(&it.landed)) {
            let is_newer = match &newest {
                None => true,
                Some(newest) => self.contains(repository, &commit, newest)?,
            };
            if is_newer {
                newest = Some(commit);
            }
        }
        Ok(newest)
    }

    /// Whether a request that can still land is open.
    pub(super) fn has_open(&self) -> bool {
        self.last.iter().any(|request| request.state.is_open())
    }

    /// The work that is not on the branch, not in its base, and in no request that brings it there.
    pub(super) fn lost(
        &self,
        repository: &dyn MergeRepository,
        tip: Option<&Commit>,
    ) -> Result<Vec<&MergeRequest>> {
        let mut lost = Vec::new();
        for request in &self.landed {
            let Some(commit) = Commit::parse(&request.landed) else { continue };
            let is_on_branch = match tip {
                Some(tip) => self.contains(repository, tip, &commit)?,
                None => false,
            };
            let is_in = |target| repository.origin_has(target, &commit);
            if !is_on_branch
                && !is_in(&self.target).map_err(git_failed(self.rig))?
                && !self.is_brought(repository, request, &commit)?
            {
                lost.push(request);
            }
        }
        Ok(lost)
    }

    /// Whether a request of the convoy has this work, and has landed or can still land.
    fn is_brought(
        &self,
        repository: &dyn MergeRepository,
        work: &MergeRequest,
        commit: &Commit,
    ) -> Result<bool> {
        for last in self.last.iter().filter(|last| is_buildable(last)) {
            let is_over = last.state == RequestState::Landed;
            if !is_over && !last.state.is_open() {
                continue;
            }
            let Some(tip) = Commit::parse(&last.accepted) else { continue };
            // Git may have removed the commits of a branch that arrived long ago.
            let is_forgotten = is_over
                && work.changed_at <= last.created_at
                && !repository.has(&tip).map_err(git_failed(self.rig))?;
            if is_forgotten || self.contains(repository, &tip, commit)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn contains(
        &self,
        repository: &dyn MergeRepository,
        descendant: &Commit,
        ancestor: &Commit,
    ) -> Result<bool> {
        if descendant == ancestor {
            return Ok(true);
        }
        let failed = git_failed(self.rig);
        Ok(repository.has(descendant).map_err(&failed)?
            && repository.has(ancestor).map_err(&failed)?
            && repository.has_in_history(descendant, ancestor).map_err(&failed)?)
    }

    /// Says which work is missing.
    pub(super) fn words_of_lost(&self, lost: &[&MergeRequest], has_branch: bool) -> String {
        let Self { branch, target, .. } = self;
        let mut beads: Vec<&BeadId> = lost.iter().map(|request| &request.id.bead).collect();
        beads.dedup();
        let named: Vec<&str> = beads.iter().take(NAMED_MAX).map(|bead| bead.as_str()).collect();
        let more = match beads.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = format!("{}{more}", named.join(", "));
        if has_branch {
            format!(
                "neither {branch} nor {target} has the work of {named}, which landed on {branch}"
            )
        } else {
            format!(
                "the origin has no branch {branch} any more, and {target} does not have the work of {named}, which landed on it"
            )
        }
    }
}
