//! One typed accessor for each setting. Code that uses a setting calls its accessor, so the value has passed all layers.

use std::time::Duration;

use super::{Layers, parse_bytes, parse_decimal};
use crate::checks::{CheckDefinition, PathPattern, parse_checks, parse_path_patterns};
use crate::cost::PriceTable;
use crate::hosting::PullRequestTrust;
use crate::schedule::Money;
use crate::time::parse_duration;
use crate::{Invalid, RigSlug};

/// The accessor of a setting, for tests that walk through all of them.
#[derive(Debug, Clone, Copy)]
pub struct Accessor {
    /// The name of the setting; `rig.*.…` stands for one per rig.
    pub setting: &'static str,
    /// The name of the method of [`Layers`].
    pub method: &'static str,
    /// The value that the method returns, as Rust prints it. The rig matters to the settings of a rig alone.
    pub read: fn(&Layers, &RigSlug) -> Result<String, Invalid>,
}

macro_rules! accessors {
    (
        town { $($method:ident: $type:ty, $name:literal;)* }
        rig { $($rig_method:ident: $rig_type:ty, $rig_name:literal;)* }
    ) => {
        impl Layers {
            $(
                #[doc = concat!("The value of `", $name, "` in force.")]
                pub fn $method(&self) -> Result<$type, Invalid> {
                    SettingValue::read($name, &self.get($name)?.value)
                }
            )*
            $(
                #[doc = concat!("The value of `", $rig_name, "` in force for this rig.")]
                pub fn $rig_method(&self, rig: &RigSlug) -> Result<$rig_type, Invalid> {
                    let name = $rig_name.replace('*', rig.as_str());
                    SettingValue::read(&name, &self.get(&name)?.value)
                }
            )*
        }

        /// The accessors of all settings.
        pub const ACCESSORS: &[Accessor] = &[
            $(Accessor {
                setting: $name,
                method: stringify!($method),
                read: |layers, _| Ok(format!("{:?}", layers.$method()?)),
            },)*
            $(Accessor {
                setting: $rig_name,
                method: stringify!($rig_method),
                read: |layers, rig| Ok(format!("{:?}", layers.$rig_method(rig)?)),
            },)*
        ];
    };
}

accessors! {
    town {
        scheduler_max_polecats: i64, "scheduler.max_polecats";
        scheduler_batch_size: i64, "scheduler.batch_size";
        scheduler_spawn_delay: Duration, "scheduler.spawn_delay";
        scheduler_spawn_parallelism: i64, "scheduler.spawn_parallelism";
        scheduler_order: String, "scheduler.order";
        scheduler_start_timeout: Duration, "scheduler.start_timeout";
        queue_enabled: bool, "queue.enabled";
        queue_max_polecats: i64, "queue.max_polecats";
        recovery_max_attempts: i64, "recovery.max_attempts";
        recovery_cooldown: Duration, "recovery.cooldown";
        recovery_stale_hooks: Duration, "recovery.stale_hooks";
        epics_auto_close: bool, "epics.auto_close";
        rescue_max: u64, "rescue.max";
        worker_stall_after: Duration, "worker.stall_after";
        worker_max_handoffs: i64, "worker.max_handoffs";
        worker_kill_grace: Duration, "worker.kill_grace";
        worker_limit_patience: Duration, "worker.limit_patience";
        worker_control_groups: bool, "worker.control_groups";
        worker_inherit_credentials: bool, "worker.inherit_credentials";
        worker_runtime: String, "worker.runtime";
        worker_rights: String, "worker.rights";
        worker_wrap: String, "worker.wrap";
        work_stale_after: Duration, "work.stale_after";
        work_claim: String, "work.claim";
        checks_max: i64, "checks.max";
        accounts_spread: bool, "accounts.spread";
        accounts_park_percent: i64, "accounts.park_percent";
        cost_prices: PriceTable, "cost.prices";
        budget_runs_per_hour: i64, "budget.runs_per_hour";
        budget_tokens_per_day: i64, "budget.tokens_per_day";
        budget_cost_per_day: Money, "budget.cost_per_day";
        budget_cost_per_month: Money, "budget.cost_per_month";
        budget_account_cost_per_day: Money, "budget.account_cost_per_day";
        budget_bead_tokens: i64, "budget.bead_tokens";
        budget_bead_cost: Money, "budget.bead_cost";
        budget_convoy_tokens: i64, "budget.convoy_tokens";
        budget_convoy_cost: Money, "budget.convoy_cost";
        budget_run_time: Duration, "budget.run_time";
        budget_run_cost: Money, "budget.run_cost";
        budget_run_tokens: i64, "budget.run_tokens";
        budget_handoff_tokens: i64, "budget.handoff_tokens";
        budget_handoff_time: Duration, "budget.handoff_time";
        guard_memory: bool, "guard.memory";
        guard_memory_min_percent: i64, "guard.memory_min_percent";
        guard_memory_min_mb: i64, "guard.memory_min_mb";
        guard_load_per_core: Money, "guard.load_per_core";
        guard_disk_min_mb: i64, "guard.disk_min_mb";
        host_grace: Duration, "host.grace";
        host_name: String, "host.name";
        host_address: String, "host.address";
        host_labels: String, "host.labels";
        host_rigs: String, "host.rigs";
        host_max_polecats: i64, "host.max_polecats";
        host_ssh_command: String, "host.ssh_command";
        daemon_scan_every: Duration, "daemon.scan_every";
        daemon_log_size: u64, "daemon.log_size";
        store_lock_timeout: Duration, "store.lock_timeout";
        serve_bind: String, "serve.bind";
        server_trusted_proxies: String, "server.trusted_proxies";
        deck_enabled: bool, "deck.enabled";
        deck_port: i64, "deck.port";
        deck_url: String, "deck.url";
        ports_base: i64, "ports.base";
        ports_count: i64, "ports.count";
        events_keep: Duration, "events.keep";
        logs_keep: Duration, "logs.keep";
        trash_keep: Duration, "trash.keep";
        hooks_enabled: bool, "hooks.enabled";
        hooks_timeout: Duration, "hooks.timeout";
        notify_command: String, "notify.command";
        notify_webhook: String, "notify.webhook";
        notify_secret: String, "notify.secret";
        mq_batch: i64, "mq.batch";
        mq_repairs: i64, "mq.repairs";
        review_max: i64, "review.max";
        mq_merge: String, "mq.merge";
        pr_poll: Duration, "pr.poll";
        pr_trust: PullRequestTrust, "pr.trust";
    }
    rig {
        rig_merge: String, "rig.*.merge";
        rig_review: String, "rig.*.review";
        rig_unblock: String, "rig.*.unblock";
        rig_author: String, "rig.*.author";
        rig_land: String, "rig.*.land";
        rig_hosting: String, "rig.*.hosting";
        rig_pr_head: String, "rig.*.pr_head";
        rig_host: String, "rig.*.host";
        rig_host_labels: String, "rig.*.host_labels";
        rig_max_polecats: i64, "rig.*.max_polecats";
        rig_budget_runs_per_hour: i64, "rig.*.budget.runs_per_hour";
        rig_budget_tokens_per_day: i64, "rig.*.budget.tokens_per_day";
        rig_budget_cost_per_day: Money, "rig.*.budget.cost_per_day";
        rig_budget_run_time: Duration, "rig.*.budget.run_time";
        rig_budget_run_cost: Money, "rig.*.budget.run_cost";
        rig_budget_run_tokens: i64, "rig.*.budget.run_tokens";
        rig_command: String, "rig.*.command";
        rig_runtime: String, "rig.*.runtime";
        rig_setup: String, "rig.*.setup";
        rig_overlay: String, "rig.*.overlay";
        rig_wrap: String, "rig.*.wrap";
        rig_checkout: String, "rig.*.checkout";
        rig_warm_worktrees: i64, "rig.*.warm_worktrees";
        rig_checks: Vec<CheckDefinition>, "rig.*.checks";
        rig_protect: Vec<PathPattern>, "rig.*.protect";
    }
}

/// A value that a setting has in its canonical spelling.
trait SettingValue: Sized {
    fn read(name: &str, value: &str) -> Result<Self, Invalid>;
}

impl SettingValue for bool {
    fn read(name: &str, value: &str) -> Result<Self, Invalid> {
        value.parse().map_err(|_| wrong(name, value, "true or false"))
    }
}

impl SettingValue for i64 {
    fn read(name: &str, value: &str) -> Result<Self, Invalid> {
        value.parse().map_err(|_| wrong(name, value, "a number"))
    }
}

/// Bytes.
impl SettingValue for u64 {
    fn read(name: &str, value: &str) -> Result<Self, Invalid> {
        parse_bytes(value).ok_or_else(|| wrong(name, value, "a size"))
    }
}

impl SettingValue for Money {
    fn read(name: &str, value: &str) -> Result<Self, Invalid> {
        parse_decimal(value).map(Self).ok_or_else(|| wrong(name, value, "a number"))
    }
}

impl SettingValue for Duration {
    fn read(name: &str, value: &str) -> Result<Self, Invalid> {
        parse_duration(value).map_err(|_| wrong(name, value, "a duration"))
    }
}

impl SettingValue for String {
    fn read(_name: &str, value: &str) -> Result<Self, Invalid> {
        Ok(value.to_owned())
    }
}

impl SettingValue for Vec<CheckDefinition> {
    fn read(_name: &str, value: &str) -> Result<Self, Invalid> {
        parse_checks(value)
    }
}

impl SettingValue for Vec<PathPattern> {
    fn read(_name: &str, value: &str) -> Result<Self, Invalid> {
        parse_path_patterns(value)
    }
}

impl SettingValue for PriceTable {
    fn read(_name: &str, value: &str) -> Result<Self, Invalid> {
        Self::parse(value)
    }
}

impl SettingValue for PullRequestTrust {
    fn read(_name: &str, value: &str) -> Result<Self, Invalid> {
        Self::parse(value)
    }
}

fn wrong(name: &str, value: &str, kind: &str) -> Invalid {
    Invalid(format!("{name} is {value}, not {kind}"))
}

#[cfg(test)]
mod tests {
    use super::super::KEYS;
    use super::*;

    #[test]
    fn every_setting_has_one_accessor_with_its_name() {
        let settings: Vec<&str> = KEYS.iter().map(|setting| setting.name).collect();
        let accessors: Vec<&str> = ACCESSORS.iter().map(|accessor| accessor.setting).collect();
        assert_eq!(accessors, settings);
        for Accessor { setting, method, .. } in ACCESSORS {
            assert_eq!(*method, setting.replace(".*", "").replace('.', "_"));
        }
    }

    #[test]
    fn every_default_is_read() {
        let rig = RigSlug::parse("web").unwrap();
        for Accessor { setting, read, .. } in ACCESSORS {
            read(&Layers::default(), &rig).unwrap_or_else(|error| panic!("{setting}: {error}"));
        }
    }
}
