//! `gt run cancel`.

use clap::Args;
use gt_api::CancelledDocument;
use gt_beads::run_records;
use gt_core::schedule::RunState;
use gt_execution::runs::{self, CancelResult};

use super::super::for_each_argument::{ResultPrinting, do_each};
use crate::context::CommandContext;
use crate::error::CliError;

/// End runs: everything they started is asked to end, and after a grace is killed
///
/// The grace is the setting `worker.kill_grace`. The bead is open afterwards, and nothing starts it again by itself. A run that has ended stays as it is.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gt run cancel gt-abc\n  gt run cancel gt-abc#2 gt-def#1 --json\n  gt run cancel gt-abc#2 --force        # its machine is gone for good"
)]
pub(super) struct CancelArgs {
    /// Runs such as gt-abc#2, or beads for their live ones
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// If their processes are out of reach, cancel them in the store alone
    ///
    /// For runs on a machine that is gone for good, or whose files are. Processes of them that are still alive are fenced off, not ended: their reports about the bead are refused, but they may go on changing files.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &CancelArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let telling = ResultPrinting { sentence, document, done: "cancelled" };
    let cancel = if args.force { runs::cancel_by_force } else { runs::cancel };
    let find = |input: &str| run_records::resolve(&town, input).map(drop);
    do_each(context.printer, &args.runs, find, |input| cancel(&town, input), &telling)
}

/// The result of a cancellation, for people.
pub(crate) fn sentence(cancelled: &CancelResult) -> String {
    let CancelResult { run, state, already, left_on, request } = cancelled;
    let bead = &run.bead;
    if let Some(request) = request.as_ref().filter(|_| *state != RunState::Cancelled) {
        return format!("✓ {request} of {run} is cancelled, and {bead} is open; its branch stays");
    }
    match (state, already, left_on) {
        (state, true, _) => format!("{run} has ended already ({}); nothing to do", state.as_str()),
        (RunState::Cancelled, false, Some(host)) => format!(
            "✓ Cancelled {run} in the store alone; {bead} is open. Processes of it that are still alive on {host} \
             are fenced off, not ended"
        ),
        (RunState::Cancelled, false, None) => format!("✓ Cancelled {run}; {bead} is open"),
        (state, false, _) => format!("{run} ended by itself first: {}", state.as_str()),
    }
}

/// The same for programs.
pub(crate) fn document(cancelled: &CancelResult) -> CancelledDocument {
    CancelledDocument {
        id: cancelled.run.to_string(),
        bead: cancelled.run.bead.to_string(),
        state: cancelled.state.as_str().to_owned(),
        already_ended: cancelled.already,
        left_on: cancelled.left_on.clone(),
        request: cancelled.request.as_ref().map(ToString::to_string),
    }
}
