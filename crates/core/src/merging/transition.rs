//! The states of a merge request: the one function that says what may follow what.

use super::request::{MergeRequest, RequestHold, RequestState};

/// Something that happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestAction {
    /// A builder puts it on top of the target.
    Build,
    /// Its candidate is built, and its checks run.
    Check,
    /// Its candidate passed, and a person has to decide.
    AskReview,
    /// It goes back in line: approved, retried, resumed, its builder is gone, or the target moved.
    Requeue,
    /// The intent to push is recorded.
    Intend,
    /// The target has it.
    Confirm,
    /// It does not apply to the target, as a builder or the service of its pull request found.
    MeetConflict,
    /// A check fails with it, and not without it; a person rejected it; or its pull request needs a change.
    FailCheck,
    /// Something other than the work is in the way.
    Hold(RequestHold),
    /// A person or an agent gives it up.
    Cancel,
    /// A later request of the bead takes its place.
    Supersede,
}

/// Whether the origin has said that it does not have the commit of a request that is being pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginAnswer {
    /// It has answered, and does not have it.
    Absent,
    /// It was not asked, or did not answer.
    Unknown,
}

/// Why something cannot happen to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefusal {
    /// It is over.
    #[error("it is {}", .0.as_str())]
    Over(RequestState),
    /// It is being pushed, and the origin has not answered.
    #[error("it is being pushed, and only the origin knows whether it arrived; gt mq run asks it")]
    Pushed,
    /// The action does not follow from this state.
    #[error("it is {0}")]
    OutOfTurn(RequestState),
}

/// The state that follows. A request that is being pushed leaves that state only by the origin's answer.
pub fn next_state(
    request: &MergeRequest,
    action: RequestAction,
    origin: OriginAnswer,
) -> Result<RequestState, RequestRefusal> {
    use RequestAction as A;
    use RequestState as S;
    let state = request.state;
    if !state.is_open() {
        return Err(RequestRefusal::Over(state));
    }
    // The origin has it, even if others brought it there.
    if action == A::Confirm {
        return Ok(S::Landed);
    }
    if state == S::Landing && origin == OriginAnswer::Unknown {
        return Err(RequestRefusal::Pushed);
    }
    let refused = Err(RequestRefusal::OutOfTurn(state));
    match action {
        A::Confirm => Ok(S::Landed),
        A::Build => match state {
            S::Queued => Ok(S::Building),
            _ => refused,
        },
        A::Check => match state {
            S::Building => Ok(S::Checking),
            _ => refused,
        },
        A::AskReview => match state {
            S::Queued | S::Building | S::Checking => Ok(S::Review),
            _ => refused,
        },
        A::Intend => match state {
            S::Building | S::Checking => Ok(S::Landing),
            _ => refused,
        },
        A::MeetConflict => match state {
            S::Building | S::Checking | S::Landing | S::Held(RequestHold::PullRequestOpen) => {
                Ok(S::Conflict)
            }
            _ => refused,
        },
        A::FailCheck => match state {
            S::Checking | S::Review | S::Held(RequestHold::PullRequestOpen) => Ok(S::Failed),
            _ => refused,
        },
        A::Requeue => match state {
            S::Queued => refused,
            _ => Ok(S::Queued),
        },
        A::Hold(reason) => match state {
            S::Conflict | S::Failed => refused,
            _ => Ok(S::Held(reason)),
        },
        A::Cancel => Ok(S::Cancelled),
        A::Supersede => Ok(S::Superseded),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::request::tests::{any_request, any_state};
    use super::*;

    fn any_action() -> impl Strategy<Value = RequestAction> {
        use RequestAction as A;
        prop_oneof![
            Just(A::Build),
            Just(A::Check),
            Just(A::AskReview),
            Just(A::Requeue),
            Just(A::Intend),
            Just(A::Confirm),
            Just(A::MeetConflict),
            Just(A::FailCheck),
            proptest::sample::select(RequestHold::ALL).prop_map(A::Hold),
            Just(A::Cancel),
            Just(A::Supersede),
        ]
    }

    fn next(
        state: RequestState,
        action: RequestAction,
        origin: OriginAnswer,
    ) -> Result<RequestState, RequestRefusal> {
        next_state(&MergeRequest { state, ..any_request("gt-a", 1) }, action, origin)
    }

    #[test]
    fn the_usual_way_leads_from_the_line_to_the_target() {
        use RequestAction as A;
        let mut state = RequestState::Queued;
        for (action, expected) in [
            (A::Build, RequestState::Building),
            (A::Check, RequestState::Checking),
            (A::AskReview, RequestState::Review),
            (A::Requeue, RequestState::Queued),
            (A::Build, RequestState::Building),
            (A::Intend, RequestState::Landing),
            (A::Confirm, RequestState::Landed),
        ] {
            state = next(state, action, OriginAnswer::Unknown).unwrap();
            assert_eq!(state, expected);
        }
    }

    proptest! {
        #[test]
        fn a_request_that_is_over_stays_as_it_is(state in any_state(), action in any_action()) {
            if !state.is_open() {
                let refused = Err(RequestRefusal::Over(state));
                prop_assert_eq!(next(state, action, OriginAnswer::Absent), refused);
            }
        }

        #[test]
        fn only_the_answer_of_the_origin_ends_a_push(action in any_action()) {
            let landing = RequestState::Landing;
            let without = next(landing, action, OriginAnswer::Unknown);
            let expected = if action == RequestAction::Confirm {
                Ok(RequestState::Landed)
            } else {
                Err(RequestRefusal::Pushed)
            };
            prop_assert_eq!(without, expected);
        }

        #[test]
        fn nothing_is_pushed_that_was_not_built(state in any_state()) {
            let intended = next(state, RequestAction::Intend, OriginAnswer::Absent).is_ok();
            prop_assert_eq!(intended, matches!(state, RequestState::Building | RequestState::Checking));
        }

        #[test]
        fn a_request_lands_only_because_the_target_has_it(state in any_state(), action in any_action()) {
            let after = next(state, action, OriginAnswer::Absent);
            if after == Ok(RequestState::Landed) {
                prop_assert_eq!(action, RequestAction::Confirm);
            }
        }

        #[test]
        fn of_held_requests_only_one_with_an_open_pull_request_goes_back(
            hold in proptest::sample::select(RequestHold::ALL)
        ) {
            for action in [RequestAction::FailCheck, RequestAction::MeetConflict] {
                let failed = next(RequestState::Held(hold), action, OriginAnswer::Unknown);
                prop_assert_eq!(failed.is_ok(), hold == RequestHold::PullRequestOpen);
            }
        }

        #[test]
        fn every_open_request_can_be_cancelled_once_the_origin_has_answered(state in any_state()) {
            let cancelled = next(state, RequestAction::Cancel, OriginAnswer::Absent);
            prop_assert_eq!(cancelled.is_ok(), state.is_open());
        }
    }
}
