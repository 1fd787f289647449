//! The money that agents spend, the limits of runs, and the budget of the town.

use std::time::Duration;

use gt_core::cost::{TokenCounts, UsageRecord, UsageSource};
use gt_core::decide::{BudgetKind, LimitStep, RunProgress, held_by, limit_step};
use gt_core::schedule::{Money, Run, RunEnd, RunId, RunLoss, RunState};
use gt_execution::runs::book_live_usage;
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::settings;
use gt_town::{OperationError, Town};

use crate::planted::Planted;
use crate::simulation::Simulation;
use crate::violation::Invariant;
use crate::world::{SimulatedAgentEnd, SupervisorStage};

/// The most that one model call costs.
const CALL_MAX: u64 = 1_000_000;
/// The tokens of a model call.
const CALL_TOKENS: u64 = 10;

impl Simulation {
    /// Sets a budget and the limits of a run in some towns. Planted steps that replace starts know nothing of budgets.
    pub(crate) fn set_budgets(&self, town: &Town) -> Result<(), OperationError> {
        let has_none = self.choose(0, 2) > 0 && !self.ignores_limits();
        if has_none || self.planted.is_some_and(Planted::replaces_cycles) {
            return Ok(());
        }
        let set = |name: &str, value: &str| {
            settings::set(town, name, value, gt_scheduling::runtimes::check_name).map(|_| ())
        };
        let day = self.choose(4, 9);
        set("budget.cost_per_day", &day.to_string())?;
        set("budget.bead_cost", &(day - 2).to_string())?;
        set("budget.run_cost", &self.choose(1, 3).to_string())?;
        set(
            "budget.handoff_tokens",
            &self.choose(0, 2).saturating_mul(CALL_TOKENS.cast_signed()).to_string(),
        )
    }

    /// Whether the fault is planted that no limit of a run counts. Its agents spend as much as they can, because few of
    /// them live for long enough to be caught otherwise.
    fn ignores_limits(&self) -> bool {
        self.planted == Some(Planted::LimitIgnored)
    }

    /// The caretaker lifts the budget, so that everything that can be dispatched is.
    pub(crate) fn lift_budgets(&self) {
        let town = self.town_without_seam("caretaker");
        let check = gt_scheduling::runtimes::check_name;
        for budget in ["budget.cost_per_day", "budget.bead_cost"] {
            self.certain("lift", settings::set(&town, budget, "0", check).map(drop));
        }
    }

    /// An agent makes a model call. Its supervisor books it, and applies the limits of the run.
    pub(crate) fn agent_spends(&self) {
        let (run, cost) = {
            let acting = self.acting_agents();
            let mut state = self.state();
            let working = state.world.processes.values().filter_map(|process| {
                let supervisor = process.supervisor.as_ref().filter(|_| !process.doomed)?;
                (supervisor.stage == SupervisorStage::Working).then(|| supervisor.run.clone())
            });
            let runs: Vec<RunId> = working
                .filter(|run| acting.contains(run) && !state.world.asked.contains(run))
                .collect();
            let Some(run) = state.random.pick(&runs).cloned() else { return };
            let cost = state.random.between(1, CALL_MAX);
            (run, if self.ignores_limits() { CALL_MAX } else { cost })
        };
        let Some(row) = self.read(|reader| reader.run(&run)).filter(|run| run.state.is_live())
        else {
            return;
        };
        let town = self.town_without_seam("supervisor");
        let calls = row.usage.tokens.unwrap_or(0) / CALL_TOKENS + 1;
        let record = UsageRecord {
            session: 1,
            model: "simulated".to_owned(),
            source: UsageSource::Telemetry,
            tokens: TokenCounts { input: calls * CALL_TOKENS, ..TokenCounts::default() },
            reported: Some(Money(row.usage.cost.unwrap_or_default().0 + cost)),
            priced: None,
        };
        let usage = self.certain("book", book_live_usage(&town, &row, &[record]));
        self.tell(format!("{run} has spent {}", usage.cost.unwrap_or_default()));
        if !self.ignores_limits() {
            self.apply_limit(
                &town,
                &row,
                usage.tokens.unwrap_or(0),
                usage.cost.unwrap_or_default(),
            );
        }
        self.observe();
    }

    fn apply_limit(&self, town: &Town, run: &Run, tokens: u64, cost: Money) {
        let settings = self.certain("settings", town.scheduler_settings());
        let limits = settings.run_limits_in(&run.rig);
        let progress = RunProgress { alive: Duration::ZERO, tokens, cost };
        let asked = self.state().asked_to_hand_over.get(&run.id).copied();
        match limit_step(limits, &progress, asked.as_ref()) {
            LimitStep::GoOn => {}
            LimitStep::AskToHandOver(limit) => {
                self.tell(format!("{} is asked to hand over", run.id));
                let marked = town.write(|writer| Ok(writer.mark_over_limit(run, limit)?));
                self.certain("mark", marked);
                self.state().asked_to_hand_over.insert(run.id.clone(), progress);
            }
            LimitStep::End => self.ask_to_end(&run.id),
        }
    }

    /// The end of a run as its supervisor writes it: an agent that was ended for a limit was not cancelled.
    pub(crate) fn end_of(&self, run: &RunId, end: SimulatedAgentEnd) -> RunEnd {
        let row = self.read(|reader| reader.run(run));
        let is_over = row.is_some_and(|row| row.over_limit.is_some() && row.ended_by.is_empty());
        if end == SimulatedAgentEnd::Cancelled && is_over {
            let lost = RunEnd::without_status(RunState::Lost, "it was over its limit");
            return RunEnd { loss: RunLoss::Budget, ..lost };
        }
        end.run_end()
    }

    /// No run goes beyond its limit by more than the call under way and the handoff.
    pub(crate) fn check_run_costs(&self, runs: &[Run]) {
        if runs.iter().all(|run| run.usage.cost.is_none()) {
            return;
        }
        let settings =
            self.certain("settings", self.town_without_seam("observer").scheduler_settings());
        for run in runs {
            let limits = settings.run_limits_in(&run.rig);
            let Some((limit, cost)) = limits.cost.zip(run.usage.cost) else { continue };
            // One call reaches the limit; the others are the handoff, and the one in which that ends.
            let calls = 1 + (limits.handoff_tokens / CALL_TOKENS).max(1);
            if cost.0 >= limit.0 + calls * CALL_MAX {
                let found = format!("{} has spent {cost} of {limit}", run.id);
                self.violated(Invariant::Budget, found);
            }
        }
    }

    /// No run starts for a bead whose earlier runs have used its budget.
    pub(crate) fn check_bead_budgets(&self, settings: &SchedulerSettings, new: &[&Run]) {
        for (_, limit) in settings.bead_budgets.iter().filter(|(kind, _)| kind.is_money()) {
            for run in new.iter().filter(|run| run.executor.takes_slot() && run.id.epoch > 1) {
                let RunId { bead, epoch } = &run.id;
                let spent = self.read(|reader| reader.spent_by_runs(bead, 0..=epoch - 1));
                if spent.cost.0 >= *limit {
                    let (spent, limit) = (spent.cost, Money(*limit));
                    let found = format!("{} starts, and {spent} of {limit} are spent", run.id);
                    self.violated(Invariant::Budget, found);
                }
            }
        }
    }

    /// New runs fit into the budget beside what was spent and what the others hold.
    pub(crate) fn check_budget(&self, settings: &SchedulerSettings, runs: &[Run]) {
        let is_day = |kind| kind == BudgetKind::CostPerDay;
        let Some(budget) = settings.budgets.iter().find(|budget| is_day(budget.kind)) else {
            return;
        };
        // Dates in the future count, and leave late.
        if self.state().set_back {
            return;
        }
        let from = budget.kind.counts_from(self.clock.peek());
        let spent = self.read(|reader| reader.spent_since(from));
        let spent = spent.iter().fold(0, |sum: u64, spent| sum.saturating_add(spent.cost.0));
        let live = runs.iter().filter(|run| run.holds_slot());
        let total = spent + held_by(budget.kind, live);
        if total > budget.limit {
            let (total, limit) = (Money(total), Money(budget.limit));
            let found = format!("a run starts, and {total} of {limit} are spent and held");
            self.violated(Invariant::Budget, found);
        }
    }
}
