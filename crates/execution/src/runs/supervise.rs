//! The supervisor: our own process around an agent.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use gt_core::schedule::{Account, Context, Run, RunEnd, RunId, RunLoss, RunState, WorkerPlace};
use gt_core::{ExecutorKind, Rig};
use gt_executors::calls::CallRunner;
use gt_executors::runs::{
    AgentEnd, AskResult, Liveness, RunFiles, RunLock, Supervision, SupervisorAnswer, ask_to_cancel,
    become_detached, end_orphan, enter_control_group, say, tell_done,
};

use super::conclude::{conclude, not_continued};
use super::kept_output::keep_output;
use super::lease_watch::LeaseWatch;
use super::limits::LimitWatch;
use super::retry_while_unreachable::retry_while_unreachable;
use super::session_reports::SessionReports;
use super::sessions::{SessionInputs, SessionsEnd};
use super::spawner::{reopening, with_causes};
use super::telemetry::RunTelemetry;
use super::usage::{note_usage, usage_in_output};
use super::worker_calls::WorkerCalls;
use crate::trees::audit_run;
use crate::trees::{NotPrepared, Prepared, occupy_and_prepare};
use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _, strays_are_left};
use gt_scheduling::run_transitions::Claim;
use gt_scheduling::run_transitions::{claim, exec_failed, finish};
use gt_scheduling::usage_windows::note_windows;
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::settings::{file_layers, layers_over};
use gt_town::{OperationError, Result, Town};

/// Tells the process that started this supervisor that it cannot do its work. Without effect if it was told an answer
/// already.
pub fn say_failed(why: &str) {
    say(&SupervisorAnswer::Failed(why.to_owned()));
}

/// The same where the store was away, which is no fault of the work: the start is tried again, and counts as no failure.
pub fn say_away(why: &str) {
    say(&SupervisorAnswer::Away(why.to_owned()));
}

/// Carries out a run from its claim to its end: the command `gt worker exec`. Takes the run's lock, claims the run,
/// executes the agent, waits for it, and records its end.
///
/// `runner` carries out the commands of its worker.
pub fn supervise(
    town: &Town,
    id: &RunId,
    program: &Path,
    runner: &Arc<dyn CallRunner>,
) -> Result<()> {
    let mut supervision = Supervision::default();
    let failed = |action| {
        move |source| OperationError::File { action, path: PathBuf::from(id.to_string()), source }
    };
    become_detached().map_err(failed("detach from the terminal of"))?;
    let files = RunFiles::of(&town.runs_directory(), &id.to_string());
    let Some(lock) = lock_after_previous(&files).map_err(failed("lock"))? else {
        say_failed(&format!("another supervisor has {id}"));
        return Ok(());
    };
    let Some(assignment) = read_claim_inputs(town, id)? else {
        say_failed(&format!("there is no run {id}"));
        return Ok(());
    };
    let grace = assignment.settings.kill_grace;
    let runs = town.runs_directory();
    // The kernel may take a while, so other work is done meanwhile.
    let entering = assignment.settings.control_groups.then(|| {
        let runs = runs.clone();
        std::thread::spawn(move || enter_control_group(&runs))
    });
    if let Some((earlier, why)) = earlier_run_alive(&runs, id, |earlier| strays_of(town, earlier)) {
        end_if_over(town, &earlier, grace)?;
        say(&SupervisorAnswer::Busy(why));
        return Ok(());
    }
    let ClaimInputs { run, rig, context, settings, account } = assignment;
    if run.state != RunState::Starting {
        say_failed(&format!("{id} is {}", run.state.as_str()));
        return Ok(());
    }
    let prepared = occupy_and_prepare(town, &rig, &run, &context.parameters, program);
    let (_tree, Prepared { place, polecat }) = match prepared {
        Ok(prepared) => prepared,
        Err(NotPrepared::Busy(why)) => {
            if let Some(last) = last_in_tree_of(town, &run)? {
                end_if_over(town, &last, grace)?;
            }
            say(&SupervisorAnswer::Busy(why));
            return Ok(());
        }
        Err(NotPrepared::Away(why)) => {
            say(&SupervisorAnswer::Away(why));
            return Ok(());
        }
        Err(NotPrepared::Failed(error)) => {
            say_failed(&with_causes(&error));
            return Ok(());
        }
    };
    let order = match claim(town, id, &place, polecat.as_ref())? {
        Claim::Granted(order) => order,
        Claim::Refused(why) => {
            say_failed(&why);
            return Ok(());
        }
    };
    let calls = match WorkerCalls::open(&files, &order.token, Arc::clone(runner)) {
        Ok(calls) => calls,
        Err(error) => {
            let why = with_causes(&error);
            retry_while_unreachable(&lock, || exec_failed(town, id, &why))?;
            say_failed(&why);
            return Ok(());
        }
    };
    // The agent is started in the control group. If entering it failed, it has none.
    let _ = entering.map(std::thread::JoinHandle::join);
    let run = order.run.clone();
    let context = order.context.clone();
    let telemetry = RunTelemetry::start(&run.id, &order.token);
    let reports = SessionReports::of(town, &run);
    let shift = SessionInputs {
        telemetry: &telemetry,
        reports: &reports,
        town,
        rig: &rig,
        settings: &settings,
        account: account.as_ref(),
        program,
        files: &files,
        lock: &lock,
    };
    if run.executor == ExecutorKind::Tmux {
        supervision.reopen_with(reopening(town, &run, &rig, program));
    }
    let lease = LeaseWatch::begin(town, &run, &files)?;
    let (ended, is_limited) = std::thread::scope(|scope| {
        let (ended, end) = mpsc::channel::<()>();
        let (lease_ended, lease_end) = mpsc::channel::<()>();
        if let Some(lease) = &lease {
            scope.spawn(move || lease.watch_until(&lease_end));
        }
        let watch = LimitWatch::begin(town, &run, &files, &settings, &reports);
        let telemetry = &telemetry;
        let watching = scope.spawn(move || watch.watch_until(&end, telemetry));
        let result = shift.work(*order, &mut supervision);
        drop(ended);
        drop(lease_ended);
        let is_limited = watching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result.map(|result| (result, is_limited))
    })?;
    if lock.is_removed() {
        end_without_town(town, id);
        return Ok(());
    }
    match ended {
        SessionsEnd::Ended(end, runtime) => {
            // No person asked for this end: the limit in its output says what becomes of the run.
            let is_for_limit = is_limited && end == AgentEnd::Cancelled;
            let end = if is_for_limit { AgentEnd::Signalled(TERM) } else { end };
            // An agent that was ended because its host was out of sight is not to blame.
            let is_for_lease = lease.as_ref().is_some_and(LeaseWatch::has_ended_worker)
                && matches!(end, AgentEnd::Signalled(_));
            let loss = if is_for_lease { RunLoss::Host } else { RunLoss::Agent };
            let mut usage = usage_in_output(town, &run, &runtime);
            usage.extend(telemetry.records());
            let (in_files, windows) = reports.look();
            usage.extend(in_files);
            retry_while_unreachable(&lock, || note_windows(town, &run, &windows))?;
            let problems = telemetry.problems();
            let peak_mb = supervision.take_peak_mb();
            // Before the end, so that a process that waits for the end finds it.
            retry_while_unreachable(&lock, || note_usage(town, &run, &usage, &problems, peak_mb))?;
            retry_while_unreachable(&lock, || {
                conclude(town, &rig, &run, &context, &runtime, (end, loss))
            })?;
            // The run is over. If that fails, the next landing looks again.
            let _ = audit_run(town, &rig, &run);
        }
        SessionsEnd::NotContinued(why) => {
            retry_while_unreachable(&lock, || not_continued(town, &rig, &run, &why))?;
        }
        SessionsEnd::NotStarted(why) => {
            retry_while_unreachable(&lock, || exec_failed(town, id, &why))?;
            say_failed(&why);
        }
    }
    keep_output(town, &run);
    // The credentials of the origin are not kept longer than the run, however it ended.
    let _ = std::fs::remove_file(files.environment_path());
    drop(calls);
    Ok(())
}

/// The signal by which agents are asked to end.
const TERM: i32 = 15;

/// How long the supervisor that found its place taken may need to end, when the run got another place.
const SUPERVISOR_EXIT_WAIT_MAX: Duration = Duration::from_secs(3);
/// How often that is checked.
const SUPERVISOR_EXIT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Takes the lock of a run; nothing if another supervisor has it and does not end.
fn lock_after_previous(files: &RunFiles) -> std::io::Result<Option<RunLock>> {
    let began = Instant::now();
    loop {
        let lock = files.try_lock()?;
        if lock.is_some() || began.elapsed() >= SUPERVISOR_EXIT_WAIT_MAX {
            return Ok(lock);
        }
        std::thread::sleep(SUPERVISOR_EXIT_POLL_INTERVAL);
    }
}

/// Ends a run whose town was deleted from this machine. Only a store elsewhere can still record it.
pub(super) fn end_without_town(town: &Town, id: &RunId) {
    let why = "the directory of its town was deleted on the machine it ran on";
    let end =
        RunEnd { loss: RunLoss::Host, ..RunEnd::without_status(RunState::Lost, why.to_owned()) };
    let _ = finish(town, id, &end);
}

/// A run with the data that its claim needs, read in one transaction.
pub(super) struct ClaimInputs {
    pub(super) run: Run,
    pub(super) rig: Rig,
    pub(super) context: Context,
    pub(super) settings: SchedulerSettings,
    pub(super) account: Option<Account>,
}

fn read_claim_inputs(town: &Town, id: &RunId) -> Result<Option<ClaimInputs>> {
    let files = file_layers(town)?;
    town.read(|reader| {
        let Some(run) = reader.run(id)? else { return Ok(None) };
        let rig = reader.rig(run.rig.as_str())?;
        let context = reader.context_by_number(run.context)?;
        let Some((rig, context)) = rig.zip(context) else { return Ok(None) };
        let settings = SchedulerSettings::of(&layers_over(&files, reader)?)?;
        let accounts = if run.account.is_empty() { Vec::new() } else { reader.accounts()? };
        let account = accounts.into_iter().find(|account| account.handle == run.account);
        Ok(Some(ClaimInputs { run, rig, context, settings, account }))
    })
}

/// Ends the processes of an earlier run that was cut off and that hold no lock; returns the processes that are left.
fn strays_of(town: &Town, earlier: &RunId) -> Vec<i32> {
    let cleared = || -> Result<Vec<i32>> {
        let Some(run) = town.read(|reader| Ok(reader.run(earlier)?))? else {
            return Ok(Vec::new());
        };
        Ok(LocalProcesses::of(town)?.clear(&[&run]).concat())
    };
    // A store that does not answer refuses the claim a moment later.
    cleared().unwrap_or_default()
}

/// An earlier run of the same bead that has, or may have, a process. The store lets only one be live, but the
/// processes of a cancelled one may take their time. `strays_of` ends its processes that hold no lock, and returns
/// those that are left.
fn earlier_run_alive(
    runs: &Path,
    id: &RunId,
    strays_of: impl Fn(&RunId) -> Vec<i32>,
) -> Option<(RunId, String)> {
    for epoch in (1..id.epoch).rev() {
        let earlier = RunId { bead: id.bead.clone(), epoch };
        let files = RunFiles::of(runs, &earlier.to_string());
        match files.liveness() {
            Ok(Liveness::Free) if files.was_cut_off() => {
                let left = strays_of(&earlier);
                if !left.is_empty() {
                    let why = strays_are_left(&earlier, &left);
                    return Some((earlier, why));
                }
            }
            Ok(Liveness::Held) => {
                let why = format!("{earlier} has not ended yet");
                return Some((earlier, why));
            }
            Err(error) => {
                let lock = files.lock_path();
                let why = format!(
                    "cannot tell from {} whether {earlier} has ended: {error}",
                    lock.display()
                );
                return Some((earlier, why));
            }
            Ok(Liveness::Free | Liveness::NeverTaken) => {}
        }
        // Its agent was started, and only after all earlier processes were gone.
        if files.output_path().exists() && matches!(files.liveness(), Ok(Liveness::Free)) {
            return None;
        }
    }
    None
}

/// The run that had the tree of this one before.
fn last_in_tree_of(town: &Town, run: &Run) -> Result<Option<RunId>> {
    let Some(name) = run.place.as_ref().and_then(WorkerPlace::polecat_name) else {
        return Ok(None);
    };
    let polecat = town.read(|reader| Ok(reader.polecat(&run.rig, name)?))?;
    Ok(polecat.and_then(|polecat| polecat.last_run).filter(|last| *last != run.id))
}

/// Ends the processes of an earlier run that is over in the store: the process that recorded the end may have died
/// before it could do so.
pub(super) fn end_if_over(town: &Town, earlier: &RunId, grace: Duration) -> Result<()> {
    let run = town.read(|reader| Ok(reader.run(earlier)?))?;
    let files = RunFiles::of(&town.runs_directory(), &earlier.to_string());
    let told = match run.map(|run| run.state) {
        // Of a bead that was deleted no run is left.
        Some(RunState::Cancelled) | None => ask_to_cancel(&files),
        Some(RunState::Done) => tell_done(&files),
        // A failed run is recorded by its supervisor, which is about to end; a lost run has no processes.
        Some(
            RunState::Failed
            | RunState::Lost
            | RunState::Starting
            | RunState::Running
            | RunState::Blocked,
        ) => return Ok(()),
    };
    // Processes that cannot be ended keep the place busy, and show as a run that is over and has processes.
    if !matches!(told, Ok(AskResult::Told)) {
        let _ = end_orphan(&files, grace);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn run(epoch: u32) -> RunId {
        RunId::parse(&format!("gt-a#{epoch}")).unwrap()
    }

    #[test]
    fn an_agent_waits_for_processes_of_an_earlier_run() {
        let runs = tempfile::tempdir().unwrap();
        let files = |epoch| RunFiles::of(runs.path(), &run(epoch).to_string());
        let left = Cell::new(Vec::new());
        let alive = |epoch| {
            earlier_run_alive(runs.path(), &run(epoch), |_| {
                let numbers = left.take();
                left.set(numbers.clone());
                numbers
            })
        };
        let busy = |epoch| alive(epoch).map(|(earlier, _)| earlier);
        assert_eq!(busy(9), None);

        let lock = files(3).try_lock().unwrap();
        assert_eq!(busy(9), Some(run(3)));
        assert_eq!(busy(3), None);
        drop(lock);

        // A run whose lock cannot be read may be alive.
        files(5).create().unwrap();
        let itself = files(5).lock_path();
        std::os::unix::fs::symlink(&itself, &itself).unwrap();
        let (earlier, why) = alive(9).unwrap();
        assert_eq!(earlier, run(5));
        assert!(why.contains("cannot tell") && why.contains("gt-a#5"), "{why}");

        // A run whose agent has started had checked all earlier runs itself.
        drop(files(7).try_lock().unwrap());
        assert_eq!(busy(9), Some(run(5)));
        std::fs::write(files(7).output_path(), "").unwrap();
        assert_eq!(busy(9), None);

        // One whose supervisor was cut off is waited for while a process of it is seen.
        std::fs::write(files(7).lock_path(), "70000 70001 5\n").unwrap();
        assert_eq!(busy(9), None);
        left.set(vec![70_002]);
        let (earlier, why) = alive(9).unwrap();
        assert_eq!(earlier, run(7));
        assert!(why.contains("70002"), "{why}");
    }
}
