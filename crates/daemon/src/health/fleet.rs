//! Whether the hosts of a town can do its work together.

use std::time::Duration;

use gt_core::decide::{Fleet, HostMode, PlacementAnswer, PlacementNeeds};
use gt_core::schedule::Run;
use gt_core::{ExecutorKind, Rig, RigState, Timestamp};
use gt_scheduling::dispatch::placement_facts;
use gt_store::{HostRecord, SCHEMA_LEVEL, StoreAddress};

use super::{CheckGrade, HealthCheck, database_warnings, host_remark};
use gt_town::hosts::unknown_rigs;
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::settings::{file_layers, layers_over};
use gt_town::{Result, Town};

/// How far the clock of a host may be from the store's before times that people compare are wrong.
const SKEW_NOTICED: Duration = Duration::from_secs(2);
/// How far it may be before schedules and budgets are wrong.
const SKEW_MAX: Duration = Duration::from_mins(1);
/// For how long a host that is away is worth a warning. After that it has probably left the town.
const AWAY_NOTICED: Duration = Duration::from_hours(24);

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
    let (hosts, live, rigs, settings) = town.read(|reader| {
        let (hosts, live, rigs) = (reader.fleet()?, reader.live_runs()?, reader.rigs()?);
        Ok((hosts, live, rigs, SchedulerSettings::of(&layers_over(&files, reader)?)?))
    })?;
    // A host that was removed shall not come back.
    let belongs = |host: &&HostRecord| host.mode != HostMode::Removed;
    let hosts: Vec<&HostRecord> = hosts.iter().filter(belongs).collect();
    for host in &hosts {
        checks.push(host_check(host, &live));
        let declared = host.declared.rigs.iter().map(String::as_str);
        checks.extend(unknown_rigs(&host.host.name, declared, &rigs).map(host_remark));
    }
    let fleet = Fleet {
        hosts: hosts.into_iter().map(placement_facts).collect(),
        rig_labels: settings.rig_labels,
        rig_hosts: settings.rig_hosts,
        ..Fleet::default()
    };
    checks.extend(rigs.iter().filter_map(|rig| rig_check(rig, &fleet)));
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
fn host_check(record: &HostRecord, live: &[Run]) -> HealthCheck {
    let HostRecord { host, age, .. } = record;
    let runs = live.iter().filter(|run| run.is_on(&host.id)).count();
    let has = match runs {
        0 => "no live run".to_owned(),
        1 => "1 live run".to_owned(),
        many => format!("{many} live runs"),
    };
    let ago = age.as_secs();
    let detail = format!("{} in {}: seen {ago} s ago, {has}", host.name, host.path);
    let state = record.state();
    if state.is_present() {
        return HealthCheck::good("host", detail);
    }
    let state = state.as_str();
    let fix = format!("start its daemon with gt up in {} on {}", host.path, host.name);
    match runs {
        0 if *age > AWAY_NOTICED => HealthCheck::good("host", format!("{detail}; {state}")),
        0 => HealthCheck::bad("host", CheckGrade::Warning, format!("{detail}; {state}"), fix),
        _ => {
            let detail = format!("{detail}; {state}, so what became of its runs is unknown");
            HealthCheck::bad("host", CheckGrade::Problem, detail, fix)
        }
    }
}

/// A rig of which no host starts a run.
fn rig_check(rig: &Rig, fleet: &Fleet) -> Option<HealthCheck> {
    let needs_host = !matches!(rig.executor, ExecutorKind::Pull | ExecutorKind::None);
    if rig.state != RigState::Active || !needs_host {
        return None;
    }
    let slug = &rig.slug;
    let needs = PlacementNeeds { bead: None, rig: slug, host: None, runtime: None };
    // A host that is full has work, so runs count for nothing here.
    let hosts = fleet.hosts.iter();
    let hosts = hosts.map(|host| (host.name().to_owned(), fleet.refusal(host, &needs, 0)));
    let answer = PlacementAnswer { here: String::new(), hosts: hosts.collect() };
    if !answer.willing().is_empty() {
        return None;
    }
    let (detail, fix) = if answer.hosts.is_empty() {
        (format!("{slug}: no host has joined the town"), "start a daemon with gt up".to_owned())
    } else {
        let fix = match answer.pinned_rig() {
            Some(_) => format!("gt config unset rig.{slug}.host lets every host work on it"),
            None => "start a daemon with gt up, give a host what is missing, or gt host resume one that is draining"
                .to_owned(),
        };
        (format!("{slug}: {answer}"), fix)
    };
    Some(HealthCheck::bad("rig", CheckGrade::Problem, detail, fix))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use gt_core::schedule::RunId;
    use gt_core::{BeadId, Prefix, RigSlug, Uid};
    use gt_store::{HostDeclaration, HostRow};

    use super::*;

    fn host(id: &str, age_s: u64) -> HostRecord {
        let [id, name] = [id, "forge"].map(str::to_owned);
        let (machine, path, incarnation) = (String::new(), "/town".to_owned(), String::new());
        HostRecord {
            host: HostRow { id, name, machine, path, incarnation },
            declared: HostDeclaration {
                grace: Duration::from_secs(30),
                ..HostDeclaration::default()
            },
            age: Duration::from_secs(age_s),
            seen_at_s: 1,
            daemon_age: Some(Duration::from_secs(age_s)),
            mode: HostMode::Active,
            is_declared_gone: false,
        }
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
            ("a1", 31, CheckGrade::Problem),
            ("a1", 300, CheckGrade::Problem),
            ("b2", 300, CheckGrade::Warning),
            ("b2", 200_000, CheckGrade::Good),
        ] {
            assert_eq!(host_check(&host(id, ago), &live).grade, expected, "{id} {ago}");
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
        let labelled = HostDeclaration {
            labels: vec!["gpu".to_owned()],
            rigs: vec!["gear".to_owned()],
            ..host("a1", 5).declared
        };
        let able = HostRecord { declared: labelled, ..host("a1", 5) };
        let fleet = |hosts: &[&HostRecord], pin: &str, label: &str| Fleet {
            hosts: hosts.iter().map(|host| placement_facts(host)).collect(),
            rig_labels: BTreeMap::from([(rig.slug.clone(), BTreeSet::from([label.to_owned()]))]),
            rig_hosts: [pin]
                .into_iter()
                .filter(|pin| !pin.is_empty())
                .map(|pin| (rig.slug.clone(), pin.to_owned()))
                .collect(),
            ..Fleet::default()
        };
        let away = host("b2", 300);
        for (pin, label, problem) in [
            ("", "gpu", None),
            ("forge/a1", "gpu", None),
            ("x/b2", "gpu", Some("forge is not x, which alone works on the rig; forge is gone")),
            ("x/c3", "gpu", Some("forge is not x, which alone works on the rig")),
            ("", "tpu", Some("no host can run it: forge has no label tpu")),
        ] {
            let found = rig_check(&rig, &fleet(&[&able, &away], pin, label));
            assert_eq!(found.is_some(), problem.is_some(), "{pin} {label}");
            let said = found.map(|check| check.detail).unwrap_or_default();
            assert!(said.contains(problem.unwrap_or_default()), "{said}");
        }
        let draining = HostRecord { mode: HostMode::Draining, ..able.clone() };
        let others = HostDeclaration { rigs: vec!["other".to_owned()], ..able.declared.clone() };
        let others = HostRecord { declared: others, ..able.clone() };
        for unfit in [&[&away][..], &[&draining], &[&others], &[]] {
            assert!(rig_check(&rig, &fleet(unfit, "", "gpu")).is_some(), "{unfit:?}");
        }
        let pulled = Rig { executor: ExecutorKind::Pull, ..rig.clone() };
        assert!(rig_check(&pulled, &fleet(&[], "", "gpu")).is_none());
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
