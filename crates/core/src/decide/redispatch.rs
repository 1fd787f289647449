//! What follows a run that was lost.

use std::time::Duration;

use crate::Timestamp;

/// What follows a lost run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterLoss {
    /// The bead gets another run.
    Redispatch {
        /// Not before this; none for at once.
        not_before: Option<Timestamp>,
    },
    /// It has had its runs; a person is asked.
    UsedUp,
}

/// Whether a bead whose run was lost gets another one, and when.
///
/// `attempts_used` counts its runs, with the lost one. The first redispatch goes at once; a further one
/// not before `cooldown` has passed since the previous. One that seems to lie in the future was
/// written by a clock that has jumped since, and counts as now.
pub fn after_loss(
    attempts_used: u32,
    max_attempts: u32,
    previous_redispatch: Option<Timestamp>,
    cooldown: Duration,
    now: Timestamp,
) -> AfterLoss {
    if attempts_used >= max_attempts {
        return AfterLoss::UsedUp;
    }
    let cool = previous_redispatch.map(|previous| previous.min(now).plus(cooldown));
    AfterLoss::Redispatch { not_before: cool.filter(|cool| *cool > now) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_790_000_000_000_000_000);
    const MINUTE: Duration = Duration::from_mins(1);
    const AT_ONCE: AfterLoss = AfterLoss::Redispatch { not_before: None };

    fn after(attempts_used: u32, previous_redispatch: Option<Timestamp>) -> AfterLoss {
        after_loss(attempts_used, 3, previous_redispatch, MINUTE * 5, NOW)
    }

    #[test]
    fn the_first_redispatch_goes_at_once() {
        assert_eq!(after(1, None), AT_ONCE);
    }

    #[test]
    fn a_further_one_waits_until_the_previous_has_cooled() {
        let in_two_minutes = Some(NOW.plus(MINUTE * 2));
        let three_minutes_ago = Some(NOW.minus(MINUTE * 3));
        assert_eq!(
            after(2, three_minutes_ago),
            AfterLoss::Redispatch { not_before: in_two_minutes }
        );
        assert_eq!(after(2, Some(NOW.minus(MINUTE * 5))), AT_ONCE);
        assert_eq!(after(2, Some(NOW.minus(MINUTE * 60))), AT_ONCE);
    }

    #[test]
    fn the_last_attempt_is_the_last() {
        assert_eq!(after(2, None), AT_ONCE);
        assert_eq!(after(3, None), AfterLoss::UsedUp);
        assert_eq!(after(4, Some(NOW)), AfterLoss::UsedUp);
    }

    proptest! {
        #[test]
        fn nobody_waits_longer_than_the_cooldown(
            used in 0_u32..6, most in 0_u32..6, previous: Option<i64>, cooldown: u32, now: i64,
        ) {
            let (now, cooldown) = (Timestamp::from_nanos(now), Duration::from_secs(cooldown.into()));
            let previous = previous.map(Timestamp::from_nanos);
            match after_loss(used, most, previous, cooldown, now) {
                AfterLoss::UsedUp => prop_assert!(used >= most),
                AfterLoss::Redispatch { not_before } => {
                    prop_assert!(used < most);
                    if let Some(at) = not_before {
                        prop_assert!(previous.is_some());
                        prop_assert!(at > now && at <= now.plus(cooldown));
                    }
                }
            }
        }
    }
}
