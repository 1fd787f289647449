//! `gt run show`.

use clap::Args;
use gt_api::{CountedUsageDocument, RawJson, RunContextDocument, ShownRunDocument};
use gt_core::ExecutorKind;
use gt_core::cost::{CostSource, CountedUsage, TokenCounts};
use gt_core::schedule::{Context as SlingContext, Run, Usage};
use gt_daemon::views::need_document;
use gt_execution::runs::{self, ShownRun};
use gt_scheduling::processes::{Alive, LocalProcesses};

use super::super::status::print_needs;
use super::super::step::print_steps;
use super::{landed_commit, lasted};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table, ago, local_times, moment, plain_line, short_commit};

/// Show everything about a run
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt run show gt-abc#2\n  gt run show gt-abc --json")]
pub(super) struct ShowArgs {
    /// A run such as gt-abc#2, or a bead for its live or last one
    run: String,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ShowArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let shown = runs::show(&town, &LocalProcesses::of(&town)?, &args.run)?;
    if printer.json() {
        return printer.object(&document(&shown));
    }
    let now = town.now();
    let ShownRun { run, bead, context, log, .. } = &shown;
    let title = bead.as_ref().map_or("(its bead is gone)", |bead| bead.title.as_str());
    printer.heading(&run.id.to_string(), &format!("  {title}"))?;
    let mut table = Table::wrapped();
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            table.row(vec![Cell::bold(name), Cell::new(value)]);
        }
    };
    row("state", state(&shown));
    row("agent", run.agent.clone());
    row("rig", run.rig.to_string());
    row("executor", run.executor.as_str().to_owned());
    row("runtime", run.runtime.clone());
    row("host", run.host_name().to_owned());
    row("account", run.account.clone());
    row("used", used(&run.usage));
    for usage in &shown.usage {
        row("", used_of_model(usage));
    }
    row(
        "begun",
        format!("{} ({}) by {}", moment(run.created_at), ago(run.created_at, now), run.created_by),
    );
    row("taken", run.running_at.map(moment).unwrap_or_default());
    row("ended", run.ended_at.map(moment).unwrap_or_default());
    row("lasted", lasted(run, now));
    row("exit status", exit_status(run));
    row("why", local_times(&run.explanation()));
    row("ended by", run.ended_by.clone());
    if let Some(context) = context {
        row("scheduled", scheduled(context));
        row("attempt", (context.attempts + 1).to_string());
        row("instructions", context.parameters.args.clone().unwrap_or_default());
    }
    row("formula", run.formula.clone());
    row("session", run.workplace.session.clone());
    row("tree", run.workplace.tree.clone());
    row("branch", run.workplace.branch.clone());
    row("landed", short_commit(landed_commit(run).unwrap_or_default()).to_owned());
    row("output", log.display().to_string());
    printer.table(table)?;
    print_needs(printer, &shown.needs)?;
    if let Some(output) = shown.setup_output.as_deref().filter(|output| !output.is_empty()) {
        printer.line("")?;
        printer.heading("Setup of its tree", &format!("  rig.{}.setup printed", run.rig))?;
        output
            .lines()
            .try_for_each(|line| printer.line(format!("  {}", plain_line(line.as_bytes()))))?;
    }
    if shown.steps.steps.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    printer.heading("Steps", &format!("  {}", shown.steps.progress))?;
    print_steps(printer, &shown.steps)
}

/// The usage of a run, as far as it was reported.
fn used(usage: &Usage) -> String {
    let known = [
        usage.tokens.map(|tokens| format!("{tokens} tokens")),
        usage.cost.map(|cost| format!("${cost}")),
        usage.peak_memory_mb.map(|mb| format!("{mb} MB of memory at most")),
    ];
    known.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The usage of one model, and whether the sources agree.
fn used_of_model(usage: &CountedUsage) -> String {
    let TokenCounts { input, output, cache_read, cache_write, reasoning } = usage.tokens;
    let kinds = [
        (input, "input"),
        (output, "output"),
        (reasoning, "thinking"),
        (cache_read, "from the cache"),
        (cache_write, "into the cache"),
    ];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<String> = kinds.map(|(count, kind)| format!("{count} {kind}")).collect();
    let model = if usage.model.is_empty() { "a model without a name" } else { &usage.model };
    let cost = match (usage.cost, usage.cost_source) {
        (Some(cost), CostSource::Priced) => format!("{} by the table of prices", cost.dollars()),
        (Some(cost), CostSource::Reported | CostSource::Unknown) => cost.dollars(),
        (None, _) => "no price is known".to_owned(),
    };
    let less = if usage.disagreement > 0 {
        format!("; another source has {} tokens less", usage.disagreement)
    } else {
        String::new()
    };
    format!("session {}, {model}: {}; {cost}{less}", usage.session, kinds.join(", "))
}

fn state(shown: &ShownRun) -> String {
    let run = &shown.run;
    let what = run.state_name();
    let processes = match (run.state.is_live(), shown.alive) {
        (true, Alive::Unknown) if run.executor == ExecutorKind::Ssh => {
            "it was started over ssh by an earlier gt, and no process reaches its machine"
        }
        (_, Alive::Unknown) if !shown.is_here => "its processes are not on this machine",
        (_, Alive::Unknown) => "its lock cannot be read, so it is unknown whether it is alive",
        (true, Alive::Yes) if shown.is_unsupervised() => "its agent goes on without a supervisor",
        (true, Alive::Yes) => "its processes are there",
        (true, Alive::No) if run.running_at.is_none() => "its worker has not taken it yet",
        (true, Alive::No) => "none of its processes is left; the next pass recovers it",
        (false, Alive::Yes) => "something of it is still running",
        (false, Alive::No) => return what.to_owned(),
    };
    format!("{what} ({processes})")
}

fn exit_status(run: &Run) -> String {
    match (run.exit_code, run.exit_signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => String::new(),
    }
}

fn scheduled(context: &SlingContext) -> String {
    format!(
        "{} ({} by {}, {})",
        context.id,
        context.origin.as_str(),
        context.enqueued_by,
        moment(context.enqueued_at)
    )
}

fn document(shown: &ShownRun) -> ShownRunDocument {
    let ShownRun { run, steps, bead, context, alive, needs, log, usage, .. } = shown;
    let has_steps = !steps.steps.is_empty();
    let done = steps.steps.iter().filter(|view| view.done.is_some());
    ShownRunDocument {
        run: run.into(),
        title: bead.as_ref().map(|bead| bead.title.to_string()).unwrap_or_default(),
        alive: match alive {
            Alive::Yes => Some(true),
            Alive::No => Some(false),
            Alive::Unknown => None,
        },
        log: log.display().to_string(),
        setup_output: shown.setup_output.clone(),
        needs_you: needs.iter().map(need_document).collect(),
        usage: usage.iter().map(CountedUsageDocument::from).collect(),
        steps: RawJson::from(&run.steps),
        progress: has_steps.then(|| steps.progress.into()),
        steps_done: has_steps.then(|| done.map(|view| view.name.clone()).collect()),
        attempt: context.as_ref().map(|context| u64::from(context.attempts) + 1),
        context: context.as_ref().map(|context| RunContextDocument {
            id: context.id.to_string(),
            origin: context.origin.as_str().to_owned(),
            enqueued_by: context.enqueued_by.clone(),
            enqueued_at: context.enqueued_at.into(),
            args: context.parameters.args.clone().unwrap_or_default(),
        }),
    }
}
