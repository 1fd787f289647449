//! `gt run log`.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use gt_api::{RunLineDocument, RunLogDocument, RunStateDocument, TranscriptEventDocument};
use gt_core::schedule::{Run, RunId};
use gt_execution::runs::{
    KEPT_OUTPUT_WAIT_MAX, OutputElsewhere, RunOutput, RunTranscript, has_plain_output,
};
use gt_town::Town;
use gt_transcripts::TranscriptEvent;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, TranscriptView, plain_line, size};

/// How often the file is read for new output.
const OUTPUT_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// After so many reads the store is asked whether the run has ended, because that costs more.
const POLLS_PER_STORE_READ: u32 = 3;
const BUFFER_BYTES: usize = 64 * 1024;
/// How many lines of an output are read for each line that is shown of its end.
const OUTPUT_LINES_PER_LINE: usize = 4;

/// Print what the worker of a run did and said
///
/// Events of an agent that prints them (see its runtime) are shown as lines for people; the output of other programs is printed as
/// it is. With --json each event is an object on a line of its own. With --raw every byte comes as it was; on a terminal nothing that
/// could change the terminal does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt run log gt-abc
  gt run log gt-abc -f
  gt run log gt-abc#2 --tail 50
  gt run log gt-abc --json
  gt run log gt-abc --raw > output.txt")]
pub(super) struct LogArgs {
    /// A run such as gt-abc#2, or a bead for its live or last one
    run: String,
    #[command(flatten)]
    how: LogOptions,
}

/// How much of an output is printed, and how.
#[derive(Debug, Args)]
pub(in crate::gt) struct LogOptions {
    /// Go on until the run ends
    #[arg(short, long)]
    follow: bool,
    /// Begin with the last so many lines
    #[arg(short = 'n', long, value_name = "LINES")]
    tail: Option<usize>,
    /// Print the bytes of the output, not its events
    #[arg(long)]
    raw: bool,
}

impl LogOptions {
    /// The end of an output, and what comes after it.
    pub(in crate::gt) fn from_end(lines: usize) -> Self {
        Self { follow: true, tail: Some(lines), raw: false }
    }
}

pub(super) fn run(context: &CommandContext<'_>, args: &LogArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let run = gt_beads::run_records::resolve(&town, &args.run)?;
    print_log(context, &town, &run, &args.how)
}

/// Prints what the worker of a run did and said.
pub(in crate::gt) fn print_log(
    context: &CommandContext<'_>,
    town: &Town,
    run: &Run,
    args: &LogOptions,
) -> Result<(), CliError> {
    let printer = context.printer;
    if printer.json() && !args.raw {
        return print_documents(printer, town, run, args);
    }
    if !args.raw && !has_plain_output(town, run) {
        return print_events(printer, town, run, args);
    }
    let mut output = RunOutput::of(town, run)?;
    note_elsewhere(printer, run, output.elsewhere());
    let late = late_by(output.elsewhere());
    if let Some(lines) = args.tail {
        output.skip_to_last(lines)?;
    }
    match (printer.json(), args.follow) {
        (true, false) => whole_as_json(printer, run, &mut output),
        (true, true) => {
            let mut lines = LineSplitter::default();
            follow(printer, town, &run.id, late, || {
                copy(&mut output, |bytes| {
                    lines.add(bytes).into_iter().try_for_each(|line| print_line(printer, &line))
                })
            })?;
            let last = lines.add(&output.rest());
            last.into_iter().try_for_each(|line| print_line(printer, &line))?;
            lines.rest().into_iter().try_for_each(|line| print_line(printer, &line))?;
            print_state(printer, town, run)
        }
        (false, true) => {
            let mut text = LineSplitter::default();
            follow(printer, town, &run.id, late, || {
                copy(&mut output, |bytes| print(printer, &mut text, bytes))
            })?;
            print(printer, &mut text, &output.rest())?;
            finish(printer, text)
        }
        (false, false) => {
            let mut text = LineSplitter::default();
            let mut any = false;
            let mut show = |bytes: &[u8]| {
                any |= !bytes.is_empty();
                print(printer, &mut text, bytes)
            };
            copy(&mut output, &mut show)?;
            show(&output.rest())?;
            if !any {
                note_nothing(printer, run, output.path());
            }
            finish(printer, text)
        }
    }
}

/// Says that only the end of an output is shown, and which host has all of it.
fn note_elsewhere(printer: &Printer, run: &Run, elsewhere: Option<&OutputElsewhere>) {
    if elsewhere.is_some() && run.state.is_live() {
        printer.note(format!("{}: what it prints arrives here with up to 30 s delay", run.id));
    }
    if let Some(OutputElsewhere { host, cut_bytes }) = elsewhere
        && *cut_bytes > 0
    {
        let cut = size(*cut_bytes);
        printer.note(format!("{}: the first {cut} of its output are on {host} alone", run.id));
    }
}

/// How long after the end of a run its last output may arrive.
fn late_by(elsewhere: Option<&OutputElsewhere>) -> Duration {
    elsewhere.map_or(Duration::ZERO, |_| KEPT_OUTPUT_WAIT_MAX)
}

/// Prints each event as a line of JSON; with `follow`, the state of the run in the end.
fn print_documents(
    printer: &Printer,
    town: &Town,
    run: &Run,
    args: &LogOptions,
) -> Result<(), CliError> {
    let mut transcript = RunTranscript::of(town, run)?;
    note_elsewhere(printer, run, transcript.elsewhere());
    if let Some(lines) = args.tail {
        transcript.skip_to_last(lines)?;
    }
    let print = |events: Vec<TranscriptEvent>| {
        events.iter().try_for_each(|event| printer.json_line(&TranscriptEventDocument::from(event)))
    };
    read_events(printer, town, run, args, &mut transcript, print)?;
    print(transcript.finish())?;
    if args.follow { print_state(printer, town, run) } else { Ok(()) }
}

/// Prints the events as lines for people.
fn print_events(
    printer: &Printer,
    town: &Town,
    run: &Run,
    args: &LogOptions,
) -> Result<(), CliError> {
    let mut transcript = RunTranscript::of(town, run)?;
    note_elsewhere(printer, run, transcript.elsewhere());
    let mut view = TranscriptView::default();
    let mut any = false;
    if let Some(count) = args.tail {
        // Not every line of the output is shown, and some become several.
        transcript.skip_to_last(count.saturating_mul(OUTPUT_LINES_PER_LINE))?;
        let mut last = VecDeque::new();
        while let Some(events) = transcript.read()? {
            for line in events.iter().flat_map(|event| view.lines(event)) {
                last.push_back(line);
                if last.len() > count {
                    last.pop_front();
                }
            }
        }
        any = !last.is_empty();
        last.iter().try_for_each(|line| printer.styled(line))?;
    }
    read_events(printer, town, run, args, &mut transcript, |events| {
        any |= !events.is_empty();
        events.iter().flat_map(|event| view.lines(event)).try_for_each(|line| printer.styled(&line))
    })?;
    let path = transcript.path().to_owned();
    for event in transcript.finish() {
        any = true;
        view.lines(&event).iter().try_for_each(|line| printer.styled(line))?;
    }
    if !any {
        note_nothing(printer, run, &path);
    }
    view.finish().iter().try_for_each(|line| printer.styled(line))
}

/// Notes that there is no output: a run whose agent has begun had a file, also if the agent printed nothing.
fn note_nothing(printer: &Printer, run: &Run, path: &Path) {
    let had_file = run.running_at.is_some() && !run.state.is_live() && path.is_absolute();
    printer.note(if had_file && !path.exists() {
        format!(
            "the output of {} is not kept any more: logs.keep says for how long, and a full disk removes the oldest first",
            run.id
        )
    } else if path.is_absolute() {
        format!("{} has printed nothing", run.id)
    } else {
        format!("nothing that {} has printed has arrived here", run.id)
    });
}

/// Hands over the events so far, and with `follow` new ones until the run has ended.
fn read_events(
    printer: &Printer,
    town: &Town,
    run: &Run,
    args: &LogOptions,
    transcript: &mut RunTranscript,
    mut each: impl FnMut(Vec<TranscriptEvent>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let late = late_by(transcript.elsewhere());
    let mut copy = || {
        while let Some(events) = transcript.read()? {
            each(events)?;
        }
        Ok(())
    };
    if args.follow { follow(printer, town, &run.id, late, copy) } else { copy() }
}

fn print_state(printer: &Printer, town: &Town, run: &Run) -> Result<(), CliError> {
    let ended = gt_beads::run_records::resolve(town, &run.id.to_string())?;
    printer.json_line(&RunStateDocument { state: ended.state.as_str().to_owned() })
}

/// Hands over the output so far.
fn copy(
    output: &mut RunOutput,
    mut each: impl FnMut(&[u8]) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match output.read(&mut buffer)? {
            0 => return Ok(()),
            count => each(&buffer[..count])?,
        }
    }
}

/// Hands over the output so far and new output, until the run has ended.
fn follow(
    printer: &Printer,
    town: &Town,
    id: &RunId,
    late: Duration,
    mut copy: impl FnMut() -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut waited = Duration::ZERO;
    loop {
        // The store is asked before the file is read, so that no output before the end is missed.
        let has_ended = match gt_beads::run_records::resolve(town, &id.to_string()) {
            Ok(run) => !run.state.is_live(),
            Err(error) if error.may_pass() => false,
            Err(error) => return Err(error.into()),
        };
        for _ in 0..POLLS_PER_STORE_READ {
            copy()?;
            if has_ended && waited >= late {
                return Ok(());
            }
            printer.wait(OUTPUT_POLL_INTERVAL)?;
            if has_ended {
                waited += OUTPUT_POLL_INTERVAL;
            }
        }
    }
}

/// Prints bytes as they are, or as text that does nothing to the terminal.
fn print(printer: &Printer, lines: &mut LineSplitter, bytes: &[u8]) -> Result<(), CliError> {
    if !printer.is_terminal() {
        return printer.bytes(bytes);
    }
    lines.add(bytes).iter().try_for_each(|line| printer.line(plain_line(line)))
}

fn finish(printer: &Printer, lines: LineSplitter) -> Result<(), CliError> {
    lines.rest().iter().try_for_each(|line| printer.line(plain_line(line)))
}

fn print_line(printer: &Printer, line: &[u8]) -> Result<(), CliError> {
    printer.json_line(&RunLineDocument { line: String::from_utf8_lossy(line).into_owned() })
}

fn whole_as_json(printer: &Printer, run: &Run, output: &mut RunOutput) -> Result<(), CliError> {
    let bytes = output.read_to_end()?;
    printer.object(&RunLogDocument {
        id: run.id.to_string(),
        state: run.state.as_str().to_owned(),
        path: output.path().display().to_string(),
        bytes: bytes.len() as u64,
        is_text: str::from_utf8(&bytes).is_ok(),
        output: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

/// Makes lines of bytes that come in pieces.
#[derive(Debug, Default)]
pub(in crate::gt) struct LineSplitter {
    begun: Vec<u8>,
}

impl LineSplitter {
    /// The lines that these bytes complete, without their ends.
    pub(in crate::gt) fn add(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut parts = bytes.split(|byte| *byte == b'\n');
        let last = parts.next_back().unwrap_or_default();
        let mut lines = Vec::new();
        for part in parts {
            let mut line = std::mem::take(&mut self.begun);
            line.extend_from_slice(part);
            lines.push(line);
        }
        self.begun.extend_from_slice(last);
        lines
    }

    /// The last line, if it has no end.
    fn rest(self) -> Option<Vec<u8>> {
        Some(self.begun).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_come(text in "[ab\n]{0,30}", cut in 0_usize..31) {
            let (first, second) = text.as_bytes().split_at(cut.min(text.len()));
            let mut lines = LineSplitter::default();
            let mut all = lines.add(first);
            all.extend(lines.add(second));
            all.extend(lines.rest());
            let expected: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
            prop_assert_eq!(all, expected);
        }
    }
}
