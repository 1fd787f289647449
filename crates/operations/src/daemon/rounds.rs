//! What each reconciler does when it is woken, and how it goes on when that fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gt_core::decide::PlanReason;
use gt_core::{Json, Timestamp};

use super::duties::Duty;
use super::journal::Level;
use super::office::Office;
use super::spawning::Permitted;
use super::wake::Causes;
use crate::dispatch::{Caller, NotStarted, Pass, next_due};
use crate::error::with_causes;
use crate::reconcile::{self, Starts};
use crate::runs::{Recovered, World as _};
use crate::trees::warm_sessions;
use crate::{Result, Town};

/// What came of a round.
#[derive(Debug, Default)]
struct Round {
    /// How much was done.
    done: u64,
    /// When there is more to do, if nobody says so before.
    due: Option<Timestamp>,
    /// There is more to do now.
    again: bool,
}

/// How long after a failure it is tried again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// How soon it is looked again at what was due already.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How often what is old is looked after.
const HOUSEKEEPING_EVERY: Duration = Duration::from_hours(1);
/// How often it is looked whether workers have said something, while there are any.
const LISTEN_EVERY: Duration = Duration::from_secs(5);
/// How long after it an origin that did not answer is asked again.
const LANDING_AGAIN: Duration = Duration::from_secs(5);

/// Begins all reconcilers. None of them does anything before it is woken.
pub(super) fn begin(office: &Arc<Office>) -> std::io::Result<()> {
    for duty in Duty::ALL {
        office.tally(duty).busy_since = vec![None; duty.hands()];
        for hand in 0..duty.hands() {
            let office = Arc::clone(office);
            let name = format!("{duty} {hand}");
            std::thread::Builder::new().name(name).spawn(move || attend(&office, duty, hand))?;
        }
    }
    Ok(())
}

/// Sees to a duty until the daemon stops.
fn attend(office: &Office, duty: Duty, hand: usize) {
    let program = office.program.clone();
    let how = Pass { caller: Caller::Daemon, ..Pass::by_hand(&program) };
    let mut starts = Starts::new(&office.town, how, office.world.host());
    while let Some(causes) = office.wake(duty).wait() {
        make_round(office, duty, hand, causes, || match duty {
            Duty::Dispatch => dispatch(office, &mut starts),
            Duty::Liveness => liveness(office),
            Duty::Convoys => convoys(office),
            Duty::Landing => landing(office),
            Duty::Outbox => outbox(office),
            Duty::Stalls => stalls(office),
            Duty::Work => work(office),
            Duty::Trees => trees(office),
            Duty::Retention => retention(office),
        });
        office.nudge_heart();
    }
}

/// Makes one round, and writes down what came of it. Whoever panics has failed like any other: what it had begun is in the
/// store or is not, and nothing else is kept.
fn make_round(
    office: &Office,
    duty: Duty,
    hand: usize,
    causes: Causes,
    round: impl FnOnce() -> Result<Round>,
) {
    office.tally(duty).busy_since[hand] = Some(Instant::now());
    match catch_unwind(AssertUnwindSafe(round)) {
        Ok(Ok(round)) => went_well(office, duty, hand, causes, &round),
        Ok(Err(error)) => failed(office, duty, hand, &with_causes(&error)),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            let what = text.map(|text| format!(": {text}")).unwrap_or_default();
            failed(office, duty, hand, &format!("it panicked{what}; the log says where"));
        }
    }
}

fn went_well(office: &Office, duty: Duty, hand: usize, causes: Causes, round: &Round) {
    let mut tally = office.tally(duty);
    tally.report.rounds += 1;
    tally.report.done += round.done;
    tally.failed_in_a_row = 0;
    tally.report.last_error.clear();
    tally.busy_since[hand] = None;
    let found = if causes.would_be_news() { round.done } else { 0 };
    tally.findings += found;
    drop(tally);
    if found > 0 {
        let more = [("reconciler", Json::string(duty.name())), ("found", number(found))];
        office.tell(Level::Warning, "found by scan", &more);
    }
    if let Some(due) = round.due {
        office.wake_at(duty, due);
    }
    if round.again {
        office.wake(duty).ring();
    }
}

fn failed(office: &Office, duty: Duty, hand: usize, why: &str) {
    let mut tally = office.tally(duty);
    tally.report.rounds += 1;
    tally.report.errors += 1;
    tally.failed_in_a_row = tally.failed_in_a_row.saturating_add(1);
    let in_a_row = tally.failed_in_a_row;
    let is_new = tally.report.last_error != why;
    why.clone_into(&mut tally.report.last_error);
    tally.busy_since[hand] = None;
    drop(tally);
    let pause = FIRST_PAUSE.saturating_mul(1 << (in_a_row - 1).min(16)).min(LONGEST_PAUSE);
    // What goes on going wrong is told when it begins, and then less and less often.
    if is_new || in_a_row.is_power_of_two() {
        let more = [
            ("reconciler", Json::string(duty.name())),
            ("error", Json::string(why)),
            ("in_a_row", number(in_a_row.into())),
            ("again_ms", number(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX))),
        ];
        office.tell(Level::Error, "failed", &more);
    }
    office.wake(duty).wake_at(Instant::now() + pause);
}

pub(super) fn number(number: u64) -> Json {
    Json::trusted(number.to_string())
}

fn dispatch(office: &Office, starts: &mut Starts<'_>) -> Result<Round> {
    let town = &office.town;
    office.permits.set_limit(office.spawner.refresh(town)?.spawn_parallelism);
    let turn = office.turn.take();
    let spawner = Permitted { spawner: &office.spawner, permits: &office.permits };
    let dispatched = starts.round(&spawner, || turn.give_back())?;
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
        office.tell(level, event, &more);
    }
    if recover {
        office.wake(Duty::Liveness).ring();
    }
    let started = dispatched.dispatched.len() as u64;
    let again = started > 0 && dispatched.reason == Some(PlanReason::Batch);
    Ok(Round { done: started, due: next_start(town)?, again })
}

/// When something may start that only waits for a time. What was due already when somebody has just looked waits for
/// something else too, and is not looked at all the time.
fn next_start(town: &Town) -> Result<Option<Timestamp>> {
    let due = next_due(town)?;
    let now = town.now();
    Ok(due.map(|due| if due > now { due } else { now.plus(LOOK_AGAIN) }))
}

fn liveness(office: &Office) -> Result<Round> {
    let recovered = reconcile::liveness(&office.town, &office.world)?;
    tell_recovered(office, &recovered);
    let (released, next_hook) = reconcile::stale_hooks(&office.town)?;
    for hook in &released {
        let more = [
            ("bead", Json::string(hook.bead.as_str())),
            ("assignee", Json::string(&hook.assignee)),
        ];
        office.tell(Level::Warning, "hook released", &more);
    }
    let runs = recovered.restarted.len() + recovered.lost.len() + recovered.finished.len();
    // That nothing happens to a hook is no event, so the scan finds here nothing that a hint should have told.
    office.tally(Duty::Liveness).report.done += released.len() as u64;
    let done = (runs + recovered.stale) as u64;
    let due = recovered.due.into_iter().chain(next_hook).min();
    Ok(Round { done, due, again: false })
}

fn tell_recovered(office: &Office, recovered: &Recovered) {
    for (event, runs) in [
        ("taken back", &recovered.restarted),
        ("lost", &recovered.lost),
        ("found over", &recovered.finished),
    ] {
        for run in runs {
            let more = [
                ("bead", Json::string(run.bead.as_str())),
                ("run", Json::string(&run.to_string())),
            ];
            office.tell(Level::Warning, event, &more);
        }
    }
    for (run, why) in &recovered.errors {
        let more = [("run", Json::string(&run.to_string())), ("why", Json::string(why))];
        office.tell(Level::Error, "not recovered", &more);
    }
}

/// Nothing changes without an event, so what was looked at since the last one need not be looked at again.
fn convoys(office: &Office) -> Result<Round> {
    let last = office.town.read(|reader| Ok(reader.last_event_number()?))?;
    if office.convoys_seen.load(Ordering::SeqCst) == last {
        return Ok(Round::default());
    }
    let attended = reconcile::convoys(&office.town)?;
    // Only now: what failed is looked at again.
    office.convoys_seen.store(last, Ordering::SeqCst);
    for context in &attended.scheduled {
        office.tell(
            Level::Warning,
            "was not scheduled",
            &[("bead", Json::string(context.bead.as_str()))],
        );
    }
    for convoy in &attended.landed {
        office.tell(Level::Warning, "had not landed", &[("convoy", Json::string(convoy.as_str()))]);
    }
    let done = (attended.scheduled.len() + attended.landed.len()) as u64;
    Ok(Round { done, due: None, again: false })
}

fn landing(office: &Office) -> Result<Round> {
    let before = reconcile::landings(&office.town)?;
    if before == 0 {
        return Ok(Round::default());
    }
    for (run, why) in reconcile::landing(&office.town, &office.world)? {
        let more = [("run", Json::string(&run.to_string())), ("why", Json::string(&why))];
        office.tell(Level::Warning, "not landed", &more);
    }
    let after = reconcile::landings(&office.town)?;
    let done = before.saturating_sub(after) as u64;
    if done > 0 {
        // What the origin does not have is lost like any other run.
        office.wake(Duty::Liveness).ring();
    }
    // Some of them may have workers, who do it themselves; to look again costs one read.
    let due = (after > 0).then(|| office.now().plus(LANDING_AGAIN));
    Ok(Round { done, due, again: false })
}

fn outbox(office: &Office) -> Result<Round> {
    reconcile::letters(&office.town)?;
    let due = office.town.read(|reader| Ok(reader.next_notice_due()?))?;
    // Whatever is due is being sent.
    let now = office.now();
    let due = due.map(|due| due.max(now.plus(Duration::from_secs(1))));
    Ok(Round { done: 0, due, again: false })
}

fn stalls(office: &Office) -> Result<Round> {
    let stalls = reconcile::stalls(&office.town, &office.world)?;
    for (level, event, runs) in [
        (Level::Warning, "silent", &stalls.silent),
        (Level::Info, "speaks again", &stalls.going_on),
    ] {
        for run in runs {
            office.tell(level, event, &[("run", Json::string(&run.to_string()))]);
        }
    }
    let done = stalls.silent.len() + stalls.going_on.len();
    // Nothing tells of silence, so somebody has to listen, and it is no news that nobody told; where nobody works there is
    // nothing to hear.
    office.tally(Duty::Stalls).report.done += done as u64;
    let anybody = office.town.read(|reader| Ok(!reader.live_runs()?.is_empty()))?;
    let due = anybody.then(|| office.now().plus(LISTEN_EVERY));
    Ok(Round { done: 0, due, again: false })
}

fn work(office: &Office) -> Result<Round> {
    let overdue = reconcile::work(&office.town)?;
    for (event, runs) in [("stale", &overdue.stale), ("lease ended", &overdue.lost)] {
        for run in runs {
            let more = [
                ("bead", Json::string(run.bead.as_str())),
                ("run", Json::string(&run.to_string())),
            ];
            office.tell(Level::Warning, event, &more);
        }
    }
    // Nothing tells of silence, so that what is found here is no news that nobody told.
    office.tally(Duty::Work).report.done += overdue.count() as u64;
    Ok(Round { done: 0, due: overdue.due, again: false })
}

fn retention(office: &Office) -> Result<Round> {
    reconcile::housekeeping(&office.town, &office.world)?;
    let due = Some(office.now().plus(HOUSEKEEPING_EVERY));
    Ok(Round { done: 0, due, again: false })
}

fn trees(office: &Office) -> Result<Round> {
    let warmed = reconcile::warm_trees(&office.town, &office.world)?;
    for (rig, why) in &warmed.problems {
        let more = [("rig", Json::string(rig.as_str())), ("why", Json::string(why))];
        office.tell(Level::Warning, "no warm trees", &more);
    }
    let sessions = warm_sessions(&office.town, &office.world)?;
    office.sessions().keep(&office.town, &office.program, &sessions);
    let done = warmed.made.len() + warmed.refreshed.len() + warmed.removed.len();
    // That the base has moved elsewhere nobody tells, so that nothing found here is news.
    office.tally(Duty::Trees).report.done += done as u64;
    Ok(Round::default())
}

#[cfg(test)]
mod tests {
    use gt_core::Clock;
    use tempfile::TempDir;

    use super::*;
    use crate::beads::{self, NewBead};
    use crate::daemon::journal::{Journal, log_path};
    use crate::runs::RealWorld;
    use crate::{Actor, Environment, StoreOptions, SystemClock, install};

    /// The office of a town of its own, in which nobody works yet.
    fn office(directory: &TempDir) -> Office {
        let actor = Actor { name: "tester".to_owned(), owner: String::new() };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let environment = Environment::default();
        let root = install(directory.path(), &environment, &actor, &*clock).unwrap().root;
        let options = StoreOptions::default();
        let town = Town::open(&root, &root, &environment, actor, clock, options).unwrap();
        let (world, journal) =
            (RealWorld::of(&town).unwrap(), Journal::open(&root, 1 << 20).unwrap());
        let office = Office::new(town, world, "gt".into(), journal).unwrap();
        for duty in Duty::ALL {
            office.tally(duty).busy_since = vec![None; duty.hands()];
        }
        office
    }

    #[test]
    fn a_stale_hook_is_released_and_what_a_person_claimed_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let office = office(&directory);
        let town = &office.town;
        let rig = crate::rigs::NewRig {
            name: "web",
            repository: None,
            prefix: Some("we"),
            branch: None,
            executor: gt_core::ExecutorKind::Process,
            host: None,
        };
        crate::rigs::add(town, &rig).unwrap();
        let hook = |id: &str, status: gt_core::Status, assignee: &str| {
            let (id, title) = (Some(id.to_owned()), id.to_owned());
            let new = NewBead { id, title, assignee: assignee.to_owned(), ..NewBead::default() };
            let bead = beads::create(town, &new, false).unwrap().bead;
            let hooked = gt_core::Bead { status, ..bead.clone() };
            town.write(|writer| {
                Ok(writer.save_bead(&bead, &hooked, gt_core::EventKind::StatusChanged)?)
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

        // Not before its time, which is told,
        let due = liveness(&office).unwrap().due;
        assert!(due.is_some_and(|due| due > town.now()), "{due:?}");
        assert!(open().is_empty());
        // not if that is switched off,
        crate::settings::set(town, "recovery.stale_hooks", "0").unwrap();
        assert_eq!(liveness(&office).unwrap().due, None);
        assert!(open().is_empty());
        // and then at once.
        crate::settings::set(town, "recovery.stale_hooks", "1ns").unwrap();
        liveness(&office).unwrap();
        assert_eq!(open(), ["we-hooked", "we-worker"]);
        let log = std::fs::read_to_string(log_path(town.root())).unwrap();
        assert!(log.contains("hook released"), "{log}");
    }

    #[test]
    fn a_reconciler_that_panics_says_so_and_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let office = office(&directory);
        let told = Causes { told: true, unprompted: false };

        // In the middle of a transaction, and with the turn of those who start something.
        make_round(&office, Duty::Dispatch, 0, told, || {
            let _turn = office.turn.take();
            office.town.write(|_| -> Result<Round> { panic!("no luck") })
        });

        {
            let tally = office.tally(Duty::Dispatch);
            assert_eq!((tally.report.errors, tally.failed_in_a_row), (1, 1));
            assert_eq!(tally.report.last_error, "it panicked: no luck; the log says where");
        }
        assert!(office.is_quiet(), "nobody seems to be at it any more");
        let log = std::fs::read_to_string(log_path(office.town.root())).unwrap();
        assert!(log.contains("it panicked: no luck"), "{log}");
        // It is woken again by itself,
        assert_eq!(office.wake(Duty::Dispatch).wait(), Some(told));

        // and nothing is in its way.
        make_round(&office, Duty::Dispatch, 0, told, || {
            let _turn = office.turn.take();
            office.town.write(|_| Ok(Round { done: 1, ..Round::default() }))
        });
        let tally = office.tally(Duty::Dispatch);
        assert_eq!((tally.report.done, tally.failed_in_a_row), (1, 0));
        assert_eq!(tally.report.last_error, "");
    }
}
