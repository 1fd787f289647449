//! One row of the inbox.

use std::fmt;

use crate::merging::{MergeRequest, MergeRequestId, RequestHold, RequestState};
use crate::message::MessageTopic;
use crate::schedule::{ParkSubject, RunId, names};
use crate::{BeadId, Invalid, Message, MessageId, RigSlug, Timestamp};

names! {
    /// The kind of an inbox item. Items are listed in the order of their kinds.
    InboxKind, "a kind of an inbox item" {
        /// A worker or an agent asks for a person.
        Question = "help-wanted",
        /// Finished work waits for a review.
        Review = "review",
        /// Every attempt at a bead was lost.
        AttemptsUsedUp = "attempts-used-up",
        /// A run was over a limit of its own, and was ended.
        OverLimit = "over-limit",
        /// A bead failed to start too often.
        CircuitBroken = "circuit-broken",
        /// A bead can never start as it was scheduled.
        Quarantined = "quarantined",
        /// A bead failed for good.
        Failed = "failed",
        /// A worker gave its bead back and asked for a person.
        Escalated = "escalated",
        /// A worker put its bead off.
        PutOff = "put-off",
        /// Finished work does not apply to the target, and no repair is under way.
        Conflict = "conflict",
        /// A check fails with finished work, or a person rejected it, and no repair is under way.
        CheckFailed = "check-failed",
        /// A check fails on the target itself.
        TargetRed = "target-red",
        /// The origin has no such target branch.
        TargetGone = "target-gone",
        /// The origin does not take finished work.
        OriginRefused = "origin-refused",
        /// A check cannot be run to its end.
        CheckError = "check-error",
        /// Only a host that is away has the commit of finished work.
        CommitElsewhere = "commit-elsewhere",
        /// Work that landed on the branch of a convoy is neither there nor in its base.
        WorkMissing = "work-missing",
        /// An error of this machine keeps a queue from being worked on.
        QueueError = "queue-error",
        /// The command of the hosting service is missing, or not logged in.
        HostingTool = "hosting-tool",
        /// A person changed or closed a pull request.
        PullRequestChanged = "pull-request-changed",
        /// A pushed branch waits for a person to merge it.
        Unmerged = "unmerged",
        /// Finished work waits in a queue that a person paused.
        QueuePaused = "queue-paused",
        /// A worker has pushed commits past the merge queue.
        ForeignCommits = "foreign-commits",
        /// A worker has changed the repository that all workers of a rig share.
        RepositoryChanged = "repository-changed",
        /// A worker prints nothing.
        Stalled = "stalled",
        /// An agent has lost its supervisor.
        Unsupervised = "unsupervised",
        /// A run has processes, but neither supervisor nor agent.
        Headless = "headless",
        /// Processes may belong to a lost run.
        StillSeen = "still-seen",
        /// A run is over, and its processes are not.
        NotGone = "not-gone",
        /// A budget is spent, and work waits for it.
        Budget = "budget",
        /// A runtime or an account does not work.
        Parked = "parked",
        /// The disk of the town has too little room, so that nothing starts.
        DiskFull = "disk-full",
        /// Work is ready, and no daemon runs.
        DaemonAway = "daemon-away",
        /// A host is out of sight, and runs are live on it as far as the store knows.
        HostAway = "host-away",
        /// An origin has not answered for long.
        OriginAway = "origin-away",
        /// The checkout of a person is in the way of finished work.
        CheckoutInTheWay = "checkout-in-the-way",
        /// Work is scheduled in a rig without a command.
        RigCannotRun = "rig-cannot-run",
        /// The repository that the workers of a rig share is damaged.
        DamagedRepository = "damaged-repository",
        /// Notices were given up.
        NotTold = "not-told",
    }
}

/// The thing that an inbox item is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxObject {
    /// A message.
    Message(MessageId),
    /// A merge request.
    Request(MergeRequestId),
    /// A bead.
    Bead(BeadId),
    /// A run.
    Run(RunId),
    /// The merge queue of a target branch.
    Queue(RigSlug, String),
    /// A rig.
    Rig(RigSlug),
    /// A runtime or an account.
    Means(ParkSubject),
    /// A budget, by its setting, and its account, bead or convoy if each has one.
    Budget(String, Option<String>),
    /// The town as a whole.
    Town,
}

impl InboxObject {
    /// The kind of the thing, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Message(_) => "message",
            Self::Request(_) => "merge-request",
            Self::Bead(_) => "bead",
            Self::Run(_) => "run",
            Self::Queue(..) => "queue",
            Self::Rig(_) => "rig",
            Self::Means(subject) => subject.kind.as_str(),
            Self::Budget(..) => "budget",
            Self::Town => "town",
        }
    }
}

impl fmt::Display for InboxObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(id) => id.fmt(f),
            Self::Request(id) => id.fmt(f),
            Self::Bead(id) => id.fmt(f),
            Self::Run(id) => id.fmt(f),
            Self::Queue(rig, target) => write!(f, "{rig}/{target}"),
            Self::Rig(rig) => rig.fmt(f),
            Self::Means(subject) => f.write_str(&subject.name),
            Self::Budget(setting, None) => f.write_str(setting),
            Self::Budget(setting, Some(one)) => write!(f, "{setting}/{one}"),
            Self::Town => f.write_str("town"),
        }
    }
}

/// The size of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeSize {
    /// How many files differ.
    pub files: u64,
    /// Lines that are new.
    pub insertions: u64,
    /// Lines that are gone.
    pub deletions: u64,
}

/// Facts that help to decide. What is not known, or does not apply, is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InboxContext {
    /// The words of git, of a check, of a worker or of the origin.
    pub detail: String,
    /// The check that fails.
    pub check: Option<String>,
    /// The size of the change.
    pub change: Option<ChangeSize>,
    /// The beads that wait for this one.
    pub blocks: Vec<BeadId>,
    /// The processes that are left.
    pub processes: Vec<i32>,
    /// The message that asks.
    pub message: Option<Message>,
}

/// A row of the inbox: one thing that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxItem {
    /// Its kind.
    pub kind: InboxKind,
    /// The thing that it is about.
    pub object: InboxObject,
    /// The bead that it is about, if it is about one.
    pub bead: Option<BeadId>,
    /// The rig; nothing if it is about the town.
    pub rig: Option<RigSlug>,
    /// The title of the bead; empty if there is none.
    pub title: String,
    /// The problem, in a sentence.
    pub what: String,
    /// The remedy, in a sentence.
    pub remedy: String,
    /// The commands that answer it, each to be pasted.
    pub commands: Vec<String>,
    /// Since when it needs a person, if that is known.
    pub since: Option<Timestamp>,
    /// Facts that help to decide.
    pub context: InboxContext,
}

impl InboxItem {
    /// The name of the row: the same for as long as the same thing needs a person.
    pub fn key(&self) -> String {
        format!("{}:{}", self.kind.as_str(), self.object)
    }

    /// The row of a message that asks for a person. `has_reader` if a reply reaches a worker; if none does, the words are kept
    /// for the next one.
    pub fn of_question(
        message: Message,
        title: String,
        rig: Option<RigSlug>,
        has_reader: bool,
    ) -> Self {
        let about =
            message.bead.as_ref().map_or_else(|| message.from.to_string(), ToString::to_string);
        let read = format!("gt mail read {}", message.id);
        let mut remedy = format!("{read} shows it and takes it off the list");
        let (kind, others) = match (message.topic, &message.bead) {
            (None, Some(bead)) if !has_reader => {
                let retry = format!("gt scheduler retry {bead}");
                remedy = format!(
                    "its worker has ended; {retry} starts another, bd close {bead} leaves it"
                );
                let tell = format!("bd comments add {bead} <text>");
                (InboxKind::Question, vec![tell, retry, format!("bd close {bead}")])
            }
            (None, _) => {
                (InboxKind::Question, vec![format!("gt mail reply {} -m <text>", message.id)])
            }
            (Some(MessageTopic::ForeignCommits), _) => {
                (InboxKind::ForeignCommits, vec!["gt run list".to_owned()])
            }
            (Some(MessageTopic::RepositoryChanged), _) => {
                (InboxKind::RepositoryChanged, vec!["gt doctor".to_owned()])
            }
        };
        let commands = std::iter::once(read.clone()).chain(others).collect();
        Self {
            kind,
            object: InboxObject::Message(message.id),
            bead: message.bead.clone(),
            rig,
            title,
            what: format!("{about}: {}", message.headline()),
            remedy,
            commands,
            since: Some(message.created_at),
            context: InboxContext {
                detail: message.body.clone(),
                message: Some(message),
                ..InboxContext::default()
            },
        }
    }

    /// The row of a merge request that needs a person for this reason.
    pub fn of_request(request: &MergeRequest, kind: InboxKind, title: String) -> Self {
        let id = &request.id;
        let mut commands = match request.state {
            RequestState::Review => vec![
                format!("gt review show {id}"),
                format!("gt review diff {id}"),
                format!("gt review approve {id}"),
                format!("gt review reject {id} -m <why>"),
            ],
            RequestState::Failed | RequestState::Held(RequestHold::CheckError)
                if request.check_run.is_some() =>
            {
                vec![format!("gt mq log {id}")]
            }
            RequestState::Held(RequestHold::Unmerged) => {
                vec![format!("gt mq close {id} -m <why>")]
            }
            _ => vec![format!("gt mq show {id}")],
        };
        if request.state != RequestState::Review {
            commands.extend(request.pull_requests_advice());
            commands.push(format!("gt mq retry {id}"));
            if request.state == RequestState::Held(RequestHold::PullRequestChanged) {
                commands.push(format!("gt mq close {id} -m <why>"));
            }
            commands.push(format!("gt mq cancel {id}"));
        }
        Self {
            kind,
            object: InboxObject::Request(id.clone()),
            bead: Some(id.bead.clone()),
            rig: Some(request.rig.clone()),
            title,
            what: request.state_reason(),
            remedy: request.next_step(),
            commands,
            since: Some(request.changed_at),
            context: InboxContext { detail: request.detail.clone(), ..InboxContext::default() },
        }
    }
}
