//! `gt wait`.

use clap::Args;
use gt_api::{ReasonTextDocument, WaitedBeadDocument, WaitedDocument};
use gt_core::time::parse_duration;
use gt_execution::runs::{self, BeadProgress, WaitRequest, WaitResult, WaitUpdate, WatchedBead};
use gt_scheduling::processes::LocalProcesses;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{local_times, plural};

/// Wait until work is over
///
/// Returns when every bead is closed, or cannot get further without a person, who is told why. Starts nothing;
/// an epic or a convoy stands for the beads that it is made of.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true),
    after_help = "Exit code: 0 if everything ended well, 1 if something failed, is stuck, or the time was up.

Examples:
  gt wait gt-abc gt-def
  gt wait --all --timeout 30m
  gt wait gt-abc && make release"
)]
pub(super) struct WaitArgs {
    /// Beads
    #[arg(value_name = "BEAD", group = "what")]
    beads: Vec<String>,
    /// Everything that is scheduled, running or on its way to land, until nothing runs and nothing can start
    #[arg(short, long, group = "what")]
    all: bool,
    /// At most this long, such as 90s or 30m
    #[arg(short, long, value_name = "TIME")]
    timeout: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &WaitArgs) -> Result<(), CliError> {
    let timeout = args.timeout.as_deref().map(parse_duration).transpose()?;
    let town = context.town()?;
    let printer = context.printer;
    let request = WaitRequest { beads: args.beads.clone(), timeout };
    let mut printed = Ok(());
    let is_wanted = || crate::served::check_caller().is_ok();
    let waited = runs::wait(&town, &LocalProcesses::of(&town)?, &request, is_wanted, |notice| {
        match notice {
        WaitUpdate::Ended(watched) => {
            let told = printer.done(line(watched)).and_then(|()| printer.flush());
            printed = std::mem::replace(&mut printed, Ok(())).and(told);
        }
        WaitUpdate::NotRecovered(run, why) => {
            printer.note(format!("note: {run} cannot be recovered: {why}"));
        }
        WaitUpdate::Idle => printer.note(
            "note: nothing is running, and something is scheduled; gt scheduler run starts what can start",
        ),
        WaitUpdate::NotLanding => printer.note(
            "note: nothing is running, and merge requests wait to land; gt mq run lands what can land",
        ),
    }
    })?;
    printed?;
    if printer.json() {
        printer.object(&document(&waited))?;
    } else {
        let ended = |watched: &&WatchedBead| {
            matches!(watched.progress, BeadProgress::Done | BeadProgress::Failed(_))
        };
        for watched in waited.beads.iter().filter(|watched| !ended(watched)) {
            printer.paragraph(line(watched))?;
        }
    }
    if waited.is_well() {
        if waited.beads.is_empty() {
            printer.done("Nothing is scheduled or running")?;
        }
        return Ok(());
    }
    Err(CliError::request(summary(&waited)))
}

fn line(watched: &WatchedBead) -> String {
    let WatchedBead { bead, title, progress } = watched;
    match progress {
        BeadProgress::Done => format!("✓ {bead} is done: {title}"),
        BeadProgress::Failed(why) => format!("✗ {bead} failed ({why}): {title}"),
        BeadProgress::Going => format!("… {bead} is not over: {title}"),
        BeadProgress::Stuck(reasons) => {
            let reasons: Vec<String> =
                reasons.iter().map(|reason| local_times(&reason.to_string())).collect();
            format!("! {bead} is stuck ({}): {title}; see gt why {bead}", reasons.join("; "))
        }
    }
}

fn summary(waited: &WaitResult) -> String {
    let count = |matches: fn(&BeadProgress) -> bool| {
        waited.beads.iter().filter(|watched| matches(&watched.progress)).count() as u64
    };
    let parts = [
        (count(|progress| matches!(progress, BeadProgress::Failed(_))), "failed"),
        (count(|progress| matches!(progress, BeadProgress::Stuck(_))), "stuck"),
        (count(|progress| *progress == BeadProgress::Going), "not over"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let of = plural(waited.beads.len() as u64, "bead");
    let time = if waited.timed_out { "the time is up: " } else { "" };
    format!("{time}of {of}, {}", parts.join(", "))
}

fn document(waited: &WaitResult) -> WaitedDocument {
    let bead = |WatchedBead { bead, title, progress }: &WatchedBead| {
        let (result, why, reasons) = match progress {
            BeadProgress::Done => ("done", None, None),
            BeadProgress::Going => ("going", None, None),
            BeadProgress::Failed(why) => ("failed", Some(why.clone()), None),
            BeadProgress::Stuck(reasons) => {
                ("stuck", None, Some(reasons.iter().map(ReasonTextDocument::from).collect()))
            }
        };
        WaitedBeadDocument {
            id: bead.to_string(),
            title: title.clone(),
            result: result.to_owned(),
            why,
            reasons,
        }
    };
    WaitedDocument {
        ok: waited.is_well(),
        timed_out: waited.timed_out,
        beads: waited.beads.iter().map(bead).collect(),
    }
}
