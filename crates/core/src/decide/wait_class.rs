//! The wait class of an open context: the part of the evaluator's answer that is stored with the context.
//!
//! The store proposes only contexts that wait for nothing and whose time has come; the evaluator decides about those. So
//! the stored class may name too little, never too much.

use std::time::Duration;

use super::readiness::WaitReason;
use super::scheduling_reasons::{RigFacts, SchedulerFacts, SchedulingFacts, context_reasons};
use crate::schedule::Context;
use crate::{ExecutorKind, Invalid, RigState, Status, Timestamp};

/// The class of a context's wait, as far as facts decide it that only a transaction of the store changes.
///
/// Runs, the state of rigs, settings, caps and the clock are left out: they are asked when the context is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitClass {
    /// It waits for none of these.
    Nothing,
    /// For another status of its bead, or for the bead to stop being a reference or machinery.
    Status,
    /// It waits for beads that block its bead.
    Blockers,
    /// For the agent that its bead is assigned to.
    Assignee,
    /// For another type of its bead: its rig does not take this one.
    Type,
    /// For a paused convoy to be resumed.
    Convoy,
    /// For nothing any more: its bead is closed.
    Closed,
}

impl WaitClass {
    /// Every class.
    pub const ALL: [Self; 7] = [
        Self::Nothing,
        Self::Status,
        Self::Blockers,
        Self::Assignee,
        Self::Type,
        Self::Convoy,
        Self::Closed,
    ];

    /// The name in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Status => "status",
            Self::Blockers => "blockers",
            Self::Assignee => "assignee",
            Self::Type => "type",
            Self::Convoy => "convoy",
            Self::Closed => "closed",
        }
    }

    /// Reads the name in the store.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|class| class.as_str() == text);
        found.ok_or_else(|| Invalid(format!("\"{}\" is not a wait class", text.escape_debug())))
    }

    /// The class of a reason; nothing for a reason that is not stored.
    pub fn of(reason: &WaitReason) -> Option<Self> {
        match reason {
            WaitReason::Status(Status::Closed) => Some(Self::Closed),
            WaitReason::Status(_)
            | WaitReason::Deferred
            | WaitReason::ClaimedByHand(_)
            | WaitReason::Pinned
            | WaitReason::Ephemeral => Some(Self::Status),
            WaitReason::BlockedBy(_) | WaitReason::BlockerFailed(_) => Some(Self::Blockers),
            WaitReason::AssignedTo(_) => Some(Self::Assignee),
            WaitReason::NotSlingable(_) => Some(Self::Type),
            WaitReason::ConvoyPaused(..) => Some(Self::Convoy),
            _ => None,
        }
    }
}

/// The part of the evaluator's answer that is stored with an open context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextWait {
    /// The kind of thing that it waits for.
    pub class: WaitClass,
    /// When its backoff and every deferral are over, if that is in the future.
    pub due_at: Option<Timestamp>,
}

/// The values to store with an open context; `executor` is that of its rig, if the rig exists.
pub fn context_wait(
    context: &Context,
    facts: &SchedulingFacts<'_>,
    executor: Option<ExecutorKind>,
    now: Timestamp,
) -> ContextWait {
    let facts = SchedulingFacts { run: None, request: None, ..facts.clone() };
    let rig =
        executor.map(|executor| RigFacts { state: RigState::Active, executor, can_run: true });
    // A backoff that is too long to be true is found by its instant, because how long is too long is a setting.
    let control = SchedulerFacts { paused: None, gate_open: true, longest_wait: Duration::MAX };
    let reasons = context_reasons(context, &facts, rig, &control, now);
    ContextWait {
        class: reasons.iter().find_map(WaitClass::of).unwrap_or(WaitClass::Nothing),
        due_at: reasons.iter().filter_map(WaitReason::until).max(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decide::ReadinessFacts;
    use crate::schedule::{ContextId, ContextOrigin, SlingParameters, WorkerPlace};
    use crate::{BeadId, IssueType, Priority, RigSlug};

    const NOW: Timestamp = Timestamp::from_nanos(1_790_000_000_000_000_000);

    fn id(text: &str) -> BeadId {
        BeadId::parse(text).unwrap()
    }

    fn context() -> Context {
        Context {
            number: 1,
            id: ContextId::of_number(1),
            bead: id("web-1"),
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

    #[test]
    fn every_class_reads_back_by_its_name() {
        for class in WaitClass::ALL {
            assert_eq!(WaitClass::parse(class.as_str()), Ok(class));
        }
        assert!(WaitClass::parse("weather").is_err());
    }

    #[derive(Debug, Clone)]
    struct Facts {
        status: &'static str,
        issue_type: &'static str,
        pinned: bool,
        ephemeral: bool,
        defer_until: Option<i64>,
        parent_until: Option<i64>,
        backoff: Option<i64>,
        blockers: usize,
        assignee: &'static str,
        place: Option<&'static str>,
        paused: bool,
        forced: bool,
        gated: bool,
        executor: Option<ExecutorKind>,
        state: RigState,
    }

    fn facts() -> impl Strategy<Value = Facts> {
        let status = prop::sample::select(vec![
            "open",
            "open",
            "open",
            "closed",
            "deferred",
            "pinned",
            "hooked",
            "in_progress",
            "blocked",
        ]);
        let issue_type = prop::sample::select(vec!["task", "task", "epic", "story", ""]);
        let seconds = || prop::option::weighted(0.3, -5_i64..5);
        let assignee = prop::sample::select(vec!["", "", "ann"]);
        let place = prop::option::of(prop::sample::select(vec!["ann", "web/polecats/nux"]));
        let executor = prop::option::weighted(
            0.9,
            prop::sample::select(vec![ExecutorKind::Process, ExecutorKind::Pull]),
        );
        let state = prop::sample::select(vec![RigState::Active, RigState::Parked]);
        let flags = prop::array::uniform5(prop::bool::weighted(0.2));
        (
            (status, issue_type, assignee, place),
            (seconds(), seconds(), seconds()),
            (0_usize..2, executor, state),
            flags,
        )
            .prop_map(|(texts, seconds, (blockers, executor, state), flags)| {
                let (status, issue_type, assignee, place) = texts;
                let (defer_until, parent_until, backoff) = seconds;
                let [pinned, ephemeral, paused, forced, gated] = flags;
                Facts {
                    status,
                    issue_type,
                    pinned,
                    ephemeral,
                    defer_until,
                    parent_until,
                    backoff,
                    blockers,
                    assignee,
                    place,
                    paused,
                    forced,
                    gated,
                    executor,
                    state,
                }
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        /// A context that is not proposed is not eligible, for every state of its rig and of the gate.
        #[test]
        fn stored_wait_never_hides_an_eligible_context(facts in facts()) {
            let at = |seconds: i64| Timestamp::from_nanos(NOW.as_nanos() + seconds * 1_000_000_000);
            let context = Context {
                next_attempt_at: facts.backoff.map(at),
                place: facts.place.map(|place| WorkerPlace::trusted(place.to_owned())),
                forced: facts.forced,
                gated: facts.gated,
                ..context()
            };
            let (status, issue_type) =
                (Status::parse(facts.status).unwrap(), IssueType::trusted(facts.issue_type.to_owned()));
            let (parent, blockers) = (id("web-p"), vec![id("web-b"); facts.blockers]);
            let paused = (id("hq-cv-a"), "ann".to_owned(), NOW);
            let scheduling = SchedulingFacts {
                request: None,
                readiness: ReadinessFacts {
                    status: &status,
                    issue_type: &issue_type,
                    pinned: facts.pinned,
                    ephemeral: facts.ephemeral,
                    defer_until: facts.defer_until.map(at),
                    parent_deferred: facts.parent_until.map(|until| (&parent, at(until))),
                    open_blockers: &blockers,
                    failed_blockers: &[],
                },
                assignee: facts.assignee,
                run: None,
                paused: facts.paused.then_some(&paused),
            };
            let rig = facts.executor.map(|executor| RigFacts {
                state: facts.state,
                executor,
                can_run: true,
            });
            let control = SchedulerFacts { paused: None, gate_open: true, longest_wait: Duration::MAX };
            let reasons = context_reasons(&context, &scheduling, rig, &control, NOW);
            let wait = context_wait(&context, &scheduling, facts.executor, NOW);
            let is_proposed = wait.class == WaitClass::Nothing && wait.due_at.is_none();
            let of_rig = |reason: &WaitReason| matches!(
                reason,
                WaitReason::RigGone(_)
                    | WaitReason::RigParked(_)
                    | WaitReason::ExecutorRemoved(_)
                    | WaitReason::WaitsForPullAgent
            );
            // And every proposed context waits at most for what the lane it stands in is asked about.
            prop_assert_eq!(is_proposed, reasons.iter().all(of_rig), "{:?}: {:?}", wait, reasons);
        }
    }
}
