//! The settings that scheduling looks at, as values.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gt_core::decide::{
    BudgetKind, BudgetLimit, BudgetScope, Caps, DispatchOrder, MemoryFloor, ReviewCap, RunLimits,
};
use gt_core::runtime::{CUSTOM, DEFAULT};
use gt_core::schedule::Money;
use gt_core::settings::{Layers, plain_names};
use gt_core::{Rig, RigSlug};

use crate::settings::{file_layers, layers_over};
use crate::{Result, Town};

/// The settings of the scheduler that are in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerSettings {
    /// Most live runs; nothing in direct mode, where slung work starts at once.
    pub max_polecats: Option<u32>,
    /// Most starts in one cycle; 0 fills every free slot.
    pub batch_size: u32,
    /// Least time between two starts.
    pub spawn_delay: Duration,
    /// How many starts are under way at once.
    pub spawn_parallelism: usize,
    /// The order in which contexts start.
    pub order: DispatchOrder,
    /// How long a start may take.
    pub start_timeout: Duration,
    /// Whether work that was queued by hand starts without a cycle by hand.
    pub queue_enabled: bool,
    /// Queued work starts while fewer runs than this are live; nothing for no limit.
    pub queue_max_polecats: Option<u32>,
    /// How many runs a bead gets before a person is asked.
    pub max_attempts: u32,
    /// Least time between two redispatches of a bead.
    pub cooldown: Duration,
    /// How long a hook without a run may be untouched before the daemon takes it back; zero is for ever.
    pub stale_hooks: Duration,
    /// Time between asking a worker to end and ending it.
    pub kill_grace: Duration,
    /// How long an agent may wait for the end of a usage limit before it is ended; 0 for ever.
    pub limit_patience: Duration,
    /// Whether a run has a control group, where those can be had.
    pub control_groups: bool,
    /// Most live runs in each rig that has a limit.
    pub rig_caps: BTreeMap<RigSlug, u32>,
    /// The command of each rig that has one.
    pub commands: BTreeMap<RigSlug, String>,
    /// The runtime of each rig that names one.
    pub runtimes: BTreeMap<RigSlug, String>,
    /// The runtime of all others, if the town names one.
    pub runtime: Option<String>,
    /// Whether work that names no account gets another one while the default has no room.
    pub spreads_accounts: bool,
    /// The budgets of the town and of its rigs.
    pub budgets: Vec<BudgetLimit>,
    /// The maximum cost of each account in a day, in millionths; 0 for no limit.
    pub account_cost_per_day: u64,
    /// The maximum usage of all runs of each bead.
    pub bead_budgets: Vec<(BudgetKind, u64)>,
    /// The maximum usage of all runs of the beads of each convoy.
    pub convoy_budgets: Vec<(BudgetKind, u64)>,
    /// The limits of each run, and of each run in a rig that has limits of its own.
    pub run_limits: RunLimits,
    rig_run_limits: BTreeMap<RigSlug, RunLimits>,
    /// The memory that must stay free; nothing if it is not checked.
    pub memory_floor: Option<MemoryFloor>,
    /// How busy each core may be, in hundredths; 0 for no limit.
    pub load_per_core: u64,
    /// The megabytes of the disk that must stay free; 0 for no limit.
    pub disk_min_mb: u64,
    /// While so many merge requests wait for a review, nothing new starts in rigs that require reviews.
    pub review_max: Option<u32>,
    /// The rigs that only one host works on, and that host.
    pub rig_hosts: BTreeMap<RigSlug, String>,
    /// The labels that a host must have to work on a rig.
    pub rig_labels: BTreeMap<RigSlug, BTreeSet<String>>,
    /// The rigs that require reviews.
    pub reviewed_rigs: BTreeSet<RigSlug>,
    /// The rigs whose work may start from the accepted commit of its blocker.
    pub stacking_rigs: BTreeSet<RigSlug>,
}

/// The settings that a cycle by hand may override, for that cycle only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The cap in force; 0 or less is none.
    pub max_polecats: Option<i64>,
    /// Most starts; 0 is no limit.
    pub batch_size: Option<u32>,
    /// How many starts are under way at once; 0 or less is the default.
    pub spawn_parallelism: Option<i64>,
}

const PARALLELISM_DEFAULT: usize = 5;

/// The budgets without a window that are set.
fn in_all(tokens: i64, cost: Money) -> Vec<(BudgetKind, u64)> {
    let all = [(BudgetKind::TokensInAll, tokens.unsigned_abs()), (BudgetKind::CostInAll, cost.0)];
    all.into_iter().filter(|(_, limit)| *limit > 0).collect()
}

impl SchedulerSettings {
    /// Whether beads or convoys have budgets.
    pub fn has_work_budgets(&self) -> bool {
        !self.bead_budgets.is_empty() || !self.convoy_budgets.is_empty()
    }

    /// The settings in the layers. Every value in them was checked when it was read.
    pub fn of(layers: &Layers) -> Result<Self> {
        let count = |number: i64| u32::try_from(number.max(0)).unwrap_or(u32::MAX);
        let positive = |number: i64| Some(count(number)).filter(|number| *number > 0);
        let mut budgets = [
            (BudgetKind::RunsPerHour, count(layers.budget_runs_per_hour()?).into()),
            (BudgetKind::TokensPerDay, layers.budget_tokens_per_day()?.unsigned_abs()),
            (BudgetKind::CostPerDay, layers.budget_cost_per_day()?.0),
            (BudgetKind::CostPerMonth, layers.budget_cost_per_month()?.0),
        ]
        .map(|(kind, limit)| BudgetLimit { kind, scope: BudgetScope::All, limit })
        .to_vec();
        let tokens = |number: i64| Some(number.unsigned_abs()).filter(|number| *number > 0);
        let run_limits = RunLimits {
            time: Some(layers.budget_run_time()?).filter(|time| !time.is_zero()),
            cost: Some(layers.budget_run_cost()?).filter(|cost| cost.0 > 0),
            tokens: tokens(layers.budget_run_tokens()?),
            handoff_tokens: layers.budget_handoff_tokens()?.unsigned_abs(),
            handoff_time: layers.budget_handoff_time()?,
        };
        let mut rig_run_limits = BTreeMap::new();
        let mut rig_caps = BTreeMap::new();
        let mut commands = BTreeMap::new();
        let mut runtimes = BTreeMap::new();
        let mut rig_hosts = BTreeMap::new();
        let mut rig_labels = BTreeMap::new();
        let mut reviewed_rigs = BTreeSet::new();
        let mut stacking_rigs = BTreeSet::new();
        for rig in layers.rigs() {
            let limit = positive(layers.rig_max_polecats(&rig)?);
            rig_caps.extend(limit.map(|limit| (rig.clone(), limit)));
            let of_rig = [
                (BudgetKind::RunsPerHour, count(layers.rig_budget_runs_per_hour(&rig)?).into()),
                (BudgetKind::TokensPerDay, layers.rig_budget_tokens_per_day(&rig)?.unsigned_abs()),
                (BudgetKind::CostPerDay, layers.rig_budget_cost_per_day(&rig)?.0),
            ];
            budgets.extend(of_rig.map(|(kind, limit)| BudgetLimit {
                kind,
                scope: BudgetScope::Rig(rig.clone()),
                limit,
            }));
            let own = RunLimits {
                time: Some(layers.rig_budget_run_time(&rig)?).filter(|time| !time.is_zero()),
                cost: Some(layers.rig_budget_run_cost(&rig)?).filter(|cost| cost.0 > 0),
                tokens: tokens(layers.rig_budget_run_tokens(&rig)?),
                ..RunLimits::default()
            };
            rig_run_limits.insert(rig.clone(), own.or(&run_limits));
            let said = |value: String| Some(value).filter(|value| !value.trim().is_empty());
            let with_rig = |value: String| (rig.clone(), value);
            commands.extend(said(layers.rig_command(&rig)?).map(with_rig));
            runtimes.extend(said(layers.rig_runtime(&rig)?).map(with_rig));
            rig_hosts.extend(said(layers.rig_host(&rig)?).map(with_rig));
            let labels: BTreeSet<String> =
                plain_names(&layers.rig_host_labels(&rig)?).map(ToOwned::to_owned).collect();
            if !labels.is_empty() {
                rig_labels.insert(rig.clone(), labels);
            }
            if layers.rig_review(&rig)? == "required" {
                reviewed_rigs.insert(rig.clone());
            }
            if layers.rig_unblock(&rig)? == "accepted" {
                stacking_rigs.insert(rig.clone());
            }
        }
        budgets.retain(|budget| budget.limit > 0);
        let floor = MemoryFloor {
            percent: count(layers.guard_memory_min_percent()?),
            mb: count(layers.guard_memory_min_mb()?).into(),
        };
        Ok(Self {
            spreads_accounts: layers.accounts_spread()?,
            budgets,
            bead_budgets: in_all(layers.budget_bead_tokens()?, layers.budget_bead_cost()?),
            convoy_budgets: in_all(layers.budget_convoy_tokens()?, layers.budget_convoy_cost()?),
            account_cost_per_day: layers.budget_account_cost_per_day()?.0,
            run_limits,
            rig_run_limits,
            memory_floor: layers.guard_memory()?.then_some(floor),
            disk_min_mb: count(layers.guard_disk_min_mb()?).into(),
            load_per_core: layers.guard_load_per_core()?.0 / 10_000,
            max_polecats: positive(layers.scheduler_max_polecats()?),
            batch_size: count(layers.scheduler_batch_size()?),
            spawn_delay: layers.scheduler_spawn_delay()?,
            spawn_parallelism: parallelism(layers.scheduler_spawn_parallelism()?),
            order: DispatchOrder::parse(&layers.scheduler_order()?)?,
            start_timeout: layers.scheduler_start_timeout()?,
            queue_enabled: layers.queue_enabled()?,
            queue_max_polecats: positive(layers.queue_max_polecats()?),
            max_attempts: count(layers.recovery_max_attempts()?).max(1),
            cooldown: layers.recovery_cooldown()?,
            stale_hooks: layers.recovery_stale_hooks()?,
            kill_grace: layers.worker_kill_grace()?,
            limit_patience: layers.worker_limit_patience()?,
            control_groups: layers.worker_control_groups()?,
            review_max: positive(layers.review_max()?),
            rig_hosts,
            rig_labels,
            reviewed_rigs,
            stacking_rigs,
            rig_caps,
            commands,
            runtimes,
            runtime: Some(layers.worker_runtime()?).filter(|name| !name.is_empty()),
        })
    }

    /// The same with what a cycle sets differently.
    #[must_use]
    pub fn overridden(mut self, overrides: &Overrides) -> Self {
        if let Some(asked) = overrides.max_polecats {
            // In direct mode too it holds for everything that this cycle starts, queued or not.
            let cap = u32::try_from(asked).ok().filter(|cap| *cap > 0);
            if !self.is_deferred() {
                self.queue_max_polecats = cap;
            }
            self.max_polecats = cap;
        }
        if let Some(batch_size) = overrides.batch_size {
            self.batch_size = batch_size;
        }
        if let Some(asked) = overrides.spawn_parallelism {
            self.spawn_parallelism = parallelism(asked);
        }
        self
    }

    /// The limits of a run in a rig.
    pub fn run_limits_in(&self, rig: &RigSlug) -> &RunLimits {
        self.rig_run_limits.get(rig).unwrap_or(&self.run_limits)
    }

    /// Whether a rig knows how to run anything: a command or a runtime is set for it, or it has a repository, where
    /// the default agent can work.
    pub fn knows_how(&self, rig: &Rig) -> bool {
        let said = self.commands.contains_key(&rig.slug) || self.runtimes.contains_key(&rig.slug);
        said || self.runtime.is_some() || rig.has_trees()
    }

    /// The name of the runtime that works in a rig: the one that was asked for, else that of the rig, that of the town, and
    /// at last the usual one. Empty for the command of the rig, whose runs have nothing to do with those of others.
    pub fn runtime_in<'a>(&'a self, rig: &RigSlug, asked: Option<&'a str>) -> &'a str {
        let of_rig = || self.runtimes.get(rig).map(String::as_str);
        let named = asked.or_else(of_rig).or(self.runtime.as_deref());
        let has_command = self.commands.contains_key(rig);
        match named {
            Some(CUSTOM) | None if has_command => "",
            Some(name) => name,
            None => DEFAULT,
        }
    }

    /// The rigs whose own command is not used because a runtime counts before it, each with the setting that names that
    /// runtime and its value.
    pub fn unused_commands(&self) -> Vec<(&RigSlug, String, &str)> {
        let mut rigs: Vec<&RigSlug> = self.commands.keys().collect();
        rigs.sort_unstable();
        let unused = |rig: &'_ RigSlug| {
            let of_rig = self.runtimes.get(rig).map(|name| (format!("rig.{rig}.runtime"), name));
            let of_town = || Some(("worker.runtime".to_owned(), self.runtime.as_ref()?));
            of_rig.or_else(of_town).filter(|(_, name)| *name != CUSTOM)
        };
        let found = rigs.into_iter().filter_map(|rig| unused(rig).map(|found| (rig, found)));
        found.map(|(rig, (setting, name))| (rig, setting, name.as_str())).collect()
    }

    /// Whether slung work waits for a slot instead of starting at once.
    pub fn is_deferred(&self) -> bool {
        self.max_polecats.is_some()
    }

    /// The cap that queued work is under.
    pub fn cap_in_force(&self) -> Option<u32> {
        if self.is_deferred() { self.max_polecats } else { self.queue_max_polecats }
    }

    /// Every cap that settings alone decide. `deferred` is the mode before anything was overridden: a cycle
    /// that lifts the town's cap does not put the queue's in its place.
    pub fn caps(&self, deferred: bool) -> Caps {
        Caps {
            town: self.max_polecats,
            queue: if deferred { None } else { self.queue_max_polecats },
            rigs: self.rig_caps.clone(),
            review: self.review_max.map(|limit| ReviewCap {
                limit,
                waiting: 0,
                rigs: self.reviewed_rigs.clone(),
            }),
            ..Caps::default()
        }
    }
}

fn parallelism(asked: i64) -> usize {
    usize::try_from(asked).ok().filter(|asked| *asked > 0).unwrap_or(PARALLELISM_DEFAULT)
}

impl Town {
    /// The settings of the scheduler that are in force.
    pub fn scheduler_settings(&self) -> Result<SchedulerSettings> {
        let files = file_layers(self)?;
        self.read(|reader| SchedulerSettings::of(&layers_over(&files, reader)?))
    }
}

#[cfg(test)]
mod tests {
    use gt_core::settings::SettingOrigin;

    use super::*;

    fn settings(values: &[(&str, &str)]) -> SchedulerSettings {
        let mut layers = Layers::default();
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        layers.add(values, &SettingOrigin::Store).unwrap();
        SchedulerSettings::of(&layers).unwrap()
    }

    #[test]
    fn by_default_slung_work_starts_at_once_and_queued_work_is_capped_at_ten() {
        let settings = settings(&[]);
        assert!(!settings.is_deferred());
        assert_eq!(settings.cap_in_force(), Some(10));
        assert_eq!(settings.caps(false).town, None);
        assert_eq!((settings.batch_size, settings.spawn_parallelism), (0, 5));
    }

    #[test]
    fn a_cap_above_zero_defers_and_is_the_only_one() {
        let settings = settings(&[
            ("scheduler.max_polecats", "3"),
            ("queue.max_polecats", "1"),
            ("rig.web.max_polecats", "2"),
            ("rig.api.max_polecats", "0"),
            ("polecat_spawn_batch_size", "-1"),
        ]);
        assert!(settings.is_deferred());
        let caps = settings.caps(true);
        assert_eq!((caps.town, caps.queue), (Some(3), None));
        assert_eq!(caps.rigs.into_values().collect::<Vec<_>>(), [2]);
        assert_eq!(settings.spawn_parallelism, 5);
    }

    #[test]
    fn a_runtime_is_chosen_by_the_request_then_the_rig_then_the_town() {
        let [web, api] = ["web", "api"].map(|rig| RigSlug::parse(rig).unwrap());
        let plain = settings(&[("rig.web.command", "make {bead}")]);
        assert_eq!((plain.runtime_in(&web, None), plain.runtime_in(&api, None)), ("", DEFAULT));
        let said = settings(&[
            ("rig.web.command", "make {bead}"),
            ("rig.web.runtime", "codex"),
            ("worker.runtime", "amp"),
        ]);
        assert_eq!((said.runtime_in(&web, None), said.runtime_in(&api, None)), ("codex", "amp"));
        assert_eq!(said.runtime_in(&web, Some("goose")), "goose");
        // However it is called, it is the command of the rig.
        assert_eq!(said.runtime_in(&web, Some(CUSTOM)), "");
    }

    #[test]
    fn an_override_changes_the_cap_in_force_up_or_down_or_away() {
        let with = |settings: SchedulerSettings, cap| {
            let overrides = Overrides { max_polecats: Some(cap), ..Overrides::default() };
            settings.overridden(&overrides)
        };
        let deferred = settings(&[("scheduler.max_polecats", "3")]);
        assert_eq!(with(deferred.clone(), 9).caps(true).town, Some(9));
        let lifted = with(deferred, -1).caps(true);
        assert_eq!((lifted.town, lifted.queue), (None, None));
        let direct = settings(&[]);
        let capped = with(direct.clone(), 2).caps(false);
        assert_eq!((capped.town, capped.queue), (Some(2), Some(2)));
        assert_eq!(with(direct, 0).caps(false).queue, None);
    }
}
