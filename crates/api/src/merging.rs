//! Merge requests, queues and reviews.

use gt_core::checks::CheckRun;
use gt_core::formula::WordSet as _;
use gt_core::hosting::ShownFeedback;
use gt_core::merging::{Candidate, MergeRequest, PullRequestName, Review};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{DaemonAbsenceDocument, UtcTime};

/// A merge request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MergeRequestDocument {
    /// The words about the daemon where none runs that would land it; left out if the request does not wait for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_absence: Option<DaemonAbsenceDocument>,
    pub id: String,
    pub bead: String,
    pub title: String,
    /// The kind of change that it brings to its target: `work`, `revert` or `integration`.
    pub purpose: String,
    pub rig: String,
    pub target: String,
    /// The branch that has its commit; empty if none has.
    pub branch: String,
    pub state: String,
    /// Why it is held; left out if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// Where it stands, in a sentence.
    pub reason: String,
    /// The command that moves it on, or what moves it by itself.
    pub next: String,
    /// Its place in line, from 1; left out if it does not wait for its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub accepted: String,
    pub base: String,
    pub merge: String,
    /// Its pull request; left out before its branch has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestDocument>,
    pub review: bool,
    pub top: bool,
    pub tries: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub landed: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub retry_at: Option<UtcTime>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UtcTime,
    #[schema(value_type = String, format = DateTime)]
    pub changed_at: UtcTime,
}

impl MergeRequestDocument {
    /// The document of a request of a bead with this title, in this place in line.
    pub fn new(request: &MergeRequest, title: &str, position: Option<u64>) -> Self {
        Self {
            daemon_absence: None,
            id: request.id.to_string(),
            bead: request.id.bead.to_string(),
            title: title.to_owned(),
            purpose: request.purpose.as_str().to_owned(),
            rig: request.rig.to_string(),
            target: request.target.clone(),
            branch: request.branch.clone(),
            state: request.state.as_str().to_owned(),
            held: request.state.held().map(|reason| reason.as_str().to_owned()),
            reason: request.state_reason(),
            next: request.next_step(),
            position,
            run: request.run().map(|run| run.to_string()),
            accepted: request.accepted.clone(),
            base: request.base.clone(),
            merge: request.method.as_str().to_owned(),
            pull_request: PullRequestDocument::of(&request.pull_request),
            review: request.review,
            top: request.top,
            tries: request.tries,
            landed: request.landed.clone(),
            retry_at: request.retry_at.map(UtcTime::from),
            created_at: request.created_at.into(),
            changed_at: request.changed_at.into(),
        }
    }
}

/// The pull request of a merge request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PullRequestDocument {
    pub branch: String,
    /// Left out until it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub address: String,
}

impl PullRequestDocument {
    /// The document of a pull request; nothing before its branch has a name.
    pub fn of(name: &PullRequestName) -> Option<Self> {
        (!name.branch.is_empty()).then(|| Self {
            branch: name.branch.clone(),
            number: name.number,
            address: name.address.clone(),
        })
    }
}

/// How a merge request got where it is.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MergeRequestStoryDocument {
    #[serde(flatten)]
    pub request: MergeRequestDocument,
    /// The candidate that it landed with; left out before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CandidateDocument>,
    pub reviews: Vec<ReviewDocument>,
    /// The request that undid it after it had landed; left out if none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<String>,
    /// The names of the checks that its rig has now, in their order; left out if there are none, and by the command line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub rig_checks: Vec<String>,
    /// The cause for which its pull request waits, in words; left out if that is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub waits_for: String,
    /// The comments on its pull request: those for which it was sent back, then those that start no repair. Left out if there
    /// are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub comments: Vec<ShownCommentDocument>,
    /// The tokens that the runs which led to it have used; left out if none are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The cost of those runs, in dollars; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
}

/// A comment on a pull request. Its text is data of a stranger.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ShownCommentDocument {
    pub id: String,
    pub author: String,
    /// Whether it starts a repair (starts-repair), or why it starts none: not-trusted, bot, own-login, unknown-author or asks-for-nothing.
    pub trust: String,
    pub body: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub submitted_at: Option<UtcTime>,
}

impl From<&ShownFeedback> for ShownCommentDocument {
    fn from(text: &ShownFeedback) -> Self {
        Self {
            id: text.id.clone(),
            author: text.author.clone(),
            trust: text.trust.as_str().to_owned(),
            body: text.body.clone(),
            file: text.file.clone(),
            line: text.line,
            address: text.address.clone(),
            submitted_at: text.submitted_at.map(UtcTime::from),
        }
    }
}

/// A candidate, with its requests and checks.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CandidateDocument {
    pub number: u64,
    pub base: String,
    pub tip: String,
    pub tree: String,
    pub state: String,
    pub requests: Vec<CandidatePartDocument>,
    pub checks: Vec<CandidateCheckDocument>,
}

/// A request in a candidate.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CandidatePartDocument {
    pub request: String,
    pub before: String,
    pub after: String,
}

/// A check that a candidate has passed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CandidateCheckDocument {
    pub name: String,
    pub check_run: u64,
    pub cached: bool,
    /// Whether it passed after it had failed on the same content; left out if it did not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub flaky: bool,
    /// Which try on the same content passed, from 1; left out if that is not known any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl CandidateCheckDocument {
    /// The document of a check of this name that passed with this run.
    pub fn new(name: &str, check_run: u64, cached: bool, run: Option<&CheckRun>) -> Self {
        Self {
            name: name.to_owned(),
            check_run,
            cached,
            flaky: run.is_some_and(|run| run.flaky),
            attempt: run.map(|run| run.attempt),
            exit_code: run.and_then(|run| run.exit_code),
            duration_ms: run.map(|run| run.duration_ms),
        }
    }
}

impl CandidateDocument {
    /// The document of a candidate that has passed these checks.
    pub fn new(candidate: &Candidate, checks: Vec<CandidateCheckDocument>) -> Self {
        Self {
            number: candidate.number,
            base: candidate.base.clone(),
            tip: candidate.tip.clone(),
            tree: candidate.tree.clone(),
            state: candidate.state.as_str().to_owned(),
            requests: candidate
                .parts
                .iter()
                .map(|part| CandidatePartDocument {
                    request: part.request.to_string(),
                    before: part.before.clone(),
                    after: part.after.clone(),
                })
                .collect(),
            checks,
        }
    }
}

/// A review of a merge request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReviewDocument {
    pub number: u64,
    pub request: String,
    pub actor: String,
    pub decision: String,
    pub commit: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub body: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UtcTime,
}

impl From<&Review> for ReviewDocument {
    fn from(review: &Review) -> Self {
        Self {
            number: review.number,
            request: review.request.to_string(),
            actor: review.actor.clone(),
            decision: review.decision.as_str().to_owned(),
            commit: review.accepted.clone(),
            file: review.file.clone(),
            line: review.line,
            body: review.body.clone(),
            created_at: review.created_at.into(),
        }
    }
}

/// A merge queue that was paused or resumed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct QueuePauseDocument {
    pub rig: String,
    pub target: String,
    pub paused: bool,
    pub changed: bool,
}

/// The size of a change, for a review.
#[derive(Debug, Clone, Serialize)]
pub struct DiffStatDocument {
    pub request: String,
    pub files: u64,
    pub insertions: u64,
    pub deletions: u64,
    pub paths: Vec<String>,
}

/// The run of a check that failed with a merge request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FailedCheckDocument {
    pub check: String,
    pub commit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The file with its output, below the directory of the town.
    pub log: String,
    pub output: String,
}

/// A check that passed after it had failed on the same tree.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FlakyCheckDocument {
    pub rig: String,
    pub check: String,
    pub commit: String,
    pub tree: String,
    pub attempt: u32,
    #[schema(value_type = String, format = DateTime)]
    pub started_at: UtcTime,
}

/// A merge queue: the requests of one rig and target branch.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MergeQueueDocument {
    pub rig: String,
    pub target: String,
    pub paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// The check that fails on the target itself; left out if none is known to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub red_check: Option<String>,
    /// The commit of the target on which it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub red_commit: Option<String>,
}

/// The change of a merge request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RequestDiffDocument {
    pub request: String,
    pub base: String,
    pub commit: String,
    pub files: u64,
    pub insertions: u64,
    pub deletions: u64,
    pub paths: Vec<String>,
    /// The change as `git diff` prints it. Bytes that are no text are replaced.
    pub diff: String,
    /// Whether the end of it is left out because it is too long.
    pub truncated: bool,
}

/// A comment on a merge request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct NewCommentDocument {
    #[schema(min_length = 1, max_length = 65536)]
    pub message: String,
    /// The file that it is about.
    #[schema(max_length = 4096)]
    pub file: Option<String>,
    /// The line of the file.
    #[schema(minimum = 1)]
    pub line: Option<u32>,
}

/// An approval of a merge request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ApprovalDocument {
    #[schema(max_length = 65536)]
    pub message: Option<String>,
}

/// The words that a decision needs: what is to be changed, or why.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DecisionReasonDocument {
    #[schema(min_length = 1, max_length = 65536)]
    pub message: String,
}

/// How a merge request goes before all others.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TopDocument {
    /// Let it land even while a check fails on the target, if they pass with it.
    pub fix: Option<bool>,
}

/// The queue of a rig that is meant.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct QueueBranchDocument {
    /// The target branch; the rig's own unless said.
    #[schema(min_length = 1, max_length = 250)]
    pub branch: Option<String>,
}
