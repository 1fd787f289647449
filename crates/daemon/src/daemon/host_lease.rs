//! The lease of this host: the daemon renews it, declares other hosts gone, and stops workers that have no supervisor.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gt_core::Json;
use gt_core::decide::{LeaseTimes, WorkerStep};
use gt_executors::runs::{RunFiles, RunSignal, runs_with_files, signal_run, unattended};

use super::journal::Level;
use super::reconciler_kind::ReconcilerKind;
use super::state::DaemonState;
use gt_scheduling::fleet::{GoneWatch, declare_gone};
use gt_scheduling::host_lease::{KeptDeclaration, renew_by_daemon};
use gt_town::HostLease;
use gt_town::error::with_causes;
use gt_town::hosts::{has_lease, lease_of};

/// The pause after a renewal that failed is a part of the pause between renewals, within these limits.
const RETRIES_PER_RENEWAL: u32 = 4;
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(100);
/// The pause between two looks at the age of the lease.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(50);
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(5);

/// Starts the threads, in a town whose hosts have leases. They end with the process.
pub(super) fn begin(state: &Arc<DaemonState>) -> std::io::Result<()> {
    if !has_lease(&state.town) {
        return Ok(());
    }
    let Ok(lease) = lease_of(&state.town) else { return Ok(()) };
    let (renewing, looking, watched) = (Arc::clone(state), Arc::clone(state), lease.clone());
    let name = |name: &str| std::thread::Builder::new().name(name.to_owned());
    name("lease renewal").spawn(move || renew(&renewing, &lease))?;
    name("lease watch").spawn(move || watch_workers(&looking, &watched))?;
    Ok(())
}

/// The times of the lease that the last renewal declared.
fn times_of(lease: &HostLease) -> LeaseTimes {
    lease.age().map_or_else(|| LeaseTimes::of(Duration::ZERO), |(_, times)| times)
}

fn renew(state: &DaemonState, lease: &HostLease) {
    let (mut watch, mut kept) = (GoneWatch::default(), KeptDeclaration::default());
    let (mut problem, mut wrong_setting) = (None::<String>, None);
    loop {
        let was_late = lease.age().is_none_or(|(age, times)| age >= times.lease());
        let settings_state = state.settings_state.load(Ordering::SeqCst);
        match renew_by_daemon(&state.town, &mut kept, settings_state) {
            Ok(renewal) => {
                let is_back = problem.take().is_some();
                if is_back {
                    state.tell(Level::Info, "lease renewed", &[]);
                }
                let why = renewal.unreadable.map(|error| with_causes(&error));
                if let Some(why) = why.as_deref().filter(|_| why != wrong_setting) {
                    let more = [("error", Json::string(why))];
                    state.tell(Level::Error, "lease renewed with the former settings", &more);
                }
                wrong_setting = why;
                // An announcement may be lost where the server could not be reached.
                let has_news = |last| last > state.events_read.load(Ordering::SeqCst);
                if is_back || renewal.last_event.is_some_and(has_news) {
                    state.ring();
                }
                if was_late {
                    // Its runs may have been declared lost, and nothing was started meanwhile.
                    state.wake(ReconcilerKind::Liveness).ring();
                    state.wake(ReconcilerKind::Dispatch).ring();
                }
                judge_others(state, &mut watch);
                std::thread::sleep(times_of(lease).renew_every());
            }
            Err(error) => {
                let why = with_causes(&error);
                if problem.as_deref() != Some(&why) {
                    state.tell(Level::Error, "lease not renewed", &[("error", Json::string(&why))]);
                }
                problem = Some(why);
                let pause = times_of(lease).renew_every() / RETRIES_PER_RENEWAL;
                std::thread::sleep(pause.max(RETRY_PAUSE_MIN));
            }
        }
    }
}

fn judge_others(state: &DaemonState, watch: &mut GoneWatch) {
    match declare_gone(&state.town, watch) {
        Ok(gone) => {
            for lost in gone {
                let runs: Vec<String> = lost.runs.iter().map(ToString::to_string).collect();
                let more =
                    [("host", Json::string(&lost.host)), ("runs", Json::string(&runs.join(" ")))];
                state.tell(Level::Warning, "host gone", &more);
            }
        }
        Err(error) => {
            let more = [("error", Json::string(&with_causes(&error)))];
            state.tell(Level::Error, "hosts not judged", &more);
        }
    }
}

/// Stops, continues or ends the workers of this host that have lost their supervisor. A supervisor does so with its own worker.
fn watch_workers(state: &DaemonState, lease: &HostLease) {
    let mut step = WorkerStep::Work;
    loop {
        let age = lease.age();
        let next = age.map_or(WorkerStep::Work, |(age, times)| times.worker_step(age));
        let signal = match (step, next) {
            (WorkerStep::Work, WorkerStep::Work) => None,
            (_, WorkerStep::Work) => Some(RunSignal::Continue),
            (_, WorkerStep::Stop) => Some(RunSignal::Stop),
            (_, WorkerStep::End) => Some(RunSignal::Kill),
        };
        if let Some(signal) = signal {
            signal_unattended(state, signal);
        }
        if step != next {
            let what = match next {
                WorkerStep::Work => "workers continue",
                WorkerStep::Stop => "workers stop",
                WorkerStep::End => "workers end",
            };
            state.tell(Level::Warning, what, &[]);
        }
        step = next;
        let grace = age.map_or(LOOK_INTERVAL_MAX, |(_, times)| times.grace() / 30);
        std::thread::sleep(grace.clamp(LOOK_INTERVAL_MIN, LOOK_INTERVAL_MAX));
    }
}

fn signal_unattended(state: &DaemonState, signal: RunSignal) {
    let runs = state.town.runs_directory();
    // Files that cannot be read are looked at again soon.
    for (run, _) in runs_with_files(&runs).unwrap_or_default() {
        let files = RunFiles::of(&runs, &run);
        if matches!(unattended(&files), Ok(Some(_))) {
            let _ = signal_run(&files, signal);
        }
    }
}
