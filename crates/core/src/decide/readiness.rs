//! Why a bead is not ready: the one evaluator behind every command that says so.

use std::fmt;

use super::admission::Cap;
use super::budget::{Budget, BudgetEnd};
use super::guard::LoadGuard;
use super::parking::ParkHold;
use super::placement::PlacementAnswer;
use crate::merging::{MergeRequest, RequestState};
use crate::schedule::{RunId, RunLimit, WorkerPlace};
use crate::{BeadId, IssueType, RigSlug, Status, Timestamp};

/// The facts that readiness depends on.
#[derive(Debug, Clone)]
pub struct ReadinessFacts<'a> {
    /// The bead's status.
    pub status: &'a Status,
    /// Its type.
    pub issue_type: &'a IssueType,
    /// Whether it is a reference.
    pub pinned: bool,
    /// Whether it is machinery.
    pub ephemeral: bool,
    /// Its own "not before".
    pub defer_until: Option<Timestamp>,
    /// Its parent's "not before", if that has one.
    pub parent_deferred: Option<(&'a BeadId, Timestamp)>,
    /// The open beads that block it.
    pub open_blockers: &'a [BeadId],
    /// The beads that block it because they failed.
    pub failed_blockers: &'a [BeadId],
}

/// A reason why a bead is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    /// These must be done first.
    BlockedBy(Vec<BeadId>),
    /// These were tried and failed.
    BlockerFailed(Vec<BeadId>),
    /// It was put off until then.
    DeferredUntil(Timestamp),
    /// It was put off without a date.
    Deferred,
    /// Its parent was put off until then.
    ParentDeferred(BeadId, Timestamp),
    /// Its status says that it is not open.
    Status(Status),
    /// It is a fixed reference.
    Pinned,
    /// Beads of this type are not work.
    NotWork(IssueType),
    /// It is machinery.
    Ephemeral,
    /// A worker has it.
    Running(RunId),
    /// A worker is about to have it.
    StartInProgress(RunId),
    /// A person or a standing agent has it, and says when it is done.
    WithCrew(String, RunId),
    /// A person or an agent claimed it without the scheduler.
    ClaimedByHand(String),
    /// It is assigned to this person or agent.
    AssignedTo(String),
    /// Beads of this type are not slung.
    NotSlingable(IssueType),
    /// It belongs to the town and to no rig.
    TownLevel,
    /// It waits for its convoy to be launched.
    ConvoyStaged(BeadId),
    /// Nothing of this convoy starts: by whom, since when.
    ConvoyPaused(BeadId, String, Timestamp),
    /// It is a convoy under way, and these of its beads are not closed.
    MembersOpen(Vec<BeadId>),
    /// It is not scheduled.
    NotScheduled,
    /// This actor took it out of the queue.
    Cleared(String),
    /// It could not be started too often; the last time because of this.
    CircuitBroken(String),
    /// It can never start as it was scheduled.
    Quarantined(String),
    /// This actor ended its last run.
    RunCancelled(String),
    /// It had so many runs, and none came to an end.
    AttemptsUsedUp(u32),
    /// This run of it was over a limit of its own, and was ended.
    OverLimit(RunId, RunLimit),
    /// The work is done outside any repository, and a person must review it.
    Review,
    /// Its worker asks for a person.
    Escalated(String),
    /// Its worker put it off.
    PutOff(String),
    /// It was done, and this merge request is not over.
    Merging(Box<MergeRequest>),
    /// The next cycle will give it up, for this reason.
    CannotStart(String),
    /// Its rig is gone.
    RigGone(RigSlug),
    /// Nothing new starts in its rig.
    RigParked(RigSlug),
    /// Nothing new starts in its rig, because its executor is removed.
    ExecutorRemoved(RigSlug),
    /// Its rig is out of service.
    RigDocked(RigSlug),
    /// Its rig does not know how to run it.
    RigCannotRun(RigSlug),
    /// Only this other host works on its rig.
    OtherHost(RigSlug, String),
    /// This host does not start it; the answers of all hosts.
    Placement(Box<PlacementAnswer>),
    /// Another host should start it, and has the first try until then.
    PreferredHost(String, Timestamp),
    /// A start failed or a run was lost, and the next one waits until then.
    Backoff(Timestamp),
    /// Nothing is started: by whom, since when.
    Paused(String, Timestamp),
    /// It was queued by hand and waits for a cycle by hand.
    QueueGate,
    /// An agent has to ask for it.
    WaitsForPullAgent,
    /// The worker it was given to has another run.
    OnePerAgent(WorkerPlace, RunId),
    /// A cap is reached.
    NoSlot(Cap),
    /// Nothing starts with this runtime: too many runs of it came to nothing at once.
    RuntimeParked(String, ParkHold),
    /// Nothing starts on this account: it has reached its limit, or too many runs on it came to nothing at once.
    AccountLimited(String, ParkHold),
    /// A budget is spent.
    Budget(Budget),
    /// So many merge requests wait for a review that its rig, which requires reviews, begins nothing new.
    ReviewsWaiting {
        /// How many wait in the town.
        waiting: u32,
        /// How many may.
        limit: u32,
    },
    /// This machine has too little memory left for one more.
    Memory {
        /// The memory that is left after the promises to runs that have just begun.
        available_mb: u64,
        /// The memory that must be left.
        wanted_mb: u64,
    },
    /// This machine is too busy for one more.
    Load(LoadGuard),
    /// The disk of the town has too little room left for one more.
    Disk {
        /// The megabytes that are free.
        available_mb: u64,
        /// The megabytes that must be.
        wanted_mb: u64,
    },
}

impl WaitReason {
    /// Whether only room is missing: the work itself could start.
    pub fn is_capacity(&self) -> bool {
        matches!(
            self,
            Self::NoSlot(_)
                | Self::OnePerAgent(..)
                | Self::RuntimeParked(..)
                | Self::AccountLimited(..)
                | Self::Budget(_)
                | Self::ReviewsWaiting { .. }
                | Self::Memory { .. }
                | Self::Load(_)
                | Self::Disk { .. }
                | Self::OtherHost(..)
                | Self::Placement(_)
                | Self::PreferredHost(..)
        )
    }

    /// The moment at which it ends, if that is known.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::DeferredUntil(until)
            | Self::ParentDeferred(_, until)
            | Self::Backoff(until)
            | Self::PreferredHost(_, until) => Some(*until),
            Self::RuntimeParked(_, hold) | Self::AccountLimited(_, hold) => match hold {
                ParkHold::Until(until) | ParkHold::Ramp(_, until) => Some(*until),
                ParkHold::Once | ParkHold::Trial(_) => None,
            },
            Self::Budget(budget) => budget.until,
            _ => None,
        }
    }

    /// Whether the scheduler as a whole holds it, and not the work.
    pub fn is_control(&self) -> bool {
        matches!(self, Self::Paused(..) | Self::QueueGate)
    }

    /// Whether time, room or the worker takes it away, and no person need do anything. The blockers of a bead are
    /// evaluated on their own.
    pub fn passes_by_itself(&self) -> bool {
        match self {
            Self::DeferredUntil(_)
            | Self::ParentDeferred(..)
            | Self::Running(_)
            | Self::StartInProgress(_)
            | Self::Backoff(_)
            | Self::WaitsForPullAgent
            | Self::OtherHost(..)
            | Self::Placement(_)
            | Self::PreferredHost(..)
            | Self::OnePerAgent(..)
            | Self::NoSlot(_)
            | Self::RuntimeParked(..)
            | Self::AccountLimited(..)
            | Self::Memory { .. }
            | Self::Load(_)
            | Self::Disk { .. } => true,
            Self::Budget(budget) => budget.end() != BudgetEnd::Raised,
            Self::BlockedBy(_)
            | Self::BlockerFailed(_)
            | Self::WithCrew(..)
            | Self::Deferred
            | Self::Status(_)
            | Self::Pinned
            | Self::NotWork(_)
            | Self::Ephemeral
            | Self::ClaimedByHand(_)
            | Self::AssignedTo(_)
            | Self::NotSlingable(_)
            | Self::TownLevel
            | Self::ConvoyStaged(_)
            | Self::ConvoyPaused(..)
            | Self::MembersOpen(_)
            | Self::NotScheduled
            | Self::Cleared(_)
            | Self::CircuitBroken(_)
            | Self::Quarantined(_)
            | Self::RunCancelled(_)
            | Self::AttemptsUsedUp(_)
            | Self::OverLimit(..)
            | Self::Review
            | Self::ReviewsWaiting { .. }
            | Self::Escalated(_)
            | Self::PutOff(_)
            | Self::Merging(_)
            | Self::CannotStart(_)
            | Self::RigGone(_)
            | Self::RigParked(_)
            | Self::ExecutorRemoved(_)
            | Self::RigDocked(_)
            | Self::RigCannotRun(_)
            | Self::Paused(..)
            | Self::QueueGate => false,
        }
    }

    /// A short name that programs can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BlockedBy(_) => "blocked",
            Self::BlockerFailed(_) => "blocker-failed",
            Self::DeferredUntil(_) | Self::Deferred | Self::ParentDeferred(..) => "deferred",
            Self::Status(_) => "status",
            Self::Pinned => "pinned",
            Self::NotWork(_) | Self::NotSlingable(_) => "not-slingable",
            Self::Ephemeral => "ephemeral",
            Self::Running(_) => "running",
            Self::StartInProgress(_) => "starting",
            Self::WithCrew(..) => "with-crew",
            Self::ClaimedByHand(_) => "claimed",
            Self::AssignedTo(_) => "assigned",
            Self::TownLevel => "town-level",
            Self::ConvoyStaged(_) => "convoy-staged",
            Self::ConvoyPaused(..) => "convoy-paused",
            Self::MembersOpen(_) => "members-open",
            Self::NotScheduled => "not-scheduled",
            Self::Cleared(_) => "cleared",
            Self::CircuitBroken(_) => "circuit-broken",
            Self::Quarantined(_) => "quarantined",
            Self::RunCancelled(_) => "run-cancelled",
            Self::AttemptsUsedUp(_) => "attempts-used-up",
            Self::OverLimit(..) => "over-limit",
            Self::Review => "review",
            Self::Escalated(_) => "escalated",
            Self::PutOff(_) => "put-off",
            Self::Merging(request) => match request.state {
                RequestState::Review => "review",
                RequestState::Conflict => "conflict",
                RequestState::Failed => "check-failed",
                RequestState::Held(_) => "held",
                RequestState::Queued
                | RequestState::Building
                | RequestState::Checking
                | RequestState::Landing
                | RequestState::Landed
                | RequestState::Cancelled
                | RequestState::Superseded => "merging",
            },
            Self::CannotStart(_) => "cannot-start",
            Self::RigGone(_) => "rig-gone",
            Self::RigParked(_) => "rig-parked",
            Self::ExecutorRemoved(_) => "executor-removed",
            Self::RigDocked(_) => "rig-docked",
            Self::RigCannotRun(_) => "rig-cannot-run",
            Self::Placement(answer) if answer.willing().is_empty() => "no-host",
            Self::OtherHost(..) | Self::Placement(_) => "other-host",
            Self::PreferredHost(..) => "preferred-host",
            Self::Backoff(_) => "backoff",
            Self::Paused(..) => "paused",
            Self::QueueGate => "queue-gate",
            Self::WaitsForPullAgent => "waits-for-agent",
            Self::OnePerAgent(..) => "one-per-agent",
            Self::NoSlot(_) => "no-slot",
            Self::RuntimeParked(..) => "runtime-parked",
            Self::AccountLimited(..) => "account-limited",
            Self::Budget(_) => "budget",
            Self::ReviewsWaiting { .. } => "reviews-waiting",
            Self::Memory { .. } => "memory",
            Self::Load(_) => "load",
            Self::Disk { .. } => "disk",
        }
    }
}

/// Every reason why a bead is not ready, the most telling first; none means ready.
///
/// A bead deferred until a date is ready from that moment on, without any further write.
pub fn wait_reasons(facts: &ReadinessFacts<'_>, now: Timestamp) -> Vec<WaitReason> {
    let mut reasons = Vec::new();
    let due_later = facts.defer_until.filter(|until| *until > now);
    match facts.status {
        Status::Open => {}
        Status::Deferred if facts.defer_until.is_some() => {}
        Status::Deferred => reasons.push(WaitReason::Deferred),
        Status::Pinned => reasons.push(WaitReason::Pinned),
        other => reasons.push(WaitReason::Status(other.clone())),
    }
    if facts.pinned && *facts.status != Status::Pinned {
        reasons.push(WaitReason::Pinned);
    }
    if !facts.failed_blockers.is_empty() {
        reasons.push(WaitReason::BlockerFailed(facts.failed_blockers.to_vec()));
    }
    if !facts.open_blockers.is_empty() {
        reasons.push(WaitReason::BlockedBy(facts.open_blockers.to_vec()));
    }
    if let Some(until) = due_later {
        reasons.push(WaitReason::DeferredUntil(until));
    }
    if let Some((parent, until)) = facts.parent_deferred
        && until > now
    {
        reasons.push(WaitReason::ParentDeferred(parent.clone(), until));
    }
    if !facts.issue_type.is_work() {
        reasons.push(WaitReason::NotWork(facts.issue_type.clone()));
    }
    if facts.ephemeral {
        reasons.push(WaitReason::Ephemeral);
    }
    reasons
}

/// How many open beads of a convoy are named.
const MEMBERS_NAMED_MAX: usize = 5;

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |ids: &[BeadId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::BlockedBy(ids) => write!(f, "blocked by {}", list(ids)),
            Self::BlockerFailed(ids) => write!(f, "blocker failed: {}", list(ids)),
            Self::DeferredUntil(until) => write!(f, "deferred until {until}"),
            Self::Deferred => write!(f, "deferred without a date"),
            Self::ParentDeferred(parent, until) => {
                write!(f, "its parent {parent} is deferred until {until}")
            }
            Self::Status(status) => write!(f, "status {status}"),
            Self::Pinned => write!(f, "pinned"),
            Self::NotWork(issue_type) => write!(f, "beads of type {issue_type} are not work"),
            Self::Ephemeral => write!(f, "ephemeral"),
            Self::Running(run) => write!(f, "running as {run}"),
            Self::WithCrew(who, run) => write!(f, "with {who}, who says when it is done ({run})"),
            Self::StartInProgress(run) => write!(f, "start in progress ({run})"),
            Self::ClaimedByHand(who) if who.is_empty() => write!(f, "claimed by hand"),
            Self::ClaimedByHand(who) => write!(f, "claimed by {who} by hand"),
            Self::AssignedTo(who) => write!(f, "assigned to {who}"),
            Self::NotSlingable(issue_type) => {
                write!(f, "beads of type {issue_type} are not dispatched")
            }
            Self::TownLevel => write!(f, "town-level: it belongs to no rig"),
            Self::ConvoyStaged(convoy) => write!(f, "its convoy {convoy} is staged"),
            Self::ConvoyPaused(convoy, who, since) => {
                write!(f, "its convoy {convoy} is paused by {who} since {since}")
            }
            Self::MembersOpen(ids) => {
                let (named, more) = ids.split_at(ids.len().min(MEMBERS_NAMED_MAX));
                write!(f, "under way: it waits for {}", list(named))?;
                match more.len() {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::NotScheduled => write!(f, "not scheduled"),
            Self::Cleared(who) => write!(f, "cleared from the queue by {who}"),
            Self::CircuitBroken(why) => write!(f, "circuit-broken: {why}"),
            Self::Quarantined(why) => write!(f, "quarantined: {why}"),
            Self::RunCancelled(who) => write!(f, "run cancelled by {who}"),
            Self::Review => write!(f, "review: the work is done and waits for a person's review"),
            Self::Escalated(who) => write!(f, "escalated: {who} asks for a person"),
            Self::PutOff(who) => write!(f, "deferred by its worker, {who}"),
            Self::Merging(request) => f.write_str(&request.state_reason()),
            Self::CannotStart(why) => write!(f, "cannot start: {why}"),
            Self::AttemptsUsedUp(runs) => write!(f, "attempts used up ({runs})"),
            Self::OverLimit(run, limit) => {
                write!(f, "over limit: {run} was over {} and was ended", limit.setting())
            }
            Self::RigGone(rig) => write!(f, "the rig {rig} is gone"),
            Self::RigParked(rig) => write!(f, "the rig {rig} is parked"),
            Self::ExecutorRemoved(rig) => {
                write!(f, "the rig {rig} is parked: its executor ssh is gone")
            }
            Self::RigDocked(rig) => write!(f, "the rig {rig} is docked"),
            Self::RigCannotRun(rig) => write!(f, "the rig {rig} has no command"),
            Self::OtherHost(rig, host) => {
                write!(f, "other host: only {host} works on the rig {rig}")
            }
            Self::Placement(answer) => write!(f, "{answer}"),
            Self::PreferredHost(host, until) => {
                write!(f, "{host} has the first try until {until}")
            }
            Self::Backoff(until) => write!(f, "backoff until {until}"),
            Self::Paused(who, since) => write!(f, "paused by {who} since {since}"),
            Self::QueueGate => write!(f, "queue gate: waits for a run by hand"),
            Self::WaitsForPullAgent => write!(f, "waits for an agent to ask for it"),
            // One that goes before it and has no run yet.
            Self::OnePerAgent(place, run) if run.epoch == 0 => {
                write!(f, "{place} gets {} first", run.bead)
            }
            Self::OnePerAgent(place, run) => write!(f, "{place} is at {run}"),
            Self::NoSlot(cap) => write!(f, "no slot: {cap} is reached"),
            Self::RuntimeParked(name, hold) => write!(f, "runtime {name} parked {hold}"),
            Self::AccountLimited(handle, hold) => write!(f, "account {handle} limited {hold}"),
            Self::Budget(budget) => match budget.end() {
                BudgetEnd::At(until) => write!(f, "budget until {until}: {budget}"),
                BudgetEnd::LiveRun => write!(f, "budget until a live run ends: {budget}"),
                BudgetEnd::Raised => write!(f, "budget until it is raised: {budget}"),
            },
            Self::ReviewsWaiting { waiting, limit } => {
                write!(f, "reviews waiting: {waiting}, and review.max is {limit}")
            }
            Self::Memory { available_mb, wanted_mb } => {
                write!(f, "memory: {available_mb} MB left of the {wanted_mb} MB that must be")
            }
            Self::Disk { available_mb, wanted_mb } => {
                write!(f, "disk: {available_mb} MB free of the {wanted_mb} MB that must be")
            }
            Self::Load(guard) => {
                let decimal = |hundredths| format!("{}.{:02}", hundredths / 100, hundredths % 100);
                write!(
                    f,
                    "load: {} for each core, and it must be below {}",
                    decimal(guard.per_core),
                    decimal(guard.wanted())
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<'a>(status: &'a Status, issue_type: &'a IssueType) -> ReadinessFacts<'a> {
        ReadinessFacts {
            status,
            issue_type,
            pinned: false,
            ephemeral: false,
            defer_until: None,
            parent_deferred: None,
            open_blockers: &[],
            failed_blockers: &[],
        }
    }

    #[test]
    fn an_open_task_that_nothing_holds_up_is_ready() {
        let now = Timestamp::from_nanos(5);
        let task = IssueType::default();
        assert!(wait_reasons(&facts(&Status::Open, &task), now).is_empty());
        for status in Status::BUILT_IN.iter().filter(|status| **status != Status::Open) {
            assert!(!wait_reasons(&facts(status, &task), now).is_empty(), "{status}");
        }
    }

    #[test]
    fn a_date_to_wait_for_passes_by_itself() {
        let task = IssueType::default();
        for status in [Status::Open, Status::Deferred] {
            let mut facts = facts(&status, &task);
            facts.defer_until = Some(Timestamp::from_nanos(10));
            let reasons = wait_reasons(&facts, Timestamp::from_nanos(9));
            assert_eq!(reasons, [WaitReason::DeferredUntil(Timestamp::from_nanos(10))]);
            assert!(wait_reasons(&facts, Timestamp::from_nanos(10)).is_empty());
        }
    }

    #[test]
    fn every_reason_is_named() {
        let blocker = BeadId::parse("gt-a").unwrap();
        let parent = BeadId::parse("gt-p").unwrap();
        let message = IssueType::parse("message").unwrap();
        let facts = ReadinessFacts {
            pinned: true,
            ephemeral: true,
            defer_until: Some(Timestamp::from_nanos(10)),
            parent_deferred: Some((&parent, Timestamp::from_nanos(11))),
            open_blockers: std::slice::from_ref(&blocker),
            failed_blockers: std::slice::from_ref(&blocker),
            ..facts(&Status::Hooked, &message)
        };
        assert_eq!(wait_reasons(&facts, Timestamp::from_nanos(0)).len(), 8);
    }
}
