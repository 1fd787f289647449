//! `gt demo`.

use std::time::Duration;

use clap::Args;
use gt_core::Timestamp;
use gt_operations::daemon::LatencyReport;
use gt_operations::demo::{Ended, Moment, Outcome, Performance, Plan, Progress, Scene};
use gt_records::ObjectWriter;

use crate::context::{Context, this_program};
use crate::error::CliError;
use crate::output::{Printer, plural, short_commit};

/// How often one looks whether something has happened.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// See a whole town at work, in seconds
///
/// Makes a throw-away town with two repositories and an epic of eleven beads that depend on each other, stages and launches
/// it as a convoy, lets scripted workers do it, of which one crashes and one reaches a usage limit, and shows what happens
/// until everything has landed. No account, no key, nothing outside of a temporary directory.
#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 if everything landed, else 1.

Examples:
  gt demo
  gt demo --keep        # look around in the town afterwards")]
pub(super) struct DemoArgs {
    /// Keep the town, to look around in it
    #[arg(long)]
    keep: bool,
}

pub(super) fn run(context: &Context<'_>, args: &DemoArgs) -> Result<(), CliError> {
    let printer = context.printer;
    if !printer.json() {
        printer.done("Making a town with two repositories …")?;
        printer.flush()?;
    }
    let mut performance = Performance::begin(&context.environment, &this_program()?)?;
    if !printer.json() {
        let (beads, rigs, cap) = performance.size();
        printer.done(format!(
            "{beads} beads in {rigs} rigs, room for {cap} workers at once; its daemon does the rest"
        ))?;
        let Plan { convoy, waves } = performance.plan();
        let sizes: Vec<String> = waves.iter().map(ToString::to_string).collect();
        printer.done(format!(
            "Staged and launched as {convoy}, in {}: {}",
            plural(waves.len() as u64, "wave"),
            sizes.join(", then ")
        ))?;
        printer.done("")?;
    }
    let mut began = None;
    let progress = loop {
        let (moments, progress) = performance.look()?;
        for moment in moments {
            let began = *began.get_or_insert(moment.at);
            if !printer.json() {
                printer.done(line(began, &moment))?;
            }
        }
        if progress != Progress::GoesOn {
            break progress;
        }
        printer.wait(LOOK_EVERY)?;
    };
    let ended = performance.end(args.keep)?;
    if printer.json() {
        printer.object(&json(&ended))?;
    } else {
        tell(printer, &ended)?;
    }
    match progress {
        Progress::Over if ended.outcome.landed == ended.outcome.beads => Ok(()),
        Progress::Interrupted => Err(CliError::request("the demonstration was interrupted")),
        Progress::Over | Progress::GoesOn | Progress::Stuck => Err(CliError::request(format!(
            "only {} of {} beads landed; gt demo --keep leaves the town for a closer look",
            ended.outcome.landed, ended.outcome.beads
        ))),
    }
}

fn line(began: Timestamp, moment: &Moment) -> String {
    let Moment { at, bead, title, scene } = moment;
    let (mark, what) = match scene {
        Scene::Began { agent, earlier: 0 } => ("▶", format!("{title} ({agent})")),
        Scene::Began { agent, .. } => ("▶", format!("goes on with it ({agent})")),
        Scene::Landed { commit } => ("✓", format!("landed as {}", short_commit(commit))),
        Scene::Stumbled { reason } => ("✗", format!("{reason}; nothing is lost")),
        Scene::Limited { until } => ("⏸", format!("a usage limit, until {until}")),
    };
    format!("{:>6.2}s  {mark} {bead:<13} {what}", at.since(began).as_secs_f64())
}

fn tell(printer: &Printer, ended: &Ended) -> Result<(), CliError> {
    let Ended { outcome, end_to_start, close_to_start, plan, convoy_landed, kept } = ended;
    let Outcome { beads, landed, runs, most_at_once, cap, recovered, took } = outcome;
    printer.done("")?;
    printer.done(format!(
        "{landed} of {beads} beads landed in {:.1} s, in {}; never more than {most_at_once} of {cap} at once",
        seconds(*took),
        plural(*runs as u64, "run")
    ))?;
    if *convoy_landed {
        printer.done(format!(
            "{} has landed, in {}",
            plan.convoy,
            plural(plan.waves.len() as u64, "wave")
        ))?;
    }
    for (bead, after) in recovered {
        printer.done(format!(
            "{bead} stumbled and was taken up again after {:.1} s",
            seconds(*after)
        ))?;
    }
    for (what, latency) in
        [("a close to the next start", close_to_start), ("an end to the next start", end_to_start)]
    {
        if latency.count > 0 {
            printer.done(format!(
                "From {what}: {:.0} ms (median of {}, at most {:.0} ms)",
                latency.p50_ms, latency.count, latency.max_ms
            ))?;
        }
    }
    printer.done("")?;
    match kept {
        Some(root) => {
            printer.done(format!("Look around: cd {}", root.display()))?;
            printer.done(format!(
                "  gt convoy status {} · gt status · gt feed · gt run list · gt run log api-search",
                plan.convoy
            ))?;
            printer.done("Nothing runs there any more; remove the directory when you have seen enough")
        }
        None => printer.done(
            "Your own town: gt install ~/town && cd ~/town && gt rig add <name> <git-url-or-path>, then gt up",
        ),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a demonstration takes less than centuries")]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

fn json(ended: &Ended) -> String {
    let Ended { outcome, end_to_start, close_to_start, plan, convoy_landed, kept } = ended;
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.count("beads", outcome.beads as u64);
    object.count("landed", outcome.landed as u64);
    object.count("runs", outcome.runs as u64);
    object.count("most_at_once", outcome.most_at_once as u64);
    object.count("cap", outcome.cap as u64);
    object.count("took_ms", outcome.took);
    object.text("convoy", plan.convoy.as_str());
    object.flag("convoy_landed", *convoy_landed);
    object.array("waves", |array| {
        plan.waves.iter().for_each(|beads| array.raw(&beads.to_string()));
    });
    object.object("recovered_ms", |fields| {
        for (bead, after) in &outcome.recovered {
            fields.count(bead, *after);
        }
    });
    for (key, latency) in [("close_to_start", close_to_start), ("end_to_start", end_to_start)] {
        object.object(key, |fields| write_latency(fields, latency));
    }
    if let Some(root) = kept {
        object.text("root", &root.display().to_string());
    }
    object.finish();
    out
}

fn write_latency(fields: &mut ObjectWriter<'_>, latency: &LatencyReport) {
    fields.count("count", latency.count);
    fields.raw("max_ms", &format!("{:.3}", latency.max_ms));
    fields.raw("p50_ms", &format!("{:.3}", latency.p50_ms));
}
