//! The consequence of a lost run.

use std::time::Duration;

use crate::Timestamp;
use crate::schedule::RunLoss;

/// The traces of a run whose processes are gone and did not say how it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LossFacts {
    /// The machine was started anew since the run was begun.
    pub rebooted: bool,
    /// Its session, or the server of all sessions, went away before it did.
    pub server_gone: bool,
}

/// The cause of the loss of a run that left these traces. The widest cause counts: a reboot also ends the
/// session, and the end of a session also ends the agent.
pub fn loss_of(traces: LossFacts) -> RunLoss {
    match traces {
        LossFacts { rebooted: true, .. } => RunLoss::Host,
        LossFacts { server_gone: true, .. } => RunLoss::Session,
        LossFacts { rebooted: false, server_gone: false } => RunLoss::Agent,
    }
}

/// The cost of a lost run for its bead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCost {
    /// One of its attempts.
    Attempt,
    /// None: it had no part in it. Redispatches still keep their distance.
    Patience,
    /// Nothing at all: something else says when it goes on.
    Nothing,
    /// Every attempt that is left: a person decides whether it is worth another one.
    Person,
}

impl LossCost {
    /// The cost of a run that was lost for this cause.
    pub fn of(loss: RunLoss) -> Self {
        match loss {
            RunLoss::Agent => Self::Attempt,
            RunLoss::Host | RunLoss::Session => Self::Patience,
            RunLoss::Limit => Self::Nothing,
            RunLoss::Budget => Self::Person,
        }
    }
}

/// The consequence of a lost run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterLoss {
    /// The bead gets another run.
    Redispatch {
        /// So many attempts are used.
        attempts: u32,
        /// Not before this; none for at once.
        not_before: Option<Timestamp>,
    },
    /// A person decides whether it gets another run.
    AskPerson,
    /// It has had its runs; a person is asked.
    UsedUp {
        /// The number of attempts.
        attempts: u32,
    },
}

/// Whether a bead whose run was lost gets another one, and when.
///
/// `attempts` were used before this run. The first redispatch goes at once; a further one not before `cooldown` has
/// passed since the previous. One that seems to lie in the future was written by a clock that has jumped since, and
/// counts as now.
pub fn after_loss(
    price: LossCost,
    attempts: u32,
    max_attempts: u32,
    previous_redispatch: Option<Timestamp>,
    cooldown: Duration,
    now: Timestamp,
) -> AfterLoss {
    let cool = previous_redispatch.map(|previous| previous.min(now).plus(cooldown));
    let cool = cool.filter(|cool| *cool > now);
    match price {
        LossCost::Nothing => AfterLoss::Redispatch { attempts, not_before: None },
        LossCost::Person => AfterLoss::AskPerson,
        LossCost::Patience => AfterLoss::Redispatch { attempts, not_before: cool },
        LossCost::Attempt => {
            let attempts = attempts.saturating_add(1);
            if attempts >= max_attempts {
                return AfterLoss::UsedUp { attempts };
            }
            AfterLoss::Redispatch { attempts, not_before: cool }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_790_000_000_000_000_000);
    const MINUTE: Duration = Duration::from_mins(1);

    fn after(before: u32, previous_redispatch: Option<Timestamp>) -> AfterLoss {
        after_loss(LossCost::Attempt, before, 3, previous_redispatch, MINUTE * 5, NOW)
    }

    fn at_once(attempts: u32) -> AfterLoss {
        AfterLoss::Redispatch { attempts, not_before: None }
    }

    #[test]
    fn the_first_redispatch_goes_at_once() {
        assert_eq!(after(0, None), at_once(1));
    }

    #[test]
    fn a_further_one_waits_until_the_previous_has_cooled() {
        let in_two_minutes = Some(NOW.plus(MINUTE * 2));
        let three_minutes_ago = Some(NOW.minus(MINUTE * 3));
        assert_eq!(
            after(1, three_minutes_ago),
            AfterLoss::Redispatch { attempts: 2, not_before: in_two_minutes }
        );
        assert_eq!(after(1, Some(NOW.minus(MINUTE * 5))), at_once(2));
        assert_eq!(after(1, Some(NOW.minus(MINUTE * 60))), at_once(2));
    }

    #[test]
    fn the_last_attempt_is_the_last() {
        assert_eq!(after(1, None), at_once(2));
        assert_eq!(after(2, None), AfterLoss::UsedUp { attempts: 3 });
        assert_eq!(after(3, Some(NOW)), AfterLoss::UsedUp { attempts: 4 });
    }

    #[test]
    fn a_loss_of_host_or_session_costs_no_attempt() {
        for (rebooted, server_gone, loss) in [
            (false, false, RunLoss::Agent),
            (false, true, RunLoss::Session),
            (true, false, RunLoss::Host),
            (true, true, RunLoss::Host),
        ] {
            assert_eq!(loss_of(LossFacts { rebooted, server_gone }), loss);
        }
        for loss in RunLoss::ALL {
            let costs = LossCost::of(*loss) == LossCost::Attempt;
            assert_eq!(costs, *loss == RunLoss::Agent, "{loss:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bead_waits_longer_than_the_cooldown_and_only_attempts_are_used_up(
            before in 0_u32..6, most in 0_u32..6, previous: Option<i64>, cooldown: u32, now: i64,
            price in prop_oneof![
                Just(LossCost::Attempt), Just(LossCost::Patience), Just(LossCost::Nothing), Just(LossCost::Person)
            ],
        ) {
            let (now, cooldown) = (Timestamp::from_nanos(now), Duration::from_secs(cooldown.into()));
            let previous = previous.map(Timestamp::from_nanos);
            match after_loss(price, before, most, previous, cooldown, now) {
                AfterLoss::AskPerson => prop_assert_eq!(price, LossCost::Person),
                AfterLoss::UsedUp { attempts } => {
                    prop_assert!(price == LossCost::Attempt && attempts == before + 1 && attempts >= most);
                }
                AfterLoss::Redispatch { attempts, not_before } => {
                    prop_assert_eq!(attempts, before + u32::from(price == LossCost::Attempt));
                    prop_assert!(price != LossCost::Attempt || attempts < most);
                    if let Some(at) = not_before {
                        prop_assert!(previous.is_some() && price != LossCost::Nothing);
                        prop_assert!(at > now && at <= now.plus(cooldown));
                    }
                }
            }
        }
    }
}
