//! Whether a fresh session goes on with a run.

use crate::schedule::StepProgress;

/// Whether a run that was to have a fresh session for each step needs one now: since `before` steps were done, and
/// others are left. Where nothing was done another session would do nothing either, so that a run has at most as many
/// sessions by itself as it has steps.
pub fn needs_fresh_session(step_by_step: bool, before: StepProgress, now: StepProgress) -> bool {
    step_by_step && now.done > before.done && now.done < now.total
}

/// Something that happened to a run, as far as its sessions are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionNews {
    /// A fresh session began while this commit was in its tree, if it has one.
    Begun(String),
    /// A step was done.
    StepDone,
}

/// How many sessions of a run in a row, up to now, were followed by another without a commit or a step. `news` are the
/// last first, and `head` is the commit in its tree.
pub fn sessions_in_vain(news: &[SessionNews], head: &str) -> usize {
    let is_in_vain = |news: &&SessionNews| matches!(news, SessionNews::Begun(at) if at == head);
    news.iter().take_while(is_in_vain).count()
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

    #[test]
    fn sessions_are_in_vain_until_a_commit_or_a_step() {
        let begun = |at: &str| SessionNews::Begun(at.to_owned());
        for (news, count) in [
            (vec![], 0),
            (vec![begun("b"), begun("b"), begun("b")], 3),
            (vec![begun("b"), begun("a"), begun("b")], 1),
            (vec![begun("b"), begun("b"), SessionNews::StepDone, begun("b")], 2),
            (vec![SessionNews::StepDone, begun("b")], 0),
            // Something was committed since.
            (vec![begun("a"), begun("a")], 0),
        ] {
            assert_eq!(sessions_in_vain(&news, "b"), count, "{news:?}");
        }
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
