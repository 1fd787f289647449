//! A merge request: one accepted commit for one target branch.

use std::fmt;
use std::time::Duration;

use crate::schedule::{RunId, names};
use crate::{BeadId, Invalid, RigSlug, Timestamp};

/// The name of a merge request: `<bead>@<number>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MergeRequestId {
    /// The bead.
    pub bead: BeadId,
    /// Which request of the bead, from 1.
    pub number: u32,
}

impl MergeRequestId {
    /// Reads `gt-abc@2`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || {
            let shown = text.chars().take(60).collect::<String>();
            Invalid(format!(
                "\"{}\" is not a merge request; merge requests look like gt-abc@1",
                shown.escape_debug()
            ))
        };
        let (bead, number) = text.rsplit_once('@').ok_or_else(invalid)?;
        // A request has one name: no sign, and no zero in front.
        let plain = number.starts_with(|digit: char| matches!(digit, '1'..='9'));
        let number = number.parse::<u32>().ok().filter(|_| plain);
        Ok(Self { bead: BeadId::parse(bead)?, number: number.ok_or_else(invalid)? })
    }
}

impl fmt::Display for MergeRequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.bead, self.number)
    }
}

names! {
    /// How a request reaches its target.
    MergeMethod, "a way to merge" {
        /// By the queue, with checks.
        Queue = "mr",
        /// At once, without checks or review.
        Direct = "direct",
        /// By a pull request that people merge on the hosting service.
        PullRequest = "pr",
    }
}

names! {
    /// The kind of change that a request brings to its target.
    RequestPurpose, "a purpose of a merge request" {
        /// The work of a run.
        Work = "work",
        /// The undoing of work of the same bead that has landed.
        Revert = "revert",
        /// The integration branch of a convoy, whose bead it belongs to.
        Integration = "integration",
    }
}

names! {
    /// Why a request is held.
    RequestHold, "a reason to hold a merge request" {
        /// A person paused the queue.
        Paused = "paused",
        /// It was pushed under its own name and is not to be merged by us.
        Unmerged = "unmerged",
        /// A check fails on the target itself.
        TargetRed = "target_red",
        /// The origin has no such target branch any more.
        TargetGone = "target_gone",
        /// Others push to the target more often than the checks take.
        TargetMoves = "target_moves",
        /// The origin does not answer.
        OriginUnreachable = "origin_unreachable",
        /// The origin answers, and does not take it.
        OriginRefused = "origin_refused",
        /// The target is checked out on this machine, and the checkout cannot take it.
        CheckoutInTheWay = "checkout_in_the_way",
        /// The command of the hosting service is missing, or not logged in.
        HostingTool = "hosting_tool",
        /// Its pull request is open, and people merge it.
        PullRequestOpen = "pull_request",
        /// A person changed the pull request, or closed it.
        PullRequestChanged = "pull_request_changed",
        /// A check could not be run to its end.
        CheckError = "check_error",
        /// Only a host that is away has its commit.
        CommitElsewhere = "commit_elsewhere",
        /// Work that landed on the branch of its convoy is neither there nor in its base.
        WorkMissing = "work_missing",
        /// An error of this machine keeps the queue from being worked on.
        QueueError = "queue_error",
    }
}

impl RequestHold {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Unmerged => "unmerged",
            Self::TargetRed => "target red",
            Self::TargetGone => "target gone",
            Self::TargetMoves => "target moves faster than the checks",
            Self::OriginUnreachable => "origin unreachable",
            Self::OriginRefused => "origin refused",
            Self::CheckoutInTheWay => "checkout in the way",
            Self::HostingTool => "hosting tool missing",
            Self::PullRequestOpen => "pull request open",
            Self::PullRequestChanged => "pull request changed",
            Self::CheckError => "check error",
            Self::CommitElsewhere => "commit on a host that is away",
            Self::WorkMissing => "landed work is missing",
            Self::QueueError => "the queue cannot be worked on",
        }
    }
}

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestState {
    /// It waits for its turn.
    Queued,
    /// It is being put on top of the target.
    Building,
    /// Its candidate is being checked.
    Checking,
    /// Its candidate is being pushed; only the answer of the origin ends this.
    Landing,
    /// The target has it.
    Landed,
    /// A person has to decide.
    Review,
    /// It does not apply to the target.
    Conflict,
    /// A check fails with it, and not without it.
    Failed,
    /// Something other than the work is in the way.
    Held(RequestHold),
    /// It was given up.
    Cancelled,
    /// A later request of the bead took its place.
    Superseded,
}

impl RequestState {
    /// Reads the state and, if it is held, the reason.
    pub fn parse(state: &str, held: &str) -> Result<Self, Invalid> {
        Ok(match (state, held) {
            ("queued", "") => Self::Queued,
            ("building", "") => Self::Building,
            ("checking", "") => Self::Checking,
            ("landing", "") => Self::Landing,
            ("landed", "") => Self::Landed,
            ("review", "") => Self::Review,
            ("conflict", "") => Self::Conflict,
            ("failed", "") => Self::Failed,
            ("held", held) => Self::Held(RequestHold::parse(held)?),
            ("cancelled", "") => Self::Cancelled,
            ("superseded", "") => Self::Superseded,
            (state, _) => {
                let shown = state.escape_debug();
                return Err(Invalid(format!("\"{shown}\" is not a state of a merge request")));
            }
        })
    }

    /// The name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Building => "building",
            Self::Checking => "checking",
            Self::Landing => "landing",
            Self::Landed => "landed",
            Self::Review => "review",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
            Self::Held(_) => "held",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
        }
    }

    /// Why it is held, if it is.
    pub fn held(self) -> Option<RequestHold> {
        match self {
            Self::Held(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether it goes on without a person.
    pub fn moves_by_itself(self) -> bool {
        match self {
            Self::Queued | Self::Building | Self::Checking | Self::Landing => true,
            Self::Landed
            | Self::Review
            | Self::Conflict
            | Self::Failed
            | Self::Held(_)
            | Self::Cancelled
            | Self::Superseded => false,
        }
    }

    /// Whether it can still change.
    pub fn is_open(self) -> bool {
        match self {
            Self::Landed | Self::Cancelled | Self::Superseded => false,
            Self::Queued
            | Self::Building
            | Self::Checking
            | Self::Landing
            | Self::Review
            | Self::Conflict
            | Self::Failed
            | Self::Held(_) => true,
        }
    }
}

impl fmt::Display for RequestState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(reason) => write!(f, "held: {}", reason.words()),
            state => f.write_str(state.as_str()),
        }
    }
}

/// The pull request of a merge request on the hosting service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullRequestName {
    /// The branch that was pushed for it; empty before the first push.
    pub branch: String,
    /// Its number there, once it is open.
    pub number: Option<u64>,
    /// Its web address; empty while it is not known.
    pub address: String,
}

/// As people see it: number and address.
impl fmt::Display for PullRequestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.number, self.address.as_str()) {
            (Some(number), "") => write!(f, "pull request {number}"),
            (Some(number), address) => write!(f, "pull request {number} ({address})"),
            (None, _) => write!(f, "the pull request of {}", self.branch),
        }
    }
}

/// A bead that blocks another one, and whose accepted commit has not landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedBlocker {
    /// The blocker.
    pub bead: BeadId,
    /// The rig of its merge request.
    pub rig: RigSlug,
    /// The branch that it is to land on.
    pub target: String,
    /// Its accepted commit.
    pub accepted: String,
}

impl AcceptedBlocker {
    /// The blockers whose accepted commits work for this branch can begin from, in their order.
    pub fn to_begin_from<'b>(blockers: &'b [Self], rig: &RigSlug, target: &str) -> Vec<&'b Self> {
        let is_fitting = |blocker: &&Self| blocker.rig == *rig && blocker.target == target;
        blockers.iter().filter(is_fitting).collect()
    }
}

/// The stop of the queue of a request as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueStop {
    /// When a person paused it, and who.
    pub paused: Option<(Timestamp, String)>,
    /// The check that fails on the target itself.
    pub red_check: Option<String>,
    /// A bead that blocks the bead of the request, and whose work for the same branch has not landed: it lands first.
    pub blocker: Option<BeadId>,
}

/// Longer than any delay before a request is tried again.
const RETRY_DELAY_MAX: Duration = Duration::from_hours(1);

/// One accepted commit for one target branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeRequest {
    /// Its name.
    pub id: MergeRequestId,
    /// The run that made the commit; nothing if no run did.
    pub epoch: Option<u32>,
    /// The kind of change that it brings to its target.
    pub purpose: RequestPurpose,
    /// The rig.
    pub rig: RigSlug,
    /// The branch that it is to land on.
    pub target: String,
    /// The branch that has the commit.
    pub branch: String,
    /// The commit.
    pub accepted: String,
    /// The commit that the work began from.
    pub base: String,
    /// How it lands.
    pub method: MergeMethod,
    /// Whether a person has to approve it.
    pub review: bool,
    /// Its state.
    pub state: RequestState,
    /// The words of git, of a check or of the origin about the state; empty if there are none.
    pub detail: String,
    /// Its place in line: a smaller number is older.
    pub position: u64,
    /// It goes before all others.
    pub top: bool,
    /// It may land while the target is red, if its own candidate passes.
    pub fix: bool,
    /// How often it could not land for a reason of its own.
    pub tries: u32,
    /// How often it was built again because the target moved.
    pub rebuilds: u32,
    /// The candidate that it lands with, from the intent on.
    pub candidate: Option<u64>,
    /// The commit of the target that has it; empty before.
    pub landed: String,
    /// The run of the check that failed with it, or could not be run to its end.
    pub check_run: Option<u64>,
    /// Not to be tried again before this.
    pub retry_at: Option<Timestamp>,
    /// Its pull request.
    pub pull_request: PullRequestName,
    /// The stop of its queue, as of the moment at which it was read. It is a fact of the queue and is not saved with the
    /// request.
    pub queue_stop: QueueStop,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its state changed last.
    pub changed_at: Timestamp,
}

impl MergeRequest {
    /// A request that is made now and takes its turn. The store gives it its number and its place in line.
    pub fn new(
        bead: BeadId,
        purpose: RequestPurpose,
        rig: RigSlug,
        target: String,
        now: Timestamp,
    ) -> Self {
        Self {
            id: MergeRequestId { bead, number: 0 },
            epoch: None,
            purpose,
            rig,
            target,
            branch: String::new(),
            accepted: String::new(),
            base: String::new(),
            method: MergeMethod::Queue,
            review: false,
            state: RequestState::Queued,
            detail: String::new(),
            position: 0,
            top: false,
            fix: false,
            tries: 0,
            rebuilds: 0,
            candidate: None,
            landed: String::new(),
            check_run: None,
            retry_at: None,
            pull_request: PullRequestName::default(),
            queue_stop: QueueStop::default(),
            created_at: now,
            changed_at: now,
        }
    }

    /// The pause of its queue, if that is what it waits for.
    pub fn waits_for_resume(&self) -> Option<&(Timestamp, String)> {
        self.queue_stop.paused.as_ref().filter(|_| self.is_in_line())
    }

    /// The check that fails on its target, if that is what it waits for.
    pub fn waits_for_target(&self) -> Option<&str> {
        let is_checked = !self.fix && self.method != MergeMethod::Direct;
        let check = self.queue_stop.red_check.as_deref();
        check.filter(|_| is_checked && self.is_in_line())
    }

    /// Whether it goes on without a person: by the next pass over its queue, or after the one that it is built on.
    pub fn moves_by_itself(&self) -> bool {
        self.state.moves_by_itself()
            && self.waits_for_resume().is_none()
            && self.waits_for_target().is_none()
    }

    /// The words of an origin that protects the target, with the command that lands the work of the rig by pull requests.
    pub fn protected_target_words(rig: &RigSlug, words: &str) -> String {
        format!("{words}; {} lets work land by pull requests", pull_requests_command(rig))
    }

    /// The command that lands the work of its rig by pull requests, if the origin does not take it otherwise.
    pub fn pull_requests_advice(&self) -> Option<String> {
        let command = pull_requests_command(&self.rig);
        let is_refused = self.state == RequestState::Held(RequestHold::OriginRefused);
        (is_refused && self.detail.contains(&command)).then_some(command)
    }

    /// Whether it waits for its queue, or can go back to that without an answer of the origin.
    fn is_in_line(&self) -> bool {
        matches!(self.state, RequestState::Queued | RequestState::Building | RequestState::Checking)
    }

    /// Where it stands, in a sentence.
    pub fn state_reason(&self) -> String {
        let target = &self.target;
        let id = match self.purpose {
            RequestPurpose::Work => self.id.to_string(),
            RequestPurpose::Revert => format!("{} (revert)", self.id),
            RequestPurpose::Integration => format!("{} ({})", self.id, self.branch),
        };
        let mut words =
            if self.detail.is_empty() { String::new() } else { format!(": {}", self.detail) };
        if self.pull_request.number.is_some()
            && self.state != RequestState::Held(RequestHold::PullRequestOpen)
        {
            words = format!("{words}; {}", self.pull_request);
        }
        if let Some((since, by)) = self.waits_for_resume() {
            let rig = &self.rig;
            return format!(
                "merging: {id} waits: the merge queue of {target} of {rig} is paused by {by} since {since}{words}"
            );
        }
        if let Some(check) = self.waits_for_target() {
            return format!("merging: {id} waits: {check} fails on {target} itself{words}");
        }
        if let Some(blocker) = &self.queue_stop.blocker {
            return format!(
                "merging: {id} waits until {blocker}, which it is built on, has landed on {target}{words}"
            );
        }
        match self.state {
            RequestState::Queued => {
                format!("merging: {id} waits for its turn to land on {target}{words}")
            }
            RequestState::Building => format!("merging: {id} is being put on top of {target}"),
            RequestState::Checking => format!("merging: {id} is being checked for {target}"),
            RequestState::Landing => format!("merging: {id} is being pushed to {target}"),
            RequestState::Landed => format!("{id} has landed on {target}{words}"),
            RequestState::Review => format!("review: {id} waits for a person's review{words}"),
            RequestState::Conflict => format!("conflict: {id} does not apply to {target}{words}"),
            // A person has rejected it, or the hosting service says what is wrong.
            RequestState::Failed if self.check_run.is_none() => format!("sent back: {id}{words}"),
            RequestState::Failed => format!("check failed: {id}{words}"),
            RequestState::Held(RequestHold::PullRequestOpen) => {
                let pull = &self.pull_request;
                let review = if self.review { "review and " } else { "" };
                format!("held: {id} waits until people {review}merge {pull} into {target}{words}")
            }
            RequestState::Held(reason) => format!("held: {id}: {}{words}", reason.words()),
            RequestState::Cancelled => format!("{id} was cancelled"),
            RequestState::Superseded => format!("{id} was replaced by a later request"),
        }
    }

    /// The command that moves it on, or what moves it by itself. Empty if it is over and nothing can be done with it.
    pub fn next_step(&self) -> String {
        let Self { id, rig, target, .. } = self;
        let mend = || {
            format!(
                "gt mq log {id} shows why; mend {target}, or gt mq top <merge request> --fix lets the one land that mends it"
            )
        };
        let resume = || format!("gt mq resume {rig} --branch {target}");
        if self.waits_for_resume().is_some() {
            return resume();
        }
        if self.waits_for_target().is_some() {
            return mend();
        }
        if let Some(blocker) = &self.queue_stop.blocker {
            return format!("it lands after that; gt why {blocker} says what that waits for");
        }
        match self.state {
            RequestState::Queued | RequestState::Building | RequestState::Checking => {
                format!("the daemon lands it; gt mq show {id}")
            }
            RequestState::Landing => format!("the origin decides; gt mq show {id}"),
            RequestState::Review => {
                format!(
                    "gt review show {id}, then gt review approve {id} or gt review reject {id} -m <why>"
                )
            }
            RequestState::Conflict => {
                format!("gt mq retry {id} builds it again; gt mq cancel {id} gives it up")
            }
            RequestState::Failed
                if self.pull_request.number.is_some() && self.check_run.is_none() =>
            {
                format!("gt mq show {id} shows why; gt mq retry {id} or gt mq cancel {id}")
            }
            RequestState::Failed if self.check_run.is_none() => {
                format!("gt review show {id} shows why; gt mq retry {id} or gt mq cancel {id}")
            }
            RequestState::Failed => {
                format!("gt mq log {id} shows why; gt mq retry {id} or gt mq cancel {id}")
            }
            RequestState::Held(RequestHold::Unmerged) => format!(
                "merge {} by hand, or gt mq retry {id} lands it, or gt mq close {id} -m <why>",
                self.branch
            ),
            RequestState::Held(RequestHold::Paused) => resume(),
            RequestState::Held(RequestHold::TargetRed) => mend(),
            RequestState::Held(RequestHold::PullRequestOpen) => {
                format!("review and merge it there; gt mq sync {rig} looks for news now")
            }
            RequestState::Held(RequestHold::PullRequestChanged) => format!(
                "undo that on the pull request, or gt mq retry {id} opens a new one, gt mq close {id} -m <why> closes \
                 the bead, gt mq cancel {id} gives it up"
            ),
            RequestState::Held(RequestHold::TargetGone) => format!(
                "gt rig set {rig} branch <branch> if {target} was renamed; if it is there again, gt mq retry {id} tries again now"
            ),
            RequestState::Held(RequestHold::CommitElsewhere) => format!(
                "gt up on that host lands it; gt mq cancel {id} gives it up, and then gt sling {} does it again",
                id.bead
            ),
            RequestState::Held(RequestHold::WorkMissing) => {
                let commit: String = self.accepted.chars().take(12).collect();
                format!(
                    "push that work to {} again, or gt mq retry {id} lands {commit}, or gt mq cancel {id} gives it up",
                    self.branch
                )
            }
            RequestState::Held(RequestHold::CheckError) if self.check_run.is_some() => {
                format!("gt mq log {id} shows why; gt mq retry {id} tries again now")
            }
            RequestState::Held(_) => match self.pull_requests_advice() {
                Some(command) => format!("{command}, then gt mq retry {id}"),
                None => format!("gt mq retry {id} tries again now"),
            },
            RequestState::Landed if self.purpose == RequestPurpose::Work => {
                format!("nothing; gt mq revert {id} -m <why> undoes it")
            }
            RequestState::Landed | RequestState::Cancelled | RequestState::Superseded => {
                String::new()
            }
        }
    }

    /// Until when it is not tried again, if that is ahead. A time further off than any delay was set by a clock that has
    /// been set back since, and does not count.
    pub fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.retry_at.filter(|at| *at > now && *at <= now.plus(RETRY_DELAY_MAX))
    }

    /// The run that made the commit.
    pub fn run(&self) -> Option<RunId> {
        self.epoch.map(|epoch| RunId { bead: self.id.bead.clone(), epoch })
    }
}

fn pull_requests_command(rig: &RigSlug) -> String {
    format!("gt rig set {rig} merge pr")
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any state.
    pub(in super::super) fn any_state() -> impl Strategy<Value = RequestState> {
        use RequestState as S;
        let plain = [
            S::Queued,
            S::Building,
            S::Checking,
            S::Landing,
            S::Landed,
            S::Review,
            S::Conflict,
            S::Failed,
            S::Cancelled,
            S::Superseded,
        ];
        prop_oneof![
            proptest::sample::select(plain.to_vec()),
            proptest::sample::select(RequestHold::ALL).prop_map(S::Held),
        ]
    }

    /// A queued request of this bead.
    pub(crate) fn any_request(bead: &str, number: u32) -> MergeRequest {
        let now = Timestamp::from_nanos(1_790_000_000_000_000_000);
        let (bead, rig) = (BeadId::parse(bead).unwrap(), RigSlug::parse("web").unwrap());
        MergeRequest {
            id: MergeRequestId { bead: bead.clone(), number },
            epoch: Some(1),
            branch: "polecat/ada".to_owned(),
            accepted: "c0ffee".to_owned(),
            base: "beef".to_owned(),
            position: 1,
            ..MergeRequest::new(bead, RequestPurpose::Work, rig, "main".to_owned(), now)
        }
    }

    #[test]
    fn work_begins_from_the_accepted_blockers_for_its_branch() {
        let blocker = |bead: &str, rig: &str, target: &str| AcceptedBlocker {
            bead: BeadId::parse(bead).unwrap(),
            rig: RigSlug::parse(rig).unwrap(),
            target: target.to_owned(),
            accepted: "c0ffee".to_owned(),
        };
        let (a, b) = (blocker("gt-a", "web", "main"), blocker("gt-b", "web", "next"));
        let (c, d) = (blocker("gt-c", "api", "main"), blocker("gt-d", "web", "main"));
        let web = RigSlug::parse("web").unwrap();
        let begin = |all: &[AcceptedBlocker]| {
            let found = AcceptedBlocker::to_begin_from(all, &web, "main");
            found.iter().map(|blocker| blocker.bead.to_string()).collect::<Vec<_>>()
        };
        assert!(begin(&[]).is_empty());
        assert!(begin(&[b.clone(), c.clone()]).is_empty());
        assert_eq!(begin(&[c, a.clone(), b]), ["gt-a"]);
        assert_eq!(begin(&[a, d]), ["gt-a", "gt-d"]);
    }

    #[test]
    fn a_request_is_named_by_bead_and_number() {
        let request = MergeRequestId::parse("gt-a@b@3").unwrap();
        assert_eq!((request.bead.as_str(), request.number), ("gt-a@b", 3));
        assert_eq!(request.to_string(), "gt-a@b@3");
        for wrong in ["gt-a", "gt-a@", "gt-a@0", "gt-a@03", "gt-a@x", "gt-a@+1", "@3", ""] {
            assert!(MergeRequestId::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_request_in_a_stopped_queue_names_what_moves_the_queue() {
        let since = Timestamp::from_nanos(1_790_000_000_000_000_000);
        let told = |state, queue_stop: &QueueStop| {
            let queue_stop = queue_stop.clone();
            let request = MergeRequest { state, queue_stop, ..any_request("gt-a", 1) };
            (request.state_reason(), request.next_step())
        };
        let paused = QueueStop { paused: Some((since, "ann".to_owned())), ..QueueStop::default() };
        let red = QueueStop { red_check: Some("test".to_owned()), ..QueueStop::default() };
        let (reason, next) = told(RequestState::Queued, &paused);
        assert!(reason.contains("main of web is paused by ann since 2026-"), "{reason}");
        assert_eq!(next, "gt mq resume web --branch main");
        let (reason, next) = told(RequestState::Queued, &red);
        assert_eq!(reason, "merging: gt-a@1 waits: test fails on main itself");
        assert!(next.contains("gt mq top <merge request> --fix"), "{next}");
        let blocker = Some(BeadId::parse("gt-b").unwrap());
        let stacked = QueueStop { blocker, ..QueueStop::default() };
        let (reason, next) = told(RequestState::Queued, &stacked);
        assert!(reason.contains("waits until gt-b, which it is built on, has landed"), "{reason}");
        assert_eq!(next, "it lands after that; gt why gt-b says what that waits for");
        // The origin answers a push, and a person a review, also while the queue stands still.
        for state in [RequestState::Landing, RequestState::Review] {
            assert_eq!(told(state, &paused), told(state, &QueueStop::default()));
        }
    }

    #[test]
    fn a_protected_target_is_answered_by_pull_requests() {
        let rig = RigSlug::parse("web").unwrap();
        let refused = |detail: String| MergeRequest {
            state: RequestState::Held(RequestHold::OriginRefused),
            detail,
            ..any_request("gt-a", 1)
        };
        let protected = refused(MergeRequest::protected_target_words(&rig, "GH006"));
        assert_eq!(protected.next_step(), "gt rig set web merge pr, then gt mq retry gt-a@1");
        assert!(protected.state_reason().contains("GH006"), "{}", protected.state_reason());
        let hook = refused("sign the agreement first".to_owned());
        assert_eq!(hook.next_step(), "gt mq retry gt-a@1 tries again now");
    }

    #[test]
    fn the_next_step_of_a_request_that_is_over_is_its_revert_or_nothing() {
        let next =
            |state, purpose| MergeRequest { purpose, state, ..any_request("gt-a", 1) }.next_step();
        let landed = next(RequestState::Landed, RequestPurpose::Work);
        assert_eq!(landed, "nothing; gt mq revert gt-a@1 -m <why> undoes it");
        let on_branch = MergeRequest {
            state: RequestState::Landed,
            target: "integration/hq-cv-1".to_owned(),
            ..any_request("gt-a", 1)
        };
        assert_eq!(on_branch.next_step(), "nothing; gt mq revert gt-a@1 -m <why> undoes it");
        assert_eq!(next(RequestState::Landed, RequestPurpose::Revert), "");
        assert_eq!(next(RequestState::Cancelled, RequestPurpose::Work), "");
        assert_eq!(next(RequestState::Superseded, RequestPurpose::Work), "");
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_hold_a_request() {
        let now = Timestamp::from_nanos(1_790_000_000_000_000_000);
        let at = |delay: Duration| Some(now.plus(delay));
        let until = |retry_at| MergeRequest { retry_at, ..any_request("gt-a", 1) }.waits_until(now);
        assert_eq!((until(None), until(Some(now))), (None, None));
        assert_eq!(until(at(Duration::from_mins(10))), at(Duration::from_mins(10)));
        assert_eq!(until(at(Duration::from_hours(24))), None);
    }

    #[test]
    fn every_state_and_reason_has_a_name_that_leads_back() {
        for reason in RequestHold::ALL {
            let state = RequestState::Held(*reason);
            assert_eq!(RequestState::parse(state.as_str(), reason.as_str()), Ok(state));
        }
        for name in [
            "queued",
            "building",
            "checking",
            "landing",
            "landed",
            "review",
            "conflict",
            "failed",
            "cancelled",
            "superseded",
        ] {
            let state = RequestState::parse(name, "").unwrap();
            assert_eq!(state.as_str(), name);
            assert!(RequestState::parse(name, "paused").is_err());
        }
        assert!(RequestState::parse("held", "").is_err());
    }
}
