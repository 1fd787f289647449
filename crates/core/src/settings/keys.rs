//! The registry of settings.

use super::value::SettingKind;
use crate::similar_names::closest;
use crate::{Invalid, RigSlug};

/// One setting: the single source for parsing, help and the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its name; `rig.*.…` stands for one per rig.
    pub name: &'static str,
    /// Older names that mean the same.
    pub aliases: &'static [&'static str],
    /// The kind of value.
    pub kind: SettingKind,
    /// The value if none is set; empty for none.
    pub default: &'static str,
    /// One line for help and the reference.
    pub help: &'static str,
}

/// The settings that files cannot set, because a worker can write those files.
const STORE_ONLY: &[&str] =
    &["cost.prices", "worker.rights", "worker.wrap", "rig.*.wrap", "rig.*.checks", "rig.*.protect"];

/// The settings that only the files of a host set, because they describe that host.
const FILE_ONLY: &[&str] =
    &["host.name", "host.address", "host.labels", "host.rigs", "host.max_polecats"];

impl Setting {
    /// Whether only the file of a host sets it.
    pub fn is_file_only(&self) -> bool {
        FILE_ONLY.contains(&self.name)
    }

    /// Whether only the store sets it.
    pub fn is_store_only(&self) -> bool {
        STORE_ONLY.contains(&self.name)
    }
}

/// The full name of a setting, with the rig filled in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingName(String);

impl SettingName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for SettingName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

const COUNT: SettingKind = SettingKind::Integer { min: 0, max: 1_000_000 };

macro_rules! settings {
    ($($name:literal $([$($alias:literal),*])? : $kind:expr, $default:literal, $help:literal;)*) => {
        /// Every setting there is.
        pub const KEYS: &[Setting] = &[$(Setting {
            name: $name,
            aliases: &[$($($alias),*)?],
            kind: $kind,
            default: $default,
            help: $help,
        }),*];
    };
}

settings! {
    "scheduler.max_polecats": SettingKind::Integer { min: -1, max: 100_000 }, "-1",
        "Most live runs in the town; above 0 slung work waits for a slot, -1 or 0 starts it at once";
    "scheduler.batch_size" ["queue.batch_size"]: COUNT, "0",
        "Most starts in one dispatch cycle; 0 fills every free slot";
    "scheduler.spawn_delay" ["queue.spawn_delay"]: SettingKind::Duration, "0s",
        "Least time between two starts";
    "scheduler.spawn_parallelism" ["polecat_spawn_batch_size"]: SettingKind::Integer { min: -1, max: 1_000 }, "5",
        "How many starts are under way at once; 0 or less is 5";
    "scheduler.order": SettingKind::Choice(&["priority", "fifo"]), "priority",
        "Which waiting work goes first";
    "scheduler.start_timeout": SettingKind::Duration, "5m",
        "How long a start may take before it counts as failed";
    "queue.enabled": SettingKind::Bool, "false",
        "Whether the daemon dispatches work queued by hand in direct mode";
    "queue.max_polecats" ["queue_max_polecats"]: COUNT, "10",
        "Most live runs for work queued by hand in direct mode; 0 is no limit";
    "recovery.max_attempts": SettingKind::Integer { min: 1, max: 1_000 }, "3",
        "How many runs a bead gets before a person is asked";
    "recovery.cooldown": SettingKind::Duration, "5m",
        "Least time between two redispatches of a bead";
    "recovery.stale_hooks": SettingKind::Duration, "1h",
        "How long a hooked bead without a run may be untouched before the daemon opens it again; 0 is never";
    "epics.auto_close": SettingKind::Bool, "true",
        "Whether an epic is closed with the last of its parts, if none of them failed";
    "rescue.max": SettingKind::Bytes, "256MiB",
        "Largest rescue commit";
    "worker.stall_after": SettingKind::Duration, "15m",
        "Silence after which a worker is reported";
    "worker.max_handoffs": COUNT, "20",
        "Handoffs of a run in a row without a commit or a step before a person is asked; 0 is no limit";
    "worker.kill_grace": SettingKind::Duration, "10s",
        "Time between asking a worker to end and ending it";
    "worker.limit_patience": SettingKind::Duration, "5m",
        "How long an agent may wait for the end of a usage limit before it is ended and its account is parked; 0 for ever";
    "worker.control_groups": SettingKind::Bool, "true",
        "Whether the processes of each run are kept in a control group of the kernel, where those can be had";
    "worker.inherit_credentials": SettingKind::Bool, "false",
        "Whether workers in a rig with a repository get the ssh agent and the tokens of git hosts that gt has";
    "worker.runtime": SettingKind::Runtime, "",
        "Program that works on beads; without one, the rig's command if it has one, else claude";
    "worker.rights": SettingKind::WorkerRights, "worker",
        "What workers may change beside their own work: worker is nothing, operator everything, or a list of beads, queue, reviews, rigs, settings, accounts, tokens and store";
    "worker.wrap": SettingKind::CommandWrap, "",
        "Program around every agent, setup command and check, such as a sandbox, with {command}, {tree}, {repository}, {town}, {rig}, {run} and {variable}";
    "work.stale_after": SettingKind::Duration, "30m",
        "Silence after which a work item taken over HTTP is blocked";
    "work.claim": SettingKind::Choice(&["any", "dispatched"]), "any",
        "Whether an agent that asks for work gets any item that fits, or only one that was dispatched to it";
    "checks.max": SettingKind::Integer { min: 1, max: 64 }, "1",
        "Most checks of a rig that run at once on a host, each in a worktree of its own";
    "accounts.spread": SettingKind::Bool, "false",
        "Whether work that names no account gets another one while the default has no room";
    "accounts.park_percent": SettingKind::Integer { min: 0, max: 100 }, "95",
        "No starts on an account once so many percent of a window of its subscription are used, until that begins anew; 0 is never";
    "cost.prices": SettingKind::Prices, "",
        "Prices of models beside the built-in ones, in dollars for a million tokens: model=input/output or model=input/output/cache-read/cache-write, separated by commas";
    "budget.runs_per_hour": COUNT, "0",
        "Most starts per hour; 0 is no limit";
    "budget.tokens_per_day": SettingKind::Integer { min: 0, max: 1_000_000_000_000 }, "0",
        "No starts after so many tokens in a day, as far as agents report them; 0 is no limit";
    "budget.cost_per_day": SettingKind::Decimal, "0",
        "No starts after so much money in a day, as far as agents report it; 0 is no limit";
    "budget.cost_per_month": SettingKind::Decimal, "0",
        "No starts after so much money in a month of the calendar (UTC), as far as agents report it; 0 is no limit";
    "budget.account_cost_per_day": SettingKind::Decimal, "0",
        "No starts on an account after so much money in a day on it; 0 is no limit";
    "budget.bead_tokens": SettingKind::Integer { min: 0, max: 1_000_000_000_000 }, "0",
        "No starts for a bead after so many tokens of all its runs; 0 is no limit";
    "budget.bead_cost": SettingKind::Decimal, "0",
        "No starts for a bead after so much money for all its runs; 0 is no limit";
    "budget.convoy_tokens": SettingKind::Integer { min: 0, max: 1_000_000_000_000 }, "0",
        "No starts for the beads of a convoy after so many tokens of all their runs; 0 is no limit";
    "budget.convoy_cost": SettingKind::Decimal, "0",
        "No starts for the beads of a convoy after so much money for all their runs; 0 is no limit";
    "budget.run_time": SettingKind::Duration, "4h",
        "How long a run may take before its worker is asked to hand over; 0 is no limit";
    "budget.run_cost": SettingKind::Decimal, "0",
        "What a run may cost before its worker is asked to hand over, as far as agents report it; 0 is no limit";
    "budget.run_tokens": SettingKind::Integer { min: 0, max: 1_000_000_000_000 }, "0",
        "How many tokens a run may use before its worker is asked to hand over, as far as agents report them; 0 is no limit";
    "budget.handoff_tokens": SettingKind::Integer { min: 0, max: 1_000_000_000_000 }, "200000",
        "How many more tokens a worker may use to hand over before its run is ended; 0 ends it at once";
    "budget.handoff_time": SettingKind::Duration, "5m",
        "How long a worker has to hand over before its run is ended";
    "guard.memory": SettingKind::Bool, "true",
        "Whether nothing starts while this machine has too little memory left";
    "guard.memory_min_percent": SettingKind::Integer { min: 0, max: 90 }, "5",
        "How much of all memory must be left, in hundredths";
    "guard.memory_min_mb": SettingKind::Integer { min: 0, max: 100_000_000 }, "256",
        "How many megabytes of memory must be left";
    "guard.load_per_core": SettingKind::Decimal, "0",
        "No starts while the load for each core is at least this; 0 is no limit";
    "guard.disk_min_mb": SettingKind::Integer { min: 0, max: 100_000_000 }, "512",
        "No starts while fewer megabytes are free on the disk of the town, and the oldest logs of ended runs are removed; 0 is no limit";
    "host.grace": SettingKind::Duration, "15m",
        "How long a host may be out of sight before its runs are lost; its own workers stop after two thirds of it";
    "host.name": SettingKind::PlainName, "",
        "Name of this host, in its own settings/config.json; without one, the name of its machine";
    "host.address": SettingKind::Text, "",
        "Address by which people and other hosts reach this host, in its own settings/config.json";
    "host.labels": SettingKind::PlainNames, "",
        "Labels of this host, in its own settings/config.json; rigs ask for them with rig.<name>.host_labels";
    "host.rigs": SettingKind::PlainNames, "",
        "Rigs that this host works on, in its own settings/config.json; empty is all";
    "host.max_polecats": COUNT, "0",
        "Most live runs on this host, in its own settings/config.json; 0 is no limit";
    "host.ssh_command": SettingKind::Command, "ssh -T -oBatchMode=yes -oConnectTimeout=10 -oServerAliveInterval=15",
        "Program that reaches other machines for gt host add and gt host upgrade, with its options";
    "daemon.scan_every": SettingKind::Duration, "30s",
        "How often the daemon checks everything, even if it was told of no change";
    "daemon.log_size": SettingKind::Bytes, "8MiB",
        "How large the daemon's log grows before it is put aside; five older ones are kept";
    "store.lock_timeout": SettingKind::Duration, "30s",
        "How long a write waits for a program that holds an SQLite store, before it fails and names it; 0s waits without limit";
    "serve.bind": SettingKind::Text, "",
        "Where the daemon serves the work queue over HTTP, such as 127.0.0.1:8080; nothing means that it does not";
    "server.trusted_proxies": SettingKind::Networks, "",
        "Addresses of reverse proxies whose X-Forwarded-For is believed, such as 10.0.0.7,192.168.0.0/16";
    "deck.enabled": SettingKind::Bool, "true",
        "Whether the daemon serves the flight deck on this machine (gt deck opens it)";
    "deck.port": SettingKind::Integer { min: 0, max: 65_535 }, "0",
        "Port of the flight deck on this machine; 0 lets the daemon choose one, which it keeps";
    "deck.url": SettingKind::WebAddress, "",
        "Address by which people reach the flight deck through a proxy, such as https://town.example/gt/deck/; links use it";
    "ports.base": SettingKind::Integer { min: 1, max: 65_535 }, "20000",
        "First port of the ranges that trees get, each its own (GT_PORT_BASE)";
    "ports.count": SettingKind::Integer { min: 0, max: 10_000 }, "10",
        "How many ports each tree gets (GT_PORT_COUNT); 0 is none";
    "events.keep": SettingKind::Duration, "90d",
        "How long events are kept";
    "logs.keep": SettingKind::Duration, "90d",
        "How long the files of ended runs and the outputs of checks are kept";
    "trash.keep": SettingKind::Duration, "30d",
        "How long removed trees are kept";
    "hooks.enabled": SettingKind::Bool, "true",
        "Whether the programs in the hooks directory are run";
    "hooks.timeout": SettingKind::Duration, "10s",
        "How long a hook may run before it is ended";
    "notify.command": SettingKind::Command, "",
        "Program that is told about what needs a person";
    "notify.webhook": SettingKind::WebAddress, "",
        "Address that is told about what needs a person";
    "notify.secret": SettingKind::Secret, "",
        "Signs what the address of notify.webhook is told";
    "mq.batch": SettingKind::Integer { min: 1, max: 100 }, "8",
        "Most merge requests that are put on the target and checked together";
    "mq.repairs": SettingKind::Integer { min: 0, max: 100 }, "2",
        "How often work that conflicts or fails a check goes back to a worker before a person is asked";
    "review.max": COUNT, "0",
        "While so many merge requests wait for a review, nothing new starts in rigs that require reviews; 0 is no limit";
    "mq.merge": SettingKind::Choice(&["mr", "direct", "pr", "local"]), "mr",
        "How finished work reaches the target branch, unless its sling or rig says otherwise: through the merge queue, at once and unchecked, by a pull request, or not at all";
    "pr.poll": SettingKind::Duration, "1m",
        "How often open pull requests, and branches that people merge, are looked at";
    "pr.trust": SettingKind::PullRequestTrust, "write",
        "Whose comments on a pull request start a repair: write (people with write access), all, or logins separated by commas";
    "rig.*.merge": SettingKind::Choice(&["", "mr", "direct", "pr", "local"]), "",
        "How finished work of this rig reaches the target branch, unless its sling says otherwise; empty is mq.merge";
    "rig.*.review": SettingKind::Choice(&["optional", "required"]), "optional",
        "Whether a person has to approve the merge requests of this rig";
    "rig.*.unblock": SettingKind::Choice(&["landed", "accepted"]), "landed",
        "When work that waits for a bead of this rig starts: when that has landed, or from its accepted commit before; it never lands before";
    "rig.*.author": SettingKind::Choice(&["person", "agent"]), "person",
        "The author of commits that the merge queue lands in this rig: the person that git knows on this machine, or the agent";
    "rig.*.land": SettingKind::Choice(&["rebase", "squash", "merge"]), "rebase",
        "How the merge queue puts work on the target branch of this rig";
    "rig.*.hosting": SettingKind::HostingProvider, "",
        "Hosting service of this rig's origin: gh, glab or a file of your own; without one, the address of the origin says it";
    "rig.*.pr_head": SettingKind::ForkOwner, "",
        "Owner of the fork that branches of pull requests of this rig are pushed to; without one, the origin itself";
    "rig.*.host": SettingKind::Text, "",
        "Host that alone starts, checks and lands the work of this rig, as gt host show names it; empty is every host. A rig gets it when its origin is a directory and other hosts share the store";
    "rig.*.host_labels": SettingKind::PlainNames, "",
        "Labels that a host must have to start work of this rig; empty is every host";
    "rig.*.max_polecats": COUNT, "0",
        "Most live runs in this rig; 0 is no limit";
    "rig.*.budget.runs_per_hour": COUNT, "0",
        "Most starts per hour in this rig; 0 is no limit";
    "rig.*.budget.tokens_per_day": SettingKind::Integer { min: 0, max: 1_000_000_000_000 }, "0",
        "No starts in this rig after so many tokens in a day; 0 is no limit";
    "rig.*.budget.cost_per_day": SettingKind::Decimal, "0",
        "No starts in this rig after so much money in a day; 0 is no limit";
    "rig.*.budget.run_time": SettingKind::Duration, "0s",
        "How long a run in this rig may take; 0 is the limit of the town, budget.run_time";
    "rig.*.budget.run_cost": SettingKind::Decimal, "0",
        "What a run in this rig may cost; 0 is the limit of the town, budget.run_cost";
    "rig.*.budget.run_tokens": SettingKind::Integer { min: 0, max: 1_000_000_000_000 }, "0",
        "How many tokens a run in this rig may use; 0 is the limit of the town, budget.run_tokens";
    "rig.*.command": SettingKind::Text, "",
        "Command that works on a bead of this rig";
    "rig.*.runtime": SettingKind::Runtime, "",
        "Program that works on beads of this rig, instead of worker.runtime";
    "rig.*.setup": SettingKind::Text, "",
        "Shell command that is run in a tree of this rig before a worker gets it";
    "rig.*.overlay": SettingKind::Text, "",
        "Directory whose files every tree of this rig gets besides those of the repository";
    "rig.*.wrap": SettingKind::CommandWrap, "",
        "Program around the agents, setup commands and checks of this rig, instead of worker.wrap; none is no program";
    "rig.*.checkout": SettingKind::Text, "",
        "Your checkout of this rig, whose ignored files every tree gets that its .worktreeinclude names; without one, the origin if it is a directory";
    "rig.*.warm_worktrees": SettingKind::Integer { min: 0, max: 1_000 }, "0",
        "Worktrees prepared ahead in this rig";
    "rig.*.checks": SettingKind::Checks, "",
        "Checks that work in this rig must pass before it lands, as JSON; gt rig check changes them";
    "rig.*.protect": SettingKind::PathPatterns, "",
        "Paths of this rig, such as .github/,jest.config.js; a merge request that changes one of them needs a review";
}

/// The removed setting of a rig that named the machine of its runs.
pub const REMOVED_MACHINE: &str = "ssh.host";

/// The settings of a rig that are removed. Stores of earlier programs hold values of them.
pub const REMOVED_OF_RIG: [&str; 4] = [REMOVED_MACHINE, "ssh.directory", "ssh.gt", "ssh.command"];

/// Whether a setting of this full name is removed.
pub(super) fn is_removed(name: &str) -> bool {
    let rest = name.strip_prefix("rig.").and_then(|rest| rest.split_once('.'));
    rest.is_some_and(|(_, key)| REMOVED_OF_RIG.contains(&key))
}

/// The setting called `name` (or an alias of it), with its full name.
pub fn lookup(name: &str) -> Result<(&'static Setting, SettingName), Invalid> {
    for setting in KEYS {
        if setting.name == name || setting.aliases.contains(&name) {
            if let Some(("rig.", tail)) = setting.name.split_once('*') {
                return Err(Invalid(format!("name the rig: rig.<name>{tail}")));
            }
            return Ok((setting, SettingName(setting.name.to_owned())));
        }
        if let Some((head, tail)) = setting.name.split_once('*')
            && let Some(slug) = name.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail))
            // No name has a point: it belongs to another setting that ends the same way.
            && !slug.contains('.')
        {
            // The inbox is a rig as well, although no person may add one of that name.
            if slug != RigSlug::INBOX {
                RigSlug::parse(slug)?;
            }
            return Ok((setting, SettingName(name.to_owned())));
        }
    }
    let hint = suggest_of_rig(name).or_else(|| suggest(name).map(str::to_owned));
    let hint = hint.map(|known| format!("; did you mean {known}?")).unwrap_or_default();
    let known: Vec<&str> = KEYS.iter().map(|setting| setting.name).collect();
    Err(Invalid(format!(
        "unknown setting \"{}\"{hint} (known settings: {})",
        name.chars().take(60).collect::<String>().escape_debug(),
        known.join(", ")
    )))
}

/// The names of the settings that each rig has, as they follow `rig.<rig>.`.
pub fn rig_settings() -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter_map(|setting| setting.name.strip_prefix("rig.*."))
}

/// A value of the setting called `name` without its secret parts.
pub fn shown<'v>(name: &str, value: &'v str) -> std::borrow::Cow<'v, str> {
    match lookup(name) {
        Ok((setting, _)) => setting.kind.shown(value),
        Err(_) => value.into(),
    }
}

/// The known setting that looks most like `name`, if one does.
pub fn suggest(name: &str) -> Option<&'static str> {
    let names = |setting: &'static Setting| {
        std::iter::once(setting.name).chain(setting.aliases.iter().copied())
    };
    closest(name, KEYS.iter().flat_map(names))
}

/// The setting of the same rig that looks most like this one, with its full name.
fn suggest_of_rig(name: &str) -> Option<String> {
    let (rig, key) = name.strip_prefix("rig.")?.split_once('.')?;
    RigSlug::parse(rig).ok()?;
    Some(format!("rig.{rig}.{}", closest(key, rig_settings())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_valid_canonical_value() {
        for setting in KEYS.iter().filter(|setting| !setting.default.is_empty()) {
            assert_eq!(
                setting.kind.canonical(setting.default).as_deref(),
                Ok(setting.default),
                "{}",
                setting.name
            );
        }
    }

    #[test]
    fn aliases_and_rigs_resolve() {
        assert_eq!(lookup("queue.batch_size").unwrap().1.as_str(), "scheduler.batch_size");
        assert_eq!(lookup("queue_max_polecats").unwrap().1.as_str(), "queue.max_polecats");
        assert_eq!(lookup("rig.web.max_polecats").unwrap().1.as_str(), "rig.web.max_polecats");
        assert!(lookup("rig.web.ssh.command").is_err() && is_removed("rig.web.ssh.command"));
        assert!(!is_removed("rig.web.command") && !is_removed("rig.web.ssh.more"));
        assert_eq!(lookup("rig.web.command").unwrap().0.name, "rig.*.command");
        assert!(lookup("rig..max_polecats").is_err());
        assert!(lookup("rig.web.more.max_polecats").is_err());
        assert!(lookup("rig.*.max_polecats").is_err());
        let error = lookup("scheduler.max_polecat").unwrap_err().to_string();
        assert!(error.contains("did you mean scheduler.max_polecats?"), "{error}");
        let error = lookup("rig.web.mrege").unwrap_err().0;
        assert!(error.contains("did you mean rig.web.merge?"), "{error}");
        let error = lookup("rig.\n.max_polecat").unwrap_err().0;
        assert!(error.contains("did you mean rig.*.max_polecats?"), "{error}");
    }
}
