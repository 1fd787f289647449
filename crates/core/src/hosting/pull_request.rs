//! A pull request as a hosting service shows it.

use super::{FEEDBACK_CHARACTERS_MAX, FeedbackTrust, quote_text};
use crate::Timestamp;
use crate::formula::WordSet;

/// The state of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PullRequestState {
    /// It can be merged.
    Open,
    /// It is merged.
    Merged,
    /// It was closed without a merge.
    Closed,
}

impl WordSet for PullRequestState {
    const WHAT: &str = "state of a pull request";
    const NAMES: &[(&str, Self)] =
        &[("open", Self::Open), ("merged", Self::Merged), ("closed", Self::Closed)];
}

/// The verdict of the rules of the service about the reviews of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullRequestApproval {
    /// Enough reviewers approve.
    Approved,
    /// A reviewer asks for changes.
    ChangesRequested,
    /// A review is required and missing.
    Required,
    /// The service requires none, or does not say.
    NotRequired,
}

impl WordSet for PullRequestApproval {
    const WHAT: &str = "decision of the reviews";
    const NAMES: &[(&str, Self)] = &[
        ("approved", Self::Approved),
        ("changes-requested", Self::ChangesRequested),
        ("required", Self::Required),
        ("not-required", Self::NotRequired),
    ];
}

/// The state of a check that the service ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostedCheckState {
    /// It waits or runs.
    Pending,
    /// It passed, or was skipped.
    Passed,
    /// It failed.
    Failed,
    /// It was cancelled or waits for a person; that says nothing about the code.
    Stopped,
}

impl WordSet for HostedCheckState {
    const WHAT: &str = "state of a check";
    const NAMES: &[(&str, Self)] = &[
        ("pending", Self::Pending),
        ("passed", Self::Passed),
        ("failed", Self::Failed),
        ("stopped", Self::Stopped),
    ];
}

/// A check of the service on the head commit of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedCheck {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: HostedCheckState,
    /// Where its output is.
    pub link: Option<String>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// The state of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullRequestReviewState {
    /// The reviewer approves.
    Approved,
    /// The reviewer asks for changes.
    ChangesRequested,
    /// The reviewer comments.
    Commented,
    /// A maintainer has dismissed it.
    Dismissed,
    /// It is not submitted yet.
    Pending,
}

impl WordSet for PullRequestReviewState {
    const WHAT: &str = "state of a review";
    const NAMES: &[(&str, Self)] = &[
        ("approved", Self::Approved),
        ("changes-requested", Self::ChangesRequested),
        ("commented", Self::Commented),
        ("dismissed", Self::Dismissed),
        ("pending", Self::Pending),
    ];
}

/// Where a text on a pull request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullRequestFeedbackKind {
    /// The text of a review.
    Review(PullRequestReviewState),
    /// A comment on a line of a file.
    LineComment,
    /// A comment on the pull request as a whole.
    Conversation,
}

/// A text that a person or program has written on a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestFeedback {
    /// Its identity: the kind of list it is from and its number there, as `review:12`.
    pub id: String,
    /// Where it stands.
    pub kind: PullRequestFeedbackKind,
    /// The login of its author; empty if the account is gone.
    pub author: String,
    /// Whether the author is a program.
    pub is_bot: bool,
    /// Whether the author may write to the repository, as the service reports it.
    pub may_write: bool,
    /// The author's access in the words of the service, for people: `MEMBER`, `30`.
    pub access: String,
    /// The text.
    pub body: String,
    /// The file that it is about.
    pub file: Option<String>,
    /// The line in that file.
    pub line: Option<u64>,
    /// Where it is on the web.
    pub url: Option<String>,
    /// When it was submitted.
    pub submitted_at: Option<Timestamp>,
    /// Whether its thread is marked as resolved.
    pub is_resolved: bool,
}

/// A text that starts no repair: people read it, and it enters no briefing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFeedback {
    /// Its identity on the service.
    pub id: String,
    /// The login of its author; empty if the account is gone.
    pub author: String,
    /// Why it starts no repair.
    pub trust: FeedbackTrust,
    /// The text, shortened if it is very long.
    pub body: String,
    /// The file that it is about; empty for the whole pull request.
    pub file: String,
    /// The line in that file.
    pub line: Option<u64>,
    /// Where it is on the web.
    pub address: String,
    /// When it was submitted.
    pub submitted_at: Option<Timestamp>,
}

impl ShownFeedback {
    /// The text of a pull request, with this reason. Nothing if there is nothing to read: a draft, or an approval without words.
    pub fn of(text: &PullRequestFeedback, trust: FeedbackTrust) -> Option<Self> {
        let has_words = !text.body.trim().is_empty() && trust != FeedbackTrust::NotSubmitted;
        has_words.then(|| Self {
            id: text.id.clone(),
            author: text.author.clone(),
            trust,
            body: text.body.chars().take(FEEDBACK_CHARACTERS_MAX).collect(),
            file: text.file.clone().unwrap_or_default(),
            line: text.line,
            address: text.url.clone().unwrap_or_default(),
            submitted_at: text.submitted_at,
        })
    }

    /// A line about its author, its place and why it starts no repair, and its text in a fence.
    pub fn quoted(&self) -> String {
        let author = if self.author.is_empty() { "an unknown account" } else { &self.author };
        let why = match self.trust {
            FeedbackTrust::StartsRepair => "starts a repair",
            FeedbackTrust::NotTrusted => "not among the people of pr.trust",
            FeedbackTrust::Bot => "a program",
            FeedbackTrust::OwnLogin => "the account of gt itself",
            FeedbackTrust::UnknownAuthor => "its account is gone",
            FeedbackTrust::NotSubmitted => "not submitted",
            FeedbackTrust::AsksForNothing => "asks for nothing",
        };
        let place = match (self.file.as_str(), self.line) {
            ("", _) => String::new(),
            (file, Some(line)) => format!(" on {file}:{line}"),
            (file, None) => format!(" on {file}"),
        };
        let head: String =
            format!("{author}{place} ({why})").chars().filter(|c| !c.is_control()).collect();
        format!("{head}:\n{}", quote_text(&self.body, FEEDBACK_CHARACTERS_MAX))
    }
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Its state.
    pub state: PullRequestState,
    /// Where it is on the web.
    pub url: String,
    /// The login of its author.
    pub author: String,
    /// The branch that is to be merged.
    pub head_branch: String,
    /// The tip of that branch.
    pub head_commit: String,
    /// The branch that it is to be merged into.
    pub base_branch: String,
    /// The commit on the base branch that the merge made.
    pub merge_commit: Option<String>,
    /// Whether the service cannot merge it, because the base branch has changed the same lines. It finds out some time
    /// after either branch has moved.
    pub has_conflict: bool,
    /// The decision of the reviews.
    pub approval: PullRequestApproval,
    /// The checks of the head commit.
    pub checks: Vec<HostedCheck>,
    /// The texts on it.
    pub feedback: Vec<PullRequestFeedback>,
}

/// One pull request in the answer to a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolledPullRequest {
    /// Its number.
    pub number: u64,
    /// A text that changes when anything of the pull request changes. None: the list does not have it, as after a
    /// merge; fetch it alone.
    pub fingerprint: Option<String>,
}
