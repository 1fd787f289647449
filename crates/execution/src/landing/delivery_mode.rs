//! The destination of the work of a run.

use gt_core::merging::MergeMethod;
use gt_core::schedule::{DoneStatus, Merge, SlingParameters};

/// The destination of accepted work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryMode {
    /// To the branch that the run began from, by this method.
    Submit(MergeMethod),
    /// To the origin, under its own name: people merge it.
    PushBranch,
    /// Nowhere: it stays on its branch.
    Keep,
}

impl DeliveryMode {
    /// The delivery for this result and these sling parameters, in a rig with this strategy. Work that is not completed stays
    /// where it is. Work that a person has to see goes through the queue in every case.
    pub(super) fn of(
        said: DoneStatus,
        parameters: Option<&SlingParameters>,
        of_rig: Merge,
        review: bool,
    ) -> Self {
        match (said, parameters) {
            (DoneStatus::Escalated | DoneStatus::Deferred, _) => Self::Keep,
            (DoneStatus::Completed, Some(parameters)) if parameters.review_only => {
                Self::Submit(MergeMethod::Queue)
            }
            (DoneStatus::Completed, Some(parameters)) if parameters.no_merge => Self::PushBranch,
            (DoneStatus::Completed, parameters) => {
                match parameters.and_then(|parameters| parameters.merge).unwrap_or(of_rig) {
                    Merge::Direct | Merge::Local if review => Self::Submit(MergeMethod::Queue),
                    Merge::Direct => Self::Submit(MergeMethod::Direct),
                    Merge::Local => Self::Keep,
                    Merge::Mr => Self::Submit(MergeMethod::Queue),
                    Merge::Pr => Self::Submit(MergeMethod::PullRequest),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_lands_through_the_queue_unless_its_parameters_say_otherwise() {
        let plain = SlingParameters::default();
        let review = SlingParameters { review_only: true, no_merge: true, ..plain.clone() };
        let branch =
            SlingParameters { no_merge: true, merge: Some(Merge::Direct), ..plain.clone() };
        let merged = |merge| SlingParameters { merge: Some(merge), ..plain.clone() };
        let queue = DeliveryMode::Submit(MergeMethod::Queue);
        let direct = DeliveryMode::Submit(MergeMethod::Direct);
        let pull_request = DeliveryMode::Submit(MergeMethod::PullRequest);
        for (said, parameters, mode) in [
            (DoneStatus::Completed, None, queue),
            (DoneStatus::Completed, Some(&plain), queue),
            (DoneStatus::Completed, Some(&merged(Merge::Local)), DeliveryMode::Keep),
            (DoneStatus::Completed, Some(&merged(Merge::Direct)), direct),
            (DoneStatus::Completed, Some(&merged(Merge::Mr)), queue),
            (DoneStatus::Completed, Some(&merged(Merge::Pr)), pull_request),
            (DoneStatus::Completed, Some(&review), queue),
            (DoneStatus::Completed, Some(&branch), DeliveryMode::PushBranch),
            (DoneStatus::Escalated, Some(&plain), DeliveryMode::Keep),
            (DoneStatus::Deferred, Some(&branch), DeliveryMode::Keep),
        ] {
            assert_eq!(
                DeliveryMode::of(said, parameters, Merge::Mr, false),
                mode,
                "{said:?} {parameters:?}"
            );
        }
    }

    #[test]
    fn work_that_needs_a_review_waits_for_it_however_it_lands() {
        let queue = DeliveryMode::Submit(MergeMethod::Queue);
        for (merge, mode) in [
            (Merge::Mr, queue),
            (Merge::Direct, queue),
            (Merge::Local, queue),
            (Merge::Pr, DeliveryMode::Submit(MergeMethod::PullRequest)),
        ] {
            let said = SlingParameters { merge: Some(merge), ..SlingParameters::default() };
            let of = |said, of_rig| DeliveryMode::of(DoneStatus::Completed, said, of_rig, true);
            assert_eq!(of(Some(&said), Merge::Mr), mode, "{merge:?}");
            assert_eq!(of(None, merge), mode, "{merge:?} of the rig");
        }
        let put_off = DeliveryMode::of(DoneStatus::Deferred, None, Merge::Local, true);
        assert_eq!(put_off, DeliveryMode::Keep);
    }
}
