//! The invariants of merge requests, candidates and targets.

use std::collections::{BTreeMap, BTreeSet};

use gt_core::checks::CheckResult;
use gt_core::hosting::PullRequestFeedback;
use gt_core::merging::{
    Candidate, CandidateState, MergeMethod, MergeRequest, MergeRequestId, RequestPurpose,
    RequestState, approval_of,
};
use gt_core::schedule::{RunId, RunState};
use gt_core::{BeadId, Status};
use gt_executors::git::Commit;

use crate::check::StoreSnapshot;
use crate::hosting::CommentAuthor;
use crate::simulation::Simulation;
use crate::violation::Invariant;

/// The facts of earlier checks.
#[derive(Debug, Default)]
pub(crate) struct MergeHistory {
    last_candidate: u64,
    /// The requests that have landed, and as which commit.
    landed: BTreeMap<MergeRequestId, String>,
}

impl StoreSnapshot {
    /// The merge request of a bead that is not over.
    pub(crate) fn open_request(&self, bead: &BeadId) -> Option<&MergeRequest> {
        self.requests.get(bead)?.iter().find(|request| request.state.is_open())
    }

    /// Whether the work of a run was handed in as a merge request.
    pub(crate) fn made_request(&self, run: &RunId) -> bool {
        let requests = self.requests.get(&run.bead);
        let made = |request: &MergeRequest| request.run().as_ref() == Some(run);
        requests.is_some_and(|requests| requests.iter().any(made))
    }
}

impl Simulation {
    /// Looks at every target: no work is on it twice. No pull request is open twice.
    pub(crate) fn observe_origins(&self) {
        let opened = self.state().origins.values().find_map(|it| it.hosting.opened_twice());
        if let Some(branch) = opened {
            let found = format!("{branch} has two pull requests");
            self.violated(Invariant::PullRequest, found);
        }
        let found = {
            let state = self.state();
            let twice = |(rig, origin): (&gt_core::RigSlug, &crate::origin::SimulatedOrigin)| {
                origin.landed_twice().map(|commit| format!("{commit} is twice on {rig}"))
            };
            state.origins.iter().find_map(twice)
        };
        if let Some(found) = found {
            self.violated(Invariant::LandsOnce, found);
        }
    }

    /// Looks at every candidate that is new, and at every merge request.
    pub(crate) fn check_merging(&self, snapshot: &StoreSnapshot) {
        if self.state().origins.is_empty() {
            return;
        }
        let mut number = self.state().memory.merging.last_candidate + 1;
        while let Some(candidate) = self.read(|reader| reader.candidate(number)) {
            self.check_candidate(&candidate);
            self.state().memory.merging.last_candidate = number;
            number += 1;
        }
        for (bead, requests) in &snapshot.requests {
            self.check_requests(snapshot, bead, requests);
        }
    }

    /// The intent of a push was recorded just now: everything in it was allowed to land.
    fn check_candidate(&self, candidate: &Candidate) {
        for part in &candidate.parts {
            self.check_approval(&part.request, &part.before);
        }
        if self.is_direct(candidate) {
            return;
        }
        let rig = &candidate.rig;
        let town = self.town_without_seam("observer");
        let definitions = self.certain("checks", gt_town::rigs::checks(&town, rig));
        let checks = self.read(|reader| reader.candidate_checks(candidate.number));
        for definition in &definitions {
            let wrong = |why: &str| -> ! {
                let (number, tip, check) = (candidate.number, &candidate.tip, &definition.name);
                let found = format!("candidate {number} ({tip}) of {rig}: {check} {why}");
                self.violated(Invariant::Checked, found)
            };
            let Some(check) = checks.iter().find(|check| check.name == definition.name) else {
                wrong("was not run")
            };
            let Some(run) = self.read(|reader| reader.check_run(check.check_run)) else {
                wrong("has no recorded run")
            };
            if run.result != CheckResult::Passed || run.definition != definition.hash() {
                wrong("has not passed as it is defined now");
            }
            if run.tree != candidate.tree {
                wrong("has passed on another tree");
            }
            let is_true = Commit::parse(&candidate.tip).is_some_and(|tip| {
                self.with_origin(rig, |origin| {
                    let tree = origin.tree(&tip).to_string();
                    tree == candidate.tree && origin.passed.contains(&(tree, definition.hash()))
                })
            });
            if !is_true {
                wrong("has never passed on the tree of the tip");
            }
        }
    }

    /// Whether everything in a candidate was to land without checks, and says so.
    fn is_direct(&self, candidate: &Candidate) -> bool {
        candidate.parts.iter().all(|part| {
            let request = self.read(|reader| reader.merge_request(&part.request));
            request.is_some_and(|request| request.method == MergeMethod::Direct && !request.review)
        })
    }

    /// A request that needs a review was approved by a person, as this commit.
    fn check_approval(&self, id: &MergeRequestId, accepted: &str) {
        let (request, reviews) =
            self.read(|reader| Ok((reader.merge_request(id)?, reader.reviews_of(id)?)));
        let Some(request) = request.filter(|request| request.review) else { return };
        let is_recorded = approval_of(&request, &reviews).is_some();
        let is_true = self.state().approved.contains(&(id.clone(), accepted.to_owned()));
        if !is_recorded || !is_true {
            let found = format!("{id} lands as {accepted}, which no person has approved");
            self.violated(Invariant::Approved, found);
        }
    }

    fn check_requests(&self, snapshot: &StoreSnapshot, bead: &BeadId, requests: &[MergeRequest]) {
        let open: BTreeSet<&MergeRequestId> =
            requests.iter().filter(|request| request.state.is_open()).map(|r| &r.id).collect();
        if open.len() > 1 {
            self.violated(Invariant::Request, format!("{bead} has several: {open:?}"));
        }
        for request in requests {
            self.check_feedback(request, requests);
            let run = request.run().and_then(|run| self.read(|reader| reader.run(&run)));
            if let Some(lost) = run.filter(|run| run.state == RunState::Lost) {
                let found = format!("{} is the work of {}, which is lost", request.id, lost.id);
                self.violated(Invariant::LostHasNoEffect, found);
            }
            if request.state == RequestState::Landed {
                self.check_landed(snapshot, request);
            } else if self.state().memory.merging.landed.contains_key(&request.id) {
                let found = format!("{} has landed, and is {}", request.id, request.state);
                self.violated(Invariant::LandsOnce, found);
            }
            if request.state.is_open() {
                self.check_open(snapshot, request);
            }
        }
    }

    /// A comment starts one repair, and only if its author may write.
    fn check_feedback(&self, request: &MergeRequest, others: &[MergeRequest]) {
        if request.method != MergeMethod::PullRequest {
            return;
        }
        let texts =
            |id: &MergeRequestId| self.read(|reader| reader.pull_request_repair(id)).feedback;
        let own = texts(&request.id);
        for (at, text) in own.iter().enumerate() {
            let author =
                self.with_origin(&request.rig, |origin| origin.hosting.author_of(&text.id));
            if author != Some(CommentAuthor::Maintainer) {
                let found = format!("{} answers {} of {author:?}", request.id, text.id);
                self.violated(Invariant::PullRequest, found);
            }
            let is_same = |other: &PullRequestFeedback| other.id == text.id;
            let later = others.iter().filter(|other| other.id.number > request.id.number);
            let again = later.map(|other| &other.id).find(|id| texts(id).iter().any(is_same));
            let again = again.or_else(|| own[..at].iter().any(is_same).then_some(&request.id));
            if let Some(again) = again {
                let found = format!("{} and {again} answer {}", request.id, text.id);
                self.violated(Invariant::PullRequest, found);
            }
        }
    }

    /// A request has landed: the target has its commit.
    fn check_landed(&self, snapshot: &StoreSnapshot, request: &MergeRequest) {
        let (id, landed) = (&request.id, &request.landed);
        let before = self.state().memory.merging.landed.insert(id.clone(), landed.clone());
        if let Some(before) = before {
            if before != *landed {
                let found = format!("{id} has landed as {before}, and as {landed}");
                self.violated(Invariant::LandsOnce, found);
            }
            return;
        }
        let is_there = Commit::parse(landed).is_some_and(|commit| {
            self.with_origin(&request.rig, |origin| origin.was_seen(&request.target, &commit))
        });
        if !is_there {
            let found = format!("{id} has landed as {landed}, which the target does not have");
            self.violated(Invariant::Reachable, found);
        }
        let status = snapshot.beads.get(&id.bead).map(|row| &row.bead.status);
        let is_closed = status == Some(&Status::Closed);
        match request.purpose {
            RequestPurpose::Work => {}
            RequestPurpose::Revert if is_closed => {
                let found = format!("{id} has landed, and its bead is closed");
                self.violated(Invariant::Request, found);
            }
            RequestPurpose::Revert | RequestPurpose::Integration => return,
        }
        if !is_closed && !self.state().reopened.contains(&id.bead) {
            self.violated(Invariant::Request, format!("{id} has landed, its bead is not closed"));
        }
    }

    /// A request that is not over fits its bead, and its commit is kept.
    fn check_open(&self, snapshot: &StoreSnapshot, request: &MergeRequest) {
        let id = &request.id;
        let wrong = |why: String| -> ! {
            let found = format!("{id} is {}: {why}", request.state);
            self.violated(Invariant::Request, found)
        };
        self.check_kept(request);
        let candidate =
            request.candidate.and_then(|number| self.read(|reader| reader.candidate(number)));
        let is_pushed =
            candidate.is_some_and(|candidate| candidate.state == CandidateState::Landing);
        if (request.state == RequestState::Landing) != is_pushed {
            wrong(format!("its candidate {:?} is not being pushed", request.candidate));
        }
        if request.state_reason().is_empty() || request.next_step().is_empty() {
            wrong("nothing says what follows".to_owned());
        }
        if request.purpose == RequestPurpose::Integration {
            return;
        }
        let Some(row) = snapshot.beads.get(&id.bead) else { wrong("no bead".to_owned()) };
        let status = &row.bead.status;
        let run = snapshot.live(&id.bead);
        let is_scheduled =
            snapshot.latest.get(&id.bead).is_some_and(|context| context.closed.is_none());
        match request.state {
            RequestState::Conflict | RequestState::Failed => {
                let waits = matches!(status, Status::Blocked | Status::Deferred);
                if run.is_none() && !is_scheduled && !waits {
                    wrong(format!("no run repairs it, and its bead is {status}"));
                }
            }
            RequestState::Queued
            | RequestState::Building
            | RequestState::Checking
            | RequestState::Landing
            | RequestState::Review
            | RequestState::Held(_) => {
                if let Some(run) = run {
                    wrong(format!("{} works on its bead", run.id));
                }
                if *status != Status::InProgress {
                    wrong(format!("its bead is {status}"));
                }
            }
            RequestState::Landed | RequestState::Cancelled | RequestState::Superseded => {}
        }
    }

    /// The commit of a request is on a branch, or builders keep it.
    fn check_kept(&self, request: &MergeRequest) {
        let is_kept = Commit::parse(&request.accepted).is_some_and(|accepted| {
            self.with_origin(&request.rig, |origin| match request.purpose {
                RequestPurpose::Work => {
                    origin.branches.contains_key(&request.branch)
                        && !origin.files(&accepted).is_empty()
                }
                RequestPurpose::Revert => origin.is_kept(&accepted),
                RequestPurpose::Integration => {
                    let tip = origin.tip(&request.branch);
                    origin.contains(tip.as_ref(), &accepted)
                }
            })
        });
        if !is_kept {
            let found =
                format!("{} is {}: {} is not kept", request.id, request.state, request.accepted);
            self.violated(Invariant::Request, found);
        }
    }
}
