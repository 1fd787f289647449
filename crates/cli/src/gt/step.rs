//! `gt step`.

use clap::{Args, Subcommand};
use gt_api::{StepDocument, StepsDocument, StepsDoneDocument};
use gt_beads::steps::{StepView, StepsDone, StepsOfRun};
use gt_execution::worker;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::Printer;
use crate::values::texts;

/// See the steps of a run, and mark them as done
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

/// Mark steps as done: all of them, or none
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

pub(super) fn run(context: &CommandContext<'_>, args: &StepArgs) -> Result<(), CliError> {
    match &args.verb {
        StepVerb::List(args) => list(context, args),
        StepVerb::Done(args) => done(context, args),
    }
}

fn list(context: &CommandContext<'_>, args: &ListArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let found = gt_beads::steps::steps(&town, args.run.as_deref())?;
    if printer.json() {
        return printer.object(&StepsDocument {
            run: found.run.id.to_string(),
            progress: found.progress.into(),
            steps: steps_documents(&found),
            next: next_name(&found),
        });
    }
    if found.steps.is_empty() {
        return printer.done(format!("{} follows no recipe", found.run.id));
    }
    printer.heading(&found.run.id.to_string(), &format!("  {} steps done", found.progress))?;
    print_steps(printer, &found)
}

fn done(context: &CommandContext<'_>, args: &DoneArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let done = gt_beads::steps::finish_steps(&town, args.run.as_deref(), &args.steps, args.force)?;
    print_done(printer, &done)?;
    if done.fresh_session_due {
        // The fresh session ends the calling agent, and this process with it.
        printer.flush()?;
        // Without a supervisor to begin a fresh session, this one goes on.
        worker::begin_fresh_session(&town, &done.run)?;
    }
    Ok(())
}

fn print_done(printer: &Printer, done: &StepsDone) -> Result<(), CliError> {
    if printer.json() {
        return printer.object(&done_document(done));
    }
    for (name, title) in &done.newly_done {
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

/// The steps of a run, for programs.
pub(super) fn steps_documents(found: &StepsOfRun) -> Vec<StepDocument> {
    let document = |StepView { step, name, done, waits_for }: &StepView| StepDocument {
        id: step.id.clone(),
        name: name.clone(),
        title: step.title.clone(),
        description: step.description.clone(),
        acceptance_criteria: step.acceptance.clone(),
        done: done.is_some(),
        done_at: done.as_ref().map(|done| done.at.into()),
        done_by: done.as_ref().map(|done| done.by.clone()),
        waits_for: texts(waits_for),
    };
    found.steps.iter().map(document).collect()
}

/// The name of the step that comes next.
pub(super) fn next_name(found: &StepsOfRun) -> Option<String> {
    found.next().map(|next| next.name.clone())
}

fn done_document(done: &StepsDone) -> StepsDoneDocument {
    StepsDoneDocument {
        run: done.run.to_string(),
        done: texts(done.newly_done.iter().map(|(name, _)| name)),
        already_done: texts(&done.already),
        progress: done.progress.into(),
        next: done.next.as_ref().map(|(name, _)| name.clone()),
        fresh_session: done.fresh_session_due,
    }
}
