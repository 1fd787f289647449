//! `gt scheduler run --until-done`: cycles until nothing waits for a slot and nothing runs.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gt_api::WorkedOffDocument;
use gt_beads::events::EventFollower;
use gt_core::schedule::RunState;
use gt_core::{BeadId, EventKind};
use gt_daemon::reconcile;
use gt_execution::merge_queue;
use gt_scheduling::dispatch::Dispatcher;
use gt_scheduling::processes::LocalProcesses;
use gt_scheduling::queue;
use gt_town::{EventFilter, Town};

use super::run::{note_unrecovered, paused_line, print_recovered, verdict};
use crate::bd::event_line;
use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::served;
use crate::values::texts;

/// How often the event counter is read. Runs of other commands end, and work is scheduled, without a ring of the doorbell.
const EVENT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// After so many reads a cycle is made in any case: a date passes without an event, and a worker of another process may
/// die without one.
const POLLS_PER_CYCLE_MAX: u32 = 5;

/// The least time between two passes of all reconcilers. Short runs cause hundreds of cycles a second, and each full pass
/// costs reads that no start needs.
const FULL_PASS_INTERVAL: Duration = Duration::from_secs(1);

/// A signal that a run which this command started has ended.
#[derive(Default)]
pub(super) struct RunEndSignal {
    rung: Mutex<bool>,
    condition: Condvar,
}

impl RunEndSignal {
    pub(super) fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condition.notify_all();
    }

    /// Waits for the signal, at most this long. Returns whether it came since the last call.
    fn wait(&self, time: Duration) -> bool {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.condition.wait_timeout_while(rung, time, |rung| !*rung);
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *rung)
    }
}

/// The totals of all cycles.
#[derive(Default)]
struct CycleTotals {
    started: u64,
    done: u64,
    /// The beads whose runs failed.
    failed: BTreeSet<BeadId>,
    errors: Vec<String>,
}

pub(super) fn until_done(
    context: &CommandContext<'_>,
    town: &Town,
    processes: &LocalProcesses,
    dispatcher: &Dispatcher<'_>,
    bell: &RunEndSignal,
) -> Result<(), CliError> {
    let printer = context.printer;
    let mut looked_at_all: Option<Instant> = None;
    let mut log = EventFollower::from_now(town, EventFilter::default())?;
    let mut sum = CycleTotals::default();
    let mut unrecovered = BTreeSet::new();
    loop {
        // Events from here on count as new, even if this cycle sees their effect already.
        let mut news = EventFollower::from_now(town, EventFilter::default())?;
        let (mut recovered, done) =
            if looked_at_all.is_some_and(|at| at.elapsed() < FULL_PASS_INTERVAL) {
                reconcile::recover_and_start(town, processes, dispatcher)?
            } else {
                looked_at_all = Some(Instant::now());
                let program = this_program()?;
                let (recovered, done, _) =
                    reconcile::all_and_land(town, processes, dispatcher, &program)?;
                (recovered, done)
            };
        recovered.errors.retain(|(run, _)| unrecovered.insert(run.clone()));
        note_unrecovered(printer, &recovered.errors);
        if !printer.json() {
            print_recovered(printer, &recovered)?;
        }
        sum.started += done.dispatched.len() as u64;
        if let Err(error) = verdict(printer, &done.errors) {
            sum.errors.push(error.to_string());
        }
        print_run_events(context, town, &mut log, &mut sum)?;
        if done.paused.is_some() {
            if !printer.json() {
                paused_line(&done).iter().try_for_each(|line| printer.line(line))?;
            }
            break;
        }
        let soon = done.errors.iter().any(|(_, error)| error.is_busy());
        if done.dispatched.is_empty() && !soon && queue::status(town)?.live == 0 {
            // Landed work may have made more work startable.
            if merge_queue::pass(town, &this_program()?)?.changed.is_empty() {
                break;
            }
            continue;
        }
        wait(town, bell, &mut news)?;
        served::check_caller()?;
        print_run_events(context, town, &mut log, &mut sum)?;
    }
    // The last runs may have ended after the log was read, and before the live runs were counted.
    print_run_events(context, town, &mut log, &mut sum)?;
    finish(context, town, sum)
}

/// Waits until there may be something to do.
fn wait(town: &Town, bell: &RunEndSignal, news: &mut EventFollower) -> Result<(), CliError> {
    for _ in 0..POLLS_PER_CYCLE_MAX {
        if bell.wait(EVENT_POLL_INTERVAL) || !news.next(town)?.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Tells how runs began and ended.
fn print_run_events(
    context: &CommandContext<'_>,
    town: &Town,
    log: &mut EventFollower,
    sum: &mut CycleTotals,
) -> Result<(), CliError> {
    loop {
        let events = log.next(town)?;
        if events.is_empty() {
            return context.printer.flush();
        }
        for event in events {
            match event.kind {
                EventKind::RunDone => sum.done += 1,
                EventKind::RunFailed => sum.failed.extend(event.bead.clone()),
                EventKind::Dispatched | EventKind::RunLost | EventKind::RunCancelled => {}
                _ => continue,
            }
            context.printer.done(event_line(&event))?;
        }
    }
}

fn finish(context: &CommandContext<'_>, town: &Town, mut sum: CycleTotals) -> Result<(), CliError> {
    // One that failed may have been tried again, with better luck.
    let mut failed = Vec::new();
    for bead in std::mem::take(&mut sum.failed) {
        if gt_beads::run_records::resolve(town, bead.as_str())?.state == RunState::Failed {
            failed.push(bead);
        }
    }
    let status = queue::status(town)?;
    let printer = context.printer;
    if printer.json() {
        printer.object(&WorkedOffDocument {
            paused: status.paused.is_some(),
            started: sum.started,
            done: sum.done,
            failed: texts(&failed),
            queued_total: status.queued,
            queued_ready: status.ready,
            active_polecats: status.live.into(),
        })?;
    } else {
        printer.line(format!(
            "Started {}, done {}, failed {}; {} still queued",
            sum.started,
            sum.done,
            failed.len(),
            status.queued
        ))?;
    }
    if status.queued > 0 {
        printer
            .note("The queued beads wait for something else; gt scheduler list shows the reasons");
    }
    let names: Vec<String> = failed.iter().map(ToString::to_string).collect();
    match (names.is_empty(), sum.errors.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => Err(CliError::AlreadyTold(sum.errors.join("; "))),
        (false, _) => Err(CliError::request(format!(
            "the runs of {} failed; gt scheduler retry tries them again",
            names.join(", ")
        ))),
    }
}
