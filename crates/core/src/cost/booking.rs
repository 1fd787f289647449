//! The changes that a report of usage makes.

use std::collections::BTreeMap;

use super::{CostSource, CountedUsage, PriceTable, UsageRecord, counted};
use crate::schedule::Money;

/// The growth of the usage of a run for one model. A number may be negative: tokens of an unknown model get a name later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpendingChange {
    /// The model; empty if no source names it.
    pub model: String,
    /// Tokens that were read and in no cache.
    pub input: i64,
    /// Tokens that were written.
    pub output: i64,
    /// Tokens that were read from a cache.
    pub cache_read: i64,
    /// Tokens that were put into a cache.
    pub cache_write: i64,
    /// Tokens of thinking.
    pub reasoning: i64,
    /// The cost as far as it is known, in millionths.
    pub cost: i64,
    /// The part of the cost that is by the table of prices.
    pub priced: i64,
    /// Tokens whose cost is unknown.
    pub unpriced: i64,
}

impl SpendingChange {
    /// All tokens; none if a name that came later took more than there were.
    pub fn tokens(&self) -> u64 {
        let kinds = [self.input, self.output, self.cache_read, self.cache_write, self.reasoning];
        let sum = kinds.iter().fold(0, |sum: i64, kind| sum.saturating_add(*kind));
        u64::try_from(sum).unwrap_or(0)
    }

    /// Adds another, of any model.
    pub fn add_change(&mut self, other: &Self) {
        let sum = |field: &mut i64, more: i64| *field = field.saturating_add(more);
        sum(&mut self.input, other.input);
        sum(&mut self.output, other.output);
        sum(&mut self.cache_read, other.cache_read);
        sum(&mut self.cache_write, other.cache_write);
        sum(&mut self.reasoning, other.reasoning);
        sum(&mut self.cost, other.cost);
        sum(&mut self.priced, other.priced);
        sum(&mut self.unpriced, other.unpriced);
    }

    fn is_nothing(&self) -> bool {
        *self == Self { model: self.model.clone(), ..Self::default() }
    }

    fn add(&mut self, usage: &CountedUsage, sign: i64) {
        let signed = |count: u64| sign * i64::try_from(count).unwrap_or(i64::MAX);
        let sum = |field: &mut i64, count: u64| *field = field.saturating_add(signed(count));
        sum(&mut self.input, usage.tokens.input);
        sum(&mut self.output, usage.tokens.output);
        sum(&mut self.cache_read, usage.tokens.cache_read);
        sum(&mut self.cache_write, usage.tokens.cache_write);
        sum(&mut self.reasoning, usage.tokens.reasoning);
        let cost = usage.cost.unwrap_or_default().0;
        sum(&mut self.cost, cost);
        match usage.cost_source {
            CostSource::Reported => {}
            CostSource::Priced => sum(&mut self.priced, cost),
            CostSource::Unknown => sum(&mut self.unpriced, usage.tokens.total()),
        }
    }
}

/// The effect of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booking {
    /// The records that changed, as they are now.
    pub records: Vec<UsageRecord>,
    /// The usage that counts now, of all records of the run.
    pub counted: Vec<CountedUsage>,
    /// The growth for each model.
    pub changes: Vec<SpendingChange>,
}

/// Takes a report about a run into account. Counters only grow: a smaller number that comes late changes nothing. Numbers that no
/// session can have used are left out; the second value tells how many.
pub fn book(
    known: &[UsageRecord],
    report: Vec<UsageRecord>,
    prices: &PriceTable,
) -> (Booking, usize) {
    let before = counted(known);
    let mut all = known.to_vec();
    let mut records: Vec<UsageRecord> = Vec::new();
    let mut left_out = 0;
    for mut record in report {
        let cost_max = Money(1_000_000_000_000);
        if !record.tokens.is_plausible() || record.reported > Some(cost_max) {
            left_out += 1;
            continue;
        }
        let place = all.iter().position(|other| other.is_same_counter(&record));
        if let Some(old) = place.map(|place| &all[place]) {
            record.tokens = record.tokens.max(old.tokens);
            record.reported = record.reported.max(old.reported);
        }
        record.priced = match record.reported {
            Some(_) => None,
            None => prices.cost(&record.model, &record.tokens),
        };
        match place {
            Some(place) if all[place] == record => continue,
            Some(place) => all[place] = record.clone(),
            None => all.push(record.clone()),
        }
        records.retain(|other| !other.is_same_counter(&record));
        records.push(record);
    }
    let counted = counted(&all);
    let mut changes: BTreeMap<&str, SpendingChange> = BTreeMap::new();
    for (usages, sign) in [(&before, -1), (&counted, 1)] {
        for usage in usages {
            let change = changes.entry(&usage.model).or_insert_with(|| SpendingChange {
                model: usage.model.clone(),
                ..SpendingChange::default()
            });
            change.add(usage, sign);
        }
    }
    let changes = changes.into_values().filter(|change| !change.is_nothing()).collect();
    (Booking { records, counted, changes }, left_out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cost::{TokenCounts, UsageSource, totals};

    fn record(model: &str, source: UsageSource, input: u64) -> UsageRecord {
        UsageRecord {
            session: 1,
            model: model.to_owned(),
            source,
            tokens: TokenCounts { input, ..TokenCounts::default() },
            reported: None,
            priced: None,
        }
    }

    fn booked(known: &[UsageRecord], report: UsageRecord) -> Booking {
        book(known, vec![report], &PriceTable::default()).0
    }

    #[test]
    fn a_counter_only_grows() {
        let known = booked(&[], record("gpt-5", UsageSource::Output, 1_000_000)).records;
        assert_eq!(known[0].priced, Some(Money(1_250_000)));
        let late = booked(&known, record("gpt-5", UsageSource::Output, 900_000));
        assert_eq!((late.records, late.changes), (vec![], vec![]));
        let more = booked(&known, record("gpt-5", UsageSource::Output, 1_000_100));
        assert_eq!((more.changes[0].input, more.changes[0].cost), (100, 125));
    }

    #[test]
    fn tokens_of_an_unknown_model_move_when_they_get_a_name() {
        let known = booked(&[], record("", UsageSource::Output, 100)).records;
        let named = booked(&known, record("gpt-5", UsageSource::Telemetry, 120));
        let changes: Vec<(&str, i64, i64)> = named
            .changes
            .iter()
            .map(|change| (change.model.as_str(), change.input, change.unpriced))
            .collect();
        assert_eq!(changes, [("", -100, -100), ("gpt-5", 120, 0)]);
    }

    #[test]
    fn absurd_numbers_are_left_out_and_counted() {
        let absurd = record("gpt-5", UsageSource::Output, u64::MAX);
        let dear = UsageRecord {
            reported: Some(Money(u64::MAX)),
            ..record("gpt-5", UsageSource::Output, 1)
        };
        let (booking, left_out) = book(&[], vec![absurd, dear], &PriceTable::default());
        assert_eq!((booking.records, left_out), (vec![], 2));
    }

    proptest! {
        #[test]
        fn the_changes_add_up_to_the_totals(
            reports in proptest::collection::vec((0_usize..3, any::<bool>(), 0_u64..1000), 0..12),
        ) {
            let models = ["", "gpt-5", "home-made"];
            let mut known: Vec<UsageRecord> = Vec::new();
            let (mut input, mut cost, mut unpriced) = (0, 0, 0);
            for (model, is_output, tokens) in reports {
                let source = if is_output { UsageSource::Output } else { UsageSource::Telemetry };
                let booking = booked(&known, record(models[model], source, tokens));
                for record in booking.records {
                    known.retain(|other| !other.is_same_counter(&record));
                    known.push(record);
                }
                for change in booking.changes {
                    input += change.input;
                    cost += change.cost;
                    unpriced += change.unpriced;
                }
            }
            let totals = totals(&counted(&known));
            prop_assert_eq!(u64::try_from(input), Ok(totals.tokens.total()));
            prop_assert_eq!(u64::try_from(cost), Ok(totals.cost.unwrap_or_default().0));
            prop_assert_eq!(u64::try_from(unpriced), Ok(totals.unpriced));
        }
    }
}
