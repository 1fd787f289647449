//! The lease of this host, as the supervisor of a run watches it: its worker stops before another host may take the run for lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use gt_core::decide::{LeaseTimes, WorkerStep};
use gt_core::schedule::Run;
use gt_executors::runs::{RunFiles, RunSignal, signal_run};

use super::kept_output::LiveOutput;
use gt_scheduling::host_lease::renew_if_due;
use gt_town::hosts::{has_lease, lease_of};
use gt_town::settings::layers;
use gt_town::{HostLease, Result, Town};

/// How often the age of the lease is looked at: a part of the grace within these limits.
const LOOKS_PER_GRACE: u32 = 30;
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(50);
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(5);

/// Watches the lease of this host for one run.
pub(super) struct LeaseWatch<'a> {
    town: &'a Town,
    run: &'a Run,
    files: &'a RunFiles,
    lease: HostLease,
    /// The times and the beginning that count while no renewal is recorded.
    times: LeaseTimes,
    began: Duration,
    is_ended: AtomicBool,
}

impl<'a> LeaseWatch<'a> {
    /// Begins to watch; nothing in a town whose hosts have no leases.
    pub(super) fn begin(town: &'a Town, run: &'a Run, files: &'a RunFiles) -> Result<Option<Self>> {
        if !has_lease(town) {
            return Ok(None);
        }
        let lease = lease_of(town)?;
        Ok(Some(Self {
            town,
            run,
            files,
            times: LeaseTimes::of(layers(town)?.host_grace()?),
            began: lease.since_boot(),
            lease,
            is_ended: AtomicBool::new(false),
        }))
    }

    /// Whether the worker was ended because this host could not renew its lease.
    pub(super) fn has_ended_worker(&self) -> bool {
        self.is_ended.load(Ordering::SeqCst)
    }

    /// The age of the last renewal, with the times that it declared.
    fn age(&self) -> (Duration, LeaseTimes) {
        let began = || (self.lease.since_boot().saturating_sub(self.began), self.times);
        self.lease.age().unwrap_or_else(began)
    }

    /// Watches until the run is over. A store that does not answer holds up the renewals and not the look at the clock.
    pub(super) fn watch_until(&self, end: &Receiver<()>) {
        std::thread::scope(|scope| {
            let (ended, renewals_end) = mpsc::channel::<()>();
            scope.spawn(move || self.renew_until(&renewals_end));
            let mut step = WorkerStep::Work;
            while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(self.interval()) {
                let (age, times) = self.age();
                step = self.apply(step, times.worker_step(age));
            }
            drop(ended);
        });
    }

    fn interval(&self) -> Duration {
        let (_, times) = self.age();
        (times.grace() / LOOKS_PER_GRACE).clamp(LOOK_INTERVAL_MIN, LOOK_INTERVAL_MAX)
    }

    /// Takes the next step; a worker that was ended stays so. A signal that cannot be sent is sent again at the next look.
    fn apply(&self, before: WorkerStep, next: WorkerStep) -> WorkerStep {
        match (before, next) {
            (WorkerStep::End, _) | (_, WorkerStep::End) => {
                self.is_ended.store(true, Ordering::SeqCst);
                let _ = signal_run(self.files, RunSignal::Kill);
                WorkerStep::End
            }
            (_, WorkerStep::Stop) => {
                let _ = signal_run(self.files, RunSignal::Stop);
                WorkerStep::Stop
            }
            (WorkerStep::Stop, WorkerStep::Work) => {
                match signal_run(self.files, RunSignal::Continue) {
                    Ok(_) => WorkerStep::Work,
                    Err(_) => WorkerStep::Stop,
                }
            }
            (WorkerStep::Work, WorkerStep::Work) => WorkerStep::Work,
        }
    }

    /// Renews the lease while the daemon of this host does not, and keeps the output for the other hosts.
    fn renew_until(&self, end: &Receiver<()>) {
        let mut output = LiveOutput::default();
        while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(self.interval()) {
            let (age, times) = self.age();
            // The daemon goes first.
            if age >= times.renew_every() * 3 / 2 {
                // A store that does not answer is asked again.
                let _ = renew_if_due(&self.town.as_system());
            }
            output.keep_if_changed(self.town, self.run);
        }
    }
}
