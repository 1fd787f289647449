//! Whether only a person can move a merge request on, and the kind of the inbox item that asks for it.

use std::time::Duration;

use super::item::InboxKind;
use crate::Timestamp;
use crate::merging::{MergeRequest, RequestHold, RequestState};

/// How long an origin may be away before a person is asked.
pub const ORIGIN_AWAY_MAX: Duration = Duration::from_mins(10);

/// The facts around a merge request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSurroundings {
    /// A repair run is scheduled or running.
    pub has_repair: bool,
    /// The time.
    pub now: Timestamp,
}

/// The kind of the inbox item that a merge request needs; nothing if the queue, the origin or other work moves it on.
pub fn inbox_kind_of(request: &MergeRequest, around: &RequestSurroundings) -> Option<InboxKind> {
    match request.state {
        RequestState::Queued | RequestState::Building | RequestState::Checking => {
            if request.waits_for_resume().is_some() {
                Some(InboxKind::QueuePaused)
            } else if request.waits_for_target().is_some() {
                Some(InboxKind::TargetRed)
            } else {
                None
            }
        }
        RequestState::Landing
        | RequestState::Landed
        | RequestState::Cancelled
        | RequestState::Superseded => None,
        RequestState::Review => Some(InboxKind::Review),
        RequestState::Conflict | RequestState::Failed if around.has_repair => None,
        RequestState::Conflict => Some(InboxKind::Conflict),
        RequestState::Failed => Some(InboxKind::CheckFailed),
        RequestState::Held(hold) => inbox_kind_of_hold(request, hold, around.now),
    }
}

fn inbox_kind_of_hold(
    request: &MergeRequest,
    hold: RequestHold,
    now: Timestamp,
) -> Option<InboxKind> {
    match hold {
        RequestHold::Paused => Some(InboxKind::QueuePaused),
        RequestHold::Unmerged => Some(InboxKind::Unmerged),
        RequestHold::TargetRed => Some(InboxKind::TargetRed),
        RequestHold::TargetGone => Some(InboxKind::TargetGone),
        RequestHold::OriginRefused => Some(InboxKind::OriginRefused),
        RequestHold::CheckoutInTheWay => Some(InboxKind::CheckoutInTheWay),
        RequestHold::HostingTool => Some(InboxKind::HostingTool),
        RequestHold::PullRequestChanged => Some(InboxKind::PullRequestChanged),
        RequestHold::CheckError => Some(InboxKind::CheckError),
        RequestHold::CommitElsewhere => Some(InboxKind::CommitElsewhere),
        RequestHold::WorkMissing => Some(InboxKind::WorkMissing),
        RequestHold::QueueError => Some(InboxKind::QueueError),
        // The next pass tries again; people are asked about a pull request on the hosting service.
        RequestHold::TargetMoves | RequestHold::PullRequestOpen => None,
        RequestHold::OriginUnreachable => {
            if now.since(request.changed_at) > ORIGIN_AWAY_MAX {
                Some(InboxKind::OriginAway)
            } else {
                None
            }
        }
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

    fn kind_of(state: RequestState, around: &RequestSurroundings) -> Option<InboxKind> {
        inbox_kind_of(&MergeRequest { state, ..any_request("gt-a", 1) }, around)
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
            let is_asked = kind_of(state, &late).is_some();
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
        let kind_of = |state, fix, queue_stop: &QueueStop| {
            let queue_stop = queue_stop.clone();
            let request = MergeRequest { state, fix, queue_stop, ..any_request("gt-a", 1) };
            inbox_kind_of(&request, &AROUND)
        };
        let queued = RequestState::Queued;
        assert_eq!(kind_of(queued, false, &QueueStop::default()), None);
        assert_eq!(kind_of(queued, false, &paused), Some(InboxKind::QueuePaused));
        assert_eq!(kind_of(queued, false, &red), Some(InboxKind::TargetRed));
        assert_eq!(kind_of(queued, true, &red), None);
        assert_eq!(kind_of(RequestState::Landing, false, &paused), None);
    }

    #[test]
    fn a_repair_under_way_needs_no_person() {
        let repaired = RequestSurroundings { has_repair: true, ..AROUND };
        for state in [RequestState::Conflict, RequestState::Failed] {
            assert_eq!(kind_of(state, &repaired), None);
            assert!(kind_of(state, &AROUND).is_some());
        }
    }

    #[test]
    fn an_origin_is_waited_for_before_a_person_is_asked() {
        let away = RequestState::Held(RequestHold::OriginUnreachable);
        assert_eq!(kind_of(away, &AROUND), None);
        let late = RequestSurroundings { now: AROUND.now.plus(ORIGIN_AWAY_MAX * 2), ..AROUND };
        assert_eq!(kind_of(away, &late), Some(InboxKind::OriginAway));
    }
}
