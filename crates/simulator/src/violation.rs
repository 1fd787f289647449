//! The invariants, and the report of a violation.

use std::fmt;

/// A property that must always hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invariant {
    /// A bead has at most one live run in the store.
    OneRun,
    /// A bead has at most one live agent in the world.
    OneAgent,
    /// A tree has at most one live agent in the world.
    OneInTree,
    /// A bead whose run a person or its worker has ended is scheduled only by a person.
    EndsStay,
    /// A message stays until its reader has read it, and a step that is done stays done.
    Said,
    /// An agent executes for the run that it was started for, while that is running.
    AgentHasRun,
    /// A run starts only on a host whose lease is valid, and that has what the run needs.
    Placement,
    /// A run that was declared lost with its host has no effect afterwards.
    LostHasNoEffect,
    /// No run starts unless every cap in force admits it.
    Cap,
    /// No start goes beyond a budget, and no run beyond its limit but for the call under way and the handoff.
    Budget,
    /// Nothing starts while the scheduler, or a convoy of it, is paused.
    Pause,
    /// Nothing starts with a parked runtime or account, but for the one run that tries it.
    Parked,
    /// A run that was lost with the machine or its server, or to a usage limit, costs its bead no attempt.
    Price,
    /// A bead that starts was scheduled, ready and due in that moment.
    Recheck,
    /// The status of a bead agrees with its live run.
    Status,
    /// A context agrees with its run.
    Context,
    /// A bead that was scheduled is scheduled, running, or has a recorded end.
    Kept,
    /// A bead waits exactly for the beads that block it: a close lets go in the same transaction.
    Blocking,
    /// A convoy lands, and an epic is over, when all of it is closed and nothing of it failed, and once.
    Landing,
    /// A member of a convoy under way is scheduled in the change that makes it possible, and never
    /// before the launch.
    Fed,
    /// A target is moved only to a tip whose tree has passed the checks that are in force at the intent.
    Checked,
    /// A merge request lands once, and its commits are once on the target.
    LandsOnce,
    /// A bead is closed as landed only when the target has its commit.
    Reachable,
    /// Nothing that needs a review lands without a person's approval of that very commit.
    Approved,
    /// Only the machine with the lease of a queue pushes, and only what it has recorded.
    QueueLease,
    /// A pull request is opened once, its branch is pushed as recorded, and each comment of a person who may write starts one
    /// repair.
    PullRequest,
    /// A merge request has a state that fits its bead, and its commit is kept.
    Request,
    /// Derived values are as computed from their sources, and events are numbered without gaps.
    Derived,
    /// Every bead that is not running has true reasons.
    Reason,
    /// The list, the status, the explanations and a dry run agree.
    Agreement,
    /// Operations fail only because of their request.
    Soundness,
    /// When nothing goes wrong any more, everything that can be dispatched is, and ends.
    Progress,
}

impl Invariant {
    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneRun => "one-run",
            Self::OneAgent => "one-agent",
            Self::OneInTree => "one-in-tree",
            Self::EndsStay => "ends-stay",
            Self::Said => "said",
            Self::AgentHasRun => "agent-has-run",
            Self::Placement => "placement",
            Self::LostHasNoEffect => "lost-has-no-effect",
            Self::Cap => "cap",
            Self::Budget => "budget",
            Self::Pause => "pause",
            Self::Parked => "parked",
            Self::Price => "price",
            Self::Recheck => "recheck",
            Self::Status => "status",
            Self::Context => "context",
            Self::Kept => "kept",
            Self::Blocking => "blocking",
            Self::Landing => "landing",
            Self::Fed => "fed",
            Self::Checked => "checked",
            Self::LandsOnce => "lands-once",
            Self::Reachable => "reachable",
            Self::Approved => "approved",
            Self::QueueLease => "queue-lease",
            Self::PullRequest => "pull-request",
            Self::Request => "request",
            Self::Derived => "derived",
            Self::Reason => "reason",
            Self::Agreement => "agreement",
            Self::Soundness => "soundness",
            Self::Progress => "progress",
        }
    }
}

/// The violation of an invariant.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The seed that shows it.
    pub seed: u64,
    /// The violated invariant.
    pub invariant: Invariant,
    /// The state that violates it.
    pub found: String,
    /// The steps before it, the last step last.
    pub steps: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}: {}", self.seed, self.invariant.name(), self.found)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "  {step}"))
    }
}
