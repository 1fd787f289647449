//! `gt run cancel`.

use clap::Args;
use gt_core::schedule::RunState;
use gt_operations::runs::{self, Cancelled};
use gt_records::ObjectWriter;

use super::super::each::{Telling, do_each};
use crate::context::Context;
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
    /// For runs on a machine that is gone for good, or whose files are. Whatever of them is still alive is fenced off, not ended: what it says about its bead is not heard, but it may go on changing files.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(context: &Context<'_>, args: &CancelArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let telling = Telling { sentence, json, done: "cancelled" };
    let cancel = if args.force { runs::cancel_by_force } else { runs::cancel };
    do_each(context.printer, &args.runs, |input| cancel(&town, input), &telling)
}

/// What came of a wish to cancel, for people.
pub(crate) fn sentence(cancelled: &Cancelled) -> String {
    let Cancelled { run, state, already, left_on } = cancelled;
    let bead = &run.bead;
    match (state, already, left_on) {
        (state, true, _) => format!("{run} has ended already ({}); nothing to do", state.as_str()),
        (RunState::Cancelled, false, Some(host)) => format!(
            "✓ Cancelled {run} in the store alone; {bead} is open. Whatever of it is still alive on {host} is fenced \
             off, not ended"
        ),
        (RunState::Cancelled, false, None) => format!("✓ Cancelled {run}; {bead} is open"),
        (state, false, _) => format!("{run} ended by itself first: {}", state.as_str()),
    }
}

/// The same for programs.
pub(crate) fn json(cancelled: &Cancelled) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("id", &cancelled.run.to_string());
    object.text("bead", cancelled.run.bead.as_str());
    object.text("state", cancelled.state.as_str());
    object.flag("already_ended", cancelled.already);
    if let Some(host) = &cancelled.left_on {
        object.text("left_on", host);
    }
    object.finish();
    out
}
