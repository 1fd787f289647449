//! The destination of the work of a run.

use gt_core::schedule::{DoneStatus, Merge, Run, SlingParameters};

/// The destination of accepted work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryMode {
    /// To the branch that the run began from.
    Land,
    /// To the origin, under its own name.
    PushBranch,
    /// Nowhere: it stays on its branch.
    Keep,
    /// To the merge queue, which closes the bead when the work has landed.
    Queue,
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
            (DoneStatus::Completed, Some(parameters)) if parameters.review_only => Self::Queue,
            (DoneStatus::Completed, Some(parameters)) if parameters.no_merge => Self::PushBranch,
            (DoneStatus::Completed, parameters) => {
                match parameters.and_then(|parameters| parameters.merge).unwrap_or(of_rig) {
                    Merge::Direct => Self::Land,
                    Merge::Local => Self::Keep,
                    Merge::Mr => Self::Queue,
                }
            }
        }
    }

    /// The branch of the origin that is to have the work of a run.
    pub(super) fn branch(self, run: &Run) -> Option<&str> {
        match self {
            Self::Land => Some(&run.workplace.base),
            Self::PushBranch => Some(&run.workplace.branch),
            Self::Keep | Self::Queue => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_lands_unless_its_parameters_say_otherwise() {
        let plain = SlingParameters::default();
        let review = SlingParameters { review_only: true, no_merge: true, ..plain.clone() };
        let branch =
            SlingParameters { no_merge: true, merge: Some(Merge::Direct), ..plain.clone() };
        let merged = |merge| SlingParameters { merge: Some(merge), ..plain.clone() };
        for (said, parameters, way) in [
            (DoneStatus::Completed, None, DeliveryMode::Land),
            (DoneStatus::Completed, Some(&plain), DeliveryMode::Land),
            (DoneStatus::Completed, Some(&merged(Merge::Local)), DeliveryMode::Keep),
            (DoneStatus::Completed, Some(&merged(Merge::Mr)), DeliveryMode::Queue),
            (DoneStatus::Completed, Some(&review), DeliveryMode::Queue),
            (DoneStatus::Completed, Some(&branch), DeliveryMode::PushBranch),
            (DoneStatus::Escalated, Some(&plain), DeliveryMode::Keep),
            (DoneStatus::Deferred, Some(&branch), DeliveryMode::Keep),
        ] {
            assert_eq!(
                DeliveryMode::of(said, parameters, Merge::Direct),
                way,
                "{said:?} {parameters:?}"
            );
        }
    }
}
