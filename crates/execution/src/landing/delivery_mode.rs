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
    /// where it is.
    pub(super) fn of(
        said: DoneStatus,
        parameters: Option<&SlingParameters>,
        of_rig: Merge,
    ) -> Self {
        match (said, parameters) {
            (DoneStatus::Escalated | DoneStatus::Deferred, _) => Self::Keep,
            (DoneStatus::Completed, Some(parameters)) if parameters.review_only => {
                Self::Submit(MergeMethod::Queue)
            }
            (DoneStatus::Completed, Some(parameters)) if parameters.no_merge => Self::PushBranch,
            (DoneStatus::Completed, parameters) => {
                match parameters.and_then(|parameters| parameters.merge).unwrap_or(of_rig) {
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
                DeliveryMode::of(said, parameters, Merge::Mr),
                mode,
                "{said:?} {parameters:?}"
            );
        }
    }
}
