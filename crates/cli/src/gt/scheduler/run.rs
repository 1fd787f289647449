//! `gt scheduler run`: one dispatch cycle, or as many as it takes.

use std::sync::Arc;

use clap::Args;
use gt_api::{
    AwaitingRunDocument, BeadErrorDocument, DispatchedDocument, RunErrorDocument, StartedDocument,
};
use gt_core::BeadId;
use gt_core::merging::{MergeRequest, RequestHold, RequestState};
use gt_core::schedule::RunId;
use gt_daemon::{reconcile, warm_trees};
use gt_execution::runs::{Recovered, RunSpawner};
use gt_execution::trees::WarmTreeChanges;
use gt_scheduling::dispatch::{DispatchResult, Dispatcher, NotStarted, SpawnError, StartedRun};
use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _};
use gt_town::Town;
use gt_town::scheduler_settings::Overrides;

use super::status::free;
use super::until_done::{RunEndSignal, until_done};
use super::{caller, capacity, unlimited};
use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::gt::sling::{NOTHING_STARTED, is_number_wanted};
use crate::output::{Printer, moment};
use crate::values::texts;

/// Start what may start now
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt scheduler run --dry-run            # what would start
  gt scheduler run --max-polecats 10 --batch 3
  gt scheduler run --until-done         # stay until nothing waits for a slot and nothing runs")]
pub(in crate::gt) struct RunArgs {
    /// Start at most so many (0: no limit)
    #[arg(long, value_name = "N")]
    batch: Option<u32>,
    /// Let so many run at once, for this cycle (0: no limit)
    #[arg(
        long,
        visible_alias = "queue-max-polecats",
        value_name = "N",
        allow_negative_numbers = true
    )]
    max_polecats: Option<i64>,
    /// Have so many starts under way at once
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    spawn_batch_size: Option<i64>,
    /// Say what would start, and start nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Go on until nothing waits for a slot and nothing runs
    #[arg(long, conflicts_with = "dry_run")]
    until_done: bool,
    /// Start any number at once without being asked
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &RunArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let (processes, program) = (LocalProcesses::of(&town)?, this_program()?);
    let overrides = Overrides {
        max_polecats: args.max_polecats,
        batch_size: args.batch,
        spawn_parallelism: args.spawn_batch_size,
    };
    let would_start = || {
        let spawner = RunSpawner::new(&town, &program);
        let rehearsal = Dispatcher::new(&town, &spawner)
            .with_caller(caller(&context.environment))
            .with_overrides(overrides)
            .with_dry_run(true);
        Ok(rehearsal.dispatch()?.dispatched.len())
    };
    let is_asked = !args.yes && !args.dry_run && args.max_polecats.is_none();
    if is_asked && !is_number_wanted(context, &town, would_start)? {
        return context.printer.done(NOTHING_STARTED);
    }
    let bell = Arc::new(RunEndSignal::default());
    let ringer = Arc::clone(&bell);
    let spawner = RunSpawner::new(&town, &program).with_on_end(Arc::new(move || ringer.ring()));
    let dispatcher = Dispatcher::new(&town, &spawner)
        .with_caller(caller(&context.environment))
        .with_overrides(overrides)
        .with_dry_run(args.dry_run)
        .with_starter_lock(processes.host());
    if args.until_done {
        return until_done(context, &town, &processes, &dispatcher, &bell);
    }
    let printer = context.printer;
    let (recovered, done, landed) =
        reconcile::all_and_land(&town, &processes, &dispatcher, &program)?;
    for (queue, why) in landed.problems {
        printer.note(format!("note: nothing lands on {} of {}: {why}", queue.target, queue.rig));
    }
    note_unrecovered(printer, &recovered.errors);
    // All startable runs have started, so warming trees delays no start.
    let warmed =
        if args.dry_run { WarmTreeChanges::default() } else { warm_trees(&town, &processes)? };
    for (rig, why) in &warmed.problems {
        printer.note(format!("note: no tree can be made ahead in {rig}: {why}"));
    }
    if printer.json() {
        let waiting = waiting_for_origin(&town)?;
        printer.object(&document(&recovered, &done, &waiting, args.dry_run))?;
    } else {
        text(printer, &recovered, &done, args.dry_run)?;
    }
    verdict(printer, &done.errors)
}

/// Prints the beads that could not be started. A bead that has to wait is no error.
pub(super) fn verdict(printer: &Printer, errors: &[(BeadId, NotStarted)]) -> Result<(), CliError> {
    let mut failed = Vec::new();
    for (bead, error) in errors {
        match error {
            // The remains of an earlier run have to go first; the next cycle tries again.
            NotStarted::Changed(_)
            | NotStarted::Spawn(SpawnError::Busy(_) | SpawnError::Taken(_)) => {
                printer.note(format!("{bead} was not started: {error}"));
            }
            NotStarted::GivenUp(reason, why) => {
                let said = format!(
                    "{bead} was given up ({}): {why}; gt scheduler retry {bead} tries it again",
                    reason.as_str()
                );
                failed.push(printer.part_failed(&CliError::request(said)));
            }
            NotStarted::Spawn(SpawnError::Failed(_)) | NotStarted::Operation(_) => {
                let said =
                    format!("{bead} did not start: {error}; gt why {bead} says what follows");
                failed.push(printer.part_failed(&CliError::request(said)));
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(CliError::AlreadyTold(failed.join("; "))) }
}

/// Prints the changes of runs and contexts before the cycle.
pub(super) fn print_recovered(printer: &Printer, recovered: &Recovered) -> Result<(), CliError> {
    for run in &recovered.lost {
        printer.done(format!("Lost: {run} has no process left"))?;
    }
    for run in &recovered.finished {
        printer.done(format!("Over: {run} had ended; gt run show {run} says how"))?;
    }
    for run in &recovered.silent {
        printer.done(format!(
            "Silent: {run} has said nothing for long; gt why {run} says what to do",
            run = run.bead
        ))?;
    }
    for run in &recovered.restarted {
        printer.done(format!("Taken back: the start of {run} came to nothing"))?;
    }
    Ok(())
}

/// Prints the runs that could not be recovered.
pub(super) fn note_unrecovered(printer: &Printer, errors: &[(RunId, String)]) {
    for (run, error) in errors {
        printer.note(format!("note: {run} cannot be recovered: {error}"));
    }
}

/// One line about something that was started.
pub(super) fn started_line(started: &StartedRun) -> String {
    let run = started.run.as_ref().map(|run| format!(" ({})", run.id)).unwrap_or_default();
    let (bead, rig) = (&started.bead, &started.context.rig);
    format!("  {bead} → {rig}{run}  {}", started.title)
}

/// The line about a pause, with the person who paused the scheduler.
pub(super) fn paused_line(done: &DispatchResult) -> Option<String> {
    let pause = done.paused.as_ref()?;
    let more = if done.dispatched.is_empty() { "nothing" } else { "nothing more" };
    Some(format!(
        "Paused by {} since {}: {more} is dispatched until gt scheduler resume",
        pause.by,
        moment(pause.at)
    ))
}

fn text(
    printer: &Printer,
    recovered: &Recovered,
    done: &DispatchResult,
    dry_run: bool,
) -> Result<(), CliError> {
    lines(done, dry_run).iter().try_for_each(|line| printer.line(line))?;
    print_recovered(printer, recovered)
}

/// The lines about a cycle. One that was paused before its first start has only the line about the pause.
fn lines(done: &DispatchResult, dry_run: bool) -> Vec<String> {
    let paused = paused_line(done);
    if let Some(paused) = paused.as_ref().filter(|_| done.dispatched.is_empty()) {
        return vec![paused.clone()];
    }
    let dispatched = if dry_run { "Would dispatch" } else { "Dispatched" };
    let mut lines = vec![
        format!("Found {} queued bead(s)", done.queued),
        format!(
            "Capacity: {} polecats running, {} slots available",
            capacity(done.live, done.cap),
            unlimited(free(done.slots()))
        ),
        format!("{dispatched}: {}", done.dispatched.len()),
    ];
    if done.skipped > 0 {
        let reason = done.reason.map_or("capacity", |reason| reason.as_str());
        lines.push(format!("Skipped ({reason}): {}", done.skipped));
    }
    if done.gated > 0 {
        lines.push(format!("Skipped (queue.enabled is false): {}", done.gated));
    }
    let waiting = done.queued.saturating_sub(done.ready);
    if waiting > 0 {
        lines.push(format!("Waiting for something else: {waiting} (gt queue list says what)"));
    }
    lines.extend(done.dispatched.iter().map(started_line));
    lines.extend(paused);
    lines
}

/// The merge requests that wait for an origin that does not answer.
fn waiting_for_origin(town: &Town) -> Result<Vec<MergeRequest>, CliError> {
    let mut open = town.read(|reader| Ok(reader.open_merge_requests()?))?;
    open.retain(|request| request.state == RequestState::Held(RequestHold::OriginUnreachable));
    Ok(open)
}

fn document(
    recovered: &Recovered,
    done: &DispatchResult,
    waiting: &[MergeRequest],
    dry_run: bool,
) -> DispatchedDocument {
    let started = done.dispatched.iter().map(|started| StartedDocument {
        id: started.bead.to_string(),
        title: started.title.clone(),
        target_rig: started.context.rig.to_string(),
        context: started.context.id.to_string(),
        run: started.run.as_ref().map(|run| run.id.to_string()),
    });
    let errors = done
        .errors
        .iter()
        .map(|(bead, error)| BeadErrorDocument { id: bead.to_string(), error: error.to_string() });
    let waiting = waiting.iter().filter_map(|request| {
        Some(AwaitingRunDocument {
            run: request.run()?.to_string(),
            since: request.changed_at.into(),
            why: request.detail.clone(),
        })
    });
    let unrecovered = recovered
        .errors
        .iter()
        .map(|(run, error)| RunErrorDocument { run: run.to_string(), error: error.clone() });
    DispatchedDocument {
        dry_run,
        paused: done.paused.is_some(),
        paused_by: done.paused.as_ref().map(|pause| pause.by.clone()),
        paused_at: done.paused.as_ref().map(|pause| pause.at.into()),
        queued_total: done.queued,
        queued_ready: done.ready,
        active_polecats: done.live.into(),
        capacity: done.cap.map(Into::into),
        free_slots: free(done.slots()).map(Into::into),
        skipped: done.skipped,
        gated: done.gated,
        reason: done.reason.map(|reason| reason.as_str().to_owned()),
        dispatched: started.collect(),
        errors: errors.collect(),
        lost: texts(&recovered.lost),
        waiting_for_origin: waiting.collect(),
        recovery_errors: unrecovered.collect(),
    }
}

#[cfg(test)]
mod tests {
    use gt_core::schedule::{Context, ContextId, ContextOrigin, SlingParameters};
    use gt_core::{Priority, RigSlug, Timestamp};
    use gt_scheduling::queue::Pause;

    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_790_000_000_000_000_000);

    fn started(id: &str) -> StartedRun {
        let bead = BeadId::parse(id).unwrap();
        let context = Context {
            number: 1,
            id: ContextId::of_number(1),
            bead: bead.clone(),
            rig: RigSlug::parse("web").unwrap(),
            place: None,
            account: None,
            gated: false,
            forced: false,
            priority: Priority::default(),
            origin: ContextOrigin::Sling,
            parameters: SlingParameters::default(),
            enqueued_at: NOW,
            enqueued_by: "me".to_owned(),
            waiting_since: NOW,
            next_attempt_at: None,
            failures: 0,
            last_failure: String::new(),
            attempts: 0,
            starting: false,
            convoys: Vec::new(),
            closed: None,
        };
        StartedRun { bead, context, title: "Login".to_owned(), run: None }
    }

    #[test]
    fn a_cycle_that_is_paused_partway_says_what_it_had_started() {
        let paused = Some(Pause { by: "ann".to_owned(), at: NOW });
        let dispatched = vec![started("web-1")];
        let done =
            DispatchResult { queued: 3, ready: 3, dispatched, paused, ..DispatchResult::default() };

        let told = lines(&done, false).join("\n");

        for part in ["Dispatched: 1", "  web-1 → web  Login", "Paused by ann since", "nothing more"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn a_cycle_that_is_paused_from_the_beginning_says_only_that() {
        let paused = Some(Pause { by: "ann".to_owned(), at: NOW });
        let told = lines(&DispatchResult { paused, ..DispatchResult::default() }, false);
        assert_eq!(told.len(), 1);
        assert!(told[0].ends_with("nothing is dispatched until gt scheduler resume"), "{told:?}");
    }
}
