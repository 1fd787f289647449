//! Why scheduled work does not start: the reasons in the bead, its context, its rig and the scheduler.

use std::time::Duration;

use super::breaker::is_due_within;
use super::readiness::{ReadinessFacts, WaitReason, wait_reasons};
use crate::merging::MergeRequest;
use crate::schedule::{CloseReason, Context, DoneStatus, Run, RunState, WorkerPlace};
use crate::{BeadId, ExecutorKind, RigSlug, RigState, Status, Timestamp};

/// The facts about a rig that scheduling needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RigFacts {
    /// Whether it takes part.
    pub state: RigState,
    /// Its executor.
    pub executor: ExecutorKind,
    /// Whether it knows how to run anything.
    pub can_run: bool,
}

/// The scheduler as a whole, as seen by one cycle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchedulerFacts {
    /// Nothing starts: by whom, since when.
    pub paused: Option<(String, Timestamp)>,
    /// Work that was queued while the town had no cap may start: the cycle is by hand, or the queue is
    /// enabled. A cap that is set later does not open the gate.
    pub gate_open: bool,
    /// The longest that anything was ever told to wait; a date further off was set by a clock that has
    /// jumped since.
    pub longest_wait: Duration,
}

/// The facts about a bead that is to be started.
#[derive(Debug, Clone)]
pub struct SchedulingFacts<'a> {
    /// The facts that readiness depends on.
    pub readiness: ReadinessFacts<'a>,
    /// The assignee of the bead; empty if there is none.
    pub assignee: &'a str,
    /// Its live run.
    pub run: Option<&'a Run>,
    /// A convoy of it that is paused: which one, by whom, since when.
    pub paused: Option<&'a (BeadId, String, Timestamp)>,
    /// Its merge request that is not over.
    pub request: Option<&'a MergeRequest>,
}

impl SchedulingFacts<'_> {
    fn convoy_paused(&self) -> Option<WaitReason> {
        let (convoy, by, since) = self.paused?;
        Some(WaitReason::ConvoyPaused(convoy.clone(), by.clone(), *since))
    }
}

/// Every reason, admission aside, why an open context does not start, the most telling first; none
/// means that only room is needed.
pub fn context_reasons(
    context: &Context,
    facts: &SchedulingFacts<'_>,
    rig: Option<RigFacts>,
    control: &SchedulerFacts,
    now: Timestamp,
) -> Vec<WaitReason> {
    if let Some(run) = facts.run {
        return vec![held_by(run)];
    }
    let mut reasons = of_bead(facts, context.forced, now);
    let place = context.place.as_ref();
    let given_away = !facts.assignee.is_empty()
        && !context.forced
        && place.is_none_or(|place| place.as_str() != facts.assignee)
        && is_to_be_done(facts.readiness.status);
    if given_away {
        reasons.push(WaitReason::AssignedTo(facts.assignee.to_owned()));
    }
    match rig {
        None => reasons.push(WaitReason::RigGone(context.rig.clone())),
        Some(rig) => {
            reasons.extend(of_rig(&context.rig, rig, facts, place));
        }
    }
    if let Some(at) =
        context.next_attempt_at.filter(|at| !is_due_within(Some(*at), now, control.longest_wait))
    {
        reasons.push(WaitReason::Backoff(at));
    }
    reasons.extend(facts.convoy_paused());
    if let Some((by, since)) = &control.paused {
        reasons.push(WaitReason::Paused(by.clone(), *since));
    }
    if context.gated && !control.gate_open {
        reasons.push(WaitReason::QueueGate);
    }
    reasons
}

/// Whether a bead of this status waits to be begun, now or on a date, so that its assignee matters.
fn is_to_be_done(status: &Status) -> bool {
    matches!(status, Status::Open | Status::Deferred)
}

/// The reasons that lie in the bead itself.
fn of_bead(facts: &SchedulingFacts<'_>, forced: bool, now: Timestamp) -> Vec<WaitReason> {
    let taken = |status: &Status| matches!(status, Status::Hooked | Status::InProgress);
    let mut reasons = wait_reasons(&facts.readiness, now);
    reasons.retain_mut(|reason| match reason {
        WaitReason::Status(status) if taken(status) => {
            *reason = WaitReason::ClaimedByHand(facts.assignee.to_owned());
            !forced
        }
        // Which types are dispatched depends on the rig.
        WaitReason::NotWork(_) => false,
        _ => true,
    });
    reasons
}

fn of_rig(
    slug: &RigSlug,
    rig: RigFacts,
    facts: &SchedulingFacts<'_>,
    place: Option<&WorkerPlace>,
) -> Vec<WaitReason> {
    let issue_type = facts.readiness.issue_type;
    let is_taken = issue_type.is_slingable(rig.executor);
    let mut reasons =
        if is_taken { Vec::new() } else { vec![WaitReason::NotSlingable(issue_type.clone())] };
    reasons.extend(rig_reasons(slug, rig, place));
    reasons
}

/// Every reason why a rig starts nothing at all for this place, for any bead.
pub fn rig_reasons(slug: &RigSlug, rig: RigFacts, place: Option<&WorkerPlace>) -> Vec<WaitReason> {
    let mut reasons = Vec::new();
    let executor = place.and_then(WorkerPlace::executor).unwrap_or(rig.executor);
    match rig.state {
        RigState::Active => {}
        RigState::Parked => reasons.push(WaitReason::RigParked(slug.clone())),
        RigState::Docked => reasons.push(WaitReason::RigDocked(slug.clone())),
    }
    match executor {
        // An agent that was named gets the bead without asking for it.
        ExecutorKind::Pull if place.is_some_and(WorkerPlace::is_agent) => {}
        ExecutorKind::Pull => reasons.push(WaitReason::WaitsForPullAgent),
        ExecutorKind::None => {}
        ExecutorKind::Ssh => reasons.push(WaitReason::ExecutorRemoved(slug.clone())),
        ExecutorKind::Tmux | ExecutorKind::Process => {
            if !rig.can_run {
                reasons.push(WaitReason::RigCannotRun(slug.clone()));
            }
        }
    }
    reasons
}

fn held_by(run: &Run) -> WaitReason {
    if run.executor == ExecutorKind::None {
        return WaitReason::WithCrew(run.agent.clone(), run.id.clone());
    }
    if run.state == RunState::Starting {
        return WaitReason::StartInProgress(run.id.clone());
    }
    WaitReason::Running(run.id.clone())
}

/// Every reason why a bead without an open context does not start. There is always one.
pub fn unscheduled_reasons(
    facts: &SchedulingFacts<'_>,
    latest: Option<&Context>,
    last_run: Option<&Run>,
    rig: Option<(&RigSlug, RigFacts)>,
    staged: Option<&BeadId>,
    max_attempts: u32,
    now: Timestamp,
) -> Vec<WaitReason> {
    if let Some(run) = facts.run {
        return vec![held_by(run)];
    }
    if let Some(request) = facts.request.filter(|request| request.state.is_open()) {
        return vec![WaitReason::Merging(Box::new(request.clone()))];
    }
    let mut reasons = of_bead(facts, false, now);
    if *facts.readiness.status == Status::Closed {
        return reasons;
    }
    let issue_type = facts.readiness.issue_type;
    match rig {
        // A convoy or an epic of the town is unfolded, not worked on, so it needs no rig.
        None if !issue_type.is_slingable(ExecutorKind::Process) => {
            reasons.push(WaitReason::NotSlingable(issue_type.clone()));
        }
        None => reasons.push(WaitReason::TownLevel),
        Some((_, rig)) if !issue_type.is_slingable(rig.executor) => {
            reasons.push(WaitReason::NotSlingable(issue_type.clone()));
        }
        Some(_) => {}
    }
    if !facts.assignee.is_empty() && is_to_be_done(facts.readiness.status) {
        reasons.push(WaitReason::AssignedTo(facts.assignee.to_owned()));
    }
    if let Some(convoy) = staged {
        reasons.push(WaitReason::ConvoyStaged(convoy.clone()));
    }
    let paused = facts.convoy_paused();
    // Agents that ask for work are offered it whether it was scheduled or not.
    let is_pulled = rig.is_some_and(|(_, rig)| {
        rig.executor == ExecutorKind::Pull && issue_type.is_slingable(rig.executor)
    });
    let after = latest.filter(|_| !is_pulled);
    let after = after.and_then(|context| after_context(context, last_run, max_attempts));
    if matches!(after, Some(WaitReason::PutOff(_))) {
        // The actor that deferred it says more than the deferral alone.
        reasons.retain(|reason| *reason != WaitReason::Deferred);
    }
    reasons.extend(after);
    // When all these are gone it still does not start.
    if reasons.iter().all(ends_without_change) {
        reasons.push(if is_pulled {
            WaitReason::WaitsForPullAgent
        } else {
            WaitReason::NotScheduled
        });
    }
    reasons.extend(paused);
    // And scheduling it would be refused, or not help.
    if let Some((slug, rig)) = rig.filter(|(_, rig)| issue_type.is_slingable(rig.executor)) {
        let of_rig = of_rig(slug, rig, facts, None);
        reasons.extend(of_rig.into_iter().filter(|r| *r != WaitReason::WaitsForPullAgent));
    }
    reasons
}

/// Every reason why an agent that asks for work is not given a bead; none means that it is. `rig` is that of the open
/// context, or of a bead that has none.
///
/// An agent that asks is not held up by the queue's gate: like a person who starts a cycle, it opens it.
pub fn offer_reasons(
    agent: &str,
    facts: &SchedulingFacts<'_>,
    context: Option<&Context>,
    rig: (&RigSlug, Option<RigFacts>),
    staged: Option<&BeadId>,
    now: Timestamp,
) -> Vec<WaitReason> {
    let (slug, rig_facts) = rig;
    let mut reasons = if let Some(context) = context {
        // A backoff that is too long to be true ends with the next cycle.
        let control = SchedulerFacts { paused: None, gate_open: true, longest_wait: Duration::MAX };
        context_reasons(context, facts, rig_facts, &control, now)
    } else {
        let rig = rig_facts.map(|rig_facts| (slug, rig_facts));
        unscheduled_reasons(facts, None, None, rig, staged, u32::MAX, now)
    };
    // The agent that it is assigned to, or that it waits for, is the one that asks.
    reasons.retain(|reason| match reason {
        WaitReason::AssignedTo(assignee) => assignee != agent,
        WaitReason::WaitsForPullAgent => false,
        _ => true,
    });
    let place = context.and_then(|context| context.place.as_ref());
    let executor = place.and_then(WorkerPlace::executor).or(rig_facts.map(|rig| rig.executor));
    let is_for_another = place.is_some_and(|place| place.as_str() != agent);
    if is_for_another || executor.is_some_and(|executor| executor != ExecutorKind::Pull) {
        let other = place.map_or(slug.as_str(), WorkerPlace::as_str);
        reasons.push(WaitReason::AssignedTo(other.to_owned()));
    }
    reasons
}

/// Whether a bead that an open convoy tracks is stranded: it is not scheduled, and no known reason keeps it from
/// being scheduled. A bead that a person took out of the queue, ended or has to review is not stranded.
pub fn is_stranded(reasons: &[WaitReason]) -> bool {
    let keeps = |reason: &WaitReason| {
        matches!(
            reason,
            WaitReason::RigDocked(_)
                | WaitReason::RigGone(_)
                | WaitReason::RigCannotRun(_)
                | WaitReason::TownLevel
                | WaitReason::ConvoyStaged(_)
        )
    };
    reasons.contains(&WaitReason::NotScheduled) && !reasons.iter().any(keeps)
}

/// Whether a reason goes away without a change of the bead itself.
fn ends_without_change(reason: &WaitReason) -> bool {
    matches!(
        reason,
        WaitReason::BlockedBy(_)
            | WaitReason::BlockerFailed(_)
            | WaitReason::DeferredUntil(_)
            | WaitReason::ParentDeferred(..)
            | WaitReason::Deferred
    )
}

/// The reasons from the end of the last context, or of the run that came of it.
fn after_context(
    context: &Context,
    last_run: Option<&Run>,
    max_attempts: u32,
) -> Option<WaitReason> {
    let closed = context.closed.as_ref()?;
    let why = || context.last_failure.clone();
    match closed.reason {
        CloseReason::Cleared => Some(WaitReason::Cleared(closed.by.clone())),
        CloseReason::CircuitBroken => Some(WaitReason::CircuitBroken(why())),
        CloseReason::Quarantined | CloseReason::InvalidContext => {
            Some(WaitReason::Quarantined(why()))
        }
        CloseReason::StaleWorkBead => None,
        CloseReason::Dispatched => {
            let run = last_run.filter(|run| run.context == context.number)?;
            match run.state {
                RunState::Cancelled => Some(match run.said {
                    Some(DoneStatus::Escalated) => WaitReason::Escalated(run.agent.clone()),
                    Some(DoneStatus::Deferred) => WaitReason::PutOff(run.agent.clone()),
                    Some(DoneStatus::Completed) | None => {
                        WaitReason::RunCancelled(run.ended_by.clone())
                    }
                }),
                RunState::Done if context.waits_for_review_by_hand(run) => Some(WaitReason::Review),
                RunState::Lost if run.over_limit.is_some() => {
                    run.over_limit.map(|limit| WaitReason::OverLimit(run.id.clone(), limit))
                }
                RunState::Lost if context.attempts.saturating_add(1) >= max_attempts => {
                    Some(WaitReason::AttemptsUsedUp(context.attempts.saturating_add(1)))
                }
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{ContextClosed, ContextId, ContextOrigin, SlingParameters, WorkerPlace};
    use crate::{IssueType, Priority, RunId, Uid};

    const NOW: Timestamp = Timestamp::from_nanos(1_790_000_000_000_000_000);

    fn context() -> Context {
        Context {
            number: 1,
            id: ContextId::of_number(1),
            bead: BeadId::parse("web-1").unwrap(),
            rig: RigSlug::parse("web").unwrap(),
            place: None,
            account: None,
            gated: false,
            forced: false,
            priority: Priority::default(),
            origin: ContextOrigin::Sling,
            parameters: SlingParameters::default(),
            enqueued_at: NOW,
            enqueued_by: "me".to_owned(),
            waiting_since: NOW,
            next_attempt_at: None,
            failures: 0,
            last_failure: String::new(),
            attempts: 0,
            starting: false,
            convoys: Vec::new(),
            closed: None,
        }
    }

    fn facts<'a>(
        status: &'a Status,
        kind: &'a IssueType,
        assignee: &'a str,
    ) -> SchedulingFacts<'a> {
        let readiness = ReadinessFacts {
            status,
            issue_type: kind,
            pinned: false,
            ephemeral: false,
            defer_until: None,
            parent_deferred: None,
            open_blockers: &[],
            failed_blockers: &[],
        };
        SchedulingFacts { readiness, assignee, run: None, paused: None, request: None }
    }

    const ACTIVE: RigFacts =
        RigFacts { state: RigState::Active, executor: ExecutorKind::Process, can_run: true };

    fn open_gate() -> SchedulerFacts {
        SchedulerFacts {
            gate_open: true,
            longest_wait: Duration::from_mins(6),
            ..SchedulerFacts::default()
        }
    }

    fn codes(reasons: &[WaitReason]) -> Vec<&'static str> {
        reasons.iter().map(WaitReason::code).collect()
    }

    #[test]
    fn only_work_without_a_merge_request_is_reviewed_by_hand() {
        let run = |tree: &str, accepted: &str| {
            let mut run = Run::begun(
                RunId { bead: BeadId::parse("web-1").unwrap(), epoch: 1 },
                Uid::from_bytes([0; 16]),
                1,
                RigSlug::parse("web").unwrap(),
                ExecutorKind::Process,
                NOW,
            );
            run.state = RunState::Done;
            run.workplace.tree = tree.to_owned();
            run.workplace.base_commit = "beef".to_owned();
            run.landing.accepted = accepted.to_owned();
            run
        };
        let sling = |review_only, review| {
            let parameters = SlingParameters { review_only, review, ..SlingParameters::default() };
            let closed =
                ContextClosed { reason: CloseReason::Dispatched, at: NOW, by: "me".to_owned() };
            Context { parameters, closed: Some(closed), ..context() }
        };
        for (context, run, waits) in [
            (sling(true, false), run("", ""), true),
            (sling(false, true), run("", ""), true),
            (sling(false, false), run("", ""), false),
            // It looked, and changed nothing.
            (sling(true, false), run("web/ada", "beef"), true),
            (sling(true, false), run("web/ada", "c0ffee"), false),
            (sling(false, true), run("web/ada", "c0ffee"), false),
        ] {
            let reason = after_context(&context, Some(&run), 3);
            assert_eq!(reason, waits.then_some(WaitReason::Review), "{context:?} {run:?}");
        }
    }

    #[test]
    fn only_room_is_needed_when_nothing_else_is_in_the_way() {
        let task = IssueType::default();
        let facts = facts(&Status::Open, &task, "");
        assert_eq!(context_reasons(&context(), &facts, Some(ACTIVE), &open_gate(), NOW), []);
    }

    #[test]
    fn everything_that_is_in_the_way_is_named() {
        let (epic, task) = (IssueType::parse("epic").unwrap(), IssueType::default());
        let later = NOW.plus(Duration::from_mins(1));
        let stuck = Context { gated: true, next_attempt_at: Some(later), ..context() };
        let parked = RigFacts { state: RigState::Parked, can_run: false, ..ACTIVE };
        let shut = SchedulerFacts {
            paused: Some(("max".to_owned(), NOW)),
            gate_open: false,
            longest_wait: Duration::from_mins(6),
        };
        let open = facts(&Status::Open, &epic, "you");
        let reasons = context_reasons(&stuck, &open, Some(parked), &shut, NOW);
        let all = [
            "assigned",
            "not-slingable",
            "rig-parked",
            "rig-cannot-run",
            "backoff",
            "paused",
            "queue-gate",
        ];
        assert_eq!(codes(&reasons), all);
        let taken = facts(&Status::InProgress, &task, "you");
        let reasons = context_reasons(&context(), &taken, None, &open_gate(), NOW);
        assert_eq!(codes(&reasons), ["claimed", "rig-gone"]);
    }

    #[test]
    fn force_overrides_the_assignee_and_nothing_else() {
        let task = IssueType::default();
        let forced = Context { forced: true, ..context() };
        for status in [Status::Open, Status::Hooked, Status::InProgress] {
            let facts = facts(&status, &task, "you");
            assert_eq!(context_reasons(&forced, &facts, Some(ACTIVE), &open_gate(), NOW), []);
        }
        for status in [Status::Blocked, Status::Pinned, Status::Closed, Status::Deferred] {
            let facts = facts(&status, &task, "");
            assert!(!context_reasons(&forced, &facts, Some(ACTIVE), &open_gate(), NOW).is_empty());
        }
    }

    #[test]
    fn a_person_needs_neither_command_nor_slot_and_an_agent_that_asks_must_ask() {
        let task = IssueType::default();
        let rig = RigSlug::parse("web").unwrap();
        let crew = Context { place: Some(WorkerPlace::crew(&rig, "max").unwrap()), ..context() };
        let bare = RigFacts { can_run: false, ..ACTIVE };
        let free = facts(&Status::Open, &task, "");
        assert_eq!(context_reasons(&crew, &free, Some(bare), &open_gate(), NOW), []);
        let own = facts(&Status::Open, &task, "web/crew/max");
        assert_eq!(context_reasons(&crew, &own, Some(bare), &open_gate(), NOW), []);
        let pull = RigFacts { executor: ExecutorKind::Pull, ..bare };
        let reasons = context_reasons(&context(), &free, Some(pull), &open_gate(), NOW);
        assert_eq!(codes(&reasons), ["waits-for-agent"]);
    }

    #[test]
    fn a_backoff_that_only_a_jumping_clock_can_have_set_is_over() {
        let task = IssueType::default();
        let far = NOW.plus(Duration::from_hours(1));
        let context = Context { next_attempt_at: Some(far), ..context() };
        let facts = facts(&Status::Open, &task, "");
        assert_eq!(context_reasons(&context, &facts, Some(ACTIVE), &open_gate(), NOW), []);
    }

    #[test]
    fn a_bead_without_a_context_always_has_a_reason() {
        let task = IssueType::default();
        let closed = |reason| ContextClosed { at: NOW, by: "max".to_owned(), reason };
        let cases = [
            (None, "not-scheduled"),
            (Some(CloseReason::Cleared), "cleared"),
            (Some(CloseReason::CircuitBroken), "circuit-broken"),
            (Some(CloseReason::Quarantined), "quarantined"),
            (Some(CloseReason::InvalidContext), "quarantined"),
            (Some(CloseReason::StaleWorkBead), "not-scheduled"),
            (Some(CloseReason::Dispatched), "not-scheduled"),
        ];
        let facts = facts(&Status::Open, &task, "");
        let rig = RigSlug::parse("web").unwrap();
        for (reason, code) in cases {
            let latest = Context { closed: reason.map(closed), ..context() };
            let latest = reason.is_some().then_some(&latest);
            let reasons =
                unscheduled_reasons(&facts, latest, None, Some((&rig, ACTIVE)), None, 3, NOW);
            assert_eq!(codes(&reasons), [code], "{reason:?}");
        }
        let nowhere = unscheduled_reasons(&facts, None, None, None, None, 3, NOW);
        assert_eq!(codes(&nowhere), ["town-level"]);
        let docked = RigFacts { state: RigState::Docked, can_run: false, ..ACTIVE };
        let reasons = unscheduled_reasons(&facts, None, None, Some((&rig, docked)), None, 3, NOW);
        assert_eq!(codes(&reasons), ["not-scheduled", "rig-docked", "rig-cannot-run"]);
    }

    #[test]
    fn a_bead_whose_date_has_passed_is_with_its_assignee() {
        let now = NOW;
        let task = IssueType::trusted("task".to_owned());
        for (status, given) in
            [(Status::Open, true), (Status::Deferred, true), (Status::Blocked, false)]
        {
            let readiness = ReadinessFacts {
                status: &status,
                issue_type: &task,
                pinned: false,
                ephemeral: false,
                defer_until: Some(now),
                parent_deferred: None,
                open_blockers: &[],
                failed_blockers: &[],
            };
            let facts = SchedulingFacts {
                readiness,
                assignee: "joe",
                run: None,
                paused: None,
                request: None,
            };
            let rig = RigFacts {
                state: RigState::Active,
                executor: ExecutorKind::Process,
                can_run: true,
            };
            let slug = RigSlug::parse("web").unwrap();
            let reasons = unscheduled_reasons(&facts, None, None, Some((&slug, rig)), None, 3, now);
            let assigned = WaitReason::AssignedTo("joe".to_owned());
            assert_eq!(reasons.contains(&assigned), given, "{status}: {reasons:?}");
        }
    }
}
