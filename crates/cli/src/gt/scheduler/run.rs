//! `gt scheduler run`: one dispatch cycle, or as many as it takes.

use clap::Args;
use gt_core::BeadId;
use gt_core::schedule::RunId;
use gt_operations::dispatch::{Dispatched, NotStarted, Overrides, Pass, SpawnError, Started, pass};
use gt_operations::runs::{RealWorld, Recovered};
use gt_operations::trees::Warmed;
use gt_operations::{Town, warm_trees};
use gt_records::ObjectWriter;

use super::status::{free, write_limit};
use super::until_done::until_done;
use super::{caller, capacity, unlimited};
use crate::context::{Context, this_program};
use crate::error::CliError;
use crate::output::{Printer, moment};

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
}

pub(super) fn run(context: &Context<'_>, args: &RunArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let program = this_program()?;
    let how = Pass {
        caller: caller(&context.environment),
        overrides: Overrides {
            max_polecats: args.max_polecats,
            batch_size: args.batch,
            spawn_parallelism: args.spawn_batch_size,
        },
        dry_run: args.dry_run,
        ..Pass::by_hand(&program)
    };
    if args.until_done {
        return until_done(context, &town, how);
    }
    let (recovered, done) = pass(&town, how)?;
    let printer = context.printer;
    note_unrecovered(printer, &recovered.errors);
    // Whoever could start has started, so nobody waits for this.
    let warmed = if args.dry_run { Warmed::default() } else { made_ahead(&town)? };
    for (rig, why) in &warmed.problems {
        printer.note(format!("note: no tree can be made ahead in {rig}: {why}"));
    }
    if printer.json() {
        printer.object(&json(&recovered, &done, args.dry_run))?;
    } else {
        text(printer, &recovered, &done, args.dry_run)?;
    }
    verdict(printer, &done.errors)
}

fn made_ahead(town: &Town) -> Result<Warmed, CliError> {
    Ok(warm_trees(town, &RealWorld::of(town)?)?)
}

/// Says what could not be started. What turned out to have to wait is no error.
pub(super) fn verdict(printer: &Printer, errors: &[(BeadId, NotStarted)]) -> Result<(), CliError> {
    let mut failed = Vec::new();
    for (bead, error) in errors {
        match error {
            // What an earlier run left behind has to go first; the next cycle tries again.
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

/// What happened to runs and contexts before the cycle.
pub(super) fn tell_recovered(printer: &Printer, recovered: &Recovered) -> Result<(), CliError> {
    for run in &recovered.lost {
        printer.done(format!("Lost: {run} has no process left"))?;
    }
    for run in &recovered.finished {
        printer.done(format!("Over: {run} had ended; gt run show {run} says how"))?;
    }
    for (run, awaited) in &recovered.waiting {
        printer.line(format!("Landing: {run} {awaited}"))?;
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

/// Says which runs are still as they were though something is wrong with them.
pub(super) fn note_unrecovered(printer: &Printer, errors: &[(RunId, String)]) {
    for (run, error) in errors {
        printer.note(format!("note: {run} cannot be recovered: {error}"));
    }
}

/// One line about something that was started.
pub(super) fn started_line(started: &Started) -> String {
    let run = started.run.as_ref().map(|run| format!(" ({})", run.id)).unwrap_or_default();
    let (bead, rig) = (&started.bead, &started.context.rig);
    format!("  {bead} → {rig}{run}  {}", started.title)
}

/// Who paused the scheduler, if it is paused.
pub(super) fn paused_line(done: &Dispatched) -> Option<String> {
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
    done: &Dispatched,
    dry_run: bool,
) -> Result<(), CliError> {
    lines(done, dry_run).iter().try_for_each(|line| printer.line(line))?;
    tell_recovered(printer, recovered)
}

/// What a cycle did. One that was paused before its first start says only that.
fn lines(done: &Dispatched, dry_run: bool) -> Vec<String> {
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

fn json(recovered: &Recovered, done: &Dispatched, dry_run: bool) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.flag("dry_run", dry_run);
    object.flag("paused", done.paused.is_some());
    if let Some(pause) = &done.paused {
        object.text("paused_by", &pause.by);
        object.timestamp("paused_at", pause.at);
    }
    object.count("queued_total", done.queued);
    object.count("queued_ready", done.ready);
    object.count("active_polecats", done.live.into());
    write_limit(&mut object, "capacity", done.cap);
    write_limit(&mut object, "free_slots", free(done.slots()));
    object.count("skipped", done.skipped);
    object.count("gated", done.gated);
    if let Some(reason) = done.reason {
        object.text("reason", reason.as_str());
    }
    object.array("dispatched", |array| {
        for started in &done.dispatched {
            array.object(|object| {
                object.text("id", started.bead.as_str());
                object.text("title", &started.title);
                object.text("target_rig", started.context.rig.as_str());
                object.text("context", started.context.id.as_str());
                if let Some(run) = &started.run {
                    object.text("run", &run.id.to_string());
                }
            });
        }
    });
    object.array("errors", |array| {
        for (bead, error) in &done.errors {
            array.object(|object| {
                object.text("id", bead.as_str());
                object.text("error", &error.to_string());
            });
        }
    });
    object.array("lost", |array| {
        recovered.lost.iter().for_each(|run| array.text(&run.to_string()));
    });
    object.array("waiting_for_origin", |array| {
        for (run, awaited) in &recovered.waiting {
            array.object(|object| {
                object.text("run", &run.to_string());
                object.timestamp("since", awaited.since);
                object.text("why", &awaited.why);
            });
        }
    });
    object.array("recovery_errors", |array| {
        for (run, error) in &recovered.errors {
            array.object(|object| {
                object.text("run", &run.to_string());
                object.text("error", error);
            });
        }
    });
    object.finish();
    out
}

#[cfg(test)]
mod tests {
    use gt_core::schedule::{Context, ContextId, Origin, SlingParameters};
    use gt_core::{Priority, RigSlug, Timestamp};
    use gt_operations::queue::Pause;

    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_790_000_000_000_000_000);

    fn started(id: &str) -> Started {
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
            origin: Origin::Sling,
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
        Started { bead, context, title: "Login".to_owned(), run: None }
    }

    #[test]
    fn a_cycle_that_is_paused_partway_says_what_it_had_started() {
        let paused = Some(Pause { by: "ann".to_owned(), at: NOW });
        let dispatched = vec![started("web-1")];
        let done = Dispatched { queued: 3, ready: 3, dispatched, paused, ..Dispatched::default() };

        let told = lines(&done, false).join("\n");

        for part in ["Dispatched: 1", "  web-1 → web  Login", "Paused by ann since", "nothing more"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn a_cycle_that_is_paused_from_the_beginning_says_only_that() {
        let paused = Some(Pause { by: "ann".to_owned(), at: NOW });
        let told = lines(&Dispatched { paused, ..Dispatched::default() }, false);
        assert_eq!(told.len(), 1);
        assert!(told[0].ends_with("nothing is dispatched until gt scheduler resume"), "{told:?}");
    }
}
