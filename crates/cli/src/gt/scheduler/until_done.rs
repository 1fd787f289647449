//! `gt scheduler run --until-done`: cycles until nothing waits for a slot and nothing runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use gt_core::schedule::RunState;
use gt_core::{BeadId, EventKind};
use gt_operations::dispatch::{Pass, Passes};
use gt_operations::events::Follower;
use gt_operations::{EventFilter, Town, queue, runs};
use gt_records::ObjectWriter;

use super::run::{note_unrecovered, paused_line, tell_recovered, verdict};
use crate::bd::event_line;
use crate::context::Context;
use crate::error::CliError;

/// How often one looks whether anything has happened that nobody rang for: a run of another command ended, work was
/// scheduled. Looking costs one read of a counter.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After so many looks a cycle is made whether anything has happened or not: dates pass without an event, and so may the
/// death of a worker that somebody else started.
const LOOKS_MAX: u32 = 5;

/// Rung when a run that was started here has ended.
#[derive(Default)]
struct Doorbell {
    rung: Mutex<bool>,
    condition: Condvar,
}

impl Doorbell {
    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condition.notify_all();
    }

    /// Waits for it, at most this long; says whether it was rung since the last time.
    fn wait(&self, time: Duration) -> bool {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.condition.wait_timeout_while(rung, time, |rung| !*rung);
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *rung)
    }
}

/// What all cycles together came to.
#[derive(Default)]
struct Sum {
    started: u64,
    done: u64,
    /// The beads whose runs failed.
    failed: BTreeSet<BeadId>,
    errors: Vec<String>,
}

pub(super) fn until_done(
    context: &Context<'_>,
    town: &Town,
    how: Pass<'_>,
) -> Result<(), CliError> {
    let printer = context.printer;
    let bell = Arc::new(Doorbell::default());
    let ringer = Arc::clone(&bell);
    let how = Pass { on_end: Some(Arc::new(move || ringer.ring())), ..how };
    let mut passes = Passes::new(town, how)?;
    let mut log = Follower::from_now(town, EventFilter::default())?;
    let mut sum = Sum::default();
    let mut unrecovered = BTreeSet::new();
    loop {
        // What happens from here on is news, even if this cycle sees it already.
        let mut news = Follower::from_now(town, EventFilter::default())?;
        let (mut recovered, done) = passes.pass()?;
        recovered.errors.retain(|(run, _)| unrecovered.insert(run.clone()));
        recovered.waiting.retain(|(run, _)| unrecovered.insert(run.clone()));
        note_unrecovered(printer, &recovered.errors);
        if !printer.json() {
            tell_recovered(printer, &recovered)?;
        }
        sum.started += done.dispatched.len() as u64;
        if let Err(error) = verdict(printer, &done.errors) {
            sum.errors.push(error.to_string());
        }
        tell_events(context, town, &mut log, &mut sum)?;
        if done.paused.is_some() {
            if !printer.json() {
                paused_line(&done).iter().try_for_each(|line| printer.line(line))?;
            }
            break;
        }
        let soon = done.errors.iter().any(|(_, error)| error.is_busy());
        if done.dispatched.is_empty() && !soon && queue::status(town)?.live == 0 {
            break;
        }
        wait(town, &bell, &mut news)?;
        tell_events(context, town, &mut log, &mut sum)?;
    }
    // The last ones may have ended after the last look at the log, and before that at what is live.
    tell_events(context, town, &mut log, &mut sum)?;
    finish(context, town, sum)
}

/// Waits until there may be something to do.
fn wait(town: &Town, bell: &Doorbell, news: &mut Follower) -> Result<(), CliError> {
    for _ in 0..LOOKS_MAX {
        if bell.wait(LOOK_EVERY) || !news.next(town)?.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Tells how runs began and ended.
fn tell_events(
    context: &Context<'_>,
    town: &Town,
    log: &mut Follower,
    sum: &mut Sum,
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

fn finish(context: &Context<'_>, town: &Town, mut sum: Sum) -> Result<(), CliError> {
    // One that failed may have been tried again, with better luck.
    let mut failed = Vec::new();
    for bead in std::mem::take(&mut sum.failed) {
        if runs::resolve(town, bead.as_str())?.state == RunState::Failed {
            failed.push(bead);
        }
    }
    let status = queue::status(town)?;
    let printer = context.printer;
    if printer.json() {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.flag("paused", status.paused.is_some());
        object.count("started", sum.started);
        object.count("done", sum.done);
        object.array("failed", |array| failed.iter().for_each(|bead| array.text(bead.as_str())));
        object.count("queued_total", status.queued);
        object.count("queued_ready", status.ready);
        object.count("active_polecats", status.live.into());
        object.finish();
        printer.object(&out)?;
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
            .note("What is still queued waits for something else; gt scheduler list says for what");
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
