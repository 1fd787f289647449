//! `gt unsling`.

use clap::Args;
use gt_api::UnslungDocument;
use gt_beads::lookup;
use gt_core::BeadId;
use gt_execution::runs::{self, Unslung};

use super::for_each_argument::{ResultPrinting, do_each};
use super::run::{cancelled_document, cancelled_sentence};
use crate::context::CommandContext;
use crate::error::CliError;

/// Take work back: a running bead is stopped, a scheduled one leaves the queue
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt unsling gt-abc\n  gt unsling gt-abc gt-def --json")]
pub(super) struct UnslingArgs {
    /// Beads
    #[arg(required = true, value_name = "BEAD")]
    beads: Vec<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &UnslingArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let telling = ResultPrinting { sentence, document, done: "taken back" };
    let find = |input: &str| lookup::resolve(&town, input).map(drop);
    do_each(context.printer, &args.beads, find, |input| runs::unsling(&town, input), &telling)
}

fn sentence(unslung: &Unslung) -> String {
    match unslung {
        Unslung::Cancelled(cancelled) => cancelled_sentence(cancelled),
        Unslung::Cleared(bead, _) => format!("✓ {bead} is not scheduled any more"),
        Unslung::GivenUp(request) => {
            format!("✓ {request} is cancelled, and {} is open; its branch stays", request.bead)
        }
        Unslung::Nothing(bead) => {
            format!("{bead} is neither scheduled nor running; nothing to do")
        }
    }
}

fn document(unslung: &Unslung) -> UnslungDocument {
    let of = |bead: &BeadId, was: &str| UnslungDocument {
        bead: bead.to_string(),
        was: was.to_owned(),
        run: None,
        context: None,
        request: None,
    };
    match unslung {
        Unslung::Cancelled(cancelled) => UnslungDocument {
            run: Some(cancelled_document(cancelled)),
            ..of(&cancelled.run.bead, "running")
        },
        Unslung::Cleared(bead, context) => {
            UnslungDocument { context: Some(context.to_string()), ..of(bead, "scheduled") }
        }
        Unslung::GivenUp(request) => {
            UnslungDocument { request: Some(request.to_string()), ..of(&request.bead, "merging") }
        }
        Unslung::Nothing(bead) => of(bead, "idle"),
    }
}
