//! The views of merge requests for people.

use std::collections::HashMap;

use gt_core::checks::{CheckResult, CheckRun};
use gt_core::cost::Spent;
use gt_core::hosting::{FeedbackTrust, ShownFeedback};
use gt_core::merging::{
    Candidate, MergeRequest, MergeRequestId, RequestPurpose, RequestState, Review, in_queue_order,
};
use gt_core::{Priority, Rig};
use gt_executors::git::{Commit, DiffOptions, Repository};
use gt_store::{CandidateCheck, MergeQueueRow, Reader, RequestFilter};

use super::commit_lookup::find;
use super::revert::undoing_request;
use crate::checks::protected_paths;
use gt_beads::request_repairs::repair_of;
use gt_beads::review_rules::review_source;
use gt_town::settings::{file_layers, layers_over};
use gt_town::tree_paths::{Trees, git_failed};
use gt_town::{OperationError, Result, Town};

/// An open request as lists show it.
#[derive(Debug, Clone)]
pub struct LineEntry {
    /// The request.
    pub request: MergeRequest,
    /// The title of its bead.
    pub title: String,
    /// Its place in line, from 1, if it waits for its turn.
    pub position: Option<u64>,
}

/// The open requests by queue and turn, and the queues that there ever were.
pub fn line(town: &Town) -> Result<(Vec<LineEntry>, Vec<MergeQueueRow>)> {
    town.read(|reader| {
        let mut titles: HashMap<MergeRequestId, String> = HashMap::new();
        let mut queues: Vec<Vec<(MergeRequest, Priority)>> = Vec::new();
        for request in reader.open_merge_requests()? {
            let Some(bead) = reader.bead(&request.id.bead)? else { continue };
            titles.insert(request.id.clone(), bead.title.to_string());
            let is_same = |line: &&mut Vec<(MergeRequest, Priority)>| {
                line.first().is_some_and(|(first, _)| {
                    (&first.rig, &first.target) == (&request.rig, &request.target)
                })
            };
            match queues.last_mut().filter(is_same) {
                Some(line) => line.push((request, bead.priority)),
                None => queues.push(vec![(request, bead.priority)]),
            }
        }
        let mut entries = Vec::new();
        for mut line in queues {
            in_queue_order(&mut line);
            let mut last = 0;
            for (request, _) in line {
                let waits = request.state == RequestState::Queued;
                last += u64::from(waits);
                let title = titles.remove(&request.id).unwrap_or_default();
                entries.push(LineEntry { request, title, position: waits.then_some(last) });
            }
        }
        Ok((entries, reader.merge_queues()?))
    })
}

/// Requests older than a place in line, the newest first; those that wait for their turn with their place.
pub fn requests(
    town: &Town,
    before: Option<u64>,
    filter: &RequestFilter,
    limit: usize,
) -> Result<Vec<LineEntry>> {
    let (in_line, _) = line(town)?;
    let places: HashMap<MergeRequestId, u64> =
        in_line.into_iter().filter_map(|entry| Some((entry.request.id, entry.position?))).collect();
    town.read(|reader| {
        let mut entries = Vec::new();
        for request in reader.merge_requests_before(before, filter, limit)? {
            let title = reader.bead(&request.id.bead)?.map(|bead| bead.title.to_string());
            let position = places.get(&request.id).copied();
            entries.push(LineEntry { title: title.unwrap_or_default(), position, request });
        }
        Ok(entries)
    })
}

/// How a request got where it is.
#[derive(Debug, Clone)]
pub struct RequestStory {
    /// The request.
    pub request: MergeRequest,
    /// The title of its bead.
    pub title: String,
    /// The candidate that it lands with, from the intent on.
    pub candidate: Option<Candidate>,
    /// The checks that the candidate has passed, each with the run that passed.
    pub checks: Vec<(CandidateCheck, Option<CheckRun>)>,
    /// The comments of people about it, the oldest first.
    pub reviews: Vec<Review>,
    /// The repair of work that was sent back, in words; empty if there is none.
    pub repair: String,
    /// The request that undid it after it had landed.
    pub undone_by: Option<MergeRequestId>,
    /// The reason why its pull request waits, in words; empty if it has none, or if that is not known yet.
    pub pull_request_waits_for: String,
    /// The texts on its pull request: those for which it was sent back, then those that start no repair.
    pub pull_request_texts: Vec<ShownFeedback>,
    /// The usage of the runs that led to it.
    pub spent: Spent,
}

impl RequestStory {
    /// The command that moves the request on, what moves it by itself, or why nothing can be done with it any more.
    pub fn next_step(&self) -> String {
        match &self.undone_by {
            Some(revert) => format!("nothing; {revert} has undone it"),
            None if self.repair.is_empty() => self.request.next_step(),
            None => self.repair.clone(),
        }
    }
}

/// The story of a request, of the last request of a bead, or of the request that brought a commit to its branch.
pub fn story(town: &Town, input: &str) -> Result<RequestStory> {
    let request = find(town, input)?;
    town.read(|reader| {
        let title = reader.bead(&request.id.bead)?.map(|bead| bead.title.to_string());
        let candidate = match request.candidate {
            Some(number) => reader.candidate(number)?,
            None => None,
        };
        let mut checks = Vec::new();
        if let Some(candidate) = &candidate {
            for check in reader.candidate_checks(candidate.number)? {
                let run = reader.check_run(check.check_run)?;
                checks.push((check, run));
            }
        }
        let reviews = reader.reviews_of(&request.id)?;
        let branch = &request.pull_request.branch;
        let pull_request = if request.state.is_open() {
            reader.pull_request(&request.id.bead, branch)?
        } else {
            None
        };
        let to_answer = reader.pull_request_repair(&request.id)?.feedback;
        let to_answer = to_answer
            .iter()
            .filter_map(|text| ShownFeedback::of(text, FeedbackTrust::StartsRepair));
        let mut pull_request_texts: Vec<ShownFeedback> = to_answer.collect();
        if let Some(pull) = &pull_request {
            pull_request_texts.extend(reader.pull_request_texts(&pull.bead, &pull.branch)?);
        }
        let spent = match request.epoch {
            Some(last) => reader.spent_by_runs(&request.id.bead, 0..=last)?,
            None => Spent::default(),
        };
        Ok(RequestStory {
            title: title.unwrap_or_default(),
            spent,
            candidate,
            checks,
            reviews,
            repair: repair_of(reader, &request)?,
            undone_by: undoing_request(reader, &request)?,
            pull_request_texts,
            pull_request_waits_for: pull_request.map(|pull| pull.waits_for).unwrap_or_default(),
            request,
        })
    })
}

/// The comments of people about a request and about those that it replaces, the oldest first.
pub fn reviews_of_work(town: &Town, request: &MergeRequest) -> Result<Vec<Review>> {
    town.read(|reader| {
        let mut reviews = Vec::new();
        for one in reader.merge_requests_of(&request.id.bead)? {
            if one.id.number <= request.id.number {
                reviews.extend(reader.reviews_of(&one.id)?);
            }
        }
        reviews.sort_by_key(|review| review.number);
        Ok(reviews)
    })
}

/// Why a request needs a review, in words; empty if it needs none.
pub fn review_reason(town: &Town, request: &MergeRequest) -> Result<String> {
    if !request.review {
        return Ok(String::new());
    }
    let (rig, _, base, accepted) = compared(town, request)?;
    let protected = protected_paths(town, &rig, &base, &accepted)?;
    if !protected.is_empty() {
        return Ok(format!("it changes protected paths: {}", protected.join(", ")));
    }
    let files = file_layers(town)?;
    let (of_rig, source) = town.read(|reader| {
        let bead = &request.id.bead;
        let run = match request.run() {
            Some(run) => reader.run(&run)?,
            None => None,
        };
        let context = match run {
            Some(run) => reader.context_by_number(run.context)?,
            None => reader.latest_context(bead)?,
        };
        let of_rig = layers_over(&files, reader)?.rig_review(&request.rig)?;
        Ok((of_rig, review_source(reader, bead, context.as_ref())?))
    })?;
    Ok(match source {
        _ if of_rig == "required" => format!("rig.{}.review is required", request.rig),
        Some(source) => source.to_string(),
        None => "a rule that has been changed since asked for it when it was made".to_owned(),
    })
}

/// Whether a request that was sent back is repaired without a person.
pub fn is_repaired(town: &Town, request: &MergeRequest) -> Result<bool> {
    town.read(|reader| has_repair(reader, request))
}

/// The same for a caller that reads more.
pub fn has_repair(reader: &Reader<'_>, request: &MergeRequest) -> Result<bool> {
    Ok(!repair_of(reader, request)?.is_empty())
}

/// The run of the check that failed with a request or could not be run to its end, and its output: of the request itself, of
/// the last request of its bead before it, or of the target that it waits for. Nothing if there is none.
pub fn failed_check(town: &Town, input: &str) -> Result<Option<(CheckRun, String)>> {
    let request = find(town, input)?;
    let Some(run) = town.read(|reader| failed_check_run(reader, &request))? else {
        return Ok(None);
    };
    let path = town.root().join(&run.log);
    let output = std::fs::read(&path).map_err(|source| OperationError::File {
        action: "read",
        path,
        source,
    })?;
    Ok(Some((run, String::from_utf8_lossy(&output).into_owned())))
}

fn failed_check_run(reader: &Reader<'_>, request: &MergeRequest) -> Result<Option<CheckRun>> {
    if request.waits_for_target().is_some()
        && let Some(red) = reader.merge_queue(&request.rig, &request.target)?.and_then(|it| it.red)
    {
        let runs = reader.check_runs_on(&red.commit)?.into_iter().rev();
        let mut failed = runs.filter(|run| {
            run.rig == request.rig && run.name == red.check && run.result == CheckResult::Failed
        });
        return Ok(failed.next());
    }
    let until_it = reader.merge_requests_of(&request.id.bead)?.into_iter();
    let until_it = until_it.filter(|one| one.id.number <= request.id.number);
    match until_it.max_by_key(|one| (one.check_run.is_some(), one.id.number)) {
        Some(MergeRequest { check_run: Some(id), .. }) => Ok(reader.check_run(id)?),
        _ => Ok(None),
    }
}

/// The last runs of checks that passed after they had failed on the same tree.
pub fn flaky_checks(town: &Town) -> Result<Vec<CheckRun>> {
    town.read(|reader| Ok(reader.flaky_check_runs(FLAKY_MAX)?))
}

/// How many flaky runs are listed.
const FLAKY_MAX: u32 = 100;

/// The size of the change of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestChangeSize {
    /// How many files differ.
    pub files: u64,
    /// Lines that are new.
    pub insertions: u64,
    /// Lines that are gone.
    pub deletions: u64,
    /// The files.
    pub paths: Vec<String>,
}

/// The size of the change of a request, from where its work began to its accepted commit.
pub fn change_size(town: &Town, request: &MergeRequest) -> Result<RequestChangeSize> {
    let (rig, repository, base, accepted) = compared(town, request)?;
    let stat = repository.diff_stat(&base, &accepted).map_err(git_failed(&rig))?;
    let paths = repository.changed_paths(&base, &accepted).map_err(git_failed(&rig))?;
    Ok(RequestChangeSize {
        files: stat.files,
        insertions: stat.insertions,
        deletions: stat.deletions,
        paths: paths.iter().map(|path| path.display().to_string()).collect(),
    })
}

/// The change of a request, for a person.
pub fn change(town: &Town, request: &MergeRequest) -> Result<Vec<u8>> {
    let (rig, repository, base, accepted) = compared(town, request)?;
    repository.diff(&base, &accepted, &DiffOptions::default()).map_err(git_failed(&rig))
}

/// The commits that a review compares, and the repository that has them.
pub(super) fn compared(
    town: &Town,
    request: &MergeRequest,
) -> Result<(Rig, Repository, Commit, Commit)> {
    let rig = town.read(|reader| gt_town::rig_names::require(reader, request.rig.as_str()))?;
    let repository = Trees::of(town, &rig).map(|trees| trees.repository());
    let commits = Commit::parse(&request.base).zip(Commit::parse(&request.accepted));
    match repository.zip(commits) {
        Some((repository, (base, accepted))) => {
            // The branch of a convoy need not have the target that it was approved for.
            let base = match request.purpose {
                RequestPurpose::Work | RequestPurpose::Revert => base,
                RequestPurpose::Integration => {
                    let common = repository.merge_base(&base, &accepted);
                    common.map_err(git_failed(&rig))?.unwrap_or(base)
                }
            };
            Ok((rig, repository, base, accepted))
        }
        None => {
            Err(OperationError::rejected(format!("the commits of {} are not here", request.id)))
        }
    }
}
