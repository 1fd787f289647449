//! Pushing a candidate that has passed.

use std::time::Duration;

use gt_core::merging::{
    Candidate, CandidatePart, CandidateState, MergeRequest, MergeRequestId, OriginAnswer,
    RequestAction, RequestHold, RequestState, approval_of,
};
use gt_executors::git::{CheckoutObstacle, Commit, GitError, OriginRefusal, Push, RefusalKind};
use gt_store::{CandidateCheck, Writer};

use super::integrate::has_open_work;
use super::machine::MergeLock;
use super::pass::{PUSH_LEASE_SECONDS, QueueBuilder, UNREACHABLE_DELAY};
use super::verify::PassedChecks;
use gt_beads::merge_requests::{RequestNote, act_in};
use gt_town::Result;
use gt_town::rigs::checks_in;
use gt_town::tree_paths::git_failed;

/// The longest time of a push: shorter than the lease of its builder.
pub(super) const PUSH_TIME_MAX: Duration = Duration::from_secs(590);
/// The delay before an origin that refused is asked again.
const REFUSED_DELAY: Duration = Duration::from_mins(10);
/// The pauses after a push that found the branch of the origin locked, and the delay after the last of them.
const LOCKED_PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
const LOCKED_DELAY: Duration = Duration::from_secs(30);
/// The delay before a checkout that is in the way is looked at again.
const CHECKOUT_DELAY: Duration = Duration::from_secs(30);

/// A candidate that is built.
#[derive(Debug, Clone)]
pub(super) struct BuiltCandidate {
    /// The tip of the target that it was built on.
    pub(super) base: Commit,
    /// The commit to push.
    pub(super) tip: Commit,
    /// Its files.
    pub(super) tree: Commit,
    /// The requests in it, each with the commit that has it.
    pub(super) parts: Vec<(MergeRequest, String)>,
}

impl BuiltCandidate {
    /// The names of its requests.
    pub(super) fn ids(&self) -> Vec<MergeRequestId> {
        self.parts.iter().map(|(request, _)| request.id.clone()).collect()
    }
}

/// The outcome of an attempt to land a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PushOutcome {
    /// The target has it.
    Landed,
    /// Its requests are in line again, or held.
    Requeued,
    /// The origin does not answer, so nothing more can be done now.
    Stuck,
}

impl QueueBuilder<'_> {
    /// Records the intent, pushes, and confirms what the origin says.
    pub(super) fn land(
        &mut self,
        built: &BuiltCandidate,
        checks: &PassedChecks,
    ) -> Result<PushOutcome> {
        let turn = self.repository.turn().map_err(git_failed(self.rig))?;
        self.land_in_turn(turn.as_ref(), built, Some(checks))
    }

    /// The same for a caller that has the turn at the origin. Without `checks`, it lands unchecked.
    pub(super) fn land_in_turn(
        &mut self,
        _turn: &dyn MergeLock,
        built: &BuiltCandidate,
        checks: Option<&PassedChecks>,
    ) -> Result<PushOutcome> {
        let failed = git_failed(self.rig);
        let requests: Vec<MergeRequest> =
            built.parts.iter().map(|(request, _)| request.clone()).collect();
        if self.require_reviews(&requests)? {
            self.rebuild(&self.still_mine(built)?, OriginAnswer::Unknown)?;
            return Ok(PushOutcome::Requeued);
        }
        let Some(candidate) = self.intend(built, checks)? else {
            self.rebuild(&self.still_mine(built)?, OriginAnswer::Unknown)?;
            return Ok(PushOutcome::Requeued);
        };
        self.changed.extend(built.ids());
        let (target, base) = (self.name.target.as_str(), &built.base);
        if base == &built.tip {
            // Everything in it was there already.
            self.confirm(&candidate)?;
            return Ok(PushOutcome::Landed);
        }
        // A process that was stopped since the intent must not push when another builder may have the queue.
        let spent = self.town.now().since(candidate.created_at);
        let limit = PUSH_TIME_MAX.saturating_sub(spent);
        if limit.is_zero() {
            return Ok(PushOutcome::Stuck);
        }
        let name = format!("candidate-{}", candidate.number);
        let push = self.push(&built.tip, base, &name, limit)?;
        if may_concern_one(&push) && self.is_tried_singly(&candidate)? {
            return Ok(PushOutcome::Requeued);
        }
        let result = match push {
            Push::Done => {
                let words = format!("it took {} and does not have it", built.tip);
                let absent = (RequestHold::OriginRefused, words, REFUSED_DELAY);
                return self.confirm_push(&candidate, &built.tip, &absent);
            }
            Push::LostRace(why)
                if self.repository.tip(target).map_err(&failed)?.as_ref() == Some(base) =>
            {
                let words = format!("it does not move {target}: {why}");
                self.hold(&candidate, RequestHold::OriginRefused, &words, LOCKED_DELAY)?
            }
            Push::LostRace(_) => {
                self.rebuild_after_race(&candidate)?;
                PushOutcome::Requeued
            }
            Push::Rejected(OriginRefusal { kind, words }) => {
                let words = match kind {
                    RefusalKind::ProtectedBranch => {
                        MergeRequest::protected_target_words(&self.name.rig, &words)
                    }
                    _ => words,
                };
                self.hold(&candidate, RequestHold::OriginRefused, &words, REFUSED_DELAY)?
            }
            Push::Incomplete(why) => {
                let words =
                    format!("what git-lfs keeps for it cannot be brought to the origin: {why}");
                self.hold(&candidate, RequestHold::OriginRefused, &words, REFUSED_DELAY)?
            }
            Push::Unable(why) => {
                self.hold(&candidate, RequestHold::OriginRefused, &why, REFUSED_DELAY)?
            }
            Push::Held(obstacle) => {
                let words = obstacle.to_string();
                self.hold(&candidate, RequestHold::CheckoutInTheWay, &words, CHECKOUT_DELAY)?
            }
            Push::Unreachable(why) => {
                let absent = (RequestHold::OriginUnreachable, why, UNREACHABLE_DELAY);
                return self.confirm_push(&candidate, &built.tip, &absent);
            }
        };
        Ok(result)
    }

    /// Puts the requests of a candidate back in line, to be tried each on its own: what is in the way may concern only one of
    /// them. `false` for a candidate of one request.
    fn is_tried_singly(&mut self, candidate: &Candidate) -> Result<bool> {
        if candidate.parts.len() < 2 {
            return Ok(false);
        }
        self.take_back(candidate, OriginAnswer::Absent, &RequestNote::default())?;
        self.alone.extend(candidate.parts.iter().map(|part| part.request.clone()));
        let name = format!("candidate-{}", candidate.number);
        let _ = self.repository.forget_candidate(&self.name.target, &name);
        Ok(true)
    }

    /// Pushes a commit; again after a pause when the origin says that another push came first and its branch has not moved:
    /// that push may still hold the lock of the branch.
    fn push(&self, tip: &Commit, base: &Commit, name: &str, limit: Duration) -> Result<Push> {
        let failed = git_failed(self.rig);
        let target = self.name.target.as_str();
        let mut pauses = LOCKED_PAUSES.iter();
        loop {
            let push = self.repository.deliver(tip, target, Some(base), name, limit);
            let push = push.map_err(&failed)?;
            if !matches!(push, Push::LostRace(_)) {
                return Ok(push);
            }
            match self.repository.fetch() {
                Ok(()) => {}
                Err(GitError::Unreachable { message, .. }) => {
                    return Ok(Push::Unreachable(message));
                }
                Err(error) => return Err(failed(error)),
            }
            let is_moved = self.repository.tip(target).map_err(&failed)?.as_ref() != Some(base);
            let Some(pause) = pauses.next().filter(|_| !is_moved) else { return Ok(push) };
            std::thread::sleep(*pause);
        }
    }

    /// Records the intent in one transaction, if everything still holds: the lease, the queue, the checks of the rig, the state
    /// of each request, and every approval.
    fn intend(
        &mut self,
        built: &BuiltCandidate,
        checks: Option<&PassedChecks>,
    ) -> Result<Option<Candidate>> {
        let (rig, target) = (&self.name.rig, self.name.target.as_str());
        let now = self.town.now();
        let candidate = Candidate {
            number: 0,
            rig: rig.clone(),
            target: target.to_owned(),
            base: built.base.to_string(),
            tip: built.tip.to_string(),
            tree: built.tree.to_string(),
            state: CandidateState::Landing,
            builder: self.builder.to_owned(),
            parts: built
                .parts
                .iter()
                .map(|(request, after)| CandidatePart {
                    request: request.id.clone(),
                    before: request.accepted.clone(),
                    after: after.clone(),
                })
                .collect(),
            created_at: now,
            changed_at: now,
        };
        self.town.write(|writer| {
            if !writer.lease_queue(rig, target, self.builder, PUSH_LEASE_SECONDS, 0)? {
                return Ok(None);
            }
            let is_paused = writer.merge_queue(rig, target)?.is_some_and(|q| q.paused.is_some());
            if is_paused || !all_may_land(writer, built)? {
                return Ok(None);
            }
            let mut runs: &[CandidateCheck] = &[];
            if let Some(passed) = checks {
                if checks_in(writer, rig)? != passed.definitions {
                    return Ok(None);
                }
                runs = &passed.runs;
            }
            let candidate = writer.insert_candidate(candidate, runs)?;
            for (request, _) in &built.parts {
                let Some(current) = writer.merge_request(&request.id)? else { return Ok(None) };
                let landing = MergeRequest {
                    state: RequestState::Landing,
                    candidate: Some(candidate.number),
                    ..current.clone()
                };
                writer.save_merge_request(current.state, &landing)?;
            }
            Ok(Some(candidate))
        })
    }

    /// The requests of a candidate that are still being built or checked.
    fn still_mine(&self, built: &BuiltCandidate) -> Result<Vec<MergeRequestId>> {
        let mut mine = Vec::new();
        for id in built.ids() {
            let request = self.town.read(|reader| Ok(reader.merge_request(&id)?))?;
            let is_mine = request.is_some_and(|request| {
                matches!(request.state, RequestState::Building | RequestState::Checking)
            });
            mine.extend(is_mine.then_some(id));
        }
        Ok(mine)
    }

    /// Asks the origin of the rig whether it has the pushed commit. Only its answer counts: if it has none, the requests are
    /// held for this reason. If it does not answer, the next pass asks.
    fn confirm_push(
        &mut self,
        candidate: &Candidate,
        tip: &Commit,
        (reason, words, delay): &(RequestHold, String, Duration),
    ) -> Result<PushOutcome> {
        let failed = git_failed(self.rig);
        match self.repository.fetch() {
            Ok(()) => {}
            Err(GitError::Unreachable { .. }) => return Ok(PushOutcome::Stuck),
            Err(error) => return Err(failed(error)),
        }
        if self.repository.origin_has(&self.name.target, tip).map_err(&failed)? {
            self.is_fetched = true;
            self.confirm(candidate)?;
            let name = format!("candidate-{}", candidate.number);
            let _ = self.repository.forget_candidate(&self.name.target, &name);
            return Ok(PushOutcome::Landed);
        }
        self.hold(candidate, *reason, words, *delay)
    }

    /// Ends a push that the origin has answered with no, and holds its requests.
    fn hold(
        &mut self,
        candidate: &Candidate,
        reason: RequestHold,
        words: &str,
        delay: Duration,
    ) -> Result<PushOutcome> {
        let note = RequestNote {
            detail: words.to_owned(),
            retry_at: Some(self.town.now().plus(delay)),
            ..RequestNote::default()
        };
        let acted = self.town.write(|writer| {
            writer.end_candidate(candidate.number, CandidateState::Dropped)?;
            let mut acted = Vec::new();
            for part in &candidate.parts {
                let hold = RequestAction::Hold(reason);
                let origin = OriginAnswer::Absent;
                acted.extend(act_in(writer, &part.request, hold, origin, note.clone())?);
            }
            Ok(acted)
        })?;
        self.changed.extend(acted.into_iter().map(|request| request.id));
        let name = format!("candidate-{}", candidate.number);
        let _ = self.repository.forget_candidate(&self.name.target, &name);
        Ok(PushOutcome::Requeued)
    }
}

/// Whether a push was not taken because of what it brings: of several requests one may be to blame.
fn may_concern_one(push: &Push) -> bool {
    match push {
        Push::Rejected(why) => match why.kind {
            RefusalKind::Hook | RefusalKind::Quota | RefusalKind::Unknown => true,
            RefusalKind::ProtectedBranch | RefusalKind::Locked => false,
        },
        Push::Held(checkout) => matches!(
            checkout.obstacle,
            CheckoutObstacle::Files { .. } | CheckoutObstacle::Submodules(_)
        ),
        Push::Incomplete(_) => true,
        Push::Done | Push::LostRace(_) | Push::Unable(_) | Push::Unreachable(_) => false,
    }
}

/// Whether each request of a candidate is still in work, and approved if it has to be.
fn all_may_land(writer: &Writer<'_>, built: &BuiltCandidate) -> Result<bool> {
    for (request, _) in &built.parts {
        let current = writer.merge_request(&request.id)?;
        let Some(current) = current.filter(|current| {
            matches!(current.state, RequestState::Building | RequestState::Checking)
                && current.accepted == request.accepted
        }) else {
            return Ok(false);
        };
        if has_open_work(writer, &current)? {
            return Ok(false);
        }
        if current.review && approval_of(&current, &writer.reviews_of(&current.id)?).is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
