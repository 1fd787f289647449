//! `gt sling`.

mod flags;
mod report;

use clap::Args;
use gt_core::decide::WaitReason;
use gt_daemon::{daemon, slinging};
use gt_scheduling::schedule::{ConvoyChoice, SlingEntry, SlingOutcome, SlingReport, SlingRequest};
use gt_town::{Environment, Town};

use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::output::{can_ask, is_confirmed};

pub(super) use flags::SlingFlags;
pub(super) use report::verdict;

/// Hand beads to workers
///
/// Without a cap for the town the work starts at once; with one it is scheduled, and starts as soon as there is a slot. An
/// epic stands for everything below it, a convoy for everything it tracks.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt sling gt-abc                       # its rig is known from its prefix
  gt sling gt-abc gt-def gastown        # several beads, with their rig
  gt sling gt-epic-123                  # everything below an epic
  gt sling gt-abc --args \"start with the tests\" --retries 2
  gt sling mol-review --on gt-abc       # a formula on a bead
  gt sling mol-review --on @beads.txt gastown --queue
  gt sling gt-abc --dry-run

The cap is the setting scheduler.max_polecats: gt config set scheduler.max_polecats 5.")]
pub(super) struct SlingArgs {
    /// Beads, epics or convoys, or a formula with --on; a rig or <rig>/<name> may be the last
    #[arg(value_name = "BEAD|FORMULA|TARGET")]
    words: Vec<String>,
    #[command(flatten)]
    flags: SlingFlags,
    /// Queue it: in every mode it waits for a slot, and in direct mode for gt queue run
    #[arg(long)]
    queue: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &SlingArgs) -> Result<(), CliError> {
    sling_words(context, &args.words, &args.flags, args.queue)
}

/// Carries out `gt sling` and `gt queue <bead>`.
pub(super) fn sling_words(
    context: &CommandContext<'_>,
    words: &[String],
    flags: &SlingFlags,
    queue: bool,
) -> Result<(), CliError> {
    refuse_workers(&context.environment)?;
    if words.is_empty() && flags.names_nothing() {
        return Err(CliError::request("name what is to be slung: a bead, an epic or a convoy"));
    }
    let request = SlingRequest {
        arguments: words.to_vec(),
        on: flags.on()?,
        flags: flags.flags()?,
        skip_unknown: flags.skip_unknown,
        queue,
        travel: ConvoyChoice::ByItself,
        rehearsal: flags.dry_run,
    };
    let town = context.town()?;
    let is_asked = !flags.yes && !flags.dry_run && !queue;
    if is_asked && !are_starts_wanted(context, &town, &request)? {
        return context.printer.done(NOTHING_STARTED);
    }
    let slung = carry_out(&town, &request)?;
    print_report(context, &town, &slung, flags.dry_run, flags.no_boot)
}

/// How many agents a person on a terminal starts at once without being asked, in a town without a cap.
const STARTED_UNASKED_MAX: usize = 5;

/// The answer to a person who does not want to start so many.
pub(super) const NOTHING_STARTED: &str = "Nothing was started";

/// Whether a person wants to start as many agents at once as this request starts.
pub(super) fn are_starts_wanted(
    context: &CommandContext<'_>,
    town: &Town,
    request: &SlingRequest,
) -> Result<bool, CliError> {
    is_number_wanted(context, town, || {
        let rehearsed = carry_out(town, &SlingRequest { rehearsal: true, ..request.clone() })?;
        // Work that waits for room alone, such as for an account that is limited, starts by itself in a moment.
        let starts = |entry: &&SlingEntry| {
            matches!(&entry.outcome, SlingOutcome::Scheduled(_, reasons)
                if reasons.iter().all(WaitReason::is_capacity))
        };
        Ok(rehearsed.entries.iter().filter(starts).count())
    })
}

/// Whether a person wants to start so many agents at once: the one question of every command that can start many. With a
/// cap, or without a terminal, the answer is yes.
pub(super) fn is_number_wanted(
    context: &CommandContext<'_>,
    town: &Town,
    count: impl FnOnce() -> Result<usize, CliError>,
) -> Result<bool, CliError> {
    if !can_ask(context.printer) || town.scheduler_settings()?.is_deferred() {
        return Ok(true);
    }
    let count = count()?;
    let question = format!(
        "This starts {count} agents at once, because the town has no cap (gt config set scheduler.max_polecats 3 sets \
         one). Start them?"
    );
    Ok(count <= STARTED_UNASKED_MAX || is_confirmed(context.printer, &question)?)
}

/// Schedules what a request names, and starts what may start at once.
pub(super) fn carry_out(town: &Town, request: &SlingRequest) -> Result<SlingReport, CliError> {
    Ok(slinging::sling(town, request, &this_program()?)?)
}

/// The request to launch a convoy that is staged.
pub(super) fn launch_request(convoy: &str) -> SlingRequest {
    let arguments = vec![convoy.to_owned()];
    SlingRequest { arguments, travel: ConvoyChoice::Launched, ..SlingRequest::default() }
}

/// Prints the result for the beads of a convoy that was launched, made or joined.
pub(super) fn print_scheduled_by_convoy(
    context: &CommandContext<'_>,
    town: &Town,
    slung: &SlingReport,
) -> Result<(), CliError> {
    print_report(context, town, slung, false, false)
}

/// Prints the result for each bead, and hints for the waiting ones.
fn print_report(
    context: &CommandContext<'_>,
    town: &Town,
    slung: &SlingReport,
    dry_run: bool,
    no_boot: bool,
) -> Result<(), CliError> {
    report::print(context.printer, slung, dry_run)?;
    // In direct mode too: a blocked bead starts later, and this command is over by then.
    let waits_for_daemon = report::has_scheduled(slung) && !dry_run;
    if report::waits_at_the_gate(slung) {
        context.printer.note(
            "It waits for gt queue run; gt config set queue.enabled true lets the daemon start it",
        );
    } else if waits_for_daemon
        && !no_boot
        && let Some(warning) = daemon::absence_warning(town)
    {
        context.printer.note(warning);
    }
    report::verdict(slung)
}

/// Refuses workers: a worker does the bead it was given, and schedules no other work.
pub(super) fn refuse_workers(environment: &Environment) -> Result<(), CliError> {
    let worker = match (environment.acting_run(), environment.polecat()) {
        (Some(run), _) => format!("GT_RUN says that this is the worker of {run}"),
        (None, Some(polecat)) => format!("GT_ROLE says that this is {polecat}"),
        (None, None) => return Ok(()),
    };
    Err(CliError::request(format!(
        "polecats do not sling, and {worker}; file a bead with bd create, or ask the mayor"
    )))
}
