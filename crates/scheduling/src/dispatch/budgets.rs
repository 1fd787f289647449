//! The budgets in force: what is set, what was used of it, and the news that one is nearly spent.

use gt_beads::outbox::{NewNotice, notify_in};
use gt_core::cost::Spent;
use gt_core::decide::{Budget, BudgetKind, BudgetLimit, BudgetScope, held_by};
use gt_core::schedule::{Account, Money, Run};
use gt_core::settings::Layers;
use gt_core::{Json, Timestamp};
use gt_store::{Reader, UsageAt, Writer};

use gt_town::Result;
use gt_town::scheduler_settings::SchedulerSettings;

/// The budgets in force, with what was used of each, and what live runs hold.
pub(super) fn read_budgets(
    reader: &Reader<'_>,
    settings: &SchedulerSettings,
    accounts: &[Account],
    live: &[Run],
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
        };
        let live = live.iter().filter(|run| set.covers(&run.rig, Some(&run.account)));
        let held = held_by(set.kind, live);
        Budget::new(set, &uses, held, now)
    };
    Ok(set.iter().cloned().map(budget).collect())
}

/// Tells people of each budget of tokens or money of which four fifths are used: once in a day of the calendar, or in a
/// month if the budget is for one. To be called in the transaction that adds to what was used.
pub fn tell_of_nearly_spent(writer: &mut Writer<'_>, layers: &Layers) -> Result<()> {
    let settings = SchedulerSettings::of(layers)?;
    if settings.budgets.is_empty() && settings.account_cost_per_day == 0 {
        return Ok(());
    }
    let now = writer.now();
    let accounts = writer.accounts()?;
    for budget in read_budgets(writer, &settings, &accounts, &[], now)? {
        // A date is enough: 2026-11, or 2026-11-17.
        let (period, date_bytes) = match budget.set.kind {
            BudgetKind::RunsPerHour => continue,
            BudgetKind::TokensPerDay | BudgetKind::CostPerDay => (now, 10),
            BudgetKind::CostPerMonth => (now, 7),
        };
        if !budget.is_nearly_spent() {
            continue;
        }
        let (setting, date) = (budget.set.setting(), period.to_string());
        let account = match &budget.set.scope {
            BudgetScope::Account(account) => format!("/{account}"),
            BudgetScope::All | BudgetScope::Rig(_) => String::new(),
        };
        let date = date.get(..date_bytes).unwrap_or(&date);
        let notice = NewNotice {
            key: format!("budget:{setting}{account}:{date}"),
            kind: "budget",
            bead: None,
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
