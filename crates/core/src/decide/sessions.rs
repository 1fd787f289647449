//! Whether a fresh session goes on with a run.

use crate::schedule::StepProgress;

/// Whether a run that was to have a fresh session for each step needs one now: since `before` steps were done, and
/// others are left. Where nothing was done another session would do nothing either, so that a run has at most as many
/// sessions by itself as it has steps.
pub fn needs_fresh_session(step_by_step: bool, before: StepProgress, now: StepProgress) -> bool {
    step_by_step && now.done > before.done && now.done < now.total
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_step_was_done_and_another_is_left() {
        let progress = |done| StepProgress { done, total: 3 };
        for (step_by_step, before, now, expected) in [
            (true, 0, 1, true),
            (true, 0, 2, true),
            (true, 1, 1, false),
            (true, 2, 3, false),
            (false, 0, 1, false),
        ] {
            let needed = needs_fresh_session(step_by_step, progress(before), progress(now));
            assert_eq!(needed, expected, "{before} {now}");
        }
        let none = StepProgress { done: 0, total: 0 };
        assert!(!needs_fresh_session(true, none, none));
    }

    proptest! {
        #[test]
        fn no_run_has_more_sessions_than_steps(
            total in 0_usize..20, ticks in prop::collection::vec(0_usize..4, 0..60)
        ) {
            let mut now = StepProgress { done: 0, total };
            let mut sessions = 1;
            for ticked in ticks {
                let before = now;
                now.done = (now.done + ticked).min(total);
                if !needs_fresh_session(true, before, now) {
                    break;
                }
                sessions += 1;
            }
            prop_assert!(sessions <= total.max(1));
        }
    }
}
