//! The budgets in force: what is set, what was used of it, and the news that one is nearly spent.

use std::collections::HashMap;

use gt_beads::outbox::{NewNotice, notify_in};
use gt_core::cost::Spent;
use gt_core::decide::{Budget, BudgetKind, BudgetLimit, BudgetScope, held_by};
use gt_core::schedule::{Account, Money, Run};
use gt_core::settings::Layers;
use gt_core::{BeadId, Json, Timestamp};
use gt_store::{Reader, UsageAt, Writer};

use gt_town::Result;
use gt_town::scheduler_settings::SchedulerSettings;

/// The budgets in force, with what was used of each, and what these runs hold.
pub(super) fn read_budgets(
    reader: &Reader<'_>,
    settings: &SchedulerSettings,
    accounts: &[Account],
    holders: &[Run],
    now: Timestamp,
) -> Result<Vec<Budget>> {
    let mut set = settings.budgets.clone();
    if settings.account_cost_per_day > 0 {
        set.extend(accounts.iter().map(|account| BudgetLimit {
            kind: BudgetKind::CostPerDay,
            scope: BudgetScope::Account(account.handle.clone()),
            limit: settings.account_cost_per_day,
        }));
    }
    let has = |kinds: &[BudgetKind]| set.iter().any(|budget| kinds.contains(&budget.kind));
    let starts = if has(&[BudgetKind::RunsPerHour]) {
        reader.starts_since(BudgetKind::RunsPerHour.counts_from(now))?
    } else {
        Vec::new()
    };
    let spent = if has(&[BudgetKind::TokensPerDay, BudgetKind::CostPerDay]) {
        reader.spent_since(BudgetKind::CostPerDay.counts_from(now))?
    } else {
        Vec::new()
    };
    let this_month = if has(&[BudgetKind::CostPerMonth]) {
        reader.spent_from(BudgetKind::CostPerMonth.counts_from(now))?.cost
    } else {
        Money::default()
    };
    let budget = |set: BudgetLimit| {
        let covers = |used: &&UsageAt| set.covers(&used.rig, Some(&used.account));
        let uses: Vec<(Timestamp, u64)> = match set.kind {
            BudgetKind::RunsPerHour => {
                let starts = starts.iter().filter(|(_, rig)| set.covers(rig, None));
                starts.map(|(at, _)| (*at, 1)).collect()
            }
            BudgetKind::TokensPerDay => {
                spent.iter().filter(covers).map(|used| (used.at, used.tokens)).collect()
            }
            BudgetKind::CostPerDay => {
                spent.iter().filter(covers).map(|used| (used.at, used.cost.0)).collect()
            }
            BudgetKind::CostPerMonth => vec![(now, this_month.0)],
            // These are for one bead or one convoy: see `WorkBudgets`.
            BudgetKind::TokensInAll | BudgetKind::CostInAll => Vec::new(),
        };
        let holders = holders.iter().filter(|run| set.covers(&run.rig, Some(&run.account)));
        let held = held_by(set.kind, holders);
        Budget::new(set, &uses, held, now)
    };
    Ok(set.iter().cloned().map(budget).collect())
}

/// The budgets of beads and convoys. They have no window.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkBudgets {
    /// Those in force.
    pub(super) budgets: Vec<Budget>,
    /// The convoys with a budget that track a bead.
    pub(super) convoys: HashMap<BeadId, Vec<BeadId>>,
}

impl WorkBudgets {
    /// Reads those that a start depends on. A bead whose runs have used nothing has its whole budget, so it has no row here.
    pub(super) fn read(
        reader: &Reader<'_>,
        settings: &SchedulerSettings,
        holders: &[Run],
        now: Timestamp,
    ) -> Result<Self> {
        let mut found = Self::default();
        if !settings.bead_budgets.is_empty() {
            for (bead, spent) in reader.spent_by_scheduled_beads()? {
                let scope = BudgetScope::Bead(bead);
                found.budgets.extend(in_all(&settings.bead_budgets, &scope, &spent, &[], now));
            }
        }
        if settings.convoy_budgets.is_empty() {
            return Ok(found);
        }
        for (bead, convoy) in reader.active_members_of_open_convoys()? {
            found.convoys.entry(bead).or_default().push(convoy);
        }
        for (convoy, spent) in reader.spent_by_open_convoys()? {
            let is_member = |run: &&Run| {
                let convoys = found.convoys.get(&run.id.bead);
                convoys.is_some_and(|convoys| convoys.contains(&convoy))
            };
            let holders: Vec<&Run> = holders.iter().filter(is_member).collect();
            let scope = BudgetScope::Convoy(convoy);
            found.budgets.extend(in_all(&settings.convoy_budgets, &scope, &spent, &holders, now));
        }
        Ok(found)
    }

    /// Reads those of one bead and of its convoys, without what live runs hold.
    fn read_for(
        reader: &Reader<'_>,
        settings: &SchedulerSettings,
        bead: &BeadId,
        now: Timestamp,
    ) -> Result<Vec<Budget>> {
        let mut found = Vec::new();
        if !settings.bead_budgets.is_empty() {
            let spent = reader.spent_by_runs(bead, 0..=u32::MAX)?;
            let scope = BudgetScope::Bead(bead.clone());
            found.extend(in_all(&settings.bead_budgets, &scope, &spent, &[], now));
        }
        if !settings.convoy_budgets.is_empty() {
            for (_, convoy) in reader.convoys_of(std::slice::from_ref(bead))? {
                let spent = reader.spent_by_members(&convoy)?;
                let scope = BudgetScope::Convoy(convoy);
                found.extend(in_all(&settings.convoy_budgets, &scope, &spent, &[], now));
            }
        }
        Ok(found)
    }
}

/// The budgets without a window of one bead or convoy.
fn in_all(
    set: &[(BudgetKind, u64)],
    scope: &BudgetScope,
    spent: &Spent,
    holders: &[&Run],
    now: Timestamp,
) -> Vec<Budget> {
    let budget = |&(kind, limit): &(BudgetKind, u64)| {
        let used = if kind.is_money() { spent.cost.0 } else { spent.tokens };
        let held = held_by(kind, holders.iter().copied());
        Budget::new(BudgetLimit { kind, scope: scope.clone(), limit }, &[(now, used)], held, now)
    };
    set.iter().map(budget).collect()
}

/// Tells people of each budget of tokens or money of which four fifths are used: once in a day of the calendar, or in a
/// month if the budget is for one, and of one for a bead or a convoy once for each limit that is set. To be called in the
/// transaction that adds to what was used for this bead.
pub fn warn_of_nearly_spent(writer: &mut Writer<'_>, layers: &Layers, bead: &BeadId) -> Result<()> {
    let settings = SchedulerSettings::of(layers)?;
    let now = writer.now();
    let mut budgets = WorkBudgets::read_for(writer, &settings, bead, now)?;
    if !settings.budgets.is_empty() || settings.account_cost_per_day > 0 {
        let accounts = writer.accounts()?;
        budgets.extend(read_budgets(writer, &settings, &accounts, &[], now)?);
    }
    for budget in budgets {
        // A date is enough: 2026-11, or 2026-11-17.
        let period = match budget.set.kind {
            BudgetKind::RunsPerHour => continue,
            BudgetKind::TokensPerDay | BudgetKind::CostPerDay => now.to_string()[..10].to_owned(),
            BudgetKind::CostPerMonth => now.to_string()[..7].to_owned(),
            BudgetKind::TokensInAll | BudgetKind::CostInAll => budget.set.limit.to_string(),
        };
        if !budget.is_nearly_spent() {
            continue;
        }
        let setting = budget.set.setting();
        let one = budget.set.scope.one_of_many().map(|one| format!("/{one}")).unwrap_or_default();
        let subject = match &budget.set.scope {
            BudgetScope::Bead(bead) | BudgetScope::Convoy(bead) => Some(bead),
            BudgetScope::All | BudgetScope::Rig(_) | BudgetScope::Account(_) => None,
        };
        let notice = NewNotice {
            key: format!("budget:{setting}{one}:{period}"),
            kind: "budget",
            bead: subject,
            rig: None,
            run: None,
            message: format!(
                "four fifths of a budget are used: {budget}. At all of it nothing more starts; gt config set {setting} \
                 <n> changes it"
            ),
            details: Json::object(&[("setting".to_owned(), Json::string(&setting))]),
            spent: Spent::default(),
        };
        notify_in(writer, layers, &notice)?;
    }
    Ok(())
}
