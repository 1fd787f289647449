//! The share of the budgets that a run is expected to need: what most runs like it have used.

use std::collections::BTreeMap;

use super::run_limit::RunLimits;
use crate::RigSlug;
use crate::schedule::{Money, ParkSubject, Reserve, Usage};

/// The cost of a run of which nothing is known.
const UNKNOWN_COST: Money = Money(1_000_000);

/// The usage of the last runs, by formula and runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageHistory {
    tokens: BTreeMap<(String, String), Vec<u64>>,
    costs: BTreeMap<(String, String), Vec<u64>>,
}

impl UsageHistory {
    /// Adds a run that has ended. Runs with the command of a rig have nothing to do with those of other rigs.
    pub fn add(&mut self, formula: &str, runtime: &str, rig: &RigSlug, usage: &Usage) {
        let key = key(formula, runtime, rig);
        if let Some(tokens) = usage.tokens {
            self.tokens.entry(key.clone()).or_default().push(tokens);
        }
        if let Some(Money(cost)) = usage.cost {
            self.costs.entry(key).or_default().push(cost);
        }
    }

    /// The share that one more run needs: what three of four such runs did with. Without one, its own limit; nothing is
    /// reserved of tokens without a limit, because no number would be right for every model.
    pub fn reserve(
        &self,
        formula: &str,
        runtime: &str,
        rig: &RigSlug,
        limits: &RunLimits,
    ) -> Reserve {
        let key = key(formula, runtime, rig);
        let tokens = self.tokens.get(&key).and_then(|used| upper_quartile(used));
        let cost = self.costs.get(&key).and_then(|used| upper_quartile(used)).map(Money);
        Reserve {
            // A run is ended at its limit, whatever earlier ones were allowed.
            tokens: tokens
                .map(|tokens| tokens.min(limits.tokens.unwrap_or(tokens)))
                .or(limits.tokens),
            cost: cost
                .map(|cost| cost.min(limits.cost.unwrap_or(cost)))
                .or(limits.cost)
                .or(Some(UNKNOWN_COST)),
        }
    }

    /// The least that any run under these limits needs.
    pub fn smallest(&self, limits: &RunLimits) -> Reserve {
        let least = |used: &BTreeMap<(String, String), Vec<u64>>| {
            used.values().filter_map(|used| upper_quartile(used)).min()
        };
        let unknown = limits.cost.unwrap_or(UNKNOWN_COST);
        Reserve {
            tokens: limits.tokens.map(|most| least(&self.tokens).unwrap_or(most).min(most)),
            cost: Some(least(&self.costs).map_or(unknown, Money).min(unknown)),
        }
    }
}

fn key(formula: &str, runtime: &str, rig: &RigSlug) -> (String, String) {
    (formula.to_owned(), ParkSubject::runtime(runtime, rig).name)
}

/// The smallest amount that is enough for three of four.
fn upper_quartile(used: &[u64]) -> Option<u64> {
    let mut sorted = used.to_vec();
    sorted.sort_unstable();
    let place = (sorted.len() * 3).div_ceil(4);
    sorted.get(place.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn history(costs: &[u64]) -> UsageHistory {
        let mut history = UsageHistory::default();
        for cost in costs {
            let usage = Usage { cost: Some(Money(*cost)), ..Usage::default() };
            history.add("work", "claude", &rig("web"), &usage);
        }
        history
    }

    fn rig(name: &str) -> RigSlug {
        RigSlug::parse(name).unwrap()
    }

    fn cost(history: &UsageHistory, formula: &str, limits: &RunLimits) -> Option<u64> {
        let reserve = history.reserve(formula, "claude", &rig("api"), limits);
        reserve.cost.map(|Money(cost)| cost)
    }

    #[test]
    fn three_of_four_earlier_runs_did_with_it() {
        let none = RunLimits::default();
        for (costs, expected) in
            [(&[7][..], 7), (&[1, 9], 9), (&[4, 1, 3, 2], 3), (&[5, 1, 4, 2, 3], 4)]
        {
            assert_eq!(cost(&history(costs), "work", &none), Some(expected), "{costs:?}");
        }
    }

    #[test]
    fn without_history_it_is_the_limit_of_the_run_or_a_dollar() {
        let limits = RunLimits { cost: Some(Money(5)), tokens: Some(8), ..RunLimits::default() };
        let known = history(&[7]);
        assert_eq!(cost(&known, "other", &limits), Some(5));
        assert_eq!(cost(&known, "other", &RunLimits::default()), Some(1_000_000));
        let tokens = |limits| known.reserve("work", "claude", &rig("web"), limits).tokens;
        assert_eq!((tokens(&limits), tokens(&RunLimits::default())), (Some(8), None));
        // A limit that is lower than earlier usage counts.
        assert_eq!(cost(&known, "work", &limits), Some(5));
    }

    #[test]
    fn commands_of_two_rigs_are_told_apart() {
        let mut history = UsageHistory::default();
        let usage = Usage { tokens: Some(5), ..Usage::default() };
        history.add("", "", &rig("web"), &usage);
        let tokens = |name| history.reserve("", "", &rig(name), &RunLimits::default()).tokens;
        assert_eq!((tokens("web"), tokens("api")), (Some(5), None));
    }

    proptest! {
        #[test]
        fn none_needs_less_than_the_smallest(
            costs in proptest::collection::vec((0_usize..3, 0_u64..100), 0..20),
            limit in proptest::option::of(1_u64..100), asked in 0_usize..4,
        ) {
            let formulas = ["a", "b", "c", "d"];
            let mut history = UsageHistory::default();
            for (formula, amount) in costs {
                let usage = Usage { tokens: Some(amount), cost: Some(Money(amount)), peak_memory_mb: None };
                history.add(formulas[formula], "claude", &rig("web"), &usage);
            }
            let limits = RunLimits { cost: limit.map(Money), tokens: limit, ..RunLimits::default() };
            let (one, least) =
                (history.reserve(formulas[asked], "claude", &rig("web"), &limits), history.smallest(&limits));
            prop_assert!(least.cost <= one.cost && least.tokens <= one.tokens, "{least:?} {one:?}");
        }

        #[test]
        fn it_is_enough_for_three_quarters(costs in proptest::collection::vec(0_u64..100, 1..40)) {
            let enough = cost(&history(&costs), "work", &RunLimits::default()).unwrap();
            let covered = costs.iter().filter(|cost| **cost <= enough).count();
            prop_assert!(covered * 4 >= costs.len() * 3);
            prop_assert!(costs.contains(&enough));
        }
    }
}
