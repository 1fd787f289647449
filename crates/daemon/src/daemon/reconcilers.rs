//! The reconcilers: the work of each, and its retries after a failure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gt_core::decide::PlanReason;
use gt_core::{Json, Timestamp};

use super::journal::Level;
use super::reconciler_kind::ReconcilerKind;
use super::spawning::PermittedSpawner;
use super::state::DaemonState;
use super::wake::WakeCauses;
use crate::reconcile;
use gt_execution::runs::{Recovered, RunSpawner};
use gt_scheduling::dispatch::{CycleCaller, Dispatcher, NotStarted, next_due};
use gt_scheduling::processes::ProcessProbe as _;
use gt_town::error::with_causes;
use gt_town::{Result, Town};

/// The outcome of a round.
#[derive(Debug, Default)]
struct RoundOutcome {
    /// How much was done.
    done: u64,
    /// When there is more to do, if no event says so before.
    due: Option<Timestamp>,
    /// There is more to do now.
    again: bool,
}

/// The delay before a retry after a failure, at first and at most.
const RETRY_DELAY_MIN: Duration = Duration::from_millis(250);
const RETRY_DELAY_MAX: Duration = Duration::from_mins(1);
/// The delay before another check of a start that was already due.
const OVERDUE_START_DELAY: Duration = Duration::from_secs(1);
/// How often old records are deleted.
const HOUSEKEEPING_INTERVAL: Duration = Duration::from_hours(1);
/// How often the output of workers is checked for silence, while there are any.
const SILENCE_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How often trees that are kept warm are compared with their base.
const WARM_TREES_INTERVAL: Duration = Duration::from_secs(30);
/// The delay before an origin that did not answer is asked again.
const LANDING_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Starts the threads of all reconcilers. They do nothing before they are woken.
pub(super) fn begin(state: &Arc<DaemonState>) -> std::io::Result<()> {
    for kind in ReconcilerKind::ALL {
        state.tally(kind).busy_since = vec![None; kind.hands()];
        for hand in 0..kind.hands() {
            let state = Arc::clone(state);
            let name = format!("{kind} {hand}");
            std::thread::Builder::new()
                .name(name)
                .spawn(move || run_reconciler(&state, kind, hand))?;
        }
    }
    Ok(())
}

/// Runs a reconciler until the daemon stops.
fn run_reconciler(state: &DaemonState, kind: ReconcilerKind, hand: usize) {
    let spawner = RunSpawner::new(&state.town, &state.program);
    let spawner = PermittedSpawner { spawner: &spawner, permits: &state.permits };
    let dispatcher = Dispatcher::new(&state.town, &spawner)
        .with_caller(CycleCaller::Daemon)
        .with_counts(false)
        .with_starter_lock(state.processes.host());
    while let Some(causes) = state.wake(kind).wait() {
        make_round(state, kind, hand, causes, || match kind {
            ReconcilerKind::Dispatch => dispatch(state, &dispatcher),
            ReconcilerKind::Liveness => liveness(state),
            ReconcilerKind::Convoys => convoys(state),
            ReconcilerKind::MergeQueue => merge_queue(state),
            ReconcilerKind::Outbox => outbox(state),
            ReconcilerKind::Stalls => stalls(state),
            ReconcilerKind::Work => work(state),
            ReconcilerKind::Trees => trees(state),
            ReconcilerKind::Retention => retention(state),
        });
        state.wake_event_loop();
    }
}

/// Makes one round, and records its outcome. A panic counts as a failure: each step of the round is in the store or
/// is not, and nothing else is kept.
fn make_round(
    state: &DaemonState,
    kind: ReconcilerKind,
    hand: usize,
    causes: WakeCauses,
    round: impl FnOnce() -> Result<RoundOutcome>,
) {
    state.tally(kind).busy_since[hand] = Some(Instant::now());
    match catch_unwind(AssertUnwindSafe(round)) {
        Ok(Ok(round)) => went_well(state, kind, hand, causes, &round),
        Ok(Err(error)) => failed(state, kind, hand, &with_causes(&error)),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            let what = text.map(|text| format!(": {text}")).unwrap_or_default();
            failed(state, kind, hand, &format!("it panicked{what}; the log says where"));
        }
    }
}

fn went_well(
    state: &DaemonState,
    kind: ReconcilerKind,
    hand: usize,
    causes: WakeCauses,
    round: &RoundOutcome,
) {
    let mut tally = state.tally(kind);
    tally.report.rounds += 1;
    tally.report.done += round.done;
    tally.failed_in_a_row = 0;
    tally.report.last_error.clear();
    tally.busy_since[hand] = None;
    let found = if causes.would_be_news() { round.done } else { 0 };
    tally.findings += found;
    drop(tally);
    if found > 0 {
        let more = [("reconciler", Json::string(kind.name())), ("found", number(found))];
        state.tell(Level::Warning, "found by scan", &more);
    }
    if let Some(due) = round.due {
        state.wake_at(kind, due);
    }
    if round.again {
        state.wake(kind).ring();
    }
}

fn failed(state: &DaemonState, kind: ReconcilerKind, hand: usize, why: &str) {
    let mut tally = state.tally(kind);
    tally.report.rounds += 1;
    tally.report.errors += 1;
    tally.failed_in_a_row = tally.failed_in_a_row.saturating_add(1);
    let in_a_row = tally.failed_in_a_row;
    let is_new = tally.report.last_error != why;
    why.clone_into(&mut tally.report.last_error);
    tally.busy_since[hand] = None;
    drop(tally);
    let pause = RETRY_DELAY_MIN.saturating_mul(1 << (in_a_row - 1).min(16)).min(RETRY_DELAY_MAX);
    // A failure that repeats is logged when it begins, and then less and less often.
    if is_new || in_a_row.is_power_of_two() {
        let more = [
            ("reconciler", Json::string(kind.name())),
            ("error", Json::string(why)),
            ("in_a_row", number(in_a_row.into())),
            ("again_ms", number(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX))),
        ];
        state.tell(Level::Error, "failed", &more);
    }
    state.wake(kind).wake_at(Instant::now() + pause);
}

pub(super) fn number(number: u64) -> Json {
    Json::trusted(number.to_string())
}

fn dispatch(state: &DaemonState, dispatcher: &Dispatcher<'_>) -> Result<RoundOutcome> {
    let town = &state.town;
    state.permits.set_limit(town.scheduler_settings()?.spawn_parallelism);
    let turn = state.turn.take();
    let dispatched = dispatcher.dispatch_then(&|| turn.give_back())?;
    drop(turn);
    let mut recover = false;
    for (bead, error) in &dispatched.errors {
        let (level, event) = match error {
            NotStarted::Changed(_) => continue,
            NotStarted::Spawn(error) if error.is_busy() => (Level::Info, "busy"),
            NotStarted::Spawn(_) => (Level::Warning, "not started"),
            NotStarted::GivenUp(..) => (Level::Warning, "given up"),
            NotStarted::Operation(_) => {
                recover = true;
                (Level::Error, "not started")
            }
        };
        let why = with_causes(error);
        let more = [("bead", Json::string(bead.as_str())), ("why", Json::string(&why))];
        state.tell(level, event, &more);
    }
    if recover {
        state.wake(ReconcilerKind::Liveness).ring();
    }
    let started = dispatched.dispatched.len() as u64;
    let again = started > 0 && dispatched.reason == Some(PlanReason::Batch);
    let due = next_start(town)?.into_iter().chain(dispatched.due).min();
    Ok(RoundOutcome { done: started, due, again })
}

/// When the next start is due that only waits for a time. A start that was already due in this round waits for
/// something else too, so it is checked again after a pause.
fn next_start(town: &Town) -> Result<Option<Timestamp>> {
    let due = next_due(town)?;
    let now = town.now();
    Ok(due.map(|due| if due > now { due } else { now.plus(OVERDUE_START_DELAY) }))
}

fn liveness(state: &DaemonState) -> Result<RoundOutcome> {
    let recovered = reconcile::liveness(&state.town, &state.processes)?;
    tell_recovered(state, &recovered);
    let (released, next_hook) = reconcile::stale_hooks(&state.town)?;
    for hook in &released {
        let more = [
            ("bead", Json::string(hook.bead.as_str())),
            ("assignee", Json::string(&hook.assignee)),
        ];
        state.tell(Level::Warning, "hook released", &more);
    }
    let runs = recovered.restarted.len() + recovered.lost.len() + recovered.finished.len();
    // An idle hook causes no event, so a finding here is not counted as unannounced.
    state.tally(ReconcilerKind::Liveness).report.done += released.len() as u64;
    let done = (runs + recovered.stale) as u64;
    let due = recovered.due.into_iter().chain(next_hook).min();
    Ok(RoundOutcome { done, due, again: false })
}

fn tell_recovered(state: &DaemonState, recovered: &Recovered) {
    for (event, runs) in [
        ("taken back", &recovered.restarted),
        ("lost", &recovered.lost),
        ("found over", &recovered.finished),
        ("cleared after absence", &recovered.cleared),
    ] {
        for run in runs {
            let more = [
                ("bead", Json::string(run.bead.as_str())),
                ("run", Json::string(&run.to_string())),
            ];
            state.tell(Level::Warning, event, &more);
        }
    }
    for (run, why) in &recovered.errors {
        let more = [("run", Json::string(&run.to_string())), ("why", Json::string(why))];
        state.tell(Level::Error, "not recovered", &more);
    }
}

/// Nothing changes without an event, so a round without new events has nothing to do.
fn convoys(state: &DaemonState) -> Result<RoundOutcome> {
    let last = state.town.read_newest(|reader| Ok(reader.last_event_number()?))?;
    if state.convoys_seen.load(Ordering::SeqCst) == last {
        return Ok(RoundOutcome::default());
    }
    let attended = reconcile::convoys(&state.town)?;
    // Only now: after a failure the same events are handled again.
    state.convoys_seen.store(last, Ordering::SeqCst);
    for context in &attended.scheduled {
        state.tell(
            Level::Warning,
            "was not scheduled",
            &[("bead", Json::string(context.bead.as_str()))],
        );
    }
    for convoy in &attended.landed {
        state.tell(Level::Warning, "had not landed", &[("convoy", Json::string(convoy.as_str()))]);
    }
    let done = (attended.scheduled.len() + attended.landed.len()) as u64;
    Ok(RoundOutcome { done, due: None, again: false })
}

fn merge_queue(state: &DaemonState) -> Result<RoundOutcome> {
    let report = reconcile::merge_queue(&state.town, &state.program)?;
    for (queue, why) in &report.problems {
        let more = [
            ("rig", Json::string(queue.rig.as_str())),
            ("target", Json::string(&queue.target)),
            ("why", Json::string(why)),
        ];
        state.tell(Level::Warning, "merge queue stopped", &more);
    }
    let again = (!report.problems.is_empty()).then(|| state.now().plus(LANDING_RETRY_DELAY));
    let due = report.due.into_iter().chain(again).min();
    Ok(RoundOutcome { done: report.changed.len() as u64, due, again: false })
}

fn outbox(state: &DaemonState) -> Result<RoundOutcome> {
    reconcile::deliver_messages(&state.town)?;
    let due = state.town.read_newest(|reader| Ok(reader.next_notice_due()?))?;
    // Notices that are due now are being sent.
    let now = state.now();
    let due = due.map(|due| due.max(now.plus(Duration::from_secs(1))));
    Ok(RoundOutcome { done: 0, due, again: false })
}

fn stalls(state: &DaemonState) -> Result<RoundOutcome> {
    let stalls = reconcile::stalls(&state.town, &state.processes)?;
    for (level, event, runs) in [
        (Level::Warning, "silent", &stalls.silent),
        (Level::Info, "speaks again", &stalls.going_on),
    ] {
        for run in runs {
            state.tell(level, event, &[("run", Json::string(&run.to_string()))]);
        }
    }
    let done = stalls.silent.len() + stalls.going_on.len();
    // No event tells of silence, so workers are polled, and a finding here is not counted as unannounced. Without
    // live runs there is nothing to poll.
    state.tally(ReconcilerKind::Stalls).report.done += done as u64;
    let has_live_runs = !state.town.read_newest(|reader| Ok(reader.live_runs()?))?.is_empty();
    let due = has_live_runs.then(|| state.now().plus(SILENCE_POLL_INTERVAL));
    Ok(RoundOutcome { done: 0, due, again: false })
}

fn work(state: &DaemonState) -> Result<RoundOutcome> {
    let overdue = reconcile::work(&state.town)?;
    for (event, runs) in [("stale", &overdue.stale), ("lease ended", &overdue.lost)] {
        for run in runs {
            let more = [
                ("bead", Json::string(run.bead.as_str())),
                ("run", Json::string(&run.to_string())),
            ];
            state.tell(Level::Warning, event, &more);
        }
    }
    // No event tells of silence, so a finding here is not counted as unannounced.
    state.tally(ReconcilerKind::Work).report.done += overdue.count() as u64;
    Ok(RoundOutcome { done: 0, due: overdue.due, again: false })
}

fn retention(state: &DaemonState) -> Result<RoundOutcome> {
    reconcile::housekeeping(&state.town, &state.processes)?;
    let due = Some(state.now().plus(HOUSEKEEPING_INTERVAL));
    Ok(RoundOutcome { done: 0, due, again: false })
}

fn trees(state: &DaemonState) -> Result<RoundOutcome> {
    let warmed = reconcile::warm_trees(&state.town, &state.processes)?;
    for (rig, why) in &warmed.problems {
        let more = [("rig", Json::string(rig.as_str())), ("why", Json::string(why))];
        state.tell(Level::Warning, "no warm trees", &more);
    }
    let done = warmed.made.len() + warmed.refreshed.len() + warmed.removed.len();
    // No event tells that the base has moved at the origin, so a finding here is not counted as unannounced.
    state.tally(ReconcilerKind::Trees).report.done += done as u64;
    // No event tells of that either, so trees that are kept warm are looked at again.
    let due = warmed.keeps_some.then(|| state.now().plus(WARM_TREES_INTERVAL));
    Ok(RoundOutcome { done: 0, due, again: false })
}

#[cfg(test)]
mod tests {
    use gt_core::Clock;
    use gt_scheduling::Consequences;
    use gt_scheduling::processes::LocalProcesses;
    use tempfile::TempDir;

    use super::*;
    use crate::daemon::journal::{Journal, log_path};
    use gt_beads::beads::{self, NewBead};
    use gt_town::{Actor, Environment, StoreOptions, SystemClock, install};

    /// The state of a town of its own, without workers.
    fn state(directory: &TempDir) -> DaemonState {
        let actor = Actor { name: "tester".to_owned(), owner: String::new() };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let environment = Environment::default();
        let root = install(directory.path(), &environment, &actor, &*clock).unwrap().root;
        let options = StoreOptions::default();
        let town =
            Town::open(&root, &root, &environment, actor, clock, options, Arc::new(Consequences))
                .unwrap();
        let (processes, journal) =
            (LocalProcesses::of(&town).unwrap(), Journal::open(&root, 1 << 20).unwrap());
        let state = DaemonState::new(town, processes, "gt".into(), journal).unwrap();
        for kind in ReconcilerKind::ALL {
            state.tally(kind).busy_since = vec![None; kind.hands()];
        }
        state
    }

    #[test]
    fn a_stale_hook_is_released_and_a_claim_by_a_person_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let state = state(&directory);
        let town = &state.town;
        let rig = gt_town::rigs::NewRig {
            name: "web",
            repository: None,
            prefix: Some("we"),
            branch: None,
            executor: gt_core::ExecutorKind::Process,
        };
        gt_town::rigs::add(town, &rig).unwrap();
        let hook = |id: &str, status: gt_core::Status, assignee: &str| {
            let (id, title) = (Some(id.to_owned()), id.to_owned());
            let new = NewBead { id, title, assignee: assignee.to_owned(), ..NewBead::default() };
            let bead = beads::create(town, &new, false).unwrap().bead;
            let hooked = gt_core::Bead { status, ..bead.clone() };
            town.write(|writer| {
                Ok(writer.save_bead(&bead, &hooked, gt_core::BeadChangeKind::StatusChanged)?)
            })
            .unwrap();
        };
        hook("we-hooked", gt_core::Status::Hooked, "web/polecats/nux");
        hook("we-worker", gt_core::Status::InProgress, "web/polecats/slit");
        hook("we-person", gt_core::Status::InProgress, "ann");
        let open = || {
            let is_open = |id: &&str| {
                let shown = beads::show(town, &[(*id).to_owned()]).unwrap().remove(0).unwrap();
                shown.row.bead.status == gt_core::Status::Open && shown.row.bead.assignee.is_empty()
            };
            ["we-hooked", "we-worker", "we-person"].into_iter().filter(is_open).collect::<Vec<_>>()
        };

        // Not before its time, which is returned,
        let due = liveness(&state).unwrap().due;
        assert!(due.is_some_and(|due| due > town.now()), "{due:?}");
        assert!(open().is_empty());
        // not if that is switched off,
        gt_town::settings::set(
            town,
            "recovery.stale_hooks",
            "0",
            gt_scheduling::runtimes::check_name,
        )
        .unwrap();
        assert_eq!(liveness(&state).unwrap().due, None);
        assert!(open().is_empty());
        // and then at once.
        gt_town::settings::set(
            town,
            "recovery.stale_hooks",
            "1ns",
            gt_scheduling::runtimes::check_name,
        )
        .unwrap();
        liveness(&state).unwrap();
        assert_eq!(open(), ["we-hooked", "we-worker"]);
        let log = std::fs::read_to_string(log_path(town.root())).unwrap();
        assert!(log.contains("hook released"), "{log}");
    }

    #[test]
    fn a_reconciler_that_panics_says_so_and_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let state = state(&directory);
        let told = WakeCauses { told: true, unprompted: false };

        // In the middle of a transaction, and while it holds the dispatch turn.
        make_round(&state, ReconcilerKind::Dispatch, 0, told, || {
            let _turn = state.turn.take();
            state.town.write(|_| -> Result<RoundOutcome> { panic!("no luck") })
        });

        {
            let tally = state.tally(ReconcilerKind::Dispatch);
            assert_eq!((tally.report.errors, tally.failed_in_a_row), (1, 1));
            assert_eq!(tally.report.last_error, "it panicked: no luck; the log says where");
        }
        assert!(state.is_quiet(), "no reconciler counts as busy any more");
        let log = std::fs::read_to_string(log_path(state.town.root())).unwrap();
        assert!(log.contains("it panicked: no luck"), "{log}");
        // It is woken again by itself,
        assert_eq!(state.wake(ReconcilerKind::Dispatch).wait(), Some(told));

        // and nothing is in its way.
        make_round(&state, ReconcilerKind::Dispatch, 0, told, || {
            let _turn = state.turn.take();
            state.town.write(|_| Ok(RoundOutcome { done: 1, ..RoundOutcome::default() }))
        });
        let tally = state.tally(ReconcilerKind::Dispatch);
        assert_eq!((tally.report.done, tally.failed_in_a_row), (1, 0));
        assert_eq!(tally.report.last_error, "");
    }
}
