//! Bringing the work of a request to a pull request.

use std::time::Duration;

use gt_core::checks::CheckPurpose;
use gt_core::hosting::{
    BRANCH_TRIES_MAX, PullRequest, PullRequestDescription, PullRequestState, PullRequestTip,
    RequestMarker, TrackedPullRequest, pull_request_branch,
};
use gt_core::merging::{
    MergeRequest, OriginAnswer, PullRequestName, RequestAction, RequestHold, RequestPurpose,
    RequestState,
};
use gt_core::message::{MessageBody, Severity};
use gt_core::secret_mask::SecretMask;
use gt_core::{MessageAddress, Sender, Timestamp};
use gt_executors::git::{CandidateMember, Commit, GitError, LandMethod, MemberOutcome, Push};
use gt_executors::hosting::{HostingError, NewPullRequest, PullRequestHead};
use gt_store::{CandidateCheck, Writer};

use super::super::batch::BatchProgress;
use super::super::machine::HostingService;
use super::super::pass::{PUSH_LEASE_SECONDS, QueueBuilder};
use super::super::repair::RepairCause;
use super::super::verify::CheckVerdict;
use super::hosted_rig::HostingFailure;
use gt_beads::merge_requests::{RequestNote, act_in};
use gt_beads::messages::escalate_in;
use gt_town::hosting::NoHosting;
use gt_town::tree_paths::git_failed;
use gt_town::{OperationError, Result};

/// The longest time of a push: shorter than the lease of its builder.
const PUSH_TIME_MAX: Duration = Duration::from_secs(590);
/// The delay before an origin that refused is asked again.
const REFUSED_DELAY: Duration = Duration::from_mins(10);
/// The delay before an origin that does not answer, or a tool that is missing, is tried again.
const AWAY_DELAY: Duration = Duration::from_mins(1);

/// The words for a pull request that was closed.
pub(super) const CLOSED: &str = "a person has closed it without a merge";

/// The commit that the branch of a pull request is to have.
struct PublishedCommit {
    commit: Commit,
    /// The commit that the branch has now; nothing if there is no such branch.
    there: Option<Commit>,
}

/// The consequence of building it.
enum PublishPlan {
    /// The branch is at this commit and has everything; these tips say so, if that is not recorded yet.
    There(Commit, Vec<PullRequestTip>),
    /// This is to be pushed.
    Push(PublishedCommit),
    /// The target has everything.
    InTarget,
    /// The request was sent back or held.
    Stopped,
}

/// The consequence of the state of a pull request, before more is pushed to it.
enum PublishStart {
    /// The branch and the number that the request goes on with, and the accepted commit that the target has already.
    GoOn { name: PullRequestName, landed: Option<Commit> },
    /// A person has merged it, and everything of this request with it.
    Merged,
    /// A person has changed it: this is held.
    Changed(String),
}

impl QueueBuilder<'_> {
    /// Checks a request, pushes it to the branch of its pull request, and opens or updates that.
    pub(in super::super) fn publish(
        &mut self,
        target: &Commit,
        request: &MergeRequest,
    ) -> Result<BatchProgress> {
        let hosted = match self.machine.hosting(self.town, self.rig)? {
            Ok(hosted) => hosted,
            Err(NoHosting(words)) => {
                let retry_at = Some(self.town.now().plus(REFUSED_DELAY));
                let note = RequestNote { detail: words, retry_at, ..RequestNote::default() };
                return self.stop(request, RequestAction::Hold(RequestHold::HostingTool), &note);
            }
        };
        match self.try_publish(hosted.as_ref(), target, request) {
            Ok(progress) => Ok(progress),
            Err(PublishStop::Service(error)) => self.put_off(request, &error),
            Err(PublishStop::Changed(words)) => self.hold_changed(request, &words),
            Err(PublishStop::Git(GitError::Unreachable { message, .. })) => {
                let retry_at = Some(self.town.now().plus(AWAY_DELAY));
                let note = RequestNote { detail: message, retry_at, ..RequestNote::default() };
                let hold = RequestAction::Hold(RequestHold::OriginUnreachable);
                self.stop(request, hold, &note)
            }
            Err(PublishStop::Git(error)) => Err(git_failed(self.rig)(error)),
            Err(PublishStop::Operation(error)) => Err(error),
        }
    }

    fn try_publish(
        &mut self,
        hosted: &dyn HostingService,
        target: &Commit,
        request: &MergeRequest,
    ) -> std::result::Result<BatchProgress, PublishStop> {
        // This is also the test whether the tool is there and logged in, before anything is built.
        hosted.login()?;
        let shown = request.pull_request.number.map(|number| hosted.show(number)).transpose()?;
        let (mut name, landed) = match self.start(request, shown.as_ref())? {
            PublishStart::GoOn { name, landed } => (name, landed),
            PublishStart::Merged => {
                let now = self.town.now();
                self.wait_for_people(request, &request.pull_request, now)?;
                return Ok(BatchProgress::GoOn);
            }
            PublishStart::Changed(words) => return Err(PublishStop::Changed(words)),
        };
        let ids = [request.id.clone()];
        let note = RequestNote::default();
        if self.act(&ids, RequestAction::Build, OriginAnswer::Unknown, &note)?.is_empty() {
            return Ok(BatchProgress::GoOn);
        }
        if name.branch.is_empty() {
            name.branch = self.free_branch(hosted, request)?;
        }
        let plan = self.plan(hosted, target, request, &name, landed)?;
        let (commit, tips, push) = match plan {
            PublishPlan::Stopped => return Ok(BatchProgress::GoOn),
            PublishPlan::InTarget => {
                self.confirm_merged(request, target.as_str())?;
                return Ok(BatchProgress::GoOn);
            }
            PublishPlan::There(commit, tips) => (commit, tips, None),
            PublishPlan::Push(push) => {
                (push.commit.clone(), vec![our_tip(request, push.commit.as_str())], Some(push))
            }
        };
        self.act(&ids, RequestAction::Check, OriginAnswer::Unknown, &note)?;
        // A branch that has everything was checked before it was pushed, and commits of others are checked by the service.
        let has_news = push.is_some() || name.number.is_none();
        let checks = if has_news {
            match self.verify(&commit, CheckPurpose::Candidate)? {
                CheckVerdict::Passed(passed) => passed.runs,
                CheckVerdict::Error(error) => {
                    return Ok(self.hold_for_error(&ids, &error)?);
                }
                CheckVerdict::Failed(failure) => {
                    return Ok(self.blame(request, target, failure)?);
                }
            }
        } else {
            Vec::new()
        };
        if !self.intend_push(request, &name, &tips)? {
            self.act(&ids, RequestAction::Requeue, OriginAnswer::Unknown, &note)?;
            return Ok(BatchProgress::Stop);
        }
        if let Some(push) = push
            && !self.push_pull_branch(hosted, request, &name.branch, &push)?
        {
            return Ok(BatchProgress::GoOn);
        }
        if has_news {
            self.open_or_update(hosted, request, &mut name, &checks)?;
        }
        let due_at = self.town.now().plus(hosted.poll_interval());
        self.wait_for_people(request, &name, due_at)?;
        Ok(BatchProgress::GoOn)
    }

    /// Whether the request goes on with its pull request, as the service shows it.
    fn start(&self, request: &MergeRequest, shown: Option<&PullRequest>) -> Result<PublishStart> {
        let name = request.pull_request.clone();
        let Some(shown) = shown else {
            return Ok(PublishStart::GoOn { name, landed: None });
        };
        Ok(match shown.state {
            PullRequestState::Open if shown.base_branch != request.target => {
                PublishStart::Changed(base_changed(request, &shown.base_branch))
            }
            PullRequestState::Open => PublishStart::GoOn { name, landed: None },
            PullRequestState::Closed => PublishStart::Changed(CLOSED.to_owned()),
            PullRequestState::Merged => {
                let tips = self.tips(request, &name.branch)?;
                let ours = tips.iter().rev().find(|tip| tip.is_ours());
                match ours {
                    // The rest of the work gets a pull request of its own.
                    Some(ours) if ours.accepted != request.accepted => PublishStart::GoOn {
                        name: PullRequestName::default(),
                        landed: Commit::parse(&ours.accepted),
                    },
                    _ => PublishStart::Merged,
                }
            }
        })
    }

    fn tips(&self, request: &MergeRequest, branch: &str) -> Result<Vec<PullRequestTip>> {
        let bead = &request.id.bead;
        self.town.read(|reader| Ok(reader.pull_request_tips(bead, branch)?))
    }

    /// The title and the description of what a request does, without keys of accounts: the branch has words of the title.
    fn title_and_description(&self, request: &MergeRequest) -> Result<(String, String)> {
        let (bead, accounts) = self
            .town
            .read(|reader| Ok((reader.bead(&request.id.bead)?, reader.accounts_to_mask()?)))?;
        let mask = SecretMask::of_accounts(&accounts);
        let masked = |text: &str| mask.mask(text).into_owned();
        let (title, description) = bead
            .map(|bead| (masked(bead.title.as_str()), masked(&bead.description)))
            .unwrap_or_default();
        Ok(match request.purpose {
            RequestPurpose::Work | RequestPurpose::Integration => (title, description),
            RequestPurpose::Revert => {
                let description = "This undoes work that has landed. The commit says why.";
                (format!("Revert \"{title}\""), description.to_owned())
            }
        })
    }

    /// A name that no branch has yet.
    fn free_branch(
        &self,
        hosted: &dyn HostingService,
        request: &MergeRequest,
    ) -> std::result::Result<String, PublishStop> {
        let (title, _) = self.title_and_description(request)?;
        for attempt in 1..=BRANCH_TRIES_MAX {
            let name = pull_request_branch(&request.id.bead, &title, attempt);
            if hosted.hosted_tip(&name)?.is_none() {
                return Ok(name);
            }
        }
        Err(OperationError::rejected(format!(
            "{} has {BRANCH_TRIES_MAX} branches for {} already; delete those that are not needed",
            self.rig.slug, request.id.bead
        ))
        .into())
    }

    /// Builds the commit that the branch is to have. Commits of others there stay: ours go on top of them. A worker that
    /// rewrote its commits gets a new start from the target, with the commits of others on top.
    fn plan(
        &mut self,
        hosted: &dyn HostingService,
        target: &Commit,
        request: &MergeRequest,
        name: &PullRequestName,
        landed: Option<Commit>,
    ) -> std::result::Result<PublishPlan, PublishStop> {
        let branch = name.branch.as_str();
        let id = format!("pull-{}", request.id);
        let there = hosted.hosted_tip(branch)?;
        let tips = self.tips(request, branch)?;
        let member = self.member(request)?;
        let accepted = member.commit.clone();
        let ours = tips.iter().rev().find(|tip| tip.is_ours());
        let (base, members) = if let (Some(there), Some(ours)) = (&there, ours) {
            let previous = self.last_pushed(&tips, there)?.unwrap_or(ours);
            if previous.accepted == request.accepted {
                // People may have merged the pull request that this one was to replace.
                let all = CandidateMember { commit: there.clone(), base: None, ..member };
                let is_in_target = name.number.is_none() && {
                    let method = LandMethod::Squash;
                    self.repository.build_candidate(&id, target, &[all], method)?.tip == *target
                };
                return Ok(if is_in_target {
                    PublishPlan::InTarget
                } else {
                    PublishPlan::There(there.clone(), Vec::new())
                });
            }
            let previous_accepted = self.commit(&previous.accepted)?;
            if self.repository.has_in_history(&accepted, &previous_accepted)? {
                let base = Some(previous_accepted);
                (there.clone(), vec![CandidateMember { base, ..member }])
            } else {
                let mut members = vec![member];
                if previous.commit != there.as_str() {
                    members.push(CandidateMember {
                        commit: there.clone(),
                        base: Commit::parse(&previous.commit),
                        name: format!("commits of others on {branch}"),
                        message: None,
                        trailers: Vec::new(),
                        signature: members[0].signature.clone(),
                        replaced_author: None,
                    });
                }
                (target.clone(), members)
            }
        } else {
            let base = landed.or_else(|| member.base.clone());
            (target.clone(), vec![CandidateMember { base, ..member }])
        };
        let built = self.repository.build_candidate(&id, &base, &members, LandMethod::Rebase)?;
        for outcome in &built.members {
            match outcome {
                MemberOutcome::Applied { .. } | MemberOutcome::AlreadyThere => {}
                MemberOutcome::Conflict { paths, .. } => {
                    let paths = paths.iter().map(|path| path.display().to_string()).collect();
                    self.send_back(
                        request,
                        &RepairCause::Conflict { paths, tip: base.to_string() },
                    )?;
                    return Ok(PublishPlan::Stopped);
                }
                MemberOutcome::Unreadable(why) => {
                    let note = RequestNote {
                        detail: why.clone(),
                        retry_at: Some(self.town.now().plus(REFUSED_DELAY)),
                        ..RequestNote::default()
                    };
                    self.stop(request, RequestAction::Hold(RequestHold::CheckError), &note)?;
                    return Ok(PublishPlan::Stopped);
                }
            }
        }
        Ok(match there {
            _ if built.tip == *target => PublishPlan::InTarget,
            Some(there) if built.tip == there => {
                // A tip of others stays one of others: only what we pushed is deleted after the merge.
                let ours = ours.map(|ours| our_tip(request, &ours.commit));
                let last = tips.iter().rev().find(|tip| tip.commit == there.as_str());
                let is_foreign = last.is_none_or(|tip| !tip.is_ours());
                let foreign = PullRequestTip { commit: there.to_string(), accepted: String::new() };
                let tips = ours.into_iter().chain(is_foreign.then_some(foreign)).collect();
                PublishPlan::There(there, tips)
            }
            there => PublishPlan::Push(PublishedCommit { commit: built.tip, there }),
        })
    }

    /// The last of our tips that is in this commit of the branch. One that is recorded after it was never pushed.
    fn last_pushed<'t>(
        &self,
        tips: &'t [PullRequestTip],
        there: &Commit,
    ) -> std::result::Result<Option<&'t PullRequestTip>, PublishStop> {
        if let Some(known) = tips.iter().rposition(|tip| tip.commit == there.as_str()) {
            return Ok(tips[..=known].iter().rev().find(|tip| tip.is_ours()));
        }
        for tip in tips.iter().rev().filter(|tip| tip.is_ours()) {
            let commit = self.commit(&tip.commit)?;
            if self.repository.has_in_history(there, &commit)? {
                return Ok(Some(tip));
            }
        }
        Ok(None)
    }

    /// Records the branch and the tips that it has or is to have, if everything still holds: the lease, the queue, the request.
    fn intend_push(
        &mut self,
        request: &MergeRequest,
        name: &PullRequestName,
        tips: &[PullRequestTip],
    ) -> Result<bool> {
        let (rig, target) = (&self.name.rig, self.name.target.as_str());
        self.town.write(|writer| {
            let queue = writer.merge_queue(rig, target)?;
            if queue.is_some_and(|queue| queue.paused.is_some())
                || !writer.lease_queue(rig, target, self.builder, PUSH_LEASE_SECONDS, 0)?
            {
                return Ok(false);
            }
            let current = writer.merge_request(&request.id)?;
            let Some(current) = current.filter(|current| {
                current.state == RequestState::Checking && current.accepted == request.accepted
            }) else {
                return Ok(false);
            };
            let named = MergeRequest { pull_request: name.clone(), ..current.clone() };
            if !writer.save_merge_request(current.state, &named)? {
                return Ok(false);
            }
            for tip in tips {
                writer.add_pull_request_tip(&request.id.bead, &name.branch, tip)?;
            }
            Ok(true)
        })
    }

    /// Pushes the branch. `false` if the request is in line again, or held.
    fn push_pull_branch(
        &mut self,
        hosted: &dyn HostingService,
        request: &MergeRequest,
        branch: &str,
        push: &PublishedCommit,
    ) -> std::result::Result<bool, PublishStop> {
        let there = push.there.as_ref();
        let refused = |words: String| RequestNote {
            detail: words,
            retry_at: Some(self.town.now().plus(REFUSED_DELAY)),
            ..RequestNote::default()
        };
        let (action, note) = match hosted.push(&push.commit, branch, there, PUSH_TIME_MAX)? {
            Push::Done => return Ok(true),
            // Others have pushed to it: their commits come first.
            Push::LostRace(_) => {
                self.rebuild(std::slice::from_ref(&request.id), OriginAnswer::Unknown)?;
                return Ok(false);
            }
            Push::Unreachable(words) => {
                let retry_at = Some(self.town.now().plus(AWAY_DELAY));
                let note = RequestNote { detail: words, retry_at, ..RequestNote::default() };
                (RequestAction::Hold(RequestHold::OriginUnreachable), note)
            }
            Push::Rejected(why) => {
                (RequestAction::Hold(RequestHold::OriginRefused), refused(why.to_string()))
            }
            Push::Incomplete(why) | Push::Unable(why) => {
                (RequestAction::Hold(RequestHold::OriginRefused), refused(why))
            }
            Push::Held(obstacle) => {
                (RequestAction::Hold(RequestHold::CheckoutInTheWay), refused(obstacle.to_string()))
            }
        };
        self.stop(request, action, &note)?;
        Ok(false)
    }

    fn open_or_update(
        &mut self,
        hosted: &dyn HostingService,
        request: &MergeRequest,
        name: &mut PullRequestName,
        checks: &[CandidateCheck],
    ) -> std::result::Result<(), PublishStop> {
        let (title, description) = self.title_and_description(request)?;
        let mut details = vec![("Bead".to_owned(), request.id.bead.to_string())];
        details.extend(request.run().map(|run| ("Run".to_owned(), run.to_string())));
        details.extend(checks.iter().map(|check| {
            let how = if check.cached { "passed before on the same content" } else { "passed" };
            (format!("Check {}", check.name), how.to_owned())
        }));
        if request.review {
            let words = "required before it is merged, by a person who is not the author";
            details.push(("Review".to_owned(), words.to_owned()));
        }
        let marker = RequestMarker(request.id.clone());
        let text = PullRequestDescription {
            title: &title,
            description: &description,
            details: &details,
            marker: &marker,
        };
        let (title, body) = (text.title(), text.body());
        if let Some(number) = name.number {
            return Ok(hosted.update(number, &title, &body)?);
        }
        let opened = hosted.open(&NewPullRequest {
            head: PullRequestHead { fork_owner: None, branch: &name.branch },
            base: &request.target,
            title: &title,
            body: &body,
            marker: &marker,
        })?;
        name.number = Some(opened.pull_request.number);
        name.address.clone_from(&opened.pull_request.url);
        if opened.was_there {
            self.town.write(|writer| name_in(writer, request, name).map(drop))?;
            let base = hosted.show(opened.pull_request.number)?.base_branch;
            if base != request.target {
                return Err(PublishStop::Changed(base_changed(request, &base)));
            }
            hosted.update(opened.pull_request.number, &title, &body)?;
        }
        Ok(())
    }

    /// Leaves a request to the people who merge its pull request, which is looked at next at this time.
    fn wait_for_people(
        &mut self,
        request: &MergeRequest,
        name: &PullRequestName,
        due_at: Timestamp,
    ) -> Result<()> {
        let bead = &request.id.bead;
        let acted = self.town.write(|writer| {
            name_in(writer, request, name)?;
            let known = writer.pull_request(bead, &name.branch)?;
            writer.save_pull_request(&TrackedPullRequest {
                bead: bead.clone(),
                branch: name.branch.clone(),
                fingerprint: String::new(),
                due_at,
                repaired_head: known.map(|known| known.repaired_head).unwrap_or_default(),
                waits_for: String::new(),
            })?;
            let hold = RequestAction::Hold(RequestHold::PullRequestOpen);
            act_in(writer, &request.id, hold, OriginAnswer::Unknown, RequestNote::default())
        })?;
        self.changed.extend(acted.map(|request| request.id));
        Ok(())
    }

    /// Holds a request, or puts it back in line for later, because of the service.
    fn put_off(&mut self, request: &MergeRequest, error: &HostingError) -> Result<BatchProgress> {
        let failure = HostingFailure::of(error, &self.rig.slug, self.town.now());
        let note = RequestNote {
            detail: failure.words,
            retry_at: failure.retry_at,
            ..RequestNote::default()
        };
        let Some(hold) = failure.hold else {
            let ids = [request.id.clone()];
            // It is `queued` if it had not been built yet; then only the time is recorded.
            if self.act(&ids, RequestAction::Requeue, OriginAnswer::Unknown, &note)?.is_empty() {
                self.town.write(|writer| {
                    let current = writer.merge_request(&request.id)?;
                    if let Some(current) = current.filter(|it| it.state == RequestState::Queued) {
                        let later = MergeRequest {
                            detail: note.detail.clone(),
                            retry_at: note.retry_at,
                            ..current
                        };
                        writer.save_merge_request(RequestState::Queued, &later)?;
                    }
                    Ok(())
                })?;
                self.changed.insert(request.id.clone());
            }
            return Ok(BatchProgress::GoOn);
        };
        if hold == RequestHold::PullRequestChanged {
            return self.hold_changed(request, &note.detail);
        }
        self.stop(request, RequestAction::Hold(hold), &note)
    }

    /// Holds a request whose pull request a person has changed.
    fn hold_changed(&mut self, request: &MergeRequest, words: &str) -> Result<BatchProgress> {
        self.town.write(|writer| hold_changed_in(writer, request, words).map(drop))?;
        self.changed.insert(request.id.clone());
        Ok(BatchProgress::GoOn)
    }

    fn stop(
        &mut self,
        request: &MergeRequest,
        action: RequestAction,
        note: &RequestNote,
    ) -> Result<BatchProgress> {
        self.act(std::slice::from_ref(&request.id), action, OriginAnswer::Unknown, note)?;
        Ok(BatchProgress::GoOn)
    }
}

/// Why a request was not published.
enum PublishStop {
    Service(HostingError),
    /// A person has changed the pull request: this is held.
    Changed(String),
    Git(GitError),
    Operation(OperationError),
}

impl From<HostingError> for PublishStop {
    fn from(error: HostingError) -> Self {
        Self::Service(error)
    }
}

impl From<GitError> for PublishStop {
    fn from(error: GitError) -> Self {
        Self::Git(error)
    }
}

impl From<OperationError> for PublishStop {
    fn from(error: OperationError) -> Self {
        Self::Operation(error)
    }
}

fn our_tip(request: &MergeRequest, commit: &str) -> PullRequestTip {
    PullRequestTip { commit: commit.to_owned(), accepted: request.accepted.clone() }
}

/// Records the branch, the number and the address of a pull request.
fn name_in(
    writer: &mut Writer<'_>,
    request: &MergeRequest,
    name: &PullRequestName,
) -> Result<bool> {
    let Some(current) = writer.merge_request(&request.id)? else { return Ok(false) };
    let named = MergeRequest { pull_request: name.clone(), ..current.clone() };
    Ok(writer.save_merge_request(current.state, &named)?)
}

/// Holds a request whose pull request a person has changed, and asks a person, once for the same words. Nothing if that does
/// not follow from its state.
pub(super) fn hold_changed_in(
    writer: &mut Writer<'_>,
    request: &MergeRequest,
    words: &str,
) -> Result<Option<MergeRequest>> {
    let changed = RequestState::Held(RequestHold::PullRequestChanged);
    let current = writer.merge_request(&request.id)?;
    if current.is_none_or(|current| current.state == changed && current.detail == words) {
        return Ok(None);
    }
    let hold = RequestAction::Hold(RequestHold::PullRequestChanged);
    let note = RequestNote::words(words);
    let held = act_in(writer, &request.id, hold, OriginAnswer::Unknown, note)?;
    if let Some(held) = &held {
        let body = MessageBody::parse(&format!("{}. {}", held.state_reason(), held.next_step()))?;
        let from = Sender::Standing(MessageAddress::Refinery(held.rig.clone()));
        escalate_in(writer, from, Some(held.id.bead.clone()), body, Severity::High)?;
    }
    Ok(held)
}

pub(super) fn base_changed(request: &MergeRequest, base: &str) -> String {
    format!("a person has changed its base from {} to {base}", request.target)
}
