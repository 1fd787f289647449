//! Problems that wait for a person.

use std::time::Duration;

use gt_core::schedule::{CloseReason, ParkSubject, Run, RunId, Silence};
use gt_core::{BeadId, RigSlug};
use gt_executors::runs::{Liveness, RunFiles, UnattendedRun, holders, unattended};

use crate::dispatch::parked;
use crate::fleet::{AwayHost, away, away_in};
use crate::processes::{LocalProcesses, ProcessProbe as _};
use gt_beads::outbox::unsent;
use gt_town::hosts::has_lease;
use gt_town::tree_paths::visible_repository_problem;
use gt_town::{Result, Town};

/// A problem that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// This runtime or account is parked, for this reason.
    Parked(ParkSubject, String),
    /// The runs of this bead were lost this often.
    OutOfAttempts(BeadId, u32),
    /// This bead failed to start too often, for this reason.
    CircuitBroken(BeadId, String),
    /// This bead can never start as it was scheduled, for this reason.
    Quarantined(BeadId, String),
    /// This run has neither supervisor nor agent, and these processes of it are left. The list is empty if they
    /// belong to another user.
    Headless(RunId, Vec<i32>),
    /// This run has lost its supervisor and its agent, and these processes, which hold no lock, may belong to it: they are in
    /// its tree or in the session of its agent. Its bead is not started again beside them.
    Seen(RunId, Vec<i32>),
    /// This run has lost its supervisor, and its agent, this process, goes on alone.
    Unsupervised(RunId, i32),
    /// This run is over, and these processes of it are not.
    NotGone(RunId, Vec<i32>),
    /// The worker of this run has been silent since then.
    Stalled(RunId, Silence),
    /// This many notices were given up: people were not told.
    NotTold(u64),
    /// The repository that the workers of this rig share is damaged in this way.
    DamagedRepository(RigSlug, String),
    /// These hosts are out of sight, and runs are live on them as far as the store knows.
    HostAway(Vec<AwayHost>),
}

impl Need {
    /// A short name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Parked(..) => "parked",
            Self::OutOfAttempts(..) => "attempts-used-up",
            Self::CircuitBroken(..) => "circuit-broken",
            Self::Quarantined(..) => "quarantined",
            Self::Headless(..) => "headless",
            Self::Seen(..) => "still-seen",
            Self::Unsupervised(..) => "unsupervised",
            Self::NotGone(..) => "not-gone",
            Self::Stalled(..) => "stalled",
            Self::NotTold(_) => "not-told",
            Self::DamagedRepository(..) => "damaged-repository",
            Self::HostAway(_) => "host-away",
        }
    }

    /// The problem, in words.
    pub fn what(&self) -> String {
        match self {
            Self::Parked(means, why) => format!("nothing is started with the {means}: {why}"),
            Self::OutOfAttempts(bead, 1) => format!("{bead} was lost in its only attempt"),
            Self::OutOfAttempts(bead, runs) => format!("{bead} was lost in {runs} attempts"),
            Self::CircuitBroken(bead, why) => format!("{bead} could not be started: {why}"),
            Self::Quarantined(bead, why) => format!("{bead} can never start as it is: {why}"),
            Self::Headless(run, left) => {
                format!(
                    "{run} has lost its supervisor and its agent, but not {}",
                    process_list(left)
                )
            }
            Self::Seen(run, left) => format!(
                "{run} has lost its supervisor and its agent, and is not recovered while {} may belong to it",
                process_list(left)
            ),
            Self::Unsupervised(run, agent) => format!(
                "{run} has lost its supervisor, and its agent (process {agent}) goes on alone: no process keeps its output \
                 or sees how it ends"
            ),
            Self::NotGone(run, left) => format!("{run} is over, but not {}", process_list(left)),
            Self::Stalled(run, silence) => format!("{run} {silence}"),
            Self::NotTold(1) => "1 notice could not be delivered, and was given up".to_owned(),
            Self::NotTold(count) => {
                format!("{count} notices could not be delivered, and were given up")
            }
            Self::DamagedRepository(rig, problem) => {
                format!("the repository of the rig {rig} is damaged: {problem}")
            }
            Self::HostAway(hosts) => {
                let hosts: Vec<String> = hosts.iter().map(away_sentence).collect();
                hosts.join("; ")
            }
        }
    }

    /// The remedy.
    pub fn remedy(&self) -> String {
        match self {
            Self::Parked(ParkSubject { kind, name }, _) => {
                format!("put it right, then gt deacon resume {} {name}", kind.as_str())
            }
            Self::OutOfAttempts(bead, _) => {
                format!("gt run list {bead}, then gt scheduler retry {bead}")
            }
            Self::CircuitBroken(bead, _) | Self::Quarantined(bead, _) => {
                format!("gt why {bead}, then gt scheduler retry {bead}")
            }
            Self::Headless(run, _) => format!("gt run cancel {run}"),
            Self::Seen(_, left) => {
                let left: Vec<String> = left.iter().map(ToString::to_string).collect();
                format!(
                    "ps -o pid,user,tty,lstart,args -p {}; end them, or have them leave its tree, and it is recovered",
                    left.join(",")
                )
            }
            Self::Unsupervised(run, _) => format!(
                "let it end, and what it did is saved and done again; or gt run cancel {run}"
            ),
            Self::NotGone(..) => "end them by hand; its bead waits for that".to_owned(),
            Self::Stalled(RunId { bead, .. }, _) => format!(
                "gt peek {bead} shows what it says; gt nudge {bead} \"…\" speaks to it, gt run cancel {bead} ends it"
            ),
            Self::NotTold(_) => "gt outbox list, then gt outbox retry".to_owned(),
            Self::DamagedRepository(..) => {
                "gt repairs it from the origin before the next run of the rig; gt doctor says more"
                    .to_owned()
            }
            Self::HostAway(hosts) => {
                let name = hosts.first().map(|host| host.name.as_str()).unwrap_or_default();
                format!(
                    "bring it back, or wait: after host.grace its runs start on another host; gt host remove {name} --force \
                     does that at once"
                )
            }
        }
    }
}

/// How many runs of a host that is away are named.
const AWAY_RUNS_NAMED_MAX: usize = 5;

fn away_sentence(host: &AwayHost) -> String {
    let named: Vec<String> =
        host.runs.iter().take(AWAY_RUNS_NAMED_MAX).map(ToString::to_string).collect();
    let more = match host.runs.len().saturating_sub(AWAY_RUNS_NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (runs, keep) = if host.runs.len() == 1 {
        ("run is", "keeps its slot")
    } else {
        ("runs are", "keep their slots")
    };
    format!(
        "the host {} is {}; its {runs} unknown and {keep}: {}{more}",
        host.name,
        host.since(),
        named.join(", ")
    )
}

fn process_list(left: &[i32]) -> String {
    match left {
        [] => "processes of another user".to_owned(),
        [one] => format!("process {one}"),
        several => {
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            format!("the processes {}", several.join(", "))
        }
    }
}

/// How many of each kind are listed.
const EACH_MAX: usize = 100;
/// How many of the last runs are checked for remaining processes.
const RUNS_ASKED_MAX: usize = 200;

/// The problems that wait for a person, as far as this machine can say.
pub fn needs_you(town: &Town) -> Result<Vec<Need>> {
    let mut needs: Vec<Need> = parked(town)?
        .into_iter()
        .filter(|parked| !parked.park.is_limit())
        .map(|parked| Need::Parked(parked.park.means, parked.park.reason))
        .collect();
    let (spent, failed, live, recent) = town.read(|reader| {
        let spent = reader.beads_out_of_attempts(EACH_MAX)?;
        let failed = reader.failed_contexts()?;
        Ok((spent, failed, reader.live_runs()?, reader.recent_runs(RUNS_ASKED_MAX)?))
    })?;
    needs.extend(spent.into_iter().map(|(bead, runs)| Need::OutOfAttempts(bead, runs)));
    needs.extend(failed.into_iter().take(EACH_MAX).filter_map(|context| {
        let (bead, why) = (context.bead, context.last_failure);
        Some(match context.closed?.reason {
            CloseReason::CircuitBroken => Need::CircuitBroken(bead, why),
            CloseReason::Quarantined | CloseReason::InvalidContext => Need::Quarantined(bead, why),
            CloseReason::Dispatched | CloseReason::Cleared | CloseReason::StaleWorkBead => {
                return None;
            }
        })
    }));
    needs.extend(live.iter().filter_map(is_silent).take(EACH_MAX));
    needs.extend(processes_left(town, &live, &recent)?);
    needs.extend(Some(away(town)?).filter(|away| !away.is_empty()).map(Need::HostAway));
    let given_up = unsent(town)?.given_up;
    needs.extend((given_up > 0).then_some(Need::NotTold(given_up)));
    for rig in town.read(|reader| Ok(reader.rigs()?))? {
        let problem = visible_repository_problem(town, &rig);
        needs.extend(problem.map(|problem| Need::DamagedRepository(rig.slug, problem)));
    }
    Ok(needs)
}

/// Why this run, if it is live, waits for a person, as far as this machine can say.
pub fn needs_of(town: &Town, run: &Run) -> Result<Vec<Need>> {
    if !run.state.is_live() {
        return Ok(Vec::new());
    }
    let mut needs: Vec<Need> = is_silent(run).into_iter().collect();
    needs.extend(processes_left(town, std::slice::from_ref(run), &[])?);
    if has_lease(town) {
        let away = town.read(|reader| away_in(reader, std::slice::from_ref(run)))?;
        needs.extend(Some(away).filter(|away| !away.is_empty()).map(Need::HostAway));
    }
    Ok(needs)
}

fn is_silent(run: &Run) -> Option<Need> {
    run.silence().map(|silence| Need::Stalled(run.id.clone(), silence))
}

/// The runs of this machine with processes that have lost their supervisor or their run.
fn processes_left(town: &Town, live: &[Run], recent: &[Run]) -> Result<Vec<Need>> {
    if !town.has_directory() {
        return Ok(Vec::new());
    }
    let processes = LocalProcesses::of(town)?;
    let here = |run: &&Run| run.executor.takes_slot() && run.is_on(processes.host());
    let files = |run: &Run| RunFiles::of(&town.runs_directory(), &run.id.to_string());
    let alone = live.iter().filter(here).filter_map(|run| {
        let files = files(run);
        if files.liveness().is_ok_and(|liveness| liveness == Liveness::Free) {
            let left = processes.strays_of(run);
            return (!left.is_empty()).then(|| Need::Seen(run.id.clone(), left));
        }
        Some(match unattended(&files).ok().flatten()? {
            UnattendedRun::Agent(agent) => Need::Unsupervised(run.id.clone(), agent),
            UnattendedRun::Others(left) => Need::Headless(run.id.clone(), left),
        })
    });
    let not_gone =
        recent.iter().filter(here).filter(|run| !run.state.is_live()).filter_map(|run| {
            let files = files(run);
            let is_held = files.liveness().is_ok_and(|liveness| liveness == Liveness::Held);
            // A supervisor that has just recorded the end of its run is about to exit.
            let left = is_held.then(|| unattended(&files).ok().flatten()).flatten();
            let left = left.map(|left| match left {
                UnattendedRun::Agent(agent) => vec![agent],
                UnattendedRun::Others(left) => left,
            });
            let left =
                left.or_else(|| is_held.then(|| holders(&files)).filter(|_| is_old(town, run)))?;
            Some(Need::NotGone(run.id.clone(), left))
        });
    Ok(alone.chain(not_gone).collect())
}

/// How long the processes of a run may take to exit after its end was recorded.
const EXIT_GRACE: Duration = Duration::from_secs(10);

fn is_old(town: &Town, run: &Run) -> bool {
    run.ended_at.is_some_and(|at| town.now().since(at) > EXIT_GRACE)
}
