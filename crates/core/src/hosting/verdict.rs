//! The next step for a pull request, decided from its state.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{
    FeedbackTrust, HostedCheck, HostedCheckState, PullRequest, PullRequestApproval,
    PullRequestFeedback, PullRequestState, PullRequestTrust, ShownFeedback,
};
use crate::Timestamp;

/// How long a repair for a failed check waits for the checks that still run, so that it learns all failures at once.
/// A check that never reports must not hold it up for longer.
pub const CHECKS_GRACE: Duration = Duration::from_mins(30);

/// How long a repair for a comment waits for the next comment: people write several in a row.
pub const FEEDBACK_QUIET: Duration = Duration::from_mins(2);

/// The state of a pull request of ours before it is fetched again.
#[derive(Debug, Clone, Copy)]
pub struct PullRequestRecord<'a> {
    /// The branch that it is to be merged into.
    pub base_branch: &'a str,
    /// The commits that were the tip of its branch, by our pushes or fetched and built upon, in order.
    pub known_heads: &'a [String],
    /// The head commit whose failed checks or conflict have had a repair.
    pub repaired_head: Option<&'a str>,
    /// The identities of the texts that have had a repair.
    pub repaired_feedback: &'a BTreeSet<String>,
    /// Whose texts start a repair.
    pub trust: &'a PullRequestTrust,
    /// The account that we use.
    pub own_login: &'a str,
}

/// The work that a repair run is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullRequestRepair {
    /// The checks that failed.
    pub checks: Vec<HostedCheck>,
    /// The texts to answer.
    pub feedback: Vec<PullRequestFeedback>,
}

/// The cause for which an open pull request waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullRequestWait {
    /// The service still shows a tip that we have replaced.
    OlderHead,
    /// Checks run; these have failed already.
    Checks {
        /// Those that run.
        running: Vec<String>,
        /// Those that failed.
        failed: Vec<String>,
    },
    /// Comments have come in just now, and more may follow.
    MoreComments,
    /// A repair has been made for the failed checks or the conflict of this head, and nothing was pushed since.
    RepairedHead,
    /// A person must start or approve these checks.
    StoppedChecks(Vec<String>),
    /// A reviewer asks for changes without a text that may start a repair.
    ChangesRequested,
    /// A review.
    Review,
    /// A person merges it.
    Merge,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullRequestNext {
    /// It has landed as this commit.
    Landed {
        /// The commit on the target.
        commit: String,
    },
    /// The service says that it is merged, but the commit is not in the fetched target. Fetch and ask again.
    MergedNotSeen {
        /// The commit of the merge, if the service names one.
        commit: Option<String>,
    },
    /// A person has merged it into another branch than ours: a person decides.
    MergedElsewhere {
        /// That branch.
        base: String,
    },
    /// A person has closed it without a merge: a person decides.
    ClosedUnmerged,
    /// A person has changed the branch that it is to be merged into: held.
    BaseChanged {
        /// That branch.
        base: String,
    },
    /// Its branch has a tip that is not ours. It is fetched, and the next commit is built upon it.
    ForeignHead {
        /// The tip.
        commit: String,
    },
    /// A repair run.
    Repair(PullRequestRepair),
    /// A repair run for a conflict with the base branch, which also gets what else is to be answered.
    Conflict(PullRequestRepair),
    /// It waits.
    Wait(PullRequestWait),
}

/// The decision about a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestVerdict {
    /// The next step.
    pub next: PullRequestNext,
    /// Whether the decision stays the same while the pull request does. If not, it is fetched again at the next poll,
    /// even if its fingerprint has not changed.
    pub is_settled: bool,
    /// The texts that are only shown, with the reason. Those that have had a repair are left out.
    pub shown: Vec<ShownFeedback>,
}

/// Decides what follows from a fetched pull request. `merge_is_in_target` says whether its merge commit is reachable
/// from the target as it was fetched just now.
pub fn judge_pull_request(
    record: &PullRequestRecord<'_>,
    fetched: &PullRequest,
    merge_is_in_target: bool,
    now: Timestamp,
) -> PullRequestVerdict {
    let (new, shown) = sort_feedback(record, fetched);
    let (next, is_settled) = match fetched.state {
        PullRequestState::Merged => after_merge(record, fetched, merge_is_in_target),
        PullRequestState::Closed => (PullRequestNext::ClosedUnmerged, true),
        PullRequestState::Open if fetched.base_branch != record.base_branch => {
            (PullRequestNext::BaseChanged { base: fetched.base_branch.clone() }, true)
        }
        PullRequestState::Open if !record.known_heads.contains(&fetched.head_commit) => {
            (PullRequestNext::ForeignHead { commit: fetched.head_commit.clone() }, true)
        }
        PullRequestState::Open => while_open(record, fetched, new, now),
    };
    PullRequestVerdict { next, is_settled, shown }
}

type SortedFeedback = (Vec<PullRequestFeedback>, Vec<ShownFeedback>);

/// The texts that start a repair, and those that are only shown.
fn sort_feedback(record: &PullRequestRecord<'_>, fetched: &PullRequest) -> SortedFeedback {
    let mut seen = BTreeSet::new();
    let (mut new, mut shown) = SortedFeedback::default();
    for text in &fetched.feedback {
        if record.repaired_feedback.contains(&text.id) || !seen.insert(text.id.as_str()) {
            continue;
        }
        match record.trust.judge(text, record.own_login) {
            FeedbackTrust::StartsRepair => new.push(text.clone()),
            reason => shown.extend(ShownFeedback::of(text, reason)),
        }
    }
    (new, shown)
}

fn after_merge(
    record: &PullRequestRecord<'_>,
    fetched: &PullRequest,
    merge_is_in_target: bool,
) -> (PullRequestNext, bool) {
    match &fetched.merge_commit {
        Some(commit) if merge_is_in_target => {
            (PullRequestNext::Landed { commit: commit.clone() }, true)
        }
        _ if fetched.base_branch != record.base_branch => {
            (PullRequestNext::MergedElsewhere { base: fetched.base_branch.clone() }, false)
        }
        commit => (PullRequestNext::MergedNotSeen { commit: commit.clone() }, false),
    }
}

fn while_open(
    record: &PullRequestRecord<'_>,
    fetched: &PullRequest,
    feedback: Vec<PullRequestFeedback>,
    now: Timestamp,
) -> (PullRequestNext, bool) {
    let is_current = record.known_heads.last() == Some(&fetched.head_commit);
    let in_state = |state| fetched.checks.iter().filter(move |check| check.state == state);
    let names = |state| in_state(state).map(|check| check.name.clone()).collect::<Vec<_>>();
    let running = names(HostedCheckState::Pending);
    let failed: Vec<HostedCheck> = in_state(HostedCheckState::Failed).cloned().collect();
    let is_repaired = record.repaired_head == Some(fetched.head_commit.as_str());
    // The checks of a tip that we have replaced say nothing about the new one.
    let counts = is_current && !is_repaired && !failed.is_empty();
    let grace_is_over = failed.iter().any(|check| is_older(check.ended_at, now, CHECKS_GRACE));
    let checks_are_due = counts && (running.is_empty() || grace_is_over);
    let is_quiet = feedback.iter().all(|text| is_older(text.submitted_at, now, FEEDBACK_QUIET));
    let feedback_is_due = !feedback.is_empty() && is_quiet;

    let wait = |what, is_settled| (PullRequestNext::Wait(what), is_settled);
    // As with checks: what is said about a tip that we have replaced is over.
    let has_conflict = is_current && !is_repaired && fetched.has_conflict;
    if has_conflict || checks_are_due || feedback_is_due {
        let checks = if counts { failed } else { Vec::new() };
        let repair = PullRequestRepair { checks, feedback };
        let next = if has_conflict { PullRequestNext::Conflict } else { PullRequestNext::Repair };
        return (next(repair), true);
    }
    if !feedback.is_empty() {
        return wait(PullRequestWait::MoreComments, false);
    }
    if !is_current {
        return wait(PullRequestWait::OlderHead, false);
    }
    if !running.is_empty() {
        let is_settled = !counts;
        let failed = failed.into_iter().map(|check| check.name).collect();
        return wait(PullRequestWait::Checks { running, failed }, is_settled);
    }
    if !failed.is_empty() || fetched.has_conflict {
        return wait(PullRequestWait::RepairedHead, true);
    }
    let stopped = names(HostedCheckState::Stopped);
    let what = match fetched.approval {
        _ if !stopped.is_empty() => PullRequestWait::StoppedChecks(stopped),
        PullRequestApproval::ChangesRequested => PullRequestWait::ChangesRequested,
        PullRequestApproval::Required => PullRequestWait::Review,
        PullRequestApproval::Approved | PullRequestApproval::NotRequired => PullRequestWait::Merge,
    };
    wait(what, true)
}

/// Whether that long has passed. What has no time is taken as old, and so is a time that is further ahead than that: then our
/// clock was set back.
fn is_older(at: Option<Timestamp>, now: Timestamp, than: Duration) -> bool {
    at.is_none_or(|at| now.since(at) >= than || at.since(now) > than)
}

#[cfg(test)]
pub(super) mod tests;
