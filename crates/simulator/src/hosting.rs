//! A simulated hosting service: pull requests, their checks and comments, and the people who merge, close or change them.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use gt_core::hosting::{
    HostedCheck, HostedCheckState, PolledPullRequest, PullRequest, PullRequestApproval,
    PullRequestFeedback, PullRequestFeedbackKind, PullRequestState, PullRequestTrust,
};
use gt_core::{Rig, RigSlug, Timestamp};
use gt_execution::merge_queue::HostingService;
use gt_executors::git::{Commit, GitError, LandMethod, MemberOutcome, Push};
use gt_executors::hosting::{
    FoundPullRequest, HostingError, HostingRefusal, NewPullRequest, OpenedPullRequest, open_once,
};

use crate::merge_machine::SimulatedMachine;
use crate::origin::{SimulatedFiles, SimulatedOrigin};
use crate::planted::Planted;
use crate::simulation::Simulation;
use crate::violation::Invariant;

/// The login that is used for everything that we write.
const OWN_LOGIN: &str = "gt-town";
/// The time between two looks at pull requests.
const POLL: Duration = Duration::from_mins(1);
/// A branch that a person changes the base of a pull request to.
const OTHER_BASE: &str = "next";

/// The author of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CommentAuthor {
    /// A person who may write: the only one whose comments start repairs.
    Maintainer,
    Stranger,
    Bot,
    /// Our own login.
    Ourselves,
}

/// A comment on a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SimulatedComment {
    pub(crate) id: String,
    pub(crate) author: CommentAuthor,
    at: Timestamp,
}

/// A pull request at the service.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedPull {
    number: u64,
    pub(crate) state: PullRequestState,
    pub(crate) branch: String,
    base: String,
    /// The base that it was opened for.
    first_base: String,
    body: String,
    /// The head commit when it was closed or merged.
    last_head: Option<Commit>,
    pub(crate) merge_commit: Option<Commit>,
    comments: Vec<SimulatedComment>,
}

/// The hosting service of an origin.
#[derive(Debug, Default)]
pub(crate) struct SimulatedHosting {
    pub(crate) pulls: Vec<SimulatedPull>,
    /// The checks of the service that have ended, by head commit.
    checks: BTreeMap<Commit, (HostedCheckState, Timestamp)>,
    is_logged_out: bool,
    limited_until: Option<Timestamp>,
    comments: u64,
}

/// Actions of people and of the service.
#[derive(Debug, Clone, Copy)]
enum HostingEvent {
    Merge,
    /// The service says that it is merged, and moves the target later.
    MergeLater,
    /// The target gets what was merged before.
    MergeArrives,
    Close,
    ChangeBase,
    RestoreBase,
    EndChecks,
    Comment(CommentAuthor),
    /// Others push to the branch of a pull request.
    PushToBranch,
    LogOut,
    LogIn,
    Limit,
}

impl SimulatedHosting {
    fn pull(&self, number: u64) -> Option<&SimulatedPull> {
        self.pulls.iter().find(|pull| pull.number == number)
    }

    /// A branch with two open pull requests of ours.
    pub(crate) fn opened_twice(&self) -> Option<String> {
        let open: Vec<&SimulatedPull> =
            self.pulls.iter().filter(|pull| pull.state == PullRequestState::Open).collect();
        let is_again = |pull: &&&SimulatedPull| {
            open.iter().any(|other| other.branch == pull.branch && other.number < pull.number)
        };
        open.iter().find(is_again).map(|pull| pull.branch.clone())
    }

    /// The comments on the pull requests of a branch.
    pub(crate) fn feedback_of(&self, branch: &str) -> Vec<PullRequestFeedback> {
        let pulls = self.pulls.iter().filter(|pull| pull.branch == branch);
        pulls.flat_map(|pull| &pull.comments).map(feedback).collect()
    }

    /// The author of a comment.
    pub(crate) fn author_of(&self, id: &str) -> Option<CommentAuthor> {
        let mut comments = self.pulls.iter().flat_map(|pull| &pull.comments);
        comments.find(|comment| comment.id == id).map(|comment| comment.author)
    }

    /// Whether it is as well as it can be.
    pub(crate) fn recover(&mut self) {
        self.is_logged_out = false;
        self.limited_until = None;
    }
}

impl SimulatedOrigin {
    fn head_of(&self, pull: &SimulatedPull) -> Option<Commit> {
        pull.last_head.clone().or_else(|| self.tip(&pull.branch))
    }

    /// A pull request as the service shows it.
    fn shown(&mut self, number: u64) -> Option<PullRequest> {
        let pull = self.hosting.pull(number)?.clone();
        let head = self.head_of(&pull)?;
        let is_open = pull.state == PullRequestState::Open;
        let base = self.tip(&pull.base).filter(|_| is_open);
        let has_conflict = base.is_some_and(|base| !self.applies(&base, &head));
        let (state, ended_at) = match self.hosting.checks.get(&head) {
            Some((state, at)) => (*state, Some(*at)),
            None => (HostedCheckState::Pending, None),
        };
        Some(PullRequest {
            number,
            state: pull.state,
            url: address(number),
            author: OWN_LOGIN.to_owned(),
            head_branch: pull.branch.clone(),
            head_commit: head.to_string(),
            base_branch: pull.base.clone(),
            merge_commit: pull.merge_commit.as_ref().map(ToString::to_string),
            has_conflict,
            approval: PullRequestApproval::NotRequired,
            checks: vec![HostedCheck { name: "ci".to_owned(), state, link: None, ended_at }],
            feedback: pull.comments.iter().map(feedback).collect(),
        })
    }

    /// A person merges a pull request; nothing if the service does not let them.
    fn merge_pull(&mut self, at: usize, method: LandMethod, arrives: bool) -> Option<Commit> {
        let pull = self.hosting.pulls.get(at)?.clone();
        let (head, tip) = (self.head_of(&pull)?, self.tip(&pull.base)?);
        let MemberOutcome::Applied { after, .. } = self.merge(&tip, &head, method) else {
            return None;
        };
        if arrives {
            self.move_branch(&pull.base, Some(after.clone()));
        }
        let merged = &mut self.hosting.pulls[at];
        merged.state = PullRequestState::Merged;
        merged.last_head = Some(head);
        merged.merge_commit = Some(after.clone());
        Some(after)
    }

    /// The target gets everything that the service says is merged. What others have pushed meanwhile stays.
    pub(crate) fn deliver_merges(&mut self) {
        for at in 0..self.hosting.pulls.len() {
            let pull = self.hosting.pulls[at].clone();
            let Some(merged) = pull.merge_commit else { continue };
            let Some(tip) = self.tip(&pull.base) else { continue };
            if self.contains(Some(&tip), &merged) {
                continue;
            }
            let is_next = self.parent(&merged).as_ref() == Some(&tip);
            let arrived = match (is_next, pull.last_head) {
                (true, _) => Some(merged),
                (false, Some(head)) => match self.merge(&tip, &head, LandMethod::Squash) {
                    MemberOutcome::Applied { after, .. } => Some(after),
                    MemberOutcome::AlreadyThere => None,
                    // A person merges it by hand, and lets its side win.
                    _ => Some(self.copy(&tip, &head)),
                },
                (false, None) => None,
            };
            if let Some(arrived) = arrived {
                self.move_branch(&pull.base, Some(arrived.clone()));
                self.hosting.pulls[at].merge_commit = Some(arrived);
            } else {
                self.hosting.pulls[at].merge_commit = Some(tip);
            }
        }
    }
}

fn address(number: u64) -> String {
    format!("https://hosting.invalid/pull/{number}")
}

fn feedback(comment: &SimulatedComment) -> PullRequestFeedback {
    let author = match comment.author {
        CommentAuthor::Maintainer => "ada",
        CommentAuthor::Stranger => "mallory",
        CommentAuthor::Bot => "helper",
        CommentAuthor::Ourselves => OWN_LOGIN,
    };
    PullRequestFeedback {
        id: comment.id.clone(),
        kind: PullRequestFeedbackKind::Conversation,
        author: author.to_owned(),
        is_bot: comment.author == CommentAuthor::Bot,
        may_write: comment.author != CommentAuthor::Stranger,
        access: String::new(),
        body: "do it in another way".to_owned(),
        file: None,
        line: None,
        url: None,
        submitted_at: Some(comment.at),
        is_resolved: false,
    }
}

impl Simulation {
    /// People or the service do something to a pull request.
    pub(crate) fn act_at_service(&self) {
        let rigs: Vec<RigSlug> = {
            let state = self.state();
            let hosted = |origin: &SimulatedOrigin| !origin.hosting.pulls.is_empty();
            state.origins.iter().filter(|(_, it)| hosted(it)).map(|(rig, _)| rig.clone()).collect()
        };
        let changes = self.some_change(false);
        let now = self.clock.peek();
        let (rig, event, at, squash) = {
            let random = &mut self.state().random;
            let events = vec![
                (7, HostingEvent::Merge),
                (2, HostingEvent::MergeLater),
                (4, HostingEvent::MergeArrives),
                (1, HostingEvent::Close),
                (1, HostingEvent::ChangeBase),
                (2, HostingEvent::RestoreBase),
                (6, HostingEvent::EndChecks),
                (4, HostingEvent::Comment(CommentAuthor::Maintainer)),
                (2, HostingEvent::Comment(CommentAuthor::Stranger)),
                (1, HostingEvent::Comment(CommentAuthor::Bot)),
                (1, HostingEvent::Comment(CommentAuthor::Ourselves)),
                (1, HostingEvent::PushToBranch),
                (1, HostingEvent::LogOut),
                (3, HostingEvent::LogIn),
                (1, HostingEvent::Limit),
            ];
            let Some(rig) = random.pick(&rigs).cloned() else { return };
            let Some(event) = random.weighted(events) else { return };
            (rig, event, random.below(64), random.one_in(3))
        };
        let done = self.with_origin(&rig, |origin| {
            let open: Vec<usize> = (0..origin.hosting.pulls.len())
                .filter(|at| origin.hosting.pulls[*at].state == PullRequestState::Open)
                .collect();
            let open = open.get(usize::try_from(at).unwrap_or(0) % open.len().max(1)).copied();
            let method = if squash { LandMethod::Squash } else { LandMethod::Rebase };
            act(origin, event, open, method, now, changes)
        });
        if let Some(done) = done {
            self.tell(format!("{event:?} at the service of {rig}: {done}"));
        }
        self.observe_origins();
    }

    /// At the end the service works, and people merge or put right every pull request.
    pub(crate) fn calm_services(&self) {
        let rigs: Vec<RigSlug> = self.state().origins.keys().cloned().collect();
        let now = self.clock.peek();
        for rig in rigs {
            self.with_origin(&rig, |origin| {
                origin.hosting.recover();
                origin.deliver_merges();
                for at in 0..origin.hosting.pulls.len() {
                    let pull = &mut origin.hosting.pulls[at];
                    if pull.state != PullRequestState::Open {
                        continue;
                    }
                    pull.base.clone_from(&pull.first_base);
                    end_checks(origin, at, now);
                }
            });
        }
    }

    /// People merge every pull request that can be merged, or take their time, so that comments are answered first.
    pub(crate) fn merge_pulls(&self) {
        if !self.state().random.one_in(3) {
            return;
        }
        let rigs: Vec<RigSlug> = self.state().origins.keys().cloned().collect();
        for rig in rigs {
            let merged = self.with_origin(&rig, |origin| {
                let mut merged = Vec::new();
                for at in 0..origin.hosting.pulls.len() {
                    let SimulatedPull { number, state, .. } = origin.hosting.pulls[at];
                    if state == PullRequestState::Open
                        && origin.merge_pull(at, LandMethod::Rebase, true).is_some()
                    {
                        merged.push(number);
                    }
                }
                merged
            });
            for number in merged {
                self.tell(format!("a person merges the pull request {number} of {rig}"));
            }
        }
        self.observe_origins();
    }
}

fn end_checks(origin: &mut SimulatedOrigin, at: usize, now: Timestamp) -> Option<String> {
    let pull = origin.hosting.pulls[at].clone();
    let head = origin.head_of(&pull)?;
    let is_green = origin.is_green(&head);
    let state = if is_green { HostedCheckState::Passed } else { HostedCheckState::Failed };
    origin.hosting.checks.entry(head).or_insert((state, now));
    Some(format!("{} {state:?}", pull.number))
}

fn act(
    origin: &mut SimulatedOrigin,
    event: HostingEvent,
    open: Option<usize>,
    method: LandMethod,
    now: Timestamp,
    changes: SimulatedFiles,
) -> Option<String> {
    match event {
        HostingEvent::LogOut => origin.hosting.is_logged_out = true,
        HostingEvent::LogIn => origin.hosting.recover(),
        HostingEvent::Limit => {
            origin.hosting.limited_until = Some(now.plus(Duration::from_mins(20)));
        }
        HostingEvent::MergeArrives => origin.deliver_merges(),
        HostingEvent::Merge | HostingEvent::MergeLater => {
            let arrives = matches!(event, HostingEvent::Merge);
            let merged = origin.merge_pull(open?, method, arrives)?;
            return Some(format!("{} as {merged}", origin.hosting.pulls[open?].number));
        }
        HostingEvent::EndChecks => return end_checks(origin, open?, now),
        HostingEvent::PushToBranch => {
            let branch = origin.hosting.pulls[open?].branch.clone();
            let tip = origin.tip(&branch)?;
            let pushed = origin.commit_on(&tip, changes);
            origin.move_branch(&branch, Some(pushed.clone()));
            return Some(format!("{pushed} to {branch}"));
        }
        HostingEvent::Close
        | HostingEvent::ChangeBase
        | HostingEvent::RestoreBase
        | HostingEvent::Comment(_) => {
            let head = origin.head_of(&origin.hosting.pulls[open?])?;
            let hosting = &mut origin.hosting;
            hosting.comments += 1;
            let comment = format!("comment:{}", hosting.comments);
            let pull = &mut hosting.pulls[open?];
            match event {
                HostingEvent::Close => {
                    pull.state = PullRequestState::Closed;
                    pull.last_head = Some(head);
                }
                HostingEvent::ChangeBase => OTHER_BASE.clone_into(&mut pull.base),
                HostingEvent::Comment(author) => {
                    pull.comments.push(SimulatedComment { id: comment, author, at: now });
                }
                _ => pull.base.clone_from(&pull.first_base),
            }
            return Some(pull.number.to_string());
        }
    }
    Some("done".to_owned())
}

/// The service, as a process on a machine reaches it.
pub(crate) struct SimulatedHostingClient<'a> {
    pub(crate) machine: &'a SimulatedMachine<'a>,
    pub(crate) rig: &'a Rig,
    pub(crate) trust: PullRequestTrust,
}

type HostingResult<T> = std::result::Result<T, HostingError>;

impl SimulatedHostingClient<'_> {
    fn with_origin<T>(&self, work: impl FnOnce(&mut SimulatedOrigin) -> T) -> T {
        self.machine.with_origin(self.rig, work)
    }

    /// A call: others act before it, and the service may refuse it.
    fn call(&self) -> HostingResult<()> {
        let simulation = self.machine.simulation;
        simulation.seam(self.machine.process);
        let now = simulation.clock.peek();
        let (is_logged_out, limited) = self.with_origin(|origin| {
            let limited = origin.hosting.limited_until.filter(|until| *until > now);
            (origin.hosting.is_logged_out, limited)
        });
        if is_logged_out {
            return Err(HostingError::LoggedOut {
                program: "gh".to_owned(),
                host: "hosting.invalid".to_owned(),
                command: "gh auth login".to_owned(),
            });
        }
        if let Some(until) = limited {
            return Err(HostingError::RateLimited { until, words: "slow down".to_owned() });
        }
        if simulation.fault(40) {
            return Err(unreachable("it does not answer"));
        }
        Ok(())
    }

    fn find(&self, branch: &str) -> HostingResult<Vec<(FoundPullRequest, String)>> {
        self.call()?;
        Ok(self.with_origin(|origin| {
            let pulls = origin.hosting.pulls.iter();
            let open = pulls.filter(|pull| pull.state == PullRequestState::Open);
            open.filter(|pull| pull.branch == branch)
                .map(|pull| {
                    let (number, url) = (pull.number, address(pull.number));
                    (FoundPullRequest { number, url }, pull.body.clone())
                })
                .collect()
        }))
    }

    fn create(&self, new: &NewPullRequest<'_>) -> HostingResult<FoundPullRequest> {
        self.call()?;
        let simulation = self.machine.simulation;
        let number = self.with_origin(|origin| {
            origin.tip(new.head.branch)?;
            let number = origin.hosting.pulls.len() as u64 + 1;
            origin.hosting.pulls.push(SimulatedPull {
                number,
                state: PullRequestState::Open,
                branch: new.head.branch.to_owned(),
                base: new.base.to_owned(),
                first_base: new.base.to_owned(),
                body: new.body.to_owned(),
                last_head: None,
                merge_commit: None,
                comments: Vec::new(),
            });
            Some(number)
        });
        let Some(number) = number else {
            let words = format!("there is no branch {}", new.head.branch);
            return Err(HostingError::Refused { reason: HostingRefusal::Other, words });
        };
        simulation.tell(format!(
            "{} opens the pull request {number} of {}",
            self.machine.process, new.head.branch
        ));
        simulation.observe_origins();
        simulation.seam(self.machine.process);
        if simulation.fault(4) {
            return Err(unreachable("its answer is lost"));
        }
        Ok(FoundPullRequest { number, url: address(number) })
    }
}

fn unreachable(words: &str) -> HostingError {
    HostingError::Unreachable { words: words.to_owned() }
}

impl HostingService for SimulatedHostingClient<'_> {
    fn login(&self) -> HostingResult<String> {
        self.call()?;
        Ok(OWN_LOGIN.to_owned())
    }

    fn show(&self, number: u64) -> HostingResult<PullRequest> {
        self.call()?;
        self.with_origin(|origin| origin.shown(number)).ok_or_else(|| HostingError::Refused {
            reason: HostingRefusal::NotFound,
            words: format!("there is no pull request {number}"),
        })
    }

    fn poll(&self, numbers: &[u64]) -> HostingResult<Vec<PolledPullRequest>> {
        self.call()?;
        let polled = numbers.iter().map(|number| {
            let shown = self.with_origin(|origin| origin.shown(*number));
            let open = shown.filter(|shown| shown.state == PullRequestState::Open);
            let fingerprint = open.map(|open| {
                let mut hasher = DefaultHasher::new();
                format!("{open:?}").hash(&mut hasher);
                format!("{:016x}", hasher.finish())
            });
            PolledPullRequest { number: *number, fingerprint }
        });
        Ok(polled.collect())
    }

    fn open(&self, new: &NewPullRequest<'_>) -> HostingResult<OpenedPullRequest> {
        if self.machine.simulation.planted == Some(Planted::OpensTwice) {
            let pull_request = self.create(new)?;
            return Ok(OpenedPullRequest { pull_request, was_there: false });
        }
        open_once(new, || self.find(new.head.branch), || self.create(new))
    }

    fn update(&self, number: u64, _: &str, body: &str) -> HostingResult<()> {
        self.call()?;
        self.with_origin(|origin| {
            let mut pulls = origin.hosting.pulls.iter_mut();
            if let Some(pull) = pulls.find(|pull| pull.number == number) {
                body.clone_into(&mut pull.body);
            }
        });
        Ok(())
    }

    fn hosted_tip(&self, branch: &str) -> std::result::Result<Option<Commit>, GitError> {
        self.machine.simulation.seam(self.machine.process);
        let (is_away, tip) = self.with_origin(|origin| (origin.is_away, origin.tip(branch)));
        if is_away {
            let message = "it does not answer".to_owned();
            return Err(GitError::Unreachable { origin: self.rig.repo.clone(), message });
        }
        Ok(tip)
    }

    fn push(
        &self,
        commit: &Commit,
        branch: &str,
        there: Option<&Commit>,
        _: Duration,
    ) -> std::result::Result<Push, GitError> {
        let simulation = self.machine.simulation;
        simulation.seam(self.machine.process);
        let (is_away, tip) = self.with_origin(|origin| (origin.is_away, origin.tip(branch)));
        if is_away || simulation.fault(30) {
            return Ok(Push::Unreachable("it does not answer".to_owned()));
        }
        if tip.as_ref() != there {
            return Ok(Push::LostRace("stale info".to_owned()));
        }
        self.check_push(commit, branch);
        self.with_origin(|origin| origin.move_branch(branch, Some(commit.clone())));
        simulation.tell(format!("{} pushes {commit} to {branch}", self.machine.process));
        simulation.seam(self.machine.process);
        if simulation.fault(12) {
            return Ok(Push::Unreachable("its answer is lost".to_owned()));
        }
        Ok(Push::Done)
    }

    fn delete(&self, branch: &str, tip: &Commit) -> std::result::Result<Push, GitError> {
        self.machine.simulation.seam(self.machine.process);
        Ok(self.with_origin(|origin| {
            if origin.tip(branch).as_ref() != Some(tip) {
                return Push::LostRace("stale info".to_owned());
            }
            origin.move_branch(branch, None);
            Push::Done
        }))
    }

    fn trust(&self) -> &PullRequestTrust {
        &self.trust
    }

    fn poll_interval(&self) -> Duration {
        POLL
    }
}

impl SimulatedHostingClient<'_> {
    /// Each tip of a branch is recorded before it is pushed.
    fn check_push(&self, commit: &Commit, branch: &str) {
        let simulation = self.machine.simulation;
        let is_recorded = simulation.read(|reader| {
            // The branch of a convoy has a request of the convoy itself.
            let requests = reader.open_merge_requests()?;
            let owners = requests.iter().map(|request| &request.id.bead);
            for bead in simulation.beads.iter().chain(owners) {
                let tips = reader.pull_request_tips(bead, branch)?;
                if tips.iter().any(|tip| tip.is_ours() && tip.commit == commit.as_str()) {
                    return Ok(true);
                }
            }
            Ok(false)
        });
        if !is_recorded {
            let found = format!("{commit} is pushed to {branch}, and that is not recorded");
            simulation.violated(Invariant::PullRequest, found);
        }
    }
}
