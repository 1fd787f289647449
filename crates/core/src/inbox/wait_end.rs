//! The end of a wait: whether only a person can bring it about, and as which inbox item that person is asked.

use std::time::Duration;

use super::item::InboxKind;
use crate::Timestamp;
use crate::decide::WaitReason;
use crate::merging::{MergeRequest, RequestHold, RequestState};

/// How long an origin may be away before a person is asked.
pub const ORIGIN_AWAY_MAX: Duration = Duration::from_mins(10);

/// The end of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    /// Time, room, a worker, the scheduler or the origin ends it.
    ByItself,
    /// Other work ends it; that work has a row of its own if it needs a person.
    OtherWork,
    /// A person chose it and knows of it: put off, paused, claimed, or not scheduled at all.
    Chosen,
    /// Only a person ends it, and the inbox asks for one.
    Person(InboxKind),
}

/// What is known around a merge request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSurroundings {
    /// A repair run is scheduled or running.
    pub has_repair: bool,
    /// The time.
    pub now: Timestamp,
}

/// The end of the wait of a merge request.
pub fn end_of_request(request: &MergeRequest, around: &RequestSurroundings) -> WaitEnd {
    match request.state {
        RequestState::Queued | RequestState::Building | RequestState::Checking => {
            if request.waits_for_resume().is_some() {
                WaitEnd::Person(InboxKind::QueuePaused)
            } else if request.waits_for_target().is_some() {
                WaitEnd::Person(InboxKind::TargetRed)
            } else {
                WaitEnd::ByItself
            }
        }
        RequestState::Landing
        | RequestState::Landed
        | RequestState::Cancelled
        | RequestState::Superseded => WaitEnd::ByItself,
        RequestState::Review => WaitEnd::Person(InboxKind::Review),
        RequestState::Conflict | RequestState::Failed if around.has_repair => WaitEnd::OtherWork,
        RequestState::Conflict => WaitEnd::Person(InboxKind::Conflict),
        RequestState::Failed => WaitEnd::Person(InboxKind::CheckFailed),
        RequestState::Held(hold) => end_of_hold(request, hold, around.now),
    }
}

fn end_of_hold(request: &MergeRequest, hold: RequestHold, now: Timestamp) -> WaitEnd {
    match hold {
        RequestHold::Paused => WaitEnd::Person(InboxKind::QueuePaused),
        RequestHold::Unmerged => WaitEnd::Person(InboxKind::Unmerged),
        RequestHold::TargetRed => WaitEnd::Person(InboxKind::TargetRed),
        RequestHold::TargetGone => WaitEnd::Person(InboxKind::TargetGone),
        RequestHold::OriginRefused => WaitEnd::Person(InboxKind::OriginRefused),
        RequestHold::CheckoutInTheWay => WaitEnd::Person(InboxKind::CheckoutInTheWay),
        RequestHold::HostingTool => WaitEnd::Person(InboxKind::HostingTool),
        RequestHold::PullRequestChanged => WaitEnd::Person(InboxKind::PullRequestChanged),
        RequestHold::CheckError => WaitEnd::Person(InboxKind::CheckError),
        RequestHold::CommitElsewhere => WaitEnd::Person(InboxKind::CommitElsewhere),
        // The next pass tries again; people are asked about a pull request on the hosting service.
        RequestHold::TargetMoves | RequestHold::PullRequestOpen => WaitEnd::ByItself,
        RequestHold::OriginUnreachable => {
            if now.since(request.changed_at) > ORIGIN_AWAY_MAX {
                WaitEnd::Person(InboxKind::OriginAway)
            } else {
                WaitEnd::ByItself
            }
        }
    }
}

/// The end of the wait of a bead. A merge request is asked with [`end_of_request`], which knows more.
pub fn end_of_wait(reason: &WaitReason, around: &RequestSurroundings) -> WaitEnd {
    match reason {
        WaitReason::BlockedBy(_) => WaitEnd::OtherWork,
        WaitReason::BlockerFailed(_) => WaitEnd::Person(InboxKind::Failed),
        WaitReason::DeferredUntil(_)
        | WaitReason::ParentDeferred(..)
        | WaitReason::Running(_)
        | WaitReason::StartInProgress(_)
        | WaitReason::Backoff(_)
        | WaitReason::WaitsForPullAgent
        | WaitReason::OtherHost(..)
        | WaitReason::Placement(_)
        | WaitReason::PreferredHost(..)
        | WaitReason::OnePerAgent(..)
        | WaitReason::NoSlot(_)
        | WaitReason::AccountLimited(..)
        | WaitReason::Memory { .. }
        | WaitReason::Load(_)
        | WaitReason::Disk { .. }
        // The next cycle gives it up, and then it is quarantined.
        | WaitReason::CannotStart(_)
        | WaitReason::RigGone(_) => WaitEnd::ByItself,
        // A trial run ends these sooner or later, but a person can put them right now.
        WaitReason::RuntimeParked(..) => WaitEnd::Person(InboxKind::Parked),
        WaitReason::Budget(_) => WaitEnd::Person(InboxKind::Budget),
        WaitReason::CircuitBroken(_) => WaitEnd::Person(InboxKind::CircuitBroken),
        WaitReason::Quarantined(_) => WaitEnd::Person(InboxKind::Quarantined),
        WaitReason::AttemptsUsedUp(_) => WaitEnd::Person(InboxKind::AttemptsUsedUp),
        WaitReason::OverLimit(..) => WaitEnd::Person(InboxKind::OverLimit),
        WaitReason::Review | WaitReason::ReviewsWaiting { .. } => WaitEnd::Person(InboxKind::Review),
        WaitReason::Escalated(_) => WaitEnd::Person(InboxKind::Escalated),
        WaitReason::PutOff(_) => WaitEnd::Person(InboxKind::PutOff),
        WaitReason::RigCannotRun(_) => WaitEnd::Person(InboxKind::RigCannotRun),
        WaitReason::Merging(request) => end_of_request(request, around),
        WaitReason::Deferred
        | WaitReason::Status(_)
        | WaitReason::Pinned
        | WaitReason::NotWork(_)
        | WaitReason::Ephemeral
        | WaitReason::WithCrew(..)
        | WaitReason::ClaimedByHand(_)
        | WaitReason::AssignedTo(_)
        | WaitReason::NotSlingable(_)
        | WaitReason::TownLevel
        | WaitReason::ConvoyStaged(_)
        | WaitReason::ConvoyPaused(..)
        | WaitReason::NotScheduled
        | WaitReason::Cleared(_)
        | WaitReason::RunCancelled(_)
        | WaitReason::RigParked(_)
        | WaitReason::ExecutorRemoved(_)
        | WaitReason::RigDocked(_)
        | WaitReason::Paused(..)
        | WaitReason::QueueGate => WaitEnd::Chosen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merging::QueueStop;
    use crate::merging::tests::any_request;

    const AROUND: RequestSurroundings = RequestSurroundings {
        has_repair: false,
        now: Timestamp::from_nanos(1_790_000_000_000_000_000),
    };

    fn end(state: RequestState, around: &RequestSurroundings) -> WaitEnd {
        end_of_request(&MergeRequest { state, ..any_request("gt-a", 1) }, around)
    }

    /// Every state that a request can be in.
    fn all_states() -> Vec<RequestState> {
        let plain = [
            RequestState::Queued,
            RequestState::Building,
            RequestState::Checking,
            RequestState::Landing,
            RequestState::Landed,
            RequestState::Review,
            RequestState::Conflict,
            RequestState::Failed,
            RequestState::Cancelled,
            RequestState::Superseded,
        ];
        plain.into_iter().chain(RequestHold::ALL.iter().copied().map(RequestState::Held)).collect()
    }

    #[test]
    fn every_open_request_that_nothing_moves_asks_for_a_person() {
        let late = RequestSurroundings { now: AROUND.now.plus(ORIGIN_AWAY_MAX * 2), ..AROUND };
        for state in all_states() {
            let is_asked = matches!(end(state, &late), WaitEnd::Person(_));
            let is_tried_again = matches!(
                state,
                RequestState::Held(RequestHold::TargetMoves | RequestHold::PullRequestOpen)
            );
            let waits = state.is_open() && !state.moves_by_itself() && !is_tried_again;
            assert_eq!(is_asked, waits, "{state}");
        }
    }

    #[test]
    fn a_stopped_queue_asks_for_a_person_for_everything_in_line() {
        let since = (AROUND.now, "max".to_owned());
        let paused = QueueStop { paused: Some(since), ..QueueStop::default() };
        let red = QueueStop { red_check: Some("test".to_owned()), ..QueueStop::default() };
        let end = |state, fix, queue_stop: &QueueStop| {
            let queue_stop = queue_stop.clone();
            let request = MergeRequest { state, fix, queue_stop, ..any_request("gt-a", 1) };
            end_of_request(&request, &AROUND)
        };
        let queued = RequestState::Queued;
        assert_eq!(end(queued, false, &QueueStop::default()), WaitEnd::ByItself);
        assert_eq!(end(queued, false, &paused), WaitEnd::Person(InboxKind::QueuePaused));
        assert_eq!(end(queued, false, &red), WaitEnd::Person(InboxKind::TargetRed));
        assert_eq!(end(queued, true, &red), WaitEnd::ByItself);
        assert_eq!(end(RequestState::Landing, false, &paused), WaitEnd::ByItself);
    }

    #[test]
    fn a_repair_under_way_needs_no_person() {
        let repaired = RequestSurroundings { has_repair: true, ..AROUND };
        for state in [RequestState::Conflict, RequestState::Failed] {
            assert_eq!(end(state, &repaired), WaitEnd::OtherWork);
            assert!(matches!(end(state, &AROUND), WaitEnd::Person(_)));
        }
    }

    #[test]
    fn an_origin_is_waited_for_before_a_person_is_asked() {
        let away = RequestState::Held(RequestHold::OriginUnreachable);
        assert_eq!(end(away, &AROUND), WaitEnd::ByItself);
        let late = RequestSurroundings { now: AROUND.now.plus(ORIGIN_AWAY_MAX * 2), ..AROUND };
        assert_eq!(end(away, &late), WaitEnd::Person(InboxKind::OriginAway));
    }

    #[test]
    fn a_wait_that_passes_by_itself_asks_for_a_person_only_about_its_cause() {
        use crate::decide::{Budget, BudgetKind, BudgetLimit, BudgetScope, ParkHold};
        use crate::schedule::{RunId, RunLimit};
        use crate::{BeadId, RigSlug};
        let bead = || BeadId::parse("gt-a").unwrap();
        let rig = || RigSlug::parse("web").unwrap();
        let (kind, scope) = (BudgetKind::RunsPerHour, BudgetScope::All);
        let budget = Budget::new(BudgetLimit { kind, scope, limit: 0 }, &[], 0, AROUND.now);
        let why = String::new;
        let run = RunId { bead: bead(), epoch: 1 };
        let over_limit = WaitReason::OverLimit(run, RunLimit::Time);
        let merging =
            |state| WaitReason::Merging(Box::new(MergeRequest { state, ..any_request("gt-a", 1) }));
        for (reason, expected) in [
            (WaitReason::CircuitBroken(why()), Some(InboxKind::CircuitBroken)),
            (WaitReason::Quarantined(why()), Some(InboxKind::Quarantined)),
            (WaitReason::AttemptsUsedUp(3), Some(InboxKind::AttemptsUsedUp)),
            (over_limit, Some(InboxKind::OverLimit)),
            (WaitReason::Review, Some(InboxKind::Review)),
            (WaitReason::Escalated(why()), Some(InboxKind::Escalated)),
            (WaitReason::PutOff(why()), Some(InboxKind::PutOff)),
            (WaitReason::RigCannotRun(rig()), Some(InboxKind::RigCannotRun)),
            (WaitReason::BlockerFailed(vec![bead()]), Some(InboxKind::Failed)),
            (
                WaitReason::RuntimeParked(why(), ParkHold::Until(AROUND.now)),
                Some(InboxKind::Parked),
            ),
            (WaitReason::Budget(budget), Some(InboxKind::Budget)),
            (merging(RequestState::Review), Some(InboxKind::Review)),
            (merging(RequestState::Queued), None),
            (WaitReason::BlockedBy(vec![bead()]), None),
            (WaitReason::NotScheduled, None),
            (WaitReason::Deferred, None),
            (WaitReason::Backoff(AROUND.now), None),
        ] {
            let asked = match end_of_wait(&reason, &AROUND) {
                WaitEnd::Person(kind) => Some(kind),
                WaitEnd::ByItself | WaitEnd::OtherWork | WaitEnd::Chosen => None,
            };
            assert_eq!(asked, expected, "{}", reason.code());
        }
    }
}
