//! The usage that counts where several sources report.

use std::collections::BTreeMap;

use super::{TokenCounts, UsageRecord};
use crate::schedule::Money;

/// Where a cost comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostSource {
    /// The agent reported it.
    Reported,
    /// It is by the table of prices.
    Priced,
    /// It is unknown: the agent reports none, and the table does not have the model.
    Unknown,
}

impl CostSource {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Priced => "priced",
            Self::Unknown => "unknown",
        }
    }
}

/// The usage that counts for one model in one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedUsage {
    /// The session, from 1.
    pub session: u32,
    /// The model; empty if no source names it.
    pub model: String,
    /// The tokens.
    pub tokens: TokenCounts,
    /// The cost, if it is known.
    pub cost: Option<Money>,
    /// Where the cost comes from.
    pub cost_source: CostSource,
    /// How many tokens a source has less than the one that counts; 0 if they agree or there is only one.
    pub disagreement: u64,
}

/// The usage of a run, from everything that its sources said. For each session and model the larger source counts. A source
/// that does not name its models adds only what it has beyond the named ones.
pub fn counted(records: &[UsageRecord]) -> Vec<CountedUsage> {
    let mut counters: BTreeMap<(u32, &str), Vec<&UsageRecord>> = BTreeMap::new();
    for record in records {
        counters.entry((record.session, &record.model)).or_default().push(record);
    }
    let mut result: Vec<CountedUsage> =
        counters.values().filter_map(|of_counter| largest(of_counter)).collect();
    for unnamed in 0..result.len() {
        if !result[unnamed].model.is_empty() {
            continue;
        }
        let session = result[unnamed].session;
        let named: Vec<CountedUsage> = result
            .iter()
            .filter(|one| one.session == session && !one.model.is_empty())
            .cloned()
            .collect();
        if !named.is_empty() {
            subtract(&mut result[unnamed], &named);
        }
    }
    result.retain(|one| one.tokens.total() > 0 || one.cost.is_some_and(|cost| cost.0 > 0));
    result
}

fn largest(records: &[&UsageRecord]) -> Option<CountedUsage> {
    let record = records.iter().max_by_key(|record| record.tokens.total())?;
    let least = records.iter().map(|record| record.tokens.total()).min().unwrap_or(0);
    let reported = records.iter().filter_map(|record| record.reported).max();
    let (cost, cost_source) = match (reported, record.priced) {
        (Some(reported), _) => (Some(reported), CostSource::Reported),
        (None, Some(priced)) => (Some(priced), CostSource::Priced),
        (None, None) => (None, CostSource::Unknown),
    };
    Some(CountedUsage {
        session: record.session,
        model: record.model.clone(),
        tokens: record.tokens,
        cost,
        cost_source,
        disagreement: record.tokens.total().saturating_sub(least),
    })
}

/// Takes what is known of named models out of a number about all of them.
fn subtract(unnamed: &mut CountedUsage, named: &[CountedUsage]) {
    let known = named.iter().fold(TokenCounts::default(), |sum, one| sum.plus(one.tokens));
    let beyond = unnamed.tokens.total().saturating_sub(known.total());
    unnamed.disagreement = beyond;
    // The kinds of two sources need not be the same; only the totals can be compared.
    unnamed.tokens = TokenCounts { input: beyond, ..TokenCounts::default() };
    let known = Money::sum(named.iter().filter_map(|one| one.cost)).unwrap_or_default();
    unnamed.cost = unnamed.cost.map(|cost| Money(cost.0.saturating_sub(known.0)));
}

/// The sums over a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageTotals {
    /// The tokens by kind.
    pub tokens: TokenCounts,
    /// The cost as far as it is known; nothing if none is.
    pub cost: Option<Money>,
    /// The tokens whose cost is unknown.
    pub unpriced: u64,
    /// The part of the cost that is by the table of prices.
    pub priced: Money,
}

impl UsageTotals {
    /// Adds one more.
    pub fn add(&mut self, one: &CountedUsage) {
        self.tokens = self.tokens.plus(one.tokens);
        self.cost = Money::sum(self.cost.into_iter().chain(one.cost));
        match one.cost_source {
            CostSource::Reported => {}
            CostSource::Priced => {
                let priced = one.cost.unwrap_or_default().0;
                self.priced = Money(self.priced.0.saturating_add(priced));
            }
            CostSource::Unknown => {
                self.unpriced = self.unpriced.saturating_add(one.tokens.total());
            }
        }
    }
}

/// The sums over what counts.
pub fn totals<'a>(usages: impl IntoIterator<Item = &'a CountedUsage>) -> UsageTotals {
    let mut totals = UsageTotals::default();
    for one in usages {
        totals.add(one);
    }
    totals
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cost::UsageSource;

    fn record(session: u32, model: &str, source: UsageSource, input: u64) -> UsageRecord {
        UsageRecord {
            session,
            model: model.to_owned(),
            source,
            tokens: TokenCounts { input, ..TokenCounts::default() },
            reported: None,
            priced: None,
        }
    }

    fn of_source(session: u32, model: &str, input: u64) -> UsageRecord {
        record(session, model, UsageSource::Output, input)
    }

    #[test]
    fn the_larger_source_counts_and_never_the_sum() {
        let told = [
            of_source(1, "opus", 100),
            record(1, "opus", UsageSource::Telemetry, 130),
            of_source(2, "opus", 7),
        ];
        let counted = counted(&told);
        let tokens: Vec<u64> = counted.iter().map(|one| one.tokens.total()).collect();
        assert_eq!(tokens, [130, 7]);
        assert_eq!((counted[0].disagreement, counted[1].disagreement), (30, 0));
    }

    #[test]
    fn a_reported_cost_is_taken_from_the_source_that_has_one() {
        let told = [
            UsageRecord { reported: Some(Money(9)), ..of_source(1, "opus", 100) },
            UsageRecord {
                priced: Some(Money(50)),
                ..record(1, "opus", UsageSource::Telemetry, 130)
            },
        ];
        let counted = counted(&told);
        assert_eq!(
            (counted[0].cost, counted[0].cost_source),
            (Some(Money(9)), CostSource::Reported)
        );
    }

    #[test]
    fn a_source_without_models_adds_only_what_the_others_lack() {
        let telemetry = record(1, "opus", UsageSource::Telemetry, 130);
        let totals_of = |output| totals(&counted(&[telemetry.clone(), of_source(1, "", output)]));
        assert_eq!(totals_of(130).tokens.total(), 130);
        assert_eq!(totals_of(100).tokens.total(), 130);
        assert_eq!(totals_of(200).tokens.total(), 200);
        // Sessions are counters of their own.
        let other = totals(&counted(&[telemetry, of_source(2, "", 100)]));
        assert_eq!(other.tokens.total(), 230);
    }

    #[test]
    fn tokens_without_a_price_are_named() {
        let told = [
            UsageRecord { priced: Some(Money(50)), ..of_source(1, "opus", 10) },
            of_source(1, "home-made", 5),
        ];
        let totals = totals(&counted(&told));
        assert_eq!((totals.cost, totals.priced, totals.unpriced), (Some(Money(50)), Money(50), 5));
    }

    proptest! {
        #[test]
        fn the_total_is_between_the_largest_source_and_the_sum(
            told in proptest::collection::vec((1_u32..3, 0_usize..3, any::<bool>(), 0_u64..1000), 0..12),
        ) {
            let models = ["", "a", "b"];
            let mut records: Vec<UsageRecord> = Vec::new();
            for (session, model, is_output, input) in told {
                let source = if is_output { UsageSource::Output } else { UsageSource::Telemetry };
                let one = record(session, models[model], source, input);
                if !records.iter().any(|other| other.is_same_counter(&one)) {
                    records.push(one);
                }
            }
            let sum = |source| -> u64 {
                let of_source = records.iter().filter(|one: &&UsageRecord| one.source == source);
                of_source.filter(|one| !one.model.is_empty()).map(|one| one.tokens.total()).sum()
            };
            let total = totals(&counted(&records)).tokens.total();
            let all: u64 = records.iter().map(|one| one.tokens.total()).sum();
            prop_assert!(total <= all);
            prop_assert!(total >= sum(UsageSource::Output).max(sum(UsageSource::Telemetry)));
        }
    }
}
