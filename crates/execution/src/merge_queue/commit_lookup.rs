//! The merge request that brought a commit to its branch.

use std::collections::BTreeSet;

use gt_core::Rig;
use gt_core::merging::{Candidate, MergeRequest};
use gt_executors::git::{Commit, Repository};

use super::revert::landed_range;
use gt_beads::merge_requests::resolve_request;
use gt_town::tree_paths::{Trees, git_failed};
use gt_town::{OperationError, Result, Town};

/// The fewest digits that may be the beginning of a commit.
const DIGITS_MIN: usize = 4;
/// From so many digits on, a text is a commit first, and the end of a bead's name second.
const DIGITS_OF_COMMIT: usize = 7;
/// How many commits of a branch are looked up at once.
const COMMITS_AT_ONCE: usize = 500;

/// The request that `input` means: a request, a bead, whose open or last request it is, or a commit that one brought.
pub(super) fn find(town: &Town, input: &str) -> Result<MergeRequest> {
    let may_be_commit =
        input.len() >= DIGITS_MIN && input.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = input.to_ascii_lowercase();
    if may_be_commit
        && input.len() >= DIGITS_OF_COMMIT
        && let Some(request) = request_of_commit(town, &digits)?
    {
        return Ok(request);
    }
    match town.read(|reader| resolve_request(town, reader, input)) {
        Err(OperationError::NoBead(_)) if may_be_commit => {
            let found = match input.len() {
                DIGITS_OF_COMMIT.. => None,
                _ => request_of_commit(town, &digits)?,
            };
            found.ok_or_else(|| {
                OperationError::rejected(format!(
                    "no merge request has brought a commit that begins with {input} to its branch, and no bead has this name"
                ))
            })
        }
        found => found,
    }
}

/// The request that brought a commit to the branch of its rig, or else to another branch.
fn request_of_commit(town: &Town, digits: &str) -> Result<Option<MergeRequest>> {
    let (landed, rigs) = town.read(|reader| {
        let landed = reader.merge_requests_landed_as(digits)?;
        let mut rigs = reader.rigs()?;
        if let Some(request) = landed.first() {
            rigs.retain(|rig| rig.slug == request.rig);
        }
        Ok((landed, rigs))
    })?;
    if landed.windows(2).any(|pair| pair[0].landed != pair[1].landed) {
        return Err(OperationError::rejected(format!(
            "more than one landed commit begins with {digits}; write more of it"
        )));
    }
    for rig in rigs.iter().filter(|rig| !rig.repo.is_empty()) {
        let repository = Trees::of(town, rig).map(|trees| trees.repository());
        let Some(repository) = repository.filter(Repository::exists) else { continue };
        let Some(commit) = repository.find_commit(digits).map_err(git_failed(rig))? else {
            continue;
        };
        if let Some(request) = bringer(town, rig, &repository, &commit)? {
            return Ok(Some(request));
        }
    }
    Ok(landed.into_iter().next())
}

/// The first request, in the order of the commits, whose landed commits have this one. A request for the branch of the rig
/// goes before those for other branches: a convoy brings there what its members have landed on its own branch.
fn bringer(
    town: &Town,
    rig: &Rig,
    repository: &Repository,
    commit: &Commit,
) -> Result<Option<MergeRequest>> {
    let line = repository.commits_from(commit).map_err(git_failed(rig))?;
    let mut elsewhere = None;
    // Branches that are known to have the commit: a later request did not bring it there.
    let mut has_it = BTreeSet::new();
    for page in line.chunks(COMMITS_AT_ONCE) {
        let landed = landed_in(town, rig, page)?;
        let is_same = |one: &LandedRequest, other: &LandedRequest| one.key == other.key;
        for same in landed.chunk_by(is_same) {
            let target = &same[0].request.target;
            if !has_it.insert(target.clone()) {
                continue;
            }
            let brought = same.iter().find(|landed| landed.has(repository, commit));
            let brought = brought.map(|landed| landed.request.clone());
            if *target == rig.default_branch {
                return Ok(brought.or(elsewhere));
            }
            elsewhere = elsewhere.or(brought);
        }
    }
    Ok(elsewhere)
}

/// Which of these landed requests of a rig brought the commit that `input` names; nothing if it names none, or none of them did.
pub(super) fn work_with_commit(
    town: &Town,
    rig: &Rig,
    input: &str,
    works: &[MergeRequest],
) -> Result<Option<MergeRequest>> {
    let is_commit = input.len() >= DIGITS_MIN && input.bytes().all(|byte| byte.is_ascii_hexdigit());
    let repository = Trees::of(town, rig).map(|trees| trees.repository());
    let Some(repository) = repository.filter(|it| is_commit && it.exists()) else {
        return Ok(None);
    };
    let digits = input.to_ascii_lowercase();
    let Some(commit) = repository.find_commit(&digits).map_err(git_failed(rig))? else {
        return Ok(None);
    };
    for work in works {
        let candidate = match work.candidate {
            Some(number) => town.read(|reader| Ok(reader.candidate(number)?))?,
            None => None,
        };
        let landed =
            LandedRequest { key: (0, work.target.clone()), request: work.clone(), candidate };
        if landed.has(&repository, &commit) {
            return Ok(Some(landed.request));
        }
    }
    Ok(None)
}

/// A request that has landed.
struct LandedRequest {
    /// The place of its commit in the line, and its target.
    key: (usize, String),
    request: MergeRequest,
    candidate: Option<Candidate>,
}

impl LandedRequest {
    /// Whether it brought a commit. Of commits that are not here, nothing is known.
    fn has(&self, repository: &Repository, commit: &Commit) -> bool {
        // The commit that a hosting service has made of it is in no range.
        if self.candidate.is_none() && self.request.landed == commit.as_str() {
            return true;
        }
        landed_range(&self.request, self.candidate.as_ref())
            .is_ok_and(|range| repository.range_has(&range, commit).unwrap_or(false))
    }
}

/// The requests of a rig that landed as one of these commits, in the order of the commits.
fn landed_in(town: &Town, rig: &Rig, commits: &[Commit]) -> Result<Vec<LandedRequest>> {
    let names: Vec<&str> = commits.iter().map(Commit::as_str).collect();
    let mut landed = town.read(|reader| {
        let mut landed = Vec::new();
        for request in reader.merge_requests_landed_as_any(&names)? {
            let place = names.iter().position(|name| *name == request.landed);
            let Some(place) = place.filter(|_| request.rig == rig.slug) else { continue };
            let candidate = match request.candidate {
                Some(number) => reader.candidate(number)?,
                None => None,
            };
            landed.push(LandedRequest { key: (place, request.target.clone()), request, candidate });
        }
        Ok(landed)
    })?;
    landed.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(landed)
}
