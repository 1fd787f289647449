//! The destination of the work of a run.

use gt_core::schedule::{Merge, Run, Said, SlingParameters};

/// The destination of accepted work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// To the branch that the run began from.
    Land,
    /// To the origin, under its own name.
    PushBranch,
    /// Nowhere: it stays on its branch.
    Keep,
    /// To the merge queue, which closes the bead.
    Queue,
}

impl Way {
    /// The delivery for this result and these sling parameters. Work that is not completed stays where it is.
    pub(super) fn of(said: Said, parameters: Option<&SlingParameters>) -> Self {
        match (said, parameters) {
            (Said::Escalated | Said::Deferred, _) => Self::Keep,
            (Said::Completed, Some(parameters)) if parameters.review_only => Self::Keep,
            (Said::Completed, Some(parameters)) if parameters.no_merge => Self::PushBranch,
            (Said::Completed, parameters) => {
                match parameters.and_then(|parameters| parameters.merge).unwrap_or(Merge::Direct) {
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
            (Said::Completed, None, Way::Land),
            (Said::Completed, Some(&plain), Way::Land),
            (Said::Completed, Some(&merged(Merge::Local)), Way::Keep),
            (Said::Completed, Some(&merged(Merge::Mr)), Way::Queue),
            (Said::Completed, Some(&review), Way::Keep),
            (Said::Completed, Some(&branch), Way::PushBranch),
            (Said::Escalated, Some(&plain), Way::Keep),
            (Said::Deferred, Some(&branch), Way::Keep),
        ] {
            assert_eq!(Way::of(said, parameters), way, "{said:?} {parameters:?}");
        }
    }
}
