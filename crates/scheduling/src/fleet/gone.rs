//! Hosts that are gone: another host declares their runs lost.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use gt_core::ExecutorKind;
use gt_core::decide::HostState;
use gt_core::jitter;
use gt_core::schedule::{Run, RunEnd, RunId, RunLoss, RunState};
use gt_store::{HostRecord, Writer};

use crate::dispatch::{StartFailureCost, start_failed_in};
use crate::run_transitions::finish_in;
use gt_town::{Result, Town, hosts};

/// How long a gone host is left alone after a look that found no run of it. Each look reads the live runs of the town.
const LOOK_AGAIN_AFTER: Duration = Duration::from_mins(10);

/// Since when this process has seen no renewal of each host, by the boot-time clock of this machine.
#[derive(Debug, Default)]
pub struct GoneWatch {
    seen: HashMap<String, Seen>,
}

/// A host as this process has seen it.
#[derive(Debug)]
struct Seen {
    /// Its last renewal, and when that was seen.
    renewal: (i64, Duration),
    /// When it was found to be gone, with nothing left to do.
    settled_at: Option<Duration>,
}

impl GoneWatch {
    /// Looks at the hosts; returns those that may be declared gone.
    pub fn observe(&mut self, fleet: Vec<HostRecord>, now: Duration) -> Vec<HostRecord> {
        let known: HashSet<&str> = fleet.iter().map(|host| host.host.id.as_str()).collect();
        self.seen.retain(|id, _| known.contains(id.as_str()));
        let mut gone = Vec::new();
        for host in fleet {
            let anew = || Seen { renewal: (host.seen_at_s, now), settled_at: None };
            let seen = self.seen.entry(host.host.id.clone()).or_insert_with(anew);
            if seen.renewal.0 != host.seen_at_s {
                *seen = anew();
            }
            let watched = now.saturating_sub(seen.renewal.1);
            let is_settled = |at: Duration| now.saturating_sub(at) < LOOK_AGAIN_AFTER;
            if host.state() == HostState::Gone
                && !seen.settled_at.is_some_and(is_settled)
                && host.times().is_some_and(|times| times.is_gone(host.age, watched))
            {
                gone.push(host);
            }
        }
        gone
    }

    /// Remembers that nothing is left to do for a host that is gone.
    fn settle(&mut self, host: &HostRecord, now: Duration) {
        if let Some(seen) = self.seen.get_mut(&host.host.id) {
            seen.settled_at = Some(now);
        }
    }
}

/// A host that was declared gone, with the runs that it lost.
#[derive(Debug, Clone)]
pub struct LostRuns {
    /// The name of the host.
    pub host: String,
    /// Its runs that are lost now.
    pub runs: Vec<RunId>,
}

/// Declares the hosts gone that have been out of sight for long enough, and their runs lost: in one transaction each, with a
/// successor, and without the cost of an attempt.
pub fn declare_gone(town: &Town, watch: &mut GoneWatch) -> Result<Vec<LostRuns>> {
    let own = hosts::own_row(town)?;
    let fleet = town.read_newest(|reader| Ok(reader.fleet()?))?;
    let now = hosts::lease_of(town)?.since_boot();
    let gone = watch.observe(fleet, now);
    // Most looks find none, and each host looks often: the runs of the whole town are read only for one that is gone.
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    let live = town.read(|reader| Ok(reader.live_runs()?))?;
    let mut declared = Vec::new();
    for host in gone {
        let runs: Vec<&Run> = super::runs_on(&live, &host).filter(|run| can_be_lost(run)).collect();
        if host.host.id == own.id {
            continue;
        }
        if host.is_declared_gone && runs.is_empty() {
            watch.settle(&host, now);
            continue;
        }
        let is_gone = |now: &HostRecord| now.state() == HostState::Gone;
        let lost = lose_runs(town, &host, &runs, is_gone)?;
        declared.extend(lost);
    }
    Ok(declared)
}

/// Whether the loss of its host ends a run. The agent of an ssh run is on a third machine, which its own host alone reaches.
pub(super) fn can_be_lost(run: &Run) -> bool {
    match run.executor {
        ExecutorKind::Tmux | ExecutorKind::Process => true,
        ExecutorKind::Ssh | ExecutorKind::Pull | ExecutorKind::None => false,
    }
}

/// Declares these runs of a host lost, as long as `still` holds for it; nothing if it does not hold any more.
pub(super) fn lose_runs(
    town: &Town,
    host: &HostRecord,
    runs: &[&Run],
    still: impl Fn(&HostRecord) -> bool,
) -> Result<Option<LostRuns>> {
    let id = &host.host.id;
    let stands = |writer: &Writer<'_>| -> Result<bool> {
        Ok(writer.fleet()?.iter().any(|now| now.host.id == *id && still(now)))
    };
    let mut lost = Vec::new();
    for run in runs {
        let is_lost =
            town.write(|writer| Ok(stands(writer)? && lose_in(writer, town, &run.id, host)?))?;
        if is_lost {
            lost.push(run.id.clone());
        }
    }
    let is_told = town.write(|writer| {
        if !stands(writer)? {
            return Ok(false);
        }
        // No process of that host reports usage that a budget could still wait for.
        let pending = writer.runs_with_pending_usage()?;
        for run in super::runs_on(&pending, host) {
            writer.finalize_usage(&run.id)?;
        }
        Ok(writer.set_host_gone(&host.host)?)
    })?;
    let is_something = is_told || !lost.is_empty();
    Ok(is_something.then(|| LostRuns { host: host.host.name.clone(), runs: lost }))
}

fn lose_in(writer: &mut Writer<'_>, town: &Town, id: &RunId, host: &HostRecord) -> Result<bool> {
    let Some(run) = writer.run(id)?.filter(|run| run.state.is_live()) else { return Ok(false) };
    let why = format!("its host {} is gone", host.host.name);
    if run.state == RunState::Starting {
        let chance = jitter(&run.id.to_string());
        return start_failed_in(writer, &run, &why, &StartFailureCost::Nothing, chance);
    }
    let end = RunEnd { loss: RunLoss::Host, ..RunEnd::without_status(RunState::Lost, why) };
    finish_in(writer, town, id, &end)?;
    writer.leave_run(&run, &host.host.id)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use gt_core::decide::HostMode;
    use gt_store::{HostDeclaration, HostRow};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A host whose last renewal was long ago.
    fn gone_host(seen_at_s: i64) -> HostRecord {
        let [id, name, machine, path, incarnation] =
            ["a1", "forge", "", "/town", ""].map(str::to_owned);
        HostRecord {
            host: HostRow { id, name, machine, path, incarnation },
            declared: HostDeclaration { grace: 30 * SECOND, ..HostDeclaration::default() },
            age: 3600 * SECOND,
            seen_at_s,
            daemon_age: None,
            mode: HostMode::Active,
            is_declared_gone: true,
        }
    }

    #[test]
    fn a_gone_host_without_runs_is_left_alone_for_a_while() {
        let mut watch = GoneWatch::default();
        let is_found = |watch: &mut GoneWatch, seen_at_s: i64, now: Duration| {
            !watch.observe(vec![gone_host(seen_at_s)], now).is_empty()
        };
        assert!(!is_found(&mut watch, 1, SECOND), "it was not watched long enough");
        let mut now = 3600 * SECOND;
        assert!(is_found(&mut watch, 1, now));
        watch.settle(&gone_host(1), now);
        now += LOOK_AGAIN_AFTER;
        assert!(!is_found(&mut watch, 1, now.saturating_sub(SECOND)));
        assert!(is_found(&mut watch, 1, now), "the time is over");

        watch.settle(&gone_host(1), now);
        // It came back and is gone again.
        assert!(!is_found(&mut watch, 2, now));
        assert!(is_found(&mut watch, 2, now + 3600 * SECOND));
    }
}
