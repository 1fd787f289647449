//! The limits of a single run: when its worker is asked to hand over, and when it is ended.

use std::fmt;
use std::time::Duration;

use crate::schedule::{Money, RunLimit};
use crate::time::format_duration;

/// The limits of a run. One that is absent does not limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunLimits {
    /// How long it may take.
    pub time: Option<Duration>,
    /// Its maximum cost.
    pub cost: Option<Money>,
    /// How many tokens it may use.
    pub tokens: Option<u64>,
    /// How many more tokens its worker may use to hand over, once it was asked to.
    pub handoff_tokens: u64,
    /// How much more time its worker has to hand over.
    pub handoff_time: Duration,
}

impl RunLimits {
    /// The limits of a rig, which count before those of the town.
    #[must_use]
    pub fn or(self, town: &Self) -> Self {
        Self {
            time: self.time.or(town.time),
            cost: self.cost.or(town.cost),
            tokens: self.tokens.or(town.tokens),
            handoff_tokens: town.handoff_tokens,
            handoff_time: town.handoff_time,
        }
    }

    /// Whether the usage of the run matters.
    pub fn limit_usage(&self) -> bool {
        self.cost.is_some() || self.tokens.is_some()
    }
}

/// The age of a run and its usage so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// How long it has run.
    pub alive: Duration,
    /// The tokens that are known.
    pub tokens: u64,
    /// The cost that is known.
    pub cost: Money,
}

/// The next step with a run that has limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitStep {
    /// It goes on.
    GoOn,
    /// It is over this limit, and its worker is asked to hand over.
    AskToHandOver(RunLimit),
    /// Its worker has been asked and has gone on for too long: it is ended.
    End,
}

/// The next step with a run. `asked` is its progress when its worker was asked to hand over.
pub fn limit_step(
    limits: &RunLimits,
    progress: &RunProgress,
    asked: Option<&RunProgress>,
) -> LimitStep {
    if let Some(asked) = asked {
        let tokens = progress.tokens.saturating_sub(asked.tokens);
        let time = progress.alive.saturating_sub(asked.alive);
        let is_over = tokens >= limits.handoff_tokens || time >= limits.handoff_time;
        return if is_over { LimitStep::End } else { LimitStep::GoOn };
    }
    // Money first: it is the limit that people set for its own sake.
    if limits.cost.is_some_and(|most| progress.cost >= most) {
        LimitStep::AskToHandOver(RunLimit::Cost)
    } else if limits.tokens.is_some_and(|most| progress.tokens >= most) {
        LimitStep::AskToHandOver(RunLimit::Tokens)
    } else if limits.time.is_some_and(|most| progress.alive >= most) {
        LimitStep::AskToHandOver(RunLimit::Time)
    } else {
        LimitStep::GoOn
    }
}

/// The part of a limit that a run has used, in words.
#[derive(Debug, Clone, Copy)]
pub struct LimitUse<'a> {
    /// The limit.
    pub limit: RunLimit,
    /// All limits of the run.
    pub limits: &'a RunLimits,
    /// Its usage.
    pub progress: &'a RunProgress,
}

impl fmt::Display for LimitUse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, limits, progress } = self;
        match limit {
            RunLimit::Time => {
                // To the second, as durations are shown everywhere.
                let alive = Duration::from_secs(progress.alive.as_secs());
                let most = format_duration(limits.time.unwrap_or_default());
                write!(f, "has run for {} of {most}", format_duration(alive))
            }
            RunLimit::Cost => {
                write!(f, "has spent {} of {}", progress.cost, limits.cost.unwrap_or_default())
            }
            RunLimit::Tokens => {
                let most = limits.tokens.unwrap_or_default();
                write!(f, "has used {} of {most} tokens", progress.tokens)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: RunLimits = RunLimits {
        time: Some(Duration::from_hours(4)),
        cost: Some(Money(2_000_000)),
        tokens: Some(1_000),
        handoff_tokens: 100,
        handoff_time: Duration::from_mins(5),
    };

    fn progress(minutes: u64, tokens: u64, cost: u64) -> RunProgress {
        RunProgress { alive: Duration::from_mins(minutes), tokens, cost: Money(cost) }
    }

    #[test]
    fn a_run_over_any_limit_is_asked_to_hand_over() {
        for (progress, step) in [
            (progress(239, 999, 1_999_999), LimitStep::GoOn),
            (progress(240, 0, 0), LimitStep::AskToHandOver(RunLimit::Time)),
            (progress(0, 1_000, 0), LimitStep::AskToHandOver(RunLimit::Tokens)),
            (progress(240, 1_000, 2_000_000), LimitStep::AskToHandOver(RunLimit::Cost)),
        ] {
            assert_eq!(limit_step(&LIMITS, &progress, None), step, "{progress:?}");
        }
    }

    #[test]
    fn a_run_without_limits_goes_on() {
        let forever = progress(1_000_000, u64::MAX, u64::MAX);
        assert_eq!(limit_step(&RunLimits::default(), &forever, None), LimitStep::GoOn);
    }

    #[test]
    fn a_worker_that_was_asked_has_some_tokens_and_some_time() {
        let asked = progress(10, 1_050, 0);
        for (now, step) in [
            (progress(14, 1_149, 0), LimitStep::GoOn),
            (progress(11, 1_150, 0), LimitStep::End),
            (progress(15, 1_050, 0), LimitStep::End),
        ] {
            assert_eq!(limit_step(&LIMITS, &now, Some(&asked)), step, "{now:?}");
        }
    }

    #[test]
    fn without_tokens_to_hand_over_a_run_is_ended_at_once() {
        let limits = RunLimits { handoff_tokens: 0, ..LIMITS };
        let asked = progress(10, 1_000, 0);
        assert_eq!(limit_step(&limits, &asked, Some(&asked)), LimitStep::End);
    }

    #[test]
    fn the_limits_of_a_rig_count_before_those_of_the_town() {
        let rig = RunLimits { tokens: Some(5), ..RunLimits::default() };
        assert_eq!(rig.or(&LIMITS), RunLimits { tokens: Some(5), ..LIMITS });
    }

    proptest! {
        /// An agent with live usage overshoots its limit by one model call and the handoff, and by no more.
        #[test]
        fn a_run_is_over_its_tokens_by_the_handoff_and_two_calls_at_most(
            calls in proptest::collection::vec(1_u64..400, 1..50),
        ) {
            let largest = calls.iter().copied().max().unwrap_or(0);
            let (mut now, mut asked) = (progress(0, 0, 0), None);
            for tokens in calls {
                now.tokens += tokens;
                match limit_step(&LIMITS, &now, asked.as_ref()) {
                    LimitStep::GoOn => {}
                    LimitStep::AskToHandOver(_) => asked = Some(now),
                    LimitStep::End => break,
                }
            }
            // One call that was under way at the limit, and one that was at the end of the handoff.
            prop_assert!(now.tokens < 1_000 + LIMITS.handoff_tokens + 2 * largest);
        }
    }
}
