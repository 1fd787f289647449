//! Budgets: so much in so long a time, and then it waits.

use std::fmt;
use std::time::Duration;

use crate::schedule::{Reserve, Run};
use crate::{BeadId, RigSlug, Timestamp};

/// The unit and the period of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetKind {
    /// Runs that were started, in an hour.
    RunsPerHour,
    /// Tokens that runs were said to have used, in a day.
    TokensPerDay,
    /// Millionths of the currency in which runs report their cost, in a day.
    CostPerDay,
    /// The same in a month of the calendar, in UTC.
    CostPerMonth,
    /// Tokens, from the first run on. Nothing of it comes back by time.
    TokensInAll,
    /// The cost, from the first run on.
    CostInAll,
}

impl BudgetKind {
    /// The first moment that counts.
    pub fn counts_from(self, now: Timestamp) -> Timestamp {
        match self {
            Self::TokensInAll | Self::CostInAll => Timestamp::from_nanos(i64::MIN),
            Self::RunsPerHour => now.minus(HOUR),
            Self::TokensPerDay | Self::CostPerDay => now.minus(DAY),
            Self::CostPerMonth => now.start_of_month(),
        }
    }

    /// The last part of the name of its setting.
    pub fn setting(self) -> &'static str {
        match self {
            Self::RunsPerHour => "budget.runs_per_hour",
            Self::TokensPerDay => "budget.tokens_per_day",
            Self::CostPerDay => "budget.cost_per_day",
            Self::CostPerMonth => "budget.cost_per_month",
            Self::TokensInAll => "budget.tokens",
            Self::CostInAll => "budget.cost",
        }
    }

    /// Whether it counts money.
    pub fn is_money(self) -> bool {
        matches!(self, Self::CostPerDay | Self::CostPerMonth | Self::CostInAll)
    }

    /// Whether it has no window: what is used stays used.
    pub fn is_for_good(self) -> bool {
        matches!(self, Self::TokensInAll | Self::CostInAll)
    }

    /// The part of a reserve that it counts.
    fn of(self, reserve: &Reserve) -> u64 {
        match self {
            Self::RunsPerHour => 1,
            Self::TokensPerDay | Self::TokensInAll => reserve.tokens.unwrap_or(0),
            Self::CostPerDay | Self::CostPerMonth | Self::CostInAll => {
                reserve.cost.unwrap_or_default().0
            }
        }
    }
}

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// The runs that a budget is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetScope {
    /// All runs of the town.
    All,
    /// The runs in a rig.
    Rig(RigSlug),
    /// The runs on an account; each account has the same budget.
    Account(String),
    /// The runs of a bead; each bead has the same budget.
    Bead(BeadId),
    /// The runs of all beads that a convoy tracks; each convoy has the same budget.
    Convoy(BeadId),
}

impl BudgetScope {
    /// The one of many that have the same budget by one setting.
    pub fn one_of_many(&self) -> Option<String> {
        match self {
            Self::All | Self::Rig(_) => None,
            Self::Account(account) => Some(account.clone()),
            Self::Bead(bead) | Self::Convoy(bead) => Some(bead.to_string()),
        }
    }

    /// Whether it is for one bead or one convoy.
    pub fn is_work(&self) -> bool {
        matches!(self, Self::Bead(_) | Self::Convoy(_))
    }
}

/// A budget that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetLimit {
    /// The unit and the period.
    pub kind: BudgetKind,
    /// The runs that it is for.
    pub scope: BudgetScope,
    /// How much may be used in its time.
    pub limit: u64,
}

impl BudgetLimit {
    /// The name of its setting.
    pub fn setting(&self) -> String {
        let name = self.kind.setting();
        match &self.scope {
            BudgetScope::All => name.to_owned(),
            BudgetScope::Rig(rig) => format!("rig.{rig}.{name}"),
            BudgetScope::Account(_) => name.replacen("budget.", "budget.account_", 1),
            BudgetScope::Bead(_) => name.replacen("budget.", "budget.bead_", 1),
            BudgetScope::Convoy(_) => name.replacen("budget.", "budget.convoy_", 1),
        }
    }

    /// Whether it is for all runs in this rig and on this account.
    pub fn covers(&self, rig: &RigSlug, account: Option<&str>) -> bool {
        match &self.scope {
            BudgetScope::All => true,
            BudgetScope::Rig(own) => own == rig,
            BudgetScope::Account(own) => account == Some(own.as_str()),
            BudgetScope::Bead(_) | BudgetScope::Convoy(_) => false,
        }
    }
}

/// The way in which a spent budget gets room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetEnd {
    /// Time: at this moment enough was used long enough ago.
    At(Timestamp),
    /// The end of a live run, which gives back what it holds and does not use.
    LiveRun,
    /// Only a person who raises it.
    Raised,
}

/// A budget that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The limit that is set.
    pub set: BudgetLimit,
    /// The amount used.
    pub used: u64,
    /// The amount that live runs have reserved and not used yet.
    pub held: u64,
    /// The amount that the run which waits for it is expected to need; 0 if it stands for no run that waits.
    pub wanted: u64,
    /// When there is room for one more by time alone, as far as is known now. Nothing if live runs hold all of it.
    pub until: Option<Timestamp>,
    /// When the oldest amounts leave. Of a month, all leave at once.
    leaves: Vec<(Timestamp, u64)>,
}

impl Budget {
    /// A budget with these amounts used at these times, in any order, and with the amount that live runs hold. An amount
    /// older than the period does not count. Neither does one that a clock that jumped has dated further into the future
    /// than the period.
    pub fn new(set: BudgetLimit, uses: &[(Timestamp, u64)], held: u64, now: Timestamp) -> Self {
        let leaving_at = |at: Timestamp| match set.kind {
            BudgetKind::RunsPerHour => at.plus(HOUR),
            BudgetKind::TokensPerDay | BudgetKind::CostPerDay => at.plus(DAY),
            BudgetKind::CostPerMonth => at.start_of_next_month(),
            BudgetKind::TokensInAll | BudgetKind::CostInAll => Timestamp::from_nanos(i64::MAX),
        };
        let counts = |at: Timestamp| leaving_at(at) > now && at <= leaving_at(now);
        let mut leaves: Vec<_> = uses
            .iter()
            .filter(|(at, _)| counts(*at))
            .map(|(at, amount)| (leaving_at(*at), *amount))
            .collect();
        let used = leaves.iter().fold(0, |sum: u64, (_, amount)| sum.saturating_add(*amount));
        // An amount used now stays for the whole period.
        leaves.push((leaving_at(now), 0));
        leaves.sort_unstable();
        let mut budget = Self { set, used, held, wanted: 0, until: None, leaves };
        budget.until = budget.room_at(1);
        budget
    }

    /// When there is room for so much by time alone.
    fn room_at(&self, wanted: u64) -> Option<Timestamp> {
        let is_held = self.held.saturating_add(wanted) > self.set.limit && self.held > 0;
        if is_held || self.set.kind.is_for_good() {
            return None;
        }
        let mut left = self.used.saturating_add(self.held).saturating_add(wanted);
        let fits = self.leaves.iter().find(|(_, amount)| {
            left = left.saturating_sub(*amount);
            left <= self.set.limit
        });
        fits.or(self.leaves.last()).map(|(at, _)| *at)
    }

    /// Whether nothing of it is left.
    pub fn is_spent(&self) -> bool {
        self.used.saturating_add(self.held) >= self.set.limit
    }

    /// Whether four fifths of it are used.
    pub fn is_nearly_spent(&self) -> bool {
        u128::from(self.used) * 5 >= u128::from(self.set.limit) * 4
    }

    /// The way in which it gets room, if it is the reason why a run does not start.
    pub fn end(&self) -> BudgetEnd {
        match self.until {
            Some(until) => BudgetEnd::At(until),
            None if self.set.kind.is_for_good() && self.used >= self.set.limit => BudgetEnd::Raised,
            None => BudgetEnd::LiveRun,
        }
    }

    /// The budget as the reason why a run that reserves this does not start; nothing if it may. A run that is expected to
    /// need more than there ever is starts when nothing else is used. A budget without a window gives nothing back, so
    /// there a run starts if anything is left and no live run holds a part of it.
    pub fn refusal(&self, reserve: &Reserve) -> Option<Self> {
        let wanted = if self.set.kind.is_for_good() && self.held == 0 {
            1
        } else {
            self.set.kind.of(reserve).clamp(1, self.set.limit.max(1))
        };
        let total = self.used.saturating_add(self.held).saturating_add(wanted);
        if total <= self.set.limit {
            return None;
        }
        Some(Self { wanted, until: self.room_at(wanted), leaves: Vec::new(), ..self.clone() })
    }

    /// The budget as it is for a run that reserves this: what makes room is told for that run, and not for any smaller one.
    #[must_use]
    pub fn for_run(&self, reserve: &Reserve) -> Self {
        self.refusal(reserve).unwrap_or_else(|| self.clone())
    }

    /// Counts one more start.
    pub fn note_start(&mut self, reserve: &Reserve) {
        let amount = self.set.kind.of(reserve);
        match self.set.kind {
            BudgetKind::RunsPerHour => self.used = self.used.saturating_add(amount),
            BudgetKind::TokensPerDay
            | BudgetKind::CostPerDay
            | BudgetKind::CostPerMonth
            | BudgetKind::TokensInAll
            | BudgetKind::CostInAll => self.held = self.held.saturating_add(amount),
        }
        self.until = self.room_at(1);
    }
}

/// The amounts that runs have reserved in a budget of this kind and not used yet: live ones, and those whose usage is not
/// final.
pub fn held_by<'a>(kind: BudgetKind, holders: impl IntoIterator<Item = &'a Run>) -> u64 {
    let rest = |run: &Run| match kind {
        BudgetKind::RunsPerHour => 0,
        BudgetKind::TokensPerDay | BudgetKind::TokensInAll => {
            run.reserved.tokens.unwrap_or(0).saturating_sub(run.usage.tokens.unwrap_or(0))
        }
        BudgetKind::CostPerDay | BudgetKind::CostPerMonth | BudgetKind::CostInAll => {
            let spent = run.usage.cost.unwrap_or_default().0;
            run.reserved.cost.unwrap_or_default().0.saturating_sub(spent)
        }
    };
    holders.into_iter().fold(0, |sum: u64, run| sum.saturating_add(rest(run)))
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.set.scope {
            BudgetScope::All => {}
            BudgetScope::Rig(rig) => write!(f, "the rig {rig} has ")?,
            BudgetScope::Account(account) => write!(f, "the account {account} has ")?,
            BudgetScope::Bead(bead) => write!(f, "the bead {bead} has ")?,
            BudgetScope::Convoy(convoy) => write!(f, "the convoy {convoy} has ")?,
        }
        let (used, limit) = (self.used, self.set.limit);
        let money = crate::schedule::Money;
        match self.set.kind {
            BudgetKind::RunsPerHour => write!(f, "started {used} of {limit} runs in an hour")?,
            BudgetKind::TokensPerDay => write!(f, "used {used} of {limit} tokens in a day")?,
            BudgetKind::CostPerDay => {
                write!(f, "spent {} of {} in a day", money(used), money(limit))?;
            }
            BudgetKind::CostPerMonth => {
                write!(f, "spent {} of {} this month", money(used), money(limit))?;
            }
            BudgetKind::TokensInAll => write!(f, "used {used} of {limit} tokens")?,
            BudgetKind::CostInAll => write!(f, "spent {} of {}", money(used), money(limit))?,
        }
        let amount = |amount: u64| {
            if self.set.kind.is_money() { money(amount).to_string() } else { amount.to_string() }
        };
        if self.held > 0 {
            write!(f, ", and live runs hold {}", amount(self.held))?;
        }
        // Else something is left, and it is not clear why that does not suffice.
        if self.wanted > 0 && !self.is_spent() {
            write!(f, ", and the next run is expected to need {}", amount(self.wanted))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::Money;

    const MINUTE: i64 = 60_000_000_000;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_nanos(minutes * MINUTE)
    }

    #[test]
    fn a_refusal_tells_what_is_held_and_what_is_needed() {
        let dollars = |dollars: u64| dollars * 1_000_000;
        let budget = |used: u64, held: u64| {
            let uses = [(at(0), dollars(used))];
            Budget::new(town(BudgetKind::CostPerDay, dollars(5)), &uses, dollars(held), at(1))
        };
        let need = Reserve { cost: Some(Money(dollars(4))), ..Reserve::default() };
        let said = |budget: Budget| budget.refusal(&need).unwrap().to_string();
        assert_eq!(
            said(budget(3, 0)),
            "spent 3.00 of 5.00 in a day, and the next run is expected to need 4.00"
        );
        assert_eq!(said(budget(3, 4)), "spent 3.00 of 5.00 in a day, and live runs hold 4.00");
        assert_eq!(said(budget(5, 0)), "spent 5.00 of 5.00 in a day");
    }

    fn town(kind: BudgetKind, limit: u64) -> BudgetLimit {
        BudgetLimit { kind, scope: BudgetScope::All, limit }
    }

    fn runs(limit: u64, starts: &[i64], now: i64) -> Budget {
        let uses: Vec<_> = starts.iter().map(|start| (at(*start), 1)).collect();
        Budget::new(town(BudgetKind::RunsPerHour, limit), &uses, 0, at(now))
    }

    fn tokens(tokens: u64) -> Reserve {
        Reserve { tokens: Some(tokens), cost: None }
    }

    #[test]
    fn a_spent_budget_says_when_the_oldest_leaves() {
        let budget = runs(2, &[100, 130], 150);
        assert!(budget.is_spent());
        assert_eq!(budget.until, Some(at(160)));
        assert!(!runs(2, &[100, 130], 160).is_spent());
    }

    #[test]
    fn a_budget_that_was_made_smaller_waits_for_several_to_leave() {
        let budget = runs(1, &[100, 110, 120], 150);
        assert_eq!((budget.used, budget.until), (3, Some(at(180))));
    }

    #[test]
    fn a_new_start_counts_and_then_the_oldest_is_waited_for() {
        let mut budget = runs(2, &[130], 150);
        assert!(!budget.is_spent());
        budget.note_start(&Reserve::default());
        assert!(budget.is_spent());
        assert_eq!(budget.until, Some(at(190)));
        let mut fresh = runs(1, &[], 150);
        fresh.note_start(&Reserve::default());
        assert_eq!(fresh.until, Some(at(210)));
    }

    #[test]
    fn tokens_count_by_usage() {
        let uses = [(at(10), 400), (at(20), 500), (at(30), 200)];
        let budget = Budget::new(town(BudgetKind::TokensPerDay, 1_000), &uses, 0, at(60));
        assert_eq!((budget.used, budget.is_spent()), (1_100, true));
        assert_eq!(budget.until, Some(at(10 + 24 * 60)));
    }

    #[test]
    fn a_start_must_fit_beside_what_is_used_and_held() {
        let uses = [(at(10), 400), (at(20), 100)];
        let budget = Budget::new(town(BudgetKind::TokensPerDay, 1_000), &uses, 200, at(60));
        assert_eq!(budget.refusal(&tokens(300)), None);
        // The oldest amount has to leave first.
        let refusal = budget.refusal(&tokens(301)).unwrap();
        assert_eq!(refusal.until, Some(at(10 + 24 * 60)));
        let words = "used 500 of 1000 tokens in a day, and live runs hold 200, and the next run is expected to need 301";
        assert_eq!(refusal.to_string(), words);
        // No time makes room for that while the others are live.
        assert_eq!(budget.refusal(&tokens(801)).unwrap().until, None);
        // Nothing is known of this one, so any room is enough.
        assert_eq!(budget.refusal(&Reserve::default()), None);
    }

    #[test]
    fn a_budget_says_for_each_run_when_that_run_has_room() {
        let uses = [(at(0), 100), (at(10), 900)];
        let day = Budget::new(town(BudgetKind::TokensPerDay, 1000), &uses, 0, at(60));
        let refusal = day.refusal(&tokens(500)).unwrap();
        assert_eq!(day.until, Some(at(24 * 60)));
        assert_eq!(day.for_run(&tokens(500)).end(), refusal.end());
        assert_eq!(refusal.until, Some(at(24 * 60 + 10)));
    }

    #[test]
    fn a_run_that_may_need_more_than_the_budget_starts_when_nothing_is_used() {
        let empty = Budget::new(town(BudgetKind::TokensPerDay, 100), &[], 0, at(60));
        assert_eq!(empty.refusal(&tokens(5_000)), None);
        let mut taken = empty;
        taken.note_start(&tokens(5_000));
        assert!(taken.refusal(&tokens(1)).is_some_and(|refusal| refusal.until.is_none()));
    }

    #[test]
    fn a_month_ends_with_the_calendar() {
        let now = Timestamp::parse("2026-12-17T04:00:00Z").unwrap();
        let uses = ["2026-11-30T23:59:59Z", "2026-12-01T00:00:00Z", "2026-12-05T00:00:00Z"];
        let uses = uses.map(|at| (Timestamp::parse(at).unwrap(), 5));
        let budget = Budget::new(town(BudgetKind::CostPerMonth, 10), &uses, 0, now);
        assert_eq!((budget.used, budget.is_spent()), (10, true));
        assert_eq!(budget.until, Some(Timestamp::parse("2027-01-01T00:00:00Z").unwrap()));
    }

    #[test]
    fn four_fifths_are_nearly_all() {
        let spent =
            |used| Budget::new(town(BudgetKind::CostPerDay, 10), &[(at(5), used)], 9, at(6));
        assert!(!spent(7).is_nearly_spent() && spent(8).is_nearly_spent());
    }

    #[test]
    fn a_budget_without_a_window_ends_when_it_is_raised() {
        let bead = crate::BeadId::parse("gt-a").unwrap();
        let set = |limit| BudgetLimit {
            kind: BudgetKind::TokensInAll,
            scope: BudgetScope::Convoy(bead.clone()),
            limit,
        };
        let budget = |limit, held| Budget::new(set(limit), &[(at(10), 400)], held, at(60));
        assert_eq!(set(1).setting(), "budget.convoy_tokens");
        // A part is left: one run may start, whatever it is expected to need.
        assert_eq!(budget(500, 0).refusal(&tokens(900)), None);
        // Beside a live run it must fit.
        assert_eq!(budget(500, 50).refusal(&tokens(50)), None);
        let beside = budget(500, 50).refusal(&tokens(51)).unwrap();
        assert_eq!((beside.end(), beside.until), (BudgetEnd::LiveRun, None));
        // However long ago it was used.
        let spent = budget(400, 0).refusal(&Reserve::default()).unwrap();
        assert_eq!((spent.end(), spent.until), (BudgetEnd::Raised, None));
        assert_eq!(spent.to_string(), "the convoy gt-a has used 400 of 400 tokens");
    }

    #[test]
    fn each_scope_has_its_runs_and_its_setting() {
        let rig = RigSlug::parse("web").unwrap();
        let other = RigSlug::parse("api").unwrap();
        for (scope, setting, of_rig, of_account) in [
            (BudgetScope::All, "budget.cost_per_day", true, true),
            (BudgetScope::Rig(rig.clone()), "rig.web.budget.cost_per_day", true, false),
            (BudgetScope::Account("work".into()), "budget.account_cost_per_day", false, true),
        ] {
            let set = BudgetLimit { kind: BudgetKind::CostPerDay, scope, limit: 1 };
            assert_eq!(set.setting(), setting);
            assert_eq!(
                (set.covers(&rig, None), set.covers(&other, Some("work"))),
                (of_rig, of_account)
            );
        }
    }

    proptest! {
        #[test]
        fn when_it_says_it_is_free_again_it_is(
            limit in 1_u64..6, starts in proptest::collection::vec(0_i64..300, 0..20), now in 0_i64..300,
        ) {
            let starts: Vec<i64> = starts.into_iter().filter(|start| *start <= now).collect();
            let budget = runs(limit, &starts, now);
            let until = budget.until.unwrap();
            prop_assert!(until > at(now) && until <= at(now + 60));
            if budget.is_spent() {
                let then = until.as_nanos() / MINUTE;
                prop_assert!(!runs(limit, &starts, then).is_spent());
                prop_assert!(runs(limit, &starts, then - 1).is_spent());
            }
        }
    }
}
