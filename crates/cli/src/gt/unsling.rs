//! `gt unsling`.

use clap::Args;
use gt_operations::runs::{self, Unslung};
use gt_records::ObjectWriter;

use super::each::{Telling, do_each};
use super::run::{cancelled_json, cancelled_sentence};
use crate::context::Context;
use crate::error::CliError;

/// Take work back: a running bead is stopped, a scheduled one leaves the queue
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt unsling gt-abc\n  gt unsling gt-abc gt-def --json")]
pub(super) struct UnslingArgs {
    /// Beads
    #[arg(required = true, value_name = "BEAD")]
    beads: Vec<String>,
}

pub(super) fn run(context: &Context<'_>, args: &UnslingArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let telling = Telling { sentence, json, done: "taken back" };
    do_each(context.printer, &args.beads, |input| runs::unsling(&town, input), &telling)
}

fn sentence(unslung: &Unslung) -> String {
    match unslung {
        Unslung::Cancelled(cancelled) => cancelled_sentence(cancelled),
        Unslung::Cleared(bead, _) => format!("✓ {bead} is not scheduled any more"),
        Unslung::Nothing(bead) => {
            format!("{bead} is neither scheduled nor running; nothing to do")
        }
    }
}

fn json(unslung: &Unslung) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    match unslung {
        Unslung::Cancelled(cancelled) => {
            object.text("bead", cancelled.run.bead.as_str());
            object.text("was", "running");
            object.raw("run", &cancelled_json(cancelled));
        }
        Unslung::Cleared(bead, context) => {
            object.text("bead", bead.as_str());
            object.text("was", "scheduled");
            object.text("context", context.as_str());
        }
        Unslung::Nothing(bead) => {
            object.text("bead", bead.as_str());
            object.text("was", "idle");
        }
    }
    object.finish();
    out
}
