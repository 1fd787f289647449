//! Whom something that happened concerns.

use gt_core::EventKind;

use super::duties::Duty;

/// Who has to look after something like this happened. What happens to everything that starts, and makes nothing ready,
/// concerns nobody.
pub(super) fn concerned(kind: &EventKind) -> &'static [Duty] {
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
        | EventKind::AccountChanged => &[Duty::Dispatch],
        EventKind::TreeMoved | EventKind::TreeRestored => &[Duty::Dispatch, Duty::Trees],
        // A context may have lost its bead.
        EventKind::Closed | EventKind::Deleted | EventKind::Imported => {
            &[Duty::Dispatch, Duty::Liveness]
        }
        // Whoever waits for its turn to land may have it now.
        EventKind::RunDone
        | EventKind::RunFailed
        | EventKind::RunLost
        | EventKind::RunCancelled => &[Duty::Dispatch, Duty::Landing],
        // What stands ready begins where the branch was before.
        EventKind::Landed => &[Duty::Dispatch, Duty::Landing, Duty::Trees],
        // In the last case somebody who knows more than we do has changed something.
        EventKind::RigAdded
        | EventKind::RigChanged
        | EventKind::RigRemoved
        | EventKind::SettingChanged
        | EventKind::Other(_) => &Duty::ALL,
        // Somebody may sit at a screen now who can be told something, may fall silent, and has taken a tree.
        EventKind::Dispatched => &[Duty::Outbox, Duty::Stalls, Duty::Trees, Duty::Work],
        // An agent is at work again, and may fall silent.
        EventKind::RunUnblocked => &[Duty::Work],
        EventKind::HandedOver | EventKind::MessageSent => &[Duty::Outbox],
        EventKind::Created
        | EventKind::Claimed
        | EventKind::LabelAdded
        | EventKind::LabelRemoved
        | EventKind::Commented
        | EventKind::RunStarting
        | EventKind::WorkAccepted
        | EventKind::Rescued
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
        | EventKind::RunSilent
        | EventKind::RunGoesOn
        | EventKind::ConvoyLanded
        | EventKind::RunUsed => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_frees_a_slot_or_makes_work_ready_concerns_dispatch() {
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
            assert!(concerned(&kind).contains(&Duty::Dispatch), "{kind}");
        }
    }

    #[test]
    fn a_start_does_not_lead_to_another_look_for_starts() {
        for kind in [EventKind::RunStarting, EventKind::Dispatched, EventKind::StepDone] {
            assert!(!concerned(&kind).contains(&Duty::Dispatch), "{kind}");
        }
    }
}
