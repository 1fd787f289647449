//! `gt handoff`.

use clap::Args;
use gt_api::{HandoffDocument, MessageDocument};
use gt_execution::worker::{self, HandedOff, HandoffNote};

use super::mail::{role, words};
use crate::context::CommandContext;
use crate::error::CliError;

/// Let a fresh session go on with your run: same tree, same branch, same attempt
///
/// A worker says this when its session has become long. Its note is kept, the session ends, and a new one begins with the
/// note and with what is done so far. A person names the run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt handoff -m \"The parser is done; the tests in tests/lines.rs still fail\"
  gt handoff -s \"Half way\" -m - < notes.md
  gt handoff --run gt-abc -m \"Begin again with the design\"")]
pub(super) struct HandoffArgs {
    /// The subject of the note, in one line
    #[arg(short, long)]
    subject: Option<String>,
    /// The note for the next session (- is standard input)
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Of this run, or of the live run of this bead; a worker's own unless said
    #[arg(long)]
    run: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &HandoffArgs) -> Result<(), CliError> {
    let body = args.message.as_deref().map(words).transpose()?.unwrap_or_default();
    let note = HandoffNote { subject: args.subject.clone(), body };
    let town = context.town()?;
    let printer = context.printer;
    let handed_off = worker::hand_off(&town, role(context), args.run.as_deref(), &note)?;
    if printer.json() {
        return printer.object(&document(&handed_off));
    }
    let HandedOff { run, over_limit, note } = handed_off;
    if let Some(limit) = over_limit {
        let kept = note.map(|note| format!("; the next run begins with {}", note.id));
        let kept = kept.unwrap_or_default();
        let limit = limit.as_str();
        return printer.done(format!("✓ {run} ends here: it is over its limit of {limit}{kept}"));
    }
    let kept = note.map(|note| format!(", and begins with {}", note.id)).unwrap_or_default();
    printer.done(format!("✓ A fresh session goes on with {run}{kept}"))
}

fn document(handed_off: &HandedOff) -> HandoffDocument {
    HandoffDocument {
        run: handed_off.run.to_string(),
        note: handed_off.note.as_ref().map(MessageDocument::from),
    }
}
