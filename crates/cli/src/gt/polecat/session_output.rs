//! `gt polecat attach`, `gt polecat peek` and `gt polecat log`.

use std::io::IsTerminal as _;

use clap::Args;
use gt_api::{PeekDocument, TranscriptEventDocument};
use gt_core::runtime::TranscriptFormat;
use gt_execution::polecats::AttachPoint;
use gt_transcripts::{TranscriptEvent, TranscriptParser};

use super::super::run;
use super::attach_transcript;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{StyledLine, TranscriptView, plain_line};

/// Watch a worker and type to it
///
/// That is its session if it has a screen; leave it with Ctrl-b d. For a worker without one it is what the worker does and says, as it
/// comes, above a line to type into; each line goes to the worker as gt nudge sends it. Leave it with Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt attach gastown/nux\n  gt attach nux\n  gt attach gt-abc")]
pub(in crate::gt) struct AttachArgs {
    /// The polecat: <rig>/<name>, or its name if one rig has it; or a bead, for its worker
    polecat: String,
}

/// Print what a worker shows at the moment
///
/// That is the end of its session, or of what it did and said if it has none.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt peek gastown/nux
  gt peek nux
  gt peek gt-abc -n 100
  gt peek gt-abc -f
  gt peek gt-abc --raw")]
pub(in crate::gt) struct PeekArgs {
    /// The polecat: <rig>/<name>, or its name if one rig has it; or a bead, for its worker
    polecat: String,
    /// How many lines
    #[arg(short = 'n', long, value_name = "LINES", default_value_t = 30)]
    lines: u32,
    /// Go on until the run ends; not for a worker that shows a screen
    #[arg(short, long)]
    follow: bool,
    /// Print the lines of the output, not its events
    #[arg(long, conflicts_with = "follow")]
    raw: bool,
}

/// Print everything that a worker has printed in its run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt polecat log gastown/nux
  gt polecat log gastown/nux -f
  gt polecat log gt-abc -n 50")]
pub(super) struct LogArgs {
    /// The polecat: <rig>/<name>, or its name if one rig has it; or a bead, for its worker
    polecat: String,
    #[command(flatten)]
    how: run::LogOptions,
}

pub(in crate::gt) fn attach(
    context: &CommandContext<'_>,
    args: &AttachArgs,
) -> Result<(), CliError> {
    let town = context.town()?;
    let point = gt_execution::polecats::attach(&town, &args.polecat)?;
    if !context.printer.is_terminal() || !std::io::stdin().is_terminal() {
        return Err(CliError::request(format!(
            "gt attach needs a terminal, and this is none; gt polecat peek {} prints what its worker shows",
            args.polecat
        )));
    }
    match point {
        AttachPoint::Session(command) => Err(CliError::request(command.become_it().to_string())),
        AttachPoint::Transcript(run) => attach_transcript::attach(context, &town, &run),
    }
}

pub(in crate::gt) fn peek(context: &CommandContext<'_>, args: &PeekArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let lines = args.lines as usize;
    let glimpse = gt_execution::polecats::peek(&town, &args.polecat, args.lines)?;
    let printer = context.printer;
    if args.follow {
        if glimpse.session.is_some() {
            return Err(CliError::request(format!(
                "{} shows a screen, which cannot be followed line by line; gt attach {} opens it",
                glimpse.run.id, args.polecat
            )));
        }
        return run::print_log(context, &town, &glimpse.run, &run::LogOptions::from_end(lines));
    }
    if printer.json() {
        let events = if glimpse.format == TranscriptFormat::Plain {
            Vec::new()
        } else {
            events_of(glimpse.format, &glimpse.text)
        };
        return printer.object(&PeekDocument {
            run: glimpse.run.id.to_string(),
            state: glimpse.run.state.as_str().to_owned(),
            source: if glimpse.session.is_some() { "session" } else { "log" }.to_owned(),
            session: glimpse.session.filter(|session| !session.is_empty()),
            output: glimpse.text,
            events: events.iter().map(TranscriptEventDocument::from).collect(),
        });
    }
    if glimpse.text.is_empty() {
        printer.note(format!("{} shows nothing", glimpse.run.id));
    }
    if args.raw || glimpse.format == TranscriptFormat::Plain {
        let mut text = glimpse.text.lines();
        return text.try_for_each(|line| printer.line(plain_line(line.as_bytes())));
    }
    let mut view = TranscriptView::default();
    let events = events_of(glimpse.format, &glimpse.text);
    let mut shown: Vec<StyledLine> = events.iter().flat_map(|event| view.lines(event)).collect();
    shown.extend(view.finish());
    let first = shown.len().saturating_sub(lines);
    shown[first..].iter().try_for_each(|line| printer.styled(line))
}

fn events_of(format: TranscriptFormat, text: &str) -> Vec<TranscriptEvent> {
    let mut parser = TranscriptParser::new(format);
    let mut events = parser.read(text.as_bytes());
    events.extend(parser.finish());
    events
}

pub(super) fn log(context: &CommandContext<'_>, args: &LogArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let run = gt_execution::polecats::run_of(&town, &args.polecat)?;
    run::print_log(context, &town, &run, &args.how)
}
