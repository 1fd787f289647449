//! `gt attach` for a worker without a screen: its events as they come, and a line to type into.

use std::collections::VecDeque;
use std::time::Duration;

use gt_beads::messages::{self, MessageToSend};
use gt_beads::run_records::resolve;
use gt_core::MessageId;
use gt_core::message::Receipt;
use gt_core::schedule::Run;
use gt_execution::runs::message_delivery::deliver;
use gt_execution::runs::{KeyInput, RunTranscript};
use gt_town::Town;
use gt_transcripts::TranscriptEvent;

use super::super::{mail, nudge};
use super::input_line::{InputLine, TypedAction};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{LineStyle, Printer, StyledLine, TranscriptView};

/// How long keys are waited for before the output is read again.
const KEY_WAIT: Duration = Duration::from_millis(100);
/// After so many reads the store is asked whether the run has ended, because that costs more.
const READS_PER_STORE_READ: u32 = 5;
/// How many lines of the past are shown first.
const FIRST_LINES: usize = 30;
/// How many lines of the output are read for them: not each is shown.
const FIRST_OUTPUT_LINES: usize = 200;
/// The mark before the line that is typed.
const MARK: &str = "> ";

/// Shows the events of a live run until it ends or the person leaves. Each line that is typed goes to the worker as a
/// nudge.
pub(super) fn attach(context: &CommandContext<'_>, town: &Town, run: &Run) -> Result<(), CliError> {
    let mut transcript = RunTranscript::of(town, run)?;
    transcript.skip_to_last(FIRST_OUTPUT_LINES)?;
    let keys = KeyInput::of_this_process()?
        .ok_or_else(|| CliError::request("there is no terminal to type at"))?;
    let mut screen = TypingScreen::new(context.printer);
    screen.head(run)?;
    screen.past(&mut transcript)?;
    let mut sent: Vec<MessageId> = Vec::new();
    let mut reads = 0;
    loop {
        // The store is asked before the file is read, so that no event before the end is missed.
        let state = match reads % READS_PER_STORE_READ {
            0 => state_of(town, run)?,
            _ => None,
        };
        reads += 1;
        while let Some(events) = transcript.read()? {
            screen.events(&events)?;
        }
        if let Some(ended) = state {
            screen.events(&transcript.finish())?;
            return screen.end(&ended);
        }
        if reads % READS_PER_STORE_READ == 1 {
            let (seen, waiting) = seen_of(town, sent)?;
            sent = waiting;
            for id in seen {
                screen.add_note(&format!("✓ {} has seen {id}", run.id.bead))?;
            }
        }
        screen.show()?;
        for key in keys.read(KEY_WAIT)? {
            match screen.line.take(key) {
                None => {}
                Some(TypedAction::Leave) => return screen.leave(run),
                Some(TypedAction::Send(text)) => {
                    sent.extend(send(context, town, run, &text, &mut screen)?);
                }
            }
        }
    }
}

/// The run once it has ended.
fn state_of(town: &Town, run: &Run) -> Result<Option<Run>, CliError> {
    match resolve(town, &run.id.to_string()) {
        Ok(run) => Ok(Some(run).filter(|run| !run.state.is_live())),
        Err(error) if error.may_pass() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The messages that were seen, and those that were not.
fn seen_of(
    town: &Town,
    sent: Vec<MessageId>,
) -> Result<(Vec<MessageId>, Vec<MessageId>), CliError> {
    let mut parts = (Vec::new(), Vec::new());
    for id in sent {
        let is_seen = messages::show(town, &id.to_string())?.receipt() == Receipt::Seen;
        if is_seen { parts.0.push(id) } else { parts.1.push(id) }
    }
    Ok(parts)
}

/// Sends a line as a nudge, and says how far it came. A refusal is shown, and the person can type another line.
fn send(
    context: &CommandContext<'_>,
    town: &Town,
    run: &Run,
    text: &str,
    screen: &mut TypingScreen<'_>,
) -> Result<Option<MessageId>, CliError> {
    let letter = MessageToSend { subject: None, body: text.to_owned(), nudge: true };
    let to = run.id.bead.to_string();
    let delivered = messages::send(town, mail::role(context), &to, &letter)
        .and_then(|message| deliver(town, &message).map(|delivery| (message, delivery)));
    screen.add_note(&format!("{MARK}{text}"))?;
    match delivered {
        Ok((message, delivery)) => {
            screen.add_note(&format!("✓ {}", nudge::how_far(&message, &delivery)))?;
            Ok(Some(message.id))
        }
        Err(error) => {
            screen.add_note(&format!("error: {error}"))?;
            Ok(None)
        }
    }
}

/// A terminal with lines that come, and below them the line that is typed.
struct TypingScreen<'p> {
    printer: &'p Printer,
    view: TranscriptView,
    line: InputLine,
    /// The typed text that the terminal shows; nothing if it shows none.
    shown: Option<String>,
}

impl<'p> TypingScreen<'p> {
    fn new(printer: &'p Printer) -> Self {
        Self { printer, view: TranscriptView::default(), line: InputLine::default(), shown: None }
    }

    fn head(&mut self, run: &Run) -> Result<(), CliError> {
        self.add_note(&format!(
            "{} ({}): a line that you type goes to its worker; Ctrl-C leaves, and the worker goes on",
            run.id, run.agent
        ))
    }

    /// Shows the end of what has happened so far.
    fn past(&mut self, transcript: &mut RunTranscript) -> Result<(), CliError> {
        let mut last: VecDeque<StyledLine> = VecDeque::new();
        while let Some(events) = transcript.read()? {
            for line in events.iter().flat_map(|event| self.view.lines(event)) {
                last.push_back(line);
                if last.len() > FIRST_LINES {
                    last.pop_front();
                }
            }
        }
        last.iter().try_for_each(|line| self.add(line))
    }

    fn events(&mut self, events: &[TranscriptEvent]) -> Result<(), CliError> {
        let lines: Vec<StyledLine> =
            events.iter().flat_map(|event| self.view.lines(event)).collect();
        lines.iter().try_for_each(|line| self.add(line))
    }

    fn add_note(&mut self, text: &str) -> Result<(), CliError> {
        self.add(&StyledLine { style: LineStyle::Strong, text: text.to_owned() })
    }

    /// Adds a line above the one that is typed.
    fn add(&mut self, line: &StyledLine) -> Result<(), CliError> {
        if self.shown.take().is_some() {
            self.printer.remove_line()?;
        }
        self.printer.styled(line)
    }

    /// Shows the line that is typed, if the terminal does not show it already.
    fn show(&mut self) -> Result<(), CliError> {
        if self.shown.as_deref() == Some(self.line.text()) {
            return Ok(());
        }
        if self.shown.is_some() {
            self.printer.remove_line()?;
        }
        self.printer.show_typed(MARK, self.line.text())?;
        self.shown = Some(self.line.text().to_owned());
        Ok(())
    }

    fn leave(mut self, run: &Run) -> Result<(), CliError> {
        self.add_note(&format!("Left {}; its worker goes on", run.id))
    }

    fn end(mut self, run: &Run) -> Result<(), CliError> {
        let lines = std::mem::take(&mut self.view).finish();
        lines.iter().try_for_each(|line| self.add(line))?;
        self.add_note(&format!("{} is {}", run.id, run.state.as_str()))
    }
}
