//! `gt step`.

use clap::{Args, Subcommand};
use gt_core::schedule::StepProgress;
use gt_operations::worker::{self, StepView, StepsDone, StepsOfRun};
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;
use crate::output::Printer;

/// See and tick off the steps of a run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt step list
  gt step done understand
  gt step list --run gt-abc")]
pub(super) struct StepArgs {
    #[command(subcommand)]
    verb: StepVerb,
}

#[derive(Debug, Subcommand)]
enum StepVerb {
    List(ListArgs),
    Done(DoneArgs),
}

/// List the steps of your run
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt step list\n  gt step list --run gt-abc#2 --json")]
struct ListArgs {
    /// Of this run, or of the live or last run of this bead; a worker's own unless said
    #[arg(long)]
    run: Option<String>,
}

/// Say that steps are done: all of them are ticked off, or none
///
/// A step is done after those that it needs. Saying it twice changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt step done understand
  gt step done implement test
  gt step done finish --force            # though something before it is not done")]
struct DoneArgs {
    /// Steps, as gt step list names them
    #[arg(required = true, value_name = "STEP")]
    steps: Vec<String>,
    /// Of this run, or of the live run of this bead; a worker's own unless said
    #[arg(long)]
    run: Option<String>,
    /// Although steps before them are not done
    #[arg(long)]
    force: bool,
}

pub(super) fn run(context: &Context<'_>, args: &StepArgs) -> Result<(), CliError> {
    match &args.verb {
        StepVerb::List(args) => list(context, args),
        StepVerb::Done(args) => done(context, args),
    }
}

fn list(context: &Context<'_>, args: &ListArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let found = worker::steps(&town, args.run.as_deref())?;
    if printer.json() {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.text("run", &found.run.id.to_string());
        write_progress(&mut object, found.progress);
        write_steps(&mut object, &found);
        object.finish();
        return printer.object(&out);
    }
    if found.steps.is_empty() {
        return printer.done(format!("{} follows no recipe", found.run.id));
    }
    printer.heading(&found.run.id.to_string(), &format!("  {} steps done", found.progress))?;
    print_steps(printer, &found)
}

fn done(context: &Context<'_>, args: &DoneArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let done = worker::finish_steps(&town, args.run.as_deref(), &args.steps, args.force)?;
    print_done(printer, &done)?;
    if done.fresh_session_due {
        // Whoever called us is ended with its session, and we with it.
        printer.flush()?;
        // Without anybody who could begin another one, this session goes on.
        worker::begin_fresh_session(&town, &done.run)?;
    }
    Ok(())
}

fn print_done(printer: &Printer, done: &StepsDone) -> Result<(), CliError> {
    if printer.json() {
        return printer.object(&done_json(done));
    }
    for (name, title) in &done.ticked {
        printer.done(format!("✓ {name}: {title}"))?;
    }
    for name in &done.already {
        printer.done(format!("{name} was done before; nothing to do"))?;
    }
    let next = match &done.next {
        Some((name, title)) if done.fresh_session_due => {
            format!("a fresh session goes on with {name}: {title}")
        }
        Some((name, title)) => format!("next is {name}: {title}"),
        None if done.progress.done == done.progress.total => {
            "all steps are done; finish with gt done".to_owned()
        }
        None => "gt step list shows what is left".to_owned(),
    };
    printer.done(format!("{} of {}; {next}", done.progress, done.run))
}

/// A line for each step, with what the next one waits for.
pub(super) fn print_steps(printer: &Printer, found: &StepsOfRun) -> Result<(), CliError> {
    let next = found.next().map(|view| view.step.id.as_str());
    for StepView { step, name, done, waits_for } in &found.steps {
        let mark = if done.is_some() { "✓" } else { "·" };
        let remark = if next == Some(step.id.as_str()) {
            "  ← next".to_owned()
        } else if done.is_none() && !waits_for.is_empty() {
            format!("  (after {})", waits_for.join(", "))
        } else {
            String::new()
        };
        printer.line(format!("  {mark} {name}: {}{remark}", step.title))?;
    }
    Ok(())
}

pub(super) fn write_progress(object: &mut ObjectWriter<'_>, progress: StepProgress) {
    object.object("progress", |object| {
        object.count("done", progress.done as u64);
        object.count("total", progress.total as u64);
    });
}

pub(super) fn write_steps(object: &mut ObjectWriter<'_>, found: &StepsOfRun) {
    object.array("steps", |array| {
        for StepView { step, name, done, waits_for } in &found.steps {
            array.object(|object| {
                object.text("id", &step.id);
                object.text("name", name);
                object.text("title", &step.title);
                object.text_unless_empty("description", &step.description);
                object.text_unless_empty("acceptance_criteria", &step.acceptance);
                object.flag("done", done.is_some());
                if let Some(done) = done {
                    object.timestamp("done_at", done.at);
                    object.text("done_by", &done.by);
                }
                object.array("waits_for", |array| {
                    for name in waits_for {
                        array.text(name);
                    }
                });
            });
        }
    });
    if let Some(next) = found.next() {
        object.text("next", &next.name);
    }
}

fn done_json(done: &StepsDone) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("run", &done.run.to_string());
    object.array("done", |array| done.ticked.iter().for_each(|(name, _)| array.text(name)));
    object.array("already_done", |array| done.already.iter().for_each(|name| array.text(name)));
    write_progress(&mut object, done.progress);
    if let Some((name, _)) = &done.next {
        object.text("next", name);
    }
    object.flag("fresh_session", done.fresh_session_due);
    object.finish();
    out
}
