//! Budgets: so much in so long a time, and then it waits.

use std::fmt;
use std::time::Duration;

use crate::{RigSlug, Timestamp};

/// The unit and the period of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetKind {
    /// Runs that were started, in an hour.
    RunsPerHour,
    /// Tokens that runs were said to have used, in a day.
    TokensPerDay,
    /// Millionths of the currency in which runs report their cost, in a day.
    CostPerDay,
}

impl BudgetKind {
    /// The time over which it is counted, up to now.
    pub fn window(self) -> Duration {
        match self {
            Self::RunsPerHour => Duration::from_hours(1),
            Self::TokensPerDay | Self::CostPerDay => Duration::from_hours(24),
        }
    }

    /// The last part of the name of its setting.
    pub fn setting(self) -> &'static str {
        match self {
            Self::RunsPerHour => "budget.runs_per_hour",
            Self::TokensPerDay => "budget.tokens_per_day",
            Self::CostPerDay => "budget.cost_per_day",
        }
    }
}

/// A budget that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The unit and the period.
    pub kind: BudgetKind,
    /// The rig that it is for; nothing for the town.
    pub rig: Option<RigSlug>,
    /// How much may be used in its time.
    pub limit: u64,
    /// The amount used.
    pub used: u64,
    /// When something of that is long enough ago for one more, as far as is known now.
    pub until: Timestamp,
}

impl Budget {
    /// A budget with these amounts used at these times, in any order. An amount older than the period does not
    /// count. Neither does one that a clock that jumped has dated further into the future than the period.
    pub fn new(
        kind: BudgetKind,
        rig: Option<RigSlug>,
        limit: u64,
        uses: &[(Timestamp, u64)],
        now: Timestamp,
    ) -> Self {
        let window = kind.window();
        let counts = |at: Timestamp| at.plus(window) > now && at <= now.plus(window);
        let mut counted: Vec<_> = uses.iter().filter(|(at, _)| counts(*at)).copied().collect();
        counted.sort_unstable();
        let used = counted.iter().fold(0, |sum: u64, (_, amount)| sum.saturating_add(*amount));
        // The oldest amounts leave first. If none can leave, an amount used now stays for the whole period.
        let mut left = used;
        let leaves = counted.iter().find(|(_, amount)| {
            left = left.saturating_sub(*amount);
            left < limit
        });
        let until = leaves.map_or(now, |(at, _)| *at).min(now).plus(window);
        Self { kind, rig, limit, used, until }
    }

    /// Whether nothing of it is left.
    pub fn is_spent(&self) -> bool {
        self.used >= self.limit
    }

    /// Whether it is for runs in this rig.
    pub fn covers(&self, rig: &RigSlug) -> bool {
        self.rig.as_ref().is_none_or(|own| own == rig)
    }

    /// Counts one more start.
    pub fn note_start(&mut self) {
        if self.kind == BudgetKind::RunsPerHour {
            self.used = self.used.saturating_add(1);
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rig) = &self.rig {
            write!(f, "the rig {rig} has ")?;
        }
        match self.kind {
            BudgetKind::RunsPerHour => {
                write!(f, "started {} of {} runs in an hour", self.used, self.limit)
            }
            BudgetKind::TokensPerDay => {
                write!(f, "used {} of {} tokens in a day", self.used, self.limit)
            }
            BudgetKind::CostPerDay => {
                let money = crate::schedule::Money;
                write!(f, "spent {} of {} in a day", money(self.used), money(self.limit))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: i64 = 60_000_000_000;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_nanos(minutes * MINUTE)
    }

    fn runs(limit: u64, starts: &[i64], now: i64) -> Budget {
        let uses: Vec<_> = starts.iter().map(|start| (at(*start), 1)).collect();
        Budget::new(BudgetKind::RunsPerHour, None, limit, &uses, at(now))
    }

    #[test]
    fn a_spent_budget_says_when_the_oldest_leaves() {
        let budget = runs(2, &[100, 130], 150);
        assert!(budget.is_spent());
        assert_eq!(budget.until, at(160));
        assert!(!runs(2, &[100, 130], 160).is_spent());
    }

    #[test]
    fn a_budget_that_was_made_smaller_waits_for_several_to_leave() {
        let budget = runs(1, &[100, 110, 120], 150);
        assert_eq!((budget.used, budget.until), (3, at(180)));
    }

    #[test]
    fn a_new_start_counts_and_then_the_oldest_is_waited_for() {
        let mut budget = runs(2, &[130], 150);
        assert!(!budget.is_spent());
        budget.note_start();
        assert!(budget.is_spent());
        assert_eq!(budget.until, at(190));
        let mut fresh = runs(1, &[], 150);
        fresh.note_start();
        assert_eq!(fresh.until, at(210));
    }

    #[test]
    fn tokens_count_by_usage() {
        let uses = [(at(10), 400), (at(20), 500), (at(30), 200)];
        let budget = Budget::new(BudgetKind::TokensPerDay, None, 1_000, &uses, at(60));
        assert_eq!((budget.used, budget.is_spent()), (1_100, true));
        assert_eq!(budget.until, at(10 + 24 * 60));
    }

    proptest! {
        #[test]
        fn when_it_says_it_is_free_again_it_is(
            limit in 1_u64..6, starts in proptest::collection::vec(0_i64..300, 0..20), now in 0_i64..300,
        ) {
            let starts: Vec<i64> = starts.into_iter().filter(|start| *start <= now).collect();
            let budget = runs(limit, &starts, now);
            prop_assert!(budget.until > at(now) && budget.until <= at(now + 60));
            if budget.is_spent() {
                let then = budget.until.as_nanos() / MINUTE;
                prop_assert!(!runs(limit, &starts, then).is_spent());
                prop_assert!(runs(limit, &starts, then - 1).is_spent());
            }
        }
    }
}
