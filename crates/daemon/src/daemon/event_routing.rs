//! The reconcilers that each event wakes.

use gt_core::EventKind;

use super::reconciler_kind::ReconcilerKind;

/// The reconcilers that an event of this kind wakes. Events that every start causes, and that make nothing ready,
/// wake none.
pub(super) fn reconcilers_for(kind: &EventKind) -> &'static [ReconcilerKind] {
    match kind {
        EventKind::Scheduled
        | EventKind::RetryNow
        | EventKind::Unscheduled
        | EventKind::Unblocked
        | EventKind::Updated
        | EventKind::StatusChanged
        | EventKind::Reopened
        | EventKind::DependencyAdded
        | EventKind::DependencyRemoved
        | EventKind::DependencyChanged
        | EventKind::CircuitBroken
        | EventKind::Quarantined
        | EventKind::StartFailed
        | EventKind::Resumed
        | EventKind::Parked
        | EventKind::Limited
        | EventKind::Unparked
        | EventKind::HookReleased
        | EventKind::RunDone
        | EventKind::RunFailed
        | EventKind::RunLost
        | EventKind::RunCancelled
        // The budgets get back what the run had reserved and did not use.
        | EventKind::RunUsed
        | EventKind::AccountChanged => &[ReconcilerKind::Dispatch],
        // A host that is removed has runs to clear away; one that is resumed takes work.
        EventKind::HostChanged => &[ReconcilerKind::Dispatch, ReconcilerKind::Liveness],
        EventKind::TreeMoved | EventKind::TreeRestored => {
            &[ReconcilerKind::Dispatch, ReconcilerKind::Trees]
        }
        // A context may have lost its bead.
        EventKind::Deleted | EventKind::Imported => {
            &[ReconcilerKind::Dispatch, ReconcilerKind::Liveness]
        }
        // The branch of a convoy may be complete as well.
        EventKind::Closed => {
            &[ReconcilerKind::Dispatch, ReconcilerKind::Liveness, ReconcilerKind::MergeQueue]
        }
        // Warm trees start at the commit that the branch had before.
        EventKind::Landed => &[ReconcilerKind::Dispatch, ReconcilerKind::Trees],
        // In the last case a newer version of gt has changed something.
        EventKind::RigAdded
        | EventKind::RigChanged
        | EventKind::RigRemoved
        | EventKind::SettingChanged
        | EventKind::Other(_) => &ReconcilerKind::ALL,
        // The new worker may have a session for messages, may fall silent, and has taken a tree.
        EventKind::Dispatched => &[
            ReconcilerKind::Outbox,
            ReconcilerKind::Stalls,
            ReconcilerKind::Trees,
            ReconcilerKind::Work,
        ],
        // An agent is at work again, and may fall silent.
        EventKind::RunUnblocked => &[ReconcilerKind::Work],
        EventKind::HandedOver | EventKind::MessageSent => &[ReconcilerKind::Outbox],
        EventKind::QueueChanged => &[ReconcilerKind::MergeQueue],
        // One review less waits, or other work may begin from an accepted commit.
        EventKind::RequestOpened | EventKind::RequestChanged => {
            &[ReconcilerKind::MergeQueue, ReconcilerKind::Dispatch]
        }
        EventKind::Created
        | EventKind::Claimed
        | EventKind::LabelAdded
        | EventKind::LabelRemoved
        | EventKind::Commented
        | EventKind::RunStarting
        | EventKind::WorkAccepted
        | EventKind::Rescued
        | EventKind::Reviewed
        | EventKind::TreeDue
        | EventKind::TreePurged
        | EventKind::Escalated
        | EventKind::Paused
        | EventKind::StepDone
        | EventKind::MessageDelivered
        | EventKind::MessageSeen
        | EventKind::MessagesPurged
        | EventKind::EventsPurged
        | EventKind::HelpWanted
        | EventKind::RunBlocked
        | EventKind::TokenChanged
        | EventKind::OverLimit
        | EventKind::RunSilent
        | EventKind::RunGoesOn
        | EventKind::ConvoyLanded => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_free_a_slot_or_make_work_ready_wake_dispatch() {
        for kind in [
            EventKind::RunDone,
            EventKind::RunFailed,
            EventKind::RunLost,
            EventKind::RunCancelled,
            EventKind::Closed,
            EventKind::Unblocked,
            EventKind::Scheduled,
            EventKind::Resumed,
            EventKind::SettingChanged,
            EventKind::Other("of a later version".to_owned()),
        ] {
            assert!(reconcilers_for(&kind).contains(&ReconcilerKind::Dispatch), "{kind}");
        }
    }

    #[test]
    fn a_start_does_not_wake_dispatch() {
        for kind in [EventKind::RunStarting, EventKind::Dispatched, EventKind::StepDone] {
            assert!(!reconcilers_for(&kind).contains(&ReconcilerKind::Dispatch), "{kind}");
        }
    }
}
