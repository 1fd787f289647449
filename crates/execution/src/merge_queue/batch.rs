//! One batch of requests: built, checked, and landed or searched for the one that is to blame.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use gt_core::BeadId;
use gt_core::checks::CheckPurpose;
use gt_core::merging::{
    BatchSearch, Candidate, MergeMethod, MergeRequest, MergeRequestId, OriginAnswer, RequestAction,
    RequestHold, RequestPurpose, RequestState, SearchStep, approval_of, in_queue_order,
    may_share_batch,
};
use gt_executors::git::{AppliedAs, CandidateMember, Commit, LandMethod, MemberOutcome, Signature};

use gt_store::Reader;

use super::integrate::{has_open_work, is_buildable};
use super::land::{BuiltCandidate, PushOutcome};
use super::machine::MergeLock;
use super::pass::{PassScope, QueueBuilder};
use super::repair::RepairCause;
use super::revert::kept_revert_name;
use super::verify::{CheckFailure, CheckVerdict};
use gt_beads::merge_requests::{RequestNote, act_in};
use gt_town::Result;
use gt_town::landing_identity::LandingIdentity;
use gt_town::tree_paths::{git_failed, signature_of};

/// How often a request is built again because the target moved, before it is held.
const REBUILDS_MAX: u32 = 5;
/// The delay before a check that could not be run to its end is run again.
const CHECK_ERROR_DELAY: Duration = Duration::from_mins(10);
/// The delay before a target that moves faster than the checks is tried again.
const TARGET_MOVES_DELAY: Duration = Duration::from_mins(10);

/// Whether the queue has more to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchProgress {
    /// It has.
    GoOn,
    /// It waits for something outside.
    Stop,
}

impl BatchProgress {
    fn after(push: PushOutcome) -> Self {
        match push {
            PushOutcome::Landed | PushOutcome::Requeued => Self::GoOn,
            PushOutcome::Stuck => Self::Stop,
        }
    }
}

/// The seconds without a sign of life after which a host counts as away.
const HOST_AWAY_S: i64 = 600;
/// The delay before a commit that only such a host has is looked for again.
const HOST_AWAY_DELAY: Duration = Duration::from_mins(10);
/// Why an approved request is reviewed once more.
const CHANGED_SINCE_REVIEW: &str = "it is not the change that was approved: the target has moved";
/// How often a direct request is built again because the target moved, before it takes its turn in line.
const DIRECT_REBUILDS_MAX: u32 = 3;

/// The checks and conditions that a batch has to pass before it lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchKind {
    /// The checks of the rig.
    Checked,
    /// The checks, and then the review of the only request in it.
    BeforeReview,
    /// No checks.
    Unchecked,
}

/// Requests that are built together.
pub(super) struct Batch {
    pub(super) requests: Vec<MergeRequest>,
    kind: BatchKind,
}

/// The host of a run, which may be the only one that has its commit.
struct CommitHost {
    name: String,
    /// The seconds since it was seen, by the store's clock; nothing if no such host is known.
    seen_ago_s: Option<i64>,
}

impl CommitHost {
    /// The host of the run of a request, if that is not this one.
    fn elsewhere(reader: &Reader<'_>, request: &MergeRequest, host: &str) -> Result<Option<Self>> {
        let Some(run) = request.run() else { return Ok(None) };
        let run = reader.run(&run)?.filter(|run| !run.host.is_empty() && run.host != host);
        let Some(run) = run else { return Ok(None) };
        let known = reader.hosts()?.into_iter().find(|(known, _)| run.is_on(&known.id));
        Ok(Some(match known {
            Some((known, ago)) => {
                Self { name: format!("{} ({})", known.name, known.path), seen_ago_s: Some(ago) }
            }
            None => Self { name: run.host_name().to_owned(), seen_ago_s: None },
        }))
    }

    /// Whether a person has to see to it that the commit arrives.
    fn is_away(&self) -> bool {
        self.seen_ago_s.is_none_or(|ago| ago > HOST_AWAY_S)
    }
}

/// The name under which git keeps the commit that people review, once that is not the commit of the worker any more.
fn reviewed_name(bead: &BeadId, base: &str) -> String {
    format!("reviewed-{bead}-{base}")
}

/// Whether a request does not wait for its turn.
pub(super) fn is_direct(request: &MergeRequest) -> bool {
    request.method == MergeMethod::Direct && request.rebuilds <= DIRECT_REBUILDS_MAX
}

impl QueueBuilder<'_> {
    /// The requests whose turn it is. Nothing if the queue is paused, or if nothing waits.
    pub(super) fn next_batch(&mut self, tip: &Commit, scope: PassScope) -> Result<Option<Batch>> {
        let (rig, target) = (&self.name.rig, self.name.target.as_str());
        let (queue, line, reviews, elsewhere) = self.town.read(|reader| {
            let mut line = Vec::new();
            let mut elsewhere = BTreeMap::new();
            let mut reviews = HashMap::new();
            for request in reader.merge_line(rig, target)? {
                if request.state != RequestState::Queued {
                    continue;
                }
                if request.queue_stop.blocker.is_some()
                    || !is_buildable(&request)
                    || has_open_work(reader, &request)?
                {
                    continue;
                }
                if request.review {
                    reviews.insert(request.id.clone(), reader.reviews_of(&request.id)?);
                }
                let Some(bead) = reader.bead(&request.id.bead)? else { continue };
                if let Some(host) = CommitHost::elsewhere(reader, &request, self.builder)? {
                    elsewhere.insert(request.id.clone(), host);
                }
                line.push((request, bead.priority));
            }
            Ok((reader.merge_queue(rig, target)?, line, reviews, elsewhere))
        })?;
        let line = self.without_missing(line, &elsewhere)?;
        if queue.as_ref().is_some_and(|queue| queue.paused.is_some()) {
            return Ok(None);
        }
        let red = queue.and_then(|queue| queue.red);
        let is_red = red.as_ref().is_some_and(|red| red.commit == tip.as_str());
        if red.is_some() && !is_red {
            // Others have moved the target: it is looked at again.
            self.town.write(|writer| Ok(writer.set_red_target(rig, target, None)?))?;
        }
        let now = self.town.now();
        let mut line: Vec<_> =
            line.into_iter().filter(|(request, _)| request.waits_until(now).is_none()).collect();
        in_queue_order(&mut line);
        let direct = line.iter().map(|(request, _)| request).filter(|request| is_direct(request));
        let direct = self.together(direct.cloned(), self.batch_max);
        if !direct.is_empty() {
            return Ok(Some(Batch { requests: direct, kind: BatchKind::Unchecked }));
        }
        if scope == PassScope::Direct {
            return Ok(None);
        }
        line.retain(|(request, _)| !is_red || request.fix);
        let waits_for_person = |request: &MergeRequest| {
            let reviews = reviews.get(&request.id).map_or(&[][..], Vec::as_slice);
            request.review && approval_of(request, reviews).is_none()
        };
        let Some((first, _)) = line.first() else { return Ok(None) };
        // Each has a branch and a pull request of its own.
        if first.method == MergeMethod::PullRequest {
            let requests = vec![first.clone()];
            return Ok(Some(Batch { requests, kind: BatchKind::Checked }));
        }
        if waits_for_person(first) {
            let requests = vec![first.clone()];
            return Ok(Some(Batch { requests, kind: BatchKind::BeforeReview }));
        }
        if first.method == MergeMethod::Direct {
            let requests = vec![first.clone()];
            return Ok(Some(Batch { requests, kind: BatchKind::Unchecked }));
        }
        let requests = line.into_iter().map(|(request, _)| request);
        let requests = requests
            .filter(|request| request.method == MergeMethod::Queue && !waits_for_person(request));
        let most = if is_red { 1 } else { self.batch_max };
        Ok(Some(Batch { requests: self.together(requests, most), kind: BatchKind::Checked }))
    }

    /// The first of these requests with those after it, as far as none of them is to be tried on its own.
    fn together(
        &self,
        requests: impl Iterator<Item = MergeRequest>,
        most: usize,
    ) -> Vec<MergeRequest> {
        let mut requests = requests.peekable();
        if let Some(first) = requests.next_if(|first| self.alone.contains(&first.id)) {
            return vec![first];
        }
        let mut together: Vec<MergeRequest> = Vec::new();
        for request in requests.filter(|request| !self.alone.contains(&request.id)) {
            let is_possible = together.first().is_none_or(|first| may_share_batch(first, &request));
            if is_possible && together.len() < most {
                together.push(request);
            }
        }
        together
    }

    /// Leaves out requests whose commit is on another host alone: a builder of that host builds them. If that host is away,
    /// a person is asked.
    fn without_missing<T>(
        &mut self,
        line: Vec<(MergeRequest, T)>,
        elsewhere: &BTreeMap<MergeRequestId, CommitHost>,
    ) -> Result<Vec<(MergeRequest, T)>> {
        let mut found = Vec::new();
        for (request, priority) in line {
            let accepted = self.commit(&request.accepted)?;
            let Some(host) = elsewhere.get(&request.id) else {
                found.push((request, priority));
                continue;
            };
            if self.repository.has(&accepted).map_err(git_failed(self.rig))? {
                found.push((request, priority));
            } else if host.is_away() {
                let short: String = accepted.as_str().chars().take(12).collect();
                let note = RequestNote {
                    detail: format!("only {} has {short}", host.name),
                    retry_at: Some(self.town.now().plus(HOST_AWAY_DELAY)),
                    ..RequestNote::default()
                };
                let hold = RequestAction::Hold(RequestHold::CommitElsewhere);
                self.act(&[request.id], hold, OriginAnswer::Unknown, &note)?;
            }
        }
        Ok(found)
    }

    /// Builds, checks and lands a batch. The turn at the origin is given back while checks run.
    pub(super) fn run_batch(
        &mut self,
        turn: Box<dyn MergeLock + '_>,
        tip: &Commit,
        batch: &Batch,
    ) -> Result<BatchProgress> {
        let Some(built) = self.build(tip, &batch.requests)? else { return Ok(BatchProgress::GoOn) };
        if batch.kind == BatchKind::Unchecked {
            return Ok(BatchProgress::after(self.land_in_turn(turn.as_ref(), &built, None)?));
        }
        drop(turn);
        match self.check(&built)? {
            CheckVerdict::Passed(_) if batch.kind == BatchKind::BeforeReview => {
                let words = RequestNote::words("its checks pass");
                self.act(&built.ids(), RequestAction::AskReview, OriginAnswer::Unknown, &words)?;
                Ok(BatchProgress::GoOn)
            }
            CheckVerdict::Passed(checks) => Ok(BatchProgress::after(self.land(&built, &checks)?)),
            CheckVerdict::Error(error) => self.hold_unchecked(&built, &error),
            CheckVerdict::Failed(failure) => {
                self.search(built, failure, batch.kind == BatchKind::BeforeReview)
            }
        }
    }

    /// Puts requests on top of the tip. Those that do not apply go back to their authors. Nothing if none is left.
    fn build(&mut self, tip: &Commit, requests: &[MergeRequest]) -> Result<Option<BuiltCandidate>> {
        let ids: Vec<MergeRequestId> = requests.iter().map(|request| request.id.clone()).collect();
        let note = RequestNote::default();
        let building = self.act(&ids, RequestAction::Build, OriginAnswer::Unknown, &note)?;
        if building.is_empty() {
            return Ok(None);
        }
        let members: Vec<CandidateMember> =
            building.iter().map(|request| self.member(request)).collect::<Result<_>>()?;
        let built = self.repository.build_candidate(tip.as_str(), tip, &members, self.method);
        let built = built.map_err(git_failed(self.rig))?;
        self.unsigned = built.unsigned;
        let mut parts = Vec::new();
        for (request, outcome) in building.into_iter().zip(built.members) {
            match outcome {
                MemberOutcome::Applied { before, after, applied_as, .. } => {
                    if self.is_changed_since_review(&request, (&before, &after), applied_as)? {
                        if parts.is_empty() {
                            self.ask_review_again(&request, tip)?;
                        } else {
                            // People look at what it changes on the target, and not on work that may never land.
                            self.alone.insert(request.id);
                        }
                        // Without it, all that came after it has to be built again.
                        return self.requeue(&parts, &RequestNote::default()).map(|()| None);
                    }
                    parts.push((request, after.to_string()));
                }
                MemberOutcome::AlreadyThere => {
                    let after =
                        parts.last().map_or_else(|| tip.to_string(), |(_, after)| after.clone());
                    parts.push((request, after));
                }
                // It conflicts with one that has not landed, and may never: its turn comes when that is known. A repair now
                // would not see what it conflicts with.
                MemberOutcome::Conflict { .. } if !parts.is_empty() => {
                    let note = RequestNote::default();
                    self.act(&[request.id], RequestAction::Requeue, OriginAnswer::Unknown, &note)?;
                }
                MemberOutcome::Conflict { paths, .. } => {
                    let paths = paths.iter().map(|path| path.display().to_string()).collect();
                    self.send_back(
                        &request,
                        &RepairCause::Conflict { paths, tip: tip.to_string() },
                    )?;
                }
                MemberOutcome::Unreadable(why) => {
                    let note = RequestNote {
                        detail: why,
                        retry_at: Some(self.town.now().plus(CHECK_ERROR_DELAY)),
                        ..RequestNote::default()
                    };
                    let hold = RequestAction::Hold(RequestHold::CheckError);
                    self.act(&[request.id], hold, OriginAnswer::Unknown, &note)?;
                }
            }
        }
        if parts.is_empty() {
            return Ok(None);
        }
        Ok(Some(BuiltCandidate { base: tip.clone(), tip: built.tip, tree: built.tree, parts }))
    }

    pub(super) fn member(&self, request: &MergeRequest) -> Result<CandidateMember> {
        let (run, bead) = self.town.read(|reader| {
            let run = match request.run() {
                Some(run) => reader.run(&run)?,
                None => None,
            };
            Ok((run, reader.bead(&request.id.bead)?))
        })?;
        let unnamed = || Signature { name: "gt".to_owned(), email: "gt@gt.invalid".to_owned() };
        let identity = match &run {
            Some(run) => LandingIdentity::of(&run.id, signature_of(run), self.person.clone()),
            None => LandingIdentity {
                signature: self.person.clone().unwrap_or_else(unnamed),
                replaced_author: None,
                trailers: Vec::new(),
            },
        };
        Ok(CandidateMember {
            commit: self.commit(&request.accepted)?,
            base: Commit::parse(&request.base),
            name: request.id.to_string(),
            message: match (self.method, request.purpose) {
                // The message of a revert says what it undoes.
                (LandMethod::Rebase, _) | (_, RequestPurpose::Revert) => None,
                (
                    LandMethod::Squash | LandMethod::Merge,
                    RequestPurpose::Work | RequestPurpose::Integration,
                ) => bead.map(|bead| bead.title.to_string()),
            },
            trailers: identity.trailers,
            signature: identity.signature,
            replaced_author: identity.replaced_author,
        })
    }

    /// Asks for a review of what a request is on this target, because that is not what was approved. The request goes on as
    /// that commit: an approval is for it, and holds until the target changes it once more. Only the request of a convoy stays
    /// at the tip of its branch, and the approval is for that on this target.
    fn ask_review_again(&mut self, request: &MergeRequest, tip: &Commit) -> Result<()> {
        let accepted = match request.purpose {
            RequestPurpose::Integration => request.accepted.clone(),
            RequestPurpose::Work | RequestPurpose::Revert => {
                let name = reviewed_name(&request.id.bead, tip.as_str());
                let members = [self.member(request)?];
                let built = self.repository.build_candidate(&name, tip, &members, self.method);
                built.map_err(git_failed(self.rig))?.tip.to_string()
            }
        };
        let (action, note) = (RequestAction::AskReview, RequestNote::words(CHANGED_SINCE_REVIEW));
        let asked = self.town.write(|writer| {
            let asked = act_in(writer, &request.id, action, OriginAnswer::Unknown, note)?;
            let Some(asked) = asked else { return Ok(None) };
            let moved = MergeRequest { accepted, base: tip.to_string(), ..asked.clone() };
            writer.save_merge_request(asked.state, &moved)?;
            Ok(Some(moved))
        })?;
        if let Some(asked) = asked {
            if request.base != asked.base {
                self.drop_kept(request);
            }
            self.changed.insert(asked.id);
        }
        Ok(())
    }

    /// Keeps no longer what is kept for a request alone.
    pub(super) fn drop_kept(&self, request: &MergeRequest) {
        let bead = &request.id.bead;
        let reviewed = request.review.then(|| reviewed_name(bead, &request.base));
        let undoing = (request.purpose == RequestPurpose::Revert)
            .then(|| kept_revert_name(bead, &request.accepted));
        for name in reviewed.into_iter().chain(undoing) {
            // A name that cannot be dropped stays, and costs little.
            let _ = self.repository.drop_candidate(&name);
        }
    }

    /// Whether an approved request has become another change on this target.
    fn is_changed_since_review(
        &self,
        request: &MergeRequest,
        (before, after): (&Commit, &Commit),
        applied_as: AppliedAs,
    ) -> Result<bool> {
        let Some(base) = Commit::parse(&request.base).filter(|_| request.review) else {
            return Ok(false);
        };
        let reviews = self.town.read(|reader| Ok(reader.reviews_of(&request.id)?))?;
        if approval_of(request, &reviews).is_none() {
            return Ok(false);
        }
        let accepted = self.commit(&request.accepted)?;
        let base = match request.purpose {
            RequestPurpose::Work | RequestPurpose::Revert => base,
            // It was approved for this target.
            RequestPurpose::Integration if base == *before => return Ok(false),
            RequestPurpose::Integration => {
                let common = self.repository.merge_base(&base, &accepted);
                common.map_err(git_failed(self.rig))?.unwrap_or(base)
            }
        };
        let (work, candidate) = ((&base, &accepted), (before, after));
        let is_same = match applied_as {
            // It is one commit, and changes the same as a whole.
            AppliedAs::Squashed | AppliedAs::Merged => {
                self.repository.is_same_change(work, candidate)
            }
            AppliedAs::Commits => self.repository.is_same_work(work, candidate),
        };
        Ok(!is_same.map_err(git_failed(self.rig))?)
    }

    fn check(&mut self, built: &BuiltCandidate) -> Result<CheckVerdict> {
        let note = RequestNote::default();
        self.act(&built.ids(), RequestAction::Check, OriginAnswer::Unknown, &note)?;
        // A check takes its time.
        self.is_fetched = false;
        self.verify(&built.tip, CheckPurpose::Candidate)
    }

    /// A check of a candidate could not be run to its end. One request of several may be the reason, so each is tried on its
    /// own; if the check does not end on the target either, all wait.
    fn hold_unchecked(
        &mut self,
        built: &BuiltCandidate,
        error: &CheckFailure,
    ) -> Result<BatchProgress> {
        let ids = built.ids();
        let [id] = ids.as_slice() else {
            self.requeue(&built.parts, &RequestNote::default())?;
            self.alone.extend(ids);
            return Ok(BatchProgress::GoOn);
        };
        if self.alone.contains(id)
            && matches!(self.verify(&built.base, CheckPurpose::Base)?, CheckVerdict::Error(_))
        {
            let in_line = self.line()?.into_iter().filter(|request| {
                matches!(request.state, RequestState::Queued | RequestState::Checking)
            });
            let in_line: Vec<MergeRequestId> = in_line.map(|request| request.id).collect();
            return self.hold_for_error(&in_line, error);
        }
        self.hold_for_error(&ids, error)
    }

    pub(super) fn hold_for_error(
        &mut self,
        ids: &[MergeRequestId],
        error: &CheckFailure,
    ) -> Result<BatchProgress> {
        let note = RequestNote {
            detail: format!("{}: {}", error.check, error.words),
            retry_at: Some(self.town.now().plus(CHECK_ERROR_DELAY)),
            check_run: Some(error.check_run),
            ..RequestNote::default()
        };
        let hold = RequestAction::Hold(RequestHold::CheckError);
        self.act(ids, hold, OriginAnswer::Unknown, &note)?;
        Ok(BatchProgress::GoOn)
    }

    /// Finds the request that makes a check fail: halves that pass land at once, and the culprit goes back to its author.
    fn search(
        &mut self,
        built: BuiltCandidate,
        mut failure: CheckFailure,
        is_before_review: bool,
    ) -> Result<BatchProgress> {
        let mut base = built.base.clone();
        let all: Vec<MergeRequest> = built.parts.into_iter().map(|(request, _)| request).collect();
        let mut search = BatchSearch::new(all);
        loop {
            let part = match search.step() {
                SearchStep::Over => return Ok(BatchProgress::GoOn),
                SearchStep::Culprit(request) => {
                    return self.blame(&request, &base, failure);
                }
                SearchStep::Check(part) => part,
            };
            let turn = self.repository.turn().map_err(git_failed(self.rig))?;
            let others: Vec<MergeRequestId> = self.in_work()?;
            self.act(
                &others,
                RequestAction::Requeue,
                OriginAnswer::Unknown,
                &RequestNote::default(),
            )?;
            let Some(built) = self.build(&base, &part)? else { return Ok(BatchProgress::GoOn) };
            drop(turn);
            match self.check(&built)? {
                CheckVerdict::Passed(checks) if !is_before_review => {
                    let tip = built.tip.clone();
                    match self.land(&built, &checks)? {
                        PushOutcome::Landed => base = tip,
                        PushOutcome::Requeued => return Ok(BatchProgress::GoOn),
                        PushOutcome::Stuck => return Ok(BatchProgress::Stop),
                    }
                    search = search.passed();
                }
                CheckVerdict::Passed(_) => return Ok(BatchProgress::GoOn),
                CheckVerdict::Error(error) => {
                    return self.hold_unchecked(&built, &error);
                }
                CheckVerdict::Failed(next) => {
                    failure = next;
                    search = search.failed();
                }
            }
        }
    }

    /// The requests of this queue that are being built or checked.
    fn in_work(&self) -> Result<Vec<MergeRequestId>> {
        let line = self.line()?.into_iter();
        let in_work = line.filter(|request| {
            // Another process of this host may be landing direct requests.
            matches!(request.state, RequestState::Building | RequestState::Checking)
                && request.method != MergeMethod::Direct
        });
        Ok(in_work.map(|request| request.id).collect())
    }

    /// A check fails with this request alone: it is to blame if the check passes without it.
    pub(super) fn blame(
        &mut self,
        request: &MergeRequest,
        base: &Commit,
        failure: CheckFailure,
    ) -> Result<BatchProgress> {
        self.is_fetched = false;
        match self.verify(base, CheckPurpose::Base)? {
            CheckVerdict::Passed(_) => {
                let CheckFailure { check: name, words, check_run } = failure;
                let cause = RepairCause::Check { name, words, check_run };
                self.send_back(request, &cause)?;
                let rest = self.in_work()?;
                let note = RequestNote::default();
                self.act(&rest, RequestAction::Requeue, OriginAnswer::Unknown, &note)?;
                Ok(BatchProgress::GoOn)
            }
            CheckVerdict::Error(error) => {
                let ids = self.in_work()?;
                self.hold_for_error(&ids, &error)
            }
            CheckVerdict::Failed(CheckFailure { check: red, .. }) => {
                let (rig, target) = (&self.name.rig, self.name.target.as_str());
                self.town.write(|writer| {
                    Ok(writer.set_red_target(rig, target, Some((base.as_str(), &red)))?)
                })?;
                let ids = self.in_work()?;
                // The queue says that its target is red.
                let note = RequestNote::default();
                self.act(&ids, RequestAction::Requeue, OriginAnswer::Unknown, &note)?;
                if !request.fix {
                    return Ok(BatchProgress::Stop);
                }
                self.give_way(&request.id, &failure.check)?;
                Ok(BatchProgress::GoOn)
            }
        }
    }

    /// Lets a request that was to mend the target, and does not, wait like the others: the next one that may mend it is tried.
    fn give_way(&mut self, id: &MergeRequestId, check: &str) -> Result<()> {
        let detail = format!("it was to mend that, and {check} fails with it, too");
        self.town.write(|writer| {
            let Some(request) = writer.merge_request(id)? else { return Ok(()) };
            let state = request.state;
            writer.save_merge_request(state, &MergeRequest { fix: false, detail, ..request })?;
            Ok(())
        })
    }

    /// Puts requests back in line.
    fn requeue(&mut self, parts: &[(MergeRequest, String)], note: &RequestNote) -> Result<()> {
        let mut ids: Vec<MergeRequestId> =
            parts.iter().map(|(request, _)| request.id.clone()).collect();
        ids.extend(self.in_work()?);
        let note = RequestNote { detail: String::new(), ..note.clone() };
        self.act(&ids, RequestAction::Requeue, OriginAnswer::Unknown, &note)?;
        Ok(())
    }

    /// Puts requests back in line because the target moved under their candidate; those that this happens to too often are
    /// held.
    pub(super) fn rebuild(&mut self, ids: &[MergeRequestId], origin: OriginAnswer) -> Result<()> {
        let note = RequestNote { counts_as_rebuild: true, ..RequestNote::default() };
        let again = self.act(ids, RequestAction::Requeue, origin, &note)?;
        self.hold_often_rebuilt(again)
    }

    /// The same for the requests of a candidate that the origin did not take because its target had moved.
    pub(super) fn rebuild_after_race(&mut self, candidate: &Candidate) -> Result<()> {
        let note = RequestNote { counts_as_rebuild: true, ..RequestNote::default() };
        let again = self.take_back(candidate, OriginAnswer::Absent, &note)?;
        self.hold_often_rebuilt(again)
    }

    fn hold_often_rebuilt(&mut self, again: Vec<MergeRequest>) -> Result<()> {
        let too_often = again.into_iter().filter(|request| request.rebuilds > REBUILDS_MAX);
        let too_often: Vec<MergeRequestId> = too_often.map(|request| request.id).collect();
        let note = RequestNote {
            detail: format!("it was built {REBUILDS_MAX} times, and each time others had pushed"),
            retry_at: Some(self.town.now().plus(TARGET_MOVES_DELAY)),
            ..RequestNote::default()
        };
        let hold = RequestAction::Hold(RequestHold::TargetMoves);
        self.act(&too_often, hold, OriginAnswer::Unknown, &note)?;
        Ok(())
    }
}
