//! `gt escalate`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use gt_api::MessageDocument;
use gt_beads::messages::{self, Escalation};
use gt_core::message::Severity;

use super::mail::{role, words};
use crate::context::CommandContext;
use crate::error::CliError;

/// Ask for a person
///
/// It stands under "Needs you" in gt status until a person reads it, and goes out as a notice. The work goes on meanwhile; a worker that cannot go on ends with gt done --status escalated instead.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt escalate \"Which of the two APIs is right?\"                # a worker, about its own bead
  gt escalate gt-abc \"The disk is full\" --severity critical
  gt escalate gt-abc - < report.txt")]
pub(super) struct EscalateArgs {
    /// The bead it is about (a worker's own unless said), and what you need to know (- is standard input)
    #[arg(required = true, num_args = 1..=2, value_names = ["BEAD", "MESSAGE"])]
    words: Vec<String>,
    /// How much depends on it
    #[arg(short, long, default_value = "medium", value_parser = PossibleValuesParser::new(["low", "medium", "high", "critical"]))]
    severity: String,
}

pub(super) fn run(context: &CommandContext<'_>, args: &EscalateArgs) -> Result<(), CliError> {
    let (bead, said) = match args.words.as_slice() {
        [bead, said] => (Some(bead.clone()), said.as_str()),
        said => (None, said.first().map_or("", String::as_str)),
    };
    let severity = Severity::parse(&args.severity)?;
    let words = words(said)?;
    let town = context.town()?;
    let asked = messages::escalate(&town, role(context), &Escalation { bead, words, severity })?;
    if context.printer.json() {
        return context.printer.object(&MessageDocument::from(&asked));
    }
    let about = asked.bead.as_ref().map(|bead| format!(" about {bead}")).unwrap_or_default();
    context.printer.done(format!(
        "✓ Asked for a person{about} as {} ({}); the answer comes with gt prime or gt mail inbox",
        asked.id,
        severity.as_str()
    ))
}
