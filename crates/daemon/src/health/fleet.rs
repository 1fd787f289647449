//! Whether the hosts of a town can do its work together.

use std::time::Duration;

use gt_core::decide::HostMode;
use gt_core::schedule::{Run, is_host_named};
use gt_core::{ExecutorKind, Rig, RigState, Timestamp};
use gt_store::{HostRecord, HostRow, SCHEMA_LEVEL, StoreAddress};

use super::{CheckGrade, HealthCheck, database_warnings};
use gt_town::hosts::is_alive_after;
use gt_town::settings::{file_layers, layers_over};
use gt_town::{Result, Town};

/// How far the clock of a host may be from the store's before times that people compare are wrong.
const SKEW_NOTICED: Duration = Duration::from_secs(2);
/// How far it may be before schedules and budgets are wrong.
const SKEW_MAX: Duration = Duration::from_mins(1);
/// For how long a host that is away is worth a warning. After that it has probably left the town.
const AWAY_NOTICED_S: i64 = 24 * 3600;

/// Checks the town as all its hosts see it: its schema, this host's clock, each host, and the rigs that no host can work on.
pub fn examine_fleet(town: &Town, version: &str) -> Result<Vec<HealthCheck>> {
    let mut checks = vec![schema(town.store().describe(town.now())?.schema, version)];
    let is_shared = matches!(town.store().address(), Some(StoreAddress::Server(_)));
    let warnings = database_warnings(town)?;
    if warnings.is_empty() {
        let detail = "its settings keep what was committed";
        checks.push(HealthCheck::good("database", detail));
    }
    checks.extend(warnings);
    if !is_shared {
        let detail = "the store is a file, so this host is the only one";
        checks.push(HealthCheck::good("hosts", detail));
        return Ok(checks);
    }
    let before = town.now();
    let store = town.read(|reader| Ok(reader.lease_time(before)))?;
    checks.push(clock(skew(before, store, town.now())));
    let files = file_layers(town)?;
    let (fleet, live, rigs, pins) = town.read(|reader| {
        let (fleet, live, rigs) = (reader.fleet()?, reader.live_runs()?, reader.rigs()?);
        let layers = layers_over(&files, reader)?;
        let pins = rigs.iter().map(|rig| layers.rig_host(&rig.slug));
        let pins = pins.collect::<std::result::Result<Vec<String>, _>>()?;
        Ok((fleet, live, rigs, pins))
    })?;
    // A host that was removed shall not come back.
    let belongs = |host: &HostRecord| host.mode != HostMode::Removed;
    let seconds = |age: Duration| i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
    let hosts: Vec<(HostRow, i64)> =
        fleet.into_iter().filter(belongs).map(|host| (host.host, seconds(host.age))).collect();
    checks.extend(hosts.iter().map(|(host, ago)| host_check(host, *ago, &live)));
    let pinned = rigs.iter().zip(&pins).map(|(rig, pin)| (rig, pin.as_str()));
    checks.extend(pinned.filter_map(|(rig, pin)| rig_check(rig, pin, &hosts)));
    Ok(checks)
}

fn schema(found: i64, version: &str) -> HealthCheck {
    let detail = format!("the store has schema {found}, and gt {version} knows {SCHEMA_LEVEL}");
    if found > SCHEMA_LEVEL {
        let fix = "another host has a newer gt; install that one here too";
        return HealthCheck::bad("schema", CheckGrade::Warning, detail, fix);
    }
    HealthCheck::good("schema", detail)
}

/// How far the store's clock is from one that read `before` and `after` around it; positive if the store is ahead.
fn skew(before: Timestamp, store: Timestamp, after: Timestamp) -> i64 {
    let (before, store, after) = (before.as_nanos(), store.as_nanos(), after.as_nanos());
    if store < before { store.saturating_sub(before) } else { store.saturating_sub(after).max(0) }
}

fn clock(skew_nanos: i64) -> HealthCheck {
    let amount = Duration::from_nanos(skew_nanos.unsigned_abs());
    if amount < SKEW_NOTICED {
        return HealthCheck::good("clock", "this host and the store agree to within 2 s");
    }
    let direction = if skew_nanos > 0 { "behind" } else { "ahead of" };
    let detail =
        format!("the clock of this host is {} s {direction} the store's", amount.as_secs());
    let grade = if amount < SKEW_MAX { CheckGrade::Warning } else { CheckGrade::Problem };
    HealthCheck::bad("clock", grade, detail, "let the time service of both machines set the clocks")
}

/// A host, by when it was seen and by what is live on it.
fn host_check(host: &HostRow, ago: i64, live: &[Run]) -> HealthCheck {
    let runs = live.iter().filter(|run| run.is_on(&host.id)).count();
    let has = match runs {
        0 => "no live run".to_owned(),
        1 => "1 live run".to_owned(),
        many => format!("{many} live runs"),
    };
    let detail = format!("{} in {}: seen {ago} s ago, {has}", host.name, host.path);
    if is_alive_after(ago) {
        return HealthCheck::good("host", detail);
    }
    let fix = format!("start its daemon with gt up in {} on {}", host.path, host.name);
    match runs {
        0 if ago > AWAY_NOTICED_S => HealthCheck::good("host", format!("{detail}; away")),
        0 => HealthCheck::bad("host", CheckGrade::Warning, format!("{detail}; away"), fix),
        _ => {
            let detail = format!("{detail}; away, so what became of its runs is unknown");
            HealthCheck::bad("host", CheckGrade::Problem, detail, fix)
        }
    }
}

/// A rig that no host at work can run.
fn rig_check(rig: &Rig, pin: &str, hosts: &[(HostRow, i64)]) -> Option<HealthCheck> {
    let needs_host = !matches!(rig.executor, ExecutorKind::Pull | ExecutorKind::None);
    if rig.state != RigState::Active || !needs_host {
        return None;
    }
    let mut able = hosts.iter().filter(|(host, ago)| {
        let name = format!("{}/{}", host.name, host.id);
        is_alive_after(*ago) && (pin.is_empty() || is_host_named(&name, pin))
    });
    if able.next().is_some() {
        return None;
    }
    let slug = &rig.slug;
    let (detail, fix) = if pin.is_empty() {
        (format!("{slug}: no host of the town is at work"), "start a daemon with gt up".to_owned())
    } else {
        (
            format!("{slug}: only {pin} may work on it (rig.{slug}.host), and that host is away"),
            format!(
                "start its daemon, or let every host work on it with gt config unset rig.{slug}.host"
            ),
        )
    };
    Some(HealthCheck::bad("rig", CheckGrade::Problem, detail, fix))
}

#[cfg(test)]
mod tests {
    use gt_core::schedule::RunId;
    use gt_core::{BeadId, Prefix, RigSlug, Uid};

    use super::*;

    fn host(id: &str) -> HostRow {
        let [id, name] = [id, "forge"].map(str::to_owned);
        let (machine, path, incarnation) = (String::new(), "/town".to_owned(), String::new());
        HostRow { id, name, machine, path, incarnation }
    }

    fn run_on(host: &str) -> Run {
        let bead = BeadId::parse("gr-a").unwrap();
        let uid = Uid::of_bead(&bead, Timestamp::from_nanos(1));
        let (slug, now) = (RigSlug::parse("gear").unwrap(), Timestamp::from_nanos(1));
        let run = Run::begun(RunId { bead, epoch: 1 }, uid, 1, slug, ExecutorKind::Process, now);
        Run { host: host.to_owned(), ..run }
    }

    #[test]
    fn a_host_that_is_away_is_a_problem_only_with_live_runs() {
        let live = [run_on("forge/a1")];
        for (id, ago, expected) in [
            ("a1", 5, CheckGrade::Good),
            ("a1", 300, CheckGrade::Problem),
            ("b2", 300, CheckGrade::Warning),
            ("b2", 200_000, CheckGrade::Good),
        ] {
            assert_eq!(host_check(&host(id), ago, &live).grade, expected, "{id} {ago}");
        }
    }

    #[test]
    fn a_rig_needs_a_host_at_work_that_may_run_it() {
        let prefix = Prefix::parse("gr").unwrap();
        let slug = RigSlug::parse("gear").unwrap();
        let rig = Rig {
            executor: ExecutorKind::Process,
            ..Rig::new(slug, "gear", prefix, "gear", Timestamp::from_nanos(1))
        };
        let hosts = [(host("a1"), 5), (host("b2"), 300)];
        for (pin, is_able) in [("", true), ("forge/a1", true), ("x/b2", false), ("x/c3", false)] {
            assert_eq!(rig_check(&rig, pin, &hosts).is_none(), is_able, "{pin}");
        }
        assert!(rig_check(&rig, "", &hosts[1..]).is_some());
        let pulled = Rig { executor: ExecutorKind::Pull, ..rig };
        assert!(rig_check(&pulled, "", &[]).is_none());
    }

    #[test]
    fn a_clock_is_compared_with_the_stores_within_the_time_of_the_question() {
        let at = |seconds: i64| Timestamp::from_nanos(seconds * 1_000_000_000);
        for (store, expected, grade) in [
            (10, 0, CheckGrade::Good),
            (12, 0, CheckGrade::Good),
            (22, 10, CheckGrade::Warning),
            (0, -10, CheckGrade::Warning),
            (1000, 988, CheckGrade::Problem),
        ] {
            let found = skew(at(10), at(store), at(12));
            assert_eq!(found, expected * 1_000_000_000, "{store}");
            assert_eq!(clock(found).grade, grade, "{store}");
        }
    }
}
